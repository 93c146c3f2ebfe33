"""Calls of several transactions, watched through psycopg."""

import threading

import psycopg
import pytest

import isolang


@pytest.mark.parametrize("act", ["SET balance = %s", "SET balance = balance - 1 + 0 * %s"])
def test_calls_that_check_in_one_transaction_and_act_in_another(url, isolation, act):
    """A blind write of what was read before is a violation; what the UPDATE computes is not."""
    isolation.watch_psycopg(url)
    both = threading.Barrier(2)

    def pay(amount):
        with psycopg.connect(url, autocommit=True) as c:
            (balance,) = c.execute("SELECT balance FROM account WHERE name = 'a'").fetchone()
            both.wait()
            c.execute(f"UPDATE account {act} WHERE name = 'a'", (balance - amount,))

    calls = [threading.Thread(target=isolation.call, args=(pay, n)) for n in (1, 2)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert isolation.assert_level("ser")
    if "balance -" in act:
        assert isolation.assert_level("ser", unit="request")
        return
    with pytest.raises(isolang.IsolationError, match="had read for the same request"):
        isolation.assert_level("ser", unit="request")
