"""Interleavings drawn by Hypothesis, played on real databases and shrunk."""

import shutil

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import isolang
from isolang.errors import IsolangError
from isolang.run.operation import Read, Write
from isolang.run.targets import level_named, target_named
from isolang.strategies import histories, interleavings, transactions
from isolang.testing.database import Database, Interleaving

QUICK = settings(
    deadline=None, derandomize=True, database=None, phases=set(Phase) - {Phase.explain}
)
COUNTERS = ((Read("x"), Write("x", 1)), (Read("x"), Write("x", 2)))


def violating(database, level):
    """A condition for ``find``: the database violates a level in an interleaving."""
    return lambda drawn: isolang.check(database.play(drawn), level).outcome == "invalid"


def test_sqlite_as_python_opens_it_loses_an_update():
    """``find`` gives the simplest way: the second one reads before the first one commits."""
    with Database("sqlite", level="python") as database:
        found = find(
            interleavings(of=st.just(COUNTERS)), violating(database, "ser"), settings=QUICK
        )
        assert found.schedule == (0, 0, 1, 0, 1, 1)
        verdict = isolang.check(database.play(found), "ser")
    assert verdict.violation.anomaly.startswith("lost update")
    assert "T1  read x" in str(found)


@pytest.mark.server
@pytest.mark.slow
def test_mariadb_repeatable_read_loses_an_update():
    """InnoDB without innodb_snapshot_isolation, which is its default before 11.6.2."""
    if not shutil.which("mariadbd", path="/usr/sbin:/usr/bin"):
        pytest.skip("mariadbd is not installed")
    target = "mariadb://?innodb_snapshot_isolation=OFF"
    with Database(target, level="repeatable read") as database:
        found = find(interleavings(of=st.just(COUNTERS)), violating(database, "si"), settings=QUICK)
        verdict = isolang.check(database.play(found), "si")
    assert verdict.violation.anomaly.startswith("lost update")


@pytest.mark.slow
@settings(QUICK, max_examples=30)
@given(drawn=interleavings())
def test_a_serializable_database_stays_so(memory, drawn):
    """The simulated database keeps its promise in every interleaving."""
    isolang.assert_level(memory.play(drawn), "sser")
    assert len(memory.played) == len(drawn.programs)


@pytest.fixture(scope="module")
def memory():
    """A database that is strictly serializable."""
    with Database("memory") as database:
        yield database


def test_waiting_is_seen():
    """SQLite: the second writer waits for the first one, and goes on after its COMMIT."""
    with Database("sqlite", level="immediate") as database:
        database.play(Interleaving(((Write("x", 1),), (Write("x", 2),)), (0, 1, 0, 1)))
    assert [one.blocked for one in database.played] == [False, True]
    assert [one.outcome for one in database.played] == ["committed", "committed"]


@pytest.mark.slow
def test_every_drawn_interleaving_is_complete():
    """Each step of each transaction stands in the schedule once."""

    @QUICK
    @given(interleavings(max_transactions=4))
    def each(drawn):
        steps = [len(program) + 1 for program in drawn.programs]
        assert [drawn.schedule.count(i) for i in range(len(steps))] == steps
        assert len(str(drawn).splitlines()) == sum(steps)

    each()


@pytest.mark.slow
def test_drawn_histories_have_every_outcome():
    """They are of any kind: those that a level allows, and those that it does not."""
    for level in ("pl-2", "si", "ser"):
        for outcome in ("valid", "invalid"):
            one = find(
                histories(),
                lambda h, level=level, outcome=outcome: (
                    isolang.check(h, level, certify=False).outcome == outcome
                    and sum(len(t.ops) for t in h.transactions()) > 1
                ),
                settings=settings(QUICK, max_examples=2000),
            )
            assert one.counts()["committed"] >= 1


@pytest.mark.slow
def test_drawn_values_are_written_once():
    """Also with lists, aborted transactions and keys of one's own."""

    @QUICK
    @given(transactions(keys=[1, "b"], lists=True, statuses=("committed", "aborted")))
    def each(drawn):
        written = [value for t in drawn for kind, _, value in t.ops if kind == "append"]
        assert len(written) == len(set(written))
        isolang.History.from_transactions(drawn)

    each()


def test_what_cannot_be_run_is_an_error():
    """A database or level that there is not is named."""
    with pytest.raises(IsolangError, match="unknown level"):
        Database("sqlite", level="si")
    assert level_named(target_named("sqlite"), "python").claims == "ser"
