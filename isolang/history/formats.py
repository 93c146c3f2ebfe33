"""The formats that can be read, by the names that ``--from`` takes."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from isolang.errors import HistoryError


class Format(Struct, frozen=True, kw_only=True):
    """A format.

    Attributes:
        name: as ``--from`` takes it.
        title: what it is, for lists and messages.
        logs: whether a directory of log files is one history.
        log_prefix: how the names of its log files start.
    """

    name: str
    title: str
    logs: bool = False
    log_prefix: str = ""


FORMATS: Final = {
    f.name: f
    for f in (
        Format(name="edn", title="Jepsen/Elle operations in EDN"),
        Format(name="jepsen-json", title="Jepsen/Elle operations in JSON"),
        Format(name="dbcop", title="dbcop bincode"),
        Format(name="dbcop-json", title="dbcop JSON"),
        Format(name="hist", title="dbcop .hist text"),
        Format(name="cobra", title="Cobra client logs T*.log", logs=True, log_prefix="T"),
        Format(name="viper", title="Viper JSON logs J*.log", logs=True, log_prefix="J"),
        Format(name="plume", title="Plume, PolySI and IsoVista text"),
        Format(name="awdit", title="AWDIT text"),
    )
}
ALIASES: Final = {"polysi": "plume", "isovista": "plume", "bincode": "dbcop"}


def list_of_formats() -> str:
    """Give the formats as one line for messages."""
    return ", ".join(FORMATS)


def format_named(name: str) -> Format:
    """Give a format by name or alias.

    Raises:
        HistoryError: if there is none.
    """
    found = FORMATS.get(ALIASES.get(name.lower(), name.lower()))
    if found is None:
        msg = f"unknown history format (got {name!r}, expected auto or one of {list_of_formats()})"
        raise HistoryError(msg)
    return found
