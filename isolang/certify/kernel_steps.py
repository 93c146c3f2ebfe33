"""Writes a refutation as the steps that the kernel checks.

A refutation of isolang leaves out facts that its checkers derive themselves: which transactions
certainly count, that a read has one source, that two orders of two writers are opposites. For the
kernel each such fact is a step of its own, which this module adds where a literal first needs it.
The kernel does not search either, so a step by unit propagation names the clauses that it uses, in
their order.

A mistake in this module makes the kernel refuse a proof; it cannot make the kernel accept one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from isolang.certify import steps as s
from isolang.certify.anomalies import Anomaly
from isolang.certify.cycles import Cycles
from isolang.certify.history_index import COMMITTED, FROM_MISSING, INDETERMINATE
from isolang.certify.kernel_text import HistoryText, LevelText, beyond
from isolang.certify.proofs import Refutation
from isolang.language.meaning.core import Spec

_ROUNDS: Final = 3
"""How often the kernel applies the axioms of an order to the edges of a cycle."""


def refutation_text(text: HistoryText, level: LevelText, spec: Spec, proof: Refutation) -> str:
    """Return a refutation as text.

    Raises:
        NotCertifiedError: the kernel does not know one of the steps.
    """
    writer = _Steps(text, level, spec)
    for step in proof.steps:
        writer.add(step)
        if writer.is_done:
            break
    return writer.text()


class _Steps:
    """The literals and steps so far.

    A literal is a number; its negation is the negative number. A clause is a list of literals. The
    number of a step is its place, from 1 on.
    """

    def __init__(self, text: HistoryText, level: LevelText, spec: Spec) -> None:
        self._text = text
        self._facts = text.facts
        self._level = level
        self._cycles = None if level.order is None else Cycles(text.facts, spec)
        self._atoms: dict[tuple[object, ...], int] = {}
        self._is_inclusion: set[int] = set()
        self._steps: list[str] = []
        self._clauses: list[list[int]] = [[]]  # steps are numbered from 1
        self._with: defaultdict[int, list[int]] = defaultdict(list)  # literal -> steps
        self._units: list[int] = []
        self._sources_of: defaultdict[int, list[int]] = defaultdict(list)
        self._is_done = False
        self._forced_stated = False
        self._compared: set[tuple[int, int, int]] = set()  # keys and writers
        self._telling_of: dict[int, list[int]] = {}  # key -> list reads

    @property
    def is_done(self) -> bool:
        """Return whether a clause is empty."""
        return self._is_done

    def text(self) -> str:
        """Return the refutation, with a last step to the empty clause if there is none yet."""
        if not self.is_done:
            self._propagate([])
        literals = [f"{number} {' '.join(map(str, atom))}" for atom, number in self._atoms.items()]
        head = f"refutation\nliterals {len(literals)}"
        return "\n".join([head, *literals, f"steps {len(self._steps)}", *self._steps, "end", ""])

    def add(self, step: s.Step) -> None:
        """Add a step, and the facts that it uses."""
        match step:
            case s.AnomalyStep(kind=kind, txn=txn, op=op, other_op=other):
                of_two = kind == Anomaly.INCOMPATIBLE_ORDER and other is not None
                if op not in self._text.place or (of_two and other not in self._text.place):
                    raise beyond(f"the anomaly {Anomaly(kind).name.lower().replace('_', ' ')}")
                if self._facts.is_list(op):
                    self._anomaly_of_lists(op, other if of_two else None)
                elif self._facts.is_external(op):
                    # The exporter writes such a value as one that no version has.
                    self._choose(op, nothing=kind == Anomaly.TWO_VALUES)
                else:
                    self._step(f"anomaly {self._number(txn)} {self._if(txn)}", self._unless(txn))
            case s.ChoiceStep(op=op):
                self._choose(op)
            case s.CycleStep():
                self._cycle(step)
            case s.OrderStep(key=key, txns=txns):
                pairs = zip(txns, (*txns[1:], txns[0]), strict=True)
                literals = [self._before(key, a, b) for a, b in pairs]
                self._step(f"order {_listed(literals)}", [-v for v in literals])
            case s.RupStep(literals=literals):
                clause = [self._literal(positive, of) for positive, of in literals]
                # The order of a transaction that does not count has no meaning for the kernel.
                excluded = {
                    -self._included(t)
                    for _, of in literals
                    if isinstance(of, s.Before)
                    for t in (of.a, of.b)
                    if self._is_open(t)
                }
                self._propagate([*clause, *sorted(excluded - set(clause))])
            case s.ExhaustionStep():
                raise beyond("the refutation is an exhaustive search")

    # --- literals ---

    def _number(self, t: int) -> int:
        return self._text.number(t)

    def _atom(self, *atom: object) -> tuple[int, bool]:
        """Return the literal, and whether it is new."""
        new = atom not in self._atoms
        if new:
            self._atoms[atom] = len(self._atoms) + 1
            if atom[0] == "in":
                self._is_inclusion.add(self._atoms[atom])
        return self._atoms[atom], new

    def _is_open(self, t: int) -> bool:
        return t != self._facts.n and self._facts.status[t] == INDETERMINATE

    def _included(self, t: int) -> int:
        return self._atom("in", self._number(t))[0]

    def _inclusions(self, *txns: int) -> list[int]:
        return sorted({self._included(t) for t in txns if self._is_open(t)})

    def _if(self, *txns: int) -> str:
        """Return the literals that these transactions count, as text."""
        return _listed(self._inclusions(*txns))

    def _unless(self, *txns: int) -> list[int]:
        return [-literal for literal in self._inclusions(*txns)]

    def _literal(self, positive: bool, of: s.Literal) -> int:
        match of:
            case s.Source(op=op, txn=txn):
                literal = self._source(op, txn)
            case s.Before(key=key, a=a, b=b):
                literal = self._before(key, a, b)
            case s.In(txn=txn):
                literal = self._included(txn)
        return literal if positive else -literal

    def _source(self, op: int, u: int) -> int:
        if op not in self._text.place:
            raise beyond(f"a source of operation {op}")
        txn, number = self._text.place[op]
        literal, new = self._atom("source", txn, number, self._number(u))
        if new:
            for other in self._sources_of[op]:
                self._step(f"unlike {literal} {other}", [-literal, -other])
            self._sources_of[op].append(literal)
            for inclusion in self._inclusions(u, self._facts.txn_of[op]):
                self._step(f"inside {literal} {inclusion}", [-literal, inclusion])
            if len(self._facts.candidates(op)) == 1:
                self._choose(op)
        return literal

    def _choose(self, op: int, *, nothing: bool = False) -> None:
        txn, number = self._text.place[op]
        sources = () if nothing else self._facts.candidates(op)
        literals = [self._source(op, u) for u in sources]
        reader = self._facts.txn_of[op]
        self._step(
            f"choice {txn} {number} {_listed(literals)} {self._if(reader)}",
            literals + self._unless(reader),
        )

    def _before(self, key: int, a: int, b: int) -> int:
        ordered = self._level.order is not None

        def atom(first: int, second: int) -> tuple[object, ...]:
            pair = (self._number(first), self._number(second))
            return ("in-order", *pair) if ordered else ("before", key + 1, *pair)

        initial = self._facts.n
        literal, new = self._atom(*atom(a, b))
        if new:
            for inclusion in self._inclusions(a, b):
                self._step(f"inside {literal} {inclusion}", [-literal, inclusion])
            if a == initial != b:
                self._step_first(literal, atom(b, a), b)
            elif b == initial != a:
                self._before(key, b, a)
            elif atom(b, a) in self._atoms and a != b:
                other = self._atoms[atom(b, a)]
                either = [literal, other, *self._unless(a, b)]
                self._step(f"either {literal} {other} {self._if(a, b)}", either)
                self._step(f"order {_listed([literal, other])}", [-literal, -other])
        if initial not in (a, b) and (key, a, b) not in self._compared:
            self._compared.add((key, a, b))
            for op in self._telling(key):
                if self._facts.shows(op, a, b):
                    self._step_shown(literal, op, key, a, b)
                elif self._facts.shows(op, b, a):
                    self._before(key, b, a)
        return literal

    def _step_first(self, literal: int, opposite: tuple[object, ...], b: int) -> None:
        """Add the fact that T0 comes first."""
        if self._level.order is None:
            self._step(f"first {literal} {self._if(b)}", [literal, *self._unless(b)])
            return
        back = self._atom(*opposite)[0]
        edges = f"2 ww {back} init 1 {self._number(b)} {self._if(b)}"
        self._step(f"cycle 0 {_ROUNDS} {edges}", [-back, *self._unless(b)])
        self._step(f"either {literal} {back} {self._if(b)}", [literal, back, *self._unless(b)])

    # --- lists ---

    def _telling(self, key: int) -> list[int]:
        """Return the list reads that show the order of a key: a certain one, and the others."""
        facts = self._facts
        if key not in self._telling_of:
            certain = facts.most_telling_list(key)
            others = [op for op in facts.list_reads(key) if not facts.certain(facts.txn_of[op])]
            found = [op for op in (certain, *others) if op in self._text.place]
            self._telling_of[key] = found
        return self._telling_of[key]

    def _step_shown(self, literal: int, op: int, key: int, a: int, b: int) -> None:
        """Add the fact that a list read shows that ``a`` precedes ``b``."""
        if self._level.order is None:
            self._listed(literal, op, a, b)
            return
        shown, new = self._atom("before", key + 1, self._number(a), self._number(b))
        if new:
            for inclusion in self._inclusions(a, b):
                self._step(f"inside {shown} {inclusion}", [-shown, inclusion])
        self._listed(shown, op, a, b)
        back = self._before(key, b, a)
        self._step(f"cycle 0 {_ROUNDS} 2 ww {shown} ww {back}", [-shown, -back])

    def _listed(self, literal: int, op: int, a: int, b: int) -> None:
        """Add the fact that a list read shows an order of versions, which a literal states."""
        facts = self._facts
        txn, number = self._text.place[op]
        reader = facts.txn_of[op]
        writers = [facts.element_writer(facts.key[op], value) for value in self._of_others(op)]
        both = a in writers and b in writers[writers.index(a) :]
        conditions = (reader,) if both else (reader, b)
        self._step(
            f"listed {txn} {number} {literal} {self._if(*conditions)}",
            [literal, *self._unless(*conditions)],
        )

    def _of_others(self, op: int) -> list[int]:
        """Return the elements of a list read after the initial ones and before own ones."""
        facts = self._facts
        values = facts.list_of(op)
        first = len(self._text.beginning(facts.key[op]))
        return values[first : len(values) - len(facts.own_before(op))]

    def _anomaly_of_lists(self, op: int, other: int | None) -> None:
        """Add the steps by which one or two list reads contradict the history."""
        facts = self._facts
        if other is not None:
            self._contradiction(op, other)
        for one in (op,) if other is None else (op, other):
            self._tear(one)
        if self.is_done:
            return
        readers = (facts.txn_of[op], facts.txn_of[op if other is None else other])
        self._propagate(self._unless(*dict.fromkeys(readers)))

    def _contradiction(self, op: int, other: int) -> None:
        """Add the orders that two list reads show where they differ first."""
        facts = self._facts
        for value, second in zip(facts.list_of(op), facts.list_of(other), strict=False):
            if value != second:
                a = facts.element_writer(facts.key[op], value)
                b = facts.element_writer(facts.key[op], second)
                if a is not None and b is not None and a != b:
                    self._opposite(op, other, a, b)
                return

    def _opposite(self, op: int, other: int, a: int, b: int) -> None:
        """Add that one list read shows ``a`` before ``b``, and another the opposite."""
        key = self._facts.key[op] + 1
        forth, _ = self._atom("before", key, self._number(a), self._number(b))
        back, _ = self._atom("before", key, self._number(b), self._number(a))
        for one, literal, first, second in ((op, forth, a, b), (other, back, b, a)):
            if self._facts.shows(one, first, second):
                self._listed(literal, one, first, second)
        self._step(f"order {_listed([forth, back])}", [-forth, -back])
        # Who appended an element counts, because the list shows it.
        for one in (op, other):
            self._state_shown(one)

    def _tear(self, op: int) -> None:
        """Add each fact by which one list read contradicts the writes."""
        facts = self._facts
        txn, number = self._text.place[op]
        key, reader = facts.key[op], facts.txn_of[op]
        values, own = facts.list_of(op), [facts.value[w] for w in facts.own_before(op)]
        condition, clause = self._if(reader), self._unless(reader)
        if own and values[-len(own) :] != own:
            self._step(f"anomaly {self._number(reader)} {condition}", clause)
            return
        beginning = self._text.beginning(key)
        if facts.source[op] == FROM_MISSING:
            values = []
        if values[: len(beginning)] != beginning or len(values) < len(beginning) + len(own):
            self._step(f"torn {txn} {number} {self._number(reader)} {condition}", clause)
            return
        others = self._of_others(op)
        writers = [facts.element_writer(key, value) for value in others]
        if facts.is_external(op) and not facts.candidates(op):
            self._choose(op)
        for writer in dict.fromkeys(w if w is not None else reader for w in writers):
            shown = [v for v, w in zip(others, writers, strict=True) if w in (writer, None)]
            made = [facts.value[w] for w in facts.writes_by(writer, key)]
            if writer == reader or shown != made:
                self._step(f"torn {txn} {number} {self._number(writer)} {condition}", clause)
        blocks = [w for i, w in enumerate(writers) if i == 0 or writers[i - 1] != w]
        for i, again in enumerate(blocks[2:], 2):
            between = blocks[i - 1]
            if again in blocks[: i - 1] and again is not None and between is not None:
                self._split(op, again, between)

    def _split(self, op: int, a: int, b: int) -> None:
        """Add that a list read shows an element of ``b`` between elements of ``a``."""
        self._opposite(op, op, a, b)
        key = self._facts.key[op] + 1
        back = self._atoms["before", key, self._number(b), self._number(a)]
        self._listed(back, op, b, a)

    def _state_shown(self, op: int) -> None:
        """Add that the writers of a list read's elements count."""
        facts = self._facts
        txn, number = self._text.place[op]
        reader = facts.txn_of[op]
        for value in self._of_others(op):
            writer = facts.element_writer(facts.key[op], value)
            if writer is not None and self._is_open(writer):
                literal = self._included(writer)
                self._step(
                    f"shows {txn} {number} {value} 1 {literal} {self._if(reader)}",
                    [literal, *self._unless(reader)],
                )

    # --- cycles ---

    def _edges(self, edges: Iterable[s.Edge]) -> tuple[list[str], list[int]]:
        """Return edges as text, and the negation of what they assume."""
        found: list[str] = []
        clause: list[int] = []
        for edge in edges:
            match edge.relation:
                case "so" | "rt" | "init":
                    a, b = self._number(edge.a), self._number(edge.b)
                    found.append(f"{edge.relation} {a} {b} {self._if(edge.b)}")
                    clause += self._unless(edge.b)
                case "wr":
                    source = self._source(edge.op, edge.a)
                    found.append(f"wr {source}")
                    clause.append(-source)
                case "ww":
                    before = self._before(edge.key, edge.a, edge.b)
                    found.append(f"ww {before}")
                    clause.append(-before)
                case "rw":
                    source = self._source(edge.op, edge.writer)
                    before = self._before(edge.key, edge.writer, edge.b)
                    found.append(f"rw {source} {before}")
                    clause += [-source, -before]
                case relation:
                    raise beyond(f"an edge of {relation}")
        return found, clause

    def _cycle(self, step: s.CycleStep) -> None:
        edges, clause = self._edges(step.edges)
        cycles = self._cycles
        if cycles is None or cycles.rules is None:
            if step.check not in self._level.number:
                raise beyond(f"a cycle of {step.check}")
            self._emit(self._level.number[step.check], edges, clause)
            self._shorten(clause)
            return
        if not cycles.may_order(cycles.rules, step.edges, ()):
            self._emit(0, edges, clause)
            self._shorten(clause)
            return
        forth: list[int] = []
        for a, b, stretch in cycles.cases(cycles.rules, step.edges):
            part, assumed = self._edges(stretch)
            if a == b:
                self._emit(0, part, assumed)
                self._propagate(clause)
                return
            back = self._before(0, b, a)
            self._emit(0, [*part, f"ww {back}"], [*assumed, -back])
            forth.append(self._before(0, a, b))
        ordered = [f"ww {literal}" for literal in forth]
        self._emit(0, [*edges, *ordered], [*clause, *(-literal for literal in forth)])
        self._propagate(clause)

    def _emit(self, number: int, edges: Sequence[str], clause: list[int]) -> None:
        self._step(f"cycle {number} {_ROUNDS} {len(edges)} {' '.join(edges)}", clause)

    def _shorten(self, clause: list[int]) -> None:
        """Add the clause without its literals of inclusion, if the others imply them."""
        less = [literal for literal in clause if abs(literal) not in self._is_inclusion]
        if len(less) < len(clause):
            self._try_to_propagate(less)

    # --- steps ---

    def _step(self, text: str, clause: list[int]) -> None:
        if self._is_done:
            return  # the kernel stops at the empty clause
        self._is_done = not clause
        place = len(self._clauses)
        self._steps.append(text)
        self._clauses.append(clause)
        literals = set(clause)
        for literal in literals:
            self._with[literal].append(place)
        if len(literals) == 1:
            self._units.append(place)

    def _state_forced(self) -> None:
        """Add the facts that make indeterminate transactions count in every choice."""
        facts = self._facts
        if self._forced_stated:
            return
        self._forced_stated = True
        for key in range(facts.keys) if INDETERMINATE in facts.status else ():
            for op in facts.list_reads(key):
                if op in self._text.place:
                    self._state_shown(op)
        work, seen = [t for t in range(facts.n) if facts.status[t] == COMMITTED], set[int]()
        while facts.forced and work:
            for op in facts.operations_of(work.pop()):
                if op not in self._text.place or not facts.is_external(op):
                    continue
                candidates = facts.candidates(op)
                if len(candidates) == 1 and candidates[0] in facts.forced - seen:
                    seen.add(candidates[0])
                    work.append(candidates[0])
                    self._source(op, candidates[0])

    def _propagate(self, clause: list[int]) -> None:
        """Add a clause that follows by unit propagation.

        Raises:
            NotCertifiedError: it does not follow.
        """
        if not self._try_to_propagate(clause):
            self._state_forced()
            if not self._try_to_propagate(clause):
                raise beyond("a step that does not follow from the steps before it")

    def _try_to_propagate(self, clause: list[int]) -> bool:
        clause = list(dict.fromkeys(clause))
        if any(-literal in clause for literal in clause):
            raise beyond("a step that is always true")
        true: set[int] = set()
        reason: dict[int, int] = {}
        trail: list[int] = []

        def assign(literal: int, step: int | None) -> None:
            if literal not in true:
                true.add(literal)
                trail.append(literal)
                if step is not None:
                    reason[literal] = step

        def rest(step: int) -> list[int] | None:
            """Return the literals of a clause that are not false; ``None`` if two or one true."""
            free = 0
            for literal in self._clauses[step]:
                if -literal in true or literal == free:
                    continue
                if free or literal in true:
                    return None
                free = literal
            return [free] if free else []

        def conflict() -> int | None:
            for literal in clause:
                assign(-literal, None)
            done = -1
            waiting = self._units
            while True:
                for step in waiting:
                    unset = rest(step)
                    if unset == []:
                        return step
                    if unset:
                        assign(unset[0], step)
                done += 1
                if done == len(trail):
                    return None
                waiting = self._with[-trail[done]]

        if (last := conflict()) is None:
            return False
        hints = [last]
        needed = {-literal for literal in self._clauses[last]}
        for literal in reversed(trail):
            if literal in needed and literal in reason:
                hints.append(reason[literal])
                needed |= {-other for other in self._clauses[reason[literal]] if other != literal}
        hints = list(dict.fromkeys(reversed(hints)))
        self._step(f"rup {_listed(clause)} {_listed(hints)}", clause)
        return True


def _listed(numbers: Sequence[int]) -> str:
    return " ".join(map(str, (len(numbers), *numbers)))
