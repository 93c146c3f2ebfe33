"""What commands are made of: a parser that speaks as the rest of ``isocheck`` does.

``argparse`` and nothing else: the parser of the command line is paid for at every start, and
libraries that do more take ten times as long to import.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, NoReturn

HELP: Final = ("-h", "--help")
_WIDTH = 80


class UsageProblem(Exception):  # noqa: N818 - it is about the command line, not about the program
    """What the user typed makes no sense; the message is complete."""


class HelpWanted(Exception):  # noqa: N818 - no error
    """Help was asked for: the message is that help."""


class Command(NamedTuple):
    """A command of ``isocheck``.

    Attributes:
        about: what it does; the first line stands in the table of commands.
        declare: declares its arguments and options.
        where: ``module:function`` in ``isolang.cli`` of what does it, given their values by name;
            what it returns is the exit code. Imported when it is called.
    """

    about: str
    declare: Callable[[Parser], None]
    where: str

    def function(self) -> Callable[..., int]:
        """What does it."""
        module, name = self.where.split(":")
        function: Callable[..., int] = getattr(import_module(f"isolang.cli.{module}"), name)
        return function


class Group(NamedTuple):
    """Commands under a name.

    Attributes:
        about: what they are for.
        commands: by name.
        epilog: what their help ends with.
    """

    about: str
    commands: Mapping[str, Command | Group]
    epilog: str


class Parser:
    """The parser of one command; options and arguments may be mixed.

    Two of ``argparse`` share the work, one for the options and one for what they leave: a single
    one takes either all arguments at one place, or none that begin with a dash.
    """

    def __init__(self, program: str, about: str, *, epilog: str = "") -> None:
        """Begin without arguments and options.

        Args:
            program: the command as it is typed.
            about: what it does.
            epilog: what the help ends with.
        """
        self._help = _Argparse(program, about, epilog)
        self._tables = {
            title: self._help.add_argument_group(title)
            for title in ("Arguments", "Options", "Commands")
        }
        self._options, self._arguments = _Argparse(program), _Argparse(program)
        self._usage = [program, "[OPTIONS]"]
        self._flags: list[str] = []
        self._required: dict[str, str] = {}  # by destination: what is missing if it has no value

    def argument(self, name: str, metavar: str, help: str, **more: Any) -> None:  # noqa: A002
        """Declare an argument.

        Args:
            name: of its value in what :meth:`parse` returns.
            metavar: what the help calls it.
            help: what it is.
            more: as of ``add_argument``.
        """
        shown = f"{metavar}..." if more.get("nargs") == "+" else metavar
        self._usage.append(f"[{shown}]" if more.get("nargs") == "?" else shown)
        self._tables["Arguments"].add_argument(name, metavar=metavar, help=help)
        self._arguments.add_argument(name, metavar=metavar, **more)

    def option(self, *flags: str, help: str, **more: Any) -> None:  # noqa: A002
        """Declare an option; the help shows its default, if there is one to speak of.

        Args:
            flags: as it is typed.
            help: what it is.
            more: as of ``add_argument``.
        """
        self._flags += flags
        default = more.get("default")
        required = more.pop("required", False)
        notes = ["required"] if required else []
        if default != "" and isinstance(default, str | int | float) and default is not False:
            notes.append(f"default: {default}")
        text = f"{help}  [{', '.join(notes)}]" if notes else help
        self._tables["Options"].add_argument(*flags, help=text, **more)
        action = self._options.add_argument(*flags, **more)
        if required:  # said after what was mistyped, which may be just this
            self._required[action.dest] = f"{'/'.join(flags)} {action.metavar} is missing"

    def switch(self, *flags: str, help: str, **more: Any) -> None:  # noqa: A002
        """Declare an option without a value; see :meth:`option`."""
        self.option(*flags, help=help, **{"action": "store_true", **more})

    def repeated(self, *flags: str, help: str, **more: Any) -> None:  # noqa: A002
        """Declare an option that may be given several times; see :meth:`option`."""
        self.option(*flags, help=help, action="append", **{"default": [], **more})

    def command(self, name: str, help: str) -> None:  # noqa: A002
        """Show a command of a group in its help."""
        self._usage[2:] = ["COMMAND", "[ARGUMENTS]..."]
        self._tables["Commands"].add_argument(name, metavar=name, help=help)

    def help(self) -> str:
        """What ``--help`` shows."""
        self._tables["Options"].add_argument(
            *HELP, action="store_true", help="Show this message and exit."
        )
        self._help.usage = " ".join(self._usage)
        return self._help.format_help()

    def parse(self, arguments: Sequence[str]) -> dict[str, Any]:
        """The values by name.

        Args:
            arguments: options and arguments; all that follows ``--`` is an argument.

        Raises:
            UsageProblem: these are not those declared.
            HelpWanted: ``--help`` is among them.
        """
        end = arguments.index("--") if "--" in arguments else len(arguments)
        first, last = arguments[:end], arguments[end + 1 :]
        if any(argument in HELP for argument in first):
            raise HelpWanted(self.help())
        options, rest = self._options.parse_known_args(first)
        for argument in rest:
            if argument.startswith("-") and argument != "-":
                near = difflib.get_close_matches(argument, self._flags, 1)
                meant = f" (did you mean {near[0]}?)" if near else ""
                raise UsageProblem(f"no such option: {argument}{meant}")
        for destination, missing in self._required.items():
            if not getattr(options, destination):
                raise UsageProblem(missing)
        found = self._arguments.parse_args(["--", *rest, *last] if rest or last else [])
        return {**vars(options), **vars(found)}


class _Argparse(argparse.ArgumentParser):
    """Of ``argparse``, what we use of it."""

    def __init__(self, program: str, about: str = "", epilog: str = "") -> None:
        super().__init__(
            prog=program,
            description=about,
            epilog=epilog,
            add_help=False,
            allow_abbrev=False,  # a script must not change its meaning with the next option added
            formatter_class=_Help,
        )

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, where the base class would print it and exit."""
        raise UsageProblem(message.removeprefix("argument "))


class _Help(argparse.HelpFormatter):
    """Help that looks the same in every terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=_WIDTH)

    def add_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None
    ) -> None:
        """Begin with a capital letter."""
        super().add_usage(usage, actions, groups, prefix or "Usage: ")

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """``-o, --output text|json`` where the base class repeats the value."""
        flags = ", ".join(sorted(action.option_strings, key=len))
        return f"{flags} {action.metavar or ''}".strip() if flags else str(action.metavar)


def overview(program: str, group: Group) -> str:
    """The help of a group of commands."""
    parser = Parser(program, group.about, epilog=group.epilog)
    for name, command in group.commands.items():
        parser.command(name, command.about.splitlines()[0])
    return parser.help()


def positive(text: str) -> float:
    """A number above 0, as the type of an option."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"not a positive number (got {text})")
    return value


def not_negative(text: str) -> float:
    """A number from 0, as the type of an option."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"a negative number (got {text})")
    return value


def at_least(least: int) -> Callable[[str], int]:
    """Integers from ``least``, as the type of an option."""

    def integer(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"got {value}, expected at least {least}")
        return value

    return integer


# --- what several commands take ---


def reading(p: Parser) -> None:
    """How a history is read: ``format``, ``timestamps`` and ``initial``."""
    p.option(
        "--from", dest="format", metavar="FORMAT", default="auto",
        help="The histories' format, by default found out: edn, jepsen-json, dbcop, dbcop-json, "
        "hist, cobra, viper, plume, awdit.",
    )  # fmt: skip
    p.switch("--timestamps", help="Cobra logs have timestamps.")
    p.option("--initial", metavar="N", type=int, help="Transaction N is the initial one.")


def history(p: Parser) -> None:
    """The history."""
    p.argument("history", "HISTORY", "A history.")


def spec(p: Parser) -> None:
    """The one specification."""
    p.option("--spec", "-s", metavar="SPEC", required=True, help="A level or a .iso file.")


def output(p: Parser, *choices: str) -> None:
    """How to print: one of some words, of which `text` is the default."""
    p.option(
        "--output",
        "-o",
        choices=choices,
        metavar="|".join(choices),
        default="text",
        help="How to print.",
    )


def include(p: Parser) -> None:
    """Where includes are."""
    p.repeated("--include", metavar="DIR", help="Where to look for includes.")


def prune(p: Parser) -> None:
    """The stage of pruning."""
    p.option(
        "--prune", metavar="STAGE", default="auto",
        help="What is concluded before: none, known or fixpoint.",
    )  # fmt: skip


def no_certify(p: Parser) -> None:
    """Whether to certify."""
    p.switch(
        "--no-certify", dest="certify", action="store_false",
        help="Do not check verdicts independently.",
    )  # fmt: skip


def seed(p: Parser) -> None:
    """What breaks ties."""
    p.option("--seed", metavar="N", type=at_least(0), default=0, help="Breaks ties.")
