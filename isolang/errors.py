"""Defines this package's errors; a message reads ``where: what (got X, expected Y); hint``."""

from __future__ import annotations

from collections.abc import Collection


def unknown_name_details(name: str, names: Collection[str]) -> str:
    """Return the end of a message about an unknown name, listing the expected names.

    If one of these names is similar, the message suggests it.

    >>> unknown_name_details("paris", ["pairs", "bank"])
    "(got 'paris', expected one of pairs, bank); did you mean 'pairs'?"
    """
    from difflib import get_close_matches

    near = get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"(got {name!r}, expected one of {', '.join(names)}){hint}"


def message_in_one_line(error: BaseException) -> str:
    """Return the message of an error on one line, or its class name if it has no message."""
    return " ".join(str(error).split()) or type(error).__name__


class IsolangError(Exception):
    """The base class of all errors raised deliberately by this package."""


class SpecError(IsolangError):
    """Raised when a ``.iso`` specification is unreadable, ill-sorted or not supported.

    ``str()`` of the error returns the whole message. If the error has a position, the message shows
    the source line and a caret.

    Attributes:
        file: the name of the file, or ``<text>``; empty if the error is not in a file.
        line: the line, numbered from 1; 0 if the error has no position.
        column: the column, numbered from 1; 0 if the error has no position.
        hint: a way to correct the mistake, also contained in the message; empty if there is none.
    """

    def __init__(
        self, message: str, *, file: str = "", line: int = 0, column: int = 0, hint: str = ""
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.column = column
        self.hint = hint


class HistoryError(IsolangError):
    """Raised when a history cannot be read; the message says where and what was expected."""


class UnsupportedError(IsolangError):
    """Raised for well-formed input that this version cannot decide; the verdict is unknown."""


class SolverError(IsolangError):
    """Raised when a solver or an encoding is missing, or when the two do not work together."""


class ModelError(IsolangError):
    """Raised when a model of an object cannot be used, or its functions fail."""


class WorkerError(IsolangError):
    """Raised when a worker process, such as one started by ``check_many``, ended or failed."""


class TargetError(IsolangError):
    """Raised when a database cannot be tested, for example because no server answers."""


class NoDriverError(TargetError):
    """Raised when a driver, a Python package that connects to a database, is missing."""


class OptionError(IsolangError, ValueError):
    """Raised when the value of an option is out of bounds."""


def internal_error(error: Exception) -> str:
    """Return the message for an unexpected exception, with the facts needed for a bug report."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    what = f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]
    return (
        f"internal error ({what}{where}); this is a bug of isolang: please report it with the "
        "history, the specification and this line; ISOLANG_TRACEBACK=1 shows more"
    )
