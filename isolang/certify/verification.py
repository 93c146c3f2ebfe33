"""Checks a proof with all checkers, and reports how much of it each checker accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from isolang.certify.carried import check_carried_reads
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Proof, Refutation, Witness, check_proof
from isolang.certify.steps import AnomalyStep
from isolang.language.classify.relational import Relational
from isolang.language.classify.route import route
from isolang.language.classify.theorems import event_graph_form
from isolang.language.meaning.mentions import uses_reads_from

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.split import SpecSplit
    from isolang.language.meaning.core import Spec


class Acceptance(Struct, frozen=True, kw_only=True):
    """The parts of a proof accepted by each checker.

    Between them, the native checker and the checker by definition accept the whole proof.

    Attributes:
        natively: whether the native checker accepts the whole proof.
        beyond_native: the reason why the native checker does not accept the whole proof; empty if
            it does.
        by_definition: the part accepted by the checker by definition, in words; empty if there is
            none.
        beyond_definition: the reason why the checker by definition does not accept the whole proof;
            empty if it does.
        rest_natively: whether the native checker accepts the checks not examined by the checker by
            definition.
        beyond_kernel: the reason why the kernel does not accept the proof; empty if it does or did
            not run.
    """

    natively: bool
    beyond_native: str
    by_definition: str
    beyond_definition: str
    rest_natively: bool = False
    by_kernel: bool = False
    beyond_kernel: str = ""

    def __str__(self) -> str:
        """Summarize in one line how much of the proof each checker accepts."""
        if self.by_kernel:
            return f"{self._by_two()}, kernel (all)"
        if self.beyond_kernel:
            return f"{self._by_two()}; not by the kernel: {self.beyond_kernel}"
        return self._by_two()

    def _by_two(self) -> str:
        if self.rest_natively:
            return f"native checker (all but {self.by_definition}), by definition (those)"
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
    """Check a proof with the native checker and with the checker by definition.

    Raises:
        CertificateRejected: if a checker rejects the proof; the message says which checker.
        NotCertifiedError: if no checker can decide the whole proof.
    """
    check_carried_reads(history)
    beyond_native = _natively(history, spec, proof, seconds)
    try:
        accepted, beyond = _by_definition(history, spec, proof, seconds)
    except CertificateRejected as error:
        raise CertificateRejected(f"by definition: {error}") from None
    if beyond_native and beyond:
        parts = _parts_of(spec, proof)
        if (
            isinstance(proof, Witness)
            and parts is not None
            and parts.other_checks
            and not parts.unchosen
        ):
            return _in_parts(history, spec, parts, proof, seconds)
        native = "" if beyond_native == _NO_NATIVE else f" (natively: {beyond_native})"
        raise NotCertifiedError(f"not certified: {beyond}{native}")
    return Acceptance(
        natively=not beyond_native,
        beyond_native=beyond_native,
        by_definition=accepted,
        beyond_definition=beyond,
    )


def accept_by_kernel(
    accepted: Acceptance,
    history: History,
    spec: Spec,
    proof: Proof,
    *,
    seconds: float | None = None,
) -> Acceptance:
    """Also check a proof with the kernel, and return the combined result of the three checkers.

    Raises:
        CertificateRejected: if the kernel rejects the proof.
    """
    from isolang.certify.kernel import check_by_kernel

    try:
        check_by_kernel(history, spec, proof, seconds=seconds)
    except NotCertifiedError as error:
        return replace(accepted, beyond_kernel=_reason(error))
    return replace(accepted, by_kernel=True)


def _parts_of(spec: Spec, proof: Proof) -> SpecSplit | None:
    """Return the split of the specification if the proof covers only the engine's part.

    Return ``None`` if the specification is not decided in parts, or if the proof covers all of its
    checks.
    """
    way = route(spec)
    if not isinstance(way, Relational) or way.parts is None:
        return None
    anomaly = isinstance(proof, Refutation) and any(
        isinstance(step, AnomalyStep) for step in proof.steps
    )
    # An anomaly violates the specification, which uses reads, but perhaps not the engine's part.
    return None if anomaly and not uses_reads_from(way.parts.part) else way.parts


def _in_parts(
    history: History, spec: Spec, parts: SpecSplit, proof: Witness, seconds: float | None
) -> Acceptance:
    """Check a witness, assigning each check to the checker that can decide it."""
    from isolang.certify.parts import check_in_parts

    check_in_parts(history, spec, parts, proof, seconds or 0.0)
    return Acceptance(
        natively=False,
        beyond_native="",
        by_definition=", ".join(f"check {check.name}" for check in parts.other_checks),
        beyond_definition="",
        rest_natively=True,
    )


_NO_NATIVE = "no native checker exists for such proofs"


def _natively(history: History, spec: Spec, proof: Proof, seconds: float | None) -> str:
    """Return the reason why the native checker does not accept a proof; empty if it does."""
    from isolang.certify.native import check_natively

    if not isinstance(proof, Witness | Refutation):
        return _NO_NATIVE
    parts = _parts_of(spec, proof)
    if parts is None:
        # The proof has version orders, and a theorem may restate the specification in terms of
        # these.
        theorem = event_graph_form(spec)
        judged = theorem.spec if theorem else spec
    elif isinstance(proof, Witness) and not parts.is_all:
        names = [*(check.name for check in parts.other_checks), *(e.name for e in parts.unchosen)]
        return f"the native checker does not support {names[0]}"
    else:
        # A refutation that uses some of the checks refutes the whole specification. Flags are not
        # judged.
        judged = parts.plan.spec
    try:
        check_natively(history, judged, proof, seconds or 0.0)
    except NotCertifiedError as error:
        return _reason(error)
    except CertificateRejected as error:
        if parts is None and isinstance(route(spec), Relational):
            # the native checker may reject such checks instead of reporting that it does not
            # support them
            return str(error)
        raise CertificateRejected(f"native checker: {error}") from None
    return ""


def _by_definition(
    history: History, spec: Spec, proof: Proof, seconds: float | None
) -> tuple[str, str]:
    """Return the part accepted by the checker by definition, and why it is not the whole proof."""
    try:
        if not isinstance(proof, Refutation):
            check_proof(history, spec, proof, seconds)
            return "all", ""
        from isolang.certify.refutation import follow_steps

        # A refutation that uses some of the checks refutes the whole specification.
        parts = _parts_of(spec, proof)
        followed = follow_steps(history, spec if parts is None else parts.part, proof.steps)
    except NotCertifiedError as error:
        return "", _reason(error)
    accepted = f"{followed.accepted:,} of {followed.cycles:,} cycle steps"
    if not followed.outside:
        return f"all: {accepted}", ""
    return accepted if followed.accepted else "", _reason(NotCertifiedError(followed.outside))


def _reason(error: NotCertifiedError) -> str:
    prefixes = ("not certified by definition: ", "not certified by the kernel: ", "not certified: ")
    for prefix in prefixes:
        if str(error).startswith(prefix):
            return str(error).removeprefix(prefix)
    return str(error)
