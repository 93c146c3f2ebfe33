"""Generates random histories whose reads name their sources, and translates them to plain reads."""

import random

from isolang.history import UNKNOWN, Transaction

LEVELS = ("pl-1", "pl-2", "rc", "ra", "cc", "psi", "si", "ser")
STATUSES = ("committed",) * 6 + ("aborted", "indeterminate")


def random_history(rng: random.Random, by_name: float = 1) -> list[Transaction]:
    """Return two to five transactions in which reads, or a share of them, name their sources."""
    keys, txns = ("x", "y"), []
    shape = [
        [(rng.choice("wrrd" if rng.random() < 0.2 else "wr"), rng.choice(keys)) for _ in range(n)]
        for n in (rng.randint(1, 4) for _ in range(rng.randint(2, 5)))
    ]
    declared = rng.random() < 0.4
    if declared:
        shape[0] = [("w", key) for key in keys if rng.random() < 0.8] or [("w", "x")]
    writes: dict[str, list[tuple[int, int]]] = {key: [] for key in keys}
    values: dict[tuple[int, int], int | None] = {}
    for t, ops in enumerate(shape):
        for i, (kind, key) in enumerate(ops):
            if kind != "r":
                writes[key].append((t, i))
                values[t, i] = None if kind == "d" else rng.randint(1, 3)
    first = {key: rng.randint(1, 3) for key in keys}
    for t, ops in enumerate(shape):
        written = []
        for i, (kind, key) in enumerate(ops):
            if kind == "r":
                sources = [*writes[key], "initial", "initial"]
                sources += ["missing"] if rng.random() < 0.1 else []
                source = rng.choice(sources)
                own = [w for w in writes[key] if w[0] == t and w[1] < i]
                if own and rng.random() < 0.9:
                    source = own[-1]
                value = values.get(source, first[key])
                value = rng.randint(1, 3) if rng.random() < 0.1 else value
                value = None if source == "initial" and rng.random() < 0.3 else value
                value = UNKNOWN if rng.random() < 0.05 else value
                read = ("r", key, value, source)
                written.append(read if by_name == 1 or rng.random() < by_name else read[:3])
            elif kind == "d":
                written.append(("delete", key))
            else:
                written.append(("w", key, values[t, i]))
        status = "initial" if declared and t == 0 else rng.choice(STATUSES)
        txns.append(Transaction(written, session=rng.randint(0, 2), status=status))
    return txns


def by_value(txns: list[Transaction]) -> list[Transaction]:
    """Return the same history with a unique value for each write, which the reads return."""
    out = []
    for t, txn in enumerate(txns):
        ops = []
        for i, op in enumerate(txn.ops):
            if op[0] != "r":
                ops.append(("w", op[1], f"{t}.{i}"))
            elif op[2] is UNKNOWN:
                ops.append(op[:3])
            else:
                seen = op[3] if isinstance(op[3], str) else "{}.{}".format(*op[3])
                ops.append((*op[:2], None if seen == "initial" else seen))
        out.append(Transaction(ops, session=txn.session, status=txn.status))
    return out


def has_two_values(txns: list[Transaction]) -> bool:
    """Return whether a read by an included transaction contradicts the version that it names."""
    included = {t for t, txn in enumerate(txns) if txn.status in ("committed", "initial")}
    rows = any(op[0] == "delete" for txn in txns for op in txn.ops)
    loaded: dict[str, int | None] = {}  # what a declared initial transaction wrote last
    work = sorted(included)
    known: dict[tuple[object, str], object] = {}
    for t, txn in enumerate(txns):
        for i, op in enumerate(txn.ops):
            if op[0] != "r":
                known[(t, i), op[1]] = op[2] if op[0] == "w" else None
                if txn.status == "initial":  # the last of these writes is the initial value
                    loaded[op[1]] = known["initial", op[1]] = op[2] if op[0] == "w" else None
    while work:
        for op in txns[work.pop()].ops:
            if op[0] != "r" or op[2] is UNKNOWN or op[3] == "missing":
                continue
            source = op[3]
            if source != "initial":
                writer = source[0]
                if txns[writer].status == "aborted":
                    continue
                if writer not in included:
                    included.add(writer)
                    work.append(writer)
                if txns[writer].status == "initial":
                    source = "initial"
            if source == "initial" and op[2] is None:
                if rows and loaded.get(op[1]) is not None:
                    return True  # nobody reads a row as nil
                continue
            if known.setdefault((source, op[1]), op[2]) != op[2]:
                return True
    return False
