"""Writes a survey as a table, in Markdown or as an HTML page whose cells link to the reports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isolang.report.plain import plain_page, text

if TYPE_CHECKING:
    from isolang.run.survey.survey import Cell, Survey

_MARK: Final = {"valid": "✓", "invalid": "✗", "unknown": "?", "not played": "–", "failed": "!"}


def markdown(survey: Survey) -> str:
    """Return the survey as a Markdown table, with a row per workload and a column per level."""
    levels, workloads, cells = _table_axes(survey)
    heads = [f"{level}: `{claims}`" for level, claims in levels.items()]
    lines = [
        f"**{survey.database}**, {_options_text(survey)}.",
        "",
        "| workload | " + " | ".join(heads) + " |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for workload in workloads:
        row = [_cell_text(cells.get((level, workload))) for level in levels]
        lines.append(f"| `{workload}` | " + " | ".join(row) + " |")
    return "\n".join([*lines, ""])


def html(survey: Survey, folder: Path, page: Path) -> str:
    """Return the survey as an HTML page with a table."""
    levels, workloads, cells = _table_axes(survey)
    where = Path(os.path.relpath(folder.resolve(), page.resolve().parent)).as_posix()
    heads = "".join(
        f"<th scope=col>{text(level)}<small>claims {text(claims)}</small></th>"
        for level, claims in levels.items()
    )
    rows = "".join(
        f"<tr><th scope=row>{text(workload)}</th>"
        + "".join(_cell_html(cells.get((level, workload)), where) for level in levels)
        + "</tr>\n"
        for workload in workloads
    )
    body = (
        f"<h1>{text(survey.database)}</h1><p class=note>{text(_options_text(survey))}. "
        "A cell says whether the level's claim held, which strongest levels held, "
        "and which anomalies occurred, allowed or not. "
        "A claim that held is not proved: the run only found no violation. "
        "Throughput was measured with clients, database and checker on one machine.</p>\n"
        f'<div class="wide"><table class="survey"><thead><tr><th scope=col>workload</th>{heads}'
        f"</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    )
    return plain_page(f"{survey.database}: what held", body)


def anomalies_text(cell: Cell) -> str:
    """Return the anomalies in a cell with their counts, on one line."""
    more = "" if cell.all_counted or not cell.anomalies else ", more"
    return ", ".join(f"{name} ×{count}" for name, count in cell.anomalies.items()) + more


def counts_text(cell: Cell) -> str:
    """Return a cell's transaction counts and its throughput, on one line."""
    maybe = f", {cell.maybe:,} maybe" if cell.maybe else ""
    return (
        f"{cell.committed:,} committed{maybe}, {100 * cell.abort_rate:.0f} % aborted, "
        f"{cell.throughput:,.0f}/s"
    )


def strongest_levels_text(cell: Cell) -> str:
    """Return the strongest levels that a cell's history satisfies, on one line."""
    return ", ".join(cell.strongest) or "nothing"


def _table_axes(
    survey: Survey,
) -> tuple[dict[str, str], list[str], dict[tuple[str, str], Cell]]:
    """Return the claim of each level, the workloads, and the cells by level and workload."""
    levels = {cell.level: cell.claims for cell in survey.cells}
    workloads = list(dict.fromkeys(cell.workload for cell in survey.cells))
    return levels, workloads, {(cell.level, cell.workload): cell for cell in survey.cells}


def _options_text(survey: Survey) -> str:
    most = "" if survey.transactions is None else f" or {survey.transactions:,} transactions"
    ended = ", interrupted" if survey.interrupted else ""
    return (
        f"{survey.sessions} sessions, {survey.seconds:g} s{most} a cell, seed {survey.seed}{ended}"
    )


def _cell_text(cell: Cell | None) -> str:
    if cell is None or cell.outcome == "not played":
        return "–"
    if cell.outcome == "failed":
        return f"! failed: {_escape_cell(cell.reason)}"
    seen, strongest = anomalies_text(cell), strongest_levels_text(cell)
    head = f"{_MARK[cell.outcome]} held `{strongest}`"
    if cell.outcome == "invalid":
        head = f"**✗ invalid**{'' if cell.certified else ' (not certified)'}, held `{strongest}`"
    elif cell.outcome == "unknown":
        head = f"? unknown, held `{strongest}`"
    elif cell.grave:
        head = f"? valid, but: held `{strongest}`"
    doubts = "".join(f"<br>{_escape_cell(doubt)}" for doubt in cell.doubts)
    return f"{head}{'<br>' if seen else ''}{seen}<br>{counts_text(cell)}{doubts}"


def _escape_cell(words: str) -> str:
    """Return a text with its markup escaped for a cell of a Markdown table."""
    plain = text(" ".join(words.split()))
    return "".join("\\" + sign if sign in "|`*_[]\\" else sign for sign in plain)


def _cell_html(cell: Cell | None, where: str) -> str:
    if cell is None:
        return "<td class=none>–</td>"
    if cell.outcome == "not played":
        return f'<td class=none title="{text(cell.reason)}">–</td>'
    if cell.outcome == "failed":
        return (
            f"<td class=none><b class=unknown>! failed</b><small>{text(cell.reason)}</small></td>"
        )
    kind = "unknown" if cell.grave and cell.outcome == "valid" else cell.outcome
    word = f"{_MARK[kind]} {cell.outcome}{', certified' if cell.certified else ''}"
    shown = f"<b class={kind}>{word}</b>"
    if cell.page:
        link = text(f"{where}/{cell.page}")
        shown = f'<a class={kind} href="{link}">{word}</a>'
    seen = anomalies_text(cell)
    return (
        f"<td>{shown}<small>held: {text(strongest_levels_text(cell))}</small>"
        + (f"<small>{text(seen)}</small>" if seen else "")
        + f"<small>{text(counts_text(cell))}</small>"
        + "".join(f"<small>{text(doubt)}</small>" for doubt in cell.doubts)
        + "</td>"
    )
