"""``isocheck``: the entry, and the boundary that no traceback crosses."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer

from isolang.cli.commands import ISOCHECK, isocheck
from isolang.cli.parameters import Mistake
from isolang.errors import IsolangError, internal_error
from isolang.output.terminal import escaped, forget_stdout, open_streams, warn

PROGRAM: Final = "isocheck"
EXIT_USAGE: Final = 2
EXIT_UNKNOWN: Final = 3
EXIT_INTERRUPTED: Final = 130
EXIT_PIPE: Final = 141  # as a shell says it of what ended by a closed pipe


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is the return value."""
    open_streams()
    # No linear algebra is done here, and the threads that NumPy's would start cost 50 ms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    command: Any = typer.main.get_command(isocheck)
    if f"_{PROGRAM.upper()}_COMPLETE" in os.environ:
        command(prog_name=PROGRAM)
    code = _guarded(command, list(sys.argv[1:] if argv is None else argv))
    if code == EXIT_INTERRUPTED:
        warn(f"{PROGRAM}: interrupted")
    return code


def _guarded(command: Any, arguments: list[str]) -> int:
    context: Any = None
    try:
        context = command.make_context(PROGRAM, arguments, default_map=_defaults(arguments))
        with context:
            code = int(command.invoke(context) or 0)
        return _printed(code)
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as mistake:
        warn(*_said(mistake, context))
        return EXIT_USAGE
    except IsolangError as error:
        if isinstance(error.__context__, BrokenPipeError):
            forget_stdout()
            return EXIT_PIPE
        warn(f"{PROGRAM}: {error}")
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        forget_stdout()
        return EXIT_PIPE
    except MemoryError:
        warn(f"{PROGRAM}: out of memory; --memory sets a limit")
        return EXIT_UNKNOWN
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        warn(f"{PROGRAM}: {where}{error.strerror or error}")
        forget_stdout()
        return EXIT_USAGE
    except Exception as error:  # the last boundary
        if os.environ.get("ISOLANG_TRACEBACK"):
            raise
        warn(f"{PROGRAM}: {internal_error(error)}")
        return EXIT_UNKNOWN


def _printed(code: int) -> int:
    """The exit code, once all is printed: what cannot be printed is no reason to lose a verdict."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        warn(f"{PROGRAM}: cannot print: {error.strerror or error}")
        forget_stdout()
        return code or EXIT_USAGE
    return code


def _defaults(arguments: list[str]) -> dict[str, dict[str, Any]]:
    """What ``pyproject.toml`` says of the command, which is ``check`` where none is named."""
    if not arguments or "--help" in arguments:
        return {}
    from isolang.cli.config import defaults

    return defaults(arguments[0] if arguments[0] in ISOCHECK else "check")


def _said(mistake: typer.TyperException, context: Any) -> tuple[str, str]:
    """What was mistyped, and where to read on."""
    program = PROGRAM
    if own := getattr(mistake, "ctx", None):
        program = own.command_path
    elif context is not None and context.invoked_subcommand:
        program = f"{PROGRAM} {context.invoked_subcommand}"
    hint = getattr(mistake, "hint", "") or f"see `{program} --help`"
    return f"{PROGRAM}: {escaped(_what(mistake))}", f"  hint: {escaped(hint)}"


def _what(mistake: typer.TyperException) -> str:
    message = mistake.message.rstrip(".")
    if isinstance(mistake, Mistake):
        return message
    parameter: Any = getattr(mistake, "param", None)
    if parameter is not None:
        flags = "/".join(o for o in parameter.opts if o.startswith("-"))
        named = f"{flags} {parameter.metavar or ''}" if flags else parameter.metavar
        return f"{flags or named}: {message}" if message else f"{named.strip()} is missing"
    near: list[str] | None = getattr(mistake, "possibilities", None)
    if near:
        message += f" (did you mean {near[0]}?)"
    return message[:1].lower() + message[1:]


if __name__ == "__main__":
    sys.exit(main())
