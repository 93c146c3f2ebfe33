"""Defines all relations of histories in one place, in terms of a few primitives.

An interpretation provides the elements to relate and, for each fact about them, a circuit literal
that is true if the fact holds. The interpretation of a problem has few open facts (``bounded``).
The interpretation that covers all small histories has a variable for every operation
(``isolang.comparison.symbolic``). To add a relation over sessions, times or reads, add a case to
:meth:`Interpretation.of_history`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, auto
from functools import cached_property
from typing import Final, Generic, TypeAlias, TypeVar, assert_never

from msgspec import Struct

from isolang.encodings.relational.circuit import FALSE, Circuit
from isolang.encodings.relational.relation import EMPTY, Relation, relation_of
from isolang.errors import SpecError
from isolang.language.meaning.core import Named
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import BUILTIN_UNKEYED, OF_EVENTS, ROWS, word_of

_NO_KEY: Final = -1
T0 = 0
"""The element that represents the initial transaction."""


Pair: TypeAlias = tuple[int, int, int]
"""Two elements, and the literal for a relation containing the pair."""

M = TypeVar("M")


class Moment(Enum):
    """The moments of a transaction compared by relations such as ``rt`` and ``done``."""

    BEGIN = auto()
    END = auto()
    FIRST_ANSWERED = auto()
    COMMIT_SENT = auto()
    COMMITTED = auto()
    WRITE_ANSWERED = auto()
    READ_SENT = auto()
    READ_ANSWERED = auto()


class ReadEvent(Struct, frozen=True, kw_only=True):
    """An external read.

    Attributes:
        op: the number of the operation in the history. In a symbolic history, it is the index of
            the read among the reads of the key by one transaction.
        of_predicate: whether the read is part of a predicate read, and states that the key had no
            matching row.
    """

    op: int
    reader: int
    key: int
    of_predicate: bool


class Primitives(ABC, Generic[M]):
    """The elements of an interpretation, and the literal of each fact about them.

    The elements are T0 (number 0), the other transactions and, if ``events`` is true, the
    operations. ``M`` is the type of a moment.

    Attributes:
        included: the inclusion literal of each transaction element.
    """

    circuit: Circuit
    keys: Sequence[int]
    included: Sequence[int]
    reads: Sequence[ReadEvent]
    events: bool

    @abstractmethod
    def in_session(self) -> Iterable[Pair]:
        """Return the pairs (a, b) of transactions in which a precedes b in their session."""

    @abstractmethod
    def finished(self, t: int) -> bool:
        """Return whether a transaction certainly ended before the next in its session began."""

    @abstractmethod
    def in_group(self, a: int, b: int) -> int:
        """Return the literal for two transactions belonging to the same group."""

    @abstractmethod
    def bears(self, of: Named, t: int) -> int:
        """Return the literal for a transaction's label or level matching a name."""

    @abstractmethod
    def share_label(self, a: int, b: int) -> int:
        """Return the literal for two transactions having a label in common."""

    @abstractmethod
    def key_in(self, within: KeyClass, key: int) -> int:
        """Return the literal for a class of keys containing a key."""

    @abstractmethod
    def moment(self, what: Moment, t: int, of: ReadEvent | int | None = None) -> M | None:
        """Return a moment of a transaction or of one of its operations.

        If the moment is unknown, return ``None``.
        """

    @abstractmethod
    def precedes(self, a: M, b: M) -> int:
        """Return the literal for moment a preceding moment b."""

    @abstractmethod
    def writers(self, key: int) -> Iterable[tuple[int, int]]:
        """Return the writers of a key, each with the literal for its writing the key.

        The first writer is T0.
        """

    @abstractmethod
    def happens(self, read: ReadEvent) -> int:
        """Return the literal for the history containing a read."""

    @abstractmethod
    def sources(self, read: ReadEvent) -> Iterable[tuple[int, int]]:
        """Return a read's candidates, each with the literal for being the source."""

    @abstractmethod
    def candidates(self, read: ReadEvent) -> Iterable[tuple[int, int]]:
        """Return a read's candidates, each with the literal for both existing."""

    @abstractmethod
    def shown(self, key: int) -> Relation:
        """Return the pairs (a, b) of writers for which list reads show that a precedes b."""

    @abstractmethod
    def all_events(self) -> Iterable[Pair]:
        """Return the events, each with its transaction and the literal for its happening."""

    @abstractmethod
    def program_order(self) -> Iterable[Pair]:
        """Return the pairs (a, b) of events in which a precedes b in their transaction."""

    @abstractmethod
    def one_statement(self, a: ReadEvent, b: ReadEvent) -> bool:
        """Return whether two different reads belong to the same statement."""

    @abstractmethod
    def read_event(self, read: ReadEvent) -> int:
        """Return the event of a read."""

    @abstractmethod
    def write_event(self, key: int, t: int) -> int:
        """Return the event of a transaction's last write to a key."""


class Interpretation(Primitives[M]):
    """Defines a history's relations by name, in terms of the primitives."""

    # --- sets ---

    def is_event(self, element: int) -> bool:
        """Return whether an element is an event."""
        return element >= len(self.included)

    @cached_property
    def everything(self) -> Relation:
        """The set of all elements, each with the literal for its existence."""
        events = self.all_events() if self.events else ()
        everyone = ((0, t, literal) for t, literal in enumerate(self.included))
        return relation_of([*everyone, *((0, e, literal) for e, _, literal in events)])

    def initial(self, over: Relation) -> Relation:
        """Return the pairs of ``init`` within a set."""
        members = {j: literal for _, j, literal in over.pairs()}
        if T0 not in members:
            return EMPTY
        return relation_of(
            (T0, j, self.circuit.both(members[T0], literal))
            for j, literal in members.items()
            if j != T0 and not self.is_event(j)
        )

    def reads_of(self, key: int) -> Sequence[ReadEvent]:
        """Return the external reads of a key."""
        return self._reads_by_key.get(key, ())

    @cached_property
    def _reads_by_key(self) -> dict[int, list[ReadEvent]]:
        found: dict[int, list[ReadEvent]] = defaultdict(list)
        for read in self.reads:
            found[read.key].append(read)
        return found

    # --- the meaning of each name ---

    def named(self, of: Named) -> Relation:
        """Return the set of transactions selected by a quoted name; it never contains T0."""
        both = self.circuit.both
        return relation_of(
            (0, t, both(self.bears(of, t), literal))
            for t, literal in enumerate(self.included)
            if t != T0
        )

    def of_history(self, name: str, key: int | None) -> Relation | None:
        """Return the value of a relation or set determined by the history.

        If the relation has a separate value for each key and ``key`` is ``None``, return ``None``.

        Raises:
            SpecError: if this interpretation has no such relation.
        """
        missing = name not in ROWS or (name in OF_EVENTS and not self.events)
        if key is None:
            if missing or name not in BUILTIN_UNKEYED:
                return None
            key = _NO_KEY
        if missing:
            raise SpecError(f"`{name}`: this encoding has no such relation")
        word, both = word_of(name), self.circuit.both
        pairs: Iterable[Pair]
        match word:
            case "vo":
                return self.shown(key)
            case "W":
                return relation_of((0, t, literal) for t, literal in self.writers(key))
            case "R":
                readers = ((0, read.reader, self.happens(read)) for read in self.reads_of(key))
                return self._any(readers)
            case "wr":
                return self._any(self._read_from(self.reads_of(key)))
            case "iwr" | "pwr":
                part = [r for r in self.reads_of(key) if r.of_predicate == (word == "pwr")]
                return self._any(self._read_from(part))
            case "rf" | "cand":
                origins = self.sources if word == "rf" else self.candidates
                return relation_of(
                    (self.write_event(key, s), self.read_event(read), literal)
                    for read in self.reads_of(key)
                    for s, literal in origins(read)
                )
            case "last-write":
                return relation_of(
                    (0, self.write_event(key, t), literal) for t, literal in self.writers(key)
                )
            case "T":
                pairs = ((0, t, literal) for t, literal in enumerate(self.included))
            case "init":
                pairs = self._init()
            case "so":
                following = (pair for pair in self.in_session() if self.finished(pair[0]))
                pairs = (*self._init(), *self._between(following))
            case "rt":
                pairs = (*self._init(), *self._timed(Moment.END, Moment.BEGIN))
            case "group-rt":
                pairs = (
                    (a, b, both(literal, self.in_group(a, b)))
                    for a, b, literal in self._timed(Moment.END, Moment.BEGIN)
                )
            case "same-group":
                pairs = self._alike(self.in_group)
            case "same-label":
                pairs = self._alike(self.share_label)
            case "done":
                pairs = self._timed(Moment.COMMITTED, Moment.COMMIT_SENT)
            case "late":
                pairs = self._timed(Moment.FIRST_ANSWERED, Moment.COMMIT_SENT)
            case "locked":
                pairs = self._any(self._locked()).pairs()
            case "tx":
                pairs = self.all_events()
            case "po":
                pairs = self.program_order()
            case "pred":
                missed = (read for read in self.reads if read.of_predicate)
                pairs = ((0, self.read_event(read), self.happens(read)) for read in missed)
            case "statement":
                pairs = (
                    (self.read_event(a), self.read_event(b), both(self.happens(a), self.happens(b)))
                    for a in self.reads
                    for b in self.reads
                    if a is b or self.one_statement(a, b)
                )
            case "committed-before":
                pairs = (
                    (t, self.read_event(read), literal)
                    for t, read, literal in self._other_commits(Moment.COMMITTED, before=True)
                )
            case "committed-after":
                pairs = (
                    (self.read_event(read), t, literal)
                    for t, read, literal in self._other_commits(Moment.COMMIT_SENT, before=False)
                )
            case "answered-before":
                pairs = (
                    (self.read_event(a), self.read_event(b), literal)
                    for a, answered in self._of_reads(Moment.READ_ANSWERED)
                    for b, sent in self._of_reads(Moment.READ_SENT)
                    if (first := self.precedes(answered, sent)) != FALSE
                    for literal in (both(first, both(self.happens(a), self.happens(b))),)
                )
            case (
                "label"
                | "level"
                | "id"
                | "ww"
                | "rw"
                | "irw"
                | "prw"
                | "co"
                | "ar"
                | "vis"
                | "conflict"
            ):
                raise SpecError(f"`{word}`: this encoding has no such relation")
            case _:
                assert_never(word)
        return relation_of(pairs)

    # --- functions shared by several relations ---

    def _init(self) -> Iterator[Pair]:
        return self._between((T0, t, self.included[T0]) for t in range(1, len(self.included)))

    def _between(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs, with literals that also require both transactions to be included."""
        both, included = self.circuit.both, self.included
        return ((a, b, both(literal, both(included[a], included[b]))) for a, b, literal in pairs)

    def _alike(self, alike: Callable[[int, int], int]) -> Iterator[Pair]:
        """Yield all pairs of different transactions, with the literals returned by ``alike``."""
        everyone = range(1, len(self.included))
        return self._between((a, b, alike(a, b)) for a in everyone for b in everyone if a != b)

    def _timed(self, one: Moment, other: Moment) -> Iterator[Pair]:
        """Yield the pairs (a, b) for which moment ``one`` of a precedes moment ``other`` of b.

        Pairs with T0 are left out.
        """
        later = self._of_transaction(other)
        return self._between(
            (a, b, literal)
            for a, first in self._of_transaction(one)
            for b, second in later
            if a != b and (literal := self.precedes(first, second)) != FALSE
        )

    def _locked(self) -> Iterator[tuple[int, int, int]]:
        """Yield the pairs of a key's writers with a's write answered before b's COMMIT is sent."""
        both = self.circuit.both
        for key in self.keys:
            writers = [(t, literal) for t, literal in self.writers(key) if t != T0]
            sent = [(t, literal, self.moment(Moment.COMMIT_SENT, t)) for t, literal in writers]
            for a, one in writers:
                answered = self.moment(Moment.WRITE_ANSWERED, a, key)
                for b, other, commit in sent:
                    if a != b and answered is not None and commit is not None:
                        yield a, b, both(both(one, other), self.precedes(answered, commit))

    def _of_transaction(self, what: Moment) -> list[tuple[int, M]]:
        moments = ((t, self.moment(what, t)) for t in range(1, len(self.included)))
        return [(t, moment) for t, moment in moments if moment is not None]

    def _of_reads(self, what: Moment) -> list[tuple[ReadEvent, M]]:
        moments = ((read, self.moment(what, read.reader, read)) for read in self.reads)
        return [(read, moment) for read, moment in moments if moment is not None]

    def _other_commits(
        self, commit: Moment, *, before: bool
    ) -> Iterator[tuple[int, ReadEvent, int]]:
        """Yield transactions that commit before a read is sent, or after it is answered.

        Each item is a transaction, the read, and the literal. The reader itself is left out.
        """
        both, commits = self.circuit.both, self._of_transaction(commit)
        for read, own in self._of_reads(Moment.READ_SENT if before else Moment.READ_ANSWERED):
            for t, moment in commits:
                if t != read.reader:
                    literal = self.precedes(moment, own) if before else self.precedes(own, moment)
                    there = both(self.included[t], self.happens(read))
                    yield t, read, both(literal, there)

    def _read_from(self, reads: Iterable[ReadEvent]) -> Iterator[Pair]:
        for read in reads:
            for source, literal in self.sources(read):
                yield source, read.reader, literal

    def _any(self, pairs: Iterable[Pair]) -> Relation:
        """Return the relation with the given pairs, which may repeat with different literals."""
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for a, b, literal in pairs:
            if literal != FALSE:
                found[a, b].append(literal)
        some = self.circuit.any_of
        return relation_of((a, b, some(literals)) for (a, b), literals in found.items())
