"""Detects the format of an input and reads it as a history."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from msgspec.structs import replace

from isolang.digests import sha256
from isolang.errors import HistoryError, UnsupportedError
from isolang.history.before import with_initial
from isolang.history.detect import Guess, detect, has_cobra_records
from isolang.history.formats import FORMATS, WORKLOADS, find_format, list_format_names
from isolang.history.history import History
from isolang.history.initial import declare_numbered
from isolang.history.not_seen import NO_END, read_unseen, rests_on_log
from isolang.history.possible import (
    count_possible_facts,
    possible_places,
    with_possible_facts,
    with_silent_reads,
)
from isolang.history.readers.reading import Files, Reading, quantity
from isolang.history.sources import (
    HistoryInput,
    is_large_file,
    natural_sort_key,
    plain_name,
    read_source,
)
from isolang.history.versions import version_notes
from isolang.options import ReadOptions

_PLAIN: Final = ReadOptions()
_HEAD: Final = (1 << 16) + 1  # the bytes of a file that show its format


def read_history(
    path_or_stream: str | Path | IO[bytes],
    options: ReadOptions = _PLAIN,
    *,
    timeout: float | None = None,
) -> History:
    """Read a history.

    Args:
        path_or_stream: a file, a directory containing logs or one history, ``-`` for standard
            input, or a binary stream. Data compressed with gzip, xz, bzip2 or zstd is decompressed.
        timeout: the number of seconds after which reading stops; ``None`` for no limit.

    Raises:
        HistoryError: the input cannot be read; the message names the file and place.
        UnsupportedError: the input is well-formed, but isocheck cannot judge this kind of input.
        TimeoutError: reading took longer than the timeout.
    """
    in_pieces = _read_in_pieces(path_or_stream, options, timeout or 0.0)
    if in_pieces is not None:
        return _as_requested(in_pieces, options)
    source = read_source(path_or_stream)
    history = _history(source, options, timeout or 0.0)
    if history.possible_facts and options.possible_facts == "auto":
        counting = replace(options, possible_facts="count")
        history._lazy["all facts"] = partial(_history, source, counting, 0.0)
    return history


def _history(source: HistoryInput, options: ReadOptions, timeout: float) -> History:
    return _as_requested(_read(source, options, timeout), options)


def _as_requested(history: History, options: ReadOptions) -> History:
    """Apply the options that are not meant for readers."""
    history = with_initial(history, options.initial_value, unwritten=options.unwritten_initial)
    if options.ignore_versions:
        history = history.without_versions()
    history = replace(history, options=options.non_default())
    if options.clock_error:
        from isolang.history.clock_error import with_clock_error

        history = with_clock_error(history, options.clock_error)
    if options.superseded_reads == "ignore":
        from isolang.history.superseded import without_superseded_reads

        history = without_superseded_reads(history)
    if options.unit == "request":
        from isolang.history.carried import with_carried_reads

        history = with_carried_reads(history, everything=options.carry == "all")
    return history


def _read(source: HistoryInput, options: ReadOptions, timeout: float) -> History:
    """Read a history, applying only the options meant for readers, such as the format.

    The caller applies all other options.
    """
    name, files, ignored = _choose_format(source, options.format)
    more: dict[str, Any] = {}
    if model := WORKLOADS.get(options.format.lower()):
        more["model"] = model
    if name == "cobra":
        _check_timestamps(files, options.timestamps)
        more["timestamps"] = options.timestamps
    elif options.timestamps:
        msg = f"{source.name}: --timestamps applies only to Cobra logs (got {name})"
        raise HistoryError(msg)
    if name == "registers":
        more["failed_cas"] = options.failed_cas
    elif options.failed_cas != "auto":
        msg = f"{source.name}: --failed-cas applies only to logs of single operations (got {name})"
        raise HistoryError(msg)
    digest = _Digest(files)
    possible = sum(count_possible_facts(text, file) for file, text in files) if name == "edn" else 0
    unseen = read_unseen(files[0][1], files[0][0]) if name == "edn" and files else {}
    if NO_END in unseen and NO_END not in options.allow_unseen:
        ((file, text),) = files
        from_log = rests_on_log(text)
        text, silenced = with_silent_reads(text, only_predicates=not from_log)
        files = ((file, text),)
        if silenced:
            number = quantity(silenced, "read" if from_log else "predicate read")
            ignored += (f"{number} of a recording without an end, because no audit confirmed them",)
    lazy: dict[str, Any] = {}
    if possible and options.possible_facts == "count":
        lazy["possible"] = possible_places(files[0][1])
        files = tuple((file, with_possible_facts(text, file)) for file, text in files)
    reading = FORMATS[name].read(files, timeout=timeout, **more)
    used = model or name  # passing this name to --from reads the history the same way
    history = _history_of(reading, source, options, format=used, sha256=digest.hex())
    return replace(
        history,
        files=tuple(file for file, _ in files),
        ignored=source.ignored + ignored + reading.ignored,
        possible_facts=possible,
        unseen=unseen,
        _lazy={**lazy, **_statements_of_stream(name, files)},
    )


def _read_in_pieces(
    where: str | Path | IO[bytes], options: ReadOptions, timeout: float
) -> History | None:
    """Read a large file without holding its text.

    The result is ``None`` if the text is needed as a whole: by the reader of its format, for
    compressed or little data, or to describe an error.
    """
    meant_for_others = options.timestamps or options.failed_cas != "auto"
    if not isinstance(where, str | Path) or meant_for_others:
        return None
    try:
        if not is_large_file(where):
            return None
        with Path(where).open("rb", buffering=0) as file:
            name = str(where)
            source = HistoryInput(name=name, files=((name, file.read(_HEAD)),))
            form = FORMATS[_choose_format(source, options.format)[0]]
            file.seek(0)
            digest = sha256(_LARGE)
            reading = form.read_in_pieces(file.fileno(), name, digest.update, timeout=timeout)
    except (OSError, HistoryError):
        return None
    if reading is None:
        return None
    return _history_of(reading, source, options, format=form.name, sha256=digest.hexdigest())


def _history_of(
    reading: Reading,
    source: HistoryInput,
    options: ReadOptions,
    *,
    format: str,  # noqa: A002 - as in History
    sha256: str,
) -> History:
    """Return the history of a reading that has no possible facts."""
    notes = reading.notes
    initial_sentence = reading.initial
    if (initial := options.initial) is not None:
        declare_numbered(reading.columns, initial, source.name, reading.position_unit)
        initial_sentence = (
            f"{initial_sentence}; or a value of transaction {initial}, which is declared as "
            "the initial one"
        )
        notes = (*notes, f"transaction {initial} is the initial one, as requested")
    notes += version_notes(reading.columns)
    session, names = reading.session, reading.session_names
    if options.per_key:
        session, names = f"{session}, on one key", _split_by_key(reading, source.name)
        notes = (*notes, "sessions order only operations on the same key, as requested")
    return History(
        columns=reading.columns,
        name=source.name,
        format=format,
        files=tuple(file for file, _ in source.files),
        position_unit=reading.position_unit,
        initial=initial_sentence,
        session=session,
        real_time=reading.real_time,
        ignored=reading.ignored,
        notes=notes,
        sha256=sha256,
        session_names=names,
        levels=reading.levels,
    )


def _statements_of_stream(name: str, files: Files) -> dict[str, Any]:
    """Return the statements of a recording that cannot be read again as plain text."""
    if name not in ("edn", "jepsen-json") or len(files) != 1:
        return {}
    (file, text), path = files[0], Path(files[0][0])
    if path.is_file() and path.stat().st_size == len(text):
        return {}
    from isolang.history.statements import statements_in
    from isolang.history.units import units_in

    read: dict[str, Any] = {}
    for what, read_text in (("statements", statements_in), ("units", units_in)):
        with suppress(HistoryError):  # only what needs them may complain
            read[what] = read_text(text, file)
    return read


def _split_by_key(reading: Reading, name: str) -> tuple[str, ...]:
    """Split each session into one session per key and return the names of the new sessions."""
    try:
        was = reading.columns.split_sessions_by_key()
    except ValueError as error:
        hint = "with --per-key, each transaction must consist of one operation"
        raise UnsupportedError(f"{name}: {error}; {hint}") from None
    return tuple(reading.session_names[s] if reading.session_names else str(s) for s in was)


# The possible names of the history file in a run folder under Jepsen's store/, which also contains
# results and logs.
_OF_A_RUN = ("history.edn", "history.jsonl", "history.json", "test.jepsen")
_LARGE = 1 << 20  # files of at least this many bytes are hashed in a thread


class _Digest:
    """Computes one SHA-256 digest over all files, in a thread if the files are large."""

    def __init__(self, files: Files) -> None:
        self._files = files
        size = sum(len(data) for _, data in files)
        self._sum = sha256(size)
        self._thread: threading.Thread | None = None
        if size >= _LARGE:
            self._thread = threading.Thread(target=self._update, daemon=True)
            self._thread.start()

    def _update(self) -> None:
        for _, data in self._files:
            self._sum.update(data)  # releases the GIL, as the native readers do

    def hex(self) -> str:
        """Wait for the hash and return it in hexadecimal."""
        if self._thread is None:
            self._update()
        else:
            self._thread.join()
        return self._sum.hexdigest()


def _choose_format(source: HistoryInput, requested: str) -> tuple[str, Files, tuple[str, ...]]:
    """Choose the format of an input and the files that make up the history."""
    chosen = None if requested == "auto" else find_format(requested)
    if not source.is_directory:
        if chosen is not None:
            return chosen.name, source.files, ()
        return _only_format(source.name, detect(source.files[0][1])), source.files, ()
    guesses = [(file, data, detect(data)) for file, data in source.files]
    for form in (f for f in FORMATS.values() if f.log_prefix):
        if chosen is form or (
            chosen is None and any(g.formats == (form.name,) for *_, g in guesses)
        ):
            return _select_logs(source.name, form.name, form.log_prefix, guesses)
    found = [(f, d, g) for f, d, g in guesses if (g.formats and d) or g.unsupported]
    if chosen is not None and len(source.files) == 1:
        return chosen.name, source.files, ()
    if chosen is not None:
        found = [(f, d, g) for f, d, g in guesses if chosen.name in g.formats and d]
    named = [(f, d, g) for n in _OF_A_RUN for f, d, g in guesses if plain_name(f) == n]
    if named and (chosen is None or chosen.name in named[0][2].formats):
        found = named[:1]
    if len(found) > 1:
        names = ", ".join(Path(f).name for f, *_ in found[:4]) + (", …" if len(found) > 4 else "")
        msg = (
            f"{source.name}: the folder contains {len(found)} histories ({names}); check them "
            "one by one"
        )
        raise HistoryError(msg)
    if not found:
        seen = "; ".join(f"{Path(f).name}: {g.looks_like}" for f, _, g in guesses[:4])
        more = f"; and {len(guesses) - 4} more files" if len(guesses) > 4 else ""
        msg = (
            f"{source.name}: the folder contains no history in a known format (looked at "
            f"{seen}{more}); the formats are {list_format_names()}"
        )
        raise HistoryError(msg)
    file, data, guess = found[0]
    others = [Path(f).name for f, *_ in guesses if f != file]
    ignored = (f"other files of the folder: {', '.join(others)}",) if others else ()
    return chosen.name if chosen else _only_format(file, guess), ((file, data),), ignored


def histories_in(folder: Path) -> tuple[list[Path], list[str]]:
    """Find the histories in a folder and its subfolders.

    If a folder is itself one history (a folder of logs, or a Jepsen run), it comes before the
    histories in its subfolders. Links to folders, such as Jepsen's ``latest``, are not followed,
    because the link's target is found under its own name.

    Raises:
        HistoryError: a file cannot be read.
    """
    found: list[Path] = []
    ignored_files: list[str] = []
    entries = sorted(folder.iterdir(), key=lambda p: natural_sort_key(p.name))
    files = [e for e in entries if e.is_file() and not e.name.startswith(".")]
    guesses = {file: detect(data) for file in files if (data := read_source(file).files[0][1])}
    logs = {form.name for form in FORMATS.values() if form.log_prefix}
    run = next((f for n in _OF_A_RUN for f in files if plain_name(f.name) == n), None)
    inner = [e for e in entries if e.is_dir() and not e.is_symlink() and e.name[:1] != "."]
    if run is not None or any(set(guess.formats) & logs for guess in guesses.values()):
        found.append(folder)  # the folder is one history; its reader reports any other files inside
        files = []
    for file in files:
        guess = guesses.get(file)
        if guess is not None and (guess.formats or guess.unsupported):
            found.append(file)
        else:
            ignored_files.append(f"{file}: {'empty' if guess is None else guess.looks_like}")
    for one in inner:
        more, others = histories_in(one)
        found += more
        ignored_files += others
    return found, ignored_files


def _only_format(name: str, guess: Guess) -> str:
    """Return the single format that a guess allows."""
    if guess.unsupported:
        msg = f"{name}: unsupported: {guess.unsupported}; the formats are {list_format_names()}"
        raise UnsupportedError(msg)
    if not guess.formats:
        msg = (
            f"{name}: not a history in a known format (got {guess.looks_like}); "
            f"the formats are {list_format_names()}"
        )
        raise HistoryError(msg)
    if len(guess.formats) > 1:
        choice = " or ".join(f"--from {f}" for f in guess.formats)
        msg = (
            f"{name}: the content fits several formats (got {guess.looks_like}); choose one "
            f"with {choice}"
        )
        raise HistoryError(msg)
    return guess.formats[0]


def _select_logs(
    name: str, form: str, prefix: str, guesses: list[tuple[str, bytes, Guess]]
) -> tuple[str, Files, tuple[str, ...]]:
    """Select the log files in a folder that is one history."""
    logs, others = [], []
    for file, data, guess in guesses:
        named_so = plain_name(file).startswith(prefix) and plain_name(file).endswith(".log")
        if guess.formats == (form,) or named_so:
            if named_so and data and guess.formats != (form,):
                msg = (
                    f"{file}: not a log of the {form} history in {name} (got {guess.looks_like}, "
                    f"expected {FORMATS[form].title}); was it copied completely?"
                )
                raise HistoryError(msg)
            logs.append((file, data))
        else:
            others.append(Path(file).name)
    if not logs:
        msg = f"{name}: a folder without {FORMATS[form].title}"
        raise HistoryError(msg)
    ignored = (f"other files of the folder: {', '.join(others)}",) if others else ()
    return form, tuple(logs), ignored


def _check_timestamps(files: Files, timestamps: bool) -> None:
    """Check that the record sizes in Cobra's logs agree with the ``--timestamps`` option."""
    for file, data in files:
        fits, other = (has_cobra_records(data, timestamps=t) for t in (timestamps, not timestamps))
        if fits or not other:
            continue
        hint = "leave out --timestamps" if timestamps else "pass --timestamps"
        have = "without" if timestamps else "with"
        msg = f"{file}: the sizes of its records fit Cobra logs {have} timestamps only; {hint}"
        raise HistoryError(msg)
