"""Loads a specification from a path, from the library, or from a text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from isolang.digests import sha256
from isolang.errors import SpecError
from isolang.language.includes import (
    Gathered,
    gather,
    gather_carried,
    path_exists,
    printable_name,
    read_source,
)
from isolang.language.library import library_source, plain_levels, similar_names
from isolang.language.meaning.core import Example, Spec
from isolang.language.meaning.lower import lower
from isolang.language.meaning.sorts import check_sorts
from isolang.language.meaning.sorts import find_errors as find_sort_errors
from isolang.language.syntax import ast
from isolang.language.syntax.source import SourceText, did_you_mean
from isolang.patterns import pattern

_TEXT = pattern(
    r"\s*(?:(?:spec|include|let|exists|flag|not|acyclic|irreflexive|empty|require|show|allows|forbids)[\s(\[]"
    r"|//|\(\*)"
)


def load_spec(
    name_or_path_or_text: str | os.PathLike[str],
    *,
    include_path: Sequence[str | os.PathLike[str]] = (),
) -> Spec:
    r"""Load a specification: parse it with its includes, check its sorts, expand its definitions.

    The first applicable rule determines what is loaded:

    1. A path object is the path of the file to load.
    2. A string with a line break, or one that begins with a comment or with a keyword followed by
       more text, is the text itself.
    3. A string that ends in ``.iso`` or contains a path separator is the path of the file to load.
       If this file does not exist, but the library has its name without the folder (``si.iso``),
       the library's text is loaded, with a note.
    4. The name of a level in the library, in any case (``si``, ``SER``, ``snapshot-isolation``),
       stands for that level, even if a file has the same name.
    5. Any other string is the path of the file to load.

    Args:
        name_or_path_or_text: the name, the path or the text of a specification.
        include_path: folders to search for includes, after the including file's own folder and
            before the library.

    Returns:
        The specification. The caller should show its ``notes`` and ``warnings`` to the user.

    Raises:
        SpecError: if the specification cannot be found or read, or is ill-formed or ill-sorted.
            ``str()`` of the error gives the whole message.

    >>> load_spec("SI").checks[0].name
    'SI'
    >>> load_spec('include "adya.iso"\nacyclic so | wr as my-check').checks[0].kind
    'acyclic'
    """
    source, path, notes = _locate(name_or_path_or_text)
    folders = [Path(folder) for folder in include_path]
    for folder in folders:
        if not folder.is_dir():
            raise SpecError(f"{folder}: not a folder (expected a folder with files to include)")
    if source.name.startswith("library:"):  # library texts include only library texts
        return _load_from_library(source, tuple(notes))
    return _lower_all(gather(source, path=path, include_path=folders), notes)


@lru_cache(maxsize=256)
def _load_from_library(source: SourceText, notes: tuple[str, ...]) -> Spec:
    """Load a library level only once, because routes are cached by object identity."""
    return _lower_all(gather(source, path=None), notes)


def load_texts(texts: Mapping[str, str]) -> Spec:
    """Load a specification again from ``Spec.texts``, without reading any user files.

    Raises:
        SpecError: if the mapping is empty, or for the same reasons as :func:`load_spec`.
    """
    sources = [SourceText(name, text) for name, text in texts.items()]
    if not sources:
        raise SpecError("no specification was given (got no text)")
    return _lower_all(gather_carried(sources), [])


def _lower_all(gathered: Gathered, notes: Sequence[str]) -> Spec:
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
    """Return all errors in a specification; :func:`load_spec` reports only the first.

    If a text does not follow the grammar, the result contains only the first error.
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
    """A text open in an editor, which may contain errors.

    Attributes:
        gathered: the text with its includes; ``None`` if the text or an include does not follow
            the grammar.
        spec: the specification; ``None`` if the text contains an error.
    """

    gathered: Gathered | None
    spec: Spec | None
    errors: tuple[SpecError, ...]


def load_buffer(text: str, path: Path) -> Buffer:
    """Load the text of a file open in an editor, even if it has not been saved."""
    gathered = None
    try:
        gathered = gather(SourceText(str(path), text), path=path, include_path=())
        if errors := find_sort_errors(gathered.items):
            return Buffer(gathered=gathered, spec=None, errors=tuple(errors))
        return Buffer(gathered=gathered, spec=_lower_all(gathered, []), errors=())
    except SpecError as error:
        return Buffer(gathered=gathered, spec=None, errors=(error,))


def _digest(sources: Sequence[SourceText]) -> str:
    """Return a SHA-256 digest of all texts and their lengths, in the given order."""
    texts = [source.text.encode("utf-8") for source in sources]
    digest = sha256(sum(map(len, texts)))
    for data in texts:
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def _locate(argument: str | os.PathLike[str]) -> tuple[SourceText, Path | None, list[str]]:
    """Find the main text that ``argument`` refers to.

    Return it with its path (if it is a file) and any notes.
    """
    if isinstance(argument, str):
        if "\n" in argument or _TEXT.match(argument):
            return SourceText("<text>", argument), None, []
        looks_like_path = argument.endswith(".iso") or "/" in argument or os.sep in argument
        if not looks_like_path and (found := library_source(argument)):
            notes = []
            if path_exists(Path(argument)):
                hint = f"write ./{argument} for the file"
                notes.append(
                    f"{argument} is the library's level, not the file of that name; {hint}"
                )
            return found, None, notes
    if isinstance(argument, str) and not argument.strip():
        raise SpecError("no specification was given (got an empty string)")
    path = Path(argument)
    if path_exists(path):
        return read_source(path), path, []
    known = library_source(path.name) if path.suffix == ".iso" else None
    if known is not None:
        library = known.name.removeprefix("library:")
        return known, None, [f"there is no file {path}; the library's {library} is used"]
    raise _not_found(path)


def _not_found(path: Path) -> SpecError:
    near = similar_names(path.name)
    if near:
        hint = did_you_mean(near)
    else:
        hint = f"the library has {', '.join(plain_levels())}; `isocheck spec list` lists all names"
    is_name = path.parent == Path() and not path.suffix
    kind = "neither a file nor a level of the library has this name" if is_name else "no such file"
    shown = printable_name(str(path)) if str(path).strip() else "''"
    return SpecError(f"{shown}: {kind}\n  hint: {hint}", file=str(path), hint=hint)
