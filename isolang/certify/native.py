"""Checks witnesses and refutations of any size with the native checker."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.prefix import NameOf, number_names, prefix_text
from isolang.certify.proofs import Refutation, Witness
from isolang.certify.translate import (
    BACK_BY_STATEMENT,
    BY_STATEMENT,
    EARLIER,
    ONE_KEY,
    judged_checks,
)

if TYPE_CHECKING:
    from isolang._native import CheckKind
    from isolang.history.history import History
    from isolang.language.meaning.core import Check, Spec

_NOT_CERTIFIED = "not certified: "
_KINDS = {
    "acyclic": "acyclic",
    "irreflexive": "irreflexive",
    EARLIER: "earlier",
    ONE_KEY: "of_one_key",
    BY_STATEMENT: "by_statement",
    BACK_BY_STATEMENT: "back_by_statement",
}


def native_checks(spec: Spec) -> list[tuple[str, CheckKind, str, tuple[NameOf, ...]]]:
    """Return the checks that decide the verdict, in the native checker's input form.

    Each check is given as its name, its kind, its expression in prefix form, and a list of the
    names in quotes. The letters in the expression refer to this list by number.

    Raises:
        NotCertifiedError: if a check cannot be expressed as an event graph.
    """
    return [_native_form(check) for check in judged_checks(spec)]


@lru_cache(maxsize=256)  # one level often judges many histories
def _native_form(check: Check) -> tuple[str, CheckKind, str, tuple[NameOf, ...]]:
    from isolang._native import CheckKind

    kind = getattr(CheckKind, _KINDS[check.kind])
    return check.name, kind, prefix_text(check.expr), number_names(check.expr)[1]


def check_natively(
    history: History, spec: Spec, proof: Witness | Refutation, seconds: float = 0.0
) -> None:
    """Check a proof with the native checker.

    Args:
        history: the history that the proof is about.
        spec: the lowered specification.
        proof: a witness, which proves *valid*, or a refutation, which proves *invalid*.
        seconds: the time limit, after which the checker gives up; 0 for no limit.

    Raises:
        CertificateRejected: if the proof does not hold.
        NotCertifiedError: if the checker cannot decide the proof for this specification or history,
            or runs out of time.
    """
    from isolang._native import verify_refutation, verify_witness

    checks = native_checks(spec)
    if isinstance(proof, Witness):
        reason = verify_witness(
            history.columns,
            checks,
            proof.source,
            proof.order_start,
            proof.order_txn,
            proof.commits,
            proof.seen,
            seconds,
        )
    else:
        reason = verify_refutation(history.columns, checks, proof.plain(), seconds)
    if reason.startswith(_NOT_CERTIFIED):
        raise NotCertifiedError(reason)
    if reason:
        raise CertificateRejected(reason)
