"""Every two features of a history meet at every kind of level, and are judged as they should."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from itertools import combinations, product
from typing import Final

import pytest
from support.sampling import quick_first

from isolang.api import check
from isolang.errors import UnsupportedError
from isolang.problem import build_problem
from oracle import definitions, semantics
from oracle.before import Before
from oracle.generate import well_formed
from oracle.generate_crossed import (
    BEFORE,
    FEATURES,
    ONE_VALUE_BY_NAME,
    Crossed,
    changed,
    crossed_history,
    features,
    pairs,
)
from oracle.history import is_list_key, keys, named_version, parse, show
from oracle.levels import DATABASES, GUARANTEES, LEVELS, PREDICATES, STATEMENTS, WEAK
from oracle.pipeline import DEFINED, Levels, level_of, to_tool, tool_verdict_of

#: The numbers of the histories: of each kind of level, some are met by them and some are not.
NUMBERS: Final = range(800, 1_600)

#: What the levels are defined by; each history meets one or two levels of each kind here.
LEVELS_OF: Final = {
    "dependencies": ("pl-2", "ser", "si-nosession"),
    "real time": ("sser", "strong-si-nosession"),
    "reads of a snapshot": ("ra", "psi"),
    "statements of a transaction": ("rc",),
    "session guarantees": ("mr", "wfr"),
    "items and predicates": ("pl-2-99",),
    "times of operations": ("consistent-read", "mutual-exclusion"),
    "times of statements": ("postgresql-read-committed",),
    "graphs of versions": ("pl-cs", "pl-3u"),
    "graphs of versions in real time": ("pl-fcv",),
    "executions": ("pram", "update-atomic"),
    "executions in real time": ("rss",),
    "single keys": ("per-key-causal",),
    "groups": ("strong-partition-si",),
}

_BY_GRAPHS = "Adya's graphs have registers and rows"
_BY_STATES = "an execution of the definition holds values of registers and rows, and no lists"
_BEGINS = "an execution of the definition begins with nothing"
_NAMES = "an execution of the definition knows values, and not who wrote them"
_ROWS = "which transactions read is not defined where a predicate read returned no row"

#: Features and kinds of levels that cannot meet, and why.
IMPOSSIBLE: Final[dict[tuple[str, str], str]] = {
    **{("lists", kind): _BY_GRAPHS for kind in LEVELS_OF if kind.startswith("graphs")},
    **{("lists", kind): _BY_STATES for kind in ("single keys", "groups")},
    **{("lists", kind): _BY_STATES for kind in LEVELS_OF if kind.startswith("executions")},
    **{
        (feature, kind): why
        for kind in ("executions", "executions in real time", "single keys", "groups")
        for feature, why in (
            ("initial values", _BEGINS),
            ("values instead of nil", _BEGINS),
            ("declared initial", _BEGINS),
            ("sources by name", _NAMES),
            ("versions", _NAMES),
            ("ordered versions", _NAMES),
        )
    },
    **dict.fromkeys(
        product(("predicates", "deletes"), ("session guarantees", "single keys")), _ROWS
    ),
}


def made(number: int) -> Crossed:
    """The history of a number that the tool takes."""
    rng = random.Random(number)
    while not well_formed((crossed := crossed_history(rng)).history):
        pass
    return crossed


def given(crossed: Crossed) -> object:
    """The history as the tool gets it."""
    if isinstance(crossed.initial, Before):
        return to_tool(crossed.history, crossed.initial, crossed.error)
    registers = [k for k in keys(crossed.history) if not is_list_key(crossed.history, k)]
    initial = None if crossed.initial is None else dict.fromkeys(registers, crossed.initial)
    return to_tool(crossed.history, initial, crossed.error)


@lru_cache(maxsize=1)
def levels() -> Levels:
    return Levels([name for names in LEVELS_OF.values() for name in names])


@lru_cache(maxsize=1)
def judged() -> list[tuple[Crossed, dict[str, str]]]:
    """Histories with what the oracle says of them."""
    out = []
    for crossed in map(made, NUMBERS):
        try:
            expected = levels().expected(
                crossed.history, crossed.initial, limit=3_000, error=crossed.error
            )
        except semantics.TooLargeError:
            continue
        out.append((crossed, expected))
    return out


@pytest.mark.slow
def test_every_two_features_meet() -> None:
    """No two features of a history keep each other out: a campaign crosses each pair of them."""
    met = Counter(pair for crossed, _ in judged() for pair in pairs(features(crossed)))
    one = {*combinations(BEFORE, 2)}  # what was there before is said in one way
    few = {p: met[p] for p in combinations(FEATURES, 2) if met[p] < 5 and p not in one}
    assert not few


@pytest.mark.slow
def test_every_feature_meets_every_kind_of_level() -> None:
    """What cannot meet is listed with its reason, and nothing else is missing."""
    met: set[tuple[str, str]] = set()
    for crossed, expected in judged():
        found = features(crossed)
        for kind, names in LEVELS_OF.items():
            if expected.keys() & set(names):
                met |= {(feature, kind) for feature in found}
    assert set(product(FEATURES, LEVELS_OF)) - met == IMPOSSIBLE.keys()


@pytest.mark.slow
def test_every_kind_of_level_is_met_and_missed() -> None:
    """The histories neither all have what a level asks, nor all lack it."""
    verdicts: Counter[tuple[str, str]] = Counter()
    for _, expected in judged():
        for kind, names in LEVELS_OF.items():
            verdicts.update((kind, expected[n]) for n in names if n in expected)
    few = [pair for pair in product(LEVELS_OF, ("valid", "invalid")) if verdicts[pair] < 3]
    assert not few


def test_the_kinds_have_every_definition() -> None:
    """Each table of the oracle's levels gives a level to some kind."""
    some = {level_of(name) for names in LEVELS_OF.values() for name in names}
    for table in (LEVELS, WEAK, GUARANTEES, PREDICATES, DATABASES, STATEMENTS):
        assert some & table.keys()
    by_execution = {n for n in DEFINED if DEFINED[n] in definitions.DEFINITIONS}
    assert some & by_execution
    assert some & DEFINED.keys() - by_execution


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(4), 2, rest="campaign"))
def test_the_tool_judges_them_as_the_oracle_does(part: int) -> None:
    """With a certificate that was checked, at every level that is defined for the history."""
    for number, (crossed, expected) in enumerate(judged()):
        if number % 4 != part:
            continue
        history = given(crossed)
        try:
            build_problem(history)
        except UnsupportedError:  # with a reason that the user is told
            continue
        for name, verdict in expected.items():
            got = tool_verdict_of(history, levels().plans[name], seed=number)
            assert got == verdict, f"{name}: {crossed}: {show(crossed.history)}"


def test_changes_keep_a_history_well_formed() -> None:
    """What is tampered with is still a history that the tool takes, mostly another one."""
    others = 0
    for number in range(500):
        crossed = made(number)
        other = changed(random.Random(number), crossed.history)
        if well_formed(other):
            with suppress(UnsupportedError):  # what was there before may be left open
                given(Crossed(other, crossed.initial, crossed.error))
            others += other != crossed.history
    assert others > 150


def test_notation_has_sources_by_name() -> None:
    """They are read back as they were."""
    for number in range(200):
        assert parse(show(made(number).history)) == made(number).history


def test_reads_by_name_of_one_version_return_one_value() -> None:
    """As long as the flag says so."""
    assert ONE_VALUE_BY_NAME
    seen = 0
    for number in range(500):
        history = made(number).history
        for i, t in enumerate(history):
            for j, source in t.sources:
                if isinstance(source, tuple):
                    kind, _, *value = history[source[0]].ops[source[1]]
                    assert t.ops[j][2] == (None if kind == "delete" else value[0])
                    seen += named_version(history, i, j) is not None
    assert seen > 20


# --- by hand ---


@pytest.mark.parametrize(
    ("text", "initial", "level", "expected"),
    [
        # The name of a source decides, where its value would leave a choice or none.
        ("w(x,1) || w(x,1) -> r(x,1,[0 0]) || r(x,1,[1 0]) -> r(x,1,[0 0])", None, "ser", "valid"),
        ("w(x,1) -> w(x,1) || r(x,1,[1 0]) -> r(x,1,[0 0])", None, "ser", "invalid"),
        ("w(x,1) -> w(x,1) || r(x,1) -> r(x,1)", None, "ser", "valid"),
        ("w(x,1) w(x,2) || r(x,1,[0 0])", None, "pl-2", "invalid"),
        ("!w(x,1) || r(x,1,[0 0])", None, "pl-2", "invalid"),
        ("w(x,1) || r(x,1,missing)", None, "pl-2", "invalid"),
        ("?w(x,1) || r(x,1,[0 0])", None, "pl-2", "valid"),
        # T0 by its name, its value, or nil.
        ("w(x,1) || r(x,2,initial) r(y,2)", 2, "pl-2", "valid"),
        ("w(x,1) || r(x,1,initial) r(y,2)", 2, "pl-2", "invalid"),
        ("w(x,1) || r(x,2,[0 0])", None, "pl-2", "invalid"),
        ("w(x,1) r(x,2,[0 0])", None, "pl-2", "invalid"),
        ("w(x,1) -> r(x,2)", 2, "ser", "invalid"),
        ("w(x,2) -> r(x,nil,initial)", 2, "ser", "invalid"),
        # Of a row that was loaded and deleted, nil is the deleted one.
        ("delete(x) || r(x,nil) w(y,1) || r(y,1) r(x,2)", 2, "ser", "invalid"),
        ("delete(x) || r(x,2) w(y,1) || r(y,1) r(x,nil)", 2, "ser", "valid"),
        ("!delete(x) || r(x,nil)", 2, "pl-2", "invalid"),
        ("!delete(x) || r(x,nil)", 2, "pl-1", "valid"),
        ("?delete(x) || r(x,nil)", 2, "ser", "valid"),
        ("delete(x) insert(x,3) || r(x,nil)", 2, "pl-2", "invalid"),
        # Nobody deleted the row, so nobody reads it as nil.
        ("delete(y) || r(x,nil)", 2, "pl-2", "invalid"),
        ("scan([= value 3],{}) || r(x,nil)", 2, "pl-2", "invalid"),
        ("w(y,1) || r(x,nil)", 2, "ser", "valid"),
        ("scan([= value 2],{}) || delete(x)", 2, "ser", "valid"),
        ("scan([= value 2],{}) r(x,2) || delete(x)", 2, "ra", "invalid"),
    ],
)
def test_names_and_initial_values(
    text: str, initial: int | None, level: str, expected: str
) -> None:
    """Both sides say what was found by hand."""
    crossed = Crossed(parse(text), initial)
    some = Levels([level])
    assert some.expected(crossed.history, initial) == {level: expected}
    assert tool_verdict_of(given(crossed), some.plans[level]) == expected


@pytest.mark.parametrize("error", [0, 2, {0: 2, 1: 2}])
def test_a_statement_that_says_nothing_of_any_row_has_its_times(error) -> None:
    """It takes the snapshot of its transaction, and COMMIT is sent after it, whatever it returned.

    It was no statement for the engine and both checkers once, so that they took a read from what
    committed after the snapshot for consistent.
    """
    some = Levels(["consistent-read", "mutual-exclusion"])
    silent = "scan([= value 0],{})"
    for text in (
        f"insert(z,7) @4-13:4-7:12 || {silent} r(z,7) @2-21:3-6,18-18:21",
        f"w(x,2) {silent} @0-30:9-10,29-30: || r(y,nil) r(x,2) @0-90:14-15,80-81:",
    ):
        crossed = Crossed(parse(text), None, error)
        found = some.expected(crossed.history, error=error)
        assert found == {"consistent-read": "invalid", "mutual-exclusion": "valid"}
        for name, verdict in found.items():
            told = check(given(crossed), some.plans[name])
            assert (told.outcome, told.certified) == (verdict, True), name
            assert tool_verdict_of(given(crossed), some.plans[name]) == verdict
