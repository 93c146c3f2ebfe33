"""Asks what a core's transactions can read, and turns the answers into candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from isolang.foresee.completion import Completion, Completions, OpenReads, Step
from isolang.foresee.run import INITIAL, Access, Arrangement, ExecutedProgram, PassedRun, bits
from isolang.foresee.stranger import Candidate
from isolang.history import columns as c


class Core(Struct, frozen=True):
    """A core that a question can be asked about.

    Attributes:
        members: the transactions of the core; if there is one stranger, T comes last.
        context: the transactions that must run before the core, as bits.
    """

    members: tuple[int, ...]
    keys: tuple[int, ...]
    context: int


class CoreQuestions:
    """Builds the questions about the cores of a run."""

    def __init__(self, run: PassedRun, completions: Completions) -> None:
        """Prepare questions about the cores of a run."""
        self._run, self._order, self._completions = run, run.order, completions

    def question(self, core: Core, stranger: int | None) -> OpenReads:
        """Return the question of what the transactions of a core can read."""
        order, history, ask = self._order, self._run.history, self._completions
        number = {key: x for x, key in enumerate(core.keys)}
        place = {i: n for n, i in enumerate(core.members)}
        inside = sum(1 << i for i in core.members)
        steps: list[tuple[Step, ...]] = []
        sources: list[tuple[int, ...] | None] = []
        for i in core.members:
            own: list[tuple[Step, int]] = []
            for step in order.programs[i].steps:
                x = number.get(step.key)
                if x is None:
                    continue
                if step.kind in (c.WRITE, c.APPEND):
                    own = [one for one in own if one[0] != ("w", x)]
                    own.append((("w", x), INITIAL))
                elif step.source is not None:
                    source = self._source(step, i, inside)
                    # A list read shows the appends of other transactions, whether it comes before
                    # or after the transaction's own append.
                    kinds = [kind for kind, _ in own]
                    at = kinds.index(("w", x)) if ("w", x) in kinds else len(own)
                    own.insert(at, (("r", x), place.get(source, INITIAL)))
            if not ask.ordered:
                own.sort()
            steps.append(tuple(step for step, _ in own))
            recorded = tuple(source for (kind, _), source in own if kind == "r")
            sources.append(recorded if stranger not in (None, i) else None)
        classes: dict[int, int] = {}
        numbers = [self._run.numbers[i] for i in core.members]
        return OpenReads(
            steps=tuple(steps),
            sessions=tuple(
                classes.setdefault(order.sessions[i], len(classes)) for i in core.members
            ),
            sources=tuple(sources),
            lists=tuple(self._is_list(key) for key in core.keys),
            labels=tuple(
                frozenset(map(ask.patterns_of_label, history.labels_of(n))) for n in numbers
            ),
            levels=tuple(
                ask.patterns_of_level(name) if (name := history.level_of(n)) else None
                for n in numbers
            ),
            groups=tuple(history.group_of(n) for n in numbers) if ask.compares_groups else (),
            keys=tuple(ask.patterns_of_key(history.key_name(key)) for key in core.keys),
        )

    def _source(self, step: Access, reader: int, inside: int) -> int:
        """Return the member that a read reads from, or ``INITIAL``."""
        source = step.source
        assert source is not None
        if step.kind == c.READ_LIST and source >= 0:
            seen = self._order.writers.get(step.key, 0) & (2 << source) - 1
            return (seen & inside & ~(1 << reader)).bit_length() - 1
        return source

    def _is_list(self, key: int) -> bool:
        order = self._order
        using = order.writers.get(key, 0) | order.readers.get(key, 0)
        steps = order.programs[using.bit_length() - 1].steps
        return any(s.key == key and s.kind in (c.APPEND, c.READ_LIST) for s in steps)

    def candidate(
        self, core: Core, stranger: int | None, answer: Completion
    ) -> tuple[Candidate, Sequence[int]]:
        """Return the candidate for an answer, with each transaction's number in the run."""
        proposed = self._rearranged_candidate if stranger is None else self._candidate_with_stranger
        return proposed(core, answer)

    def _open_reads(self, core: Core, answer: Completion) -> Iterator[dict[int, int]]:
        """Yield, for each member, the sources of its reads of the core's keys, by step index."""
        number = {key: x for x, key in enumerate(core.keys)}
        for i, sources in zip(core.members, answer.sources, strict=True):
            steps = self._order.programs[i].steps
            reads = [at for at in self._order.programs[i].reads if steps[at].key in number]
            if not self._completions.ordered:
                reads.sort(key=lambda at: number[steps[at].key])
            yield dict(zip(reads, sources, strict=True))

    def _candidate_with_stranger(
        self, core: Core, answer: Completion
    ) -> tuple[Candidate, Sequence[int]]:
        order, stranger = self._order, core.members[-1]
        program = order.programs[stranger]
        (*_, opened) = self._open_reads(core, answer)
        members = core.context
        for i in core.members[:-1]:
            members |= 1 << i
        sources = []
        for at in program.reads:
            source = opened.get(at, INITIAL)
            if source != INITIAL:
                sources.append(core.members[source])
            else:
                newest = order.writers.get(program.steps[at].key, 0) & core.context
                sources.append(newest.bit_length() - 1)
        candidate = _candidate(order, stranger, sources, core.members[:-1], members)
        return candidate, range(len(order))

    def _rearranged_candidate(
        self, core: Core, answer: Completion
    ) -> tuple[Candidate, Sequence[int]]:
        order = self._order
        inside = sum(1 << i for i in core.members)
        first, who = core.context, list[int]()
        for i in core.members:
            first &= ~order.later[i]
        who += bits(first)
        for n in answer.order:
            i = core.members[n]
            between = core.context & order.earlier[i]
            who += [j for j in bits(between) if j not in who]
            who.append(i)
        place = {i: n for n, i in enumerate(who)}
        opened = dict(zip(core.members, self._open_reads(core, answer), strict=True))
        newest: dict[int, int] = {}  # the last writer of each key within the context
        last: dict[int, int] = {}
        programs = []
        for n, i in enumerate(who):
            program, steps = order.programs[i], list[Access]()
            for at, step in enumerate(program.steps):
                if step.source is None:
                    steps.append(step)
                    continue
                source = last.get(step.key, INITIAL)
                if at in opened.get(i, {}):
                    member = opened[i][at]
                    source = (
                        newest.get(step.key, INITIAL)
                        if member == INITIAL
                        else place[core.members[member]]
                    )
                steps.append(replace(step, source=source))
            programs.append(ExecutedProgram.of(steps))
            last |= dict.fromkeys(program.writes, n)
            if not inside >> i & 1:
                newest |= dict.fromkeys(program.writes, n)
        stranger = len(who) - 1
        arrangement = Arrangement(programs, [order.sessions[i] for i in who])
        steps_of_t = programs[stranger].steps
        read = [steps_of_t[at].source for at in programs[stranger].reads]
        sources = [source for source in read if source is not None]
        others = [place[core.members[n]] for n in answer.order[:-1]]
        members = (1 << stranger) - 1
        return _candidate(arrangement, stranger, sources, others, members), who


def _candidate(
    order: Arrangement, stranger: int, sources: Sequence[int], others: Sequence[int], members: int
) -> Candidate:
    """Return a candidate whose overlooked version is the first version missed by a read."""
    program = order.programs[stranger]
    core = sum(1 << i for i in others)
    missed = [
        (at, (later & -later).bit_length() - 1)
        for at, (where, source) in enumerate(zip(program.reads, sources, strict=True))
        if (later := order.writers.get(program.steps[where].key, 0) & core & -(2 << source if
            source >= 0 else 1))
    ]  # fmt: skip
    at, x = missed[0] if missed else (0, others[0])
    path = (x, *(i for i in others if i != x))
    return Candidate(order, stranger, tuple(sources), x, path, members, 1 << x, at)
