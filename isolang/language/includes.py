"""From one text to all texts that it includes, each once, in the order of their effect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from isolang.errors import SpecError
from isolang.language import ast
from isolang.language.library import SPECS, library_file, near_names
from isolang.language.parser import parse
from isolang.language.source import Source, Span, error_at

MAX_BYTES = 1 << 20
"""No specification is larger; a history given by mistake is."""


class Gathered(Struct, frozen=True, kw_only=True):
    """A main text with everything it includes.

    Attributes:
        main: the parsed main text.
        items: all items but the includes, those of a file at the place of its first include.
        sources: the texts in the order of reading, the main one first.
        notes: where a file came from, when that may surprise.
    """

    main: ast.File
    items: tuple[ast.Item, ...]
    sources: tuple[Source, ...]
    notes: tuple[str, ...]


def gather(source: Source, *, path: Path | None, include_path: Sequence[Path] = ()) -> Gathered:
    """Parse a text and everything it includes.

    A file is looked for in the including file's folder, then in ``include_path``, then in the
    library.

    Args:
        source: the main text.
        path: its file, or ``None`` for a text that stands in none.
        include_path: folders, in the order in which they are searched.

    Raises:
        SpecError: a syntax error in any text, or a file that cannot be found or read.
    """
    walk = _Walk(tuple(include_path))
    main = walk.add(source, path)
    return Gathered(
        main=main,
        items=tuple(walk.items),
        sources=tuple(walk.sources),
        notes=tuple(walk.notes),
    )


_parsed = lru_cache(maxsize=256)(parse)
"""By identity of the source: only the library's, which are read once, are found again."""


@lru_cache(maxsize=256)
def _library_source(path: Path) -> Source:
    return _read(path, None)


def read_source(path: Path, *, span: Span | None = None) -> Source:
    """Read a file as text; a file of the library once.

    Args:
        path: the file.
        span: the include that names it, for the error.

    Raises:
        SpecError: it cannot be read, is too large, or is not UTF-8.
    """
    return _library_source(path) if path.parent == SPECS else _read(path, span)


def _read(path: Path, span: Span | None) -> Source:
    name = source_name(path)

    def fail(what: str, hint: str = "", line: int = 0) -> SpecError:
        if span is not None:
            return error_at(span, f"{what}: {name}", hint=hint)
        where = f"{name}:{line}" if line else name
        text = f"{where}: {what}" + (f"\n  hint: {hint}" if hint else "")
        return SpecError(text, file=name, line=line, hint=hint)

    try:
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
    return Source(name, text)


def is_there(path: Path) -> bool:
    """Whether something has this name; a name that no file can have is nothing."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def readable(name: str) -> str:
    """A name for messages: control characters escaped, the middle of a very long one left out."""
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)
    return text if len(text) <= 200 else f"{text[:100]}…{text[-60:]}"


def source_name(path: Path) -> str:
    """What messages call a file."""
    return f"library:{path.name}" if path.resolve().parent == SPECS else str(path)


class _Walk:
    def __init__(self, include_path: tuple[Path, ...]) -> None:
        self.include_path = include_path
        self.items: list[ast.Item] = []
        self.sources: list[Source] = []
        self.notes: list[str] = []
        self._seen: set[Path] = set()

    def add(self, source: Source, path: Path | None) -> ast.File:
        if path is not None:
            self._seen.add(path.resolve())
        self.sources.append(source)
        file = _parsed(source) if source.name.startswith("library:") else parse(source)
        for item in file.items:
            if not isinstance(item, ast.Include):
                self.items.append(item)
                continue
            found = self._find(item, path)
            if found.resolve() not in self._seen:
                self.add(read_source(found, span=item.span), found)
        return file

    def _find(self, include: ast.Include, path: Path | None) -> Path:
        span, name = include.span, include.file
        if not name:
            raise error_at(
                span, "an include without a file name", hint='write `include "adya.iso"`'
            )
        wanted = Path(name)
        if wanted.is_absolute():
            if is_there(wanted):
                return wanted
            raise error_at(span, f"no such file: {readable(name)}")
        folders = [*([path.parent] if path else []), *self.include_path]
        known = library_file(name) if wanted.name == name else None
        for folder in folders:
            found = folder / wanted
            if is_there(found) and not found.is_dir():
                if known is not None and found.resolve() != known:
                    self.notes.append(f'include "{name}" is {found}, not the library\'s file')
                return found
        # A library file includes its neighbours: `folders` has found it. Anyone else comes here.
        if known is not None and wanted.suffix in ("", ".iso"):
            return known
        places = ", ".join([*map(str, folders), "the library"])
        near = near_names(name)
        hint = f'did you mean "{near[0]}.iso"?' if near else "give its folder with --include"
        raise error_at(span, f"include not found (looked in {places})", hint=hint)
