"""``isocheck spec``: the commands for people who write specifications."""

from __future__ import annotations

from typing import Final

from isolang.cli.arguments import Command, Group, Parser, include, not_negative, output


def _name(p: Parser) -> None:
    p.argument("name", "SPEC", "A level (si, ser, …) or a .iso file.")


def _files(p: Parser) -> None:
    p.argument("files", "FILE", "Specifications.", nargs="+")


def _list(p: Parser) -> None:
    output(p, "text", "json")


def _show(p: Parser) -> None:
    _name(p)
    p.switch("--expand", help="With what is included, and definitions expanded.")
    include(p)
    output(p, "text", "json")


def _explain(p: Parser) -> None:
    _name(p)
    include(p)
    output(p, "text", "json")


def _lint(p: Parser) -> None:
    _files(p)
    include(p)
    p.option(
        "--seconds", metavar="S", type=not_negative, default=20.0,
        help="At most, for the search through small histories of each file.",
    )  # fmt: skip
    output(p, "text", "json")


def _format(p: Parser) -> None:
    _files(p)
    p.switch("--check", help="Change nothing; exit 1 if a file would change.")
    p.switch("--diff", help="Change nothing; print what would.")


SPEC: Final = Group(
    about="List, show, explain, check and format specifications.",
    epilog="Exit codes: 0 well; 1 something was found (lint), or would change (format --check); "
    "2 an input cannot be used.",
    commands={
        "list": Command("The levels of the library.", _list, "spec_library:list_levels"),
        "show": Command("The text of a level or a file.", _show, "spec_library:show_level"),
        "explain": Command(
            "What kind of level it is, and what decides it.\n\n"
            "With the conditions that held or failed, and what would make it faster.",
            _explain,
            "spec_explain:explain",
        ),
        "lint": Command(
            "What is wrong, or probably not meant.\n\n"
            "Every error and warning, and what a search through all small histories shows.",
            _lint,
            "spec_lint:lint",
        ),
        "format": Command(
            "Bring files into the usual layout.\n\n`-` is standard input to standard output.",
            _format,
            "spec_format:format_files",
        ),
    },
)
