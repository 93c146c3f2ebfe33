"""Large files are read into large pages: the same bytes as otherwise, from wherever they are."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from isolang import _native, load_history
from isolang.history.sources import _LARGE, read_source

CONTENTS = bytes(range(256)) * (_LARGE // 256) + b"and a last line"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "history"
    path.write_bytes(CONTENTS)
    return path


def contents(stream: object) -> bytes:
    ((_, data),) = read_source(stream).files
    return data


@pytest.mark.parametrize("how", ["path", "stream", "unbuffered", "memory"])
def test_all_bytes(large: Path, how: str) -> None:
    if how == "path":
        assert contents(large) == CONTENTS
        return
    if how == "memory":
        assert contents(io.BytesIO(CONTENTS)) == CONTENTS
        return
    with large.open("rb", buffering=0 if how == "unbuffered" else -1) as stream:
        assert contents(stream) == CONTENTS
        assert stream.read() == b""


@pytest.mark.parametrize("skipped", [1, 4096, len(CONTENTS) - 1, len(CONTENTS)])
@pytest.mark.parametrize("how", ["read", "seek"])
def test_what_is_left_of_a_stream(large: Path, skipped: int, how: str) -> None:
    """What was read before stays out, whether or not it lies in a buffer."""
    with large.open("rb") as stream:
        if how == "read":
            stream.read(skipped)
        else:
            stream.seek(skipped)
        assert contents(stream) == CONTENTS[skipped:]


def test_a_file_that_ends_sooner(large: Path) -> None:
    """One that another process cuts off meanwhile."""
    with large.open("rb") as stream:
        assert _native.read_in_large_pages(stream.fileno(), 2 * len(CONTENTS)) == CONTENTS
        assert _native.read_in_large_pages(stream.fileno(), 1) == b""


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as stream, pytest.raises(OSError, match="descriptor"):
        _native.read_in_large_pages(stream.fileno(), 1)


def test_a_large_history(tmp_path: Path) -> None:
    line = "{{:index {0}, :type :ok, :process {1}, :f :txn, :value [[:w {0} {0}] [:r {0} {0}]]}}\n"
    path = tmp_path / "large.edn"
    with path.open("w") as file:
        for i in range(150_000):
            file.write(line.format(i, i % 20))
    assert path.stat().st_size > _LARGE
    assert load_history(path).columns.transactions() == 150_000
