"""The formats that can be read, by the names that ``--from`` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.history.readers import awdit, cobra, dbcop, jepsen, plume, viper
from isolang.history.readers.reading import Reading


class Format(Struct, frozen=True, kw_only=True):
    """A format.

    Attributes:
        name: as ``--from`` takes it.
        title: what it is, for lists and messages.
        read: its reader: of files, with ``timeout=`` in seconds (0 is none), to a :class:`Reading`.
        log_prefix: how the names of its files start, where a directory of log files is one history.
    """

    name: str
    title: str
    read: Callable[..., Reading]
    log_prefix: str = ""


FORMATS: Final = {
    f.name: f
    for f in (
        Format(name="edn", title="Jepsen/Elle operations in EDN", read=jepsen.read),
        Format(name="jepsen-json", title="Jepsen/Elle operations in JSON", read=jepsen.read),
        Format(name="dbcop", title="dbcop bincode", read=dbcop.read_bincode),
        Format(name="dbcop-json", title="dbcop JSON", read=dbcop.read_json),
        Format(name="hist", title="dbcop .hist text", read=dbcop.read_hist),
        Format(name="cobra", title="Cobra client logs T*.log", read=cobra.read, log_prefix="T"),
        Format(name="viper", title="Viper JSON logs J*.log", read=viper.read, log_prefix="J"),
        Format(name="plume", title="Plume, PolySI and IsoVista text", read=plume.read),
        Format(name="awdit", title="AWDIT text", read=awdit.read),
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
