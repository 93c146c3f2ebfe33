"""Writes the page about a specification, with an automaton and a forbidden history per check."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.report.figure import figure_of, fitted_picture
from isolang.report.picture import (
    INK,
    Box,
    FilledPolygon,
    Line,
    Picture,
    Point,
    TextLine,
    arrow_head,
    on_curve,
    width_of,
)
from isolang.report.plain import figure, plain_page, text

if TYPE_CHECKING:
    from isolang.comparison.compare import Implication, SeparatingHistory
    from isolang.output.explained import Explained, ExplainedCheck, Graph

_RADIUS: Final = 17.0


class SeparatedLevel(Struct, frozen=True, kw_only=True):
    """A weaker level, with a history that separates the specification from it.

    Attributes:
        half: the answer to whether the weaker level implies the specification, with the separating
            history.
    """

    weaker: str
    half: Implication


def html(
    found: Explained,
    texts: Mapping[str, str],
    examples: Mapping[str, Implication | str],
    apart: Sequence[SeparatedLevel],
) -> str:
    """Return the page about a specification."""
    title = f"{found.name}: {found.title}" if found.title else found.name
    body = [f"<h1>{text(title)}</h1>", _facts(found)]
    for check in found.checks:
        body += _check(check, examples.get(check.name, ""))
    body += _engine_automata(found)
    if apart:
        body.append("<h2>Histories that separate it from the next weaker levels</h2>")
        body.append('<div class="beside">')
        body += [f"<div>{''.join(_separation_html(found.name, one))}</div>" for one in apart]
        body.append("</div>")
    marked = {(check.file, check.line) for check in found.checks}
    body.append("<h2>The text</h2>")
    for i, (file, written) in enumerate(texts.items()):
        state = " open" if not i else ""
        body.append(f"<details{state}><summary>{text(file)}</summary><pre>")
        for number, line in enumerate(written.split("\n"), 1):
            body.append(
                f"<mark>{text(line)}</mark>\n" if (file, number) in marked else f"{text(line)}\n"
            )
        body.append("</pre></details>")
    body.append(f'<p class="note">sha256 {found.sha256}</p>')
    return plain_page(title, "".join(body))


def _facts(found: Explained) -> str:
    used = {
        "reads": found.uses.reads_from,
        "the version order": found.uses.version_order,
        "sessions": found.uses.sessions,
        "real time": found.uses.real_time,
    }
    rows = [
        ("class", found.kind or "none, because no engine decides this specification"),
        ("decided by", found.engine or found.refused),
        ("chosen", ", ".join(f"`{one}`" for one in found.exists) or "nothing"),
        ("uses", ", ".join(name for name, yes in used.items() if yes) or "nothing"),
        *(("because", reason) for reason in found.reasons),
        *(("note", note) for note in (*found.notes, *found.warnings)),
    ]
    if found.same_level_faster:
        rows.append(
            (
                "faster",
                f"{found.same_level_faster} is the same level, and an event graph decides it",
            )
        )
    return f"<dl>{''.join(f'<dt>{text(a)}</dt><dd>{sentence(b)}</dd>' for a, b in rows)}</dl>"


def _check(check: ExplainedCheck, example: Implication | str) -> Iterator[str]:
    yield f"<h2>The check {text(check.name)}</h2><p><code>{text(check.text)}</code></p>"
    yield '<div class="beside"><div>'
    if check.event_graph is not None:
        yield "<h3>As an automaton</h3>"
        yield figure(
            automaton(check.event_graph),
            caption="A history violates the check if it has a cycle whose relations "
            "take this automaton from q0 back to q0, one or more times.",
        )
    else:
        yield f"<h3>This check has no automaton of its own</h3><p>{sentence(check.why_not)}.</p>"
        if check.hint:
            yield f'<p class="note">Faster, if this is what you mean: {sentence(check.hint)}</p>'
    yield "</div><div><h3>A smallest history that only this check forbids</h3>"
    yield from _example(example)
    yield "</div></div>"


def _example(example: Implication | str) -> Iterator[str]:
    if isinstance(example, str):
        yield f'<p class="note">{text(example or "no search was made")}</p>'
    elif example.witness is not None:
        yield from _witness(example.witness)
    elif example.proof is not None:
        yield '<p class="note">None: the other checks imply it.</p>'
    else:
        yield (
            f'<p class="note">The search found none of up to {example.searched} '
            f"transaction{'' if example.searched == 1 else 's'}.</p>"
        )


def _witness(witness: SeparatingHistory) -> Iterator[str]:
    violation = witness.violation.violation
    yield figure(
        figure_of(violation, witness.violation.spec.name, key=False),
        caption=violation.headline(),
    )
    rows = "\n".join(text("  ".join(row)) for row in witness.small.table())
    yield f"<pre>{rows}</pre>"
    certified = "both verdicts are certified" if witness.certified else "not certified"
    least = "none is smaller" if witness.smallest else "a smaller one may exist"
    yield f'<p class="note">{least}; {certified}</p>'


def _separation_html(name: str, one: SeparatedLevel) -> Iterator[str]:
    yield f"<h3>{text(one.weaker)} allows this, {text(name)} forbids it</h3>"
    if one.half.proof is not None:
        yield f'<p class="note">Nothing: {text(one.weaker)} implies {text(name)}.</p>'
    else:
        yield from _example(one.half)


def _engine_automata(found: Explained) -> Iterator[str]:
    """Yield the engine's automata if they differ from those of the checks."""
    own = [check.event_graph for check in found.checks]
    graphs = [graph for graph in found.graphs if graph not in own]
    if not graphs:
        return
    yield '<h2>The automata of the engine</h2><div class="beside">'
    for graph in graphs:
        if graph.direct:
            ways = " or ".join(sorted(graph.direct))
            caption = f"{graph.name}: no rw from S to B where B is before S by {ways}."
            yield f"<div><p>{text(caption)}</p></div>"
            continue
        caption = f"{graph.name}: no cycle."
        if graph.return_paths:
            ends = ", ".join(f"q{b} to q{a}" for a, b in graph.return_paths)
            caption = f"{graph.name}: no rw from S to B with a path from B back to S, from {ends}."
        yield f"<div>{figure(automaton(graph), caption=caption)}</div>"
    yield "</div>"


def sentence(value: str) -> str:
    """Return a sentence as HTML, with text between backticks marked up as code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", text(value))


def automaton(graph: Graph) -> Picture:
    """Draw an automaton.

    The states are in a row, with forward transitions above it and backward ones below it. Words
    begin and end in state q0, which has two rings.
    """
    moves: dict[tuple[int, int], list[str]] = {}
    for relation, steps in graph.steps.items():
        for step in steps:
            name = f"[{relation}]" if relation in ("W", "R") else relation
            moves.setdefault(step, []).append(name)
    for step in graph.epsilon:
        moves.setdefault(step, []).append("ε")
    labels = {step: " | ".join(names) for step, names in moves.items()}
    room = 70.0
    for (a, b), label in labels.items():
        share = max(1, abs(b - a))
        room = max(room, (width_of(label, 11) + (24 if a != b else 16)) / share)
    apart = room + 2 * _RADIUS
    at = [(i * apart, 0.0) for i in range(graph.states)]
    shapes: list[Box | Line | FilledPolygon | TextLine] = []
    for (a, b), label in sorted(labels.items()):
        (x1, y1), (x2, y2) = at[a], at[b]
        points: tuple[Point, ...]
        if a == b:
            points = (
                (x1 - 9, y1 - _RADIUS + 2), (x1 - 34, y1 - 62), (x1 + 34, y1 - 62),
                (x1 + 9, y1 - _RADIUS + 2),
            )  # fmt: skip
        else:
            high = (16 + 26 * abs(b - a)) * (-1 if b > a else 1)
            start, end = (8, -8) if b > a else (-8, 8)
            sign = -1 if b > a else 1
            edge = sign * math.sqrt(_RADIUS**2 - start**2)
            middle = ((x1 + x2) / 2, 2 * high)
            points = ((x1 + start, y1 + edge), middle, (x2 + end, y2 + edge))
        shapes.append(Line(points=points, line=INK, thick=1.3))
        shapes.append(arrow_head(points[-1], on_curve(points, 0.93), INK))
        x, y = on_curve(points, 0.5)
        down = b < a
        shapes.append(
            TextLine(x=x, y=y + 14 if down else y - 5, text=label, anchor="middle", bold=True)
        )  # fmt: skip
    for number, (x, y) in enumerate(at):
        for radius in (_RADIUS, _RADIUS - 3.5)[: 2 if number == 0 else 1]:
            shapes.append(
                Box(
                    x=x - radius,
                    y=y - radius,
                    width=2 * radius,
                    height=2 * radius,
                    round=radius,
                    line=INK,
                )
            )
        shapes.append(TextLine(x=x, y=y + 4, text=f"q{number}", anchor="middle"))
    return fitted_picture(shapes, f"the automaton of {graph.name}")
