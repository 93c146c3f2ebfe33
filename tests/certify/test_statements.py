"""Both checkers judge predicate reads by themselves: what they returned, and what they did not."""

import pytest
from support.certify import verdicts_of_both

from isolang import Transaction, check, load_spec
from isolang.errors import HistoryError
from isolang.history import History

ROWS = {"a": 1, "b": -3, "c": 2, "d": 5}
#: A predicate, and the keys whose rows match it. Key l was loaded as 4, d is deleted first, the
#: reader itself makes c 7 and f 2, and fails to make a 9.
MATCHES = [
    (("=", "value", 1), "a"),
    (("!=", "value", 1), "bcfl"),
    (("<", "value", 2), "ab"),
    (("<=", "value", 2), "abf"),
    ((">", "value", 2), "cl"),
    (("between", "value", 1, 4), "afl"),
    (("mod", "value", 2, 1), "abc"),
    (("not", ("null", "value")), "abcfl"),
    (("not", ("=", "value", 1)), "bcfl"),
    (("and", (">", "value", 0), ("<", "value", 4)), "af"),
    (("or", ("<", "value", 0), (">", "value", 4)), "bc"),
    (("not", ("and", (">", "value", 0), ("<", "value", 4))), "bcl"),
    (("in", "value", [2, 4, 9]), "fl"),
]


def table(predicate, matching):
    """Rows come one after the other; then one reader, whose own rows are seen."""
    now = {**ROWS, "l": 4, "c": 7, "f": 2}
    rows = [Transaction([("w", key, row)], session=0) for key, row in ROWS.items()]
    rows.append(Transaction([("delete", "d")], session=0))
    found = {key: now[key] for key in matching}
    own = [("w", "c", 7), ("w", "a", 9), ("w", "f", 3), ("w", "f", 2)]
    rows.append(Transaction([*own, ("scan", predicate, found)], session=0, failed=(1,)))
    return History.from_transactions(rows, initial={"l": 4})


@pytest.mark.parametrize(("predicate", "matching"), MATCHES)
def test_what_matches(predicate, matching):
    """The reader and both checkers agree which rows match."""
    agreed(table(predicate, matching))


def agreed(history):
    spec = load_spec("ser")
    verdict = check(history, spec)
    assert (verdict.outcome, verdict.certified) == ("valid", True), verdict
    assert verdicts_of_both(history, spec, verdict.witness) == ("accepted", "accepted")


def scanned(predicate, returned):
    """A table of two rows that its reader's predicate tells apart."""
    txns = [[("w", "x", 1), ("w", "y", 2)], [("scan", predicate, returned)], [("w", "z", 2)]]
    txns.append([("r-not-in", "x", [7])])
    return History.from_transactions([Transaction(ops, session=0) for ops in txns])


def test_rows_that_a_reader_judged_otherwise():
    """Without its own judgement a checker would accept what another program made of the file."""
    spec, history = load_spec("ser"), scanned(("=", "value", 1), {"x": 1})
    verdict = check(history, spec)
    assert verdicts_of_both(history, spec, verdict.witness) == ("accepted", "accepted")
    (row,) = (int(i) for i in history.columns.statement_start)
    history.columns.set_value(row, int(history.columns.op_value[1]))  # x = 2, which does not match
    history.columns.set_value(0, int(history.columns.op_value[1]))
    assert verdicts_of_both(history, spec, verdict.witness) == ("not certified", "not certified")


def test_a_returned_row_that_does_not_match():
    """Nothing explains it, whoever wrote such a row."""
    spec, write = load_spec("ser"), [("w", "x", 1)]
    plain = History.from_transactions([Transaction(write), Transaction([("r", "x", 1)])])
    scan = [("scan", ("=", "value", 2), {"x": 1})]
    history = History.from_transactions([Transaction(write), Transaction(scan)])
    assert check(history, spec).outcome == "invalid"
    witness = check(plain, spec).witness
    assert verdicts_of_both(plain, spec, witness) == ("accepted", "accepted")
    assert verdicts_of_both(history, spec, witness) == ("rejected", "rejected")


def test_rows_that_were_not_returned():
    """What a predicate read says that it missed is what matches, no more and no less."""
    spec, right = load_spec("ser"), scanned(("=", "value", 2), {"y": 2})
    verdict = check(right, spec)
    assert verdict.outcome == "valid"
    assert verdicts_of_both(right, spec, verdict.witness) == ("accepted", "accepted")
    missed = [i for i, kind in enumerate(right.columns.op_kind) if kind == 5]
    for op in missed:
        right.columns.set_value(op, _other_list(right.columns, op))
        told = verdicts_of_both(right, spec, verdict.witness)
        assert told == ("not certified", "not certified")


def _other_list(columns, op):
    given = int(columns.op_value[op])
    return next(i for i in range(len(columns.list_start) - 1) if i != given)


#: Of rows a to h, some of them floats: a predicate, and the keys whose rows match it.
NUMBERS = {
    "a": 4.0,
    "b": 5.5,
    "c": -3.0,
    "d": 2**53 + 1,
    "e": 2**63,
    "f": 1e300,
    "g": "text",
    "h": None,
}
FLOATS = [
    (("and", ("<", "v", 9), (">", "v", -9), ("mod", "v", 2, 0), ("in", "k", ["a", "c"])), "a"),
    (("and", ("mod", "v", 2.0, 1), ("in", "k", ["a", "c", "d"])), "cd"),
    (("and", ("mod", "v", 2, 0.0), ("in", "k", ["a", "e"])), "ae"),
    (("and", ("mod", "v", 3, 2), ("=", "k", "e")), "e"),
    (("and", ("<", "v", 5), ("!=", "k", "g")), "ac"),
    (("and", ("<", "v", 2**53), ("!=", "k", "g")), "abc"),
    (("and", (">", "v", 2**53), ("!=", "k", "g")), "def"),
    (("and", (">", "v", 2.0**54), ("!=", "k", "g")), "ef"),
    (("=", "v", float(2**63)), "e"),
    (("=", "v", 2**53 + 1), "d"),
    (("or", ("=", "v", 2**53), ("=", "v", "text")), "g"),
    (("or", ("mod", "v", 2, 1), ("in", "k", list("abcdefgh"))), "abcdefgh"),
    (("and", (">", "w", 2), ("=", "k", "none")), ""),
    (("not", ("or", ("<", "v", 10**18), ("=", "k", "g"))), "ef"),
]


def floats(predicate, matching):
    rows = {key: {"k": key, "v": value} for key, value in NUMBERS.items()}
    scan = ("scan", predicate, {key: rows[key] for key in matching})
    inserts = [("insert", key, row) for key, row in rows.items()]
    return History.from_transactions([Transaction(ops, session=0) for ops in (inserts, [scan])])


@pytest.mark.parametrize(("predicate", "matching"), FLOATS)
def test_numbers_of_all_kinds(predicate, matching):
    """Floats that are integers behave as such; what one part leaves open, others may settle."""
    agreed(floats(predicate, matching))


@pytest.mark.parametrize(
    ("predicate", "why"),
    [
        (("=", "v", 2.0**53), "an integer and a float that are equal in databases that round"),
        (("<=", "v", 2.0**53), "an integer and a float that are equal in databases that round"),
        (("not", ("!=", "v", 2.0**53)), "an integer and a float"),
        (("mod", "v", 2, 1), "a remainder of a value that is not a 64-bit integer"),
        (("and", ("mod", "v", 2, 1), (">", "v", 1e200)), "not a 64-bit integer (got '1e+300')"),
        (("<", "v", 3), "not numbers, which depends on the collation"),
    ],
)
def test_numbers_on_which_databases_differ(predicate, why):
    """Where rounding decides, or there is no integer, it is refused, and not judged in one way."""
    with pytest.raises(HistoryError) as raised:
        floats(predicate, "")
    assert why in str(raised.value)


def test_integers_beyond_64_bits():
    """They are not rounded: two that differ are never taken for one."""
    near = 2**64 + 1
    write, scan = [("insert", "x", near)], [("scan", (">", "value", 2), {})]
    with pytest.raises(HistoryError, match="cannot compare exactly"):
        History.from_transactions([Transaction(write), Transaction(scan)])
