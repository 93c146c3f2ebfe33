"""Defines the explanation of a specification, for the JSON and the page of ``spec explain``."""

from __future__ import annotations

from msgspec import Struct, field


class Uses(Struct, frozen=True, kw_only=True):
    """The facts of a history that the specification uses."""

    reads_from: bool
    version_order: bool
    sessions: bool
    real_time: bool


class Graph(Struct, frozen=True, kw_only=True):
    """An automaton whose product with a history is an event graph; state 0 is its start and end.

    Attributes:
        name: the name of the check.
        states: the number of states.
        steps: for each relation, the pairs of states between which its edges lead.
        epsilon: the pairs of states between which the automaton moves without an edge.
        repeatable: the relations for which pairs of neighbours suffice.
        return_paths: the states where a return path may begin and end.
        direct: the relations of return paths that consist of a single edge.
    """

    name: str
    states: int
    steps: dict[str, tuple[tuple[int, int], ...]]
    epsilon: tuple[tuple[int, int], ...]
    repeatable: tuple[str, ...]
    return_paths: tuple[tuple[int, int], ...]
    direct: tuple[str, ...]


class ExplainedCheck(Struct, frozen=True, kw_only=True):
    """One check, and its event graph.

    Attributes:
        name: the name of the check.
        text: the check, with all definitions expanded.
        file: the file that contains it.
        line: the line of the check in this file.
        event_graph: the automaton of the event graph; null if the check has none.
        why_not: why the check has no event graph; empty if it has one.
        hint: a change after which the check would have an event graph.
    """

    name: str
    text: str
    file: str
    line: int
    event_graph: Graph | None
    why_not: str
    hint: str


class Explained(Struct, frozen=True, kw_only=True):
    """The explanation of a specification.

    Attributes:
        name: the name in the header, or else the name of the file.
        title: the title in the header.
        files: the files of the texts, with the main file first.
        sha256: the hash of all texts.
        kind: the route that decides the specification; null if no engine decides it.
        engine: a description of the engine of this route.
        reasons: why the specification has this route.
        refused: why no engine decides the specification.
        exists: the existential relations.
        uses: the facts of a history that the specification uses.
        checks: the checks of the specification.
        graphs: the automata of the native engine.
        same_level_faster: an equal level of the library that is faster to decide; null for none.
        notes: how the input was understood.
        warnings: probable mistakes.
    """

    name: str
    title: str
    files: tuple[str, ...]
    sha256: str
    kind: str | None = field(name="class")
    engine: str | None
    reasons: tuple[str, ...]
    refused: str
    exists: tuple[str, ...]
    uses: Uses
    checks: tuple[ExplainedCheck, ...]
    graphs: tuple[Graph, ...]
    same_level_faster: str | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
