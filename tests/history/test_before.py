"""What was there before a history begins: said by the user, or told by the reads."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from oracle.before import UNWRITTEN, Before, told
from oracle.history import parse
from oracle.pipeline import Levels, to_tool, tool_verdict_of

from isolang import History, Transaction, check
from isolang.api import load_history
from isolang.errors import HistoryError, OptionError, UnsupportedError
from isolang.history.before import initial_value_texts, with_initial
from isolang.history.select import sub_history
from isolang.options import ReadOptions


@pytest.mark.parametrize(
    ("text", "values", "level", "expected"),
    [
        ("r(x,7) w(x,1) || r(x,7) w(x,2)", {"x": 7}, "si", "invalid"),
        ("r(x,7) w(x,1) || r(x,7)", {"x": 7}, "ser", "valid"),
        ("w(x,1) -> r(x,7)", {"x": 7}, "ser", "invalid"),
        # It replaces nil.
        ("r(x,nil)", {"x": 7}, "pl-2", "invalid"),
        ("r(x,nil)", {"y": 7}, "pl-2", "valid"),
        ("in(x,{nil 1}) || w(y,1)", {"x": 7}, "pl-2", "invalid"),
        ("in(x,{nil 7})", {"x": 7}, "pl-2", "valid"),
        ("r(x,nil) || delete(x)", {"x": 7}, "ser", "valid"),
        ("r(x,nil) || !delete(x)", {"x": 7}, "pl-2", "invalid"),
        ("r(x,nil,initial)", {"x": 7}, "pl-2", "invalid"),
        # A row that a predicate misses.
        ("scan([= value 7],{}) || w(y,1)", {"x": 7, "y": 0}, "ser", "valid"),
        ("scan([= value 7],{}) || w(x,1)", {"x": 7}, "ser", "valid"),
        ("scan([= value 7],{}) r(x,7) || w(x,1)", {"x": 7}, "si", "invalid"),
        # A list begins with something.
        ("r(l,[8 9 1]) || append(l,1)", {"l": (8, 9)}, "ser", "valid"),
        ("r(l,[1]) || append(l,1)", {"l": (8, 9)}, "pl-2", "invalid"),
        ("r(l,nil) || append(l,1)", {"l": (8,)}, "pl-2", "invalid"),
        ("append(l,1) r(l,[8 1]) || append(l,8)", {"l": (8,)}, "ser", "valid"),
        (
            "r(l,[8]) append(l,1) || r(l,[8]) append(l,2) || r(l,[8 1 2])",
            {"l": (8,)},
            "si",
            "invalid",
        ),
    ],
)
def test_values_instead_of_nil(text: str, values: dict, level: str, expected: str) -> None:
    """What is said is all that was there; both sides say what was found by hand."""
    before = Before(values)
    some = Levels([level])
    history = parse(text)
    assert some.expected(history, before) == {level: expected}
    assert tool_verdict_of(to_tool(history, before), some.plans[level]) == expected


@pytest.mark.parametrize(
    ("text", "level", "expected"),
    [
        ("r(x,7) w(x,1) || r(x,7) w(x,2)", "si", "invalid"),
        ("r(x,7) || r(x,7) w(x,2)", "ser", "valid"),
        ("w(x,1) -> r(x,7)", "ser", "invalid"),  # it is the first in the order of versions
        ("r(x,7) || r(x,8)", "pl-2", "invalid"),  # two that nobody wrote
        ("r(x,7) || r(x,nil)", "pl-2", "invalid"),  # nil is one, too
        ("r(x,nil) || delete(x) || r(x,7)", "ser", "valid"),  # but not where a delete explains it
        ("r(x,1) || !w(x,1)", "pl-2", "invalid"),  # somebody wrote it
        ("r(x,1) || w(x,1) w(x,2)", "pl-2", "invalid"),
        ("r(x,7) || ?r(x,8) w(y,1)", "pl-2", "valid"),  # what is certain decides
        ("r(x,7) || ?r(x,8) w(y,1) || r(y,1)", "pl-2", "invalid"),
        ("?r(x,8) w(y,1) || r(y,1)", "pl-2", "valid"),
        ("scan([= value 7],{x 7}) || w(x,1)", "ser", "valid"),
        ("scan([= value 7],{x 7}) -> scan([= value 7],{}) || w(y,1)", "ser", "invalid"),
        ("r(l,[7 1]) || append(l,1) || r(l,[7])", "ser", "valid"),
        ("r(l,[7 1]) || append(l,1) || r(l,nil)", "pl-2", "invalid"),
        ("r(l,[1 7]) || append(l,1)", "pl-2", "invalid"),  # not at its beginning
    ],
)
def test_what_nobody_wrote_was_there(text: str, level: str, expected: str) -> None:
    """One value of a key, the first in its order; both sides say what was found by hand."""
    some = Levels([level])
    history = parse(text)
    assert some.expected(history, UNWRITTEN) == {level: expected}
    assert tool_verdict_of(to_tool(history, UNWRITTEN), some.plans[level]) == expected


def test_two_values_that_nobody_wrote_are_named() -> None:
    """The second is not called a read of thin air."""
    history = with_initial(_history(("r", "x", 7)), unwritten=True)
    assert check(history, "pl-2").outcome == "valid"
    history = with_initial(_history(("r", "x", 7), ("r", "x", 8)), unwritten=True)
    verdict = check(history, "pl-2")
    assert verdict.violation.anomaly == "two values"
    assert "7" in str(verdict.violation)


def _history(*ops: tuple) -> History:
    return History.from_transactions([Transaction([op], session=i) for i, op in enumerate(ops)])


def test_only_unknown_outcomes_that_differ_leave_it_open() -> None:
    """Nothing is guessed: the reads are named, and what to say."""
    for text in ("?r(x,7) || ?r(x,8)", "?r(x,7) || delete(x) || r(x,nil)", "?r(x,7) || ?r(x,nil)"):
        with pytest.raises(
            UnsupportedError, match=r"the initial value of :?x is ambiguous.*--initial-value"
        ):
            to_tool(parse(text), UNWRITTEN)


def test_the_certificate_has_it(tmp_path: Path) -> None:
    """A saved certificate is verified with the history read in the same way."""
    from isolang.cli.main import main

    path = tmp_path / "h.edn"
    path.write_text(
        "{:type :ok, :process 0, :value [[:r :x 7] [:w :x 1]]}\n"
        "{:type :ok, :process 1, :value [[:r :x 7] [:w :x 2]]}\n"
    )
    for number, said in enumerate(
        (["--initial-value", "x=7"], ["--initial-value", "7"], ["--unwritten-initial"])
    ):
        folder = tmp_path / str(number)
        assert main(["check", str(path), "--spec", "si", "--certificate", str(folder), *said]) == 1
        (proof,) = folder.iterdir()
        assert main(["verify", str(proof), str(path)]) == 0
        text = proof.read_text()
        other = re.sub(r'"unwritten_initial":\s*true', '"unwritten_initial": false', text)
        proof.write_text(re.sub(r'(?<="initial_value":)(\s*\[\s*"[x=]*)7', r"\g<1>8", other))
        assert proof.read_text() != text
        assert main(["verify", str(proof), str(path)]) != 0


def test_both_at_once_are_refused() -> None:
    """Either the user says what was there, or the reads."""
    with pytest.raises(OptionError, match="got both options, expected one"):
        ReadOptions(initial_value=("1",), unwritten_initial=True)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (("z=1",), "no such key"),
        (("x=[1 2]",), "x is a register"),
        (("l=1",), "l is a list"),
        (("1", "2"), "2 values for all keys"),
        (("1 2",), "not a value"),
    ],
)
def test_values_that_fit_no_key_are_refused(values: tuple[str, ...], match: str) -> None:
    """With the place and what was expected."""
    history = _history(("r", "x", 1), ("append", "l", 1))
    with pytest.raises(HistoryError, match=match):
        with_initial(history, values)


def test_a_declared_transaction_keeps_what_it_wrote() -> None:
    """A value of all keys is that of those that the initial transaction did not write."""
    history = History.from_transactions(
        [
            Transaction([("w", "x", 5)], status="initial"),
            Transaction([("r", "x", 5), ("r", "y", 1)]),
        ]
    )
    made = with_initial(history, ("1",))
    assert made.initial_values() == {"x": 5, "y": 1}
    with pytest.raises(HistoryError, match="the initial transaction"):
        with_initial(history, ("x=1",))


@pytest.mark.parametrize(
    ("text", "values", "level", "expected"),
    [
        ("scan([= value 7],{}) r(x,7) || w(x,1)", {"x": 7}, "si", "invalid"),
        ("scan([= value 7],{x 7}) || w(x,1)", {"x": 7}, "ser", "valid"),
        ("scan([= value 7],{}) || w(x,1)", {"x": 7}, "ser", "valid"),
        ("scan([= value 1],{}) r(x,7) || w(x,1)", {"x": 7}, "ser", "valid"),
        # It deleted y at last, so that nil is what it left.
        ("r(y,nil) w(x,1) || r(x,1) w(y,3) -> delete(y)", {"x": 7}, "ser", "valid"),
    ],
)
def test_predicates_see_what_a_declared_transaction_left(
    text: str, values: dict, level: str, expected: str
) -> None:
    """Its last writes, and no other one, in Python and with ``--initial``; rows of its own, too."""
    before = Before(values, declared=True)
    some = Levels([level])
    history = parse(text)
    assert some.expected(history, before) == {level: expected}
    made = to_tool(history, before)
    assert made.initial_transaction is not None
    assert tool_verdict_of(made, some.plans[level]) == expected


def test_predicates_are_said_again_without_the_declared_transaction() -> None:
    """What it wrote and overwrote was never a row; where no version matches, nothing is missed."""
    lines = (
        "{:type :ok, :process 0, :value [[:w :x 5] [:w :x 7] [:rp {:where [:= :value 5]} {}]]}",
        "{:type :ok, :process 1, :value [[:rp {:where [:= :value 5]} {}]]}",
        "{:type :ok, :process 2, :value [[:rp {:where [:= :value 7]} {}]]}",
    )
    made = load_history(io.BytesIO("\n".join(lines).encode()), initial=1)
    said = [[made.describe_op(op) for op in made.operations_of(txn)] for txn in range(3)]
    assert [len(some) for some in said] == [2, 0, 1]
    assert [check(made, "ser").outcome, check(made, "ser").certified] == ["invalid", True]


def test_a_row_that_was_deleted_at_first_is_not_there() -> None:
    """A declared transaction that deletes says so; nobody's value is not told to be there."""
    first = Transaction([("w", "x", 5), ("delete", "x")], status="initial")
    made = History.from_transactions([first, Transaction([("r", "x", 7)])])
    made = with_initial(made, unwritten=True)
    assert check(made, "pl-2").outcome == "invalid"
    assert made.initial_values() == {}


def test_a_failed_write_declares_nothing() -> None:
    """What the initial transaction did not write may be said."""
    first = Transaction([("w", "x", 5), ("w", "y", 2)], status="initial", failed=(1,))
    made = History.from_transactions([first, Transaction([("r", "y", 1)])])
    assert with_initial(made, ("y=1",)).initial_values() == {"x": 5, "y": 1}


def test_a_value_that_a_predicate_cannot_judge_is_named() -> None:
    """The message has the place, and is no traceback."""
    scan = ("scan", ("<", "value", 5), {"x": 1})
    made = History.from_transactions([Transaction([scan, ("w", "y", 1)])])
    with pytest.raises(
        HistoryError, match="transaction 1: an order of values that are not numbers"
    ):
        with_initial(made, ('y="a"',))


def test_a_part_and_a_pickle_keep_it() -> None:
    """Nil does not become the initial state where a history is cut or sent to another process."""
    import pickle

    made = with_initial(_history(("r", "x", 7), ("r", "x", None)), ("7",))
    for same in (
        sub_history(made, [0, 1]).columns,
        pickle.loads(pickle.dumps(made.columns)),
    ):
        assert same.initial_alone.tolist() == [1]


@pytest.mark.slow
def test_a_pickle_keeps_predicate_reads() -> None:
    """Rows that one statement returned stay its rows, and what it says of others is not lost."""
    import pickle

    rows = [("w", key, key) for key in range(400)]
    scans = [("scan", ("between", "value", 0, 300), {1: 1, 2: 2, 3: 3})] * 400
    made = History.from_transactions(
        [Transaction(rows, session=0), Transaction([*scans, ("delete", 7)], session=1)]
    )
    assert made.columns.implicit  # so that nothing but the predicate says that row 4 was not there
    kept = pickle.loads(pickle.dumps(made))
    assert kept.columns.statement_start.tolist() == made.columns.statement_start.tolist()
    assert kept.columns.predicates == made.columns.predicates
    assert kept.columns.deleted == made.columns.deleted
    assert check(kept, "ser").outcome == check(made, "ser").outcome == "invalid"


def test_values_have_texts() -> None:
    """As the command line takes them."""
    assert initial_value_texts({"x": 1, "a b": "z"}) == ("x=1", '"a b"="z"')
    assert initial_value_texts([1, 2]) == ("[1 2]",)


def test_python_takes_them_by_name() -> None:
    """As the command line does."""
    data = b"{:type :ok, :process 0, :value [[:r :x 7]]}"
    for more in ({"initial_value": 7}, {"initial_value": {"x": 7}}, {"unwritten_initial": True}):
        history = load_history(io.BytesIO(data), "edn", **more)
        assert check(history, "ser").outcome == "valid"
        assert "7" in history.initial or "no transaction wrote" in history.initial


def test_the_oracle_tells_by_the_first_committed_read() -> None:
    """Its rule, by itself."""
    assert told(parse("?r(x,8) || r(x,7)"), UNWRITTEN) == Before({"x": 7}, told=True)
    assert told(parse("r(l,[7 1]) || append(l,1)"), UNWRITTEN) == Before({"l": (7,)}, told=True)
