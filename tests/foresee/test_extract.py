"""Templates of runs: programs, sequences of statements, parameters."""

from __future__ import annotations

import random

import pytest

from isolang import History, Transaction
from isolang.errors import UnsupportedError
from isolang.foresee.decide import decide, lowest, mends
from isolang.foresee.extract import extract, shown
from isolang.foresee.templates import templates
from isolang.history import read_history
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
    with pytest.raises(UnsupportedError, match="no committed transaction touches a row"):
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
        ("insert", "x", ("x1",)),
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


def test_a_mend_changes_the_same_read_in_all_sequences() -> None:
    """A read keeps its number where another sequence has other statements before it."""
    short = [("r", "a/1", None), ("r", "b/1", None), ("w", "a/1", 1)]
    history = run(
        Transaction(short, label="P"),
        Transaction([("r", "c/1", None), *[(op, key, 2) for op, key, _ in short]], label="P"),
        Transaction([("r", "a/1", None), ("w", "b/1", 3)], label="Q"),
    )
    found = extract(history, same_keys=[("a", "b")]).templates
    texts = {(b.program, one.step): one.text for b in found.branches for one in b.statements}
    assert len(texts) == 6
    for (one,) in mends(found, dict.fromkeys(found.programs, "si")):
        changed = found.promoted([(one.program, one.step)])
        kinds = [
            (before.text, after.kind)
            for old, new in zip(found.branches, changed.branches, strict=True)
            for before, after in zip(old.statements, new.statements, strict=True)
            if before != after
        ]
        assert set(kinds) == {(one.read, "update")}
        assert len(kinds) == sum(b.program == one.program for b in found.branches)


def test_lines_of_the_application_after_a_predicate_read(tmp_path) -> None:
    """A predicate read is one operation of a transaction and one of each row in the columns."""
    rows = '["t" 1] {:n 1}, ["t" 2] {:n 2}'
    path = tmp_path / "scan.edn"
    path.write_text(
        '{:type :ok, :process 1, :value [[:insert ["t" 1] {:n 1}] [:insert ["t" 2] {:n 2}]]}\n'
        '{:type :ok, :process 0, :label "P", :value '
        f'[[:rp {{:table "t" :where [:> :n 0]}} {{{rows}}}] [:w ["t" 3] {{:n 3}}] '
        '[:w ["t" 4] {:n 3}]], :callers ["a.py:1" "a.py:2" "a.py:3"]}\n'
        '{:type :ok, :process 0, :label "P", :value [[:w ["t" 5] {:n 3}]], :callers ["a.py:3"]}\n'
    )
    branches = extract(read_history(str(path))).templates.branches
    steps = {
        branch.way: [one.step for one in branch.statements]
        for branch in branches
        if branch.program == "P"
    }
    # The only statement of the second sequence is the last one of the first.
    assert steps == {"sequence 1": [0, 1, 2], "sequence 2": [2]}


@pytest.mark.slow
def test_hundreds_of_sequences_have_their_mends_and_lowest_levels(tmp_path) -> None:
    """Orders with any number of items: only few parts of their sequences matter.

    The line of the loop is one read, which is mended in all sequences.
    """
    draw = random.Random(1)
    lines = []
    for number in range(200):
        items = draw.sample(range(30), draw.randint(1, 12))
        ops = [f'[:r "district/{number % 5}" nil] [:w "district/{number % 5}" {number}]']
        callers = ["shop.py:1", "shop.py:2"]
        for item in items:
            ops.append(f'[:r "item/{item}" nil] [:r "stock/{item}" nil]')
            callers += ["shop.py:3", "shop.py:4"]
            if draw.random() < 0.8:
                ops.append(f'[:w "stock/{item}" {number}]')
                callers.append("shop.py:5")
        label = "Order" if number % 30 else "Check"
        if label == "Check":
            ops, callers = ops[1:2], callers[2:4]
        shown_callers = " ".join(f'"{one}"' for one in callers)
        lines.append(
            f'{{:type :ok, :process 0, :label "{label}", :value [{" ".join(ops)}], '
            f":callers [{shown_callers}]}}\n"
        )
    path = tmp_path / "orders.edn"
    path.write_text("".join(lines))
    found = extract(read_history(str(path))).templates
    assert len(found.branches) > 100
    assert sum(len(one.statements) for one in found.reduced().branches) < 50
    levels = dict.fromkeys(found.programs, "si")
    assert decide(found, levels).standing == "not robust"
    every = mends(found, levels)
    assert [[(one.program, one.read.partition("[")[0]) for one in some] for some in every] == [
        [("Order", "r(stock")]
    ]
    for some in every:
        changed = found.promoted((one.program, one.step) for one in some)
        assert decide(changed, levels).standing == "robust"
    assert lowest(found) == {"Check": "ssi", "Order": "ssi"}
