"""The recorder of docs/record.md is run, and isocheck reads what it writes."""

import json
import re
import shutil
import subprocess

import pytest
from support.paths import ROOT

import isolang

PAGE = (ROOT / "docs" / "record.md").read_text()
RECORDER = next(
    text for text in re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL) if "class Recorder" in text
)
APPLICATION = """
const { Recorder } = require('./recorder.js');
const recorder = new Recorder('history.jsonl');
const seats = new Map([[7, { takenBy: null, v: null }]]);
const locked = process.argv[2] === 'locked';
let version = 0, queue = Promise.resolve();
const pause = () => new Promise((resolve) => setTimeout(resolve, 1));

async function take(client) {
  const writes = [];
  await recorder.transaction(client, {
    work: async (t) => {
      const seat = seats.get(7);
      t.read('seat/7', seat.v);
      await pause();
      const v = ++version;
      t.write('seat/7', v);
      writes.push([7, { takenBy: client, v }]);
      if (client === 'unlucky') throw new Error('no "money"\\n');
    },
    commit: async () => {
      if (client === 'lost') throw new Error('the connection is lost');
      if (client === 'refused') throw Object.assign(new Error('deadlock'), { errno: 1213 });
      for (const [id, seat] of writes) seats.set(id, seat);
    },
    rollback: async () => {},
    refused: (error) => error.errno === 1213,
  });
}

const clients = ['ann', 'bob', 'unlucky', 'refused', 'lost', 'lost'];
const taking = clients.map((client) => {
  const one = () => take(client).catch((error) => error);
  return client === 'lost' ? (queue = queue.then(one)) : locked ? (queue = queue.then(one)) : one();
});
Promise.all(taking);
"""


@pytest.fixture
def recorded(tmp_path):
    """Run the application, and return its history."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (tmp_path / "recorder.js").write_text(RECORDER)
    (tmp_path / "application.js").write_text(APPLICATION)

    def run(how):
        subprocess.run([node, "application.js", how], cwd=tmp_path, check=True, timeout=60)
        return tmp_path / "history.jsonl"

    return run


def test_the_recorder_is_short():
    """Forty lines at most."""
    assert len(RECORDER.strip().splitlines()) <= 40


@pytest.mark.parametrize(("how", "outcome"), [("racing", "invalid"), ("locked", "valid")])
def test_an_application_in_node(recorded, how, outcome):
    """Two that take one seat are found; one after the other is valid; three kinds of outcomes."""
    path = recorded(how)
    history = isolang.load_history(path)
    assert history.format == "jepsen-json"
    verdict = isolang.check(history, "ser")
    assert (verdict.outcome, verdict.certified) == (outcome, True)
    if outcome == "invalid":
        assert verdict.violation.anomaly == "lost update"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    ends = [one["type"] for one in events if one["type"] != "invoke"]
    assert sorted(ends) == ["fail", "fail", "info", "info", "ok", "ok"]
    assert sorted(one["index"] for one in events) == list(range(12))
    lost = {one["process"] for one in events if one["type"] == "info"}
    assert len(lost) == 2  # a session goes on as another process


def test_the_page_is_right_about_the_format(tmp_path):
    """Its two lines, and a predicate read in JSON."""
    lines = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0]
    path = tmp_path / "page.jsonl"
    path.write_text(lines)
    assert isolang.check(isolang.load_history(path, unwritten_initial=True), "sser").certified
    scan = re.search(r'`(\["rp".*?\])`', PAGE, re.DOTALL)[1]
    write = {"index": 0, "type": "ok", "process": 0, "f": "txn", "value": [["w", "x", 1]]}
    read = {"index": 1, "type": "ok", "process": 1, "f": "txn", "value": [json.loads(scan)]}
    path.write_text(f"{json.dumps(write)}\n{json.dumps(read)}\n")
    history = isolang.load_history(path)
    assert isolang.check(history, "ser").outcome == "valid"
    assert list(history.transactions())[1].ops[0][0] == "scan"
