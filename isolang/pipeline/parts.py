"""Decides a specification split into two parts.

The engine decides the first part. If it refutes this part, the history is invalid. If its model
also satisfies the second part, the history is valid. Otherwise a search must decide all checks
together. docs/routes.md#in-parts has the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec.structs import replace

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.parts import check_remaining_checks
from isolang.certify.proofs import Relations, Witness
from isolang.certify.relations import LARGEST, check_relations
from isolang.errors import UnsupportedError
from isolang.history.columns import INDETERMINATE
from isolang.language.meaning.mentions import names, uses_groups, uses_reads_from, uses_real_time
from isolang.pipeline.pair_run import contradiction
from isolang.pipeline.reconstruct import reconstruct
from isolang.problem import build_problem
from isolang.rows import bits
from isolang.verdict import Invalid, Unknown, Valid

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.relational import Relational
    from isolang.language.classify.route import Route
    from isolang.language.classify.split import SpecSplit
    from isolang.language.meaning.core import Check, Spec
    from isolang.limits import Deadline
    from isolang.problem import Problem
    from isolang.verdict import Verdict

    _Decide: TypeAlias = Callable[["Route", "Problem"], "Verdict"]

# The maximum number of indeterminate transactions named by a note.
_NAMED = 12


def decide_in_parts(
    history: History,
    route: Relational,
    deadline: Deadline,
    decide: _Decide,
    *,
    problem: Problem | None,
) -> Verdict | None:
    """Decide a specification by the part that the engine can decide, if that suffices."""
    parts, spec = route.parts, route.spec
    assert parts is not None
    with deadline.during("prepare"):
        problem = problem or build_problem(history)
    try:
        if contradiction(problem, route) is not None:
            return None  # the pre-pass refutes the whole specification
    except UnsupportedError:
        return None
    if any(_may_violate_flag(history, problem, spec, flag) for flag in parts.flags):
        return None
    found = decide(parts.plan, problem)
    if not isinstance(found, Valid):
        return _verdict_of_part(found, parts)
    if parts.unchosen:
        return None
    if parts.other_checks:
        with deadline.during("certify", to_the_end=True):
            met = _verdict_if_other_checks_hold(history, route, parts, found)
        if met is None:
            return None
        found = met
    notes = [*found.notes]
    if spec.shows:
        from isolang.pipeline.shown import show_lines, show_lines_of_witness

        if isinstance(found.witness, Relations):
            notes += show_lines(history, spec, found.witness)
        else:
            notes += show_lines_of_witness(history, spec, found.witness)
    notes += _flags(spec, parts.flags, lambda way: decide(way, problem))
    seconds = replace(deadline.seconds(), read=found.seconds.read)
    return replace(found, spec=spec, notes=tuple(notes), seconds=seconds)


def _verdict_of_part(found: Verdict, parts: SpecSplit) -> Verdict:
    """Return the verdict on the first part, with a note on the other checks if it is invalid."""
    if isinstance(found, Invalid) and parts.other_checks:
        others = ", ".join(f"`{check.name}`" for check in parts.other_checks)
        note = f"the other checks are violated whether or not {others} holds"
        return replace(found, notes=(*found.notes, note))
    return found


# --- valid ---


def _verdict_if_other_checks_hold(
    history: History, route: Relational, parts: SpecSplit, found: Valid
) -> Valid | None:
    """Return the verdict *valid* on the whole specification; ``None`` if not established.

    The history is valid if the model of the first part also satisfies the other checks.
    """
    proof: Witness | Relations | None = found.witness
    try:
        if isinstance(proof, Witness) and not _mentions_any(parts.other_checks, parts.chosen):
            world = check_remaining_checks(history, route.spec, parts, proof)
            members = [t for t in bits(world.transactions) if t != world.t0]
        else:
            proof = _constructed_relations(history, parts, found.witness)
            if proof is None:
                return None
            check_relations(history, route.spec, proof.included, proof.chosen)
            members = list(proof.included)
    except (CertificateRejected, NotCertifiedError):
        return None
    return replace(
        found,
        witness=proof,
        notes=(*found.notes, *included_transactions_note(history, route, members)),
    )


def _mentions_any(checks: Sequence[Check], chosen: frozenset[str]) -> bool:
    parts = (e for check in checks for e in (check.expr, check.bound) if e is not None)
    return any(chosen & names(e) for e in parts)


def _constructed_relations(
    history: History, parts: SpecSplit, proof: Witness | Relations
) -> Relations | None:
    """Return the order and the visibility constructed from version orders by a theorem.

    Return ``None`` if no theorem applies, or if the history has too many transactions.
    """
    theorem = parts.plan.theorem
    if isinstance(proof, Relations):
        return proof
    if theorem is None or history.columns.transactions() > LARGEST:
        return None
    return reconstruct(history, theorem, proof)


def included_transactions_note(
    history: History, route: Relational, members: Sequence[int]
) -> list[str]:
    """Return a list with a note that names the indeterminate transactions that took effect.

    The list is empty if the history has no indeterminate transactions, or if only those that an
    included transaction read from can matter.
    """
    if not route.unread_matter:
        return []
    status = history.columns.txn_status
    indeterminate = {t for t in range(history.t0) if status[t] == INDETERMINATE}
    if not indeterminate:
        return []
    kept = [history.name_of(t) for t in members if t in indeterminate]
    named = ", ".join(kept[:_NAMED]) + (", …" if len(kept) > _NAMED else "")
    these = f"these took effect: {named or 'none'}"
    return [f"of {len(indeterminate)} transactions of unknown outcome {these}"]


# --- flags ---


def _may_violate_flag(history: History, problem: Problem, spec: Spec, flag: Check) -> bool:
    """Return whether a history may violate the flag as an axiom although some choice meets it.

    If an axiom uses reads, anomalies of reads are violations; if it uses times or groups, the
    history must have them.
    """
    met = _with_flag(spec, flag)
    if uses_real_time(met) and not history.columns.has_time:
        return not uses_real_time(spec)
    if uses_groups(met) and not history.columns.has_groups:
        return not uses_groups(spec)
    if uses_reads_from(met) and not uses_reads_from(spec):
        # `problem.anomalies` omits the reads of indeterminate transactions without readers.
        indeterminate = (history.columns.txn_status == INDETERMINATE).any()
        return bool(indeterminate or problem.anomalies(limit=1))
    return False


def _with_flag(spec: Spec, flag: Check) -> Spec:
    judged = tuple(check for check in spec.checks if not check.flag)
    return replace(spec, checks=(*judged, replace(flag, flag=False)), shows=())


def _flags(spec: Spec, flags: Sequence[Check], decide: Callable[[Route], Verdict]) -> Iterator[str]:
    """Yield a note for each flag that says whether it holds.

    A flag holds iff no model of the other checks meets its check.
    """
    from isolang.language.classify.route import route

    for flag in flags:
        match found := decide(route(_with_flag(spec, flag))):
            case Valid():
                yield f"flag `{flag.name}` does not hold, because some choice satisfies it"
            case Invalid():
                yield f"flag `{flag.name}` holds"
            case Unknown():
                yield f"flag `{flag.name}` is unknown: {found.reason}"
            case _:
                assert_never(found)
