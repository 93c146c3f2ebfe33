"""Proofs checked by the native checker: for every verdict, at any size."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.prefix import NameOf, numbered, prefix_text
from isolang.certify.proofs import Refutation, Witness
from isolang.certify.translate import BACK_BY_STATEMENT, BY_STATEMENT, EARLIER, ONE_KEY, judged

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
    """The judged checks as the native checker takes them: name, kind, expression in prefix form.

    And what the names in quotes are that its letters refer to by number.

    Raises:
        NotCertifiedError: a check is outside event graphs.
    """
    return [_as_taken(check) for check in judged(spec)]


@lru_cache(maxsize=256)  # one level judges many histories
def _as_taken(check: Check) -> tuple[str, CheckKind, str, tuple[NameOf, ...]]:
    from isolang._native import CheckKind

    kind = getattr(CheckKind, _KINDS[check.kind])
    return check.name, kind, prefix_text(check.expr), numbered(check.expr)[1]


def check_natively(
    history: History, spec: Spec, proof: Witness | Refutation, seconds: float = 0.0
) -> None:
    """Check a proof with the native checker.

    Args:
        history: the history.
        spec: the lowered specification.
        proof: a witness or a refutation.
        seconds: give up after this long; 0 means never.

    Raises:
        CertificateRejected: the proof does not hold.
        NotCertifiedError: the spec or the history is beyond the checker, or the time is up.
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
