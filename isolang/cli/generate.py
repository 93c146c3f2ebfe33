"""``isocheck generate``: a random workload on the simulated database, as a history file."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isolang.cli.choices import number
from isolang.cli.convert import TO, say_written
from isolang.cli.parameters import Mistake, Seed, one_of
from isolang.files import write_whole
from isolang.output.report import EXIT_VALID

if TYPE_CHECKING:
    from isolang.history.history import History

_RULES = (
    "strict-serializable, serializable, strong-snapshot, snapshot, prefix, causal, read-atomic, "
    "read-committed"
)
_BUGS = (
    "lost update, write skew, long fork, stale read, aborted read, fractured read, "
    "lost session guarantee, clock skew"
)
_SIZE, _KEYS, _RULE, _OUT = "Size", "Keys and values", "What the database does", "Output"


def _named(flag: str, help: str, panel: str, metavar: str) -> Any:  # noqa: A002
    return typer.Option(flag, metavar=metavar, help=help, rich_help_panel=panel)


def _count(flag: str, help: str, panel: str) -> Any:  # noqa: A002
    return typer.Option(
        flag, metavar="N", help=help, rich_help_panel=panel, parser=number(int, 0, (1 << 31) - 1)
    )


def _share(flag: str, help: str, panel: str, metavar: str = "P") -> Any:  # noqa: A002
    return typer.Option(
        flag, metavar=metavar, help=help, rich_help_panel=panel, parser=number(float)
    )


def generate(
    *,
    target: Annotated[str, typer.Argument(metavar="[OUT]", help="Where; - is stdout.")] = "-",
    to: Annotated[
        str, typer.Option("--to", help="The format to write.", rich_help_panel=_OUT, **TO)
    ] = "edn",
    drop: Annotated[list[str], _named("--drop", "As of convert.", _OUT, "WHAT")] = [],  # noqa: B006
    truth: Annotated[
        str, _named("--truth", "Write what is true of it here, as JSON.", _OUT, "FILE")
    ] = "",
    workload: Annotated[
        str,
        _named(
            "--workload",
            "One of isocheck run's, on a database in memory that is strict-serializable, "
            "strong-snapshot or read-committed.",
            _SIZE,
            "NAME",
        ),
    ] = "",
    rule: Annotated[str, _named("--rule", f"What it guarantees: {_RULES}.", _RULE, "RULE")] = (
        "serializable"
    ),
    bugs: Annotated[
        list[str],
        _named("--bug", f"What goes wrong once: {_BUGS}; may be repeated.", _RULE, "BUG"),
    ] = [],  # noqa: B006
    lag: Annotated[
        int, _count("--lag", "Events that snapshots and replicas may lag; 0: 8 N.", _RULE)
    ] = 0,
    replicas: Annotated[int, _count("--replicas", "Of causal and read-atomic.", _RULE)] = 3,
    info_rate: Annotated[float, _share("--info-rate", "Unknown outcomes.", _RULE, "P")] = 0.0,
    abort_rate: Annotated[float, _share("--abort-rate", "Aborts.", _RULE, "P")] = 0.0,
    sessions: Annotated[int, _count("--sessions", "Clients at a time.", _SIZE)] = 10,
    transactions: Annotated[int, _count("--transactions", "Transactions.", _SIZE)] = 100,
    operations: Annotated[int, _count("--operations", "Operations of each.", _SIZE)] = 8,
    session_each: Annotated[
        bool,
        typer.Option(
            "--session-each", help="Each is a session of its own.", rich_help_panel=_SIZE
        ),
    ] = False,
    mini_transactions: Annotated[
        bool,
        typer.Option(
            "--mini-transactions", help="One or two keys, read before written.",
            rich_help_panel=_SIZE,
        ),
    ] = False,
    keys: Annotated[int, _count("--keys", "Keys.", _KEYS)] = 100,
    key_distribution: Annotated[
        str,
        typer.Option(
            "--key-distribution", help="How operations choose keys.", rich_help_panel=_KEYS,
            **one_of("uniform", "zipfian", "hotspot", "exponential"),
        ),
    ] = "uniform",
    theta: Annotated[float, _share("--theta", "Of zipfian keys.", _KEYS, "X")] = 0.99,
    hot_keys: Annotated[float, _share("--hot-keys", "Share of hot keys.", _KEYS, "P")] = 0.2,
    hot_share: Annotated[
        float, _share("--hot-share", "Their share of operations.", _KEYS, "P")
    ] = 0.8,
    values: Annotated[
        int, _count("--values", "Different values of a key; 0: all different.", _KEYS)
    ] = 0,
    value_theta: Annotated[
        float, _share("--value-theta", "Zipfian values; 0 is uniform.", _KEYS, "X")
    ] = 0.0,
    read_share: Annotated[
        float, _share("--read-share", "Reads among operations.", _KEYS, "P")
    ] = 0.5,
    read_modify_write: Annotated[
        float, _share("--read-modify-write", "Writes that follow a read of their key.", _KEYS, "P")
    ] = 0.0,
    lists: Annotated[
        bool,
        typer.Option("--lists", help="Appends and list reads; EDN only.", rich_help_panel=_KEYS),
    ] = False,
    appends: Annotated[int, _count("--appends", "With --lists: to each key.", _KEYS)] = 32,
    seed: Seed = 0,
) -> int:  # fmt: skip
    """Write a simulated history whose truth is known."""
    given = dict(locals())
    if workload:
        _refuse_others(given)
    from isolang.history import load_history
    from isolang.history.formats import ALIASES
    from isolang.history.writers import WITH_REAL_TIME, write_history
    from isolang.workload import SimulatedHistory, Workload
    from isolang.workload import generate as simulate

    left_out = set(drop)
    if ALIASES.get(to, to) not in WITH_REAL_TIME:
        left_out.add("real-time")
    history: SimulatedHistory | History
    if workload:
        history = _played(given)
    else:
        options = {name: given[name] for name in Workload.__struct_fields__}
        history = simulate(Workload(**{**options, "bugs": tuple(bugs)}))
    where = sys.stdout.buffer if target == "-" else target
    report = write_history(history, where, format=to, drop=left_out)
    notes = list(history.notes)
    if isinstance(history, SimulatedHistory):
        known = history.truth
        if known.planted and target != "-":  # as check will name them
            known = known.named_as_in(history, load_history(target, format=to))
            notes = list(known.sentences())
        if truth:
            write_whole(Path(truth), json.dumps(known.as_json(), indent=2) + "\n")
    notes += report.notes
    if "real-time" in left_out:
        notes.append("without real time sser and strong-si have no verdict")
    say_written(target, report, notes)
    return EXIT_VALID


_WITH_WORKLOAD = (
    "target", "to", "drop", "workload", "rule", "sessions", "transactions", "operations", "keys",
    "seed",
)  # fmt: skip


def _refuse_others(given: dict[str, Any]) -> None:
    """Refuse options that say nothing about the workloads of ``isocheck run``.

    Raises:
        Mistake: one was given.
    """
    for name, parameter in inspect.signature(generate).parameters.items():
        if name not in _WITH_WORKLOAD and given[name] != parameter.default:
            flag = f"--{name.replace('_', '-')}"
            raise Mistake(f"{flag} does not go with --workload: it chooses all that is played")


def _played(given: dict[str, Any]) -> History:
    """A workload of ``isocheck run``; sizes that are not given are its own."""
    from isolang.run.simulate import simulate
    from isolang.run.workloads import Shape

    own = inspect.signature(generate).parameters
    keys, operations = (
        given[name] if given[name] != own[name].default else None for name in ("keys", "operations")
    )
    rule = given["rule"] if given["rule"] != own["rule"].default else "strict-serializable"
    return simulate(
        given["workload"],
        rule=rule,
        shape=Shape(keys=keys, operations=operations),
        transactions=given["transactions"],
        sessions=given["sessions"],
        seed=given["seed"],
    )
