"""``isocheck robust``, as users see it."""

from __future__ import annotations

import json

import jsonschema
import pytest
from support.cli import run_here
from support.paths import ROOT

FOLDER = ROOT / "examples/programs/templates"
SKEW = "program Leave(d, e) where d != e r(doctor[d]) r(doctor[e]) w(doctor[d], 0)"


def test_what_fails_is_shown_with_what_mends_it(capfd):
    """The example of the documentation, line by line."""
    path = FOLDER / "smallbank.litmus"
    run = run_here(capfd, "robust", str(path), "--at", "si")
    assert run.code == 1
    said = run.out.replace(str(path), "examples/programs/templates/smallbank.litmus")
    assert said.rstrip() in (ROOT / "docs/robustness.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_robust_is_printed_with_its_conditions(capfd):
    """TPC-C is robust at SI by columns, and not by whole rows."""
    run = run_here(capfd, "robust", str(FOLDER / "tpcc.litmus"), "--at", "si")
    assert run.code == 0
    assert "ROBUST  every execution at si (REPEATABLE READ) is serializable, under" in run.out
    assert "* a write, update or delete by key finds its row (new_order, orders)" in run.out
    assert "* a transaction may follow any other one in its session" in run.out
    run = run_here(capfd, "robust", str(FOLDER / "tpcc.litmus"), "--whole-rows", "--no-sessions")
    assert run.code == 1


def test_json_follows_its_schema(capfd):
    """The report has the history, and the mends with the numbers of their steps."""
    run = run_here(capfd, "robust", str(FOLDER / "courseware.litmus"), "-o", "json")
    found = json.loads(run.out)
    schema = json.loads((ROOT / "docs/schema/robust.json").read_text())
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)
    assert (run.code, found["standing"], found["against"]) == (1, "not robust", "ser")
    assert [one["step"] for one in found["mends"][0]] == [1, 2]
    assert found["counterexample"]["certified"]
    assert '[:w "enrol[s1,c1].name"' in found["counterexample"]["history"]
    assert found["dropped"] == 1


def test_a_counterexample_is_saved_with_its_certificates(capfd, tmp_path, monkeypatch):
    """``isocheck verify`` accepts both against the saved history."""
    monkeypatch.chdir(tmp_path)
    run = run_here(capfd, "robust", SKEW, "--at", "si", "--save", "out")
    assert run.code == 1
    for name, verdict in (("allowed", "valid under SI"), ("forbidden", "invalid under SER")):
        checked = run_here(
            capfd, "verify", f"out/{name}.certificate.json", "out/counterexample.edn"
        )
        assert checked.code == 0
        assert verdict in checked.out
    assert (tmp_path / "out/forbidden.svg").read_text().startswith("<svg")


def test_a_schedule_that_locks_of_rows_refuse_says_so(capfd):
    """Other columns of one row do not conflict, but PostgreSQL locks rows."""
    run = run_here(capfd, "robust", SKEW, "--at", "mvrc")
    assert run.code == 1
    assert "a database that locks rows, such as PostgreSQL" not in run.out
    text = "program P(c) w(x[c].a, 1) r(y[c]) r(x[c].b) program Q(c) w(x[c].b, 1) w(y[c], 1)"
    run = run_here(capfd, "robust", text, "--at", "mvrc")
    assert run.code == 1
    assert "a database that locks rows, such as PostgreSQL" in run.out


def test_what_nobody_can_certify_is_unknown(capfd):
    """The exit code is 3, and the text says why."""
    text = "program P(c) r(a[c]) insert(x[c]) r(b[c]) program Q(c) w(b[c], 1) delete(x[c])"
    run = run_here(capfd, "robust", text, "--at", "si")
    assert run.code == 3
    assert "UNKNOWN  at si (REPEATABLE READ): the theorem does not exclude" in run.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.litmus"], "none.litmus: cannot read the file: No such file or directory"),
        ([SKEW, "--at", "ser"], "'ser'"),
        (["program P(c) r(x[d])"], "<text>:1:18: `d` has no value here"),
        (["program P(c) r(x[c]) r(x[c, c])"], "got 2 keys of x, expected 1 as elsewhere"),
        (["program P(c) abort ()"], "unexpected (got `(`"),
    ],
)
def test_what_cannot_be_used(capfd, arguments, said):
    """A mistake ends with exit code 2 and says where it is."""
    run = run_here(capfd, "robust", *arguments)
    assert run.code == 2
    assert said in run.err
    assert "internal error" not in run.err


def test_a_run_has_templates(capfd, tmp_path):
    """Its answer has more conditions, and its templates can be saved and asked about."""
    written = tmp_path / "run.litmus"
    history = str(ROOT / "examples/on-call.edn")
    run = run_here(capfd, "robust", history, "--templates", str(written))
    assert run.code == 1
    assert "extracted from 4 committed transactions" in run.out
    assert "left out: 1 transaction that did not certainly commit" in run.out
    again = run_here(capfd, "robust", str(written))
    assert again.code == 1
    schedules = [
        shown.out.partition("NOT ROBUST")[2].partition("both")[0] for shown in (run, again)
    ]
    assert schedules[0] == schedules[1]
    assert "SER" in schedules[0]
    run = run_here(capfd, "robust", str(ROOT / "examples/three.txt"), "--at", "si")
    assert run.code == 0
    assert "the 3 recorded transactions include every program, and every sequence" in run.out


def test_options_of_runs_do_not_fit_templates(capfd, tmp_path):
    """A mistake, not something that is ignored."""
    for option in ("--same-keys", "--templates"):
        run = run_here(capfd, "robust", SKEW, option, str(tmp_path / "x"))
        assert run.code == 2
        assert f"{option} applies only to a recorded run" in run.err


def test_a_search_that_gives_up_says_so(capfd):
    """Neither robust nor not robust, and the exit code is 3."""
    run = run_here(capfd, "robust", str(FOLDER / "tpcc.litmus"), "--at", "si", "--work", "50")
    assert run.code == 3
    assert "UNKNOWN" in run.out
    assert "gave up after 50 steps" in run.out
    assert "the lowest level of each program is unknown: the search for split" in run.out
