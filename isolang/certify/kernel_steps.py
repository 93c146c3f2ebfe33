"""Translates a refutation into steps for the kernel.

A refutation leaves out facts that isolang's own checkers derive: which transactions are included in
every choice, that a read has only one source, and that two writers are ordered in only one way. For
the kernel, each of these facts is a separate step, which this module adds when a literal first
needs the fact. Because the kernel does not search, a unit propagation step lists the clauses it
uses, in order of use.

A mistake in this module can make the kernel reject a correct proof, but never accept a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isolang.certify import steps as s
from isolang.certify.anomalies import Anomaly
from isolang.certify.cycles import Cycles
from isolang.certify.history_index import COMMITTED, FROM_MISSING, INDETERMINATE
from isolang.certify.kernel_clauses import Clauses, format_numbers
from isolang.certify.kernel_literals import ROUNDS, Literals
from isolang.certify.kernel_text import HistoryText, LevelText, unsupported
from isolang.certify.proofs import Refutation
from isolang.language.meaning.core import Spec


def refutation_text(text: HistoryText, level: LevelText, spec: Spec, proof: Refutation) -> str:
    """Return a refutation in the kernel's input format.

    Raises:
        NotCertifiedError: if the kernel does not support one of the steps.
    """
    writer = _Steps(text, level, spec)
    for step in proof.steps:
        writer.add(step)
        if writer.is_done:
            break
    return writer.text()


class _Steps:
    """Translates the steps of a refutation into kernel steps, one by one."""

    def __init__(self, text: HistoryText, level: LevelText, spec: Spec) -> None:
        self._text = text
        self._facts = text.facts
        self._level = level
        self._cycles = None if level.order is None else Cycles(text.facts, spec)
        self._clauses = Clauses()
        self._literals = Literals(text, level, self._clauses)
        self._lists = _ListAnomalies(text, self._literals)
        self._forced_stated = False

    @property
    def is_done(self) -> bool:
        """Return whether some step has proved the empty clause."""
        return self._clauses.is_done

    def text(self) -> str:
        """Return the translated refutation, which ends with a step that proves the empty clause."""
        if not self.is_done:
            self._propagate([])
        literals = [
            f"{number} {' '.join(map(str, atom))}" for atom, number in self._literals.atoms.items()
        ]
        head = f"refutation\nliterals {len(literals)}"
        return "\n".join(
            [head, *literals, f"steps {len(self._clauses.steps)}", *self._clauses.steps, "end", ""]
        )

    def add(self, step: s.Step) -> None:
        """Translate a step, and add steps for the facts it uses."""
        match step:
            case s.AnomalyStep(kind=kind, txn=txn, op=op, other_op=other):
                of_two = kind == Anomaly.INCOMPATIBLE_ORDER and other is not None
                if op not in self._text.place or (of_two and other not in self._text.place):
                    raise unsupported(f"the anomaly {Anomaly(kind).name.lower().replace('_', ' ')}")
                if self._facts.is_list(op):
                    self._anomaly_of_lists(op, other if of_two else None)
                elif self._facts.is_external(op):
                    # In the kernel's input, this read returns a value that no version has.
                    self._literals.choose(op, nothing=kind == Anomaly.TWO_VALUES)
                else:
                    self._clauses.add(
                        f"anomaly {self._literals.number(txn)} {self._literals.condition(txn)}",
                        self._literals.unless(txn),
                    )
            case s.ChoiceStep(op=op):
                self._literals.choose(op)
            case s.CycleStep():
                self._cycle(step)
            case s.OrderStep(key=key, txns=txns):
                pairs = zip(txns, (*txns[1:], txns[0]), strict=True)
                literals = [self._literals.before(key, a, b) for a, b in pairs]
                self._clauses.add(f"order {format_numbers(literals)}", [-v for v in literals])
            case s.RupStep(literals=literals):
                clause = [self._literals.literal(positive, of) for positive, of in literals]
                # In the kernel, orders constrain only included transactions.
                excluded = {
                    -self._literals.included(t)
                    for _, of in literals
                    if isinstance(of, s.Before)
                    for t in (of.a, of.b)
                    if self._literals.is_open(t)
                }
                self._propagate([*clause, *sorted(excluded - set(clause))])
            case s.ExhaustionStep():
                raise unsupported("the refutation is an exhaustive search")

    def _anomaly_of_lists(self, op: int, other: int | None) -> None:
        """Add steps that derive a contradiction from one or two list reads."""
        facts = self._facts
        if other is not None:
            self._lists.contradict(op, other)
        for one in (op,) if other is None else (op, other):
            self._lists.tear(one)
        if self._clauses.is_done:
            return
        readers = (facts.txn_of[op], facts.txn_of[op if other is None else other])
        self._propagate(self._literals.unless(*dict.fromkeys(readers)))

    def _edges(self, edges: Iterable[s.Edge]) -> tuple[list[str], list[int]]:
        """Return edges as lines of the kernel's input, and the clause that forbids them.

        The clause consists of the negations of the literals required by the edges.
        """
        found: list[str] = []
        clause: list[int] = []
        for edge in edges:
            match edge.relation:
                case "so" | "rt" | "init":
                    a, b = self._literals.number(edge.a), self._literals.number(edge.b)
                    found.append(f"{edge.relation} {a} {b} {self._literals.condition(edge.b)}")
                    clause += self._literals.unless(edge.b)
                case "wr":
                    source = self._literals.source(edge.op, edge.a)
                    found.append(f"wr {source}")
                    clause.append(-source)
                case "ww":
                    before = self._literals.before(edge.key, edge.a, edge.b)
                    found.append(f"ww {before}")
                    clause.append(-before)
                case "rw":
                    source = self._literals.source(edge.op, edge.writer)
                    before = self._literals.before(edge.key, edge.writer, edge.b)
                    found.append(f"rw {source} {before}")
                    clause += [-source, -before]
                case relation:
                    raise unsupported(f"an edge of {relation}")
        return found, clause

    def _cycle(self, step: s.CycleStep) -> None:
        edges, clause = self._edges(step.edges)
        cycles = self._cycles
        if cycles is None or cycles.rules is None:
            if step.check not in self._level.number:
                raise unsupported(f"a cycle of {step.check}")
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
            back = self._literals.before(0, b, a)
            self._emit(0, [*part, f"ww {back}"], [*assumed, -back])
            forth.append(self._literals.before(0, a, b))
        ordered = [f"ww {literal}" for literal in forth]
        self._emit(0, [*edges, *ordered], [*clause, *(-literal for literal in forth)])
        self._propagate(clause)

    def _emit(self, number: int, edges: Sequence[str], clause: list[int]) -> None:
        self._clauses.add(f"cycle {number} {ROUNDS} {len(edges)} {' '.join(edges)}", clause)

    def _shorten(self, clause: list[int]) -> None:
        """Also add the clause without its inclusion literals, if unit propagation proves it."""
        less = [literal for literal in clause if abs(literal) not in self._literals.is_inclusion]
        if len(less) < len(clause):
            self._clauses.propagate(less)

    def _state_forced(self) -> None:
        """Add steps that show which indeterminate transactions are included in every choice."""
        facts = self._facts
        if self._forced_stated:
            return
        self._forced_stated = True
        for key in range(facts.keys) if INDETERMINATE in facts.status else ():
            for op in facts.list_reads(key):
                if op in self._text.place:
                    self._lists.state_shown(op)
        work, seen = [t for t in range(facts.n) if facts.status[t] == COMMITTED], set[int]()
        while facts.forced and work:
            for op in facts.operations_of(work.pop()):
                if op not in self._text.place or not facts.is_external(op):
                    continue
                candidates = facts.candidates(op)
                if len(candidates) == 1 and candidates[0] in facts.forced - seen:
                    seen.add(candidates[0])
                    work.append(candidates[0])
                    self._literals.source(op, candidates[0])

    def _propagate(self, clause: list[int]) -> None:
        """Add a clause that follows from the earlier clauses by unit propagation."""
        if not self._clauses.propagate(clause):
            self._state_forced()
            if not self._clauses.propagate(clause):
                raise unsupported("a step that does not follow from the steps before it")


class _ListAnomalies:
    """Adds steps that show how list reads contradict each other or the rest of the history."""

    def __init__(self, text: HistoryText, literals: Literals) -> None:
        self._text = text
        self._facts = text.facts
        self._literals = literals
        self._add = literals.clauses.add

    def contradict(self, op: int, other: int) -> None:
        """Add steps that derive a contradiction from the lists returned by two reads.

        At the first element where the lists differ, the reads show opposite orders of two writers.
        """
        facts = self._facts
        for value, second in zip(facts.list_of(op), facts.list_of(other), strict=False):
            if value != second:
                a = facts.element_writer(facts.key[op], value)
                b = facts.element_writer(facts.key[op], second)
                if a is not None and b is not None and a != b:
                    self._opposite(op, other, a, b)
                return

    def _opposite(self, op: int, other: int, a: int, b: int) -> None:
        """Add steps for two list reads that show two writers in opposite orders.

        The first read shows ``a`` before ``b``, and the other shows ``b`` before ``a``.
        """
        key = self._facts.key[op] + 1
        forth, _ = self._literals.atom(
            "before", key, self._literals.number(a), self._literals.number(b)
        )
        back, _ = self._literals.atom(
            "before", key, self._literals.number(b), self._literals.number(a)
        )
        for one, literal, first, second in ((op, forth, a, b), (other, back, b, a)):
            if self._facts.shows(one, first, second):
                self._literals.add_listed(literal, one, first, second)
        self._add(f"order {format_numbers([forth, back])}", [-forth, -back])
        # The writers of the elements are included, because the lists show their elements.
        for one in (op, other):
            self.state_shown(one)

    def tear(self, op: int) -> None:
        """Add a step for each contradiction between a single list read and the history's writes."""
        if self._lacks_an_end(op):
            return
        facts = self._facts
        txn, number = self._text.place[op]
        key, reader = facts.key[op], facts.txn_of[op]
        condition, clause = self._literals.condition(reader), self._literals.unless(reader)
        others = self._literals.elements_of_others(op)
        writers = [facts.element_writer(key, value) for value in others]
        if facts.is_external(op) and not facts.candidates(op):
            self._literals.choose(op)
        for writer in dict.fromkeys(w if w is not None else reader for w in writers):
            shown = [v for v, w in zip(others, writers, strict=True) if w in (writer, None)]
            made = [facts.value[w] for w in facts.writes_by(writer, key)]
            if writer == reader or shown != made:
                self._add(
                    f"torn {txn} {number} {self._literals.number(writer)} {condition}", clause
                )
        blocks = [w for i, w in enumerate(writers) if i == 0 or writers[i - 1] != w]
        for i, again in enumerate(blocks[2:], 2):
            between = blocks[i - 1]
            if again in blocks[: i - 1] and again is not None and between is not None:
                self._split(op, again, between)

    def _lacks_an_end(self, op: int) -> bool:
        """Return whether a list lacks the initial elements or the reader's own ones, at its ends.

        If so, add the step that shows this. The kernel accepts no other step about the list.
        """
        facts = self._facts
        txn, number = self._text.place[op]
        reader = facts.txn_of[op]
        values, own = facts.list_of(op), [facts.value[w] for w in facts.own_before(op)]
        condition, clause = self._literals.condition(reader), self._literals.unless(reader)
        if own and values[-len(own) :] != own:
            self._add(f"anomaly {self._literals.number(reader)} {condition}", clause)
            return True
        beginning = self._text.beginning(facts.key[op])
        if facts.source[op] == FROM_MISSING:
            values = []
        if values[: len(beginning)] != beginning or len(values) < len(beginning) + len(own):
            self._add(f"torn {txn} {number} {self._literals.number(reader)} {condition}", clause)
            return True
        return False

    def _split(self, op: int, a: int, b: int) -> None:
        """Add steps for a list read that shows an element of ``b`` between elements of ``a``."""
        self._opposite(op, op, a, b)
        key = self._facts.key[op] + 1
        back = self._literals.atoms[
            "before", key, self._literals.number(b), self._literals.number(a)
        ]
        self._literals.add_listed(back, op, b, a)

    def state_shown(self, op: int) -> None:
        """Add steps that include the writers shown by a list read if its reader is included."""
        if self._lacks_an_end(op):
            return
        facts = self._facts
        txn, number = self._text.place[op]
        reader = facts.txn_of[op]
        for value in self._literals.elements_of_others(op):
            writer = facts.element_writer(facts.key[op], value)
            if writer is not None and self._literals.is_open(writer):
                literal = self._literals.included(writer)
                self._add(
                    f"shows {txn} {number} {value} 1 {literal} {self._literals.condition(reader)}",
                    [literal, *self._literals.unless(reader)],
                )
