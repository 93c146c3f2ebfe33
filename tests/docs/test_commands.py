"""The commands that the pages show run, and print what the pages show."""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys

import pytest
from support.cli import ENVIRONMENT, run_here
from support.command_words import all_options, wrong_words
from support.documentation import (
    Command,
    blocks,
    commands,
    elsewhere,
    outputs,
    pages,
    prepare,
    spans,
    table_of,
)
from support.paths import ROOT

# How long a command runs is no part of what it shows: a user waits, a test does not.
SHORTER = (
    (r"--seconds \d+", "--seconds 1"),
    (r"--until-idle \w+", "--until-idle 0"),
    (r"--transactions \d{6,}", "--transactions 2000"),
)
# What differs from run to run, in a pattern that `re.escape` made, and what stands for it.
VARYING = (
    (r"…|\\\.\\\.\\\.", ".*?"),
    (r"\d+\\\.\d+(?=\\ s\b)", r"[\\d.]+"),
    (r"PostgreSQL\\ \d+\\\.\d+", r"PostgreSQL [\\d.]+"),
    (r"\d+\\ of\\ \d+(?=\\ interleavings)", r"\\d+ of \\d+"),
)
SERVER = re.compile(
    r"\b(?:run|--run|observe) [\"']?(?:postgres|mariadb|mysql|redis|etcd|galera|mongodb)"
)
LONG = {"docs/report.md", "docs/run.md", "docs/testing.md"}  # pages: a second of CPU time each
EACH_WEEK = {"docs/adding-an-encoding.md", "docs/encodings.md", "docs/engines.md"}
MISSING = ("no server is installed", "no driver", "is not installed", "install the package")


def to_run(*, server: bool, slow: bool = False) -> list[Command]:
    """Return the commands that run here: those that start a server, or all others."""
    return [
        command
        for command in commands()
        if not elsewhere(command)
        and starts_a_server(command) == server
        and is_slow(command) == slow
    ]


def starts_a_server(command: Command) -> bool:
    """Return whether a command starts a server, or needs files of one that does."""
    together = pages().get(command.page, {}).get("together", False)
    return together or SERVER.search(command.text) is not None


def is_slow(command: Command) -> bool:
    """Return whether a command takes more than five seconds."""
    return command.first in pages().get(command.page, {}).get("slow", [])


class MissingError(Exception):
    """Raised where this machine does not have the database that a command needs."""


def run_command(command: Command, capfd, *, codes=(0, 1)) -> str:
    """Run a command in the current folder, and return what it printed.

    A command of ``isocheck`` alone runs in this process, which saves its start; but not one that
    loads a plugin, whose encodings the tests after it would meet.
    """
    text = command.text
    if text.startswith("isocheck run ") and not re.search(
        "--(seconds|selftest|workload scripted)", text
    ):
        text += " --seconds 1"
    for long, short in SHORTER:
        text = re.sub(long, short, text)
    words = command._replace(text=text).words()
    if words[0] == "isocheck" and not {"|", "&", "&&", "--plugin"} & set(words):
        file = words[words.index(">") + 1] if ">" in words else ""
        arguments = words[1 : words.index(">")] if file else words[1:]
        run = run_here(capfd, *(name for word in arguments for name in expanded(word)))
        code, out, err = run.code, run.out, run.err
        if file:
            os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
            with open(file, "w", encoding="utf-8") as opened:
                opened.write(out)
    else:
        done = subprocess.run(
            ["bash", "-c", text], capture_output=True, text=True, check=False, env=with_programs()
        )
        code, out, err = done.returncode, done.stdout, done.stderr
    if code == 127 or (code == 2 and any(reason in err for reason in MISSING)):
        raise MissingError(f"{command.where}: {err.strip()}")
    assert "internal error" not in err, (command.where, err)
    if "--seconds" in text:  # a second may be too short to prove anything
        codes = (*codes, 3)
    assert code in codes, (command.where, text, code, out, err)
    return out if code != 2 else err


def expanded(word: str) -> list[str]:
    """Return the files that a pattern matches, as a shell does, or the word itself."""
    return (sorted(glob.glob(word)) if re.search(r"[*?]", word) else []) or [word]


def with_programs() -> dict[str, str]:
    """Return an environment whose ``isocheck`` and ``python`` are those that are tested."""
    os.makedirs("bin", exist_ok=True)
    for name, start in (("isocheck", "-P -m isolang.cli.main"), ("python", "")):
        with open(f"bin/{name}", "w", encoding="utf-8") as script:
            script.write(f'#!/bin/sh\nexec "{sys.executable}" {start} "$@"\n')
        os.chmod(f"bin/{name}", 0o755)
    return {**ENVIRONMENT, "PATH": f"{os.getcwd()}/bin{os.pathsep}{os.environ['PATH']}"}


def shows(shown: str, printed: str) -> bool:
    """Return whether an output contains what a page shows of it.

    Lines may break elsewhere, and dots stand for anything. Times, versions of PostgreSQL, and the
    number of interleavings that showed an outcome differ from run to run.
    """
    pattern = re.escape(" ".join(shown.split()))
    for varies, masked in VARYING:
        pattern = re.sub(varies, masked, pattern)
    return re.search(pattern.replace(r"\ ", " +"), " ".join(printed.split())) is not None


def run_page(page: str, chosen: list[Command], capfd) -> None:
    """Run commands of a page in their order, and compare their outputs with those it shows."""
    table = pages().get(page, {})
    for text in table.get("prepared_by", ()):
        run_command(Command(page, 0, text), capfd)
    ran, missing = 0, []
    for command in (command for command in chosen if command.page == page):
        try:
            out = run_command(command, capfd)
        except MissingError as error:
            if table.get("together"):
                pytest.skip(str(error))
            missing.append(str(error))
            continue
        ran += 1
        if table_of(command, "other_output"):
            continue
        for text in (command.shown, *shown_beneath(command)):
            assert shows(text, out), f"{command.where}: {text}\n--- printed:\n{out}"
    if not ran:
        pytest.skip("; ".join(missing))


def shown_beneath(command: Command) -> list[str]:
    """Return the outputs that a page shows in blocks of their own after a command."""
    return [
        output.text
        for output, before in outputs()
        if before == command and not elsewhere(output) and not table_of(output, "printed_by")
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, in which a page finds what it uses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def page_names(chosen: list[Command]) -> list[str]:
    return sorted({command.page for command in chosen})


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow) if page in LONG else page
        for page in page_names(to_run(server=False))
    ],
)
def test_the_commands_of_a_page(page, folder, capfd):
    """Each runs after those before it, and prints what the page shows."""
    prepare(page, folder)
    run_page(page, to_run(server=False), capfd)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.campaign) if page in EACH_WEEK else page
        for page in page_names(to_run(server=False, slow=True))
    ],
)
def test_the_slow_commands_of_a_page(page, folder, capfd):
    """They compare solvers, run embedded databases, or compile an application."""
    prepare(page, folder)
    run_page(page, to_run(server=False, slow=True), capfd)


@pytest.mark.server
@pytest.mark.parametrize("page", page_names(to_run(server=True)))
def test_the_commands_with_servers_of_a_page(page, folder, capfd):
    """Each runs against a server that it starts, and prints what the page shows."""
    prepare(page, folder)
    run_page(page, to_run(server=True), capfd)


@pytest.mark.parametrize(
    "block",
    [block for block in blocks() if table_of(block, "printed_by")],
    ids=lambda block: block.where,
)
def test_an_output_is_that_of_a_command(block, folder, capfd):
    """The page says in its text how it came about. Of a JSON object it shows some keys."""
    prepare(block.page, folder)
    command = Command(block.page, block.line, table_of(block, "printed_by"))
    out = run_command(command, capfd, codes=(0, 1, 2))  # the message of a mistake is shown, too
    if block.language == "json":
        assert json.loads(block.text).items() <= json.loads(out).items()
    else:
        assert shows(block.text, out), f"{block.text}\n--- printed:\n{out}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "package"), [("Kuzu", "ladybug"), ("SeekDB", "pylibseekdb")])
def test_an_adapter_of_the_page_passes_the_self_test(name, package, folder):
    """Ladybug continues Kùzu, whose own package is no longer developed, and has its functions."""
    pytest.importorskip(package, reason=f"{package} is not installed")
    (adapter,) = (block for block in blocks() if f"\nclass {name}(" in block.text)
    (folder / "adapter.py").write_text(adapter.text, encoding="utf-8")
    (folder / "kuzu.py").write_text("from ladybug import *\nfrom ladybug import __version__\n")
    path = os.pathsep.join([ENVIRONMENT["PYTHONPATH"], str(folder)])
    done = subprocess.run(
        [sys.executable, "-P", "-m", "isolang.cli.main", "run", f"adapter.py:{name}", "--selftest"],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok        another client reads committed writes" in done.stdout


@pytest.mark.slow
def test_the_smallest_program_of_docs_exec(folder, capfd):
    """It runs, and the self-test rejects it for the reason that the page gives."""
    (program,) = (block for block in blocks() if block.text.startswith("import json, sys\n"))
    (folder / "program.py").write_text(program.text, encoding="utf-8")
    target = f"exec:{sys.executable} program.py"
    run = run_here(capfd, "run", target, "--selftest")
    assert run.code == 2
    assert "FAILED another client reads committed writes" in " ".join(run.out.split())


def test_an_output_is_compared():
    """Another word is noticed; another time, another line break and what dots hide are not."""
    shown = "VALID  h.edn\n  two writes on PostgreSQL 18.6: 0.1 s\n  ...\n  the end"
    assert shows(shown, "VALID h.edn two\nwrites on PostgreSQL 17.1: 12.34 s so on\nthe end of it")
    assert not shows(shown, "VALID h.edn three\nwrites on PostgreSQL 18.6: 0.1 s\nthe end")
    assert shows("in 18 of 20 interleavings", "seen in 11 of 12 interleavings")
    assert not shows(shown, "INVALID h.edn two writes")


# --- the words of commands ---


@pytest.mark.slow
def test_the_words_of_each_command_are_known():
    """Also of those that do not run here: no command and no option is misspelt."""
    wrong = {
        f"{command.where}: {' '.join(words)}": unknown
        for command in commands()
        for words in command.programs()
        if words[0].rpartition("/")[2] == "isocheck" and (unknown := wrong_words(words))
    }
    assert wrong == {}


def commands_in_prose() -> list[tuple[str, str]]:
    return [(page, span) for page, span in spans() if re.match(r"isocheck(?: |$)", span)]


@pytest.mark.slow
def test_the_words_of_each_command_in_the_text_are_known():
    """A command between backticks names commands and options that there are."""
    wrong = {}
    for page, span in commands_in_prose():
        words = re.sub(r"[\[\]]", "", span).split()
        if words[1:2] == ["…"]:
            continue
        if unknown := wrong_words(words):
            wrong[f"{page}: {span}"] = unknown
    assert wrong == {}
    assert len(commands_in_prose()) > 200


# Of pytest, git, gh, code, elle-cli and mariadb-dump.
OF_OTHERS = {
    "--echo", "--format", "--install-extension", "--junitxml", "--model", "--repo",
    "--single-transaction", "--tags",
}  # fmt: skip


def test_the_options_in_the_text_are_known():
    """An option between backticks is isocheck's, or one of a script of this project."""
    scripts = [*ROOT.glob("benchmarks/*.py"), *ROOT.glob("isolang/testing/*.py"), ROOT / "fuzz/run"]
    texts = "".join(script.read_text(encoding="utf-8") for script in scripts)
    known = all_options() | OF_OTHERS
    unknown = {
        f"{page}: {option}"
        for page, span in spans()
        for option in re.findall(r"(?<!\S)--[a-z][\w-]*", span)
        if option not in known and option not in texts
    }
    assert unknown == set()


def test_a_misspelt_word_is_noticed():
    """Of the command, of a command within it, and of an option."""
    assert wrong_words(["isocheck", "chekc", "a.edn"]) == ["isocheck", "chekc", "a.edn"]
    assert wrong_words(["isocheck", "spec", "shwo", "si"]) == ["isocheck", "spec", "shwo", "si"]
    assert wrong_words(["isocheck", "--spce", "si", "a.edn"]) == ["--spce"]
    assert wrong_words(["isocheck", "run", "sqlite", "--", "--spce"]) == []
