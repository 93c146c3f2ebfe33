"""Gathers the data for a page about a verdict, in records that the page contains as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from isolang.history import columns as c
from isolang.language.vocabulary import ROWS
from isolang.release import signature
from isolang.report.advice import advice, meaning
from isolang.report.age import age_of
from isolang.report.columns import Columns, cut, pack
from isolang.report.course import Course, database_of
from isolang.report.order import Order, order_of
from isolang.report.relations import DRAWINGS, Drawing

if TYPE_CHECKING:
    from isolang.explain.harm import Harm
    from isolang.explain.violation import ViolationGroups
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec
    from isolang.pipeline.levels import Levels
    from isolang.verdict import Invalid, Verdict


_LONGEST_PART: Final = 1_000_000  # in characters


class Axioms(Struct, frozen=True, kw_only=True):
    """The text of the specification, and the violated check.

    Attributes:
        texts: pairs of a file and its text, with the main file first.
        file: the file that contains the violated check; empty if no check is violated.
        line: the line of the violated check, counted from 1; 0 for none.
        check: the name of the violated check; empty for none.
    """

    name: str
    title: str
    source: str
    sha256: str
    texts: tuple[tuple[str, str], ...]
    file: str = ""
    line: int = 0
    check: str = ""


class LatticeNode(Struct, frozen=True, kw_only=True):
    """A library level in a drawing: its verdict, and the position of its box."""

    name: str
    title: str
    standing: str
    anomaly: str
    implies: tuple[str, ...]
    x: float
    y: float
    width: float


class LatticeDrawing(Struct, frozen=True, kw_only=True):
    """The drawing of the lattice of levels on a page.

    Attributes:
        lines: for each direct implication, the points of a curve.
        folded: whether levels without session order are omitted because they have the same verdicts
            as those with session order.
    """

    width: float
    height: float
    folded: bool
    levels: tuple[LatticeNode, ...]
    lines: tuple[tuple[tuple[float, float], ...], ...]


class ShownHarm(Struct, frozen=True, kw_only=True):
    """The harm of a violation, in words.

    Attributes:
        word: the kind, such as ``harmful``.
        headline: the harm in one line.
        details: the rest, as names and texts.
    """

    word: str
    headline: str
    details: tuple[tuple[str, str], ...]


class ShownGroup(Struct, frozen=True, kw_only=True):
    """The violations of one kind, in words.

    Attributes:
        headline: the anomaly, the tables and the count.
        harm: the harm of the group's example in one line; empty if it was not sought.
        programs: the programs, such as routes or functions.
        statements: the statements, or their ``file:line``.
    """

    headline: str
    harm: str
    programs: tuple[str, ...]
    statements: tuple[str, ...]


class Contents(Struct, frozen=True, kw_only=True):
    """All data that a page shows.

    Attributes:
        tool: the name and version of the program that wrote the page.
        database: the name and the version of the database if the recorded history has them;
            otherwise empty.
        reason: the anomaly and its meaning, or why the verdict is unknown; empty if valid.
        certified: whether an independent checker accepted the proof.
        certified_reason: which checker accepted the proof, or why none did.
        certificate: the hash of the certificate; empty if there is none.
        meaning: the meaning of the violation, in a sentence or two; empty unless there is one.
        advice: paragraphs of advice to a database engineer about the verdict.
        violation: the violation in the form of docs/output.md, with the numbers of transactions and
            operations added to its edges; ``None`` unless the verdict is invalid.
        harm: the harm of the violation; ``None`` if it was not sought.
        groups: all violations in groups, the worst first; empty if there is only one.
        part: the smallest invalid part found by a short search, as EDN; empty for none.
        order: a transaction order that explains a valid history; ``None`` for none.
        levels: the verdicts of the library levels; ``None`` if they were not requested.
        course: the course of the run; ``None`` if the history was not recorded by isocheck.
    """

    tool: str
    history: str
    database: str
    outcome: Literal["valid", "invalid", "unknown"]
    reason: str
    certified: bool
    certified_reason: str
    certificate: str
    meaning: str
    advice: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    statistics: tuple[tuple[str, str], ...]
    spec: Axioms
    violation: dict[str, Any] | None
    harm: ShownHarm | None
    groups: tuple[ShownGroup, ...]
    part: str
    relations: dict[str, Drawing]
    columns: Columns
    order: Order | None
    levels: LatticeDrawing | None
    course: Course | None


def contents(
    verdict: Verdict,
    *,
    name: str = "",
    levels: Levels | None = None,
    course: Course | None = None,
    certificate: str = "",
    statements: Mapping[str, Sequence[str]] | None = None,
    harm: Harm | None = None,
    groups: ViolationGroups | None = None,
) -> Contents:
    """Gather the data shown on a page about a verdict."""
    from isolang.output.records import json_text, report_of
    from isolang.verdict import Invalid, Unknown, Valid

    history = verdict.history
    report = _cut(
        json.loads(json_text(report_of(name or history.name, verdict.spec.name, verdict)))
    )
    violation = report["violation"]
    shown: tuple[int, ...] = ()
    if violation is not None:
        shown = tuple(txn["number"] for txn in violation["transactions"])
        _number_edges(violation, history)
        for txn in violation["transactions"]:
            txn["age"] = age_of(history, txn["number"])
            txn["sent"] = list((statements or {}).get(txn["name"], ()))
    part = ""
    if not certificate and not isinstance(verdict, Unknown) and report["anomaly"] != "no model":
        text = verdict.certificate().to_json()
        certificate = hashlib.sha256(text.encode()).hexdigest()
        part = _part(verdict) if isinstance(verdict, Invalid) else ""
    return Contents(
        tool=signature("isocheck"),
        history=report["history"],
        database=cut(database_of(history)),
        outcome=verdict.outcome,
        reason=report["reason"],
        certified=verdict.certified,
        certified_reason=verdict.certified_reason,
        certificate=certificate,
        meaning=meaning(verdict),
        advice=advice(verdict),
        facts=tuple(_facts(report)),
        statistics=tuple(_statistics(report)),
        spec=_axioms(verdict.spec, violation),
        violation=violation,
        harm=_shown_harm(harm),
        groups=_shown_groups(groups),
        part=part,
        relations=DRAWINGS,
        columns=pack(history, around=shown),
        order=order_of(verdict) if isinstance(verdict, Valid) else None,
        levels=_standings(levels),
        course=course,
    )


def _shown_harm(harm: Harm | None) -> ShownHarm | None:
    if harm is None:
        return None
    details: list[tuple[str, str]] = []
    for name, text in harm.details():
        is_new = name not in (before for before, _ in details)
        details.append((name if is_new else "", cut(text)))
    return ShownHarm(word=harm.word(), headline=cut(harm.headline()), details=tuple(details))


def _shown_groups(groups: ViolationGroups | None) -> tuple[ShownGroup, ...]:
    if groups is None or len(groups.groups) == 1:
        return ()
    return tuple(
        ShownGroup(
            headline=group.headline(),
            harm="" if group.harm is None else cut(group.harm.headline()),
            programs=tuple(map(cut, group.programs)),
            statements=tuple(map(cut, group.statements)),
        )
        for group in groups.groups
    )


def _part(verdict: Invalid) -> str:
    """Return the smallest invalid part of the history found by a short search, as EDN."""
    from isolang.errors import IsolangError
    from isolang.language.classify.route import route
    from isolang.pipeline.exported import export_part
    from isolang.pipeline.minimal import minimise

    plan = route(verdict.spec)
    try:
        text = export_part(minimise(verdict, plan), plan).text.decode()
    except IsolangError:
        return ""  # EDN cannot express the part
    return text if len(text) <= _LONGEST_PART else ""


def _cut(value: Any) -> Any:
    """Return a copy of a value with all texts cut that are too long for a page."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, dict):
        return {name: _cut(inner) for name, inner in value.items()}
    return [_cut(inner) for inner in value] if isinstance(value, list) else value


def _facts(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield facts about the input and its interpretation as names and values."""
    read = report["input"]
    yield "format", read["format"]
    yield "files", ", ".join(read["files"]) or report["history"]
    yield "sha256", read["sha256"]
    names = ("transactions", "committed", "aborted", "maybe", "operations", "sessions", "keys")
    yield from ((name, f"{report[name]:,}") for name in names)
    yield "initial state", read["initial"]
    yield "session", read["session"]
    yield "real time", read["real_time"]
    yield "ignored", "; ".join(read["ignored"]) or "nothing"
    yield from (("note", note) for note in (*read["notes"], *report["level"]["notes"]))
    yield from (("warning", text) for text in report["warnings"])
    for anomaly in report["anomalies"]:
        yield anomaly["name"], f"{anomaly['count']:,}; for example, {anomaly['examples'][0]}"


def _statistics(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the costs of the verdict, as names and values."""
    if report["solver"]:
        yield "solver", report["solver"]
        yield "encoding", report["encoding"] or ""
    for name, value in report["seconds"].items():
        yield f"seconds: {name}", f"{value:.3f}"
    for name, value in report["statistics"].items():
        yield name.replace("_", " "), f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _axioms(spec: Spec, violation: dict[str, Any] | None) -> Axioms:
    failing = violation["check"] if violation else ""
    check = next((one for one in spec.checks if one.name == failing), None)
    return Axioms(
        name=spec.name,
        title=spec.title,
        source=spec.source,
        sha256=spec.sha256,
        texts=tuple(spec.texts.items()),
        file=check.file if check else "",
        line=check.line if check else 0,
        check=failing,
    )


def _standings(levels: Levels | None) -> LatticeDrawing | None:
    if levels is None:
        return None
    from isolang.language.hierarchy import implications_among
    from isolang.language.library import list_library
    from isolang.report.figure import place_levels

    names = levels.worth_listing()
    implies = implications_among(names)
    titles = {entry.name: entry.title for entry in list_library()}
    width, height, at, lines = place_levels(names)
    return LatticeDrawing(
        width=width,
        height=height,
        lines=lines,
        folded=len(names) < len(levels.levels),
        levels=tuple(
            LatticeNode(
                name=name,
                title=titles[name],
                standing=levels.levels[name].standing,
                anomaly=levels.levels[name].anomaly,
                implies=implies[name],
                x=at[name][0],
                y=at[name][1],
                width=at[name][2],
            )
            for name in names
        ),
    )


def _number_edges(violation: dict[str, Any], history: History) -> None:
    """Add the transaction numbers, and the operations' positions inside them, to all edges."""
    for txn in violation["transactions"]:
        start = history.operations_of(txn["number"]).start
        for op in txn["operations"]:
            op["index"] = op["number"] - start
    for edge in _edges(violation["argument"]):
        ends = edge["ends"]
        edge["from"], edge["to"] = ends
        word = ROWS.get(edge["relation"])
        edge["joins"] = [
            _joined_operation(history, txn, edge, place)
            for txn, place in zip(ends, word.joins if word else ("", ""), strict=True)
        ]
        if word and word.joins == ("read", "write") and len(edge["operations"]) == 3:
            edge["behind"] = _source_edge(history, edge)


def _source_edge(history: History, edge: dict[str, Any]) -> dict[str, Any]:
    """Return the ``wr`` edge whose target is the read of an ``rw`` edge."""
    read, _, write = edge["operations"]
    writer, reader = history.transaction_of(write), edge["ends"][0]
    joins = [op - history.operations_of(t).start for t, op in ((writer, write), (reader, read))]
    return {
        "relation": "wr",
        "source": history.name_of(writer),
        "target": edge["source"],
        "key": edge["key"],
        "from": writer,
        "to": reader,
        "joins": joins,
    }


def _joined_operation(history: History, txn: int, edge: dict[str, Any], place: str) -> int:
    """Return the position in a transaction of the operation joined by an edge; -1 if none."""
    match place:
        case "first":
            return 0
        case "read" | "write" if edge["key"]:
            return _operation(history, txn, edge["key"], place)
        case "read" | "write" if edge["operations"]:
            return int(edge["operations"][0]) - history.operations_of(txn).start
    return -1


def _operation(history: History, txn: int, key: str, kind: str) -> int:
    """Return the position of a transaction's first read or last write of a key; -1 if none."""
    columns = history.columns
    writes = (c.WRITE, c.APPEND)
    found = [
        index
        for index, op in enumerate(history.operations_of(txn))
        if (int(columns.op_kind[op]) not in writes) == (kind == "read")
        and history.key(int(columns.op_key[op])) == key
    ]
    return (found[0] if kind == "read" else found[-1]) if found else -1


def _edges(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all edges of an argument, including those of its lemmas and cases."""
    match node["kind"]:
        case "argument":
            for lemma in node["lemmas"]:
                yield from _edges(lemma["reason"])
            yield from _edges(node["conclusion"])
        case "split":
            for case in node["cases"]:
                yield from _edges(case["argument"])
        case "cycle":
            yield from node["edges"]
