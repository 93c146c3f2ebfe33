"""The kernel, its definitions and isolang agree on random levels; many ask only who read."""

import random
from collections import Counter
from contextlib import suppress
from itertools import product

import pytest
from oracle.history import parse
from oracle.pipeline import to_tool
from support.kernel import history_and_level, proof_of, unsupported_reason
from support.kernel_definitions import every_choice, satisfies, says_where_from, size
from support.kernel_definitions import parse as parse_text
from support.kernel_levels import random_level, small_histories

from isolang import History, Transaction
from isolang.api import check
from isolang.certify.errors import NotCertifiedError
from isolang.certify.kernel import check_by_kernel, run_kernel
from isolang.errors import SpecError, UnsupportedError
from isolang.language.load import load_spec

LARGEST = 1_000
ADYA = 'spec a "a"\ninclude "adya.iso"\n'


def drawn(numbers):
    """Yield random histories and levels that the kernel covers, with their text."""
    for (number, history), draw in product(small_histories(numbers), range(3)):
        try:
            spec = load_spec(random_level(random.Random(f"{number} {draw}")))
        except SpecError:
            continue
        if not unsupported_reason(history, spec):
            text = history_and_level(history, spec)
            if size(text) <= LARGEST:
                yield history, spec, text


def answers(program, text, rng=None):
    """Yield for each choice whether the kernel accepts it as a witness, and whether it should.

    The kernel finds an order of all transactions itself, so the choices have none; there, a legal
    choice may be one. With ``rng``, draw at most three right and three wrong choices.
    """
    history, has_order, checks = parse_text(text)
    judged = any(says_where_from(e) for _, e in checks)
    by_answer = {True: [], False: []}
    for choice in every_choice(history, False, judged=judged):
        right = choice.is_legal() and (has_order or choice.meets_all(checks))
        by_answer[right].append(choice)
    for right, choices in by_answer.items():
        for choice in rng.sample(choices, min(3, len(choices))) if rng else choices:
            code, _ = run_kernel(program, text + choice.witness())
            assert code in (0, 1)
            yield code == 0, right


def is_exact(text):
    """Return whether the kernel accepts every witness of the level in a text."""
    return {"order", "inter", "minus"}.isdisjoint(text.split())


@pytest.mark.parametrize(
    ("checks", "notation", "valid"),
    [
        ("acyclic so | ([R] ; ww) as c", "!w(x,1) || r(x,1)", True),
        ("empty [R] as c", "!w(x,1) || r(x,1)", True),
        ("empty [R] as c", "w(x,1) || r(x,1)", False),
        ("empty [R] as c", "w(x,1) r(x,1)", True),
        ("empty [R] as c\nacyclic wr as d", "w(x,1) r(x,2)", False),
        ("empty [W] ; so ; [W] as c", "?w(x,1) || r(x,1)", False),
        ("empty [W] ; so ; [W] as c", "?w(x,1) || r(x,2)", True),
        ("empty for x: ([W[x]] ; so) as c", "r(y,nil)", False),
        ("empty for x: [W[x]] as c", "!r(y,1)", False),
        ("empty for x: [W[x]] as c\nacyclic wr as d", "!w(y,1)", False),
        ("empty (for x: [W[x]]) ; so ; [R] as c", "r(y,3)", True),
        ("irreflexive [R] ; rw as c", "r(x,nil) w(x,1)", True),
        ("acyclic wr as c", "w(x,1) w(x,2) r(x,2)", True),
        ("acyclic wr as c", "w(x,1) w(x,2) r(x,1)", False),
        ("acyclic wr as c", "append(x,1) append(x,2) r(x,[1 2])", True),
        ("empty for x: (ww[x] ; ww[x]) as c", "w(y,1) || w(x,1) || w(x,2)", False),
        (
            "irreflexive for x: (for y: (ww[x] ; ww[y])) as c",
            "w(x,1) w(y,1) || w(x,2) w(y,2)",
            True,
        ),
        (
            "empty [W] | (wr ; rw) as c",
            "?append(x,1) append(x,2) r(x,[1 2 3]) || append(x,3) r(x,[1 2])",
            False,
        ),
        ("irreflexive [R] ; rw ; rw as c", "r(x,nil) w(x,1) || r(x,nil) w(x,2)", False),
    ],
)
def test_small_cases(kernel, checks, notation, valid):
    """Of every choice, the kernel says what the definition says.

    Where reads are not judged, a read that has a candidate has a source, and a key that is only
    read is a key.
    """
    history, spec = to_tool(parse(notation)), load_spec(ADYA + checks + "\n")
    text = history_and_level(history, spec)
    verdict = check(history, spec, certify=False)
    assert type(verdict).__name__ == ("Valid" if valid else "Invalid")
    assert satisfies(text) == valid
    with suppress(NotCertifiedError):
        check_by_kernel(history, verdict.spec, proof_of(verdict))
    pairs = list(answers(kernel, text))
    assert all(accepts == right for accepts, right in pairs)
    assert any(accepts for accepts, _ in pairs) == valid


def test_a_history_without_keys(program):
    """W is the union over all keys, so it is empty, though T0 wrote every key."""
    history, spec = (
        History.from_transactions([Transaction([])]),
        load_spec(ADYA + "empty [W] as c\n"),
    )
    text = history_and_level(history, spec)
    assert type(check(history, spec, certify=False)).__name__ == "Valid"
    assert satisfies(text)
    assert list(answers(program, text)) == [(True, True)]


@pytest.mark.parametrize("kind", ["o", "n"])
def test_reads_of_sets(program, kind):
    """One reads the version with the value 5, the other reads the version without."""
    text = (
        f"isolang-kernel 2 history 2 t 1 c - - 1 w 1 5 t 2 c - - 1 {kind} 1 2 5 6 keys 1 "
        "initial 0 beginning 0 level no-order 1 acyclic wr _ "
    )
    assert sorted(answers(program, text)) == [(False, False), (True, True)]


@pytest.mark.slow
def test_choices_at_random_levels(program):
    """Of all choices, the kernel accepts as witnesses exactly those that satisfy the level.

    At levels that it only approximates, it accepts no others.
    """
    rng = random.Random(4)
    seen = Counter()
    for _, _, text in drawn(range(5_000, 5_300)):
        for accepts, right in answers(program, text, rng):
            assert accepts == right if is_exact(text) else accepts <= right, text
            seen[accepts] += 1
    assert min(seen.values()) > 40, seen


@pytest.mark.slow
def test_proofs_at_random_levels(kernel):
    """The definitions say what isolang says, and the kernel rejects none of its proofs."""
    verdicts, accepted = Counter(), Counter()
    for history, spec, text in drawn(range(900)):
        try:
            verdict = check(history, spec, certify=False, threads=1)
        except (UnsupportedError, SpecError):
            continue
        kind = type(verdict).__name__
        if kind == "Unknown":
            continue
        judged = any(says_where_from(e) for _, e in parse_text(text)[2])
        assert satisfies(text) == (kind == "Valid"), text
        verdicts[kind, judged] += 1
        try:
            check_by_kernel(verdict.history, verdict.spec, proof_of(verdict))
        except NotCertifiedError:
            continue
        accepted[kind] += 1
    assert len(verdicts) == 4
    assert min(verdicts.values()) > 20, verdicts
    assert min(accepted.values()) > 15, accepted
