"""Makes a copy of the repository, changes a few lines, and builds the native core of the copy."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(r"(?://|#) (?:mutant|ablation): ([\w, -]+)$", re.MULTILINE)


class Change(Struct, frozen=True, kw_only=True):
    """A change of the statement that ``// mutant: MARK`` or ``// ablation: MARK`` marks.

    In Python, the comment begins with ``#``.

    Attributes:
        mark: the name in the comment, which is at the end of the statement's first line or above
            it.
        edit: ``drop`` removes the statement (``drop 2`` also removes the next one), ``never`` and
            ``always`` make its condition false or true, and ``insert`` inserts ``new`` before it.
            If it is empty, ``new`` replaces ``old``, which must occur exactly once in the
            statement.
    """

    mark: str
    edit: str = ""
    old: str = ""
    new: str = ""


class Sources:
    """The sources in a folder, with the places of their marks."""

    def __init__(self, tree: Path) -> None:
        """Find all marks in a folder."""
        self.marks: dict[str, tuple[Path, int]] = {}
        self.twice: list[str] = []
        found = [*(tree / "native").rglob("*.[ch]pp"), *(tree / "isolang").rglob("*.py")]
        for path in sorted(found):
            text = path.read_text()
            for comment in MARK.finditer(text):
                begin = text.rfind("\n", 0, comment.start()) + 1
                while MARK.match(text[begin:].lstrip()):  # a mark on its own line
                    begin = text.index("\n", begin) + 1
                for mark in comment[1].split(", "):
                    self.twice += [mark] if mark in self.marks else []
                    self.marks[mark] = (path, begin)

    def changed(self, change: Change) -> tuple[Path, str]:
        """Return the changed file and its new text.

        If the change does not fit the sources, ``ValueError`` is raised.
        """
        if change.mark not in self.marks:
            raise ValueError(f"{change.mark}: no comment in the sources bears this mark")
        path, begin = self.marks[change.mark]
        text = path.read_text()
        changed = apply_to_python if path.suffix == ".py" else apply
        return path, text[:begin] + changed(change, text[begin:])


def misfits(changes: Sequence[Change]) -> list[str]:
    """Return a message for each change that does not fit the sources."""
    sources = Sources(ROOT)
    wrong = [f"{mark}: marked twice" for mark in sources.twice]
    for change in changes:
        try:
            sources.changed(change)
        except ValueError as error:
            wrong.append(str(error))
    return wrong


def apply(change: Change, text: str) -> str:
    """Apply a change to a text that begins with the marked statement, and return the new text."""
    if change.edit.startswith("drop"):
        for _ in range(int(change.edit.removeprefix("drop") or 1)):
            text = text[statement(text) :]
        return f";{text}"
    if change.edit == "insert":
        return f"{change.new}\n{text}"
    if change.edit in ("never", "always"):
        begin, end = condition(text)
        first = "false &&" if change.edit == "never" else "true ||"
        return f"{text[:begin]}{first} ({text[begin:end]}){text[end:]}"
    end = statement(text)
    if (count := text[:end].count(change.old)) != 1:
        raise ValueError(f"{change.mark}: {change.old!r} occurs {count} times, expected 1")
    return text[:end].replace(change.old, change.new) + text[end:]


def apply_to_python(change: Change, text: str) -> str:
    """Apply a change to Python code, in which the statement must be in one line."""
    line, _, rest = text.partition("\n")
    indent = line[: len(line) - len(line.lstrip())]
    match change.edit:
        case "drop":
            return f"{indent}pass\n{rest}"
        case "never" | "always":
            found = re.fullmatch(r"(\s*(?:el)?if )(.*):", line.partition("  # mutant")[0])
            if found is None:
                raise ValueError(f"{change.mark}: no condition in one line")
            first = "False and" if change.edit == "never" else "True or"
            return f"{found[1]}{first} ({found[2]}):\n{rest}"
    if (count := line.count(change.old)) != 1 or change.edit:
        raise ValueError(f"{change.mark}: {change.old!r} occurs {count} times, expected 1")
    return f"{line.replace(change.old, change.new)}\n{rest}"


def statement(text: str) -> int:
    """Return where the first statement ends: after its semicolon, or before its block."""
    depth = 0
    for i, letter in enumerate(text):
        if letter in "([{":
            if letter == "{" and depth <= 0 and text[i + 1] == "\n":
                return i
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == ";" and depth <= 0:
            return i + 1
    return len(text)


def condition(text: str) -> tuple[int, int]:
    """Return the begin and the end of the first condition of ``if`` or ``while``.

    An initializer in the parentheses is not part of the condition.
    """
    match = re.search(r"\b(?:if|while) \(", text)
    if match is None:
        raise ValueError("no condition")
    begin, depth = match.end(), 1
    for i in range(match.end(), len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if text[i] == ";" and depth == 1:
            begin = i + 1
        if depth == 0:
            return begin, i
    raise ValueError("a condition without an end")


class Scratch:
    """A copy of the repository in an existing empty folder."""

    def __init__(self, folder: Path, flags: str) -> None:
        """Copy the sources and configure the build with these compiler flags."""
        self.folder = folder
        self._built = False  # whether the unchanged sources have been built
        keep = shutil.ignore_patterns("__pycache__", "*.so", ".hypothesis")
        for name in ("native", "kernel", "isolang", "tests", "docs", "benchmarks"):
            shutil.copytree(ROOT / name, folder / name, ignore=keep)
        for name in ("CMakeLists.txt", "pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, folder / name)
        subprocess.run(
            [
                *("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja"),
                "-DCMAKE_BUILD_TYPE=Release",
                f"-DCMAKE_CXX_FLAGS_RELEASE={flags}",
                f"-DPython_EXECUTABLE={sys.executable}",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def build(self) -> str:
        """Build the core, and return the compiler's message; empty if the build succeeds."""
        done = subprocess.run(
            ["ninja", "-C", self.folder / "build", "-j2"],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return done.stdout
        for module in (self.folder / "build").glob("_native*.so"):
            shutil.copy(module, self.folder / "isolang" / module.name)
        self._built = True
        return ""

    def take_built(self) -> bool:
        """Copy the native module from the working tree, and return whether it exists."""
        for module in (ROOT / "isolang").glob("_native*.so"):
            shutil.copy(module, self.folder / "isolang" / module.name)
            self._built = True
        return self._built

    @contextlib.contextmanager
    def changed(self, changes: Sequence[Change]) -> Iterator[str]:
        """Build with changes, which are undone when the block ends.

        Yield the compiler's message; empty if the build succeeds.
        """
        before: dict[Path, str] = {}
        try:
            for change in changes:
                path, text = Sources(self.folder).changed(change)
                before.setdefault(path, path.read_text())
                path.write_text(text)
            native = any(path.suffix != ".py" for path in before)
            yield self.build() if native or not self._built else ""
            self._built &= not native
        finally:
            for path, text in before.items():
                path.write_text(text)
