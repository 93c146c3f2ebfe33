"""A statement on the wire takes the note of its caller only if the texts agree."""

import pytest

from isolang.observe.sql.notes import CallNote, CallNotes

SET = "UPDATE account SET balance = %s WHERE name = %s"


def noted(*texts, **more):
    """Notes of the connection 7; the caller of each is its number."""
    notes = CallNotes()
    for number, text in enumerate(texts):
        notes.add(7, CallNote(text, f"app.py:{number}", **more))
    return notes


def taken(notes, text, backend=7):
    """The caller that a statement on the wire takes."""
    note = notes.take(backend, text)
    return None if note is None else note.caller


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        (SET, "UPDATE account SET balance = $1 WHERE name = $2"),
        (SET, "UPDATE account SET balance = 5 WHERE name = 'a'"),
        (SET, "UPDATE account SET balance = NULL WHERE name = E'a %s \\'b'"),
        ("SELECT %(a)s, %(b)s", "SELECT $1, $2"),
        ("SELECT a LIKE 'x%%' AND b = %s FROM t", "SELECT a LIKE 'x%' AND b = $1 FROM t"),
        ("SELECT * FROM t WHERE a LIKE 'x%'", "SELECT * FROM t WHERE a LIKE 'x%'"),
        ("SELECT 1 ;  ", "SELECT 1"),
        ("SELECT * FROM account", 'DECLARE "named" CURSOR FOR SELECT * FROM account'),
        ("SELECT %b, %t", "SELECT $1, $2"),
        ("SELECT 5 %% 2, %s", "SELECT 5 % 2, $1"),
        ("SELECT $1", "SELECT $1"),
    ],
)  # fmt: skip
def test_texts_that_agree(text, sent):
    """Placeholders are replaced by the library, in its way; all between them stays."""
    assert taken(noted(text), sent) == "app.py:0"


@pytest.mark.parametrize(
    "sent",
    [
        "UPDATE account SET balance = $1",
        "UPDATE account SET balance = $1 WHERE id = $2",
        "SELECT balance FROM account WHERE name = $1",
        "BEGIN",
        "COMMIT",
        "",
    ],
)
def test_texts_that_do_not_agree(sent):
    """A statement of the library itself takes no note; the note waits for its own."""
    notes = noted(SET)
    assert taken(notes, sent) is None
    assert taken(notes, "UPDATE account SET balance = $1 WHERE name = $2") == "app.py:0"
    assert taken(notes, "UPDATE account SET balance = $1 WHERE name = $2") is None


def test_another_connection_takes_no_note():
    """Notes belong to a process of the server."""
    notes = noted("SELECT 1")
    assert taken(notes, "SELECT 1", backend=8) is None
    assert taken(notes, "SELECT 1") == "app.py:0"


def test_a_pipeline():
    """Several notes wait, and are taken in order; what was passed over is dropped."""
    notes = noted("SELECT 1", SET, "SELECT 2", SET)
    assert taken(notes, "BEGIN") is None
    assert taken(notes, "SELECT 1") == "app.py:0"
    assert taken(notes, "SELECT 2") == "app.py:2"
    assert taken(notes, "UPDATE account SET balance = $1 WHERE name = $2") == "app.py:3"
    assert taken(notes, "UPDATE account SET balance = $1 WHERE name = $2") is None


def test_a_call_that_sends_several_statements():
    """All take its note, until it ends."""
    notes = CallNotes()
    many, later = CallNote(SET, "app.py:1", repeats=True), CallNote(SET, "app.py:2")
    notes.add(7, many)
    sent = "UPDATE account SET balance = $1 WHERE name = $2"
    assert [taken(notes, sent) for _ in range(3)] == ["app.py:1"] * 3
    notes.remove(7, many)
    notes.add(7, later)
    assert taken(notes, sent) == "app.py:2"


def test_a_statement_that_was_not_sent():
    """An error of the library leaves no note for the same text, even if it is equal."""
    notes = CallNotes()
    failed, same = CallNote(SET, "app.py:1"), CallNote(SET, "app.py:1")
    notes.add(7, failed)
    notes.remove(7, failed)
    assert taken(notes, "UPDATE account SET balance = $1 WHERE name = $2") is None
    notes.add(7, same)
    notes.remove(7, failed)
    assert taken(notes, "UPDATE account SET balance = $1 WHERE name = $2") == "app.py:1"


@pytest.mark.parametrize("later", [False, True])
def test_a_statement_that_may_never_be_sent(later):
    """A stream that nobody reads does not name its line for the same text elsewhere."""
    notes = noted("SELECT 1", later=True)
    notes.add(7, CallNote("SELECT 1", "app.py:1", later=later))
    assert taken(notes, "SELECT 1") == (None if later else "app.py:1")


def test_notes_that_nobody_takes_do_not_fill_the_memory():
    """A pipeline that sends what no statement agrees with keeps the last thousand."""
    notes = noted(*[f"SELECT {n} AS n" for n in range(1500)])
    assert taken(notes, "SELECT 3 AS n") is None
    assert taken(notes, "SELECT 1400 AS n") == "app.py:1400"
