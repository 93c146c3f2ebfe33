"""Programs that are changed for those who may not write, and for savepoints."""

from __future__ import annotations

from itertools import count
from random import Random

from isolang.run.operation import (
    Abort,
    Append,
    Delete,
    Read,
    Scan,
    UndoneWrite,
    Wait,
    Write,
    as_read_only,
    with_savepoints,
)


def conversation(told):
    told.append((yield Read("x")))
    told.append((yield Write("x", 1)))


def played(program, results):
    """What a conversation asks for, where it gets these results."""
    asked, given = [], iter((None, *results))
    for result in given:
        try:
            asked.append(program.send(result))
        except StopIteration:
            break
    return asked


def test_a_reader_reads_what_others_would_write():
    """Waiting stays, and an abort goes: nothing is to be undone."""
    program = (Read("x"), Write("y", 1), Append("l", 2), Wait(3), Scan(("a", "b")), Abort())
    reads = (Read("x"), Read("y"), Read("l"), Wait(3), Scan(("a", "b")))
    assert as_read_only(program) == reads


def test_a_reader_converses():
    """The program is told what was read, and goes on."""
    told = []
    asked = played(as_read_only(conversation(told)), [7, 8])
    assert asked == [Read("x"), Read("x")]
    assert told == [7, 8]


def test_what_is_undone_comes_before_the_write():
    """It writes another value to the same key; reads and deletes have none before them."""
    program = (Read("x"), Write("y", 1), Append("l", 2), Delete("z"))
    assert with_savepoints(program, Random(0), 1.0, count(100)) == (
        Read("x"), UndoneWrite(Write("y", 100)), Write("y", 1), UndoneWrite(Append("l", 101)),
        Append("l", 2), Delete("z"),
    )  # fmt: skip
    assert with_savepoints(program, Random(0), 0.0, count(100)) == program


def test_a_program_is_not_told_of_what_is_undone():
    """Its results are those of its own operations."""
    told = []
    program = with_savepoints(conversation(told), Random(0), 1.0, count(100))
    asked = played(program, [7, None, True])
    assert asked == [Read("x"), UndoneWrite(Write("x", 100)), Write("x", 1)]
    assert told == [7, True]
