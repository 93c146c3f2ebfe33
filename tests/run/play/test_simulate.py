"""Workloads on the simulated database: histories by the seed, of a level that is known."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import count

import pytest
from support.cli import run_here

import isolang
from isolang.run.families.versioned_store import StoreTransaction, VersionedStore
from isolang.run.operation import DELETED
from isolang.run.outcome import RolledBack
from isolang.run.play.simulate import simulate
from isolang.run.target import TargetError
from isolang.run.workloads import NAMES, Shape, workload_named
from isolang.run.workloads.workload import ProgramSource


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


@pytest.mark.parametrize("read", [lambda t: t.select(0, 9), lambda t: t.scan("a", "z")])
def test_a_row_that_is_new_in_what_was_scanned(read):
    """COMMIT refuses at serializable who scanned without it, and at snapshot isolation does not."""
    for level, refused in (("serializable", True), ("snapshot", False)):
        versions = VersionedStore({"a": 1, "b": None})
        reader, writer = StoreTransaction(versions, level), StoreTransaction(versions, level)
        assert read(reader)["a"] == 1
        writer.write("m", 5)
        writer.commit()
        assert "m" not in read(reader)
        assert read(StoreTransaction(versions, level))["m"] == 5
        reader.write("b", 7)
        with pytest.raises(RolledBack) if refused else nullcontext():
            reader.commit()


def test_rows_by_their_values():
    """Newest ones, those of a moment, and own ones; gone ones never."""
    versions = VersionedStore({"a": 1, "b": 2, "c": None})
    old = StoreTransaction(versions, "snapshot")
    new = StoreTransaction(versions, "read committed")
    other = StoreTransaction(versions, "snapshot")
    other.write("a", 8)
    other.write("b", DELETED)
    other.write("c", 3)
    assert other.select(0, 9) == {"a": 8, "c": 3}
    other.commit()
    assert old.select(0, 9) == {"a": 1, "b": 2}
    assert new.select(0, 9) == {"a": 8, "c": 3}
    assert new.select(4, 9) == {"a": 8}
    dirty = StoreTransaction(versions, "read uncommitted")
    dirty.write("c", 9)
    assert StoreTransaction(versions, "read uncommitted").select(9, 9) == {"c": 9}
    dirty.roll_back()
    assert StoreTransaction(versions, "read uncommitted").select(9, 9) == {}


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
    assert "--lists does not apply to --workload" in refused.err


@pytest.mark.parametrize("keys", [1, 2, 3, 4])
@pytest.mark.parametrize("workload", ["smallbank", "bank"])
def test_two_accounts_are_two_however_few_there_are(workload, keys):
    """Also where almost all is done to one: a hot spot of few keys."""
    history = simulate(
        workload, shape=Shape(keys=keys, distribution="hotspot"), transactions=300, seed=1
    )
    assert isolang.check(history, "sser").outcome == "valid"


@pytest.mark.parametrize("distribution", ["hotspot", "zipfian", "exponential", "uniform"])
def test_as_many_keys_are_chosen_as_were_asked_for(distribution):
    """All of them, if there are fewer."""
    workload = workload_named("smallbank", Shape(keys=40, distribution=distribution))
    source = ProgramSource(1, 0, count())
    for wanted in (1, 2, 39, 40, 50):
        chosen = workload.keys_of(source, wanted)
        assert len(set(chosen)) == len(chosen) == min(wanted, 40)
        assert set(chosen) <= set(range(40))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "banks"}, "did you mean 'bank'"),
        ({"name": "bank", "rule": "causal"}, "unknown rule"),
    ],
)
def test_what_cannot_be_simulated(options, message):
    with pytest.raises(TargetError, match=message):
        simulate(**options)
