"""Generates random templates: a few programs with a few statements on one or two relations."""

from __future__ import annotations

import random

from isolang.foresee.templates import (
    ALL_COLUMNS,
    Branch,
    RowLock,
    Templates,
    TemplateStatement,
    templates_of_branches,
)


def random_templates(
    rng: random.Random,
    *,
    longest: int = 3,
    most: int = 3,
    locks: bool = False,
    scans_lock: bool = False,
) -> Templates:
    """Return templates with all kinds of statements, in which conflicts are likely.

    With ``locks``, some reads lock their rows; with ``scans_lock``, some reads by a condition do.
    """
    rich = rng.random() < 0.5  # inserts, deletes, conditions, columns
    relations = ["x", "y"][: rng.choice([1, 1, 2])]
    branches = []
    for number in range(rng.choice([1, 2, 2, 3][: most + 1])):
        parameters = ("p", "q")[: rng.choice([1, 1, 2])]
        different = frozenset([("p", "q")] if len(parameters) == 2 and rng.random() < 0.7 else [])
        statements = []
        for step in range(rng.randint(1, longest)):
            words = ["read", "read", "write", "update"]
            kind = rng.choice([*words, "insert", "delete"] if rich else words)
            keys = (rng.choice(parameters),)
            if rich and kind != "insert" and rng.random() < 0.25:
                keys = (None,)
            if rich and rng.random() < 0.05:
                keys = (0,)
            relation = rng.choice(relations)
            if kind == "insert" and any(one.relation == relation for one in statements):
                kind = "read"  # otherwise the row would have to exist and not exist
            names = frozenset(rng.choice(["a", "a", "b", "ab"]) if rich else "a")
            reads = names if kind in ("read", "update") else frozenset()
            writes = names if kind in ("write", "update") else frozenset()
            if kind == "update" and rich and rng.random() < 0.3:
                reads = frozenset("ab")
            if kind in ("insert", "delete"):
                writes = frozenset([ALL_COLUMNS])
            statements.append(
                TemplateStatement(
                    kind=kind,
                    relation=relation,
                    keys=keys,
                    reads=reads,
                    writes=writes,
                    step=step,
                    text=f"{kind} {step}",
                    lock=_lock(rng) if locks and kind == "read" and keys != (None,) else "",
                    newest=scans_lock and kind == "read" and keys == (None,) and rng.random() < 0.5,
                )
            )
        used = {key for one in statements for key in one.keys if isinstance(key, str)}
        parameters = tuple(one for one in parameters if one in used)
        branches.append(
            Branch(
                program=f"P{number}",
                way="",
                parameters=parameters,
                different=different if used == {"p", "q"} else frozenset(),
                statements=tuple(statements),
            )
        )
    return templates_of_branches(tuple(branches))


def _lock(rng: random.Random) -> RowLock:
    return rng.choice(["", "share", "update", "update"])


def template_lines(templates: Templates) -> list[str]:
    """Return the templates as lines of text, for the messages of failed tests."""
    return [
        f"{branch.program}({', '.join(branch.parameters)}) {sorted(branch.different)}: "
        + " ".join(
            f"{one.kind}{one.lock and ' for '}{one.lock}{' locking' * one.newest}"
            f" {one.relation}{list(one.keys)}"
            f"{sorted(one.reads)}{sorted(one.writes)}"
            for one in branch.statements
        )
        for branch in templates.branches
    ]
