"""A forged chain is refused with the field that is wrong, or what it changes is told."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import zlib
from pathlib import Path

import msgspec
import pytest
from support.cli import run_here
from support.mutations import mutants_of

from isolang.errors import IsolangError
from isolang.watch import Stream, Watch, check_chain
from isolang.watch.chain import NAME, Part, unpack_columns
from isolang.watch.verify import ChainRejected

# A stale read: w(x 1) ended at 10, r(x nil) began at 20.
STALE = """\
{:type :invoke, :process 0, :time 0, :f :txn, :value [[:w :x 1]]}
{:type :ok, :process 0, :time 10, :f :txn, :value [[:w :x 1]], :times [[0 10]]}
{:type :invoke, :process 1, :time 20, :f :txn, :value [[:r :x nil]]}
{:type :ok, :process 1, :time 30, :f :txn, :value [[:r :x nil]], :times [[21 29]]}
"""
LONGER = "".join(
    f"{{:type :invoke, :process {n % 2}, :f :txn, :value [[:r :k nil] [:append l {n}]]}}\n"
    f"{{:type :ok, :process {n % 2}, :f :txn, :value [[:r :k 7] [:append l {n}] [:r l "
    f"[{' '.join(map(str, range(n + 1)))}]]]}}\n"
    for n in range(6)
)


def chain_of(folder: Path, text: str, level: str, **reading: object) -> list[dict[str, object]]:
    """Watch a log to its end; the entries of its chain."""
    log = folder / "log.edn"
    log.write_text(text)
    stream = Stream([log], follow=False, batch=150)
    watch = Watch(level, stream=stream, folder=folder / "state", round=2, **reading)
    for batch in stream:
        list(watch.feed(batch))
    watch.close()
    stream.close()
    assert watch.report.outcome == "valid"
    return [json.loads(line) for line in (folder / "state" / NAME).read_text().splitlines()]


def write(folder: Path, entries: list[dict[str, object]]) -> None:
    """A chain of entries, each with the hash of the line before."""
    previous, text = "", b""
    for entry in entries:
        chained = isinstance(entry, dict) and "previous" in entry
        line = json.dumps({**entry, "previous": previous} if chained else entry).encode() + b"\n"
        text, previous = text + line, hashlib.sha256(line).hexdigest()
    (folder / "state" / NAME).write_bytes(text)


def checked(folder: Path):
    """What the chain proves of its log."""
    stream = Stream([folder / "log.edn"], follow=False)
    try:
        return check_chain(folder / "state", stream)
    finally:
        stream.close()


def test_the_clock_error_of_a_chain_is_told(tmp_path, capfd, monkeypatch):
    """A log that violates the level if clocks are right is valid only by a clock error: it says."""
    monkeypatch.chdir(tmp_path)
    entries = chain_of(tmp_path, STALE, "sser", clock_error=50)
    found = run_here(capfd, "verify", "state", "log.edn")
    assert found.code == 0
    assert "clock error: clocks may differ by 50 ns" in found.out
    assert "real time: :time, from :invoke to :ok or :fail" in found.out
    assert "files: log.edn" in found.out
    entries[0]["reading"] = {"clock_error": 10**18}
    write(tmp_path, entries)
    found = run_here(capfd, "verify", "state", "log.edn")
    assert "clock error: clocks may differ by 1e+09 s" in found.out
    entries[0]["reading"] = {"clock_error": 0}
    write(tmp_path, entries)
    assert run_here(capfd, "verify", "state", "log.edn").code == 4


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        ({"clock_error": -100}, "$.reading.clock_error"),
        ({"clock_error": "x"}, "$.reading.clock_error"),
        ({"clock_error": 1.5}, "$.reading.clock_error"),
        ({"clock_error": 10**30}, "$.reading.clock_error"),
        ({"clock_error": 0, "zzz": 1}, "zzz"),
        ({"initial_value": 5}, "$.reading.initial_value"),
        ({"unwritten_initial": "no"}, "$.reading.unwritten_initial"),
    ],
)
def test_a_malformed_head_is_refused_with_its_field(tmp_path, capfd, monkeypatch, reading, said):
    """It is no internal error, and no unknown field passes."""
    monkeypatch.chdir(tmp_path)
    entries = chain_of(tmp_path, STALE, "sser", clock_error=50)
    entries[0]["reading"] = reading
    write(tmp_path, entries)
    found = run_here(capfd, "verify", "state", "log.edn")
    assert found.code == 2
    assert f"{NAME}:1: " in found.err
    assert said in found.err
    assert "internal error" not in found.err


def test_a_level_under_another_name_is_refused(tmp_path):
    """The head says the name of the level that its texts have."""
    entries = chain_of(tmp_path, STALE, "ser")
    entries[0]["spec_name"] = "SSER"
    write(tmp_path, entries)
    with pytest.raises(IsolangError, match="spec_name"):
        checked(tmp_path)


def test_a_folder_without_a_chain_says_so(tmp_path, capfd, monkeypatch):
    """And a figure is of a certificate, not of a chain."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.edn").write_text(STALE)
    (tmp_path / "empty").mkdir()
    found = run_here(capfd, "verify", "empty", "log.edn")
    assert (found.code, "empty: the folder contains no chain of a watch" in found.err) == (2, True)
    chain_of(tmp_path, STALE, "ser")
    found = run_here(capfd, "verify", "state", "log.edn", "--html", "page.html")
    assert (found.code, "of a certificate" in found.err) == (2, True)


def test_a_torn_line_of_the_log_is_told(tmp_path, capfd, monkeypatch):
    """What is left out of the log is no part of what was proved."""
    monkeypatch.chdir(tmp_path)
    chain_of(tmp_path, STALE + "{:type :invoke, :process 2, :ti", "ser")
    found = run_here(capfd, "verify", "state", "log.edn")
    assert (found.code, "torn: the last 31 bytes" in found.out) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "level", "reading"),
    [(STALE, "sser", {"clock_error": 50}), (LONGER, "ser", {"unwritten_initial": True})],
    ids=["times", "before"],
)
def test_no_mutation_of_a_field_is_an_internal_error_or_changes_the_meaning(
    tmp_path, text, level, reading
):
    """Typed mutations of each field, hashes right: refused, or told in how the log was read."""
    entries = chain_of(tmp_path, text, level, **reading)
    assert {entry["entry"] for entry in entries} >= {"head", "part", "end"}
    honest = checked(tmp_path)
    refused = 0
    for what, made in mutants_of(entries, random.Random(1), most=70):
        write(tmp_path, made)
        try:
            found = checked(tmp_path)
        except IsolangError:
            refused += 1
            continue
        if (found.spec.sha256, found.read_as) == (honest.spec.sha256, honest.read_as):
            assert found.transactions == honest.transactions, what
    assert refused > 90


@pytest.mark.slow
def test_no_mutation_of_the_columns_is_an_internal_error(tmp_path):
    """What a part packs, damaged under the compression: refused, or the same is proved."""
    entries = chain_of(tmp_path, LONGER, "ser", unwritten_initial=True)
    honest = checked(tmp_path)
    rng = random.Random(2)
    refused = 0
    for _ in range(400):
        made = [dict(entry) for entry in entries]
        part = rng.choice([entry for entry in made if entry["entry"] == "part"])
        raw = bytearray(zlib.decompress(base64.b64decode(part["columns"])))
        if rng.random() < 0.5:
            at = rng.randrange(len(raw))
            raw[at] ^= 1 << rng.randrange(8)
        else:
            columns = msgspec.msgpack.decode(bytes(raw))
            name = rng.choice([*columns, "zzz"])
            columns[name] = rng.choice(
                [None, 1, "x", b"", b"xyz", [], ["<i1", False, b"abc"], ["<i8", False, b"abc"],
                 ["<f8", False, b"12345678"], ["<i8", True, b"\xff" * 80], ["<i4", 1, b"\0" * 4],
                 ["<i8", False, b"\x7f" * 40], {"x": 1}, ["<i1", False, b"\xff" * 10]]
            )  # fmt: skip
            raw = bytearray(msgspec.msgpack.encode(columns))
        part["columns"] = base64.b64encode(zlib.compress(bytes(raw))).decode()
        write(tmp_path, made)
        try:
            assert checked(tmp_path) == honest
        except IsolangError:
            refused += 1
    assert refused > 300


def test_a_witness_of_other_operations_is_refused_by_definition(tmp_path, monkeypatch):
    """The checker by definition does not lean on the native checker, which refuses it before."""
    entries = chain_of(tmp_path, STALE, "ser")
    monkeypatch.setattr("isolang.watch.verify.reason_for_rejection", lambda *_: "")
    at = next(i for i, entry in enumerate(entries) if entry["entry"] == "part")
    part = msgspec.json.decode(json.dumps(entries[at]), type=Part)
    columns = unpack_columns(part, "the part")
    short = msgspec.structs.replace(columns, source=columns.source[:-1])
    entries[at]["columns"] = base64.b64encode(short.packed()).decode()
    write(tmp_path, entries)
    stream = Stream([tmp_path / "log.edn"], follow=False)
    with pytest.raises(ChainRejected, match="the witness is of other operations"):
        check_chain(tmp_path / "state", stream, by_definition=True)
    stream.close()
