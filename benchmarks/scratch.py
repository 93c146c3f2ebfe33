"""A copy of the repository whose native core is built with a few lines changed."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """In ``file``, ``old`` becomes ``new``; ``old`` occurs exactly once."""

    file: str
    old: str
    new: str


def stale(changes: Sequence[Change]) -> list[str]:
    """Those whose text does not occur exactly once, with how often it does."""
    wrong = []
    for change in changes:
        count = (ROOT / change.file).read_text().count(change.old)
        if count != 1:
            wrong.append(f"{change.file}: {change.old!r} occurs {count} times, expected 1")
    return wrong


class Scratch:
    """The copy, in a folder that is there and empty."""

    def __init__(self, folder: Path, flags: str) -> None:
        """Copy and configure; ``flags`` are the compiler's."""
        self.folder = folder
        keep = shutil.ignore_patterns("__pycache__", "*.so", ".hypothesis")
        for name in ("native", "isolang", "tests", "docs"):
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
        """Build; the compiler's message if that fails."""
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
        return ""

    @contextlib.contextmanager
    def changed(self, changes: Sequence[Change]) -> Iterator[str]:
        """Build with these changes, taken back after; the compiler's message if that fails."""
        before = {change.file: (self.folder / change.file).read_text() for change in changes}
        try:
            for change in changes:
                path = self.folder / change.file
                path.write_text(path.read_text().replace(change.old, change.new))
            yield self.build()
        finally:
            for file, text in before.items():
                (self.folder / file).write_text(text)
