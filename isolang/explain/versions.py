"""Groups the refuted candidates of a read without a source: versions too old and too new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.certify.facts import Facts
from isolang.certify.steps import ChoiceStep, CycleStep, Source, Step
from isolang.explain.argument import (
    Argument,
    Clause,
    Contradiction,
    Derived,
    Signed,
    is_obvious,
    negate,
)
from isolang.explain.derivation import MAX_EDGES, Reasoner, count_edges, lemmas_for
from isolang.explain.part import Sources, operations_of, part_of
from isolang.explain.premises import Premises
from isolang.explain.words import Phrases
from isolang.problem import Problem

Kind: TypeAlias = Literal["old", "new"]

_BEYOND: Final = {
    "rt": "{reader} had ended before the transactions that wrote them began",
    "so": "the transactions that wrote them come later in {reader}'s session",
}
"""Why versions are too new if such an edge leads from the reader to each version's writer."""


class RefutedVersion(Struct, frozen=True, kw_only=True):
    """A candidate of a read, with the cycle that refutes it.

    Attributes:
        kind: ``old`` if a read of this version would miss a later one; ``new`` if the reader comes
            before the version's writer.
        overwritten_by: the writer of the later version if ``kind`` is ``old``, otherwise -1.
        path: the relations of the cycle's other edges.
    """

    txn: int
    clause: Clause
    kind: Kind
    overwritten_by: int = -1
    path: tuple[str, ...] = ()

    def is_replaced_by_match(self, op: int, words: Phrases) -> bool:
        """Return whether this version was replaced by one that the set-read ``op`` excludes."""
        write = words.write_of(self.overwritten_by, words.facts.key[op])
        if self.overwritten_by < 0 or write is None:
            return False
        columns = words.history.columns
        excluded = words.history.list_values(int(columns.op_value[op]))
        return int(columns.op_value[write]) in excluded

    @property
    def step(self) -> CycleStep:
        """The cycle."""
        assert isinstance(self.clause.step, CycleStep)
        return self.clause.step


class VersionGroup(Struct, frozen=True, kw_only=True):
    """Candidates refuted in the same way.

    Attributes:
        kind: the reason why the candidates are refuted.
    """

    kind: Kind
    refuted: tuple[RefutedVersion, ...]

    def text(self, reader: str, key: str, one: RefutedVersion, words: Phrases) -> str:
        """Return the assumption that the read saw a candidate, with the reason against it."""
        count, example = len(self.refuted), words.txn(one.txn)
        replaced = words.txn(one.overwritten_by) if one.overwritten_by >= 0 else ""
        if count == 1:
            why = {
                "old": f"which is too old: {reader} comes after {replaced}, which replaced it",
                "new": f"which is too new: {reader} comes before {example}",
            }[self.kind]
            return f"{reader} saw {key} {words.state_after(one.txn)}, {why}"
        why = {
            "old": f"that are too old: {reader} comes after transactions that replaced them",
            "new": f"that are too new: {reader} comes before the transactions that wrote them",
        }[self.kind]
        (path, *others) = {one.path for one in self.refuted}
        if self.kind == "new" and not others and len(path) == 1 and path[0] in _BEYOND:
            why = f"that are too new: {_BEYOND[path[0]].format(reader=reader)}"
        return f"{reader} saw one of {count} versions of {key} {why} (shown for that of {example})"


class Versions(Struct, frozen=True, kw_only=True):
    """A read with all of its candidates refuted.

    Attributes:
        argument: the argument, which ends in the read without a source.
    """

    op: int
    argument: Argument
    refuted: tuple[RefutedVersion, ...]
    lemmas: Mapping[Signed, Derived]

    def groups(self) -> list[VersionGroup]:
        """Return the groups of refuted candidates, starting with versions that are too old."""
        kinds: tuple[Kind, ...] = ("old", "new")
        found = (
            VersionGroup(kind=kind, refuted=tuple(x for x in self.refuted if x.kind == kind))
            for kind in kinds
        )
        return [group for group in found if group.refuted]

    def example(
        self, group: VersionGroup, words: Phrases, is_simplest: Callable[[CycleStep], bool]
    ) -> RefutedVersion:
        """Return the version in a group with the cycle that is easiest to follow."""
        missed = words.is_missed(self.op)

        def rank(one: RefutedVersion) -> tuple[object, ...]:
            return (
                not (missed and one.is_replaced_by_match(self.op, words)),
                not is_simplest(one.step),
                sum(not is_obvious(lemma) for lemma in self.needed(one)),
                len(one.step.edges),
                one.txn,
            )

        return min(group.refuted, key=rank)

    def needed(self, one: RefutedVersion) -> tuple[Derived, ...]:
        """Return the lemmas on which a candidate's cycle depends, each after its premises."""
        chosen = Source(self.op, one.txn)
        assumed = (negate(x) for x in one.clause.literals if x[1] != chosen)
        return lemmas_for(assumed, self._clause_of)

    def _clause_of(self, literal: Signed) -> Clause | None:
        lemma = self.lemmas.get(literal)
        return None if lemma is None else lemma.clause


def versions_of(premises: Premises, steps: Sequence[Step], few: int) -> Versions | None:
    """Return the candidates of a read with no source left, each with its cycle.

    Returns:
        ``None`` if unit propagation does not end with such a read, or if some candidate is refuted
        other than by a cycle through the read.
    """
    clauses = premises.clauses(steps, one_source=False)
    argument = Reasoner(clauses, premises.fact, 1).propagated()
    if argument is None or not isinstance(argument.end, Contradiction):
        return None
    step, literals = argument.end.clause.step, argument.end.clause.literals
    if not isinstance(step, ChoiceStep) or len(literals) <= few:
        return None
    lemmas = {x.literal: x for x in argument.lemmas if isinstance(x, Derived)}
    refuted = []
    for literal in literals:
        if not isinstance(literal[1], Source):
            continue  # the other literal says that the reader is included
        lemma = lemmas.get(negate(literal))
        one = None if lemma is None else _refuted_version(lemma.clause, step.op, literal[1].txn)
        if one is None:
            return None
        refuted.append(one)
    return Versions(op=step.op, argument=argument, refuted=tuple(refuted), lemmas=lemmas)


def _refuted_version(clause: Clause, op: int, txn: int) -> RefutedVersion | None:
    if not isinstance(clause.step, CycleStep):
        return None
    edges = clause.step.edges
    for at, edge in enumerate(edges):
        path = tuple(other.relation for other in (*edges[at + 1 :], *edges[:at]))
        if edge.op != op:
            continue
        if edge.relation == "rw" and edge.writer == txn:
            return RefutedVersion(
                txn=txn, clause=clause, kind="old", overwritten_by=edge.b, path=path
            )
        if edge.relation == "wr" and edge.a == txn:
            return RefutedVersion(txn=txn, clause=clause, kind="new", path=path)
    return None


def impossible_versions(problem: Problem, steps: Sequence[Step]) -> dict[int, set[int]]:
    """Return the candidates of a read excluded by a refutation, each by a separate cycle.

    Returns:
        The candidates, by the number of the read. The result is empty unless unit propagation shows
        that a read has no candidates left.
    """
    if not any(isinstance(step, CycleStep) for step in steps) or count_edges(steps) > MAX_EDGES:
        return {}
    txns = Sources(problem).closed(steps)
    part = part_of(problem.history, operations_of(problem.history, txns), txns)
    facts = Facts(part.history)
    premises = Premises(facts, Phrases(part.history, facts))
    found = versions_of(premises, part.to_part(steps), 0)
    if found is None:
        return {}
    return {part.ops[found.op]: {part.txns[one.txn] for one in found.refuted}}
