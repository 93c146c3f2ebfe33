"""Templates of runs: programs, sequences of statements, parameters."""

from __future__ import annotations

import pytest

from isolang import History, Transaction
from isolang.errors import UnsupportedError
from isolang.foresee.decide import decide
from isolang.foresee.extract import extract, shown
from isolang.foresee.templates import templates
from isolang.programs.syntax import parse_templates


def run(*transactions: Transaction) -> History:
    return History.from_transactions(transactions)


def smallbank() -> History:
    """Three programs of SmallBank, each twice, as a recorder writes them."""
    found, value = [], 0
    for customer in ("7", "8"):
        savings, checking = f"savings/{customer}", f"checking/{customer}"
        for label, ops in (
            ("Balance", [("r", savings), ("r", checking)]),
            ("TransactSavings", [("r", savings), ("w", savings)]),
            ("WriteCheck", [("r", savings), ("r", checking), ("w", checking)]),
        ):
            value += 1
            own = [(*op, value if op[0] == "w" else None) for op in ops]
            found.append(Transaction(own, session=value, label=label))
    return run(*found)


def test_equal_rows_are_equal_parameters() -> None:
    """Instances of one program with other rows are one branch."""
    found = extract(smallbank())
    assert found.transactions == 6
    assert found.counts == (2, 2, 2)
    assert list(shown(found.templates)) == [
        "program Balance(savings1, checking1) r(savings[savings1]) r(checking[checking1])",
        "program TransactSavings(savings1) r(savings[savings1]) w(savings[savings1], 0)",
        "program WriteCheck(savings1, checking1) r(savings[savings1]) r(checking[checking1])"
        " w(checking[checking1], 0)",
    ]


def test_foreign_keys_are_not_guessed() -> None:
    """Only ``same_keys`` makes the keys of two tables one parameter, and it changes answers."""
    history = run(
        Transaction([("r", "a/1", None), ("w", "b/1", 1)], label="P"),
        Transaction([("w", "a/1", 2), ("w", "b/1", 2)], label="Q"),
        Transaction([("r", "b/1", 2)], label="R"),
    )
    apart, together = extract(history), extract(history, same_keys=[("a", "b")])
    assert apart.templates.branches[0].parameters == ("a1", "b1")
    assert together.templates.branches[0].parameters == ("a1",)
    levels = {"P": "si", "Q": "si", "R": "si"}
    assert decide(apart.templates, levels).standing == "not robust"
    assert decide(together.templates, levels).standing == "robust"


def test_sequences_of_one_program_are_branches() -> None:
    """Without labels, each sequence is a program."""
    ops = ([("r", "x/1", None)], [("r", "x/1", None), ("w", "x/2", 1)], [("r", "x/3", None)])
    found = extract(run(*(Transaction(own, label="P") for own in ops)))
    assert [one.name for one in found.templates.branches] == ["P if sequence 1", "P if sequence 2"]
    assert found.counts == (2, 1)
    found = extract(run(*map(Transaction, ops)))
    assert found.templates.programs == ("P1", "P2")


def test_what_is_left_out_is_counted() -> None:
    """Aborted and indeterminate transactions may have stopped anywhere."""
    ops = [("w", "x/1", 1)]
    found = extract(
        run(Transaction(ops), Transaction(ops, status="aborted"), Transaction(ops, status="maybe"))
    )
    assert (found.transactions, found.ignored) == (1, 2)
    with pytest.raises(UnsupportedError, match="no committed transaction that touches a row"):
        extract(run(Transaction(ops, status="aborted")))


def test_names_that_the_language_lacks() -> None:
    """Tables that differ have relations that differ; several key columns, and keys alone."""
    history = run(
        Transaction(
            [
                ("w", "a.b/1", 1),
                ("w", "a-b/1", 1),
                ("w", "r/1/2", 1),
                ("w", "x", 1),
                ("w", "1/1", 1),
            ],
            label="polls: vote",
        )
    )
    (line,) = shown(extract(history).templates)
    assert line == (
        "program polls_vote(a_b1, a_b_1, _r1, _r_2_1, rows1, _11)"
        " w(a_b[a_b1], 0) w(a_b_[a_b_1], 0) w(_r[_r1, _r_2_1], 0) w(rows[rows1], 0) w(_1[_11], 0)"
    )


def test_scans_read_any_row_of_their_table() -> None:
    """A predicate without a table is an error that says so."""
    found = extract(
        run(
            Transaction([("insert", ("x", 1), {"n": 2})]),
            Transaction([("scan", {"table": "x", "where": (">", "n", 1)}, {("x", 1): {"n": 2}})]),
        )
    )
    statements = [one.statements[0] for one in found.templates.branches]
    assert [(one.kind, one.relation, one.keys) for one in statements] == [
        ("write", "x", ("x1",)),
        ("read", "x", (None,)),
    ]
    rows = run(
        Transaction([("insert", "x", {"n": 2})]),
        Transaction([("scan", (">", "n", 1), {"x": {"n": 2}})]),
    )
    with pytest.raises(UnsupportedError, match="a predicate read names no table"):
        extract(rows)


@pytest.mark.parametrize("level", ["mvrc", "si"])
def test_written_templates_are_those_of_the_run(level) -> None:
    """The text has the same answer, and the same counterexample."""
    found = extract(smallbank(), same_keys=[("savings", "checking")]).templates
    again = templates(parse_templates("\n".join(shown(found))))
    for sessions in (True, False):
        one, other = (
            decide(of, dict.fromkeys(of.programs, level), sessions=sessions)
            for of in (found, again)
        )
        assert one.standing == other.standing == "not robust"
        assert one.counterexample.names == other.counterexample.names
