"""Every sentence of an explanation is true of the history, whoever reads it."""

import random
from collections import Counter

import pytest
from oracle import generate, pipeline
from oracle.history import parse, show
from support.sampling import quick_first
from support.sentences import FalseSentenceError, check_violation

from isolang import check, load_spec
from isolang.explain.names import INTRINSIC
from isolang.explain.violation import plain
from isolang.language.classify.route import route

LEVELS = ("pl-1", "pl-2", "rc", "ra", "cc", "psi", "pc", "si", "ser", "strong-si", "sser")
ROUTES = {name: route(load_spec(name)) for name in LEVELS}
# Each is wrong by itself in the way that its name says, at least under PL-2.
WRONG_READS = {
    "thin-air read": ["r(x,7) || w(y,1)", "r(x,[7]) || append(x,1)"],
    "G1a": ["!w(x,1) || r(x,1)", "!append(x,1) || r(x,[1]) || append(x,2)"],
    "G1b": ["w(x,1) w(x,2) || r(x,1)", "append(x,1) append(x,2) || r(x,[1])"],
    "future read": ["r(x,1) w(x,1) || w(y,1)", "r(x,[1]) append(x,1) || w(y,1)"],
    "not my own write": ["w(x,1) r(x,2) || w(x,2)", "append(x,1) r(x,[]) || append(x,2)"],
    "not my last write": ["w(x,1) w(x,2) r(x,1)", "append(x,1) append(x,2) r(x,[2 1])"],
    "incompatible order": ["append(x,1) || append(x,2) || r(x,[1 2]) || r(x,[2 1])"],
    "duplicate element": [
        "append(x,1) || r(x,[1 1])",
        "append(x,1) || append(x,2) || r(x,[1 2 1])",
    ],
    "G0": [
        "append(x,1) append(x,2) || append(x,3) || r(x,[1 3 2]) || append(z,77)",
        "append(x,1) append(x,3) || append(x,2) || r(x,[1 2]) || append(z,77)",
    ],
}  # fmt: skip


def explained(history, level):
    """The violation as in a JSON report, if there is one."""
    verdict = check(pipeline.to_tool(history), ROUTES[level])
    return plain(verdict.violation) if verdict.outcome == "invalid" else None


@pytest.mark.slow
@pytest.mark.parametrize("level", quick_first(LEVELS, 5, rest="campaign"))
def test_what_is_said_of_random_histories_is_so(level):
    """Names, values, places, orders and reasons of whatever anomaly there is."""
    rng = random.Random(level)
    found = Counter()
    timed = level in ("strong-si", "sser")
    while found.total() < 60:
        history = generate.any_history(rng)
        if timed and level not in pipeline.Levels((level,)).applicable(history):
            continue
        violation = explained(history, level)
        if violation is not None:
            found[violation["anomaly"]] += 1
            try:
                check_violation(violation, history)
            except FalseSentenceError as error:
                pytest.fail(f"{level}: {show(history)}: {error}")
    assert len(found) > (1 if level == "pl-1" else 6), found


def test_every_kind_of_wrong_read_is_tried():
    """The table is of all of them, but for those of named sources and stated versions."""
    assert set(WRONG_READS) == set(INTRINSIC.values()) - {"two values", "contradicting versions"}


@pytest.mark.parametrize("level", LEVELS[:-2])
@pytest.mark.parametrize("name", WRONG_READS)
def test_what_is_said_of_wrong_reads_is_so(name, level):
    """Each kind at each level, also where the level allows the read and the lists contradict it."""
    for text in WRONG_READS[name]:
        history = parse(text)
        violation = explained(history, level)
        assert violation is not None or level == "pl-1", text
        if violation is not None:
            check_violation(violation, history)
            assert level == "pl-1" or violation["anomaly"] == name, text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            WRONG_READS["G0"][0],
            "T3 read x = [1 3 2] (<memory> transaction 3, operation 1), which puts the "
            "append(x, 3) of T2 after the append(x, 1) of T1 and before the append(x, 2) of T1.",
        ),
        (
            WRONG_READS["duplicate element"][1],
            "T3 read x = [1 2 1] (<memory> transaction 3, operation 1), which puts the "
            "append(x, 2) of T2 after the append(x, 1) of T1 and before the append(x, 1) of T1.",
        ),
    ],
)
def test_lists_that_contradict_the_order_of_transactions(text, says):
    """Under PL-1 that is all that is wrong, and nobody else's operation is blamed for it."""
    violation = explained(parse(text), "pl-1")
    assert violation["argument"]["conclusion"]["text"] == says
    assert violation["anomaly"] == "G0"
    assert [txn["name"] for txn in violation["transactions"]] == ["T1", "T2", "T3"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("T1", "T2"),
        ("x = nil", "x = 1"),
        ("x = 2", "x = 1"),
        ("the initial value", "which no transaction wrote"),
        ("operation 1", "operation 2"),
        ("'session': '0'", "'session': '1'"),
        ("'omitted': 0", "'omitted': 1"),
    ],
)
def test_false_sentences_are_noticed(old, new):
    """The reader is not of those who accept anything."""
    history = parse("r(x,nil) w(x,1) || r(x,nil) w(x,2)")
    violation = explained(history, "si")
    check_violation(violation, history)
    with pytest.raises((FalseSentenceError, KeyError)):
        check_violation(eval(repr(violation).replace(old, new, 1)), history)


@pytest.mark.slow
@pytest.mark.parametrize("edges", [2, 48, 49, 400])
def test_a_cycle_is_shown_however_long(edges):
    """Each transaction reads what the next one overwrites, all around."""
    ring = [f"r(k{i},nil) w(k{(i + 1) % edges},1)" for i in range(edges)]
    history = parse(" || ".join(ring))
    violation = explained(history, "ser")
    check_violation(violation, history)
    assert len(violation["argument"]["conclusion"]["edges"]) == edges
    assert len(violation["transactions"]) == edges
