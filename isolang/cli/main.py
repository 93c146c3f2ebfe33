"""``isocheck``: the command line, and the boundary that no traceback crosses."""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from isolang.cli.arguments import (
    HELP,
    Group,
    HelpWanted,
    Parser,
    UsageProblem,
    overview,
)
from isolang.cli.commands import ISOCHECK
from isolang.errors import OptionError
from isolang.options import Options, ReadOptions

PROGRAM: Final = "isocheck"
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is the return value."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A file name that is not UTF-8 must not stop the report about it.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = _guarded(_with_value(_with_command(arguments)))
    if code == EXIT_INTERRUPTED:
        print("isocheck: interrupted", file=sys.stderr)
    return code


def _guarded(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except MemoryError:
        print("isocheck: out of memory; --memory sets a limit", file=sys.stderr)
        return 3
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"isocheck: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except Exception as error:  # the last boundary
        if os.environ.get("ISOLANG_TRACEBACK"):
            raise
        what = f"{type(error).__name__}: {error}"
        hint = "this is a bug; ISOLANG_TRACEBACK=1 shows where it is"
        print(f"isocheck: unexpected error ({what}); {hint}", file=sys.stderr)
        return 2


def _with_command(arguments: list[str]) -> list[str]:
    """Put in ``check`` where the command was left out."""
    if not arguments or arguments[0] in ISOCHECK.commands or arguments[0] in (*HELP, "--version"):
        return arguments
    return ["check", *arguments]


def _with_value(arguments: list[str]) -> list[str]:
    """Put in ``auto`` where ``--cross-check`` stands alone."""
    out: list[str] = []
    for i, argument in enumerate(arguments):
        out.append(argument)
        if argument == "--cross-check":
            following = arguments[i + 1] if i + 1 < len(arguments) else ""
            if following not in ("auto", "all") and not _names_a_pair(following):
                out.append("auto")
    return out


def _names_a_pair(text: str) -> bool:
    """Whether this is meant as ``encoding/solver/prune``, and is no history."""
    from isolang.encodings.registry import ENCODINGS

    begins = text.split("/", maxsplit=1)[0] in ENCODINGS
    return (begins or text.endswith(("/none", "/known", "/fixpoint"))) and not os.path.exists(text)


def _run(arguments: list[str]) -> int:
    """Run the command that the arguments begin with."""
    # No linear algebra is done here, and the threads that NumPy's would start cost 50 ms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if arguments[:1] == ["--version"]:
        return _print_version()
    try:
        return _dispatch(PROGRAM, ISOCHECK, arguments)
    except HelpWanted as wanted:
        print(wanted, end="")
        return 0
    except UsageProblem as problem:
        print(f"isocheck: {problem}", file=sys.stderr)
        print(f"  hint: {_hint(arguments)}", file=sys.stderr)
        return EXIT_USAGE


def _dispatch(program: str, group: Group, arguments: Sequence[str]) -> int:
    name, *rest = arguments or [""]
    if not name or name in HELP:
        text = overview(program, group)
        if name:
            raise HelpWanted(text)
        print(text, end="", file=sys.stderr)  # nothing was done
        return EXIT_USAGE
    command = group.commands.get(name)
    if command is None:
        raise UsageProblem(f"no such command: {name}")
    if isinstance(command, Group):
        return _dispatch(f"{program} {name}", command, rest)
    parser = Parser(f"{program} {name}", command.about)
    command.declare(parser)
    values = parser.parse(rest)
    return command.function()(**_records(command.function(), values))


def _records(function: Callable[..., int], values: dict[str, Any]) -> dict[str, Any]:
    """Put values into the records that a command takes."""
    for name, record in (("options", Options), ("reading", ReadOptions)):
        if name in inspect.signature(function).parameters:
            fields = {f: values.pop(f) for f in record.__struct_fields__ if f in values}
            try:
                values[name] = record(**fields)
            except OptionError as error:
                raise UsageProblem(str(error)) from None
    return values


def _print_version() -> int:
    from importlib.metadata import PackageNotFoundError, version

    try:
        print(f"isocheck {version('isolang')}")
    except PackageNotFoundError:
        print("isocheck (not installed)")
    return 0


def _hint(arguments: Sequence[str]) -> str:
    """What may have been meant, or where to read on."""
    name, typed = arguments[0], "".join(arguments[1:2])
    program, group = PROGRAM, ISOCHECK
    command = ISOCHECK.commands[name]
    if isinstance(command, Group):
        program, group = f"{PROGRAM} {name}", command
    # What is no command was taken for a history, and `check` put before it.
    unknown = typed not in group.commands and not typed.startswith("-")
    if unknown and (isinstance(command, Group) or name == "check"):
        near = difflib.get_close_matches(typed, group.commands, 1, 0.7)
        if near and not os.path.exists(typed):
            return f"did you mean `{program} {near[0]}`?"
    return f"see `{PROGRAM} {name} --help`"


if __name__ == "__main__":
    sys.exit(main())
