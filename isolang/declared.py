"""Declares command options, each with its name, type, default, bounds and meaning.

If a field of a record has an :class:`About`, the field is an option of each command that takes the
record, and a key of ``pyproject.toml``. The function :func:`command_line` writes a record's values
as a user would type them. Python code creates a record by field names, and passes it on as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from isolang.errors import OptionError

COUNT: Final = (1, (1 << 31) - 1)
"""The bounds of a count that must be at least one."""
NUMBER: Final = (0, (1 << 31) - 1)
"""The bounds of a count that may be zero."""
SHARE: Final = (0.0, 1.0)
"""The bounds of a share, from 0 to 1."""
SEED: Final = (0, (1 << 63) - 1)
"""The bounds of a seed: any non-negative number of up to 63 bits."""

Record = TypeVar("Record", bound=Struct)


class About(Struct, frozen=True):
    """The description of an option: its meaning, and the values it may have.

    Attributes:
        text: the option's help text, a single sentence.
        metavar: the placeholder for the option's value in the help.
        flag: the flag of the option; empty if the flag is ``--`` followed by the field name.
        short: the one-letter flag, with its dash; empty if there is none.
        bounds: the smallest and the largest number allowed; ``None`` for no bounds.
        above: whether the number must be strictly greater than the lower bound.
        hint: the hint in the error message for too large a number.
    """

    text: str
    metavar: str = ""
    panel: str = ""
    flag: str = ""
    short: str = ""
    bounds: tuple[float, float] | None = None
    above: bool = False
    hint: str = ""


class Option(Struct, frozen=True, kw_only=True):
    """An option declared by a field of a record.

    Attributes:
        kind: the type of the value (of each value, if there can be several): ``bool``, ``int``,
            ``float`` or ``str``.
        words: the values that the option may have; empty if any value is allowed.
        default: the default value; ``NODEFAULT`` for a required argument.
    """

    name: str
    about: About
    kind: type
    several: bool
    words: tuple[str, ...]
    default: Any

    @property
    def flag(self) -> str:
        """The flag of the option on the command line."""
        return self.about.flag or f"--{self.name.replace('_', '-')}"

    @property
    def key(self) -> str:
        """The key of the option in a configuration file."""
        return self.flag.lstrip("-")

    def check(self, value: Any, called: str = "") -> None:
        """Check that a value is allowed for the option.

        Args:
            value: the value to check.
            called: the name of the option in the error message; by default the field name.

        Raises:
            OptionError: if the value is not allowed.
        """
        called = called or self.name
        if value is None and self.default is None:
            return
        if self.several:
            if not isinstance(value, list | tuple):
                raise OptionError(f"{called}: not a list (got {value!r}, expected several values)")
            for one in value:
                self._check(one, called)
        else:
            self._check(value, called)

    def _check(self, value: Any, called: str) -> None:
        if self.words and value not in self.words:
            *first, last = self.words
            expected = f"{', '.join(first)} or {last}"
            raise OptionError(f"{called}: wrong value (got {value!r}, expected {expected})")
        abstract, expected = _KINDS[self.kind]
        is_one = isinstance(value, abstract)  # in Python, a bool is also a number
        if not is_one or (isinstance(value, bool) and self.kind is not bool):
            raise OptionError(f"{called}: wrong value (got {value!r}, expected {expected})")
        if self.about.bounds is None:
            return
        low, high = self.about.bounds
        if not (value > low if self.about.above else value >= low):
            least = "positive" if self.about.above and not low else f"at least {low}"
            raise OptionError(f"{called} must be {least} (got {value})")
        if value > high:
            raise OptionError(f"{called} must be at most {high:,} (got {value}){self.about.hint}")


_KINDS: Final[Mapping[type, tuple[type, str]]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a string"),
}


def options_of(record: type[Struct]) -> Mapping[str, Option]:
    """Return, by name, the options declared by a record and the records inside it."""
    if record not in _OPTIONS_OF_RECORDS:
        _OPTIONS_OF_RECORDS[record] = dict(_declared_options(record))
    return _OPTIONS_OF_RECORDS[record]


_OPTIONS_OF_RECORDS: Final[dict[type[Struct], dict[str, Option]]] = {}


def _declared_options(record: type[Struct]) -> Iterator[tuple[str, Option]]:
    hints = get_type_hints(record, include_extras=True)
    for field in fields(record):
        hint = hints[field.name]
        about = next((one for one in get_args(hint) if isinstance(one, About)), None)
        if about is not None:
            hint = _without_none(get_args(hint)[0])
            several, words = get_origin(hint) is tuple, ()
            if several:
                hint = get_args(hint)[0]
            if get_origin(hint) is Literal:
                words, hint = get_args(hint), str
            yield (
                field.name,
                Option(
                    name=field.name,
                    about=about,
                    kind=hint,
                    several=several,
                    words=words,
                    default=field.default,
                ),
            )
        elif (inner := _nested_record(hint)) is not None:
            yield from options_of(inner).items()


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


def _nested_record(hint: Any) -> type[Struct] | None:
    return hint if isinstance(hint, type) and issubclass(hint, Struct) else None


def record_from(record: type[Record], values: Mapping[str, Any]) -> Record:
    """Create a record from values by field name; ``None`` selects the default.

    Records inside the record are also created from these values.

    Raises:
        OptionError: if a value is out of bounds.
    """
    hints = get_type_hints(record)
    own: dict[str, Any] = {}
    for field in fields(record):
        if (inner := _nested_record(hints[field.name])) is not None:
            own[field.name] = record_from(inner, values)
        elif (value := values.get(field.name)) is not None:
            own[field.name] = tuple(value) if isinstance(value, list) else value
    return record(**own)


def command_line(record: Struct) -> list[str]:
    """Return the command-line arguments for the values of a record that are not the defaults."""
    arguments, words = [], []
    for option, value in _values(record):
        if option.default is NODEFAULT:
            arguments.append(str(value))
        elif value == option.default:
            continue
        elif option.kind is bool:
            words.append(option.flag if value else option.flag.replace("--", "--no-"))
        else:
            for one in value if option.several else (value,):
                words += [option.flag, str(one)]
    return [*arguments, *words]


def _values(record: Struct) -> Iterator[tuple[Option, Any]]:
    options = options_of(type(record))
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, Struct):
            yield from _values(value)
        elif field.name in options:
            yield options[field.name], value


class CheckedOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record of options that raises an error if the value of an option is not allowed."""

    def __post_init__(self) -> None:
        for name, option in options_of(type(self)).items():
            if name in self.__struct_fields__:
                option.check(getattr(self, name))
