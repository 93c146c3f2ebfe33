"""The library of levels that comes with the package: one ``.iso`` file per level or alias."""

from __future__ import annotations

import difflib
import re
from functools import cache
from pathlib import Path

from msgspec import Struct

SPECS = Path(__file__).resolve().parent.parent / "specs"
"""Where the library's files are; they are read in place, as package data."""

FRAGMENTS = {
    "rf": "prelude.iso",
    "wr": "prelude.iso",
    "obs": "prelude.iso",
    "ww": "adya.iso",
    "rw": "adya.iso",
    "co": "commit-order.iso",
    "ar": "visibility.iso",
    "vis": "visibility.iso",
    "conflict": "visibility.iso",
}
"""Names that the library's fragments define, and the fragment: for the hint at an unknown name."""

_HEADER = re.compile(r'^\s*spec\s+([A-Za-z0-9_-]+)(?:\s+"([^"\n]*)")?', re.MULTILINE)
_ALIAS = re.compile(r"^//\s*alias of ([a-z0-9-]+)", re.MULTILINE)
_INCLUDE = re.compile(r'^\s*include\s+"([^"\n]+)"', re.MULTILINE)
_STYLES = {
    "adya": "dependencies",
    "commit-order": "commit order",
    "visibility": "visibility",
}
"""Fragments, without ``-nosession``, and what is chosen besides the sources of the reads."""


class LibraryEntry(Struct, frozen=True, kw_only=True):
    """One level of the library.

    Attributes:
        name: what ``load_spec`` takes, in lower case.
        title: one line.
        alias_of: the level whose checks it shares, or empty.
        style: the school of its axioms: ``dependencies`` (Adya), ``commit order`` (Biswas, Enea) or
            ``visibility`` (Cerone, Burckhardt).
        path: the file.
    """

    name: str
    title: str
    alias_of: str
    style: str
    path: Path


@cache
def list_library() -> tuple[LibraryEntry, ...]:
    """The levels and aliases of the library, by name; fragments that define no level are left out.

    >>> [entry.title for entry in list_library() if entry.name == "ser"]
    ['serializability, with session order']
    """
    entries = []
    for path in sorted(SPECS.glob("*.iso"), key=lambda path: path.stem):
        text = path.read_text(encoding="utf-8")
        if header := _HEADER.search(text):
            alias = _ALIAS.search(text)
            entries.append(
                LibraryEntry(
                    name=path.stem,
                    title=header.group(2) or "",
                    alias_of=alias.group(1) if alias else "",
                    style=_style(path),
                    path=path,
                )
            )
    return tuple(entries)


def plain_levels() -> list[str]:
    """The levels in their usual form: no alias, no other style, with sessions."""
    names = [entry.name for entry in list_library() if not entry.alias_of]
    return [name for name in names if not re.search(r"-(adya|co|vis|nosession)(-|$)", name)]


def _style(path: Path) -> str:
    """Of the fragment that a file of the library includes, directly or through another level."""
    style = _STYLES.get(path.stem.removesuffix("-nosession"), "")
    for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
        style = style or _style(SPECS / name)
    return style


def normalise(name: str) -> str:
    """A library name as people write it, in the form of the file names.

    >>> normalise("Snapshot_Isolation"), normalise("strong si.iso"), normalise("PL-2+")
    ('snapshot-isolation', 'strong-si', 'pl-2-plus')
    """
    plain = re.sub(r"[ _-]+", "-", name.strip().lower()).removesuffix(".iso")
    return f"{plain[:-1]}-plus" if plain.endswith("+") else plain


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
