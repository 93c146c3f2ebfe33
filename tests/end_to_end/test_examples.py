"""The examples run, and say what the README says they say."""

import re
import subprocess
import sys

import pytest
from support.cli import ENVIRONMENT, run_here
from support.paths import ROOT

EXPECTED = [
    ("on-call.edn", "si", None),
    ("on-call.edn", "ser", "write skew"),
    ("on-call.edn", "examples/my-level.iso", None),
    ("counter.txt", "pl-2", None),
    ("counter.txt", "si", "lost update"),
    ("three.txt", "ser", None),
    ("append.edn", "pl-2", None),
    ("append.edn", "pc", "long fork"),
    ("append.edn", "sser", "long fork"),
    ("append.edn", "examples/my-level.iso", "long fork"),
    ("long-fork.bincode", "pl-2", None),
    ("long-fork.bincode", "si", "long fork"),
]


#: The cases of docs/from-elle.md.
ELLE = [
    ("wx1-rx2.edn", "strict-serializable", "thin-air read"),
    ("wx1-rx2.edn", "pl-2", "thin-air read"),
    ("paper-example.edn", "serializable", "G-single"),
    ("paper-example.edn", "pl-2", None),
    ("wr-process-wr.edn", "strong-session-snapshot-isolation", "G1c-session"),
    ("wr-process-wr.edn", "snapshot-isolation", None),
    ("future-read.edn", "pl-2", "future read"),
    ("session-si.edn", "snapshot-isolation", None),
    ("session-si.edn", "strong-session-snapshot-isolation", "long fork-session"),
    ("read-before-write.edn", "serializable", "future read"),
    ("written-again.edn", "strict-serializable", None),
    ("crossed-reads.edn", "strict-serializable", "G-single-session"),
    ("crossed-reads.edn", "strong-session-serializable", "G-single-session"),
    ("crossed-reads.edn", "serializable", None),
    ("interleaved-writes.edn", "read-committed", "G1b"),
    ("interleaved-writes.edn", "read-uncommitted", None),
]

#: The workloads of docs/from-elle.md.
WORKLOADS = [
    ("bank.edn", "snapshot-isolation", "thin-air read"),
    ("bank.edn", "psi", "thin-air read"),
    ("bank.edn", "read-committed", "unknown"),
    ("set.edn", "strict-serializable", "G-single-realtime"),
    ("set.edn", "serializable", None),
    ("comments.edn", "strict-serializable", "G-single-realtime"),
    ("comments.edn", "serializable", None),
    ("counter.edn", "linearizable", "G-single-realtime"),
    ("counter.edn", "serializable", "unknown"),
    ("sequential.edn", "sequential", "causality violation-session"),
    ("sequential.edn", "serializable", None),
    ("long-fork.edn", "snapshot-isolation", "long fork"),
    ("long-fork.edn", "parallel-snapshot-isolation", None),
]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize(
    ("history", "spec", "anomaly"),
    [
        *EXPECTED,
        *((f"elle/{h}", s, a) for h, s, a in ELLE),
        *((f"workloads/{h}", s, a) for h, s, a in WORKLOADS if a != "unknown"),
    ],
)
def test_example(capfd, history, spec, anomaly):
    """Each example has the verdict that examples/README.md gives it."""
    run = run_here(capfd, "--spec", spec, "-o", "json", f"examples/{history}")
    (report,) = run.reports()
    assert report["anomaly"] == anomaly
    assert report["verdict"] == ("valid" if anomaly is None else "invalid")
    assert report["certified"]


@pytest.mark.parametrize(("history", "spec"), [(h, s) for h, s, a in WORKLOADS if a == "unknown"])
def test_what_a_workload_does_not_tell(capfd, history, spec):
    """Where its operations say nothing about a level, the verdict is unknown."""
    run = run_here(capfd, "--spec", spec, "-o", "json", f"examples/workloads/{history}")
    (report,) = run.reports()
    assert (report["verdict"], run.code) == ("unknown", 3)


def test_every_example_is_listed():
    """examples/README.md names each file, and no other."""
    listed = set(re.findall(r"^\| `([^`]+)` \|", (ROOT / "examples/README.md").read_text(), re.M))
    there = {path.name for path in (ROOT / "examples").iterdir()}
    assert listed == there - {"README.md", "__pycache__"}


def test_every_case_of_elle_is_listed():
    """docs/from-elle.md names each history, with the verdicts that are tested."""
    text = (ROOT / "docs/from-elle.md").read_text()
    rows = dict(re.findall(r"^\| `([^`]+\.edn)` \|.*\| ([^|]*) \|$", text, re.M))
    folders = [ROOT / "examples/elle", ROOT / "examples/workloads"]
    assert set(rows) == {path.name for folder in folders for path in folder.iterdir()}
    for history, spec, anomaly in ELLE + WORKLOADS:
        assert f"`{spec}`" in rows[history]
        assert (anomaly or "valid") in rows[history]


@pytest.mark.slow
def test_the_script():
    """examples/check.py prints what it says."""
    done = subprocess.run(
        [sys.executable, "examples/check.py"],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "read-committed: valid",
        "snapshot-isolation: lost update between T1, T2, T3",
        "strict-serializable: lost update between T1, T2, T3",
    ]


def test_the_readme_shows_real_output(capfd):
    """Its first verdict is what the command prints, times aside."""
    readme = (ROOT / "README.md").read_text()

    def timeless(text):
        return re.sub(r"^  time .*\n", "", text, flags=re.MULTILINE).strip()

    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", readme, re.M | re.S)
    blocks = [timeless(block) for language, block in fenced if not language]
    valid = run_here(capfd, "--spec", "si", "examples/on-call.edn")
    assert valid.code == 0
    assert timeless(valid.out) in blocks


@pytest.mark.slow
def test_the_readme_catches_a_database(tmp_path, monkeypatch, capfd):
    """Its command catches the database, certified; which of the updates is lost differs by run."""
    readme = (ROOT / "README.md").read_text()
    (command,) = re.findall(r"^\.venv/bin/isocheck (run sqlite .*)$", readme, re.M)
    monkeypatch.chdir(tmp_path)
    found = run_here(capfd, *command.split())
    assert found.code == 1
    shown = next(block for block in readme.split("```") if "\nINVALID" in block)
    head = r"^INVALID  isocheck-runs/sqlite-python-rmw-.*  ser \(serializability, with session.*"
    for text in (shown, found.out):
        assert re.search(head, text, re.M)
        assert re.search(r"^ {2,}(- )?T\d+ (-\w+( x\d+)?-> T\d+|wrote) ", text, re.M)
    assert re.search(r"certified +yes", found.out)


def test_the_readme_s_commands():
    """One block sets everything up and shows a verdict, the marked one passes the tests."""
    readme = (ROOT / "README.md").read_text()
    first = re.search(r"^```sh\n(.*?)^```$", readme, re.M | re.S).group(1)
    assert "pip install ." in first
    assert "isocheck --spec si examples/on-call.edn" in first
    marked = re.search(r"<!-- test-command -->\n```sh\n(.*?)^```$", readme, re.M | re.S).group(1)
    assert "pip install" in marked
    assert "pytest" in marked
