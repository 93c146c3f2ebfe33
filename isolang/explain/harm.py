"""Defines what a report says about the harm of a violation (docs/harm.md)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

HarmKind: TypeAlias = Literal["harmful", "answers differ", "unknown", "harmless"]
HARM_ORDER: Final[tuple[HarmKind, ...]] = ("harmful", "answers differ", "unknown", "harmless")
"""The kinds in the order in which reports list their groups of violations."""
_SHOWN: Final = 2  # how many differences the first line names


class HarmDifference(Struct, frozen=True, kw_only=True):
    """One difference between the concurrent run and the serial orders.

    Attributes:
        text: the difference in words.
        table: the table; empty if an answer or an effect differs.
        row: the primary key of the row; empty for rows with generated keys, or for answers.
        column: the column; empty if whole rows, an answer or an effect differ.
        value: what the concurrent run gave.
        serial: what the serial orders gave, without repetitions.
    """

    text: str
    table: str = ""
    row: str = ""
    column: str = ""
    value: str = ""
    serial: tuple[str, ...] = ()


class Harm(Struct, frozen=True, kw_only=True):
    """The harm of a violation: whether some serial order of its calls has the same outcome.

    Attributes:
        kind: ``harmless`` if an order gives the same rows and answers; ``answers differ`` if one
            gives the same rows, but a call failed in other words than in any order; ``harmful`` if
            none does.
        calls: the calls, with the ``file:line`` of their functions.
        order: the calls in the order with this outcome, or in the order with the nearest one.
        differences: how the outcome differs from that of the serial orders.
        why: why the harm is unknown; empty otherwise.
        against_real_time: whether only an order has this outcome in which a call comes before one
            that had ended before it began.
        rolled_back: the calls that the database rolled back because of concurrency. They count as
            not called.
        varying: the columns and answers that differ from run to run of one order, and are not
            compared.
        renamed: where new keys come from, which are compared up to renaming: columns that the
            application fills, and sequences with the first of the numbers that they gave.
        not_compared: what was not compared: ignored columns, effects outside the database, objects.
        orders: how many orders were run.
        runs: how many serial runs there were.
        played_again: whether the calls were played again by themselves, since the recorded run has
            others.
    """

    kind: HarmKind
    calls: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    differences: tuple[HarmDifference, ...] = ()
    why: str = ""
    against_real_time: bool = False
    rolled_back: tuple[str, ...] = ()
    varying: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    orders: int = 0
    runs: int = 0
    played_again: bool = False

    def word(self) -> str:
        """Return the kind as the first line of a report has it."""
        return {
            "harmful": "harmful",
            "answers differ": "answers differ",
            "unknown": "harm unknown",
            "harmless": "harmless with this data",
        }[self.kind]

    def headline(self) -> str:
        """Return the harm in one line, such as ``harmless with this data: as if B, A``."""
        match self.kind:
            case "unknown":
                details = self.why
            case "harmless":
                details = f"as if {', '.join(self.order) or 'no call was made'}"
                if self.against_real_time:
                    details += ", which is not their order in time"
            case _:
                shown = [difference.text for difference in self.differences[:_SHOWN]]
                more = len(self.differences) - len(shown)
                details = "; ".join([*shown, *([f"and {more} more"] if more else [])])
        if count := len(self.rolled_back):
            calls = "call" if count == 1 else "calls"
            details += f"; without {count} {calls} rolled back: {', '.join(self.rolled_back)}"
        return f"{self.word()}: {details}"

    def details(self) -> list[tuple[str, str]]:
        """Return the rest of what is known, as names and texts."""
        lines = [("calls", "; ".join(self.calls))]
        if self.kind in ("harmful", "answers differ"):
            lines += [("differs", difference.text) for difference in self.differences]
            lines.append(("nearest order", ", ".join(self.order)))
        for name, texts in (
            ("varying", self.varying),
            ("new keys", self.renamed),
            ("not compared", self.not_compared),
        ):
            if texts:
                lines.append((name, ", ".join(texts)))
        if self.runs:
            again = ", after the calls were played again by themselves" * self.played_again
            orders = "order" if self.orders == 1 else "orders"
            lines.append(("runs", f"{self.orders} {orders}, {self.runs} serial runs{again}"))
        return [(name, text) for name, text in lines if text]


def harm_place(harm: Harm | None) -> int:
    """Return the place in a list that begins with the worst; harm not sought counts as unknown."""
    return HARM_ORDER.index("unknown" if harm is None else harm.kind)
