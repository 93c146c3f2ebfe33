"""Summarizes many runs: verdicts by target, level, version and seed, and all violations."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from isolang.report.plain import plain_page, table, text

if TYPE_CHECKING:
    from isolang.output.records import Report

Outcome: TypeAlias = Literal["valid", "invalid", "unknown", "error"]

_QUANTILE: Final = 1.96  # the quantile of the normal distribution for 95 % intervals
_SHOWN: Final = 8  # the maximum number of seeds or versions listed on a line


class RunVerdict(Struct, frozen=True, kw_only=True):
    """The verdict of one level on the history of one run.

    Attributes:
        history: the history.
        level: the specification.
        verdict: the verdict; ``unknown`` for a valid verdict that proves nothing; ``error`` if
            there is none.
        reason: the reason of the verdict in words; empty if valid.
        anomaly: the name of the violation; empty for none.
        certified: whether a checker accepted the proof, as the report says.
        target: the database or the program that was tested; empty if unknown.
        version: the version of the target; empty if unknown.
        isolation: the level that the clients requested; empty if unknown.
        workload: the workload; empty if unknown.
        seed: the seed; empty if unknown.
        transactions: the number of transactions that the violation shows, or else that the history
            has.
        sha256: the hash of the history; empty if unknown.
        source: the file in which the verdict was found.
        evidence: the files that support the verdict, each with its kind: ``certificate``,
            ``smallest part``, ``page`` or ``chain``.
    """

    history: str
    level: str
    verdict: Outcome
    reason: str = ""
    anomaly: str = ""
    certified: bool = False
    target: str = ""
    version: str = ""
    isolation: str = ""
    workload: str = ""
    seed: str = ""
    transactions: int = 0
    sha256: str = ""
    source: str = ""
    evidence: tuple[tuple[str, str], ...] = ()

    @property
    def promise(self) -> tuple[str, str, str]:
        """The target, the level requested by the clients, and the judging specification."""
        return self.target, self.isolation, self.level


class RunGroup(Struct, frozen=True, kw_only=True):
    """The verdicts of one level on one version of a target.

    Attributes:
        target: the target.
        isolation: the level that the clients requested.
        level: the specification.
        version: the version.
        runs: how many runs were judged.
        valid: the number of valid verdicts.
        invalid: the number of invalid verdicts.
        unknown: the number of unknown verdicts.
        errors: the number of runs without a verdict.
        seeds: the seeds of the invalid runs.
        failing: the share of the decided runs that are invalid; null if no run was decided.
        interval: between which shares the true one lies, with 95 % confidence (Wilson), if runs
            are independent; null if none was decided.
        flaky: whether some runs are valid and others invalid.
    """

    target: str
    isolation: str
    level: str
    version: str
    runs: int
    valid: int
    invalid: int
    unknown: int
    errors: int
    seeds: tuple[str, ...]
    failing: float | None
    interval: tuple[float, float] | None
    flaky: bool


class FirstBad(Struct, frozen=True, kw_only=True):
    """The first version of a target that has an invalid run.

    Attributes:
        target: the target.
        isolation: the level that the clients requested.
        level: the specification.
        version: the first version with an invalid run.
        before: the version before this version; empty if this version is the first.
        valid_before: the number of valid runs of earlier versions.
    """

    target: str
    isolation: str
    level: str
    version: str
    before: str
    valid_before: int


class KnownViolation(Struct, frozen=True, kw_only=True):
    """A violation that one or more runs show.

    Attributes:
        target: the target.
        isolation: the level that the clients requested.
        level: the specification.
        anomaly: the name of the anomaly.
        reason: the anomaly in words.
        runs: how many runs show it.
        of_runs: the number of decided runs of this target and level.
        versions: the versions that show the violation.
        seeds: the seeds that show the violation.
        new: whether the reports in ``--against`` do not contain the violation; null without
            ``--against``.
        history: the history of the run with the shortest argument; runs with a certified proof are
            preferred.
        certified: whether a checker accepted the proof of that run.
        source: the file with the report of that run.
        evidence: the other files about that run.
        argument: the argument as text; empty if the report does not contain it.
    """

    target: str
    isolation: str
    level: str
    anomaly: str
    reason: str
    runs: int
    of_runs: int
    versions: tuple[str, ...]
    seeds: tuple[str, ...]
    new: bool | None
    history: str
    certified: bool
    source: str
    evidence: tuple[tuple[str, str], ...] = ()
    argument: str = ""

    @property
    def kind(self) -> tuple[str, str, str, str]:
        """The identity of the violation: target, requested level, specification and anomaly."""
        return self.target, self.isolation, self.level, self.anomaly


class Summary(Struct, frozen=True, kw_only=True):
    """The summary of many runs.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        groups: the counts by target, level and version.
        first_bad: the first bad version of each target and level.
        violations: each violation once, with new violations first.
        gone: the violations in ``--against`` that no run shows any more.
        skipped: the files that are not reports, by kind.
        runs: all verdicts; therefore a summary can be summarized again.
    """

    schema: Literal[1] = 1
    groups: tuple[RunGroup, ...]
    first_bad: tuple[FirstBad, ...]
    violations: tuple[KnownViolation, ...]
    gone: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    runs: tuple[RunVerdict, ...]

    def counts(self) -> Counter[str]:
        """Return the number of runs with each verdict."""
        return Counter(run.verdict for run in self.runs)


def run_of(report: Report, source: str) -> RunVerdict:
    """Return the verdict in a report written by ``--output json``."""
    target, version = target_and_version(getattr(report, "database", ""))
    grave = report.verdict == "valid" and getattr(report, "grave", False)
    seed = getattr(report, "seed", None)
    files = (
        ("certificate", report.certificate),
        ("smallest part", report.minimal),
        ("page", report.page),
    )
    found = report.violation
    return RunVerdict(
        history=report.history,
        level=PurePath(report.spec).name.removesuffix(".iso"),
        verdict="unknown" if grave else report.verdict,
        reason="; ".join(("not proved", *getattr(report, "doubts", ())))
        if grave
        else report.reason,
        anomaly=report.anomaly or "",
        certified=report.certified,
        target=target,
        version=version,
        isolation=getattr(report, "isolation", ""),
        workload=getattr(report, "workload", ""),
        seed="" if seed is None else str(seed),
        transactions=len(found.transactions) if found else report.transactions or 0,
        sha256=report.input.sha256 if report.input else "",
        source=source,
        evidence=tuple((what, file) for what, file in files if file),
    )


def target_and_version(database: str) -> tuple[str, str]:
    """Split a database's description of itself into the name and the version.

    >>> target_and_version("PostgreSQL 18.6 (Debian)"), target_and_version("mydb")
    (('PostgreSQL', '18.6'), ('mydb', ''))
    """
    found = re.match(r"(.*?)[\s/]+v?(\d[\w.+~-]*)", database)
    return (found[1].strip(), found[2]) if found else (database.strip(), "")


def version_sort_key(version: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a key that sorts versions numerically: 9.6 before 10.1, and 2.0-rc1 before 2.0.

    >>> sorted(["10.1", "9.6", "2.0", "2.0-rc1", ""], key=version_sort_key)
    ['', '2.0-rc1', '2.0', '9.6', '10.1']
    """
    if not version:
        return ()
    parts = re.findall(r"\d+|[a-z]+", version.lower())
    # A word such as rc sorts before the end of a version, and the end sorts before another number.
    return (*((p.isdigit(), int(p) if p.isdigit() else -1, p) for p in parts), (True, -1, ""))


def summarize(
    runs: Iterable[RunVerdict],
    *,
    against: Sequence[RunVerdict] | None = None,
    skipped: Sequence[str] = (),
    argument: Callable[[RunVerdict], str] = lambda run: "",
) -> Summary:
    """Summarize the verdicts of many runs."""
    every = _without_duplicates(runs)
    groups: dict[tuple[str, ...], list[RunVerdict]] = {}
    for run in every:
        groups.setdefault((*run.promise, run.version), []).append(run)
    ordered = sorted(groups.items(), key=lambda one: (*one[0][:3], version_sort_key(one[0][3])))
    grouped = tuple(_group(some) for _, some in ordered)
    before = (
        None if against is None else _violations(_without_duplicates(against), None, lambda run: "")
    )
    known = None if before is None else {one.kind for one in before}
    found = _violations(every, known, argument)
    now = {one.kind for one in found}
    tested = {(run.target, run.isolation, run.level) for run in every if _decided(run)}
    return Summary(
        groups=grouped,
        first_bad=tuple(_first_bad(grouped)),
        violations=tuple(found),
        gone=tuple(
            full_name(*one.kind)
            for one in before or ()
            if one.kind not in now and one.kind[:3] in tested
        ),
        skipped=tuple(skipped),
        runs=tuple(every),
    )


def full_name(target: str, isolation: str, level: str, anomaly: str = "") -> str:
    """Return a combined name for a target, its requested level and a specification.

    If an anomaly is given, the name also contains it.
    """
    requested = f"{target} {isolation}".strip()
    return ", ".join(filter(None, (requested, level, anomaly)))


def _decided(run: RunVerdict) -> bool:
    return run.verdict in ("valid", "invalid")


def _without_duplicates(runs: Iterable[RunVerdict]) -> list[RunVerdict]:
    """Return the verdicts without duplicates: a report may occur in several files.

    A history is identified by its hash, or by its name and the report's file if the hash is
    unknown.
    """
    found: dict[tuple[str, ...], RunVerdict] = {}
    for run in runs:
        history = run.sha256 or f"{run.source}:{run.history}"
        key = (history, run.level.lower(), run.target, run.version, run.isolation, run.seed)
        found.setdefault(key, run)
    return list(found.values())


def _group(runs: Sequence[RunVerdict]) -> RunGroup:
    count = Counter(run.verdict for run in runs)
    invalid, decided = count["invalid"], count["invalid"] + count["valid"]
    first = runs[0]
    return RunGroup(
        target=first.target,
        isolation=first.isolation,
        level=first.level,
        version=first.version,
        runs=len(runs),
        valid=count["valid"],
        invalid=invalid,
        unknown=count["unknown"],
        errors=count["error"],
        seeds=_sorted(run.seed for run in runs if run.verdict == "invalid"),
        failing=round(invalid / decided, 4) if decided else None,
        interval=interval(invalid, decided) if decided else None,
        flaky=0 < invalid < decided,
    )


def interval(events: int, trials: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share (E. B. Wilson, 1927).

    >>> interval(0, 20), interval(3, 20)
    ((0.0, 0.1611), (0.0524, 0.3604))
    """
    share, square = events / trials, _QUANTILE**2
    middle = share + square / (2 * trials)
    half = _QUANTILE * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2))
    scale = 1 + square / trials
    return round(max(0.0, (middle - half) / scale), 4), round(min(1.0, (middle + half) / scale), 4)


def _first_bad(groups: Sequence[RunGroup]) -> list[FirstBad]:
    found: dict[tuple[str, str, str], FirstBad] = {}
    before: dict[tuple[str, str, str], tuple[str, int]] = {}
    for one in groups:
        promise = (one.target, one.isolation, one.level)
        if not one.version or promise in found:
            continue
        last, valid = before.get(promise, ("", 0))
        if one.invalid:
            found[promise] = FirstBad(
                target=one.target,
                isolation=one.isolation,
                level=one.level,
                version=one.version,
                before=last,
                valid_before=valid,
            )
        before[promise] = one.version, valid + one.valid
    return list(found.values())


def _violations(
    runs: Sequence[RunVerdict],
    known: set[tuple[str, str, str, str]] | None,
    argument: Callable[[RunVerdict], str],
) -> list[KnownViolation]:
    kinds: dict[tuple[str, str, str, str], list[RunVerdict]] = {}
    decided: Counter[tuple[str, str, str]] = Counter(run.promise for run in runs if _decided(run))
    for run in runs:
        if run.verdict == "invalid":
            kinds.setdefault((*run.promise, run.anomaly), []).append(run)
    found = []
    for kind, some in kinds.items():
        best = min(some, key=lambda run: (not run.certified, not run.reason, run.transactions))
        found.append(
            KnownViolation(
                target=best.target,
                isolation=best.isolation,
                level=best.level,
                anomaly=best.anomaly,
                reason=best.reason or "according to its certificate, because there is no report",
                runs=len(some),
                of_runs=decided[best.promise],
                versions=_sorted(run.version for run in some),
                seeds=_sorted(run.seed for run in some),
                new=None if known is None else kind not in known,
                history=best.history,
                certified=best.certified,
                source=best.source,
                evidence=best.evidence,
                argument=argument(best),
            )
        )
    return sorted(found, key=lambda one: (one.new is False, *one.kind))


def _sorted(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the non-empty texts without duplicates, sorted by the numbers in them."""
    return tuple(sorted(set(filter(None, texts)), key=version_sort_key))


def join_texts(texts: Sequence[str]) -> str:
    """Return the texts separated by commas; for a long list, only the first ones and a count."""
    more = f" and {len(texts) - _SHOWN:,} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def share_of(group: RunGroup) -> str:
    """Return a group's share of failing runs as text, with its bounds; empty if unknown."""
    if group.failing is None or group.interval is None:
        return ""
    low, high = group.interval
    percents = [f"{100 * one:.{0 if one >= 0.1 else 1}f}" for one in (group.failing, low, high)]
    return "{} % ({} to {} %)".format(*percents)


# --- the page ---

_HEADS: Final = (
    "target", "level", "spec", "version", "runs", "valid", "invalid", "unknown", "errors",
    "fails", "seeds that fail",
)  # fmt: skip


# The classes of the page's style for words that are not classes themselves.
_COLOURS: Final = {"error": "wrong"}


def html(summary: Summary) -> str:
    """Return the page with the summary: a table, the first bad versions, and the violations."""
    count = summary.counts()
    words = [word for word in get_args(Outcome) if count[word]]
    verdicts = ", ".join(f"{count[word]:,} {word}" for word in words) or "no verdict"
    coloured = ", ".join(
        f'<span class="{_COLOURS.get(word, word)}">{count[word]:,} {word}</span>' for word in words
    )
    rows = [
        [
            one.target, one.isolation, one.level, one.version,
            *(f"{n:,}" for n in (one.runs, one.valid, one.invalid, one.unknown, one.errors)),
            share_of(one), join_texts(one.seeds),
        ]
        for one in summary.groups
    ]  # fmt: skip
    bad = "".join(f"<p>{text(sentence(one))}</p>" for one in summary.first_bad)
    gone = "".join(f"<li>{text(one)}</li>" for one in summary.gone)
    unclear = [run for run in summary.runs if run.verdict in ("unknown", "error")]
    body = (
        f"<h1>{len(summary.runs):,} verdicts: {coloured or verdicts}</h1>"
        '<p class="note">A run fails if its history is invalid. The parentheses show the interval '
        "that contains the true share with 95 % confidence if the runs are independent. A valid "
        "run shows only that no violation was caught, not that none can happen. Click a column "
        "heading to sort by that column.</p>"
        + table(list(_HEADS), rows, numbers=frozenset(range(4, 9)))
        + (f"<h2>First bad version</h2>{bad}" if bad else "")
        + "<h2>Violations</h2>"
        + ("".join(map(_violation, summary.violations)) or "<p>None.</p>")
        + (f"<h2>Gone since then</h2><ul>{gone}</ul>" if gone else "")
        + (_reasons(unclear) if unclear else "")
        + (
            f'<p class="note">Left out: {text("; ".join(summary.skipped))}.</p>'
            if summary.skipped
            else ""
        )
    )
    return plain_page(f"{len(summary.runs):,} verdicts: {verdicts}", body, script="sort.js")


def sentence(one: FirstBad) -> str:
    """Return a sentence with the first bad version of a target, and the version before it."""
    name = full_name(one.target, one.isolation, one.level)
    if not one.before:
        return f"{name}: {one.version} fails, the first version that ran."
    runs = f"{one.valid_before:,} valid {'run' if one.valid_before == 1 else 'runs'}"
    return f"{name}: {one.version} is the first to fail; up to {one.before} there are {runs}."


def count_phrase(one: KnownViolation) -> str:
    """Return a phrase with the number, versions and seeds of the runs that show a violation."""
    where = f" of {join_texts(one.versions)}" if one.versions else ""
    seeds = f"; seeds {join_texts(one.seeds)}" if one.seeds else ""
    return f"{one.runs:,} of {one.of_runs:,} runs{where}{seeds}"


def files_of(one: KnownViolation) -> list[tuple[str, str]]:
    """Return the files about a violation, each with its kind, such as ``history`` or ``report``.

    A file already listed as evidence is not repeated.
    """
    others = {file for _, file in one.evidence}
    first = (("history", one.history), ("report", one.source))
    return [*((what, file) for what, file in first if file not in others), *one.evidence]


def _violation(one: KnownViolation) -> str:
    mark = ' <b class="invalid">new</b>' if one.new else ""
    files = "".join(
        f"<dt>{text(what)}</dt><dd><code>{text(file)}</code></dd>" for what, file in files_of(one)
    )
    certified = "certified" if one.certified else "not certified"
    argument = (
        f"<details><summary>why</summary><pre>{text_lines(one.argument)}</pre></details>"
        if one.argument
        else ""
    )
    return (
        f"<h3>{text(full_name(*one.kind))}{mark}</h3><p>{text(one.reason)} "
        f'<span class="note">({certified})</span></p>'
        f'<p class="note">{text(count_phrase(one))}</p>{argument}<dl>{files}</dl>'
    )


def text_lines(value: str) -> str:
    """Return a text escaped for HTML, with its line breaks kept."""
    return "\n".join(map(text, value.split("\n")))


def _reasons(runs: Sequence[RunVerdict]) -> str:
    """Return the part of the page about runs without a verdict, grouped by reason."""
    why: dict[str, list[str]] = {}
    for run in runs:
        why.setdefault(f"{run.verdict}: {run.reason.partition(chr(10))[0]}", []).append(run.history)
    items = "".join(
        f"<li>{text(reason)} <span class=note>({text(join_texts(names))})</span></li>"
        for reason, names in why.items()
    )
    return f"<h2>Not decided</h2><ul>{items}</ul>"
