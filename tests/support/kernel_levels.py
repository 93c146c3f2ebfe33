"""Draws random levels that the kernel's language can express, and small histories for them."""

import random

from oracle.generate import any_history
from oracle.generate_crossed import crossed_history
from oracle.pipeline import to_tool

from isolang.errors import HistoryError

_BOUNDS = ("so", "wr", "so | wr", "so | wr | vo", "init", "rt | vo | so")


def small_histories(numbers, largest=3):
    """Yield each number with a random history of few transactions, as isolang reads it."""
    for number in numbers:
        rng = random.Random(number)
        try:
            if number % 3:
                history = any_history(rng)
                read = to_tool(history)
            else:
                crossed = crossed_history(rng)
                history = crossed.history
                read = to_tool(history, crossed.initial, crossed.error)
        except HistoryError:
            continue
        if len(history) <= largest:
            yield number, read


def random_level(rng):
    """Return the text of a random level; some judge reads, some only ask who read."""
    with_order = rng.random() < 0.4
    by_include = with_order and rng.random() < 0.6
    lines = ['spec f "f"', f'include "{"commit-order" if by_include else "adya"}.iso"']
    if with_order and not by_include:
        lines.append(f"exists co : order on T containing {rng.choice(_BOUNDS)}")
    expression = _Expressions(rng, with_order=with_order, judging=rng.random() < 0.7)
    for number in range(rng.randint(1, 2)):
        e = expression.draw(rng.randint(1, 3))
        kind = rng.choice(
            ["acyclic", "irreflexive", "empty", *(["require"] * 3 if with_order else [])]
        )
        bound = " in co" if kind == "require" else ""
        lines.append(f"{kind} ({e}){bound} as c{number}")
    return "\n".join(lines) + "\n"


class _Expressions:
    """Draws expressions of a language with or without an order, and with or without wr and rw."""

    def __init__(self, rng, *, with_order, judging):
        self._rng = rng
        self._plain = ["so", "ww", "init", "rt", "[W]", "[R]", "[T]", "id"]
        self._keyed = ["ww[x]", "[W[x]]", "[R[x]]"]
        if judging:
            self._plain += ["wr", "rw"]
            self._keyed += ["wr[x]", "rw[x]"]
        if with_order:
            self._plain += ["co", "co"]

    def draw(self, depth, *, keyed=False):
        """Return a random expression, in which x may be bound to a key."""
        rng = self._rng
        if depth == 0 or rng.random() < 0.15:
            return rng.choice(self._plain + (self._keyed if keyed else []))
        case = rng.random()
        left = f"({self.draw(depth - 1, keyed=keyed)})"
        if case < 0.7:
            operator = "|" if case < 0.3 else ";" if case < 0.55 else "&" if case < 0.62 else "\\"
            right = f"({self.draw(depth - 1, keyed=keyed)})"
            if operator == "\\" and rng.random() < 0.6:
                right = "id"
            return f"{left} {operator} {right}"
        if case < 0.9:
            return left + rng.choice(["^-1", "^+", "^*", "?"])
        if keyed:
            return f"{left} ; ({self.draw(depth - 1, keyed=True)})"
        return f"for x: ({self.draw(depth - 1, keyed=True)})"
