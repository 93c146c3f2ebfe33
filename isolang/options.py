"""The options of a check, each declared once: its name, type, default, bounds, and what it means.

``isolang.check`` takes them by name, the command line as ``--name``, and ``pyproject.toml`` as
keys; all of them fill the records here, which everything else passes on whole.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from isolang.declared import SEED, About, Checked
from isolang.errors import OptionError
from isolang.machine import processors

LIMITS: Final = "Limits"
DECIDING: Final = "How it is decided"
READING: Final = "How a history is read"

LONGEST: Final = 100_000_000
"""Seconds, three years: what every solver's clock can hold."""
_LARGEST: Final = 1_000_000_000  # megabytes
_PER_THREAD: Final = 100  # megabytes of a limit: its stack counts
_NO_LIMIT: Final = "; leave it out for no limit"

FailedCas: TypeAlias = Literal["auto", "compared", "nothing"]


class ReadOptions(Checked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a history is read.

    Raises:
        OptionError: a value is out of bounds.
    """

    format: Annotated[
        str,
        About(
            "The histories' format; by default found out from their content.",
            "FORMAT",
            READING,
            "--from",
        ),
    ] = "auto"
    timestamps: Annotated[bool, About("Cobra logs have timestamps.", "", READING)] = False
    initial: Annotated[
        int | None,
        About(
            "Transaction N is the initial one.", "N", READING, bounds=(-(1 << 63), (1 << 63) - 1)
        ),
    ] = None
    initial_value: Annotated[
        tuple[str, ...],
        About(
            "What all keys (V), or one (KEY=V), held before the history begins, instead of nil.",
            "V",
            READING,
        ),
    ] = ()
    unwritten_initial: Annotated[
        bool,
        About(
            "What was read and nobody wrote was there before: at most one value of a key.",
            "",
            READING,
        ),
    ] = False
    per_key: Annotated[
        bool, About("Sessions order operations on the same key only.", "", READING)
    ] = False
    failed_cas: Annotated[
        FailedCas,
        About(
            "A :cas that failed saw another value, or says nothing; by default by the format.",
            "WHAT",
            READING,
        ),
    ] = "auto"
    ignore_versions: Annotated[
        bool, About("Judge values alone, whatever versions operations state.", "", READING)
    ] = False
    clock_error: Annotated[
        str,
        About(
            "How much two clocks may differ (2ms), or each session's be off (a=2ms,b=1ms).",
            "TIME",
            READING,
        ),
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.initial_value and self.unwritten_initial:
            raise OptionError(
                "initial-value and unwritten-initial: what was there before is said, or taken from "
                "what was read (expected one of the two)"
            )

    def said(self) -> dict[str, Any]:
        """What else than the format is not as by default: what it takes to read a history again."""
        plain = ReadOptions()
        return {
            name: value
            for name in self.__struct_fields__
            if name != "format" and (value := getattr(self, name)) != getattr(plain, name)
        }


class Options(Checked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to check: what a user can choose that changes no verdict.

    Raises:
        OptionError: a value is out of bounds.
    """

    timeout: Annotated[
        float | None,
        About(
            "Seconds for each verdict, all phases together.",
            "S",
            LIMITS,
            bounds=(0, LONGEST),
            above=True,
            hint=_NO_LIMIT,
        ),
    ] = None
    memory: Annotated[
        float | None,
        About(
            "Megabytes for all phases; the searches end before they hold half of it.",
            "MB",
            LIMITS,
            bounds=(0, _LARGEST),
            above=True,
            hint=_NO_LIMIT,
        ),
    ] = None
    threads: Annotated[
        int | None,
        About(
            "How many may work on one history; by default one for each processor, up to 8.",
            "N",
            LIMITS,
            bounds=(1, 256),
        ),
    ] = None
    certify: Annotated[
        bool, About("Have an independent checker accept each verdict.", "", DECIDING)
    ] = True
    seed: Annotated[
        int, About("Breaks ties; equal seeds give equal runs.", "N", DECIDING, bounds=SEED)
    ] = 0
    solver: Annotated[
        str, About("What decides; sat:NAME and pysmt:NAME name one of theirs.", "NAME", DECIDING)
    ] = "auto"
    encoding: Annotated[str, About("How the problem is put to it.", "NAME", DECIDING)] = "auto"
    prune: Annotated[str, About("What is concluded before.", "STAGE", DECIDING)] = "auto"

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
