"""Defines the outcome of a run: the rows, what each call returned or raised, and its effects."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from time import perf_counter, time
from typing import Any, Final, TypeAlias
from uuid import UUID

from msgspec import Struct

from isolang.errors import IsolangError
from isolang.harm.state import KeyRange, PreparedState, Rows

Plain: TypeAlias = "str | list[Plain] | dict[str, Plain] | None"
"""A value in texts, lists and maps."""

_DEPTH: Final = 20  # how deep an answer is compared
_REFUSED: Final = frozenset({"55P03", "57014"})  # lock timeout, statement cancelled


class Operation(Struct, frozen=True, kw_only=True, eq=False):
    """A call of the application that can be made again.

    Attributes:
        name: the text of the call, such as ``buy("ann")``.
        call: makes the call, and returns its result.
        located: the name with the ``file:line`` of its function.
        client: who made the call; the calls of one client stay in their order.
    """

    name: str
    call: Callable[[], object]
    located: str = ""
    client: object = None


class CallAnswer(Struct, kw_only=True):
    """The value that a call returned, or the error that it raised.

    Attributes:
        value: the returned value, or the words of the error.
        error: the name of the error's class; empty if the call returned.
        refused: whether the database rolled the call back because of concurrency.
        incomparable: the classes of the objects in the value that cannot be compared.
        begin: when the call began, in seconds of a clock that never goes back.
        end: when it ended.
    """

    value: Plain = None
    error: str = ""
    refused: bool = False
    incomparable: tuple[str, ...] = ()
    begin: float = 0.0
    end: float = 0.0

    def shown(self) -> str:
        """Return the answer in a few words."""
        text = shown_plain(self.value)
        text = f"{self.error}: {text}".removesuffix(": None").rstrip(": ") if self.error else text
        return text if len(text) <= 60 else text[:59] + "…"


class RunOutcome(Struct, kw_only=True):
    """The rows, the answers and the effects after a run.

    Attributes:
        rows: all rows after the run.
        answers: the answer of each operation that was run, by its number.
        effects: what was reported as an effect outside the database.
        ranges: the keys that the sequences gave.
        window: the times of the beginning and the end, in seconds since 1970.
        unmoved: the sequences without a range of their own that were used.
        broken: the invariants that do not hold after the run.
    """

    rows: Rows
    answers: dict[int, CallAnswer]
    effects: list[Plain] = []
    ranges: list[KeyRange] = []
    window: tuple[float, float] = (0.0, 0.0)
    unmoved: list[str] = []
    broken: list[str] = []


class Effects:
    """The effects outside the database that the application reports.

    Django's ``mail.outbox`` is among them, if the test's settings fill it.

    Attributes:
        invariants: the conditions that must hold after the calls.
        is_used: whether the application reports its effects.
    """

    def __init__(self, invariants: Sequence[Callable[[], object]] = ()) -> None:
        """Begin with the mails that have been sent so far, which are not reported.

        Args:
            invariants: the conditions that must hold after the calls.
        """
        self.invariants = [*invariants]
        self._reported: list[Plain] = []
        self._mails = len(_outbox() or ())
        self.is_used = _outbox() is not None

    def report(self, effect: object) -> None:
        """Add an effect, such as a mail that was sent."""
        self.is_used = True
        self._reported.append(plain_value(effect)[0])

    def clear(self) -> None:
        """Forget all effects so far."""
        self._reported.clear()
        outbox = _outbox()
        if outbox is not None:
            self.is_used = True
            del outbox[self._mails :]

    def listed(self) -> list[Plain]:
        """Return the effects since the last :meth:`clear`."""
        mails = (_outbox() or ())[self._mails :]
        self.is_used |= bool(mails)
        sent: list[Plain] = [
            {"mail": str(mail.subject), "to": [str(to) for to in mail.to]} for mail in mails
        ]
        return [*self._reported, *sent]

    def broken_invariants(self) -> list[str]:
        """Return the names of the invariants that do not hold now."""
        broken = []
        for invariant in self.invariants:
            try:
                holds = invariant() is not False
            except Exception:  # most often an AssertionError
                holds = False
            if not holds:
                broken.append(getattr(invariant, "__qualname__", type(invariant).__name__))
        return broken


def _outbox() -> Any:
    return getattr(sys.modules.get("django.core.mail"), "outbox", None)


# --- calls ---


def made_call(call: Callable[[], object]) -> tuple[CallAnswer, object, BaseException | None]:
    """Make a call, and return its answer, and the result or the exception itself.

    Raises:
        IsolangError: the call could not be made.
    """
    begin = perf_counter()
    try:
        result = call()
    except IsolangError:
        raise
    except Exception as error:
        return answer_of_error(error, begin), None, error
    if isinstance(result, CallAnswer):
        return result, result.value, None
    return answer_of(result, begin), result, None


def answer_of(result: object, begin: float = 0.0) -> CallAnswer:
    """Return the answer of a call that returned a result."""
    end = perf_counter()
    value, incomparable = plain_value(result)
    error = ""
    status = getattr(result, "status_code", None)
    if isinstance(status, int) and status >= 400:  # the answer of a web framework's test client
        error = f"HTTP {status}"
    return CallAnswer(value=value, error=error, incomparable=incomparable, begin=begin, end=end)


def answer_of_error(error: BaseException, begin: float = 0.0) -> CallAnswer:
    """Return the answer of a call that raised an error."""
    end = perf_counter()
    return CallAnswer(
        value=str(error).strip() or None, error=type(error).__name__, refused=is_refusal(error),
        begin=begin, end=end,
    )  # fmt: skip


def is_refusal(error: BaseException) -> bool:
    """Return whether the database rolled back a transaction because of others.

    >>> from types import SimpleNamespace
    >>> class Failed(Exception): sqlstate = "40001"
    >>> is_refusal(Failed()), is_refusal(ValueError())
    (True, False)
    """
    chain: list[Any] = [error]
    known: set[int] = set()
    while chain:
        link = chain.pop()
        if link is None or id(link) in known:
            continue
        known.add(id(link))
        for name in ("sqlstate", "pgcode"):
            state = getattr(link, name, None)
            if isinstance(state, str) and (state.startswith("40") or state in _REFUSED):
                return True
        chain += [getattr(link, name, None) for name in ("__cause__", "__context__", "orig")]
    return False


# --- values ---


def plain_value(value: object) -> tuple[Plain, tuple[str, ...]]:
    """Return a value in texts, lists and maps, and the classes that could not be compared.

    >>> plain_value({"id": 7, "tags": ("a", None)})
    ({'id': '7', 'tags': ['a', None]}, ())
    >>> plain_value(object())
    ('<object>', ('object',))
    """
    incomparable: dict[str, None] = {}

    def plain(x: Any, depth: int) -> Plain:
        match x:
            case None:
                return None
            case bool():
                return str(x)
            case Enum():
                return str(x)
            case str():
                return x
            case bytes() | bytearray() | memoryview():
                return bytes(x).decode(errors="backslashreplace")
            case int() | float() | Decimal() | UUID():
                return str(x)
            case datetime.datetime() | datetime.date() | datetime.time():
                return x.isoformat()
            case datetime.timedelta():
                return str(x)
        if depth > _DEPTH:
            incomparable[type(x).__name__] = None
            return f"<{type(x).__name__}>"
        if isinstance(x, Mapping):
            return {str(k): plain(v, depth + 1) for k, v in x.items()}
        if isinstance(x, set | frozenset):
            return sorted((plain(v, depth + 1) for v in x), key=repr)
        fields = _fields(x)
        if fields is not None:
            return {name: plain(v, depth + 1) for name, v in fields}
        if isinstance(x, Iterable) and not hasattr(x, "__next__"):
            return [plain(v, depth + 1) for v in x]
        incomparable[type(x).__name__] = None
        return f"<{type(x).__name__}>"

    try:
        return plain(value, 0), tuple(incomparable)
    except Exception as error:  # an object of the application that cannot be read
        name = type(value).__name__
        return f"<{name}>", (f"{name} ({type(error).__name__})",)


def _fields(x: Any) -> list[tuple[str, Any]] | None:
    """Return the fields of a record, or of the answer of a web framework; ``None`` for others."""
    if isinstance(getattr(x, "status_code", None), int):
        headers = getattr(x, "headers", {})
        body = getattr(x, "content", None)
        body = getattr(x, "text", None) if body is None else body
        location = headers.get("Location") if hasattr(headers, "get") else None
        return [("status", x.status_code), ("location", location), ("body", body)]
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return list(zip(x._fields, x, strict=False))
    names = getattr(x, "__dataclass_fields__", None) or getattr(x, "__struct_fields__", None)
    return None if names is None or isinstance(x, type) else [(n, getattr(x, n)) for n in names]


def shown_plain(value: Plain) -> str:
    """Return a plain value in one line."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        return f"[{', '.join(map(shown_plain, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {shown_plain(v)}' for k, v in value.items())}}}"
    return str(value)


# --- serial runs ---


def run_serially(
    state: PreparedState,
    operations: Mapping[int, Operation],
    order: tuple[int, ...],
    effects: Effects,
    *,
    steps: Mapping[str, int] | None = None,
) -> RunOutcome:
    """Put the prepared state back, run operations one after another, and return the outcome.

    Args:
        steps: by how much each sequence is advanced before the run.

    Raises:
        IsolangError: the state cannot be put back or read.
    """
    state.restore(steps)
    effects.clear()
    began = min(time(), state.now())
    answers = {number: made_call(operations[number].call)[0] for number in order}
    return outcome_now(state, answers, effects, began)


def outcome_now(
    state: PreparedState, answers: dict[int, CallAnswer], effects: Effects, began: float
) -> RunOutcome:
    """Return the outcome of a run that has just ended.

    Raises:
        IsolangError: the rows cannot be read.
    """
    return RunOutcome(
        rows=state.read(), answers=answers, effects=effects.listed(), ranges=state.ranges(),
        window=(began, max(time(), state.now())), unmoved=state.unmoved_sequences_used(),
        broken=effects.broken_invariants(),
    )  # fmt: skip
