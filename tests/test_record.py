"""Records behave as frozen dataclasses with slots do, but for what their module says."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, ClassVar

import pytest

from isolang.record import as_dict, fields, is_record, record, replace


@record
class Point:
    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    seen: list[int] = field(default_factory=list, repr=False, compare=False)

    @property
    def sum(self) -> int:
        return self.x + self.y


@record(kw_only=True)
class Named(Point):
    name: str


@record
class Empty: ...


@record(eq=False)
class Single:
    x: int


@record
class Positive:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(self.x)


def _shape(make: Callable[[type], type]) -> list[Any]:
    """What can be seen of a class, and of what it makes, however it was made."""

    class Plain:
        a: int
        b: tuple[int, ...] = ()

    base: Any = make(Plain)

    class Shape(base):
        c: str = field(default="c", compare=False)
        d: dict[str, int] = field(default_factory=dict, repr=False)

    Shape.__qualname__ = "Shape"
    made = make(Shape)
    one, other = made(1, d={"x": 1}), made(1, (2,), "other")
    seen: list[Any] = [repr(one), repr(other), one == other, one == made(1, d={"x": 1}, c="d")]
    seen += [one != other, one == base(1), one.__class__ is made, one.b, one.c, one.d]
    seen += [hash(base(1)) == hash(base(1)), base(1) == base(2), other.b, other.c, other.d]
    seen += [made.__match_args__, made.__slots__]
    for attempt in (
        lambda: setattr(one, "a", 2),
        lambda: delattr(one, "a"),
        made,
        lambda: made(1, (), "c", {}, 5),
        lambda: made(1, e=1),
        lambda: hash(one),
    ):
        with pytest.raises((FrozenInstanceError, TypeError)) as error:
            attempt()
        seen.append((error.type, str(error.value).replace("test_record.", "")))
    return seen


def test_it_is_what_the_standard_decorator_makes() -> None:
    assert _shape(record) == _shape(dataclass(frozen=True, slots=True))


def test_fields_of_the_base_come_first_and_those_by_name_are_by_name() -> None:
    assert fields(Named) == ("x", "y", "seen", "name") == fields(Named(1, name="n"))
    assert Named(1, 3, name="n").sum == 4
    assert Named.kind == "point"
    with pytest.raises(TypeError):
        Named(1, 2, [], "n")  # type: ignore[misc]
    with pytest.raises(TypeError):
        Named(1)  # type: ignore[call-arg]
    match Named(5, name="n"):
        case Named(x, y, name=name):
            assert (x, y, name) == (5, 2, "n")


def test_a_field_without_a_default_after_one_with() -> None:
    with pytest.raises(TypeError, match="Wrong"):

        @record
        class Wrong:
            x: int = 1
            y: int  # type: ignore[misc]


@pytest.mark.parametrize("said", [{"init": False}, {"hash": True}, {"kw_only": True}])
def test_what_no_record_does(said: dict[str, bool]) -> None:
    with pytest.raises(TypeError, match=r"Wrong\.x"):

        @record
        class Wrong:
            x: int = field(default=1, **said)  # type: ignore[call-overload]


def test_a_new_list_for_each() -> None:
    one, other = Point(1), Point(1)
    one.seen.append(1)
    assert not other.seen
    assert one == other
    assert "seen" not in repr(one)


def test_changes() -> None:
    one = Named(1, name="n")
    assert replace(one, x=4) == Named(4, name="n")
    assert as_dict(replace(one, name="m")) == {"x": 1, "y": 2, "seen": [], "name": "m"}
    with pytest.raises(TypeError):
        replace(one, z=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="-1"):
        replace(Positive(1), x=-1)


def test_the_functions_of_dataclasses_take_records() -> None:
    one = Named(1, name="n")
    assert dataclasses.is_dataclass(one)
    assert dataclasses.is_dataclass(Named)
    assert dataclasses.replace(one, x=4) == Named(4, name="n")
    assert [f.name for f in dataclasses.fields(one)] == ["x", "y", "seen", "name"]
    assert dataclasses.asdict(one) == {"x": 1, "y": 2, "seen": [], "name": "n"}
    with pytest.raises(TypeError):
        dataclasses.replace(one, z=1)  # type: ignore[call-arg]


def test_copies_and_pickles() -> None:
    one = Named(1, 2, [3], name="n")
    assert pickle.loads(pickle.dumps(one)) == one
    assert pickle.loads(pickle.dumps(one)).seen == [3]
    assert copy.copy(one).seen is one.seen
    assert copy.deepcopy(one).seen is not one.seen
    assert pickle.loads(pickle.dumps(Empty())) == Empty()


def test_nothing_else_can_be_set() -> None:
    with pytest.raises(FrozenInstanceError):
        Point(1).z = 1  # type: ignore[attr-defined]


def test_no_fields_and_no_comparison() -> None:
    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert repr(Empty()) == "Empty()"
    assert Single(1) != Single(1)
    one = Single(1)
    assert {one: 1}[one] == 1


def test_own_methods_stay() -> None:
    @record
    class Own:
        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == Own(2)
    assert hash(Own(1)) == 7
    assert repr(Own(1)) == "own"


def test_what_is_a_record() -> None:
    assert is_record(Point)
    assert is_record(Point(1))
    assert not is_record(1)
    with pytest.raises(AttributeError):
        fields(1)
