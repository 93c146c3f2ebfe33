"""Which versions of rows a database should have, and which versions of rows lines may name."""

from itertools import permutations

import pytest

from isolang.observe.history.present import PresentRows
from isolang.observe.history.recorded import RecordedVersions
from isolang.observe.history.seen import RowVersion, SeenTransaction, WrittenRow
from isolang.observe.sql.catalogue import Table
from isolang.observe.unseen import FOREIGN, OLD_SERVER, Unseen
from isolang.observe.versions.postgres import StartSnapshot

TABLE = Table(oid=9, where="t", name="t", columns={}, quoted={"id": "id"}, key=("id",))
FIRST, SECOND, THIRD = (RowVersion("1", f"{n}(0,1)") for n in (5, 6, 7))


def write(old, new, **more):
    """A write that replaces a version."""
    return WrittenRow(TABLE, new, {"id": 1}, old, "UPDATE t", inserts=old is None, **more)


WRITES = write(None, FIRST), write(FIRST, SECOND), write(SECOND, THIRD)


@pytest.mark.parametrize("order", [*permutations(WRITES)])
def test_the_last_version_is_present(order):
    """In whatever order the ends of three writers are seen, the version of the last is there."""
    rows = PresentRows()
    for one in order:
        rows.ended("ok", one)
    assert rows.live == {"t": {THIRD.number: "1"}}
    assert rows.differences("t", {THIRD.number}) == (set(), set())
    assert rows.differences("t", {SECOND.number}) == ({THIRD.number}, {SECOND.number})


def test_a_doubtful_write_differs_in_neither_way():
    """The version that it made, and the one that it replaced, may both be there, and not."""
    rows = PresentRows()
    rows.ended("ok", WRITES[0])
    rows.ended("info", WRITES[1])
    rows.ended("fail", WRITES[2])
    for there in ({FIRST.number}, {SECOND.number}):
        assert rows.differences("t", there) == (set(), set())
    assert rows.differences("t", {THIRD.number}) == (set(), {THIRD.number})


@pytest.fixture
def versions():
    """Versions of rows, of an observation that began at transaction 5."""
    one = RecordedVersions(Unseen(), {}, lambda table, version: one.register(table, version, {}))
    one.is_initial = StartSnapshot.parse("5:5:").is_older
    return one


def end(versions, outcome, one, at):
    """Note the end of a transaction at a position."""
    made = SeenTransaction(process=0, begin=at, began=0, outcome=outcome, end=at)
    versions.ended(made, one)


def test_a_row_keeps_its_key(versions):
    """The versions of a row have one key, also before the lines of their writers are written."""
    for at, one in enumerate(WRITES):
        end(versions, "ok", one, at)
    third = versions.find(TABLE, THIRD, "SELECT")
    assert (third.key, third.rank) == ('["t" "1"]', 3)
    assert versions.version_of(WRITES[0]).rank == 1
    assert versions.version_of(write(THIRD, None)) is None


def test_a_row_that_is_inserted_again_is_another(versions):
    """Its key has a number."""
    keys = [versions.version_of(write(None, one)).key for one in (FIRST, SECOND)]
    assert keys == ['["t" "1"]', '["t" "1#2"]']


def test_versions_are_forgotten(versions):
    """What was replaced before a position is not known any more, and a read of it is counted."""
    for at, one in enumerate(WRITES[:2]):
        end(versions, "ok", one, at)
        versions.version_of(one)
    versions.forget(1)
    assert versions.find(TABLE, FIRST, "SELECT") is not None
    versions.forget(2)
    assert versions.find(TABLE, FIRST, "SELECT") is None
    assert (versions.unseen, versions._doubtful) == ({FOREIGN: 1}, {"t": "t/1"})
    assert versions.find(TABLE, SECOND, "SELECT") is not None


def test_a_row_of_an_old_server(versions):
    """The key of an UPDATE is that of the only row, unless one of this key was deleted."""
    versions.is_old = True
    versions.version_of(WRITES[0])
    update = write(None, SECOND, same_key=True)
    assert versions.version_of(update).key == '["t" "1"]'
    end(versions, "ok", write(SECOND, None), 2)
    assert versions.version_of(write(None, THIRD, same_key=True)).key == '["t" "1#2"]'
    assert versions.unseen == {OLD_SERVER: 1}
