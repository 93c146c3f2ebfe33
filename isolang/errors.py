"""One tree of errors. Every message reads ``where: what (got X, expected Y); hint``."""

from __future__ import annotations

from collections.abc import Collection


def none_of(name: str, names: Collection[str]) -> str:
    """Return the end of a message about an unknown name: the expected names and the nearest one.

    >>> none_of("paris", ["pairs", "bank"])
    "(got 'paris', expected one of pairs, bank); did you mean 'pairs'?"
    """
    from difflib import get_close_matches

    near = get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"(got {name!r}, expected one of {', '.join(names)}){hint}"


class IsolangError(Exception):
    """The base class of all errors that this package raises on purpose."""


class SpecError(IsolangError):
    """A ``.iso`` specification that cannot be read, is ill-sorted, or is outside what is supported.

    ``str()`` is the whole message, with the source line and a caret where there is one.

    Attributes:
        file: the file (or ``<text>``); empty if the error is not in a file.
        line: the line, from 1; 0 if the error has no place.
        column: the column, from 1; 0 if the error has no place.
        hint: how to mend it; also part of the message.
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
    """A history that cannot be read; the message names the place and what was expected."""


class UnsupportedError(IsolangError):
    """A well-formed input that this version cannot decide: *unknown*, never a pass."""


class SolverError(IsolangError):
    """A solver or an encoding that does not exist, is not installed, or does not fit the other."""


class WorkerError(IsolangError):
    """A worker of ``check_many`` that ended, or failed, before it had checked a history."""


class TargetError(IsolangError):
    """A database that cannot be tested as asked: no driver, no server, no rights, no such level."""


class NoDriverError(TargetError):
    """The package that a database is spoken to with is not installed: waiting does not help."""


class OptionError(IsolangError, ValueError):
    """An option whose value is out of bounds."""


def internal_error(error: Exception) -> str:
    """Return the message of an unexpected exception, with what to put into a bug report."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    what = f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]
    return (
        f"internal error ({what}{where}); this is a bug of isolang: please report it with the "
        "history, the specification and this line; ISOLANG_TRACEBACK=1 shows more"
    )
