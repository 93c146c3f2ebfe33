"""Defines the models that need no code: registers, counters, queues, stacks and more.

Functions, arguments and results have the names of Jepsen and Knossos. The result of a function that
returns nothing (a write, an enqueue) may be ``None``, ``True``, or its argument, as Jepsen repeats
it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from isolang.errors import unknown_name_details
from isolang.history.values import UNKNOWN, encode, preview
from isolang.models.distinct import Shortcut, of_queue, of_unordered
from isolang.models.grown import of_list, of_set
from isolang.models.model import Model, no_shortcut
from isolang.models.nested import of_stack
from isolang.models.operation import ObjectCall, Operation, same


def register(initial: Any = None) -> Model:
    """Return a register: ``read``, ``write v``, and ``cas (old, new)``, which says if it wrote.

    ``get`` and ``put`` are other names of ``read`` and ``write``.
    """
    return _model("register", initial, _register, _REGISTER, reads={"read", "get"})


def counter(initial: int = 0) -> Model:
    """Return a counter: ``read``, ``add n``, and ``increment`` and ``decrement`` by one.

    ``increment`` and ``decrement`` may return the new value.
    """
    return _model("counter", initial, _counter, _COUNTER, reads={"read"})


def queue(initial: Iterable[Any] = ()) -> Model:
    """Return a queue: ``enqueue v``, and ``dequeue``, which returns the value that came first.

    A ``dequeue`` that returns ``None`` found the queue empty.
    """
    first = tuple(initial)
    return _model("queue", first, _queue, _QUEUE, shortcut=no_shortcut if first else of_queue)


def unordered_queue(initial: Iterable[Any] = ()) -> Model:
    """Return a queue without order: ``dequeue`` returns any value that is in it, or ``None``."""
    first = tuple(sorted(initial, key=_order))
    shortcut = no_shortcut if first else of_unordered
    return _model("unordered-queue", first, _unordered, _UNORDERED, shortcut=shortcut)


def stack(initial: Iterable[Any] = ()) -> Model:
    """Return a stack: ``push v``, and ``pop``, which returns the value that came last.

    A ``pop`` that returns ``None`` found the stack empty.
    """
    first = tuple(initial)
    return _model("stack", first, _stack, _STACK, shortcut=no_shortcut if first else of_stack)


def set_(initial: Iterable[Any] = ()) -> Model:
    """Return a set: ``add v``, ``remove v``, ``contains v``, and ``read`` of all values.

    ``add`` and ``remove`` return nothing, or whether they changed the set: ``True`` or ``False``.
    """
    first: tuple[Any, ...] = ()
    for value in initial:
        first = _with(first, value)
    shortcut = no_shortcut if first else of_set
    return _model("set", first, _set, _SET, reads={"contains", "read"}, shortcut=shortcut)


def mutex(initial: bool = False) -> Model:
    """Return a lock: ``acquire`` and ``release``, which return a truth value.

    ``False`` means that the lock was held, or was free. As in Knossos, it does not matter which
    client releases it. ``initial`` says whether the lock is held at first.
    """
    return _model("mutex", bool(initial), _mutex, _MUTEX)


def append_list(initial: Iterable[Any] = ()) -> Model:
    """Return a list: ``append v``, and ``read``, which returns all values in their order."""
    first = tuple(initial)
    shortcut = no_shortcut if first else of_list
    return _model("list", first, _list, _LIST, reads={"read"}, shortcut=shortcut)


READY: Final[Mapping[str, Callable[..., Model]]] = {
    "register": register,
    "counter": counter,
    "queue": queue,
    "unordered-queue": unordered_queue,
    "stack": stack,
    "set": set_,
    "mutex": mutex,
    "list": append_list,
}
"""The models, by their names on the command line."""


# --- what the functions do ---


def _register(state: Any, call: ObjectCall) -> Sequence[Any]:
    match call.f:
        case "write" | "put":
            return (call.input,)
        case "cas":
            old, new = call.input
            equal = same(state, old)
            return (new if equal else state,) if _succeeded(call, equal) else ()
    return (state,) if call.returned(state) else ()


def _counter(state: int, call: ObjectCall) -> Sequence[int]:
    match call.f:
        case "add":
            return (state + call.input,)
        case "increment" | "decrement":
            after = state + (1 if call.f == "increment" else -1)
            silent = call.output is None or call.output is True
            return (after,) if silent or call.returned(after) else ()
    return (state,) if call.returned(state) else ()


def _queue(state: tuple[Any, ...], call: ObjectCall) -> Sequence[tuple[Any, ...]]:
    if call.f == "enqueue":
        return ((*state, call.input),)
    if not state:
        return (state,) if call.returned(None) else ()
    return (state[1:],) if call.returned(state[0]) else ()


def _unordered(state: tuple[Any, ...], call: ObjectCall) -> Sequence[tuple[Any, ...]]:
    if call.f == "enqueue":
        at = bisect_left(state, _order(call.input), key=_order)
        return ((*state[:at], call.input, *state[at:]),)
    if not state:
        return (state,) if call.returned(None) else ()
    return [
        (*state[:at], *state[at + 1 :])
        for at, value in enumerate(state)
        if call.returned(value) and not (at and same(state[at - 1], value))
    ]


def _stack(state: tuple[Any, ...], call: ObjectCall) -> Sequence[tuple[Any, ...]]:
    if call.f == "push":
        return ((*state, call.input),)
    if not state:
        return (state,) if call.returned(None) else ()
    return (state[:-1],) if call.returned(state[-1]) else ()


def _set(state: tuple[Any, ...], call: ObjectCall) -> Sequence[tuple[Any, ...]]:
    if call.f == "read":
        if call.output is UNKNOWN:
            return (state,)
        seen = sorted(call.output or (), key=_order)
        return (state,) if same(seen, state) else ()
    contained = _contains(state, call.input)
    match call.f:
        case "contains":
            return (state,) if call.returned(contained) else ()
        case "add":
            return (_with(state, call.input),) if _changed(call, not contained) else ()
    if not _changed(call, contained):
        return ()
    return (tuple(v for v in state if not same(v, call.input)) if contained else state,)


def _mutex(state: bool, call: ObjectCall) -> Sequence[bool]:
    acquires = call.f == "acquire"
    possible = state is not acquires
    return (acquires if possible else state,) if _succeeded(call, possible) else ()


def _list(state: tuple[Any, ...], call: ObjectCall) -> Sequence[tuple[Any, ...]]:
    if call.f == "append":
        return ((*state, call.input),)
    return (state,) if call.returned(state) or (call.output is None and not state) else ()


def _succeeded(call: ObjectCall, possible: bool) -> bool:
    """Return whether an operation that succeeds if it is possible had this result, or may have."""
    return call.output is UNKNOWN or (call.output is not False) == possible


def _changed(call: ObjectCall, changes: bool) -> bool:
    """Return whether an operation that may say whether it changed the state agrees with it."""
    return not isinstance(call.output, bool) or call.output == changes


def _order(value: object) -> tuple[int, Any]:
    return encode(value, "the model")


def _contains(state: tuple[Any, ...], value: object) -> bool:
    at = bisect_left(state, _order(value), key=_order)
    return at < len(state) and same(state[at], value)


def _with(state: tuple[Any, ...], value: object) -> tuple[Any, ...]:
    at = bisect_left(state, _order(value), key=_order)
    if at < len(state) and same(state[at], value):
        return state
    return (*state[:at], value, *state[at:])


# --- what the functions take and return ---

_Check = Callable[[ObjectCall], object]


def _nothing(call: ObjectCall) -> None:
    if call.input is not None:
        raise ValueError(f"takes no argument (got {preview(call.input)})")


def _silent(call: ObjectCall) -> None:
    """Accept a result that says nothing."""
    if not (_is_silent(call) or same(call.output, call.input)):
        got = preview(call.output)
        raise ValueError(f"returns nothing (got {got}, expected nil or the argument)")


def _is_silent(call: ObjectCall) -> bool:
    return call.output is None or call.output is True or call.output is UNKNOWN


def _pair(call: ObjectCall) -> None:
    if not isinstance(call.input, tuple | list) or len(call.input) != 2:
        raise ValueError(f"takes a pair (got {preview(call.input)}, expected (old, new))")
    _truth(call)


def _truth(call: ObjectCall) -> None:
    if not (_is_silent(call) or call.output is False or same(call.output, call.input)):
        raise ValueError(f"returns a truth value (got {preview(call.output)})")


def _number(call: ObjectCall) -> None:
    if type(call.input) is not int:
        raise ValueError(f"takes an integer (got {preview(call.input)})")
    _silent(call)


def _count(call: ObjectCall) -> None:
    _nothing(call)
    if not (_is_silent(call) or type(call.output) is int):
        raise ValueError(f"returns nothing or an integer (got {preview(call.output)})")


def _ordered(call: ObjectCall) -> None:
    _order(call.input)
    _silent(call)


def _change(call: ObjectCall) -> None:
    _order(call.input)
    if call.output is not False:
        _silent(call)


def _membership(call: ObjectCall) -> None:
    _order(call.input)
    if call.output is not UNKNOWN and not isinstance(call.output, bool):
        raise ValueError(f"returns a truth value (got {preview(call.output)})")


def _collection(call: ObjectCall) -> None:
    _nothing(call)
    if call.output is UNKNOWN or call.output is None:
        return
    if not isinstance(call.output, tuple | list | set | frozenset):
        raise ValueError(f"returns a collection (got {preview(call.output)})")
    for value in call.output:
        _order(value)


_REGISTER: Final[Mapping[str, _Check]] = {
    "read": _nothing, "write": _silent, "cas": _pair, "get": _nothing, "put": _silent,
}  # fmt: skip
_COUNTER: Final[Mapping[str, _Check]] = {
    "read": _nothing, "add": _number, "increment": _count, "decrement": _count,
}  # fmt: skip
_QUEUE: Final[Mapping[str, _Check]] = {"enqueue": _silent, "dequeue": _nothing}
_UNORDERED: Final[Mapping[str, _Check]] = {"enqueue": _ordered, "dequeue": _nothing}
_STACK: Final[Mapping[str, _Check]] = {"push": _silent, "pop": _nothing}
_SET: Final[Mapping[str, _Check]] = {
    "add": _change, "remove": _change, "contains": _membership, "read": _collection,
}  # fmt: skip
_MUTEX: Final[Mapping[str, _Check]] = {"acquire": _truth, "release": _truth}
_LIST: Final[Mapping[str, _Check]] = {"append": _silent, "read": _nothing}


def _model(
    name: str,
    initial: Any,
    step: Callable[[Any, ObjectCall], Sequence[Any]],
    functions: Mapping[str, _Check],
    *,
    reads: Collection[str] = (),
    shortcut: Callable[[Sequence[Operation]], Shortcut] = no_shortcut,
) -> Model:
    def accept(call: ObjectCall) -> None:
        if call.f not in functions:
            details = unknown_name_details(call.f, list(functions))
            raise ValueError(f"the model has no such function {details}")
        functions[call.f](call)

    def observes(call: ObjectCall) -> bool:
        return call.f in reads

    return Model(initial, step, name=name, accept=accept, observes=observes, shortcut=shortcut)
