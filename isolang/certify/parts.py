"""Specifications of which a part is for the native checker, and the rest for definitions alone.

SOUND BECAUSE a refutation by some of the checks is one of all, and a witness that meets each check
meets all: it does not matter which checker looks at which check.
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
    """Check a proof, natively where that is possible and the rest of it by definition.

    Args:
        history: the history.
        spec: the lowered specification, as it was written.
        parts: of the specification.
        proof: a witness or a refutation.
        seconds: the native checker gives up after this long; 0 means never.

    Raises:
        CertificateRejected: the proof does not hold.
        NotCertifiedError: the spec or the history is beyond both checkers, or the time is up.
    """
    if not parts.is_all and isinstance(proof, Witness):
        check_remaining_checks(history, spec, parts, proof)
    check_natively(history, parts.plan.spec, proof, seconds)


def check_remaining_checks(
    history: History, spec: Spec, parts: SpecSplit, witness: Witness
) -> ConcreteInterpretation:
    """Check by definition that a witness meets the checks that the native checker does not cover.

    Returns:
        The assignment that the witness is.

    Raises:
        CertificateRejected: it does not meet one.
        NotCertifiedError: they speak of what a witness does not have, or the history is too large.
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
                f"not certified by definition: check {check.name} speaks of {min(missing)}, which "
                "a witness does not have"
            )
    return check_witness(
        history,
        spec,
        witness.source,
        witness.order_start,
        witness.order_txn,
        only=parts.other_checks,
    )
