"""Formats the outcome table in HTML for web pages, and in LaTeX for papers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from isolang.programs.outcomes import Outcome, OutcomeTable, standing_of_verdict
from isolang.report.dependencies import dependencies
from isolang.report.figure import figure
from isolang.report.picture import escape_invisible
from isolang.report.plain import figure as drawn
from isolang.report.plain import plain_page, text
from isolang.verdict import Invalid, Unknown, Valid, Verdict

_WITNESS: Final = (
    "The dependencies in the witness. A read without an edge returned the initial value."
)
_CLASSES: Final = {"allowed": "valid", "forbidden": "invalid", "unknown": "unknown"}


def cell(verdict: Verdict) -> str:
    """Return a verdict's text in the table, which is the anomaly if the outcome is forbidden."""
    return (
        verdict.violation.anomaly if isinstance(verdict, Invalid) else standing_of_verdict(verdict)
    )


def read_values(table: OutcomeTable, outcome: Outcome) -> list[str]:
    """Return each read's value for the table, or ``-`` for a read that did not happen."""
    return [str(outcome.reads.get(name, "-")) for name in table.reads]


def has_aborts(table: OutcomeTable) -> bool:
    """Return whether any outcome has an aborted transaction; the table then shows this."""
    return any(one.aborted for one in table.outcomes)


def aborted_names(outcome: Outcome) -> str:
    """Return the names of the aborted transactions as text."""
    return " ".join(f"T{t}" for t in outcome.aborted)


def program_lines(table: OutcomeTable) -> Iterator[str]:
    """Yield the lines of the program's text, with one transaction per line."""
    number = 0
    for session, own in enumerate(table.program.texts, 1):
        for written in own:
            number += 1
            yield f"session {session}   T{number}   {written}"


# --- HTML ---


def html(table: OutcomeTable) -> str:
    """Return the web page: the table, followed by each outcome with its history and proof."""
    program = table.program
    title = f"{program.name}: {program.title}" if program.title else program.name
    lines = "\n".join(text(line) for line in program_lines(table))
    first = ", ".join(f"{key} = {value}" for key, value in program.initial.items())
    body = [f"<h1>{text(title)}</h1><pre>{lines}</pre>"]
    body.append(f'<p class="note">Initially {text(first or "every key is 0")}.</p>')
    body.append(_table(table))
    if program.targets:
        body.append(_targets(table))
    for number, one in enumerate(table.outcomes, 1):
        body += _outcome(table, number, one)
    return plain_page(title, "".join(body))


def _table(table: OutcomeTable) -> str:
    columns = [*table.reads, *(["aborted"] if has_aborts(table) else [])]
    rows = []
    for number, one in enumerate(table.outcomes, 1):
        cells = [f'<td><a href="#o{number}">{number}</a></td>']
        cells += [f'<td class="number">{text(value)}</td>' for value in read_values(table, one)]
        cells += [f"<td>{text(aborted_names(one))}</td>"] if has_aborts(table) else []
        cells += [
            f'<td class="{_CLASSES[standing_of_verdict(verdict)]}">{text(cell(verdict))}</td>'
            for verdict in one.verdicts
        ]
        rows.append(cells)
    return _html_table(["", *columns, *table.levels], rows)


def _targets(table: OutcomeTable) -> str:
    rows = []
    for target in table.program.targets:
        title = f"<small>{text(target.title)}</small>" if target.title else ""
        cells = [f"<td>{text(target.text)}{title}</td>"]
        for level in range(len(table.levels)):
            found = table.standing_of(target, level)
            cells.append(f'<td class="{_CLASSES[found]}">{found}</td>')
        rows.append(cells)
    return _html_table(["exists", *table.levels], rows)


def _html_table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = "".join(f'<th scope="col">{text(name)}</th>' for name in names)
    body = "".join(f"<tr>{''.join(cells)}</tr>\n" for cells in rows)
    return (
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _outcome(table: OutcomeTable, number: int, one: Outcome) -> Iterator[str]:
    reads = ", ".join(f"{name} = {value}" for name, value in one.reads.items())
    yield f'<h2 id="o{number}">{number}. {text(reads or "no reads")}</h2>'
    yield f"<pre>{_lines(one.edn.decode())}</pre>"
    yield '<div class="beside">'
    for level, verdict in zip(table.levels, one.verdicts, strict=True):
        yield f'<div><h3>{text(level)}: <span class="{_CLASSES[standing_of_verdict(verdict)]}">'
        yield f"{text(cell(verdict))}</span></h3>"
        match verdict:
            case Invalid():
                yield drawn(figure(verdict), caption=verdict.violation.headline())
            case Unknown():
                yield f"<p>{text(verdict.reason)}</p>"
            case Valid():
                if (picture := dependencies(verdict)) is not None:
                    yield drawn(picture, caption=_WITNESS)
            case _:
                assert_never(verdict)
        certified = "certified" if verdict.certified else "not certified"
        yield f'<p class="note">{certified}: {text(verdict.certified_reason)}</p></div>'
    yield "</div>"


def _lines(value: str) -> str:
    return "\n".join(text(line) for line in value.splitlines())


# --- LaTeX ---

_ESCAPES: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
        "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "<": r"\textless{}", ">": r"\textgreater{}", '"': r"\textquotedbl{}",
    }
)  # fmt: skip


def latex(table: OutcomeTable) -> str:
    r"""Return the table as a ``tabular``, with ``\checkmark`` (amssymb) for an allowed outcome."""
    columns = [*table.reads, *(["aborted"] if has_aborts(table) else [])]
    lines = [f"% {line}" for line in map(escape_invisible, program_lines(table))]
    lines.append(rf"\begin{{tabular}}{{{'r' * len(columns)}{'l' * len(table.levels)}}}")
    lines.append(r"\hline")
    lines.append(_row([*columns, *table.levels]))
    lines.append(r"\hline")
    for one in table.outcomes:
        found = read_values(table, one) + ([aborted_names(one)] if has_aborts(table) else [])
        cells = [
            r"\checkmark" if isinstance(verdict, Valid) else escaped(cell(verdict))
            for verdict in one.verdicts
        ]
        lines.append(" & ".join([*map(escaped, found), *cells]) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _row(cells: list[str]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"


def escaped(value: str) -> str:
    """Return LaTeX code that prints a text verbatim."""
    return escape_invisible(value).translate(_ESCAPES)
