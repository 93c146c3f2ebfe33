"""Tool and oracle on specifications that the engine decides in parts."""

from __future__ import annotations

import random
from dataclasses import replace

from isolang.api import check
from isolang.certify.verification import accept
from isolang.language.classify.relational import Relational
from isolang.language.classify.route import route
from isolang.language.meaning.core import Spec
from isolang.language.meaning.mentions import mentioned
from isolang.language.vocabulary import COMPARING_TIMES
from isolang.verdict import Invalid, Valid

from . import relational
from .generate import any_history, random_history, random_times
from .history import History, show, timed
from .pipeline import to_tool

# List reads that contradict one another are anomalies by themselves; the oracle knows them only
# where an order must contain what they show.
OF_LISTS = ("incompatible order", "G0", "duplicate element")


def small(rng: random.Random) -> History:
    """At most four transactions, some of which may be of unknown outcome."""
    while True:
        history = (any_history if rng.random() < 0.6 else random_history)(rng)
        if rng.random() < 0.3:
            history = tuple(
                replace(t, status="maybe") if t.status == "committed" and rng.random() < 0.4 else t
                for t in history
            )
        if len(history) <= 4:
            return history


def labelled(rng: random.Random, history: History) -> History:
    """Some transactions are red, some blue, some both."""
    choices: tuple[tuple[str, ...], ...] = ((), ("red",), ("red",), ("blue",), ("red", "blue"))
    return tuple(replace(t, labels=rng.choice(choices)) for t in history)


def compare(rng: random.Random, spec: Spec, history: History | None = None) -> tuple[str, str]:
    """How tool and oracle differ on a history, random if it is not given, and how the tool came to
    its verdict.
    """
    history = small(rng) if history is None else history
    if COMPARING_TIMES & mentioned(spec) and not timed(history):
        history = random_times(rng, history)
        if not timed(history):
            return "", "no times"
    try:
        expected = "valid" if relational.satisfied(history, spec, limit=1_500) else "invalid"
    except relational.TooLargeError:
        return "", "too large"
    way = route(spec)
    given = to_tool(history)
    verdict = check(given, way)
    if verdict.outcome == "unknown" and verdict.cause == "unsupported":
        return "", "unsupported"
    if verdict.outcome != expected:
        if isinstance(verdict, Invalid) and verdict.violation.anomaly in OF_LISTS:
            return "", "of lists"
        reason = verdict.reason if verdict.outcome == "unknown" else ""
        return f"expected {expected}, got {verdict.outcome} {reason}: {show(history)}", ""
    if isinstance(verdict, Valid) and any(c.flag for c in spec.checks):
        try:
            held = relational.flags(history, spec)
        except relational.TooLargeError:
            held = {}
        said = {n: f"flag `{n}` holds" in verdict.notes for n in held}
        if said != held:
            return f"flags {held}, said {verdict.notes}: {show(history)}", ""
    if not isinstance(way, Relational) or way.parts is None:
        return "", f"{way.kind}"
    by = "engine" if verdict.encoding != "relational" else "search"
    if by == "engine":
        if not verdict.certified:
            return f"{verdict.outcome}, not certified: {show(history)}", ""
        accept(given, spec, verdict.certificate().proof)
    return "", f"{verdict.outcome} by {by}"
