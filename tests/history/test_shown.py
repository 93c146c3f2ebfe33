"""A history shows itself: in one line, and in a notebook."""

import io
import re
from pathlib import Path

import pytest

from isolang import History, Transaction, check
from isolang.api import load_history
from isolang.history.predicate_words import condition_in_words
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
    assert "w(1 {on: false})" in shown_ops(verdict.history)


def test_the_number_of_a_transaction_names_a_version_too() -> None:
    """As the watches of drivers record it; a row of which nothing else is known keeps it."""
    line = '{:type :ok, :value [[:w 1 {"on" true "xmin" 755}] [:w 2 {"xmin" 755}]]}'
    history = load_history(io.BytesIO(line.encode()), "edn")
    assert shown_ops(history) == ["w(1 {on: true})", 'w(2, {"xmin" 755})']


def test_versions_that_are_alike_keep_their_names_as_values() -> None:
    """An operation needs no name of a version, because its transaction is shown beside it."""
    history = observed('{:type :ok, :value [[:w 1 {"on" true "xmin" "9(1,2)" "zip" 4}]]}')
    last = len(history.columns.op_value) - 1
    assert history.value(int(history.columns.op_value[last])) == (
        '{"on" true "xmin" "9(1,2)" "zip" 4}'
    )
    assert history.describe_op(last) == "w(1 {on: true})"


WIDE = """\
{:type :ok, :f :init, :value {["stock" "1"] {"id" 1 "title" "The last, copy" "n" 9 "allocated" nil \
"code" "c" "price" 1250 "updated" 1777629600000000 "xmin" "755(0,1)"}}}
{:type :ok, :value [[:r ["stock" "1"] {"id" 1 "title" "The last, copy" "n" 9 "allocated" nil \
"code" "c" "price" 1250 "updated" 1777629600000000 "xmin" "755(0,1)"}] \
[:w ["stock" "1"] {"id" 1 "title" "The last, copy" "n" 9 "allocated" 2 "code" "c" "price" 1099 \
"updated" 1777629600500000 "xmin" "756(0,2)"}] \
[:w ["stock" "1"] {"id" 1 "title" "New" "n" 9 "allocated" 2 "code" "c" "price" 1099 \
"updated" 1777629600500000 "xmin" "756(0,3)"}]]}
{:type :ok, :value [[:rp {:table "booking" :where [:and [:= :room 3] \
[:< :starts 1777629600000000]]} {}] [:insert ["booking" "1"] {"id" 1 "a" 1 "b" 2 "c" 3 "d" 4 "e" 5 \
"f" 6 "starts" 9223372036854775807 "room" 3 "xmin" "757(0,1)"}]]}
;:columns {"stock": {"price": "numeric 2", "updated": "timestamptz"}, "booking": {"starts": "date"}}
"""


def test_of_a_wide_row_the_columns_that_matter_are_shown(tmp_path: Path) -> None:
    """Those that a write changed, that differ, or that conditions are about, in readable form."""
    path = tmp_path / "history.edn"
    path.write_text(WIDE)
    history = load_history(path)
    assert [op for op in shown_ops(history)[1:] if "not found" not in op] == [
        "r(stock/1 {allocated: null, price: 12.50, updated: 2026-05-01 10:00:00+00, "
        'title: "The last, copy"})',
        "w(stock/1 {allocated: null → 2, price: 12.50 → 10.99, "
        "updated: 2026-05-01 10:00:00+00 → 2026-05-01 10:00:00.5+00})",
        'w(stock/1 {title: "The last, copy" → New})',
        "w(booking/1 {room: 3, starts: infinity, a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, …})",
    ]
    condition = condition_in_words(history.columns.predicates[0], history.row_texts().forms)
    assert condition == "room = 3 and starts < '2026-05-01'"


@pytest.mark.parametrize("last", ["", ";:columns {", ";:columns [1]", ';:columns {"t": 1}'])
def test_a_recording_without_the_forms_of_columns_shows_numbers(tmp_path: Path, last: str) -> None:
    """As after a crash of the recorder."""
    path = tmp_path / "history.edn"
    path.write_text(WIDE.partition(";:columns")[0] + last)
    assert "price: 1250 → 1099" in " ".join(shown_ops(load_history(path)))


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
