"""``isocheck generate``: a random workload on the simulated database, as a history file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolang.cli.arguments import Parser, at_least
from isolang.cli.report import EXIT_INPUT, EXIT_VALID
from isolang.errors import IsolangError

if TYPE_CHECKING:
    from collections.abc import Collection

_RULES = (
    "strict-serializable, serializable, strong-snapshot, snapshot, prefix, causal, read-atomic, "
    "read-committed"
)
_BUGS = (
    "lost update, write skew, long fork, stale read, aborted read, fractured read, "
    "lost session guarantee, clock skew"
)


_NUMBERS: tuple[tuple[str, str, int, str], ...] = (
    ("--sessions", "N", 10, "Clients at a time."),
    ("--transactions", "N", 100, "Transactions."),
    ("--operations", "N", 8, "Operations of each."),
    ("--keys", "N", 100, "Keys."),
    ("--values", "N", 0, "Different values of a key; 0: all different."),
    ("--appends", "N", 32, "With --lists: to each key."),
    ("--lag", "N", 0, "Events that snapshots and replicas may lag; 0: 8 N."),
    ("--replicas", "N", 3, "Of causal and read-atomic."),
)
_SHARES: tuple[tuple[str, str, float, str], ...] = (
    ("--read-share", "P", 0.5, "Reads among operations."),
    ("--theta", "X", 0.99, "Of zipfian keys."),
    ("--hot-keys", "P", 0.2, "Share of hot keys."),
    ("--hot-share", "P", 0.8, "Their share of operations."),
    ("--value-theta", "X", 0.0, "Zipfian values; 0 is uniform."),
    ("--read-modify-write", "P", 0.0, "Writes that follow a read of their key."),
    ("--info-rate", "P", 0.0, "Unknown outcomes."),
    ("--abort-rate", "P", 0.0, "Aborts."),
)


def declare(p: Parser) -> None:
    """Declare the arguments of the command."""
    p.argument("target", "OUT", "Where to write; - is stdout.", nargs="?", default="-")
    p.option("--to", metavar="FORMAT", default="edn", help="As of convert.")
    p.option(
        "--rule", metavar="RULE", default="serializable",
        help=f"What the database guarantees: {_RULES}.",
    )  # fmt: skip
    p.repeated(
        "--bug", dest="bugs", metavar="BUG", help=f"What goes wrong once: {_BUGS}. May be repeated."
    )
    p.option(
        "--key-distribution", metavar="NAME", default="uniform",
        help="uniform, zipfian, hotspot or exponential.",
    )  # fmt: skip
    for flag, metavar, number, what in _NUMBERS:
        p.option(flag, metavar=metavar, type=int, default=number, help=what)
    for flag, metavar, share, what in _SHARES:
        p.option(flag, metavar=metavar, type=float, default=share, help=what)
    p.switch("--mini-transactions", help="One or two keys, read before written.")
    p.switch("--lists", help="Appends and list reads; EDN only.")
    p.switch("--session-each", help="Each transaction is a session of its own.")
    p.option("--seed", metavar="N", type=at_least(0), default=0, help="Of all random choices.")
    p.repeated("--drop", metavar="WHAT", help="As of convert.")
    p.option("--truth", metavar="FILE", default="", help="Write what is true of it here, as JSON.")


def generate(
    target: str,
    *,
    to: str,
    drop: Collection[str],
    truth: str,
    bugs: Collection[str],
    **workload: Any,
) -> int:
    """Simulate, write, say on stderr what is true of it, and give the exit code.

    Args:
        target: a path, or ``-``.
        to: the format.
        drop: as of ``write_history``; real time is left out of formats that have none.
        truth: where to write the truth; empty for nowhere.
        bugs: as of :class:`isolang.workload.Workload`.
        workload: its other fields.
    """
    from isolang.history.formats import ALIASES
    from isolang.history.writers import WITH_REAL_TIME, write_history
    from isolang.workload import Workload
    from isolang.workload import generate as simulate

    left_out = set(drop)
    if ALIASES.get(to, to) not in WITH_REAL_TIME:
        left_out.add("real-time")
    try:
        history = simulate(Workload(bugs=tuple(bugs), **workload))
        where = sys.stdout.buffer if target == "-" else target
        report = write_history(history, where, format=to, drop=left_out)
        if target == "-":
            sys.stdout.buffer.flush()
    except IsolangError as error:
        print(f"isocheck: {error}", file=sys.stderr)
        return EXIT_INPUT
    if truth:
        Path(truth).write_text(json.dumps(history.truth.as_json(), indent=2) + "\n")
    name = "the standard output" if target == "-" else target
    print(
        f"{name}: {report.transactions} transactions, {report.operations} operations "
        f"as {report.format}",
        file=sys.stderr,
    )
    notes = [*history.notes, *report.notes]
    if "real-time" in left_out:
        notes.append("without real time sser and strong-si have no verdict")
    for note in notes:
        print(f"  {note}", file=sys.stderr)
    return EXIT_VALID
