"""Defines the verdicts on whether a history of an object is linearizable."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NoReturn, TypeAlias

from msgspec import Struct, field

from isolang.limits import Seconds
from isolang.models.model import Model
from isolang.models.operation import Operation, show


class _BaseLinearizability(Struct, frozen=True, kw_only=True):
    """The fields common to all verdicts.

    Attributes:
        operations: the operations of the history.
        model: the model of each object.
        certified: whether a second algorithm, which shares no code with the search, confirmed the
            verdict.
        certified_reason: which algorithm confirmed the verdict, or why none did.
        configurations: how many configurations (sets of operations with a state) were visited.
        seconds: how long the search and the second algorithm took.
    """

    operations: tuple[Operation, ...]
    model: Model
    certified: bool = False
    certified_reason: str = ""
    configurations: int = 0
    seconds: Seconds = field(default_factory=Seconds)

    def __bool__(self) -> NoReturn:
        """Raise ``TypeError``; otherwise ``assert linearize(…)`` would pass for any history."""
        raise TypeError("a verdict has no truth value; look at verdict.outcome")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the report, line by line."""
        raise NotImplementedError


class Linearizable(_BaseLinearizability, frozen=True, kw_only=True):
    """The verdict that the history is linearizable.

    Attributes:
        linearization: the operations in an order that the model allows and that keeps real time.
            Operations that never returned are in it if they took effect.
    """

    outcome: ClassVar[Literal["valid"]] = "valid"

    linearization: tuple[Operation, ...]

    def __repr__(self) -> str:
        return f"<Linearizable: {self.model.name}, {len(self.operations)} operations>"

    def lines(self) -> list[str]:
        """Return the report, line by line."""
        unused = len(self.operations) - len(self.linearization)
        more = f"; {unused} that never returned took no effect" if unused else ""
        return [f"an order of {len(self.linearization)} operations explains the history{more}"]


class PartialOrder(Struct, frozen=True, kw_only=True):
    """An order of the first operations, after which the history cannot go on.

    Attributes:
        order: the operations in their order.
        state: the state of the object after them.
    """

    order: tuple[Operation, ...]
    state: Any


class NotLinearizable(_BaseLinearizability, frozen=True, kw_only=True):
    """The verdict that the history is not linearizable.

    The operations of ``window`` are enough for this: no order of them, and of any operations that
    began later, is a run of the model.

    Attributes:
        key: the object whose operations have no order.
        stuck: the operation that no order reaches: whatever came before it, the model does not
            allow it, or an operation before it.
        window: the operations on the object that began before ``stuck`` ended.
        longest: orders of operations before ``stuck`` that cannot go on, one for each state that
            they lead to, the longest first. There may be more states than are listed.
    """

    outcome: ClassVar[Literal["invalid"]] = "invalid"

    key: Any
    stuck: Operation
    window: tuple[Operation, ...]
    longest: tuple[PartialOrder, ...]

    def __repr__(self) -> str:
        return f"<NotLinearizable: {self.model.name}, stuck at {self.stuck}>"

    def lines(self) -> list[str]:
        """Return the report, line by line."""
        of = "" if self.key is None else f" on {show(self.key)}"
        began = sum(
            operation.start <= self.stuck.end
            for operation in self.operations
            if self.model.partition(operation) == self.key
        )
        which = "the first" if began == len(self.window) else "these"
        report = [
            f"no order of {which} {len(self.window)} operations{of} explains {self.stuck}",
            "",
        ]
        if which == "these":
            report += [*(f"    {operation}" for operation in self.window), ""]
        if not self.longest:
            return report[:1]
        first, *others = self.longest
        last = first.order[-_MOST_LISTED:]
        hidden = len(first.order) - len(last)
        report += [f"  longest order before it ({len(first.order)} operations):"]
        report += [f"    … {hidden} operations"] if hidden else []
        report += [f"    {operation}" for operation in last]
        report += [f"  then the state is {show(first.state)}, and {self.stuck} is not possible"]
        if others:
            states = ", ".join(show(other.state) for other in others[:_MOST_STATES])
            more = ", …" if len(others) > _MOST_STATES else ""
            report += [f"  other orders lead to the states {states}{more}"]
        return report


class Undetermined(_BaseLinearizability, frozen=True, kw_only=True):
    """The verdict that it is unknown whether the history is linearizable.

    Attributes:
        reason: why the verdict is unknown, in words.
    """

    outcome: ClassVar[Literal["unknown"]] = "unknown"

    reason: str

    def __repr__(self) -> str:
        return f"<Undetermined: {self.model.name}, {self.reason}>"

    def lines(self) -> list[str]:
        """Return the report, line by line."""
        return [self.reason]


Linearizability: TypeAlias = Linearizable | NotLinearizable | Undetermined

_MOST_LISTED = 20  # operations of an order in a report
_MOST_STATES = 8  # states in a report
