"""Swarms: rounds with drawn options, ways to read rows, maintenance; what they find and accuse."""

import json
import sys
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace
from support.cli import run_here
from support.paths import ROOT
from support.sampling import quick_first

from isolang.errors import TargetError
from isolang.history import read_history
from isolang.run.judge.judge import judge_run
from isolang.run.operation import (
    Abort,
    Delete,
    DeleteRange,
    Insert,
    InsertRows,
    Pause,
    Read,
    SelectRange,
    TakeRow,
    UndoneWrite,
    Upsert,
    Write,
    child_key,
    with_available_features,
    with_paths,
    with_pauses,
    without_savepoints,
)
from isolang.run.play.player import Player
from isolang.run.play.runner import Runner, run
from isolang.run.play.simulate import simulate
from isolang.run.settings import Settings, Shape
from isolang.run.sql import plans_of
from isolang.run.survey import swarm as swarms
from isolang.run.survey.swarm import Swarm, play_rounds, play_with_rounds
from isolang.run.targets import target_named

sys.path.insert(0, str(ROOT / "benchmarks"))

from planted_database import BUGS

PLANTED = f"{ROOT / 'benchmarks' / 'planted_database.py'}:Planted"


def drawn(target, *, whole=True, seed=3, rounds=40, learn=()):
    """The options of the first rounds."""
    made = Swarm(Settings(target=target, seed=seed), target_named(target), whole=whole)
    found = []
    for number in range(rounds):
        found.append(made.next())
        if number in learn:
            made.learn(found[-1], [f"error {number}"])
    return found


@pytest.mark.parametrize("target", ["memory", "sqlite", "postgres", "duckdb", "redis", "derby"])
def test_every_drawn_round_can_be_played(target):
    """No draw combines options that the target refuses, neither anew nor as a variation."""
    for one in drawn(target, learn=range(0, 40, 3)):
        Runner(one)  # it finds wrong settings


def test_the_seed_repeats_all_draws():
    """Equal seeds draw equal rounds, other seeds others; no two rounds have the same seed."""
    assert drawn("sqlite", learn=[2, 5]) == drawn("sqlite", learn=[2, 5])
    assert drawn("sqlite") != drawn("sqlite", seed=4)
    assert len({one.seed for one in drawn("sqlite")}) == 40


def test_what_a_swarm_draws():
    """A whole swarm varies each choice; the rounds of auto keep the level that was asked for."""
    found = drawn("postgres", rounds=80)
    for name in ("workload", "level", "level_mix", "sessions", "access", "update", "savepoints",
                 "pauses", "retries", "faults"):  # fmt: skip
        assert len({getattr(one, name) for one in found}) > 1, name
    one_row = [one for one in found if one.shape.keys == one.shape.operations == 1]
    assert 5 <= len(one_row) <= 25
    assert "any" in {one.update for one in found}
    narrow = drawn("postgres", whole=False, rounds=40)
    assert {(one.level, one.level_mix) for one in narrow} == {("", "")}
    assert [one.workload for one in narrow[:2]] == ["queries", "orders"]


def test_insertions_over_deleted_rows_are_not_provoked_where_they_are_by_design():
    """PostgreSQL's REPEATABLE READ permits them; they are no bug to look for."""
    found = drawn("postgres", rounds=250, learn=range(0, 250, 3))
    there = [one for one in found if "repeatable read" in one.level + one.level_mix]
    assert len(there) > 20
    assert {one.workload for one in there} >= {"blindw-pred"}
    assert not {one.workload for one in there} & {"queries", "orders", "insert-delete"}
    assert {one.update for one in there} <= {"update", "row"}
    others = [one for one in found if one not in there]
    assert {one.workload for one in others} >= {"queries", "orders", "insert-delete"}
    assert {one.update for one in others} > {"update", "row"}


def test_what_brought_something_new_is_varied():
    """A variation differs from the promising round in two draws at most."""
    made = Swarm(Settings(target="memory"), target_named("memory"), whole=True)
    first = made.next()
    assert made.learn(first, ["error a", "error a"]) == ("error a",)
    assert made.learn(made.next(), ["error a"]) == ()
    drawn_together = ("workload", "sessions", "pauses", "level")

    def differences(one):
        return sum(getattr(one, name) != getattr(first, name) for name in drawn_together)

    assert sum(differences(made.next()) <= 2 for _ in range(40)) >= 6


def test_writes_of_one_run_take_every_form():
    """A missed conflict between two forms of UPDATE is met only if both are sent."""
    target = target_named("sqlite")
    sent = []
    try:
        target.start()
        target.options(level="serializable", update="any")
        target.setup(["x"], [])
        client = target.connect()
        run_one, client.execute = client.execute, lambda sql, values: sent.append(
            sql.partition("isocheck_registers")[::2]
        ) or run_one(sql, values)  # fmt: skip
        client.begin("serializable")
        for path in range(5):
            client.path = path
            assert client.write("x", 10 + path)
            assert client.read("x") == 10 + path
        client.commit()
    finally:
        target.close()
    writes = [f"{first}{rest}" for first, rest in sent if not first.startswith("SELECT")]
    assert len(set(writes)) == 3  # by UPDATE in two forms, and by an INSERT that updates
    assert sum("SET k = ?" in sql for sql in writes) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    quick_first(
        ["own-writes-predicate", "savepoint-kept", "phantom-scan", "null-not-indexed"],
        rest="campaign",
    ),
)
def test_planted_bugs_are_found(bug, tmp_path):
    """These bugs were found by no workload before there were queries between writes."""
    folder = str(tmp_path)
    settings = Settings(
        target=f"{PLANTED}://?bug={bug}", workload="queries", folder=folder, seconds=60,
        trusted=True, savepoints=0.2,
    )  # fmt: skip
    found = run(settings).state.look
    assert found is not None
    assert found.outcome == "invalid"


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    quick_first(
        ["skip-locked-twice", "cascade-leaves-child", "merge-inserts-duplicate"], rest="campaign"
    ),
)
def test_planted_bugs_of_statements_are_found(bug, tmp_path):
    """These bugs are in statements that only queues, cascades and merges need."""
    settings = Settings(
        target=f"{PLANTED}://?bug={bug}", workload="orders", folder=str(tmp_path), seconds=60,
        trusted=True,
    )  # fmt: skip
    found = run(settings).state.look
    assert found is not None
    assert found.outcome == "invalid"


@pytest.mark.slow
def test_the_right_database_is_not_accused(tmp_path):
    """The same database without a bug holds what it promises, in rounds of all kinds."""
    settings = Settings(target=PLANTED, folder=str(tmp_path), trusted=True, seed=5)
    target, player = target_named(PLANTED), Player(PLANTED, settings.prefix)
    try:
        found = play_rounds(Swarm(settings, target, whole=True), player, target, 4)
    finally:
        player.close()
    assert {one.verdict for one in found.rounds} == {"valid"}
    assert found.violated is None


def test_each_bug_follows_a_report_or_is_made_up():
    """Twelve bugs and more name the report of a real engine."""
    assert len(BUGS) >= 28
    assert sum("#" in kind.report for kind in BUGS.values()) >= 12


def test_all_ways_to_read_agree(tmp_path):
    """Each way returns the same rows as the usual statement, also NULLs and rows that are gone."""
    target = target_named("sqlite")
    target.options(level="serializable", access="any")
    target.start()
    try:
        target.setup(("a", "b", "c", "d"), ())
        client = target.connect()
        client.begin("serializable")
        client.write("a", 5)
        client.write("b", 7)
        client.delete("d")
        reads = {key: client.read(key) for key in "abcd"}
        assert (reads["a"], reads["c"]) == (5, None)
        ranges = [(5, 7), (6, 9), (5, 5), (8, 9)]
        for path in range(1, 20):
            for key, value in reads.items():
                client.path = path
                assert client.read(key) == value
            client.path = path
            assert client.scan("a", "c") == {"a": 5, "b": 7, "c": None}
            for low, high in ranges:
                client.path = path
                assert client.select(low, high) == {
                    key: value for key, value in (("a", 5), ("b", 7)) if low <= value <= high
                }
        client.rollback()
        client.close()
        plans = plans_of(target)
        assert any("isocheck_registers_by_v" in plan for plan in plans)
        assert any("SCAN isocheck_registers" in plan for plan in plans)
        assert not any("no plan" in plan for plan in plans)
    finally:
        target.close()


@pytest.mark.slow
def test_maintenance_beside_clients(tmp_path):
    """The history names each chore and the plans of the queries, and says what was committed."""
    settings = Settings(
        target="sqlite", workload="queries", access="any", seconds=2, folder=str(tmp_path),
        faults=("maintenance",), fault_every=0.05,
    )  # fmt: skip
    ran = run(settings)
    text = ran.path.read_text()
    assert ran.state.faults["maintenance"] >= 1
    assert ":f :maintenance-is-over" in text
    assert ":f :plan" in text
    assert read_history(ran.path).counts()["committed"] == ran.state.committed


def test_no_chores_no_maintenance():
    """A target whose adapter declares no chores says so."""
    with pytest.raises(TargetError, match="etcd: the adapter declares no maintenance chores"):
        Runner(Settings(target="etcd", faults=("maintenance",)))


def test_programs_are_changed():
    """Pauses come before operations; reads get ways; undone writes become reads."""
    program = (Read("x"), SelectRange(1, 2), UndoneWrite(Delete("y")), Write("x", 1), Abort())
    paused = with_pauses(program, Random(1), 1.0)
    assert [type(one) for one in paused[::2]] == [Pause] * 5
    assert paused[1::2] == program
    read, select, *others = with_paths(program, Random(1))
    assert read.path
    assert select.path
    assert tuple(others) == program[2:]
    *before, write, _ = with_paths(program, Random(1), reads=False, writes=True)
    assert write.path
    assert tuple(before) == program[:3]
    assert without_savepoints(program)[2] == Read("y")


def test_statements_that_a_database_does_not_have():
    """A similar statement is in the place of each, and the others stay."""
    child = child_key("x", "a")
    program = (
        Read("x", lock="share"), TakeRow(1, 2), SelectRange(1, 2, keys=("x", "y")), Upsert("x", 1),
        Upsert("x", 2, merge=True), InsertRows((("x", 3), ("y", 4))), DeleteRange(1, 2),
        Insert(child, 5), UndoneWrite(Upsert("x", 6)), UndoneWrite(Delete(child)),
        Delete("x", (child,)),
    )  # fmt: skip
    assert with_available_features(program, set()) == (
        Read("x"), SelectRange(1, 2), SelectRange(1, 2), Write("x", 1), Write("x", 2),
        Insert("x", 3),
        Insert("y", 4), SelectRange(1, 2), Read("x"), UndoneWrite(Write("x", 6)), Read("x"),
        Delete("x"),
    )  # fmt: skip
    assert with_available_features(program, {"upsert"})[3:5] == (Upsert("x", 1), Upsert("x", 2))
    every = {
        "row locks", "skip locked", "two ranges", "upsert", "merge", "rows at once", "cascades",
    }  # fmt: skip
    assert with_available_features(program, every) == program


def test_an_aborted_transaction_is_tried_again(tmp_path):
    """The session plays the same operations with new values, a few times; the history has both."""
    settings = Settings(
        target="memory", workload="rmw", shape=Shape(keys=2), retries=2, sessions=6,
        transactions=300, folder=str(tmp_path), pauses=0.5,
    )  # fmt: skip
    sessions = {}
    for one in read_history(run(settings).path).transactions():
        ops = [(op[0], op[1]) for op in one.ops]
        sessions.setdefault(one.session, []).append((one.status, ops, one.ops))
    again = 0
    for played in sessions.values():
        tries = 0
        for (status, ops, whole), (_, following, then) in pairwise(played):
            tries = tries + 1 if status == "aborted" else 0
            if status == "aborted" and tries % 3:
                again += 1
                shared = min(len(ops), len(following))
                assert ops[:shared] == following[:shared]
                writes = [op for op in whole if op[0] == "w"]
                assert not set(writes) & {op for op in then if op[0] == "w"}
    assert again > 5


@pytest.mark.parametrize("workload", ["queries", "orders"])
def test_queries_depend_on_the_seed(workload):
    """Equal seeds give equal transactions, which read by value, by range and by key."""

    def played(seed):
        made = simulate(workload, shape=Shape(keys=8), transactions=300, sessions=4, seed=seed)
        return [made.transaction(number).ops for number in range(300)]

    one = played(1)
    assert one == played(1)
    assert one != played(2)
    assert {"scan", "r", "w"} <= {op[0] for ops in one for op in ops}


def test_the_statements_of_a_query_without_an_answer(tmp_path):
    """An aborted transaction, part of the counterexample, does not know what its query returned."""
    base = Settings(target="memory", workload="mini", transactions=5, folder=str(tmp_path))
    ran = run(base)
    path = tmp_path / "dirty.edn"
    path.write_text(
        "{:index 0, :type :invoke, :process 0, :f :txn, :value"
        " [[:rp [:between :value 7 9] nil] [:w :x 5]]}\n"
        "{:index 1, :type :invoke, :process 1, :f :txn, :value [[:r :x nil]]}\n"
        "{:index 2, :type :ok, :process 1, :f :txn, :value [[:r :x 5]]}\n"
        "{:index 3, :type :fail, :process 0, :f :txn, :value"
        " [[:rp [:between :value 7 9] nil] [:w :x 5]]}\n"
    )
    judged = judge_run(replace(ran, path=path), target_named("memory"), levels=False)
    assert judged.anomaly
    sent = [one for each in judged.statements.values() for one in each]
    assert "select value between 7 and 9" in sent


@pytest.mark.slow
def test_auto_plays_rounds_after_its_workloads(monkeypatch, tmp_path):
    """The report of a round that violates its level is about that round, and repeats it."""
    monkeypatch.setattr(swarms, "ROUNDS_FROM_S", 1.0)
    target = f"{PLANTED}://?bug=own-writes-predicate"
    settings = Settings(target=target, folder=str(tmp_path), trusted=True, seconds=14)
    player = Player(target, settings.prefix)
    try:
        found = play_with_rounds(settings, player, target_named(target), lambda state: None)
    finally:
        player.close()
    assert found.rounds
    assert found.rounds[-1].verdict == "invalid"
    assert found.settings.workload == found.rounds[-1].workload != "auto"
    assert found.rounds[-1].history == str(found.path)
    assert "--no-rounds" in found.rounds[-1].command


@pytest.mark.slow
def test_a_swarm_on_the_command_line(capfd, tmp_path):
    """It prints each round with the command that repeats it, or one JSON object."""
    options = ("run", "memory", "--swarm", "--seconds", "2", "--save", str(tmp_path))
    said = run_here(capfd, *options)
    assert said.code == 0
    assert "isocheck run memory --seed 1" in said.out
    report = json.loads(run_here(capfd, *options, "-o", "json").out)
    assert report["rounds"][0]["verdict"] == "valid"
    assert report["rounds"][0]["command"].startswith("isocheck run memory")


@pytest.mark.slow
def test_a_round_that_cannot_be_played_names_the_errors_of_the_round_before(tmp_path):
    """The database may have failed in the round before, without a wrong answer."""

    class Stopping(Player):
        rounds = 0

        def play(self, settings, show):
            self.rounds += 1
            if self.rounds == 2:
                raise TargetError("the table cannot be created")
            recorded = super().play(replace(settings, seconds=0.3), show)
            recorded.state.errors["FATAL: the index is broken"] += 1_000
            return recorded

    settings = Settings(target=PLANTED, folder=str(tmp_path), trusted=True)
    target, player = target_named(PLANTED), Stopping(PLANTED, settings.prefix)
    done = []
    try:
        play_rounds(Swarm(settings, target, whole=True), player, target, 3, done=done.append)
    finally:
        player.close()
    assert done[1].verdict == "not played"
    assert done[1].reason.startswith(
        "the table cannot be created; the round before had these errors: "
    )
    assert "FATAL: the index is broken ×1,000" in done[1].reason
