"""Verdicts: ``Valid(witness) | Invalid(violation) | Unknown(reason, spent)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NoReturn, TypeAlias

from msgspec import Struct, field

from isolang.caveat import Caveat, caveats_in
from isolang.limits import Seconds
from isolang.renderers import RENDERERS

if TYPE_CHECKING:
    from isolang.certify.certificate import Certificate
    from isolang.certify.proofs import Exhaustion, Refutation, Relations, Witness
    from isolang.explain.violation import Violation
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec
    from isolang.solvers.answer import Cause


NOTHING_OBSERVED: Final = Caveat(
    "NOTHING WAS OBSERVED: no session read, or missed, what another session wrote, so that this "
    "verdict says next to nothing about the database"
)
"""The note of a valid verdict that is no evidence."""


class AnomalyCount(Struct, frozen=True, kw_only=True):
    """How often an intrinsic anomaly occurs, with the first examples.

    Attributes:
        name: as in the table of ``docs/anomalies.md``.
        count: how many reads of included transactions show it.
        examples: the first of them, in words.
    """

    name: str
    count: int
    examples: tuple[str, ...]


class _Judged(Struct, frozen=True, kw_only=True):
    """What every verdict has.

    Attributes:
        history: what was judged.
        spec: by which specification.
        certified: whether an independent checker accepted the witness or the refutation.
        certified_reason: who checked it, or why nobody did.
        seconds: where the time went.
        statistics: what the engine did, by name.
        solver: the back end that decided it; empty if none was needed.
        encoding: how the problem was put to it; empty if it was not.
        prune: what was concluded before that; empty if it was not put to a solver.
        choice: why these, where the user left them open.
        anomalies: the intrinsic anomalies, also those that the spec does not forbid.
        ignored: what the pre-pass left out, one phrase each.
        notes: how it was decided where that is worth knowing, one sentence each; and what the
            specification asks to be shown.
    """

    history: History
    spec: Spec
    certified: bool = False
    certified_reason: str = ""
    seconds: Seconds = field(default_factory=Seconds)
    statistics: Mapping[str, float] = field(default_factory=dict)
    solver: str = ""
    encoding: str = ""
    prune: str = ""
    choice: str = ""
    anomalies: tuple[AnomalyCount, ...] = ()
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def nothing_observed(self) -> bool:
        """Return whether this is valid, and no evidence: nobody read what somebody else wrote."""
        return NOTHING_OBSERVED in self.notes

    @property
    def caveats(self) -> tuple[str, ...]:
        """What changes the meaning of this verdict, such as that nothing was observed.

        A sentence each; what stands before its first colon says it in short. Every form of output
        says them.
        """
        said = (*caveats_in(self.notes), *self.history.caveats)
        if isinstance(self, Unknown) or self.certified:
            return said
        why = f": {self.certified_reason}" if self.certified_reason else ""
        return (*said, f"not certified{why}")

    def __bool__(self) -> NoReturn:
        """Refuse: ``assert check(…)`` would pass on an invalid history."""
        msg = (
            "a verdict has no truth value; look at verdict.outcome, match it with Valid, Invalid "
            "and Unknown, or call isolang.assert_level(history, spec)"
        )
        raise TypeError(msg)

    def __str__(self) -> str:
        """The report that ``isocheck`` prints, 100 columns wide, without colours."""
        return RENDERERS["text"](self)

    def __repr__(self) -> str:
        certified = "certified" if self.certified else "not certified"
        match self:
            case Invalid():
                said = f"{self.violation.anomaly}, {certified}"
            case Unknown():
                said = self.reason
            case _:
                said = certified
        return f"<{type(self).__name__}: {self.history.name}, {self.spec.name}: {said}>"

    def _repr_html_(self) -> str:
        """The page of the verdict, in a frame, as notebooks show it."""
        from html import escape

        frame = 'style="width: 100%; height: 40em; border: 1px solid" sandbox="allow-scripts"'
        return f'<iframe {frame} srcdoc="{escape(self.to_html())}"></iframe>'

    def to_html(self) -> str:
        """The verdict as a page: one HTML file that needs no other (docs/report.md)."""
        return RENDERERS["page"](self)


class Valid(_Judged, frozen=True, kw_only=True):
    """The history satisfies the spec.

    Attributes:
        witness: a source for each read and an order of the versions of each key; or all relations
            that the specification asks for.
    """

    outcome: ClassVar[Literal["valid"]] = "valid"

    witness: Witness | Relations

    def certificate(self) -> Certificate:
        """The proof, to be saved."""
        from isolang.certify.certificate import Certificate

        return Certificate.of(self.history, self.spec, self.witness)


class Invalid(_Judged, frozen=True, kw_only=True):
    """The history violates the spec.

    Attributes:
        violation: why, for people.
        refutation: why, for checkers.
    """

    outcome: ClassVar[Literal["invalid"]] = "invalid"

    violation: Violation
    refutation: Refutation | Exhaustion

    def certificate(self) -> Certificate:
        """The proof, to be saved."""
        from isolang.certify.certificate import Certificate

        return Certificate.of(self.history, self.spec, self.refutation)


class Unknown(_Judged, frozen=True, kw_only=True):
    """It was not found out whether the history satisfies the spec.

    Attributes:
        reason: why not, in words.
        cause: the kind of reason.
        spent: what had been spent when it ended (the same as ``seconds``).
        phase: the phase in which it ended.
        evidence: if the certificate was rejected, what was rejected.
    """

    outcome: ClassVar[Literal["unknown"]] = "unknown"

    reason: str
    cause: Cause
    phase: str = ""
    evidence: Certificate | None = None

    @property
    def spent(self) -> Seconds:
        """What had been spent when it ended."""
        return self.seconds


Verdict: TypeAlias = Valid | Invalid | Unknown
