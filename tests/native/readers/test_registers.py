"""The native reader of logs of single operations: registers, locks, stores of texts."""

from __future__ import annotations

import pytest
from support.readers import (
    ABORTED,
    BEGIN_UNKNOWN,
    COMMITTED,
    END_UNKNOWN,
    INDETERMINATE,
    transactions,
)

from isolang import _native
from isolang._native import ReadError, UnsupportedInput


def log(text: str) -> bytes:
    """Lines ``process type f value`` as maps; a value may be left out."""
    maps = []
    for line in filter(None, map(str.strip, text.splitlines())):
        process, kind, function, *rest = line.split(None, 3)
        value, *more = rest[0].split(" | ") if rest else [""]
        fields = [f":process {process}", f":type :{kind}", f":f :{function}"]
        fields += [f":value {value}"] if value else []
        maps.append("{" + ", ".join(fields + more) + "}")
    return "\n".join(maps).encode()


def read(text: str, taken: str = "auto") -> list[tuple[int, list[tuple[str, object, object]]]]:
    columns, _ = _native.read_registers(log(text), failed_cas=taken)
    return [(t.status, t.ops) for t in transactions(columns)]


def test_a_register() -> None:
    """Each operation is a transaction on the one register; what was asked for counts."""
    assert read("""
        0 invoke write 1
        1 invoke read nil
        0 ok write 1
        1 ok read 1
        2 invoke cas [1 2]
        2 ok cas [1 2]
        3 invoke cas [2 3]
        3 info cas :timed-out
        4 invoke write 5
        4 fail write 5
    """) == [
        (COMMITTED, [("w", ":register", 1)]),
        (COMMITTED, [("r", ":register", 1)]),
        (COMMITTED, [("r", ":register", 1), ("w", ":register", 2)]),
        (INDETERMINATE, [("r", ":register", 2), ("w", ":register", 3)]),
        (ABORTED, [("w", ":register", 5)]),
    ]


SILENT, NAMED = ("", " | :error nil"), (" | :error :did-not-succeed", ' | :error "cas-failed"')
REFUSED = " | :error :connection-refused"


@pytest.mark.parametrize(
    ("taken", "error", "ran"),
    [
        *(("auto", error, False) for error in (*SILENT, REFUSED)),
        *(("auto", error, True) for error in NAMED),
        *(("compared", error, True) for error in (*SILENT, *NAMED)),
        ("compared", REFUSED, False),
        *(("nothing", error, False) for error in (*SILENT, *NAMED, REFUSED)),
    ],
)
@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("cas [1 2]", [("r-not-in", ":register", [1])]),
        ("acquire", [("r-not-in", ":lock", [":free"])]),
        ("release", [("r-not-in", ":lock", [":locked"])]),
    ],
)
def test_a_comparison_that_failed(
    taken: str, error: str, ran: bool, operation: str, expected: list[object]
) -> None:
    """It ran and saw something else where its :error says so, or the reader is told; else nothing.

    Of locks the same holds.
    """
    ((status, ops),) = read(f"0 invoke {operation}\n0 fail {operation}{error}", taken)
    assert status == (COMMITTED if ran else ABORTED)
    assert (ops == expected) is ran


@pytest.mark.parametrize("taken", ["auto", "compared", "nothing"])
def test_a_comparison_whose_value_says_why_it_failed(taken: str) -> None:
    """It is not applied, and says nothing of what it saw."""
    ((status, _),) = read("0 invoke cas [1 2]\n0 fail cas :timed-out", taken)
    assert status == ABORTED


def test_a_comparison_that_failed_in_the_lines_of_a_log() -> None:
    """Porcupine reads them as comparisons that ran, unless something else is said."""
    line = "INFO  jepsen.util - 0\t:{}\t:cas\t[1 2]\n"
    lines = "".join(map(line.format, ("invoke", "fail"))).encode()
    statuses = []
    for taken in ("auto", "compared", "nothing"):
        columns, _ = _native.read_registers(lines, failed_cas=taken)
        statuses += [t.status for t in transactions(columns)]
    assert statuses == [COMMITTED, COMMITTED, ABORTED]
    with pytest.raises(ValueError, match="no way to take a failed cas"):
        _native.read_registers(lines, failed_cas="maybe")


def test_independent_keys() -> None:
    """A value may name its key: then each of them does."""
    assert read("""
        0 invoke read [a nil]
        0 ok read [a 5]
        1 invoke cas [7 [nil 2]]
        1 ok cas [7 [nil 2]]
    """) == [(COMMITTED, [("r", ("a",), 5)]), (COMMITTED, [("r", 7, None), ("w", 7, 2)])]
    assert read("""
        0 invoke write ["k" "a"]
        0 ok write ["k" "a"]
        1 invoke cas ["k" "a" "b"]
        1 ok cas ["k" "a" "b"]
        2 invoke cas ["k" nil "c"]
        2 fail cas ["k" nil "c"]
    """) == [
        (COMMITTED, [("w", "k", "a")]),
        (COMMITTED, [("r", "k", "a"), ("w", "k", "b")]),
        (ABORTED, [("r", "k", None), ("w", "k", "c")]),
    ]
    with pytest.raises(ReadError, match=r"line 2: an operation that names a key, while those"):
        read("0 invoke cas [1 2]\n1 invoke cas [1 2 3]")
    for broken in ("[1 2 3 4]", "[1]"):
        with pytest.raises(ReadError, match="an :ok without a known operation"):
            read(f"0 invoke cas {broken}\n0 ok cas {broken}")
    with pytest.raises(ReadError, match=r"line 2: an operation without a key, while those before"):
        read("0 invoke write [1 2]\n1 invoke write 3")


def test_a_lock() -> None:
    """A register that is free at first, or locked; who holds it does not matter."""
    free, locked = ":free", ":locked"
    assert read("""
        0 invoke acquire
        0 ok acquire
        1 invoke acquire
        1 fail acquire
        2 invoke release
        2 fail release | :error :not-held
        0 invoke release
        0 ok release
    """) == [
        (COMMITTED, [("r", ":lock", free), ("w", ":lock", locked)]),
        (ABORTED, [("r", ":lock", free), ("w", ":lock", locked)]),
        (ABORTED, [("r", ":lock", locked), ("w", ":lock", free)]),
        (COMMITTED, [("r", ":lock", locked), ("w", ":lock", free)]),
    ]
    columns, _ = _native.read_registers(log("0 invoke acquire\n0 ok acquire"))
    assert columns.value(int(columns.initial_value[0])) == (4, "free")


def test_a_value_of_several_parts() -> None:
    """A :get shows what each append followed; what nobody saw only writes."""
    assert read("""
        0 invoke append "a" | :key "k"
        0 ok append "a" | :key "k"
        1 invoke put "p" | :key "k"
        1 ok put "p" | :key "k"
        2 invoke append "b" | :key "k"
        2 ok append "b" | :key "k"
        3 invoke get nil | :key "k"
        3 ok get "pb" | :key "k"
        4 invoke get nil | :key "k"
        4 ok get "ab" | :key "k"
    """) == [
        (COMMITTED, [("r", "k", ""), ("w", "k", "a")]),
        (COMMITTED, [("w", "k", "p")]),
        (COMMITTED, [("r", "k", "p"), ("w", "k", "b")]),
        (COMMITTED, [("r", "k", "b")]),
        (COMMITTED, [("r", "k", ("text 'ab'",))]),  # the one append of b has made another version
    ]


def test_a_text_that_was_written_twice() -> None:
    """Who made which version follows from what was seen before the second one began."""
    got = read("""
        0 invoke append "a" | :key 1
        0 ok append "a" | :key 1
        1 invoke get nil | :key 1
        1 ok get "a" | :key 1
        0 invoke append "b" | :key 1
        0 ok append "b" | :key 1
        0 invoke append "a" | :key 1
        0 ok append "a" | :key 1
        1 invoke get nil | :key 1
        1 ok get "aba" | :key 1
    """)
    assert [ops for _, ops in got] == [
        [("r", 1, ""), ("w", 1, "a")],
        [("r", 1, "a")],
        [("r", 1, "a"), ("w", 1, "b")],
        [("r", 1, "b"), ("w", 1, "aba")],
        [("r", 1, "aba")],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('0 invoke append "a" | :key 1\n1 invoke append "ab" | :key 1', "begins with another"),
        ("0 invoke append 3 | :key 1", "of a value that is not a string"),
        ("0 invoke add 3", "the operation :f 'add' is none of a register"),
        (
            '0 invoke append "a" | :key 1\n1 invoke append "a" | :key 1\n'
            '2 invoke get nil | :key 1\n2 ok get "a" | :key 1',
            "several operations wrote the same string",
        ),
    ],
)
def test_unsupported(text: str, message: str) -> None:
    """What cannot be judged is refused with its line."""
    with pytest.raises(UnsupportedInput, match=message):
        read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 invoke write 1\n0 invoke write 2", "line 2: process 0 has another open operation"),
        ("0 invoke read nil\n0 ok read", "line 2: a read without a value"),
        ("0 invoke read nil\n0 ok write 1", "line 2: a completion of another :f"),
        ("0 begin read nil", "expected a :type"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    """What contradicts itself is an error with its line."""
    with pytest.raises(ReadError, match=message):
        read(text)


def test_times_and_sessions() -> None:
    """Lines are the times; after an unknown outcome a process goes on as a new session."""
    columns, _ = _native.read_registers(
        b"INFO  jepsen.util - 0\t:invoke\t:write\t1\n"
        b"INFO  elsewhere - 0\n"
        b"INFO  jepsen.util - :nemesis\t:info\t:start\tnil\n"
        b"INFO  jepsen.util - 0\t:info\t:write\t:timed-out\n"
        b"INFO  jepsen.util - 0   :invoke :read nil\n"
        b"INFO  jepsen.util - 0   :ok :read 1\n"
        b"INFO  jepsen.util - 5   :fail :cas [1 2]\n"
    )
    got = [(t.session, t.begin, t.end, t.position, t.ops) for t in transactions(columns)]
    assert got == [
        (0, 0, END_UNKNOWN, 1, [("w", ":register", 1)]),
        (1, 2, 3, 5, [("r", ":register", 1)]),
        (2, BEGIN_UNKNOWN, 4, 7, [("r-not-in", ":register", [1])]),
    ]


def test_the_index_orders() -> None:
    """Where every operation has an :index of its own, it counts, not the line."""
    columns, remarks = _native.read_registers(
        b"{:process 0 :type :ok :f :read :value 1 :index 9}"
        b"{:process 0 :type :invoke :f :read :index 4}"
    )
    assert remarks["order"] == "index"
    assert [(t.begin, t.end, t.number) for t in transactions(columns)] == [(0, 1, 4)]


def test_lightweight_transactions() -> None:
    """MTC's logs: the insert and conditional updates of independent keys, some of them refused."""
    assert read("""
        2 invoke write [0 0]
        2 ok write [0 0] | :time 49 | :index 1
        3 invoke cas [0 [0 1]]
        1 invoke cas [0 [0 2]]
        3 ok cas [0 [0 1]]
        1 fail cas [0 [0 2]]
        4 invoke cas [0 [2 3]]
        4 fail cas [0 [2 3]] | :error :no-host-available
    """) == [
        (COMMITTED, [("w", 0, 0)]),
        (COMMITTED, [("r", 0, 0), ("w", 0, 1)]),
        (ABORTED, [("r", 0, 0), ("w", 0, 2)]),
        (ABORTED, [("r", 0, 2), ("w", 0, 3)]),
    ]


def test_unknown_outcomes_are_counted_apart_from_invocations() -> None:
    """Two operations were invoked, and the outcome of one is unknown."""
    _, remarks = _native.read_registers(
        log("0 invoke write 1\n0 ok write 1\n1 invoke write 2\n1 info write 2")
    )
    assert (dict(remarks)["ok"], dict(remarks)["info"]) == (1, 1)
