"""Collects a text and all texts it includes, each once, in the order in which they apply."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from isolang.errors import SpecError
from isolang.language.library import FRAGMENTS, SPECS, library_source, similar_names
from isolang.language.syntax import ast
from isolang.language.syntax.parser import begins_like_a_specification, parse
from isolang.language.syntax.source import SourceText, Span, error_at
from isolang.language.trees import library_tree

MAX_BYTES = 1 << 20
"""The maximum size of a specification in bytes. A larger file is probably a history passed by
mistake.
"""


class Gathered(Struct, frozen=True, kw_only=True):
    """A main text, together with all texts it includes.

    Attributes:
        items: all items except includes. An included file's items appear where it is first
            included.
        sources: the texts in the order in which they were read, beginning with the main text.
        notes: messages for users about includes found in unexpected places.
    """

    main: ast.File
    items: tuple[ast.Item, ...]
    sources: tuple[SourceText, ...]
    notes: tuple[str, ...]


def gather(source: SourceText, *, path: Path | None, include_path: Sequence[Path] = ()) -> Gathered:
    """Parse a text and all texts it includes.

    An include is searched for in the folder of the including file, then in the folders of
    ``include_path``, and then in the library. No other file is read.

    Raises:
        SpecError: if a text has a syntax error, or an included file cannot be found or read.
    """
    walk = _Walk(_Files(tuple(include_path)))
    return walk.gathered(_FoundText(source, path))


def gather_carried(sources: Sequence[SourceText]) -> Gathered:
    """Parse texts that were read earlier, without reading any user files.

    Raises:
        SpecError: if a text has a syntax error, or includes something found neither among the texts
            nor in the library.
    """
    return _Walk(_Carried(tuple(sources))).gathered(_FoundText(sources[0], None))


def read_source(path: Path, *, span: Span | None = None) -> SourceText:
    """Return the text of a file. Library files are cached.

    Raises:
        SpecError: if the file cannot be read, is too large, or is not UTF-8.
    """
    in_library = path.resolve().parent in (SPECS, FRAGMENTS)
    source = library_source(path.name) if in_library else None
    return _read(path, span) if source is None else source


def _read(path: Path, span: Span | None) -> SourceText:
    name = str(path)

    def fail(what: str, hint: str = "", line: int = 0) -> SpecError:
        if span is not None:
            return error_at(span, f"{what}: {name}", hint=hint)
        where = f"{name}:{line}" if line else name
        text = f"{where}: {what}" + (f"\n  hint: {hint}" if hint else "")
        return SpecError(text, file=name, line=line, hint=hint)

    try:
        # Reading from a FIFO or a device may never end. Users may specify such a file, but includes
        # may not.
        if span is not None and path.exists() and not path.is_file():
            raise fail("is not a regular file")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise fail("is a folder (expected a file)") from None
    except OSError as error:
        raise fail(f"cannot be read ({error.strerror or error})") from None
    if len(data) > MAX_BYTES:
        raise fail(f"too large (expected at most {MAX_BYTES} bytes)", "is this a specification?")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        got = f"got byte 0x{data[error.start]:02x} in line {line}, expected UTF-8"
        raise fail(f"is not text ({got})", "is this a specification?", line) from None
    return SourceText(name, text)


def path_exists(path: Path) -> bool:
    """Return whether a file or folder exists; an invalid name counts as nonexistent."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def printable_name(name: str) -> str:
    """Return a name for use in messages, shortened and with control characters escaped."""
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)
    return text if len(text) <= 200 else f"{text[:100]}…{text[-60:]}"


class _FoundText(Struct, frozen=True):
    """A text with the path of its file.

    The path is ``None`` for library texts, and for texts that are not from a file.
    """

    source: SourceText
    path: Path | None

    @property
    def identity(self) -> object:
        return self.source.name if self.path is None else self.path.resolve()

    @property
    def in_library(self) -> bool:
        return self.source.name.startswith("library:")


class _Places(Protocol):
    """The places to search for includes."""

    notes: list[str]

    def find(self, include: ast.Include, place: _FoundText) -> _FoundText:
        """Return the text that an ``include`` in the text of ``place`` refers to."""
        ...


class _Walk:
    def __init__(self, places: _Places) -> None:
        self._places = places
        self._items: list[ast.Item] = []
        self._sources: list[SourceText] = []
        self._seen: set[object] = set()

    def gathered(self, main: _FoundText) -> Gathered:
        """Parse the main text and all its includes and return them together."""
        file = self._add(main, None)
        return Gathered(
            main=file,
            items=tuple(self._items),
            sources=tuple(self._sources),
            notes=tuple(self._places.notes),
        )

    def _add(self, found: _FoundText, include: ast.Include | None) -> ast.File:
        source = found.source
        if not (include is None or found.in_library or begins_like_a_specification(source)):
            # An untrusted specification may include any file on the machine, so the message must
            # not quote the included file.
            what = f"{source.name} is not a specification: it does not begin like a specification"
            raise error_at(include.span, what)
        self._seen.add(found.identity)
        self._sources.append(source)
        file = library_tree(source) if found.in_library else parse(source)
        for item in file.items:
            if not isinstance(item, ast.Include):
                self._items.append(item)
                continue
            if not item.file:
                what = "an include without a file name"
                raise error_at(item.span, what, hint='write `include "adya.iso"`')
            more = self._places.find(item, found)
            if more.identity not in self._seen:
                self._add(more, item)
        return file


class _Files:
    """Searches for includes in folders and in the library."""

    def __init__(self, include_path: tuple[Path, ...]) -> None:
        self.notes: list[str] = []
        self._include_path = include_path

    def find(self, include: ast.Include, place: _FoundText) -> _FoundText:
        span, name = include.span, Path(include.file)
        if name.is_absolute() or os.path.normpath(name).startswith(".."):
            got = printable_name(include.file)
            what = f"an include can only name a file in its folder (got {got})"
            hint = f'give the folder with --include, and write `include "{name.name}"`'
            raise error_at(span, what, hint=hint)
        known = library_source(include.file)
        folders = [*([place.path.parent] if place.path else []), *self._include_path]
        if place.in_library:
            folders = []
        for folder in folders:
            found = folder / name
            if not path_exists(found) or found.is_dir():
                continue
            if not found.resolve().is_relative_to(folder.resolve()):
                raise error_at(
                    span, f"{printable_name(str(found))} is a link that leaves its folder"
                )
            source = read_source(found, span=span)
            if source is known:
                break
            if known is not None:
                self.notes.append(f'include "{name}" is {found}, not the library\'s file')
            return _FoundText(source, found)
        if known is not None:
            return _FoundText(known, None)
        raise _not_found(include, ", ".join([*map(str, folders), "the library"]))


class _Carried:
    """Searches for includes by name among texts read earlier."""

    def __init__(self, sources: tuple[SourceText, ...]) -> None:
        self.notes: list[str] = []
        self._sources = sources

    def find(self, include: ast.Include, place: _FoundText) -> _FoundText:
        folder, slash, _ = place.source.name.rpartition("/")
        sibling = f"{folder}{slash}{include.file}"
        library = f"library:{include.file.removesuffix('.iso')}.iso"
        ranked = sorted(
            (
                (source.name != sibling, source.name == library, source)
                for source in self._sources
                if source.name in (sibling, library) or source.name.endswith(f"/{include.file}")
            ),
            key=lambda entry: entry[:2],
        )
        if ranked:
            return _FoundText(ranked[0][2], None)
        if (known := library_source(include.file)) is not None:
            return _FoundText(known, None)
        raise _not_found(include, "the given texts and the library")


def _not_found(include: ast.Include, places: str) -> SpecError:
    near = similar_names(include.file)
    hint = f'did you mean "{near[0]}.iso"?' if near else "name more folders with --include"
    return error_at(include.span, f"include not found (looked in {places})", hint=hint)
