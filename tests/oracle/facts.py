"""What is known by hand of the levels of the literature: examples of papers, smallest histories."""

from __future__ import annotations

#: Histories and the levels that allow them, by hand; with times where a level needs them.
FACTS: list[tuple[str, dict[str, bool | None]]] = [
    # Lost update, and the same with a write that does not read.
    ("r(x,nil) w(x,1) || r(x,nil) w(x,2)", {"pl-cs": False, "pl-2l": True, "update-atomic": False}),
    ("r(x,nil) w(x,1) || w(x,2)", {"pl-cs": True}),
    # Read skew: the cursor does not see it.
    ("r(x,nil) r(y,1) || w(x,1) w(y,1)", {"pl-cs": True, "mav": True, "pl-2-plus": False}),
    # Adya's example for PL-2L, and with its reads in the other order.
    (
        "w(x,1) w(y,1) || r(y,1) w(y,2) w(x,2) w(z,2) || r(x,2) w(z,3) r(y,1)",
        {"pl-2": True, "mav": False, "pl-2l": False, "pl-msr": False},
    ),
    (
        "r(x,nil) w(x,1) w(y,1) || r(x,1) r(y,1) w(y,2) w(x,2) || r(y,1) r(x,2)",
        {"pl-2l": True, "mav": True, "pl-2-plus": False, "pl-msr": True},
    ),
    # After a read one must not miss what its writer depends on: PL-2L sees that, MAV does not.
    (
        "w(y,1) || r(y,1) w(x,1) || r(x,1) r(y,nil)",
        {"mav": True, "pl-2l": False, "pl-msr": False},
    ),
    # Two reads from two unrelated writers, in opposite orders: no snapshots that advance.
    (
        "w(x,1) || w(y,1) || r(x,1) r(y,nil) || r(y,1) r(x,nil)",
        {"pl-2-plus": True, "pl-msr": False, "pl-3u": True, "pl-3": False, "gsi": False},
    ),
    # Statement after statement a newer snapshot.
    ("w(x,1) w(y,1) || r(x,nil) r(y,1)", {"pl-msr": True, "ra": None, "pl-2-plus": False}),
    # Adya's examples for PL-3U.
    (
        "r(m,nil) w(x,1) w(y,1) || r(m,nil) r(x,1) w(x,2) w(y,2) || w(m,3) || r(m,3) r(x,1) r(y,1)",
        {"pl-2-plus": True, "pl-3u": False},
    ),
    (
        "w(x,1) w(y,1) || r(x,1) w(x,4) || r(y,1) w(y,5) || r(x,4) r(y,1) || r(x,1) r(y,5)",
        {"pl-3u": True, "pl-3": False},
    ),
    # A read that begins after a write ended misses it.
    (
        "w(x,1) @0-1 || r(x,nil) @2-3",
        {"pl-fcv": False, "pl-3": True, "rss": False, "linearizable": False},
    ),
    # A version order against real time, which Adya leaves free.
    (
        "w(x,1) @0-1 || w(x,2) w(z,1) @2-3 || r(x,1) r(z,1) @2-9",
        {"pl-fcv-literal": True, "pl-fcv": False},
    ),
    # Regular: a later read of another key orders nothing, and two readers need not agree in time.
    ("w(x,1) @0-9 || r(x,1) @1-2 || r(x,nil) @3-4", {"rss": True, "linearizable": False}),
    ("w(x,1) @0-1 || r(y,1) @2-3 || w(y,1) r(x,nil) @4-5", {"rss": False}),
    ("w(x,1) @0-1 || w(y,1) @2-3 || r(x,nil) @0-9", {"rss": True, "linearizable": True}),
    # A predicate read reads what it did not return, if that ever matched.
    ("w(x,1) @0-1 || scan([= value 1],{}) @2-3", {"rss": False}),
    ("w(x,1) @0-1 || scan([= value 2],{}) @2-3", {"rss": True}),
    # What PRAM allows and one order of the writes of each key does not.
    (
        "w(x,1) || w(x,2) || r(x,1) -> r(x,2) || r(x,2) -> r(x,1)",
        {"pram": True, "processor": False, "per-key-sequential": False, "tcc-plus": False},
    ),
    ("w(x,1) -> w(y,1) || r(y,1) -> r(x,nil)", {"pram": False, "per-key-sequential": True}),
    (
        "w(x,1) || r(x,1) -> w(y,1) || r(y,1) -> r(x,nil)",
        {"pram": True, "processor": True, "tcc-plus": False, "per-key-causal": True},
    ),
    # A failed compare-and-set, in real time and in its session.
    (
        "w(x,1) @0-1 || notin(x,{1}) @2-3",
        {"linearizable": False, "per-key-sequential": True, "rss": False},
    ),
    ("w(x,1) -> notin(x,{1})", {"per-key-sequential": False, "per-key-causal": False}),
    ("r(x,nil) w(x,1) @0-5 || notin(x,{nil}) @1-2 || notin(x,{1}) @3-4", {"linearizable": False}),
    ("r(x,nil) w(x,1) @0-5 || notin(x,{nil}) @1-4 || notin(x,{1}) @2-3", {"linearizable": True}),
    # An indeterminate write may take effect late, or never.
    ("?w(x,1) @0- || r(x,nil) @1-2 || r(x,1) @3-4", {"linearizable": True}),
    ("?w(x,1) @0- || r(x,1) @1-2 || r(x,nil) @3-4", {"linearizable": False}),
    ("?w(x,1) @0-1 || r(x,nil) @2-3 || r(x,1) @4-5", {"linearizable": True}),
    # What is indeterminate took effect for all its keys, or for none.
    ("?r(y,9) w(x,1) || r(x,1)", {"per-key-sequential": False, "per-key-causal": False}),
    ("?r(y,nil) w(x,1) || r(x,1)", {"per-key-sequential": True, "per-key-causal": True}),
    # The memory of 1988 has no order of all: a value may cause itself.
    ("r(x,1) -> w(y,1) || r(y,1) w(x,1)", {"pram": True, "shared-pram": False}),
    ("r(x,1) -> w(x,1)", {"pram": False, "shared-pram": False}),
]
