"""What times of operations say of two transactions: history by history, what is known by hand."""

from itertools import accumulate

import pytest
from support.certify import verdicts_of_both

from isolang._native import CheckKind, verify_witness
from isolang.api import check, load_spec
from isolang.certify.errors import CertificateRejected
from isolang.certify.native import check_natively, prefix_text
from isolang.certify.prefix import TO_WRITE
from isolang.certify.proofs import Witness, check_proof
from isolang.history import History, Transaction
from isolang.language.meaning.core import Rel, Seq, Union

INDETERMINATE = 2  # in columns, which may say when it was last heard of

#: T0 reads x from T1, so that any of these relations from T0 to T1 is a violation. What each has:
#: operations, times of them, when COMMIT was sent and answered, and what it is.
READER, WRITER = [("r", "x", 1)], [("w", "x", 1)]


def run(ops, times, commit, end, status="committed", failed=(), begin=0, session=0):
    return Transaction(
        ops, times=times, commit=commit, end=end, status=status, failed=failed, begin=begin,
        session=session,
    )  # fmt: skip


DONE = {
    "COMMIT sent after the answer": (
        run(READER, [(0, 1)], 2, 5), run(WRITER, [(0, 1)], 6, 7), True,
    ),
    "COMMIT sent with the answer": (
        run(READER, [(0, 1)], 2, 5), run(WRITER, [(0, 1)], 5, 7), False,
    ),
    "COMMIT is sent after operations": (
        run(READER, [(0, 1)], 2, 5), run([*WRITER, ("w", "z", 1)], [(0, 1), (6, 7)], None, 9), True,
    ),
    "operations before": (
        run(READER, [(0, 1)], 2, 5), run([*WRITER, ("w", "z", 1)], [(0, 1), (5, 7)], None, 9),
        False,
    ),
    "indeterminate": (
        run([*READER, ("w", "y", 1)], [(0, 1), (1, 2)], 2, 5, "maybe"),
        run(WRITER, [(0, 1)], 6, 7), False,
    ),
}  # fmt: skip
LATE = {
    "a statement before": (run(READER, [(0, 2)], 8, 9), run(WRITER, [(0, 1)], 3, 4), True),
    "a statement at once": (run(READER, [(0, 3)], 8, 9), run(WRITER, [(0, 1)], 3, 4), False),
    "the second statement": (
        run([*READER, ("w", "z", 1)], [(0, 4), (1, 5)], 8, 9), run(WRITER, [(0, 1)], 3, 4), False,
    ),
    "the second statement, sent early, so the first": (
        run([*READER, ("w", "z", 1)], [(0, 4), (1, 2)], 8, 9), run(WRITER, [(0, 1)], 3, 4), True,
    ),
    "a first statement without a time": (
        run([*READER, ("w", "z", 1)], [None, (1, 2)], 8, 9), run(WRITER, [(0, 1)], 3, 4), True,
    ),
    "a last statement without a time": (
        run(READER, [(0, 2)], 8, 9), run([*WRITER, ("w", "z", 1)], [(3, 4), None], None, 9), True,
    ),
    "no times, and an end": (run(READER, None, None, 2), run(WRITER, [(0, 1)], 3, 4), True),
    "no times, and an end at once": (
        run(READER, None, None, 3), run(WRITER, [(0, 1)], 3, 4), False,
    ),
    "no times, and a begin": (
        run(READER, [(0, 1)], 2, 3), run(WRITER, None, None, 9, begin=2), True,
    ),
    "no times, and a begin at once": (
        run(READER, [(0, 1)], 2, 3), run(WRITER, None, None, 9, begin=1), False,
    ),
    "half a time": (
        run(READER, [(None, 1)], 8, 9), run(WRITER, [(2, None)], None, 9), True,
    ),
    "COMMIT answered at once": (run(READER, [(0, 2)], 2, 3), run(WRITER, [(0, 1)], 3, 4), True),
    "both before": (run(READER, [(0, 2)], 2, 3), run(WRITER, [(0, 1)], 5, 6), True),
    "indeterminate": (
        run([*READER, ("w", "y", 1)], [(0, 1), (1, 2)], 2, 5, "maybe"),
        run(WRITER, [(0, 1)], 6, 7), False,
    ),
}  # fmt: skip
_LOCKING, _LOCKED = [("w", "l", 1), *READER], [*WRITER, ("w", "l", 2)]
LOCKED = {
    "locked before": (
        run(_LOCKING, [(0, 2), (2, 3)], 8, 9), run(_LOCKED, [(0, 1), (1, 2)], 3, 4), True,
    ),
    "locked at once": (
        run(_LOCKING, [(0, 3), (3, 4)], 8, 9), run(_LOCKED, [(0, 1), (1, 2)], 3, 4), False,
    ),
    "another key": (
        run(_LOCKING, [(0, 2), (2, 3)], 8, 9), run(WRITER, [(0, 1)], 3, 4), False,
    ),
    "a write that failed": (
        run([("w", "l", 9), *_LOCKING], [(0, 1), (4, 5), (5, 6)], 8, 9, failed=(0,)),
        run(_LOCKED, [(0, 1), (1, 2)], 3, 4), False,
    ),
    "the first of two writes": (
        run([("w", "l", 9), *_LOCKING], [(0, 1), (4, 5), (5, 6)], 8, 9),
        run(_LOCKED, [(0, 1), (1, 2)], 3, 4), True,
    ),
    "committed before": (
        run(_LOCKING, [(0, 1), (1, 2)], 2, 3), run(_LOCKED, [(4, 5), (5, 6)], 7, 8), True,
    ),
    "indeterminate": (
        run([*_LOCKING, ("w", "y", 1)], [(0, 1), (1, 2), (2, 3)], 3, 4, "maybe"),
        run(_LOCKED, [(5, 6), (6, 7)], 8, 9), False,
    ),
}  # fmt: skip
_WRITING = run([("w", "z", 1), *READER], [(0, 1), (1, 2)], 3, 4)


def _reading(*ops):
    return run([*WRITER, *ops], [(5 + i, 5 + i) for i in range(len(ops) + 1)], 8, 9, begin=5)


ACCESSES = {
    "a key that both access": (_WRITING, _reading(("r", "z", None)), True),
    "another key": (_WRITING, _reading(("r", "y", None)), False),
    "an own version": (_WRITING, _reading(("w", "z", 2), ("r", "z", 2)), False),
    "a read": (run(READER, [(0, 1)], 3, 4), _reading(("r", "z", None)), False),
}
ROWS = [
    (relation, name, *row)
    for relation, table in (
        *(("done", DONE), ("late", LATE), ("locked", LOCKED)),
        ("rt[W,R]", ACCESSES),
    )
    for name, row in table.items()
]
#: How a relation is written.
WRITTEN = {"rt[W,R]": "(for x: [W[x]] ; rt ; [R[x]])"}


@pytest.mark.parametrize(
    ("relation", "first", "second", "holds"),
    [(relation, *row) for relation, _, *row in ROWS],
    ids=[f"{relation}: {name}" for relation, name, *_ in ROWS],
)
def test_relations_of_moments(relation, first, second, holds):
    """The engine and both checkers say so."""
    rows = [
        Transaction(first.ops, **_rest(first, session=0, status="committed")),
        Transaction(second.ops, **_rest(second, session=1)),
    ]
    if first.status == "maybe":  # somebody reads from it, so it is in
        rows.append(run([("r", "y", 1)], [(20, 21)], 22, 23, session=2))
    history = History.from_transactions(rows)
    if first.status == "maybe":
        history.columns.set_status(0, INDETERMINATE)
    written = WRITTEN.get(relation, relation)
    spec = load_spec(f'include "prelude.iso"\nacyclic {written} | wr as moments')
    verdict = check(history, spec)
    assert (verdict.outcome, verdict.certified) == ("invalid" if holds else "valid", True)
    op = next(i for i, o in enumerate(first.ops) if o[0] == "r")
    key = int(history.columns.op_key[op])
    cycle = [(relation, 0, 1, -1, -1, -1), ("wr", 1, 0, key, op, -1)]
    told = verdicts_of_both(history, spec, [("cycle", "moments", cycle)])
    assert told == (("accepted",) * 2 if holds else ("rejected",) * 2)


def _rest(t, **changes):
    fields = ("status", "begin", "end", "times", "commit", "failed")
    return {f: getattr(t, f) for f in fields} | changes


# --- statements ---


def of(*rows, indeterminate=None):
    """A history of text and times: operations, the times of each, when COMMIT was sent, the end."""
    txns = []
    for session, (text, times, commit, end) in enumerate(rows):
        ops = [
            (kind, key, None if value == "nil" else int(value))
            for kind, key, value in (word.split(",") for word in text.split())
        ]
        txns.append(run(ops, times, commit, end, session=session))
    history = History.from_transactions(txns)
    if indeterminate is not None:
        history.columns.set_status(indeterminate, INDETERMINATE)
    return history


_READ_FROM = (
    ("w,x,1", [(0, 1)], 8, 9),
    ("r,x,1 w,y,1", [(4, 5), (5, 6)], 6, 7),
    ("r,y,1", [(20, 21)], 22, 23),
)

#: A history that no snapshots of statements explain, and nearly the same that some do.
STATEMENTS = {
    "a COMMIT before": (
        of(("w,x,1", [(0, 1)], 2, 3), ("r,x,nil", [(4, 5)], 6, 7)),
        of(("w,x,1", [(0, 1)], 2, 4), ("r,x,nil", [(4, 5)], 6, 7)),
    ),
    "a COMMIT behind": (
        of(("w,x,1", [(0, 1)], 6, 7), ("r,x,1", [(4, 5)], 6, 7)),
        of(("w,x,1", [(0, 1)], 5, 7), ("r,x,1", [(4, 5)], 6, 7)),
    ),
    "a COMMIT behind the last operation": (
        of(("w,x,1 w,z,1", [(0, 1), (6, 7)], None, 9), ("r,x,1", [(4, 5)], 6, 7)),
        of(("w,x,1 w,z,1", [(0, 1), (5, 7)], None, 9), ("r,x,1", [(4, 5)], 6, 7)),
    ),
    "a statement before": (
        of(("w,x,1", [(0, 1)], 2, 99), ("r,x,1", [(4, 5)], 8, 9), ("r,x,nil", [(6, 7)], 8, 9)),
        of(("w,x,1", [(0, 1)], 2, 99), ("r,x,1", [(4, 6)], 8, 9), ("r,x,nil", [(6, 7)], 8, 9)),
    ),
    "the order of a transaction": (
        of(("w,x,1 w,y,1", [(0, 1), (1, 2)], 2, 99), ("r,x,1 r,y,nil", [(3, 20), (3, 20)], 21, 22)),
        of(("w,x,1 w,y,1", [(0, 1), (1, 2)], 2, 99), ("r,y,nil r,x,1", [(3, 20), (3, 20)], 21, 22)),
    ),
    "a COMMIT behind, of what is indeterminate": (
        of(*_READ_FROM),
        of(*_READ_FROM, indeterminate=1),
    ),
    "the own COMMIT": (
        of(("w,x,1 r,y,1", [(0, 1), (1, 9)], 9, 10), ("w,y,1 r,x,1", [(0, 1), (1, 9)], 9, 10)),
        of(("w,x,1 r,y,1", [(0, 1), (1, 9)], 9, 10), ("w,y,1 r,x,nil", [(0, 1), (1, 9)], 9, 10)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STATEMENTS)
def test_relations_of_statements(name):
    """A refutation of the one is none of the other."""
    spec = load_spec("consistent-read-by-statement")
    broken, sound = STATEMENTS[name]
    found = [check(h, spec) for h in (broken, sound)]
    assert [(v.outcome, v.certified) for v in found] == [("invalid", True), ("valid", True)]
    steps = found[0].refutation.plain()
    assert verdicts_of_both(broken, spec, steps) == ("accepted", "accepted")
    assert verdicts_of_both(sound, spec, steps) == ("rejected", "rejected")


def test_a_walk_leaves_the_statement_to_which_it_came():
    """What was committed before one statement may be missed by an earlier one."""
    spec = load_spec("consistent-read-by-statement")
    history = of(("w,x,1", [(0, 1)], 2, 3), ("r,x,nil r,z,nil", [(0, 1), (6, 7)], 8, 9))
    (name,) = {c.name for c in spec.checks}
    x = int(history.columns.op_key[0])
    forged = [("committed-before", 0, 1, -1, 2, -1), ("rw", 1, 0, x, 1, 2)]
    assert verdicts_of_both(history, spec, [("cycle", name, forged)]) == ("rejected", "rejected")
    later = of(("w,x,1", [(0, 1)], 2, 3), ("r,x,nil", [(6, 7)], 8, 9))
    right = [("committed-before", 0, 1, -1, 1, -1), ("rw", 1, 0, x, 1, 2)]
    assert verdicts_of_both(later, spec, [("cycle", name, right)]) == ("accepted", "accepted")


def _said(history, expression, sources, orders):
    """What the native checker says of a witness, where walks pass statements."""
    witness = Witness.of(
        sources,
        list(accumulate(map(len, orders), initial=0)),
        [t for order in orders for t in order],
    )
    checks = [("walks", CheckKind.by_statement, prefix_text(expression), ())]
    return verify_witness(
        history.columns, checks, witness.source, witness.order_start, witness.order_txn,
        None, None, 0.0,
    )  # fmt: skip


@pytest.mark.parametrize(("first", "second", "violated"), [("nil", 1, False), (1, "nil", True)])
def test_walks_that_must_go_on_may_do_so_between_what_was_sent_together(first, second, violated):
    """The native checker takes such reads for one statement first, and then each for itself."""
    history = of(
        ("w,x,1 w,y,1", [(1, 2)] * 2, 10, 20),
        (f"r,z,nil r,x,{first} r,y,{second}", [(3, 4), (5, 25), (5, 25)], 26, 30),
    )
    walks = Seq((Rel("wr"), Rel("po"), Union((Rel("rw"), Rel("tx")))))
    sources = [-1, -1, *(0 if value == 1 else history.t0 for value in ("nil", first, second))]
    assert bool(_said(history, walks, sources, [[0], [0], []])) == violated


@pytest.mark.parametrize(("written", "violated"), [("x", True), ("y", False)])
def test_a_statement_precedes_what_its_own_transaction_overwrites(written, violated):
    """It reads, and does not write: that its transaction does is an overwriting like any other."""
    history = History.from_transactions(
        [
            Transaction([("r", "x", 1), ("w", written, 2)], session=0),
            Transaction([("w", "x", 1)], session=0),
        ]
    )
    walks = Union((Seq((Rel("so"), Rel("wr"), Rel("rw"))), Seq((Rel("wr"), Rel("tx")))))
    orders = [[1, 0]] if written == "x" else [[1], [0]]
    assert bool(_said(history, walks, [1, -1, -1], orders)) == violated


def test_a_walk_goes_on_behind_a_write_among_reads_of_the_same_times():
    """A read before the write and one behind it were sent together, and are two statements."""
    history = of(
        ("w,x,1 w,y,1", [(1, 2)] * 2, 10, 20),
        ("r,z,nil w,x,2 r,y,nil", [(3, 25)] * 3, 26, 30),
    )
    by_write = Seq((Rel(TO_WRITE), Rel("po"), Rel("rw")))
    walks = Union((by_write, Seq((Rel("wr"), Rel("tx")))))
    sources = [-1, -1, history.t0, -1, history.t0]
    assert _said(history, walks, sources, [[0, 1], [0], []])


_SAW = ("w,x,1 w,y,1", [(0, 1), (1, 2)], 2, 99)
#: Histories, what a witness says that each read saw, and version orders: it can say nothing else.
FORGED = {
    "sent later than the read before": (
        of(("w,x,1", [(0, 1)], 2, 20), ("r,z,nil r,x,nil", [(5, 40), (30, 40)], 41, 42)),
        [-1, 2, 2], [[0], []],
    ),
    "answered earlier than the read before": (
        of(("w,x,1", [(0, 1)], 20, 21), ("r,z,nil r,x,1", [(5, 40), (5, 10)], 41, 42)),
        [-1, 2, 0], [[0], []],
    ),
    "at the times of another transaction": (
        of(
            ("r,z,nil", [(1, 9)], 9, 10),
            ("r,x,1 w,y,1", [(1, 9)] * 2, 9, 10),
            ("w,x,1 r,y,1", [(0, 1), (1, 9)], 9, 10),
        ),
        [3, 2, -1, -1, 1], [[], [2], [1]],
    ),
    "two statements later": (
        of(_SAW, ("r,x,1 r,z,nil r,y,nil", [(3, 20), (4, 20), (5, 20)], 21, 22)),
        [-1, -1, 0, 2, 2], [[0], [0], []],
    ),
    "in the session of the writer": (
        History.from_transactions(
            [run(WRITER, [(0, 1)], 2, 5), run([("r", "x", None)], [(5, 6)], 7, 8, begin=5)]
        ),
        [-1, 2], [[0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_no_witness_hides_when_a_statement_read(name):
    """Both checkers refuse what no states of the commits explain."""
    history, sources, orders = FORGED[name]
    spec = load_spec("consistent-read-by-statement")
    starts = list(accumulate(map(len, orders), initial=0))
    witness = Witness.of(sources, starts, [t for order in orders for t in order])
    for checker in (check_proof, check_natively):
        with pytest.raises(CertificateRejected, match="violating cycle"):
            checker(history, spec, witness)
