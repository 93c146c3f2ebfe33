"""Jepsen's binary files of tests, which Fressian's own library wrote."""

import gzip
import io
import struct
import zlib

import pytest
from support.paths import HISTORIES

import isolang
from isolang.errors import HistoryError, UnsupportedError
from isolang.history.fressian import Fressian, FressianError

FILES = HISTORIES / "jepsen-files"


def content(name):
    history = isolang.load_history(FILES / f"{name}.gz")
    transactions = [history.transaction(t) for t in range(history.t0)]
    return transactions, [history.where(t).rpartition(":")[2] for t in range(history.t0)]


@pytest.mark.parametrize("name", ["test.jepsen", "old.jepsen"])
def test_the_history_of_a_run(name):
    """A file says what the history.edn that Clojure printed says, with the same lines."""
    assert content(name) == content("history.edn")
    history = isolang.load_history(FILES / f"{name}.gz")
    assert (history.format, history.t0) == ("jepsen", 4)
    assert history.transaction(0).ops[1] == ("r", isolang.Keyword("x"), 5000000000)
    assert history.transaction(1).ops[0] == ("append", "léx😀", -70000)
    verdict = isolang.check(history, "serializable")
    assert (verdict.outcome, verdict.violation.anomaly) == ("invalid", "G1c")


def test_a_folder_with_the_file_alone(tmp_path):
    """Without history.edn, the run's file is its history."""
    (tmp_path / "test.jepsen").write_bytes(gzip.decompress((FILES / "test.jepsen.gz").read_bytes()))
    (tmp_path / "jepsen.log").write_text("INFO something else\n")
    assert isolang.load_history(tmp_path).format == "jepsen"


def made(test, *, version):
    """A file whose root is a block with this Fressian."""

    def block(kind, contents):
        head = struct.pack(">qIh", 28 + len(contents), 0, kind).ljust(28, b"\0")
        checksum = zlib.crc32(head, zlib.crc32(contents))
        return head[:8] + struct.pack(">I", checksum) + head[12:] + contents

    root = block(2, test)
    index = block(1, struct.pack(">iiq", 4, 4, 18))
    return b"JEPSEN" + struct.pack(">iq", version, 18 + len(root)) + root + index


def test_another_workload_in_the_file():
    """What the operations say decides who reads them: these, of a set, in the test itself."""

    def text(word):
        return (
            bytes([0xDA + len(word)]) + word.encode()
            if len(word) < 8
            else b"\xe3" + (bytes([len(word)]) + word.encode())
        )

    def key(word):
        return b"\xca\xf7" + text(word)

    def mapping(*parts):
        return b"\xc0\xec" + bytes([len(parts)]) + b"".join(parts)

    def operation(kind, function, value):
        return mapping(
            *(key("process"), b"\x00", key("type"), key(kind)),
            *(key("f"), key(function), key("value"), value),
        )

    ops = [
        *(operation(kind, "add", b"\x01") for kind in ("invoke", "ok")),
        operation("invoke", "read", b"\xf7"),
        operation("ok", "read", b"\xc1\xe5\x01"),
    ]
    test = mapping(key("name"), text("set"), key("history"), b"\xe8" + b"".join(ops))
    history = isolang.load_history(io.BytesIO(made(test, version=0)))
    assert history.transaction(1).ops == [("r", 1, isolang.Keyword("in"))]


def test_no_history():
    with pytest.raises(HistoryError, match="Jepsen's file of this test contains no history"):
        isolang.load_history(io.BytesIO(made(b"\xc0\xe4", version=1)))


@pytest.mark.parametrize(
    ("damage", "error", "what"),
    [
        (lambda d: d[:9], HistoryError, "the file ends inside its header"),
        (lambda d: d[:300], HistoryError, "a block at byte"),
        (lambda d: d[:100] + bytes([d[100] ^ 1]) + d[101:], HistoryError, "the checksum of the"),
        (lambda d: d[:9] + b"\2" + d[10:], UnsupportedError, "of version 2 .expected 0 or 1."),
        (lambda d: d[:10] + bytes(8) + d[18:], HistoryError, "no index of blocks"),
    ],
)
def test_damaged_files(damage, error, what):
    """What is damaged, or later than known, is refused by name, never read in part."""
    data = gzip.decompress((FILES / "test.jepsen.gz").read_bytes())
    with pytest.raises(error, match=what):
        isolang.load_history(io.BytesIO(damage(data)))


@pytest.mark.parametrize(
    "data", [b"", b"\xdb\xf7", b"\xa3", b"\x83", b"\xf2", b"\xe5", b"\xe3\xff", b"\xec\xff"]
)
def test_damaged_values(data):
    """Bytes that are not Fressian are an error."""
    with pytest.raises(FressianError):
        Fressian(data).value()
