"""A verdict as a report: the JSON object of docs/output.md, from which every output is rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.verdict import Seconds, Verdict

SCHEMA: Final = 1

# Of several reports the exit code is that of the first line that one of them meets.
EXIT_REJECTED, EXIT_INVALID, EXIT_INPUT, EXIT_UNKNOWN, EXIT_VALID = 4, 1, 2, 3, 0

Report = dict[str, Any]


def blank(history: str, spec: str) -> Report:
    """A report without contents; every report has exactly these keys, in this order."""
    return {
        "schema": SCHEMA,
        "history": history,
        "spec": spec,
        "verdict": "error",
        "reason": "",
        "anomaly": None,
        "transactions": None,
        "committed": None,
        "aborted": None,
        "maybe": None,
        "operations": None,
        "sessions": None,
        "keys": None,
        "solver": None,
        "encoding": None,
        "prune": None,
        "choice": "",
        "certified": False,
        "certified_reason": "",
        "seconds": {"read": 0.0, "prepare": 0.0, "solve": 0.0, "certify": 0.0, "total": 0.0},
        "violation": None,
        "level": None,
        "input": None,
        "anomalies": [],
        "certificate": None,
        "minimal": None,
        "cross_check": None,
        "warnings": [],
        "statistics": {},
    }


def error_report(history: str, spec: str, message: str, seconds: Seconds | None = None) -> Report:
    """The report of a history that cannot be judged at all."""
    return {**blank(history, spec), "reason": message, **_seconds(seconds)}


def unknown_report(history: str, spec: str, reason: str, seconds: Seconds | None = None) -> Report:
    """The report of a check that ended before there was a verdict to report."""
    unknown = {"verdict": "unknown", "reason": reason}
    return {**blank(history, spec), **unknown, **_seconds(seconds)}


def report_of(history: str, spec: str, verdict: Verdict) -> Report:
    """The report of a verdict.

    Args:
        history: the history as the user named it.
        spec: the spec as the user named it.
        verdict: the verdict.
    """
    from isolang.verdict import Invalid, Unknown

    counts = verdict.history.counts()
    names = ("transactions", "committed", "aborted", "maybe", "operations", "sessions", "keys")
    report = {
        **blank(history, spec),
        "verdict": verdict.outcome,
        **{name: counts[name] for name in names},
        "solver": verdict.solver or None,
        "encoding": verdict.encoding or None,
        "prune": verdict.prune or None,
        "choice": verdict.choice,
        "certified": verdict.certified,
        "certified_reason": verdict.certified_reason,
        **_seconds(verdict.seconds),
        "level": {
            "name": verdict.spec.name,
            "title": verdict.spec.title,
            "source": verdict.spec.source,
            "sha256": verdict.spec.sha256,
            "notes": [*verdict.spec.notes, *verdict.notes],
        },
        "input": input_of(verdict.history, verdict.ignored),
        "anomalies": [
            {"name": a.name, "count": a.count, "examples": list(a.examples)}
            for a in verdict.anomalies
        ],
        "statistics": {name: _number(x) for name, x in verdict.statistics.items()},
    }
    if isinstance(verdict, Unknown):
        report["reason"] = verdict.reason
    if isinstance(verdict, Invalid):
        from isolang.explain.violation import plain

        violation = verdict.violation
        report["reason"] = f"{violation.anomaly}: {violation.meaning}"
        report["anomaly"] = violation.anomaly
        report["violation"] = plain(violation)
    return report


def input_of(history: History, ignored: tuple[str, ...] = ()) -> dict[str, Any]:
    """How an input was understood."""
    return {
        "format": history.format,
        "files": list(history.files),
        "sha256": history.sha256,
        "initial": history.initial,
        "session": history.session,
        "real_time": history.real_time,
        "ignored": _merged(history.ignored, ignored),
        "notes": list(history.notes),
    }


def _merged(read: tuple[str, ...], found: tuple[str, ...]) -> list[str]:
    """What the reader and the pre-pass ignored; failed operations may be among both."""

    def count(phrase: str) -> str:
        return phrase.split(maxsplit=1)[0]

    failed = {count(phrase) for phrase in read if "failed operation" in phrase}
    both = (p for p in found if "failed themselves" in p and count(p) in failed)
    dropped = set(both)
    return [*read, *(phrase for phrase in found if phrase not in dropped)]


def exit_code(codes: set[int]) -> int:
    """The exit code of a run from those of its reports."""
    for code in (EXIT_REJECTED, EXIT_INVALID, EXIT_INPUT, EXIT_UNKNOWN):
        if code in codes:
            return code
    return EXIT_VALID


def code_of(report: Report) -> int:
    """The exit code of one report."""
    if report["verdict"] == "unknown" and report["reason"].startswith(
        ("certificate rejected", "disagreement")
    ):
        return EXIT_REJECTED
    codes = {"invalid": EXIT_INVALID, "error": EXIT_INPUT, "unknown": EXIT_UNKNOWN}
    return codes.get(report["verdict"], EXIT_VALID)


def _seconds(seconds: Seconds | None) -> dict[str, Any]:
    if seconds is None:
        return {}
    return {"seconds": {name: round(value, 6) for name, value in asdict(seconds).items()}}


def _number(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(value)
