"""What the checker by definition reads off a history, of histories known by hand."""

from isolang.certify.facts import Facts
from isolang.history import History, Transaction

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
    assert facts.given("rt", 0, 1)
    assert facts.given("rt", 0, 2)
    assert not facts.given("rt[W,R]", 0, 1)
    assert facts.given("rt[W,R]", 0, 2)
    assert not facts.given("rt[W,W]", 0, 2)
