"""Specifications as users write them, on histories of every mixture of what one can say.

Every word of the language, every filter, names in quotes, checks that are degenerate; beside small
histories with everything that ``generate_crossed`` knows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from isolang.api import check, load_spec
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import check_proof
from isolang.errors import UnsupportedError
from isolang.language.classify.route import Route, route
from isolang.language.meaning.core import Core, ForKey, Spec
from isolang.language.meaning.mentions import children, mentioned, uses_groups
from isolang.language.vocabulary import COMPARING_TIMES, OF_READS
from isolang.pipeline.pair_run import written_spec
from isolang.verdict import Invalid

from . import relational, versions
from .generate import well_formed
from .generate_crossed import Crossed, crossed_history
from .history import History, show, timed
from .parts import OF_LISTS
from .pipeline import as_judged, initial_of, shrink, to_tool
from .predicates import lower
from .semantics import facts

_BINARY = ("|", "|", ";", ";", ";", "&", "\\")
_POSTFIX = ("^-1", "^+", "^+", "^*", "?")

#: What a user includes, and what it defines beside what each history gives.
_FRAGMENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(("adya.iso", ("wr", "ww", "rw", "wr", "ww", "rw", "iwr", "pwr", "irw", "prw")),) * 8,
    ("prelude.iso", ("wr", "iwr", "pwr")),
    ("commit-order.iso", ("wr", "co", "co", "iwr", "pwr")),
    ("visibility.iso", ("wr", "ar", "vis", "conflict", "iwr", "pwr")),
    ("statements.iso", ("wr", "ww", "rw")),
    ("operations.iso", ("wr", "ww", "rw")),
)
#: Relations of transactions that every history gives; those that compare moments often.
_GIVEN: tuple[str, ...] = (
    *("id", "init", "so", "so", "rt", "rt", "group-rt", "same-group", "same-label", "vo"),
    *("done", "done", "late", "late", "locked", "locked"),
)
#: Relations of which the engine's graphs are made.
_LETTERS: tuple[str, ...] = (
    *("wr", "ww", "rw") * 3,
    *("iwr", "prw", "pwr", "irw", "so", "rt", "done", "late", "late", "locked", "group-rt", "init"),
)
#: Relations by way of single operations, written out between transactions.
_BY_OPERATIONS: tuple[str, ...] = (
    "(committed-before ; tx)",
    "(tx^-1 ; committed-after)",
    "(tx^-1 ; answered-before ; tx)",
    "(committed-before ; statement ; committed-after)",
    "(committed-before ; answered-before ; committed-after)",
    "(tx^-1 ; statement ; po ; tx)",
    "(tx^-1 ; [pred] ; tx)",
    "(tx^-1 ; cand ; tx)",
    "(tx^-1 ; [last-write] ; po ; tx)",
)
_OF_FRAGMENT: dict[str, tuple[str, ...]] = {
    "statements.iso": (
        "(seen ; statement ; unseen)",
        "(seen ; statement ; ((answered-before | po) ; statement)? ; unseen)",
        "(seen ; answered-before ; unseen)",
    ),
    "operations.iso": (
        "(met ; statement ; missed)",
        "(met ; statement ; (po ; statement)? ; (missed | tx))",
        "(met ; po ; tx)",
    ),
    "commit-order.iso": ("obs(so | wr)", "obs(co)", "obs(late)"),
    "visibility.iso": ("obs(vis)", "obs(done)", "(vis ; vis)"),
    "prelude.iso": ("obs(so | wr)", "obs(rt)"),
}
#: Names in quotes: of keys and of labels and levels that histories have, of several, and of none.
_KEY_NAMES = ('"x"', '"y"', '"x", "y"', 'not "x"', '"*"', '"q*"', 'not "l"', '"a1"', '"z", "l"')
_BEARERS = ('label "a"', 'label "a*"', 'label "none"', 'level "ser"', 'level "s*"', 'level "rc"')
_WITH_KEYS = frozenset(("wr", "ww", "rw", "iwr", "pwr", "irw", "prw", "vo"))


class _User:
    """Somebody who writes a specification."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.fragment, self.defined = rng.choice(_FRAGMENTS)
        self.plain = self.fragment == "adya.iso" and rng.random() < 0.7
        self.lets: list[str] = []

    def text(self) -> str:
        """All of it."""
        rng = self.rng
        lets = ""
        if rng.random() < 0.4 and not self.plain:
            lets = f"let own = {self.relation(1)}\n"
            self.lets.append("own")
        count = rng.choice((1, 1, 1, 2, 2, 3))
        checks = "".join(self.check(f"c{i}") for i in range(count))
        if "own" not in checks:
            lets = ""
        return f'include "{self.fragment}"\n{lets}{checks}'

    def check(self, name: str) -> str:
        """One line."""
        rng = self.rng
        negated = "not " if rng.random() < 0.07 else ""
        each = ""
        if not negated and rng.random() < 0.12:
            some = f" in {rng.choice(_KEY_NAMES)}" if rng.random() < 0.5 else ""
            each = f"for each k{some.replace(' in not', ' not in')}: "
        kind = rng.choice(("acyclic",) * 5 + ("irreflexive", "irreflexive", "empty", "require"))
        kind = "acyclic" if self.plain and rng.random() < 0.7 else kind
        if rng.random() < 0.08:
            test = self.degenerate(kind)
        elif kind == "require":
            left, right = self.relation(1), self.relation(1)
            if rng.random() < 0.15:
                left, right = self.set(), self.set()
            test = f"require {left} in {right}"
        elif kind == "empty" and rng.random() < 0.3:
            test = f"empty {self.set()}"
        else:
            test = f"{kind} {self.cycle(key='k' if each else '')}"
        return f"{negated}{each}{test} as {name}\n"

    def degenerate(self, kind: str) -> str:
        """What says next to nothing, or too much."""
        filtered = f"[{self.set()}]"
        if kind == "require":
            return self.rng.choice((f"require {filtered} in id", f"require id in {filtered}"))
        one = self.rng.choice((filtered, filtered, "id", self.step(), f"({self.step()})?"))
        return f"{kind} {one}"

    def cycle(self, *, key: str = "") -> str:
        """Of what a check forbids the cycles, or the pairs: steps beside one another."""
        parts = [self.step(key=key)] if self.plain and self.rng.random() < 0.5 else []
        for _ in range(self.rng.choice((1, 2, 2, 2, 3))):
            kind = self.rng.random()
            if kind < 0.5:
                parts.append(self.step(key=key))
            elif kind < 0.8:
                steps = [self.step(key=key) for _ in range(self.rng.choice((2, 2, 3)))]
                if self.rng.random() < 0.3:
                    steps[-1] += "?"
                parts.append(f"({' ; '.join(steps)})")
            elif self.plain:
                parts.append(f"({self.step(key=key)} | {self.step(key=key)})^+")
            else:
                parts.append(self.relation(1))
        return " | ".join(parts)

    def step(self, *, key: str = "") -> str:
        """From one transaction to another, perhaps with a filter at one of its ends."""
        rng = self.rng
        kind = rng.random()
        if self.lets and kind < 0.1:
            word = rng.choice(self.lets)
        elif self.plain:
            word = rng.choice(_LETTERS)
        elif kind < 0.17:
            of_fragment = _OF_FRAGMENT.get(self.fragment, ())
            word = rng.choice(_BY_OPERATIONS + of_fragment * 4)
        else:
            word = rng.choice(_GIVEN if rng.random() < 0.45 else self.defined)
        if word in _WITH_KEYS and key and rng.random() < 0.8:
            word += f"[{key}]"
        elif word in _WITH_KEYS and rng.random() < 0.25:
            word += f"[{rng.choice(_KEY_NAMES)}]"
        if rng.random() < 0.15 and (not self.plain or word in ("so", "rt", "done", "late")):
            ends = rng.choice((("W", "R"), ("R", "W"), ("W", "W"), ("R", "R")))
            some = f" in {rng.choice(_KEY_NAMES)}" if rng.random() < 0.3 else ""
            some = some.replace(" in not", " not in")
            return f"(for x{some}: [{ends[0]}[x]] ; {word} ; [{ends[1]}[x]])"
        if rng.random() < 0.3:
            pieces = [f"[{self.set()}]", word]
            return f"({' ; '.join(pieces if rng.random() < 0.5 else pieces[::-1])})"
        return word

    def relation(self, depth: int) -> str:
        """Any operator."""
        rng = self.rng
        if depth == 0:
            return self.step()
        kind = rng.random()
        left = self.relation(depth - 1)
        if kind < 0.6:
            return f"({left} {rng.choice(_BINARY)} {self.relation(depth - 1)})"
        if kind < 0.9:
            return f"({left}){rng.choice(_POSTFIX)}"
        return f"({self.set()} * {self.set()})"

    def set(self) -> str:
        """Of transactions, as a filter has it."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.3:
            return rng.choice(("W", "R", "T"))
        if kind < 0.55:
            return f"{rng.choice('WR')}[{rng.choice(_KEY_NAMES)}]"
        if kind < 0.8:
            return rng.choice(_BEARERS)
        if kind < 0.92:
            a, b = rng.choice(("T", "W", "R")), rng.choice((*_BEARERS, "W", "R", 'W["x"]'))
            return f"({a} {rng.choice('&|' + chr(92) * 2)} {b})"
        return f"{rng.choice(('domain', 'range'))}({rng.choice((*self.defined, *_GIVEN))})"


def random_users_text(rng: random.Random) -> str:
    """A specification as a user may write it: every word, every filter, names in quotes.

    Some are degenerate: ``irreflexive [W["x"]]`` never holds, as T0 wrote x.
    """
    return _User(rng).text()


# --- levels ---

#: The dependencies of a level: those of reads as a whole, and those of items and predicates.
_READ_FROM = (("wr",), ("wr",), ("iwr", "pwr"), ("iwr",), ("pwr",))
_OVERWRITTEN = (("rw",), ("rw",), ("irw", "prw"), ("irw",), ("prw",))
_OF_SESSIONS = ("so", "so", "rt", "init", "done", "late")


class _LevelAuthor:
    """Somebody who writes a level: several checks over dependencies that share their relations.

    The engine combines such checks. It derives what one of them forbids from the graph of another,
    and must say which of them a cycle violates.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.read_from = rng.choice(_READ_FROM)
        self.overwritten = rng.choice(_OVERWRITTEN)
        orders = rng.sample(_OF_SESSIONS, rng.choice((0, 0, 0, 1, 1, 2)))
        self.names = (*self.read_from, "ww", *dict.fromkeys(orders))
        self.unions: list[str] = []  # those whose cycles a check forbids
        self.checks: list[str] = []

    def text(self) -> str:
        """Return the level."""
        rng = self.rng
        if rng.random() < 0.15:
            return f'include "adya.iso"\n{self.of_one_key()} as c0\n'
        kinds = (self.acyclic, self.acyclic, self.components, self.of_one_key, self.return_path)
        checks = self.checks
        for _ in range(rng.choice((1, 1, 2, 2, 2, 3))):
            checks.append(rng.choice(kinds)())
        if rng.random() < 0.06:
            checks.append(
                rng.choice(("acyclic so", "irreflexive rw", "empty [W] ; init", "acyclic id \\ id"))
            )
        rng.shuffle(checks)
        return 'include "adya.iso"\n' + "".join(
            f"{check} as c{i}\n" for i, check in enumerate(checks)
        )

    def union(self, *, overwritten: bool | None = None) -> str:
        """Return some of the relations beside one another."""
        rng = self.rng
        names = [name for name in self.names if rng.random() < 0.75]
        if overwritten or (overwritten is None and rng.random() < 0.6):
            names += [name for name in self.overwritten if rng.random() < 0.75]
        return " | ".join(names or [rng.choice(self.names)])

    def acyclic(self) -> str:
        """Return a check that forbids cycles."""
        rng = self.rng
        if rng.random() < 0.2:
            return f"acyclic ({self.union(overwritten=False)}) ; ({' | '.join(self.overwritten)})?"
        union = self.union()
        self.unions.append(union)
        return f"acyclic {union}"

    def components(self) -> str:
        """Return a check that forbids the cycles of a union which contain one of a few pairs."""
        rng = self.rng
        several = (rng.choice(self.unions) if self.unions else self.union()).split(" | ")
        # Beside a check that forbids the cycles of all but the closing pairs.
        closing = [rng.choice(("rw", "irw", "prw", *several))]
        if rng.random() < 0.4:
            several += rng.choice((self.overwritten, self.read_from))
            closing = rng.sample(several, rng.choice((1, 1, min(2, len(several)))))
        several = list(dict.fromkeys((*several, *closing)))
        if not self.unions and rng.random() < 0.6:
            self.unions.append(" | ".join(name for name in several if name not in closing) or "ww")
            self.checks.append(f"acyclic {self.unions[-1]}")
        walk = f"({' | '.join(several)})^*"
        pair = closing[0] if len(closing) == 1 else f"({' | '.join(closing)})"
        form = rng.choice((f"{pair} ; {walk}", f"{walk} ; {pair}", f"{walk} ; {pair} ; {walk}"))
        return f"irreflexive {form}"

    def of_one_key(self) -> str:
        """Return a check of walks that stay on one key."""
        rng = self.rng
        if rng.random() < 0.4:
            first, second = rng.choice(
                (("rw", "ww"), ("ww", "rw"), ("ww", "wr"), ("wr", "rw"), ("ww", "prw"))
            )
            return f"irreflexive for x: {first}[x] ; {second}[x]"
        names = ("wr", "ww", "ww", "rw", "rw", *self.overwritten, *self.read_from)
        steps = [f"{name}[x]" for name in rng.choices(names, k=rng.choice((2, 2, 2, 3)))]
        if rng.random() < 0.25:
            ends = rng.choice(("WW", "WR", "RW", "RR"))
            order = rng.choice(("so", "so", "rt"))
            steps[rng.randrange(len(steps))] = f"[{ends[0]}[x]] ; {order} ; [{ends[1]}[x]]"
        if rng.random() < 0.25:
            steps[rng.randrange(len(steps))] += rng.choice(("^+", "?", "^*"))
        kind = "irreflexive" if rng.random() < 0.8 else "acyclic"
        some = ' in "x", "l"' if rng.random() < 0.1 else ""
        return f"{kind} for x{some}: {rng.choice((' ; ', ' ; ', ' ; ', ' | ')).join(steps)}"

    def return_path(self) -> str:
        """Return a check that a walk back from an overwriting transaction violates."""
        rng = self.rng
        within = (
            rng.choice(self.unions)
            if self.unions and rng.random() < 0.7
            else self.union(overwritten=False)
        )
        closing = rng.choice(("rw", *self.overwritten))
        walk = f"({within})" + rng.choice(("^+", "^+", "^*", "", "?"))
        return f"irreflexive {rng.choice((f'{walk} ; {closing}', f'{closing} ; {walk}'))}"


def random_level_text(rng: random.Random) -> str:
    """Return a level as a user may write it: several checks over dependencies.

    Most are levels that the engine decides by its graphs.
    """
    text = _LevelAuthor(rng).text()
    for _ in range(6):
        if rng.random() < 0.1 or route(load_spec(text)).kind != "relational":
            break
        text = _LevelAuthor(rng).text()
    return text


# --- beside the tool ---

_OF_PREDICATES = frozenset(("iwr", "pwr", "irw", "prw"))

#: Assignments after which the oracle gives a history up.
LARGEST = 1_500


def users_history(rng: random.Random, spec: Spec) -> Crossed | None:
    """A history that has what the specification speaks of; or none, after some tries."""
    named = mentioned(spec)
    wanted = {"labels"} if named & {"label", "same-label"} else set[str]()
    wanted |= {"levels"} if "level" in named else set()
    wanted |= {"groups"} if uses_groups(spec) or "same-group" in named else set()
    if named & COMPARING_TIMES and rng.random() < 0.8:
        wanted.add("times of some operations" if rng.random() < 0.7 else "times of operations")
    if named & _OF_PREDICATES and rng.random() < 0.5:
        wanted.add("predicates")
    of_one_key = any(_stays_on_a_key(check.expr) for check in spec.checks)
    if named & {"ww", "rw"} and rng.random() < (0.9 if of_one_key else 0.5):
        wanted.add(rng.choice(("lists", "ordered versions")))  # the order of some versions is known
    for _ in range(10):
        crossed = crossed_history(
            rng, wanted=frozenset(wanted), hot=rng.random() < (0.7 if of_one_key else 0.3)
        )
        history = crossed.history
        if len(history) <= 4 and well_formed(history) and fits(spec, history):
            return crossed
    return None


def _stays_on_a_key(e: Core) -> bool:
    return isinstance(e, ForKey) or any(map(_stays_on_a_key, children(e)))


def fits(spec: Spec, history: History) -> bool:
    """Whether a history can be judged: it has times, groups and levels, if they are spoken of."""
    named = mentioned(spec)
    return (
        (not named & COMPARING_TIMES or timed(history))
        and (not uses_groups(spec) or any(t.group is not None for t in history))
        and ("level" not in named or any(t.level is not None for t in history))
    )


def meant(spec: Spec, crossed: Crossed) -> str:
    """``valid`` or ``invalid``, by trying everything; empty if what contradicts itself is open.

    It is not said whether a read that nothing explains is one of ``R``, where reads are not judged.

    Raises:
        TooLargeError: there is too much to try.
    """
    said, before = as_judged(crossed.history, crossed.initial, crossed.error)
    resolved = versions.resolved(said, before)
    if resolved is None:
        return "invalid" if mentioned(spec) & ({"rf", "ww"} | OF_READS) else ""
    unexplained = any(f.anomalies for f in facts(lower(resolved, before), before))
    if unexplained and "R" in mentioned(spec) and not mentioned(spec) & ({"rf"} | OF_READS):
        return ""
    valid = relational.satisfied(
        lower(resolved, before), spec, initial=before, limit=LARGEST, error=crossed.error
    )
    return "valid" if valid else "invalid"


def told(crossed: Crossed, way: Route, *, seed: int = 0) -> tuple[str, str]:
    """What the tool says, and why that is not certified."""
    initial = initial_of(crossed.history, crossed.initial)
    try:
        given = to_tool(crossed.history, initial, crossed.error)
        verdict = check(given, way, seed=seed, timeout=30)
    except UnsupportedError:
        return "unsupported", ""
    if verdict.outcome == "unknown":
        return verdict.cause if verdict.cause == "unsupported" else f"unknown: {verdict.reason}", ""
    if isinstance(verdict, Invalid) and verdict.violation.anomaly in OF_LISTS:
        return "invalid, of lists", ""
    if not verdict.certified:
        return verdict.outcome, verdict.certified_reason or "no reason"
    if way.kind == "relational":
        return verdict.outcome, ""
    try:
        check_proof(verdict.history, written_spec(way), verdict.certificate().proof, 30)
    except CertificateRejected as error:
        return verdict.outcome, f"rejected by definition: {error}"
    except NotCertifiedError:  # too large for this checker
        pass
    return verdict.outcome, ""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a specification and a history: whether it is wrong, and how to see it again."""

    what: str
    wrong: bool = False
    text: str = ""
    crossed: Crossed | None = None
    as_found: str = ""

    def __str__(self) -> str:
        if self.crossed is None:
            return self.what
        beside = f"initial {self.crossed.initial}, clock error {self.crossed.error}"
        found = f"\nas found: {self.as_found}" if self.as_found else ""
        return f"{self.what}\n{self.text}{show(self.crossed.history)}\n{beside}{found}"


def compare(text: str, crossed: Crossed, *, seed: int = 0) -> Found:
    """Tool and oracle on one pair."""
    spec = load_spec(text)
    way = route(spec)
    try:
        expected = meant(spec, crossed)
    except relational.TooLargeError:
        return Found("too large for the oracle")
    if not expected:
        return Found("what contradicts itself")
    got, uncertain = told(crossed, way, seed=seed)
    if got == "unsupported":
        return Found(got)
    if got == "invalid, of lists" and expected == "valid":
        return Found("of lists")  # which the oracle knows only where an order must contain them
    if got.partition(",")[0] != expected:
        return Found(f"expected {expected}, got {got}", True, text, crossed)
    if "rejected" in uncertain or (way.kind != "relational" and uncertain):
        return Found(f"{got}, not certified: {uncertain}", True, text, crossed)
    return Found(f"{way.kind}, {expected}{', not certified' if uncertain else ''}")


def pairs(
    rng: random.Random,
    text: str,
    count: int,
    *,
    compared: Callable[[str, Crossed], None] = lambda text, crossed: None,
) -> Iterator[Found]:
    """The same for up to ``count`` histories; whatever else the tool does is wrong, too.

    Calls ``compared`` before each comparison.
    """
    spec = load_spec(text)
    for number in range(count):
        crossed = users_history(rng, spec)
        if crossed is None:
            yield Found("no history of what it speaks of")
            continue
        compared(text, crossed)
        try:
            yield compare(text, crossed, seed=number)
        except Exception as error:
            yield Found(f"{type(error).__name__}: {error}", True, text, crossed)


def smaller(found: Found) -> Found:
    """The same disagreement with a smaller history and fewer checks."""
    assert found.crossed is not None
    crossed, text = found.crossed, found.text

    def still(history: History, text: str) -> bool:
        if not well_formed(history) or not fits(load_spec(text), history):
            return False
        try:
            return compare(text, Crossed(history, crossed.initial, crossed.error)).wrong
        except Exception:  # another one, or what the tool refuses
            return False

    for fewer in _fewer_checks(text):
        if still(crossed.history, fewer):
            text = fewer
            break
    if not still(crossed.history, text):
        return found
    history = shrink(crossed.history, lambda h: still(h, text))
    small = compare(text, Crossed(history, crossed.initial, crossed.error))
    return replace(small, as_found=show(crossed.history))


def _fewer_checks(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    of_check = [i for i, line in enumerate(lines) if not line.startswith(("include", "let"))]
    if len(of_check) > 1:
        for kept in of_check:
            yield "".join(line for i, line in enumerate(lines) if i == kept or i not in of_check)
