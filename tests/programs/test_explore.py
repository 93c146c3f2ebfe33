"""The outcomes of programs, compared with machines that run them: none is missing, none too many.

The machines share nothing with ``explore`` but the syntax tree: they run transactions on states.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

import pytest
from support.sampling import quick_first

from isolang.programs.explore import explore
from isolang.programs.outcomes import outcomes, standing_of_verdict
from isolang.programs.syntax import (
    AbortStep,
    Computed,
    If,
    Number,
    Program,
    ProgramError,
    ReadStep,
    Step,
    Value,
    WriteStep,
    parse_program,
)

LEVELS = ("ser", "pc", "si")
Reads = tuple[tuple[int, ...], ...]


def drawn(rng: random.Random) -> str:
    """A program of up to four transactions, with values computed and conditions."""
    count = iter(range(100))
    sessions = []
    for _ in range(rng.randint(2, 3)):
        own = []
        for _ in range(rng.choice((1, 1, 2))):
            steps: list[str] = []
            known: list[str] = []
            for _ in range(rng.randint(1, 3)):
                key = rng.choice("xy")
                value = rng.choice(("1", "2", "0", *[f"{one} + 1" for one in known], *known))
                kind = rng.random()
                if kind < 0.5:
                    known.append(f"a{next(count)}")
                    steps.append(f"{known[-1]} = r({key})")
                elif kind < 0.85 or not known:
                    steps.append(f"w({key}, {value})")
                else:
                    test = f"{rng.choice(known)} {rng.choice(('=', '<', '!='))} 1"
                    other = rng.choice(("", " else { abort }", f" else {{ w({key}, 3) }}"))
                    steps.append(f"if {test} {{ w({key}, {value}) }}{other}")
            own.append(" ".join(steps))
        sessions.append(" -> ".join(own))
    return f"init x = {rng.choice((0, 1))}\n{' || '.join(sessions)}"


class _Run:
    """One transaction on one state."""

    def __init__(self, steps: Sequence[Step], state: Mapping[str, int]) -> None:
        self.reads: list[int] = []
        self.written: dict[str, int] = {}
        self.aborted = False
        self._state, self._names = state, {"": 0}
        self._run(steps)

    def _run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if self.aborted:
                return
            match step:
                case ReadStep():
                    now = {**self._state, **self.written}.get(step.key, 0)
                    self.reads.append(now)
                    self._names[step.name] = now
                case WriteStep():
                    self.written[step.key] = self._value(step.value)
                case If():
                    test = step.condition
                    left, right = self._value(test.left), self._value(test.right)  # type: ignore[union-attr]
                    true = {"=": left == right, "<": left < right, "!=": left != right}[test.op]  # type: ignore[index]
                    self._run(step.then if true else step.otherwise)
                case AbortStep():
                    self.aborted = True

    def _value(self, value: Value) -> int:
        match value:
            case Number():
                return value.value
            case Computed():
                return self._value(value.left) + self._value(value.right)
        return self._names[value.name]


def orders(program: Program) -> Iterator[tuple[int, ...]]:
    sessions = [session for session, _ in program.transactions()]
    for order in permutations(range(len(sessions))):
        if all(
            earlier < later or sessions[earlier] != sessions[later]
            for i, later in enumerate(order)
            for earlier in order[:i]
        ):
            yield order


def machine(program: Program, level: str) -> set[Reads]:
    """What a machine returns whose transactions commit in some order.

    Each reads a snapshot: of all that committed before it (``ser``), of a beginning of that which
    has all earlier ones of its session (``pc``), and none of what it writes was written between
    (``si``). What aborts commits nothing, and is a transaction of no order: its reads are left out.
    """
    sessions = [session for session, _ in program.transactions()]
    steps = [one for _, one in program.transactions()]
    found: set[Reads] = set()
    for order in orders(program):
        place = {t: i for i, t in enumerate(order)}
        first = [
            max((place[b] + 1 for b in order[: place[t]] if sessions[b] == sessions[t]), default=0)
            for t in order
        ]
        last = [range(i, i + 1) if level == "ser" else range(f, i + 1) for i, f in enumerate(first)]
        for snapshots in product(*last):
            runs: dict[int, _Run] = {}
            for t, length in zip(order, snapshots, strict=True):
                state = dict(program.initial)
                for other in order[:length]:
                    if not runs[other].aborted:
                        state |= runs[other].written
                runs[t] = _Run(steps[t], state)
                between = [runs[o] for o in order[length : place[t]] if not runs[o].aborted]
                mine = set() if level != "si" or runs[t].aborted else runs[t].written.keys()
                if any(not mine.isdisjoint(other.written) for other in between):
                    break
            else:
                found.add(
                    tuple(
                        () if runs[t].aborted else tuple(runs[t].reads) for t in range(len(steps))
                    )
                )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("block", quick_first(range(4), 2, rest="campaign"))
def test_a_level_allows_what_its_machine_returns(block: int) -> None:
    """Serializability, prefix consistency and snapshot isolation allow just what machines return.

    What transactions read that abort is free, so they are compared without it; a machine's aborted
    transaction reads a state, so all that machines return is among the outcomes.
    """
    compared = 0
    for number in range(15):
        program = parse_program(drawn(random.Random(f"{block} {number}")))
        table = outcomes(program, LEVELS)
        aborts = any(one.aborted for one in table.outcomes)
        for level, name in enumerate(LEVELS):
            allowed = {
                tuple(
                    () if t.aborted else tuple(op.value for op in t.operations if op.kind == "r")
                    for t in one.transactions
                )
                for one in table.outcomes
                if standing_of_verdict(one.verdicts[level]) == "allowed"
            }
            ran = machine(program, name)
            assert ran <= allowed, (name, program.texts)
            if not aborts:
                assert ran == allowed, (name, program.texts)
                compared += 1
    assert compared > 10


@pytest.mark.parametrize("seed", range(20))
def test_constants_flow_anywhere(seed: int) -> None:
    """Without values computed, each read returns the initial value or any other's write."""
    rng = random.Random(seed)
    texts = []
    for t in range(3):
        steps = []
        for i in range(rng.randint(1, 3)):
            key = rng.choice("xy")
            steps.append(rng.choice((f"r({key})", f"w({key}, {10 * t + i + 1})")))
        texts.append(" ".join(steps))
    program = parse_program(" || ".join(texts))
    transactions = [steps for _, steps in program.transactions()]
    expected: list[list[int]] = []
    for t, steps in enumerate(transactions):
        own: dict[str, int] = {}
        for step in steps:
            if isinstance(step, WriteStep):
                assert isinstance(step.value, Number)
                own[step.key] = step.value.value
            else:
                assert isinstance(step, ReadStep)
                others = [
                    w.value.value
                    for u, them in enumerate(transactions)
                    for w in them
                    if u != t and isinstance(w, WriteStep) and w.key == step.key
                    if isinstance(w.value, Number)
                ]
                expected.append([own[step.key]] if step.key in own else [0, *others])
    found = [
        tuple(op.value for one in outcome for op in one.operations if op.kind == "r")
        for outcome in explore(program)
    ]
    assert sorted(found) == sorted(product(*expected))


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        # Each value would be its own reason.
        ("a = r(x) w(y, a) || b = r(y) w(x, b)", {(0, 0)}),
        ("a = r(x) if a = 1 { w(y, 1) } || b = r(y) if b = 1 { w(x, 1) }", {(0, 0)}),
        # A constant needs no reason, wherever it is written.
        ("a = r(x) w(y, 1) || b = r(y) w(x, b)", {(0, 0), (0, 1), (1, 1)}),
        ("a = r(x, nil) w(y, 1) || b = r(y, 1)", {(0, 1)}),
        # Each read of the other's write is refused: once, this was looked into for ever.
        ("r(x, nil) w(y, 1) || r(y, nil) w(x, 2)", {(0, 0)}),
        ("init x = -3 w(x, 2 * (1 - 4) + 1) a = r(x) abort || b = r(x)", {(-5, -3), (-5, -5)}),
    ],
)
def test_outcomes(text: str, reads: set[tuple[int, ...]]) -> None:
    """No value comes out of thin air, and aborted and overwritten writes can be read."""
    found = explore(parse_program(text))
    assert {
        tuple(op.value for one in outcome for op in one.operations if op.kind == "r")
        for outcome in found
    } == reads
    assert len(found) == len(reads)


def test_too_many_are_refused() -> None:
    """A program with too many combinations ends with an error that says how many are too many."""
    program = parse_program(" || ".join(f"r(x) r(y) w(x, {i}) w(y, {i})" for i in range(8)))
    with pytest.raises(ProgramError, match="expected at most 1,000"):
        explore(program, most=1000)
