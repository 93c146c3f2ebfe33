"""Statistics against a plain count over the transactions, and look-alikes of an initial one."""

import json
from collections import Counter
from statistics import median

import pytest
from hypothesis import given, settings
from support.histories import transactions
from support.paths import HISTORIES

from isolang.api import load_history
from isolang.history import UNKNOWN, History, Transaction
from isolang.history.stats import summarize


def plain_counts(h):
    """The same numbers, counted one operation at a time."""
    txns = list(h.transactions())
    initial = h.initial_values()
    typed = {(type(k), k): v for k, v in initial.items()}
    n = Counter()
    written = Counter()
    shares = Counter()
    ops_per, keys_per = [], []
    for t in txns:
        ops_per.append(len(t.ops))
        keys_per.append(len({(type(op[1]), repr(op[1])) for op in t.ops}))
        committed = t.status == "committed" and len(t.ops) > 0
        shares["of"] += committed
        seen, rmw, read, wrote = set(), False, False, False
        for i, (kind, key, value, *source) in enumerate(t.ops):
            ok = i not in t.failed
            n["failed_operations"] += not ok
            if kind == "r":
                is_list = isinstance(value, list)
                n["list_reads" if is_list else "reads"] += 1
                n["unknown_reads"] += value is UNKNOWN
                n["explicit_sources"] += bool(source)
                n["missing_sources"] += source == ["missing"]
                starts = value is None or value == []
                init = typed.get((type(key), key))
                starts = starts or (
                    init is not None and type(value) is type(init) and value == init
                )
                if source:
                    starts = source == ["initial"]
                n["initial_reads"] += committed and ok and starts
                if ok:
                    read = True
                    seen.add((type(key), repr(key)))
                continue
            n["writes" if kind == "w" else "appends"] += 1
            if ok and t.status != "aborted":
                written[type(key), repr(key), type(value), repr(value)] += 1
            if ok:
                wrote = True
                rmw = rmw or (type(key), repr(key)) in seen
        shares["rmw"] += committed and rmw
        shares["ro"] += committed and read and not wrote
        shares["wo"] += committed and wrote and not read
    repeated = [c for c in written.values() if c > 1]
    of = max(shares["of"], 1)
    n["repeated_values"], n["repeated_writes"] = len(repeated), sum(repeated)
    spread = [(min(x), median(x), max(x)) if x else (0, 0, 0) for x in (ops_per, keys_per)]
    return n, [shares[s] / of for s in ("rmw", "ro", "wo")], spread


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(transactions())
def test_counts(txns):
    h = History.from_transactions(txns, initial=1)
    stats = summarize(h)
    n, shares, spread = plain_counts(h)
    got = stats.to_json()
    assert {k: got[k] for k in n} == dict(n)
    assert [
        stats.read_modify_write_share,
        stats.read_only_share,
        stats.write_only_share,
    ] == pytest.approx(shares)
    per = (stats.operations_per_transaction, stats.keys_per_transaction)
    assert [(s.min, s.median, s.max) for s in per] == spread
    assert json.loads(json.dumps(got)) == got
    assert stats.to_text().startswith("<memory>\n")


def loaded(initial_session, *, keys=10):
    """One transaction writes every key, then small ones read and write."""
    load = Transaction([("w", k, 0) for k in range(keys)], session=initial_session, number=77)
    work = [
        Transaction([("r", k, 0), ("w", k, k + 1)], session=k % 3, number=k) for k in range(1, keys)
    ]
    return [load, *work]


def test_look_alike():
    """Own session or the head of a client's session; named by the number that --initial takes."""
    for session in ("loader", 0):
        (found,) = summarize(History.from_transactions(loaded(session))).look_alikes
        assert (found.number, found.name, found.keys) == (77, "T77", 10)
        assert found.where == "<memory> transaction 1"
    text = summarize(History.from_transactions(loaded(0))).to_text()
    assert (
        "looks initial    T77 (<memory> transaction 1) reads nothing and writes 10 of 10 "
        "keys; if it loaded the database, declare it with --initial 77\n"
    ) in text


def test_no_look_alike():
    """Not in small histories; not when it reads, is not first, is never read, or is declared."""
    load, *work = loaded("loader")
    reads = Transaction([*load.ops, ("r", 1, 0)], session="loader")
    late = Transaction(load.ops, session=1)
    unread = [Transaction([("w", k, 5)], session=k % 3) for k in range(9)]
    declared = Transaction(load.ops, session="loader", status="initial")
    for txns in (
        loaded("loader", keys=3),
        [reads, *work],
        [*work, late],
        [load, *unread],
        [declared, *work],
    ):
        assert summarize(History.from_transactions(txns)).look_alikes == ()


def test_text():
    """The whole text of one sample."""
    assert summarize(load_history(HISTORIES / "register.edn")).to_text().splitlines() == [
        f"{HISTORIES}/register.edn",
        "  format           edn",
        "  initial state    a read of nil or of the empty list",
        "  session          one :process",
        "  real time        the order of :index, from :invoke to :ok or :fail",
        "  transactions     4 (2 committed, 1 aborted, 1 maybe)",
        "  sessions         3",
        "  keys             2",
        "  operations       5 (2 reads, 3 writes)",
        "  per transaction  operations 1/1/2, keys 1/1/2 (least/median/most)",
        "  shares           read-modify-write 0%, read-only 50%, write-only 0%",
        "  values           each written once per key; 1 read from the initial state",
        "  time span        8",
        "  ignored          1 operation that no client sent (:nemesis)",
        "  ignored          :time (the order of operations decides)",
    ]


def test_explicit_sources_are_counted():
    stats = summarize(load_history(HISTORIES / "cobra"))
    assert (stats.explicit_sources, stats.missing_sources, stats.initial_reads) == (4, 1, 2)
    assert "  sources given    4, 1 missing\n" in stats.to_text()
