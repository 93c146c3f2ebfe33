"""Turns a refutation into a violation: a small argument with its transactions and a name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from isolang.certify.facts import Facts
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
    Source,
    Step,
)
from isolang.explain import names, operations
from isolang.explain.argument import (
    Argument,
    CaseSplit,
    Clause,
    Contradiction,
    Derived,
    Refuted,
    Signed,
    canonical_literal,
    is_obvious,
    negate,
    plain_reason,
    required_literals,
)
from isolang.explain.derivation import MAX_EDGES, Reasoner, TooLongError, count_edges
from isolang.explain.part import HistoryPart, Sources, operations_of, part_of
from isolang.explain.premises import Premises
from isolang.explain.queries import QueryViews
from isolang.explain.transactions import show_transactions
from isolang.explain.versions import Versions, versions_of
from isolang.explain.violation import (
    ArgumentView,
    CaseView,
    Conclusion,
    CycleView,
    EdgeView,
    LemmaView,
    PlainReason,
    SplitView,
    Violation,
)
from isolang.explain.words import Phrases, quantity
from isolang.problem.anomalies import Anomaly, AnomalyKind
from isolang.problem.problem import Problem

# The largest number of clauses visited by the search for an argument; that takes well under a
# second.
EFFORT = 150_000
# The largest number of edges in an argument with several cycles. A longer argument would fill
# several screens and go unread.
READABLE = 48
# If a read without a source has more candidates than this, all candidates that are too old form one
# case, and all that are too new form another.
MAX_CASES = 4


def explain(problem: Problem, steps: Sequence[Step]) -> Violation:
    """Explain a refutation of a history."""
    found = _explained(problem, steps)
    failed = operations.failed_comparisons(problem.history, found.transactions)
    return replace(found, failed_comparisons=failed) if failed else found


def _explained(problem: Problem, steps: Sequence[Step]) -> Violation:
    if isinstance(steps[-1], AnomalyStep) and len(steps) == 1:
        return _intrinsic(problem, steps[-1])
    if isinstance(steps[-1], ExhaustionStep):
        return _exhausted(problem, steps[-1])
    sources = Sources(problem)
    txns = sources.closed(steps)
    part = part_of(problem.history, operations_of(problem.history, txns), txns)
    return _Explainer(part, part.to_part(steps), problem).violation()


def _intrinsic(problem: Problem, step: AnomalyStep) -> Violation:
    history, anomaly = problem.history, _anomaly(step)
    matters = anomaly.operations(history)
    txns = sorted({history.transaction_of(op) for op in matters})
    part = part_of(history, operations_of(history, txns))
    words = Phrases(part.history, Facts(part.history))
    inner = {i for i, op in enumerate(part.ops) if op in matters}
    name = names.name_of_step(step)
    return Violation(
        anomaly=name,
        meaning=operations.meaning(name, history),
        check="",
        transactions=show_transactions(part, words, range(part.history.t0), inner),
        argument=ArgumentView(
            lemmas=(),
            conclusion=PlainReason(text=anomaly.evidence(history) + ".", operations=matters),
        ),
        queries=QueryViews(part, words).of_anomaly(
            anomaly,
            part.ops.index(anomaly.op),
            None if anomaly.other_op is None else part.ops.index(anomaly.other_op),
        ),
        of_transactions=len(txns),
    )


def _exhausted(problem: Problem, step: ExhaustionStep) -> Violation:
    """Return the violation for an exhaustive search, which provides no readable argument."""
    how = (
        f"an exhaustive search found none ({step.states} states)"
        if step.states
        else "whatever the sources of the reads are, the necessary precedences leave no order"
    )
    text = (
        f"Every order of the transactions leaves some read without its value: {how}. "
        "No single cycle shows this."
    )
    return _without_a_cycle(problem, "no order", text)


def explain_no_model(problem: Problem, pair: str) -> Violation:
    """Return the violation for a solver's unproved claim that no model exists."""
    text = f"{pair} found that no choice of sources and version orders satisfies the checks."
    return _without_a_cycle(problem, "no model", text)


def _without_a_cycle(problem: Problem, anomaly: str, text: str) -> Violation:
    """Return a violation that shows no transactions, with a sentence as its argument."""
    return Violation(
        anomaly=anomaly,
        meaning=operations.meaning(anomaly, problem.history),
        check="",
        transactions=(),
        argument=ArgumentView(lemmas=(), conclusion=PlainReason(text=text)),
        of_transactions=problem.history.columns.transactions(),
    )


def _anomaly(step: AnomalyStep) -> Anomaly:
    return Anomaly(
        kind=AnomalyKind(step.kind),
        txn=step.txn,
        op=step.op,
        other_txn=step.other_txn,
        other_op=step.other_op,
    )


class _Explainer:
    def __init__(self, part: HistoryPart, steps: list[Step], problem: Problem) -> None:
        self._part = part
        self._facts = facts = Facts(part.history)
        self._words = Phrases(part.history, facts)
        self._premises = Premises(facts, self._words)
        self._steps = steps
        self._problem = problem
        self._queries = QueryViews(part, self._words)
        self._reset_view()

    def _reset_view(self) -> None:
        """Start a new view that does not yet mention any transactions, operations or relations."""
        self._numbers: dict[Signed, int] = {}
        self._mentioned: dict[int, None] = {}
        self._matters: set[int] = set()
        self._relations: set[str] = set()
        self._count = 0
        self._edges = 0

    def violation(self) -> Violation:
        view, name = self._found()
        # A lemma may use session order or real time even if the last cycle has no such edge.
        name = names.strip_suffix(name) + names.relation_suffix(self._relations)
        checks = [step.check for step in self._steps if isinstance(step, CycleStep)]
        shown = [t for t in self._mentioned if t != self._facts.n]
        keys = {self._facts.key[op] for t in shown for op in self._part.history.operations_of(t)}
        key = self._words.key(min(keys)) if len(keys) == 1 else ""
        return Violation(
            anomaly=name,
            meaning=operations.meaning(name, self._problem.history, self._relations, key),
            check=_first_check(view) or (checks[-1] if checks else ""),
            transactions=show_transactions(self._part, self._words, shown, self._matters),
            argument=view,
            queries=self._queries.of(view),
            of_transactions=self._part.history.columns.transactions(),
        )

    def _found(self) -> tuple[ArgumentView, str]:
        """Return the view of the argument, and the name of the anomaly."""
        try:
            if count_edges(self._steps) > MAX_EDGES:
                raise TooLongError
            if (versions := versions_of(self._premises, self._steps, MAX_CASES)) is not None:
                return self._one_of_many(versions), names.weakest(self._names(versions.argument))
            argument = self._argument()
            return self._view(argument, frozenset()), names.weakest(self._names(argument) or ["G2"])
        except TooLongError:
            self._reset_view()
            return self._unargued()

    # --- the argument ---

    def _argument(self) -> Argument:
        # If a read has very many candidates, an argument would have to rule out each of them.
        choices = [step.op for step in self._steps if isinstance(step, ChoiceStep)]
        if any(len(self._facts.candidates(op)) > READABLE for op in choices):
            raise TooLongError
        clauses = self._premises.clauses(self._steps)
        return Reasoner(clauses, self._premises.fact, 1 + EFFORT // len(clauses)).argue()

    def _names(self, argument: Argument) -> list[str]:
        """Return the names of all cycles, including those of lemmas.

        A lemma holds because otherwise its cycle would exist, so at least one of these cycles
        happened.
        """
        found = []
        for lemma in argument.lemmas:
            if isinstance(lemma, Refuted):
                found += self._names(lemma.otherwise)
            elif isinstance(lemma.clause.step, CycleStep):
                found.append(self._name(lemma.clause.step))
        if isinstance(argument.end, CaseSplit):
            return found + [name for _, case in argument.end.cases for name in self._names(case)]
        step = argument.end.clause.step
        if isinstance(step, AnomalyStep):
            found.append(names.name_of_step(step))
        elif isinstance(step, CycleStep):
            found.append(self._name(step))
        return found

    def _name(self, step: CycleStep) -> str:
        return names.name_of_cycle(
            step.edges, lambda t, key: key in self._facts.last[t], self._facts
        )

    # --- a read of one of many versions ---

    def _one_of_many(self, versions: Versions) -> ArgumentView:
        """Return a view with two cases: versions that are too old, and those that are too new."""
        words, op = self._words, versions.op
        reader, key = words.txn(self._facts.txn_of[op]), words.key(self._facts.key[op])
        missed = words.is_missed(op)
        weakest = names.weakest(self._names(versions.argument))
        cases = []
        groups = versions.groups()
        for group in groups:
            one = versions.example(group, words, lambda step: self._name(step) == weakest)
            chosen = canonical_literal(True, Source(op, one.txn))
            inner = Argument(versions.needed(one), Contradiction(one.clause))
            view = self._view(inner, frozenset({chosen}))
            txns, ops = self._mention_literal(chosen[1])
            text = group.text(reader, key, one, words)
            cases.append(
                CaseView(assumption=text, transactions=txns, operations=ops, argument=view)
            )
            if missed and group.kind == "old" and one.is_replaced_by_match(op, words):
                why = " or ".join(f"too {other.kind}" for other in groups)
                self._queries.missing(op, one.overwritten_by, why)
        count = quantity(len(versions.refuted), "version")
        text = f"{reader} read {words.seen(op)}, from one of {count}, but none of them is possible"
        if missed:
            text = f"{words.not_found(op)}. Then it saw one of the {count} of {key} that do not "
            text += "match, but none of them is possible"
        return ArgumentView(lemmas=(), conclusion=SplitView(text=text, cases=tuple(cases)))

    # --- views ---

    def _view(self, argument: Argument, assumed: frozenset[Signed]) -> ArgumentView:
        lemmas = []
        for lemma in argument.lemmas:
            if is_obvious(lemma):
                continue
            view = self._lemma(lemma, assumed)
            self._numbers[lemma.literal] = view.number
            lemmas.append(view)
        conclusion: Conclusion
        if isinstance(argument.end, Contradiction):
            conclusion = self._clause(argument.end.clause, assumed)
        else:
            conclusion = self._split(argument.end, assumed)
        return ArgumentView(lemmas=tuple(lemmas), conclusion=conclusion)

    def _split(self, split: CaseSplit, assumed: frozenset[Signed]) -> SplitView:
        cases = []
        for literal, against in split.cases:
            saved = dict(self._numbers)
            view = self._view(against, assumed | {literal})
            # Lemmas of one case do not hold in the next, but their numbers are not reused.
            self._numbers = saved
            txns, ops = self._mention_literal(literal[1])
            assumption = self._words.literal(*literal)
            cases.append(
                CaseView(assumption=assumption, transactions=txns, operations=ops, argument=view)
            )
        return SplitView(text=_question(split, self._words), cases=tuple(cases))

    def _lemma(self, lemma: Derived | Refuted, assumed: frozenset[Signed]) -> LemmaView:
        txns, ops = self._mention_literal(lemma.literal[1])
        self._count += 1
        number = self._count
        reason: CycleView | ArgumentView | PlainReason
        simple = plain_reason(lemma)
        if simple is not None:
            shown = self._whole(self._mention_edge(simple))
            reason = PlainReason(text=self._words.edge(simple, False), operations=shown)
        elif isinstance(lemma, Refuted):
            reason = self._view(lemma.otherwise, assumed | {negate(lemma.literal)})
        else:
            reason = self._clause(lemma.clause, assumed | {negate(lemma.literal)}, lemma.literal)
        text = self._words.literal(*lemma.literal)
        return LemmaView(number=number, text=text, transactions=txns, operations=ops, reason=reason)

    def _clause(
        self, clause: Clause, assumed: frozenset[Signed], but: Signed | None = None
    ) -> CycleView | PlainReason:
        """Return a view of the reason why at least one literal of a clause must hold.

        All literals except ``but`` are false, so ``but`` holds. If ``but`` is ``None``, no literal
        holds, which is a contradiction.
        """
        if isinstance(clause.step, CycleStep):
            return self._cycle(clause.step, assumed)
        because = tuple(
            sorted({n for x in clause.literals if x != but and (n := self._numbers.get(negate(x)))})
        )
        match clause.step:
            case ChoiceStep(op):
                self._mention(self._facts.txn_of[op], op)
                reason = "the only source left"
                if but is None or not isinstance(but[1], Source):
                    reason = f"no source is left for the read of {self._words.seen(op)}"
                return PlainReason(text=reason, because=because, operations=self._whole([op]))
            case OrderStep(key):
                text = f"the versions of {self._words.key(key)} are in an order"
                return PlainReason(text=text, because=because)
            case AnomalyStep():
                (whole,) = self._part.to_whole([clause.step])
                assert isinstance(whole, AnomalyStep)
                self._mention(clause.step.txn, clause.step.op)
                anomaly, history = _anomaly(whole), self._problem.history
                about = anomaly.operations(history)
                return PlainReason(
                    text=anomaly.evidence(history), because=because, operations=about
                )
        about = tuple(op for _, x in clause.literals for op in self._mention_literal(x)[1])
        return PlainReason(text=clause.note, because=because, operations=about)

    def _cycle(self, step: CycleStep, assumed: frozenset[Signed]) -> CycleView:
        edges = _rotated(step.edges)
        only = sum(edge.relation == "rw" for edge in edges) == 1
        views = []
        first = self._edges == 0  # always show at least one cycle, however long it is
        self._edges += len(edges)
        if self._edges > READABLE and not first:
            raise TooLongError
        for edge in edges:
            ops = self._mention_edge(edge)
            literals = [canonical_literal(True, x) for x in required_literals(edge)]
            numbers = sorted({self._numbers[x] for x in literals if x in self._numbers})
            views.append(
                EdgeView(
                    relation=edge.relation,
                    source=self._words.txn(edge.a),
                    target=self._words.txn(edge.b),
                    ends=(self._part.txns[edge.a], self._part.txns[edge.b]),
                    key=self._part.history.key(edge.key) if edge.key >= 0 else "",
                    text=self._words.edge(edge, only) + self._evidence_of(edge),
                    operations=self._whole(ops),
                    where=self._words.places(ops),
                    because=tuple(numbers),
                    assumed=any(x in assumed for x in literals),
                )
            )
        return CycleView(check=step.check, anomaly=self._name(step), edges=tuple(views))

    def _mention_edge(self, edge: Edge) -> list[int]:
        """Mark the transactions and operations of an edge as shown, and return its operations."""
        ops = self._words.operations_of_edge(edge)
        if (shown := self._premises.shown_by(edge)) is not None:
            ops.append(shown)
        ops += self._premises.stated_by(edge) or ()
        self._relations.add(edge.relation)
        self._mention(edge.a)
        self._mention(edge.b)
        if edge.relation == "rw":  # for a lost update, also show the reader's write
            self._mention(edge.a, self._words.write_of(edge.a, edge.key))
        for op in ops:
            self._mention(self._facts.txn_of[op], op)
        return ops

    def _mention_literal(self, literal: Literal) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Mark the transactions and operations of a literal as shown, and return both."""
        about: list[tuple[int, int | None]]
        match literal:
            case Before(key, a, b):
                about = [(txn, self._words.write_of(txn, key)) for txn in (a, b)]
            case Source(op, txn):
                write = self._words.write_of(txn, self._facts.key[op])
                about = [(self._facts.txn_of[op], op), (txn, write)]
            case In(txn):
                about = [(txn, None)]
        for txn, op_or_none in about:
            self._mention(txn, op_or_none)
        txns = tuple(self._part.txns[txn] for txn, _ in about)
        return txns, self._whole(op for _, op in about if op is not None)

    def _whole(self, ops: Iterable[int]) -> tuple[int, ...]:
        """Translate the part's operations into numbers in the whole history, without duplicates."""
        return tuple(dict.fromkeys(self._part.ops[op] for op in ops))

    def _evidence_of(self, edge: Edge) -> str:
        shown = self._premises.shown_by(edge)
        stated = self._premises.stated_by(edge)
        if stated is not None:
            before, after = (self._part.history.version(op) for op in stated)
            return f", as version {before!s} comes before {after!s}"
        if shown is None:
            return ""
        reader = self._words.txn(self._facts.txn_of[shown])
        return f", as {reader} read {self._words.value(shown)}"

    def _mention(self, txn: int, op: int | None = None) -> None:
        self._mentioned.setdefault(txn)
        if op is not None:
            self._matters.add(op)

    def _unargued(self) -> tuple[ArgumentView, str]:
        """Return the view for an argument that is too long: its size and its simplest cycle."""
        cycles = [step for step in self._steps if isinstance(step, CycleStep)]
        weakest = names.weakest([self._name(step) for step in cycles])
        of_name = [step for step in cycles if self._name(step) == weakest]
        best = min(of_name, key=lambda s: (sum(e.relation == "rw" for e in s.edges), len(s.edges)))
        everything = {literal for edge in best.edges for literal in required_literals(edge)}
        assumed = frozenset(canonical_literal(True, x) for x in everything)
        view = self._cycle(best, assumed)
        choices = sum(isinstance(step, ChoiceStep) for step in self._steps)
        text = (
            "No choice of sources and orders avoids a cycle: the refutation "
            f"has {quantity(len(cycles), 'cycle')} and "
            f"{quantity(choices, 'ambiguous read')} over "
            f"{quantity(self._part.history.columns.transactions(), 'transaction')}, "
            "too many to list; the certificate contains all of them. The "
            "simplest of the cycles"
        )
        case = CaseView(assumption=text, argument=ArgumentView(lemmas=(), conclusion=view))
        return ArgumentView(
            lemmas=(), conclusion=SplitView(text="every choice leads to a cycle", cases=(case,))
        ), weakest


def _question(split: CaseSplit, words: Phrases) -> str:
    """Return a sentence about the cases of a split."""
    if split.choice is not None:
        reader = words.txn(words.facts.txn_of[split.choice.op])
        seen = words.seen(split.choice.op)
        return f"{reader} read {seen} from one of {len(split.cases)} transactions"
    match split.cases[0][0][1]:
        case Before(key, a, b):
            return f"{words.txn(a)} and {words.txn(b)} wrote {words.key(key)} in either order"
        case Source(op, txn):
            reader = words.txn(words.facts.txn_of[op])
            return f"{reader} read {words.seen(op)} from {words.txn(txn)}, or did not"
        case In(txn):
            return f"{words.txn(txn)} took effect, or did not"


def _rotated(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Return a cycle, rotated to end with an anti-dependency if it has one.

    An explanation is clearer if the write missed by a read comes last.
    """
    last = [i for i, edge in enumerate(edges) if edge.relation == "rw"]
    at = last[-1] + 1 if last else min(range(len(edges)), key=lambda i: edges[i].a)
    return edges[at:] + edges[:at]


def _first_check(argument: ArgumentView) -> str:
    conclusion = argument.conclusion
    if isinstance(conclusion, CycleView):
        return conclusion.check
    if isinstance(conclusion, SplitView):
        return next((c for case in conclusion.cases if (c := _first_check(case.argument))), "")
    return ""
