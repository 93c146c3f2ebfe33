"""Joins and query blocks: which rows the server is asked for, and what follows from them."""

from types import SimpleNamespace

import pytest

from isolang.observe.log.tables import LoggedColumn, LoggedTable
from isolang.observe.mariadb.contents import NamedTables
from isolang.observe.mariadb.packets import with_repeated_parameters
from isolang.observe.mariadb.reads import StatementReads
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement
from isolang.observe.mariadb.session import take_lists
from isolang.observe.mariadb.statements import Preparation, Programs
from isolang.observe.sql.predicates import Parameters
from isolang.observe.unseen import IN_NO_LOG, Unseen


def table(name, *columns):
    """Return a table of integers, of which the first column is the key."""
    return LoggedTable(
        schema="app",
        name=name,
        columns={
            column: LoggedColumn(name=column, type="int", required=True) for column in columns
        },
        key=[columns[0]],
        unique=[frozenset({columns[0]})],
    )


TABLES = {
    each.name: each
    for each in (
        table("room", "id", "hotel"),
        table("booking", "id", "room", "day"),
        table("Guest", "id", "booking"),
    )
}
CATALOGUE = SimpleNamespace(
    find=lambda schema, name, default: TABLES.get(name) if (schema or default) == "app" else None,
    routines=set(),
)


def statement(text):
    """The statement of a text, as it is sent."""
    (made,) = Preparation(CATALOGUE, Programs(), 101119).statements(text, "", "app", "utf-8", ())
    return made


JOIN = "SELECT b.id FROM booking b JOIN room r ON r.id = b.room WHERE r.hotel = 3 AND b.day = 5"


@pytest.mark.parametrize(
    ("text", "lists"),
    [
        (JOIN, 2),
        ("SELECT COUNT(*) FROM booking b, room r WHERE r.id = b.room", 2),
        ("SELECT r.id, b.id FROM room r LEFT JOIN booking b ON b.room = r.id LIMIT 5", 2),
        ("SELECT `G`.`id` FROM `Guest` AS `G` CROSS JOIN room r WHERE r.id = G.booking", 2),
        ("SELECT DISTINCT day FROM booking", 1),
        ("SELECT id FROM room WHERE id IN (SELECT room FROM booking WHERE day = 5)", 2),
        ("SELECT id FROM room r WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE b.room = r.id)", 2),
        ("SELECT EXISTS(SELECT * FROM room WHERE id = 1) AS e", 1),
        ("SELECT id FROM room UNION SELECT id FROM booking", 2),
        ("WITH q AS (SELECT * FROM booking WHERE day = 5) SELECT COUNT(*) FROM q", 1),
        ("SELECT room, COUNT(*) FROM booking GROUP BY room HAVING COUNT(*) > 1", 1),
        ("SELECT n FROM (SELECT COUNT(*) AS n FROM app.Guest) AS q", 1),
        # The rows in the answer are enough:
        ("SELECT b.id, r.id FROM booking b LEFT JOIN room r ON r.id = b.room", 0),
        ("SELECT r.id, b.id FROM room r LEFT JOIN booking b ON b.room = r.id", 0),
        ("SELECT id FROM room WHERE id = 1", 0),
    ],
)
def test_what_the_server_is_asked_for(text, lists):
    """The statement returns the rows that each of its blocks reads."""
    made = statement(text)
    assert made.unseen == ""
    asked = made.lists_text() or ""
    assert asked.count("isolang_t") == lists
    assert made.sent_text().count("isolang_t") == (0 if "UNION" in text else lists)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM room WHERE id IN (SELECT room FROM booking) FOR UPDATE",
        "SELECT id FROM nosuch WHERE id IN (SELECT room FROM booking)",
        "SELECT id FROM room USE INDEX (a) WHERE id IN (SELECT room FROM booking)",
        "SELECT id FROM room WHERE id IN (SELECT @a := room FROM booking)",
        "SELECT GROUP_CONCAT(id) FROM room WHERE id IN (SELECT room FROM booking)",
        "SELECT ROW_NUMBER() OVER (ORDER BY id) FROM room WHERE id IN (SELECT room FROM booking)",
        "SELECT id FROM room WHERE id IN (SELECT room FROM booking LOCK IN SHARE MODE)",
        "SELECT id FROM room WHERE SLEEP(1) AND id IN (SELECT room FROM booking)",
        "WITH q AS (SELECT 1) DELETE FROM room",
    ],
)
def test_what_stays_unseen(text):
    """The server gets other statements as they are, or with a comment, and they count."""
    made = statement(text)
    assert made.unseen
    assert "isolang" not in made.sent_text()


def test_the_text_of_a_join():
    """Each row of a cover is read by the values of another table; only one row has the lists."""
    sent = statement(JOIN).sent_text()
    assert sent.startswith("SET STATEMENT group_concat_max_len=67108864 FOR SELECT b.id ,CAST(")
    assert "IF(@isolang<=>NOW(6),NULL,CONCAT(CONCAT_WS('|'," in sent
    assert (
        "FROM `app`.`booking` AS b WHERE (b.day = 5) AND b.`room` IN (SELECT isolang_v FROM "
        "(SELECT r.`id` AS isolang_v FROM `app`.`room` AS r WHERE (r.hotel = 3) LIMIT 1001) "
        "AS isolang_w) LIMIT 1001"
    ) in sent
    assert sent.endswith(f" {JOIN[JOIN.index('FROM') :]}")
    assert "@isolang" not in statement(f"{JOIN} LIMIT 1").sent_text()  # it may cut the row off


def test_parameters_are_sent_once_for_each_use():
    """A part of a condition that is repeated has the same parameters."""
    made = statement("SELECT ?, b.id FROM booking b, room r WHERE r.id = b.room AND b.day = ?")
    order = made.parameter_order()
    assert order[0] == 1
    assert {*order[1:]} == {2}
    made.parameters = Parameters(["x", "5"], [0, 1700])
    assert "b.day = 5" in made.lists_text()
    sent = b"\x17\1\0\0\0\0\1\0\0\0" + b"\0\1" + b"\xfd\0\x01\0" + b"\1x" + b"\5"
    assert with_repeated_parameters(sent, [0xFD, 1], [1, 2, 2]) == (
        sent[:10] + b"\0\1" + b"\xfd\0\x01\0\x01\0" + b"\1x" + b"\5\5"
    )
    null = sent[:10] + b"\1\0" + b"\5"  # the first one is NULL, and the types are known
    assert with_repeated_parameters(null, [0xFD, 1], [2, 1, 2]) == (
        sent[:10] + b"\2\1" + b"\x01\0\xfd\0\x01\0" + b"\5\5"
    )
    long = sent[:10] + b"\0\0" + b"\5"
    assert with_repeated_parameters(long, [0xFD, 1], [1, 2, 1], sent_long={0})[-1:] == b"\5"


# --- what follows ---

ROWS = {
    "room": [{"id": 1, "hotel": 3}, {"id": 2, "hotel": 4}],
    "booking": [{"id": 7, "room": 1, "day": 5}],
}


def reads(text, lists, answer=(), **more):
    """The operations of a SELECT: sign, table and condition, and rows; and what is unseen."""
    made = statement(text)
    tables, unseen = NamedTables(), Unseen()
    for name, rows in ROWS.items():
        named = tables.of(TABLES[name])
        for row in rows:
            named.start((row["id"],), row)
    rows = [[*row, lists.encode()] for row in answer]
    event = RecordedStatement(
        statement=made, number=1, rows=rows, count=len(answer) or more.pop("count", 0)
    )
    if made.blocks.is_in_answer:
        take_lists(event)
    event.lists = event.lists or lists.encode()
    transaction = FollowedTransaction(
        process=1, connection=1, begin=0, began=0, level="repeatable read"
    )
    reader = StatementReads(tables, unseen, 1000)
    shown = []
    for operation in reader.of_select(event, transaction):
        for version in operation.kept:
            assert reader.blocks.is_kept(*version)
        sign = "may " * operation.perhaps + "kept " * bool(operation.kept)
        text = operation.text.replace('"xmin" 0', "").replace('"', "").replace(":table ", "")
        shown.append(f"{sign}{' '.join(text.split())}")
    return shown, [*dict(unseen)]


ROOM_1, BOOKING_7 = "[room 1] {id 1 hotel 3 }", "[booking 7] {id 7 room 1 day 5 }"


def test_a_join_convicts_by_rows_that_were_never_replaced():
    """Room 1 is always there, so a booking of it on day 5 would be in the answer."""
    shown, unseen = reads(JOIN, "0;|1;1,3")
    assert unseen == []
    assert shown == [
        f"may [:rp {{room :where [:= :hotel 3]}} {{{ROOM_1}}}]",
        "may [:rp {booking :where [:and [:= :day 5] [:or [:= :room 1]]]} {}]",
        "may kept [:rp {booking :where [:and [:= :day 5] [:or [:= :room 1]]]} {}]",
    ]


def test_the_rows_in_an_answer_are_certain():
    """A row in the answer is read, and so is that nothing else is joined with it."""
    shown, unseen = reads(JOIN, "1;7,1,5|1;1,3", [(b"7,1,5", b"1,3")])
    assert unseen == []
    assert shown[:2] == [f"[:r {BOOKING_7}]", f"[:r {ROOM_1}]"]
    assert (
        f"[:rp {{booking :where [:and [:= :day 5] [:or [:= :room 1]]]}} {{{BOOKING_7}}}]" in shown
    )


def test_query_blocks():
    """A block is a predicate read; a condition with a subquery only may have decided the answer."""
    text = "SELECT id FROM room WHERE hotel = 3 AND id IN (SELECT room FROM booking WHERE day = 5)"
    shown, unseen = reads(text, "1;1,3|1;7,1,5", [()])
    assert unseen == []
    assert shown == [
        f"may [:rp {{room :where [:= :hotel 3]}} {{{ROOM_1}}}]",
        f"[:rp {{booking :where [:= :day 5]}} {{{BOOKING_7}}}]",
        f"may kept [:rp {{room :where [:and [:and :true [:= :hotel 3]] [:or [:= :id 1]]]}} "
        f"{{{ROOM_1}}}]",
    ]
    shown, _ = reads("SELECT EXISTS(SELECT * FROM room WHERE id = 9)", "0;", [()])
    assert shown == ["[:rp {room :where [:= :id 9]} {}]"]
    shown, _ = reads("SELECT EXISTS(SELECT * FROM room WHERE id = 1)", "1;1,3", [()])
    assert shown == [f"[:r {ROOM_1}]"]


IN_CONDITION = "[:and [:and :true [:= :day 5]] [:or [:= :room 1]]]"


@pytest.mark.parametrize(
    ("text", "lists", "expected"),
    [
        ("SELECT id FROM booking WHERE day = 5 AND room IN (SELECT id FROM room WHERE hotel = 3)",
         "0;|1;1,3", f"may kept [:rp {{booking :where {IN_CONDITION}}} {{}}]"),
        ("SELECT id FROM booking b WHERE b.day = 5 AND EXISTS "
         "(SELECT 1 FROM room r WHERE r.id = b.room AND r.hotel = 3)",
         "1;7,1,5|1;1,3", f"may kept [:rp {{booking :where {IN_CONDITION}}} {{{BOOKING_7}}}]"),
        ("SELECT id FROM room r WHERE hotel = 3 AND NOT EXISTS "
         "(SELECT 1 FROM booking WHERE day = 5 AND room = r.id)",
         "1;1,3|0;", f"may kept [:rp {{booking :where {IN_CONDITION}}} {{}}]"),
        ("SELECT id FROM room WHERE hotel = 3 AND id NOT IN "
         "(SELECT DISTINCT room FROM booking WHERE day = 5)",
         "1;1,3|0;", f"may kept [:rp {{booking :where {IN_CONDITION}}} {{}}]"),
        ("SELECT id FROM room r WHERE hotel = 3 AND NOT EXISTS "
         "(SELECT 1 FROM booking b WHERE b.day = 5 AND b.room = r.id LIMIT 1)",
         "1;1,3|0;", f"may kept [:rp {{booking :where {IN_CONDITION}}} {{}}]"),
        # A booking excludes the room; which one is not certain:
        ("SELECT id FROM room WHERE hotel = 3 AND id NOT IN "
         "(SELECT room FROM booking WHERE day = 5)", "1;1,3|1;7,1,5", None),
        ("SELECT id FROM room WHERE hotel = 3 AND EXISTS (SELECT COUNT(*) FROM booking "
         "WHERE room = room.id)", "1;1,3|1;7,1,5", None),
        ("SELECT id FROM room WHERE hotel = 3 OR id IN (SELECT room FROM booking)",
         "1;1,3|1;7,1,5", None),
        ("SELECT id FROM room WHERE hotel + 1 = 4 AND id IN (SELECT room FROM booking)",
         "1;1,3|1;7,1,5", None),
        ("SELECT id FROM room WHERE id IN (SELECT MAX(room) FROM booking)", "1;1,3|1;7,1,5", None),
        ("SELECT id FROM room WHERE id IN (SELECT room FROM booking LIMIT 1)", "1;1,3|1;7,1,5",
         None),
        ("SELECT id FROM room WHERE id IN (SELECT room FROM booking) LIMIT 1", "1;1,3|1;7,1,5",
         None),
    ],
)  # fmt: skip
def test_in_and_exists(text, lists, expected):
    """A row that was never replaced makes certain what the other table has, or has not."""
    made = [operation for operation in reads(text, lists, [()])[0] if "kept" in operation]
    assert made == ([] if expected is None else [expected])


def test_exists_reads_only_rows_that_are_compared():
    """Bookings of other rooms do not matter."""
    text = (
        "SELECT id FROM room r WHERE hotel = 3 AND NOT EXISTS "
        "(SELECT 1 FROM booking WHERE day = 5 AND room = r.id)"
    )
    shown, unseen = reads(text, "1;1,3|1;7,1,5", [()])
    assert unseen == []
    assert shown == [
        f"may [:rp {{room :where [:= :hotel 3]}} {{{ROOM_1}}}]",
        f"may [:rp {{booking :where {IN_CONDITION}}} {{{BOOKING_7}}}]",
    ]
    assert reads(text, "0;|1;7,1,5", [()])[0] == ["may [:rp {room :where [:= :hotel 3]} {}]"]


def test_limits_of_statements_with_blocks():
    """If LIMIT was reached, the server may not have read all rows of the blocks."""
    text = "SELECT DISTINCT hotel FROM room LIMIT 1"
    assert reads(text, "1;1,3", [()])[0] == [f"may [:rp {{room :where :true}} {{{ROOM_1}}}]"]
    inner = "SELECT hotel FROM (SELECT * FROM room ORDER BY hotel LIMIT 1) AS q"
    assert reads(inner, "1;1,3", [()])[0] == [f"may [:rp {{room :where :true}} {{{ROOM_1}}}]"]
    shown, unseen = reads(f"{JOIN} LIMIT 1", "", [(b"7,1,5", b"1,3")])
    assert (shown, unseen) == ([], ["large"])
    shown, unseen = reads(f"{JOIN} LIMIT 1", "1;7,1,5|1;1,3", [(b"7,1,5", b"1,3")])
    assert (shown, unseen) == ([f"[:r {BOOKING_7}]", f"[:r {ROOM_1}]"], [])


def test_lists_that_say_nothing():
    """A list that the server cut off, or that is too long, counts."""
    text = "SELECT DISTINCT day FROM booking"
    assert reads(text, "2;7,1,5", [()]) == ([], ["large"])
    many = ";".join(["7,1,5"] * 101)
    assert reads(text, f"101;{many}", [()]) == ([], ["large"])
    assert reads(text, "1;8,1,5", [()]) == ([], [IN_NO_LOG])
