"""Large files in EDN and of Plume are read piece by piece, with the same results as at once."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import pytest

from isolang import History, load_history
from isolang.errors import HistoryError
from isolang.history import load, sources

# More than two pieces of the native reader.
_TRANSACTIONS = 14_000
_ROOM = " " * 40  # so that few maps fill a piece


def lines(more: str = "") -> list[str]:
    """Return the maps of transactions that overlap in two processes, one on each line."""
    made = []
    for i in range(_TRANSACTIONS):
        process, key, completed = i % 2, f"k{i % 7}", i % 5 != 3
        asked = f"[[:r {key} nil] [:w {key} {i}]]"
        shown = f"[[:r {key} {i - 7 if i >= 7 else 'nil'}] [:w {key} {i}]]"
        times = f":index {2 * i}, :time {3 * i},{_ROOM}"
        made.append(f"{{{times} :type :invoke, :process {process}, :f :txn, :value {asked}}}")
        times = f":index {2 * i + 1}, :time {3 * i + 1},{_ROOM}"
        kind = ":ok" if completed else (":fail" if i % 2 else ":info")
        value = shown if completed else asked
        made.append(f"{{{times} :type {kind}, :process {process}, :f :txn, :value {value}{more}}}")
    return made


def plume_lines(apart: bool) -> list[str]:
    """Return the lines of transactions of three sessions, of which some are aborted or blank.

    If ``apart`` is set, lines of different transactions alternate.
    """
    written_lines = []
    for i in range(3 * _TRANSACTIONS):
        session = i % 3
        name = -1 if i % 11 == 5 else 10 * i + 7
        key, value = 10**9 + i % 7, 10**6 + i
        written_lines.append(f"r({key},0,{session},{name})")
        if apart and i > 100:
            written_lines[-1:-1] = [f"w({key},{value - 100},{session},{10 * (i - 99) + 7})"]
        written_lines += [f"w({key},{value},{session},{name})\r", *([" "] if i % 99 == 3 else [])]
    return written_lines


def whole(text: bytes, form: str = "edn") -> History:
    """Return the history that a text has if it is read at once."""
    return load_history(io.BytesIO(text), form)


def written(folder: Path, text: bytes) -> Path:
    path = folder / "history.edn"
    path.write_bytes(text)
    return path


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Files of any size are read in pieces; for each file, whether that succeeded."""
    monkeypatch.setattr(sources, "_LARGE", 1)
    seen: list[bool] = []
    read = load._read_in_pieces

    def noted(*args: object) -> History | None:
        found = read(*args)  # type: ignore[arg-type]
        if isinstance(args[0], Path):
            seen.append(found is not None)
        return found

    monkeypatch.setattr(load, "_read_in_pieces", noted)
    return seen


def same(one: History, other: History) -> bool:
    return (
        one.columns.__getstate__() == other.columns.__getstate__()
        and one.notes == other.notes
        and one.ignored == other.ignored
        and one.sha256 == other.sha256
        and one.real_time == other.real_time
        and one.session_names == other.session_names
    )


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("more", ["", ", :group 1", ", :label x"])
def test_as_at_once(tmp_path: Path, pieces: list[bool], end: str, more: str) -> None:
    """Lines that lie in two pieces are whole, with and without fields that few maps have."""
    text = ("\n".join(lines(more)) + end).encode()
    assert len(text) > 2 << 20
    read = load_history(written(tmp_path, text))
    assert pieces == [True]
    assert same(read, whole(text))
    assert read.sha256 == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    "text",
    [
        "[" + "\n".join(lines()) + "]",
        "\n".join(lines()).replace(":value", "\n:value"),  # two lines a map
        "; a comment\n#_ {:left out}\n" + "\n".join(lines()),
        "\ufeff" + "\n".join(lines()),
    ],
    ids=["vector", "two lines", "comments", "mark"],
)
def test_other_layouts(tmp_path: Path, pieces: list[bool], text: str) -> None:
    """A layout in which a map may lie in two pieces gives the same history, too."""
    data = text.encode()
    assert same(load_history(written(tmp_path, data)), whole(data))
    assert len(pieces) == 1


@pytest.mark.parametrize(
    "last",
    [
        '{:index 99999, :observed true, :type :invoke, :process 9, :f :txn, :value [[:w "x" 1]]}',
        ";:unseen {}",
        "{:index 99999, :type :ok, :process 9, :value [[:w 1 1]], :perhaps [[0 [:r 2 nil]]]}",
    ],
)
def test_recordings(tmp_path: Path, pieces: list[bool], last: str) -> None:
    """What names facts or operations that are not seen is read as a whole."""
    data = "\n".join([*lines(), last, ""]).encode()
    assert same(load_history(written(tmp_path, data)), whole(data))
    assert pieces == [False]


def test_json_as_a_whole(tmp_path: Path, pieces: list[bool]) -> None:
    """JSON is checked from its begin to its end before it is read."""
    maps = [{"type": "ok", "process": 0, "f": "txn", "value": [["w", 1, i]]} for i in range(9)]
    data = "\n".join(map(json.dumps, maps)).encode()
    assert same(load_history(written(tmp_path, data)), whole(data))
    assert pieces == [False]


@pytest.mark.parametrize("damage", ["{:type :ok", "}", "{:type :oops, :process 1}", '"'])
def test_errors(tmp_path: Path, pieces: list[bool], damage: str) -> None:
    """An error in a later piece has the message that it has if the text is read at once."""
    data = "\n".join([*lines(), damage, *lines()[:2]]).encode()
    with pytest.raises(HistoryError) as at_once:
        whole(data)
    path = written(tmp_path, data)
    with pytest.raises(HistoryError) as in_pieces:
        load_history(path)
    assert str(in_pieces.value) == str(at_once.value).replace("<stream>", str(path))
    assert pieces == [False]


@pytest.mark.parametrize("end", ["\n", "", " ", "\n\n \n"])
@pytest.mark.parametrize("apart", [False, True])
def test_plume_as_at_once(tmp_path: Path, pieces: list[bool], end: str, apart: bool) -> None:
    """Lines of Plume that lie in two pieces are whole, however they are interleaved."""
    text = ("\n".join(plume_lines(apart)) + end).encode()
    assert len(text) > 2 << 20
    read = load_history(written(tmp_path, text))
    assert pieces == [True]
    assert read.format == "plume"
    assert same(read, whole(text, "plume"))


@pytest.mark.parametrize(
    "damage",
    ["w(1,2,3", "x(1,2,3,4)", "r(1,2,3,99999999999999999999)", "r(5,0,1,7)", "r" * 3_000_000],
)
def test_errors_of_plume(tmp_path: Path, pieces: list[bool], damage: str) -> None:
    """An error in a later piece of lines has the message that it has if read at once."""
    data = "\n".join([*plume_lines(apart=False), damage, "r(5,0,1,7)"]).encode()
    with pytest.raises(HistoryError) as at_once:
        whole(data, "plume")
    path = written(tmp_path, data)
    with pytest.raises(HistoryError) as in_pieces:
        load_history(path)
    assert str(in_pieces.value) == str(at_once.value).replace("<stream>", str(path))
    assert pieces == [False]
