"""Histories in which only some operations have times, at every level that compares moments.

What each moment is taken to be is stated in docs/times.md; the oracle derives it from there.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from oracle import moments
from oracle.generate import well_formed
from oracle.generate_crossed import Crossed
from oracle.history import by_lines, parse, partly_timed, show
from oracle.levels import DATABASES, STATEMENTS
from oracle.pipeline import Levels, to_tool, tool_verdict_of
from oracle.simulate import as_files_say, disturbed, partly_noted, timed_history
from oracle.users import compare, pairs, random_users_text
from support.sampling import quick_first

from isolang.language.load import load_spec
from isolang.language.meaning.mentions import mentioned
from isolang.language.vocabulary import COMPARING_TIMES, VOCABULARY

LEVELS = Levels([*DATABASES, *STATEMENTS])


def drawn(number: int) -> Crossed:
    """What clients of a database note, or of one that errs, who do not note all times."""
    rng = random.Random(number)
    kind = rng.choice(list(moments.KINDS.values()))
    error: int | dict[int, int] = rng.choice((0, 0, 3))
    history = timed_history(rng, kind, fault=rng.random() < 0.6, transactions=rng.choice((3, 4)))
    if rng.random() < 0.5:
        history = disturbed(rng, history)
    history = partly_noted(rng, history)
    if not error and rng.random() < 0.4:
        history = as_files_say(rng, history)
    if error and rng.random() < 0.5:
        error = {t.session: rng.choice((0, 1, 4)) for t in history}
    return Crossed(history, None, error)


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(3), 2, rest="campaign"))
def test_databases_are_judged_as_the_oracle_does(part: int) -> None:
    """Each profile and mechanism, certified; also where files alone say of the lines' clock."""
    verdicts: Counter[tuple[str, str]] = Counter()
    lines = 0
    for number in range(part * 60, part * 60 + 60):
        crossed = drawn(number)
        if not well_formed(crossed.history) or not partly_timed(crossed.history):
            continue
        expected = LEVELS.expected(crossed.history, error=crossed.error)
        given = to_tool(crossed.history, None, crossed.error)
        lines += by_lines(crossed.history)
        for name, verdict in expected.items():
            verdicts[name, verdict] += 1
            got = tool_verdict_of(given, LEVELS.plans[name], seed=number)
            assert got == verdict, f"{name}: {show(crossed.history)}, clock error {crossed.error}"
    assert lines > 3
    assert all(verdicts[name, v] for name in LEVELS.plans for v in ("valid", "invalid"))


# --- specifications as users write them ---


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(4), rest="campaign"))
def test_specifications_as_users_write_them(part: int) -> None:
    """Whatever the words, filters and names, on any mixture of features."""
    rng = random.Random(6_000 + part)
    found: Counter[str] = Counter()
    for _ in range(60):
        for one in pairs(rng, random_users_text(rng), 3):
            assert not one.wrong, str(one)
            found[one.what.partition(",")[0]] += 1
    assert found["relational"] > 60
    assert found["event graph"] > 15


@pytest.mark.slow
def test_they_use_every_word() -> None:
    """And every word that compares times often enough."""
    rng = random.Random(7)
    used: Counter[str] = Counter()
    for _ in range(1_000):
        used.update(mentioned(load_spec(random_users_text(rng))))
    assert {word.name for word in VOCABULARY} - {"ar", "vis", "co", "conflict"} <= used.keys()
    assert min(used[word] for word in COMPARING_TIMES) > 30


#: Degenerate ones, and a history each, with what is meant.
DEGENERATE = [
    # T0 wrote every key: these never hold.
    ('irreflexive [W["x"]] as c', "r(y,nil) w(x,4)", "invalid"),
    ('irreflexive [W["x"]] as c', "r(x,nil)", "invalid"),
    ('empty [W["x"]] as c', "w(x,1)", "invalid"),
    ('empty W["y"] as c', "append(l,1) || r(y,nil)", "invalid"),
    ("acyclic id as c", "w(x,1)", "invalid"),
    # No key is called so, and T0 bears no name.
    ('irreflexive [W["a1"]] as c', "w(x,1)", "valid"),
    ('empty [W["a1"]] as c', "w(x,1)", "valid"),
    ('acyclic [label "none"] as c', "w(x,1)", "valid"),
    # Nothing leads to T0, so that `init` leads over no other transaction.
    ('for each k in "y": acyclic init | (ww[k] ; so ; ww[k]?) as c', "w(x,4)", "valid"),
    ("for each k: acyclic (ww[k] ; so ; ww[k]?) | (init ; so) as c", "w(x,4)", "valid"),
    ("for each k: acyclic ww[k] | (init ; done?) as c", "w(x,4) @1-2 || w(x,5) @3-4", "valid"),
    # Nothing that a history gives leads from T0 by the moments of operations.
    ("empty done | late | locked as c", "w(x,1) @0-9:1-2:3", "valid"),
    ("require init in late as c", "w(x,1) @0-9:1-2:3", "invalid"),
    # Where only what aborted has times of its own, the order of lines is the clock of all.
    ("empty late as c", "append(l,1) @@2-3 || !append(l,2) @@1-9:5-6:7", "valid"),
    ("empty late as c", "append(l,1) @@2-3 || r(l,[]) @@0-1 || !append(l,2) @@1-9:5-6:", "invalid"),
    ("empty late as c", "append(l,1) @@2-3 || r(l,[]) @@0-1 || ?append(l,2) @@1-:5-6:", "valid"),
    # A COMMIT of which the answer is known, of an operation whose is not.
    ("acyclic late | wr as c", "w(b,4) @4-28:4-20:28 || r(b,4) @8-12:nil:11", "invalid"),
    ("acyclic late | wr as c", "w(b,4) @4-28:4-20:11 || r(b,4) @8-12:nil:11", "valid"),
]


@pytest.mark.parametrize(("check", "history", "expected"), DEGENERATE)
def test_degenerate_specifications(check: str, history: str, expected: str) -> None:
    """Are judged as they are meant, and the verdict is certified where an engine decides it."""
    found = compare(f'include "adya.iso"\n{check}\n', Crossed(parse(history)))
    assert not found.wrong, str(found)
    assert expected in found.what
