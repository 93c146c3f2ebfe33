"""Compares outcomes up to the values of generated keys, times, and unstable values.

Each text of an outcome is cut into parts: plain texts, ``<now>`` for the times of the run itself,
and keys. A key is a value that a moved sequence gives, or a new value of a column that holds
keys. Two outcomes are equal if some renaming of the keys of one makes it the second.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias

from msgspec import Struct

from isolang.harm.outcome import Plain, RunOutcome
from isolang.harm.state import PreparedState, PreparedTable, Row

NOW: Final = "<now>"
OMITTED: Final = "<omitted>"
Column: TypeAlias = tuple[str, str]
"""The names of a table and a column."""
AnswerPlace: TypeAlias = "tuple[int, tuple[str, ...], int]"
"""A word of an answer: the operation, the path in its answer, and the number of the word, or -1."""

# Positions in an answer that belong to no field; names of fields contain no zero byte.
_ERROR, _KEYS, _LENGTH = "\0error", "\0keys", "\0length"
_MARGIN: Final = 2.0  # the seconds by which the clocks of server and application may differ
_LONG_BEFORE: Final = 60.0  # the seconds before the prepared state was read
_LONGEST_CELL: Final = 10_000  # the most characters of a prepared cell that is searched for times
_SHORTEST: Final = 6  # the fewest characters of a key to find inside a text
_MOST_TRIES: Final = 2_000  # how many renamings to try
_NUMBER: Final = re.compile(r"(?<![\d.])\d+(?!\.?\d)")
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?: ?(?:Z|UTC|[+-]\d\d(?::?\d\d)?))?"
    r"|(?<![\d.])1\d{9}(?:\.\d+|\d{3}|\d{6})?(?!\.?\d)"
)
_WORD: Final = re.compile(r"\w+|[^\w]+")


class Key(Struct, frozen=True):
    """A generated key: a value of a domain, such as the values of one sequence."""

    domain: str
    value: str


Part: TypeAlias = "str | Key"
Parts: TypeAlias = tuple[Part, ...]


class TooManyKeysError(Exception):
    """Raised when too many renamings of keys are possible."""


class Item(Struct, frozen=True):
    """A row, a leaf of an answer, or an effect.

    Attributes:
        place: the table, or the position in an answer.
        cells: its texts.
    """

    place: tuple[object, ...]
    cells: tuple[Parts | None, ...]


class Ignoring(Struct, frozen=True, kw_only=True):
    """The parts of outcomes that are not compared as they are.

    Attributes:
        keys: the columns that hold generated keys, besides those of moved sequences.
        columns: the columns that are not compared.
        words: the words of answers that are not compared.
        answers: the operations whose whole answers are not compared.
        effects: whether the effects are not compared.
    """

    keys: frozenset[Column] = frozenset()
    columns: frozenset[Column] = frozenset()
    words: frozenset[AnswerPlace] = frozenset()
    answers: frozenset[int] = frozenset()
    effects: bool = False


class Canonical:
    """An outcome in parts.

    Attributes:
        outcome: the outcome.
        rows: for each table that changed, the rows that were added and removed.
        items: the rows, the leaves of the answers, and the effects.
    """

    def __init__(
        self, state: PreparedState, outcome: RunOutcome, ignoring: Ignoring, skipped: Iterable[int]
    ) -> None:
        """Cut an outcome into parts.

        Args:
            skipped: the operations whose answers are not compared.
        """
        self.outcome = outcome
        self._state, self._ignoring = state, ignoring
        self._window = outcome.window[0] - _MARGIN, outcome.window[1] + _MARGIN
        self._prepared = _prepared_times(state)
        self._changed = {
            name: changed_rows(state.rows[name], rows)
            for name, rows in outcome.rows.items()
            if not state.is_ignored(name) and rows != state.rows[name]
        }
        self._known = self._new_keys()
        longest = sorted((k for k in self._known if len(k) >= _SHORTEST), key=len, reverse=True)
        self._inside = re.compile("|".join(map(re.escape, longest))) if longest else None
        self.rows: dict[str, tuple[list[Item], list[Item]]] = {
            name: (
                [self._row(state.tables[name], row, "added") for row in added],
                [self._row(state.tables[name], row, "removed") for row in removed],
            )
            for name, (added, removed) in self._changed.items()
        }
        self.answers = {
            number: list(self._answer(number))
            for number in sorted(outcome.answers)
            if number not in skipped
        }
        self.effects = [] if ignoring.effects else [
            Item(("effect",), (self.parts(repr_plain(effect)),)) for effect in outcome.effects
        ]  # fmt: skip
        self.items = [
            *(item for both in self.rows.values() for items in both for item in items),
            *(item for items in self.answers.values() for item in items),
            *self.effects,
            *(Item(("invariant", name), ()) for name in outcome.broken),
        ]

    def _new_keys(self) -> dict[str, str]:
        """Return the domain of each new value of the columns that hold keys."""
        known = {}
        for name, (added, _) in self._changed.items():
            table = self._state.tables[name]
            for number, column in enumerate(table.columns):
                if column in table.generated or (name, column) in self._ignoring.keys:
                    before = {row[number] for row in self._state.rows[name]}
                    for row in added:
                        value = row[number]
                        if value is not None and value not in before:
                            known[value] = f"{name}.{column}"
        return known

    def _row(self, table: PreparedTable, row: Row, kind: str) -> Item:
        cells: list[Parts | None] = []
        for column, text in zip(table.columns, row, strict=True):
            is_varying = (table.name, column) in self._ignoring.columns
            if is_varying or self._state.is_ignored(table.name, column):
                cells.append((OMITTED,))
            else:
                cells.append(None if text is None else self.parts(text))
        return Item((kind, table.name), tuple(cells))

    def _answer(self, number: int) -> Iterator[Item]:
        answer = self.outcome.answers[number]
        if number in self._ignoring.answers:
            return
        yield Item(("answer", number, _ERROR), ((answer.error,),))
        for path, text in leaves(answer.value):
            place = ("answer", number, *path)
            if text is None:
                yield Item(place, (None,))
                continue
            yield Item(place, (self.parts(self._without_omitted(number, path, text)),))

    def _without_omitted(self, number: int, path: tuple[str, ...], text: str) -> str:
        """Return the text of an answer without the words that are not compared."""
        omitted = {word for n, p, word in self._ignoring.words if (n, p) == (number, path)}
        if -1 in omitted:
            return OMITTED
        if not omitted:
            return text
        words = enumerate(_WORD.findall(text))
        return "".join(OMITTED if n in omitted else word for n, word in words)

    # --- texts ---

    def parts(self, text: str) -> Parts:
        """Cut a text into parts."""
        domain = self._known.get(text)
        if domain is not None:
            return (Key(domain, text),)
        parts: list[Part] = []
        for piece in _split(text, self._inside, self._as_known):
            for timed in [piece] if isinstance(piece, Key) else _split(piece, _TIME, self._as_now):
                if isinstance(timed, Key) or timed == NOW:
                    parts.append(timed)
                else:
                    parts += _split(timed, _NUMBER, self._as_sequence)
        return tuple(parts)

    def _as_known(self, text: str) -> Key | None:
        return Key(self._known[text], text)

    def _as_sequence(self, text: str) -> Key | None:
        if len(text) > 18:
            return None
        number = int(text)
        for key_range in self.outcome.ranges:
            if key_range.low < number <= key_range.high:
                return Key(key_range.sequence, text)
        return None

    def _as_now(self, text: str) -> str | None:
        return NOW if any(map(self._is_now, _seconds(text))) else None

    def _is_now(self, seconds: float) -> bool:
        within = self._window[0] <= seconds <= self._window[1]
        return within and seconds not in self._prepared


def _prepared_times(state: PreparedState) -> frozenset[float]:
    """Return the times in the prepared rows that may be within the window of a run.

    Rows that were prepared just before the first run have times that are not its own.
    """
    if state.times is None:
        state.times = frozenset(
            seconds
            for rows in state.rows.values()
            for row in rows
            for cell in row
            if cell is not None and len(cell) <= _LONGEST_CELL
            for match in _TIME.finditer(cell)
            for seconds in _seconds(match[0])
            if seconds > state.read_at - _LONG_BEFORE
        )
    return state.times


def changed_rows(before: Sequence[Row], after: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows that were added, and those that were removed."""
    old, new = Counter(before), Counter(after)
    return list((new - old).elements()), list((old - new).elements())


def _split(text: str, pattern: re.Pattern[str] | None, meaning: object) -> list[Part]:
    """Cut a text at what a pattern finds, where it has a meaning."""
    if pattern is None:
        return [text]
    parts: list[Part] = []
    at = 0
    for match in pattern.finditer(text):
        part = meaning(match[0])  # type: ignore[operator]
        if part is not None:
            parts += [text[at : match.start()], part]
            at = match.end()
    parts.append(text[at:])
    return [part for part in parts if part != ""] or [""]


def _seconds(text: str) -> Iterator[float]:
    """Yield the times that a text may mean, in seconds since 1970."""
    if "-" not in text[:5]:
        whole = text.partition(".")[0]
        yield float(text) / 10 ** (len(whole) - 10)
        return
    short = text.replace(" UTC", "Z").replace("Z", "+00:00")
    if re.search(r"[+-]\d\d$", short[10:]):
        short += ":00"
    try:
        moment = datetime.fromisoformat(short)
    except ValueError:
        return
    if moment.tzinfo is not None:
        yield moment.timestamp()
    else:  # a time of UTC, or of this machine
        yield moment.replace(tzinfo=UTC).timestamp()
        yield moment.timestamp()


def leaves(
    value: Plain, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Yield each text of an answer with its path; an empty list or map is a leaf, too."""
    if isinstance(value, dict):
        yield (*path, _KEYS), ",".join(value)
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        yield (*path, _LENGTH), str(len(value))
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, str(number)))
    else:
        yield path, value


def repr_plain(value: Plain) -> str:
    """Return a text that determines a plain value."""
    return value if isinstance(value, str) else repr(value)


# --- equality ---


class Colouring:
    """Colours the keys of two outcomes by all that is known of them, until nothing changes.

    Keys of one colour have the same domain, and occur in the same places of items that are alike.
    """

    def __init__(self, first: Sequence[Item], second: Sequence[Item]) -> None:
        self.sides = first, second
        self.colours: tuple[dict[Key, int], dict[Key, int]] = ({}, {})
        self._numbers: dict[object, int] = {}
        for side, items in enumerate(self.sides):
            for item in items:
                for key in _keys_of(item):
                    self.colours[side][key] = self._number(("domain", key.domain))
        self.refine()

    def _number(self, signature: object) -> int:
        return self._numbers.setdefault(signature, len(self._numbers))

    def copy(self) -> Colouring:
        """Return a copy, whose colours can be changed."""
        second = object.__new__(Colouring)
        second.sides, second._numbers = self.sides, self._numbers
        second.colours = dict(self.colours[0]), dict(self.colours[1])
        return second

    def signature(self, item: Item, side: int, own: Key | None = None) -> object:
        """Return an item with colours in place of keys."""
        colours = self.colours[side]
        return item.place, tuple(
            None
            if cell is None
            else tuple(
                part if isinstance(part, str) else (part == own, colours[part]) for part in cell
            )
            for cell in item.cells
        )

    def refine(self) -> None:
        """Give keys that occur differently different colours."""
        while True:
            before = len({*self.colours[0].values(), *self.colours[1].values()})
            for side, items in enumerate(self.sides):
                occurrences: defaultdict[Key, list[int]] = defaultdict(list)
                for item in items:
                    for key in set(_keys_of(item)):
                        signature = self.signature(item, side, key)
                        occurrences[key].append(self._number(signature))
                self.colours[side].update({
                    key: self._number((self.colours[side][key], tuple(sorted(numbers))))
                    for key, numbers in occurrences.items()
                })  # fmt: skip
            if len({*self.colours[0].values(), *self.colours[1].values()}) == before:
                return

    def agree(self) -> bool:
        """Return whether both sides have the same items in colours."""
        first, second = (
            Counter(self.signature(item, side) for item in items)
            for side, items in enumerate(self.sides)
        )
        return first == second

    def classes(self) -> list[tuple[list[Key], list[Key]]]:
        """Return the keys of each colour that several keys have."""
        both: defaultdict[int, tuple[list[Key], list[Key]]] = defaultdict(lambda: ([], []))
        for side in (0, 1):
            for key, colour in self.colours[side].items():
                both[colour][side].append(key)
        return [keys for keys in both.values() if len(keys[0]) > 1 or len(keys[1]) > 1]

    def pair(self, first: Key, second: Key) -> None:
        """Give a key of each side a colour that no other key has."""
        colour = self._number(("pair", len(self._numbers)))
        self.colours[0][first] = self.colours[1][second] = colour
        self.refine()


def _keys_of(item: Item) -> Iterator[Key]:
    for cell in item.cells:
        for part in cell or ():
            if isinstance(part, Key):
                yield part


def is_equal(first: Sequence[Item], second: Sequence[Item]) -> bool:
    """Return whether a renaming of keys makes the items of one outcome those of another.

    Raises:
        TooManyKeysError: too many renamings are possible.

    >>> a, b = Key("s", "1"), Key("s", "2")
    >>> rows = [Item(("t",), ((a,), ("x",))), Item(("t",), ((b,), ("y",)))]
    >>> second = [Item(("t",), ((a,), ("y",))), Item(("t",), ((b,), ("x",)))]
    >>> is_equal(rows, second)
    True
    >>> is_equal([*rows, Item(("answer",), ((a,),))], [*second, Item(("answer",), ((a,),))])
    False
    """
    if len(first) != len(second):
        return False
    tries = [0]

    def search(colouring: Colouring) -> bool:
        tries[0] += 1
        if tries[0] > _MOST_TRIES:
            raise TooManyKeysError
        if not colouring.agree():
            return False
        several = colouring.classes()
        if not several:
            return True  # the colours are a renaming
        first, others = min(several, key=lambda keys: len(keys[0]))
        if len(first) != len(others):
            return False
        for key in others:
            attempt = colouring.copy()
            attempt.pair(first[0], key)
            if search(attempt):
                return True
        return False

    return search(Colouring(first, second))


# --- what differs between two runs of one order ---


class Differences(Struct, frozen=True, kw_only=True):
    """The differences between two runs of one order.

    Attributes:
        ignoring: what to ignore, so that the two are equal.
        why: why they differ all the same; empty if they do not.
    """

    ignoring: Ignoring
    why: str = ""


def differences_of_runs(
    state: PreparedState, early: RunOutcome, late: RunOutcome, ignoring: Ignoring
) -> Differences:
    """Return what differs between two runs of one order, in addition to what is ignored already.

    A unique column that differs is one of generated keys; other columns are left out.
    """
    for _ in range(3):  # a new column of keys may explain other differences
        first, second = (Canonical(state, run, ignoring, ()) for run in (early, late))
        keys, columns = set(ignoring.keys), set(ignoring.columns)
        for name in {*first.rows, *second.rows}:
            table = state.tables[name]
            empty: tuple[list[Item], list[Item]] = ([], [])
            for first_items, second_items in zip(
                first.rows.get(name, empty), second.rows.get(name, empty), strict=True
            ):
                if len(first_items) != len(second_items):
                    words = f"{name} has {len(first_items)} and {len(second_items)} changed rows"
                    return Differences(ignoring=ignoring, why=words)
                for number, column in enumerate(table.columns):
                    shapes = [
                        Counter(_shape(item.cells[number]) for item in items)
                        for items in (first_items, second_items)
                    ]
                    if shapes[0] != shapes[1]:
                        (keys if column in table.unique else columns).add((name, column))
        varying_words, answers = _differing_answers(first, second)
        more = Ignoring(
            keys=frozenset(keys), columns=frozenset(columns),
            words=ignoring.words | varying_words, answers=ignoring.answers | answers,
            effects=ignoring.effects or _shapes(first.effects) != _shapes(second.effects),
        )  # fmt: skip
        if more == ignoring:
            break
        if more.keys != ignoring.keys:  # first rename, then leave out what still differs
            more = Ignoring(
                keys=more.keys, columns=ignoring.columns, words=ignoring.words,
                answers=ignoring.answers, effects=ignoring.effects,
            )  # fmt: skip
        ignoring = more
    first, second = (Canonical(state, run, ignoring, ()) for run in (early, late))
    if not is_equal(first.items, second.items):
        return Differences(ignoring=ignoring, why="the rows and answers do not fit each other")
    return Differences(ignoring=ignoring)


def _shape(cell: Parts | None) -> object:
    """Return a text with domains in place of keys."""
    return cell and tuple(part if isinstance(part, str) else (part.domain,) for part in cell)


def _shapes(items: Sequence[Item]) -> Counter[object]:
    return Counter((item.place, tuple(map(_shape, item.cells))) for item in items)


def _differing_answers(first: Canonical, second: Canonical) -> tuple[set[AnswerPlace], set[int]]:
    """Return the words of answers that differ, and the answers that differ as a whole."""
    words: set[AnswerPlace] = set()
    whole: set[int] = set()
    for number, first_items in first.answers.items():
        second_items = {item.place: item for item in second.answers.get(number, ())}
        if {item.place for item in first_items} != set(second_items):
            whole.add(number)
            continue
        for item in first_items:
            cells = item.cells[0], second_items[item.place].cells[0]
            if _shape(cells[0]) == _shape(cells[1]):
                continue
            if item.place[-1] in (_ERROR, _KEYS, _LENGTH):
                whole.add(number)
                continue
            path = tuple(map(str, item.place[2:]))
            words |= {(number, path, n) for n in _differing_words(first, second, number, path)}
    return words, whole


def _differing_words(
    first: Canonical, second: Canonical, number: int, path: tuple[str, ...]
) -> list[int]:
    """Return the numbers of the words of a text that differ; -1 for the whole text."""
    words = []
    for run in (first, second):
        text = dict(leaves(run.outcome.answers[number].value))[path]
        if text is None:
            return [-1]
        words.append(_WORD.findall(text))
    if len(words[0]) != len(words[1]) or len(words[0]) < 4:
        return [-1]
    return [
        n
        for n, (first_items, second_items) in enumerate(zip(*words, strict=True))
        if _shape(first.parts(first_items)) != _shape(second.parts(second_items))
    ]
