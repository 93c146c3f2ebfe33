"""Levels beside each other: each transaction of a run at one of several."""

from __future__ import annotations

import json
import time
from collections import Counter
from random import Random

import pytest
from support.cli import run_here
from support.runs import run, short_run_settings
from support.servers import require_server, start_target

import isolang
from isolang.run.judge.judge import judge_run
from isolang.run.operation import Read, Write
from isolang.run.play.interleave import interleave
from isolang.run.play.level_mix import TransactionLevel, level_mix_of, recorded_name
from isolang.run.play.runner import Runner
from isolang.run.play.selftest import selftest
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.target import Level, TargetError
from isolang.run.targets import level_named, target_named
from isolang.run.targets.mariadb import MariaDB, MariaDBClient
from isolang.run.targets.memory import Memory, MemoryClient
from isolang.run.workloads import Shape

MIX = "serializable:0.5,read committed:0.5"


def mixed(target, mix=MIX, **options):
    """The mix of a run on a target that is not started."""
    return level_mix_of(Settings(target=target, level_mix=mix, **options), target_named(target))


@pytest.mark.parametrize(
    ("target", "mix", "claims"),
    [
        ("memory", MIX, "mixed"),
        ("memory", "snapshot:1,serializable:3", "mixed-levels"),
        ("mariadb", MIX, "mixed"),
        ("mariadb", "repeatable read:1,read-committed:1,serializable:1", "mixed-levels"),
        ("postgres", MIX, "postgresql-mixed"),
        ("redis", "watch:1,multi:9", "mixed"),
    ],
)
def test_what_judges_a_mix(target, mix, claims):
    """What the database says of mixtures, or the level of the library that knows all of them."""
    assert mixed(target, mix).level.claims == claims
    assert mixed(target, mix, claims="rc").level.claims in (claims, "rc")


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("memory", {"level_mix": "serializable"}, "expected LEVEL:SHARE,LEVEL:SHARE"),
        ("memory", {"level_mix": "serializable:1"}, "--level names one"),
        ("memory", {"level_mix": "serializable:1,snapshot:-1"}, "got 'snapshot:-1'"),
        ("memory", {"level_mix": "serializable:1,snapshot:nan"}, "got 'snapshot:nan'"),
        ("memory", {"level_mix": "serializable:1,serializable:2"}, "may be named only once"),
        ("memory", {"level_mix": "serializable:1,snap:2"}, "unknown level (got 'snap'"),
        ("memory", {"level_mix": MIX, "level": "snapshot"}, "cannot be combined"),
        ("memory", {"level_mix": "serializable:1,read uncommitted:1"}, "--claims SPEC"),
        (
            "sqlite",
            {"level_mix": "serializable:1,immediate:1"},
            "a transaction cannot choose its own level",
        ),
    ],
)
def test_what_is_no_mix(target, options, message):
    """It is said before anything is started."""
    with pytest.raises(TargetError) as error:
        level_mix_of(Settings(target=target, **options), target_named(target))
    assert message in str(error.value)


def test_locks_on_rows_do_not_lock_missing_ones(tmp_path):
    """A row that appears between two reads by key is a phantom where locks are on rows alone."""
    target = target_named("derby")
    mix = level_mix_of(
        Settings(target="derby", level_mix="serializable:1,repeatable read:1"), target
    )
    (level,) = (recorded_name(part) for part in mix.parts if part.name == "repeatable read")
    path = tmp_path / "h.edn"
    path.write_text(
        f"{{:process 0, :type :ok, :f :txn, :level :{level}, :value [[:r x nil] [:r x 1]]}}\n"
        "{:process 1, :type :ok, :f :txn, :level :ser, :value [[:w x 1]]}\n"
    )
    for spec in (mix.level.claims, level_named(target, "repeatable read").claims):
        verdict = isolang.check(isolang.load_history(path), spec)
        assert verdict.outcome == "valid"


def test_shares_are_kept():
    """Levels are drawn by their shares, and the same ones by the same seed."""
    mix = mixed("memory", "serializable:1,snapshot:3")

    def drawn():
        random = Random(7)
        return [mix.draw(random) for _ in range(4000)]

    assert drawn() == drawn()
    assert 0.22 < Counter(drawn())[TransactionLevel("serializable", "ser")] / 4000 < 0.28


@pytest.mark.slow
def test_a_run_at_two_levels(tmp_path):
    """Each transaction says its own, both are played, and the verdict is certified."""
    judged = run(tmp_path, "memory", level_mix=MIX, workload="rmw", **short_run_settings())
    assert judged.verdict.outcome == "valid"
    assert judged.verdict.certified
    history = isolang.load_history(judged.recorded.path)
    seen = Counter(one.level for one in history.transactions() if one.status == "committed")
    names = {"ser": "serializable", "pl-2": "read committed"}
    assert {
        names[level]: n for level, n in seen.items()
    } == judged.recorded.state.committed_by_level
    assert min(seen.values()) > 50


class Cheap(MemoryClient):
    """Gives READ COMMITTED where SERIALIZABLE was asked for, after one of READ COMMITTED."""

    sticks = ""

    def of(self):
        return Cheap(self)

    def read(self, key):
        time.sleep(0.0002)  # lets the others have their turn
        return super().read(key)

    def begin(self, level):
        self.sticks = self.sticks or level
        super().begin("read committed" if self.sticks == "read committed" else level)

    def isolation(self):
        return self.changes._level


def test_a_level_that_is_not_given_is_found(tmp_path, monkeypatch):
    """A database that keeps its promises to some transactions alone is convicted, certified."""
    monkeypatch.setattr(Memory, "connect", Cheap.of)
    judged = run(
        tmp_path,
        "memory",
        level_mix=MIX,
        workload="rmw",
        shape=Shape(keys=4),
        **short_run_settings(),
    )
    assert judged.verdict.outcome == "invalid"
    assert judged.verdict.certified
    asked = {view.level for view in judged.verdict.violation.transactions}
    assert "ser" in asked
    sent = {lines[0] for lines in judged.statements.values()}
    assert "-- reads and writes checked at COMMIT" in sent  # what each was asked for


def test_the_self_test_changes_levels_on_one_connection(monkeypatch):
    """An adapter that gives a connection one level for good is named, by the level it gave."""
    monkeypatch.setattr(Memory, "connect", Cheap.of)
    target = target_named("memory")
    weak, strong = (level_named(target, name) for name in ("read committed", "serializable"))
    name = "the level is the requested one"
    (alone,) = selftest(target, strong, only=name)
    (beside,) = selftest(target, weak, other_levels=[strong], only=name)
    assert (alone.outcome, beside.outcome) == ("passed", "failed")
    assert beside.why == "the database reports 'read committed' in a transaction at 'serializable'"


@pytest.mark.slow
def test_a_survey_of_a_mix(tmp_path, capfd):
    """It is one column, which says by what it was judged."""
    ran = run_here(
        capfd, "run", "memory", "--survey", "--workload", "scripted,rmw", "--level-mix", MIX,
        "--seconds", "20", "--transactions", "200", "--save", str(tmp_path), "--output", "json",
    )  # fmt: skip
    cells = json.loads(ran.out)["cells"]
    assert {(cell["level"], cell["claims"], cell["outcome"]) for cell in cells} == {
        (MIX, "mixed", "valid")
    }
    assert len(cells) == 2


@pytest.mark.slow
def test_a_run_of_a_mix_on_the_command_line(tmp_path, capfd):
    """The text says how many committed at each level, and the history how to play it again."""
    ran = run_here(
        capfd, "run", "memory", "--level-mix", MIX, "--workload", "rmw", "--transactions", "200",
        "--save", str(tmp_path),
    )  # fmt: skip
    assert ran.code == 0
    assert "levels       read committed ×" in ran.out
    (path,) = tmp_path.glob("*.edn")
    assert f"--level-mix '{MIX}'" in path.read_text().splitlines()[1]


def between(last, schedule, target, path):
    """A transaction of READ COMMITTED between two serializable ones; gives what became of them."""
    with Recorder(path) as recorder:
        played = interleave(
            [(Read("x"), Write("y", 1)), (Write("x", 2),), last],
            schedule,
            target=target,
            level=[
                TransactionLevel("serializable", "ser"),
                TransactionLevel("read committed", "pl-2"),
                TransactionLevel("serializable", "ser"),
            ],
            recorder=recorder,
        )  # fmt: skip
    return played, recorder.history()


@pytest.mark.server
@pytest.mark.parametrize("last", [(Read("x"), Read("y")), (Read("y"), Write("x", 3))])
def test_postgresql_promises_no_serial_order_beside_others(tmp_path, last):
    """What it commits is a cycle that `mixed` forbids, through serializable ones alone, too."""
    target = start_target("postgres", keys=("x", "y"))
    try:
        played, history = between(last, (0, 1, 1, 2, 2, 2, 0, 0), target, tmp_path / "a.edn")
    finally:
        target.close()
    assert [one.outcome for one in played] == ["committed"] * 3
    for name, outcome in (
        ("postgresql-mixed", "valid"), ("mixed", "invalid"), ("mixed-levels", "invalid"),
    ):  # fmt: skip
        verdict = isolang.check(history, name)
        assert (verdict.outcome, verdict.certified) == (outcome, True)


@pytest.mark.server
def test_a_mix_on_postgresql(tmp_path):
    """It gives each transaction what its level promises, with snapshots among them."""
    require_server("postgres")
    mix = "serializable:1,repeatable read:1,read committed:1"
    judged = run(tmp_path, "postgres", level_mix=mix, workload="rmw", **short_run_settings(400))
    assert judged.verdict.outcome == "valid", judged.verdict
    assert judged.verdict.certified
    assert len(judged.recorded.state.committed_by_level) == 3


class Forgets(MariaDBClient):
    """Asks for READ COMMITTED, whatever it is asked for."""

    def _begin(self, level):
        super()._begin("read committed")


@pytest.mark.campaign
@pytest.mark.server
@pytest.mark.slow
def test_a_mix_on_mariadb(tmp_path, monkeypatch):
    """Locks keep serializable transactions apart from all others, if they are asked for."""
    target = start_target("mariadb")
    target.remove()
    try:
        for client, outcome in ((MariaDBClient, "valid"), (Forgets, "invalid")):
            monkeypatch.setattr(MariaDB, "client", client)
            options = {"level_mix": MIX, "workload": "rmw", "shape": Shape(keys=10)}
            settings = Settings(
                target="mariadb", folder=str(tmp_path), **options, **short_run_settings(800)
            )
            runner = Runner(settings, target)
            runner.start()
            judged = judge_run(runner.run(), target, levels=False)
            runner.close()
            assert judged.verdict.outcome == outcome, judged.verdict
            assert judged.verdict.certified
    finally:
        target.close()


@pytest.mark.slow
def test_one_level_is_recorded_as_before(tmp_path):
    """A history of one level names none, so that it is judged by any specification."""
    judged = run(tmp_path, "memory", workload="mini", **short_run_settings(30))
    history = isolang.load_history(judged.recorded.path)
    assert {one.level for one in history.transactions()} == {None}
    assert isinstance(judged.recorded.level, Level)
