"""A history shows itself: in one line, and in a notebook."""

import io
import re

import pytest

from isolang import History, Transaction, check
from isolang.api import load_history
from isolang.report import page
from isolang.report.forms import FORMS


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


# As `isocheck observe` records rows: `xmin` makes all versions different.
OBSERVED = """\
{:type :ok, :f :init, :value {1 {"on" true, "xmin" "755(0,4)", "zip" 4}, \
["b" 2] {"on" true, "xmin" "755(0,5)", "zip" 4}}}
{:type :ok, :value [[:rp [:= :on false] {}] [:w 1 {"on" false, "xmin" "756(0,1)", "zip" 4}]]}
{:type :ok, :value [[:rp [:= :on false] {}] \
[:w ["b" 2] {"on" false, "xmin" "757(0,1)", "zip" 4}]]}
"""


def observed(more: str = "") -> History:
    return load_history(io.BytesIO((OBSERVED + more).encode()), "edn")


def shown_ops(history: History) -> list[str]:
    every = range(history.columns.operations())
    return [history.describe_op(op) for op in every]


def test_a_row_is_shown_without_the_name_of_its_version() -> None:
    """The file of the smallest part keeps it, so that no two versions are alike."""
    verdict = check(observed(), "ser")
    assert "xmin" not in str(verdict)
    assert "xmin" not in FORMS["dot"](verdict)
    html = page(verdict, name="h")
    part = re.search(r'"part":"(.*?[^\\])"', html)
    assert part is not None
    assert "xmin" in part[1]
    assert "xmin" not in html.replace(part[1], "")
    assert 'w(1, {"on" false "zip" 4})' in shown_ops(verdict.history)


def test_the_number_of_a_transaction_names_a_version_too() -> None:
    """As the watches of drivers record it; a row of which nothing else is known keeps it."""
    line = '{:type :ok, :value [[:w 1 {"on" true "xmin" 755}] [:w 2 {"xmin" 755}]]}'
    history = load_history(io.BytesIO(line.encode()), "edn")
    assert shown_ops(history) == ['w(1, {"on" true})', 'w(2, {"xmin" 755})']


def test_versions_that_are_alike_keep_their_names() -> None:
    """Only for the key that has two of them."""
    shown = shown_ops(observed('{:type :ok, :value [[:w 1 {"on" true "xmin" "9(1,2)" "zip" 4}]]}'))
    named = [op for op in shown if "xmin" in op]
    assert named == [
        'w(1, {"on" true "xmin" "755(0,4)" "zip" 4})',
        'w(1, {"on" true "xmin" "9(1,2)" "zip" 4})',
    ]


@pytest.mark.parametrize("form", ["dot", "mermaid", "markdown", "text", "page", "operation"])
def test_a_missed_row_is_not_found_in_every_form(form: str) -> None:
    """The set of the versions that the query would have returned is no news to anybody."""
    verdict = check(observed(), "ser")
    if form == "operation":
        shown = "\n".join(shown_ops(verdict.history))
    else:
        shown = (
            str(verdict)
            if form == "text"
            else page(verdict, name="h")
            if form == "page"
            else FORMS[form](verdict)
        )
    assert "not in {" not in shown
    assert "not found" in shown
    if form != "page":
        assert "key 1 not found" in shown


def test_a_row_is_not_mistaken_for_its_text() -> None:
    """Text that looks like the name of a version belongs to the row."""
    line = r"""{:type :ok, :value [[:w 1 {"s" "\"xmin\" \"7(0,1)\""}] [:w 2 {"xmin" "7"}]]}"""
    history = load_history(io.BytesIO(line.encode()), "edn")
    assert shown_ops(history) == [r'w(1, {"s" "\"xmin\" \"7(0,1)\""})', 'w(2, {"xmin" "7"})']
