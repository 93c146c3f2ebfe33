"""Small histories in a line."""

import pytest

from isolang.errors import HistoryError
from isolang.history.notation import read_line


def test_what_a_line_may_say():
    """Sessions, transactions, outcomes, times, groups, labels, levels, lists and missed rows."""
    text = (
        "r(x,nil) w(x,-1) -> !w(audit/1,gone) @3-7 || ? a(l,2) r(l,[1 2]) r(m,[]) %g #a,b ^ser "
        "|| append(l,1) rp(x,none)"
    )
    history = read_line(text)
    first, second, third, fourth = history.transactions()
    assert first.ops == [("r", "x", None), ("w", "x", -1)]
    assert second.ops == [("w", "audit/1", "gone")]
    assert third.ops == [("append", "l", 2), ("r", "l", [1, 2]), ("r", "m", [])]
    assert fourth.ops[0] == ("append", "l", 1)
    assert fourth.ops[1][0] == "scan"
    assert [t.session for t in (first, second, third, fourth)] == ["1", "1", "2", "3"]
    assert [t.status for t in (first, second, third)] == ["committed", "aborted", "maybe"]
    assert (second.begin, second.end) == (3, 7)
    assert (third.group, third.label, third.level) == ("g", ("a", "b"), "ser")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("r(x,nil) || w(x)", "column 13: not a transaction (got 'w(x)', expected r(key,value), "),
        ("w(x,1) -> ", "column 11: not a transaction (got nothing, expected "),
        ("", "column 1: not a transaction (got nothing"),
        ("w(x,1) @3", "column 8: not a transaction (got '@3'"),
        ("w(x,1) %g r(x,1)", "column 11: not a transaction (got 'r(x,1)'"),
        ("rp(x,1)", "rp(x,1): a line cannot give rows (expected none)"),
    ],
)
def test_what_is_no_line(text, said):
    """The column counts from 1."""
    with pytest.raises(HistoryError) as error:
        read_line(text)
    assert str(error.value).startswith(said)
