"""Implements ``isocheck spec compare``, which determines the stronger of two specifications."""

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
from isolang.output.layout import align_rows
from isolang.output.records import EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import console, escaped, print_data, print_lines, warn

if TYPE_CHECKING:
    from isolang.comparison.compare import Comparison, Implication, SeparatingHistory
    from isolang.comparison.separate import Bounds
    from isolang.comparison.walks import ImplicationProof

_HOW_FAR = "Search bounds"
_WHOLE: Any = {"metavar": "N", "parser": number(int, 1, 8), "rich_help_panel": _HOW_FAR}

Transactions = Annotated[
    int,
    typer.Option("--transactions", help="The most transactions in a separating history.", **_WHOLE),
]
Keys = Annotated[
    int, typer.Option("--keys", help="The most keys in a separating history.", **_WHOLE)
]
Save = Annotated[
    str,
    typer.Option(
        "--save", metavar="DIR", show_default=False, rich_help_panel=OUTPUT,
        help="Save each separating history in this folder, as EDN and as an HTML page.",
    ),
]  # fmt: skip
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds", metavar="S", parser=number(float, 0, 1e6), rich_help_panel=_HOW_FAR,
        help="Time limit in seconds; by default the limit is a number of steps, so that equal "
        "input gives equal output.",
    ),
]  # fmt: skip

Overlap = Annotated[
    bool,
    typer.Option(
        "--overlap", rich_help_panel=_HOW_FAR,
        help="Also search histories whose sessions run overlapping transactions.",
    ),
]  # fmt: skip


class ProofReport(Struct, frozen=True, kw_only=True):
    """The proof that one specification implies another.

    Attributes:
        stronger: the implying specification.
        weaker: the implied specification.
        argument: the sentences of the proof.
        one_at_a_time: whether the proof assumes that a session runs one transaction at a time.
    """

    stronger: str
    weaker: str
    argument: tuple[str, ...]
    one_at_a_time: bool


class WitnessReport(Struct, frozen=True, kw_only=True):
    """A history that one specification allows and another forbids.

    Attributes:
        allowed_by: the specification that the history satisfies.
        forbidden_by: the specification that the history violates.
        transactions: the number of transactions.
        operations: the number of operations.
        keys: the number of keys.
        smallest: whether no other separating history has fewer transactions, then operations, then
            keys.
        anomaly: the name of the violation.
        certified: whether the independent checker accepted both verdicts.
        shown: the operations in one line: `->` within a session, `||` between sessions.
        history: the history as EDN; null if EDN cannot express it.
        not_written: why EDN cannot express the history; empty if it can.
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
    """The comparison of two specifications.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        a: the first specification, as named on the command line.
        b: the second specification.
        relation: how the first relates to the second; unknown if a direction has neither a proof
            nor a witness.
        proof: the proofs, for each direction in which one specification implies the other.
        witnesses: a separating history for each direction in which the implication does not hold.
        searched: for ``a implies b`` and its reverse, up to how many transactions no witness
            exists; null for a direction with a proof or a witness.
        bounded: the relation on all histories of up to ``up_to`` transactions, if the relation is
            unknown; null if no size was searched completely.
        up_to: the greatest number of transactions of these histories; null if ``bounded`` is null.
        one_at_a_time: whether the relation is known only if a session runs one transaction at a
            time.
        lacking: relations that the searched histories have only in part: from the times of whole
            transactions, and from statements of one operation.
        keys: the greatest number of keys of the searched histories.
        seconds: how long the comparison took.
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
    b: Annotated[str, typer.Argument(metavar="SPEC", help="The other level or .iso file.")],
    transactions: Transactions = 5,
    keys: Keys = 3,
    seconds: Seconds = None,
    overlap: Overlap = False,
    save: Save = "",
    include: Include = [],  # noqa: B006
    output: Output = "text",
) -> int:
    """Compare two specifications, and show a proof or a separating history for the result."""
    from isolang.comparison.compare import compare as compare_specs
    from isolang.language.load import load_spec

    one, other = (load_spec(name, include_path=include) for name in (a, b))
    warn(*(f"note: {note}" for spec in (one, other) for note in spec.notes))
    with Bar(1) as bar:
        found = compare_specs(
            one,
            other,
            transactions=int(transactions),
            keys=int(keys),
            overlap=overlap,
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
    """Return the bounds of the search for a separating history."""
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
    """Return the report on a proof that one specification implies another."""
    return ProofReport(
        stronger=stronger,
        weaker=weaker,
        argument=tuple(proof.argument()),
        one_at_a_time=proof.one_at_a_time,
    )


def witness_report(allowed_by: str, forbidden_by: str, witness: SeparatingHistory) -> WitnessReport:
    """Return the report on a history that separates two specifications."""
    small = witness.small
    history, why_not = _edn_or_reason(witness)
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


def _edn_or_reason(witness: SeparatingHistory) -> tuple[str | None, str]:
    """Return a separating history as EDN, and an empty string.

    If EDN cannot express the history, return ``None`` and the reason.
    """
    from isolang.errors import HistoryError

    try:
        return witness.edn(), ""
    except HistoryError as error:
        return None, str(error)


def _save(witness: SeparatingHistory, folder: Path) -> None:
    from isolang.report import page, save_page

    stem = witness.history.name
    save_page(page(witness.violation, name=stem), folder / f"{stem}.html")
    text, why_not = _edn_or_reason(witness)
    if text is None:
        warn(f"note: {stem}.edn is not written: {why_not}")
    else:
        (folder / f"{stem}.edn").write_text(text, encoding="utf-8")


_SENTENCES = {
    "equal": "{a} and {b} are equal",
    "stronger": "{a} is stronger than {b}",
    "weaker": "{a} is weaker than {b}",
    "incomparable": "{a} and {b} are incomparable",
    "unknown": "how {a} and {b} compare is unknown",
}


def headline(a: str, b: str, found: Comparison) -> str:
    """Return a sentence that says how two specifications compare."""
    known, up_to = found.bounded or (found.relation, 0)
    sentence = _SENTENCES[known].format(a=escaped(a), b=escaped(b))
    if up_to:
        sentence += f" up to {up_to} transactions"
    return sentence + (f", {WHEN_ONE_AT_A_TIME}" if found.one_at_a_time else "")


WHEN_ONE_AT_A_TIME = "if the transactions of a session do not overlap in time"


def _print(a: str, b: str, found: Comparison) -> None:
    print_lines(headline(a, b, found))
    for x, y, half in ((a, b, found.forth), (b, a, found.back)):
        print_lines("")
        for line in half_lines(x, y, half, found.bounds):
            print_lines(line)
        if half.witness is not None:
            _explain(half.witness)


def half_lines(a: str, b: str, half: Implication, bounds: Bounds) -> Iterator[str]:
    """Yield lines that say whether one specification implies another, with the proof or history."""
    from isolang.comparison.compare import TELLING

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
        yield from align_rows(list(small.table()), indent=4)
    elif half.searched < TELLING:
        yield (
            f"  whether {a} implies {b} is unknown: the search reached its limit before it found a "
            "separating history, and no proof was found"
        )
    else:
        yield (
            f"  {a} implies {b} on all histories of up to {half.searched} transactions and "
            f"{bounds.keys} keys (the limit is {bounds.transactions} transactions); no proof for "
            "larger histories was found"
        )
        yield from search_lines(bounds, half.lacking)


def search_lines(bounds: Bounds, lacking: Sequence[str]) -> Iterator[str]:
    """Yield lines that describe the searched histories."""
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
    text, why_not = _edn_or_reason(witness)
    if text is None:
        print_lines(f"  not shown as EDN: {escaped(why_not)}")
    else:
        print_lines("  As EDN:", *(f"    {line}" for line in text.splitlines()))
