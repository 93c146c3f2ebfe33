"""Specifications with one thing changed: a check dropped, an operator or a relation exchanged; and
which histories tell them apart.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Literal

from msgspec.structs import replace

from isolang.language.load import load_spec
from isolang.language.meaning import core
from isolang.language.meaning.mentions import children, mentioned, rebuild
from isolang.language.meaning.show import show_check, show_exists

from . import relational
from .concrete import EVENT_NAMES, given, satisfiable
from .concrete_histories import SmallHistory, all_histories, random_histories
from .generate import litmus_table
from .guarantees import GUARANTEE_LITMUS
from .history import History, has_time, parse, timed, with_wide_times

#: What a relation is exchanged for.
_OTHER = {
    "so": ("init",),
    "rt": ("init",),
    "wr": ("so", "ww"),
    "ww": ("wr", "vo"),
    "rw": ("ww",),
    "co": ("so",),
    "ar": ("vis",),
    "vis": ("ar", "so"),
    "po": ("id",),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A specification, and the check or declaration that was changed, as it reads now."""

    what: str
    spec: core.Spec


def mutants(spec: core.Spec) -> Iterator[Mutant]:
    """Every change of one place, each once."""
    seen = {_key(spec)}
    chosen = {e.name for e in spec.exists}
    unknown = {"ww", "rw", "co", "ar", "vis"} - chosen - ({"rw"} if "ww" in chosen else set())
    for mutant in _all(spec):
        key = _key(mutant.spec)
        if key not in seen and not unknown & mentioned(mutant.spec):
            seen.add(key)
            yield mutant


def _key(spec: core.Spec) -> object:
    return (
        tuple((c.kind, c.expr, c.bound) for c in spec.checks),
        spec.exists,
    )


def _all(spec: core.Spec) -> Iterator[Mutant]:
    for i, check in enumerate(spec.checks):

        def changed(new: core.Check, i: int = i) -> Mutant:
            checks = (*spec.checks[:i], new, *spec.checks[i + 1 :])
            return Mutant(show_check(replace(new, title="")), replace(spec, checks=checks))

        rest = (*spec.checks[:i], *spec.checks[i + 1 :])
        yield Mutant(f"without {check.name}", replace(spec, checks=rest))
        if check.kind in ("acyclic", "irreflexive"):
            other = "irreflexive" if check.kind == "acyclic" else "acyclic"
            yield changed(replace(check, kind=other))
        for new in _changes(check.expr):
            yield changed(replace(check, expr=new))
        if check.bound is not None:
            for new in _changes(check.bound):
                yield changed(replace(check, bound=new))
    for i, exists in enumerate(spec.exists):
        if exists.name in ("rf", "ww"):
            continue

        def declared(new: core.Exists, i: int = i) -> Mutant:
            return Mutant(
                show_exists(new),
                replace(spec, exists=(*spec.exists[:i], new, *spec.exists[i + 1 :])),
            )

        if exists.containing is not None:
            for new in _changes(exists.containing):
                yield declared(replace(exists, containing=new))
        if exists.within is not None:
            yield declared(replace(exists, within=None))


def _changes(e: core.Core) -> Iterator[core.Core]:
    """The expression with one change."""
    yield from _here(e)
    parts = children(e)
    for i, part in enumerate(parts):
        for new in _changes(part):
            yield rebuild(e, (*parts[:i], new, *parts[i + 1 :]))


def _here(e: core.Core) -> Iterator[core.Core]:
    match e:
        case core.Rel(name=name, key=key):
            for other in _OTHER.get(name, ()):
                keyed = key if other in ("wr", "ww", "vo", "rw") else None
                yield core.Rel(other, keyed)
        case core.Union(parts=parts) | core.Seq(parts=parts) | core.Inter(parts=parts):
            for i in range(len(parts)):
                left = (*parts[:i], *parts[i + 1 :])
                yield left[0] if len(left) == 1 else type(e)(left)
            if isinstance(e, core.Seq):
                yield core.Union(parts)
        case core.Diff(left=left):
            yield left
        case core.Opt(arg=arg) | core.Inverse(arg=arg):
            yield arg
        case core.Plus(arg=arg):
            yield arg
            yield core.Star(arg)
        case core.Star(arg=arg):
            yield core.Opt(arg)
            yield core.Plus(arg)


# --- telling apart ---

#: Transactions of a litmus history, and assignments that are tried of any, at most.
MOST, LIMIT = 4, 3_000


#: Where what must have come before is forced, but not by what is seen: two conflicts of snapshots,
#: two orders of versions that only lists show, and three of which none sees another.
FORCED = (
    "w(x,1) -> append(y,1) || r(x,nil) append(y,2) || r(y,[1 2])",
    "w(x,1) w(z,1) || r(z,1) append(y,1) || r(x,nil) append(y,2) || r(y,[1 2])",
    "append(x,1) w(q,1) || r(z,nil) append(x,2) w(y,1) || r(x,[1 2]) || r(y,1) r(q,nil)",
    "w(p,1) || r(p,1) append(x,1) || append(x,2) r(p,nil) || r(x,[1 2])",
    "r(y,nil) r(z,nil) w(x,1) || r(x,nil) r(z,nil) w(y,1) || r(x,nil) r(y,nil) w(z,1)",
)


@cache
def litmus() -> tuple[History, ...]:
    """The litmus histories, with times, small ones first."""
    texts = [row["operations"] for row in litmus_table()]
    texts += [*(text for text, _ in GUARANTEE_LITMUS), *FORCED]
    histories = sorted(map(parse, texts), key=len)
    return tuple(h if has_time(h) else with_wide_times(h) for h in histories if len(h) <= MOST)


class Judge:
    """One level against its mutants; what is known of it is remembered.

    Args:
        name: of the library.
        samples: random histories of three transactions, and a fortieth as many of four.
    """

    def __init__(self, name: str, *, samples: int) -> None:
        self.name = name
        self.spec = load_spec(name)
        self._samples = samples
        self._litmus: dict[History, bool | None] = {}
        self._small: dict[SmallHistory, bool | None] = {}

    def caught(self, mutant: Mutant) -> Literal["litmus", "small", ""]:
        """By which histories a mutant is told from the level."""
        return self.differs(mutant.spec)

    def differs(self, other: core.Spec) -> Literal["litmus", "small", ""]:
        """By which histories another specification is told from the level."""
        if any(self._differ(history, other) for history in litmus()):
            return "litmus"
        if any(self._small_differ(history, other) for history in self._histories()):
            return "small"
        return ""

    def _differ(self, history: History, other: core.Spec) -> bool:
        if "rt" in mentioned(self.spec) and not timed(history):
            return False
        if history not in self._litmus:
            self._litmus[history] = _verdict(history, self.spec)
        got = _verdict(history, other)
        return None not in (got, self._litmus[history]) and got != self._litmus[history]

    def _histories(self) -> Iterator[SmallHistory]:
        real_time, orders = ("rt" in mentioned(self.spec), "po" in mentioned(self.spec))
        options = {"real_time": real_time, "orders": orders}
        for size, keys in ((1, 1), (2, 1), (1, 2), (2, 2), (3, 1)):
            for lists in (False, True):
                yield from all_histories(size, keys, lists=lists, **options)
        rng = random.Random(self.name)
        yield from islice(random_histories(rng, 3, 2, **options), self._samples)
        if not real_time:
            yield from islice(random_histories(rng, 4, 2, **options), self._samples // 40)

    def _small_differ(self, history: SmallHistory, other: core.Spec) -> bool:
        if history not in self._small:
            self._small[history] = _small_verdict(history, self.spec)
        got = _small_verdict(history, other)
        return None not in (got, self._small[history]) and got != self._small[history]


def _verdict(history: History, spec: core.Spec) -> bool | None:
    try:
        return relational.satisfied(history, spec, limit=LIMIT)
    except relational.TooLargeError:
        return None


class _Enough(Exception):  # noqa: N818 - it ends a search
    pass


def _small_verdict(history: SmallHistory, spec: core.Spec) -> bool | None:
    base = given(history, events=bool(mentioned(spec) & EVENT_NAMES))
    left = LIMIT

    def tick() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise _Enough

    try:
        return satisfiable(base, spec, spec.checks, tick)
    except _Enough:
        return None


_INIT = "every ww, co, ar and vis contains init"
_INIT_RT = "rt contains init"
_EXTENDS = (
    "an order that only one cycle check needs exists iff its lower bound is acyclic (Szpilrajn)"
)
_CO = "co is transitive"
_LEAST = "the least visibility that the checks allow is within ar already, and ar contains it"
_RW = "no rw pair is a loop"
_SUM = "a cycle of a relation is one of its closure"
_SEEN = "of two writers of a key one sees the other"
_BOTH = "each pair of writers stands there both ways round, and one of these is in ar"
_ALL_SEEN = "vis is ar"
_READER = "a transaction that reads nothing need see T0 only"
_WRITER = "who wrote nothing is seen by nobody, and may be last in ar"

#: Why a mutant is the same level: the level and the mutant as patterns, and the reason.
EQUIVALENT: tuple[tuple[str, str, str], ...] = (
    (".*-nosession", r"exists (co|ar) : order on T containing wr \| vo", _INIT),
    (".*-nosession|ryw|mr|mw|wfr", r"exists vis : .* containing wr within ar", _INIT),
    (
        ".*-nosession",
        r"acyclic (wr \| ww|wr\^\+ \| ww|wr ; rw\? \| ww|\(wr \| ww\) ; rw\?).*",
        _INIT,
    ),
    (".*-nosession", r"acyclic (rt \| )?wr \| ww \| rw as .*", _INIT),
    (".*-nosession", r"acyclic \(rt \| wr \| ww\) ; rw\? as .*", _INIT),
    (".*-nosession", r"irreflexive (wr|wr\^\+|\(wr \| ww\)\^\+) ; rw\??.*", _INIT),
    (".*-nosession", r"require .*\[W\[x\]\] ; (wr|wr\^\+|\(co\^\* ; wr\)) ; wr.*", _INIT),
    ("strong-si-co-nosession", r"require .*\(co\^\* ; \(rt \| wr\)\) ; wr.* as prefix", _INIT_RT),
    ("pl-[12]", r"acyclic (wr \| )?vo as .*", _EXTENDS),
    (".*-co.*", r"require .*\(co\? ; .*", _CO),
    ("cc-adya.*", r"acyclic \((so|init) \| wr\) \| ww as .*", _SUM),
    ("cc-adya.*", r"irreflexive \((so|init) \| wr\)\^\* ; rw as .*", _RW),
    (".*-vis.*|ryw|mr|mw|wfr", r"exists ar : .*", _LEAST),
    ("(psi|si|strong-si)-vis.*", r"require .*; vis ; wr.* in vis as EXT", _SEEN),
    (
        "(psi|si|strong-si)-vis.*",
        r"require .* in (ar \| vis\^-1|vis \| ar\^-1) as NOCONFLICT",
        _BOTH,
    ),
    ("s?ser-vis.*", r"require .*; (ar|vis) ; wr\[x\]\^-1\) \\ id in (ar|vis) as EXT", _ALL_SEEN),
    ("s?ser-vis.*", r"exists vis : .*", _ALL_SEEN),
    ("sser-vis.*", r"require rt in vis as real-time", _ALL_SEEN),
    ("mr", r"require vis ; so ; \[R\] in vis as MR", _READER),
    ("mw", r"require \[W\] ; so in ar as MW-order", _WRITER),
    ("mw", r"require \[W\] ; so ; vis in vis as MW", _WRITER),
    ("(ra|cc|pc|ser|sser)-vis.*|mw|wfr", r"exists vis : .* containing (so|init) \| wr", _LEAST),
    ("wfr", r"require vis ; so\? ; \[W\].*", _READER),
    ("wfr", r"require vis ; \[R\] ; so\? (in ar|; vis in vis) as .*", _WRITER),
    ("wfr", r"require vis ; \[R\] ; so ; \[W\] in ar as WFR-order", "vis is within ar"),
)


def equivalent(level: str, mutant: Mutant) -> str:
    """Why a mutant is the same level; empty if nobody knows."""
    for levels, what, why in EQUIVALENT:
        if re.fullmatch(levels, level) and re.fullmatch(what, mutant.what):
            return why
    return ""
