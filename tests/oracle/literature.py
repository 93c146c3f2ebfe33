"""Levels of the literature beside Adya's first ones, written down a second time, by hand.

Where a file of the library rests on a theorem, the definition stands here.
"""

from __future__ import annotations

from isolang.language.meaning import core

from .levels import Checks, acyclic, irreflexive, require, rt, rw, seq, so, union, wr, ww

_writes, _reads = core.Lift(core.Rel("W")), core.Lift(core.Rel("R"))
_wr, _ww, _rw = (core.Rel(name, "x") for name in ("wr", "ww", "rw"))
_writes_x, _reads_x = core.Lift(core.Rel("W", "x")), core.Lift(core.Rel("R", "x"))


def _for_x(e: core.Core) -> core.Core:
    return core.ForKey("x", e)


def _each_acyclic(name: str, e: core.Core) -> core.Check:
    return irreflexive(name, _for_x(core.Plus(e)))


_update = seq(_writes, union(wr, ww, rw), _writes)
_g1c = acyclic("G1c", union(wr, ww))

#: By library name.
LITERATURE: dict[str, Checks] = {
    "pl-cs": (_g1c, irreflexive("G-cursor", _for_x(seq(_rw, core.Plus(_ww))))),
    "pl-fcv": (
        acyclic("G1c", union(rt, wr, ww)),
        irreflexive("G-SIb", seq(core.Plus(union(rt, wr, ww)), rw)),
    ),
    "pl-3u": (
        _g1c,
        acyclic("updates", _update),
        irreflexive("reader", seq(wr, rw, core.Star(_update))),
    ),
    "update-atomic": (
        acyclic("order", union(so, wr, ww)),
        require(
            "EXT",
            core.Diff(_for_x(seq(_writes_x, union(so, wr, ww), core.Inverse(_wr))), core.Rel("id")),
            ww,
        ),
    ),
    "rss": (
        acyclic(
            "order",
            union(
                so,
                wr,
                ww,
                rw,
                seq(_writes, rt, _writes),
                _for_x(seq(_writes_x, rt, _reads_x)),
            ),
        ),
    ),
    "per-key-sequential": (_each_acyclic("order", union(so, _wr, _ww, _rw)),),
    "per-key-causal": (
        _each_acyclic("order", union(so, _wr, _ww)),
        irreflexive("causal", _for_x(seq(core.Plus(union(so, _wr)), _rw))),
    ),
    "strong-session-pl-1": (acyclic("G0", union(so, ww)),),
    "strong-session-pl-2": (acyclic("G1c", union(so, wr, ww)),),
    "strong-pl-1": (acyclic("G0", union(so, rt, ww)),),
    "strong-pl-2": (acyclic("G1c", union(so, rt, wr, ww)),),
}

#: (weaker, stronger): whatever satisfies the stronger level satisfies the weaker one; some history
#: separates them.
ABOVE: tuple[tuple[str, str], ...] = (
    ("pl-2", "pl-cs"),
    ("pl-cs", "psi-nosession"),
    ("psi-nosession", "pl-fcv"),
    ("pl-fcv", "strong-si-nosession"),
    ("psi-nosession", "pl-3u"),
    ("pl-3u", "pl-3"),
    ("ra", "update-atomic"),
    ("update-atomic", "psi"),
    ("ser", "rss"),
    ("rss", "sser"),
    ("per-key-causal", "per-key-sequential"),
    ("per-key-causal", "cc"),
    ("per-key-sequential", "ser"),
    ("pl-1", "strong-session-pl-1"),
    ("strong-session-pl-1", "strong-session-pl-2"),
    ("strong-session-pl-1", "strong-pl-1"),
    ("strong-session-pl-2", "strong-pl-2"),
    ("strong-pl-1", "strong-pl-2"),
    ("strong-pl-2", "strong-si"),
    ("strong-session-pl-2", "ra"),
    ("pram", "cc"),
    ("mw", "pram"),
    ("mr", "pram"),
    ("ryw", "pram"),
)
