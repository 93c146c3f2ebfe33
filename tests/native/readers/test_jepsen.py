"""The native reader of Jepsen's EDN and JSON: statuses, pairing, order, spellings, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.readers import (
    ABORTED,
    BEGIN_UNKNOWN,
    COMMITTED,
    END_UNKNOWN,
    INDETERMINATE,
    UNKNOWN,
    Txn,
    transactions,
)

from isolang import _native
from isolang._native import ReadError, UnsupportedInput


def edn(text: str | bytes) -> tuple[list[Txn], dict[str, Any]]:
    columns, remarks = _native.read_edn(text.encode() if isinstance(text, str) else text)
    return transactions(columns), remarks


# --- Jepsen: statuses, pairing, real time ---


def test_ok_fail_info_and_unfinished() -> None:
    txns, remarks = edn("""
{:type :invoke, :f :txn, :value [[:w 1 1] [:r 2 nil]], :process 0}
{:type :invoke, :f :txn, :value [[:w 1 2] [:r 2 nil]], :process 1}
{:type :ok,     :f :txn, :value [[:w 1 1] [:r 2 nil]], :process 0}
{:type :invoke, :f :txn, :value [[:w 1 3] [:r 2 nil]], :process 2}
{:type :fail,   :f :txn, :value [[:w 1 2] [:r 2 7]], :process 1}
{:type :info,   :f :txn, :value [[:w 1 3] [:r 2 5] [:r 1 nil]], :process 2}
{:type :invoke, :f :txn, :value [[:r 2 nil] [:w 1 4]], :process 0}
""")
    assert [t.status for t in txns] == [COMMITTED, ABORTED, INDETERMINATE, INDETERMINATE]
    assert [t.session for t in txns] == [0, 1, 2, 0]
    # nil in :ok is the initial state; elsewhere it is "not known", as is any read of an :invoke
    assert txns[0].ops == [("w", 1, 1), ("r", 2, None)]
    assert txns[1].ops == [("w", 1, 2), ("r", 2, UNKNOWN)]
    assert txns[2].ops == [("w", 1, 3), ("r", 2, 5), ("r", 1, UNKNOWN)]
    assert txns[3].ops == [("r", 2, UNKNOWN), ("w", 1, 4)]
    assert [(t.begin, t.end) for t in txns] == [(0, 2), (1, 4), (3, END_UNKNOWN), (6, END_UNKNOWN)]
    # the completion's line; the invocation's where the outcome is not known
    assert [t.position for t in txns] == [4, 6, 5, 8]
    assert remarks["ok"] == remarks["fail"] == remarks["info"] == remarks["unfinished"] == 1
    assert remarks["unknown_reads"] == 3
    assert remarks["session_labels"] == [0, 1, 2]


def test_lists_nil_and_empty() -> None:
    txns, _ = edn("{:type :ok :value [[:append 1 5] [:r 1 [5 6]] [:r 2 []] (:r 3 nil)] :process 4}")
    assert txns[0].ops == [("append", 1, 5), ("list", 1, [5, 6]), ("list", 2, []), ("r", 3, None)]


def test_groups() -> None:
    """One of the two maps of a transaction names its group, or both do."""
    columns, remarks = _native.read_edn(
        b'{:type :invoke :value [[:w 1 1]] :process 0 :group "a"}\n'
        b"{:type :ok :value [[:w 1 1]] :process 0}\n"
        b"{:type :invoke :value [[:w 1 2]] :process 1}\n"
        b"{:type :info :value [[:w 1 2]] :process 1 :group :a}\n"
        b"{:type :invoke :value [[:w 1 3]] :process 0 :group 7}\n"
        b"{:type :ok :value [[:w 1 3]] :process 0 :group 7}\n"
    )
    named = [columns.group(g)[1] for g in columns.txn_group]
    assert named == ["a", "a", 7]
    assert len(set(columns.txn_group.tolist())) == remarks["groups"] == 3  # "a" is not :a


def test_groups_of_some_transactions() -> None:
    columns, remarks = _native.read_edn(
        b"{:type :ok :value []}\n{:type :ok :value [] :group 1}\n{:type :ok :value []}"
    )
    assert columns.txn_group.tolist() == [0, 1, 0]
    assert (remarks["groups"], remarks["groupless"]) == (1, 2)


def test_two_groups_of_a_transaction() -> None:
    with pytest.raises(ReadError, match="another :group than that of the invocation"):
        edn("{:type :invoke :value [] :group 1}\n{:type :ok :value [] :group 2}")


def test_without_invocations_there_is_no_real_time() -> None:
    columns, remarks = _native.read_edn(
        b"{:type :ok :value [[:w 1 2]] :process 0 :time 5}\n"
        b"{:type :ok :value [[:r 1 2]] :process 0 :time 9}\n"
    )
    assert not columns.has_time
    assert [t.begin for t in transactions(columns)] == [BEGIN_UNKNOWN] * 2
    assert [t.end for t in transactions(columns)] == [END_UNKNOWN] * 2
    assert [t.session for t in transactions(columns)] == [0, 0]
    assert (remarks["timed_maps"], remarks["time_span_ns"]) == (2, 4)


def test_an_ok_without_invocation_began_at_an_unknown_time() -> None:
    txns, remarks = edn(
        "{:type :invoke :value [[:w 1 2]] :process 0}\n"
        "{:type :ok :value [[:w 1 3]] :process 1}\n"
        "{:type :ok :value [[:w 1 2]] :process 0}\n"
    )
    assert [(t.begin, t.end) for t in txns] == [(0, 2), (BEGIN_UNKNOWN, 1)]
    assert remarks["completions_without_invocation"] == 1


def test_index_orders_when_every_map_has_one() -> None:
    first = "{:type :invoke :value [[:w 1 2]] :process 0 :index 10}"
    second = "{:type :ok :value [[:w 1 2]] :process 0 :index 20}"
    txns, remarks = edn(f"{second}\n{first}\n")
    assert [(t.begin, t.end, t.number) for t in txns] == [(0, 1, 20)]
    assert (remarks["order"], remarks["index"]) == ("index", "reorders lines")
    txns, remarks = edn(f"{first}\n{second.replace('20', '10')}\n")
    assert (remarks["order"], remarks["index"], txns[0].number) == ("line", "repeated", 1)
    _, remarks = edn(f"{first}\n{second.replace(':index 20', '')}\n")
    assert (remarks["order"], remarks["index"]) == ("line", "incomplete")


def test_time_that_goes_back_is_remarked_and_not_used() -> None:
    txns, remarks = edn(
        "{:type :invoke :value [[:w 1 2]] :process 0 :time 100}\n"
        "{:type :ok :value [[:w 1 2]] :process 0 :time 40}\n"
    )
    assert (txns[0].begin, txns[0].end) == (0, 1)
    assert (remarks["time_goes_back"], remarks["time_goes_back_first_line"]) == (1, 2)
    assert remarks["time_span_ns"] == 60


def test_without_process_each_transaction_is_its_own_session() -> None:
    txns, remarks = edn(
        "{:type :invoke :value [[:w 1 2]]}\n{:type :ok :value [[:w 1 2]]}\n"
        "{:type :invoke :value [[:r 1 nil]]}\n{:type :ok :value [[:r 1 2]]}\n"
    )
    assert [t.session for t in txns] == [0, 1]
    assert [(t.begin, t.end) for t in txns] == [(0, 1), (2, 3)]
    assert not remarks["has_process"]


def test_a_process_goes_on_after_info_as_a_new_session() -> None:
    """What is indeterminate may take effect later, so nothing follows it in session order."""
    txns, remarks = edn(
        "{:type :invoke :value [[:w 1 2]] :process 0}\n{:type :info :process 0 :error :timeout}\n"
        "{:type :invoke :value [[:w 1 3]] :process 0}\n{:type :ok :value [[:w 1 3]] :process 0}\n"
        "{:type :invoke :value [[:w 1 4]] :process 0}\n{:type :info :process 0}\n"
        "{:type :invoke :value [[:w 1 5]] :process 0}\n{:type :fail :process 0}\n"
    )
    assert [(t.session, t.status) for t in txns] == [
        (0, INDETERMINATE),
        (1, COMMITTED),
        (1, INDETERMINATE),
        (2, ABORTED),
    ]
    assert remarks["resumed_after_info"] == 2
    assert remarks["session_labels"] == [0, 0, 0]


def test_what_is_no_client_is_counted() -> None:
    txns, remarks = edn(
        '{:type :info :f :partition :process :nemesis :value [["n1" "n2"] ["n3"]]}\n'
        "{:type :info :f :start :value {:a [1 {}]}}\n"
        "{:type :ok :value [[:w 1 2]] :process 0}\n"
        "{:process :nemesis :type :info :f :bump :value [[:w {:x 1}] 3]}\n"
    )
    assert len(txns) == 1
    assert (remarks["nonclient"], remarks["nonclient_processes"]) == (3, [":nemesis"])


def test_a_completion_of_nothing_makes_no_transaction() -> None:
    txns, remarks = edn(
        "{:type :fail :process 0 :value nil}\n{:type :info :process 1 :value nil}\n"
        "{:type :fail :process 0 :value [[:w 1 2]]}\n"
    )
    assert [(t.status, t.ops) for t in txns] == [(ABORTED, [("w", 1, 2)])]
    assert remarks["stray_completions"] == 2


def test_a_completion_with_other_operations_is_remarked() -> None:
    txns, remarks = edn(
        "{:type :invoke :value [[:w 1 2]] :process 0}\n{:type :ok :value [[:w 1 3]] :process 0}\n"
    )
    assert txns[0].ops == [("w", 1, 3)]
    assert (remarks["completion_differs"], remarks["completion_differs_first_line"]) == (1, 2)


def test_transactions_under_another_name() -> None:
    """Jepsen's long-fork workload calls them :read and :write; a completion may say nothing."""
    txns, remarks = edn(
        "{:type :invoke :f :write :value [[:w 1 2]] :process 0}\n"
        "{:type :invoke :f :read :value [[:r 1 nil] [:r 2 nil]] :process 1}\n"
        "{:type :invoke :f :add :value 3 :process 2}\n"
        "{:type :info :f :write :process 0}\n"
        "{:type :fail :f :add :process 2}\n"
        "{:type :ok :f :read :value [[:r 1 2] [:r 2 nil]] :process 1}\n"
    )
    assert [(t.status, t.ops) for t in txns] == [
        (INDETERMINATE, [("w", 1, 2)]),
        (COMMITTED, [("r", 1, 2), ("r", 2, None)]),
    ]
    assert (remarks["skipped"], remarks["skipped_functions"]) == (2, [":add"])


# --- Jepsen: syntax ---

SAME = [("w", ":x", 1), ("r", "y", [1, 2]), ("r", 3, None)]


@pytest.mark.parametrize(
    "text",
    [
        '{:type :ok, :process 0, :f :txn, :value [[:w :x 1] [:r "y" [1 2]] [:r 3 nil]]}',
        '[{:type :ok :process 0 :value [[:w :x 1] [:r "y" [1 2]] [:r 3 nil]]}]',
        '({:value ((:w :x 1)(:r "y"(1 2)) (:r 3 nil)):process 0,:type :ok}) ; end',
        "; a comment\n#jepsen.history.Op{:type :ok :process 0\n:value [[:w :x +1N] #_ [:w 1 1]\n"
        ' [:r "\\u0079" [1 #_ #_ 5 6 2]] ; }\n [:r,3,nil]] :error [:a "}\\"" \\} #{1 {2 3}}]}',
        '#_{:type :bad}{:type :ok 7 8 :process 0 :value [[:w :x 1][:r "y"[1,2]][:r 3 nil]]}#_ x',
        '\ufeff{:type :ok, :process 0, :value [[:w :x 1] [:r "y" [1 2]] [:r 3 nil]]}\r\n',
    ],
)
def test_the_same_transaction_in_many_spellings(text: str) -> None:
    txns, _ = edn(text)
    assert [t.ops for t in txns] == [
        [(k if k == "w" else "list" if isinstance(v, list) else "r", x, v) for k, x, v in SAME]
    ]


@pytest.mark.parametrize("lines", [True, False])
def test_json(lines: bool) -> None:
    maps = [
        {"type": "invoke", "f": "txn", "value": [["w", "x", 2], ["r", "é\n", None]], "process": 7},
        {"process": "nemesis", "type": "info", "f": "start", "value": [{"a": [None, True]}]},
        {"type": "ok", "f": "txn", "value": [["w", "x", 2], ["r", "é\n", [1, 2]]], "process": 7},
    ]
    text = "\n".join(map(json.dumps, maps)) if lines else json.dumps(maps, indent=1)
    txns, remarks = edn(text)
    assert [t.ops for t in txns] == [[("w", "x", 2), ("list", "é\n", [1, 2])]]
    assert (remarks["syntax"], remarks["enclosed"]) == ("json", not lines)
    assert remarks["nonclient_processes"] == ['"nemesis"']


def test_values_are_typed() -> None:
    values = [
        "1",
        '"1"',
        ":1",
        "1.0",
        "true",
        "18446744073709551615",
        "a",
        "[1]",
        "nil",
        "-1",
        "\\1",
    ]
    txns, _ = edn("{:type :ok :process 0 :value [" + " ".join(f"[:w 1 {v}]" for v in values) + "]}")
    seen = [v for _, _, v in txns[0].ops]
    assert seen == [
        1,
        "1",
        ":1",
        ("1.0",),
        ("true",),
        2**64 - 1,
        ("a",),
        ("[1]",),
        None,
        -1,
        ("\\1",),
    ]


@pytest.mark.parametrize(
    "spellings",
    [
        ["1", "+1", "1N"],
        ["0", "-0", "+0N"],
        ["-9223372036854775808", "-9223372036854775808N"],
        ["18446744073709551616", "+18446744073709551616N"],
        ["1.5", "1.50", "15e-1", "+1.5E0"],
        ["{:a 1 :b [2 3]}", "{:b (2, 3),:a 1}", "{:b [2 #_ x 3N] ; c\n :a +1}"],
        ["#{3 1 2}", "#{1 2 3}"],
        ['#inst "2020"', '#inst   "2020"'],
        ['"a\\"b"', '"\\u0061\\u0022b"'],
    ],
)
def test_equal_values_are_one_atom(spellings: list[str]) -> None:
    ops = " ".join(f"[:w 1 {v}]" for v in spellings)
    columns, _ = _native.read_edn(f"{{:type :ok :process 0 :value [{ops}]}}".encode())
    assert len(set(columns.op_value)) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{:type :okay :process 0}",
            "line 1: expected a :type of :invoke, :ok, :fail or :info (got ':okay' at column 8)",
        ),
        ("\n\n{:process 0 :value [[:w 1 2]]}", "line 3: an operation map without :type"),
        ("{:type :ok :type :ok}", "line 1: the field :type stands twice"),
        (
            "{:type :ok :process 0 :value [[:w 1 2]]",
            "line 1: the file ends inside the operation map of line 1",
        ),
        (
            "[{:type :ok :process 0 :value [[:w 1 2]]}\n",
            "line 2: the file ends inside the vector opened on line 1",
        ),
        (
            "[{:type :ok :process 0 :value []}] {",
            "line 1: expected the end of the file after the enclosing",
        ),
        ("{:type :ok :process 1.0}", "line 1: expected a 64-bit integer as :process"),
        ('{"type":"ok","process":"3"}', "line 1: expected a 64-bit integer as :process"),
        ("{:type :ok :process 9223372036854775808}", "line 1: expected a 64-bit integer"),
        ("5", "line 1: expected an operation map {…} (got '5' at column 1)"),
        (
            "{:type}",
            "line 1: expected a value for the last field of the operation map (got '}' at column 7",
        ),
        ('{:type :ok :process 0 :value [[:w 1 "\\q"]]}', "unknown escape in a string (got '\\q')"),
        ('{:type :ok :process 0 :value [[:w 1 "\\ud800"]]}', "unpaired surrogate"),
        (b'{:type :ok :process 0 :value [[:w 1 "\xff"]]}', "line 1: text that is not valid UTF-8"),
        (
            "{:type :ok :process 0 :value [[:w 1 007]]}",
            "line 1: a number with a leading zero (got '007' at column 37)",
        ),
        (
            "{:type :ok :process 0 :value [[:w 1 1x]]}",
            "line 1: a malformed number (got '1x' at column 37)",
        ),
        (
            "\n\n {:type :ok :error [1 }",
            "line 3: expected ']' (got '}' at column 23); hint: a bracket before it is not closed",
        ),
        (
            "{:type :ok :process 0 :value [[:w 1 " + "[" * 99,
            "line 1: a value nested more than 64 deep",
        ),
        (
            "{:type :invoke :value [[:r 1 nil]] :process 3}\n"
            "{:type :invoke :value [[:r 1 nil]] :process 3}\n"
            "{:type :ok :value [[:r 1 2]] :process 3}",
            "line 3: process 3 has several open operations, those of lines 1 and 2, and this",
        ),
        (
            "{:type :invoke :value [[:w 1 2]]}\n{:type :invoke :value [[:w 1 3]]}\n"
            "{:type :ok :value [[:w 1 4]]}",
            "line 3: the history (no :process anywhere) has several open operations",
        ),
        ("{:type :ok :value [[:r 1]] :process 3}", "line 1: a read without a value in an :ok"),
        (
            "{:type :ok :value [[:w 1 2]] :process 3}\n{:type :ok :value [[:w 1 3]]}",
            "line 2: an operation has no :process, but other operations do",
        ),
    ],
)
def test_edn_errors_name_the_line(text: str | bytes, message: str) -> None:
    with pytest.raises(ReadError) as error:
        edn(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "\n{:type :invoke :f :cas :value [1 2] :process 0}",
            "line 2: the operation :f :cas is not a transaction",
        ),
        (
            '{"type":"ok","f":"read","value":3,"process":0}',
            'line 1: the operation :f "read" is not',
        ),
        (
            '{"type":"ok","f":"dequeue","value":3,"process":0}',
            "hint: `isocheck linearize --model queue` judges queues; in transactions, the nearest",
        ),
        (
            "{:type :ok :f :enqueue :value 3 :process 0}",
            "the nearest model of a queue is a key for each element",
        ),
        (
            "{:type :ok :f :pop :value 3 :process 0}",
            "hint: `isocheck linearize --model stack` judges stacks",
        ),
        (
            '{"type":"invoke","f":"acquire","process":0}',
            "hint: `isocheck linearize --model mutex` judges locks",
        ),
        (
            "{:type :ok :f :generate :value 3 :process 0}",
            "hint: the nearest model of unique names is a key for each",
        ),
        (
            "{:type :ok :f :txn :value [[:read 1 nil]] :process 0}",
            "Knossos' multi-register, where a read of nil says nothing; the nearest model has :r",
        ),
        (
            "{:type :ok :f 5 :value [[:w 1 2]] :process 0}",
            "line 1: the operation :f 5 is not a transaction",
        ),
        (
            "{:type :ok :f :txn :value 5 :process 0}",
            "line 1: a :value that is not a vector of micro-operations (got '5'",
        ),
        ("{:type :ok :f :txn :process 0}", "line 1: a transaction without :value"),
        (
            "{:type :ok\n :value [[:w 1 2]\n[:inc 1 2]] :process 0}",
            "line 1: an unknown micro-operation (got ':inc' at column 2 of line 3, expected",
        ),
        (
            "{:type :ok :value [[:w 1 2 3]] :process 0}",
            "more than a key and a value (got ':w 1 2 ' at column 21, expected",
        ),
        (
            "{:type :ok :value [[:w 1]] :process 0}",
            "a micro-operation without a value (got ':w 1' at column 21, expected",
        ),
        ("{:type :ok :value [[:w]] :process 0}", "a micro-operation without a key"),
        (  # its write would be missing, and a right read of it an accusation
            "{:type :info :value [[:appned 1 2]] :process 0}",
            "line 1: an unknown micro-operation (got ':appned' at column 23, expected",
        ),
        (
            "{:type :fail :value [[:r 1 nil] [:wirte 1 2]] :process 0}",
            "line 1: an unknown micro-operation (got ':wirte' at column",
        ),
        (
            "{:type :ok :value [3] :process 0}",
            "not a vector of micro-operations (got '[3]' at column 19",
        ),
    ],
)
def test_unsupported_operations_name_the_line(text: str, message: str) -> None:
    with pytest.raises(UnsupportedInput) as error:
        edn(text)
    assert message in str(error.value)


def test_other_functions_are_skipped_and_counted() -> None:
    """Beside transactions; what their maps hold is read, and left."""
    txns, remarks = edn(
        "{:type :invoke :f :cas :value [[:w 1 2]] :process 0}\n"
        '{:type :ok :f :cas :value #"a\\d]" :process 0 :at #inst "2020-01-01"}\n'
        "#jepsen.history.Op{:type :ok :f :txn :value [[:w 1 3]] :process 0 :x #a.Record{:b 1}}\n"
        "{:type :fail :f :read :value #{1} :process 1}"
    )
    assert [t.ops for t in txns] == [[("w", 1, 3)]]
    assert (remarks["skipped"], remarks["skipped_functions"]) == (3, [":cas", ":read"])


def test_an_empty_history() -> None:
    """No transactions are no error; the nemesis alone is none either."""
    for text in ("", "()", "[]", "{:type :info :process :nemesis}"):
        assert edn(text)[0] == []


def test_reads_without_a_value_in_an_invocation() -> None:
    """They ask, as [:r k nil] does."""
    txns, _ = edn(
        "{:process 0 :value [[:r :x] [:w 1 2]] :type :invoke}\n"
        "{:process 0 :type :ok :value [[:r :x 5] [:w 1 2]]}\n"
        "{:process 1 :type :invoke :value [[:r :x]]}"
    )
    assert [t.ops for t in txns] == [[("r", ":x", 5), ("w", 1, 2)], [("r", ":x", UNKNOWN)]]


def test_independent_keys() -> None:
    """[k transaction]: keys of the history are pairs."""
    txns, remarks = edn(
        "{:process 0 :type :ok :value [7 [[:w :x 1] [:r 2 nil]]]}\n"
        '{:process 0 :type :ok :value [:k [[:append "a" 1]]]}\n'
        "{:process 0 :type :ok :value [[:w :x 1]]}"
    )
    assert [t.ops for t in txns] == [
        [("w", ("[7 :x]",), 1), ("r", ("[7 2]",), None)],
        [("append", ('[:k "a"]',), 1)],
        [("w", ":x", 1)],
    ]
    assert remarks["independent"] == 2


def test_overlapping_operations_of_one_process() -> None:
    """Each is a session of its own; completions are told by their micro-operations."""
    txns, remarks = edn(
        "{:process 0 :type :invoke :value [[:w 1 2] [:r 2]]}\n"
        "{:process 0 :type :invoke :value [[:w 1 3]]}\n"
        "{:process 1 :type :ok :value [[:w 1 9]]}\n"
        "{:process 0 :type :ok :value [[:w 1 2] [:r 2 8]]}\n"
        "{:process 0 :type :fail :value [[:w 1 3]]}\n"
        "{:process 0 :type :invoke :value [[:w 1 4]]}"
    )
    assert [(t.session, t.status, t.begin, t.end) for t in txns] == [
        (0, COMMITTED, 0, 3),
        (1, ABORTED, 1, 4),
        (2, COMMITTED, BEGIN_UNKNOWN, 2),
        (3, INDETERMINATE, 5, END_UNKNOWN),
    ]
    assert remarks["overlapping"] == 1


# --- the initial state of Elle's closed predicates ---


def test_init_is_the_initial_transaction() -> None:
    """Its map is what it wrote; the fields may stand in any order, and the keys be strings."""
    txns, remarks = edn("""
{:type :invoke, :process 0, :f :init, :value {:x 1, 7 {:v 2}}}
{:type :ok, :value {:x 1, 7 {:v 2}}, :f :init, :process 0}
{:type :ok, :process 0, :f :txn, :value [[:rp :true {:x 1}] [:delete 7 nil]]}
""")
    assert remarks["initial"] == 0
    assert txns[0].ops == [("w", ":x", 1), ("w", 7, ("{:v 2}",))]
    assert txns[1].ops[:2] == [("r", ":x", 1), ("r-not-in", 7, [("{:v 2}",)])]
    txns, remarks = edn('[{"type": "ok", "process": 0, "f": "init", "value": {"x": 1}}]')
    assert (remarks["initial"], txns[0].ops) == (0, [("w", "x", 1)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{:type :info, :process 0, :f :init, :value {:x 1}}",
            "line 1: the outcome of an :init is not :ok",
        ),
        (
            "{:type :ok, :process 0, :f :init, :value [:x 1]}",
            "line 1: the :value of an :init is not a",
        ),
        (
            "{:type :ok, :process 0, :f :txn, :value []}\n"
            "{:type :ok, :process 0, :f :init, :value {}}",
            "line 2: an :init after, or concurrent with, other transactions",
        ),
        (
            "{:type :ok, :process 0, :f :init, :value {}}\n"
            "{:type :ok, :process 0, :f :init, :value {}}",
            "line 2: an :init after, or concurrent with, other transactions",
        ),
    ],
)
def test_an_init_that_is_no_initial_state(text: str, message: str) -> None:
    """What nobody knows to be there before all else is refused."""
    with pytest.raises(ReadError, match=message):
        edn(text)
