"""All native readers: buffers, messages, limits, mutants, the corpora."""

from __future__ import annotations

import mmap
import signal
from pathlib import Path
from typing import Any

import pytest
from support.fuzz_readers import COBRA, bincode, cobra, fuzz, outcome, readers
from support.paths import CORPORA

from isolang import _native
from isolang._native import ReadError


def test_the_name_starts_the_message() -> None:
    with pytest.raises(ReadError, match=r"^h\.edn: line 1: "):
        _native.read_edn(b"5", "h.edn")
    with pytest.raises(ReadError, match=r"^h\.bin: byte 0: "):
        _native.read_bincode(b"5", "h.bin")
    with pytest.raises(ReadError, match=r"^h\.txt: line 1: "):
        _native.read_plume(b"5", "h.txt")


def test_any_buffer_is_read_without_a_copy(tmp_path: Path) -> None:
    data = bincode([[([(True, 1, 2, True)], True)]])
    path = tmp_path / "h.bincode"
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for buffer in (data, bytearray(data), memoryview(b"xx" + data)[2:], mapped):
            assert _native.read_bincode(buffer)[0].operations() == 1
    with pytest.raises(TypeError):
        _native.read_bincode("text")  # type: ignore[arg-type]


def test_time_limits_and_interrupts_stop_every_reader() -> None:
    many = {
        "edn": (_native.read_edn, b"{:type :ok :process 0 :value [[:w 1 2]]}\n" * 5000),
        "bincode": (_native.read_bincode, bincode([[([(True, 1, 2, True)], True)] * 5000])),
        "plume": (_native.read_plume, b"w(1,1,1,1)\n" * 5000),
        "awdit": (_native.read_awdit, b"w 1 1\n" * 5000),
        "hist": (_native.read_hist, b"[x:=1]\n" * 5000),
        "dbcop-json": (
            _native.read_dbcop_json,
            b"[[" + b",".join([b'{"events": [["w", 1, 1]], "committed": true}'] * 5000) + b"]]",
        ),
        "viper": (
            lambda b, **o: _native.read_viper([("a", b)], **o),
            b'{"value": [["w", 1, 1, true]]}\n' * 5000,
        ),
        "cobra": (
            lambda b, **o: _native.read_cobra([("a", b)], **o),
            cobra([record for i in range(5000) for record in (("S", i), ("C", i))]),
        ),
    }
    for read, data in many.values():
        read(data, timeout=60.0)
        with pytest.raises(TimeoutError):
            read(data, timeout=1e-9)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def until_interrupted(read: Any, data: bytes) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        while True:  # wherever it arrives, in the reader or between two calls
            read(data)

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for read, data in many.values():
            with pytest.raises(KeyboardInterrupt):
                until_interrupted(read, data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_the_samples_of_the_fuzzer_are_readable() -> None:
    read = [outcome(reader, data) for _, reader, data in readers()]
    # each Cobra pair is tried with and without timestamps, and only one of the two fits
    assert read.count("refused") == len(COBRA) * 2
    assert set(read) == {"read", "refused"}


def test_mutants_are_read_or_refused_with_a_place() -> None:
    counts = fuzz(6000, seed=20)
    assert {what for _, what in counts} == {"read", "refused", "unsupported"}
    for name in ("edn", "bincode", "cobra", "plume", "awdit"):
        assert counts[name, "read"] > 0


@pytest.mark.skipif(not CORPORA.is_dir(), reason="the corpora are not here")
def test_the_corpora_are_read_whole() -> None:
    for path in sorted(CORPORA.rglob("*.bincode")):
        columns, _ = _native.read_bincode(path.read_bytes())
        columns.validate()
        assert columns.operations() > 0
        events = (path.stat().st_size - 8 * columns.sessions - 9 * columns.transactions()) // 18
        assert 0 <= events - columns.operations() <= 10, "nothing but the header is left over"
    counts = {}
    for directory in sorted(CORPORA.rglob("*.cobra")):
        logs = [(p.name, p.read_bytes()) for p in sorted(directory.glob("*.log"))]
        columns, remarks = _native.read_cobra(logs)
        columns.validate()
        counts[directory.name] = (columns.transactions(), columns.operations(), remarks["variant"])
        assert remarks["contradicting_sources"] == 0
        assert remarks["missing_sources"] == (8 if directory.name == "cock-blog.cobra" else 0)
    assert counts["yuga-G2-a.cobra"] == (37190, 86792, "genuine")
    assert counts["rubis-10k.cobra"] == (10289, 50747, "duplicate-values")
    for path in sorted((CORPORA / "weak").rglob("*.txt")):
        _native.read_awdit(path.read_bytes())[0].validate()
    for path in sorted((CORPORA / "anomalies" / "text").glob("*.txt")):
        _native.read_plume(path.read_bytes())[0].validate()
    outcomes = {}
    for path in sorted((CORPORA / "edn").rglob("*.edn")):
        outcomes[path.relative_to(CORPORA / "edn").as_posix()] = outcome(
            _native.read_edn, path.read_bytes()
        )
    read = {name for name, what in outcomes.items() if what == "read"}
    assert read == {
        "elle/list-append-gh-30.edn",
        "elle/paper-example.edn",
        "elle/rw-register.edn",
        "list-append/paper-example.edn",
        "list-append/si-without-g-single.edn",
    }
    assert set(outcomes.values()) == {"read", "unsupported"}
