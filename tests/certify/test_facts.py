"""What the checker by definition reads off a history, of histories known by hand."""

from isolang.certify.facts import Facts
from isolang.history import History, Transaction
from isolang.history.before import with_initial
from isolang.language.meaning.core import Named
from isolang.language.vocabulary import NAMED

WRITER = Transaction(
    [("w", "y", {"v": 1})], session=0, begin=0, end=9, times=[(1, 2)], commit=3
)  # fmt: skip
NOTHING = ("scan", (">", "v", 90), {})
READ = ("r", "y", {"v": 1})


def reader(ops, times, commit=None):
    """The facts of a history in which these are the second transaction's operations."""
    second = Transaction(ops, session=1, begin=10, end=100, times=times, commit=commit)
    facts = Facts(History.from_transactions([WRITER, second]))
    assert facts.op_start[2] - facts.op_start[1] == 1  # the predicate read is no operation
    return facts


def test_the_first_statement_may_say_nothing_of_any_row():
    """A predicate read without rows is answered before the read behind it, and counts."""
    assert reader([NOTHING, READ], [(11, 15), (30, 40)]).first_answered(1) == 15
    assert reader([READ, NOTHING], [(30, 40), (50, 55)]).first_answered(1) == 40


def test_commit_is_sent_after_a_statement_that_says_nothing_of_any_row():
    """Where nothing says when COMMIT was sent, the last statement does, whatever it found."""
    assert reader([READ, NOTHING], [(30, 40), (50, 55)]).commit_sent(1) == 50
    assert reader([READ, NOTHING], [(30, 40), (50, 55)], commit=60).commit_sent(1) == 60
    assert reader([NOTHING, READ], [(11, 15), (30, 40)]).commit_sent(1) == 30


def test_a_step_between_accesses_needs_a_common_key():
    """`rt[W,R]` is less than `rt`: the second transaction reads a key that the first one wrote."""
    facts = Facts(
        History.from_transactions(
            [
                Transaction([("w", "x", 1)], session=0, begin=0, end=1),
                Transaction([("r", "y", None)], session=1, begin=2, end=3),
                Transaction([("r", "x", 1)], session=2, begin=4, end=5),
            ]
        )
    )
    assert facts.relates("rt", 0, 1)
    assert facts.relates("rt", 0, 2)
    assert not facts.relates("rt[W,R]", 0, 1)
    assert facts.relates("rt[W,R]", 0, 2)
    assert not facts.relates("rt[W,W]", 0, 2)


def test_a_read_of_an_own_write_accesses_no_key_of_others():
    """`rt[W,R]` is about what a transaction read of others, and a read of its own write is not."""
    facts = Facts(
        History.from_transactions(
            [
                Transaction([("w", "x", 1)], session=0, begin=0, end=1),
                Transaction([("w", "x", 2), ("r", "x", 2)], session=1, begin=2, end=3),
            ]
        )
    )
    assert facts.relates("rt[W,W]", 0, 1)
    assert not facts.relates("rt[W,R]", 0, 1)


def test_the_rows_of_one_predicate_read_are_read_at_once():
    """No row of a predicate read comes before another one, as statements come one by one."""
    rows = [("scan", (">", "v", 0), {"x": {"v": 1}, "y": {"v": 2}}), ("r", "z", None)]
    writer = Transaction([("w", "x", {"v": 1}), ("w", "y", {"v": 2})], session=0)
    facts = Facts(History.from_transactions([writer, Transaction(rows, session=1)]))
    x, y, z = range(facts.op_start[1], facts.op_start[2])
    assert not facts.reads_first(x, y)
    assert facts.reads_first(x, z)
    assert facts.reads_first(y, z)


def test_nil_does_not_name_what_stands_instead_of_it():
    """A value that is there beside nil has both names, one instead of it has its own."""
    given = [Transaction([("r", "x", None)])]
    beside = History.from_transactions(given, initial=7)
    instead = with_initial(History.from_transactions(given), ("7",))
    assert [Facts(one).nil_is_initial(0) for one in (beside, instead)] == [True, False]


def test_a_label_is_no_level():
    """Both are selected by a name in quotes, and each by its own."""
    one = Transaction([("w", "x", 1)], label="a", level="b")
    facts = Facts(History.from_transactions([one]))
    bears = {(word, name): facts.bears(0, Named(word, name)) for word in NAMED for name in "ab"}
    assert {given for given, holds in bears.items() if holds} == {("label", "a"), ("level", "b")}
