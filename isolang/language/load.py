"""``load_spec``: from a path, a library name or a text to a lowered specification."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from isolang.errors import SpecError
from isolang.language.includes import (
    Gathered,
    gather,
    gather_carried,
    is_there,
    read_source,
    readable,
)
from isolang.language.library import library_source, near_names, plain_levels
from isolang.language.meaning.core import Example, Spec
from isolang.language.meaning.lower import lower
from isolang.language.meaning.sorts import check_sorts
from isolang.language.meaning.sorts import find_errors as find_sort_errors
from isolang.language.syntax import ast
from isolang.language.syntax.source import Source, did_you_mean

_TEXT = re.compile(
    r"\s*(?:(?:spec|include|let|exists|flag|not|acyclic|irreflexive|empty|require|show|allows|forbids)[\s(\[]"
    r"|//|\(\*)"
)


def load_spec(
    name_or_path_or_text: str | os.PathLike[str],
    *,
    include_path: Sequence[str | os.PathLike[str]] = (),
) -> Spec:
    r"""Load a specification: parse it with its includes, check its sorts, expand its definitions.

    What the argument is, in this order:

    1. a path object: that file;
    2. a string with a line break, or that begins with a keyword followed by more, or with a
       comment: the text itself;
    3. a string that ends in ``.iso`` or contains a path separator: that file; if there is none,
       but its name without folder is one of the library (``si.iso``): the library's, with a note;
    4. a library name in any case (``si``, ``SER``, ``snapshot-isolation``), also if a file has
       that name;
    5. any other existing file.

    Args:
        name_or_path_or_text: as above.
        include_path: folders in which includes are looked for after the including file's own and
            before the library.

    Returns:
        The specification. Its ``notes`` and ``warnings`` are for the user to see.

    Raises:
        SpecError: not found, not readable, ill-formed or ill-sorted; ``str()`` is the whole
        message.

    >>> load_spec("SI").checks[0].name
    'SI'
    >>> load_spec('include "adya.iso"\nacyclic so | wr as my-check').checks[0].kind
    'acyclic'
    """
    source, path, notes = _locate(name_or_path_or_text)
    folders = [Path(folder) for folder in include_path]
    for folder in folders:
        if not folder.is_dir():
            raise SpecError(f"{folder}: not a folder (given as a place for includes)")
    if source.name.startswith("library:"):  # its includes are the library's, whatever the folders
        return _of_library(source, tuple(notes))
    return _lowered(gather(source, path=path, include_path=folders), notes)


@lru_cache(maxsize=256)
def _of_library(source: Source, notes: tuple[str, ...]) -> Spec:
    """A level of the library is loaded once: its routes are kept by identity."""
    return _lowered(gather(source, path=None), notes)


def load_texts(texts: Mapping[str, str]) -> Spec:
    """Load a specification from ``Spec.texts``; no file but the library's is read.

    Args:
        texts: name to text, the main one first.

    Raises:
        SpecError: there is none; else as of ``load_spec``.
    """
    sources = [Source(name, text) for name, text in texts.items()]
    if not sources:
        raise SpecError("no specification is given (got no text)")
    return _lowered(gather_carried(sources), [])


def _lowered(gathered: Gathered, notes: Sequence[str]) -> Spec:
    source = gathered.sources[0]
    stem = Path(source.name.removeprefix("library:").strip("<>")).stem
    scope = check_sorts(gathered.items, source)
    lowered = lower(gathered.items, scope)
    header = gathered.main.header
    return Spec(
        name=header.name if header else stem,
        title=header.title if header else "",
        source=source.name,
        checks=lowered.checks,
        exists=lowered.exists,
        shows=lowered.shows,
        definitions=lowered.definitions,
        sha256=_digest(gathered.sources),
        notes=(*notes, *gathered.notes),
        warnings=tuple(scope.warnings),
        texts={s.name: s.text for s in gathered.sources},
        examples=tuple(
            Example(item.span.position, item.allows, item.history)
            for item in gathered.main.items
            if isinstance(item, ast.Example)
        ),
    )


def find_errors(
    name_or_path_or_text: str | os.PathLike[str],
    *,
    include_path: Sequence[str | os.PathLike[str]] = (),
) -> list[SpecError]:
    """Every error that ``load_spec`` would raise if those before it were not there.

    A text that does not follow the grammar has one: what comes after it is not known.

    Args:
        name_or_path_or_text: as of ``load_spec``.
        include_path: as of ``load_spec``.
    """
    try:
        source, path, _ = _locate(name_or_path_or_text)
        gathered = gather(source, path=path, include_path=[Path(f) for f in include_path])
    except SpecError as error:
        return [error]
    if errors := find_sort_errors(gathered.items):
        return errors
    try:
        load_spec(name_or_path_or_text, include_path=include_path)
    except SpecError as error:
        return [error]
    return []


class Buffer(Struct, frozen=True, kw_only=True):
    """A text that is being written, which may have errors.

    Attributes:
        gathered: it and what it includes; ``None`` if a text does not follow the grammar.
        spec: the specification; ``None`` if there is an error.
        errors: as of :func:`find_errors`.
    """

    gathered: Gathered | None
    spec: Spec | None
    errors: tuple[SpecError, ...]


def load_buffer(text: str, path: Path) -> Buffer:
    """Load what an editor holds of a file, saved or not.

    Args:
        text: of the file.
        path: of the file: where includes are looked for.
    """
    gathered = None
    try:
        gathered = gather(Source(str(path), text), path=path, include_path=())
        if errors := find_sort_errors(gathered.items):
            return Buffer(gathered=gathered, spec=None, errors=tuple(errors))
        return Buffer(gathered=gathered, spec=_lowered(gathered, []), errors=())
    except SpecError as error:
        return Buffer(gathered=gathered, spec=None, errors=(error,))


def _digest(sources: Sequence[Source]) -> str:
    """Over the texts in the order of reading, each with its length: no two lists collide."""
    digest = hashlib.sha256()
    for source in sources:
        data = source.text.encode("utf-8")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def _locate(given: str | os.PathLike[str]) -> tuple[Source, Path | None, list[str]]:
    """The main text, its file, and notes."""
    if isinstance(given, str):
        if "\n" in given or _TEXT.match(given):
            return Source("<text>", given), None, []
        looks_like_path = given.endswith(".iso") or "/" in given or os.sep in given
        if not looks_like_path and (found := library_source(given)):
            notes = []
            if is_there(Path(given)):
                hint = f"write ./{given} for the file"
                notes.append(f"{given} is the library's level, not the file of that name; {hint}")
            return found, None, notes
    if isinstance(given, str) and not given.strip():
        raise SpecError("no specification is given (got an empty text)")
    path = Path(given)
    if is_there(path):
        return read_source(path), path, []
    known = library_source(path.name) if path.suffix == ".iso" else None
    if known is not None:
        library = known.name.removeprefix("library:")
        return known, None, [f"there is no file {path}; the library's {library} is used"]
    raise _not_found(path)


def _not_found(path: Path) -> SpecError:
    near = near_names(path.name)
    if near:
        hint = did_you_mean(near)
    else:
        hint = f"the library has {', '.join(plain_levels())}; `isocheck spec list` has all names"
    is_name = path.parent == Path() and not path.suffix
    kind = "no file and no level of the library has this name" if is_name else "no such file"
    shown = readable(str(path)) if str(path).strip() else "''"
    return SpecError(f"{shown}: {kind}\n  hint: {hint}", file=str(path), hint=hint)
