"""Says in words how the outcome of a concurrent run differs from those of serial orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from isolang.explain.harm import HarmDifference
from isolang.harm.keys import OMITTED, Canonical, Colouring, Item, Parts
from isolang.harm.outcome import Plain, shown_plain
from isolang.harm.state import PreparedState

_MOST_VALUES: Final = 3  # how many values of different orders a text names
_NUMBERS: Final = ("no", "one", "two", "three", "four", "five")


def difference_size(concurrent: Canonical, serial: Canonical) -> tuple[int, int]:
    """Return how much two outcomes differ: the answers, and the rows and effects."""
    colouring = Colouring(concurrent.items, serial.items)
    signatures = [
        Counter((item.place[0] == "answer", colouring.signature(item, side)) for item in items)
        for side, items in enumerate(colouring.sides)
    ]
    differing = list(((signatures[0] - signatures[1]) + (signatures[1] - signatures[0])).elements())
    answers = sum(is_answer for is_answer, _ in differing)
    return answers, len(differing) - answers


def differences(
    state: PreparedState,
    concurrent: Canonical,
    nearest: Canonical,
    orders: Sequence[Canonical],
    names: Mapping[int, str],
) -> list[HarmDifference]:
    """Return how a concurrent run differs from the nearest order.

    Args:
        orders: the outcomes of all orders.
        names: the texts of the calls, by number.
    """
    broken = set(concurrent.outcome.broken) - {n for run in orders for n in run.outcome.broken}
    listed = [
        *(HarmDifference(text=f"{name} holds after every order") for name in sorted(broken)),
        *_changed_rows(state, concurrent, nearest, orders),
        *_numbers_of_rows(concurrent, nearest, orders),
        *_new_rows(state, concurrent, nearest),
        *_answers(concurrent, nearest, orders, names),
        *_effects(concurrent, nearest),
    ]
    listed = _without_repetitions(listed)
    listed.sort(key=lambda difference: difference.value in difference.serial)
    refusals = {sum(bool(a.error) for a in run.outcome.answers.values()) for run in orders}
    failed = sum(bool(a.error) for a in concurrent.outcome.answers.values() if not a.refused)
    if listed and len(refusals) == 1 and refusals != {failed} and listed[0].table:
        (count,) = refusals
        number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
        text = f"{listed[0].text} and {number} refusal{'' if count == 1 else 's'}"
        listed[0] = replace(listed[0], text=text)
    return listed or [HarmDifference(text="the new rows belong together in another way")]


def _without_repetitions(listed: Sequence[HarmDifference]) -> list[HarmDifference]:
    """Return differences, with the number of those that are equal, such as two new rows'."""
    return [
        equal if count == 1 else replace(equal, text=f"{equal.text}, {_times(count)}")
        for equal, count in Counter(listed).items()
    ]


def _changed_rows(
    state: PreparedState, concurrent: Canonical, nearest: Canonical, orders: Sequence[Canonical]
) -> Iterator[HarmDifference]:
    """Yield the differences between rows whose primary key is not generated."""
    for name, table in state.tables.items():
        if not table.key or state.is_ignored(name):
            continue
        here, there = (_rows_by_key(state, run, name) for run in (concurrent, nearest))
        every = [_rows_by_key(state, run, name) for run in orders]
        for key in sorted({*here, *there}):
            value_here, value_there = here.get(key), there.get(key)
            row = f"{name}/{' '.join(key)}"
            if value_here is None or value_there is None:
                text = f"{row} {'is missing' if value_here is None else 'exists'}"
                if all((run.get(key) is None) == (value_there is None) for run in every):
                    text += f", every order {'lacks' if value_there is None else 'has'} it"
                else:
                    text += ", unlike after the nearest order"
                yield HarmDifference(text=text, table=name, row=" ".join(key))
                continue
            for number, column in enumerate(table.columns):
                if value_here[number] == value_there[number] or not _is_plain(
                    value_here[number], value_there[number]
                ):
                    continue
                values = [_shown(run[key][number]) if key in run else "no row" for run in every]
                value, serial = _shown(value_here[number]), tuple(dict.fromkeys(values))
                phrase = _serial_values(serial, _shown(value_there[number]))
                yield HarmDifference(
                    text=f"{row} {column} {value}, {phrase}",
                    table=name, row=" ".join(key), column=column, value=value, serial=serial,
                )  # fmt: skip


def _serial_values(serial: Sequence[str], nearest: str) -> str:
    """Return a phrase about the values that serial orders give."""
    if len(serial) == 1:
        return f"every order gives {serial[0]}"
    if len(serial) <= _MOST_VALUES:
        return f"the orders give {' or '.join(serial)}"
    return f"the nearest order gives {nearest}"


def _rows_by_key(
    state: PreparedState, run: Canonical, name: str
) -> dict[tuple[str, ...], tuple[Parts | None, ...]]:
    """Return the rows of a table that an outcome or another run may have changed, by primary key.

    Rows with a generated key are left out.
    """
    table = state.tables[name]
    places = [table.columns.index(column) for column in table.key]
    added, removed = run.rows.get(name, ([], []))

    def key_of(cells: Sequence[Parts | None]) -> tuple[str, ...] | None:
        parts = [cells[place] for place in places]
        if not all(_is_plain(cell) and cell != (OMITTED,) for cell in parts):
            return None
        return tuple("".join(map(str, cell or ("null",))) for cell in parts)

    rows: dict[tuple[str, ...], tuple[Parts | None, ...]] = {
        key: tuple(None if cell is None else (cell,) for cell in row)
        for row in state.rows[name]
        if (key := key_of([None if cell is None else (cell,) for cell in row])) is not None
    }
    for item in removed:
        if (key := key_of(item.cells)) is not None:
            rows.pop(key, None)
    for item in added:
        if (key := key_of(item.cells)) is not None:
            rows[key] = item.cells
    return rows


def _is_plain(*cells: Parts | None) -> bool:
    """Return whether cells contain no key."""
    return all(isinstance(part, str) for cell in cells for part in cell or ())


def _shown(cell: Parts | None) -> str:
    if cell is None:
        return "null"
    text = "".join(part if isinstance(part, str) else "…" for part in cell)
    return text if len(text) <= 60 else text[:59] + "…"


def _numbers_of_rows(
    concurrent: Canonical, nearest: Canonical, orders: Sequence[Canonical]
) -> Iterator[HarmDifference]:
    def added(run: Canonical, name: str) -> int:
        both = run.rows.get(name, ([], []))
        return len(both[0]) - len(both[1])

    for name in sorted({*concurrent.rows, *nearest.rows}):
        value_here, value_there = added(concurrent, name), added(nearest, name)
        if value_here != value_there:
            serial = tuple(dict.fromkeys(str(added(run, name)) for run in orders))
            yield HarmDifference(
                text=f"{name}: {_counted(value_here)}, {_serial_values(serial, str(value_there))}",
                table=name, value=str(value_here), serial=serial,
            )  # fmt: skip


def _counted(number: int) -> str:
    rows = "row" if abs(number) == 1 else "rows"
    return f"{number} new {rows}" if number >= 0 else f"{-number} {rows} fewer"


def _new_rows(
    state: PreparedState, concurrent: Canonical, nearest: Canonical
) -> Iterator[HarmDifference]:
    """Yield the columns in which new rows with generated keys differ, for tables of equal size."""
    colouring = Colouring(concurrent.items, nearest.items)
    for name in sorted({*concurrent.rows, *nearest.rows}):
        table = state.tables[name]
        places = [table.columns.index(column) for column in table.key]
        value_here, value_there = (run.rows.get(name, ([], []))[0] for run in (concurrent, nearest))
        value_here, value_there = (
            [i for i in items if not _is_plain(*(i.cells[p] for p in places)) or not places]
            for items in (value_here, value_there)
        )
        left, right = _unmatched(colouring, value_here, value_there)
        for item in left:
            if not right:
                break
            other = min(right, key=lambda run: _differing_cells(item, run))
            right.remove(other)
            for number, column in enumerate(table.columns):
                a, b = item.cells[number], other.cells[number]
                if a != b and _is_plain(a, b):
                    yield HarmDifference(
                        text=f"{name}: {column} {_shown(a)} instead of {_shown(b)}",
                        table=name, column=column, value=_shown(a), serial=(_shown(b),),
                    )  # fmt: skip


def _unmatched(
    colouring: Colouring, value_here: Sequence[Item], value_there: Sequence[Item]
) -> tuple[list[Item], list[Item]]:
    """Return the items that the other side does not have."""
    left, right = list(value_here), []
    for item in value_there:
        signature = colouring.signature(item, 1)
        same = next((x for x in left if colouring.signature(x, 0) == signature), None)
        if same is None:
            right.append(item)
        else:
            left.remove(same)
    return left, right


def _differing_cells(item: Item, other: Item) -> int:
    return sum(a != b and _is_plain(a, b) for a, b in zip(item.cells, other.cells, strict=True))


def _answers(
    concurrent: Canonical,
    nearest: Canonical,
    orders: Sequence[Canonical],
    names: Mapping[int, str],
) -> Iterator[HarmDifference]:
    colouring = Colouring(concurrent.items, nearest.items)
    for number, items in concurrent.answers.items():
        left, right = _unmatched(colouring, items, nearest.answers.get(number, ()))
        if not left and not right:
            continue
        value_here, value_there = (run.outcome.answers[number] for run in (concurrent, nearest))
        shown = [run.outcome.answers[number].shown() for run in orders]
        serial = tuple(dict.fromkeys(shown))
        value, other = value_here.shown(), value_there.shown()
        if value == other:
            value, other = "another key", "that of another row"
        yield HarmDifference(
            text=f"{names[number]} gave {value} instead of {other}", value=value, serial=serial
        )


def _effects(concurrent: Canonical, nearest: Canonical) -> Iterator[HarmDifference]:
    if len(concurrent.effects) == len(nearest.effects):
        colouring = Colouring(concurrent.items, nearest.items)
        left, right = _unmatched(colouring, concurrent.effects, nearest.effects)
        if not left and not right:
            return
    value_here, value_there = (_texts(run.outcome.effects) for run in (concurrent, nearest))
    more, fewer = value_here - value_there, value_there - value_here
    phrases = [f"{effect} {_times(value_here[effect])} instead of {_times(value_there[effect])}"
               for effect in {**more, **fewer}]  # fmt: skip
    yield HarmDifference(text=f"effects: {'; '.join(phrases) or 'they name other keys'}")


def _texts(effects: Sequence[Plain]) -> Counter[str]:
    return Counter(map(shown_plain, effects))


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
