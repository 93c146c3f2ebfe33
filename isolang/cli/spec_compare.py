"""``isocheck spec compare``: which of two specifications is stronger, and why."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from msgspec import Struct

from isolang.cli.choices import number
from isolang.cli.parameters import Include, Output, SpecName
from isolang.cli.progress import Bar
from isolang.options import OUTPUT
from isolang.output.records import EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import console, escaped, print_data, print_lines, warn

if TYPE_CHECKING:
    from isolang.comparison.compare import Comparison, Implication, SeparatingHistory
    from isolang.comparison.separate import Bounds
    from isolang.comparison.walks import ImplicationProof

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
    float | None,
    typer.Option(
        "--seconds", metavar="S", parser=number(float, 0, 1e6), rich_help_panel=_HOW_FAR,
        help="At most; by default steps are counted, so that equal questions have equal answers.",
    ),
]  # fmt: skip

Overlap = Annotated[
    bool,
    typer.Option(
        "--overlap", rich_help_panel=_HOW_FAR,
        help="Also histories in which transactions of a session overlap in time.",
    ),
]  # fmt: skip


class ProofReport(Struct, frozen=True, kw_only=True):
    """Why one specification implies another.

    Attributes:
        stronger: the one.
        weaker: the other.
        argument: a sentence at a time.
        one_at_a_time: whether it needs that sessions do one thing at a time.
    """

    stronger: str
    weaker: str
    argument: tuple[str, ...]
    one_at_a_time: bool


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
        history: the same as EDN; null if EDN cannot express it.
        not_written: why it cannot; empty if it can.
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
    history: str | None
    not_written: str = ""


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
        bounded: of an unknown relation, what it is on all histories of up to ``up_to``
            transactions; null if no size was searched through.
        up_to: how many transactions these have; null if ``bounded`` is.
        one_at_a_time: whether the relation is known only where sessions do one thing at a time.
        lacking: where there is neither: relations of which the histories that were looked at have
            only what times of whole transactions, and statements of one operation, say.
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
    bounded: Literal["equal", "stronger", "weaker"] | None
    up_to: int | None
    one_at_a_time: bool
    lacking: tuple[str, ...]
    keys: int
    seconds: float


def compare(
    *,
    a: SpecName,
    b: Annotated[str, typer.Argument(metavar="SPEC", help="Another one.")],
    transactions: Transactions = 5,
    keys: Keys = 3,
    seconds: Seconds = None,
    overlap: Overlap = False,
    save: Save = "",
    include: Include = [],  # noqa: B006
    output: Output = "text",
) -> int:
    """Tell which of two specifications is stronger, by a proof or a history."""
    from isolang.comparison.compare import compare as compare_specs
    from isolang.language.load import load_spec

    one, other = (load_spec(name, include_path=include) for name in (a, b))
    warn(*(f"note: {note}" for spec in (one, other) for note in spec.notes))
    with Bar(1) as bar:
        found = compare_specs(
            one,
            other,
            bounds=bounds_of(transactions, keys, overlap=overlap),
            seconds=seconds,
            progress=bar.phase,
        )
    if save:
        for half in (found.forth, found.back):
            if half.witness is not None:
                _save(half.witness, Path(save))
    if output == "json":
        print_data(json_text(_report(a, b, found)))
    else:
        _print(a, b, found)
    return EXIT_UNKNOWN if found.relation == "unknown" else EXIT_VALID


def bounds_of(transactions: int, keys: int, *, overlap: bool = False) -> Bounds:
    """How far to look, as the command line says it."""
    from isolang.comparison.separate import Bounds

    return Bounds(transactions=int(transactions), keys=int(keys), overlap=overlap)


def _report(a: str, b: str, found: Comparison) -> ComparisonReport:
    halves = ((a, b, found.forth), (b, a, found.back))

    def searched(half: Implication) -> int | None:
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
        bounded=found.bounded[0] if found.bounded else None,
        up_to=found.bounded[1] if found.bounded else None,
        one_at_a_time=found.one_at_a_time,
        lacking=tuple(sorted({*found.forth.lacking, *found.back.lacking})),
        keys=found.bounds.keys,
        seconds=round(found.seconds, 6),
    )


def proof_report(stronger: str, weaker: str, proof: ImplicationProof) -> ProofReport:
    """What is said of a proof."""
    return ProofReport(
        stronger=stronger,
        weaker=weaker,
        argument=tuple(proof.argument()),
        one_at_a_time=proof.one_at_a_time,
    )


def witness_report(allowed_by: str, forbidden_by: str, witness: SeparatingHistory) -> WitnessReport:
    """What is said of a history that tells two specifications apart."""
    small = witness.small
    history, why_not = _written(witness)
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
        history=history,
        not_written=why_not,
    )


def _written(witness: SeparatingHistory) -> tuple[str | None, str]:
    """A witness as EDN; or why EDN cannot express it, which must not cost the answer."""
    from isolang.errors import HistoryError

    try:
        return witness.edn(), ""
    except HistoryError as error:
        return None, str(error)


def _save(witness: SeparatingHistory, folder: Path) -> None:
    from isolang.report import page, save_page

    stem = witness.history.name
    save_page(page(witness.violation, name=stem), folder / f"{stem}.html")
    text, why_not = _written(witness)
    if text is None:
        warn(f"note: {stem}.edn is not written: {why_not}")
    else:
        (folder / f"{stem}.edn").write_text(text, encoding="utf-8")


_SAID = {
    "equal": "{a} and {b} are equal",
    "stronger": "{a} is stronger than {b}",
    "weaker": "{a} is weaker than {b}",
    "incomparable": "{a} and {b} are incomparable",
    "unknown": "{a} and {b}: not found out",
}


def headline(a: str, b: str, found: Comparison) -> str:
    """What one specification is to another, in a line."""
    known, up_to = found.bounded or (found.relation, 0)
    said = _SAID[known].format(a=escaped(a), b=escaped(b))
    if up_to:
        said += f" up to {up_to} transactions"
    return said + (f", {WHEN_ONE_AT_A_TIME}" if found.one_at_a_time else "")


WHEN_ONE_AT_A_TIME = "when sessions do one thing at a time"


def _print(a: str, b: str, found: Comparison) -> None:
    print_lines(headline(a, b, found))
    for x, y, half in ((a, b, found.forth), (b, a, found.back)):
        print_lines("")
        for line in said_of_half(x, y, half, found.bounds):
            print_lines(line)
        if half.witness is not None:
            _explain(half.witness)


def said_of_half(a: str, b: str, half: Implication, bounds: Bounds) -> Iterator[str]:
    """Whether one specification implies another, in lines."""
    a, b = escaped(a), escaped(b)
    if half.proof is not None:
        when = f", {WHEN_ONE_AT_A_TIME}" if half.one_at_a_time else ""
        yield f"  {a} implies {b}, for histories of any size{when}:"
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
            f"transactions and {bounds.keys} keys; no proof for larger ones was found"
        )
        yield from said_of_searched(bounds, half.lacking)


def said_of_searched(bounds: Bounds, lacking: Sequence[str]) -> Iterator[str]:
    """What the histories were that a search went through, in lines."""
    from isolang.comparison.separate import describe_lacking

    yield f"    histories {bounds.kind()}"
    if lacking:
        yield f"    {describe_lacking(lacking)}"


def _counted(*counts: tuple[int, str]) -> str:
    return ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in counts)


def _explain(witness: SeparatingHistory) -> None:
    from isolang.output.records import report_of
    from isolang.output.text import render_violation

    verdict = witness.violation
    checked = "certified" if witness.certified else "not certified"
    print_lines(f"    {verdict.violation.anomaly}: {verdict.violation.meaning} ({checked})")
    render_violation(
        report_of(witness.history.name, verdict.spec.name, verdict), console(sys.stdout)
    )
    text, why_not = _written(witness)
    if text is None:
        print_lines(f"  not shown as EDN: {escaped(why_not)}")
    else:
        print_lines("  As EDN:", *(f"    {line}" for line in text.splitlines()))
