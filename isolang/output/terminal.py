r"""What people see: all output for them is made here visible, and written.

Keys, values, labels, file names and messages come from histories and specifications that somebody
else wrote. A terminal would obey the control characters in them, and bidirectional ones would show
a text in another order than it has; here each becomes its escape, such as ``\x1b``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.output.layout import Sheet, sheet

# Control characters (C0, DEL, C1), the line separators of Unicode, marks that change the direction
# of text or have no width, tags, and halves of characters (file names that are not UTF-8).
_HIDDEN: Final = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff"
)
_IN_A_LINE: Final = re.compile(f"[{_HIDDEN}]")
_IN_LINES: Final = re.compile(f"(?!\n)[{_HIDDEN}]")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Escape what a terminal would not show.

    Args:
        text: to be shown.
        lines: it has several lines on purpose; else a line break is escaped, too.

    >>> visible("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    return (_IN_LINES if lines else _IN_A_LINE).sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    if match[0] in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[match[0]]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def visible_record(value: Any) -> Any:
    """A record, or what is in one, with all its texts made visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Struct):
        fields = value.__struct_fields__
        return replace(value, **{name: visible_record(getattr(value, name)) for name in fields})
    if isinstance(value, dict):
        return {visible_record(key): visible_record(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(visible_record(item) for item in value)
    return value


def say(*lines: str) -> None:
    """Print to people, on the standard output; each text may have several lines."""
    _write(sys.stdout, lines)


def complain(*lines: str) -> None:
    """Print to people, on the standard error output; that nobody reads it is no error."""
    with suppress(BrokenPipeError):
        _write(sys.stderr, lines)


def _write(stream: IO[str], lines: Iterable[str]) -> None:
    for line in lines:
        stream.write(visible(line, lines=True) + "\n")


def data(text: str) -> None:
    """Print to programs, on the standard output: JSON, and files."""
    sys.stdout.write(text)
    sys.stdout.flush()


_COLOR: Final = {"choice": "auto"}


def use_color(choice: str) -> None:
    """Have what is printed coloured ``always``, ``never``, or on terminals (``auto``).

    ``auto`` obeys the variables ``NO_COLOR`` and ``FORCE_COLOR``.
    """
    _COLOR["choice"] = choice


def console(stream: IO[str]) -> Sheet:
    """What reports are written with: as wide as the terminal, and coloured as `use_color` says.

    What it is given to print is :func:`visible` already.
    """
    return sheet(stream, _COLOR["choice"])


# --- the streams themselves ---


def open_streams() -> None:
    """Open what was closed, and let no character stop a report.

    A stream that the caller closed (``>&-``) is the null device, so that no file is opened in its
    place. What is closed cannot be read, either: it is no empty history.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            while os.open(os.devnull, os.O_WRONLY) < number:
                pass
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def forget_stdout() -> None:
    """Nobody reads on: what is still to be written goes nowhere."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
