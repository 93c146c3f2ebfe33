"""Writes verdicts in other forms: Graphviz, Mermaid, Perfetto, JUnit, SARIF, and bug reports.

Each function takes a verdict or the result of a command, and returns text. ``FORMS`` lists the
functions that take a single verdict.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from xml.etree import ElementTree

from isolang.release import version
from isolang.report.columns import Columns, cut, pack
from isolang.report.picture import escape_invisible
from isolang.report.relations import style_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from networkx import MultiDiGraph

    from isolang.output.records import Report
    from isolang.verdict import Verdict


def graph_of(verdict: Verdict) -> MultiDiGraph[int]:
    """Return the graph of a violation, or an empty graph if the verdict is not invalid."""
    import networkx as nx

    from isolang.verdict import Invalid

    return verdict.violation.graph() if isinstance(verdict, Invalid) else nx.MultiDiGraph()


def dot(verdict: Verdict) -> str:
    """Return the graph of a violation in Graphviz's DOT language."""
    graph = graph_of(verdict)
    lines = ["digraph violation {", '  node [shape=box, fontname="sans-serif"];']
    for number, node in graph.nodes(data=True):
        label = f"{node['label']}\n{node.get('operations', '')}".strip()
        style = ", style=dashed" if node["status"] == "maybe" else ""
        lines.append(f"  {number} [label={_quoted(label)}{style}];")
    for a, b, edge in _edges(graph):
        drawn = style_of(edge["relation"])
        dashes = "dotted" if drawn.dash[:1] == (1.5,) else "dashed" if drawn.dash else "solid"
        label = f"{edge['relation']} {edge['key']}".strip()
        lines.append(
            f'  {a} -> {b} [label={_quoted(label)}, color="{drawn.colour}", '
            f'fontcolor="{drawn.colour}", style={dashes}, '
            f"tooltip={_quoted(edge['reason'])}];"
        )
    return "\n".join([*lines, "}", ""])


def mermaid(verdict: Verdict) -> str:
    """Return the graph of a violation as a Mermaid flow chart for Markdown pages."""
    graph = graph_of(verdict)
    lines = ["flowchart LR"]
    for number, node in graph.nodes(data=True):
        text = f"{node['label']}<br/>{_entities(node.get('operations', ''))}"
        lines.append(f'  n{number}["{text.removesuffix("<br/>")}"]')
    for a, b, edge in _edges(graph):
        arrow = "-->" if edge["relation"] == "wr" else "-.->"
        label = _entities(f"{edge['relation']} {edge['key']}".strip())
        lines.append(f'  n{a} {arrow}|"{label}"| n{b}')
    return "\n".join([*lines, ""])


def graphml(verdict: Verdict) -> str:
    """Return the graph of a violation as GraphML for Gephi, yEd and other programs."""
    import networkx as nx

    graph = graph_of(verdict)
    for *_, data in (*graph.nodes(data=True), *graph.edges(data=True)):
        for name, value in data.items():
            if isinstance(value, str):
                data[name] = _xml_text(value)
    return "\n".join(nx.generate_graphml(graph)) + "\n"


def perfetto(verdict: Verdict) -> str:
    """Return the history as Chrome trace events, for viewers such as Perfetto.

    Transactions are slices, and the edges of a violation are flows. Times are in microseconds since
    the first event of the history. If the history has no times, positions in the file are used
    instead.
    """
    columns = pack(verdict.history)
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": i, "args": {"name": f"session {name}"}}
        for i, name in enumerate(columns.sessions)
    ]
    last = max((end for end in columns.end if end is not None), default=0)
    spans: list[tuple[float, float]] = []
    for i, session in enumerate(columns.session):
        begin = float(columns.begin[i] if columns.begin else i)
        end = columns.end[i] if columns.end else i + 0.9
        spans.append((begin, max(begin, float(last if end is None else end))))
        if session < 0:
            continue
        operations = range(columns.first[i], columns.first[i + 1])
        events.append(
            {
                "ph": "X",
                "name": columns.labels[i] if columns.labels else f"T{i + 1}",
                "cat": _STATUS[columns.status[i]],
                "pid": 1,
                "tid": session,
                "ts": begin,
                "dur": spans[i][1] - begin,
                "args": {"operations": " ".join(_operation(columns, op) for op in operations)},
            }
        )
    place = {number: i for i, number in enumerate(columns.numbers)}
    for flow, (a, b, edge) in enumerate(_edges(graph_of(verdict)), 1):
        ends = [place.get(n, -1) if place else n for n in (a, b)]
        if not all(0 <= end < len(spans) and columns.session[end] >= 0 for end in ends):
            continue  # T0 has no row
        name = f"{edge['relation']} {edge['key']}".strip()
        for phase, end, moment in (("s", ends[0], 1), ("f", ends[1], 0)):
            events.append(
                {
                    "ph": phase,
                    "bp": "e",
                    "id": flow,
                    "name": name,
                    "cat": edge["relation"],
                    "pid": 1,
                    "tid": columns.session[end],
                    "ts": spans[end][0] if moment == 0 else sum(spans[end]) / 2,
                }
            )
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}) + "\n"


def markdown(verdict: Verdict, *, command: str = "") -> str:
    """Return a bug report in Markdown, with the argument and the smallest invalid part."""
    from isolang.report.contents import contents
    from isolang.verdict import Invalid

    page = contents(verdict)
    lines = [f"**{page.outcome.upper()}** {_code(page.history)} {_prose(page.spec.name)}"]
    if page.spec.title:
        lines[0] += f" ({_prose(page.spec.title)})"
    if page.reason:
        lines += ["", _prose(page.reason + ".")]
    lines += _caveats(verdict.caveats)
    if page.violation is not None:
        lines += ["", "| transaction | where | operations |", "|---|---|---|"]
        for txn in page.violation["transactions"]:
            operations = _cell(" ".join(map(_operation_with_caller, txn["operations"])))
            more = f" (+{txn['omitted']} more)" if txn["omitted"] else ""
            lines.append(f"| {_prose(txn['name'])} | {_prose(txn['where'])} | {operations}{more} |")
        for query in verdict.violation.queries if isinstance(verdict, Invalid) else ():
            lines += ["", f"{_prose(query.request())} ({_prose(query.where)}):", ""]
            lines += [f"* sent {_code(query.sent)}"] if query.sent else []
            lines.append(f"* answer: {_prose(query.answered())}")
            lines += [f"* {r.kind}: {_prose(f'{r.row}: {r.text}')}" for r in query.remarks]
        lines += ["", "```mermaid", mermaid(verdict).rstrip(), "```"]
        lines += ["", *_argument(page.violation["argument"], 0)]
    if page.part:
        part = _visible_lines(page.part.rstrip())
        fence = "`" * max(3, 1 + _longest_run(part))
        lines += ["", "The smallest part of the history that shows it:", "", f"{fence}clojure"]
        lines += [part, fence]
    lines += ["", f"{page.tool}; {'certified' if page.certified else 'not certified'}"]
    if command:
        lines[-1] += f"; {_code(command)}"
    return "\n".join([*lines, ""])


def markdown_of_report(report: Report) -> str:
    """Return a report without a verdict, such as for an unreadable file, in Markdown."""
    lines = [f"**{report.verdict.upper()}** {_code(report.history)} {_prose(report.spec)}"]
    if report.reason:
        lines += ["", _prose(report.reason)]
    return "\n".join([*lines, *_caveats((*report.caveats, *report.warnings)), ""])


def _caveats(caveats: Sequence[str]) -> list[str]:
    """Return caveats as the lines of a Markdown list, preceded by an empty line."""
    return ["", *(f"* {_prose(one)}" for one in caveats)] if caveats else []


_LONGEST, _ENDS = 24, 4  # of a cycle longer than _LONGEST edges, only _ENDS at each end are listed


def _argument(node: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield an argument's lemmas, cases and edges as the lines of a Markdown list."""
    item = f"{'  ' * depth}* "
    match node["kind"]:
        case "argument":
            for lemma in node["lemmas"]:
                reason, number = lemma["reason"], f"({lemma['number']}) "
                if reason["kind"] == "sentence":
                    said = f"{lemma['text']}: {reason['text']}{_because(reason)}."
                    yield f"{item}{_prose(number + said)}"
                else:
                    yield f"{item}{_prose(number + lemma['text'])}; otherwise:"
                    yield from _argument(reason, depth + 1)
            yield from _argument(node["conclusion"], depth)
        case "split":
            yield f"{item}{_prose(node['text'])}:"
            for case in node["cases"]:
                yield f"  {item}{_prose(case['assumption'])}:"
                yield from _argument(case["argument"], depth + 2)
        case "cycle":
            edges = node["edges"]
            for place, edge in enumerate(edges):
                if len(edges) <= _LONGEST or not _ENDS <= place < len(edges) - _ENDS:
                    said = " (assumed)" if edge["assumed"] else _because(edge)
                    yield f"{item}{_prose(edge['text'] + said)}"
                elif place == _ENDS:
                    yield f"{item}… {len(edges) - 2 * _ENDS} more …"
        case _:
            yield f"{item}{_prose(node['text'] + _because(node))}"


def _because(node: Mapping[str, Any]) -> str:
    return f" ({', '.join(f'by {number}' for number in node['because'])})" * bool(node["because"])


def _operation_with_caller(op: Mapping[str, str]) -> str:
    """Return an operation, with the application's line that ran it, if known."""
    where = f" {_code(op['caller'])}" if op["caller"] else ""
    return _code(op["text"]) + where


def junit(reports: Iterable[tuple[Report, str]]) -> str:
    """Return reports as a JUnit file, with a test case per history and specification."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="isocheck")
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for report, text in reports:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_xml_text(report.spec),
            name=_xml_text(report.history),
            time=f"{report.seconds.total:.3f}",
        )
        counts["tests"] += 1
        kind = {"invalid": "failure", "error": "error", "unknown": "skipped"}.get(report.verdict)
        if kind is not None:
            counts[{"failure": "failures", "error": "errors"}.get(kind, kind)] += 1
            found = ElementTree.SubElement(case, kind, message=_xml_text(report.reason))
            found.text = _xml_text(text)
        if said := (*report.caveats, *report.warnings):
            ElementTree.SubElement(case, "system-out").text = _xml_text("\n".join(said))
    for name, count in counts.items():
        suite.set(name, str(count))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def sarif(reports: Iterable[tuple[Report, str]]) -> str:
    """Return reports as SARIF 2.1.0, with each violation at the lines that caused it.

    The lines are the application's if the recording has them, otherwise the history's. A valid
    verdict with caveats becomes a note.
    """
    results = []
    for report, text in reports:
        level = {"invalid": "error", "error": "error", "unknown": "warning"}.get(report.verdict)
        kind = (report.anomaly or report.verdict).replace(" ", "-")
        said = f"{report.reason}\n\n{text}"
        if report.verdict == "valid" and (caveats := (*report.caveats, *report.warnings)):
            level, said = "note", "; ".join(caveats)
            kind = "nothing-observed" if report.nothing_observed else "caveat"
        if level is None:
            continue
        places: list[tuple[str, int, str]] = []
        found = report.violation
        for txn in found.transactions if found is not None else ():
            called = [op for op in txn.operations if op.caller]
            for op in called:
                file, _, line = op.caller.rpartition(":")
                places.append((file, int(line) if line.isdigit() else 0, f"{txn.name}: {op.text}"))
            if not called:
                shown = "  ".join([txn.name, *(operation.text for operation in txn.operations)])
                at = txn.place.position if txn.place.unit == "line" else 0
                places.append((txn.place.file, at, shown))
        places = places or [(report.history, 0, "")]
        results.append(
            {
                "ruleId": f"isocheck/{kind}",
                "level": level,
                "message": {"text": f"{report.spec}: {said}"},
                "locations": [_location(*places[0])],
                "relatedLocations": [_location(*place) for place in places[1:]],
            }
        )
    return _sarif_log(results)


def sarif_of_lint(findings: Iterable[Mapping[str, Any]]) -> str:
    """Return the findings of ``spec lint`` as SARIF 2.1.0, which forges show next to lines."""
    results = []
    for finding in findings:
        place = re.escape(f"{finding['file']}:{finding['line']}:{finding['column']}: ")
        text = re.sub(rf"^(?:{place})?(?:warning: )?", "", finding["message"])
        location = _location(finding["file"], finding["line"], "", column=finding["column"])
        results.append(
            {
                "ruleId": f"isocheck/{finding['severity']}",
                "level": finding["severity"],
                "message": {"text": text},
                "locations": [location],
            }
        )
    return _sarif_log(results)


def _location(file: str, line: int, said: str, *, column: int = 0) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(file)}}
    if line:
        physical["region"] = {"startLine": line} | ({"startColumn": column} if column else {})
    location: dict[str, Any] = {"physicalLocation": physical}
    return location | ({"message": {"text": said}} if said else {})


def _sarif_log(results: Sequence[Mapping[str, Any]]) -> str:
    driver = {
        "name": "isocheck",
        "version": version(),
        "rules": [{"id": rule} for rule in sorted({result["ruleId"] for result in results})],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
        ],
    }
    return json.dumps(log, indent=2) + "\n"


FORMS: Final[Mapping[str, Callable[[Verdict], str]]] = {
    "dot": dot,
    "graphml": graphml,
    "markdown": markdown,
    "mermaid": mermaid,
    "perfetto": perfetto,
}
"""The function that returns a verdict in each form accepted by ``--output``."""

_STATUS: Final = {"c": "committed", "a": "aborted", "m": "maybe", "i": "initial"}


def _edges(graph: MultiDiGraph[int]) -> list[tuple[int, int, dict[str, Any]]]:
    """Return the edges of an argument; an edge in several cycles occurs only once."""
    seen: dict[tuple[int, int, str, str], tuple[int, int, dict[str, Any]]] = {}
    for a, b, data in graph.edges(data=True):
        # The conclusion comes last, so the data of its edges replace those of earlier steps.
        seen[a, b, data["relation"], data["key"]] = (a, b, data)
    return list(seen.values())


def _operation(columns: Columns, op: int) -> str:
    value = columns.value[op]
    kind = columns.kind[op]
    if value < 0:
        text = "?"
    elif kind == "l":
        items = columns.lists[value]
        whole = columns.longest[columns.key[op]]
        numbers = whole[:items] if isinstance(items, int) else items
        text = f"[{' '.join(columns.values[i] for i in numbers)}]"
    else:
        text = columns.values[value]
    name = {"a": "append", "l": "r", "s": "r"}.get(kind, kind)
    text = f" {columns.rows[op]}" if op in columns.rows else f", {text}"
    return cut(f"{name}({columns.keys[columns.key[op]]}{text})")


def _visible_lines(text: str) -> str:
    """Return text with invisible characters other than line breaks escaped."""
    return "\n".join(map(escape_invisible, text.split("\n")))


def _quoted(text: str) -> str:
    """Return a text as a Graphviz string."""
    shown = _visible_lines(cut(text))
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _entities(text: str) -> str:
    """Escape text for a Mermaid label by writing special characters as entities."""
    return "".join(
        c if c.isalnum() or c in " .,-_" else f"#{ord(c)};" for c in _visible_lines(cut(text))
    )


def _xml_text(text: str) -> str:
    """Escape invisible characters, most of which XML forbids."""
    return re.sub("[\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", _visible_lines(text))


_MARKUP: Final = re.compile(r"[\\`*_{}\[\]<>#|~&!]")
_OPENING: Final = re.compile(r"^(\d*)([-+.)=])")  # the start of a list, a rule or a heading
_LINKED: Final = re.compile(r"://|www\.|@|mailto:|xmpp:", re.IGNORECASE)


def _prose(text: str) -> str:
    """Return a text escaped for a paragraph, a list or a table cell in Markdown.

    If the text contains an address or a name after ``@``, it is written as code, because escapes
    would not keep these from becoming links.
    """
    if _LINKED.search(text):
        return _cell(_code(text))
    return _OPENING.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", escape_invisible(text)))


def _longest_run(text: str) -> int:
    """Return the length of the longest sequence of backticks in a text."""
    return max(map(len, re.findall("`+", text)), default=0)


def _code(text: str) -> str:
    """Return a text as code, between more backticks than it contains in a row."""
    shown = escape_invisible(text)
    ticks = "`" * (1 + _longest_run(shown))
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _cell(text: str) -> str:
    """Return code for a table cell, with bars escaped because they would end the cell."""
    return text.replace("|", "\\|")
