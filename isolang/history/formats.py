"""The formats that isocheck can read, by the names accepted by ``--from``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from isolang.errors import HistoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolang.history.readers.reading import Files, Reading


class Format(Struct, frozen=True, kw_only=True):
    """A format of history files.

    Attributes:
        reader: the function that reads the format, as ``module:function`` in
            ``isolang.history.readers``; the module is imported when the function is first used.
        log_prefix: for formats whose history is a folder of log files, the prefix of the file
            names; otherwise empty.
        in_pieces: the function that reads the format from a file without holding its text, in the
            form of ``reader``; empty if the reader needs the text as a whole.
    """

    name: str
    title: str
    reader: str
    log_prefix: str = ""
    in_pieces: str = ""

    def read(self, files: Files, **options: Any) -> Reading:
        """Read a history with the format's reader, passing all options to it.

        The ``timeout`` option is in seconds; 0 means no limit.
        """
        reading: Reading = _function(self.reader)(files, **options)
        return reading

    def read_in_pieces(
        self, file: int, name: str, take: Callable[[memoryview], object], *, timeout: float
    ) -> Reading | None:
        """Read a history from an open file without holding its text.

        Args:
            take: a function called with each piece of the file, in their order.

        Returns:
            The reading, or ``None`` if the text has to be read as a whole, for example to describe
            an error.
        """
        if not self.in_pieces:
            return None
        reading: Reading | None = _function(self.in_pieces)(file, name, take, timeout=timeout)
        return reading


def _function(name: str) -> Callable[..., Any]:
    """Return the function ``module:function`` of ``isolang.history.readers``."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(
        import_module(f"isolang.history.readers.{module}"), function
    )
    return found


FORMATS: Final = {
    f.name: f
    for f in (
        Format(
            name="edn",
            title="Jepsen/Elle operations in EDN",
            reader="jepsen:read",
            in_pieces="jepsen:read_in_pieces",
        ),
        Format(name="jepsen-json", title="Jepsen/Elle operations in JSON", reader="jepsen:read"),
        Format(
            name="jepsen",
            title="Jepsen's binary file of a test",
            reader="jepsen_file:read",
        ),
        Format(
            name="registers",
            title="Jepsen, Knossos and Porcupine logs of single operations",
            reader="registers:read",
        ),
        Format(
            name="workload",
            title="Jepsen's bank, set, counter, comments and sequential workloads",
            reader="workloads.read:read",
        ),
        Format(name="dbcop", title="dbcop bincode", reader="dbcop:read_bincode"),
        Format(name="dbcop-json", title="dbcop JSON", reader="dbcop:read_json"),
        Format(name="hist", title="dbcop .hist text", reader="dbcop:read_hist"),
        Format(name="cobra", title="Cobra client logs T*.log", reader="cobra:read", log_prefix="T"),
        Format(name="viper", title="Viper JSON logs J*.log", reader="viper:read", log_prefix="J"),
        Format(
            name="plume",
            title="Plume, PolySI and IsoVista text",
            reader="plume:read",
            in_pieces="plume:read_in_pieces",
        ),
        Format(name="awdit", title="AWDIT text", reader="awdit:read"),
        Format(name="leopard", title="Leopard interval traces in JSON", reader="leopard:read"),
    )
}
# Alternative names for formats, such as the models accepted by the --model option of elle-cli.
ALIASES: Final = {
    "polysi": "plume",
    "isovista": "plume",
    "bincode": "dbcop",
    **dict.fromkeys(("elle-list-append", "list-append", "elle-rw-register", "rw-register"), "edn"),
    **dict.fromkeys(("jepsen-long-fork", "long-fork"), "edn"),
    **dict.fromkeys(
        ("knossos", "knossos-register", "knossos-cas-register", "knossos-mutex", "porcupine"),
        "registers",
    ),
    **dict.fromkeys(("bank", "jepsen-bank", "counter", "jepsen-counter"), "workload"),
    **dict.fromkeys(("set", "jepsen-set", "set-full", "jepsen-set-full"), "workload"),
    **dict.fromkeys(("comments", "sequential"), "workload"),
}

# The workload that each format name selects. Given one of these names, isocheck skips workload
# detection.
WORKLOADS: Final = {
    "bank": "bank",
    "jepsen-bank": "bank",
    "counter": "counter",
    "jepsen-counter": "counter",
    "set": "set",
    "jepsen-set": "set",
    "set-full": "set",
    "jepsen-set-full": "set",
}


def list_format_names() -> str:
    """Return the names of all formats on one line, for messages."""
    return ", ".join(FORMATS)


def find_format(name: str) -> Format:
    """Return the format with this name or alias.

    Raises:
        HistoryError: no format has this name or alias.
    """
    found = FORMATS.get(ALIASES.get(name.lower(), name.lower()))
    if found is None:
        msg = (
            f"unknown history format (got {name!r}, expected auto or one of {list_format_names()})"
        )
        raise HistoryError(msg)
    return found
