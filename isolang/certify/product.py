"""The product of a check's machine with a history, sources and orders: is the check broken?

A node is (transaction, state). A relation's pairs are all of its pairs, not only the immediate
ones, so nothing hangs on conditions on the expression: T → every later S of a sequence is one edge
into a *tail chain*, whose i-th node leads to the i-th target and to the next chain node. T0 is
left out: no edge of any relation leads to it, so no cycle passes through it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from isolang.certify.errors import NotCertifiedError
from isolang.certify.expression import Positions
from isolang.certify.facts import COMMITTED, NIL, Facts

_BITS_LIMIT = 4_000_000_000  # bits, of sets of transactions
_PER_SOURCE_LIMIT = 20_000_000  # edge visits, when words may not be repeated


class Machine(Struct, frozen=True):
    """States and labelled steps; state 0 is the start, which words begin in.

    Attributes:
        states: their number.
        steps: relation to its steps ``(q, q')``, sorted.
        accepting: states at which a word may end. In a looped machine an ε-step leads from each to
            the start.
        looped: whether words are repeated (L(e)⁺) or read once (L(e)).
    """

    states: int
    steps: Mapping[str, tuple[tuple[int, int], ...]]
    accepting: tuple[int, ...]
    looped: bool


def machine(positions: Positions, *, looped: bool) -> Machine:
    """The machine of an expression without the empty word.

    Positions with the same future are merged (partition refinement), the start with none of them:
    in ``so^* ; rw`` the start and the position of ``so`` have the same future, but a cycle of
    ``so`` alone, which would then run through the start, completes no word. In a looped machine a
    position at which a word must end is the start itself.
    """
    labels, follow = positions.labels, positions.follow
    count = len(labels)
    block = [0] + [1 if p in positions.accepting else 2 for p in range(1, count)]
    while True:
        signature = [
            (block[p], frozenset((labels[f], block[f]) for f in follow[p])) for p in range(count)
        ]
        numbers: dict[tuple[int, frozenset[tuple[str, int]]], int] = {}
        refined = [numbers.setdefault(s, len(numbers)) for s in signature]
        if len(set(refined)) == len(set(block)):
            break
        block = refined
    ends = {block[p] for p in positions.accepting}
    going_on = {block[p] for p in range(count) if follow[p]}
    names: dict[int, int] = {block[0]: 0}
    for b in sorted(set(block) - {block[0]}):
        names[b] = 0 if looped and b in ends and b not in going_on else len(set(names.values()))
    steps: dict[str, set[tuple[int, int]]] = {}
    for p in range(count):
        for f in follow[p]:
            steps.setdefault(labels[f], set()).add((names[block[p]], names[block[f]]))
    return Machine(
        states=len(set(names.values())),
        steps={label: tuple(sorted(s)) for label, s in steps.items()},
        accepting=tuple(sorted({names[b] for b in ends} - {0})),
        looped=looped,
    )


class Read(NamedTuple):
    """An external read, and what was chosen for it."""

    reader: int
    key: int
    source: int
    op: int


class Product:
    """The graph of one check.

    Args:
        facts: the history.
        included: the included transactions, ascending, T0 left out.
        reads: the external reads of included transactions.
        orders: per key, its included writers in version order, T0 left out.
        statements: a read of each statement that is a place of its own; those are numbered after
            the transactions, and stand in ``reads`` for the reader.
        machine: of the check's expression.
    """

    def __init__(  # noqa: PLR0917 - a choice, and what it is judged by
        self,
        facts: Facts,
        included: Sequence[int],
        reads: Sequence[Read],
        orders: Sequence[Sequence[int]],
        statements: Sequence[int],
        machine: Machine,
    ) -> None:
        self._facts = facts
        self._machine = machine
        self._included = included
        self._successors: list[list[int]] = [
            [] for _ in range((facts.n + len(statements)) * machine.states)
        ]
        self._tails: dict[tuple[str, int, int], int] = {}
        if machine.looped:
            for t in included:
                for q in machine.accepting:
                    self._edge(self.node(t, q), self.node(t, 0))
        for relation, of_kind in self._kinds(reads, "wr"):
            for p, q in machine.steps[relation]:
                for read in of_kind:
                    if read.source != facts.n:
                        self._edge(self.node(read.source, p), self.node(read.reader, q))
        passing = {
            "W": {t for order in orders for t in order},
            "R": {read.reader for read in reads},
        }
        for test, members in passing.items():
            for p, q in machine.steps.get(test, ()):
                for t in members:
                    self._edge(self.node(t, p), self.node(t, q))
        self._given(reads, orders)
        self._by_statement(statements)
        self._to_writes(statements, orders)
        self._version_order(orders)
        for relation, of_kind in self._kinds(reads, "rw"):
            self._anti_dependencies(relation, of_kind, orders)

    def _kinds(self, reads: Sequence[Read], relation: str) -> Iterator[tuple[str, list[Read]]]:
        """The parts of ``wr`` or ``rw`` that the machine has, each with the reads that it is of."""
        of_predicate = self._facts.of_predicate
        for name, wanted in (
            (relation, (False, True)),
            (f"i{relation}", (False,)),
            (f"p{relation}", (True,)),
        ):
            if name in self._machine.steps:
                yield name, [read for read in reads if of_predicate(read.op) in wanted]

    def node(self, t: int, state: int) -> int:
        """The number of a node."""
        return t * self._machine.states + state

    def _edge(self, a: int, b: int) -> None:
        self._successors[a].append(b)

    def _tail(self, name: str, number: int, state: int, targets: Sequence[int]) -> int:
        """The first of ``len(targets)`` chain nodes: node i leads to target i, …, at ``state``."""
        at = (name, number, state)
        if at not in self._tails:
            first = self._tails[at] = len(self._successors)
            for i, t in enumerate(targets):
                self._successors.append([self.node(t, state)])
                if i + 1 < len(targets):
                    self._edge(first + i, first + i + 1)
        return self._tails[at]

    def _to_later(  # noqa: PLR0917 - one edge into one chain, named by all its coordinates
        self,
        name: str,
        number: int,
        t: int,
        step: tuple[int, int],
        later: int,
        targets: Sequence[int],
    ) -> None:
        """Edges from ``t`` to ``targets[later:]``."""
        if later < len(targets):
            chain = self._tail(name, number, step[1], targets)
            self._edge(self.node(t, step[0]), chain + later)

    def _given(self, reads: Sequence[Read], orders: Sequence[Sequence[int]]) -> None:
        """The given relations, of all transactions or between those that access one key."""
        lead = {
            "so": self._session_order,
            "rt": self._real_time,
            "group-rt": self._real_time_of_groups,
            "done": self._moments,
            "late": self._moments,
        }
        for label in self._machine.steps:
            relation, _, ends = label.rstrip("]").partition("[")
            if relation == "locked":
                for key, order in enumerate(orders):
                    self._moments(label, key, order, order)
            elif relation in lead and not ends:
                lead[relation](label, -1, self._included, self._included)
            elif relation in lead:
                passing: dict[str, list[set[int]]] = {
                    "W": [set(order) for order in orders],
                    "R": [set() for _ in orders],
                }
                for reader, key, _, _ in reads:
                    passing["R"][key].add(reader)
                first, last = (passing[end] for end in ends.split(","))
                for key in range(len(orders)):
                    lead[relation](label, key, sorted(first[key]), sorted(last[key]))

    def _session_order(
        self, label: str, key: int, tails: Sequence[int], heads: Sequence[int]
    ) -> None:
        facts = self._facts
        sessions: dict[int, list[int]] = {}
        for t in heads:
            sessions.setdefault(facts.session[t], []).append(t)
        for t in tails:
            number = facts.session[t]
            if facts.status[t] == COMMITTED and number in sessions:
                later = bisect_right(sessions[number], t)
                for step in self._machine.steps[label]:
                    self._to_later(f"{label} {key}", number, t, step, later, sessions[number])

    def _real_time(
        self, label: str, key: int, tails: Sequence[int], heads: Sequence[int], group: int = -1
    ) -> None:
        facts = self._facts
        for clock, some, others in self._clocks(tails, heads):
            by_begin = sorted(others, key=lambda t: facts.begin[t])
            begins = [facts.begin[t] for t in by_begin]
            for step in self._machine.steps[label]:
                for t in some:
                    if facts.status[t] == COMMITTED:
                        later = bisect_right(begins, self._by(clock, facts.end[t], t))
                        self._to_later(f"{label} {key} {group}", clock, t, step, later, by_begin)

    def _clocks(
        self, tails: Sequence[int], heads: Sequence[int]
    ) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
        """All moments, as -1; and where clocks may be wrong, those of each session by its own."""
        yield -1, tails, heads
        session = self._facts.session
        for clock in sorted({session[t] for t in tails}) if self._facts.has_own_clocks else ():
            some, others = ([t for t in ends if session[t] == clock] for ends in (tails, heads))
            yield clock, some, others

    def _by(self, clock: int, answered: int, t: int) -> int:
        return answered if clock < 0 else self._facts.by_own_clock(answered, t)

    def _real_time_of_groups(
        self, label: str, key: int, tails: Sequence[int], heads: Sequence[int]
    ) -> None:
        group = self._facts.group
        for one in sorted({group[t] for t in tails} - {NIL}):
            some, others = ([t for t in ends if group[t] == one] for ends in (tails, heads))
            self._real_time(label, key, some, others, one)

    def _moments(self, label: str, key: int, tails: Sequence[int], heads: Sequence[int]) -> None:
        """``done``, ``late`` and ``locked``: to whoever sent its COMMIT later."""
        facts = self._facts
        for clock, some, others in self._clocks(tails, heads):
            by = sorted((when, t) for t in others if (when := facts.commit_sent(t)) > -(2**63))
            targets = [other for _, other in by]
            for t in some:
                if label == "locked":
                    answered = facts.write_answered(t, key)
                elif label.startswith("done"):
                    answered = facts.commit_answered(t)
                else:
                    answered = facts.first_answered(t)
                if answered == 2**63 - 1:
                    continue
                later = bisect_right(by, (self._by(clock, answered, t), facts.n))
                behind = bisect_right(by, (facts.commit_sent(t), facts.n))
                for step in self._machine.steps[label]:
                    # No pair leads to itself: single edges up to its own place, the chain behind.
                    for _, other in by[later:behind]:
                        if other != t:
                            self._edge(self.node(t, step[0]), self.node(other, step[1]))
                    self._to_later(f"{label} {key}", clock, t, step, max(later, behind), targets)

    def _by_statement(self, statements: Sequence[int]) -> None:
        """To the statements that were sent after COMMIT, and from those answered before one."""
        facts, steps = self._facts, self._machine.steps
        owner = [facts.txn_of[op] for op in statements]
        times = [facts.statement_times(op) for op in statements]
        for clock, members, _ in self._clocks(self._included, self._included):
            mine = [i for i, t in enumerate(owner) if clock < 0 or facts.session[t] == clock]
            sent = sorted((lo, i) for i in mine if (lo := times[i][0]) > -(2**63))
            places = [facts.n + i for _, i in sent]
            for step in steps.get("committed-before", ()):
                for t in members:
                    if (answered := facts.commit_answered(t)) < 2**63 - 1:
                        later = bisect_right(sent, (self._by(clock, answered, t), len(times)))
                        self._to_later("statements", clock, t, step, later, places)
            commits = sorted(
                (when, t) for t in members if (when := facts.commit_sent(t)) > -(2**63)
            )
            owners = [t for _, t in commits]
            for i in mine:
                if times[i][1] == 2**63 - 1:
                    continue
                told = self._by(clock, times[i][1], owner[i])
                for step in steps.get("answered-before", ()):
                    later = bisect_right(sent, (told, len(times)))
                    self._to_later("statements", clock, facts.n + i, step, later, places)
                for step in steps.get("committed-after", ()):
                    later = bisect_right(commits, (told, facts.n))
                    self._to_later("commits", clock, facts.n + i, step, later, owners)
        for i in range(len(statements)):
            for p, q in steps.get("po", ()):
                for j in range(i + 1, len(statements)):
                    if owner[j] != owner[i]:
                        break
                    self._edge(self.node(facts.n + i, p), self.node(facts.n + j, q))
            # What leads to a transaction as one that reads leads to each of its statements.
            for q in range(1, self._machine.states):
                self._edge(self.node(owner[i], q), self.node(facts.n + i, q))
            for p, q in steps.get("tx", ()):
                self._edge(self.node(facts.n + i, p), self.node(owner[i], q))

    def _to_writes(self, statements: Sequence[int], orders: Sequence[Sequence[int]]) -> None:
        """From a writer to what later writers of the key read behind their last write of it."""
        facts, steps = self._facts, self._machine.steps
        of_owner: dict[int, list[int]] = {}
        for i, op in enumerate(statements):
            of_owner.setdefault(facts.txn_of[op], []).append(i)
        for p, q in steps.get("to-write", ()):
            ends = [r for middle, r in steps.get("po", ()) if middle == q]
            for key, order in enumerate(orders):
                later = -1  # the chain node of the next writer
                for t in reversed(order):
                    if later >= 0:
                        self._edge(self.node(t, p), later)
                    behind = [
                        self.node(facts.n + i, r)
                        for i in of_owner.get(t, ())
                        if facts.program_order(facts.last[t][key], statements[i])
                        for r in ends
                    ]
                    self._successors.append([*behind, *([later] if later >= 0 else [])])
                    later = len(self._successors) - 1

    def _version_order(self, orders: Sequence[Sequence[int]]) -> None:
        for step in self._machine.steps.get("ww", ()):
            for key, order in enumerate(orders):
                for i, t in enumerate(order):
                    self._to_later("key", key, t, step, i + 1, order)

    def _anti_dependencies(
        self, relation: str, reads: Sequence[Read], orders: Sequence[Sequence[int]]
    ) -> None:
        position = [{t: i for i, t in enumerate(order)} for order in orders]
        for reader, key, source, _ in reads:
            order = orders[key]
            later = 0 if source == self._facts.n else position[key][source] + 1
            own = position[key].get(reader, -1)
            for step in self._machine.steps[relation]:
                # rw leaves out the identity: single edges up to the own write, the chain behind it.
                if own >= later:
                    for t in order[later:own]:
                        self._edge(self.node(reader, step[0]), self.node(t, step[1]))
                self._to_later("key", key, reader, step, max(later, own + 1), order)

    def broken(self) -> bool:
        """Whether some closed walk spells a violating word.

        Raises:
            NotCertifiedError: words may not be repeated, and the history is too large to start
                from each transaction.
        """
        return self._start_on_cycle() if self._machine.looped else self._returns()

    def origins(self) -> list[int]:
        """For each node, the transactions whose start reaches it, a bit each.

        Raises:
            NotCertifiedError: the product has a cycle, or is too large.
        """
        if len(self._successors) * len(self._included) > _BITS_LIMIT:
            raise NotCertifiedError("not certified: return paths in a large history")
        if self._peel():
            raise NotCertifiedError(
                "not certified: irreflexive over words that run in cycles, which no other check "
                "forbids"
            )
        incoming = [0] * len(self._successors)
        for targets in self._successors:
            for v in targets:
                incoming[v] += 1
        origins = [0] * len(self._successors)
        work = [v for v, count in enumerate(incoming) if count == 0]
        starts = {self.node(t, 0): 1 << t for t in self._included}
        while work:
            v = work.pop()
            reaching = origins[v] | starts.get(v, 0)
            for w in self._successors[v]:
                origins[w] |= reaching
                incoming[w] -= 1
                if incoming[w] == 0:
                    work.append(w)
        return origins

    def _start_on_cycle(self) -> bool:
        # SOUND BECAUSE a word begins at a start and every pass through a start ends one word and
        # begins the next: a closed walk through a start is a repetition of words, and a cycle that
        # avoids all starts completes none.
        left = self._peel()
        component = self._components(left)
        sizes: dict[int, int] = {}
        for v in component:
            sizes[component[v]] = sizes.get(component[v], 0) + 1
        return any(
            sizes[component[v]] > 1 or v in self._successors[v]
            for t in self._included
            if (v := self.node(t, 0)) in component
        )

    def _peel(self) -> list[int]:
        """The nodes that are left when those without predecessors are taken away (Kahn 1962)."""
        incoming = [0] * len(self._successors)
        for targets in self._successors:
            for v in targets:
                incoming[v] += 1
        work = [v for v, count in enumerate(incoming) if count == 0]
        gone = len(work)
        while work:
            for v in self._successors[work.pop()]:
                incoming[v] -= 1
                if incoming[v] == 0:
                    work.append(v)
                    gone += 1
        return [v for v, count in enumerate(incoming) if count] if gone < len(incoming) else []

    def _components(self, nodes: Sequence[int]) -> dict[int, int]:
        """Strongly connected components (Tarjan 1972), without recursion."""
        number: dict[int, int] = {}
        low: dict[int, int] = {}
        component: dict[int, int] = {}
        stack: list[int] = []
        for root in nodes:
            if root in number:
                continue
            number[root] = low[root] = len(number)
            stack.append(root)
            path = [(root, iter(self._successors[root]))]
            while path:
                v, rest = path[-1]
                for w in rest:
                    if w not in number:
                        number[w] = low[w] = len(number)
                        stack.append(w)
                        path.append((w, iter(self._successors[w])))
                        break
                    if w not in component:
                        low[v] = min(low[v], number[w])
                else:
                    path.pop()
                    if path:
                        low[path[-1][0]] = min(low[path[-1][0]], low[v])
                    if low[v] == number[v]:
                        while v not in component:
                            component[stack.pop()] = v
        return component

    def _returns(self) -> bool:
        """Whether some transaction reaches itself by one word."""
        edges = sum(len(targets) for targets in self._successors)
        if edges * len(self._included) > _PER_SOURCE_LIMIT:
            raise NotCertifiedError(
                "not certified: irreflexive over an expression whose words do not compose, "
                "on a large history"
            )
        for t in self._included:
            goals = {self.node(t, q) for q in self._machine.accepting}
            seen = {self.node(t, 0)}
            work = list(seen)
            while work:
                for v in self._successors[work.pop()]:
                    if v in goals:
                        return True
                    if v not in seen:
                        seen.add(v)
                        work.append(v)
        return False
