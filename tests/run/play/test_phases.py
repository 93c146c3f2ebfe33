"""How the time of a run is shared out to its workloads, by the speed of the database."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count

import pytest
from support.children import Children, ConstantMethod, replace_method_after, slow_down
from support.cli import run_here

from isolang.run.operation import Abort
from isolang.run.play.phases import AUTO, MIN_COMMITS, WorkloadTurns, run_plan_of
from isolang.run.settings import Settings
from isolang.run.targets import target_named
from isolang.run.workloads.invariants import Bank

NAMES = [name for name, _ in AUTO]


def shared_out(seconds, each, *, fails=()):
    """Committed transactions and time of each workload, where each transaction takes so long."""
    plan = run_plan_of(Settings(target="memory"), target_named("memory"))
    turns = WorkloadTurns(plan, began=0.0, until=seconds)
    played, took, order, now = Counter(), Counter(), [], 0.0
    for client in count():
        if now >= seconds:
            return played, took, order
        name = turns.choose(now, played, client % 10)
        order += [name] if name not in order else []
        took[name] += each
        now += each
        played[name] += name not in fails
    raise AssertionError


@pytest.mark.parametrize("each", [0.2, 0.05, 0.001])
def test_every_workload_is_played_however_slow_the_database_is(each):
    """In four seconds: each enough to mean something, the one with long transactions last."""
    played, took, order = shared_out(4.0, each)
    assert set(played) == set(NAMES)
    assert min(played.values()) >= MIN_COMMITS
    assert order[-1] == "pairs"
    if each == 0.001:
        shares = dict(AUTO)
        assert all(took[name] == pytest.approx(4 * shares[name], rel=0.2) for name in NAMES)


def test_what_was_not_played_has_another_turn():
    """It has half of the time that is left, and what is left then is for all."""
    played, took, _ = shared_out(4.0, 0.02, fails=("bank",))
    assert played["bank"] == 0
    assert 1.0 < took["bank"] < 3.0
    assert took["pairs"] > 0.3
    assert min(played[name] for name in NAMES if name != "bank") >= MIN_COMMITS


def auto(capfd, tmp_path, seconds):
    run = run_here(
        capfd, "run", "memory", "--seconds", str(seconds), "--save", tmp_path, "-o", "json"
    )
    return run.code, json.loads(run.out)


@pytest.fixture
def children(monkeypatch, tmp_path_factory):
    return Children(monkeypatch, tmp_path_factory.mktemp("children"))


@pytest.mark.slow
def test_a_run_that_has_not_played_all_is_not_proved(capfd, tmp_path, children):
    """One workload whose transactions all abort: exit code 3, and its name."""
    children.first(replace_method_after, Bank, "program", 0, ConstantMethod((Abort(),)))
    code, report = auto(capfd, tmp_path, 1)
    assert (code, report["verdict"], report["grave"]) == (3, "valid", True)
    (said,) = [
        doubt
        for doubt in report["doubts"]
        if doubt.startswith("workloads that were not played within ")
    ]
    assert said.endswith(": bank; run longer with --seconds")


@pytest.mark.slow
def test_scripts_that_take_long_leave_time_for_the_workloads(capfd, tmp_path, children):
    """They begin in a quarter of the time, and the rest of them goes on beside the clients."""
    children.first(slow_down, "isolang.run.play.scripts", "interleave", 0.6)
    code, report = auto(capfd, tmp_path, 2)
    assert (code, report["verdict"]) == (0, "valid")
    (said,) = report["doubts"]
    assert said.startswith("no time was left for the scripts ")
    assert "write-skew" in said
    assert "lost-update-in-turn" not in said


@pytest.mark.slow
def test_the_verdict_comes_first(capfd, tmp_path, monkeypatch):
    """Whether it is on too little is found out when it has been printed, and then it is said."""
    from isolang.run.judge import judge
    from isolang.run.judge.doubts import Doubt

    seen = []

    def little(verdict):
        seen.append(capfd.readouterr().out)
        return Doubt(text="too little: nothing")

    monkeypatch.setattr(judge, "vacuity_doubt", little)
    run = run_here(capfd, "run", "memory", "-w", "mini", "--transactions", "50", "--save", tmp_path)
    assert seen[0].startswith("VALID")
    assert run.code == 3
    assert "NOT PROVED" in run.out
    assert "too little: nothing" in run.out
