"""``isocheck spec compare``: which of two specifications is stronger, and why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from msgspec import Struct

from isolang.cli.choices import number
from isolang.cli.parameters import OUTPUT, Include, Output, SpecName
from isolang.cli.progress import Bar
from isolang.output.report import EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import complain, console, data, say, visible

if TYPE_CHECKING:
    from isolang.comparison.compare import Comparison, Half, Witness
    from isolang.comparison.separate import Bounds
    from isolang.comparison.walks import Implication

_HOW_FAR = "How far to look"
_WHOLE: Any = {"metavar": "N", "parser": number(int, 1, 8), "rich_help_panel": _HOW_FAR}

Transactions = Annotated[
    int, typer.Option("--transactions", help="Of a witness, at most.", **_WHOLE)
]
Keys = Annotated[int, typer.Option("--keys", help="Of a witness, at most.", **_WHOLE)]
Save = Annotated[
    str,
    typer.Option(
        "--save", metavar="DIR", show_default=False, rich_help_panel=OUTPUT,
        help="Where to put each witness, as EDN and as a page with its picture.",
    ),
]  # fmt: skip
Seconds = Annotated[
    float,
    typer.Option(
        "--seconds", metavar="S", help="At most.", parser=number(float, 0, 1e6),
        rich_help_panel=_HOW_FAR,
    ),
]  # fmt: skip


class ProofReport(Struct, frozen=True, kw_only=True):
    """Why one specification implies another.

    Attributes:
        stronger: the one.
        weaker: the other.
        argument: a sentence at a time.
    """

    stronger: str
    weaker: str
    argument: tuple[str, ...]


class WitnessReport(Struct, frozen=True, kw_only=True):
    """A history that tells two specifications apart.

    Attributes:
        allowed_by: the one that it satisfies.
        forbidden_by: the one that it violates.
        transactions: how many it has.
        operations: likewise.
        keys: likewise.
        smallest: whether there is none with fewer transactions, then operations, then keys.
        anomaly: the name of the violation.
        certified: whether the independent checker accepted both verdicts.
        shown: the operations in a line: `->` within a session, `||` between sessions.
        history: the same as EDN.
    """

    allowed_by: str
    forbidden_by: str
    transactions: int
    operations: int
    keys: int
    smallest: bool
    anomaly: str
    certified: bool
    shown: str
    history: str


class ComparisonReport(Struct, frozen=True, kw_only=True):
    """What is known of two specifications.

    Attributes:
        schema: changes when a field changes its meaning or goes.
        a: the first one, as it was named.
        b: the second one.
        relation: what the first is to the second; unknown if a half has neither proof nor witness.
        proof: why one implies the other, for each direction in which it does.
        witnesses: for each direction in which it does not, a history.
        searched: where there is neither, from ``a implies b`` on: up to how many transactions there
            is no witness; null where there is one or the other.
        lacking: where there is neither: relations of which the histories that were looked at have
            only what times of whole transactions say.
        keys: of which a witness would have had at most this many.
        seconds: how long it took.
    """

    schema: Literal[1] = 1
    a: str
    b: str
    relation: Literal["equal", "stronger", "weaker", "incomparable", "unknown"]
    proof: tuple[ProofReport, ...]
    witnesses: tuple[WitnessReport, ...]
    searched: tuple[int | None, int | None]
    lacking: tuple[str, ...]
    keys: int
    seconds: float


def compare(
    *,
    a: SpecName,
    b: Annotated[str, typer.Argument(metavar="SPEC", help="Another one.")],
    transactions: Transactions = 5,
    keys: Keys = 3,
    seconds: Seconds = 120.0,
    save: Save = "",
    include: Include = [],  # noqa: B006
    output: Output = "text",
) -> int:
    """Tell which of two specifications is stronger, by a proof or a history."""
    from isolang.comparison.compare import compare as compare_specs
    from isolang.language.load import load_spec

    one, other = (load_spec(name, include_path=include) for name in (a, b))
    complain(*(f"note: {note}" for spec in (one, other) for note in spec.notes))
    with Bar(1) as bar:
        found = compare_specs(
            one, other, bounds=bounds_of(transactions, keys), seconds=seconds, progress=bar.phase
        )
    if save:
        for half in (found.forth, found.back):
            if half.witness is not None:
                _save(half.witness, Path(save))
    if output == "json":
        data(json_text(_report(a, b, found)))
    else:
        _print(a, b, found)
    return EXIT_UNKNOWN if found.relation == "unknown" else EXIT_VALID


def bounds_of(transactions: int, keys: int) -> Bounds:
    """How far to look, as the command line says it."""
    from isolang.comparison.separate import Bounds

    return Bounds(transactions=int(transactions), keys=int(keys))


def _report(a: str, b: str, found: Comparison) -> ComparisonReport:
    halves = ((a, b, found.forth), (b, a, found.back))

    def searched(half: Half) -> int | None:
        return half.searched if half.proof is None and half.witness is None else None

    return ComparisonReport(
        a=a,
        b=b,
        relation=found.relation,
        proof=tuple(
            proof_report(x, y, half.proof) for x, y, half in halves if half.proof is not None
        ),
        witnesses=tuple(
            witness_report(x, y, half.witness) for x, y, half in halves if half.witness is not None
        ),
        searched=(searched(found.forth), searched(found.back)),
        lacking=tuple(sorted({*found.forth.lacking, *found.back.lacking})),
        keys=found.bounds.keys,
        seconds=round(found.seconds, 6),
    )


def proof_report(stronger: str, weaker: str, proof: Implication) -> ProofReport:
    """What is said of a proof."""
    return ProofReport(stronger=stronger, weaker=weaker, argument=tuple(proof.argument()))


def witness_report(allowed_by: str, forbidden_by: str, witness: Witness) -> WitnessReport:
    """What is said of a history that tells two specifications apart."""
    small = witness.small
    return WitnessReport(
        allowed_by=allowed_by,
        forbidden_by=forbidden_by,
        transactions=len(small.transactions),
        operations=small.operations,
        keys=small.keys,
        smallest=witness.smallest,
        anomaly=witness.violation.violation.anomaly,
        certified=witness.certified,
        shown=str(small),
        history=witness.edn(),
    )


def _save(witness: Witness, folder: Path) -> None:
    from isolang.report import page, save_page

    stem = witness.history.name
    save_page(page(witness.violation, name=stem), folder / f"{stem}.html")
    (folder / f"{stem}.edn").write_text(witness.edn(), encoding="utf-8")


_SAID = {
    "equal": "{a} and {b} are equal",
    "stronger": "{a} is stronger than {b}",
    "weaker": "{a} is weaker than {b}",
    "incomparable": "{a} and {b} are incomparable",
    "unknown": "{a} and {b}: not found out",
}


def _print(a: str, b: str, found: Comparison) -> None:
    say(_SAID[found.relation].format(a=visible(a), b=visible(b)))
    for x, y, half in ((a, b, found.forth), (b, a, found.back)):
        say("")
        for line in said_of_half(x, y, half, found.bounds):
            say(line)
        if half.witness is not None:
            _explain(half.witness)


def said_of_half(a: str, b: str, half: Half, bounds: Bounds) -> Iterator[str]:
    """Whether one specification implies another, in lines."""
    a, b = visible(a), visible(b)
    if half.proof is not None:
        yield f"  {a} implies {b}, for histories of any size:"
        yield from (f"    {sentence}" for sentence in half.proof.argument())
    elif half.witness is not None:
        small = half.witness.small
        sizes = _counted(
            (len(small.transactions), "transaction"), (small.operations, "operation"),
            (small.keys, "key"),
        )  # fmt: skip
        least = "none is smaller" if half.witness.smallest else "a smaller one may exist"
        yield f"  {a} does not imply {b}: {a} allows this, {b} forbids it ({sizes}; {least})"
        rows = list(small.table())
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for *first, last in rows:
            cells = [cell.ljust(width) for cell, width in zip(first, widths, strict=False)]
            yield "    " + "  ".join([*cells, last])
    else:
        yield (
            f"  {a} implies {b} on all histories of up to {half.searched} of {bounds.transactions} "
            f"transactions and {bounds.keys} keys (registers and lists, each value written once); "
            "no proof for larger ones was found"
        )
        if half.lacking:
            names = ", ".join(f"`{name}`" for name in half.lacking)
            yield (
                "    these histories have times of transactions, none of operations: of "
                f"{names} they have only what follows from `rt`"
            )


def _counted(*counts: tuple[int, str]) -> str:
    return ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in counts)


def _explain(witness: Witness) -> None:
    from isolang.output.report import report_of
    from isolang.output.text import render_violation

    verdict = witness.violation
    checked = "certified" if witness.certified else "not certified"
    say(f"    {verdict.violation.anomaly}: {verdict.violation.meaning} ({checked})")
    render_violation(
        report_of(witness.history.name, verdict.spec.name, verdict), console(sys.stdout)
    )
    say("  As EDN:", *(f"    {line}" for line in witness.edn().splitlines()))
