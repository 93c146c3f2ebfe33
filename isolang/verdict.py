"""Defines the three verdicts ``Valid(witness) | Invalid(violation) | Unknown(reason, spent)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, NoReturn, TypeAlias

from msgspec import Struct, field
from msgspec.structs import asdict

from isolang.caveat import Caveat, caveats_in
from isolang.certify.certificate import Certificate
from isolang.certify.proofs import Exhaustion, Refutation, Relations, Witness
from isolang.explain.violation import Violation
from isolang.history.history import History
from isolang.language.meaning.core import Spec
from isolang.limits import Seconds
from isolang.renderers import RENDERERS
from isolang.solvers.answer import Cause

NOTHING_OBSERVED: Final = Caveat(
    "NOTHING WAS OBSERVED: no session read or missed what another "
    "session wrote, so this verdict says next to nothing about the "
    "database"
)
"""The note on a valid verdict if the history reveals nothing about the database."""


class AnomalyCount(Struct, frozen=True, kw_only=True):
    """The number of occurrences of an intrinsic anomaly, with the first examples.

    Attributes:
        name: its name in the table of ``docs/anomalies.md``.
        count: how many reads of included transactions show it.
        examples: the first occurrences, in words.
    """

    name: str
    count: int
    examples: tuple[str, ...]


class _BaseVerdict(Struct, frozen=True, kw_only=True):
    """The fields common to all verdicts.

    Attributes:
        certified: whether an independent checker accepted the witness or the refutation.
        certified_reason: which checker accepted the proof, or why none did.
        seconds: the seconds that each phase took.
        solver: the solver that decided; empty if no solver was needed.
        encoding: the encoding for the solver; empty if no solver was needed.
        prune: the pruning stage before the search; empty if no search was needed.
        choice: why this solver, encoding and pruning were chosen; empty if the user chose them.
        anomalies: the intrinsic anomalies, including those not forbidden by the specification.
        ignored: a phrase for each kind of record ignored by the pre-pass.
        notes: remarks on how the verdict was found, one sentence each, and a line for each ``show``
            in the specification.
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
        """``True`` if the verdict is valid only because no session observed another session."""
        return NOTHING_OBSERVED in self.notes

    @property
    def caveats(self) -> tuple[str, ...]:
        """The remarks that change the meaning of this verdict, such as that nothing was observed.

        Each remark is a sentence, and the text before its first colon is a summary. The remarks
        appear in every output form.
        """
        remarks = (*caveats_in(self.notes), *self.history.caveats)
        if isinstance(self, Unknown) or self.certified:
            return remarks
        why = f": {self.certified_reason}" if self.certified_reason else ""
        return (*remarks, f"not certified{why}")

    def __bool__(self) -> NoReturn:
        """Raise ``TypeError``; otherwise ``assert check(…)`` would pass for an invalid history."""
        msg = (
            "a verdict has no truth value; look at verdict.outcome, match it with Valid, Invalid "
            "and Unknown, or call isolang.assert_level(history, spec)"
        )
        raise TypeError(msg)

    def __str__(self) -> str:
        """Return the report as printed by ``isocheck``, in 100 columns and without colours."""
        return RENDERERS["text"](self)

    def __repr__(self) -> str:
        certified = "certified" if self.certified else "not certified"
        match self:
            case Invalid():
                result = f"{self.violation.anomaly}, {certified}"
            case Unknown():
                result = self.reason
            case _:
                result = certified
        return f"<{type(self).__name__}: {self.history.name}, {self.spec.name}: {result}>"

    def _repr_html_(self) -> str:
        """Return the verdict's page inside a frame, for notebooks."""
        from html import escape

        frame = 'style="width: 100%; height: 40em; border: 1px solid" sandbox="allow-scripts"'
        return f'<iframe {frame} srcdoc="{escape(self.to_html())}"></iframe>'

    def to_html(self) -> str:
        """Return a page about the verdict as one self-contained HTML file (docs/report.md)."""
        return RENDERERS["page"](self)


class Valid(_BaseVerdict, frozen=True, kw_only=True):
    """The verdict that the history satisfies the spec.

    Attributes:
        witness: the proof: a source for each read and a version order for each key, or all
            relations that the specification quantifies over.
    """

    outcome: ClassVar[Literal["valid"]] = "valid"

    witness: Witness | Relations

    def certificate(self) -> Certificate:
        """Return the proof as a certificate for the caller to save."""
        return Certificate.of(self.history, self.spec, self.witness)


class Invalid(_BaseVerdict, frozen=True, kw_only=True):
    """The verdict that the history violates the spec.

    Attributes:
        violation: the explanation for people.
        refutation: the proof for checkers.
    """

    outcome: ClassVar[Literal["invalid"]] = "invalid"

    violation: Violation
    refutation: Refutation | Exhaustion

    def certificate(self) -> Certificate:
        """Return the proof as a certificate for the caller to save."""
        return Certificate.of(self.history, self.spec, self.refutation)


class Unknown(_BaseVerdict, frozen=True, kw_only=True):
    """The verdict that it is unknown whether the history satisfies the spec.

    Attributes:
        reason: why the verdict is unknown, in words.
        cause: the kind of reason, one of a few fixed words.
        spent: the seconds that the check spent, the same as ``seconds``.
        phase: the phase during which the check stopped; empty if unknown.
        evidence: the proof rejected by a checker; ``None`` if no proof was rejected.
    """

    outcome: ClassVar[Literal["unknown"]] = "unknown"

    reason: str
    cause: Cause
    phase: str = ""
    evidence: Certificate | None = None

    @property
    def spent(self) -> Seconds:
        """The seconds that the check spent, by phase."""
        return self.seconds


Verdict: TypeAlias = Valid | Invalid | Unknown


def unknown_instead(
    verdict: Valid | Invalid, reason: str, cause: Cause, **changes: object
) -> Unknown:
    """Return the verdict *unknown* in place of another one, whose proof does not count."""
    shared = {
        name: value
        for name, value in asdict(verdict).items()
        if name in Unknown.__struct_fields__ and name not in ("certified", "certified_reason")
    }
    fields: dict[str, Any] = {**shared, **changes}
    return Unknown(**fields, reason=reason, cause=cause)
