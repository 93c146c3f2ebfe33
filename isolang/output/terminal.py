r"""Prints all output, and escapes the characters that a terminal would hide or obey.

Keys, values, labels, file names and messages come from untrusted histories and specifications. A
terminal would obey the control characters in them, and bidirectional characters would reorder the
text on the screen; each is printed as its escape, such as ``\x1b``.
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
# of text or have no width, tags, and halves of characters, which file names have that are not
# UTF-8.
_HIDDEN: Final = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff"
)
_IN_A_LINE: Final = re.compile(f"[{_HIDDEN}]")
_IN_LINES: Final = re.compile(f"(?!\n)[{_HIDDEN}]")


def escaped(text: str, *, lines: bool = False) -> str:
    r"""Return a text in which the characters that a terminal would hide or obey are escaped.

    Args:
        text: the text to print.
        lines: whether to keep line breaks, which are otherwise escaped, too.

    >>> escaped("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    return (_IN_LINES if lines else _IN_A_LINE).sub(_escape_character, text)


def _escape_character(match: re.Match[str]) -> str:
    number = ord(match[0])
    if match[0] in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[match[0]]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def escaped_record(value: Any) -> Any:
    """Return a record, or a value in a record, with all its texts escaped."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Struct):
        fields = value.__struct_fields__
        return replace(value, **{name: escaped_record(getattr(value, name)) for name in fields})
    if isinstance(value, dict):
        return {escaped_record(key): escaped_record(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(escaped_record(item) for item in value)
    return value


def print_lines(*lines: str) -> None:
    """Print lines for people on the standard output, where each text may have several lines."""
    _write(sys.stdout, lines)


def warn(*lines: str) -> None:
    """Print lines for people on the standard error output, and ignore a closed stream."""
    with suppress(BrokenPipeError):
        _write(sys.stderr, lines)


def _write(stream: IO[str], lines: Iterable[str]) -> None:
    for line in lines:
        stream.write(escaped(line, lines=True) + "\n")


def print_data(text: str) -> None:
    """Print text for programs on the standard output, such as JSON or the content of a file."""
    sys.stdout.write(text)
    sys.stdout.flush()


_COLOR: Final = {"choice": "auto"}


def use_color(choice: str) -> None:
    """Set whether output is coloured: ``always``, ``never``, or only on terminals (``auto``).

    ``auto`` obeys the environment variables ``NO_COLOR`` and ``FORCE_COLOR``.
    """
    _COLOR["choice"] = choice


def console(stream: IO[str]) -> Sheet:
    """Return a sheet with the width of the terminal, coloured as :func:`use_color` has set.

    The caller passes only :func:`escaped` text to it.
    """
    return sheet(stream, _COLOR["choice"])


# --- the streams themselves ---


def open_streams() -> None:
    """Reopen closed standard streams, and make streams escape characters that they cannot encode.

    A stream that the caller closed (``>&-``) becomes the null device, because otherwise a file that
    is opened later would take its place. It is opened for writing only: a closed input must not
    read as an empty history.
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
    """Send all further output to the null device, because the reader has closed the pipe."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
