"""The benchmark scripts: limits, the arithmetic of what is reported, and one tiny run."""

import json
import os
import sys
from pathlib import Path

import pytest
from support.paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks" / "peers"))
sys.path.insert(0, str(ROOT / "benchmarks"))

import campaign
import cases
import compare
import compare_revisions
import guard
import measuring
import report
import run as suite

pytestmark = pytest.mark.skipif(
    "ISOLANG_SANITIZED" in os.environ,
    reason="a sanitizer takes more than any limit",
)


def python(text, **limits):
    return measuring.run(
        [sys.executable, "-c", text], **({"timeout": 20, "megabytes": 500} | limits)
    )


def test_a_run_is_measured():
    """CPU time, peak memory and the report are the child's."""
    found = python(
        "import json; x = bytearray(60_000_000); print('noise'); print(json.dumps({'a': len(x)}))",
        reports=True,
    )
    assert (found.ended, found.code, found.report) == ("ok", 0, {"a": 60_000_000})
    assert found.megabytes > 57
    assert 0 < found.cpu <= 4 * found.seconds


@pytest.mark.parametrize(
    ("text", "limits", "ended"),
    [
        ("import time; time.sleep(60)", {"timeout": 0.3}, "timeout"),
        ("import os; os.abort()", {}, "failed"),
        ("x = bytearray(900_000_000)", {"reports": True, "megabytes": 300}, "failed"),
        ("print('no report')", {"reports": True}, "failed"),
    ],
)
def test_limits(text, limits, ended):
    """What takes too long or too much is ended, and said so."""
    assert python(text, **limits).ended == ended


def test_net_of_nothing():
    """Medians less those of two lines, never below zero."""
    runs = [
        measuring.Run(seconds=s, cpu=s / 2, megabytes=100 + s, ended="ok", code=0)
        for s in (3.0, 1.0, 2.0)
    ]
    found = measuring.measured(runs, wall=0.5, cpu=0.25, memory=60)
    assert (found.seconds, found.spread, found.cpu) == (1.5, (0.5, 2.5), 0.75)
    assert (found.megabytes, found.gross_seconds, found.runs) == (43.0, 2.0, 3)
    assert measuring.measured(runs, wall=9.0, cpu=9.0, memory=900).seconds == 0


def test_peers():
    """A peer is a name and a command; history and level are filled in."""
    peer = measuring.Tool.parse("other=/opt/o --level {level} '{history}' --x=1")
    assert peer.name == "other"
    assert peer.on(Path("h.b"), "si") == ["/opt/o", "--level", "si", "h.b", "--x=1"]
    with pytest.raises(ValueError, match="expected 'name=command"):
        measuring.Tool.parse("other=/opt/o")


@pytest.mark.slow
def test_other_programs_run_in_turn_with_isocheck(tmp_path, capsys, monkeypatch):
    """With programs that stand for them, and note what they are given."""
    awdit, porcupine = tmp_path / "a" / "target" / "release", tmp_path / "p"
    awdit.mkdir(parents=True)
    (porcupine / "test_data" / "jepsen").mkdir(parents=True)
    for name in ("etcd_000.log", "etcd_095.log"):
        read = "INFO  jepsen.util - 0\t:{}\t:read\tnil\n"
        lines = read.format("invoke") + read.format("ok")
        (porcupine / "test_data" / "jepsen" / name).write_text(lines)
    for program in (awdit / "awdit", porcupine / "porcupine.test"):
        program.write_text(f"#!/bin/sh\necho $PWD $* >> {tmp_path}/calls\n")
        program.chmod(0o755)
    monkeypatch.setattr(compare, "MEASURED", tmp_path / "measured.json")
    monkeypatch.setattr(compare, "AWDIT_LEVELS", {"rc": "read-committed"})
    arguments = ["--awdit", str(tmp_path / "a"), "--porcupine", str(porcupine)]
    assert compare.main([*arguments, "--transactions", "40", "--runs", "1", "--write"]) == 0
    calls = (tmp_path / "calls").read_text()
    assert calls.count("check -i read-committed ") == 4  # two runs, with and without certificates
    assert calls.count(f"{porcupine} -test.run") == 2
    kept = json.loads((tmp_path / "measured.json").read_text())
    tasks = [row["task"] for row in kept["rows"]]
    assert [task.split(",")[0] for task in tasks] == [
        "AWDIT: read committed", "AWDIT: read committed", "Porcupine: linearizability",
    ]  # fmt: skip
    assert "not certified" in tasks[1]
    assert "1 logs in one command" in tasks[2]
    assert "behind" in capsys.readouterr().out


def test_the_table_of_other_checkers():
    rows = [
        {"task": "t", "isocheck": {"cpu": 2.0, "megabytes": 10.4}, "peer": {"cpu": 1.0}},
        {"task": "u", "isocheck": {"cpu": 1.0}, "peer": {"cpu": 2.5}, "since": 0.7},
    ]
    assert report.peers_table(rows).splitlines()[2:] == [
        "| t | 2.00 s, 10 MB | 1.00 s | behind: 2.0 × the time |  |",
        "| u | 1.00 s | 2.50 s | 2.5 × as fast | isocheck takes 0.70 of its time |",
    ]


def test_every_case_can_be_made():
    """Names are unique, and options are those of a workload."""
    from isolang.simulator import Workload

    found = [
        *cases.simulated_histories(quick=False),
        *cases.mini(quick=False),
        *cases.weak_levels(quick=False),
        *cases.hard(quick=False, seeds=range(1, 3)),
    ]
    assert len({(case.part, case.name) for case in found}) == len(found)
    for case in found:
        Workload(**case.options)
    assert len([c for c in found if c.part == "simulated"]) == 3 * 3 * 2 * 3 * 2
    assert len([c for c in found if c.part == "hard"]) == 3 * 2 * 2 * 3 * 2 * 2 * 2 * 2


@pytest.mark.slow
def test_one_tiny_run(tmp_path, capsys):
    """The whole way, with a peer that knows nothing: numbers, table, and no wrong verdict."""
    peer = f"peer={sys.executable} -c pass {{history}}"
    arguments = [
        "--quick", "--only", "hard", "--seeds", "1", "--filter", "5v 70% rmw valid", "--runs", "1",
        "--peer", peer, "--out", str(tmp_path),
    ]  # fmt: skip
    assert suite.main(arguments) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    ours, theirs = results["rows"]
    assert (ours["verdict"], ours["certified"], ours["wrong"]) == ("valid", True, False)
    assert (theirs["tool"], theirs["ended"], theirs["verdict"]) == ("peer", "ok", "")
    assert "--values 5" in ours["made_by"]
    text = (tmp_path / "results.md").read_text()
    assert "| 500 | 100 | 20 | 5 | 70% | read-modify-write | valid | isocheck | 1 | 1 |" in text
    assert "WRONG" not in text + capsys.readouterr().out


def test_a_wrong_verdict_is_reported():
    """In capitals: the table of a run that contradicts what is known."""
    row = {
        "part": "mini", "case": "c", "level": "ser", "tool": "isocheck", "seconds": 0.5,
        "spread": (0.4, 0.6), "cpu": 0.5, "megabytes": 3, "verdict": "invalid", "ended": "ok",
        "certified": True, "expected": "valid", "wrong": True, "transactions": 10,
        "stages": {}, "statistics": {}, "shape": {},
    }  # fmt: skip
    text = report.markdown({"machine": {"cores": 2}, "rows": [row]})
    assert "WRONG VERDICTS" in text
    assert "50000.0 µs" in text


def test_papers_are_compared_with_whole_commands():
    """A paper's time is that of a whole program; without its start is another column."""
    row = {
        "part": "published", "case": "c", "level": "ser", "tool": "isocheck", "seconds": 0.05,
        "gross_seconds": 0.25, "cpu": 0.05, "megabytes": 20, "gross_megabytes": 70,
        "verdict": "valid", "ended": "ok", "wrong": False, "shape": {"published": "Tool: 2 s"},
    }  # fmt: skip
    lines = report.markdown({"machine": {"cores": 2}, "rows": [row]}).splitlines()
    head, values = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith(("| history", "| c "))
    )
    told = dict(zip(head, values, strict=True))
    assert (told["whole command"], told["without the start"]) == ("250 ms", "50 ms")
    assert (told["memory of the whole command"], told["memory"]) == ("70 MB", "20 MB")
    assert any(line.startswith("| Porcupine: linearizability, 108 logs") for line in lines)


def test_a_comparison_quotes_ratios():
    """Of medians, with the noise; runs alternate."""
    row = {
        "case": "c", "level": "si", "seconds": [2.0, 1.0], "cpu": [2.0, 1.0], "ratio": 0.5,
        "cpu_ratio": 0.5, "noise": 0.0, "megabytes": [10, 20],
        "verdicts": ["valid", "unknown"], "runs": 2,
    }  # fmt: skip
    lost = {**row, "case": "lost", "ratio": None, "noise": 5.0}
    text = compare_revisions.markdown({"cores": 2}, ["a", "b"], [row, lost])
    assert "**0.50**" in text
    assert "valid / unknown" in text
    assert "Geometric mean: 0.50" in text
    assert "| – | 0.50 | ±500% |" in text
    order = []

    class Fake:
        long = 10

        def once(self, tool, history, level):
            order.append((tool, history))
            seconds = {("a", "h"): 3, ("b", "h"): 2}.get((tool, history), 1)
            return measuring.Run(seconds=seconds, cpu=1, megabytes=1, ended="ok", code=0)

        def two_lines(self, form):
            return "two"

    class Case:
        name, form, levels = "c", "edn", ("si",)

        def make(self, folder):
            return "h"

    (row,) = compare_revisions.compare(Case(), ("a", "b"), Fake(), Path(), 3)
    assert order == [(tool, path) for tool in "abbaab" for path in ("two", "h")]
    assert (row["seconds"], row["ratio"], row["runs"]) == ([2, 1], 0.5, 3)
    assert row["cpu_ratio"] is None  # nothing is left of it


@pytest.mark.slow
def test_a_campaign_goes_on(tmp_path):
    """Two halves are the whole: what was judged is a function of the seed alone."""
    whole, halves = campaign.Night(tmp_path / "a", 7), campaign.Night(tmp_path / "b", 7)
    whole.run(300)
    halves.run(100)
    again = campaign.Night(tmp_path / "b", 7)
    assert 100 <= again.totals.counts["pairs"] < 200
    again.run(300)
    for part in ("number", "counts", "verdicts", "separated", "disagreements"):
        assert getattr(again.totals, part) == getattr(whole.totals, part)
    assert not whole.totals.disagreements
    with pytest.raises(SystemExit, match="another seed"):
        campaign.Night(tmp_path / "b", 8)


@pytest.mark.slow
def test_a_campaign_keeps_what_disagrees(tmp_path, monkeypatch, capsys):
    """A tool that takes lost updates for fine is caught; the history is shrunk and kept."""
    honest = campaign.Judges.got

    def lax(judges, given, setting, problem=None):
        if campaign.level_of(setting.style) == "si":
            setting = campaign.msgspec.structs.replace(setting, style="pc", pair=())
        return honest(judges, given, setting, problem)

    night = campaign.Night(tmp_path, 0)
    with monkeypatch.context() as patch:
        patch.setattr(campaign.Judges, "got", lax)
        night.run(1000)
        cases = sorted(tmp_path.glob("*-si*.json"))
        assert sum(night.totals.disagreements.values()) >= len(cases) > 0
        assert campaign.main(["again", str(cases[0])]) == 1
    assert "expected invalid, got valid" in capsys.readouterr().out
    case = campaign.msgspec.json.decode(cases[0].read_bytes(), type=campaign.Case)
    assert len(campaign.parse(case.operations)) <= 3
    assert campaign.main(["again", str(cases[0])]) == 0  # by the tool as it is


@pytest.mark.slow
def test_specifications_as_users_write_them(tmp_path, monkeypatch, capsys):
    """A slice compares them, and a tool that calls everything valid is found out."""
    arguments = ["expressions", "--users", "--specs", "8", "--log", str(tmp_path / "log.jsonl")]
    assert campaign.main([*arguments, "--per-spec", "2"]) == 0
    honest = campaign.users.told

    def lax(crossed, way, *, seed=0):
        told, why = honest(crossed, way, seed=seed)
        return ("valid" if told == "invalid" else told), why

    monkeypatch.setattr(campaign.users, "told", lax)
    assert campaign.main([*arguments, "--per-spec", "2"]) == 1
    told = capsys.readouterr().out
    assert "expected invalid, got valid" in told
    assert campaign.main(["report", "--log", str(tmp_path / "log.jsonl")]) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "levels"),
    [("times,rows,sets", ""), ("crossed", "pl-2,ser,sser-nosession,pl-fcv,consistent-read")],
)
def test_proofs_that_are_tampered_with_prove_nothing_wrong(kinds, levels, tmp_path, capsys):
    """Both checkers judge them alike; none proves what the oracle denies."""
    arguments = ["--kinds", kinds, "--levels", levels, "--pairs", "250", "--folder", str(tmp_path)]
    assert campaign.main(["forge", *arguments]) == 0
    told = capsys.readouterr().out
    for claim in ("invalid of what is valid", "valid of what is invalid"):
        assert f"{claim}: rejected, rejected" in told


def test_the_guard_has_thirty_cases_of_each_kind():
    """Valid and invalid, small and large, in each format."""
    assert len({case.name for case in guard.CASES}) == 30
    for form in {case.form for case in guard.CASES}:
        mine = [case for case in guard.CASES if case.form == form]
        assert {(bool(case.bug), case.histories > 1) for case in mine} == {
            (False, False), (False, True), (True, False), (True, True),
        }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "slower"),
    [
        ([1.0, 1.0, 1.0], [1.2, 1.2, 1.2], True),
        ([1.0, 1.0, 1.0], [1.05, 1.05, 1.05], False),
        ([1.0, 1.0, 1.0], [0.5, 0.5, 0.5], False),
        ([0.5, 1.0, 1.5], [1.2, 1.2, 1.2], False),
    ],
)
def test_the_guard_says_what_got_slower_by_more_than_a_tenth_and_the_noise(before, after, slower):
    """The median counts; a ratio within the noise says nothing."""
    row = guard.row_of("case", [[(x, 0) for x in before], [(x, 0) for x in after]])
    assert (row.slower, row.differs) == (slower, False)
    assert ("slower" in guard.markdown(["a", "b"], [row])) == slower


def test_the_guard_notices_other_verdicts():
    """The exit codes say them."""
    row = guard.row_of("case", [[(1.0, 0)], [(1.0, 1)]])
    assert row.differs
    assert "other verdicts" in guard.markdown(["a", "b"], [row])


@pytest.mark.slow
def test_the_guard_makes_what_it_says(tmp_path):
    """An invalid case is invalid by its level, and is measured with that exit code."""
    case = guard.Case(form="edn", level="si", bug="lost update", histories=2, transactions=20)
    paths = case.make(tmp_path)
    assert len(paths) == 2
    seconds, code = guard.processor_seconds(guard.Built(ROOT), "si", paths, 60)
    assert seconds > 0
    assert code == 1


def test_recorded_shapes_differ_and_what_grows_fastest_is_on_top():
    """Growth is the exponent; a failed run, whose growth is unknown, counts as superlinear."""
    from measuring import Run
    from recorded import SHAPES, Measured

    assert len({(shape.judged, shape.name) for shape in SHAPES}) == len(SHAPES) == 31

    def measured(*seconds: float, code: int = 0) -> Measured:
        runs = tuple(
            Run(seconds=s, cpu=s + 0.2, megabytes=1, ended="ok", code=code) for s in seconds
        )
        return Measured(shape=SHAPES[0], sizes=(100, 200, 400), runs=runs, empty=0.2)

    linear, square, failed = measured(1, 2, 4), measured(1, 4, 16), measured(1, 2, 4, code=1)
    assert round(linear.growth, 9) == 1
    assert round(square.growth, 9) == 2
    assert failed.growth is None
    assert [one.is_superlinear for one in (linear, square, failed)] == [False, True, True]
    assert measured(0.05, 0.3, 0.9).growth is None  # too short to say


@pytest.mark.slow
def test_what_is_shown_is_compared(capsys, monkeypatch):
    """With a verdict that is not that of the file, and without."""
    run = ["shown", "--histories", "8", "--first", "20"]
    assert campaign.main(run) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["files"] > 3
    assert counts["to dbcop"] > 0
    monkeypatch.setattr("shown.anomaly_of", lambda part, plan: "another")
    assert campaign.main(run) == 1
    assert "the file has the anomaly" in capsys.readouterr().out
