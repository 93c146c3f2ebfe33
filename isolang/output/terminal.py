r"""Prints all output, escaping characters that a terminal would hide or obey.

Keys, values, labels, file names and messages come from histories and specifications that may be
malicious. A terminal would obey their control characters, and bidirectional characters would
reorder the text on the screen. Each such character is printed as an escape such as ``\x1b``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final

from isolang.patterns import pattern

if TYPE_CHECKING:
    from isolang.output.layout import Sheet

# Control characters (C0, DEL, C1), Unicode's line separators, marks that change the text direction
# or have no width, tags, and surrogates, which stand for file-name bytes that are not UTF-8.
_HIDDEN: Final = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff"
)
_IN_A_LINE: Final = pattern(f"[{_HIDDEN}]")
_IN_LINES: Final = pattern(f"(?!\n)[{_HIDDEN}]")
# In JSON: a byte that is not printable ASCII, or a backslash that may begin an escape.
_UNUSUAL: Final = pattern(rb'[^ -~]|\\[^"\\]')


def escaped(text: str, *, lines: bool = False) -> str:
    r"""Return a text with all characters escaped that a terminal would hide or obey.

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
    """Return a record with all texts escaped; the same record if no text needs that."""
    from msgspec import json

    # Most records have nothing to escape. Encoding one is much faster than copying it.
    with suppress(UnicodeEncodeError):
        if not _UNUSUAL.search(json.encode(value)):
            return value
    return _escaped(value)


def _escaped(value: Any) -> Any:
    from msgspec import Struct
    from msgspec.structs import replace

    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Struct):
        fields = value.__struct_fields__
        return replace(value, **{name: _escaped(getattr(value, name)) for name in fields})
    if isinstance(value, dict):
        return {_escaped(key): _escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_escaped(item) for item in value)
    return value


def print_lines(*lines: str) -> None:
    """Print texts for people, each with one or more lines, on standard output."""
    _write(sys.stdout, lines)


def warn(*lines: str) -> None:
    """Print texts for people on standard error; if it is closed, do nothing."""
    with suppress(BrokenPipeError):
        _write(sys.stderr, lines)


def _write(stream: IO[str], lines: Iterable[str]) -> None:
    for line in lines:
        stream.write(escaped(line, lines=True) + "\n")


def print_data(text: str) -> None:
    """Print text for programs, such as JSON or the content of a file, on standard output."""
    sys.stdout.write(text)
    sys.stdout.flush()


_COLOR: Final = {"choice": "auto"}


def use_color(choice: str) -> None:
    """Set whether to use colours: ``always``, ``never``, or ``auto``.

    With ``auto``, output has colours on terminals, unless the environment variable ``NO_COLOR`` or
    ``FORCE_COLOR`` says otherwise.
    """
    _COLOR["choice"] = choice


def console(stream: IO[str]) -> Sheet:
    """Return a sheet that writes to a stream, with colours as set by :func:`use_color`.

    The caller must pass only :func:`escaped` text to the sheet.
    """
    from isolang.output.layout import sheet

    return sheet(stream, _COLOR["choice"])


# --- the streams themselves ---


def open_streams() -> None:
    """Reopen closed standard streams, and make streams escape characters that they cannot encode.

    If the caller closed a stream (``>&-``), it becomes the null device; otherwise a file opened
    later would take its place. The null device is opened only for writing, because a closed
    standard input must not be read as an empty history.
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
    """Send all further output to the null device once its reader has closed the pipe."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
