"""Joins of random transactions: no accusation of a server, or of a history that has an order."""

import psycopg
import pytest
from observe.random_joins import (
    OtherSession,
    definitions,
    facts_history,
    has_serial_order,
    play,
)

import isolang
from isolang.observe.unseen import CONDITIONS

PAIRS = (
    "DROP TABLE IF EXISTS u, t, x CASCADE",
    "CREATE TABLE u (id int PRIMARY KEY, active bool, note int)",
    "CREATE TABLE t (id int PRIMARY KEY, u_id int, a int, note int)",
    "CREATE TABLE x (id int PRIMARY KEY, v int)",
    "INSERT INTO u SELECT g, g = 2, 0 FROM generate_series(1, 40) g",
    "INSERT INTO t SELECT g, g, 1, 0 FROM generate_series(1, 40) g",
    "INSERT INTO x SELECT g, 0 FROM generate_series(1, 9) g",
)
ACTIVE = "SELECT t.id, u.id FROM t JOIN u ON t.u_id = u.id WHERE u.active AND t.a > 0"
KEEPS_ANSWER = [  # whatever order the transactions have
    "UPDATE t SET note = 1 WHERE id = 33",  # its u is not active
    "INSERT INTO t VALUES (99, 34, 1, 0)",
    "UPDATE u SET note = 1 WHERE id = 35",
]
CHANGES_ANSWER = "UPDATE u SET active = true WHERE id = {}"


def judged(observed, seed, level, *, deferrable):
    """The verdict by `ser`, whether the whole history was seen, and the transactions."""
    observed.direct(*definitions(deferrable))
    observed.start()
    sessions = play(
        lambda: observed.connect(autocommit=True), seed, level, deferrable=deferrable
    )  # fmt: skip
    unseen = observed.stop()
    assert unseen.keys() <= {CONDITIONS}
    weaker = "ser" if level == "SERIALIZABLE" else "si"
    assert observed.verdict(weaker) == "valid"
    return observed.verdict("ser"), not unseen, sessions


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ"])
@pytest.mark.parametrize("seed", range(4))
def test_random_joins(observed, seed, level, deferrable):
    """What has a serial order is never accused; what has none is, if all of it was seen."""
    verdict, is_whole, sessions = judged(observed, seed, level, deferrable=deferrable)
    if has_serial_order(sessions):
        assert verdict == "valid"
    # What a DELETE checks of foreign keys is no read in a history.
    if is_whole and has_serial_order(sessions, keeps_keys=False) is False:
        assert verdict == "invalid"


@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ"])
@pytest.mark.parametrize("seed", range(3))
def test_facts_of_another_session(observed, seed, level):
    """The rule accuses nobody even if the server does not know that its facts were read."""
    observed.direct(*definitions(False))

    def connect():
        connection = psycopg.connect(observed._conninfo, autocommit=True)
        connection.execute("SET enable_seqscan = off")
        return connection

    others = [connect() for _ in range(4)]
    waiting = iter(others)
    sessions = play(
        connect, seed, level, deferrable=False, ask=lambda: OtherSession(next(waiting))
    )  # fmt: skip
    for connection in others:
        connection.close()
    verdict = isolang.check(facts_history(sessions), "ser")
    if level == "SERIALIZABLE" or has_serial_order(sessions):
        assert verdict.outcome == "valid"


def test_pairs_of_which_one_row_alone_changes_no_answer(observed):
    """Rows that a join met in vain accuse nobody, and are not forgotten either.

    The second transaction has not seen the first one's write; so if the first one's answer also
    depends on the second, no order of the two explains both.
    """
    observed.direct(*PAIRS)
    observed.start()
    keys = iter(range(1, 10))

    def play(level, text):
        key = next(keys)
        with observed.connect(level) as first, observed.connect(level) as second:
            assert first.execute(ACTIVE).fetchall() == [(2, 2)]
            second.execute("SELECT v FROM x WHERE id = %s", (key,))
            second.execute(text)
            second.commit()
            first.execute("UPDATE x SET v = 1 WHERE id = %s", (key,))

    for text in KEEPS_ANSWER:
        play("REPEATABLE_READ", text)
    with pytest.raises(psycopg.errors.SerializationFailure):
        play(
            "SERIALIZABLE", f"{CHANGES_ANSWER.format(36)}; UPDATE u SET active = NULL WHERE id = 36"
        )
    observed.observer.complete(before := observed.path.with_name("before.edn"))
    assert isolang.check(isolang.load_history(before), "ser").outcome == "valid"
    play("REPEATABLE_READ", CHANGES_ANSWER.format(37))
    assert observed.stop() == {}
    verdict = observed.check("ser")
    assert (verdict.outcome, verdict.cause) == ("unknown", "possible facts")
