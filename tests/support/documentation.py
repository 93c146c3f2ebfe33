"""Finds the blocks of code, the commands and the outputs that the documentation shows."""

from __future__ import annotations

import lzma
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from support.paths import DOCS, ROOT

# A changelog speaks of commands that may be gone.
PAGES = sorted({
    *DOCS.glob("**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("[!.]*/README.md")
} - {ROOT / "CHANGELOG.md"})  # fmt: skip
_FENCE = re.compile(r"^( *)(```+)(\w*)$")
# What separates the simple commands of a line.
_SEPARATORS = {"&&", "|", ">", "<", "&", ";"}


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int  # of its first line
    language: str
    text: str

    @property
    def first(self) -> str:
        """Its first line, by which tests/docs/pages.toml names it."""
        return self.text.strip().split("\n")[0].strip()

    @property
    def where(self) -> str:
        """The page and the line, which is also the name of the block's test."""
        return f"{self.page}:{self.line}"


class Command(NamedTuple):
    """A command line of a block, with the output that the block shows beneath it."""

    page: str
    line: int
    text: str
    shown: str = ""

    @property
    def where(self) -> str:
        """The page and the line, which is also the name of the command's test."""
        return f"{self.page}:{self.line}"

    @property
    def first(self) -> str:
        """The command itself, by which tests/docs/pages.toml names it."""
        return self.text

    def words(self) -> list[str]:
        """Return the words of the shell and its separators, without quotes."""
        lexer = shlex.shlex(self.text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        return list(lexer)

    def programs(self) -> list[list[str]]:
        """Return the simple commands, each as its words; the file after ``>`` is left out."""
        simple: list[list[str]] = [[]]
        words = iter(self.words())
        for word in words:
            if word in (">", "<"):
                next(words)
            elif word in _SEPARATORS:
                simple.append([])
            else:
                simple[-1].append(word)
        return [words for words in simple if words]


@cache
def blocks() -> tuple[Block, ...]:
    """Return the fenced blocks of all pages."""
    return tuple(block for page in PAGES for block in blocks_of(page))


def blocks_of(page) -> list[Block]:
    """Return the fenced blocks of a page, without the indentation of their lists."""
    result, lines = [], page.read_text(encoding="utf-8").split("\n")
    name, number = page.relative_to(ROOT).as_posix(), 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        number += 1
        if not opened:
            continue
        indent, fence, language = opened.groups()
        end = lines.index(indent + fence, number)
        text = "".join(line.removeprefix(indent) + "\n" for line in lines[number:end])
        result.append(Block(name, number + 1, language, text))
        number = end + 1
    return result


def is_session(block: Block) -> bool:
    """Return whether a block shows commands after a prompt, with their outputs."""
    return not block.language and block.text.startswith("$ ")


@cache
def commands() -> tuple[Command, ...]:
    """Return the commands of all blocks."""
    return tuple(command for block in blocks() for command in commands_of(block))


def commands_of(block: Block) -> list[Command]:
    """Return the commands of a block; none if it is no block of commands."""
    lines = block.text.rstrip("\n").split("\n")
    if block.language == "sh":
        return [
            Command(block.page, block.line + start, text)
            for start, text in _joined(lines)
            if shlex.split(text, comments=True)
        ]
    if not is_session(block):
        return []
    prompts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    return [
        Command(
            block.page,
            block.line + start,
            lines[start].removeprefix("$ "),
            "\n".join(lines[start + 1 : end]),
        )
        for start, end in zip(prompts, [*prompts[1:], len(lines)], strict=True)
    ]


def _joined(lines: list[str]) -> list[tuple[int, str]]:
    """Return the lines of a shell with their numbers: continued ones joined, no comments."""
    result: list[tuple[int, str]] = []
    continues = False
    for number, line in enumerate(lines):
        code = re.sub(r"(^|\s+)# .*$", "", line)
        if continues:
            start, begun = result.pop()
            result.append((start, f"{begun.removesuffix(chr(92)).rstrip()} {code.strip()}"))
        else:
            result.append((number, code))
        continues = code.endswith("\\")
    return result


def outputs() -> list[tuple[Block, Command | None]]:
    """Return the blocks without a language or with ``text``, each after the command before it.

    The command is the last one that the page shows before the block, or ``None``.
    """
    result: list[tuple[Block, Command | None]] = []
    last: Command | None = None
    for block in blocks():
        if last is not None and last.page != block.page:
            last = None
        if block.language in ("", "text") and not is_session(block):
            result.append((block, last))
        last = (commands_of(block) or [last])[-1]
    return result


def spans() -> list[tuple[str, str]]:
    """Return the text between backticks of each page's prose, with the page."""
    result = []
    for page in PAGES:
        prose = re.sub(
            r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M
        )
        for span in re.findall(r"`([^`]+)`", prose):
            result.append((page.relative_to(ROOT).as_posix(), " ".join(span.split())))
    return result


@cache
def pages() -> dict:
    """Return what tests/docs/pages.toml says of each page."""
    return tomllib.loads((ROOT / "tests/docs/pages.toml").read_text(encoding="utf-8"))


def elsewhere(item: Block | Command) -> str:
    """Return why a block or a command does not run here; empty if it does.

    It is a reason, or the test that runs it.
    """
    return table_of(item, "elsewhere")


def table_of(item: Block | Command, kind: str):
    """Return what a table of the page says of a block or a command; empty if it says nothing."""
    return pages().get(item.page, {}).get(kind, {}).get(item.first, "")


def prepare(page: str, folder: Path) -> None:
    """Write the files that a page uses into a folder, which stands for the root.

    A block is saved under the name in its first line, a level under the name of the level, and the
    history that follows it under the same name.
    """
    for name in ("examples", "tests", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    level = ""
    for block in (block for block in blocks() if block.page == page):
        if named := re.match(r"(?://|#) ([\w-]+\.\w+)\n", block.text):
            (folder / named[1]).write_text(block.text, encoding="utf-8")
        if named := re.match(r'spec ([\w-]+) "', block.text):
            level = named[1]
            (folder / f"{level}.iso").write_text(block.text, encoding="utf-8")
        elif block.language == "edn" and level:
            (folder / f"{level}.edn").write_text(block.text, encoding="utf-8")
    for name, source in pages().get(page, {}).get("files", {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_contents(page, source, compressed=name.endswith(".xz")))


def _contents(page: str, source: str, *, compressed: bool) -> bytes:
    """Return the contents of a file, of the page's first block `@LANGUAGE`, or the text itself."""
    if source.startswith("@"):
        contents = next(
            block.text for block in blocks() if (block.page, f"@{block.language}") == (page, source)
        ).encode()
    elif "\n" not in source and (ROOT / source).is_file():
        contents = (ROOT / source).read_bytes()
    else:
        contents = source.encode()
    return lzma.compress(contents) if compressed else contents
