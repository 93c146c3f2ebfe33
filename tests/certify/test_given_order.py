"""Witnesses of words that return by a step of a given order: ``rt ; rw ; ww`` and its family."""

import random

import pytest
from support.certify import verdicts_of_both
from support.sampling import quick_first

from isolang import check, load_spec
from isolang.certify.proofs import Witness
from isolang.history import History, Transaction
from isolang.history.clock_error import with_clock_error

STEPS = ("rt", "so", "group-rt", "ww", "wr", "rw", "[W]", "[R]", '[label "a"]')
KEYED = (
    *("rt", "so", "group-rt", "ww[x]", "wr[x]", "rw[x]"),
    *("[W[x]]", "[R[x]]", '[label "a"]'),
)


def word(rng, steps, least):
    """Some steps in a row, with alternatives and repetitions."""
    parts = []
    for _ in range(rng.randint(least, 4)):
        step = rng.choice(steps)
        kind = rng.random()
        if kind < 0.15:
            step = f"({step} | {rng.choice(steps)})"
        elif kind < 0.25:
            step = f"({step} ; {rng.choice(steps)})?"
        elif kind < 0.3:
            step = f"({step} | {rng.choice(steps)})^+"
        parts.append(step)
    return " ; ".join(parts)


def random_spec(rng):
    """Of one key, too; some step is of a given order."""
    while True:
        one_key = rng.random() < 0.4
        steps = KEYED if one_key else STEPS
        words = " | ".join(word(rng, steps, 2) for _ in range(rng.choice((1, 1, 2))))
        if any(order in words for order in ("rt", "so")):
            return load_spec(
                f'include "adya.iso"\nirreflexive {"for x: " if one_key else ""}{words} as c "c"'
            )


def random_history(rng):
    """Transactions that overlap, some of unknown outcome, and a version order of no level."""
    times = sorted(rng.sample(range(60), 14))
    transactions, writers = [], {"x": [], "y": []}
    clocks = [0, 0, 0]
    for n in range(7):
        session = rng.randrange(3)
        begin = max(clocks[session], times[n] + rng.randint(-8, 8))
        end = begin + rng.randint(0, 12)
        clocks[session] = end + rng.randint(0, 3)
        ops = []
        for key in rng.sample(("x", "y"), rng.choice((1, 2, 2))):
            kind = rng.choice(("r", "w", "rw"))
            if "r" in kind:
                ops.append(("r", key, None))  # which one it reads is chosen below
            if "w" in kind:
                ops.append(("w", key, n + 1))
                writers[key].append(n)
        status = "maybe" if rng.random() < 0.15 else "committed"
        group = rng.choice((None, "a", "b"))
        transactions.append((ops, session, status, begin, end, group))
    # An indeterminate one took effect if somebody read from it.
    read = [
        n
        for n, (ops, _, status, *_) in enumerate(transactions)
        if status == "maybe" and any(kind == "w" for kind, *_ in ops) and rng.random() < 0.7
    ]
    included = {n for n in range(7) if transactions[n][2] == "committed" or n in read}
    rows, source, t0 = [], [], 7 + len(read)
    for n, (ops, session, status, begin, end, group) in enumerate(transactions):
        made = []
        for kind, key, wrote in ops:
            if kind == "r":
                others = [w for w in writers[key] if w != n and (w in included)]
                value = rng.choice((None, *(w + 1 for w in others)))
                source.append(t0 if value is None else value - 1)
            else:
                value = wrote
                source.append(-1)
            made.append((kind, key, value))
        if n not in included:
            source[len(source) - len(ops) :] = [-1] * len(ops)
        label = rng.choice((None, "a"))
        rows.append(
            Transaction(
                made,
                session=session,
                status=status,
                begin=begin,
                end=end,
                group=group,
                label=label,
            )
        )
    for extra, n in enumerate(read):
        key = next(key for kind, key, _ in transactions[n][0] if kind == "w")
        begin = rng.choice(times)
        rows.append(Transaction([("r", key, n + 1)], session=3 + extra, begin=begin, end=begin + 5))
        source.append(n)
    history = History.from_transactions(rows)
    start, order = [0], []
    for key in range(history.columns.n_keys()):
        own = [w for w in writers[history.key_name(key)] if w in included]
        rng.shuffle(own)
        order += own
        start.append(len(order))
    return history, Witness.of(source, start, order)


@pytest.mark.slow
@pytest.mark.parametrize("part", quick_first(range(4), 2, rest="campaign"))
def test_both_checkers_judge_any_choice_alike(part):
    """Words with one step of a given order, several and repeated ones; clocks may be wrong."""
    rng, said = random.Random(part), {"accepted": 0, "rejected": 0, "beyond": 0}
    for _ in range(250):
        spec = random_spec(rng)
        history, witness = random_history(rng)
        if rng.random() < 0.4:
            history = with_clock_error(history, rng.choice((3, 10, 1000)))
        defined, native = verdicts_of_both(history, spec, witness)
        if native == "not certified":
            said["beyond"] += 1
            continue
        assert native == defined, (spec.texts, history, witness)
        said[native] += 1
    assert min(said["accepted"], said["rejected"]) > 20, said


@pytest.mark.parametrize(
    "word",
    [
        'so ; [label "a"] ; so ; [R[x]] ; rw[x]',
        '[W[x]] ; rt ; [label "a"] ; rt ; [R[x]] ; rw[x]',
        "so ; so ; [R[x]] ; rw[x]",
        "rt ; so ; [R[x]] ; rw[x]",
    ],
)
def test_two_steps_in_a_row_may_leave_the_key(word):
    """Whoever stands between them, with a label or not, need not access the key: the history is
    invalid, and no checker accepts that it is not.
    """
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1)], session=0, begin=0, end=1),
            Transaction([("r", "y", None)], session=0, begin=2, end=3, label="a"),
            Transaction([("r", "x", None)], session=0, begin=4, end=5),
        ]
    )
    spec = load_spec(f'include "adya.iso"\nirreflexive for x: {word} as c "c"')
    verdict = check(history, spec)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert verdicts_of_both(history, spec, Witness.of([-1, 3, 3], [0, 1, 1], [0])) == (
        "rejected",
        "not certified",
    )
