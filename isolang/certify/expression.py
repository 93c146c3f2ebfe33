"""The checkers' own reading of a check: a position automaton (Glushkov 1961) of its expression.

It shares nothing with the compiler of event graphs in :mod:`isolang.language`; both start from the
core expression. A word is a sequence of relation names along a walk; a walk from T to T violates
``acyclic e`` iff its word is in L(e)⁺ and ``irreflexive e`` iff it is in L(e).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from isolang.certify.errors import NotCertifiedError
from isolang.language.meaning.core import (
    Core,
    ForKey,
    Lift,
    Opt,
    Plus,
    Rel,
    Seq,
    Star,
    Union,
)
from isolang.language.vocabulary import (
    FILTERED,
    OF_READS,
    OVERWRITING,
    PARTS,
    RELATIONS,
    ROWS,
    STATEMENT_LETTERS,
    TESTS,
)

TO_WRITE = "to-write"
"""``ww`` to the write itself, from where only ``po`` leads on. No edge has this name: it is how a
``ww`` is read before a ``po``."""
TO_STATEMENT = ("wr", *(r for r in STATEMENT_LETTERS if ROWS[r].sort.right == "event"))
FROM_STATEMENT = ("rw", *(r for r in STATEMENT_LETTERS if ROWS[r].sort.left == "event"))
"""What leads to, and from, the statement that reads, in a check by statement."""
_KEYED = (*OF_READS, "ww")
_SEARCH_LIMIT = 200_000
"""Positions of all states of one search together."""

Passes: TypeAlias = Callable[[int, str], bool]
"""Whether a transaction of a walk, given by its place, passes a test."""


class Positions(Struct, frozen=True, dict=True):
    """The position automaton of an expression.

    Attributes:
        labels: the relation that each position reads; position 0 is the start and reads nothing.
        follow: per position, the positions that may come next.
        accepting: the positions at which a word may end (the start is never among them: see
            ``nullable``).
        nullable: whether the empty word is in the language.
    """

    labels: tuple[str, ...]
    follow: tuple[frozenset[int], ...]
    accepting: frozenset[int]
    nullable: bool

    def after(self, states: Iterable[int], label: str) -> frozenset[int]:
        """The positions reached from ``states`` by reading one ``label``."""
        return frozenset(p for q in states for p in self.follow[q] if self.labels[p] == label)

    def reads(self, word: Sequence[str], passes: Passes) -> bool:
        """Whether a walk spells a word of L(e).

        Args:
            word: the steps of the walk, without tests.
            passes: whether the transaction where step i begins, or where the last one ends, passes
                a test.
        """
        return self._run(word, passes, again=False)

    def reads_repeated(self, word: Sequence[str], passes: Passes) -> bool:
        """Whether a walk spells a word of L(e)⁺; the arguments are those of :meth:`reads`."""
        return self._run(word, passes, again=True)

    @cached_property
    def tells_reads_apart(self) -> bool:
        """Whether item reads and predicate reads are different letters."""
        return any(label in parts for parts in PARTS.values() for label in self.labels)

    def letter(self, relation: str, *, of_predicate: bool) -> str:
        """What a pair of a relation is read as; ``of_predicate``: it is by a predicate read."""
        parts = PARTS.get(relation) if self.tells_reads_apart else None
        return parts[of_predicate] if parts else relation

    def parted(self) -> tuple[Positions, dict[str, Positions]] | None:
        """The words that do not end in a last ``rw``; and what comes before the last one of others.

        The second by the relation of that last step: ``rw``, ``irw`` or ``prw``. A last ``rw`` is
        one that nothing can follow; ``None`` if there is none.
        """
        every = {p for p, label in enumerate(self.labels) if label in OVERWRITING}
        overwriting = {p for p in every if not self.follow[p]}
        if not overwriting:
            return None
        follow = tuple(after - overwriting for after in self.follow)
        before: dict[str, Positions] = {}
        for relation in sorted({self.labels[p] for p in overwriting}):
            last = {p for p in overwriting if self.labels[p] == relation}
            ends = frozenset(p for p, after in enumerate(self.follow) if p and after & last)
            before[relation] = replace(self, follow=follow, accepting=ends, nullable=False)
        return replace(self, follow=follow, accepting=self.accepting - overwriting), before

    def before_source(self) -> Positions | None:
        """What may stand before the only ``wr`` of a word, its end; ``None`` if they differ.

        Nobody reads from oneself, so a word of that ``wr`` alone is left out.
        """
        last = {p for p, label in enumerate(self.labels) if label == "wr"}
        if not last or not self.accepting <= last or any(self.follow[p] for p in last):
            return None
        ends = frozenset(p for p, after in enumerate(self.follow) if p and after & last)
        follow = tuple(after - last for after in self.follow)
        return replace(self, follow=follow, accepting=ends, nullable=False)

    def _run(self, word: Sequence[str], passes: Passes, *, again: bool) -> bool:
        if not word:
            return self.nullable
        states = frozenset({0})
        for i, label in enumerate(word):
            states = self.after(self._staying(states, i, passes, again=again), label)
        return bool(self._staying(states, len(word), passes, again=again) & self.accepting)

    def _staying(
        self, states: frozenset[int], i: int, passes: Passes, *, again: bool
    ) -> frozenset[int]:
        """What can be reached without leaving the transaction where step i begins."""
        found, work = set(states), list(states)
        while work:
            q = work.pop()
            more = {p for p in self.follow[q] if self.labels[p] in TESTS}
            more = {p for p in more if passes(i, self.labels[p])}
            if again and q in self.accepting:
                more.add(0)
            work += more - found
            found |= more
        return frozenset(found)

    @cached_property
    def repeatable(self) -> bool:
        """Whether L(e)·L(e) ⊆ L(e), so that irreflexive and acyclic say the same.

        ``False`` also when the search is cut off: the caller then takes the slower exact way.
        """
        alphabet = sorted(set(self.labels[1:]))
        # A state: the half of the word we are in, a position in that half, and all positions of
        # one copy of e that reads the whole word.
        start = (False, 0, frozenset({0}))
        seen = {start}
        work = [start]
        spent = 0
        while work:
            second, p, whole = work.pop()
            spent += len(whole)
            if p in self.accepting or (p == 0 and self.nullable):
                if second and not (
                    whole & self.accepting or (whole == frozenset({0}) and self.nullable)
                ):
                    return False
                if not second and (True, 0, whole) not in seen:
                    seen.add((True, 0, whole))
                    work.append((True, 0, whole))
            for label in alphabet:
                nexts = self.after((p,), label)
                if not nexts:
                    continue
                whole_after = self.after(whole, label)
                for p_after in nexts:
                    state = (second, p_after, whole_after)
                    if state not in seen:
                        seen.add(state)
                        work.append(state)
            if spent > _SEARCH_LIMIT:
                return False
        return True


def glushkov(expr: Core) -> Positions:
    """The position automaton of a regular expression over ``init so rt wr ww rw``.

    Raises:
        NotCertifiedError: the expression uses something else (an intersection, an inverse, another
            relation).
    """
    labels = [""]
    follow: list[set[int]] = [set()]

    def build(e: Core) -> tuple[bool, frozenset[int], frozenset[int]]:  # nullable, first, last
        letter = _letter(e)
        if letter:
            labels.append(letter)
            follow.append(set())
            one = frozenset({len(labels) - 1})
            return False, one, one
        if e == Rel("id") or e == Lift(Rel("T")):
            return True, frozenset(), frozenset()
        if isinstance(e, Union):
            built = [build(part) for part in e.parts]
            return (
                any(n for n, _, _ in built),
                frozenset().union(*(f for _, f, _ in built)),
                frozenset().union(*(last for _, _, last in built)),
            )
        if isinstance(e, Seq):
            nullable, first, last = True, frozenset[int](), frozenset[int]()
            for part in e.parts:
                n, f, la = build(part)
                for p in last:
                    follow[p] |= f
                first = first | f if nullable else first
                last = last | la if n else la
                nullable = nullable and n
            return nullable, first, last
        if isinstance(e, (Plus, Star)):
            n, f, la = build(e.arg)
            for p in la:
                follow[p] |= f
            return n or isinstance(e, Star), f, la
        if isinstance(e, Opt):
            _, f, la = build(e.arg)
            return True, f, la
        raise NotCertifiedError(f"not certified: {_describe(e)} is not part of an event graph")

    nullable, first, last = build(plain(expr))
    follow[0] |= first
    return Positions(tuple(labels), tuple(frozenset(f) for f in follow), last, nullable)


def _letter(e: Core) -> str:
    """The name of a relation or of a test; empty for anything else."""
    name, known = (
        (e.arg, TESTS) if isinstance(e, Lift) else (e, (*RELATIONS, *STATEMENT_LETTERS, TO_WRITE))
    )
    return name.name if isinstance(name, Rel) and name.key is None and name.name in known else ""


def plain(expr: Core) -> Core:
    """``expr`` without ``for x:``: the union over keys of ``ww[x]`` is ``ww``.

    Where a part of ``wr`` or ``rw`` occurs, the whole is both of its parts.

    Raises:
        NotCertifiedError: a ``for`` that ties two relations to one key.
    """
    expr = _plain(expr)
    split = any(isinstance(e, Rel) and e.name in parts for e in walk(expr)
                for parts in PARTS.values())  # fmt: skip
    return _in_parts(expr) if split else expr


def _in_parts(expr: Core) -> Core:
    if isinstance(expr, Rel) and expr.name in PARTS:
        return Union(tuple(map(Rel, PARTS[expr.name])))
    if isinstance(expr, (Union, Seq)):
        return replace(expr, parts=tuple(map(_in_parts, expr.parts)))
    if isinstance(expr, (Plus, Star, Opt)):
        return replace(expr, arg=_in_parts(expr.arg))
    return expr


def _plain(expr: Core) -> Core:
    if isinstance(expr, ForKey):
        return _over_keys(expr.key, expr.body)
    if isinstance(expr, Union):
        return Union(tuple(_plain(part) for part in expr.parts))
    if isinstance(expr, Seq):
        return Seq(tuple(_plain(part) for part in expr.parts))
    if isinstance(expr, Plus):
        return Plus(_plain(expr.arg))
    if isinstance(expr, Star):
        return Star(_plain(expr.arg))
    if isinstance(expr, Opt):
        return Opt(_plain(expr.arg))
    return expr


def _over_keys(key: str, body: Core) -> Core:
    if isinstance(body, Union):  # for x: (a | b)  =  (for x: a) | (for x: b)
        return Union(tuple(_over_keys(key, part) for part in body.parts))
    if isinstance(body, Rel) and body.key == key and body.name in _KEYED:
        return Rel(body.name)
    if isinstance(body, Lift) and isinstance(body.arg, Rel) and body.arg.key == key:
        return Lift(Rel(body.arg.name))  # [W] is the union of the [W[x]]
    if isinstance(body, Seq) and (found := _filtered(body.parts, key)) is not None:
        return found
    if isinstance(body, Seq):  # for x: (a ; b)  =  a ; (for x: b), if a does not speak of x
        speaking = [i for i, part in enumerate(body.parts) if _speaks_of(part, key)]
        if len(speaking) > 1:
            first, last = speaking[0], speaking[-1] + 1
            inner = _filtered(body.parts[first:last], key)
            if inner is not None:
                before, after = body.parts[:first], body.parts[last:]
                return _plain(Seq((*before, inner, *after)))
        elif speaking:
            parts = list(body.parts)
            parts[speaking[0]] = _over_keys(key, parts[speaking[0]])
            return _plain(Seq(tuple(parts)))
    if not _speaks_of(body, key):
        return _plain(body)
    raise NotCertifiedError(
        f"not certified: 'for {key}:' ties relations to one key, which no event graph expresses"
    )


def _speaks_of(e: Core, key: str) -> bool:
    return any(isinstance(part, Rel) and part.key == key for part in walk(e))


def _filtered(parts: tuple[Core, ...], key: str) -> Core | None:
    """``[A[x]] ; r ; [B[x]]``, where A, r and B may each be a union, as labels."""
    if len(parts) != 3:
        return None
    first, given, last = map(_alternatives, parts)
    names = []
    for a in first:
        for r in given:
            for b in last:
                ends = [end.arg if isinstance(end, Lift) else None for end in (a, b)]
                if not isinstance(r, Rel) or any(
                    not isinstance(end, Rel) or end.key != key or end.name not in TESTS
                    for end in ends
                ):
                    return None
                if r.name == "init":
                    names.append("init")  # T0 is on no cycle; nothing depends on whom it precedes
                    continue
                label = f"{r.name}[{','.join(end.name for end in ends if isinstance(end, Rel))}]"
                if label not in FILTERED:
                    return None
                names.append(label)
    return Union(tuple(map(Rel, names)))


def _alternatives(e: Core) -> tuple[Core, ...]:
    if isinstance(e, Lift) and isinstance(e.arg, Union):
        return tuple(Lift(part) for part in e.arg.parts)
    return (
        tuple(a for part in e.parts for a in _alternatives(part)) if isinstance(e, Union) else (e,)
    )


def walk(expr: Core) -> Iterator[Core]:
    """``expr`` and all its subexpressions."""
    yield expr
    for name in expr.__struct_fields__:
        value = getattr(expr, name)
        for child in value if name == "parts" else (value,):
            if isinstance(child, Core):
                yield from walk(child)


def prefix_text(expr: Core) -> str:
    """The expression as the native checker reads it: ``(| so wr (; ww (? rw)))``.

    Raises:
        NotCertifiedError: as for :func:`glushkov`.
    """
    glushkov(expr)  # refuses what the text form cannot say

    def text(e: Core) -> str:
        if isinstance(e, Union):
            return f"(| {' '.join(text(part) for part in e.parts)})"
        if isinstance(e, Seq):
            return f"(; {' '.join(text(part) for part in e.parts)})"
        if isinstance(e, (Plus, Star, Opt)):
            sign = {Plus: "+", Star: "*", Opt: "?"}[type(e)]
            return f"({sign} {text(e.arg)})"
        return _letter(e) or "id"  # [T], the only other thing that glushkov accepts

    return text(plain(expr))


def _describe(expr: Core) -> str:
    if isinstance(expr, Rel):
        return f"'{expr.name}[{expr.key}]'" if expr.key else f"'{expr.name}'"
    return f"an expression of the form {type(expr).__name__}"
