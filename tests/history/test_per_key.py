"""Sessions that order operations on the same key only."""

from __future__ import annotations

import io

import pytest

from isolang import check, load_history
from isolang.errors import UnsupportedError
from isolang.options import ReadOptions


def of(*lines: str) -> io.BytesIO:
    """Lines ``process operations`` as transactions that succeeded."""
    maps = [
        f"{{:type :ok, :f :txn, :process {p}, :value [{ops}]}}"
        for p, _, ops in (line.partition(" ") for line in lines)
    ]
    return io.BytesIO("\n".join(maps).encode())


def outcomes(*lines: str) -> tuple[str, str]:
    """Of sequential consistency: of the whole, and of each key."""
    whole, keys = (check(load_history(of(*lines), per_key=p), "ser") for p in (False, True))
    assert whole.certified
    assert keys.certified
    return whole.outcome, keys.outcome


def test_an_order_across_keys_is_none() -> None:
    """A message that arrives before what was sent before it."""
    sent = ("0 [:w :x 1]", "0 [:w :y 1]", "1 [:r :y 1]", "1 [:r :x nil]")
    assert outcomes(*sent) == ("invalid", "valid")


def test_an_order_on_one_key_is_one() -> None:
    """A reader that goes back, while the writer does not."""
    back = ("0 [:w :x 1]", "0 [:w :x 2]", "1 [:r :x 2]", "1 [:r :x 1]")
    assert outcomes(*back) == ("invalid", "invalid")


def test_sessions_keep_their_names() -> None:
    """Each is there once for each of its keys."""
    history = load_history(of("7 [:w :x 1]", "7 [:w :y 1]", "7 [:r :x 1]"), per_key=True)
    assert history.columns.txn_session.tolist() == [0, 1, 0]
    assert history.session_names == ("7", "7")


def test_several_keys_are_refused() -> None:
    """Such a transaction would order keys."""
    with pytest.raises(UnsupportedError, match="transaction 1 has operations on several keys"):
        load_history(of("0 [:w :x 1] [:w :y 1]"), per_key=True)


def test_it_is_an_option_of_reading() -> None:
    """It is off unless asked for."""
    assert ReadOptions().per_key is False
