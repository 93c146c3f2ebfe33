"""Checks proofs for specifications with some checks that the native checker cannot decide.

The other checks are evaluated by definition. SOUND BECAUSE a refutation that uses some of the
checks refutes the whole specification, and a witness that meets each check meets all of them.
Therefore it does not matter which checker decides which check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolang.certify.errors import NotCertifiedError
from isolang.certify.native import check_natively
from isolang.certify.proofs import Refutation, Witness
from isolang.certify.witness import check_witness
from isolang.language.meaning.mentions import names

if TYPE_CHECKING:
    from isolang.certify.world import ConcreteInterpretation
    from isolang.history.history import History
    from isolang.language.classify.split import SpecSplit
    from isolang.language.meaning.core import Spec


def check_in_parts(
    history: History,
    spec: Spec,
    parts: SpecSplit,
    proof: Witness | Refutation,
    seconds: float = 0.0,
) -> None:
    """Check a proof natively, and by definition for checks unsupported by the native checker.

    Raises:
        CertificateRejected: if the proof does not hold.
        NotCertifiedError: if neither checker can decide the proof for this specification or
            history, or if time runs out.
    """
    if not parts.is_all and isinstance(proof, Witness):
        check_remaining_checks(history, spec, parts, proof)
    check_natively(history, parts.plan.spec, proof, seconds)


def check_remaining_checks(
    history: History, spec: Spec, parts: SpecSplit, witness: Witness
) -> ConcreteInterpretation:
    """Check by definition that a witness meets the checks not decided by the native checker.

    Raises:
        CertificateRejected: if the witness violates one of these checks.
        NotCertifiedError: if the checks use relations not contained in a witness, or if the history
            is too large.
    """
    if parts.unchosen:
        raise NotCertifiedError(
            f"not certified by definition: a witness has no {parts.unchosen[0].name}"
        )
    chosen = {exists.name for exists in spec.exists} - {"rf", "ww"}
    for check in parts.other_checks:
        parts_of_it = [e for e in (check.expr, check.bound) if e is not None]
        if missing := chosen & frozenset().union(*map(names, parts_of_it)):
            raise NotCertifiedError(
                f"not certified by definition: check {check.name} refers to "
                f"{min(missing)}, which a witness does not contain"
            )
    return check_witness(
        history,
        spec,
        witness.source,
        witness.order_start,
        witness.order_txn,
        only=parts.other_checks,
    )
