"""Superseded reads: which ones are found, and what is left of a history without them."""

import pytest

import isolang
from isolang.certify.certificate import verify
from isolang.errors import HistoryError
from isolang.history.superseded import superseded_reads

_TRANSACTION = (
    "{{:index {at}, :type :invoke, :process {process}, :f :txn, :value []}}\n"
    "{{:index {end}, :type :{outcome}, :process {process}, :f :txn, :value [{ops}], "
    ":statements [{statements}]}}\n"
)


def transaction(at, ops, statements, outcome="ok"):
    """One transaction, of a session of its own, with the statement of each operation."""
    listed = " ".join(f'"{one}"' for one in statements)
    return _TRANSACTION.format(
        at=at, end=at + 1, process=at, outcome=outcome, ops=ops, statements=listed
    )


@pytest.fixture
def read(tmp_path):
    """Write a history, and read it."""

    def read(*transactions, **options):
        path = tmp_path / "history.edn"
        path.write_text("".join(transactions), encoding="utf-8")
        return isolang.load_history(path, **options)

    return read


WRITERS = [
    transaction(0, "[:w :x 1] [:w :y 1]", ["1", "2"]),
    transaction(2, "[:w :x 2]", ["1"]),
    transaction(4, "[:w :x 3]", ["1"]),
]


@pytest.mark.parametrize(
    ("ops", "statements", "found"),
    [
        ("[:r :x 1] [:r :x 2]", ["1", "2 for update"], ["r(:x, 1)"]),
        ("[:r :x 1] [:r :x 2]", ["1", "2 for share"], ["r(:x, 1)"]),
        ("[:r :x 1] [:r :y 1] [:r :x 2]", ["1", "2", "3 for update"], ["r(:x, 1)"]),
        ("[:r :x 1] [:r :x 2] [:r :x 3]", ["1", "2", "3 for update"], ["r(:x, 1)", "r(:x, 2)"]),
        ("[:w :z 1] [:r :x 1] [:r :x 2]", ["1", "2", "3 for update"], ["r(:x, 1)"]),
        ("[:r :x nil] [:r :x 2]", ["1", "2 for update"], ["r(:x, nil)"]),
        ("[:r :x 1] [:r :x 2]", ["1", "2"], []),
        ("[:r :x 1] [:r :x 2]", ["1 for update", "2"], []),
        ("[:r :x 1] [:r :x 2]", ["1", "2 for no key update holding table/t"], ["r(:x, 1)"]),
        ("[:r :x 1] [:r :x 2]", ["1", "2 for key share"], []),
        ("[:r :x 2] [:r :x 2]", ["1", "2 for update"], []),
        ("[:r :x 1] [:w :z 1] [:r :x 2]", ["1", "2", "3 for update"], []),
        ("[:r :x 1] [:r :y 1]", ["1", "2 for update"], []),
        ("[:r :x 1] [:r :x 2]", ["", ""], []),
    ],
)
def test_which_reads_are_superseded(read, ops, statements, found):
    """A later read under a lock has another result, and the transaction wrote nothing between."""
    history = read(*WRITERS, transaction(6, ops, statements))
    assert [history.describe_op(one.op) for one in superseded_reads(history)] == found
    assert all(one.op < one.again for one in superseded_reads(history))


def test_a_transaction_that_did_not_commit_supersedes_nothing(read):
    """Its reads do not count, whatever they say."""
    ops, statements = "[:r :x 1] [:r :x 2]", ["1", "2 for update"]
    for outcome in ("fail", "info"):
        history = read(*WRITERS, transaction(6, ops, statements, outcome))
        assert superseded_reads(history) == []


@pytest.mark.parametrize(("level", "found"), [("pl-2", 1), ("si", 0), ("ser", 0)])
def test_a_level_with_snapshots_has_no_superseded_reads(read, level, found):
    """There, a database that answers two reads differently has broken its promise."""
    last = transaction(6, "[:r :x 1] [:r :x 2]", ["1", "2 for update"])
    history = read(*WRITERS, last.replace(":f :txn", f':level "{level}", :f :txn'))
    assert len(superseded_reads(history)) == found
    assert isolang.check(history, "ser").outcome == ("unknown" if found else "invalid")


def test_what_is_left_out_is_counted(read):
    """The history says how many reads it lacks, and why; every operation keeps its number."""
    transactions = [
        *WRITERS, transaction(6, "[:r :x 1] [:r :y 1] [:r :x 2]", ["1", "2", "3 for update"])
    ]  # fmt: skip
    history, without = read(*transactions), read(*transactions, superseded_reads="ignore")
    assert without.options == {"superseded_reads": "ignore"}
    (said,) = set(without.ignored) - set(history.ignored)
    assert said.startswith("1 read of 1 transaction, each superseded by a read of the row under")
    assert "T7 read :x at" in said
    ops = range(without.columns.operations())
    assert [without.describe_op(op) for op in ops if not without.columns.op_ok[op]] == [
        "r(:x, 1) left out"
    ]
    assert without.statements_of(3) == history.statements_of(3)
    assert read(*transactions, superseded_reads="count").columns.op_ok.all()


def test_malformed_statements_are_an_error_only_where_they_matter(read):
    """`ignore` needs the statements; without it, the history is read as before."""
    wrong = transaction(6, "[:r :x 1] [:r :x 2]", ["1", "2 for ever"])
    assert isolang.check(read(*WRITERS, wrong), "ser").outcome == "invalid"
    with pytest.raises(HistoryError, match="not a statement number"):
        read(*WRITERS, wrong, superseded_reads="ignore")


def rows(missed="", version=2):
    """A predicate read that returned row 1, which is then locked with another version."""
    row = '[:insert ["t" "1"] {"a" 1 "v" 1}]'
    other = '[:insert ["t" "2"] {"a" 1 "v" 9}]'
    found = '["t" "1"] {"a" 1 "v" 1}' + missed
    scan = '[:rp {:table "t" :where [:= :a 1]} {' + found + "}]"
    again = f'[:r ["t" "1"] {{"a" 1 "v" {version}}}]'
    return [
        transaction(0, row, ["1"]),
        transaction(2, '[:w ["t" "1"] {"a" 1 "v" 2}]', ["1"]),
        transaction(4, other, ["1"]),
        transaction(6, '[:r ["t" "2"] {"a" 1 "v" 9}]', ["1"]),
        transaction(8, f"{scan} {again}", ["1", "2 for update"]),
    ]


def filler(many):
    """Rows of another table that come and go, and predicate reads that find none of them."""
    keys = [f'["u" "{n}"]' for n in range(40)]
    scan = '[:rp {:table "u" :where [:= :a 1]} {}]'
    lists = [
        [f'[:insert {key} {{"a" 1}}]' for key in keys],
        [f"[:delete {key}]" for key in keys],
        *[[scan]] * many,
    ]
    return [transaction(10 + 2 * n, " ".join(ops), ["1"] * len(ops)) for n, ops in enumerate(lists)]


@pytest.mark.parametrize("many", [0, 30])
def test_a_row_of_a_predicate_read_can_be_superseded(read, many):
    """Then the predicate read says nothing about this row, and as much as before about others.

    With many predicate reads, set-reads are implicit.
    """
    returned, more = ' ["t" "2"] {"a" 1 "v" 9}', filler(many)
    history = read(*rows(returned), *more)
    assert history.columns.implicit == (many > 0)
    assert isolang.check(history, "ser-nosession").outcome == "unknown"
    ignoring = isolang.check(read(*rows(returned), *more, superseded_reads="ignore"), "sser")
    assert ignoring.outcome == "valid"
    assert ignoring.certified
    again = read(*rows(returned), *more, superseded_reads="ignore")
    assert verify(ignoring.certificate(), again, ignoring.spec).natively
    # Row 2 was there before the predicate read began, but it did not find it.
    for options in ({}, {"superseded_reads": "ignore"}):
        verdict = isolang.check(read(*rows(), *more, **options), "sser")
        assert verdict.outcome == "invalid"
        assert verdict.certified
