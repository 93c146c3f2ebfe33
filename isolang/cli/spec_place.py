"""Implements ``isocheck spec place`` and ``isocheck spec lattice``, which compare many levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Struct

from isolang.cli.parameters import Include, Output, SpecName, accept_only
from isolang.cli.progress import Bar
from isolang.cli.spec_compare import (
    WHEN_ONE_AT_A_TIME,
    Keys,
    Overlap,
    ProofReport,
    Seconds,
    Transactions,
    WitnessReport,
    bounds_of,
    half_lines,
    proof_report,
    search_lines,
    witness_report,
)
from isolang.options import OUTPUT
from isolang.output.layout import align_rows
from isolang.output.records import EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import escaped, print_data, print_lines, warn

if TYPE_CHECKING:
    from isolang.comparison.compare import Implication
    from isolang.comparison.lattice import Lattice, Placement
    from isolang.comparison.separate import Bounds
    from isolang.comparison.walks import ImplicationProof
    from isolang.language.meaning.core import Spec


class Neighbour(Struct, frozen=True, kw_only=True):
    """A level next to a specification.

    Attributes:
        name: the name of the level.
        proof: the proof that one of the two implies the other.
        witness: a history that separates the two; null if none was found.
    """

    name: str
    proof: ProofReport
    witness: WitnessReport | None


class BoundedRelation(Struct, frozen=True, kw_only=True):
    """The relation of a specification to a level on all histories up to a size.

    Attributes:
        name: the name of the level.
        relation: how the specification relates to the level.
        up_to: the greatest number of transactions of these histories.
    """

    name: str
    relation: Literal["equal", "stronger", "weaker"]
    up_to: int


class PlaceReport(Struct, frozen=True, kw_only=True):
    """The place of a specification among the levels of the library.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        name: the name of the specification.
        equal: the levels that allow the same histories.
        above: the weakest levels that are stronger.
        below: the strongest levels that are weaker.
        bounded: the levels with neither a proof nor a history for some direction, and how the
            specification relates to them on all histories up to a size: those that it equals, or
            the nearest ones.
        lacking: relations that the histories of `bounded` have only in part: from the times of
            whole transactions, and from statements of one operation.
        unknown: the levels whose relation to the specification is unknown on histories of any size.
        one_at_a_time: whether the place is known only if a session runs one transaction at a time.
        seconds: how long the search took.
    """

    schema: Literal[1] = 1
    name: str
    equal: tuple[str, ...]
    above: tuple[Neighbour, ...]
    below: tuple[Neighbour, ...]
    bounded: tuple[BoundedRelation, ...]
    one_at_a_time: bool
    unknown: tuple[str, ...]
    lacking: tuple[str, ...]
    seconds: float


class EdgeReport(Struct, frozen=True, kw_only=True):
    """Two neighbours in the lattice.

    Attributes:
        stronger: the implying level.
        weaker: the implied level.
        proof: the proof that the stronger level implies the weaker level.
        witness: a history that only the weaker level allows; null if none was found.
    """

    stronger: str
    weaker: str
    proof: ProofReport
    witness: WitnessReport | None


class Separation(Struct, frozen=True, kw_only=True):
    """The reason why one level does not imply another level.

    Attributes:
        allows: the level that the history satisfies, by the first name of its class.
        forbids: the level that the history violates, by the first name of its class.
        shown: the history in one line, in the notation of witnesses.
    """

    allows: str
    forbids: str
    shown: str


class LatticeReport(Struct, frozen=True, kw_only=True):
    """The levels of the library, and which of them imply others.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        classes: the classes of equal levels.
        edges: each level with the next weaker levels, by the first names of their classes. A level
            implies another iff a path of edges leads to it.
        separated: all other pairs of levels, each with a separating history with the fewest
            transactions.
        unknown: the pairs of levels for which it is unknown whether one implies the other.
        seconds: how long the comparisons took.
    """

    schema: Literal[1] = 1
    classes: tuple[tuple[str, ...], ...]
    edges: tuple[EdgeReport, ...]
    separated: tuple[Separation, ...]
    unknown: tuple[tuple[str, str], ...]
    seconds: float


def place(
    *,
    name: SpecName,
    transactions: Transactions = 4,
    keys: Keys = 3,
    seconds: Seconds = None,
    overlap: Overlap = False,
    include: Include = [],  # noqa: B006
    output: Output = "text",
) -> int:
    """Find the place of a specification among the levels of the library."""
    from isolang.language.load import load_spec

    spec = load_spec(name, include_path=include)
    warn(*(f"note: {note}" for note in spec.notes))
    bounds = bounds_of(transactions, keys, overlap=overlap)
    with Bar(1) as bar:
        found = find_place(spec, bounds=bounds, seconds=seconds, progress=bar.phase)
    if output == "json":
        print_data(json_text(place_report(found)))
    else:
        print_lines(*place_lines(found))
    open_ = found.unknown or found.bounded
    return EXIT_UNKNOWN if open_ and not found.equal else EXIT_VALID


def find_place(
    spec: Spec,
    *,
    bounds: Bounds | None = None,
    seconds: float | None = None,
    progress: Callable[[str], object] = lambda phase: None,
) -> Placement:
    """Compare a specification with all library levels."""
    from isolang.comparison.lattice import library_levels
    from isolang.comparison.lattice import place as place_in
    from isolang.comparison.normal import normal

    bounds = bounds or bounds_of(4, 3)
    return place_in(
        normal(spec), library_levels(), bounds=bounds, seconds=seconds, progress=progress
    )


def place_report(found: Placement) -> PlaceReport:
    """Return the report on a specification's place among the levels."""
    return PlaceReport(
        name=found.name,
        equal=found.equal,
        above=tuple(_neighbours(found, found.above, above=True)),
        below=tuple(_neighbours(found, found.below, above=False)),
        bounded=tuple(
            BoundedRelation(name=name, relation=relation, up_to=up_to)
            for name, (relation, up_to) in found.bounded.items()
        ),
        unknown=found.unknown,
        lacking=found.lacking,
        one_at_a_time=found.one_at_a_time,
        seconds=round(found.seconds, 6),
    )


def _neighbours(
    found: Placement, levels: Mapping[str, tuple[ImplicationProof, Implication]], *, above: bool
) -> Iterator[Neighbour]:
    for name, (proof, half) in levels.items():
        a, b = (name, found.name) if above else (found.name, name)
        witness = None if half.witness is None else witness_report(b, a, half.witness)
        yield Neighbour(name=name, proof=proof_report(a, b, proof), witness=witness)


def place_line(place: PlaceReport) -> str:
    """Return a sentence about a specification's place among the levels."""
    when = f", {WHEN_ONE_AT_A_TIME}" if place.one_at_a_time else ""
    return _proved_place(place) + "".join(map(_bounded_place, place.bounded)) + when


def _bounded_place(one: BoundedRelation) -> str:
    as_strong = "is equal to" if one.relation == "equal" else f"is {one.relation} than"
    return f"; on histories of up to {one.up_to} transactions it {as_strong} {one.name}"


def _proved_place(place: PlaceReport) -> str:
    name = escaped(place.name)
    if place.equal:
        first, *others = place.equal
        return f"{name} is {first}" + (f" (also called {', '.join(others)})" if others else "")
    above = ", ".join(one.name for one in place.above)
    below = ", ".join(one.name for one in place.below)
    if above and below:
        return f"{name} is weaker than {above}, and stronger than {below}"
    none = "no level of the library is" + (" known to be" if place.bounded or place.unknown else "")
    if above:
        return f"{name} is weaker than {above}, and {none} weaker than {name}"
    if below:
        return f"{name} is stronger than {below}, and {none} stronger than {name}"
    return f"{none} stronger or weaker than {name}"


def place_lines(found: Placement) -> Iterator[str]:
    """Yield lines with a specification's place, and with what separates it from its neighbours."""
    from isolang.history.readers.reading import quantity

    yield place_line(place_report(found))
    if found.bounded:
        up_to = max(size for _, size in found.bounded.values())
        sizes = f"{quantity(up_to, 'transaction')} and {quantity(found.bounds.keys, 'key')}"
        yield f"  that is, on all histories of up to {sizes}:"
        yield from search_lines(found.bounds, found.lacking)
    for level, (_, half) in found.above.items():
        yield ""
        yield from half_lines(found.name, level, half, found.bounds)
    for level, (_, half) in found.below.items():
        yield ""
        yield from half_lines(level, found.name, half, found.bounds)
    if found.unknown:
        yield ""
        yield f"  unknown: how it compares with {', '.join(found.unknown)}"


def lattice(
    *,
    transactions: Transactions = 4,
    keys: Keys = 3,
    seconds: Seconds = None,
    overlap: Overlap = False,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="The output format; markdown is the page of the documentation.",
            rich_help_panel=OUTPUT, **accept_only("text", "json", "markdown", "dot"),
        ),
    ] = "text",
    svg: Annotated[
        str,
        typer.Option(
            "--svg", metavar="FILE", help="Draw the lattice in this file.", rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ] = "",
) -> int:  # fmt: skip
    """Compare all levels of the library: prove each implication, and separate all other pairs."""
    from isolang.comparison import lattice as whole

    with Bar(1) as bar:
        found = whole.lattice(
            whole.library_levels(),
            bounds=bounds_of(transactions, keys, overlap=overlap),
            seconds=seconds,
            progress=bar.phase,
        )
    if svg:
        from isolang.report.lattice import svg as draw

        Path(svg).write_text(draw(found), encoding="utf-8")
    if output == "json":
        print_data(json_text(_lattice_report(found)))
    elif output == "text":
        print_lines(*_lines(found))
    else:
        from isolang.report import lattice as drawing

        print_data((drawing.markdown if output == "markdown" else drawing.dot)(found))
    return EXIT_UNKNOWN if found.order.searched else EXIT_VALID


def _lattice_report(found: Lattice) -> LatticeReport:
    order = found.order
    edges = []
    for (a, b), implication in found.converses.items():
        witness = None if implication.witness is None else witness_report(b, a, implication.witness)
        proof = proof_report(a, b, order.proofs[a, b])
        edges.append(EdgeReport(stronger=a, weaker=b, proof=proof, witness=witness))
    first = [same[0] for same in order.classes]
    return LatticeReport(
        classes=order.classes,
        edges=tuple(edges),
        separated=tuple(
            Separation(allows=a, forbids=b, shown=str(order.separations[a, b]))
            for a in first
            for b in first
            if (a, b) in order.separations
        ),
        unknown=tuple(order.searched),
        seconds=round(found.seconds, 6),
    )


def _lines(found: Lattice) -> Iterator[str]:
    if not found.order.bounds.overlap:
        yield f"{WHEN_ONE_AT_A_TIME}:"
        yield ""
    for same in found.order.classes:
        if len(same) > 1:
            yield f"{' = '.join(same)}"
    yield ""
    rows = []
    for (a, b), implication in found.converses.items():
        shown = "none found" if implication.witness is None else str(implication.witness.small)
        rows.append((a, "=>", b, shown))
    yield from align_rows(rows)
    for a, b in found.order.searched:
        yield f"unknown: whether {a} implies {b}"
