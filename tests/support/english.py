"""Counts the words, beginnings of docstrings, and identifiers that ``tests/english.toml`` forbids.

Usage: ``python tests/support/english.py [-v ROOM | --write]``. A room is a package or a module of
``isolang``, ``native``, or ``docs`` (with the pages at the root of the repository).
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "tests" / "english.toml"
BASELINE = ROOT / "tests" / "english_baseline.toml"
VAGUE = {"found", "one"}
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class Rule:
    """A pattern of unidiomatic English, with the words to use instead."""

    kind: str
    pattern: re.Pattern[str]
    instead: str
    bad: str
    good: str

    def hits(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches of the rule in a text; in an identifier, only whole words match."""
        if self.kind == "docstring":
            if match := self.pattern.match(text):
                yield match
        elif self.kind == "identifier":
            for word in _WORDS.findall(text):
                if match := self.pattern.search(word.lower()):
                    yield match
        else:
            yield from self.pattern.finditer(text)


@dataclass(frozen=True)
class Hit:
    """A match of a rule: the room, the file and line, the matched text, and the rule."""

    room: str
    path: Path
    line: int
    text: str
    rule: Rule

    def __str__(self) -> str:
        """Return the hit as ``file:line: [text] what to write instead``."""
        return f"{self.path}:{self.line}: [{self.text}] {self.rule.instead}"


@cache
def rules() -> tuple[Rule, ...]:
    """Return the rules of ``english.toml``."""
    table = tomllib.loads(RULES.read_text())
    return tuple(
        Rule(kind, re.compile(row["pattern"]), row["instead"], row["bad"], row["good"])
        for kind in ("word", "docstring", "identifier")
        for row in table[kind]
    )


def reviewed() -> Counter[tuple[str, str]]:
    """Return how many hits of each (file, matched text) a reviewer has accepted."""
    table = tomllib.loads(BASELINE.read_text())
    return Counter({(row["file"], row["text"]): row["count"] for row in table.get("false", ())})


def baseline() -> dict[str, int]:
    """Return the greatest number of hits that each room may have."""
    return dict(tomllib.loads(BASELINE.read_text())["rooms"])


def still_shared() -> list[str]:
    """Return the names that several public classes still share, although each should have one."""
    return list(tomllib.loads(BASELINE.read_text()).get("shared", {}).get("classes", ()))


def python_texts(source: str) -> Iterator[tuple[str, int, str]]:
    """Yield (kind, line, text) for the docstrings, comments and identifiers of a module.

    An identifier with ``left`` is skipped if the module has the same identifier with ``right``,
    because then ``left`` is a side and not a remainder.
    """
    seen: dict[str, int] = {}
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node, clean=False):
                yield "docstring", node.body[0].lineno, text
            if not isinstance(node, ast.Module):
                names = [node.name]
        elif isinstance(node, ast.arg):
            names = [node.arg]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names = [node.attr]
        for name in names:
            seen.setdefault(name, getattr(node, "lineno", 1))
    for name, line in seen.items():
        if "left" not in name or name.replace("left", "right") not in seen:
            yield "identifier", line, name
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield "comment", token.start[0], token.string


@cache
def texts(root: Path) -> tuple[tuple[str, Path, str, int, str], ...]:
    """Return (room, file, kind, line, text) for all text of the repository."""
    return tuple(_texts(root))


def _texts(root: Path) -> Iterator[tuple[str, Path, str, int, str]]:
    for path in sorted(root.glob("isolang/**/*.py")):
        relative = path.relative_to(root)
        room = relative.parts[1].removesuffix(".py")
        for kind, line, text in python_texts(path.read_text()):
            yield room, relative, kind, line, text
    for path in sorted([*root.glob("native/**/*.cpp"), *root.glob("native/**/*.hpp")]):
        for line, text in enumerate(path.read_text().splitlines(), 1):
            if match := re.search(r"//+ ?(.*)", text):
                yield "native", path.relative_to(root), "comment", line, match[1]
    for path in sorted([*root.glob("docs/*.md"), *root.glob("*.md")]):
        code = False
        for line, text in enumerate(path.read_text().splitlines(), 1):
            code ^= text.startswith("```")
            if not code:
                yield "docs", path.relative_to(root), "comment", line, text


@cache
def hits(root: Path = ROOT) -> list[Hit]:
    """Return all hits except those that a reviewer has accepted."""
    false = reviewed()
    found = []
    for room, path, kind, line, text in texts(root):
        for rule in rules():
            if (rule.kind == "identifier") != (kind == "identifier"):
                continue
            if rule.kind == "docstring" and kind != "docstring":
                continue
            for match in rule.hits(text):
                shown = text if kind == "identifier" else match[0]
                if false[str(path), shown] > 0:
                    false[str(path), shown] -= 1
                    continue
                at = line if kind == "identifier" else line + text.count("\n", 0, match.start())
                found.append(Hit(room, path, at, shown, rule))
    return found


def vague_bindings(root: Path = ROOT) -> Counter[str]:
    """Return how often each room binds a variable to a name that does not say what it holds."""
    bindings: Counter[str] = Counter()
    for folder in ("isolang", "tests", "benchmarks"):
        for path in root.glob(f"{folder}/**/*.py"):
            room = path.relative_to(root).parts[1].removesuffix(".py")
            for node in ast.walk(ast.parse(path.read_text())):
                stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                name = node.id if stored else getattr(node, "arg", None)
                if name in VAGUE and (stored or isinstance(node, ast.arg)):
                    bindings[room if folder == "isolang" else f"{folder}/{room}"] += 1
    return bindings


def allowed_bindings() -> dict[str, int]:
    """Return the greatest number of vague bindings that each room may have."""
    return dict(tomllib.loads(BASELINE.read_text())["bindings"])


def main(arguments: list[str]) -> int:
    """Print the counts, with ``-v`` the hits of a room; with ``--write``, update the baseline."""
    found = hits()
    rooms = Counter(hit.room for hit in found)
    if arguments[:1] == ["-v"]:
        for hit in found:
            if hit.room in arguments[1:] or str(hit.path).startswith(tuple(arguments[1:])):
                print(hit)
    elif arguments == ["--write"]:
        head, _, rest = BASELINE.read_text().partition("[rooms]\n")
        tail = rest.partition("\n[")
        lines = [f"{room} = {count}" for room, count in sorted(rooms.items())]
        text = head + "[rooms]\n" + "\n".join(lines) + "\n"
        text += ("\n[" + tail[2]) if tail[1] else ""
        head, _, rest = text.partition("[bindings]\n")
        lines = [f'"{room}" = {count}' for room, count in sorted(vague_bindings().items())]
        tail = rest.partition("\n[")
        text = (
            head + "[bindings]\n" + "\n".join(lines) + "\n" + ("\n[" + tail[2] if tail[1] else "")
        )
        BASELINE.write_text(text)
    names = sum(hit.rule.kind == "identifier" for hit in found)
    print(f"{len(found) - names} hits in prose, {names} identifiers")
    print(", ".join(f"{room} {count}" for room, count in rooms.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
