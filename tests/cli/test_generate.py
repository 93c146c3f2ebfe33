"""``isocheck generate``, and ``--profile``."""

import json

import pytest
from support.cli import run_here, run_there

from isolang import load_history
from isolang.simulator import BUGS, RULES


def test_the_help_names_all_rules_and_bugs(capfd, monkeypatch):
    """From their tables."""
    monkeypatch.setenv("COLUMNS", "500")
    shown = run_here(capfd, "generate", "--help").out
    assert f"What the database guarantees: {', '.join(RULES)}." in shown
    assert f"Plant this anomaly once: {', '.join(BUGS)}; may be repeated." in shown


@pytest.mark.parametrize("form", ["edn", "dbcop", "plume"])
def test_what_is_generated_has_the_truth_that_is_printed(capfd, tmp_path, form):
    """Written, read by content, and judged."""
    path, truth = tmp_path / "history", tmp_path / "truth.json"
    run = run_here(
        capfd, "generate", path, "--to", form, "--rule", "snapshot", "--bug", "write skew",
        "--transactions", 50, "--values", 5, "--seed", 3, "--truth", truth,
    )  # fmt: skip
    assert run.code == 0
    assert run.out == ""
    assert "52 transactions" in run.err
    assert ("sser and strong-si cannot be checked without real time" in run.err) == (form != "edn")
    known = json.loads(truth.read_text())
    first, second = known["planted"][0]["transactions"]
    assert f"planted: write skew, in {first}, {second}, on keys 100, 101" in run.err
    run = run_here(capfd, "check", "--spec", "si", "--spec", "ser", "-o", "json", path)
    assert [r["verdict"] for r in run.reports()] == ["valid", "invalid"]
    read = load_history(path)
    of = {read.name_of(txn): txn for txn in range(read.t0)}
    for name in (first, second):  # those of the file that check reads
        keys = {read.key(int(read.columns.op_key[op])) for op in read.operations_of(of[name])}
        assert keys == {"100", "101"}
    assert ["si" in known["satisfies"], "ser" in known["violates"]] == [True, True]


def test_to_the_standard_output():
    """Bytes of the history there, words elsewhere."""
    run = run_there("generate", "--to", "plume", "--transactions", 5, "--operations", 2)
    assert run.code == 0
    assert len(run.out.splitlines()) == 10
    assert run.out.startswith(("r(", "w("))
    assert "the standard output: 5 transactions" in run.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rule", "serialisable"], "did you mean 'serializable'"),
        (["--to", "yaml"], "--to: got 'yaml', expected edn"),
        (["--sessions", "0"], "at least 1"),
        (["--lists", "--to", "plume"], "a list cannot be expressed"),
    ],
)
def test_refusals(capfd, tmp_path, arguments, message):
    """Errors name what is wrong; nothing is written."""
    run = run_here(capfd, "generate", tmp_path / "out", *arguments)
    assert run.code == 2
    assert message in run.err
    assert not (tmp_path / "out").exists()


def test_profile(capfd, tmp_path):
    """The text has the time of each stage and the counts; JSON has the same numbers."""
    path = tmp_path / "h.edn"
    assert run_here(capfd, "generate", path, "--values", 4, "--rule", "snapshot").code == 0
    run = run_here(capfd, "check", "--spec", "si", "--profile", path)
    assert run.code == 0
    for title in ("pruning", "certifying", "edges before pruning", "variables", "total"):
        assert title in run.out
    (report,) = run_here(capfd, "check", "--spec", "si", "--profile", "-o", "json", path).reports()
    assert {"nodes", "edges_known", "prune_passes", "seconds_prune"} <= set(report["statistics"])
    plain = run_here(capfd, "check", "--spec", "si", path)
    assert "edges before pruning" not in plain.out
