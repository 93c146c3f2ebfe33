"""A proof put to both checkers: which of them accepts what of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Proof, Refutation, Witness, check_proof
from isolang.language.classify.theorems import event_graph_form

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec


class Acceptance(Struct, frozen=True, kw_only=True):
    """Who accepts a proof; at least one of the two accepts all of it.

    Attributes:
        natively: whether the native checker does.
        beyond_native: why it does not; empty if it does.
        by_definition: what was accepted by definition, in words; empty if nothing was.
        beyond_definition: why that is not all; empty if it is.
    """

    natively: bool
    beyond_native: str
    by_definition: str
    beyond_definition: str

    def __str__(self) -> str:
        """Who accepted what, in one line."""
        who = ["native checker (all)"] if self.natively else []
        if self.by_definition:
            inside = "; ".join(
                part for part in (self.by_definition, self.beyond_definition) if part
            )
            return ", ".join([*who, f"by definition ({inside})"])
        return f"{', '.join(who)}; not by definition: {self.beyond_definition}"


def accept(
    history: History, spec: Spec, proof: Proof, *, seconds: float | None = None
) -> Acceptance:
    """Put a proof to both checkers.

    Args:
        history: what it is about.
        spec: the lowered spec, as it was written.
        proof: what to check.
        seconds: after which a checker gives up; ``None`` for no limit.

    Raises:
        CertificateRejected: one of them refuses it; the message says which.
        NotCertifiedError: neither can decide all of it.
    """
    beyond_native = _natively(history, spec, proof, seconds)
    try:
        said, beyond = _by_definition(history, spec, proof, seconds)
    except CertificateRejected as error:
        raise CertificateRejected(f"by definition: {error}") from None
    if beyond_native and beyond:
        native = "" if beyond_native == _NO_NATIVE else f" (natively: {beyond_native})"
        raise NotCertifiedError(f"not certified: {beyond}{native}")
    return Acceptance(
        natively=not beyond_native,
        beyond_native=beyond_native,
        by_definition=said,
        beyond_definition=beyond,
    )


_NO_NATIVE = "there is no native checker of such proofs"


def _natively(history: History, spec: Spec, proof: Proof, seconds: float | None) -> str:
    """Why the native checker does not accept a proof; empty if it does."""
    from isolang.certify.native import check_natively

    if not isinstance(proof, Witness | Refutation):
        return _NO_NATIVE
    # It speaks of version orders; a theorem may say that the spec does, too.
    theorem = event_graph_form(spec)
    try:
        check_natively(history, theorem.spec if theorem else spec, proof, seconds or 0.0)
    except NotCertifiedError as error:
        return _reason(error)
    except CertificateRejected as error:
        raise CertificateRejected(f"native checker: {error}") from None
    return ""


def _by_definition(
    history: History, spec: Spec, proof: Proof, seconds: float | None
) -> tuple[str, str]:
    """What is accepted by definition, and why that is not all."""
    try:
        if not isinstance(proof, Refutation):
            check_proof(history, spec, proof, seconds)
            return "all", ""
        from isolang.certify.refutation import follow

        followed = follow(history, spec, proof.steps)
    except NotCertifiedError as error:
        return "", _reason(error)
    said = f"{followed.accepted:,} of {followed.cycles:,} cycle steps"
    if not followed.outside:
        return f"all: {said}", ""
    return said if followed.accepted else "", _reason(NotCertifiedError(followed.outside))


def _reason(error: NotCertifiedError) -> str:
    for prefix in ("not certified by definition: ", "not certified: "):
        if str(error).startswith(prefix):
            return str(error).removeprefix(prefix)
    return str(error)
