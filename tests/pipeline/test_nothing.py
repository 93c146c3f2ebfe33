"""A history in which nothing could have gone wrong proves nothing."""

import io

import pytest

import isolang


@pytest.mark.parametrize("data", [b"", b"\n", b"[]", b"{:process :nemesis, :type :info, :f :cut}"])
@pytest.mark.parametrize("level", ["si", "pl-1", "ser-co"])
def test_a_file_without_transactions_is_unknown(data, level):
    """It is no success of the database: its log was empty."""
    verdict = isolang.check(isolang.load_history(io.BytesIO(data)), level)
    assert verdict.outcome == "unknown"
    assert "no transaction" in verdict.reason
