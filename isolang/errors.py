"""Defines the errors of this package, with messages ``where: what (got X, expected Y); hint``."""

from __future__ import annotations

from collections.abc import Collection


def unknown_name_details(name: str, names: Collection[str]) -> str:
    """Return the end of a message about an unknown name, with the expected names.

    If one of these names is similar, the message suggests it.

    >>> unknown_name_details("paris", ["pairs", "bank"])
    "(got 'paris', expected one of pairs, bank); did you mean 'pairs'?"
    """
    from difflib import get_close_matches

    near = get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"(got {name!r}, expected one of {', '.join(names)}){hint}"


def message_in_one_line(error: BaseException) -> str:
    """Return the message of an error in one line; if it has none, the name of its class."""
    return " ".join(str(error).split()) or type(error).__name__


class IsolangError(Exception):
    """The base class of all errors that this package raises on purpose."""


class SpecError(IsolangError):
    """The error for a ``.iso`` specification that is unreadable, ill-sorted or not supported.

    ``str()`` of the error returns the whole message. If the error has a place, the message shows
    the source line and a caret.

    Attributes:
        file: the name of the file, or ``<text>``; empty if the error is not in a file.
        line: the line, numbered from 1; 0 if the error has no place.
        column: the column, numbered from 1; 0 if the error has no place.
        hint: a way to correct the mistake, which the message also contains; empty for none.
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
    """The error for a history that cannot be read; the message says where and what was expected."""


class UnsupportedError(IsolangError):
    """The error for a well-formed input that this version cannot decide; the verdict is unknown."""


class SolverError(IsolangError):
    """The error for a missing solver or encoding, or for a pair that does not fit together."""


class WorkerError(IsolangError):
    """The error for work whose worker process ended or failed, such as one of ``check_many``."""


class TargetError(IsolangError):
    """The error for a database that cannot be tested, for example because no server answers."""


class NoDriverError(TargetError):
    """The error for a missing driver, which is a Python package that connects to a database."""


class OptionError(IsolangError, ValueError):
    """The error for an option whose value is out of bounds."""


def internal_error(error: Exception) -> str:
    """Return the message for an unexpected exception, with the facts that a bug report needs."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    what = f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]
    return (
        f"internal error ({what}{where}); this is a bug of isolang: please report it with the "
        "history, the specification and this line; ISOLANG_TRACEBACK=1 shows more"
    )
