"""``isocheck litmus``, as users see it."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from support.cli import run_here
from support.paths import ROOT

from isolang.comparison.lattice import library_levels


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_history_that_tells_two_levels_apart_is_played(folder, capfd):
    run = run_here(capfd, "litmus", "si", "ser", "--run", "memory", "--level", "snapshot")
    assert run.code == 1
    assert "si allows this, ser does not:" in run.out
    assert "session 1   begin  r(x,nil) w(y,1)  commit" in run.out
    assert "memory, the simulated database, snapshot: seen in" in run.out
    assert "write skew, which ser forbids" in run.out
    assert run.out.count("commit\n") >= 4


def test_several_levels_are_told_apart(folder, capfd):
    levels = ["--level", "serializable", "--level", "snapshot", "--seconds", "60"]
    run = run_here(capfd, "litmus", "si", "ser", "--run", "memory", "-o", "json", *levels)
    found = json.loads(run.out)
    schema = json.loads((ROOT / "docs/schema/litmus.json").read_text())
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)
    one, other = found["results"]
    assert (one["level"], one["violations"], one["played"]) == ("serializable", 0, 20)
    assert other["violations"] > 0
    assert other["example"]["anomaly"] == "write skew"


def test_without_a_database_the_program_is_printed(folder, capfd):
    run = run_here(capfd, "litmus", "pc", "si")
    assert run.code == 0
    assert "begin  r(x,nil) w(x,1)  commit" in run.out


def test_a_history_from_a_file_is_played(folder, capfd):
    (folder / "skew.edn").write_text(
        '{:type :ok, :process 0, :value [[:r "x" nil] [:w "y" 1]]}\n'
        '{:type :ok, :process 1, :value [[:r "y" nil] [:w "x" 2]]}\n'
    )
    command = ["litmus", "skew.edn", "--run", "memory", "--seconds", "60", "--level"]
    assert run_here(capfd, *command, "snapshot").code == 1
    run = run_here(capfd, *command, "serializable")
    assert run.code == 0
    assert "not seen in all 20 interleavings" in run.out
    assert run_here(capfd, *command, "snapshot", "--spec", "ser").code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ser", "si"], "ser implies si"),
        ([], "nothing to play: name two specifications or a history, or give --suite"),
        (["--suite"], "--run TARGET is missing"),
        (["si", "ser", "--level", "x"], "--run TARGET is missing"),
        (["si", "ser", "--run", "memory", "--level", "x"], "unknown level"),
    ],
)
def test_mistakes(folder, capfd, arguments, said):
    run = run_here(capfd, "litmus", *arguments)
    assert run.code == 2
    assert said in run.err


@pytest.mark.slow
def test_the_suite_finds_where_the_levels_of_a_database_lie(folder, capfd, monkeypatch):
    """Those of the simulated database are known."""
    few = {name: library_levels()[name] for name in ("sser", "strong-si", "ser", "si", "pc", "rc")}
    monkeypatch.setattr("isolang.comparison.lattice.library_levels", lambda: few)
    run = run_here(capfd, "litmus", "--suite", "--run", "memory", "--interleavings", "40")
    first, *each = run.err.splitlines()
    assert re.fullmatch(r"\d+ programs, each played at 4 levels", first)
    assert [one.rpartition(": ")[2] for one in each] == [f"{n} of 4 levels" for n in (1, 2, 3, 4)]
    assert each[0].startswith("played at serializable: ")
    assert run.code == 1
    said = dict(line.strip().split(": ", 1) for line in run.out.splitlines() if ": nothing" in line)
    assert said["serializable"] == "nothing seen against sser"
    assert said["snapshot"].startswith("nothing seen against strong-si;")
    assert "refuted" in said["read committed"]
