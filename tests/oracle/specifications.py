"""Random specifications of the whole language, as text: every operator, every kind of `exists`."""

from __future__ import annotations

import random

#: Declarations, and the names that a check may use besides those given with every history.
HEADS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ('include "adya.iso"\n', ("ww", "rw")),
    ('include "prelude.iso"\nexists co : order on T containing so | wr | vo\n', ("co",)),
    (
        'include "prelude.iso"\nexists ar : order on T containing so\n'
        "exists vis : relation on T containing wr within ar\n",
        ("ar", "vis"),
    ),
    ('include "adya.iso"\nexists r : relation on T within so | wr\n', ("ww", "rw", "r")),
    ('include "adya.iso"\nexists c : choice of ww\n', ("ww", "c")),
    ('include "adya.iso"\nexists co : order on T containing so | ww\n', ("ww", "rw", "co")),
    ('include "prelude.iso"\nexists o[x] : order on R[x]\n', ("o",)),
)
_FIXED = (
    "(for x: [W[x]] ; wr[x] ; [R[x]])",
    "(for x: (W[x] * W[x]) \\ id)",
    "(tx^-1 ; po ; tx)",
    "(for y: tx^-1 ; rf[y] ; po ; tx)",
    "(tx^-1 ; cand ; tx)",
)
_BINARY = ("|", "|", ";", ";", ";", "&", "\\")
_POSTFIX = ("^-1", "^+", "^+", "^*", "?")


def random_text(rng: random.Random) -> str:
    """One or two checks over one of the declarations; now and then a flag, too."""
    head, names = rng.choice(HEADS)
    checks = "".join(_check(rng, f"c{i}", names) for i in range(rng.choice((1, 1, 2))))
    flag = f"flag {_check(rng, 'f', names)}" if rng.random() < 0.2 else ""
    return head + checks + flag


def _check(rng: random.Random, name: str, names: tuple[str, ...]) -> str:
    negated = "not " if rng.random() < 0.3 else ""
    kind = rng.choice(("acyclic", "irreflexive", "empty", "require", "require"))
    if kind == "require":
        return f"{negated}require {_expr(rng, 2, names)} in {_expr(rng, 2, names)} as {name}\n"
    return f"{negated}{kind} {_expr(rng, rng.choice((2, 3)), names)} as {name}\n"


def _expr(rng: random.Random, depth: int, names: tuple[str, ...]) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(("so", "so", "wr", "wr", "init", "id", "vo", *names * 3))
    kind = rng.random()
    if kind < 0.64:
        left, right = _expr(rng, depth - 1, names), _expr(rng, depth - 1, names)
        return f"({left} {rng.choice(_BINARY)} {right})"
    if kind < 0.7:
        return f"({_set(rng, depth - 1, names)} * {_set(rng, depth - 1, names)})"
    if kind < 0.9:
        return f"({_expr(rng, depth - 1, names)}){rng.choice(_POSTFIX)}"
    if kind < 0.95:
        return f"[{_set(rng, depth - 1, names)}]"
    return rng.choice(_FIXED)


def _set(rng: random.Random, depth: int, names: tuple[str, ...]) -> str:
    if depth == 0 or rng.random() < 0.7:
        return rng.choice(("T", "W", "R"))
    return f"{rng.choice(('domain', 'range'))}({_expr(rng, depth - 1, names)})"


#: Levels that the native engine decides, and what a check beside them may speak of.
BASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    *((name, ("ww", "rw")) for name in ("si", "ser", "psi", "pc", "pl-2", "pl-3", "cc-adya")),
    *((name, ("ww", "rw")) for name in ("si-nosession", "ra-adya", "sser", "pl-fcv", "pl-1")),
    *((name, ("co",)) for name in ("cc", "ra", "rc", "ser-co", "si-co", "pc-co")),
    *((name, ("ar", "vis")) for name in ("cc-vis", "ser-vis", "si-vis", "pc-vis", "mr", "ryw")),
)


def random_text_beside_a_level(rng: random.Random) -> str:
    """A level of the library, checks beside it, and now and then a flag."""
    name, names = rng.choice(BASES)
    count = rng.choice((0, 1, 1, 1, 2))
    checks = "".join(_check(rng, f"c{i}", names) for i in range(count))
    flag = f"flag {_check(rng, 'f', names)}" if not count or rng.random() < 0.3 else ""
    return f'include "{name}.iso"\n{checks}{flag}'


# --- as users write them ---

#: What a user includes, and what it defines beside what each history gives.
_FRAGMENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(("adya.iso", ("wr", "ww", "rw", "wr", "ww", "rw", "iwr", "pwr", "irw", "prw")),) * 5,
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
        self.lets: list[str] = []

    def text(self) -> str:
        """All of it."""
        rng = self.rng
        lets = ""
        if rng.random() < 0.4:
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
        parts = []
        for _ in range(self.rng.choice((1, 2, 2, 2, 3))):
            kind = self.rng.random()
            if kind < 0.5:
                parts.append(self.step(key=key))
            elif kind < 0.8:
                steps = [self.step(key=key) for _ in range(self.rng.choice((2, 2, 3)))]
                if self.rng.random() < 0.3:
                    steps[-1] += "?"
                parts.append(f"({' ; '.join(steps)})")
            else:
                parts.append(self.relation(1))
        return " | ".join(parts)

    def step(self, *, key: str = "") -> str:
        """From one transaction to another, perhaps with a filter at one of its ends."""
        rng = self.rng
        kind = rng.random()
        if self.lets and kind < 0.1:
            word = rng.choice(self.lets)
        elif kind < 0.17:
            of_fragment = _OF_FRAGMENT.get(self.fragment, ())
            word = rng.choice(_BY_OPERATIONS + of_fragment * 4)
        else:
            word = rng.choice(_GIVEN if rng.random() < 0.45 else self.defined)
        if word in _WITH_KEYS and key and rng.random() < 0.8:
            word += f"[{key}]"
        elif word in _WITH_KEYS and rng.random() < 0.25:
            word += f"[{rng.choice(_KEY_NAMES)}]"
        if rng.random() < 0.15:
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
