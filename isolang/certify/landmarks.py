"""What must come before what, whatever the reads take their values from: a refutation by itself.

``native/certify/necessary_precedences.cpp`` has the rules; they are about lines of
moments (``line.py``).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from isolang.certify.expression import Positions
from isolang.certify.facts import Facts
from isolang.certify.line import ContradictionError, Line, LineShape, Read, bits, lowest


def no_line(facts: Facts, checks: Iterable[tuple[str, Positions]]) -> bool:
    """Whether some check has no model, because its models are lines and there can be none.

    Args:
        facts: the history.
        checks: kind and positions of each judged check.

    Returns:
        ``True``: proved. ``False`` says nothing: the check has another form, a maybe transaction
        may be in or out, or the rules do not tell.
    """
    return any(
        kind == "acyclic"
        and (shape := LineShape.of(positions)) is not None
        and _refutes(facts, shape)
        for kind, positions in checks
    )


def _refutes(facts: Facts, shape: LineShape) -> bool:
    live = [t for t in range(facts.n) if facts.live(t)]
    if not all(facts.certain(t) for t in live):
        return False
    try:
        _settle(Line(facts, shape, live))
    except ContradictionError:
        return True
    return False


def _settle(line: Line) -> None:
    """Apply the rules until nothing changes; raises if that is a contradiction."""
    line.changed = True
    while line.changed:
        line.changed = False
        _overwrite_once(line)
        cuts = _cuts(line)
        _sweep(line, cuts, from_end=False)
        _sweep(line, cuts, from_end=True)
        for read in line.reads:
            _compare(line, read)
        _balance(line, cuts)


# --- the rules ---


def _gives(line: Line, *, from_end: bool) -> list[int]:
    """Per moment, the versions that are there once it has happened, or is undone."""
    gives = [0] * len(line.moments)
    for v, moment in enumerate(line.written):
        if moment >= 0 and not from_end:
            gives[moment] |= 1 << v
        elif moment >= 0 and v in line.replaced:
            gives[moment] |= line.replaced[v].sources
    return gives


def _sweep(line: Line, cuts: list[_Cut], *, from_end: bool) -> None:
    """Rules 1 and 2: hold back each moment of each chain in turn."""
    gives = _gives(line, from_end=from_end)
    thresholds = _thresholds(line, cuts, from_end=from_end)
    wants = [
        [r.sources for r in m.reads if not (from_end and r.overwritten)]
        + [1 << v for v in m.writes if from_end]
        for m in line.moments
    ]
    needs = line.after if from_end else line.before
    chains = [chain[::-1] if from_end else chain for chain in line.chains]
    for held, chain in enumerate(chains):
        there, happened, done = line.last if from_end else line.initial, 0, [0] * len(chains)
        for stop in range(len(chain) + 1):
            more = True
            while more:
                more = False
                for c, moments in enumerate(chains):
                    end = stop if c == held else len(moments)
                    while done[c] < end:
                        m = moments[done[c]]
                        if needs[m] & ~happened or not all(w & there for w in wants[m]):
                            break
                        if any((some & happened).bit_count() < k for some, k in thresholds[m]):
                            break
                        happened |= 1 << m
                        there |= gives[m]
                        done[c] += 1
                        more = True
            if done[held] < stop:
                raise ContradictionError
            for c, moments in enumerate(chains):
                if c == held or done[c] == len(moments):
                    continue
                if stop == len(chain):
                    raise ContradictionError
                a, b = chain[stop], moments[done[c]]
                line.precede(*((b, a) if from_end else (a, b)))


def _compare(line: Line, read: Read) -> None:
    """Rule 3."""
    versions = [v for v in line.by_key[read.key].values() if v != read.own]
    past = [v for v in versions if line.precedes(line.written[v], read.moment)]
    gone = 1 << read.own if read.own >= 0 else 0
    for v in bits(read.sources):
        at = line.written[v]
        if (at >= 0 and line.precedes(read.moment, at)) or any(
            line.precedes(at, line.written[other]) for other in past
        ):
            gone |= 1 << v
    line.narrow(read, gone)
    sources = list(bits(read.sources))
    if len(sources) == 1:
        for v in past:
            if v != sources[0] and line.written[v] >= 0:
                if line.written[sources[0]] < 0:
                    raise ContradictionError
                line.precede(line.written[v], line.written[sources[0]])
    for v in versions:
        at = line.written[v]
        if all(s != v and line.precedes(line.written[s], at) for s in sources):
            line.precede(read.moment, at)


def _overwrite_once(line: Line) -> None:
    """Rule 4."""
    for versions in line.by_key.values():
        groups: list[tuple[int, list[Read]]] = []  # sources, and the reads that share them
        taken = 0
        for v in versions.values():
            read = line.replaced.get(v)
            if read is None:
                continue
            if read.sources.bit_count() == 1:
                if taken & read.sources:
                    raise ContradictionError
                taken |= read.sources
            joined = [g for g in groups if g[0] & read.sources]
            groups = [g for g in groups if not g[0] & read.sources]
            sources, reads = read.sources, [read]
            for other_sources, other_reads in joined:
                sources, reads = sources | other_sources, reads + other_reads
            groups.append((sources, reads))
        for sources, reads in groups:
            if len(reads) > sources.bit_count():
                raise ContradictionError
            no_last = sources if len(reads) == sources.bit_count() else sources & taken
            if line.last & no_last:
                line.last &= ~no_last
                line.changed = True
            for read in reads:
                if read.sources.bit_count() > 1:
                    line.narrow(read, taken)


# --- rule 5 ---


class _Cut(Struct, frozen=True):
    """What is known right before a moment of a group of versions.

    Attributes:
        moment: it.
        come, go: the other moments at which one comes or goes.
        net: so many more have come than gone before it, those of T0 left out, or more.
        only: or no more.
    """

    moment: int
    come: int
    go: int
    net: int
    only: bool


def _cuts(line: Line) -> list[_Cut]:
    """Before the moments that read, and before those that overwrite what they read."""
    group: dict[int, int] = {}  # version -> its group, as a set
    reads: dict[int, list[Read]] = {}  # by key
    for read in line.reads:
        if not read.sources:
            raise ContradictionError
        reads.setdefault(read.key, []).append(read)
        joined = read.sources
        for v in bits(read.sources):
            joined |= group.get(v, 0)
        for v in bits(joined):
            group[v] = joined
    cuts = []
    for key, versions in line.by_key.items():
        written = [v for v in versions.values() if line.written[v] >= 0]
        only = all(v in line.replaced for v in written)
        groups = {group.get(v, 1 << v) for v in versions.values()}
        come = dict.fromkeys(groups, 0)
        go = dict.fromkeys(groups, 0)
        for v in written:
            moment = 1 << line.written[v]
            mine = group.get(v, 1 << v)
            replaced = line.replaced.get(v)
            of = group[lowest(replaced.sources)] if replaced else 0
            if of != mine:
                come[mine] |= moment
                if of:
                    go[of] |= moment
        for read in reads.get(key, ()):
            here = group[lowest(read.sources)]
            moments = {read.moment}
            if read.overwritten:
                moments.add(line.written[read.own])
            for g in groups:
                net = (g == here) - bool(g & line.initial)
                for m in moments:
                    others = ~(1 << m)
                    cuts.append(_Cut(m, come[g] & others, go[g] & others, net, only))
    return cuts


def _thresholds(line: Line, cuts: list[_Cut], *, from_end: bool) -> list[list[tuple[int, int]]]:
    """Per moment: of these moments so many happen before it (from the end: after it)."""
    thresholds: list[list[tuple[int, int]]] = [[] for _ in line.moments]
    for cut in cuts:
        first = line.after_all(cut.moment) if from_end else line.before_all(cut.moment)
        come, go = (cut.come & first).bit_count(), (cut.go & first).bit_count()
        if from_end:
            rest = cut.come.bit_count() - cut.go.bit_count() - cut.net
            least_come, least_go = go + rest, come - rest
        else:
            least_come, least_go = go + cut.net, come - cut.net
        if least_come > come and (cut.only or not from_end):
            thresholds[cut.moment].append((cut.come, least_come))
        if least_go > go and (cut.only or from_end):
            thresholds[cut.moment].append((cut.go, least_go))
    return thresholds


def _balance(line: Line, cuts: list[_Cut]) -> None:
    for cut in cuts:
        before, after = line.before_all(cut.moment), line.after_all(cut.moment)
        open_come = cut.come & ~(before | after)
        open_go = cut.go & ~(before | after)
        known = (cut.come & before).bit_count() - (cut.go & before).bit_count()
        most, least = known + open_come.bit_count(), known - open_go.bit_count()
        if most < cut.net or (cut.only and least > cut.net):
            raise ContradictionError
        if most == cut.net:
            first, later = open_come, open_go
        elif cut.only and least == cut.net:
            first, later = open_go, open_come
        else:
            continue
        for m in bits(first):
            line.precede(m, cut.moment)
        for m in bits(later):
            line.precede(cut.moment, m)
