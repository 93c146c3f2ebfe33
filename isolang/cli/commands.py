"""The commands of ``isocheck``, a line each, and the Typer groups that find them.

A command is a function in a module of its own; its docstring is its help, its parameters are those
of :mod:`isolang.cli.parameters`, and what it returns is the exit code. The module is imported when
the command is called.
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

from isolang.cli.choices import near
from isolang.cli.parameters import Command, Mistake, WithoutPydantic, as_command


class Line(NamedTuple):
    """A command, as the help of its group lists it, which imports none of them.

    Attributes:
        where: its function or its Typer group is.
        about: the first sentence of its own help.
        panel: the panel that shows it.
    """

    where: str
    about: str
    panel: str = "Commands"


JUDGE: Final = "Judge histories"
HANDLE: Final = "Handle histories"
SPECIFY: Final = "Specifications and solvers"

ISOCHECK: Final[Mapping[str, Line]] = {
    "check": Line("isolang.cli.check:check", "Check histories against isolation levels.", JUDGE),
    "levels": Line(
        "isolang.cli.levels:levels",
        "Find the strongest levels that a history satisfies, and the weakest it violates.",
        JUDGE,
    ),
    "watch": Line(
        "isolang.cli.watch:watch",
        "Judge a history while it is being written, in bounded memory.",
        JUDGE,
    ),
    "run": Line(
        "isolang.cli.run:run",
        "Test a real database: run a workload on it, and judge what it did.",
        JUDGE,
    ),
    "litmus": Line(
        "isolang.cli.litmus:litmus",
        "Play what tells two levels apart on a database, in every interleaving.",
        JUDGE,
    ),
    "verify": Line(
        "isolang.cli.verify:verify",
        "Check a certificate again, natively and by the definition of its checks.",
        JUDGE,
    ),
    "stats": Line("isolang.cli.stats:stats", "Say what a history contains.", HANDLE),
    "convert": Line("isolang.cli.convert:convert", "Write a history in another format.", HANDLE),
    "generate": Line(
        "isolang.cli.generate:generate", "Write a simulated history whose truth is known.", HANDLE
    ),
    "spec": Line(
        "isolang.cli.commands:spec",
        "List, show, explain, compare, check and format specifications.",
        SPECIFY,
    ),
    "outcomes": Line(
        "isolang.cli.outcomes:outcomes",
        "List all outcomes of a small program, and which levels allow each of them.",
        SPECIFY,
    ),
    "solvers": Line(
        "isolang.cli.solvers:solvers",
        "Run every encoding with every solver on the same histories.",
        SPECIFY,
    ),
    "encode": Line(
        "isolang.cli.encode:encode",
        "Write what a solver would get, for any solver there is.",
        SPECIFY,
    ),
    "lsp": Line(
        "isolang.cli.lsp:lsp",
        "Serve editors: errors as you type, hover, completion, definitions, layout.",
        SPECIFY,
    ),
    "schema": Line(
        "isolang.cli.schema:schema",
        "Print the JSON Schema of what a command prints with --output json.",
        SPECIFY,
    ),
}
SPEC: Final[Mapping[str, Line]] = {
    "list": Line("isolang.cli.spec_library:list_levels", "List the levels of the library."),
    "show": Line("isolang.cli.spec_library:show_level", "Print the text of a level or a file."),
    "explain": Line(
        "isolang.cli.spec_explain:explain", "Say what kind of level it is, and what decides it."
    ),
    "lint": Line("isolang.cli.spec_lint:lint", "Say what is wrong, or probably not meant."),
    "compare": Line(
        "isolang.cli.spec_compare:compare",
        "Tell which of two specifications is stronger, by a proof or a history.",
    ),
    "place": Line(
        "isolang.cli.spec_place:place",
        "Tell where a specification lies among the levels of the library.",
    ),
    "lattice": Line(
        "isolang.cli.spec_place:lattice",
        "Compare all levels of the library, and prove or witness each edge.",
    ),
    "try": Line("isolang.cli.spec_try:try_spec", "Watch a file, and say at each save what it is."),
    "format": Line(
        "isolang.cli.spec_format:format_files",
        "Bring files into the usual layout; `-` is standard input to standard output.",
    ),
}


class LazyGroup(WithoutPydantic, TyperGroup):
    """Commands that are imported when they are needed."""

    lines: ClassVar[Mapping[str, Line]]

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        return list(self.lines)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, ``None`` if there is none."""
        if cmd_name in self.lines and cmd_name not in self.commands:
            self.commands[cmd_name] = _command(cmd_name, self.lines[cmd_name])
        return self.commands.get(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, from the table alone."""
        for name, line in self.lines.items():
            self.commands[name] = TyperCommand(name, help=line.about, rich_help_panel=line.panel)
        super().format_help(ctx, formatter)
        self.commands.clear()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help as an error where nothing was asked for."""
        if not args and not ctx.resilient_parsing:
            with redirect_stdout(sys.stderr):
                typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with.

        Raises:
            Mistake: there is none of this name.
        """
        name = args[0]
        if name not in self.lines and not ctx.resilient_parsing:
            raise no_such_command(ctx.command_path, name, self.lines)
        return super().resolve_command(ctx, args)


def no_such_command(program: str, name: str, lines: Mapping[str, Line]) -> Mistake:
    """What is said of a name that no command has."""
    meant = near(name, lines)
    return Mistake(
        f"no such command: {name}", f"did you mean `{program} {meant}`?" if meant else ""
    )


def _command(name: str, line: Line) -> Any:
    module, attribute = line.where.split(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group: Any = typer.main.get_command(found)
        group.name, group.rich_help_panel = name, line.panel
        return group
    one = typer.Typer(add_completion=False)
    one.command(name, cls=Command, rich_help_panel=line.panel)(as_command(found))
    return typer.main.get_command(one)


# --- isocheck ---


class _Isocheck(LazyGroup):
    """The whole command line: ``check`` is put in where no command is named."""

    lines = ISOCHECK

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = [name for param in self.get_params(ctx) for name in param.opts]
        return super().parse_args(ctx, _with_command(args, own, guess=ctx.resilient_parsing))


def _with_command(args: list[str], own: list[str], *, guess: bool) -> list[str]:
    """The arguments with a command in front, and a value for a lone ``--cross-check``.

    Raises:
        Mistake: the first one is probably a mistyped command.
    """
    if not args or args[0] in own:
        return args
    first = args[0]
    if first not in ISOCHECK:
        mistyped = not first.startswith("-") and near(first, ISOCHECK, 0.7)
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
    """Whether this is meant as the value of ``--cross-check``, and is no history."""
    if text in ("auto", "all"):
        return True
    from isolang.encodings.registry import ENCODINGS

    begins = text.split("/", maxsplit=1)[0] in ENCODINGS
    return (begins or text.endswith(("/none", "/known", "/fixpoint"))) and not os.path.exists(text)


def _version(wanted: bool) -> None:
    if wanted:
        from isolang.release import signature

        typer.echo(signature("isocheck"))
        raise typer.Exit


isocheck: Final = typer.Typer(
    cls=_Isocheck,
    name="isocheck",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    epilog="Exit codes: 0 valid; 1 a history is invalid; 2 an input cannot be used; 3 unknown; "
    "4 a certificate was rejected, or solvers disagree.",
)


@isocheck.callback()
def _isocheck(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Tell whether a database gives the isolation it promises.

    `isocheck --spec si history.edn` is short for `isocheck check --spec si history.edn`.
    """


class _Spec(LazyGroup):
    lines = SPEC


spec: Final = typer.Typer(
    cls=_Spec,
    epilog="Exit codes: 0 well; 1 something was found (lint), or would change (format --check); "
    "2 an input cannot be used.",
)


@spec.callback()
def _spec() -> None:
    """List, show, explain, compare, check and format specifications."""
