"""The driver of interleavings: steps in the given order, blocking seen, anomalies brought about."""

from __future__ import annotations

import shutil
from random import Random

import pytest

import isolang
from isolang.run.operation import Read, Write
from isolang.run.play.interleave import interleave, interleavings, random_schedule
from isolang.run.record.recorder import Recorder
from isolang.run.targets import level_named, target_named
from isolang.run.workloads.scripted import SCRIPTS

SCRIPT = {script.name: script for script in SCRIPTS}


@pytest.fixture(scope="module", params=["memory", "sqlite", "duckdb", "postgres", "mariadb"])
def target(request):
    """A started database with the keys of all scripts, which each test gets anew."""
    if request.param == "mariadb" and not shutil.which("mariadbd", path="/usr/sbin:/usr/bin"):
        pytest.skip("mariadbd is not installed")
    one = target_named(request.param)
    try:
        one.start()
        one.setup([key for script in SCRIPTS for key in script.names()], [])
        yield one
    finally:
        one.close()


def play(target, tmp_path, script, level):
    """Run a script once, on rows as they were loaded; give what became of it and its history."""
    cleared = target.connect()
    cleared.begin(level)
    for key in script.names():
        if cleared.read(key) is not None:
            pytest.fail("the rows of a script are used once")
    cleared.rollback()
    cleared.close()
    with Recorder(tmp_path / "h.edn") as recorder:
        played = interleave(
            script.renamed_programs(),
            script.schedule,
            target=target,
            level=level,
            recorder=recorder,
        )
        return played, recorder.history()


def test_schedules_are_all_and_each_once():
    """Multiset permutations: (2 + 3)! / (2! 3!) of two transactions of 2 and 3 steps."""
    found = list(interleavings([2, 3]))
    assert len(found) == len(set(found)) == 10
    assert all(one.count(0) == 2 for one in found)
    assert sorted(random_schedule([2, 3], Random(0))) == [0, 0, 1, 1, 1]


@pytest.mark.server
@pytest.mark.parametrize("name", SCRIPT)
def test_scripts_on_the_strongest_level_show_nothing(target, tmp_path, name):
    """What each database claims at its strongest level holds in every scripted interleaving."""
    strongest = {"postgres": "serializable", "mariadb": "serializable"}.get(target.name, "")
    level = level_named(target, strongest)
    played, history = play(target, tmp_path, SCRIPT[name], level.name)
    assert len(played) == len(SCRIPT[name].programs)
    verdict = isolang.check(history, level.claims)
    if target.name == "duckdb" and "beside" in name and name != "insert-beside-insert":
        assert verdict.outcome == "invalid"
        assert verdict.violation.anomaly.startswith("lost update")
    else:
        assert verdict.outcome == "valid", (played, verdict.violation)


@pytest.mark.server
def test_blocking_is_seen_and_ends(tmp_path):
    """PostgreSQL: the second writer of a row waits for the first, and goes on after its COMMIT."""
    pytest.importorskip("psycopg")
    one = target_named("postgres")
    try:
        one.start()
        one.setup(["x"], [])
        with Recorder(tmp_path / "h.edn") as recorder:
            first, second = interleave(
                [(Write("x", 1),), (Write("x", 2), Read("x"))],
                [0, 1, 1, 0],
                target=one,
                level="read committed",
                recorder=recorder,
            )
            writer, reader = recorder.history().transactions()
    finally:
        one.close()
    assert (first.outcome, first.blocked) == ("committed", False)
    assert (second.outcome, second.blocked) == ("committed", True)
    assert reader.ops[-1] == ("r", "x", 2)
    assert writer.ops == [("w", "x", 1)]


@pytest.mark.server
@pytest.mark.parametrize(
    ("name", "anomaly"),
    [
        ("lost-update-in-turn", "lost update"),
        ("fractured-re-read", ""),
        ("update-to-the-value-it-has", "not my own write"),
    ],
)
def test_mariadb_repeatable_read_is_not_snapshot_isolation(tmp_path, name, anomaly):
    """Known anomalies of InnoDB without innodb_snapshot_isolation, each in one interleaving."""
    if not shutil.which("mariadbd", path="/usr/sbin:/usr/bin"):
        pytest.skip("mariadbd is not installed")
    one = target_named("mariadb://?innodb_snapshot_isolation=OFF")
    try:
        one.start()
        one.setup(SCRIPT[name].names(), [])
        _, history = play(one, tmp_path, SCRIPT[name], "repeatable read")
    finally:
        one.close()
    verdict = isolang.check(history, "si")
    assert verdict.outcome == "invalid"
    assert verdict.violation.anomaly.startswith(anomaly)
