"""Workloads on the simulated database: histories by the seed, of a level that is known."""

from __future__ import annotations

import pytest
from support.cli import run_here

import isolang
from isolang.run.simulate import simulate
from isolang.run.target import TargetError
from isolang.run.workloads import NAMES, Shape


@pytest.mark.parametrize("workload", NAMES)
def test_every_workload_has_the_level_of_its_rule(workload):
    """Also those whose transactions wait for others that are yet to end."""
    shape = Shape(keys=30, long=0.4, span=20)
    history = simulate(workload, shape=shape, transactions=200, seed=1)
    assert history.counts()["transactions"] == 200
    assert isolang.check(history, "sser").outcome == "valid"


@pytest.mark.parametrize(
    ("rule", "level", "stronger"),
    [("strong-snapshot", "strong-si", "ser"), ("read-committed", "pl-2", "si")],
)
def test_a_weaker_rule_gives_its_level_and_no_more(rule, level, stronger):
    """Given contention enough: somewhere in a few histories."""
    shape = Shape(keys=8, operations=4)
    histories = [
        simulate("append", rule=rule, shape=shape, transactions=150, seed=seed) for seed in range(5)
    ]
    assert {isolang.check(history, level).outcome for history in histories} == {"valid"}
    assert "invalid" in {isolang.check(history, stronger).outcome for history in histories}


def test_equal_seeds_give_equal_histories():
    def played(seed):
        return list(simulate("bank", seed=seed, transactions=60).transactions())

    assert played(7) == played(7) != played(8)


def test_on_the_command_line(tmp_path, capfd):
    """The file is read back and judged; what says nothing about a workload is refused."""
    file = tmp_path / "h.edn"
    arguments = ["generate", "--workload", "smallbank", "--transactions", "80", file]
    assert run_here(capfd, *arguments).code == 0
    assert isolang.check(isolang.load_history(file), "sser").outcome == "valid"
    refused = run_here(capfd, *arguments, "--lists")
    assert refused.code == 2
    assert "--lists does not go with --workload" in refused.err


@pytest.mark.parametrize(
    ("options", "message"),
    [({"name": "banks"}, "did you mean 'bank'"), ({"name": "bank", "rule": "causal"}, "such rule")],
)
def test_what_cannot_be_simulated(options, message):
    with pytest.raises(TargetError, match=message):
        simulate(**options)
