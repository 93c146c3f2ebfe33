"""Checks a refutation: the clause of each step must follow, and the last clause must be empty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec import Struct

from isolang.certify.anomalies import (
    Anomaly,
    are_incompatible,
    contradicts_order,
    initial_values_disagree,
    shows_anomaly,
)
from isolang.certify.claim import OF_TRANSACTIONS
from isolang.certify.cycles import Cycles
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.facts import Facts
from isolang.certify.propagation import FALSE, TRUE, Propagation
from isolang.certify.statements import check_statements
from isolang.certify.steps import (
    AnomalyStep,
    Before,
    ChoiceStep,
    CycleStep,
    Edge,
    ExhaustionStep,
    In,
    Literal,
    OrderStep,
    RupStep,
    Source,
    Step,
    parse_step,
)
from isolang.certify.versions import stated_before, versions_contradict
from isolang.language.meaning.core import Spec
from isolang.language.meaning.mentions import mentioned, uses_reads_from
from isolang.language.vocabulary import FILTERED, STATEMENT_LETTERS

if TYPE_CHECKING:
    from isolang.history.history import History

_UNUSED = -1


class Followed(Struct, frozen=True, kw_only=True):
    """The result of following a refutation's steps to the empty clause.

    Attributes:
        accepted: the number of cycle steps shown to hold by definition; the clauses of the other
            cycle steps were accepted unchecked.
        outside: the reason why some step could not be checked by definition; empty if every step
            was checked.
    """

    cycles: int
    accepted: int
    outside: str


def check_refutation(history: History, spec: Spec, steps: Sequence[Any]) -> None:
    """Check every step of a refutation by definition.

    If the check succeeds, the history violates the specification.

    The arguments are those of :func:`follow_steps`.

    Raises:
        CertificateRejected: if a step does not follow; the message says which and why.
        NotCertifiedError: if this checker cannot decide the specification, the history or a step.
    """
    followed = follow_steps(history, spec, steps)
    if followed.outside:
        raise NotCertifiedError(followed.outside)


def follow_steps(history: History, spec: Spec, steps: Sequence[Any]) -> Followed:
    """Check the steps of a refutation, except cycle steps that cannot be decided by definition.

    The clauses of those cycle steps are accepted unchecked.

    Raises:
        CertificateRejected: if a step does not follow; the message says which and why.
        NotCertifiedError: if this checker cannot decide the specification or the history.
    """
    facts = Facts(history)
    check_statements(history, facts)
    checker = _RefutationChecker(facts, spec)
    if not steps:
        raise CertificateRejected("the refutation has no steps")
    clause: list[int] = [TRUE]
    for number, raw in enumerate(steps):
        try:
            clause = checker.step(parse_step(raw))
        except CertificateRejected as error:
            raise CertificateRejected(f"step {number}: {error}") from None
    if any(literal != FALSE for literal in clause):
        raise CertificateRejected("the last step is not the empty clause")
    return Followed(cycles=checker.cycles, accepted=checker.accepted, outside=checker.outside)


class _RefutationChecker:
    def __init__(self, facts: Facts, spec: Spec) -> None:
        self._facts = facts
        self.cycles = self.accepted = 0
        self.outside = ""
        self._beyond: NotCertifiedError | None = None
        try:
            facts.require(mentioned(spec))
            self._cycles = Cycles(facts, spec)
        except NotCertifiedError as error:
            self._beyond = error
        self._judges_reads = uses_reads_from(spec)
        self._clauses = Propagation()
        self._literals: dict[Literal, int] = {}
        # for each read, the literals of its sources
        self._groups: defaultdict[int, list[int]] = defaultdict(list)
        self._most_telling: dict[int, int] = {}
        self._candidates: dict[int, list[int]] = {}

    def step(self, step: Step) -> list[int]:
        """Check that a step's clause follows, add the clause, and return it."""
        # An anomaly step does not depend on the checks.
        if self._beyond is not None and not isinstance(step, AnomalyStep):
            raise self._beyond
        match step:
            case AnomalyStep():
                clause = self._anomaly(step)
            case ChoiceStep():
                clause = self._choice(step.op)
            case CycleStep():
                clause = self._cycle(step)
            case OrderStep():
                clause = self._order(step)
            case ExhaustionStep():
                clause = []
                self.outside = (
                    "not certified by definition: the refutation is the claim that no order of the "
                    "transactions exists, which only the native checker derives "
                    "(docs/certificates.md#exhaustion)"
                )
            case RupStep():
                clause = [
                    self._literal(literal) ^ (not positive) for positive, literal in step.literals
                ]
                if not self._clauses.implies(clause):
                    raise CertificateRejected("rup: unit propagation reaches no conflict")
        self._clauses.add(clause)
        return clause

    # --- the steps ---

    def _anomaly(self, step: AnomalyStep) -> list[int]:
        facts = self._facts
        self._belongs(step.op, step.txn)
        if step.other_op is not None:
            self._belongs(step.other_op, step.other_txn)
            if facts.key[step.other_op] != facts.key[step.op]:
                raise CertificateRejected("anomaly: the two operations have different keys")
        readers = [step.txn]
        if step.kind == Anomaly.CONTRADICTING_VERSIONS:
            # Contradicting stated versions violate every specification.
            if not versions_contradict(facts, step.op, step.other_op):
                raise CertificateRejected("anomaly: the versions do not contradict each other")
        elif not self._judges_reads:
            # A specification without rf is violated only by a contradiction in vo, because every ww
            # contains vo.
            other = step.op if step.other_op is None else step.other_op
            if not contradicts_order(facts, step.op, other):
                raise CertificateRejected("anomaly: the level ignores reads, and vo is an order")
            readers.append(facts.txn_of[other])
        elif step.kind == Anomaly.INCOMPATIBLE_ORDER and step.other_op is not None:
            if not are_incompatible(facts, step.op, step.other_op):
                raise CertificateRejected("anomaly: one list read is a prefix of the other")
            readers.append(facts.txn_of[step.other_op])
        elif step.kind == Anomaly.TWO_VALUES and self._is_read(step.other_op):
            if not initial_values_disagree(facts, step.op, step.other_op):
                raise CertificateRejected(
                    "anomaly: the two reads do not give one version two values"
                )
            readers.append(facts.txn_of[step.other_op])
        elif not shows_anomaly(facts, step.op, step.kind):
            raise CertificateRejected(
                f"anomaly: operation {step.op} shows none of kind {step.kind}"
            )
        return [self._included(t) ^ 1 for t in dict.fromkeys(readers)]

    def _is_read(self, op: int | None) -> TypeGuard[int]:
        return op is not None and self._facts.is_read(op)

    def _belongs(self, op: int, txn: int | None) -> None:
        facts = self._facts
        if txn is None or not (
            0 <= txn < facts.n and facts.op_start[txn] <= op < facts.op_start[txn + 1]
        ):
            raise CertificateRejected(f"operation {op} is not of transaction {txn}")

    def _choice(self, op: int) -> list[int]:
        candidates = self._candidates_of(op)
        if not candidates and not self._judges_reads:
            raise CertificateRejected(
                "choice: the level ignores reads, so a read may have no source"
            )
        clause = [self._literal(Source(op, u)) for u in candidates]
        return [*clause, self._included(self._facts.txn_of[op]) ^ 1]

    def _cycle(self, step: CycleStep) -> list[int]:
        if not step.edges:
            raise CertificateRejected("cycle: it has no edges")
        clause: list[int] = []
        for edge, following in zip(step.edges, (*step.edges[1:], step.edges[0]), strict=True):
            # mutant: definition-open-walk
            if edge.b != following.a:
                raise CertificateRejected(
                    f"cycle: an edge ends at {edge.b}, the next begins at {following.a}"
                )
            clause += self._needs(edge)
        self.cycles += 1
        try:
            self._cycles.require(step.check, step.edges)
            self.accepted += 1
        except NotCertifiedError as error:
            self.outside = str(error)
        return [literal ^ 1 for literal in clause]

    def _order(self, step: OrderStep) -> list[int]:
        if len(step.txns) < 2:
            raise CertificateRejected("order: fewer than two transactions")
        return [
            self._literal(Before(step.key, a, b)) ^ 1
            for a, b in zip(step.txns, (*step.txns[1:], step.txns[0]), strict=True)
        ]

    # --- edges and literals ---

    def _needs(self, edge: Edge) -> list[int]:
        """Return literals that together imply that an edge is a pair of its relation."""
        facts = self._facts
        of_statement = (edge.key, edge.writer)
        unused = {
            "wr": (edge.writer,),
            "ww": (edge.op, edge.writer),
            "rw": (),
            **dict.fromkeys(STATEMENT_LETTERS, of_statement),
        }.get(edge.relation, (edge.key, edge.op, edge.writer))
        if any(field != _UNUSED for field in unused):
            raise CertificateRejected(f"edge {edge.plain()}: an unused field is set")
        match edge.relation:
            case "committed-before" | "answered-before" | "po" | "committed-after" | "tx":
                self._of_statement(edge)
                return []
            case "wr":
                self._reads(edge, edge.b)
                return [self._literal(Source(edge.op, edge.a))]
            case "ww":
                return [self._literal(Before(edge.key, edge.a, edge.b))]
            case "rw":
                self._reads(edge, edge.a)
                if edge.a == edge.b:
                    raise CertificateRejected(
                        f"edge {edge.plain()}: rw must lead to another transaction"
                    )
                return [
                    self._literal(Source(edge.op, edge.writer)),
                    self._literal(Before(edge.key, edge.writer, edge.b)),
                ]
        if edge.relation not in (*OF_TRANSACTIONS, *FILTERED):
            raise CertificateRejected(f"edge {edge.plain()}: unknown relation")
        ends = 0 <= edge.a <= facts.n and 0 <= edge.b <= facts.n
        if not ends or not facts.relates(edge.relation, edge.a, edge.b):
            raise CertificateRejected(f"edge {edge.plain()}: the history does not say so")
        return []

    def _of_statement(self, edge: Edge) -> None:
        facts, op = self._facts, edge.op
        holds = 0 <= op < facts.operations and facts.is_external(op)
        if edge.relation == "committed-before":
            # mutant: python-committed-before
            holds = holds and facts.txn_of[op] == edge.b and facts.committed_before(edge.a, op)
        elif edge.relation == "committed-after":
            # mutant: python-committed-after
            holds = holds and facts.txn_of[op] == edge.a and facts.committed_after(op, edge.b)
        elif edge.relation in ("answered-before", "po"):
            holds = holds and facts.txn_of[op] == edge.b
        else:
            # mutant: python-own-commit
            holds = holds and facts.txn_of[op] == edge.a == edge.b
        if not holds:
            raise CertificateRejected(f"edge {edge.plain()}: the history does not say so")

    def _reads(self, edge: Edge, reader: int) -> None:
        self._candidates_of(edge.op)
        if self._facts.txn_of[edge.op] != reader or self._facts.key[edge.op] != edge.key:
            raise CertificateRejected(
                f"edge {edge.plain()}: not a read of that key by that transaction"
            )

    def _candidates_of(self, op: int) -> list[int]:
        if op not in self._candidates:
            if not self._facts.is_external(op):
                raise CertificateRejected(f"operation {op} is not an external read")
            self._candidates[op] = self._facts.candidates(op)
        return self._candidates[op]

    def _literal(self, literal: Literal) -> int:
        if literal not in self._literals:
            match literal:
                case Source():
                    self._literals[literal] = self._source(literal)
                case Before():
                    return self._before(literal)
                case In():
                    return self._included(literal.txn)
        return self._literals[literal]

    def _source(self, literal: Source) -> int:
        facts, op, u = self._facts, literal.op, literal.txn
        candidates = self._candidates_of(op)
        reader = facts.txn_of[op]
        if u not in candidates:
            raise CertificateRejected(f"transaction {u} is not a candidate source of the read {op}")
        if len(candidates) == 1 and self._included(reader) == TRUE:
            return TRUE
        variable = self._clauses.variable(self._groups[op])
        # If the read has this source, both the reader and the source are included.
        self._clauses.add([variable ^ 1, self._included(reader)])
        self._clauses.add([variable ^ 1, self._included(u)])
        return variable

    def _before(self, literal: Before) -> int:
        facts, key, a, b = self._facts, literal.key, literal.a, literal.b
        facts.require_writer(key, a)
        facts.require_writer(key, b)
        if a == b:
            raise CertificateRejected(f"transaction {a} does not precede itself in key {key}")
        if facts.n in (a, b):
            return TRUE if a == facts.n else FALSE
        if a > b:
            return self._literal(Before(key, b, a)) ^ 1
        shown = self._most_telling_list(key)
        if (shown >= 0 and facts.shows(shown, a, b)) or stated_before(facts, key, a, b):
            value = TRUE
        elif stated_before(facts, key, b, a) or (shown >= 0 and facts.shows(shown, b, a)):
            value = FALSE
        else:
            value = self._clauses.variable()
            self._conditional_order(value, literal)
        self._literals[literal] = value
        return value

    def _most_telling_list(self, key: int) -> int:
        if key not in self._most_telling:
            self._most_telling[key] = self._facts.most_telling_list(key)
        return self._most_telling[key]

    def _conditional_order(self, variable: int, literal: Before) -> None:
        """Add the clauses that relate ``a before b`` to the inclusion of transactions."""
        facts, a, b = self._facts, literal.a, literal.b
        for first, second, holds in ((a, b, variable), (b, a, variable ^ 1)):
            # Excluded transactions come last in every order.
            self._clauses.add([holds ^ 1, self._included(first), self._included(second) ^ 1])
            for op in facts.list_reads(literal.key):
                if not facts.certain(facts.txn_of[op]) and facts.shows(op, first, second):
                    self._clauses.add([self._included(facts.txn_of[op]) ^ 1, holds])

    def _included(self, t: int) -> int:
        facts = self._facts
        if not facts.live(t):
            raise CertificateRejected(f"transaction {t} is never included")
        if facts.certain(t) or t in facts.forced:
            return TRUE
        if In(t) not in self._literals:
            self._literals[In(t)] = variable = self._clauses.variable()
            for reader in self._showing(t):
                self._clauses.add([self._included(reader) ^ 1, variable])
        return self._literals[In(t)]

    def _showing(self, t: int) -> Iterable[int]:
        """Return the indeterminate transactions that read a list containing an element of ``t``."""
        facts = self._facts
        readers = {
            facts.txn_of[op]
            for key in facts.last[t]
            for op in facts.list_reads(key)
            if not facts.certain(facts.txn_of[op])
            and facts.txn_of[op] != t
            and t in facts.shown(op)
        }
        return sorted(readers)
