"""Renders reports as text for people, in 80 columns and with colours on terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from isolang.explain.harm import Harm
from isolang.explain.violation import (
    ArgumentView,
    CycleView,
    EdgeView,
    Finding,
    Findings,
    PlainReason,
    SplitView,
    TransactionView,
    Violation,
    ViolationGroup,
    ViolationGroups,
)
from isolang.output.layout import Grid, Sheet, Styled
from isolang.output.terminal import escaped_record

if TYPE_CHECKING:
    from isolang.output.records import Report
    from isolang.verdict import AnomalyCount, Verdict

_COLOUR = {"valid": "bold green", "invalid": "bold red", "unknown": "bold yellow", "error": "bold"}
# Of a cycle or a list of transactions longer than _LONGEST, only _ENDS elements at each end are
# printed.
_LONGEST, _ENDS = 24, 4


def text_of(
    verdict: Verdict, groups: ViolationGroups | None = None, harm: Harm | None = None
) -> str:
    """Return the report of a verdict as text in 100 columns, without colours."""
    from isolang.output.records import report_of, with_harm

    report = report_of(verdict.history.name, verdict.spec.name, verdict)
    return text_of_report(with_harm(replace(report, groups=groups), harm))


def text_of_report(report: Report) -> str:
    """Return a report as text in 100 columns, without colours."""
    from io import StringIO

    out = StringIO()
    render(report, Sheet(file=out, width=100))
    return out.getvalue().rstrip()


def render(
    report: Report,
    out: Sheet,
    *,
    before: Report | None = None,
    titled: bool = False,
    every: bool = False,
) -> None:
    """Print one report, with an empty line after it.

    Args:
        before: the previously printed report, or ``None``. If both reports are about the same
            input, facts about it are not repeated.
    """
    again = before is not None and (before.history, before.input) == (report.history, report.input)
    short = tuple(map(_without_excerpt, report.warnings))
    shown = escaped_record(replace(report, warnings=short))
    if not titled:
        render_title(shown, out)
    _render(shown, out, again=again, every=every)


def _without_excerpt(warning: str) -> str:
    """Return a warning about a specification on one line, without the excerpt of its text."""
    return warning.partition("\n")[0].replace(" warning: ", " ", 1)


def render_violation(report: Report, out: Sheet) -> None:
    """Print only the part of a report that explains the violation."""
    shown = escaped_record(report)
    for part in _violation(shown.violation, shown):
        out.show(part)
    out.line()


def render_title(report: Report, out: Sheet) -> None:
    """Print the first line of a report: the verdict, the history and the specification."""
    shown = escaped_record(replace(report, warnings=()))
    verdict, level = shown.verdict, shown.level
    title = f" ({level.title})" if level and level.title else ""
    word = Styled(verdict.upper(), _COLOUR[verdict])
    if shown.harm is not None:
        out.line(word, Styled(f", {shown.harm.headline()}", "bold"))
        word = Styled("")
    out.line(
        word,
        Styled(f"  {shown.history}", "bold"),
        f"  {shown.spec}",
        Styled(title, "dim"),
        ", requests" if shown.unit == "request" else "",
    )


def _render(report: Report, out: Sheet, *, again: bool, every: bool) -> None:
    violation = report.violation
    if report.reason:
        out.show(_indented(report.reason, 2, style="bold" if violation else ""))
    if report.harm is not None:
        for part in _harm(report.harm, 2):
            out.show(part)
    if report.groups and every and len(report.groups.groups) > 1:
        for part in _each_group(report.groups, report):
            out.show(part)
    elif violation:
        if report.groups:
            for part in _groups(report.groups):
                out.show(part)
        for part in _violation(violation, report):
            out.show(part)
    elif report.anomalies:
        out.line()
        out.show(_indented("anomalies in the history that the level allows:", 2))
    if report.anomalies and not (violation and _is_only_anomaly(report)):
        for part in _anomalies(report.anomalies):
            out.show(part)
    if report.findings:
        for part in _findings(report.findings, report):
            out.show(part)
    if report.input:
        out.line()
        out.show(_facts(report, again=again))
    out.line()


def _is_only_anomaly(report: Report) -> bool:
    """Return whether the report's violation is the history's only intrinsic anomaly."""
    (first, *more) = report.anomalies
    alone = not more and first.count == 1
    return (
        alone and report.violation is not None and not _has_only_cycles(report.violation.argument)
    )


def _has_only_cycles(argument: ArgumentView) -> bool:
    return not isinstance(argument.conclusion, PlainReason)


# --- the violation ---


def _violation(violation: Violation, report: Report) -> Iterator[Grid]:
    spec = report.spec
    yield Grid(rows=[("",)])
    yield from _transactions(violation, report)
    yield from _queries(violation, report, 2)
    argument = violation.argument
    if not (violation.queries and isinstance(argument.conclusion, PlainReason)):
        # The description of a query already says that it is wrong by itself.
        yield Grid(rows=[("",)])
        yield from _argument(argument, 2)
    if violation.relaxed:
        yield Grid(rows=[("",)])
        for how, outcome in violation.relaxed.items():
            why = "it takes as long as this verdict, and isocheck levels decides it"
            if "versions" in how:
                why = "it is harder to decide, and --ignore-versions decides it"
            sentences = {
                "valid": f"{how.capitalize()}, the history satisfies {spec}.",
                "invalid": f"{how.capitalize()}, the history violates {spec} all the same.",
                "unknown": f"Whether the history satisfies {spec} {how} was not checked: {why}.",
            }
            yield _indented(sentences[outcome], 2)


def _harm(harm: Harm, indent: int) -> Iterator[Grid]:
    """Yield what is known of the harm, besides the first line."""
    details = harm.details()
    if not details:
        return
    yield Grid(rows=[("",)])
    grid = Grid(indent=indent)
    for number, (name, text) in enumerate(details):
        repeated = number and details[number - 1][0] == name
        grid.add(Styled("" if repeated else name, "dim"), text)
    yield grid


def _groups(groups: ViolationGroups) -> Iterator[Grid]:
    """Yield a line for each group of violations, with its statements."""
    found = groups.groups
    if len(found) == 1 and found[0].count == 1 and not groups.not_finished:
        return
    yield Grid(rows=[("",)])
    kinds = "one kind of violation"
    if len(found) > 1:
        kinds = f"{len(found)} kinds of violations; the first is explained below"
    yield _indented(f"{kinds}:", 2, style="bold")
    for number, group in enumerate(found, 1):
        yield from _group(number, group)
    if groups.not_finished:
        yield _indented(groups.not_finished, 2)


def _group(number: int, group: ViolationGroup) -> Iterator[Grid]:
    start = f"{number:>2}  "
    yield _indented(start + group.headline(), 2, hang=len(start))
    if group.harm is not None:
        yield _indented(group.harm.headline(), 2 + len(start))
    if group.programs:
        yield _indented(f"by {', '.join(group.programs)}", 2 + len(start))
    for statement in group.statements:
        yield _indented(statement, 2 + len(start) + 2, hang=2, style="dim")


def _each_group(groups: ViolationGroups, report: Report) -> Iterator[Grid]:
    """Yield the explanation of each group of violations."""
    yield Grid(rows=[("",)])
    yield _indented(f"{len(groups.groups)} kinds of violations:", 2, style="bold")
    for number, group in enumerate(groups.groups, 1):
        yield Grid(rows=[("",)])
        yield from _group(number, group)
        yield _indented(group.violation.about(), 8)
        yield Grid(rows=[("",)])
        yield from _transactions(group.violation, report, 6)
        yield from _queries(group.violation, report, 6)
        yield Grid(rows=[("",)])
        yield from _argument(group.violation.argument, 6)
    if groups.not_finished:
        yield Grid(rows=[("",)])
        yield _indented(groups.not_finished, 2)


def _transactions(violation: Violation, report: Report, indent: int = 2) -> Iterator[Grid]:
    transactions: Sequence[TransactionView] = violation.transactions
    others: list[TransactionView] = []
    if len(transactions) > _LONGEST:
        named = _named(violation.argument)
        others = [txn for txn in transactions if txn.name not in named]
        transactions = [txn for txn in transactions if txn.name in named]
    grid = Grid(indent=indent)
    for txn in transactions:
        about = [_place(txn.where, report)]
        about += [f"session {txn.session}"] * bool(txn.session)
        about += [f"level {txn.level}"] * bool(txn.level)
        about += [f'"{label}"' for label in txn.labels]
        status = f" {txn.status}" if txn.status != "committed" else ""
        operations = "  ".join(op.text for op in txn.operations if not op.caller)
        more = f"  (+{txn.omitted} more)" if txn.omitted else ""
        grid.add(
            Styled(txn.name + status, "bold"),
            Styled(", ".join(filter(None, about)), "dim"),
            operations + more,
        )
        for op in txn.operations:
            if op.caller:
                grid.add("", Styled(op.caller, "dim"), op.text)
    yield grid
    if others:
        places = (f"{txn.name} ({_place(txn.where, report)})" for txn in others)
        yield _indented(f"and {_count(len(others), 'other')}: {', '.join(places)}", indent, hang=4)


def _queries(violation: Violation, report: Report, indent: int) -> Iterator[Grid]:
    """Yield the question and the answer of each predicate read in an argument."""
    for query in violation.queries:
        yield Grid(rows=[("",)])
        yield _indented(f"{query.request()} ({_place(query.where, report)}):", indent)
        grid = Grid(indent=indent + 2)
        if query.sent:
            grid.add(Styled("sent", "dim"), query.sent)
        grid.add(Styled("answer", "dim"), query.answered())
        for remark in query.remarks:
            grid.add(Styled(remark.kind, "bold"), f"{remark.row}: {remark.text}")
        yield grid


def _named(node: ArgumentView | CycleView | SplitView | PlainReason) -> set[str]:
    """Return the names of the transactions at the ends of an argument's printed edges."""
    match node:
        case ArgumentView():
            inner = [*(lemma.reason for lemma in node.lemmas), node.conclusion]
            return {name for part in inner for name in _named(part)}
        case SplitView():
            return {name for case in node.cases for name in _named(case.argument)}
        case CycleView():
            first, _, last = _parts(node.edges)
            return {name for edge in (*first, *last) for name in (edge.source, edge.target)}
        case PlainReason():
            return set()


def _parts(
    edges: Sequence[EdgeView],
) -> tuple[Sequence[EdgeView], Sequence[EdgeView], Sequence[EdgeView]]:
    """Split a cycle's edges into the first ones, those to omit, and the last ones."""
    if len(edges) <= _LONGEST:
        return edges, [], []
    return edges[:_ENDS], edges[_ENDS:-_ENDS], edges[-_ENDS:]


def _place(where: str, report: Report) -> str:
    """Return a position without the history's path, such as ``line 12`` or ``T3.log byte 40``."""
    files = report.input.files if report.input is not None else ()
    folder = report.history.rstrip("/") + "/"
    if where.startswith(folder):
        return where.removeprefix(folder)
    if where.startswith(report.history + " "):
        return where.removeprefix(report.history + " ")
    if len(files) == 1 and where.startswith(files[0]):
        rest = where[len(files[0]) :]
        return f"line {rest[1:]}" if rest.startswith(":") else rest.strip()
    return where


def _argument(argument: ArgumentView, indent: int) -> Iterator[Grid]:
    for lemma in argument.lemmas:
        reason = lemma.reason
        number = f"({lemma.number}) "
        if isinstance(reason, PlainReason):
            text = f"{lemma.text}: {reason.text}{_because(reason.because)}."
            yield _indented(number + text, indent, hang=len(number))
            continue
        yield _indented(f"{number}{lemma.text}; otherwise:", indent, hang=len(number))
        yield from _node(reason, indent + 4)
    yield from _node(argument.conclusion, indent)


def _node(node: ArgumentView | CycleView | SplitView | PlainReason, indent: int) -> Iterator[Grid]:
    match node:
        case ArgumentView():
            yield from _argument(node, indent)
        case PlainReason():
            yield _indented(node.text + _because(node.because), indent)
        case CycleView():
            yield from _cycle(node, indent)
        case SplitView():
            yield _indented(f"{node.text}:", indent)
            for case in node.cases:
                yield _indented(f"- {case.assumption}:", indent + 2, hang=2)
                yield from _argument(case.argument, indent + 6)


def _cycle(cycle: CycleView, indent: int) -> Iterator[Grid]:
    first, omitted, last = _parts(cycle.edges)
    if omitted:
        yield _indented(f"a cycle of {len(cycle.edges)} edges:", indent)
    yield _edges(first, indent)
    if omitted:
        names = ", ".join(_short(edge.source) for edge in (*omitted, last[0]))
        yield _indented(f"… {len(omitted)} more, through {names} …", indent)
        yield _edges(last, indent)


def _edges(edges: Sequence[EdgeView], indent: int) -> Grid:
    grid = Grid(indent=indent)
    for edge in edges:
        label = f"{edge.relation} {edge.key}".rstrip()
        text = edge.text + (" (assumed)" if edge.assumed else _because(edge.because))
        grid.add(f"{_short(edge.source)} -{label}-> {_short(edge.target)}", text)
    return grid


def _short(name: str) -> str:
    return "T0" if name == "the initial state" else name


def _because(lemmas: Sequence[int]) -> str:
    return f" ({', '.join(f'by {number}' for number in lemmas)})" if lemmas else ""


# --- the rest ---


def _anomalies(anomalies: Sequence[AnomalyCount]) -> Iterator[Grid]:
    yield Grid(rows=[("",)])
    for anomaly in anomalies:
        times = "once" if anomaly.count == 1 else f"{anomaly.count} times"
        yield _indented(f"{anomaly.name}, {times}:", 2)
        for example in anomaly.examples:
            yield _indented(example, 6)
        if anomaly.count > len(anomaly.examples):
            yield _indented(f"and {anomaly.count - len(anomaly.examples)} more", 6)


_COUNTED = {
    "reads": "{} of it",
    "components": "in {} of the known dependencies",
    "levels": "not a cycle of known dependencies, but found in the verdict on a level",
}
_UNITS = {"reads": "read", "components": "strongly connected component", "levels": "level"}


def _findings(findings: Findings, report: Report) -> Iterator[Grid]:
    """Yield a paragraph for each kind of anomaly, with an example."""
    yield Grid(rows=[("",)])
    found = findings.anomalies
    yield _indented(f"all kinds of anomalies: {len(found) or 'none'}", 2, style="bold")
    yield from _each_finding(found, report)
    if findings.behind:
        yield Grid(rows=[("",)])
        yield _indented(
            "other anomalies, if unwritten values are initial (--unwritten-initial):", 2
        )
        yield from _each_finding(findings.behind, report)
    yield Grid(rows=[("",)])
    for name, levels in (("not", findings.weakest_violated), ("also not", findings.also_violated)):
        if levels:
            yield _indented(f"{name:8}  {', '.join(levels)}", 2, hang=10)
    if not findings.weakest_violated:
        yield _indented("no level is violated", 2)
    if findings.not_finished:
        yield _indented(findings.not_finished, 2)


def _each_finding(found: Sequence[Finding], report: Report) -> Iterator[Grid]:
    for one in found:
        counted = _COUNTED[one.counted].format(_count(one.count, _UNITS[one.counted]))
        proved = "" if one.certified else ", not certified"
        yield Grid(rows=[("",)])
        yield _indented(f"{one.anomaly}: {counted}; {one.level} forbids it{proved}", 2, hang=4)
        yield from _transactions(one.violation, report, 6)
        yield from _queries(one.violation, report, 6)
        yield from _argument(one.violation.argument, 6)


def _standing(report: Report) -> str:
    """Return the levels between which the history lies, on one line."""
    found = report.standing
    if found is None:
        return ""
    if not found.looked_for:
        return f"not checked; see isocheck levels {report.history}"
    strongest, weakest = (
        ", ".join(names) or "none" for names in (found.strongest, found.weakest_violated)
    )
    more = "; some levels are unknown" if found.unknown else ""
    return f"strongest satisfied: {strongest}; weakest violated: {weakest}{more}"


def _facts(report: Report, *, again: bool) -> Grid:
    known = report.input
    assert known is not None
    by_status = ", ".join(
        f"{getattr(report, status)} {status}" for status in ("committed", "aborted", "maybe")
    )
    of_input = [
        (
            "input",
            f"{known.format}; {_count(report.transactions, 'transaction')} ({by_status}), "
            f"{_count(report.operations, 'operation')}, {_count(report.keys, 'key')}, "
            f"{_count(report.sessions, 'session')}",
        ),
        ("initial state", known.initial),
        ("session", known.session),
        ("real time", known.real_time),
        ("ignored", "; ".join(known.ignored) or "nothing"),
        *(("note", note) for note in known.notes),
        ("levels", _standing(report)),
    ]
    rows = [
        *([] if again else of_input[:-1]),
        *(("note", note) for note in (report.level.notes if report.level else ())),
        *(("warning", warning) for warning in report.warnings),
        *([] if again else of_input[-1:]),
        ("decided by", _deciding_pair(report)),
        ("certified", f"{'yes' if report.certified else 'no'}: {report.certified_reason}"),
        ("certificate", report.certificate),
        ("minimal part", report.minimal),
        ("page", report.page),
        ("figure", report.plot),
        *(("cross-check", line) for line in _cross_check(report)),
        ("time", _time(report)),
    ]
    grid = Grid(indent=2)
    for name, value in rows:
        if value and (name != "certified" or report.certified_reason):
            grid.add(Styled(name, "dim"), Styled(value, whole=True))
    return grid


def _deciding_pair(report: Report) -> str:
    """Return the encoding-solver pair that decided; empty for the default pair."""
    natively = report.solver == "native" and report.encoding in ("event-graph", "relational")
    if not report.solver or (natively and not report.cross_check):
        return ""
    pair = f"{report.encoding}/{report.solver}/{report.prune}"
    return f"{pair} ({report.choice})" if report.choice else pair


def _cross_check(report: Report) -> list[str]:
    found = report.cross_check
    if not found:
        return []
    lines = [f"{c.pair}: {c.outcome}, {c.detail} ({c.seconds:.2f} s)" for c in found.claims]
    saved = [f"saved as {found.history}"] if found.history else []
    if found.minimal:
        saved.append(f"the smallest part found on which they disagree: {found.minimal}")
    return [*lines, found.summary, *saved]


def _time(report: Report) -> str:
    phases = asdict(report.seconds)
    total = phases.pop("total")
    return f"{total:.2f} s ({', '.join(f'{name} {spent:.2f}' for name, spent in phases.items())})"


def _count(number: int | None, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _indented(text: str, indent: int, *, style: str = "", hang: int = 0) -> Grid:
    """Return a paragraph with all lines but the first indented by ``hang`` more blanks."""
    if hang:
        return Grid(rows=[(text[:hang], text[hang:])], indent=indent, space=0)
    return Grid(rows=[(Styled(text, style),)], indent=indent)
