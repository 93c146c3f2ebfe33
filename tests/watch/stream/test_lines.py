"""The complete lines of a log, across its files, in whatever parts the bytes arrive."""

import pytest

from isolang.errors import HistoryError
from isolang.watch.stream import tail
from isolang.watch.stream.tail import LineBuffer

FIRST, SECOND = b"{one}\n{two}\n{thr", b"ee}\n{four}\n"


def pieces(buffer):
    """All pieces that can be cut."""
    found = []
    while (piece := buffer.cut("log")) is not None:
        found.append((piece.file, piece.offset, piece.moment, piece.data))
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_line_may_continue_in_the_next_file(size):
    """It is at its place in the first file; what follows is at its place in the second one."""
    buffer, found = LineBuffer(), []
    for number, data in enumerate((FIRST, SECOND)):
        buffer.enter(number)
        for at in range(0, len(data), size):
            buffer.add(data[at : at + size])
            found += pieces(buffer)
    every = b"".join(data for *_, data in found)
    assert every == FIRST + SECOND
    assert {file for file, *_ in found} == {0, 1}
    for file, offset, moment, data in found:
        assert every[moment : moment + len(data)] == data
        assert offset == (moment if file == 0 else moment - len(FIRST))
    assert (buffer.reached.file, buffer.reached.offset) == (1, len(SECOND))
    assert len(buffer) == 0


def test_the_last_line_of_a_file_may_lack_its_newline():
    """A new file that begins with a map shows that the line before is complete."""
    buffer = LineBuffer()
    buffer.enter(0)
    buffer.add(b"{one}")
    assert pieces(buffer) == []
    buffer.enter(1)
    buffer.add(b"{two}\n{thr")
    assert pieces(buffer) == [(0, 0, 0, b"{one}\n"), (1, 0, 5, b"{two}\n")]
    last = buffer.finish()
    assert (last.file, last.offset, last.data, last.last) == (1, 6, b"{thr", True)


def test_a_line_that_is_too_long(monkeypatch):
    """The error has the place of the line's begin."""
    monkeypatch.setattr(tail, "_LONGEST_LINE", 20)
    buffer = LineBuffer()
    buffer.enter(0)
    buffer.add(b"{one}\n" + b"x" * 21)
    assert buffer.cut("log").data == b"{one}\n"
    with pytest.raises(HistoryError, match=r"log: a line has more than .* starting at byte 6"):
        buffer.cut("log")
