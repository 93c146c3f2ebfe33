"""What cuts leave: on disk as in memory, back as it was, and nothing of what was deleted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.watching import random_history

from isolang import _native
from isolang.errors import HistoryError
from isolang.history import History, Transaction
from isolang.history.values import Keyword
from isolang.watch.packed import pack, unpack
from isolang.watch.state import FORMAT, Saved, Values, read_saved_state
from isolang.watch.stream.rows import Rows, decode_rows, encode_rows

KEYS = (1, -5, 1 << 63, "x", "", Keyword("k"), True, 1.5, "isolang")


def part(ops):
    """One transaction as a part has it, and the order of its keys."""
    import numpy as np

    history = History.from_transactions([Transaction(ops)])
    columns, _ = _native.LastValues().open_window(history.columns)
    keys = columns.n_keys()
    return columns, np.arange(keys + 1, dtype=np.int64), np.zeros(keys, np.int32)


def test_changes_are_undone():
    """After each change its undoing gives back all that was there."""
    rng = random.Random(1)
    last = _native.LastValues()
    undo = []
    for _ in range(300):
        seen = last.entries(0, last.numbers())
        ops = [
            rng.choice(
                [("w", key, rng.randrange(9)), ("w", key, str(rng.random())), ("delete", key)]
            )
            for key in rng.sample(KEYS, 4)
        ]
        columns, start, order = part(ops)
        undo.append((seen, last.replace(last.left_by(columns, start, order))))
        while undo and rng.random() < 0.4:
            seen, change = undo.pop()
            last.replace(change)
            assert entries(last) == entries_of(seen)


def entries_of(data):
    last = _native.LastValues()
    last.replace(data)
    return entries(last)


def entries(last):
    """All keys with their entries, in no order."""
    copy = _native.LastValues()
    copy.replace(last.entries(0, last.numbers()))
    return sorted(copy.records(0, 1 << 40))


def test_deleted_keys_take_no_room():
    """However many keys came and went."""
    last = _native.LastValues()
    for number in range(200):
        keys = range(100 * number, 100 * number + 100)
        for ops in ([("w", key, 1) for key in keys], [("delete", key) for key in keys]):
            columns, start, order = part(ops)
            last.replace(last.left_by(columns, start, order))
    assert len(last) == 0
    assert last.memory() < 2_000_000


def test_on_disk_as_in_memory(tmp_path):
    """With memory for nothing each key comes back as it was, or stays away once it was deleted."""
    rng = random.Random(2)
    values, twin = Values(tmp_path, memory=1), Values(tmp_path / "other", memory=1 << 40)
    (tmp_path / "chain.jsonl").write_bytes(b"")
    state = Saved(
        chain=0,
        parts=[],
        rows=None,
        seen=0,
        abandoned=[],
        since=[],
        unjudged=[],
        position=b"",
    )
    for number in range(120):
        keys = rng.sample(range(40), 5)
        ops = [
            rng.choice([("w", k, number), ("delete", k), ("append", f"l{k}", number)]) for k in keys
        ]
        columns, start, order = part(ops)
        values.fetch(columns)
        for each in (values, twin):
            each.last.replace(each.last.left_by(columns, start, order))
        if number % 7 == 0:
            values.save(state)
            assert len(values) == 0
            values.close()
            values = Values(tmp_path, memory=1)
            values.restore(read_saved_state(tmp_path))
    everything, _, _ = part(
        [("r", k, None) for k in range(40)] + [("append", f"l{k}", 0) for k in range(40)]
    )
    values.fetch(everything)
    assert entries(values.last) == entries(twin.last)
    values.close()


def test_a_cut_that_is_put_back_takes_away_what_went_to_disk(tmp_path):
    """A key that had no value before it has none then, whatever the disk still says."""
    values = Values(tmp_path, memory=1)
    columns, start, order = part([("w", "x", 1)])
    undo = values.last.replace(values.last.left_by(columns, start, order))
    values.make_room()
    assert (tmp_path / "state.sqlite").exists()
    values.last.replace(undo)
    values.fetch(columns)
    opened, _ = values.last.open_window(columns)
    assert opened.initial_value.tolist() == [0]
    values.close()


def test_what_was_deleted_after_it_went_to_disk_stays_so(tmp_path):
    """A watch that goes on knows it, though the disk still has the value."""
    state = Saved(
        chain=0, parts=[], rows=None, seen=0, abandoned=[], since=[], unjudged=[], position=b""
    )
    (tmp_path / "chain.jsonl").write_bytes(b"")
    for ops, memory in (([("w", "x", 1), ("w", "y", 2)], 1), ([("delete", "x")], 1 << 40)):
        values = Values(tmp_path, memory=memory)
        if (last := read_saved_state(tmp_path)) is not None:
            values.restore(last)
        columns, start, order = part(ops)
        values.fetch(columns)
        values.last.replace(values.last.left_by(columns, start, order))
        values.save(state)
        values.close()
    values = Values(tmp_path, memory=1 << 40)
    values.restore(read_saved_state(tmp_path))
    columns, *_ = part([("r", "x", None), ("r", "y", None)])
    values.fetch(columns)
    opened, _ = values.last.open_window(columns)
    assert [opened.value(v) for v in opened.initial_value.tolist()] == [(0, None), (1, 2)]
    values.close()


def test_a_changed_state_is_refused(tmp_path):
    """What a watch would go on from must be what it wrote."""
    import sqlite3

    values = Values(tmp_path, memory=1 << 30)
    values.save(
        Saved(
            chain=7,
            parts=[],
            rows=None,
            seen=3,
            abandoned=[],
            since=[],
            unjudged=[],
            position=b"",
        )
    )
    values.close()
    assert read_saved_state(tmp_path) is None  # the chain is shorter than it was
    (tmp_path / "chain.jsonl").write_bytes(b"seven or more")
    assert read_saved_state(tmp_path).chain == 7
    with sqlite3.connect(tmp_path / "state.sqlite") as data:
        ((blob,),) = data.execute("SELECT data FROM saved").fetchall()
        data.execute("UPDATE saved SET data = ?", (blob[:-1] + bytes([blob[-1] ^ 1]),))
    data.close()
    with pytest.raises(HistoryError, match="was changed"):
        read_saved_state(tmp_path)


def test_a_changed_value_on_disk_is_refused(tmp_path):
    """What cuts left of a key must be what was written there."""
    import sqlite3

    values = Values(tmp_path, memory=1)
    columns, start, order = part([("w", "x", 1)])
    values.last.replace(values.last.left_by(columns, start, order))
    values.save(
        Saved(
            chain=0, parts=[], rows=None, seen=0, abandoned=[], since=[], unjudged=[],
            position=b"",
        )
    )  # fmt: skip
    with sqlite3.connect(tmp_path / "state.sqlite") as data:
        ((record,),) = data.execute("SELECT record FROM value").fetchall()
        for at in range(8 * len(record)):
            bad = bytearray(record)
            bad[at // 8] ^= 1 << at % 8
            data.execute("UPDATE value SET record = ?", (bytes(bad),))
            data.commit()
            with pytest.raises(HistoryError, match="was changed"):
                values.fetch(columns)
    data.close()
    values.close()


def test_a_changed_name_of_a_key_on_disk_is_refused(tmp_path):
    """A watch that goes on does not miss a value because its key is called otherwise."""
    import sqlite3

    values = Values(tmp_path, memory=1)
    columns, start, order = part([("w", "x", 1)])
    values.last.replace(values.last.left_by(columns, start, order))
    saved = Saved(
        chain=0, parts=[], rows=None, seen=0, abandoned=[], since=[], unjudged=[],
        position=b"",
    )  # fmt: skip
    values.save(saved)
    (tmp_path / "chain.jsonl").write_bytes(b"")
    saved = read_saved_state(tmp_path)
    with sqlite3.connect(tmp_path / "state.sqlite") as data:
        ((name,),) = data.execute("SELECT key FROM value").fetchall()
        for at in range(8 * len(name)):
            bad = bytearray(name)
            bad[at // 8] ^= 1 << at % 8
            data.execute("UPDATE value SET key = ?", (bytes(bad),))
            data.commit()
            with pytest.raises(HistoryError, match="was changed"):
                values.restore(saved)
        data.execute("UPDATE value SET key = ?", (name,))
        data.commit()
        values.restore(saved)
    data.close()
    values.close()


@pytest.mark.parametrize("version", [FORMAT, FORMAT + 1])
def test_a_state_of_another_release_is_not_read(tmp_path, monkeypatch, version):
    """One of this format goes on; else the log is read from its beginning, and the chain goes on.

    The state was left by a watch in the middle of its log. If this fails, what a watch saves has
    changed: raise FORMAT, and make it again.
    """
    import shutil
    import sqlite3

    from isolang.watch import Stream, Watch, position_in, verify_chain

    shutil.copytree(Path(__file__).parent / "state", tmp_path / "of")
    monkeypatch.chdir(tmp_path / "of")
    state, log = Path("state"), Path("log.edn")
    with sqlite3.connect(state / "state.sqlite") as data:
        data.execute(f"PRAGMA user_version = {version}")
    data.close()
    position = position_in(state)
    assert (position is None) == (version != FORMAT)
    before = (state / "chain.jsonl").read_bytes()
    stream = Stream([log], follow=False, resume=position)
    watch = Watch("sser", stream=stream, folder=state, sources=["log.edn"], round=5)
    came = 0
    for batch in stream:
        came += int((~batch.in_flight).sum())
        list(watch.feed(batch))
    assert watch.report.outcome == "valid"
    assert came == (16 if version == FORMAT else 40)
    assert (state / "chain.jsonl").read_bytes().startswith(before)
    assert verify_chain(state, Stream([log], follow=False)) == watch.report.seen == 40


def test_damaged_values_are_refused():
    """Bytes that are none of these are an error, not other values."""
    rng = random.Random(3)
    last = _native.LastValues()
    columns, start, order = part([("w", key, "text") for key in KEYS])
    good = last.left_by(columns, start, order)
    for cut in range(1, len(good)):
        try:
            _native.LastValues().replace(good[:cut])
        except ValueError:
            continue
    for _ in range(2000):
        at = rng.randrange(len(good))
        bad = good[:at] + bytes([rng.randrange(256)]) + good[at + 1 :]
        try:
            _native.LastValues().replace(bad)
        except ValueError:
            continue


def test_rows_and_columns_come_back():
    """Rows as bytes, deletions among them, and columns of numbers of any width."""
    import numpy as np

    rng = random.Random(4)
    for _ in range(20):
        history = random_history(rng)
        n = history.columns.transactions()
        names = [str(s) for s in range(history.columns.sessions)]
        rows = Rows(columns=history.columns, names=names, at=np.arange(5 * n).reshape(n, 5))
        again = decode_rows(encode_rows(rows))
        assert (again.names, again.at.tolist()) == (rows.names, rows.at.tolist())
        other = History(columns=again.columns, name="", format="memory")
        assert [t.ops for t in other.transactions()] == [t.ops for t in history.transactions()]
    for most in (1, 200, 40_000, 1 << 40):
        numbers = np.array([rng.randrange(-most, most) for _ in range(50)], np.int64)
        found = unpack(pack({"a": numbers, "b": b"x", "c": numbers[:0]}), "here")
        assert (found["a"].tolist(), found["b"], len(found["c"])) == (numbers.tolist(), b"x", 0)
    with pytest.raises(HistoryError):
        unpack(b"nothing", "here")
