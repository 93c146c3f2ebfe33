"""Changes reads in a history so that it is probably invalid, but not obviously so."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from isolang.history.history import History


def change_reads(history: History, count: int, *, seed: int = 0) -> History:
    """Change the values of randomly chosen register reads to values written by other transactions.

    The new value of a read is the last value that some committed transaction wrote to the key. The
    changed history may still satisfy a level, for example if another write of the value is also a
    possible source. No read becomes an intrinsic anomaly (thin air, aborted, intermediate, own
    writes). Therefore a refutation of the changed history needs version orders.
    """
    import numpy as np

    from isolang.history import History
    from isolang.history import columns as c

    columns = history.columns
    rng = random.Random(seed)
    last: dict[
        int, Counter[int]
    ] = {}  # for each key, how many committed transactions write each value last
    finals: dict[int, dict[int, int]] = {}
    external = []
    for txn in np.flatnonzero(columns.txn_status == c.COMMITTED).tolist():
        own: dict[int, int] = {}
        for op in history.operations_of(txn):
            key, kind = int(columns.op_key[op]), int(columns.op_kind[op])
            if kind == c.WRITE:
                own[key] = int(columns.op_value[op])
            elif kind == c.READ and key not in own:
                external.append((txn, op, key))
        for key, value in own.items():
            last.setdefault(key, Counter())[value] += 1
        finals[txn] = own
    changed: dict[int, int] = {}
    rng.shuffle(external)
    touched: set[tuple[int, int]] = set()
    for txn, op, key in external:
        if len(changed) == count:
            break
        if (txn, key) in touched:
            continue
        touched.add((txn, key))
        # Before its own write, all of a transaction's reads of a key see the same version, so
        # change all of them.
        same = [
            other
            for other in history.operations_of(txn)
            if int(columns.op_key[other]) == key and int(columns.op_kind[other]) == c.READ
        ]
        if len(same) > 1:
            continue
        sources = last.get(key, Counter()) - Counter([finals[txn].get(key, -1)])  # no own write
        others = sorted(value for value in sources if value != int(columns.op_value[op]))
        if others:
            changed[op] = rng.choice(others)
    transactions = list(history.transactions())
    result = History.from_transactions(transactions, name=f"{history.name}, changed")
    for op, value in changed.items():
        result.columns.set_value(op, result.columns.intern_value(*columns.value(value)))
    return replace(result, notes=(f"{len(changed)} reads changed",))
