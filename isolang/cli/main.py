"""``isocheck``: the command line, and the boundary that no traceback crosses."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from isolang.cli import spec as spec_commands
from isolang.cli.generate import generate_command

COMMANDS = (
    "check", "verify", "convert", "stats", "generate", "levels", "spec", "compare", "encode",
)  # fmt: skip
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="isocheck",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Tell whether a database gives the isolation it promises. "
    "`isocheck --spec si history.edn` is short for `isocheck check --spec si history.edn`.",
    epilog="Exit codes: 0 valid; 1 a history is invalid; 2 an input cannot be used; "
    "3 unknown; 4 a certificate was rejected, or solvers disagree.",
)


class Output(StrEnum):
    """How verdicts are printed."""

    text = "text"
    json = "json"
    edn = "edn"


class Plain(StrEnum):
    """How figures are printed."""

    text = "text"
    json = "json"


class Tabular(StrEnum):
    """How a comparison is printed."""

    text = "text"
    json = "json"
    csv = "csv"


class Exported(StrEnum):
    """What an encoding is written as."""

    dimacs = "dimacs"
    smt2 = "smt2"
    gnf = "gnf"


Format = Annotated[
    str, typer.Option("--from", metavar="FORMAT", help="The histories' format, by default found "
                      "out: edn, jepsen-json, dbcop, dbcop-json, hist, cobra, viper, plume, awdit.")
]  # fmt: skip
Timestamps = Annotated[bool, typer.Option("--timestamps", help="Cobra logs have timestamps.")]
Initial = Annotated[
    int | None, typer.Option("--initial", metavar="N", help="Transaction N is the initial one.")
]
Include = Annotated[
    list[str] | None, typer.Option("--include", metavar="DIR", help="Where to look for includes.")
]

SolverOption = Annotated[
    str, typer.Option("--solver", metavar="NAME", help="What decides: auto, native, sat, clingo, "
                      "z3, pysmt; sat:NAME and pysmt:NAME for one of theirs.")
]  # fmt: skip
EncodingOption = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="How the problem is put to it: auto, "
                      "event-graph, one_variable, monosat, relational, …")
]  # fmt: skip
PruneOption = Annotated[
    str, typer.Option("--prune", metavar="STAGE", help="What is concluded before: none, known or "
                      "fixpoint.")
]  # fmt: skip


app.add_typer(spec_commands.app, name="spec")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"isocheck {version('isolang')}")
        except PackageNotFoundError:
            print("isocheck (not installed)")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


@app.command("check")
def check_command(
    *,
    histories: Annotated[
        list[str], typer.Argument(metavar="HISTORY", help="Files, folders of logs, or -.")
    ],
    spec: Annotated[
        list[str],
        typer.Option("--spec", "-s", metavar="SPEC", help="A level (si, ser, …) or a .iso file; "
                     "may be repeated."),
    ],
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.text,
    from_: Format = "auto",
    timestamps: Timestamps = False,
    initial: Initial = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="S", help="Seconds for each verdict, reading included."),
    ] = None,
    memory: Annotated[
        float | None, typer.Option("--memory", metavar="MB", help="Megabytes for each history.")
    ] = None,
    no_certify: Annotated[
        bool, typer.Option("--no-certify", help="Do not check verdicts independently.")
    ] = False,
    certificate: Annotated[
        str, typer.Option("--certificate", metavar="DIR", help="Save certificates here.")
    ] = "",
    minimal: Annotated[
        str,
        typer.Option("--minimal", metavar="FILE", help="Write the smallest part found that is "
                     "still invalid (EDN)."),
    ] = "",
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Histories at a time.")
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Breaks ties.")] = 0,
    profile: Annotated[
        bool, typer.Option("--profile", help="Say where the time went (text output; JSON has it).")
    ] = False,
    solver: SolverOption = "auto",
    encoding: EncodingOption = "auto",
    prune: PruneOption = "auto",
    cross_check: Annotated[
        str,
        typer.Option("--cross-check", metavar="[PAIR|all]", help="Ask other pairs, too: one that "
                     "shares nothing with the first, all, or encoding/solver/prune."),
    ] = "",
    include: Include = None,
) -> None:  # fmt: skip
    """Check histories against isolation levels."""
    from isolang.cli.check import UsageProblem, check

    for name, value in (("--timeout", timeout), ("--memory", memory)):
        if value is not None and not 0 < value < float("inf"):
            raise typer.BadParameter(f"{name}: not a positive number (got {value})")
    try:
        code = check(
            specs=spec,
            histories=histories,
            include=include or [],
            format=from_,
            timestamps=timestamps,
            initial=initial,
            output=output.value,
            timeout=timeout,
            memory=memory,
            certify=not no_certify,
            seed=seed,
            certificates=certificate,
            minimal=minimal,
            jobs=jobs,
            profile=profile,
            solver=solver,
            encoding=encoding,
            prune=prune,
            cross_check=cross_check,
        )
    except UsageProblem as problem:
        raise typer.BadParameter(str(problem)) from None
    raise typer.Exit(code)


@app.command("verify")
def verify_command(
    certificate: Annotated[str, typer.Argument(metavar="CERT", help="Of --certificate.")],
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="What it is about.")],
) -> None:
    """Check a certificate again, with the checkers in plain Python."""
    from isolang.cli.verify import verify

    raise typer.Exit(verify(certificate, history))


@app.command("convert")
def convert_command(
    *,
    source: Annotated[str, typer.Argument(metavar="IN", help="A history.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="Where to write it.")],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="edn, jepsen-json, dbcop, "
                                    "dbcop-json, hist, cobra, viper, plume or awdit.")],
    from_: Format = "auto",
    timestamps: Timestamps = False,
    initial: Initial = None,
    renumber: Annotated[
        bool,
        typer.Option("--renumber", help="Give numbers to keys and values that OUT cannot name."),
    ] = False,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="WHAT", help="Leave out what OUT cannot say: real-time, "
                     "failed-operations, unknown-reads, empty-transactions."),
    ] = None,
) -> None:  # fmt: skip
    """Write a history in another format."""
    from isolang.cli.convert import convert

    code = convert(
        source,
        target,
        to=to,
        format=from_,
        timestamps=timestamps,
        initial=initial,
        renumber=renumber,
        drop=drop or [],
    )
    raise typer.Exit(code)


@app.command("levels")
def levels_command(
    *,
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="A history.")],
    output: Annotated[Plain, typer.Option("--output", "-o", help="How to print.")] = Plain.text,
    from_: Format = "auto",
    timestamps: Timestamps = False,
    initial: Initial = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", help="Seconds for each level.")
    ] = None,
    no_certify: Annotated[
        bool, typer.Option("--no-certify", help="Do not check verdicts independently.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Breaks ties.")] = 0,
) -> None:
    """Find the strongest levels that a history satisfies, and the weakest it violates."""
    from isolang.cli.levels import levels

    if timeout is not None and not 0 < timeout < float("inf"):
        raise typer.BadParameter(f"--timeout: not a positive number (got {timeout})")
    code = levels(
        history,
        output=output.value,
        format=from_,
        timestamps=timestamps,
        initial=initial,
        timeout=timeout,
        certify=not no_certify,
        seed=seed,
    )
    raise typer.Exit(code)


@app.command("stats")
def stats_command(
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="A history.")],
    output: Annotated[Plain, typer.Option("--output", "-o", help="How to print.")] = Plain.text,
    from_: Format = "auto",
    timestamps: Timestamps = False,
    initial: Initial = None,
) -> None:
    """Say what a history contains."""
    from isolang.cli.stats import stats

    code = stats(history, output=output.value, format=from_, timestamps=timestamps, initial=initial)
    raise typer.Exit(code)


app.command("generate")(generate_command)


@app.command("compare")
def compare_command(
    *,
    histories: Annotated[
        list[str], typer.Argument(metavar="HISTORY", help="Files or folders of logs.")
    ],
    spec: Annotated[
        str, typer.Option("--spec", "-s", metavar="SPEC", help="A level or a .iso file.")
    ],
    output: Annotated[
        Tabular, typer.Option("--output", "-o", help="How to print.")
    ] = Tabular.text,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Only pairs with this encoding, solver or "
                     "encoding/solver; may be repeated."),
    ] = None,
    prune: Annotated[
        list[str] | None,
        typer.Option("--prune", metavar="STAGE", help="Stages of pruning, by default fixpoint; "
                     "may be repeated."),
    ] = None,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", min=1, help="Runs of each; the median counts.")
    ] = 1,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", help="Seconds for each run.")
    ] = 60.0,
    memory: Annotated[
        float | None, typer.Option("--memory", metavar="MB", help="Megabytes for each run.")
    ] = None,
    plot: Annotated[
        str, typer.Option("--plot", metavar="FILE", help="Draw time against size (.svg, .png …).")
    ] = "",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Breaks ties.")] = 0,
    from_: Format = "auto",
    timestamps: Timestamps = False,
    initial: Initial = None,
    include: Include = None,
) -> None:  # fmt: skip
    """Run every encoding with every solver on the same histories."""
    from isolang.cli.check import UsageProblem
    from isolang.cli.compare import compare

    try:
        code = compare(
            spec=spec,
            histories=histories,
            include=include or [],
            output=output.value,
            only=only or [],
            prune=prune or ["fixpoint"],
            repeat=repeat,
            timeout=timeout,
            memory=memory,
            plot=plot,
            seed=seed,
            format=from_,
            timestamps=timestamps,
            initial=initial,
        )
    except UsageProblem as problem:
        raise typer.BadParameter(str(problem)) from None
    raise typer.Exit(code)


@app.command("encode")
def encode_command(
    *,
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="A history.")],
    target: Annotated[str, typer.Argument(metavar="FILE", help="Where to write; - for stdout.")],
    spec: Annotated[
        str, typer.Option("--spec", "-s", metavar="SPEC", help="A level or a .iso file.")
    ],
    to: Annotated[Exported, typer.Option("--to", help="What to write.")],
    encoding: Annotated[
        str, typer.Option("--encoding", metavar="NAME", help="One of docs/encodings.md.")
    ],
    prune: PruneOption = "auto",
    from_: Format = "auto",
    timestamps: Timestamps = False,
    initial: Initial = None,
    include: Include = None,
) -> None:
    """Write what a solver would get, for any solver there is."""
    from isolang.cli.encode import encode

    code = encode(
        history,
        target,
        spec=spec,
        to=to.value,
        encoding=encoding,
        prune=prune,
        format=from_,
        timestamps=timestamps,
        initial=initial,
        include=include or [],
    )
    raise typer.Exit(code)


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
    if not arguments or arguments[0] in COMMANDS or arguments[0] in ("--help", "-h", "--version"):
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
    command = typer.main.get_command(app)
    try:
        # With standalone_mode the exit code would be lost in SystemExit, and errors printed early.
        result: Any = command.main(args=arguments, prog_name="isocheck", standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code  # also Ctrl-C, in versions that make it an exit
    except typer.Abort:
        return EXIT_INTERRUPTED
    except Exception as error:
        # Typer brings its own copy of click or uses click itself, by version: go by the shape.
        if not hasattr(error, "format_message") or not hasattr(error, "exit_code"):
            raise
        return _usage_error(error, arguments)
    return result if isinstance(result, int) else 0


def _usage_error(error: Any, arguments: list[str]) -> int:
    message = error.format_message()
    if not message:  # help was asked for by giving nothing
        return int(error.exit_code)
    if message.startswith("Usage:"):  # a group of commands without one
        print(message, file=sys.stderr)
        return 2
    print(f"isocheck: {message}", file=sys.stderr)
    typo = arguments[1] if arguments[0] == "check" and len(arguments) > 1 else ""
    near = [] if typo.startswith("-") else difflib.get_close_matches(typo, COMMANDS, 1, 0.7)
    if near and not os.path.exists(typo):
        print(f"  hint: did you mean `isocheck {near[0]}`?", file=sys.stderr)
    else:
        name = arguments[0] if arguments and arguments[0] in COMMANDS else ""
        print(f"  hint: see `isocheck {name} --help`".replace("  --", " --"), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
