"""A slow reference model of the pre-pass in plain Python, for comparison with the native one.

The model follows the definitions in the language reference and shares no code with
``native/problem``. It searches all operations each time and uses no index. The tests compare the
two on small random histories.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from isolang.problem import AnomalyKind as Kind

COMMITTED, ABORTED, INDETERMINATE, INITIAL = range(4)
READ, WRITE, APPEND, READ_LIST, READ_ONE_OF, READ_NONE_OF = range(6)
SETS = READ_ONE_OF, READ_NONE_OF
NIL, UNKNOWN = 0, -1
BY_VALUE, FROM_INITIAL, MISSING = -1, -2, -3
OUT, IN, OPTIONAL = range(3)


class RefusedError(Exception):
    """The error that a problem cannot express the history."""


@dataclass
class Op:
    number: int
    txn: int
    kind: int
    ok: bool
    key: int
    value: object  # an atom, a tuple of atoms (a list or a set), or None if unknown
    source: int


@dataclass
class Result:
    inclusion: list[int] = field(default_factory=list)
    writers: dict[int, set[tuple[int, int, int]]] = field(default_factory=dict)  # txn, value, op
    reads: dict[int, frozenset[int]] = field(default_factory=dict)  # op -> candidate transactions
    order: set[tuple[int, int, int, int]] = field(default_factory=set)  # key, before, after, op
    anomalies: set[tuple[int, int, int, int, int]] = field(default_factory=set)
    impossible: set[int] = field(default_factory=set)
    failed: int = 0
    unknown: int = 0
    refused: bool = False


class Model:
    def __init__(self, columns) -> None:
        self.n = columns.transactions()
        self.keys = range(columns.n_keys())
        self.status = columns.txn_status.tolist()
        self.initial = columns.initial_value.tolist()
        lists = columns.list_start.tolist()
        self.ops: list[Op] = []
        for t in range(self.n):
            for i in range(columns.op_start[t], columns.op_start[t + 1]):
                kind, value = int(columns.op_kind[i]), int(columns.op_value[i])
                if value == UNKNOWN:
                    value = None
                elif kind in (READ_LIST, *SETS):
                    value = tuple(columns.list_values[lists[value] : lists[value + 1]].tolist())
                self.ops.append(
                    Op(
                        i,
                        t,
                        kind,
                        bool(columns.op_ok[i]),
                        int(columns.op_key[i]),
                        value,
                        int(columns.op_source[i]),
                    )
                )

    # --- kinds of operations and keys ---

    def live(self, t: int) -> bool:
        return self.status[t] in (COMMITTED, INDETERMINATE)

    def known_reads(self) -> list[Op]:
        return [
            o
            for o in self.ops
            if o.kind in (READ, READ_LIST, *SETS)
            and o.ok
            and self.live(o.txn)
            and o.value is not None
        ]

    def updates(self, key: int) -> list[Op]:
        return [o for o in self.ops if o.kind in (WRITE, APPEND) and o.key == key]

    def own(self, t: int, key: int) -> list[Op]:
        return [o for o in self.updates(key) if o.txn == t and o.ok]

    def is_list(self, key: int) -> bool:
        return any(o.kind == APPEND and o.ok for o in self.updates(key)) or any(
            o.kind == READ_LIST and o.value for o in self.known_reads() if o.key == key
        )

    def check_expressible(self) -> None:
        for key in filter(self.is_list, self.keys):
            if any(o.kind == WRITE and o.ok for o in self.updates(key)):
                raise RefusedError("written and appended to")
            if any(
                o.kind == APPEND and o.ok and self.status[o.txn] == INITIAL
                for o in self.updates(key)
            ):
                raise RefusedError("the initial transaction appends")
            for o in self.ops:
                if o.key != key or not o.ok or not self.live(o.txn):
                    continue
                if o.kind in SETS and o.value is not None:
                    raise RefusedError("a set-read of a list")
                if o.kind in (READ, READ_LIST):
                    if o.source != BY_VALUE:
                        raise RefusedError("a list read with a source")
                    if o.kind == READ and o.value not in (None, NIL, self.initial[key]):
                        raise RefusedError("a register read of a list")

    # --- registers ---

    def wrote_it(self, read: Op, write: Op) -> bool:
        """Return whether the read returned, by value or by name, what an operation wrote."""
        if read.source != BY_VALUE:
            return read.source == write.number
        if read.kind in SETS:
            return self.allows(read, write.value)
        return (NIL if read.value == () else read.value) == write.value

    def allows(self, read: Op, value: int) -> bool:
        return (value in read.value) == (read.kind == READ_ONE_OF)

    def may_be_initial(self, read: Op) -> bool:
        initial = self.initial[read.key]
        if read.kind == READ_NONE_OF:
            return initial not in read.value
        values = read.value if read.kind == READ_ONE_OF else [read.value or NIL]
        return NIL in values or initial in values

    def register_candidates(self, read: Op) -> set[int]:
        found = set()
        if read.source == FROM_INITIAL or (read.source == BY_VALUE and self.may_be_initial(read)):
            found.add(self.n)
        for t in range(self.n):
            own = self.own(t, read.key)
            if t == read.txn or not own or not self.wrote_it(read, own[-1]):
                continue
            if self.live(t):
                found.add(t)
            if self.status[t] == INITIAL and read.source >= 0:
                found.add(self.n)
        return found

    def register_anomalies(self, read: Op) -> set[tuple[Kind, int, int]]:
        own = self.own(read.txn, read.key)
        before = [o for o in own if o.number < read.number]
        after = [o for o in own if o.number > read.number]
        later = next(
            ((Kind.FUTURE_READ, read.txn, o.number) for o in after if self.wrote_it(read, o)), None
        )
        if before:
            if self.wrote_it(read, before[-1]):
                return self.other_value(read, before[-1])
            if read.kind in SETS:
                return {(Kind.NOT_OWN_WRITE, read.txn, before[-1].number)}
            older = [o for o in before if self.wrote_it(read, o)]
            if older:
                return {(Kind.NOT_LAST_OWN_WRITE, read.txn, older[-1].number)}
            return {later or (Kind.NOT_OWN_WRITE, read.txn, before[-1].number)}
        if self.register_candidates(read):
            named = self.ops[read.source] if read.source >= 0 else None
            return self.other_value(read, named)
        if later:
            return {later}
        writes = [o for o in self.updates(read.key) if o.kind == WRITE and self.wrote_it(read, o)]
        dead = [o for o in writes if not o.ok or self.status[o.txn] == ABORTED]
        for kind, group in (
            (Kind.INTERMEDIATE_READ, [o for o in writes if o not in dead]),
            (Kind.ABORTED_READ, dead),
        ):
            if group:
                return {(kind, group[0].txn, group[0].number)}
        if read.source >= 0:
            return {(Kind.THIN_AIR_READ, self.ops[read.source].txn, read.source)}
        return {(Kind.THIN_AIR_READ, -1, -1)}

    def other_value(self, read: Op, named: Op | None) -> set[tuple[Kind, int, int]]:
        """Return the anomaly that a read names a version with another value, if it does."""
        if read.source == BY_VALUE or read.kind != READ or read.value is None:
            return set()
        other = (named.txn, named.number) if named else (-1, -1)
        if named is None or self.status[named.txn] == INITIAL:
            known = self.initial[read.key]
            wrong = known != NIL and read.value not in (NIL, known)
        else:
            wrong = read.value != named.value
        return {(Kind.TWO_VALUES, *other)} if wrong else set()

    def names_initial(self, read: Op) -> bool:
        """Return whether only the read itself tells the initial value of its key."""
        return (
            read.source != BY_VALUE
            and read.kind == READ
            and read.value not in (None, NIL)
            and self.initial[read.key] == NIL
            and self.n in self.register_candidates(read)
            and not any(o.number < read.number for o in self.own(read.txn, read.key))
        )

    def compare_initial(self, reads, result, wrong, doubtful) -> None:
        """Find reads that report different initial values for the same key.

        A contradiction is added to ``wrong``. If only indeterminate readers report the values, the
        transaction is added to ``doubtful``.
        """
        for read in filter(self.names_initial, reads):
            of_key = [o for o in reads if o.key == read.key and self.names_initial(o)]
            mine = next(o for o in of_key if o.txn == read.txn)
            certain = [o for o in of_key if result.inclusion[o.txn] == IN]
            told = (certain or of_key)[0]
            other = mine if mine.value != read.value else told
            if other.value == read.value:
                continue
            if other is told and other is not mine and not certain:
                doubtful.add(read.txn)
            else:
                found = (Kind.TWO_VALUES, read.txn, read.number, other.txn, other.number)
                wrong[read.txn].add(found)

    # --- lists ---

    def elements(self, read: Op) -> tuple[int, ...]:
        return read.value if read.kind == READ_LIST else ()

    def appenders(self, key: int, value: int, reader: int) -> list[int]:
        return sorted(
            {
                o.txn
                for o in self.updates(key)
                if o.ok and o.value == value and self.live(o.txn) and o.txn != reader
            }
        )

    def list_candidates(self, read: Op) -> set[int]:
        values = self.elements(read)
        if not values:
            return {self.n}
        return {
            t
            for t in self.appenders(read.key, values[-1], read.txn)
            if self.own(t, read.key)[-1].value == values[-1]
        }

    def own_tail(self, read: Op) -> tuple[int, set[tuple[Kind, int, int]]]:
        """Return how many elements at the end are the reader's own, and anomalies among them."""
        own = [o for o in self.own(read.txn, read.key) if o.number < read.number]
        values = self.elements(read)
        ends = [j for j in range(1, len(own) + 1) if values[-j:] == tuple(o.value for o in own[:j])]
        if not own or len(own) in ends:
            return len(own), set()
        if ends:
            return ends[-1], {(Kind.NOT_LAST_OWN_WRITE, read.txn, own[ends[-1] - 1].number)}
        return 0, {(Kind.NOT_OWN_WRITE, read.txn, own[-1].number)}

    def body(self, read: Op) -> tuple[int, ...]:
        values = self.elements(read)
        return values[: len(values) - self.own_tail(read)[0]]

    def is_ambiguous(self, read: Op) -> bool:
        return any(len(self.appenders(read.key, v, read.txn)) > 1 for v in self.body(read))

    def list_anomalies(self, read: Op) -> set[tuple[Kind, int, int]]:
        """Return the anomalies of a list read, each kind only once, with its first element."""
        found: dict[Kind, tuple[int, int]] = {}
        tail, wrong = self.own_tail(read)
        for kind, txn, op in wrong:
            found[kind] = (txn, op)
        body = self.body(read)
        whose = [next(iter(self.appenders(read.key, v, read.txn)), None) for v in body]
        for i, (value, writer) in enumerate(zip(body, whose, strict=True)):
            same = [o for o in self.updates(read.key) if o.value == value and o.kind == APPEND]
            mine = [o for o in same if o.ok and o.txn == read.txn]
            dead = [o for o in same if not o.ok or self.status[o.txn] == ABORTED]
            if writer is not None:
                self.block_anomalies(read, body, whose, i, tail, found)
            elif later := [o for o in mine if o.number > read.number]:
                found.setdefault(Kind.FUTURE_READ, (read.txn, later[0].number))
            elif mine:
                if not wrong:
                    found.setdefault(Kind.DUPLICATE_ELEMENT, (read.txn, mine[0].number))
            elif dead:
                found.setdefault(Kind.ABORTED_READ, (dead[0].txn, dead[0].number))
            else:
                found.setdefault(Kind.THIN_AIR_READ, (-1, -1))
        return {(kind, *other) for kind, other in found.items()}

    def block_anomalies(self, read, body, whose, i, tail, found) -> None:
        """Add the anomalies of element i: the elements of a transaction must form one block."""
        writer, value = whose[i], body[i]
        made = self.own(writer, read.key)
        first = whose.index(writer)
        fits = 0
        while fits < len(made) and body[first + fits : first + fits + 1] == (made[fits].value,):
            fits += 1
        if i == first and fits < len(made):
            if fits and first + fits == len(body) and not tail:
                found.setdefault(Kind.INTERMEDIATE_READ, (writer, made[fits - 1].number))
            else:
                found.setdefault(Kind.SPLIT_APPEND, (writer, made[fits].number))
        if i > first and i >= first + fits:
            of_value = [o for o in made if o.value == value]
            excess = sum(v == value for v in body[: i + 1]) > len(of_value)
            kind = Kind.DUPLICATE_ELEMENT if excess else Kind.SPLIT_APPEND
            found.setdefault(kind, (writer, of_value[0].number))

    # --- inclusion ---

    def sources_of(self, read: Op) -> tuple[set[int], set[int]]:
        """Return the transactions from which a read may take a value, and must take one."""
        external = not any(o.number < read.number for o in self.own(read.txn, read.key))
        if not self.is_list(read.key):
            candidates = self.register_candidates(read) if external else set()
            return candidates, candidates if len(candidates) == 1 else set()
        groups = [self.appenders(read.key, v, read.txn) for v in self.body(read)]
        return {t for g in groups for t in g}, {g[0] for g in groups if len(g) == 1}

    def inclusion(self) -> list[int]:
        possible = {t for t in range(self.n) if self.status[t] == COMMITTED}
        certain = set(possible)
        for _ in range(self.n + 1):
            for read in self.known_reads():
                may, must = self.sources_of(read)
                if read.txn in possible:
                    possible |= may
                if read.txn in certain:
                    certain |= must
        of = {False: OUT, True: OPTIONAL}
        return [IN if t in certain else of[t in possible] for t in range(self.n)] + [IN]

    # --- the whole model ---

    def run(self) -> Result:
        self.check_expressible()
        result = Result(inclusion=self.inclusion())
        result.failed = sum(not o.ok for o in self.ops)
        result.unknown = sum(
            o.kind in (READ, READ_LIST, *SETS) and o.ok and self.live(o.txn) and o.value is None
            for o in self.ops
        )
        included = [t for t in range(self.n) if result.inclusion[t]]
        for key in self.keys:
            result.writers[key] = {
                (t, own[-1].value, own[-1].number) for t in included if (own := self.own(t, key))
            } | {(self.n, self.initial[key], -1)}
        wrong: dict[int, set[tuple[int, int, int, int, int]]] = {t: set() for t in included}
        doubtful: set[int] = set()
        merged: set[object] = set()
        reads = [o for o in self.known_reads() if result.inclusion[o.txn]]
        for read in reads:
            external = not any(o.number < read.number for o in self.own(read.txn, read.key))
            as_list = self.is_list(read.key)
            if as_list and self.is_ambiguous(read):
                doubtful.add(read.txn)
            candidates = self.list_candidates(read) if as_list else self.register_candidates(read)
            if external:
                if as_list:
                    seen = self.elements(read)[-1:]
                elif read.kind in SETS:
                    seen = ("set", read.number)
                elif read.source == BY_VALUE:
                    seen = NIL if read.value == () else read.value
                else:
                    seen = ("source", frozenset(candidates), None if candidates else read.number)
                repeated = (read.txn, read.key, seen) in merged
                merged.add((read.txn, read.key, seen))
                if repeated and not as_list:
                    if candidates:
                        found = self.register_anomalies(read)
                        wrong[read.txn] |= {(k, read.txn, read.number, *o) for k, *o in found}
                    continue
                if not repeated and (candidates or result.inclusion[read.txn] == OPTIONAL):
                    result.reads[read.number] = frozenset(candidates)
            if as_list and self.is_ambiguous(read):
                # The reader's own appends do not depend on who wrote the other elements.
                own_wrong = self.own_tail(read)[1]
                wrong[read.txn] |= {(k, read.txn, read.number, *other) for k, *other in own_wrong}
                continue
            found = self.list_anomalies(read) if as_list else self.register_anomalies(read)
            wrong[read.txn] |= {(kind, read.txn, read.number, *other) for kind, *other in found}
        self.compare_initial(reads, result, wrong, doubtful)
        for key in filter(self.is_list, self.keys):
            self.order(key, [o for o in reads if o.key == key], result, wrong, doubtful)
        for t in included:
            if result.inclusion[t] == IN:
                result.anomalies |= wrong[t]
            elif wrong[t]:
                result.impossible.add(t)
        result.refused = bool(doubtful - result.impossible)
        if result.refused and not result.anomalies:
            raise RefusedError(
                "ambiguous, or an order that only an indeterminate transaction shows"
            )
        return result

    def order(self, key, reads, result, wrong, doubtful) -> None:
        longest = max(
            (o for o in reads if result.inclusion[o.txn] == IN),
            key=lambda o: len(self.elements(o)),
            default=None,
        )
        best = self.elements(longest) if longest else ()
        shown = self.shown(longest) if longest else []
        most, telling = shown, longest
        writers = [t for t, _, _ in result.writers[key] if t != self.n]
        for read in reads:
            values = self.elements(read)
            short = min(len(values), len(best))
            if values[:short] != best[:short]:
                wrong[read.txn].add(
                    (Kind.INCOMPATIBLE_ORDER, read.txn, read.number, longest.txn, longest.number)
                )
                if result.inclusion[read.txn] == IN and len(self.shown(read)) > len(most):
                    most, telling = self.shown(read), read
            elif len(values) > len(best) and len(set(writers) - set(shown)) > 1:
                doubtful.add(read.txn)
        hidden = [t for t in writers if t not in most]
        pairs = [*pairwise(most), *((most[-1], t) for t in hidden if most)]
        result.order |= {(key, a, b, telling.number) for a, b in pairs}

    def shown(self, read) -> list[int]:
        """Return the writers whose elements a list read shows, in order of their first elements."""
        shown: list[int] = []
        if self.is_ambiguous(read):
            return shown
        for value in self.body(read):
            by = self.appenders(read.key, value, read.txn)
            own = value in [o.value for o in self.own(read.txn, read.key)]
            if not by and own:  # an anomaly, but the element still shows its writer
                by = [read.txn]
            shown += [t for t in by if t not in shown]
        if self.own_tail(read)[0] and read.txn not in shown:
            shown.append(read.txn)
        return shown
