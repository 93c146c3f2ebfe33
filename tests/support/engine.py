"""Runs the native engine alone, on expressions that only its search can decide."""

from isolang.history import History, Transaction
from isolang.language.classify.event_graph import classify
from isolang.language.load import load_spec
from isolang.problem import build_problem
from isolang.solvers.engine import solve
from support.certify import some_strategy

# Expressions whose version orders need separate nodes, because a cycle of ww alone is no violation;
# expressions whose sessions need auxiliary chains, because sessions do not compose in them; and
# several checks over the same choices.
ODD = {
    "wr ; ww": "acyclic wr ; ww as a",
    "ww ; rw": "acyclic ww ; rw as a",
    "so ; rw": "acyclic so ; rw as a",
    "rt ; rw | wr": "acyclic (rt ; rw) | wr as a",
    "so | wr | rw": "acyclic so | wr | rw as a",
    "two checks": "acyclic so | ww as a\nacyclic wr | ww as b",
    "odd checks": "acyclic wr ; ww as a\nacyclic so ; rw as b",
}
PLANS = {name: classify(load_spec(f'include "adya.iso"\n{text}\n')) for name, text in ODD.items()}
PLANS |= {name: classify(load_spec(name)) for name in ("ser", "si", "pc", "pl-3", "pc-nosession")}


def contended_history(rng, transactions=10, keys=2, values=2, sessions=3):
    """Return a random history with few keys and few values, so that many choices stay open.

    It is a serial run in which some reads were changed.
    """
    state = {}
    given = []
    for _ in range(transactions):
        ops = []
        for _ in range(rng.randint(1, 3)):
            key = rng.randrange(keys)
            if rng.random() < 0.5:
                state[key] = rng.randint(1, values)
                ops.append(("w", key, state[key]))
            else:
                changed = rng.random() < 0.2
                ops.append(("r", key, rng.randint(1, values) if changed else state.get(key)))
        status = "maybe" if rng.random() < 0.2 else "committed"
        begin = rng.randint(0, 8)
        end = None if status == "maybe" else begin + rng.randint(0, 4)
        given.append(
            Transaction(
                ops=ops, session=rng.randrange(sessions), status=status, begin=begin, end=end
            )
        )
    return History.from_transactions(given)


def answer(history, plan, **options):
    problem = build_problem(history)
    if plan.uses_reads_from and problem.anomalies(limit=1):
        return None
    options.setdefault("strategy", some_strategy(history))
    return solve(history.columns, problem.native, plan.automata, seconds=60, **options)
