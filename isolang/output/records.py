"""Defines the report of a verdict: the JSON object of docs/output.md, which all outputs use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import Struct, field, to_builtins
from msgspec.structs import asdict, replace

from isolang.explain.harm import Harm
from isolang.explain.violation import Findings, Violation, ViolationGroups
from isolang.limits import Seconds
from isolang.verdict import NOTHING_OBSERVED, AnomalyCount

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.verdict import Verdict

SCHEMA: Final = 1
_R = TypeVar("_R", bound="Report")

# The exit code of a run is the first of these codes that one of its reports has.
EXIT_REJECTED, EXIT_INVALID, EXIT_INPUT, EXIT_UNKNOWN, EXIT_VALID = 4, 1, 2, 3, 0


class SpecReport(Struct, frozen=True, kw_only=True):
    """The specification.

    Attributes:
        name: the name in the header, or else the name of the file.
        title: the title in the header.
        source: the file; ``library:`` and the name for a level of the library.
        sha256: the hash of all texts.
        notes: the values of ``show`` statements, and remarks about how the specification was
            decided.
    """

    name: str
    title: str
    source: str
    sha256: str
    notes: tuple[str, ...]


class Input(Struct, frozen=True, kw_only=True):
    """The interpretation of the history.

    Attributes:
        format: the format.
        files: the files that were read.
        sha256: the hash of the bytes of all files.
        initial: how reads of the initial state are recognized.
        session: the meaning of a session.
        real_time: the source of real time.
        ignored: the kinds of records that were ignored, with their counts.
        notes: remarks on how the input was interpreted.
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
    """The result of one pair of ``--cross-check``.

    Attributes:
        pair: ``encoding/solver/prune``.
        outcome: the verdict of the pair; ``wrong`` if its model or its refutation is false.
        detail: how far the verdict is certified, or why it is unknown.
        seconds: how long the pair took.
    """

    pair: str
    outcome: Literal["valid", "invalid", "unknown", "wrong"]
    detail: str
    seconds: float


class CrossCheckReport(Struct, frozen=True, kw_only=True):
    """The result of ``--cross-check``.

    Attributes:
        summary: the result as a sentence.
        claims: the results of the pairs; the first pair decided the verdict.
        history: the file in which the history of a disagreement was saved.
        minimal: the file in which a smallest part of that history was saved.
    """

    summary: str
    claims: tuple[ClaimReport, ...]
    history: str | None = None
    minimal: str | None = None


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of the check.

    Attributes:
        timeout: the time limit in seconds; ``null`` for no limit.
        memory: the memory limit in megabytes; ``null`` for no limit.
        default_memory: whether the memory limit is the default, a share of the machine's memory.
    """

    timeout: float | None = None
    memory: float | None = None
    default_memory: bool = False


class Standing(Struct, frozen=True, kw_only=True):
    """The levels of the library between which the history lies.

    Attributes:
        strongest: the satisfied levels that no other satisfied level implies.
        weakest_violated: the violated levels that imply no other violated level.
        unknown: whether some level was not decided within the limit of work or time.
        looked_for: whether the levels were checked at all, which is not done for large histories.
    """

    strongest: tuple[str, ...] = ()
    weakest_violated: tuple[str, ...] = ()
    unknown: bool = False
    looked_for: bool = True


class Report(Struct, frozen=True, kw_only=True):
    """The verdict of one specification on one history.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        history: the history, as named on the command line.
        spec: the specification, as named on the command line.
        verdict: the verdict; ``error`` if the history cannot be read or checked.
        reason: the reason of the verdict in words; empty if valid.
        anomaly: the name of the violation.
        transactions: the number of transactions without the initial transaction. If the history was
            not read, this count and the following counts are null.
        committed: the number of committed transactions.
        aborted: the number of aborted transactions.
        maybe: the number of indeterminate transactions.
        operations: the number of operations.
        sessions: the number of sessions.
        keys: the number of keys.
        unit: the units judged: the transactions as they are, or requests, which may consist of
            several transactions (``--unit request``).
        solver: the solver that decided; null if the pre-pass decided.
        encoding: the encoding for the solver.
        prune: the stage of pruning.
        choice: why this solver, encoding and stage were chosen, if the options did not choose them.
        certified: whether an independent checker accepted the proof.
        certified_reason: which checker accepted the proof, or why no checker did.
        seconds: wall-clock seconds by phase.
        violation: why the history is invalid.
        level: the specification.
        input: how isocheck interpreted the history.
        anomalies: intrinsic anomalies, including those that the specification allows.
        certificate: the file of the certificate.
        minimal: the file that ``--minimal`` wrote.
        page: the file that ``--html`` wrote.
        plot: the file that ``--plot`` drew.
        drawn: the text of a form of ``--output`` such as ``dot``.
        cross_check: the result of ``--cross-check``.
        findings: with ``--all``, every kind of anomaly in the history.
        groups: the violations by their statements and tables, for an application's recording.
        harm: the harm of the violation, if the application's calls could be made again.
        standing: the strongest satisfied and the weakest violated levels, if finding them was
            cheap.
        warnings: warnings about the specification, and files that could not be saved.
        caveats: remarks that change the meaning of the verdict; the text before the first colon is
            the short form. All are among the remarks of ``input`` and ``level``, or tell how the
            history was read, or that no checker certified the verdict.
        unsaved: the files that could not be saved or printed, with reasons; the verdict is not
            affected.
        statistics: counts of the engine; ``seconds_…`` are the times of stages of solving.
        limits: the limits of the check.
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
    unit: Literal["transaction", "request"] = "transaction"
    solver: str | None = None
    encoding: str | None = None
    prune: str | None = None
    choice: str = ""
    certified: bool = False
    certified_reason: str = ""
    seconds: Seconds = Seconds()
    violation: Violation | None = None
    level: SpecReport | None = None
    input: Input | None = None
    anomalies: tuple[AnomalyCount, ...] = ()
    certificate: str | None = None
    minimal: str | None = None
    page: str | None = None
    plot: str | None = None
    drawn: str | None = None
    cross_check: CrossCheckReport | None = None
    findings: Findings | None = None
    groups: ViolationGroups | None = None
    harm: Harm | None = None
    standing: Standing | None = None
    warnings: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    unsaved: tuple[str, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=dict)
    limits: Limits = Limits()

    @property
    def nothing_observed(self) -> bool:
        """Return whether the verdict is valid only because no session observed another session."""
        return self.level is not None and NOTHING_OBSERVED in self.level.notes

    def brief(self) -> Report:
        """Return the report without its long parts, such as the argument of the violation."""
        return replace(
            self, violation=None, input=None, level=None, findings=None, groups=None, anomalies=(),
            statistics={},
        )  # fmt: skip


def json_text(report: object) -> str:
    """Return a record as one line of JSON in ASCII, because file names may contain any bytes."""
    import json

    return json.dumps(to_builtins(report)) + "\n"


def error_report(history: str, spec: str, reason: str, seconds: Seconds | None = None) -> Report:
    """Return the report for a history that cannot be read or checked."""
    return Report(
        history=history, spec=spec, verdict="error", reason=reason, seconds=_rounded(seconds)
    )


def unknown_report(history: str, spec: str, reason: str, seconds: Seconds | None = None) -> Report:
    """Return the report for a check that ended before it had a verdict."""
    return Report(
        history=history, spec=spec, verdict="unknown", reason=reason, seconds=_rounded(seconds)
    )


def report_of(history: str, spec: str, verdict: Verdict) -> Report:
    """Return the report of a verdict."""
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
        unit="transaction" if verdict.history.carrying is None else "request",
        solver=verdict.solver or None,
        encoding=verdict.encoding or None,
        prune=verdict.prune or None,
        choice=verdict.choice,
        certified=verdict.certified,
        certified_reason=verdict.certified_reason,
        seconds=_rounded(verdict.seconds),
        violation=violation,
        level=SpecReport(
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


def with_harm(report: _R, harm: Harm | None) -> _R:
    """Return a report with the harm of its first group of violations, which it then explains."""
    if harm is None:
        return report
    groups = report.groups.groups if report.groups is not None else ()
    if groups and groups[0].harm is not None:
        violation = groups[0].violation
        report = replace(
            report, violation=violation, anomaly=violation.anomaly, reason=violation.headline()
        )
    return replace(report, harm=harm)


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
    """Return phrases that describe what the reader and the pre-pass ignored.

    Both count failed operations, so phrases on these are included only once.
    """

    def count(phrase: str) -> str:
        return phrase.split(maxsplit=1)[0]

    failed = {count(phrase) for phrase in read if "failed operation" in phrase}
    both = (p for p in found if "failed themselves" in p and count(p) in failed)
    dropped = set(both)
    return (*read, *(phrase for phrase in found if phrase not in dropped))


def exit_code(codes: Iterable[int]) -> int:
    """Return the exit code of a run from the exit codes of its reports."""
    there = set(codes)
    for code in (EXIT_REJECTED, EXIT_INVALID, EXIT_INPUT, EXIT_UNKNOWN):
        if code in there:
            return code
    return EXIT_VALID


def code_of(report: Report) -> int:
    """Return the exit code for one report."""
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
