"""The options of a check, each declared once: its name, type, default, bounds, and what it means.

``isolang.check`` takes them by name, the command line as ``--name``, and ``pyproject.toml`` as
keys; all of them fill the records here, which everything else passes on whole.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_type_hints

from msgspec import Meta, Struct

from isolang.errors import OptionError
from isolang.machine import processors

LIMITS: Final = "Limits"
DECIDING: Final = "How it is decided"
READING: Final = "How a history is read"

_LONGEST: Final = 100_000_000  # seconds, three years: what every solver's clock can hold
_LARGEST: Final = 1_000_000_000  # megabytes
_PER_THREAD: Final = 100  # megabytes of a limit: its stack counts

FailedCas: TypeAlias = Literal["auto", "compared", "nothing"]
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {"failed_cas": get_args(FailedCas)}


def _about(text: str, metavar: str = "", panel: str = "", flag: str = "", **bounds: Any) -> Any:
    """What an option means, and how help shows it."""
    return Meta(
        description=text, extra={"metavar": metavar, "panel": panel, "flag": flag}, **bounds
    )


class _Checked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record that refuses values outside the bounds of its options."""

    def __post_init__(self) -> None:
        for name, meta in described(type(self)).items():
            _check(name, getattr(self, name), meta)
        for name, taken in _WORDS.items():
            if getattr(self, name, taken[0]) not in taken:
                expected = ", ".join(taken[:-1])
                raise OptionError(
                    f"{name}: expected {expected} or {taken[-1]} (got {getattr(self, name)!r})"
                )


class ReadOptions(_Checked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a history is read.

    Raises:
        OptionError: a value is out of bounds.
    """

    format: Annotated[
        str,
        _about(
            "The histories' format; by default found out from their content.",
            "FORMAT",
            READING,
            "--from",
        ),
    ] = "auto"
    timestamps: Annotated[bool, _about("Cobra logs have timestamps.", "", READING)] = False
    initial: (
        Annotated[
            int,
            _about(
                "Transaction N is the initial one.", "N", READING, ge=-(1 << 63), le=(1 << 63) - 1
            ),
        ]
        | None
    ) = None
    per_key: Annotated[
        bool, _about("Sessions order operations on the same key only.", "", READING)
    ] = False
    failed_cas: Annotated[
        FailedCas,
        _about(
            "A :cas that failed saw another value, or says nothing; by default by the format.",
            "WHAT",
            READING,
        ),
    ] = "auto"
    clock_error: Annotated[
        str,
        _about(
            "How much two clocks may differ (2ms), or each session's be off (a=2ms,b=1ms).",
            "TIME",
            READING,
        ),
    ] = ""

    def said(self) -> dict[str, Any]:
        """What else than the format is not as by default: what it takes to read a history again."""
        plain = ReadOptions()
        return {
            name: value
            for name in self.__struct_fields__
            if name != "format" and (value := getattr(self, name)) != getattr(plain, name)
        }


class Options(_Checked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to check: what a user can choose that changes no verdict.

    Raises:
        OptionError: a value is out of bounds.
    """

    timeout: (
        Annotated[
            float,
            _about(
                "Seconds for each verdict, all phases together.", "S", LIMITS, gt=0, le=_LONGEST
            ),
        ]
        | None
    ) = None
    memory: (
        Annotated[
            float,
            _about(
                "Megabytes for all phases; the searches end before they hold half of it.",
                "MB",
                LIMITS,
                gt=0,
                le=_LARGEST,
            ),
        ]
        | None
    ) = None
    threads: (
        Annotated[
            int,
            _about(
                "How many may work on one history; by default one for each processor, up to 8.",
                "N",
                LIMITS,
                ge=1,
                le=256,
            ),
        ]
        | None
    ) = None
    certify: Annotated[
        bool, _about("Have an independent checker accept each verdict.", "", DECIDING)
    ] = True
    seed: Annotated[
        int,
        _about("Breaks ties; equal seeds give equal runs.", "N", DECIDING, ge=0, le=(1 << 63) - 1),
    ] = 0
    solver: Annotated[
        str, _about("What decides; sat:NAME and pysmt:NAME name one of theirs.", "NAME", DECIDING)
    ] = "auto"
    encoding: Annotated[str, _about("How the problem is put to it.", "NAME", DECIDING)] = "auto"
    prune: Annotated[str, _about("What is concluded before.", "STAGE", DECIDING)] = "auto"

    def search_bytes(self) -> int:
        """What the searches may hold: half of the memory, and never more than a gibibyte."""
        most = 1 << 30
        return most if self.memory is None else min(most, int(self.memory * 1e6 / 2))

    def thread_count(self) -> int:
        """How many threads may work on one history."""
        wanted = processors() if self.threads is None else self.threads
        if self.memory is None:
            return wanted
        return max(1, min(wanted, int(self.memory / _PER_THREAD)))


def described(record: type[Struct]) -> Mapping[str, Meta]:
    """What each option of a record means, by name."""
    if record not in _DESCRIBED:
        hints = get_type_hints(record, include_extras=True)
        found = {name: _meta(hint) for name, hint in hints.items()}
        _DESCRIBED[record] = {name: meta for name, meta in found.items() if meta is not None}
    return _DESCRIBED[record]


_DESCRIBED: Final[dict[type[Struct], dict[str, Meta]]] = {}


def _meta(hint: Any) -> Meta | None:
    for part in (hint, *get_args(hint)):
        for meta in getattr(part, "__metadata__", ()):
            if isinstance(meta, Meta):
                return meta
    return None


def _check(name: str, value: Any, meta: Any) -> None:
    """See that a number is one, and within its bounds.

    Raises:
        OptionError: it is not.
    """
    low = meta.gt if meta.gt is not None else meta.ge
    if low is None or value is None:
        return
    whole = meta.gt is None
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        number = "a whole number" if whole else "a number"
        raise OptionError(f"{name}: expected {number} (got {value!r})")
    bounds: tuple[Any, Any] = (value, low)
    if (operator.ge if whole else operator.gt)(*bounds):
        if value <= meta.le:
            return
        hint = "; leave it out for no limit" if name in ("timeout", "memory") else ""
        raise OptionError(f"{name} must be at most {meta.le:,} (got {value}){hint}")
    expected = f"at least {low}" if whole else "positive"
    raise OptionError(f"{name} must be {expected} (got {value})")
