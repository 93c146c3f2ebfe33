"""The two checkers: right certificates pass both, and both agree on mutated ones."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.forging import tampered_arrays
from support.certify import (
    LEVELS,
    RA,
    SER,
    SI,
    decide,
    history,
    prefix_holds,
    refute,
    txn,
    verdicts_of_both,
    witness_arrays,
)

from isolang.certify.proofs import Refutation, Witness

HISTORIES = {
    "serial": history(txn("w(x,1) w(y,1)", 1), txn("r(x,1) r(y,1)", 1)),
    "write-skew": history(txn("r(x,nil) r(y,nil) w(x,1)", 1), txn("r(x,nil) r(y,nil) w(y,2)", 2)),
    "long-fork": history(
        txn("w(x,1)", 1), txn("w(y,1)", 2), txn("r(x,1) r(y,nil)", 3), txn("r(x,nil) r(y,1)", 4)
    ),
    "lost-update": history(txn("r(x,nil) w(x,1)", 1), txn("r(x,nil) w(x,2)", 2)),
    "causality": history(txn("w(x,1)", 1), txn("r(x,1) w(y,1)", 2), txn("r(y,1) r(x,nil)", 3)),
    "fractured": history(txn("w(x,1) w(y,1)", 1), txn("r(x,nil) r(y,1)", 2)),
    "stale": history(txn("w(x,1)", 1), txn("r(x,nil)", 1)),
    "stale-time": history(txn("w(x,1)", 1, begin=0, end=1), txn("r(x,nil)", 2, begin=2, end=3)),
    "touching-times": history(txn("w(x,1)", 1, begin=0, end=1), txn("r(x,nil)", 2, begin=1, end=3)),
    "re-read": history(txn("w(x,1)", 1), txn("r(x,nil) r(x,1)", 2)),
    "never-read": history(txn("w(x,1)", 1), txn("w(x,2) w(y,1)", 1), txn("r(y,1) r(x,1)", 2)),
    "g1c": history(txn("r(y,1) w(x,1)", 1), txn("r(x,1) w(y,1)", 2)),
    "two-sources": history(
        txn("w(x,1)", 1), txn("w(x,2) w(y,5)", 1), txn("w(x,1) w(y,7)", 1), txn("r(x,1) r(y,5)", 2)
    ),
    "maybe-read": history(
        txn("w(x,1)", 1, "maybe"), txn("r(x,1) w(y,1)", 2), txn("r(y,1) r(x,nil)", 3)
    ),
    "maybe-chain": history(
        txn("w(x,1)", 1, "maybe"), txn("r(x,1) w(y,1)", 2, "maybe"), txn("r(y,1) r(x,nil)", 3)
    ),
    "maybe-not": history(txn("r(x,7) w(x,1)", 1, "maybe"), txn("r(x,1)", 2), txn("w(x,1)", 3)),
    "maybe-forced-bad": history(txn("r(x,7) w(x,1)", 1, "maybe"), txn("r(x,1)", 2)),
    "maybe-in-time": history(
        txn("w(x,1)", 1, "maybe", begin=5),
        txn("r(x,nil)", 2, begin=6, end=7),
        txn("r(x,1)", 2, begin=8, end=9),
    ),
    "lists": history(txn("a(x,1) r(x,[1])", 1), txn("a(x,2)", 2), txn("r(x,[1 2])", 3)),
    "list-own": history(txn("a(x,1)", 1), txn("r(x,[1]) a(x,2) r(x,[1 2])", 2), txn("a(x,3)", 3)),
    "list-skips": history(txn("a(x,1)", 1), txn("a(x,2)", 1), txn("r(x,[2])", 2)),
    "list-forks": history(
        txn("a(x,1)", 1), txn("a(x,2)", 2), txn("r(x,[1])", 3), txn("r(x,[2])", 4)
    ),
    "list-split": history(txn("a(x,1) a(x,3)", 1), txn("a(x,2)", 2), txn("r(x,[1 2 3])", 3)),
    "list-half": history(txn("a(x,1) a(x,3)", 1), txn("r(x,[1])", 3)),
    "list-backwards": history(txn("a(x,1) a(x,3)", 1), txn("r(x,[3 1])", 3)),
    "list-twice": history(txn("a(x,1)", 1), txn("r(x,[1 1])", 3)),
    "list-same-twice": history(txn("a(x,1) a(x,1)", 1), txn("r(x,[1 1])", 3)),
    "list-future": history(txn("r(x,[1]) a(x,1)", 1)),
    "list-aborted": history(txn("a(x,1)", 1, "aborted"), txn("a(x,2)", 2), txn("r(x,[1 2])", 3)),
    "list-maybe": history(
        txn("a(x,1)", 1, "maybe"), txn("a(x,2)", 2), txn("r(x,[1 2])", 3), txn("r(x,nil)", 4)
    ),
    "list-maybe-reader": history(
        txn("a(x,1)", 1), txn("a(x,2)", 2), txn("r(x,[2 1]) a(y,1)", 3, "maybe"), txn("r(y,[1])", 4)
    ),
    "set-skew": history(txn("out(x,[2]) w(y,1)", 1), txn("in(y,[nil 3]) w(x,2)", 2)),
    "set-predicate": history(
        txn("w(x,0) w(y,0)", 1), txn("w(x,1) w(y,1)", 2), txn("r(x,1) out(y,[1])", 3)
    ),
    "set-own": history(txn("w(x,1) out(x,[1])", 1), txn("w(x,2) in(x,[1 2])", 2)),
    "set-initial": history(txn("out(x,[nil]) in(x,[2 3])", 1), txn("w(x,2)", 2), initial=2),
    "set-nothing": history(txn("out(x,[nil])", 1), txn("in(y,[nil])", 2)),
    "set-g1a": history(txn("w(x,1)", 1, "aborted"), txn("in(x,[1 4])", 2)),
    "set-g1b": history(txn("w(x,1) w(x,2)", 1), txn("out(x,[nil 2])", 2)),
    "set-future": history(txn("in(x,[1]) w(x,1)", 1)),
    "set-maybe": history(
        txn("w(x,1)", 1, "maybe"), txn("out(x,[nil 2])", 2), txn("in(x,[nil 2])", 3)
    ),
    "set-maybe-two": history(
        txn("w(x,1)", 1, "maybe"), txn("w(x,3)", 2), txn("out(x,[nil])", 3), txn("out(x,[3])", 3)
    ),
    "g1a": history(txn("w(x,1)", 1, "aborted"), txn("r(x,1)", 2)),
    "g1b": history(txn("w(x,1) w(x,2)", 1), txn("r(x,1)", 2)),
    "failed-write": history(txn("!w(x,1) w(x,2)", 1), txn("r(x,1)", 2)),
    "failed-read": history(txn("w(x,2)", 1), txn("!r(x,1) r(x,2)", 2)),
    "unknown": history(txn("w(x,2)", 1), txn("r(x,?) r(x,2)", 2)),
    "future": history(txn("r(x,1) w(x,1)", 1)),
    "not-own": history(txn("w(x,1) r(x,2)", 1), txn("w(x,2)", 2)),
    "not-last-own": history(txn("w(x,1) w(x,2) r(x,1)", 1)),
    "own": history(txn("w(x,1) w(x,2) r(x,2)", 1)),
    "declared-initial": history(
        txn("w(x,5)", 0, "initial"), txn("r(x,5) w(x,1)", 1), txn("r(x,5)", 2)
    ),
    "overwriter-reads": history(
        txn("r(x,nil) w(x,1) w(y,1)", 1), txn("r(x,nil) w(x,2) r(y,nil)", 2), txn("w(x,3)", 3)
    ),
}


def proof_of(name, level):
    h, s = HISTORIES[name], LEVELS[level]
    world, cycles = decide(h, s, judges_reads=level != "PL1")
    if world is not None:
        return Witness.of(*witness_arrays(world))
    steps = refute(h, s, cycles, prefix_holds(h, s))
    assert steps is not None, "no refutation found"
    return Refutation.of(steps)


def pairs():
    for name, h in HISTORIES.items():
        for level in LEVELS:
            if level != "SSER" or h.columns.has_time:
                yield name, level


@pytest.mark.parametrize(("name", "level"), list(pairs()))
def test_right_certificates_are_accepted_by_both(name, level):
    h, s = HISTORIES[name], LEVELS[level]
    assert verdicts_of_both(h, s, proof_of(name, level)) == ("accepted", "accepted")


EXPECTED = """
serial
write-skew SER
long-fork SER SI PC INNER_LOOP
lost-update SER SI PSI INNER_LOOP
causality SER SI PC PSI INNER_LOOP
stale SER SI PC PSI RA
fractured SER SI PC PSI RA INNER_LOOP
g1c SER SI PC PSI RA
"""


def test_the_tiny_solver_knows_the_litmus_table():
    """The verdicts that the certificates above are for, where the language reference fixes them."""
    for line in EXPECTED.strip().splitlines():
        name, *broken = line.split()
        for level in ("SER", "SI", "PC", "PSI", "RA"):
            expected = Refutation if level in broken else Witness
            assert type(proof_of(name, level)) is expected, (name, level)


@pytest.mark.parametrize("level", [name for name in LEVELS if name != "SSER"])
def test_no_history_is_both_valid_and_invalid(level):
    """Witnesses of other histories' worlds are refused wherever a refutation stands."""
    from support.certify import worlds

    s = LEVELS[level]
    for name, h in HISTORIES.items():
        if isinstance(proof_of(name, level), Witness):
            continue
        for world in worlds(h):
            verdicts = verdicts_of_both(h, s, Witness.of(*witness_arrays(world)))
            assert verdicts == ("rejected", "rejected"), (name, world.source, world.orders)


def test_mutated_witnesses_are_judged_alike():
    rng = random.Random(1)
    accepted = rejected = 0
    for name, level in pairs():
        proof = proof_of(name, level)
        if not isinstance(proof, Witness):
            continue
        h, s = HISTORIES[name], LEVELS[level]
        n = h.columns.transactions()
        for _ in range(4):
            source, start, order = tampered_arrays(
                rng, n, proof.source, proof.order_start, proof.order_txn
            )
            verdicts = verdicts_of_both(h, s, Witness.of(source, start, order))
            assert verdicts[0] == verdicts[1], (name, level, source, start, order)
            accepted += verdicts[0] == "accepted"
            rejected += verdicts[0] == "rejected"
    assert accepted > 20
    assert rejected > 300


def mutate(rng, steps, h):
    """One change somewhere in the plain form of a refutation."""
    steps = [_listed(step) for step in steps]
    i = rng.randrange(len(steps))
    what = rng.randrange(6)
    if what == 0:
        del steps[i]
    elif what == 1:
        j = rng.randrange(len(steps))
        steps[i], steps[j] = steps[j], steps[i]
    else:
        spots = list(_spots(steps[i]))
        if spots:
            where, at = rng.choice(spots)
            old = where[at]
            if isinstance(old, bool):
                where[at] = not old
            elif isinstance(old, int):
                where[at] = rng.choice(
                    (old + 1, old - 1, rng.randint(-1, h.columns.transactions()))
                )
            elif isinstance(old, str):
                where[at] = rng.choice(
                    ("so", "rt", "wr", "ww", "rw", "init", "c0", "source", "in", "choice")
                )
            elif old:
                what = rng.randrange(3)
                if what == 0:
                    del old[rng.randrange(len(old))]
                elif what == 1:
                    rng.shuffle(old)
                else:
                    old.append(rng.choice(old))
    return steps


def _listed(raw):
    return [_listed(part) for part in raw] if isinstance(raw, (list, tuple)) else raw


def _spots(raw):
    for i, part in enumerate(raw):
        yield raw, i
        if isinstance(part, list):
            yield from _spots(part)


@pytest.mark.slow
def test_mutated_refutations_that_hold_natively_hold_by_definition():
    rng = random.Random(2)
    accepted = rejected = 0
    for name, level in pairs():
        proof = proof_of(name, level)
        if not isinstance(proof, Refutation):
            continue
        h, s = HISTORIES[name], LEVELS[level]
        for _ in range(10):
            steps = mutate(rng, proof.plain(), h)
            verdicts = verdicts_of_both(h, s, steps)
            # By definition a walk has no beginning; natively its word begins with its first edge.
            assert verdicts != ("rejected", "accepted"), (name, level, steps)
            accepted += verdicts[0] == "accepted"
            rejected += verdicts[0] == "rejected"
    assert accepted > 20
    assert rejected > 300


@pytest.mark.parametrize("level", [name for name in LEVELS if name != "SSER"])
def test_nothing_refutes_a_valid_history(level):
    """SOUND: mutated refutations of the other histories never pass for a valid one."""
    rng = random.Random(3)
    s = LEVELS[level]
    proofs = {name: proof_of(name, level) for name in HISTORIES}
    wrong = [p.plain() for p in proofs.values() if isinstance(p, Refutation)]
    for name, proof in proofs.items():
        if isinstance(proof, Refutation):
            continue
        for steps in wrong:
            for attempt in (steps, mutate(rng, steps, HISTORIES[name])):
                verdicts = verdicts_of_both(HISTORIES[name], s, attempt)
                assert verdicts == ("rejected", "rejected"), (name, attempt)


words = st.sampled_from(
    ["r(x,nil)", "r(x,1)", "r(x,2)", "r(y,1)", "r(y,nil)", "w(x,1)", "w(x,2)", "w(y,1)", "w(y,2)"]
)
list_words = st.sampled_from(
    ["r(x,nil)", "r(x,[1])", "r(x,[1 2])", "r(x,[2 3])", "r(x,[1 2 3])", "r(x,[4])", "r(y,[4])",
     "r(y,[])", "r(x,?)"]
)  # fmt: skip


@st.composite
def histories(draw, lists=False):
    count = draw(st.integers(2, 4))
    transactions = []
    for t in range(count):
        ops = draw(st.lists(list_words if lists else words, min_size=0 if lists else 1, max_size=3))
        if lists:
            ops.insert(draw(st.integers(0, len(ops))), f"a({draw(st.sampled_from('xxy'))},{t + 1})")
        if draw(st.integers(0, 9)) == 0:
            ops[-1] = "!" + ops[-1]
        status = draw(st.sampled_from(["committed"] * 4 + ["maybe", "maybe", "aborted"]))
        begin = draw(st.integers(0, 6))
        end = begin + draw(st.integers(0, 3)) if status == "committed" else None
        transactions.append(txn(" ".join(ops), draw(st.integers(0, 2)), status, begin, end))
    return history(*transactions)


@pytest.mark.slow
@settings(
    max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(histories() | histories(lists=True), st.sampled_from(sorted(LEVELS)))
def test_random_histories(h, level):
    """The tiny solver's verdict can be certified, and the other verdict cannot."""
    from support.certify import worlds

    s = LEVELS[level]
    if level == "SSER" and not h.columns.has_time:
        return
    world, cycles = decide(h, s, judges_reads=level != "PL1")
    if world is not None:
        assert verdicts_of_both(h, s, Witness.of(*witness_arrays(world))) == (
            "accepted",
            "accepted",
        )
    elif len(cycles) <= 40:
        for other in worlds(h):
            assert verdicts_of_both(h, s, Witness.of(*witness_arrays(other))) == (
                "rejected",
                "rejected",
            )
        steps = refute(h, s, cycles, prefix_holds(h, s))
        assert steps is not None
        assert verdicts_of_both(h, s, steps) == ("accepted", "accepted")


@pytest.mark.parametrize("s", [SER, SI, RA], ids=["SER", "SI", "RA"])
def test_an_empty_history_is_valid(s):
    h = history()
    assert verdicts_of_both(h, s, Witness.of([], [0], [])) == ("accepted", "accepted")
    assert verdicts_of_both(h, s, []) == ("rejected", "rejected")
