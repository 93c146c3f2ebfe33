"""The levels of the language reference in its ``adya`` style, written down a second time, by hand.

Nothing here is read from the package's ``.iso`` files: that those mean the same is what the tests
show.
"""

from __future__ import annotations

from isolang.language.meaning import core

so, rt, init, wr, ww, rw = (core.Rel(n) for n in ("so", "rt", "init", "wr", "ww", "rw"))


def union(*parts: core.Core) -> core.Core:
    return parts[0] if len(parts) == 1 else core.Union(parts)


def seq(*parts: core.Core) -> core.Core:
    return parts[0] if len(parts) == 1 else core.Seq(parts)


def acyclic(name: str, e: core.Core) -> core.Check:
    return core.Check(name=name, kind="acyclic", expr=e)


def irreflexive(name: str, e: core.Core) -> core.Check:
    return core.Check(name=name, kind="irreflexive", expr=e)


def require(name: str, e: core.Core, bound: core.Core) -> core.Check:
    return core.Check(name=name, kind="require", expr=e, bound=bound)


Checks = tuple[core.Check, ...]


def _pc(session: core.Core) -> Checks:
    return (acyclic("PC", union(seq(union(session, wr), core.Opt(rw)), ww)),)


def _si(*session: core.Core) -> Checks:
    return (acyclic("SI", seq(union(*session, wr, ww), core.Opt(rw))),)


def _ser(*session: core.Core) -> Checks:
    return (acyclic("SER", union(*session, wr, ww, rw)),)


_hb = core.Plus(union(so, wr))

#: Every level in this package's reach, by its library name.
LEVELS: dict[str, Checks] = {
    "pl-1": (acyclic("G0", ww),),
    "pl-2": (acyclic("G1c", union(wr, ww)),),
    "pl-3": (acyclic("G2", union(wr, ww, rw)),),
    "pc-nosession": _pc(init),
    "si-nosession": _si(init),
    "ser-nosession": _ser(init),
    "pc": _pc(so),
    "si": _si(so),
    "ser": _ser(so),
    "strong-si-nosession": _si(init, rt),
    "sser-nosession": _ser(init, rt),
    "strong-si": _si(so, rt),
    "sser": _ser(so, rt),
}

#: Levels whose checks are not event graphs; the tool refuses them. Their verdicts are in the
#: litmus table.
SLOWER: dict[str, Checks] = {
    "ra": (
        acyclic("no-cycle", union(so, wr, ww)),
        irreflexive("fractured-read", seq(union(so, wr), rw)),
    ),
    "cc": (acyclic("no-cycle", union(_hb, ww)), irreflexive("causal", seq(_hb, rw))),
    "psi": (irreflexive("PSI", seq(core.Plus(union(so, wr, ww)), core.Opt(rw))),),
}

_irw, _prw = core.Rel("irw"), core.Rel("prw")
#: An item anti-dependency leads to the next version; beyond the reader's own, only ``ww`` leads on.
_next = core.ForKey("x", core.Diff(core.Rel("irw", "x"), core.Rel("ww", "x")))

#: Levels that know predicates: Adya's PL-2.99 forbids every cycle with an item anti-dependency;
#: databases with locks on items alone ignore the other anti-dependencies.
PREDICATES: dict[str, Checks] = {
    "pl-2-99": (
        acyclic("G1c", union(wr, ww)),
        irreflexive("G2-item", seq(_next, core.Star(union(wr, ww, _irw, _prw)))),
    ),
    "locking-repeatable-read": (acyclic("locked", union(wr, ww, _irw)),),
}

_late, _done, _locked = core.Rel("late"), core.Rel("done"), core.Rel("locked")

#: SI whose snapshots are taken in the first statement and whose versions come in the order of
#: commits, by relations between transactions.
BOUNDED: Checks = (
    acyclic("bounded", union(seq(union(so, rt, wr, ww), core.Opt(union(rw, _late))), _done)),
)
_EXCLUSION: Checks = (acyclic("mutual-exclusion", union(so, _locked, ww, _done)),)

#: Databases and their mechanisms by the times of operations: what is to be sound of ``moments``.
DATABASES: dict[str, Checks] = {
    "consistent-read": (
        acyclic("read", union(seq(union(so, rt, wr), core.Opt(union(rw, _late))), ww, _done)),
    ),
    "first-updater-wins": (acyclic("wins", union(seq(union(so, rt, ww), core.Opt(_late)), _done)),),
    "mutual-exclusion": _EXCLUSION,
    "postgresql-repeatable-read": (*_EXCLUSION, *BOUNDED),
    "postgresql-serializable": (*_EXCLUSION, *BOUNDED, acyclic("serial", union(so, wr, ww, rw))),
    "innodb-repeatable-read": (
        *_EXCLUSION,
        acyclic("snapshot", union(seq(union(so, rt, wr), core.Opt(rw)), ww, _done)),
    ),
}

_tx, _po, _statement = core.Rel("tx"), core.Rel("po"), core.Rel("statement")
_saw = union(
    core.Rel("committed-before"),
    seq(so, core.Inverse(_tx)),
    seq(core.Inverse(_tx), core.Rel("rf")),
)
_overwriting = core.ForKey("x", seq(core.Inverse(core.Rel("rf", "x")), _tx, core.Rel("ww", "x")))
_missed = union(core.Rel("committed-after"), _tx, _overwriting)
_later = seq(union(core.Rel("answered-before"), _po), _statement)


def _by_statement(*more: core.Core) -> Checks:
    """Some order of the commits has what each statement read, and agrees with more than that."""
    snapshots = seq(_saw, _statement, core.Opt(_later), _missed)
    return (acyclic("snapshot", union(snapshots, so, rt, ww, _done, *more)),)


#: Those whose statements each read what is committed: with relations of single reads.
STATEMENTS: dict[str, Checks] = {
    "consistent-read-by-statement": _by_statement(),
    "postgresql-read-committed": _by_statement(_locked),
}

_hb_nosession = core.Plus(union(init, wr))

#: The levels that a single ``rw`` must not close, in their ``adya`` style; RC, which looks inside
#: transactions, is in ``read_committed``.
WEAK: dict[str, Checks] = SLOWER | {
    "ra-nosession": (
        acyclic("no-cycle", union(init, wr, ww)),
        irreflexive("fractured-read", seq(union(init, wr), rw)),
    ),
    "cc-nosession": (
        acyclic("no-cycle", union(_hb_nosession, ww)),
        irreflexive("causal", seq(_hb_nosession, rw)),
    ),
    "psi-nosession": (irreflexive("PSI", seq(core.Plus(union(init, wr, ww)), core.Opt(rw))),),
}

_writes, _reads = core.Lift(core.Rel("W")), core.Lift(core.Rel("R"))
_seen = union(init, wr)


def _guarantee(vis: core.Core, *order: core.Core) -> Checks:
    return (acyclic("no-cycle", union(vis, *order, ww)), irreflexive("EXT", seq(vis, rw)))


#: The session guarantees as conditions on the least visibility (docs/routes.md); that this is what
#: they say is tested with the oracle of the whole language.
GUARANTEES: dict[str, Checks] = {
    "ryw": _guarantee(union(_seen, seq(_writes, so, _reads))),
    "mr": _guarantee(seq(_seen, core.Opt(seq(_reads, so, _reads)))),
    "mw": _guarantee(seq(core.Opt(seq(_writes, so, _writes)), _seen), seq(_writes, so, _writes)),
    "wfr": _guarantee(
        seq(core.Star(seq(_seen, _reads, core.Opt(so), _writes)), _seen),
        seq(_seen, _reads, core.Opt(so), _writes),
    ),
}

#: Each of them with RC, in all its styles.
WEAK_STYLES = (
    *("rc", "rc-nosession", "ra", "ra-adya", "ra-vis", "cc", "cc-adya", "cc-vis", "psi", "psi-vis"),
    *("ra-nosession", "ra-adya-nosession", "ra-vis-nosession", "cc-nosession"),
    *("cc-adya-nosession", "cc-vis-nosession", "psi-nosession", "psi-vis-nosession"),
)

#: (weaker, stronger) that some history must separate; the last ones reach into ``LEVELS``.
WEAK_ADJACENT: tuple[tuple[str, str], ...] = (
    *(("rc-nosession", "rc"), ("ra-nosession", "ra")),
    *(("cc-nosession", "cc"), ("psi-nosession", "psi")),
    *(("ra-nosession", name) for name in GUARANTEES),
    *((name, "cc") for name in GUARANTEES),
    *(("pl-2", "rc"), ("pl-2", "rc-nosession"), ("psi-nosession", "pl-3")),
    *(("rc", "ra"), ("ra", "cc"), ("cc", "psi"), ("cc", "pc"), ("psi", "si")),
    *(("rc-nosession", "ra-nosession"), ("ra-nosession", "cc-nosession")),
    *(("cc-nosession", "psi-nosession"), ("cc-nosession", "pc-nosession")),
    ("psi-nosession", "si-nosession"),
)

TIMED = {"strong-si-nosession", "sser-nosession", "strong-si", "sser"}

#: (weaker, stronger): whatever satisfies the stronger level satisfies the weaker one.
IMPLICATIONS: tuple[tuple[str, str], ...] = (
    ("pl-1", "pl-2"),
    ("pl-2", "pl-3"),
    ("pl-2", "pc-nosession"),
    ("pl-3", "ser-nosession"),
    ("pc-nosession", "si-nosession"),
    ("si-nosession", "ser-nosession"),
    ("pc-nosession", "pc"),
    ("si-nosession", "si"),
    ("ser-nosession", "ser"),
    ("pc", "si"),
    ("si", "ser"),
    ("si", "strong-si"),
    ("ser", "sser"),
    ("si-nosession", "strong-si-nosession"),
    ("ser-nosession", "sser-nosession"),
    ("strong-si-nosession", "strong-si"),
    ("sser-nosession", "sser"),
    ("strong-si", "sser"),
    ("strong-si-nosession", "sser-nosession"),
)

#: Pairs that some history must separate: every implication but PL-3 and SER-nosession, which are
#: equal (PL-3 sees T0 through ``ww`` only, and that already puts it first).
ADJACENT = tuple(p for p in IMPLICATIONS if p != ("pl-3", "ser-nosession"))
