"""What is known of a specification: the JSON of ``isocheck spec explain``, and of its page."""

from __future__ import annotations

from msgspec import Struct, field


class Uses(Struct, frozen=True, kw_only=True):
    """What of a history the specification speaks of."""

    reads_from: bool
    version_order: bool
    sessions: bool
    real_time: bool


class Graph(Struct, frozen=True, kw_only=True):
    """An automaton whose product with a history is an event graph; state 0 is its start and end.

    Attributes:
        name: of the check.
        states: how many.
        steps: by relation, the pairs of states that one of its edges leads from and to.
        epsilon: the pairs that nothing leads from and to.
        repeatable: the relations of which pairs of neighbours suffice.
        return_paths: where a path back may begin and end.
        direct: the relations of single edges back.
    """

    name: str
    states: int
    steps: dict[str, tuple[tuple[int, int], ...]]
    epsilon: tuple[tuple[int, int], ...]
    repeatable: tuple[str, ...]
    return_paths: tuple[tuple[int, int], ...]
    direct: tuple[str, ...]


class ExplainedCheck(Struct, frozen=True, kw_only=True):
    """One check, and how it would be decided as an event graph.

    Attributes:
        name: of the check.
        text: with all definitions expanded.
        file: where it stands.
        line: where in the file.
        event_graph: its automaton; null if it has none.
        why_not: why it has none.
        hint: what would make it one.
    """

    name: str
    text: str
    file: str
    line: int
    event_graph: Graph | None
    why_not: str
    hint: str


class Explained(Struct, frozen=True, kw_only=True):
    """What is known of a specification.

    Attributes:
        name: of its header, or its file.
        title: of its header.
        files: its texts, the main one first.
        sha256: over all of them.
        kind: of the route that decides it; null if no engine does.
        engine: what that engine does.
        reasons: why this route.
        refused: why no engine decides it.
        exists: what is chosen.
        uses: what of a history it speaks of.
        checks: all of them.
        graphs: what the native engine is given.
        same_level_faster: a level of the library that is the same, and faster.
        notes: how the input was understood.
        warnings: what is probably not meant.
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
