"""A verdict as a report: the JSON object of docs/output.md, from which every output is made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field, to_builtins
from msgspec.structs import asdict, replace

from isolang.explain.violation import Findings, Violation
from isolang.limits import Seconds
from isolang.verdict import NOTHING_OBSERVED, AnomalyCount

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.verdict import Verdict

SCHEMA: Final = 1

# Of several reports the exit code is that of the first line that one of them meets.
EXIT_REJECTED, EXIT_INVALID, EXIT_INPUT, EXIT_UNKNOWN, EXIT_VALID = 4, 1, 2, 3, 0


class Level(Struct, frozen=True, kw_only=True):
    """The specification.

    Attributes:
        name: of its header, or its file.
        title: of its header.
        source: its file; ``library:`` before one of the library.
        sha256: over all its texts.
        notes: what it asks to be shown, and how it was decided where that is worth knowing.
    """

    name: str
    title: str
    source: str
    sha256: str
    notes: tuple[str, ...]


class Input(Struct, frozen=True, kw_only=True):
    """How the history was understood.

    Attributes:
        format: its format.
        files: what was read.
        sha256: over the bytes of all files.
        initial: what a read of the initial state looks like.
        session: what a session is.
        real_time: where real time comes from.
        ignored: what was left out.
        notes: how something was understood.
    """

    format: str
    files: tuple[str, ...]
    sha256: str
    initial: str
    session: str
    real_time: str
    ignored: tuple[str, ...]
    notes: tuple[str, ...]


class ClaimReport(Struct, frozen=True, kw_only=True):
    """What one pair of ``--cross-check`` says.

    Attributes:
        pair: ``encoding/solver/prune``.
        outcome: what; ``wrong``: its model or its *no* is refuted.
        detail: how far it is certified, or why it is unknown.
        seconds: how long it took.
    """

    pair: str
    outcome: Literal["valid", "invalid", "unknown", "wrong"]
    detail: str
    seconds: float


class CrossCheckReport(Struct, frozen=True, kw_only=True):
    """What came of ``--cross-check``.

    Attributes:
        summary: as a sentence.
        claims: the first one is of the pair that decided.
        history: where the history of a disagreement was saved.
        minimal: where a smallest part of it was.
    """

    summary: str
    claims: tuple[ClaimReport, ...]
    history: str | None = None
    minimal: str | None = None


class Limits(Struct, frozen=True, kw_only=True):
    """What the check might use.

    Attributes:
        timeout: seconds; ``null`` for no limit.
        memory: megabytes; ``null`` for no limit.
        default_memory: whether the memory is the default, a share of the machine's.
    """

    timeout: float | None = None
    memory: float | None = None
    default_memory: bool = False


class Standing(Struct, frozen=True, kw_only=True):
    """Where the history stands among the levels of the library.

    Attributes:
        strongest: the satisfied levels that no other satisfied one implies.
        weakest_violated: the violated levels that imply no other violated one.
        unknown: whether some level was not decided with the work, or in the time, allowed.
        looked_for: whether this was looked for at all; not in large histories.
    """

    strongest: tuple[str, ...] = ()
    weakest_violated: tuple[str, ...] = ()
    unknown: bool = False
    looked_for: bool = True


class Report(Struct, frozen=True, kw_only=True):
    """What is said of one history and one specification.

    Attributes:
        schema: changes when a field changes its meaning or goes.
        history: as named on the command line.
        spec: as named on the command line.
        verdict: ``error``: the history cannot be read, or not be judged by this specification.
        reason: why, in words; empty if valid.
        anomaly: the name of the violation.
        transactions: in the file, the initial one excluded; null, as the counts that follow, if the
            history was not read.
        committed: transactions that committed.
        aborted: transactions that certainly did not.
        maybe: transactions whose outcome is unknown.
        operations: how many.
        sessions: how many.
        keys: how many.
        solver: what decided; null if the pre-pass did.
        encoding: how the problem was put to it.
        prune: what was concluded before.
        choice: why these, where they were left open.
        certified: whether an independent checker accepted the proof.
        certified_reason: who did, or why nobody did.
        seconds: wall-clock seconds by phase.
        violation: why the history is invalid.
        level: the specification.
        input: how the history was understood.
        anomalies: intrinsic anomalies, also those that the specification allows.
        certificate: where the certificate was saved.
        minimal: what ``--minimal`` wrote.
        page: what ``--html`` wrote.
        plot: what ``--plot`` drew.
        drawn: the text of the form that ``--output`` asked for, such as ``dot``.
        cross_check: what came of ``--cross-check``.
        findings: of ``--all``: every kind of anomaly that the history has.
        standing: the strongest levels that hold and the weakest that do not, where that was found
            out at once.
        warnings: about the specification, and what could not be saved.
        caveats: what changes the meaning of the verdict; what stands before a first colon says it
            in short. All are among the remarks of ``input`` and ``level``, or say how the history
            was read, or that nobody certified the verdict.
        unsaved: what could not be saved, or printed, and why; the verdict holds all the same.
        statistics: what the engine did; ``seconds_…`` are stages of solving, the others counts.
        limits: what the check might use.
    """

    schema: Literal[1] = SCHEMA
    history: str
    spec: str
    verdict: Literal["valid", "invalid", "unknown", "error"]
    reason: str = ""
    anomaly: str | None = None
    transactions: int | None = None
    committed: int | None = None
    aborted: int | None = None
    maybe: int | None = None
    operations: int | None = None
    sessions: int | None = None
    keys: int | None = None
    solver: str | None = None
    encoding: str | None = None
    prune: str | None = None
    choice: str = ""
    certified: bool = False
    certified_reason: str = ""
    seconds: Seconds = Seconds()
    violation: Violation | None = None
    level: Level | None = None
    input: Input | None = None
    anomalies: tuple[AnomalyCount, ...] = ()
    certificate: str | None = None
    minimal: str | None = None
    page: str | None = None
    plot: str | None = None
    drawn: str | None = None
    cross_check: CrossCheckReport | None = None
    findings: Findings | None = None
    standing: Standing | None = None
    warnings: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    unsaved: tuple[str, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=dict)
    limits: Limits = Limits()

    @property
    def nothing_observed(self) -> bool:
        """Whether this is a valid verdict that is no evidence."""
        return self.level is not None and NOTHING_OBSERVED in self.level.notes

    def brief(self) -> Report:
        """The same in fewer words: without the argument, and how the input was understood."""
        return replace(
            self, violation=None, input=None, level=None, findings=None, anomalies=(), statistics={}
        )


def json_text(report: object) -> str:
    """A record of reports as one line of JSON; ASCII, as file names may be of any bytes."""
    return json.dumps(to_builtins(report)) + "\n"


def error_report(history: str, spec: str, reason: str, seconds: Seconds | None = None) -> Report:
    """The report of a history that cannot be judged at all."""
    return Report(
        history=history, spec=spec, verdict="error", reason=reason, seconds=_rounded(seconds)
    )


def unknown_report(history: str, spec: str, reason: str, seconds: Seconds | None = None) -> Report:
    """The report of a check that ended before there was a verdict to report."""
    return Report(
        history=history, spec=spec, verdict="unknown", reason=reason, seconds=_rounded(seconds)
    )


def report_of(history: str, spec: str, verdict: Verdict) -> Report:
    """The report of a verdict.

    Args:
        history: the history as the user named it.
        spec: the spec as the user named it.
        verdict: the verdict.
    """
    from isolang.verdict import Invalid, Unknown

    violation = verdict.violation if isinstance(verdict, Invalid) else None
    reason = verdict.reason if isinstance(verdict, Unknown) else ""
    if violation is not None:
        reason = violation.headline()
    counts = verdict.history.counts()
    return Report(
        history=history,
        spec=spec,
        verdict=verdict.outcome,
        reason=reason,
        anomaly=violation.anomaly if violation is not None else None,
        transactions=counts["transactions"],
        committed=counts["committed"],
        aborted=counts["aborted"],
        maybe=counts["maybe"],
        operations=counts["operations"],
        sessions=counts["sessions"],
        keys=counts["keys"],
        solver=verdict.solver or None,
        encoding=verdict.encoding or None,
        prune=verdict.prune or None,
        choice=verdict.choice,
        certified=verdict.certified,
        certified_reason=verdict.certified_reason,
        seconds=_rounded(verdict.seconds),
        violation=violation,
        level=Level(
            name=verdict.spec.name,
            title=verdict.spec.title,
            source=verdict.spec.source,
            sha256=verdict.spec.sha256,
            notes=tuple(map(str, (*verdict.spec.notes, *verdict.notes))),
        ),
        input=_input_of(verdict.history, verdict.ignored),
        anomalies=verdict.anomalies,
        caveats=verdict.caveats,
        statistics={name: _number(x) for name, x in verdict.statistics.items()},
    )


def _input_of(history: History, ignored: tuple[str, ...]) -> Input:
    return Input(
        format=history.format,
        files=tuple(history.files),
        sha256=history.sha256,
        initial=history.initial,
        session=history.session,
        real_time=history.real_time,
        ignored=tuple(map(str, _merged(history.ignored, ignored))),
        notes=tuple(map(str, history.notes)),
    )


def _merged(read: tuple[str, ...], found: tuple[str, ...]) -> tuple[str, ...]:
    """What the reader and the pre-pass ignored; failed operations may be among both."""

    def count(phrase: str) -> str:
        return phrase.split(maxsplit=1)[0]

    failed = {count(phrase) for phrase in read if "failed operation" in phrase}
    both = (p for p in found if "failed themselves" in p and count(p) in failed)
    dropped = set(both)
    return (*read, *(phrase for phrase in found if phrase not in dropped))


def exit_code(codes: Iterable[int]) -> int:
    """The exit code of a run from those of its reports."""
    there = set(codes)
    for code in (EXIT_REJECTED, EXIT_INVALID, EXIT_INPUT, EXIT_UNKNOWN):
        if code in there:
            return code
    return EXIT_VALID


def code_of(report: Report) -> int:
    """The exit code of one report."""
    rejected = report.reason.startswith(("certificate rejected", "disagreement"))
    if report.verdict == "unknown" and rejected:
        return EXIT_REJECTED
    codes = {"invalid": EXIT_INVALID, "error": EXIT_INPUT, "unknown": EXIT_UNKNOWN}
    return codes.get(report.verdict, EXIT_VALID)


def _rounded(seconds: Seconds | None) -> Seconds:
    if seconds is None:
        return Seconds()
    return Seconds(**{name: round(value, 6) for name, value in asdict(seconds).items()})


def _number(value: Any) -> float | int:
    return int(value) if float(value).is_integer() else float(value)
