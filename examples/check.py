"""Check transactions that a program recorded itself: python examples/check.py."""

import isolang
from isolang import History, Transaction

# Each transaction lists its operations: ("w", key, value), or ("r", key, what it returned).
history = History.from_transactions(
    [
        Transaction([("w", "balance", 100)], session="setup", begin=0, end=1),
        Transaction([("r", "balance", 100), ("w", "balance", 70)], session="shop", begin=2, end=5),
        Transaction([("r", "balance", 100), ("w", "balance", 50)], session="rent", begin=3, end=6),
    ]
)

for level in ("read-committed", "snapshot-isolation", "strict-serializable"):
    verdict = isolang.check(history, level)
    if verdict.outcome == "invalid":
        names = ", ".join(txn.name for txn in verdict.violation.transactions)
        print(f"{level}: {verdict.violation.anomaly} between {names}")
    else:
        print(f"{level}: {verdict.outcome}")
