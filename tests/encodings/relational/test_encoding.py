"""The relational encoding agrees with brute force: on every level and style, and on anything."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest
from oracle import relational as oracle
from oracle.generate import any_history, litmus_table, random_history
from oracle.history import History, has_time, parse, show, timed, with_wide_times
from oracle.pipeline import to_tool
from oracle.specifications import random_text
from support.sampling import quick_first

from isolang.api import check
from isolang.history import History as ToolHistory
from isolang.history import Transaction
from isolang.language.classify.relational import relational
from isolang.language.classify.theorems import event_graph_form
from isolang.language.library import list_library
from isolang.language.load import load_spec
from isolang.language.meaning.core import Spec
from isolang.language.meaning.mentions import mentioned, uses_groups
from isolang.language.vocabulary import COMPARING_TIMES
from isolang.verdict import Valid

load = cache(load_spec)
STYLED = [entry.name for entry in list_library() if not entry.alias_of]
ROWS = {row["history"]: row for row in litmus_table()}
COLUMNS = {c for c in litmus_table()[0] if c not in ("history", "operations")}

# List reads that contradict one another are anomalies by themselves; the oracle knows them only
# where an order must contain what they show.
OF_LISTS = ("incompatible order", "G0", "duplicate element")


def level_of(name: str) -> str:
    for style in ("-adya", "-co", "-vis"):
        name = name.replace(style, "")
    return name


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", quick_first([n for n in STYLED if level_of(n) in COLUMNS], 15, rest="campaign")
)
def test_litmus(name: str) -> None:
    """Every style of a level gives the table's verdict, certified."""
    route = relational(load(name))
    wrong = {}
    for history, row in ROWS.items():
        parsed = parse(row["operations"])
        if len(parsed) > 5 and "-vis" in name:
            continue  # that many visibilities are not tried one by one in a test
        verdict = check(to_tool(parsed if has_time(parsed) else with_wide_times(parsed)), route)
        if verdict.outcome != row[level_of(name)] or not verdict.certified:
            wrong[history] = (verdict.outcome, verdict.certified_reason)
    assert not wrong


def small(rng: random.Random) -> History:
    while True:
        history = (any_history if rng.random() < 0.6 else random_history)(rng)
        if len(history) <= 4:
            return history


def differs(history: History, spec: Spec) -> str:
    """How the tool and the oracle differ; empty if they do not, or if nobody can say."""
    if COMPARING_TIMES & mentioned(spec) and not timed(history):
        return ""
    if uses_groups(spec):
        history = tuple(replace(t, group="ab"[t.session % 2]) for t in history)
    try:
        expected = "valid" if oracle.satisfied(history, spec, limit=1_500) else "invalid"
    except oracle.TooLargeError:
        return ""
    verdict = check(to_tool(history), relational(spec))
    if verdict.outcome == "unknown" and verdict.cause == "unsupported":
        return ""
    if verdict.outcome != expected:
        if verdict.outcome == "invalid" and verdict.violation.anomaly in OF_LISTS:
            return ""
        reason = verdict.reason if verdict.outcome == "unknown" else ""
        return f"{spec.name}: expected {expected}, got {verdict.outcome} {reason}: {show(history)}"
    if isinstance(verdict, Valid) and any(c.flag for c in spec.checks):
        held = oracle.flags(history, spec)
        said = {n: f"flag `{n}` holds" in verdict.notes for n in held}
        if said != held:
            return f"{spec.name}: flags {held}, said {said}: {show(history)}"
    return ""


@pytest.mark.parametrize("seed", range(3))
def test_levels_on_random_histories(seed: int) -> None:
    """The library's levels, on histories in which levels differ."""
    rng = random.Random(100 + seed)
    for _ in range(80):
        assert differs(small(rng), load(rng.choice(STYLED))) == ""


@pytest.mark.parametrize("seed", range(4))
def test_random_specifications(seed: int) -> None:
    """Every operator, kind of `exists`, `not` and `flag`."""
    rng = random.Random(200 + seed)
    for _ in range(24):
        text = random_text(rng)
        spec = load_spec(text)
        for _ in range(3):
            found = differs(small(rng), spec)
            assert found == "", text


def with_unknown_outcomes(rng: random.Random, history: History) -> History:
    return tuple(
        replace(t, status="maybe") if t.status == "committed" and rng.random() < 0.45 else t
        for t in history
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", quick_first(range(3), rest="campaign"))
def test_transactions_that_nobody_reads_from_are_tried_both_ways(seed: int) -> None:
    """Specifications to which it matters whether they took effect; and each verdict is proved."""
    rng = random.Random(300 + seed)
    left, kept = 40, set()
    while left:
        text = random_text(rng)
        spec = load_spec(text)
        route = relational(spec)
        if not route.unread_matter:
            continue
        left -= 1
        history = with_unknown_outcomes(rng, small(rng))
        assert differs(history, spec) == "", text
        verdict = check(to_tool(history), route)
        assert verdict.certified or verdict.outcome == "unknown", text
        kept |= {n.rpartition(": ")[2] for n in verdict.notes if "unknown outcome" in n}
    assert "none" in kept
    assert len(kept) > 1


def test_which_unread_transactions_took_effect() -> None:
    """The witness says which; a flag is judged with them, too."""
    text = 'include "adya.iso"\nnot empty ww \\ init as overwritten\n'
    verdict = check(to_tool(parse("w(x,1) || ?w(x,2) || ?w(y,1)")), load_spec(text))
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert 1 in verdict.witness.included
    assert any("unknown outcome these took effect: T2" in note for note in verdict.notes)
    verdict = check(to_tool(parse("w(x,1) || ?w(y,2)")), load_spec(text))
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    text = 'include "adya.iso"\nacyclic ww as c\nflag not empty ww \\ init as overwritten\n'
    verdict = check(to_tool(parse("w(x,1) || ?w(x,2)")), load_spec(text))
    assert "flag `overwritten` does not hold, because some choice satisfies it" in verdict.notes


def test_a_list_that_only_an_unread_transaction_shows() -> None:
    """It orders what it shows if its reader took effect."""
    text = 'include "adya.iso"\nrequire for x: [W[x]] ; so ; [W[x]] in ww^-1 ; ww^* as backwards\n'
    spec = load_spec(text)
    for operations in (
        "append(x,1) -> append(x,2) || ?r(x,[1 2])",
        "append(x,1) || append(x,2) || ?r(x,[1 2]) || ?r(x,[2 1])",
    ):
        history = parse(operations)
        expected = "valid" if oracle.satisfied(history, spec) else "invalid"
        verdict = check(to_tool(history), spec)
        assert (verdict.outcome, verdict.certified) == (expected, True)


@pytest.mark.parametrize("certify", [True, False])
@pytest.mark.parametrize(
    "check_text",
    [
        "acyclic vo as c",
        "not acyclic vo as c",
        "require for x: (([W[x]] ; so ; [W[x]]) \\ init) in vo as c",
        "require vo in so as c",
    ],
)
def test_lists_that_contradict_each_other(check_text: str, certify: bool) -> None:
    """`vo` is what all list reads show, also if no order contains it.

    The search took what one of them shows: without a certificate, its verdict was wrong.
    """
    spec = load_spec(f'include "prelude.iso"\n{check_text}\n')
    for operations in (
        "append(x,1) -> append(x,2) || r(x,[1 2]) || r(x,[2 1])",
        "append(x,1) -> append(x,2) || r(x,[2 1]) || r(x,[1 2])",
        "append(x,1) append(x,3) || append(x,2) || r(x,[1 2 3])",
        "append(x,1) -> append(x,2) || r(x,[1 2]) || ?r(x,[2 1])",
    ):
        history = parse(operations)
        expected = "valid" if oracle.satisfied(history, spec) else "invalid"
        verdict = check(to_tool(history), spec, certify=certify)
        assert verdict.outcome == expected, operations


def test_a_reread_may_have_two_sources() -> None:
    """Two reads of one value by one transaction are not merged: RC depends on it."""
    history = parse("w(x,1) -> w(x,2) w(y,5) -> w(x,1) w(y,7) || r(x,1) r(y,5) r(x,1)")
    verdict = check(to_tool(history), relational(load("rc")))
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    history = parse("w(x,1) -> w(x,2) w(y,5) || r(x,1) r(y,5) r(x,1)")
    verdict = check(to_tool(history), relational(load("rc")))
    assert (verdict.outcome, verdict.certified) == ("invalid", True)


def test_the_part_to_blame_is_small_and_named() -> None:
    """Of a long history the two transactions, and the two checks, that cannot be met."""
    more = [Transaction([("r", "z", None), ("w", f"k{i}", i)], session=i % 4) for i in range(40)]
    lost = [Transaction([("r", "x", None), ("w", "x", i)], session=4 + i) for i in (1, 2)]
    history = ToolHistory.from_transactions([*more[:20], lost[0], *more[20:], lost[1]])
    verdict = check(history, relational(load("psi-vis")))
    assert verdict.outcome == "invalid"
    assert verdict.certified
    assert verdict.violation.anomaly == "no assignment"
    assert [t.name for t in verdict.violation.transactions] == ["T21", "T42"]
    text = verdict.violation.argument.conclusion.text
    assert "`EXT` and `NOCONFLICT`" in text
    assert "TRANSVIS" not in text


def test_what_is_shown() -> None:
    """`show` is evaluated on the relations that were chosen."""
    text = (
        'spec s\ninclude "commit-order.iso"\nrequire obs(co) in co as c\n'
        "show [W] ; wr as read-from\nshow domain(wr) as sources\n"
    )
    history = to_tool(parse("w(x,1) || r(x,1)"))
    verdict = check(history, relational(load_spec(text)))
    assert "read-from: T1 → T2" in verdict.notes
    assert "sources: T1" in verdict.notes
    assert any("is decided relationally: 2 transactions" in note for note in verdict.notes)


def test_what_is_shown_by_every_engine() -> None:
    """Of the relations that a theorem makes, of version orders, and of what is given."""
    history = to_tool(parse("w(x,1) || r(x,1)"))
    text = 'include "commit-order.iso"\nrequire obs(co) in co as c\n'
    text += "show co as commits\nshow wr as read\n"
    verdict = check(history, load_spec(text))
    assert verdict.notes[-2:] == ("commits: T1 → T2, T0 → T1, T0 → T2", "read: T1 → T2")
    text = text.replace("obs(co)", "obs(so | wr)")  # saturation: no commit order is made
    verdict = check(history, load_spec(text))
    assert "commits: not evaluated, because it needs `co`" in verdict.notes[-2]
    assert verdict.notes[-1] == "read: T1 → T2"
    text = 'include "adya.iso"\nacyclic so | wr | ww | rw as c\nshow [W] ; rw as overtaken\n'
    verdict = check(
        to_tool(parse("r(x,nil) w(y,1) || r(y,nil) w(x,1)")), load_spec(f"{text}show wr as w\n")
    )
    assert verdict.outcome == "invalid"
    assert "overtaken: not evaluated, because it needs `rw`; no choice" in verdict.notes[-2]
    assert verdict.notes[-1] == "w: T0 → T1, T0 → T2"
    verdict = check(to_tool(parse("r(x,nil) w(y,1) || w(x,1)")), load_spec(text))
    assert verdict.notes[-1] == "overtaken: T1 → T2"


def test_the_cost_is_said_and_bounded() -> None:
    """What would take minutes and gigabytes is not begun."""
    many = [Transaction([("w", "x", i)], session=i) for i in range(700)]
    verdict = check(ToolHistory.from_transactions(many), relational(load("si-vis")))
    assert verdict.outcome == "unknown"
    assert "is too much work (700 transactions make more than" in verdict.reason


def test_the_deadline_holds_while_encoding() -> None:
    """The time also ends what Python does."""
    many = [Transaction([("r", "y", None), ("w", "x", i)], session=i) for i in range(180)]
    history = ToolHistory.from_transactions(many)
    verdict = check(history, relational(load("psi-vis")), timeout=0.3)
    assert (verdict.outcome, verdict.cause) == ("unknown", "timeout")


def test_a_hundred_commit_orders() -> None:
    """A total order over 300 transactions is a matter of moments, and its order is certified."""
    many = [
        Transaction(
            [("r", "x", i or None), ("w", "x", i + 1), ("w", f"k{i % 7}", i)], session=i % 5
        )
        for i in range(300)
    ]
    spec = load("ser-co")
    verdict = check(ToolHistory.from_transactions(many), relational(spec))
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert event_graph_form(spec) is not None
