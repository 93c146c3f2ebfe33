"""Defines the commands of ``isocheck``, and the Typer groups that import them lazily.

Each command is a function in its own module. Its docstring is the command's help,
:mod:`isolang.cli.parameters` explains its parameters, and its result is the exit code.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib import import_module
from typing import Annotated, Any, ClassVar, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from isolang.cli.choices import nearest_name
from isolang.cli.classes import Command, Mistake, WithoutPydantic


class CommandEntry(NamedTuple):
    """The data about a command that its group's help needs, available without importing it.

    Attributes:
        where: the module and the name of the function or Typer group, as ``module:name``.
        about: the first sentence of the command's help.
        example: an example command line for the end of the command's help; empty for none.
    """

    where: str
    about: str
    panel: str = "Commands"
    example: str = ""


JUDGE: Final = "Judge histories"
HANDLE: Final = "Handle histories"
SPECIFY: Final = "Specifications and solvers"

ISOCHECK: Final[Mapping[str, CommandEntry]] = {
    "check": CommandEntry(
        "isolang.cli.check:check",
        "Check histories against isolation levels.",
        JUDGE,
        "isocheck check --spec si --html report.html history.edn",
    ),
    "levels": CommandEntry(
        "isolang.cli.levels:levels",
        "Find the strongest levels that a history satisfies, and the weakest it violates.",
        JUDGE,
        "isocheck levels --at-least rc history.edn",
    ),
    "linearize": CommandEntry(
        "isolang.cli.linearize:linearize",
        "Decide whether a log of operations on an object is linearizable.",
        JUDGE,
        "isocheck linearize --model queue queue.edn",
    ),
    "watch": CommandEntry(
        "isolang.cli.watch:watch",
        "Check a history while it is being written, in bounded memory.",
        JUDGE,
        "isocheck watch --spec ser --until-idle 60 history.edn",
    ),
    "run": CommandEntry(
        "isolang.cli.run:run",
        "Test a real database: run a workload, record it, and check the history.",
        JUDGE,
        "isocheck run postgres --level serializable --seconds 30",
    ),
    "observe": CommandEntry(
        "isolang.cli.observe:observe",
        "Record what an application does on PostgreSQL or MariaDB through a proxy, and check it.",
        JUDGE,
    ),
    "litmus": CommandEntry(
        "isolang.cli.litmus:litmus",
        "Find a program whose outcome separates two levels, and play its interleavings "
        "on a database.",
        JUDGE,
    ),
    "predict": CommandEntry(
        "isolang.cli.predict:predict",
        "Predict violations that a valid run could have shown at a weaker level.",
        JUDGE,
    ),
    "court": CommandEntry(
        "isolang.cli.court:court",
        "Decide whether a few calls of an application can harm each other on PostgreSQL.",
        JUDGE,
        "isocheck court court.toml",
    ),
    "verify": CommandEntry(
        "isolang.cli.verify:verify",
        "Check a certificate with independent checkers.",
        JUDGE,
    ),
    "summary": CommandEntry(
        "isolang.cli.summary:summary",
        "Summarize many runs: verdicts by target, level, version and seed, and each "
        "violation once.",
        JUDGE,
        "isocheck summary --html runs.html reports/",
    ),
    "stats": CommandEntry(
        "isolang.cli.stats:stats",
        "Summarize what a history contains.",
        HANDLE,
        "isocheck stats --spec si history.edn",
    ),
    "convert": CommandEntry(
        "isolang.cli.convert:convert",
        "Write a history in another format.",
        HANDLE,
        "isocheck convert history.txt history.edn --to edn",
    ),
    "generate": CommandEntry(
        "isolang.cli.generate:generate",
        "Simulate a database, and write a history whose isolation level is known.",
        HANDLE,
        "isocheck generate history.edn --rule snapshot --transactions 10000",
    ),
    "spec": CommandEntry(
        "isolang.cli.commands:spec",
        "List, show, explain, compare, lint and format specifications.",
        SPECIFY,
    ),
    "outcomes": CommandEntry(
        "isolang.cli.outcomes:outcomes",
        "List all outcomes of a small program, and which levels allow each.",
        SPECIFY,
    ),
    "robust": CommandEntry(
        "isolang.cli.robust:robust",
        "Decide whether a service may run at a weaker level, and which changes make it robust.",
        SPECIFY,
    ),
    "solvers": CommandEntry(
        "isolang.cli.solvers:solvers",
        "Compare all encodings and solvers on the same histories.",
        SPECIFY,
        "isocheck solvers --spec ser --only native --timeout 20 history.edn",
    ),
    "encode": CommandEntry(
        "isolang.cli.encode:encode",
        "Write the problem of a history as a file for solvers (DIMACS, SMT-LIB, GNF).",
        SPECIFY,
        "isocheck encode --spec ser --encoding monosat --to gnf history.edn problem.gnf",
    ),
    "lsp": CommandEntry(
        "isolang.cli.lsp:lsp",
        "Run the language server: errors as you type, hover, completion, definitions, formatting.",
        SPECIFY,
    ),
    "schema": CommandEntry(
        "isolang.cli.schema:schema",
        "Print the JSON Schema of a command's --output json.",
        SPECIFY,
    ),
}
SPEC: Final[Mapping[str, CommandEntry]] = {
    "list": CommandEntry("isolang.cli.spec_library:list_levels", "List the levels of the library."),
    "show": CommandEntry(
        "isolang.cli.spec_library:show_level", "Print the text of a level or a file."
    ),
    "explain": CommandEntry(
        "isolang.cli.spec_explain:explain", "Explain how isocheck decides a level, and why."
    ),
    "lint": CommandEntry("isolang.cli.spec_lint:lint", "Report errors and probable mistakes."),
    "compare": CommandEntry(
        "isolang.cli.spec_compare:compare",
        "Compare two specifications, and show a proof or a separating history for the result.",
    ),
    "place": CommandEntry(
        "isolang.cli.spec_place:place",
        "Find the place of a specification among the levels of the library.",
    ),
    "lattice": CommandEntry(
        "isolang.cli.spec_place:lattice",
        "Compare all levels of the library: prove each implication, and separate all other pairs.",
    ),
    "try": CommandEntry(
        "isolang.cli.spec_try:try_spec", "Check a specification each time it is saved."
    ),
    "format": CommandEntry(
        "isolang.cli.spec_format:format_files",
        "Format files; `-` formats standard input to standard output.",
    ),
}


class LazyGroup(WithoutPydantic, TyperGroup):
    """A group of commands that are imported only when called."""

    entries: ClassVar[Mapping[str, CommandEntry]]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command and return it; return ``None`` if no command has this name."""
        if cmd_name in self.entries and cmd_name not in self.commands:
            self.commands[cmd_name] = _command(cmd_name, self.entries[cmd_name])
        return self.commands.get(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the group's help without importing its commands."""
        for name, entry in self.entries.items():
            self.commands[name] = TyperCommand(name, help=entry.about, rich_help_panel=entry.panel)
        super().format_help(ctx, formatter)
        self.commands.clear()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; if there are none, print the help on stderr and exit with 2."""
        if not args and not ctx.resilient_parsing:
            with redirect_stdout(sys.stderr):
                typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command named by the first argument.

        Raises:
            Mistake: if no command has this name.
        """
        name = args[0]
        if name not in self.entries and not ctx.resilient_parsing:
            raise no_such_command(ctx.command_path, name, self.entries)
        return super().resolve_command(ctx, args)


def no_such_command(program: str, name: str, entries: Mapping[str, CommandEntry]) -> Mistake:
    """Return the error for an unknown command name, with the nearest existing name as a hint."""
    nearest = nearest_name(name, entries)
    return Mistake(
        f"no such command: {name}", f"did you mean `{program} {nearest}`?" if nearest else ""
    )


def _command(name: str, entry: CommandEntry) -> Any:
    module, attribute = entry.where.split(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group: Any = typer.main.get_command(found)
        group.name, group.rich_help_panel = name, entry.panel
        return group
    from isolang.cli.parameters import as_command

    one = typer.Typer(add_completion=False)
    shown = f"Example: {entry.example}" if entry.example else None
    one.command(name, cls=Command, rich_help_panel=entry.panel, epilog=shown)(as_command(found))
    return typer.main.get_command(one)


# --- isocheck ---


class _Isocheck(LazyGroup):
    """The group of all commands; if the first argument names none of them, it runs ``check``."""

    entries = ISOCHECK

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = [name for param in self.get_params(ctx) for name in param.opts]
        return super().parse_args(ctx, _with_command(args, own, guess=ctx.resilient_parsing))


def _with_command(args: list[str], own: list[str], *, guess: bool) -> list[str]:
    """Insert the implied command ``check``, and the implied value of ``--cross-check``."""
    if not args or args[0] in own:
        return args
    first = args[0]
    if first not in ISOCHECK:
        mistyped = not first.startswith("-") and nearest_name(first, ISOCHECK, 0.7)
        if mistyped and not guess and not os.path.exists(first):
            raise no_such_command("isocheck", first, ISOCHECK)
        args = ["check", *args]
    if args[0] != "check":
        return args
    end = args.index("--") if "--" in args else len(args)
    values = [*args[1:end], ""]
    return [
        "check",
        *(
            f"{arg}=auto" if arg == "--cross-check" and not _is_pair(following) else arg
            for arg, following in itertools.pairwise(values)
        ),
        *args[end:],
    ]


def _is_pair(text: str) -> bool:
    """Return whether the argument after ``--cross-check`` is its value rather than a history."""
    if text in ("auto", "all"):
        return True
    from isolang.encodings.registry import ENCODINGS

    begins = text.split("/", maxsplit=1)[0] in ENCODINGS
    return (begins or text.endswith(("/none", "/known", "/fixpoint"))) and not os.path.exists(text)


def _print_version(flag: bool) -> None:
    if flag:
        from isolang.release import signature

        typer.echo(signature("isocheck"))
        raise typer.Exit


isocheck: Final = typer.Typer(
    cls=_Isocheck,
    name="isocheck",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    epilog="Exit codes: 0 valid; 1 a history is invalid; 2 wrong usage or input; 3 unknown; "
    "4 a certificate was rejected, or two solvers disagree.",
)


@isocheck.callback()
def _isocheck(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Check whether a database provides the isolation level that it promises.

    `isocheck --spec si history.edn` is short for `isocheck check --spec si history.edn`.
    """


class _Spec(LazyGroup):
    entries = SPEC


spec: Final = typer.Typer(
    cls=_Spec,
    epilog="Exit codes: 0 success; 1 lint found a problem, or format --check would change a "
    "file; 2 wrong usage or input; 3 unknown.",
)


@spec.callback()
def _spec() -> None:
    """List, show, explain, compare, lint and format specifications."""
