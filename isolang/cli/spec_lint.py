"""Implements ``isocheck spec lint``, which reports errors and probable mistakes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Struct

from isolang.cli.choices import number
from isolang.cli.parameters import Include, SpecFiles, accept_only
from isolang.errors import SpecError
from isolang.options import OUTPUT
from isolang.output.records import EXIT_INPUT, EXIT_INVALID, EXIT_VALID, json_text
from isolang.output.terminal import escaped, print_data, print_lines, warn

if TYPE_CHECKING:
    from isolang.language.meaning.core import Check, Spec

_HEADER = re.compile(r"^spec\s", re.MULTILINE)
_PLACE = re.compile(r"(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): (?:warning: )?")


class LintFinding(Struct, frozen=True):
    """One error or warning.

    Attributes:
        severity: ``error`` or ``warning``.
        file: the file that the finding is about.
        line: the line, from 1; 0 if the finding has no place.
        column: the column, from 1; 0 if the finding has no place.
        message: the whole text, with the source line, a caret and the hint.
    """

    severity: Literal["error", "warning"]
    file: str
    line: int
    column: int
    message: str


class Linted(Struct, frozen=True):
    """The errors and warnings of one file.

    Attributes:
        file: the file, as named on the command line.
        findings: errors and warnings; those in the file itself come first, in the order of their
            lines.
        notes: how the input was understood.
        examples: how many examples have the verdict that the file states.
        search: which small histories were searched; empty if the search answered each question
            early.
    """

    file: str
    findings: tuple[LintFinding, ...]
    notes: tuple[str, ...]
    search: str
    examples: int = 0


def lint(
    *,
    files: SpecFiles,
    include: Include = [],  # noqa: B006
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", metavar="S", parser=number(float, 0, 1e6),
            help="Time limit in seconds for the search through small histories, for each file; by "
            "default the limit is a number of steps. 0 skips the search.",
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="The output format.", rich_help_panel=OUTPUT,
            **accept_only("text", "json", "sarif"),
        ),
    ] = "text",
) -> int:  # fmt: skip
    """Report errors and probable mistakes.

    Lists every error and warning, each example that does not have the verdict that the file states,
    and what a search through all small histories shows.
    """
    report = []
    unusable = False
    for name in files:
        one, failed = _lint(name, include, seconds)
        unusable |= failed
        report.append(one)
        if output == "text":
            _print(one, failed=failed)
    if output == "json":
        print_data(json_text(report))
    if output == "sarif":
        from msgspec import to_builtins

        from isolang.report.forms import sarif_of_lint

        print_data(sarif_of_lint(to_builtins([f for one in report for f in one.findings])))
    if unusable:
        return EXIT_INPUT
    return EXIT_INVALID if any(linted.findings for linted in report) else EXIT_VALID


def _print(one: Linted, *, failed: bool) -> None:
    warn(*(f"note: {note}" for note in one.notes))
    show = warn if failed else print_lines
    for finding in one.findings:
        show(finding.message, "")
    if failed:
        return
    kinds = [finding.severity for finding in one.findings]
    counts = [(kind, kinds.count(kind)) for kind in ("error", "warning")]
    texts = [f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts if n]
    examples = f"; {one.examples} example{'s' * (one.examples > 1)} as stated" * bool(one.examples)
    print_lines(f"{escaped(one.file)}: {', '.join(texts) or 'nothing found'}{examples}")


def _lint(name: str, include: Sequence[str], seconds: float | None) -> tuple[Linted, bool]:
    """Check a file, and return the findings and whether the file is unreadable."""
    from isolang.cli.spec_examples import broken_examples
    from isolang.language.load import find_errors, load_spec
    from isolang.language.meaning.polarity import polarity_warnings

    errors = find_errors(name, include_path=include)
    if errors:
        found = [LintFinding("error", e.file, e.line, e.column, str(e)) for e in errors]
        return Linted(name, tuple(found), (), ""), all(not error.line for error in errors)
    spec = load_spec(name, include_path=include)
    texts = [*_missing_check_warnings(spec), *_compile_warnings(spec), *polarity_warnings(spec)]
    texts += [*_implied_check_warnings(spec), *_settled_check_warnings(spec)]
    more, unsure, searched = _search_warnings(spec, seconds, reported="\n".join(texts))
    broken = [*broken_examples(spec)]
    found = [_finding("error", text, spec) for text in broken]
    found += [_finding("warning", text, spec) for text in [*texts, *more]]
    own = sorted((f for f in found if f.file == spec.source), key=lambda f: (f.line, f.column))
    others = [f for f in found if f.file != spec.source]
    as_stated = len(spec.examples) - len(broken)
    return Linted(name, (*own, *others), (*spec.notes, *unsure), searched, as_stated), False


def _missing_check_warnings(spec: Spec) -> Iterator[str]:
    """Yield a warning if a specification has no check.

    A file with definitions but no header is meant to be included, and needs no check.
    """
    from isolang.language.syntax.source import Position, message_at

    text = spec.texts.get(spec.source, "")
    if not spec.checks and (_HEADER.search(text) or not text.strip()):
        what = "warning: the specification has no check, so every history satisfies it"
        hint = "write `acyclic so | wr as my-check`"
        yield message_at(Position(spec.source, 1, 1), spec.texts, what, hint=hint)


def _implied_check_warnings(spec: Spec) -> Iterator[str]:
    """Yield a warning for each check made redundant by other checks that imply it."""
    from isolang.comparison.normal import normal
    from isolang.comparison.walks import implied_checks
    from isolang.language.syntax.source import message_at

    if not any(not check.flag for check in spec.checks):
        return
    for check, by in implied_checks(normal(spec)):
        others = " and ".join(f"`{one}`" for one in by)
        what = f"warning: check `{check.name}` is implied by {others}"
        yield message_at(check.pos, spec.texts, what, hint="without it the level is the same")


def _settled_check_warnings(spec: Spec) -> Iterator[str]:
    """Yield a warning for each check that every history satisfies under some version orders."""
    from isolang.comparison.normal import normal
    from isolang.comparison.walks import settled_by_version_orders
    from isolang.language.syntax.source import message_at

    if not any(not check.flag for check in spec.checks):
        return
    for check in settled_by_version_orders(normal(spec)):
        if check.file.startswith("library:"):  # PL-1 has such a check, and explains it in its text
            continue
        what = (
            f"warning: check `{check.name}` cannot fail on registers, since some choice of version "
            "orders always satisfies it"
        )
        hint = "constrain version orders by `wr` and `rw`; only lists reveal the order itself"
        yield message_at(check.pos, spec.texts, what, hint=hint)


def _compile_warnings(spec: Spec) -> Sequence[str]:
    """Return the warnings about a specification, including those from compiling it."""
    from isolang.language.classify.event_graph import NotAnEventGraph
    from isolang.language.classify.route import route

    try:
        return route(spec).warnings
    except NotAnEventGraph:
        return spec.warnings
    except SpecError:  # the file has no checks
        return spec.warnings


def _search_warnings(
    spec: Spec, seconds: float | None, *, reported: str
) -> tuple[list[str], list[str], str]:
    """Search all small histories for signs of mistakes in a specification."""
    from isolang.cli.spec_examples import fails_in_an_example
    from isolang.comparison.search import search
    from isolang.language.syntax.source import Position, message_at

    if not any(not check.flag for check in spec.checks) or seconds == 0:
        return [], [], ""
    settled = {c.name for c in spec.checks if _cannot_fail(c) in reported}
    findings = search(spec, seconds=seconds, settled=settled)
    texts: list[str] = []
    unsure: list[str] = []

    def warn_unless_found(where: Position, what: str, hint: str) -> None:
        """Add a warning if the search was complete, otherwise a suspicion."""
        if findings.complete and not findings.lacking:
            hint = f"{hint}searched {findings.bound()}"
            texts.append(message_at(where, spec.texts, f"warning: {what}", hint=hint))
        else:
            more = "" if findings.complete else "; a larger --seconds searches further"
            unsure.append(f"perhaps {what}: the search covered {findings.bound()}{more}")

    first = next(check for check in spec.checks if not check.flag)
    own = next((check for check in spec.checks if check.file == spec.source), first)
    where = own.pos if own.file == spec.source else Position(spec.source, 0, 0)
    if findings.satisfied is None:
        warn_unless_found(where, "no history satisfies this specification", "")
    else:
        if findings.refused is not None:
            what = f"warning: this serial history is forbidden: {findings.refused}"
            hint = (
                "a serial history should satisfy every level; perhaps a step has the wrong "
                "direction"
            )
            texts.append(message_at(where, spec.texts, what, hint=hint))
        if findings.written_twice is None:
            what = "no history in which two transactions write the same key satisfies this check"
            warn_unless_found(where, what, "`empty` forbids each step, `acyclic` only cycles; ")
        for check in findings.cannot_fail:
            if not fails_in_an_example(spec, check):
                warn_unless_found(check.pos, _cannot_fail(check), "no such history violates it; ")
    open_questions = findings.written_twice is None or findings.cannot_fail
    return texts, unsure, f"searched {findings.bound()}" if open_questions else ""


def _cannot_fail(check: Check) -> str:
    return f"check `{check.name}` cannot fail"


def _finding(severity: Literal["error", "warning"], text: str, spec: Spec) -> LintFinding:
    place = _PLACE.match(text)
    if place is None:
        return LintFinding(severity, spec.source, 0, 0, text)
    return LintFinding(severity, place["file"], int(place["line"]), int(place["column"]), text)
