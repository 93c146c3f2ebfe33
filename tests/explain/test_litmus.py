"""Each litmus history gets its own name, and an explanation that stays as it was found readable.

``ISOLANG_GOLDEN=write pytest tests/explain/test_litmus.py`` writes the expected texts anew; read
them before committing.
"""

import io
import os

import pytest
from msgspec.structs import replace
from support.paths import TESTS

from isolang import History, Transaction, check, load_spec
from isolang.certify.proofs import check_proof
from isolang.explain.violation import CycleView
from isolang.limits import Seconds
from isolang.output.records import report_of
from isolang.output.terminal import console
from isolang.output.text import render

GOLDEN = TESTS / "golden"


def history(*sessions, times=None, statuses=None):
    """One transaction per list of operations; an inner tuple of lists is a session."""
    transactions = []
    for number, session in enumerate(sessions):
        for ops in session if isinstance(session, tuple) else (session,):
            begin, end = (times or {}).get(len(transactions), (None, None))
            status = (statuses or {}).get(len(transactions), "committed")
            transactions.append(
                Transaction(ops, session=f"s{number + 1}", begin=begin, end=end, status=status)
            )
    return History.from_transactions(transactions, name="litmus")


def r(key, value):
    return ("r", key, value)


def w(key, value):
    return ("w", key, value)


def a(key, value):
    return ("append", key, value)


IN_TURN = {0: (0, 1), 1: (2, 3)}

# name of the file: the history, the level, and the name of the anomaly
LITMUS = {
    "write-skew": (
        history([r("x", None), r("y", None), w("x", 1)], [r("x", None), r("y", None), w("y", 2)]),
        "ser",
        "write skew",
    ),
    "long-fork": (
        history([w("x", 1)], [w("y", 1)], [r("x", 1), r("y", None)], [r("x", None), r("y", 1)]),
        "si",
        "long fork",
    ),
    "lost-update-si": (
        history([r("x", None), w("x", 1)], [r("x", None), w("x", 2)]),
        "si",
        "lost update",
    ),
    "lost-update-ser": (
        history([r("x", None), w("x", 1)], [r("x", None), w("x", 2)]),
        "ser",
        "lost update",
    ),
    "causality-violation": (
        history([w("x", 1)], [r("x", 1), w("y", 1)], [r("y", 1), r("x", None)]),
        "ser",
        "causality violation",
    ),
    "causality-violation-session": (
        history([w("x", 1)], ([r("x", 1)], [w("y", 1)]), [r("y", 1), r("x", None)]),
        "pc",
        "causality violation-session",
    ),
    "fractured-read": (
        history([w("x", 1), w("y", 1)], [r("x", None), r("y", 1)]),
        "pc",
        "fractured read",
    ),
    "re-read": (history([w("x", 1)], [r("x", 1), r("x", None)]), "ser", "non-monotonic read"),
    "stale-read-in-session": (history(([w("x", 1)], [r("x", None)])), "si", "G-single-session"),
    "stale-read-in-real-time": (
        history([w("x", 1)], [r("x", None)], times=IN_TURN),
        "sser",
        "G-single-realtime",
    ),
    "wr-cycle": (history([r("y", 1), w("x", 1)], [r("x", 1), w("y", 1)]), "pl-2", "G1c"),
    "write-cycle": (
        history([a("x", 1), a("y", 1)], [a("x", 2), a("y", 2)], [r("x", [1, 2]), r("y", [2, 1])]),
        "pl-1",
        "G0",
    ),
    "g2-of-three": (
        history([r("x", None), w("y", 1)], [r("y", None), w("z", 1)], [r("z", None), w("x", 1)]),
        "ser",
        "G2",
    ),
    "unread-overwrite": (
        history(([w("x", 1)], [w("x", 2), w("y", 1)]), [r("y", 1), r("x", 1)]),
        "ser",
        "non-monotonic read-session",
    ),
    "one-of-these-sources": (
        history(
            ([w("x", 1), w("y", 1)], [w("y", 2)]),
            ([w("x", 1), w("z", 1)], [w("z", 2)]),
            [r("x", 1), r("y", None), r("z", None)],
        ),
        "pc",
        "non-monotonic read",
    ),
    "indeterminate-source": (
        history(
            [w("x", 1), w("y", 1)],
            [r("x", 1), r("y", None)],
            statuses={0: "maybe"},
        ),
        "ser",
        "non-monotonic read",
    ),
    "thin-air-read": (history([r("x", 7)]), "pl-2", "thin-air read"),
    "aborted-read": (
        history([w("x", 1)], [r("x", 1)], statuses={0: "aborted"}),
        "pl-2",
        "G1a",
    ),
    "intermediate-read": (history([w("x", 1), w("x", 2)], [r("x", 1)]), "pl-2", "G1b"),
    "future-read": (history([r("x", 1), w("x", 1)]), "pl-2", "future read"),
    "not-my-own-write": (
        history([w("x", 1)], [w("x", 2), r("x", 1)]),
        "pl-2",
        "not my own write",
    ),
    "not-my-last-write": (
        history([w("x", 1), w("x", 2), r("x", 1)]),
        "pl-2",
        "not my last write",
    ),
    "incompatible-order": (
        history([a("x", 1)], [a("x", 2)], [r("x", [1, 2])], [r("x", [2])]),
        "pl-1",
        "incompatible order",
    ),
    "split-append": (
        history([a("x", 1), a("x", 2)], [a("x", 3)], [r("x", [1, 3, 2])]),
        "pl-2",
        "G0",
    ),
}


def text_of(verdict, level):
    stream = io.StringIO()
    report = replace(report_of("litmus", level, verdict), seconds=Seconds())
    render(report, console(stream))
    return stream.getvalue()


@pytest.mark.parametrize("name", LITMUS)
def test_litmus(name, monkeypatch):
    """The name, the text, and a refutation that the checkers in Python accept."""
    monkeypatch.delenv("COLUMNS", raising=False)
    litmus, level, anomaly = LITMUS[name]
    spec = load_spec(level)
    verdict = check(litmus, spec)
    assert verdict.outcome == "invalid"
    assert verdict.certified, verdict.certified_reason
    assert verdict.violation.anomaly == anomaly
    check_proof(litmus, spec, verdict.refutation)
    text = text_of(verdict, level)
    assert all(len(line) <= 80 for line in text.splitlines())
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("ISOLANG_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over():
    """Each file belongs to a litmus history."""
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(LITMUS)


@pytest.mark.parametrize(
    ("name", "relaxed"),
    [
        ("stale-read-in-session", {"without sessions": "valid"}),
        ("stale-read-in-real-time", {"without real time": "valid"}),
        ("causality-violation-session", {"without sessions": "valid"}),
        ("write-skew", {}),
    ],
)
def test_relaxed(name, relaxed):
    """Where a violation needs sessions or real time, the verdict says what holds without them."""
    litmus, level, _ = LITMUS[name]
    assert check(litmus, load_spec(level)).violation.relaxed == relaxed


def test_a_violation_without_sessions_is_preferred():
    """Where a cycle without session edges is as simple, the session is not blamed."""
    both = history(
        ([w("x", 1)], [r("x", None)]),
        [w("y", 1), w("z", 1)],
        [r("y", 1), r("z", None)],
    )
    verdict = check(both, load_spec("ser"))
    assert verdict.violation.anomaly == "non-monotonic read"
    assert verdict.violation.relaxed == {}


def test_the_shortest_of_many_is_shown():
    """A small anomaly in a long history is found beside a large cycle."""
    ring = [[r(f"k{i}", None), w(f"k{(i + 1) % 7}", 1)] for i in range(7)]
    verdict = check(history(*ring, [w("p", 1), w("q", 1)], [r("p", 1), r("q", None)]),
                    load_spec("ser"))  # fmt: skip
    conclusion = verdict.violation.argument.conclusion
    assert isinstance(conclusion, CycleView)
    assert len(conclusion.edges) in (2, 7)
    assert verdict.certified


def test_lists_that_make_no_difference_stay_out():
    """Of a long transaction, only the operations of the cycle are shown; the others are counted."""
    padding = [r(f"p{i}", None) for i in range(20)]
    verdict = check(
        history([*padding, w("x", 1), w("y", 1)], [r("x", 1), r("y", None), *padding]),
        load_spec("ser"),
    )
    first, second = verdict.violation.transactions
    assert {first.omitted, second.omitted} == {20}
    assert all(len(t.operations) == 2 for t in (first, second))


def test_large_refutations_are_summarised():
    """Where no short argument exists, the text says so and still names an anomaly."""
    keys = [f"k{i}" for i in range(7)]
    values = [1, 2]
    writers = [[w(k, v)] for k in keys for v in values for _ in range(2)]
    readers = [[r(k, 1), r(m, 2)] for k in keys for m in keys if k != m]
    spec = load_spec("ser")
    verdict = check(history(*writers, tuple(readers), tuple(reversed(readers))), spec)
    assert verdict.outcome in ("valid", "invalid")
    assert verdict.certified


def test_what_the_reader_of_an_anti_dependency_wrote_is_shown():
    """That makes it a lost update, although no edge is about it."""
    lost = history(([w("x", 1)], [w("x", 2)], [r("y", None), r("x", 1), w("x", 3), w("z", 1)]))
    violation = check(lost, "si").violation
    assert violation.anomaly == "lost update-session"
    shown = {t.name: [op.text for op in t.operations] for t in violation.transactions}
    assert shown["T3"] == ["r(x, 1)", "w(x, 3)"]
