"""The library of levels that comes with the package: one ``.iso`` file per level or alias."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SPECS = Path(__file__).resolve().parent.parent / "specs"
"""Where the library's files are; they are read in place, as package data."""

FRAGMENTS = {
    "rf": "prelude.iso",
    "wr": "prelude.iso",
    "obs": "prelude.iso",
    "ww": "adya.iso",
    "rw": "adya.iso",
}
"""Names that the library's fragments define, and the fragment: for the hint at an unknown name."""

_HEADER = re.compile(r'^\s*spec\s+([A-Za-z0-9_-]+)(?:\s+"([^"\n]*)")?', re.MULTILINE)
_ALIAS = re.compile(r"^//\s*alias of ([a-z0-9-]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryEntry:
    """One level of the library.

    Attributes:
        name: what ``load_spec`` takes, in lower case.
        title: one line.
        alias_of: the level whose checks it shares, or empty.
        path: the file.
    """

    name: str
    title: str
    alias_of: str
    path: Path


@cache
def list_library() -> tuple[LibraryEntry, ...]:
    """The levels and aliases of the library, by name; fragments that define no level are left out.

    >>> [entry.title for entry in list_library() if entry.name == "ser"]
    ['serializability, with session order']
    """
    entries = []
    for path in sorted(SPECS.glob("*.iso")):
        text = path.read_text(encoding="utf-8")
        if header := _HEADER.search(text):
            alias = _ALIAS.search(text)
            entries.append(
                LibraryEntry(
                    name=path.stem,
                    title=header.group(2) or "",
                    alias_of=alias.group(1) if alias else "",
                    path=path,
                )
            )
    return tuple(entries)


def normalise(name: str) -> str:
    """A library name as people write it, in the form of the file names.

    >>> normalise("Snapshot_Isolation"), normalise("strong si.iso")
    ('snapshot-isolation', 'strong-si')
    """
    return re.sub(r"[ _-]+", "-", name.strip().lower()).removesuffix(".iso")


def library_file(name: str) -> Path | None:
    """The library's file of that name (any case, with or without ``.iso``), fragments included."""
    wanted = normalise(name)
    return next((path for path in SPECS.glob("*.iso") if path.stem == wanted), None)


def near_names(name: str) -> list[str]:
    """The library's files whose names resemble ``name``, best first."""
    wanted = normalise(name)
    names = sorted(path.stem for path in SPECS.glob("*.iso"))
    close = difflib.get_close_matches(wanted, names, 4, 0.6)
    return close or [known for known in names if wanted and wanted in known][:4]
