"""Checks the words of a command line of ``isocheck`` without running it."""

from __future__ import annotations

import re

import typer

from isolang.cli.commands import ISOCHECK, SPEC, isocheck


def wrong_words(words: list[str]) -> list[str]:
    """Return what is wrong with a command line: its command's name, or options it does not have."""
    end = words.index("--") if "--" in words else len(words)
    command, arguments = _command_of(words[1:end])
    if command is None:
        return words
    known = {"--help", "-h"} | {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    given = [word.split("=")[0] for word in arguments if re.match(r"--?[a-z]", word)]
    return [option for option in given if option not in known]


def all_options() -> set[str]:
    """Return the options of all commands."""
    group = typer.main.get_command(isocheck)
    spec = group.get_command(None, "spec")
    commands = [
        *(group.get_command(None, name) for name in ISOCHECK),
        *(spec.get_command(None, name) for name in SPEC),
    ]
    return {"--help", "--version", "--install-completion"} | {
        option
        for command in commands
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


def _command_of(words: list[str]):
    """Return the command that the first words name, with the words after its name."""
    group = typer.main.get_command(isocheck)
    if not words or words[0] in ("--help", "--version", "--install-completion"):
        return group, words
    if words[0].startswith("-"):  # as the command line does, without a name
        return group.get_command(None, "check"), words
    command = group.get_command(None, words[0])
    if hasattr(command, "list_commands") and words[1:]:
        return command.get_command(None, words[1]), words[2:]
    return command, words[1:]
