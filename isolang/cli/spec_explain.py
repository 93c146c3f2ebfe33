"""Implements ``isocheck spec explain``, which explains how and why a level is decided."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from isolang.cli.parameters import Include, Output, SpecName
from isolang.cli.progress import Bar
from isolang.errors import SpecError
from isolang.options import OUTPUT
from isolang.output.explained import Explained, ExplainedCheck, Graph, Uses
from isolang.output.records import EXIT_VALID, json_text
from isolang.output.terminal import print_data, print_lines

if TYPE_CHECKING:
    from isolang.language.classify.automaton import Automaton
    from isolang.language.classify.plan import Route
    from isolang.language.meaning.core import Check, Spec

ENGINES = {
    "event graph": "the native engine searches for sources and version orders such that the event "
    "graph, which is the product of the history with an automaton, has no cycle; this takes linear "
    "time if the history leaves no choice open",
    "reachability": "the native engine searches for sources and version orders such that no "
    "anti-dependency leads from the end of a path of dependencies to its start",
    "saturation": "the native engine adds the pairs that the axioms force until none is missing; "
    "this takes polynomial time if each read has one possible source, and otherwise "
    "the engine also searches over the sources",
    "relational": "each possible pair of an existential relation becomes a variable of a solver, "
    "and each axiom becomes a formula over these variables; this decides any "
    "specification, but only on small histories",
}
_CHOSEN = {
    "rf": "a source for each read",
    "ww": "an order of the writers of each key",
}
_WIDTH = 100


class _ClassifiedCheck(Struct, frozen=True):
    """A check of a specification, and its event graph if it has one.

    Attributes:
        automaton: the automaton of the event graph; ``None`` if the check has no event graph.
        refusal: a sentence about why the check has no event graph; empty if it has one.
        place: the source line with a caret, if ``refusal`` concerns a part of the check; otherwise
            empty.
        hint: a change that would give the check an event graph; may be empty.
    """

    check: Check
    automaton: Automaton | None
    refusal: str = ""
    place: str = ""
    hint: str = ""


def explain(
    *,
    name: SpecName,
    include: Include = [],  # noqa: B006
    output: Output = "text",
    page: Annotated[
        str,
        typer.Option(
            "--html", metavar="FILE", rich_help_panel=OUTPUT, show_default=False,
            help="Write an HTML page that draws each check as an automaton, with a smallest "
            "history that it forbids.",
        ),
    ] = "",
) -> int:  # fmt: skip
    """Explain how isocheck decides a level, and why.

    Lists the conditions that hold or fail, and what would make the level faster to decide.
    """
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec

    way: Route | None = None
    refused = ""
    spec = load_spec(name, include_path=include)
    try:
        way = route(spec)
    except SpecError as error:
        if not spec.checks:
            raise
        refused = str(error)
    judged = [_judge(spec, check) for check in spec.checks]
    if page:
        _write_page(spec, _explained(spec, way, refused, judged), page)
    if output == "json":
        print_data(json_text(_explained(spec, way, refused, judged)))
    else:
        print_lines(*_as_text(spec, way, refused, judged))
    return EXIT_VALID


def _write_page(spec: Spec, found: Explained, page: str) -> None:
    """Search for the smallest history forbidden by each check, and write the page.

    For a library level, also search for histories allowed by the next weaker levels.
    """
    from isolang.comparison.compare import Implication, decide_implication
    from isolang.comparison.effort import OF_MANY, Effort
    from isolang.comparison.forbidden import smallest_forbidden
    from isolang.comparison.normal import normal
    from isolang.comparison.separate import Bounds
    from isolang.language.hierarchy import IMPLIES
    from isolang.language.load import load_spec
    from isolang.report import save_page
    from isolang.report.explained import SeparatedLevel, html

    own = spec.source.removeprefix("library:").removesuffix(".iso")
    weaker = IMPLIES.get(own, ()) if spec.source.startswith("library:") else ()
    examples: dict[str, Implication | str] = {}
    apart: list[SeparatedLevel] = []
    with Bar(len(spec.checks) + len(weaker)) as bar:
        for check in spec.checks:
            bar.phase(f"a history that {check.name} forbids")
            try:
                examples[check.name] = smallest_forbidden(spec, check)
            except SpecError as error:
                examples[check.name] = (
                    f"No such history was searched for: {str(error).splitlines()[0]}"
                )
            bar.step()
        for name in weaker:
            bar.phase(f"a history that {name} allows")
            both = normal(load_spec(name)), normal(spec)
            apart.append(
                SeparatedLevel(
                    weaker=name,
                    half=decide_implication(
                        *both, bounds=Bounds(overlap=True), effort=Effort(OF_MANY)
                    ),
                )
            )
            bar.step()
    save_page(html(found, spec.texts, examples, apart), Path(page))


def _judge(spec: Spec, check: Check) -> _ClassifiedCheck:
    from isolang.language.classify.event_graph import NotAnEventGraph, classify
    from isolang.language.meaning.lower import CANONICAL_EXISTS
    from isolang.language.syntax.source import excerpt

    # Each check is classified separately. All relations that event graphs lack are left out, so
    # that an error names the position in the check that uses such a relation.
    exists = tuple(e for e in spec.exists if e == CANONICAL_EXISTS.get(e.name))
    try:
        plan = classify(replace(spec, checks=(check,), exists=exists))
    except NotAnEventGraph as error:
        text = spec.texts.get(error.file, "")
        whole = (error.file, error.line, error.column) == check.pos[:3]
        place = "" if whole else excerpt(text, error.line, error.column)
        return _ClassifiedCheck(check, None, error.reason, place, error.hint)
    return _ClassifiedCheck(check, plan.automata[0])


def faster_equivalent(spec: Spec) -> str:
    """Return an equivalent library level decided by event graphs; empty if there is none.

    Only other forms of the same library level are considered.
    """
    from isolang.cli.spec_library import class_of
    from isolang.language.library import list_library
    from isolang.language.load import load_spec

    entries = {entry.name: entry for entry in list_library()}
    if not spec.source.startswith("library:"):
        return ""
    own = spec.source.removeprefix("library:").removesuffix(".iso")
    own = entries[own].alias_of or own if own in entries else own
    session = "-nosession" if own.endswith("-nosession") else ""
    level = own.removesuffix("-nosession")
    for style in ("-co", "-vis", "-adya"):
        level = level.removesuffix(style)
    for form in ("", "-adya"):
        other = f"{level}{form}{session}"
        if other in entries and other != own and class_of(load_spec(other)) == "event graph":
            return other
    return ""


# --- text ---


def _as_text(
    spec: Spec, way: Route | None, refused: str, judged: Sequence[_ClassifiedCheck]
) -> Iterator[str]:
    from isolang.language.meaning import mentions

    yield f"{spec.name}: {spec.title}" if spec.title else spec.name
    yield from _field("from", ", ".join(spec.texts))
    yield from _field(
        "class",
        way.kind if way is not None else "none, because no engine decides this specification",
    )
    if way is not None:
        yield from _field("engine", ENGINES[way.kind])
    yield from _field("chosen", _choice_phrase(spec) or "nothing")
    uses = {
        "reads": mentions.uses_reads_from(spec),
        "the version order": mentions.uses_version_order(spec),
        "sessions": mentions.uses_sessions(spec),
        "real time": mentions.uses_real_time(spec),
    }
    yield from _field("uses", _listed([what for what, used in uses.items() if used]) or "nothing")
    if not uses["reads"]:
        yield from _field("", "it allows aborted, intermediate and thin-air reads")
    if uses["real time"]:
        yield from _field("", "it rejects histories without times")
    for one in judged:
        yield ""
        yield from _check(one)
    rewritten = way is not None and any(one.automaton is None for one in judged)
    if way is not None and rewritten and (graphs := _automata(way)):
        yield ""
        for i, automaton in enumerate(graphs):
            yield from _field("decided" if not i else "", _question(automaton))
            for line in _transition_lines(automaton):
                yield from _field("", line)
    if way is None:
        yield ""
        yield from _field("refused", refused.split("\n", 1)[0])
    else:
        for i, reason in enumerate(way.reasons):
            if not i:
                yield ""
            yield from _field("because" if not i else "", reason)
    hints = [
        f"an event graph would decide it after this change: {one.hint}"
        for one in judged
        if one.hint
    ]
    hints = list(dict.fromkeys(hints))
    if other := faster_equivalent(spec):
        hints.insert(0, f"`{other}` is the same level, and an event graph decides it")
    if way is None or way.kind == "relational":
        for i, hint in enumerate(hints):
            if not i:
                yield ""
            yield from _field("faster" if not i else "", hint)
    for line in (*spec.notes, *(way.warnings if way is not None else spec.warnings)):
        yield ""
        yield line


def _field(name: str, text: str) -> Iterator[str]:
    first, rest = f"  {name:8} ", " " * 11
    wrapped = textwrap.wrap(
        text, _WIDTH - len(first), break_long_words=False, break_on_hyphens=False
    )
    for i, line in enumerate(wrapped or [""]):
        yield (first if not i else rest) + line


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _choice_phrase(spec: Spec) -> str:
    parts = []
    for exists in spec.exists:
        name = exists.name + (f"[{exists.key}]" if exists.key else "")
        what = _CHOSEN.get(
            exists.name, {"order": "an order", "choice": "a choice"}.get(exists.kind)
        )
        parts.append(f"{name} ({what or 'any relation within its bounds'})")
    return ", ".join(parts)


def _check(one: _ClassifiedCheck) -> Iterator[str]:
    from isolang.language.meaning.show import show_check

    check = one.check
    yield from _field("check", show_check(replace(check, title="")))
    if check.title:
        yield from _field("", f"a violation is {check.title}")
    if one.automaton is None:
        yield from _field("", f"no event graph: {one.refusal}")
        for line in one.place.split("\n") if one.place else ():
            yield " " * 9 + line
        return
    yield from _field("", "an event graph: " + ", ".join(_conditions(one.automaton)))
    for line in _transition_lines(one.automaton):
        yield from _field("", line)


def _conditions(automaton: Automaton) -> Iterator[str]:
    yield f"{automaton.states} node{'s' if automaton.states > 1 else ''} for each transaction"
    yield "every loop of the automaton passes its initial state q0"
    used = [r for r in ("so", "rt") if r in automaton.steps]
    for relation in used:
        if relation in automaton.repeatable:
            yield f"pairs of neighbours suffice for {relation}"
        else:
            yield f"a chain of helper nodes carries {relation}"


def _automata(way: Route) -> tuple[Automaton, ...]:
    """Return the automata used by the native engine for a route; empty if it uses none."""
    return getattr(way, "automata", ())


_DIRECT = {
    "so": "B comes before S in its session",
    "wr": "S read from B",
    "earlier wr": "S read from B by an earlier operation",
}


def _question(automaton: Automaton) -> str:
    """Return a sentence about what an automaton of the route forbids."""
    if "components" in automaton.direct:
        closing = " or ".join(sorted(automaton.closing))
        if automaton.without_writers:
            closing += " of a reader that does not write the key"
        return f"{automaton.check}: no cycle with {closing}; other cycles are allowed"
    if automaton.direct:
        ways = " or ".join(_DIRECT.get(r, r) for r in sorted(automaton.direct))
        return f"{automaton.check}: no anti-dependency S -> B where {ways}"
    if automaton.back:
        ends = ", ".join(f"q{b} to q{a}" for a, b in automaton.back)
        if "wr" in automaton.closing:
            return f"{automaton.check}: no read of B from S with a return path from B to S ({ends})"
        kind = {"irw": "item ", "prw": "predicate "}.get("".join(automaton.closing), "")
        return (
            f"{automaton.check}: no {kind}anti-dependency S -> B with a return path from B to S "
            f"({ends})"
        )
    return f"{automaton.check}: no cycle"


def _transition_lines(automaton: Automaton) -> Iterator[str]:
    """Yield an automaton's transitions as text, one line per pair of states."""
    from isolang.language.vocabulary import TESTS

    moves: dict[tuple[int, int], list[str]] = {}
    for relation, steps in automaton.steps.items():
        for step in steps:
            moves.setdefault(step, []).append(f"[{relation}]" if relation in TESTS else relation)
    for step in automaton.epsilon:
        moves.setdefault(step, []).append("nothing")
    width = len(f"q{automaton.states - 1}")
    for (a, b), names in sorted(moves.items()):
        ends = f"{f'q{a}':<{width}} -> {f'q{b}':<{width}}"
        yield f"  {ends}  {' | '.join(names)}"


# --- the record ---


def _explained(
    spec: Spec, way: Route | None, refused: str, judged: Sequence[_ClassifiedCheck]
) -> Explained:
    from isolang.language.meaning import mentions
    from isolang.language.meaning.show import show_check, show_exists

    slow = way is None or way.kind != "event graph"
    return Explained(
        name=spec.name,
        title=spec.title,
        files=tuple(spec.texts),
        sha256=spec.sha256,
        kind=way.kind if way is not None else None,
        engine=ENGINES[way.kind] if way is not None else None,
        reasons=tuple(way.reasons) if way is not None else (),
        refused=refused,
        exists=tuple(show_exists(exists) for exists in spec.exists),
        uses=Uses(
            reads_from=mentions.uses_reads_from(spec),
            version_order=mentions.uses_version_order(spec),
            sessions=mentions.uses_sessions(spec),
            real_time=mentions.uses_real_time(spec),
        ),
        checks=tuple(
            ExplainedCheck(
                name=one.check.name,
                text=show_check(one.check),
                file=one.check.file,
                line=one.check.line,
                event_graph=_graph(one.automaton) if one.automaton is not None else None,
                why_not=one.refusal,
                hint=one.hint,
            )
            for one in judged
        ),
        graphs=tuple(_graph(a) for a in (_automata(way) if way is not None else ())),
        same_level_faster=(faster_equivalent(spec) if slow else "") or None,
        notes=tuple(spec.notes),
        warnings=tuple(way.warnings if way is not None else spec.warnings),
    )


def _graph(automaton: Automaton) -> Graph:
    return Graph(
        name=automaton.check,
        states=automaton.states,
        steps={r: tuple((a, b) for a, b in steps) for r, steps in automaton.steps.items()},
        epsilon=tuple((a, b) for a, b in automaton.epsilon),
        repeatable=tuple(sorted(automaton.repeatable)),
        return_paths=tuple((a, b) for a, b in automaton.back),
        direct=tuple(sorted(automaton.direct)),
    )
