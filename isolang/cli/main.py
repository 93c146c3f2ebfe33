"""Runs the command line ``isocheck``, and turns exceptions into messages and exit codes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer

from isolang.cli.choices import COMPLETE
from isolang.cli.classes import Mistake
from isolang.cli.commands import ISOCHECK, SPEC, isocheck
from isolang.errors import IsolangError, internal_error
from isolang.output.terminal import escaped, forget_stdout, open_streams, warn

PROGRAM: Final = "isocheck"
EXIT_USAGE: Final = 2
EXIT_UNKNOWN: Final = 3
EXIT_INTERRUPTED: Final = 130
EXIT_PIPE: Final = 141  # the exit code that a shell reports for a process killed by SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    open_streams()
    # NumPy would start threads for linear algebra, but isolang uses none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    command: Any = typer.main.get_command(isocheck)
    if COMPLETE in os.environ:
        command(prog_name=PROGRAM)
    code = _run_guarded(command, list(sys.argv[1:] if argv is None else argv))
    if code == EXIT_INTERRUPTED:
        warn(f"{PROGRAM}: interrupted")
    return code


def _run_guarded(command: Any, arguments: list[str]) -> int:
    context: Any = None
    try:
        _require_no_spec_command(arguments)
        context = command.make_context(PROGRAM, arguments, default_map=_defaults(arguments))
        with context:
            code = int(command.invoke(context) or 0)
        return _flush_output(code)
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as mistake:
        warn(*_mistake_lines(mistake, context))
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
        warn(f"{PROGRAM}: out of memory; set a limit with --memory")
        return EXIT_UNKNOWN
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        warn(f"{PROGRAM}: {where}{error.strerror or error}")
        forget_stdout()
        return EXIT_USAGE
    except Exception as error:  # any other error is a bug, and is reported as one
        if os.environ.get("ISOLANG_TRACEBACK"):
            raise
        warn(f"{PROGRAM}: {internal_error(error)}")
        return EXIT_UNKNOWN


def _require_no_spec_command(arguments: list[str]) -> None:
    """Refuse a command of ``isocheck spec`` without ``spec``: it would be taken for a history."""
    name = arguments[0] if arguments else ""
    if name in SPEC and name not in ISOCHECK and not os.path.exists(name):
        raise Mistake(
            f"{name} is a command of {PROGRAM} spec, and there is no history of this name",
            f"{PROGRAM} spec {shlex.join(arguments)}",
        )


def _flush_output(code: int) -> int:
    """Flush the output, and return the exit code.

    If the output cannot be flushed, a non-zero exit code is kept, because it conveys the verdict.
    """
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
    """Return the defaults in ``pyproject.toml`` for the command called by the arguments."""
    if not arguments or "--help" in arguments:
        return {}
    from isolang.cli.config import defaults

    return defaults(arguments[0] if arguments[0] in ISOCHECK else "check")


def _mistake_lines(mistake: typer.TyperException, context: Any) -> tuple[str, str]:
    """Return the message for a mistake on the command line, and a line with a hint."""
    program = PROGRAM
    if own := getattr(mistake, "ctx", None):
        program = own.command_path
    elif context is not None and context.invoked_subcommand:
        program = f"{PROGRAM} {context.invoked_subcommand}"
    hint = getattr(mistake, "hint", "") or f"see `{program} --help`"
    return f"{PROGRAM}: {escaped(_message(mistake))}", f"  hint: {escaped(hint)}"


def _message(mistake: typer.TyperException) -> str:
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
