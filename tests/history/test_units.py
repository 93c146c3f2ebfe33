"""``:unit`` in recordings, and the programs that requests of several transactions accuse."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from isolang import History, HistoryError, Transaction, check, load_history
from isolang.errors import OptionError
from isolang.history.session_tables import SESSION_TABLES
from isolang.history.writers import save_history

Line = tuple[str, str, str]
"""A transaction: its unit, its operations in EDN, and their statements."""


def edn(*transactions: Line, init: str = "") -> bytes:
    """Return a history of transactions one after the other, each unit in a process of its own.

    A unit that ends in ``!`` was aborted; one that ends in ``?`` has an unknown outcome.
    """
    lines = [f"{{:type :ok, :process 99, :f :init, :value {{{init}}}}}"] if init else []
    processes: dict[str, int] = {}
    for unit, operations, statements in transactions:
        name = unit.rstrip("!?")
        outcome = {"!": "fail", "?": "info"}.get(unit[-1:], "ok")
        process = processes.setdefault(name, len(processes))
        said = " ".join(f'"{text.strip()}"' for text in statements.split(","))
        more = f", :statements [{said}]" if statements else ""
        more += f', :unit "{name}"' if name else ""
        line = f":process {process}, :f :txn, :value [{operations}]"
        lines += [f"{{:type :invoke, {line}}}", f"{{:type :{outcome}, {line}{more}}}"]
    return "\n".join(lines).encode()


def judge(*transactions: Line, init: str = "", carry: str = "rows") -> tuple[str, str]:
    """Return the verdict on requests, and what it is about: the anomaly, a note, or the reason."""
    history = load_history(
        io.BytesIO(edn(*transactions, init=init)), "edn", unit="request",
        carry=carry,  # type: ignore[arg-type]
    )  # fmt: skip
    verdict = check(history, "ser")
    if verdict.outcome == "invalid":
        assert verdict.certified
        return "invalid", verdict.violation.anomaly
    notes = [note for note in verdict.notes if note.startswith("not counted")]
    return verdict.outcome, getattr(verdict, "reason", "".join(notes))


ROOM = "{:table :booking :where [:= :room 2]}"
FREE = "{:table :job :where [:= :state 0]}"

ACCUSED = {
    "stock: checked in one transaction, written in another": (
        [
            ("a", "[:r :stock 1]", "1"),
            ("b", "[:r :stock 1]", "1"),
            ("a", "[:w :stock 0]", "1"),
            ("b", "[:w :stock -1]", "1"),
        ],
        ":stock 1",
        "lost update",
    ),
    "coupon: no use found, a use inserted": (
        [
            ("a", "[:rp {:table :use :where [:= :coupon 5]} {}]", "1"),
            ("b", "[:rp {:table :use :where [:= :coupon 5]} {}]", "1"),
            ("a", "[:insert [:use 1] {:coupon 5 :by 1}]", "1"),
            ("b", "[:insert [:use 2] {:coupon 5 :by 2}]", "1"),
        ],
        "",
        "predicate write skew",
    ),
    "balance: 100 read, 30 written": (
        [
            ("a", "[:r [:account 1] {:balance 100}]", "1"),
            ("b", "[:r [:account 1] {:balance 100}]", "1"),
            ("a", "[:w [:account 1] {:balance 30}]", "1"),
            ("b", "[:w [:account 1] {:balance 30 :v 2}]", "1"),
        ],
        "[:account 1] {:balance 100}",
        "lost update",
    ),
    "a unique name": (
        [
            ("a", '[:rp {:table :user :where [:= :name "bo"]} {}]', "1"),
            ("b", '[:rp {:table :user :where [:= :name "bo"]} {}]', "1"),
            ("a", '[:insert [:user 1] {:name "bo" :id 1}]', "1"),
            ("b", '[:insert [:user 2] {:name "bo" :id 2}]', "1"),
        ],
        "",
        "predicate write skew",
    ),
    "at most two bookings of a room": (
        [
            ("a", f"[:rp {ROOM} {{[:booking 1] {{:room 2 :id 1}}}}]", "1"),
            ("b", f"[:rp {ROOM} {{[:booking 1] {{:room 2 :id 1}}}}]", "1"),
            ("a", "[:insert [:booking 2] {:room 2 :id 2}]", "1"),
            ("b", "[:insert [:booking 3] {:room 2 :id 3}]", "1"),
        ],
        "[:booking 1] {:room 2 :id 1}",
        "predicate write skew",
    ),
    "a check after an aborted attempt": (
        [
            ("a!", "[:r :stock 1] [:w :stock 0]", "1, 2"),
            ("a", "[:r :stock 1]", "1"),
            ("b", "[:r :stock 1] [:w :stock 5]", "1, 2"),
            ("a", "[:w :stock 4]", "1"),
        ],
        ":stock 1",
        "lost update",
    ),
}

NOT_ACCUSED = {
    "atomic increments in two transactions": (
        [
            ("a", "[:r :n 0] [:w :n 1]", "1, 1"),
            ("b", "[:r :n 1] [:w :n 2]", "1, 1"),
            ("a", "[:r :n 2] [:w :n 3]", "1, 1"),
            ("b", "[:r :n 3] [:w :n 4]", "1, 1"),
        ],
        ":n 0",
    ),
    "an optimistic version, tried again": (
        [
            ("a", "[:r [:doc 1] {:v 1 :by 0}]", "1"),
            ("b", "[:r [:doc 1] {:v 1 :by 0}]", "1"),
            ("a", "[:r [:doc 1] {:v 1 :by 0}] [:w [:doc 1] {:v 2 :by 1}]", "1 shown, 1 shown"),
            ("b", "[:rp {:table :doc :where [:and [:= :key 1] [:= :v 1]]} {}]", "1"),
            ("b", "[:r [:doc 1] {:v 2 :by 1}]", "1"),
            ("b", "[:r [:doc 1] {:v 2 :by 1}] [:w [:doc 1] {:v 3 :by 2}]", "1 shown, 1 shown"),
        ],
        "[:doc 1] {:v 1 :by 0}",
    ),
    "a serializable transaction, tried again": (
        [
            ("a", "[:r :v 1]", "1"),
            ("a", "[:r :v 1] [:w :v 2]", "1, 2"),
            ("b!", "[:r :v 1] [:w :v 9]", "1, 2"),
            ("b", "[:r :v 2] [:w :v 3]", "1, 2"),
        ],
        ":v 1",
    ),
    "a saga whose payment fails, and is compensated": (
        [
            ("a", "[:w :order 1] [:w :stock 4]", "1, 2"),
            ("b", "[:r :stock 4] [:w :stock 3]", "1, 1"),
            ("a", "[:r :payment nil]", "1"),
            ("a", "[:w :order 2] [:r :stock 3] [:w :stock 5]", "1, 2, 2"),
        ],
        "",
    ),
    "an outbox that a relay empties": (
        [
            ("order", "[:w :order 1] [:w :outbox 1]", "1, 2"),
            ("relay", "[:r :outbox 1]", "1"),
            ("order", "[:r :order 1]", "1"),
            ("relay", "[:r :outbox 1] [:w :outbox 2]", "1 shown, 1 shown"),
            ("order", "[:w :order 3]", "1"),
        ],
        "",
    ),
    "a status page that asks until it is done": (
        [
            ("job", "[:w :state 1]", "1"),
            ("page", "[:r :state 1]", "1"),
            ("job", "[:w :state 2]", "1"),
            ("page", "[:r :state 2]", "1"),
        ],
        "",
    ),
    "two pages of a list, with a row that moves": (
        [
            ("list", "[:r :first 1]", "1"),
            ("edit", "[:w :first 2] [:w :second 2]", "1, 2"),
            ("list", "[:r :second 2]", "1"),
        ],
        ":first 1 :second 1",
    ),
    "the row of another user's session": (
        [
            ("a", "[:r [:sessions 7] {:at 0}]", "1"),
            ("b", "[:r [:sessions 7] {:at 0}]", "1"),
            ("a", "[:w [:sessions 7] {:at 1}]", "1"),
            ("b", "[:w [:sessions 7] {:at 2}]", "1"),
        ],
        "[:sessions 7] {:at 0}",
    ),
    "an advisory lock of the session, held over both transactions": (
        [
            ("a", "[:r :stock 5]", "1"),
            ("a", "[:w :stock 4]", "1"),
            ("b", "[:r :stock 4]", "1"),
            ("b", "[:w :stock 3]", "1"),
        ],
        ":stock 5",
    ),
    "a job claimed in one transaction, and finished in another": (
        [
            ("w1", f"[:rp {FREE} {{[:job 1] {{:state 0 :by 0}}}}]", "1"),
            ("w2", f"[:rp {FREE} {{[:job 1] {{:state 0 :by 0}}}}]", "1"),
            (
                "w1",
                "[:r [:job 1] {:state 0 :by 0}] [:w [:job 1] {:state 1 :by 1}]",
                "1 shown,1 shown",
            ),
            ("page", "[:r [:job 1] {:state 1 :by 1}]", "1"),
            ("w2", "[:rp {:table :job :where [:and [:= :key 1] [:= :state 0]]} {}]", "1"),
            ("w1", "[:w [:job 1] {:state 2 :by 1}]", "1"),
        ],
        "[:job 1] {:state 0 :by 0}",
    ),
    "a read, and again under a lock in the transaction that writes": (
        [
            ("a", "[:r :v 1]", "1"),
            ("b", "[:r :v 1]", "1"),
            ("a", "[:r :v 1] [:w :v 2]", "1 for update, 2"),
            ("b", "[:r :v 2] [:w :v 3]", "1 for update, 2"),
        ],
        ":v 1",
    ),
    "a write that returns the row": (
        [
            ("a", "[:r :v 1]", "1"),
            ("b", "[:w :v 5]", "1"),
            ("a", "[:r :v 5] [:w :v 6]", "1 shown, 1 shown"),
        ],
        ":v 1",
    ),
}


@pytest.mark.parametrize("name", ACCUSED)
def test_accused(name: str) -> None:
    transactions, init, anomaly = ACCUSED[name]
    alone = load_history(io.BytesIO(edn(*transactions, init=init)), "edn")
    assert check(alone, "ser").outcome == "valid"
    assert judge(*transactions, init=init) == ("invalid", anomaly)


@pytest.mark.parametrize("name", NOT_ACCUSED)
def test_not_accused(name: str) -> None:
    transactions, init = NOT_ACCUSED[name]
    assert judge(*transactions, init=init)[0] == "valid"


def test_what_an_update_computes_is_a_note() -> None:
    """The UPDATE loses nothing, whatever the program had read before, and showed."""
    transactions = [
        ("a", "[:r :n 0]", "1"),
        ("b", "[:r :n 0]", "1"),
        ("a", "[:r :n 0] [:w :n 1]", "1, 1"),
        ("b", "[:r :n 1] [:w :n 2]", "1, 1"),
    ]
    outcome, note = judge(*transactions, init=":n 0")
    assert outcome == "valid"
    assert "computes from the row itself" in note


def test_a_table_of_sessions_is_a_note_that_shows_the_list() -> None:
    transactions, init = NOT_ACCUSED["the row of another user's session"]
    outcome, note = judge(*transactions, init=init)
    assert outcome == "valid"
    assert all(table in note for table in SESSION_TABLES)


def test_another_row_is_a_note_and_a_violation_with_carry_all() -> None:
    transactions = [
        ("a", "[:r :use 0]", "1"),
        ("b", "[:r :limit 5]", "1"),
        ("a", "[:w :limit 1]", "1"),
        ("b", "[:w :use 4]", "1"),
    ]
    init = ":limit 5 :use 0"
    outcome, note = judge(*transactions, init=init)
    assert outcome == "valid"
    assert "--carry all" in note
    assert judge(*transactions, init=init, carry="all") == ("invalid", "write skew")


def test_the_report_says_whose_reads_are_carried() -> None:
    transactions, init, _ = ACCUSED["stock: checked in one transaction, written in another"]
    text = edn(*transactions, init=init)
    verdict = check(load_history(io.BytesIO(text), "edn", unit="request"), "ser")
    assert "T4 writes what T2 had read for the same request: T2 read :stock = 1" in str(verdict)
    assert "r(:stock, 1) carried from T2" in str(verdict)


def test_units_that_overlap_are_unknown_and_named() -> None:
    lines = [
        '{:type :invoke, :process 0, :f :txn, :value [[:r :x nil]], :unit "req-7"}',
        '{:type :invoke, :process 1, :f :txn, :value [[:w :x 1]], :unit "req-7"}',
        '{:type :ok, :process 1, :f :txn, :value [[:w :x 1]], :unit "req-7"}',
        '{:type :ok, :process 0, :f :txn, :value [[:r :x nil]], :unit "req-7"}',
    ]
    verdict = check(load_history(io.BytesIO("\n".join(lines).encode()), unit="request"), "ser")
    assert verdict.outcome == "unknown"
    assert "req-7" in verdict.reason


def test_without_units_nothing_is_known_of_requests() -> None:
    outcome, reason = judge(("", "[:w :x 1]", ""))
    assert outcome == "unknown"
    assert "no transaction names its request" in reason


def test_carry_needs_requests() -> None:
    with pytest.raises(OptionError, match="carry: only requests carry reads"):
        load_history(io.BytesIO(b""), carry="all")


# --- reading and writing ---


@pytest.mark.parametrize(
    ("unit", "expected"),
    [('"a b"', "a b"), (":web", "web"), ("7", "7"), ("nil", ""), ('"\\""', '"')],
)
def test_units_are_read_from_maps_only(unit: str, expected: str) -> None:
    text = (
        '{:type :ok, :process 0, :f :txn, :value [[:insert [:t 1] {:unit "kg"}] '
        f'[:rp {{:table :t :where [:= :unit "kg"]}} {{}}]], :unit {unit}}}'
    )
    history = load_history(io.BytesIO(text.encode()), "edn")
    assert history.unit_of(0) == expected
    assert history.transaction(0).unit == (expected or None)


def test_a_unit_in_one_of_two_maps_suffices() -> None:
    invoke = '{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]], :unit "a"}\n'
    for kind in ("ok", "fail", "info"):
        text = f"{invoke}{{:type :{kind}, :process 0, :f :txn, :value [[:w :x 1]]}}"
        assert load_history(io.BytesIO(text.encode()), "edn").unit_of(0) == "a"
    other = '{:type :ok, :process 0, :f :txn, :value [[:w :x 1]], :unit "b"}'
    with pytest.raises(HistoryError, match="differs from the one of the invocation in line 1"):
        load_file(invoke + other).unit_of(0)


def load_file(text: str) -> History:
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".edn", delete=False) as file:
        file.write(text)
    return load_history(file.name)


@pytest.mark.parametrize("suffix", [".edn", ".json"])
def test_writers_keep_units(suffix: str, tmp_path: Path) -> None:
    made = History.from_transactions(
        [
            Transaction([("r", "x", None)], session="a", unit="one"),
            Transaction([("r", "x", None), ("w", "x", 1)], session="b"),
            Transaction([("w", "x", 2)], session="a", unit="one"),
            Transaction([("w", "y", 2)], session="c", unit='the "other"', status="maybe"),
        ]
    )
    assert check_of_requests(made) == "invalid"
    save_history(made, tmp_path / f"h{suffix}")
    read = load_history(tmp_path / f"h{suffix}")
    assert {t.unit for t in read.transactions()} == {"one", None, 'the "other"'}
    again = load_history(tmp_path / f"h{suffix}", unit="request")
    assert check(again, "ser").outcome == "invalid"


def check_of_requests(history: History) -> str:
    from isolang.history.carried import with_carried_reads

    return check(with_carried_reads(history), "ser").outcome
