"""Implements ``isocheck summary``, which summarizes the reports of many runs."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from isolang.cli.parameters import Mistake, SelectedOptions
from isolang.declared import About
from isolang.errors import HistoryError
from isolang.options import OUTPUT, OutputOptions
from isolang.output.layout import align_rows
from isolang.output.records import (
    EXIT_INPUT,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    Report,
    exit_code,
    json_text,
)
from isolang.output.terminal import escaped, print_data, print_lines, warn
from isolang.report.summary import (
    RunVerdict,
    Summary,
    count_phrase,
    files_of,
    full_name,
    join_texts,
    run_of,
    sentence,
    share_of,
    summarize,
    target_and_version,
)

if TYPE_CHECKING:
    from isolang.run.survey.survey import Survey

_JSON: Final = (".json", ".jsonl", ".ndjson")
_CHAIN: Final = "chain.jsonl"
_UNFINISHED: Final = "the watch has not ended"
_FIELDS: Final = ("target", "version", "isolation", "workload", "seed")
_HEADER: Final = 4096  # the maximum length in bytes of a recorded history's first line
_EXPLAINING: Final = 60.0  # the seconds after which a certificate is left unexplained
_LAST: Final = 1 << 16  # the last line of a chain lies within this many bytes of its end


class _AnyReport(Report, frozen=True, kw_only=True):
    """A report of ``check``, ``run`` or ``observe``."""

    database: str = ""
    isolation: str = ""
    workload: str = ""
    seed: int | None = None
    doubts: tuple[str, ...] = ()
    grave: bool = False


class _Probe(Struct, frozen=True):
    """The fields that tell the kinds of files apart; long ones are not decoded."""

    history: Any = None
    spec: Any = None
    verdict: str = ""
    cells: Raw = Raw()
    groups: Raw = Raw()
    runs: Raw = Raw()
    tool: str = ""


class _FoundFiles(Struct):
    """The contents of all files.

    Attributes:
        recorded: recorded histories in folders, with the facts from their first lines.
    """

    runs: list[RunVerdict] = field(default_factory=list)
    reports: dict[tuple[str, str, str], Report] = field(default_factory=dict)
    certified: list[RunVerdict] = field(default_factory=list)
    recorded: dict[str, dict[str, str]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)


def summary(
    *,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Reports (from --output json), summaries, certificates, or folders that contain "
            "them.",
        ),
    ],
    output: Annotated[
        OutputOptions,
        SelectedOptions(
            forms=("text", "json", "junit", "sarif"),
            about={"html": About("Write the summary as an HTML page.", "FILE", OUTPUT)},
        ),
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against", metavar="PATH", show_default=False,
            help="Report what is new since these earlier reports; may be repeated.",
        ),
    ] = None,
    names: Annotated[
        str,
        typer.Option(
            "--names", metavar="PATTERN", show_default=False,
            help="Take {target}, {version}, {seed}, {workload} and {isolation} from the paths of "
            "reports: 'nightly/{version}/{seed}.json'. * is any text without a slash.",
        ),
    ] = "",
) -> int:  # fmt: skip
    """Summarize many runs: verdicts by target, level, version and seed, and each violation once.

    The exit code is 1 if a run is invalid; with --against, if a violation is new.
    """
    naming = _pattern(names) if names else None
    found = _read(paths, naming)
    earlier = None if against is None else _read(against, naming)
    if not found.runs:
        skipped = f"; {'; '.join(_skipped(found.skipped))}" if found.skipped else ""
        raise Mistake(
            f"no report in {', '.join(paths)}{skipped}",
            "isocheck check, run and observe write reports with --output json",
        )

    def argument(run: RunVerdict) -> str:
        report = found.reports.get((run.source, run.history, run.level))
        if report is None or report.violation is None:
            return ""
        from io import StringIO

        from isolang.output.layout import Sheet
        from isolang.output.text import render_violation

        out = StringIO()
        render_violation(report, Sheet(file=out, width=88))
        return out.getvalue().strip("\n")

    made = summarize(
        found.runs,
        against=None if earlier is None else earlier.runs,
        skipped=_skipped(found.skipped),
        argument=argument,
    )
    if output.html:
        from isolang.report import save_page
        from isolang.report.summary import html

        save_page(html(made), Path(output.html))
    if output.form == "json":
        print_data(json_text(made))
    elif output.form in ("junit", "sarif"):
        from isolang.output.text import text_of_report
        from isolang.report.forms import junit, sarif

        every = (_report(run, found) for run in made.runs)
        form = junit if output.form == "junit" else sarif
        print_data(form((one, text_of_report(one)) for one in every))
    else:
        print_lines(*map(escaped, _text(made)))
    if output.form != "text" and made.skipped:
        warn(escaped(f"left out: {'; '.join(made.skipped)}"))
    return _code(made, compared=earlier is not None)


def _code(made: Summary, *, compared: bool) -> int:
    there = made.counts()
    bad = any(one.new for one in made.violations) if compared else there["invalid"]
    codes = ((bad, EXIT_INVALID), (there["error"], EXIT_INPUT), (there["unknown"], EXIT_UNKNOWN))
    return exit_code(code for reached, code in codes if reached)


def _report(run: RunVerdict, found: _FoundFiles) -> Report:
    report = found.reports.get((run.source, run.history, run.level))
    if report is None:
        files = dict(run.evidence)
        report = Report(
            history=run.history,
            spec=run.level,
            verdict=run.verdict,
            anomaly=run.anomaly or None,
            certified=run.certified,
            certificate=files.get("certificate"),
        )
    name = full_name(" ".join((run.target, run.version)).strip(), run.isolation, run.level)
    return replace(report, spec=name, verdict=run.verdict, reason=run.reason)


# --- reading ---


def _pattern(names: str) -> re.Pattern[str]:
    """Return the regular expression for ``--names``, with the names in braces as groups."""
    parts = re.split(r"(\{\w*\}|\*)", names)
    fields = [part[1:-1] for part in parts if part.startswith("{")]
    for name in fields or [""]:
        if name not in _FIELDS or fields.count(name) > 1:
            got = f"{{{name}}}" if name else names
            raise Mistake(f"--names: got {got}, expected each of {{{'}, {'.join(_FIELDS)}}} once")
    made = "".join(
        f"(?P<{part[1:-1]}>[^/]+?)"
        if part.startswith("{")
        else "[^/]*"
        if part == "*"
        else re.escape(part)
        for part in parts
    )
    return re.compile(rf"(?:.*/)?{made}")


def _read(paths: Iterable[str], naming: re.Pattern[str] | None) -> _FoundFiles:
    """Read all files, and add the names from paths and headers to the verdicts."""
    found = _FoundFiles()
    paths = list(paths)
    folders = any(map(os.path.isdir, paths))  # then the others are what a pattern like runs/* found
    for path in paths:
        if os.path.isdir(path):
            _read_folder(Path(path), found)
        else:
            _read_file(Path(path), found, inside=folders)
    known = {os.path.basename(file) for run in found.runs for _, file in run.evidence}
    judged = {(run.sha256, run.level.lower()) for run in found.runs if run.sha256}
    found.runs += (
        run
        for run in found.certified
        if os.path.basename(run.source) not in known and (run.sha256, run.level) not in judged
    )

    # A run watches its file, and then ends the watch by judging the whole file.
    def judged_as(run: RunVerdict) -> tuple[str, str]:
        return os.path.basename(run.history), run.level.lower()

    whole = {judged_as(run) for run in found.runs if run.reason != _UNFINISHED}
    kept = [run for run in found.runs if run.reason != _UNFINISHED or judged_as(run) not in whole]
    if len(kept) < len(found.runs):
        found.skipped["watches of runs that were judged as a whole"] += len(found.runs) - len(kept)
    found.runs = kept
    for place, run in enumerate(found.runs):
        found.runs[place] = moved = _with_moved_files(run)
        if (report := found.reports.get((run.source, run.history, run.level))) is not None:
            found.reports[moved.source, moved.history, moved.level] = report
    histories = {os.path.basename(run.history) for run in found.runs}
    for path in found.recorded:
        if os.path.basename(path) not in histories:
            found.runs.append(
                RunVerdict(
                    history=path,
                    level="",
                    verdict="unknown",
                    reason="the run was recorded, but has no report and no certificate",
                    source=path,
                )
            )
    headers = {os.path.basename(path): header for path, header in found.recorded.items()}
    unnamed = 0
    for place, run in enumerate(found.runs):
        header = headers.get(os.path.basename(run.history))
        if header is None:
            header = {} if run.target else _header(Path(run.history))
        values = {name: getattr(run, name) or header.get(name, "") for name in _FIELDS}
        if naming is not None:
            match = naming.fullmatch(Path(run.source).as_posix())
            values |= match.groupdict() if match else {}
            unnamed += match is None
        found.runs[place] = replace(_with_anomaly(run), **values)
    if unnamed:
        warn(f"warning: {unnamed:,} of {len(found.runs):,} verdicts do not match --names")
    return found


def _with_moved_files(run: RunVerdict) -> RunVerdict:
    """Return a verdict that names files next to it if those that it names are not there any more.

    The paths in reports and certificates are those of the run, and folders of runs are moved.
    """

    def found_again(path: str) -> str:
        neighbour = Path(run.source).parent / os.path.basename(path)
        return str(neighbour) if not os.path.exists(path) and neighbour.is_file() else path

    history = found_again(run.history)
    evidence = [(what, found_again(file)) for what, file in run.evidence]
    part = str(Path(history).with_suffix(".minimal.edn"))
    if run.verdict == "invalid" and "smallest part" not in dict(evidence) and os.path.exists(part):
        evidence.append(("smallest part", part))
    return replace(run, history=history, evidence=tuple(evidence))


def _with_anomaly(run: RunVerdict) -> RunVerdict:
    """Return a verdict that names its violation, also if it is known only from a certificate.

    The proof is checked and explained again. If that is not possible, for example because the
    history is not there, the verdict is returned unchanged.
    """
    if run.verdict != "invalid" or run.anomaly or dict(run.evidence).get("certificate") is None:
        return run
    from isolang.certify.certificate import Certificate
    from isolang.certify.certificate import verify as check
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.cli.verify import reading_options, spec_of
    from isolang.errors import IsolangError
    from isolang.history import read_history
    from isolang.limits import interrupt_after
    from isolang.pipeline.verified import verdict_of
    from isolang.verdict import Invalid

    try:
        with interrupt_after(_EXPLAINING):
            proof = Certificate.load(dict(run.evidence)["certificate"])
            spec = spec_of(proof)
            about = proof.about(read_history(run.history, reading_options(proof)))
            verdict = verdict_of(proof, about, spec, check(proof, about, spec))
    except (IsolangError, CertificateRejected, NotCertifiedError, TimeoutError, MemoryError):
        return run
    if not isinstance(verdict, Invalid):
        return run
    violation = verdict.violation
    return replace(run, anomaly=violation.anomaly, reason=run.reason or violation.about())


def _read_folder(folder: Path, found: _FoundFiles) -> None:
    for name, inner, files in os.walk(folder):
        inner.sort()
        at = Path(name)
        if _CHAIN in files:  # a watch's folder; its other files are the state of the watch
            found.runs.append(_chain(at / _CHAIN, inside=True))
            continue
        for file in sorted(files):
            _read_file(at / file, found, inside=True)


def _read_file(path: Path, found: _FoundFiles, *, inside: bool) -> None:
    """Read a file."""
    if path.name == _CHAIN:
        found.runs.append(_chain(path, inside=inside))
        return
    if inside and path.suffix not in _JSON:
        header = _header(path) if path.suffix == ".edn" else {}
        if header:
            found.recorded[str(path)] = header
        else:
            part = ".minimal" * path.name.endswith(".minimal.edn")
            found.skipped[f"*{part}{path.suffix}" if path.suffix else path.name] += 1
        return
    try:
        data = path.read_bytes()
    except OSError as error:
        if not inside:
            raise HistoryError(f"{path}: {error.strerror or error}") from None
        found.skipped["files that cannot be read"] += 1
        return
    if inside and not data.strip():  # the report of a killed job
        found.skipped["empty files"] += 1
        return
    for number, text in enumerate(_objects(data), 1):
        where = f"{path}:{number}"
        try:
            known = _add(text, str(path), found)
        except msgspec.MsgspecError as error:
            if not inside:
                raise HistoryError(f"{where}: not a report ({error})") from None
            known = False
        if not known and not inside:
            raise HistoryError(
                f"{where}: not a report (expected a certificate, or a report that isocheck check, "
                "run, observe or summary wrote with --output json)"
            )
        if not known:
            found.skipped[f"{path.suffix} that is not a report"] += 1


def _objects(data: bytes) -> list[bytes]:
    """Return the JSON objects in a file: the whole file, or each of its lines."""
    try:
        msgspec.json.decode(data, type=Raw)
    except msgspec.DecodeError:
        return [line for line in data.splitlines() if line.strip()]
    return [data]


def _add(text: bytes, source: str, found: _FoundFiles) -> bool:
    """Add the content of a JSON object, and return whether it is a report."""
    probe = msgspec.json.decode(text, type=_Probe)
    if probe.verdict and isinstance(probe.history, str) and isinstance(probe.spec, str):
        report = msgspec.json.decode(text, type=_AnyReport)
        run = run_of(report, source)
        found.runs.append(run)
        found.reports[source, run.history, run.level] = report
    elif probe.verdict and isinstance(probe.history, dict) and isinstance(probe.spec, dict):
        found.certified.append(_verdict_of_certificate(probe, source))
    elif len(probe.cells):
        from isolang.run.survey.survey import Survey

        found.runs += _survey_verdicts(msgspec.json.decode(text, type=Survey), source)
    elif len(probe.groups) and len(probe.runs):
        found.runs += msgspec.json.decode(text, type=Summary).runs
    else:
        return False
    return True


def _verdict_of_certificate(probe: _Probe, source: str) -> RunVerdict:
    """Return the verdict claimed by a certificate, without checking the proof."""
    history = str(probe.history.get("name", ""))
    return msgspec.convert(
        {
            "history": history,
            "level": str(probe.spec.get("name", "")).lower(),
            "verdict": probe.verdict,
            "certified": True,
            "sha256": str(probe.history.get("sha256", "")),
            "source": source,
            "evidence": (("certificate", source),),
        },
        RunVerdict,
    )


def _survey_verdicts(survey: Survey, source: str) -> Iterator[RunVerdict]:
    target, version = target_and_version(survey.database)
    for cell in survey.cells:
        if cell.outcome == "not played":
            continue
        grave = cell.grave and cell.outcome == "valid"
        shown = ", ".join(f"{name} ×{count}" for name, count in cell.anomalies.items())
        reason = "; ".join(cell.doubts) if grave else cell.reason
        if cell.outcome == "invalid":
            reason = f"the history shows {shown}" if shown else "the history violates the level"
        files = (
            ("certificate", cell.certificate),
            ("smallest part", cell.minimal),
            ("page", cell.page),
        )
        yield RunVerdict(
            history=cell.history or f"{cell.level} {cell.workload}",
            level=cell.claims,
            verdict="unknown" if grave else "error" if cell.outcome == "failed" else cell.outcome,
            reason=reason,
            certified=cell.certified,
            target=target,
            version=version,
            isolation=cell.level,
            workload=cell.workload,
            seed=str(survey.seed),
            transactions=cell.committed,
            source=source,
            evidence=tuple((what, file) for what, file in files if file),
        )


def _chain(path: Path, *, inside: bool) -> RunVerdict:
    """Return the verdict of a watch from its chain, without checking the chain.

    Args:
        inside: whether the user named only a folder that contains the file. Then a file that is no
            chain, perhaps because the watch was killed, is an error among the verdicts.
    """
    from isolang.watch.chain import ChainEnd, Head

    try:
        with path.open("rb") as file:
            head = msgspec.json.decode(file.readline(), type=Head)
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST))
            last = file.read().splitlines()[-1]
    except (OSError, msgspec.MsgspecError, IndexError) as error:
        message = f"not the chain of a watch ({error})"
        if not inside:
            raise HistoryError(f"{path}: {message}") from None
        return RunVerdict(
            history=str(path.parent), level="", verdict="error", reason=message, source=str(path)
        )
    try:
        end = msgspec.json.decode(last, type=ChainEnd)
    except msgspec.MsgspecError:
        end = ChainEnd(previous="", outcome="unknown", note=_UNFINISHED)
    outcome = end.outcome if end.outcome in ("valid", "invalid") else "unknown"
    return msgspec.convert(
        {
            "history": ", ".join(head.sources),
            "level": head.spec_name.lower(),
            "verdict": outcome,
            "reason": "" if outcome == "valid" else end.note or f"the watch ended: {end.outcome}",
            "certified": outcome == "valid",
            "source": str(path),
            "evidence": (("chain", str(path.parent)),),
        },
        RunVerdict,
    )


def _header(path: Path) -> dict[str, str]:
    """Return the facts in a recorded history's first line; empty for other files."""
    try:
        with path.open("rb") as file:
            line = file.readline(_HEADER).decode("utf-8", "replace")
    except (OSError, ValueError):
        return {}
    if not line.startswith("; "):
        return {}
    database, *parts = line[2:].strip().split("; ")
    facts = {word: rest for word, _, rest in (part.partition(" ") for part in parts)}
    if not {"level", "seed"} <= facts.keys():
        return {}
    target, version = target_and_version(database)
    return {
        "target": target,
        "version": version,
        "isolation": facts["level"].partition(" (")[0],
        "workload": facts.get("workload", ""),
        "seed": facts["seed"],
    }


# --- text ---


def _skipped(counts: Counter[str]) -> list[str]:
    return [f"{count:,} {kind}" for kind, count in sorted(counts.items())]


def _text(made: Summary) -> Iterator[str]:
    count = made.counts()
    parts = [f"{count[word]:,} {word}" for word in ("valid", "invalid", "unknown", "error")
             if count[word]]  # fmt: skip
    verdicts = "verdict" if len(made.runs) == 1 else "verdicts"
    yield f"{len(made.runs):,} {verdicts}: {', '.join(parts)}"
    yield ""
    yield from _table(made)
    if made.first_bad:
        yield ""
        yield "First bad version"
        yield from (f"  {sentence(one)}" for one in made.first_bad)
    if made.violations:
        yield ""
        yield "Violations"
    for one in made.violations:
        new = {True: "  NEW", False: "  known", None: ""}[one.new]
        yield f"  {full_name(*one.kind)}{new}"
        yield f"    {one.reason}"
        yield f"    {count_phrase(one)}"
        yield from (f"  {line}".rstrip() for line in one.argument.splitlines())
        yield from (f"    {what:<13} {file}" for what, file in files_of(one))
    if made.gone:
        yield ""
        yield "Gone"
        yield from (f"  {one}" for one in made.gone)
    unclear = Counter(
        f"{run.verdict}: {run.reason.partition(chr(10))[0]}"
        for run in made.runs
        if run.verdict in ("unknown", "error")
    )
    if unclear:
        yield ""
        yield "Not decided"
        yield from (f"  {n:,} × {reason}" for reason, n in unclear.most_common())
    if made.skipped:
        yield ""
        yield f"left out: {'; '.join(made.skipped)}"


def _table(made: Summary) -> Iterator[str]:
    """Yield the lines of the table of groups, without empty columns."""
    heads = ("target", "level", "spec", "version", "runs", "valid", "invalid", "fails", "seeds")
    rows: list[Sequence[str]] = [heads]
    for one in made.groups:
        fails = share_of(one) if one.flaky else ""
        rows.append(
            (
                one.target, one.isolation, one.level, one.version, f"{one.runs:,}",
                f"{one.valid:,}", f"{one.invalid:,}", fails, join_texts(one.seeds),
            )
        )  # fmt: skip
    there = [place for place in range(len(heads)) if any(row[place] for row in rows[1:])]
    right = frozenset(n for n, place in enumerate(there) if place in (4, 5, 6))
    yield from align_rows([[row[n] for n in there] for row in rows], indent=2, right=right)
