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
