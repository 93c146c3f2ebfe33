"""``isocheck generate``: a random workload on the simulated database, as a history file."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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


def generate_command(
    *,
    target: Annotated[
        str, typer.Argument(metavar="OUT", help="Where to write; - is stdout.")
    ] = "-",
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="As of convert.")] = "edn",
    rule: Annotated[
        str, typer.Option(metavar="RULE", help=f"What the database guarantees: {_RULES}.")
    ] = "serializable",
    bug: Annotated[
        list[str] | None,
        typer.Option(metavar="BUG", help=f"What goes wrong once: {_BUGS}. May be repeated."),
    ] = None,
    sessions: Annotated[int, typer.Option(metavar="N", help="Clients at a time.")] = 10,
    transactions: Annotated[int, typer.Option(metavar="N", help="Transactions.")] = 100,
    operations: Annotated[int, typer.Option(metavar="N", help="Operations of each.")] = 8,
    read_share: Annotated[float, typer.Option(metavar="P", help="Reads among operations.")] = 0.5,
    keys: Annotated[int, typer.Option(metavar="N", help="Keys.")] = 100,
    key_distribution: Annotated[
        str, typer.Option(metavar="NAME", help="uniform, zipfian, hotspot or exponential.")
    ] = "uniform",
    theta: Annotated[float, typer.Option(metavar="X", help="Of zipfian keys.")] = 0.99,
    hot_keys: Annotated[float, typer.Option(metavar="P", help="Share of hot keys.")] = 0.2,
    hot_share: Annotated[float, typer.Option(metavar="P", help="Their share of operations.")] = 0.8,
    values: Annotated[
        int, typer.Option(metavar="N", help="Different values of a key; 0: all different.")
    ] = 0,
    value_theta: Annotated[
        float, typer.Option(metavar="X", help="Zipfian values; 0 is uniform.")
    ] = 0.0,
    read_modify_write: Annotated[
        float, typer.Option(metavar="P", help="Writes that follow a read of their key.")
    ] = 0.0,
    mini_transactions: Annotated[
        bool, typer.Option("--mini-transactions", help="One or two keys, read before written.")
    ] = False,
    lists: Annotated[
        bool, typer.Option("--lists", help="Appends and list reads; EDN only.")
    ] = False,
    appends: Annotated[int, typer.Option(metavar="N", help="With --lists: to each key.")] = 32,
    info_rate: Annotated[float, typer.Option(metavar="P", help="Unknown outcomes.")] = 0.0,
    abort_rate: Annotated[float, typer.Option(metavar="P", help="Aborts.")] = 0.0,
    session_each: Annotated[
        bool, typer.Option("--session-each", help="Each transaction is a session of its own.")
    ] = False,
    lag: Annotated[
        int, typer.Option(metavar="N", help="Events that snapshots and replicas may lag; 0: 8 N.")
    ] = 0,
    replicas: Annotated[int, typer.Option(metavar="N", help="Of causal and read-atomic.")] = 3,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of all random choices.")] = 0,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="WHAT", help="As of convert.")
    ] = None,
    truth: Annotated[
        str, typer.Option(metavar="FILE", help="Write what is true of it here, as JSON.")
    ] = "",
) -> None:
    """Write a simulated history whose truth is known."""
    given = {**locals(), "bugs": tuple(bug or ())}
    raise typer.Exit(generate(target, to=to, options=given, drop=drop or [], truth=truth))


def generate(
    target: str, *, to: str, options: dict[str, Any], drop: Collection[str], truth: str
) -> int:
    """Simulate, write, say on stderr what is true of it, and give the exit code.

    Args:
        target: a path, or ``-``.
        to: the format.
        options: the fields of :class:`isolang.workload.Workload`, among others.
        drop: as of ``write_history``; real time is left out of formats that have none.
        truth: where to write the truth; empty for nowhere.
    """
    from isolang.history.formats import ALIASES
    from isolang.history.writers import WITH_REAL_TIME, write_history
    from isolang.workload import Workload
    from isolang.workload import generate as simulate

    left_out = set(drop)
    if ALIASES.get(to, to) not in WITH_REAL_TIME:
        left_out.add("real-time")
    try:
        history = simulate(Workload(**{f.name: options[f.name] for f in fields(Workload)}))
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
