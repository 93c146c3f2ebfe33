"""Determines which of a specification's checks a history could violate at all.

A violation is a closed walk whose steps are pairs of `so`, `rt`, `wr`, `ww` or `rw`. The possible
sources of reads, the keys with two writers, and the sessions with two transactions limit the pairs
that these relations can have under any choice. If no closed walk of such pairs spells a word of the
check, no choice violates it. A walk that does spell one proves nothing, because its pairs may
exclude each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from isolang.comparison.normal import Axiom, Normal, normal
from isolang.comparison.walks import violation_language
from isolang.encodings.relational.bounded import Bounded
from isolang.encodings.relational.circuit import Circuit
from isolang.encodings.relational.interpretation import T0
from isolang.encodings.relational.relation import EMPTY
from isolang.errors import IsolangError
from isolang.history.columns import PARTLY_KNOWN, WRITE
from isolang.history.stats import Possible
from isolang.language.classify.automaton import restriction_of, sort_letters
from isolang.language.classify.event_graph import steps_of
from isolang.language.classify.expression import NotRegularError, is_on_one_key, simplify
from isolang.language.classify.regular import Dfa, TooLargeError, words_without
from isolang.language.meaning.show import show_check
from isolang.language.vocabulary import (
    BUILTIN_WORDS,
    PARTS,
    ROWS,
    ends_of,
    is_test,
    relation_of,
    whole_letter,
)
from isolang.limits import Work
from isolang.problem.event_graph import admitted_keys, transactions_passing
from isolang.problem.polygraph import observed_version_orders
from isolang.problem.problem import build_problem

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec

MAX_PAIRS = 200_000
"""The number of pairs above which a relation is not listed, but only tested for having any."""

_LARGE = 200_000
"""The maximum number of operations in a history analysed for vacuity."""

WORK = 1_000_000
"""The number of pairs and walk steps that the analysis of all checks may visit. If it needs more,
the history is assumed to be able to violate every remaining check.
"""

Pair: TypeAlias = tuple[int, int, int]
"""A pair's first transaction, second transaction, and key; -1 if it has no key."""

_NO_PAIRS: Mapping[str, str] = {
    "so": "no session has two transactions",
    "rt": "no transaction ended before another one began",
    "ww": "no key is written by two transactions",
    "wr": "no transaction could have read what another one wrote",
    "iwr": "no transaction could have read by key what another one wrote",
    "pwr": "no predicate read could have met what another transaction wrote",
    "rw": "no transaction read a version that another one could have overwritten",
    "irw": "no transaction read by key a version that another one could have overwritten",
    "prw": "no predicate read met a version that another transaction could have overwritten",
}

_BUILTIN = frozenset(word.name for word in BUILTIN_WORDS)

_READS_OF = {part: (which,) for parts in PARTS.values() for which, part in enumerate(parts)}
"""The kind of reads for each part of a relation: 0 for item reads, 1 for predicate reads."""


def possible_violations(history: History, level: Normal) -> list[Possible]:
    """Return, for each check of a specification, whether some choices on a history may violate it.

    Intrinsic anomalies, such as an aborted read, are ignored, because they violate every
    specification that mentions reads.

    Raises:
        UnsupportedError: if part of the history cannot be decided by any specification.

    >>> from isolang.comparison.normal import normal
    >>> from isolang.history import History, Transaction
    >>> from isolang.language.load import load_spec
    >>> history = History.from_transactions([Transaction([("w", "x", 1)])])
    >>> [(one.possible, one.why) for one in possible_violations(history, normal(load_spec("pl-1")))]
    [(False, 'no key is written by two transactions')]
    """
    candidates = _Candidates(history)
    return [_judged(axiom, candidates) for axiom in level.axioms]


def vacuity_reasons(history: History, spec: Spec) -> str:
    """Return the reasons why no choices on a history could violate any of a level's checks.

    The result is empty if the history could violate a check, or if the analysis was skipped because
    the history is too large or the level needs too much work.
    """
    if history.counts()["operations"] > _LARGE:
        return ""
    try:
        checks = possible_violations(history, normal(spec))
    except IsolangError:
        return ""
    if not checks or any(one.possible for one in checks):
        return ""
    return "; ".join(dict.fromkeys(one.why for one in checks))


def _judged(axiom: Axiom, candidates: _Candidates) -> Possible:
    check = axiom.check
    counts: dict[str, int] = {}

    def found(why: str, *, possible: bool) -> Possible:
        text = show_check(check).partition(" as ")[0]
        return Possible(check=check.name, text=text, possible=possible, why=why, pairs=counts)

    if candidates.refusal:
        return found(candidates.refusal, possible=True)
    if axiom.implied_by is not None:
        form, expr = "irreflexive", simplify(axiom.implied_by)
    elif not check.negated and check.kind in ("acyclic", "irreflexive"):
        form, expr = check.kind, simplify(check.expr)
    else:
        return found("it does not forbid cycles", possible=True)
    words = None
    with suppress(NotRegularError, TooLargeError):
        words = violation_language(form, expr, names=True)
    if words is None:
        return found("its violations are not walks of transactions", possible=True)
    words = words_without(words, ("init",))
    counts |= {r: candidates.count(r) for r in steps_of(words)}
    missing = [r for r, count in counts.items() if not count]
    unpassed = [
        test
        for test in sort_letters(words.letters)
        if is_test(test) and not candidates.passing(test)
    ]
    words = words_without(words, (*missing, *unpassed))
    whys = list(dict.fromkeys((*map(_no_pairs, missing), *map(_no_transaction_passes, unpassed))))
    if words.empty:
        return found("; ".join(whys) or "nothing leads to the initial state", possible=False)
    if not candidates.may_spell(words, of_key=is_on_one_key(expr)):
        return found("; ".join((*whys, "its steps can close no such cycle")), possible=False)
    return found("", possible=True)


def _no_pairs(letter: str) -> str:
    relation = relation_of(letter)
    default = f"there are no two transactions such that {ROWS[relation].between('a', 'b')}"
    return _NO_PAIRS.get(relation, default) + _of_keys(letter)


def _no_transaction_passes(test: str) -> str:
    """Return a sentence saying that no transaction passes a test."""
    match whole_letter(test):
        case "W":
            return f"no transaction writes{_of_keys(test) or ' a key'}"
        case "R":
            return f"no transaction reads{_of_keys(test) or ' a key'} from another one"
        case word:
            restriction = restriction_of(test)
            assert restriction is not None
            verb = {"label": "has the label", "level": "requested the level"}[word]
            return f'{"every" if restriction[2] else "no"} transaction {verb} "{restriction[1][0]}"'


def _of_keys(letter: str) -> str:
    if (restriction := restriction_of(letter)) is None:
        return ""
    _, patterns, negated = restriction
    listed = ", ".join(f'"{pattern}"' for pattern in patterns)
    return f" of keys {'but ' if negated else ''}{listed}"


class _Candidates:
    """The pairs that each relation can have under some choice, without pairs of T0.

    Attributes:
        refusal: the reason why the history cannot be analysed; empty if it can.
    """

    def __init__(self, history: History) -> None:
        columns = history.columns
        scans = columns.statement_txn[columns.statement_known > PARTLY_KNOWN]
        # A transaction with implicit set-reads may have a set-read for each write in the history.
        self._implicit = len(scans) * int((columns.op_kind == WRITE).sum())
        self._scanning: set[int] = set()
        self._work = Work(WORK)
        if self._implicit > MAX_PAIRS:
            self._scanning = set(scans.tolist())
        elif columns.implicit:
            history, self._implicit = history.written_out(), 0
        # An indeterminate transaction may be included even if no transaction reads from it.
        problem = build_problem(history, unread=True, each_read=True)
        self._problem = problem
        native = self._native = problem.native
        self.refusal = native.refusal
        self._present: list[int] = np.flatnonzero(native.inclusion[: native.n]).tolist()
        self._txn: list[int] = native.writer_txn.tolist()
        self._known: dict[str, list[Pair] | None] = {}
        self._passing: dict[str, set[int]] = {}
        self._interpretation = Bounded(problem, Circuit(), events=False, reads=False)

    def count(self, letter: str) -> int:
        """Return the number of a letter's pairs, or an upper bound if they are not listed."""
        pairs = self.pairs(letter)
        return self._at_most(relation_of(letter)) if pairs is None else len(pairs)

    def _affords(self, steps: int) -> bool:
        """Spend this many steps if the budget allows, and return whether it does."""
        if steps > self._work.left:
            return False
        self._work.spend(steps)
        return True

    @cached_property
    def _shown(self) -> set[tuple[int, int]]:
        """The pairs of writers ordered by list reads; empty if listing them is too much work.

        Leaving these pairs out is sound, because it only adds possible pairs.
        """
        shown = observed_version_orders(self._problem)
        return set(map(tuple, shown.tolist())) if self._affords(len(shown)) else set()

    def _at_most(self, relation: str) -> int:
        native, present = self._native, self._present
        match relation:
            case "so":
                sizes = np.bincount(native.session[present], minlength=1)
                return int((sizes * (sizes - 1) // 2).sum())
            case "rt" if native.has_time:
                ends = np.sort(native.end[present])
                return int(np.searchsorted(ends, native.begin[present]).sum())
            case "ww":
                writers = np.diff(native.key_start).astype(np.int64) - 1
                return int((writers * (writers - 1)).sum())
            case "wr" | "iwr" | "pwr":
                by_key = int((native.writer_txn[native.candidate] != native.n).sum())
                return by_key + (self._implicit if relation != "iwr" else 0)
            case "rw" | "irw" | "prw":
                writers = np.diff(native.key_start).astype(np.int64) - 1
                by_key = int(writers[native.read_key].sum())
                return by_key + (self._implicit if relation != "irw" else 0)
        return len(present) * (len(present) - 1)

    def _steps(self, relation: str) -> int:
        """Return the number of steps needed to list the pairs of a relation."""
        most = self._at_most(relation)
        if relation in _BUILTIN and relation != "so":
            writers = np.diff(self._native.key_start).astype(np.int64)
            of_keys = int((writers * writers).sum()) if relation == "locked" else 0
            return max(len(self._present) ** 2, of_keys)
        return most + len(self._native.candidate) * (relation not in ("so", "ww"))

    # --- pairs of small relations ---

    def pairs(self, letter: str) -> list[Pair] | None:
        """Return all pairs of a letter, or ``None`` if listing them is too much work."""
        if letter not in self._known:
            relation = relation_of(letter)
            few = self._at_most(relation) <= MAX_PAIRS and self._affords(self._steps(relation))
            self._known[letter] = self._listed(letter, relation) if few else None
        return self._known[letter]

    def _listed(self, letter: str, relation: str) -> list[Pair]:
        pairs = sorted(set(self._of(relation)))
        restriction = restriction_of(letter)
        if restriction is not None:
            inside = admitted_keys(self._problem, restriction).tolist()
            pairs = [pair for pair in pairs if pair[2] < 0 or inside[pair[2]]]
        for place, test in enumerate(ends_of(letter)):
            some = set(transactions_passing(self._problem, test, restriction).tolist())
            pairs = [pair for pair in pairs if pair[place] in some]
        return pairs

    def _of(self, relation: str) -> Iterator[Pair]:
        native = self._native
        if relation in _BUILTIN:
            pairs = self._interpretation.of_history(relation, None) or EMPTY
            number = self._interpretation.number
            yield from ((number(a), number(b), -1) for a, b, _ in pairs.pairs() if a != T0)
            return
        match relation:
            case "ww":
                for key in range(native.keys):
                    for a, b in permutations(self._writers(key), 2):
                        if (b, a) not in self._shown:
                            yield self._txn[a], self._txn[b], key
            case "wr" | "iwr" | "pwr":
                for reader, key, sources in self._reads(relation):
                    yield from (
                        (self._txn[s], reader, key) for s in sources if self._txn[s] != native.n
                    )
            case "rw" | "irw" | "prw":
                for reader, key, sources in self._reads(relation):
                    for b in self._writers(key):
                        overwritten = (s != b and (b, s) not in self._shown for s in sources)
                        if self._txn[b] != reader and any(overwritten):
                            yield reader, self._txn[b], key

    def _writers(self, key: int) -> range:
        start = self._native.key_start
        return range(int(start[key]) + 1, int(start[key + 1]))

    def _reads(self, relation: str) -> Iterator[tuple[int, int, list[int]]]:
        """Yield the reader, the key and the possible sources of each read used by a relation."""
        native = self._native
        start, sources = native.candidate_start.tolist(), native.candidate.tolist()
        missed = native.read_predicate.tolist() or [0] * len(native.read_txn)
        kinds = _READS_OF.get(relation, (0, 1))
        reads = zip(native.read_txn.tolist(), native.read_key.tolist(), missed, strict=True)
        for i, (reader, key, kind) in enumerate(reads):
            if kind in kinds:
                yield reader, key, sources[start[i] : start[i + 1]]

    def passing(self, test: str) -> set[int]:
        """Return the transactions that pass a test, without T0, because it is on no cycle."""
        if test not in self._passing:
            found = transactions_passing(self._problem, whole_letter(test), restriction_of(test))
            scanning = self._scanning if whole_letter(test) == "R" else set()
            self._passing[test] = (set(found.tolist()) | scanning) - {self._native.n}
        return self._passing[test]

    # --- walks ---

    def may_spell(self, words: Dfa, *, of_key: bool) -> bool:
        """Return whether a closed walk of possible pairs may spell a word of a language."""
        letters: dict[str, dict[int, list[Pair]]] = {}
        for letter in sort_letters(words.letters):
            pairs = self._pairs_of(letter)
            if pairs is None:
                return True
            letters[letter] = defaultdict(list)
            for pair in pairs:
                letters[letter][pair[2] if of_key else -1].append(pair)
        keys = list(range(self._native.keys)) if of_key else [-1]
        moves = Counter(letter for row in words.moves for letter in row)
        steps = sum(
            times * (len(letters[letter][-1]) * len(keys) + sum(map(len, letters[letter].values())))
            for letter, times in moves.items()
        )
        if not self._affords(steps + len(keys) * len(self._present) * len(words.final)):
            return True
        # A pair without a key can be a step of a walk that stays with a single key, for any key.
        return any(
            self._closes(
                words,
                {a: [*of[-1], *(of[key] if key >= 0 else ())] for a, of in letters.items()},
            )
            for key in keys
        )

    def _pairs_of(self, letter: str) -> list[Pair] | None:
        """Return a letter's pairs; those of a test are loops at the transactions that pass it."""
        if is_test(letter):
            return [(t, t, -1) for t in self.passing(letter)]
        return self.pairs(letter)

    def _closes(self, words: Dfa, pairs: Mapping[str, Sequence[Pair]]) -> bool:
        """Return whether the product of the pairs and the automaton has a cycle that ends a word.

        Cycles that cannot be closed by any choice of version orders are ignored.
        """
        import networkx as nx

        states = len(words.moves)
        graph = nx.DiGraph()
        steps: dict[tuple[int, int], set[tuple[str, int]]] = defaultdict(set)
        for q, row in enumerate(words.moves):
            for letter, after in row.items():
                for a, b, of in pairs[letter]:
                    one, other = a * states + q, b * states + after
                    graph.add_edge(one, other)
                    steps[one, other].add((letter, of))
        ends = {(t * states + q, t * states) for t in self._present for q in words.final}
        graph.add_edges_from(ends)
        for part in nx.strongly_connected_components(graph):
            inside = graph.subgraph(part)
            if any(edge in ends for edge in inside.edges):
                taken = [
                    (u // states, v // states, step)
                    for u, v in inside.edges
                    for step in steps.get((u, v), ())
                ]
                if not _cannot_close_together(taken):
                    return True
        return False


def _cannot_close_together(taken: Sequence[tuple[int, int, tuple[str, int]]]) -> bool:
    """Return whether all pairs belong to version orders that cannot close a cycle together.

    SOUND BECAUSE each version order is total, so a cycle has steps for at least two keys, and the
    steps for these keys meet at two transactions.
    """
    import networkx as nx

    meeting = nx.Graph()
    for a, b, (letter, key) in taken:
        if whole_letter(letter) != "ww" and not is_test(letter):
            return False
        if not is_test(letter):
            meeting.add_edges_from([(a, ("key", key)), (b, ("key", key))])
    return len(meeting) == 0 or nx.is_forest(meeting)
