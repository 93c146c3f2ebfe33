"""Records: frozen classes of named fields, with slots, that cost little to make.

``@record`` is ``dataclasses.dataclass(frozen=True, slots=True)`` for a process whose start many
classes stand in the way of: the standard decorator compiles half a dozen methods for each class,
0.5 ms in all, which was a quarter of the time of ``isocheck`` on a small history. Here only
``__init__`` is compiled; comparison, hash, ``repr`` and pickling read the fields.

Records cannot be changed or ordered, and of ``dataclasses.field`` they know ``default``,
``default_factory``, ``repr`` and ``compare``. For anything else there are dataclasses. The
functions of ``dataclasses`` take records, too; those below do the same without making a dataclass.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, field, make_dataclass
from inspect import get_annotations
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, dataclass_transform, overload

__all__ = ["as_dict", "fields", "is_record", "record", "replace"]

_T = TypeVar("_T")

# Of each field by name: what is said of it, and whether it is given by name alone.
_Fields: TypeAlias = dict[str, tuple["Field[Any]", bool]]


@overload
def record(cls: type[_T], /) -> type[_T]: ...
@overload
def record(*, kw_only: bool = False, eq: bool = True) -> Callable[[type[_T]], type[_T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[_T] | None = None, /, *, kw_only: bool = False, eq: bool = True) -> Any:
    """Make a frozen class with slots of one that says ``name: type`` or ``name: type = default``.

    The fields of a base that is a record come first.

    Args:
        cls: the class; the decorator is written ``@record``, or with arguments.
        kw_only: whether the fields of this class are given by name alone.
        eq: whether equal fields make equal records; otherwise each is equal to itself alone.

    Raises:
        TypeError: if a field without a default follows one with a default, and both may be given
            by position; or if ``field`` says anything else than what is named above.
    """
    if cls is None:
        return lambda cls: _made(cls, kw_only=kw_only, eq=eq)
    return _made(cls, kw_only=kw_only, eq=eq)


def is_record(value: object) -> bool:
    """Whether this is a record, or a class of records."""
    return hasattr(value, "__record_fields__")


def fields(of: Any) -> tuple[str, ...]:
    """Name the fields of a record, or of a class of records, in their order.

    Raises:
        AttributeError: if it is none.
    """
    return tuple(of.__record_fields__)


def as_dict(of: object) -> dict[str, Any]:
    """Give the fields of a record by name; records in them, in tuples and lists too, likewise."""
    return {name: _plain(getattr(of, name)) for name in fields(of)}


def _plain(value: Any) -> Any:
    if is_record(value):
        return as_dict(value)
    return type(value)(map(_plain, value)) if type(value) in (tuple, list) else value


if TYPE_CHECKING:
    # Does the same; type checkers know it, and look at the changes.
    from dataclasses import replace
else:

    def replace(of: _T, **changes: Any) -> _T:
        """Give a record like this one, with other values for some fields.

        Raises:
            TypeError: if it has no such field.
        """
        return type(of)(**({name: getattr(of, name) for name in fields(of)} | changes))


def _made(cls: type[_T], *, kw_only: bool, eq: bool) -> type[_T]:
    """Build the class anew, for slots must be there when a class is built."""
    body = dict(cls.__dict__)
    own: _Fields = {}
    for name, kind in get_annotations(cls).items():
        if not str(kind).startswith("ClassVar"):
            given = body.pop(name, MISSING)
            said = given if isinstance(given, Field) else field(default=given)
            if not said.init or said.hash is not None or said.kw_only is True or said.metadata:
                raise TypeError(f"{cls.__qualname__}.{name}: {said!r} says what no record does")
            own[name] = said, kw_only
    inherited: _Fields = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= base.__dict__.get("__record_fields__", {})
    every = inherited | own

    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    body["__slots__"] = tuple(name for name in own if name not in inherited)
    body["__record_fields__"] = every
    body["__dataclass_fields__"] = _DataclassFields()
    body["__replace__"] = replace
    body["__match_args__"] = tuple(name for name, (_, by_name) in every.items() if not by_name)
    body["__setattr__"] = _no_assignment
    body["__delattr__"] = _no_deletion
    body["__getstate__"] = _state
    body["__setstate__"] = _restore
    body.setdefault("__repr__", _shown)
    if eq and "__eq__" not in body:
        compared = [name for name, (said, _) in every.items() if said.compare]
        values = attrgetter(*compared) if compared else lambda _: ()
        body["__eq__"] = _equality(values)
        body.setdefault("__hash__", lambda self: hash(values(self)))
    made: Any = type(cls)(cls.__name__, cls.__bases__, body)  # type: ignore[misc]
    made.__qualname__ = cls.__qualname__
    made.__init__ = _initializer(made, every)
    return made  # type: ignore[no-any-return]


class _DataclassFields:
    """What ``dataclasses`` looks for, made when it does."""

    def __get__(self, _: object, cls: Any) -> dict[str, Field[Any]]:
        kinds: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            kinds |= get_annotations(base)
        said = [(name, kinds[name], copy(one)) for name, (one, _) in cls.__record_fields__.items()]
        made: Any = make_dataclass("_", said, kw_only=True)
        return dict(made.__dataclass_fields__)


def _initializer(cls: type, every: _Fields) -> Any:
    """Compile ``__init__``: each field is set by the descriptor of its slot, past the refusal."""
    known: dict[str, Any] = {"missing": MISSING}
    positional: list[str] = ["self"]
    by_name: list[str] = []
    body: list[str] = []
    for name, (said, only_by_name) in every.items():
        known[f"set_{name}"] = getattr(cls, name).__set__
        parameter = value = name
        if said.default is not MISSING:
            known[f"default_{name}"] = said.default
            parameter = f"{name}=default_{name}"
        elif said.default_factory is not MISSING:
            known[f"new_{name}"] = said.default_factory
            parameter = f"{name}=missing"
            value = f"new_{name}() if {name} is missing else {name}"
        (by_name if only_by_name else positional).append(parameter)
        body.append(f" set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *by_name] if by_name else [])])
    try:
        exec("\n".join([f"def __init__({parameters}):", *(body or [" pass"])]), known)
    except SyntaxError as e:
        raise TypeError(f"{cls.__qualname__}: {e.msg}") from None
    init = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _equality(values: Callable[[Any], object]) -> Callable[[Any, object], Any]:
    def equal(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal


def _shown(self: Any) -> str:
    shown = (
        f"{name}={getattr(self, name)!r}"
        for name, (said, _) in self.__record_fields__.items()
        if said.repr
    )
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _no_assignment(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, name) for name in self.__record_fields__]


def _restore(self: Any, state: list[object]) -> None:
    for name, value in zip(self.__record_fields__, state, strict=True):
        object.__setattr__(self, name, value)
