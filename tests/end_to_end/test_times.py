"""Times of operations: what clients noted of a database at work is accepted, and nothing else.

The other side is the oracle's, which searches for instants between the sending and the answer of
every operation and knows no dependencies; and its relations between moments, for exact equality.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from oracle import moments, semantics
from oracle.history import UNKNOWN, History, is_write, show, to_edn
from oracle.moments import KINDS
from oracle.simulate import disturbed, timed_history

from isolang.api import check, load_history, load_spec
from isolang.certify.errors import CertificateRejected
from isolang.certify.native import check_natively
from isolang.certify.proofs import Witness, check_proof
from isolang.errors import HistoryError
from isolang.history import History as ToolHistory
from isolang.history import Transaction, write_history
from isolang.history.clock_error import nanoseconds, with_clock_error
from isolang.history.values import UNKNOWN as TOOL_UNKNOWN
from isolang.language.classify.route import route
from isolang.language.library import list_profiles
from isolang.pipeline.levels import least_clock_error
from isolang.verdict import Invalid

PROFILES = {profile.name: route(load_spec(profile.name)) for profile in list_profiles()}
#: The profile of each kind of database of the oracle.
OF_KIND = {
    "bounded-si": ("consistent-read", "first-updater-wins"),
    "postgresql-repeatable-read": (
        "postgresql-repeatable-read",
        "consistent-read",
        "first-updater-wins",
        "mutual-exclusion",
    ),
    "statement-rc": ("consistent-read-by-statement",),
    "postgresql-read-committed": (
        "postgresql-read-committed",
        "consistent-read-by-statement",
        "mutual-exclusion",
    ),
    "innodb-repeatable-read": ("innodb-repeatable-read", "mutual-exclusion"),
}


#: The tool's names of set-reads.
NAMES = {"in": "r-in", "notin": "r-not-in"}


def to_tool(history: History) -> ToolHistory:
    return ToolHistory.from_transactions(
        Transaction(
            [
                (NAMES.get(o[0], o[0]), o[1], TOOL_UNKNOWN if o[2] == UNKNOWN else o[2])
                for o in t.ops
            ],
            session=t.session,
            status=t.status,
            begin=t.begin,
            end=t.end,
            times=t.times,
            commit=t.commit,
        )
        for t in history
    )


def drawn(number: int, kind: str, error: int = 0) -> History:
    rng = random.Random(f"{kind} {number}")
    history = timed_history(rng, KINDS[kind], error=error, fault=rng.random() < 0.7)
    for _ in range(rng.choice((0, 0, 1, 2))):
        history = disturbed(rng, history)
    return history


def verdict_of(history: ToolHistory, profile: str) -> str:
    verdict = check(history, PROFILES[profile])
    assert verdict.certified, (profile, verdict.outcome, verdict.certified_reason)
    return verdict.outcome


def in_turns(history: History) -> bool:
    """No session has two transactions at a time, as a process of Jepsen has none."""
    ends: dict[int, float] = {}
    for t in history:
        if t.begin is None or t.end is None or t.begin <= ends.get(t.session, -1):
            return False
        ends[t.session] = t.end
    return True


def no_execution_is_accused(kind: str, numbers: range) -> Counter[str]:
    """What can have happened in a database of the kind satisfies its profiles, with any clocks."""
    found: Counter[str] = Counter()
    for number in numbers:
        error = (0, 0, 2, 5)[number % 4]
        history = drawn(number, kind, error)
        allowed = moments.satisfied(history, KINDS[kind], error=error)
        given = to_tool(history)
        if error:
            given = with_clock_error(given, error)
        for profile in OF_KIND[kind]:
            outcome = verdict_of(given, profile)
            found[outcome] += 1
            if outcome == "invalid":
                assert not allowed, (kind, number, profile, error, show(history))
    return found


def relations_are_the_oracles(kind: str, numbers: range) -> Counter[str]:
    """Each profile says of ``done``, ``late`` and ``locked`` what the oracle's moments say.

    By clocks that may be wrong, too: with a margin between any two, or one for each.
    """
    found: Counter[str] = Counter()
    for number in numbers:
        # The oracle's moments of an indeterminate transaction count where it is included.
        history = tuple(t for t in drawn(number, kind) if t.status != "maybe")
        if not any(is_write(o) for t in history for o in t.ops):
            continue
        given = to_tool(history)
        error: int | dict[int, int] = (0, 0, 3, 0, {0: 2, 1: 5}, 6)[number % 6]
        if isinstance(error, dict):
            error = {t.session: error.get(t.session, 0) for t in history}
            given = with_clock_error(given, ",".join(f"{s}={e}ns" for s, e in error.items()))
        elif error:
            given = with_clock_error(given, error)
        elif number % 2 and in_turns(history):
            given = load_history(BytesIO(to_edn(history).encode()), "edn")
        names = [n for n in PROFILES if PROFILES[n].kind == "event graph"]
        expected = semantics.satisfied(
            history, [PROFILES[n].spec.checks for n in names], error=error
        )
        for name, holds in zip(names, expected, strict=True):
            outcome = verdict_of(given, name)
            found[outcome] += 1
            assert outcome == ("valid" if holds else "invalid"), (
                kind, number, name, show(history),
            )  # fmt: skip
    return found


@pytest.mark.parametrize("kind", OF_KIND)
def test_no_execution_of_a_database_is_accused(kind: str) -> None:
    found = no_execution_is_accused(kind, range(60))
    assert min(found["valid"], found["invalid"]) > 2


@pytest.mark.parametrize("kind", OF_KIND)
def test_relations_between_moments(kind: str) -> None:
    found = relations_are_the_oracles(kind, range(30))
    assert min(found["valid"], found["invalid"]) > 5


# --- what no level of transactions finds ---

T = Transaction
FRESH = (
    T([("r", "x", None), ("r", "y", 1)], session=2, begin=0, end=100,
      times=[(1, 5), (30, 40)], commit=60),
    T([("w", "y", 1)], session=0, begin=10, end=25, times=[(11, 12)], commit=20),
)  # fmt: skip
BLIND = (
    T([("w", "x", 1)], session=1, begin=0, end=100, times=[(1, 5)], commit=60),
    T([("w", "x", 2)], session=0, begin=10, end=125, times=[(11, 12)], commit=70),
)
UNSENT = (
    T([("w", "y", 1)], session=0, begin=10, end=125, times=[(11, 12)], commit=70),
    T([("r", "y", 1)], session=1, begin=20, end=60, times=[(21, 22)], commit=50),
)
BY_STATEMENT = ("postgresql-read-committed", "oracle-read-committed", "innodb-read-committed")
FOUND = {
    "fresh snapshot": (FRESH, {"consistent-read", "postgresql-repeatable-read"}),
    "two blind writers that overlapped": (
        BLIND,
        {
            "first-updater-wins", "mutual-exclusion", "postgresql-repeatable-read",
            "innodb-repeatable-read", "innodb-serializable", "sqlite", *BY_STATEMENT,
        },
    ),
    "a version whose COMMIT had not been sent": (
        UNSENT,
        {
            "consistent-read", "postgresql-repeatable-read", "innodb-repeatable-read",
            "innodb-serializable", "consistent-read-by-statement", *BY_STATEMENT,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_only_times_of_operations_tell(name: str) -> None:
    transactions, forbidding = FOUND[name]
    history = ToolHistory.from_transactions(transactions)
    for level in ("sser", "strong-si"):
        assert check(history, level).outcome == "valid"
    if "postgresql-repeatable-read" in forbidding:  # which it contains
        forbidding |= {"postgresql-serializable"}
    assert {p for p in PROFILES if verdict_of(history, p) == "invalid"} == forbidding


WRITTEN = T([("w", "x", 1)], session=0, begin=0, end=30, times=[(1, 2)], commit=20)
#: Reads of x, with their times; the last one is of a transaction that ends at 60.
STATEMENTS = {
    "what was overwritten when the statement was sent": ([(None, 40, 50)], "invalid"),
    "COMMIT was answered only after the statement was sent": ([(None, 25, 50)], "valid"),
    "two statements, the second of which sees more": ([(None, 6, 8), (1, 40, 50)], "valid"),
    "two statements, the second of which sees less": ([(1, 22, 28), (None, 29, 50)], "invalid"),
    "an answer before COMMIT was sent": ([(1, 6, 8)], "invalid"),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_each_statement_reads_a_snapshot_not_older_than_its_sending(name: str) -> None:
    reads, outcome = STATEMENTS[name]
    reader = T(
        [("r", "x", value) for value, _, _ in reads],
        session=1, begin=5, end=60, times=[(b, e) for _, b, e in reads], commit=55,
    )  # fmt: skip
    history = ToolHistory.from_transactions((WRITTEN, reader))
    for profile in ("consistent-read-by-statement", *BY_STATEMENT):
        assert verdict_of(history, profile) == outcome


def test_a_statement_in_the_session_of_the_writer_sees_what_it_wrote() -> None:
    """Whatever the clocks say, if they may be wrong."""
    reader = T([("r", "x", None)], session=0, begin=31, end=60, times=[(32, 33)], commit=55)
    history = with_clock_error(ToolHistory.from_transactions((WRITTEN, reader)), 100)
    assert verdict_of(history, "postgresql-read-committed") == "invalid"


def test_rows_of_one_statement_are_of_one_state() -> None:
    """One predicate read has one snapshot; two of them may each have another."""
    writers = (
        T([("w", "x", {"v": 1})], session=0, begin=0, end=30, times=[(1, 2)], commit=20),
        T([("w", "y", {"v": 1})], session=1, begin=31, end=60, times=[(32, 33)], commit=50),
    )
    both, only = {"x": {"v": 1}, "y": {"v": 1}}, {"y": {"v": 1}}
    for scans, outcome in (([only], "invalid"), ([both], "valid"), ([{}, both], "valid")):
        reader = T(
            [("scan", (">", "v", 0), rows) for rows in scans],
            session=2, begin=5, end=90, times=[(6, 70)] if len(scans) == 1 else [(6, 40), (41, 70)],
            commit=80,
        )  # fmt: skip
        history = ToolHistory.from_transactions((*writers, reader))
        assert verdict_of(history, "consistent-read-by-statement") == outcome


@pytest.mark.parametrize("first", ["x", "y"])
@pytest.mark.parametrize("old", ["x", "y", ""])
def test_rows_of_one_statement_have_no_order_for_the_checkers(first: str, old: str) -> None:
    """A COMMIT during a predicate read is seen in all its rows or in none, in either order."""
    keys = sorted("xy", key=lambda key: key != first)
    writers = [
        T(
            [("w", key, {"v": version}) for key in "xy"],
            session=version, begin=at, end=end, times=[(at + 1, at + 2)] * 2, commit=at + 3,
        )
        for version, (at, end) in enumerate([(0, 4), (5, 30)])
    ]  # fmt: skip
    seen = {key: int(key != old) for key in keys}
    rows = {key: {"v": version} for key, version in seen.items()}
    reader = T(
        [("scan", (">=", "v", 0), rows)],
        session=2, begin=5, end=40, times=[(12, 35)], commit=38,
    )  # fmt: skip
    history = ToolHistory.from_transactions((*writers, reader))
    profile = "consistent-read-by-statement"
    assert verdict_of(history, profile) == ("invalid" if old else "valid")
    witness = Witness.of([-1] * 4 + [seen[key] for key in keys], [0, 2, 4], [0, 1] * 2)
    for checker in (check_proof, check_natively):
        with pytest.raises(CertificateRejected) if old else nullcontext():
            checker(history, PROFILES[profile].spec, witness)


#: What two transactions read, when they did, and which check that breaks.
BESIDE = {
    "each misses by a predicate what the other writes": ("scan", 6, ""),
    "each misses by key what the other writes": ("r", 6, "items"),
    "the second misses by a predicate what had been committed": ("scan", 60, "snapshot"),
}


@pytest.mark.parametrize(("first", "second", "outcome"), [(None, 1, "valid"), (1, None, "invalid")])
def test_statements_that_were_sent_together_are_still_several(
    first: int | None, second: int | None, outcome: str
) -> None:
    """A COMMIT between two that have the same times: the later one may see it, not the first."""
    history = ToolHistory.from_transactions(
        [
            Transaction(
                [("w", "x", 1), ("w", "y", 1)], session=0, begin=0, end=20, times=[(1, 2)] * 2,
                commit=10,
            ),
            Transaction(
                [("r", "z", None), ("r", "x", first), ("r", "y", second)], session=1, begin=0,
                end=30, times=[(3, 4), (5, 25), (5, 25)], commit=26,
            ),
        ]
    )  # fmt: skip
    for profile in ("consistent-read-by-statement", "postgresql-read-committed"):
        verdict = check(history, PROFILES[profile])
        assert (verdict.outcome, verdict.certified) == (outcome, True)
        source = [-1, -1, *(history.t0 if value is None else 0 for value in (None, first, second))]
        witness = Witness.of(source, [0, 1, 2, 2], [0, 0])
        for checker in (check_proof, check_natively):
            with nullcontext() if outcome == "valid" else pytest.raises(CertificateRejected):
                checker(history, PROFILES[profile].spec, witness)


@pytest.mark.parametrize("name", BESIDE)
def test_statements_stand_beside_item_and_predicate_reads(name: str) -> None:
    """Where other checks tell reads apart, the engine says what a relational search says."""
    spec = load_spec("""
spec beside
include "statements.iso"
acyclic (seen ; statement ; unseen) | ww as snapshot
acyclic wr | ww | irw as items
""")
    kind, sent, broken = BESIDE[name]
    one = T(
        [(kind, "y", None) if kind == "r" else (kind, (">", "v", 0), {}), ("w", "x", {"v": 1})],
        session=0, begin=0, end=50, times=[(1, 5), (10, 20)], commit=40,
    )  # fmt: skip
    two = T(
        [(kind, "x", None) if kind == "r" else (kind, (">", "v", 0), {}), ("w", "y", {"v": 1})],
        session=1, begin=sent - 1, end=99,
        times=[(sent, sent + 5), (sent + 10, sent + 20)], commit=90,
    )  # fmt: skip
    history = ToolHistory.from_transactions((one, two))
    assert route(spec).kind == "reachability"
    for encoding in ("auto", "relational"):
        verdict = check(history, spec, encoding=encoding)
        assert (verdict.outcome, verdict.certified) == ("invalid" if broken else "valid", True)
        if isinstance(verdict, Invalid) and verdict.violation is not None:
            assert {cycle.check for _, cycle in verdict.violation.cycles()} <= {broken}


#: A read that has another source, beside an indeterminate write that then need not be included.
UNREAD = {
    "locked": """
{:type :invoke, :f :txn, :value [[:w :x 2]], :process 1, :index 0}
{:type :invoke, :f :txn, :value [[:w :x 2]], :process 2, :index 1}
{:type :invoke, :f :txn, :value [[:r :x nil]], :process 0, :index 2}
{:type :ok, :f :txn, :value [[:w :x 2]], :process 1, :index 3, :times [[15 23]], :commit [24 29]}
{:type :ok, :f :txn, :value [[:r :x 2]], :process 0, :index 4, :times [[47 49]], :commit [59 62]}
{:type :info, :f :txn, :value [[:w :x 2]], :process 2, :index 5, :times [[6 10]], :commit [40 nil]}
""",
    "late": """
{:type :invoke, :f :txn, :value [[:w :y 3]], :process 2, :index 0}
{:type :invoke, :f :txn, :value [[:w :y 1]], :process 1, :index 1}
{:type :invoke, :f :txn, :value [[:r-in :y [1 nil 3]]], :process 0, :index 2}
{:type :ok, :f :txn, :value [[:w :y 1]], :process 1, :index 3, :times [[7 9]], :commit [19 23]}
{:type :ok, :f :txn, :value [[:r-in :y [1 nil 3]]], :process 0, :index 4, :times [[16 32]],
 :commit [43 50]}
{:type :info, :f :txn, :value [[:w :y 3]], :process 2, :index 5, :times [[8 10]], :commit [27 nil]}
""",
}


@pytest.mark.parametrize("name", UNREAD)
def test_an_indeterminate_transaction_precedes_nothing(name: str) -> None:
    """What it did may be answered in time, and yet it may have no effect."""
    history = load_history(BytesIO(UNREAD[name].encode()), "edn")
    assert {verdict_of(history, profile) for profile in PROFILES} == {"valid"}


def test_a_verdict_says_what_it_assumes() -> None:
    verdict = check(ToolHistory.from_transactions(BLIND), "postgresql-repeatable-read")
    assert any("the snapshot is taken in the first statement" in note for note in verdict.notes)
    assert verdict.violation is not None
    told = " ".join(edge.text for _, cycle in verdict.violation.cycles() for edge in cycle.edges)
    assert "was answered before" in told


def test_times_survive_the_round_trip(tmp_path: Path) -> None:
    for form in ("edn", "jepsen-json"):
        path = tmp_path / f"history.{form}"
        write_history(ToolHistory.from_transactions(FRESH), path, format=form)
        again = load_history(path)
        times = {len(t.ops): t.times for t in again.transactions()}
        assert times == {len(t.ops): t.times for t in FRESH}
        assert check(again, "postgresql-repeatable-read").outcome == "invalid"
        assert check(again, "postgresql-read-committed").outcome == "valid"


#: A predicate read that returns a row and misses one, one of nothing, and one that misses all.
SCANNED = (
    T([("w", "y", {"v": 1}), ("w", "z", {"v": 7})], session=0, begin=10, end=35,
      times=[(11, 12), (13, 14)], commit=20),
    T([("scan", ("=", "v", 7), {}), ("r", "y", {"v": 1}), ("scan", (">", "v", 90), {}),
       ("scan", (">", "v", 0), {"y": {"v": 1}, "z": {"v": 7}}), ("scan", ("=", "v", 1), {})],
      session=2, begin=0, end=100,
      times=[(1, 5), (30, 40), (41, 42), (43, 44), None], commit=60),
)  # fmt: skip


@pytest.mark.parametrize("form", ["", "edn"])
def test_one_time_is_of_all_rows_of_a_predicate_read(tmp_path: Path, form: str) -> None:
    """One that says nothing of any row keeps its place, too; in a copy as in the original."""
    history = ToolHistory.from_transactions(SCANNED)
    if form:
        path = tmp_path / f"history.{form}"
        write_history(history, path, format=form)
        history = load_history(path)
    times = {len(t.ops): t.times for t in history.transactions()}
    assert times == {len(t.ops): t.times for t in SCANNED}
    columns = history.columns
    reader = next(t for t in range(2) if len(history.transaction(t).ops) == 5)
    found = [
        (int(columns.op_begin[op]), int(columns.op_end[op])) for op in history.operations_of(reader)
    ]
    unknown = (-(2**63), 2**63 - 1)
    # z was missed by the first, both returned by the fourth, y missed by the last.
    assert found == [(1, 5), (30, 40), (43, 44), (43, 44), unknown]
    moved = with_clock_error(history, 2)
    again = moved.transaction(reader).times
    assert again == [(1, 7), (30, 42), (41, 44), (43, 46), None]


def test_a_phantom_by_times() -> None:
    """The snapshot of the first statement, a predicate read, is older than what is read later."""
    fresh = (
        T([("scan", ("=", "v", 7), {}), ("r", "y", {"v": 1})], session=2, begin=0, end=100,
          times=[(1, 5), (30, 40)], commit=60),
        T([("w", "y", {"v": 1})], session=0, begin=10, end=25, times=[(11, 12)], commit=20),
        T([("w", "x", {"v": 7})], session=1, begin=70, end=95, times=[(71, 72)], commit=80),
    )  # fmt: skip
    for late, outcome in ((5, "invalid"), (22, "valid")):
        times = [(1, late), (30, 40)]
        history = ToolHistory.from_transactions((replace(fresh[0], times=times), *fresh[1:]))
        assert verdict_of(history, "consistent-read") == outcome


@pytest.mark.parametrize(
    ("step", "transactions"),
    [("done ; wr[x]", UNSENT), ("late ; wr[x]", UNSENT), ("locked ; ww[x]", BLIND)],
)
def test_moments_are_of_no_key(step: str, transactions: tuple[Transaction, ...]) -> None:
    """They compare whole transactions, which the accesses to one key do not have."""
    text = 'include "prelude.iso"\ninclude "adya.iso"\nirreflexive for x: ({})^+ as odd\n'
    plan = route(load_spec(text.format(step)))
    assert plan.kind == "relational"
    verdict = check(ToolHistory.from_transactions(transactions), plan)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    kept = route(load_spec(text.format(step.replace(step.split(maxsplit=1)[0], "so"))))
    assert kept.kind == "reachability"


def test_a_leopard_trace() -> None:
    def line(txn: str, kind: str, at: tuple[int, int], **rest: object) -> str:
        import json

        return json.dumps(
            {
                "threadID": f"0-{txn}", "transactionID": txn, "operationTraceType": kind,
                "startTimestamp": at[0], "finishTimestamp": at[1], "predicateLock": None,
                "traceLockMode": "NON_LOCK", "readMode": "CONSISTENT_READ", **rest,
            }
        )  # fmt: skip

    def row(value: int) -> dict[str, object]:
        return {"table": "0", "primaryKey": "7", "valueMap": {"v": value}}

    trace = "\n".join(
        [
            line("a", "INSERT", (1, 5), writeTupleList=[row(1)]),
            line("b", "UPDATE", (11, 12), writeTupleList=[row(2)]),
            line("b", "SELECT", (13, 14), readTupleList=[row(9)], readMode="LOCKING_READ"),
            line("a", "COMMIT", (60, 100)),
            line("b", "COMMIT", (70, 125)),
        ]
    )
    history = load_history(BytesIO(trace.encode()))
    assert history.format == "leopard"
    assert history.ignored == ("1 values of locking and uncommitted reads",)
    assert check(history, "mutual-exclusion").outcome == "invalid"
    assert check(history, "sser").outcome == "valid"


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([(1, 5)], "expected one pair for each of 2"),
        ([(1, 5), (9, 8)], "out of order"),
        ([(1, 5), (9, 200)], "out of order"),
        ([(1, 5), 7], "not a list"),
    ],
)
def test_bad_times_are_refused(times: list[object], message: str) -> None:
    with pytest.raises(HistoryError, match=message):
        ToolHistory.from_transactions(
            [T([("w", "x", 1), ("w", "y", 1)], begin=0, end=100, times=times)]
        )


# --- clocks ---


ONE_CLOCK = (
    *("sser-nosession", "strong-si-nosession", "pl-fcv", "linearizable", "sser"),
    "acyclic rt | wr | rw",
    "acyclic done | wr | rw",
    "acyclic late | wr | rw",
    "acyclic (committed-before ; statement ; unseen) | ww",
    "irreflexive rt ; rw",
    "irreflexive for x: ([W[x]] ; rt ; [R[x]] ; rw[x])",
)
"""Levels, and specifications of one check, that forbid a read that is stale in its session."""


@pytest.mark.parametrize("level", ONE_CLOCK)
@pytest.mark.parametrize("encoding", ["auto", "relational"])
def test_a_clock_error_is_none_inside_a_session(level: str, encoding: str) -> None:
    """Whatever a level says of sessions: each has one clock."""

    def given(session: int) -> ToolHistory:
        return ToolHistory.from_transactions(
            [
                Transaction([("w", "y", 1)], session=1, begin=1, end=2),
                Transaction([("w", "x", 1)], session=0, begin=5, end=6),
                Transaction([("r", "x", None)], session=session, begin=7, end=11),
            ]
        )

    spec = load_spec(f'include "statements.iso"\n{level} as stale') if " " in level else level
    for error in ("5ns", "1s", "0=5ns,1=7ns"):
        verdict = check(with_clock_error(given(0), error), spec, encoding=encoding)
        assert (verdict.outcome, verdict.certified) == ("invalid", True)
        apart = with_clock_error(given(1), error)
        verdict = check(apart, spec, encoding=encoding)
        assert (verdict.outcome, verdict.certified) == ("valid", True)


def test_a_clock_error_explains_what_it_may() -> None:
    """A read two ticks too late by another clock."""
    history = ToolHistory.from_transactions(
        [
            T([("w", "x", 1)], session="a", begin=0, end=3),
            T([("r", "x", None)], session="b", begin=5, end=8),
        ]
    )
    outcomes = [check(with_clock_error(history, e), "sser").outcome for e in (0, 1, 2, 3)]
    assert outcomes == ["invalid", "invalid", "valid", "valid"]
    assert check(with_clock_error(history, "a=1ns,b=1ns"), "sser").outcome == "valid"
    assert check(with_clock_error(history, "a=1"), "sser").outcome == "invalid"
    assert least_clock_error(history, "sser") == 2


def test_a_session_whose_times_contradict_its_order() -> None:
    """Both are facts, so that no level holds that has both; the two edges are the explanation."""
    turned = ToolHistory.from_transactions(
        [
            T([("w", "x", 1)], session=0, begin=20, end=25),
            T([("w", "y", 1)], session=0, begin=5, end=6),
        ]
    )
    for history in (turned, with_clock_error(turned, "1s")):
        verdict = check(history, "sser")
        assert isinstance(verdict, Invalid)
        assert verdict.violation is not None
        edges = [edge for _, cycle in verdict.violation.cycles() for edge in cycle.edges]
        assert sorted(edge.relation for edge in edges) == ["rt", "so"]
        for level in ("ser", "sser-nosession"):
            assert check(history, level).outcome == "valid"


def test_what_a_lock_tells_of_later_statements_is_not_found() -> None:
    """The profile is sound, not exact: its header says so."""
    history = (
        T([("w", "x", 1), ("w", "y", 1)], session=0, begin=0, end=100, times=[(1, 2), (3, 4)],
          commit=5),
        T([("w", "x", 2), ("r", "y", None)], session=1, begin=0, end=120,
          times=[(1, 50), (51, 52)], commit=110),
    )  # fmt: skip
    outcome = verdict_of(ToolHistory.from_transactions(history), "postgresql-read-committed")
    assert outcome == "valid"


def test_durations() -> None:
    assert [nanoseconds(t) for t in ("7", "3us", "2 ms", "0.1s")] == [7, 3000, 2_000_000, 10**8]
    for bad in ("", "ms", "-1ms", "2 hours", "auto", "9" * 400):
        with pytest.raises(HistoryError, match="clock error"):
            nanoseconds(bad)


def test_a_clock_error_needs_clocks() -> None:
    one = b":process 0, :value [[:w :x 1]]}"
    lines = b"{:type :invoke, " + one + b"{:type :ok, " + one
    with pytest.raises(HistoryError, match="which no clock measures"):
        with_clock_error(load_history(BytesIO(lines), "edn"), "2ms")
