"""Programs that read a row, and then lock it and read it again, through the proxy."""

import pytest

import isolang

psycopg = pytest.importorskip("psycopg")

FIND = 'SELECT "accounts".* FROM "accounts" WHERE "accounts"."id" = %s LIMIT %s'
LOCK = f"{FIND} FOR UPDATE"
UPDATE = 'UPDATE "accounts" SET "n" = %s WHERE "accounts"."id" = %s'
FIND_BY = 'SELECT "accounts".* FROM "accounts" WHERE "accounts"."name" = %s LIMIT %s'


def rails(observed, *, lock=LOCK, find=(FIND, 1), stale=False):
    """Replay two transactions of ActiveRecord: find, then lock! (or not), then update!."""
    observed.direct(
        "DROP TABLE IF EXISTS accounts",
        "CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL, name text)",
        "INSERT INTO accounts VALUES (1, 100, 'a')",
    )
    observed.start()
    with observed.connect() as first, observed.connect() as second:
        values = {}
        for connection in (first, second):
            row = connection.execute(find[0], (find[1], 1), prepare=True).fetchone()
            values[connection] = row[1]
        for connection in (first, second):
            if lock:
                row = connection.execute(lock, (1, 1), prepare=True).fetchone()
                values[connection] = values[connection] if stale else row[1]
            connection.execute(UPDATE, (values[connection] - 1, 1), prepare=True)
            connection.commit()
        (n,) = first.execute("SELECT n FROM accounts WHERE id = 1").fetchone()
    assert not observed.stop()
    return n


def outcomes(observed):
    """The verdicts on serializability, by the option for superseded reads."""
    return {
        option: isolang.check(
            isolang.load_history(observed.path, superseded_reads=option), "ser"
        ).outcome
        for option in ("auto", "ignore", "count")
    }


@pytest.mark.parametrize("strength", ["FOR UPDATE", "FOR NO KEY UPDATE"])
@pytest.mark.parametrize("find", [(FIND, 1), (FIND_BY, "a")])
def test_find_and_lock(observed, strength, find):
    """ActiveRecord's `find` and `lock!`: valid if every program uses the second value."""
    assert rails(observed, lock=LOCK.replace("FOR UPDATE", strength), find=find) == 98
    assert outcomes(observed) == {"auto": "unknown", "ignore": "valid", "count": "invalid"}
    verdict = observed.check("ser")
    assert "read it again under a lock at" in verdict.reason
    assert "FOR UPDATE" in verdict.reason.upper().replace("NO KEY ", "")


def test_a_stale_object(observed):
    """The same statements lose an update if the program uses the first value: never valid."""
    assert rails(observed, stale=True) == 99
    assert outcomes(observed)["auto"] == "unknown"


@pytest.mark.parametrize("lock", ["", f"{FIND} FOR KEY SHARE", FIND])
def test_a_lost_update_stays_invalid(observed, lock):
    """Without a lock against writers, the second read supersedes nothing."""
    rails(observed, lock=lock, stale=True)
    assert outcomes(observed) == dict.fromkeys(("auto", "ignore", "count"), "invalid")


def test_lock_at_the_first_read(observed):
    """What the recipe recommends is valid."""
    observed.direct(
        "DROP TABLE IF EXISTS accounts",
        "CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL)",
        "INSERT INTO accounts VALUES (1, 100)",
    )
    observed.start()
    for _ in range(2):
        with observed.connect() as connection:
            (_, n) = connection.execute(LOCK, (1, 1)).fetchone()
            connection.execute(UPDATE, (n - 1, 1))
    assert not observed.stop()
    assert outcomes(observed) == dict.fromkeys(("auto", "ignore", "count"), "valid")
