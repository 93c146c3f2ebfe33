"""A history shows itself: in one line, and in a notebook."""

from isolang import History, Transaction


def many(count: int) -> History:
    """As many transactions."""
    return History.from_transactions([Transaction([("w", "<b>", i)]) for i in range(count)])


def test_it_is_one_line() -> None:
    """However long it is."""
    assert repr(many(3000)) == (
        "<History <memory> (memory): 3,000 transactions, 3,000 operations, 3,000 sessions, 1 key>"
    )


def test_a_notebook_shows_the_first_transactions() -> None:
    """As text, whatever the keys are, and how many more there are."""
    shown = many(25)._repr_html_()
    assert shown.count("<tr>") == 21
    assert "w(&quot;&lt;b&gt;&quot;, 0)" in shown
    assert "<b>" not in shown
    assert "and 5 more" in shown
    assert "more" not in many(2)._repr_html_()
