"""The library of levels shipped with the package.

A name in the library is one of three things: a file in ``isolang/specs``; an alias, defined by a
row in that folder's ``aliases.toml``; or a level's name with the suffix ``-nosession``, whose text
``_without_sessions`` derives from the level's text. Other modules need not distinguish the three,
because each name has a text.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from isolang.errors import SpecError
from isolang.language.meaning.cached import cached_by_identity
from isolang.language.syntax.source import SourceText
from isolang.patterns import pattern

SPECS = Path(__file__).resolve().parent.parent / "specs"
"""The folder with the library's levels, read directly from the installed package."""

FRAGMENTS = SPECS / "fragments"
"""The folder with fragments: definitions for levels to include. A fragment has no header and does
not define a level.
"""

DATABASES = SPECS / "databases"
"""The folder with database profiles, and with the mechanisms that make them up. Users can name and
include profiles and mechanisms like levels. Unlike levels, they rest on assumptions about recorded
times.
"""

MIXED = SPECS / "mixed"
"""The folder with levels that check each transaction against the level it requested. The history
must state the level requested by each transaction.
"""

NO_SESSION = "-nosession"

Style: TypeAlias = Literal["dependencies", "commit order", "visibility", ""]

_HEADER = pattern(r'^spec\s+([A-Za-z0-9_-]+)\s+"([^"\n]*)"', re.MULTILINE)
_INCLUDE = pattern(r'^include\s+"([^"\n]+)\.iso"', re.MULTILINE)
_ASSUMPTION = pattern(r"^// Assumption: (.*(?:\n// .*)*)", re.MULTILINE)
# Matches a comment, a string or a name. The parser is not used because importing it would be slow.
_TOKEN = pattern(r'//[^\n]*|\(\*.*?\*\)|"[^"\r\n]*"|[A-Za-z_]\w*(?:-\w+)*', re.DOTALL | re.ASCII)
_COMMENT_AT_TOP = pattern(r"(?://.*\n|\n)*")
_REASON = """\
// {name} without sessions: {name} with `init` in place of `so`. The library makes this text of the suffix.
//
// Source: as {name}.
// Theorem: those of {name} hold here: their proofs ask of `so` only that it is an order that contains `init`, by
// which the initial transaction comes first.
// Forbids what {name} forbids, as far as no session edge is needed.
// Complexity: as {name}.
"""  # noqa: E501
_STYLES: dict[str, Style] = {
    "adya": "dependencies",
    "commit-order": "commit order",
    "visibility": "visibility",
}
"""For each fragment, the style of the levels that include it. The style determines what a witness
chooses besides sources.
"""


class LibraryEntry(Struct, frozen=True, kw_only=True):
    """A level in the library.

    Attributes:
        name: the level's name for ``load_spec``, in lower case.
        alias_of: the level that this name is an alias for; empty for a level's own name.
        style: the style of the axioms: ``dependencies`` (Adya), ``commit order`` (Biswas, Enea) or
            ``visibility`` (Cerone, Burckhardt).
    """

    name: str
    title: str
    alias_of: str
    style: Style
    text: str


class _Alias(Struct, frozen=True):
    """A row in ``aliases.toml``.

    Attributes:
        header: the name in the header of the alias's text if it differs from the alias; otherwise
            empty.
    """

    of: str
    title: str
    note: str
    header: str = ""


@cache
def list_library() -> tuple[LibraryEntry, ...]:
    """Return the library's levels and aliases, but not its fragments, sorted by name.

    >>> [entry.title for entry in list_library() if entry.name == "ser"]
    ['serializability, with session order']
    """
    entries = []
    for name in _names():
        text = _text(name)
        if header := _HEADER.search(text):  # fragments have no header
            entries.append(
                LibraryEntry(
                    name=name,
                    title=header[2],
                    alias_of=_aliases()[name].of if name in _aliases() else "",
                    style=_style(name),
                    text=text,
                )
            )
    return tuple(entries)


@cache
def list_profiles() -> tuple[LibraryEntry, ...]:
    """Return the database profiles and their mechanisms, sorted by name."""
    return _entries_of_folder(DATABASES)


@cache
def list_mixed() -> tuple[LibraryEntry, ...]:
    """Return the levels that check each transaction against its requested level, sorted by name."""
    return _entries_of_folder(MIXED)


def _entries_of_folder(folder: Path) -> tuple[LibraryEntry, ...]:
    entries = []
    for path in sorted(folder.glob("*.iso")):
        text = _read(path)
        header = _HEADER.search(text)
        assert header is not None, path
        entries.append(
            LibraryEntry(
                name=path.stem, title=header[2], alias_of="", style="dependencies", text=text
            )
        )
    return tuple(entries)


@cached_by_identity
def assumption_of(texts: Mapping[str, str]) -> str:
    """Return the assumptions about a database stated in the texts' comments, without repeats."""
    found = [m[1] for text in texts.values() if (m := _ASSUMPTION.search(text))]
    sentences = (re.sub(r"\s*\n//\s*", " ", one).strip() for one in found)
    return " ".join(dict.fromkeys(sentences))


def plain_levels() -> list[str]:
    """Return the names of the levels, without aliases, other styles and sessionless forms."""
    names = [entry.name for entry in list_library() if not entry.alias_of]
    return [name for name in names if not re.search(r"-(adya|co|vis|nosession)(-|$)", name)]


def normalise(name: str) -> str:
    """Convert a level's name as written by a user to the library's spelling.

    >>> normalise("Snapshot_Isolation"), normalise("strong si.iso"), normalise("PL-2+")
    ('snapshot-isolation', 'strong-si', 'pl-2-plus')
    >>> normalise("PL-2.99"), normalise("1SR")
    ('pl-2-99', 'one-copy-sr')
    """
    plain = name.strip().lower().removesuffix(".iso")
    plain = re.sub(r"[ _-]+|(?<=\d)\.(?=\d)", "-", plain)
    plain = re.sub(r"^1sr$", "one-copy-sr", plain)  # a name in a header cannot begin with a digit
    return f"{plain[:-1]}-plus" if plain.endswith("+") else plain


@cache
def library_source(name: str) -> SourceText | None:
    """Return the text of a level, alias, fragment or profile, or ``None`` if there is none.

    The name may be in any case and may end in ``.iso``.

    Raises:
        SpecError: if a library file lacks its header.
    """
    stem = normalise(name)
    if path := _profiles_and_mixed().get(stem):
        return SourceText(f"library:{stem}.iso", _read(path))
    return SourceText(f"library:{stem}.iso", _text(stem)) if _is_name(stem) else None


def level_of(source: str) -> str:
    """Return the level that a source ``library:NAME.iso`` names or is an alias for; else empty."""
    name = source.removeprefix("library:").removesuffix(".iso")
    if source != f"library:{name}.iso":
        return ""
    is_alias = name not in _files() and name in _aliases()
    return _aliases()[name].of if is_alias else name


def file_of(source: str) -> Path:
    """Return the path of the library file for a source with the name ``library:NAME.iso``."""
    name = source.removeprefix("library:")
    folders = (SPECS, FRAGMENTS, DATABASES, MIXED)
    return next((path for folder in folders if (path := folder / name).is_file()), SPECS / name)


def text_names() -> list[str]:
    """Return the names of all library texts, including fragments and profiles."""
    return [*_names(), *(entry.name for entry in (*list_profiles(), *list_mixed()))]


def similar_names(name: str) -> list[str]:
    """Return the library's names that resemble ``name``, most similar first."""
    stem, names = normalise(name), text_names()
    close = difflib.get_close_matches(stem, names, 4, 0.6)
    return close or [known for known in names if stem and stem in known][:4]


# --- names and texts ---


@cache
def _files() -> dict[str, Path]:
    return {path.stem: path for folder in (SPECS, FRAGMENTS) for path in folder.glob("*.iso")}


@cache
def _profiles_and_mixed() -> dict[str, Path]:
    return {path.stem: path for folder in (DATABASES, MIXED) for path in folder.glob("*.iso")}


def _read(path: Path) -> str:
    """Return the text of a library file, or raise an error if it is a level without a header."""
    text = path.read_text(encoding="utf-8")
    if path.parent != FRAGMENTS and not _HEADER.search(text):
        hint = f'write `spec {path.stem} "title"`; a text without a header belongs in {FRAGMENTS}'
        what = "this level of the library has no header (expected a `spec` line)"
        raise SpecError(f"{path}: {what}\n  hint: {hint}", file=str(path), hint=hint)
    return text


@cache
def _aliases() -> dict[str, _Alias]:
    import msgspec

    return msgspec.toml.decode((SPECS / "aliases.toml").read_bytes(), type=dict[str, _Alias])


def _names() -> list[str]:
    derived = {f"{name}{NO_SESSION}" for name in _files() if _has_no_session_form(name)}
    return sorted(_files().keys() | _aliases().keys() | derived)


def _is_name(name: str) -> bool:
    if name in _files():
        return True
    level = name.removesuffix(NO_SESSION)
    return _has_no_session_form(level) if level != name else name in _aliases()


@cache
def _text(name: str) -> str:
    """Return the text of a level, an alias, or a fragment."""
    if path := _files().get(name):
        return _read(path)
    if name.endswith(NO_SESSION):
        return _without_sessions(name.removesuffix(NO_SESSION))
    alias = _aliases()[name]
    note = textwrap.fill(alias.note, 118, initial_indent="// ", subsequent_indent="// ")
    return (
        f"// alias of {alias.of}\n//\n{note}\n\n"
        f'spec {alias.header or name} "{alias.title}"\n\ninclude "{alias.of}.iso"\n'
    )


def _style(name: str) -> Style:
    """Return the style of a level, which depends on the fragment it includes, if any."""
    style = _STYLES.get(name.removesuffix(NO_SESSION), "")
    for included in _INCLUDE.findall(_text(name)):
        style = style or _style(included)
    return style


# --- levels without sessions ---


@cache
def _has_no_session_form(name: str) -> bool:
    """Return whether a library file has a sessionless form.

    It has one if the file itself or an included file mentions ``so``, unless the file itself
    includes a sessionless form. A file that does so defines a session guarantee, which needs its
    ``so``.
    """
    if name not in _files():
        return False
    includes = _INCLUDE.findall(_text(name))
    if any(included.endswith(NO_SESSION) for included in includes):
        return False
    return bool(_sessions(_text(name))) or any(map(_has_no_session_form, includes))


def _sessions(text: str) -> list[int]:
    """Return the offset of each ``so`` in a text."""
    return [found.start() for found in _TOKEN.finditer(text) if found[0] == "so"]


def _without_sessions(name: str) -> str:
    """Return a level's text with ``so`` replaced by ``init``, including in the texts it includes.

    SOUND BECAUSE the sessionless form is by definition the level in which sessions impose no order:
    ``so`` is then the smallest relation that the language allows, ``init``. This relation puts the
    initial transaction first, and every session order contains it. The theorems cited by the level
    remain true, because their proofs only require that ``so`` is an order that contains ``init``.
    ``mentions.without_sessions`` does the same for a loaded specification, and tests compare both.
    """
    text = _text(name)
    for at in reversed(_sessions(text)):
        text = f"{text[:at]}init{text[at + 2 :]}"
    text = _INCLUDE.sub(_include_without_sessions, _COMMENT_AT_TOP.sub("", text, 1))
    header = _HEADER.match(text)
    if header is not None:
        title = header[2].removesuffix(", with session order")
        line = f'spec {header[1]}{NO_SESSION} "{title}, without sessions"'
        text = f"{line}{text[header.end() :]}"
    return f"{_REASON.format(name=name)}\n{text}"


def _include_without_sessions(found: re.Match[str]) -> str:
    suffix = NO_SESSION if _has_no_session_form(found[1]) else ""
    return f'include "{found[1]}{suffix}.iso"'
