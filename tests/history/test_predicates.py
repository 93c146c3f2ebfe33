"""Predicate reads: what they returned, and the rows that they say were not there."""

import pickle

import pytest
from msgspec.structs import replace

import isolang
from isolang import Transaction, load_spec
from isolang.certify.errors import NotCertifiedError
from isolang.certify.facts import Facts
from isolang.certify.refutation import check_refutation
from isolang.certify.statements import check_statements
from isolang.errors import HistoryError
from isolang.history import UNKNOWN, History


def history(*transactions, **options):
    given = [t if isinstance(t, Transaction) else Transaction(ops=t) for t in transactions]
    return History.from_transactions(given, **options)


def check(spec, *transactions, **options):
    found = isolang.check(history(*transactions, **options), spec)
    assert found.certified, found
    check_statements(found.history, Facts(found.history))
    return found


def missed(predicate, rows, *, key="k", initial=None):
    """Which of some versions of a row a predicate read says it did not see."""
    writes = [[("w", key, row)] for row in rows]
    h = history(*writes, [("scan", predicate, {})], initial=initial)
    check_statements(h, Facts(h))
    return [h.describe_op(op) for op in h.operations_of(len(rows))]


POSITIVE = (">", "value", 0)
SKEW = (
    [("scan", POSITIVE, {}), ("insert", "x", 1)],
    [("scan", POSITIVE, {}), ("insert", "y", 1)],
)


def test_predicate_write_skew():
    """Each finds no row and inserts one: snapshots allow it, serializability does not."""
    found = check("ser", *SKEW)
    assert found.outcome == "invalid"
    text = str([e.text for e in found.violation.argument.conclusion.edges])
    assert "did not find y with value > 0: it read y before T2 wrote y = 1" in text
    assert check("si", *SKEW).outcome == "valid"


def test_the_figure_of_vbox():
    """Figure 1: of two writers of x and y the reader saw the first at x, and the second at y."""
    writes = [[("w", "x", v), ("w", "y", v)] for v in range(3)]
    assert check("ser", *writes, [("scan", ("=", "value", 1), {"x": 1})]).outcome == "invalid"
    both = {"x": 1, "y": 1}
    assert check("ser", *writes, [("scan", ("=", "value", 1), both)]).outcome == "valid"


def test_a_row_that_is_null_matches_and_one_that_is_not_there_does_not():
    """`IS NULL` finds a written nil, and never a key without a row, which reads call nil, too."""
    is_null = ("null", "value")
    write = [("w", "k", None)]
    assert check("ser", write, [("scan", is_null, {})]).outcome == "valid"
    one_session = [Transaction(ops, session=0) for ops in (write, [("scan", is_null, {})])]
    assert check("strong-session-serializable", *one_session).outcome == "invalid"


def judged(path, spec):
    """The verdict on a file, certified, and its predicates judged by the second checker, too."""
    found = isolang.check(isolang.load_history(path), spec)
    assert found.certified, found
    check_statements(found.history, Facts(found.history))
    return found


@pytest.mark.parametrize(
    ("first", "second", "ser", "si"),
    [
        ("[:rp [:= 1] {}] [:w :x 1]", "[:rp [:= 1] {}] [:w :y 1]", "invalid", "valid"),
        ("[:rp [:= 0] {:x 0}]", "[:w :y 1]", "valid", "valid"),
        ("[:rp [:= 0] {:x 0}]", "[:w :x 1] [:delete :y]", "invalid", "invalid"),
        ("[:delete :x] [:rp :true {}]", "[:delete :y] [:rp :true {}]", "invalid", "invalid"),
        ("[:rp [:mod 2 0] {:x 0}]", "[:insert :z 2]", "invalid", "invalid"),
    ],
)
def test_closed_predicates(tmp_path, first, second, ser, si):
    """Elle's workload: :init says which rows were there, and that there were no others."""
    path = tmp_path / "closed.edn"
    path.write_text(f"""
{{:type :ok, :process 0, :f :init, :value {{:x 0, :y 0}}}}
{{:type :ok, :process 0, :f :txn, :value [{first}]}}
{{:type :ok, :process 1, :f :txn, :value [{second}]}}""")
    assert (judged(path, "ser").outcome, judged(path, "si").outcome) == (ser, si)


@pytest.mark.parametrize(
    ("first", "second", "ser", "si"),
    [
        ('["range",1,5,[],[]],["w",1,1,true]', '["range",1,5,[],[]],["w",2,2,true]',
         "invalid", "valid"),
        ('["range",1,5,[],[]],["w",1,1,true]', '["range",2,5,[],[]],["w",2,2,true]',
         "valid", "valid"),
        ('["r",7,70,false],["w",7,71,true]', '["range",null,null,[],[]]', "invalid", "invalid"),
        ('["d",7,71,70,false,true]', '["range",7,"nil",[],[{"id":7,"val":71}]]', "valid", "valid"),
        ('["d",7,71,70,false,true]', '["range",7,7,[{"id":8,"val":80}],[]]', "invalid", "invalid"),
    ],
)  # fmt: skip
def test_viper_ranges(tmp_path, first, second, ser, si):
    """Two clients: skew by ranges, rows that were there at first, tombstones, a row outside."""
    for name, ops in (("J0.log", first), ("J1.log", second)):
        (tmp_path / name).write_text(f'{{"value": [{ops}]}}\n')
    assert (judged(tmp_path, "ser").outcome, judged(tmp_path, "si").outcome) == (ser, si)


ROW = {"a": 1, "b": None, "c": "s", "d": 1.5}


@pytest.mark.parametrize(
    ("predicate", "matches"),
    [
        (("=", "a", 1), True),
        (("=", "a", 1.0), True),
        (("=", "a", "1"), False),
        (("!=", "a", 2), True),
        (("<", "d", 2), True),
        (("between", "a", 1, 1), True),
        (("between", "a", 2, 3), False),
        (("in", "a", [3, 1]), True),
        (("in", "a", []), False),
        (("mod", "a", 2, 1), True),
        (("=", "c", "s"), True),
        (("=", "key", "k"), True),
        (("null", "b"), True),
        (("not", ("null", "a")), True),
        # A comparison with NULL is unknown, and so is its negation.
        (("=", "b", None), False),
        (("=", "b", 1), False),
        (("!=", "b", 1), False),
        (("not", ("=", "b", 1)), False),
        (("or", ("=", "b", 1), ("=", "a", 1)), True),
        (("and", ("=", "b", 1), ("=", "a", 1)), False),
        (("not", ("and", ("=", "b", 1), ("=", "a", 2))), True),
        (("not", ("or", ("=", "b", 1), ("=", "a", 2))), False),
        (("in", "a", [None, 2]), False),
        (("not", ("in", "a", [None, 2])), False),
        (("and",), True),
        (("or",), False),
        (True, True),
        ("[:and [:> :a 0] [:< :d 2]]", True),
        ({"where": ("=", "a", 1)}, True),
    ],
)
def test_three_valued_logic(predicate, matches):
    """Reader and checker evaluate a predicate alike, as SQL does."""
    assert bool(missed(predicate, [ROW])) == matches


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (("<", "c", "t"), "not numbers, which depends on the collation"),
        (("<", "c", 3), "not numbers, which depends on the collation"),
        (("=", "z", 3), "has no column 'z'"),
        (("like", "c", "s%"), "a predicate on patterns"),
        (("limit", "c", 3), "tells nothing about the rows that it did not return"),
        (("count", "c"), "an aggregate"),
        (("frobs", "c"), "an unknown predicate"),
        (("=",), "a predicate with 0 arguments"),
        ("[:limit 3]", "tells nothing about the rows"),
        ({"where": ("=", "a", 1), "limit": 3}, "tells nothing about the rows"),
        (("mod", "a", 0, 1), "a modulus that is not a positive 64-bit integer"),
        (("mod", "a", 2.5, 1), "a modulus that is not a positive 64-bit integer"),
        (("mod", "a", 2, 0.5), "a remainder that is not a 64-bit integer"),
        (("=", "a", 2**64 + 1), "cannot compare exactly"),
        (3, "not a predicate"),
    ],
)
def test_what_cannot_be_judged_is_refused(predicate, message):
    with pytest.raises(HistoryError, match=message):
        missed(predicate, [ROW])


def test_unborn_loaded_deleted_and_not_known_are_four_things():
    """Only a version that matches would have been returned."""
    scan = [("scan", POSITIVE, {})]
    assert check("ser", [("w", "x", 1)], scan).outcome == "valid"  # before it was born
    assert check("ser", [("w", "x", 0)], scan, initial=5).outcome == "valid"
    assert check("ser", [("r", "x", 5)], scan, initial=5).outcome == "invalid"  # it was loaded
    assert check("ser", [("delete", "x")], scan, initial=5).outcome == "valid"
    unread = Transaction(ops=[("scan", POSITIVE, UNKNOWN)])
    assert check("ser", [("r", "x", 5)], unread, initial=5).outcome == "valid"


def test_nil_is_a_deleted_row_or_one_that_never_was():
    """A row that was loaded is nil only after its delete."""
    deleted = [("delete", "x")]
    assert check("ser", deleted, [("r", "x", None)]).outcome == "valid"
    nil = [("r", "x", None), ("w", "y", 1)]
    assert check("ser", [*deleted, ("r", "y", 1)], nil).outcome == "valid"
    assert check("ser", [*deleted, ("r", "y", 1)], nil, initial={"x": 5}).outcome == "invalid"
    assert check("ser", deleted, [("r-not-in", "x", [None])]).outcome == "invalid"


def test_own_rows_are_seen():
    """A read of the key that is written later is external all the same."""
    own = [
        ("insert", "x", 1),
        ("scan", POSITIVE, {"x": 1}),
        ("delete", "x"),
        ("scan", POSITIVE, {}),
    ]
    assert check("ser", own).outcome == "valid"
    missing = check("rc", [("insert", "x", 1), ("scan", POSITIVE, {})])
    assert missing.violation.anomaly == "not my own write"
    later = [("scan", POSITIVE, {}), ("w", "x", 2)]
    assert check("ser", [("w", "x", 1)], [("r", "x", 1), *later]).outcome == "invalid"


def test_a_returned_row_matches():
    """Nothing explains a row that was returned, and does not match."""
    found = check("ser", [("w", "x", 0)], [("scan", POSITIVE, {"x": 0})])
    assert found.outcome == "invalid"


def test_rows_of_one_statement_have_no_order():
    """Read committed orders the reads of a transaction, but not the rows of one predicate read."""
    writes = [("insert", "x", 1), ("insert", "y", 1)]
    assert check("rc", writes, [("scan", ("=", "value", 1), {"x": 1})]).outcome == "valid"
    after = [("r", "x", 1), ("scan", ("=", "value", 1), {"x": 1})]
    assert check("rc", writes, after).outcome == "invalid"


def test_tables():
    """A predicate of a table is about keys that are pairs with its name."""
    rows = [("w", ("t", 1), {"v": 1}), ("w", ("u", 1), {"w": 1})]
    scan = ("scan", {"table": "t", "where": ("and", (">=", "key", 1), ("=", "v", 1))}, {})
    h = history(rows, [scan])
    (missed,) = h.operations_of(1)
    assert h.describe_op(missed) == '["t" 1] not found'
    versions = h.list_values(int(h.columns.op_value[missed]))
    assert [h.value(version) for version in versions] == ["{:v 1}"]
    with pytest.raises(HistoryError, match="a returned row of another table"):
        history(rows, [(*scan[:2], {("u", 1): {"w": 1}})])
    with pytest.raises(HistoryError, match=r"transaction 2, operation 1: the row .* has no column"):
        history(rows, [("scan", ("=", "v", 1), {})])


def test_rows_that_the_recorder_judged():
    """Then no predicate is evaluated."""
    writes = [[("w", "x", v), ("w", "y", v)] for v in range(3)]
    scan = ("scan", None, {"x": 1}, {"y": [1]})
    assert check("ser", *writes, [scan]).outcome == "invalid"
    h = history(*writes, [scan])
    assert list(h.transaction(3).ops) == [scan]


def test_python_objects_come_back():
    """Failed operations and named sources count operations as they were given."""
    scan = ("scan", "{:where [:and [:>= :v 1] [:< :v 3]]}", {"x": {"v": 2, "w": None}})
    given = [
        Transaction(ops=[("w", "x", {"v": 2, "w": None}), ("w", "y", {"v": 1}), ("delete", "y")]),
        Transaction(
            ops=[("r", "z", UNKNOWN), scan, ("scan", ":true", UNKNOWN), ("r", "x", None, (0, 0))],
            failed=(0,),
        ),
    ]
    h = History.from_transactions(given)
    back = h.transaction(1)
    assert h.transaction(0).ops == given[0].ops
    assert back.ops[1] == scan
    assert back.ops[2] == ("scan", "{:where :true}", UNKNOWN)
    assert back.ops[3][3] == (0, 0)
    assert back.failed == (0,)


def test_round_trip(tmp_path):
    """EDN holds predicate reads and deletes; JSON, whose keys are strings, refuses them."""
    path = tmp_path / "h.edn"
    path.write_text(
        """{:type :ok, :f :txn, :process 0, :value [[:insert :x {:v 1}] [:delete :x]]}
{:type :ok, :f :txn, :process 1, :value [[:rp {:where [:= :v 1]} {:x {:v 1}}] [:r :x nil]]}
{:type :ok, :f :txn, :process 1, :value [[:rp {:where [:null :v]} {}]]}
{:type :info, :f :txn, :process 2, :value [[:rp [:between :v 1 2] nil] [:w :y {:v 1}]]}
"""
    )
    h = isolang.load_history(path)
    again = tmp_path / "again.edn"
    isolang.save_history(h, again)
    assert [t.ops for t in isolang.load_history(again).transactions()] == [
        t.ops for t in h.transactions()
    ]
    with pytest.raises(HistoryError, match="cannot be expressed"):
        isolang.save_history(h, tmp_path / "h.json", format="jepsen-json")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[[:rp {:where [:like :v 3]} {}]]", "line 1, column 47: a predicate on patterns"),
        ("[[:rp [:= :v 1] {:x {:w 1}}]]", "line 1: the row '{:w 1}' has no column 'v'"),
        ("[[:rp [:= :v 1] {:x nil}]]", "a returned row that is nil"),
        ("[[:rp [:= :v 1] {:x 1 :x 1}]]", "has no column 'v'"),
        ("[[:rp [:= 1] {:x 1 :x 1}]]", "a row that was returned twice"),
        ("[[:rp [:= 1] [1]]]", "a predicate read whose rows are no map"),
        ("[[:delete]]", "a micro-operation without a key"),
        ("[[:delete :x 3]]", "a delete with a value"),
    ],
)
def test_wrong_edn(value, message, tmp_path):
    path = tmp_path / "h.edn"
    path.write_text(f"{{:type :ok, :f :txn, :process 0, :value {value}}}\n")
    with pytest.raises(isolang.errors.IsolangError) as error:
        isolang.load_history(path)
    assert message in str(error.value)


def test_the_checkers_judge_the_rows_themselves():
    """Operations that do not fit the predicate are certified by neither."""
    from isolang.certify.native import check_natively
    from isolang.certify.proofs import Witness
    from isolang.certify.witness import check_witness

    good = history([("w", "x", 1)], [("scan", POSITIVE, {})])
    found = isolang.check(good, "ser")
    for change in ("list", "kind"):
        h = history([("w", "x", 1)], [("scan", POSITIVE, {})])
        if change == "list":
            h.columns.set_value(1, h.columns.add_list([]))
        else:
            h.columns.begin_statement("[:= :value 1]", 1)
        witness = Witness.of([-1, 2], [0, 1], [0])
        spec = load_spec("ser")
        with pytest.raises(NotCertifiedError):
            check_natively(h, spec, witness)
        with pytest.raises(NotCertifiedError):
            check_witness(h, spec, [-1, 2], [0, 1], [0])
    assert found.certified


@pytest.mark.parametrize("spec", ["pl-2-99", "repeatable-read"])
def test_repeatable_read_is_weaker_than_pl_3(spec):
    """A cycle of predicate anti-dependencies alone does not violate it."""
    assert check(spec, *SKEW).outcome == "valid"
    assert check("pl-3", *SKEW).outcome == "invalid"
    assert check(spec, [("w", "x", 0)], [("scan", POSITIVE, {"x": 0})]).outcome == "invalid"
    items = [("r", "x", None), ("w", "y", 1)], [("r", "y", None), ("w", "x", 1)]
    assert check(spec, *items).outcome == "invalid"


def test_cursor_stability_counts_rows_only():
    """A predicate read that missed a row is no read of it under PL-CS."""
    missed = [("scan", ["<=", "value", 2], {}), ("w", "x", 1)]
    other = [("r", "x", None), ("insert", "x", 0)]
    assert check("pl-cs", missed, other).outcome == "valid"
    assert check("pl-cs", [("r", "x", None), ("w", "x", 1)], other).outcome == "invalid"


def test_what_an_indeterminate_one_returned_may_be_known(tmp_path):
    """Then its transaction reads: here its session does not see on what it saw."""
    path = tmp_path / "h.edn"
    path.write_text(
        """{:type :invoke, :f :txn, :process 0, :value [[:rp {:where [:= :value 1]} nil]]}
{:type :ok, :f :txn, :process 0, :value [[:rp {:where [:= :value 1]} {:x 1}]]}
{:type :invoke, :f :txn, :process 0, :value [[:rp {:where [:>= :value 0]} nil] [:insert :x 1]]}
{:type :info, :f :txn, :process 0, :value [[:rp {:where [:>= :value 0]} {}] [:insert :x 1]]}
"""
    )
    assert isolang.check(isolang.load_history(path), "mr").outcome == "invalid"


def test_a_row_that_nobody_wrote_comes_from_thin_air():
    """Both checkers say so, whatever it matches."""
    h = history([("scan", ("not", ("=", "key", "z")), {"x": {"a": 1, "b": 1}})])
    found = isolang.check(h, "ser")
    assert (found.outcome, found.certified) == ("invalid", True)
    assert found.violation.anomaly == "thin-air read"
    check_refutation(h, load_spec("ser"), found.refutation.steps)
    assert isolang.check(h, "ser", encoding="relational").outcome == "invalid"


@pytest.mark.parametrize("rows", [{}, {"x": 1}])
def test_a_pickle_keeps_predicate_reads_and_deletions(rows):
    """What is sent to another process is judged there as here, before and after it was lowered."""
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1)], session=0, begin=0, end=1),
            Transaction([("scan", "[:= :value 1]", rows)], session=1, begin=2, end=3),
            Transaction([("delete", "x")], session=0, begin=4, end=5),
            Transaction([("r", "x", None)], session=1, begin=6, end=7),
        ]
    )
    sent = replace(history, columns=pickle.loads(pickle.dumps(history.columns)), _lazy={})
    assert list(sent.transactions()) == list(history.transactions())
    assert sent.columns.predicates == history.columns.predicates
    here, there = isolang.check(history, "sser"), isolang.check(sent, "sser")
    assert here.outcome == there.outcome == ("valid" if rows else "invalid")
    again = pickle.loads(pickle.dumps(sent.columns))
    again.begin_transaction(0, 0, 8, 9)
    assert again.statement_txn.tolist() == [1]
