"""Compiles checks whose cycles end in a single ``rw``, as in RC, RA, CC, PSI and the like.

Such a check forbids return paths: if s ``rw`` b, then no walk from b to s may spell certain words.
docs/routes.md#return-paths proves that the automaton for return paths is exact, and states when a
fixpoint (*saturation*) decides the specification rather than a search (*reachability*).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from msgspec.structs import replace

from isolang.language.classify.automaton import LETTERS, Automaton, sort_letters
from isolang.language.classify.event_graph import (
    NotAnEventGraph,
    Plan,
    automaton_of,
    classify,
    generating_set,
    is_repeatable,
    steps_of,
    why_leaves_key,
    with_po_loops,
)
from isolang.language.classify.expression import (
    WORDS_BY_OPERATION,
    NotRegularError,
    by_operation,
    language_of,
    simplify,
    visits_statements,
    without_key,
    without_mere_items,
)
from isolang.language.classify.observed import NotThisFormError, rewrite
from isolang.language.classify.regular import (
    Dfa,
    Nfa,
    TooLargeError,
    concatenate,
    determinise,
    find_loop,
    is_included,
    loops_at,
    minimise,
    most_uses,
    plus,
    rotations,
    rotations_around,
    strip_ends,
    subtract,
    union,
    up_to_last,
    words_without,
)
from isolang.language.meaning import mentions
from isolang.language.meaning.core import (
    Check,
    Core,
    ForKey,
    Lift,
    Opt,
    Rel,
    Seq,
    Spec,
    Star,
    Union,
)
from isolang.language.meaning.lower import CANONICAL_EXISTS
from isolang.language.meaning.mentions import rebuild
from isolang.language.syntax.source import Position
from isolang.language.vocabulary import (
    FILTERED,
    OF_READS,
    OVERWRITING,
    TESTS,
    TRANSITIVE,
)

_EPSILON = Dfa(({},), frozenset((0,)))
_SINGLE = {frozenset(("so",)), frozenset(("wr",)), frozenset(("so", "wr"))}


class _NotHornError(Exception):
    """Raised when return paths cannot express a specification."""

    def __init__(self, reason: str, check: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.check = check


def classify_return_paths(spec: Spec, why_no_event_graph: str = "") -> Plan:
    """Compile a specification to event graphs and return paths.

    Raises:
        NotAnEventGraph: if return paths cannot express the specification either. The error gives
            the reason.
        SpecError: if the specification has no check.
    """
    try:
        automata = _automata(spec)
    except _NotHornError as error:
        pos = next(
            (c.pos for c in spec.checks if c.name == error.check), Position(spec.source, 0, 0)
        )
        raise NotAnEventGraph(spec, pos, error.reason, check=error.check, hint="") from None
    except TooLargeError:
        pos = spec.checks[0].pos
        raise NotAnEventGraph(spec, pos, "its automata are too large", check="", hint="") from None
    if mentions.uses_reads_from(spec) and not any(
        OF_READS & a.relations or a.back for a in automata
    ):
        # The engine chooses sources only for reads that can be steps of a walk. If no check had
        # `wr` or `rw` steps, the engine would overlook anomalous reads.
        pos, reason = (
            spec.checks[0].pos,
            "it mentions reads, but none of its checks can take a `wr` or `rw` step",
        )
        raise NotAnEventGraph(spec, pos, reason, check="", hint="")
    saturates = not any(
        a.sites == "accesses"
        or OVERWRITING & a.relations
        or (a.back and ("ww" in a.relations or "wr" in a.closing))
        for a in automata
    )
    return Plan(
        spec=spec,
        kind="saturation" if saturates else "reachability",
        automata=automata,
        uses_reads_from=mentions.uses_reads_from(spec),
        uses_version_order=True,
        uses_sessions=mentions.uses_sessions(spec),
        uses_real_time=mentions.uses_real_time(spec),
        warnings=spec.warnings,
        reasons=(f"no event graph: {why_no_event_graph}",) if why_no_event_graph else (),
    )


def _automata(spec: Spec) -> tuple[Automaton, ...]:
    compiler = _Compiler(spec)
    if all(e == CANONICAL_EXISTS.get(e.name) for e in spec.exists):
        for check in spec.checks:
            compiler.check(check)
    else:
        try:
            observed = rewrite(spec)
        except NotThisFormError as error:
            raise _NotHornError(error.reason, error.check) from None
        compiler.acyclic(observed.order, observed.acyclic)
        for way in observed.return_paths:
            if way.phi is None:
                compiler.add_direct(way.check, frozenset(("earlier wr",)))
            else:
                compiler.need_within_order(way.check, way.phi)
                compiler.return_paths(way.check, Seq((way.phi, Rel("rw"))))
    return compiler.finished()


class _Compiler:
    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._automata: list[Automaton] = []
        # The languages of the acyclic checks, keyed by whether their walks stay on one key.
        self._acyclic: dict[bool, list[Dfa]] = {False: [], True: []}
        self._pending: list[tuple[str, Dfa, frozenset[str], bool]] = []
        # Over operations: the words forbidden by acyclic checks, and the return paths.
        self._whole: list[Dfa] = []
        self._between_operations: list[tuple[str, Dfa]] = []
        self._splits = mentions.distinguishes_reads(spec)
        self._names = bool(mentions.named_sets(spec) or mentions.key_classes(spec))

    def check(self, check: Check) -> None:
        """Compile one check of a specification over dependencies."""
        alone = replace(self._spec, checks=(check,))
        try:
            self._automata += classify(alone).automata
        except NotAnEventGraph as refusal:
            if check.kind != "irreflexive" or check.flag or check.negated:
                raise _NotHornError(refusal.reason, check.name) from None
            if visits_statements(check.expr):
                self._over_operations(check)
                return
            if self._components(check):
                return
            self.return_paths(check.name, check.expr)
        else:
            with suppress(NotRegularError):
                # A session-order or real-time step to a statement, together with the step to its
                # COMMIT, is a step of the same order.
                whole = _at_statements(by_operation(simplify(check.expr)))
                self._whole.append(plus(language_of(whole, letters=WORDS_BY_OPERATION)))
            if visits_statements(check.expr):
                return
            language, of_key = self._language(check.name, check.expr)
            self._acyclic[of_key].append(plus(language))

    def _over_operations(self, check: Check) -> None:
        """Compile an ``irreflexive`` check over operations.

        Each word must contain exactly one ``rw``, as its last letter.
        """
        try:
            words = by_operation(simplify(check.expr))
            language = language_of(words, letters=WORDS_BY_OPERATION)
        except NotRegularError as error:
            raise _NotHornError(error.reason, check.name) from None
        before = up_to_last(language, "rw")
        if language.nullable or concatenate(before, language_of(Rel("rw"))) != language:
            raise _NotHornError("a walk over operations must end in its only `rw`", check.name)
        self._between_operations.append((check.name, words_without(before, ("init",))))

    def _components(self, check: Check) -> bool:
        r"""Compile a check ``irreflexive a ; (a | b)^*``; return whether it has this form.

        Such a check forbids every cycle of ``a`` and ``b`` that contains an ``a``. Strongly
        connected components are enough to decide this, even if ``b`` has cycles. The expression
        may contain ``for x: [T \ W[x]] ; irw[x]`` instead of ``irw``.
        """
        expr = without_mere_items(check.expr, Rel("irw"))
        without_writers = expr != check.expr
        others = mentions.names(without_mere_items(check.expr, Rel("prw")))
        if without_writers and (others & {"rw", "irw"} or self._names):
            return False
        language, of_key = self._language(check.name, expr)
        letters = language.letters
        closing = frozenset(a for a, q in language.moves[0].items() if q in language.final)
        if of_key or not closing or not letters <= OF_READS | {"ww"}:
            return False
        one, rest = Union(_union_of_relations(closing)), Star(Union(_union_of_relations(letters)))
        for words, first in (
            ((one, rest), True),
            ((rest, one, rest), True),
            ((rest, one), False),
        ):
            whole = language_of(Seq(words))
            if is_included(whole, language) and is_included(language, whole):
                steps: dict[str, tuple[tuple[int, int], ...]] = {
                    a: ((0, 0),) for a in LETTERS if a in letters
                }
                automaton = _automaton(check.name, steps=steps, direct=frozenset(("components",)))
                self._automata.append(
                    replace(
                        automaton,
                        closing=closing,
                        closing_first=first,
                        without_writers=without_writers,
                    )
                )
                return True
        return False

    def acyclic(self, name: str, e: Core) -> None:
        """Compile the condition ``acyclic e``, which may be only part of the check ``name``."""
        language, _ = self._language(name, e)
        if language.nullable or not words_without(language, steps_of(language)).empty:
            raise _NotHornError(f"`{name}` would contain a part of the identity")
        split = simplify(e, splits=self._splits)
        base = generating_set(language_of(split, stretch=TRANSITIVE), acyclic=True)
        if find_loop(base) is not None:
            raise _NotHornError(f"what `{name}` must contain is not an event graph")
        self._automata.append(automaton_of(name, base))
        self._acyclic[False].append(plus(language))

    def need_within_order(self, name: str, phi: Core) -> None:
        """Raise an error unless an acyclic check already forbids all cycles of phi's words."""
        language, _ = self._language(name, phi)
        # SOUND BECAUSE removing tests from an expression can only add walks.
        untested, _ = self._language(name, _without_tests(phi))
        known = self._acyclic[False]
        if language.nullable or not any(
            is_included(words, one) for words in (language, untested) for one in known
        ):
            raise _NotHornError("it observes more than its order contains", name)

    def return_paths(self, name: str, e: Core) -> None:
        """Compile ``irreflexive e``; a word of ``e`` up to its last ``rw`` is a return path."""
        language, of_key = self._language(name, _rotate_rw_to_end(simplify(e)))
        if language.nullable:
            raise _NotHornError("it contains the identity, so nothing satisfies it", name)
        closing = OVERWRITING & language.letters
        if not closing and not of_key and self._back_to_source(name, language):
            return
        for rw in closing:
            ends = (language.moves[row[rw]] for row in language.moves if rw in row)
            if most_uses(language, rw) == 1 and any(ends):
                raise _NotHornError(f"its `{rw}` is not last; `a ; rw ; b` is `b ; a ; rw`", name)
        ways = {rw: way for rw in sorted(closing) if not (way := up_to_last(language, rw)).empty}
        before = next(iter(ways.values()), Dfa(({},), frozenset()))
        if any(way != before for way in ways.values()):
            raise _NotHornError(
                "the walks that lead back from an `irw` differ from those of a `prw`", name
            )
        last = language_of(Union(_union_of_relations(ways))) if ways else _EPSILON
        plain_words = subtract(language, concatenate(before, last))
        if not plain_words.empty:
            self._without_rw(name, plain_words, of_key=of_key)
        # No `rw` pair leads to T0. Therefore a return path never begins with `init`.
        all_reads = not ways or len(ways) == 2 or "rw" in ways
        kinds = frozenset(("rw",)) if all_reads else frozenset(ways)
        self._pending.append((name, words_without(before, ("init",)), kinds, of_key))

    def _back_to_source(self, name: str, language: Dfa) -> bool:
        """Compile ``irreflexive`` for a language if its words contain exactly one ``wr`` each.

        The rest of such a word leads from the reader back to the source. The words need not be
        closed under composition.
        """
        if self._splits or "wr" not in language.letters or most_uses(language, "wr") > 1:
            return False
        if not words_without(language, ("wr",)).empty or is_included(
            concatenate(language, language), language
        ):
            return False
        self._pending.append((name, rotations_around(language, "wr"), frozenset(("wr",)), False))
        return True

    def add_direct(self, name: str, direct: frozenset[str]) -> None:
        """Add an automaton for return paths with a single step in one of the given relations."""
        self._automata.append(_automaton(name, direct=direct))

    def finished(self) -> tuple[Automaton, ...]:
        """Compile the postponed return paths, and return the automata of all checks."""
        for name, language, closing, of_key in self._pending:
            self._add_return_paths(name, language, closing, of_key=of_key)
        for name, language in self._between_operations:
            self._add_return_paths_over_operations(name, language)
        return tuple(self._automata)

    def _add_return_paths_over_operations(self, name: str, before: Dfa) -> None:
        orders = [
            language_of(Star(_at_statements(Rel(order))), letters=WORDS_BY_OPERATION)
            for order in ("so", "rt")
        ]
        allowed = union(*orders, *map(rotations, self._whole))
        # SOUND BECAUSE an `rw` from a transaction to itself, which is not an edge but which the
        # automaton cannot exclude, would close a walk of whole transactions that another check
        # forbids anyway.
        turns = [concatenate(before, language_of(Rel("tx"), letters=("tx",)))]
        turns += [loops_at(before, state) for state in range(len(before.moves))]
        if not all(is_included(one, allowed) for one in turns):
            raise _NotHornError(
                "a return path may turn in a loop that no other check forbids", name
            )
        steps = _steps_of(before)
        automaton = _automaton(name, states=len(before.moves), steps=steps)
        repeatable = (r for r in ("so", "rt") if r in steps and is_repeatable(automaton, r))
        back = tuple((q, 0) for q in sorted(before.final))
        automaton = replace(automaton, repeatable=frozenset(repeatable), back=back, judges=False)
        self._automata.append(with_po_loops(automaton))

    def _without_rw(self, name: str, words: Dfa, *, of_key: bool) -> None:
        """Compile ``irreflexive`` for words without ``rw`` that are closed under composition."""
        if of_key:
            raise _NotHornError("its words without a closing `rw` need a check of their own", name)
        if not words_without(words, steps_of(words)).empty:
            raise _NotHornError("it contains a part of the identity", name)
        if not is_included(concatenate(words, words), words):
            raise _NotHornError("`irreflexive` concerns one step of the expression", name)
        stretched = _stretched(words)
        base = generating_set(stretched, acyclic=False)
        if find_loop(base) is not None:
            raise _NotHornError("its words without `rw` are not an event graph", name)
        self._automata.append(automaton_of(name, base))
        self._acyclic[False].append(plus(words))

    def _add_return_paths(
        self, name: str, language: Dfa, closing: frozenset[str], *, of_key: bool
    ) -> None:
        if of_key:
            language = _stretched(language, frozenset(("ww",)))  # `ww` on one key is transitive
        words = subtract(language, _EPSILON)
        if words.empty:
            self._automata.append(_automaton(name))  # no history can violate this check
            return
        # A return path leads from a writer to a reader, so the tests at its ends always succeed.
        single = strip_ends(words, *TESTS)
        if (
            not of_key
            and "rw" in closing
            and single.letters in _SINGLE
            and all(not single.moves[t] for t in single.moves[0].values())
        ):
            self.add_direct(name, single.letters)
            return
        # SOUND BECAUSE `rw` never relates a transaction to itself, so a return path has at least
        # one step, and the empty word can be added.
        dfa = union(words, _EPSILON)
        orders = [("so", *_part_of("so")), ("rt", "group-rt", *_part_of("rt"))]
        orders += [("ww",)] if of_key else []
        strict = [language_of(Star(Union(tuple(map(Rel, order))))) for order in orders]
        # Walks that stay on one key are also walks over all keys, so the acyclic checks over all
        # keys forbid them too.
        acyclic = [*self._acyclic[False], *(self._acyclic[True] if of_key else ())]
        allowed = union(*strict, *map(rotations, acyclic))
        if not all(is_included(loops_at(dfa, state), allowed) for state in range(len(dfa.moves))):
            reason = "a return path may turn in a loop that no other check forbids"
            raise _NotHornError(reason, name)
        steps = _steps_of(dfa)
        automaton = _automaton(name, states=len(dfa.moves), steps=steps)
        automaton = replace(
            automaton, sites="accesses" if of_key else "transactions", closing=closing
        )
        if of_key and (reason := why_leaves_key(automaton)):
            raise _NotHornError(reason, name)
        repeatable = frozenset(
            r for r in ("so", "rt") if r in steps and is_repeatable(automaton, r)
        )
        back = tuple((q, 0) for q in sorted(dfa.final))
        automaton = replace(automaton, repeatable=repeatable)
        for i, other in enumerate(self._automata):
            # If an automaton without return paths has the same steps, as for PSI, it gets these
            # return paths too. Steps of `init` make no difference, because they lie on no cycle.
            inner = {r: s for r, s in other.steps.items() if r != "init"}
            if automaton == replace(other, steps=inner, closing=closing):
                self._automata[i] = replace(other, back=back, closing=closing)
                return
        self._automata.append(replace(automaton, back=back, judges=False))

    def _language(self, name: str, e: Core) -> tuple[Dfa, bool]:
        """Return the language of an expression, and whether its walks stay on one key."""
        e = simplify(e, splits=self._splits)
        try:
            return language_of(e), False
        except NotRegularError as error:
            with suppress(NotRegularError):
                return language_of(without_key(e)), True
            raise _NotHornError(error.reason, name) from None


def _at_statements(e: Core) -> Core:
    if e in (Rel("so"), Rel("init")):
        return Seq((e, Opt(Rel("tx"))))
    return rebuild(e, tuple(map(_at_statements, mentions.children(e))))


def _without_tests(e: Core) -> Core:
    """Return the expression with each test replaced by the identity."""
    if isinstance(e, Lift):
        return Rel("id", None, e.pos)
    return rebuild(e, tuple(map(_without_tests, mentions.children(e))))


def _part_of(relation: str) -> tuple[str, ...]:
    return tuple(letter for letter in FILTERED if letter.startswith(f"{relation}["))


def _rotate_rw_to_end(e: Core) -> Core:
    """Rewrite ``a ; rw ; b`` as ``b ; a ; rw``, as a closed walk may begin at any transaction."""
    match e:
        case ForKey() | Union():
            return rebuild(e, tuple(map(_rotate_rw_to_end, mentions.children(e))))
        case Seq(parts=parts):
            places = [i for i, part in enumerate(parts) if OVERWRITING & mentions.names(part)]
            if (
                len(places) == 1
                and isinstance(parts[places[0]], Rel)
                and places[0] < len(parts) - 1
            ):
                after = places[0] + 1
                return replace(e, parts=(*parts[after:], *parts[:after]))
    return e


def _union_of_relations(names: Iterable[str]) -> tuple[Core, ...]:
    return tuple(map(Rel, sorted(names)))


def _steps_of(dfa: Dfa) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return, for each letter of an automaton, its transitions as pairs of states."""
    return {
        letter: tuple(sorted((q, row[letter]) for q, row in enumerate(dfa.moves) if letter in row))
        for letter in sort_letters(dfa.letters)
    }


def _automaton(
    name: str,
    *,
    states: int = 1,
    steps: dict[str, tuple[tuple[int, int], ...]] | None = None,
    direct: frozenset[str] = frozenset(),
) -> Automaton:
    return Automaton(
        check=name,
        states=states,
        steps=steps or {},
        epsilon=(),
        repeatable=frozenset(),
        direct=direct,
    )


def _stretched(dfa: Dfa, letters: frozenset[str] = TRANSITIVE) -> Dfa:
    """Return the language with each letter r in ``letters`` replaced by r⁺."""
    nfa = Nfa()
    start, finals = nfa.embed(dfa)
    nfa.skip(nfa.initial, start)
    for final in finals:
        nfa.skip(final, nfa.final)
    for state, row in enumerate(dfa.moves):
        for letter in letters & row.keys():
            middle = nfa.state()
            nfa.move(start + state, letter, middle)
            nfa.move(middle, letter, middle)
            nfa.skip(middle, start + row[letter])
    return minimise(determinise(nfa))
