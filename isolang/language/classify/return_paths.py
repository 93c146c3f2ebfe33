"""Checks that a single ``rw`` must not close: RC, RA, CC, PSI and what users write like them.

Such a check forbids return paths: after s ``rw`` b, no walk from b to s spells certain words.
docs/routes.md#return-paths says why their automaton is exact, and when a fixpoint decides
(*saturation*) instead of a search (*reachability*).
"""

from __future__ import annotations

from msgspec.structs import replace

from isolang.language.classify.automaton import LETTERS, RELATIONS, Automaton
from isolang.language.classify.event_graph import (
    NotAnEventGraph,
    Plan,
    automaton_of,
    classify,
    generators,
    is_repeatable,
)
from isolang.language.classify.expression import NotRegularError, language_of, plain
from isolang.language.classify.observed import NotObservedError, rewrite
from isolang.language.classify.regular import (
    Dfa,
    Nfa,
    TooLargeError,
    around,
    between_ends,
    concatenate,
    determinise,
    find_loop,
    included,
    loops,
    minimise,
    most_uses,
    plus,
    rotations,
    subtract,
    union,
    without,
)
from isolang.language.meaning import facts
from isolang.language.meaning.core import TRANSITIVE, Check, Core, Rel, Seq, Spec, Star
from isolang.language.meaning.lower import CANONICAL_EXISTS
from isolang.language.syntax.source import Position

_EPSILON = Dfa(({},), frozenset((0,)))
_SINGLE = {frozenset(("so",)), frozenset(("wr",)), frozenset(("so", "wr"))}


class _NotHornError(Exception):
    """A specification that this route does not take."""

    def __init__(self, reason: str, check: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.check = check


def classify_return_paths(spec: Spec, why_no_event_graph: str = "") -> Plan:
    """Compile a specification to event graphs and return paths.

    Args:
        spec: of ``load_spec``.
        why_no_event_graph: what ``classify`` said, for ``Plan.reasons``.

    Raises:
        NotAnEventGraph: it is neither of the form; with the reason.
        SpecError: there is nothing to check.
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
    saturates = not any("ww" in a.steps and a.back for a in automata)
    return Plan(
        spec=spec,
        kind="saturation" if saturates else "reachability",
        automata=automata,
        uses_reads_from=facts.uses_reads_from(spec),
        uses_version_order=True,
        uses_sessions=facts.uses_sessions(spec),
        uses_real_time=facts.uses_real_time(spec),
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
        except NotObservedError as error:
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
        self._acyclic: list[Dfa] = []
        self._later: list[tuple[str, Dfa]] = []

    def check(self, check: Check) -> None:
        """One check over ``so rt wr ww rw``."""
        alone = replace(self._spec, checks=(check,))
        try:
            self._automata += classify(alone).automata
        except NotAnEventGraph as refusal:
            if check.kind != "irreflexive" or check.flag or check.negated:
                raise _NotHornError(refusal.reason, check.name) from None
            self.return_paths(check.name, check.expr)
        else:
            self._acyclic.append(plus(self._language(check.name, check.expr)))

    def acyclic(self, name: str, e: Core) -> None:
        """``acyclic e``, e being no check of the text."""
        language = self._language(name, e)
        if language.nullable or not without(language, RELATIONS).empty:
            raise _NotHornError(f"`{name}` would contain a part of the identity")
        base = generators(language_of(plain(e), stretch=TRANSITIVE), acyclic=True)
        if find_loop(base) is not None:
            raise _NotHornError(f"what `{name}` must contain is no event graph")
        self._automata.append(automaton_of(name, base))
        self._acyclic.append(plus(language))

    def need_within_order(self, name: str, phi: Core) -> None:
        """Require that phi's words are among those of the acyclic checks."""
        language = self._language(name, phi)
        if language.nullable or not any(included(language, known) for known in self._acyclic):
            raise _NotHornError("it observes more than its order contains", name)

    def return_paths(self, name: str, e: Core) -> None:
        """``irreflexive e`` with words of at most one ``rw``."""
        language = self._language(name, e)
        if language.nullable:
            raise _NotHornError("it contains the identity; nothing satisfies it", name)
        if most_uses(language, "rw") > 1:
            raise _NotHornError("its words use `rw` more than once, and their cycles compose", name)
        if any("rw" in row and language.moves[row["rw"]] for row in language.moves):
            raise _NotHornError("its `rw` is not last; `a ; rw ; b` is `b ; a ; rw`", name)
        plain_words = without(language, ("rw",))
        if not plain_words.empty:
            self._without_rw(name, plain_words)
        # Nothing leads to T0, and no rw does: a return path never begins with init.
        self._later.append((name, without(around(language, "rw"), ("init",))))

    def add_direct(self, name: str, direct: frozenset[str]) -> None:
        """Return paths of one pair."""
        self._automata.append(_automaton(name, direct=direct))

    def finished(self) -> tuple[Automaton, ...]:
        """The automata of all checks."""
        for name, language in self._later:
            self._add_return_paths(name, language)
        return tuple(self._automata)

    def _without_rw(self, name: str, words: Dfa) -> None:
        if not without(words, RELATIONS).empty:
            raise _NotHornError("it contains a part of the identity", name)
        if not included(concatenate(words, words), words):
            raise _NotHornError("`irreflexive` speaks of one step of the expression", name)
        stretched = _stretched(words)
        base = generators(stretched, acyclic=False)
        if find_loop(base) is not None:
            raise _NotHornError("its words without `rw` are no event graph", name)
        self._automata.append(automaton_of(name, base))
        self._acyclic.append(plus(words))

    def _add_return_paths(self, name: str, language: Dfa) -> None:
        words = subtract(language, _EPSILON)
        if words.empty:
            self._automata.append(_automaton(name))  # it cannot fail
            return
        # A return path leads from a writer to a reader, which need not be asked.
        single = between_ends(words, "W", "R")
        if single.letters in _SINGLE and all(not single.moves[t] for t in single.moves[0].values()):
            self.add_direct(name, single.letters)
            return
        # SOUND BECAUSE rw leaves out the identity: a return path has at least one step.
        dfa = union(words, _EPSILON)
        strict = [language_of(Star(Rel(r))) for r in ("so", "rt")]
        allowed = union(*strict, *map(rotations, self._acyclic))
        if not all(included(loops(dfa, state), allowed) for state in range(len(dfa.moves))):
            reason = "a return path may turn in a loop that no other check forbids"
            raise _NotHornError(reason, name)
        steps = {
            letter: tuple(
                sorted((q, row[letter]) for q, row in enumerate(dfa.moves) if letter in row)
            )
            for letter in LETTERS
            if letter in dfa.letters
        }
        automaton = _automaton(name, states=len(dfa.moves), steps=steps)
        repeatable = frozenset(
            r for r in ("so", "rt") if r in steps and is_repeatable(automaton, r)
        )
        back = tuple((q, 0) for q in sorted(dfa.final))
        automaton = replace(automaton, repeatable=repeatable)
        for i, other in enumerate(self._automata):
            # PSI's return paths run in the graph of its words without rw; init leads nowhere.
            inner = {r: s for r, s in other.steps.items() if r != "init"}
            if automaton == replace(other, steps=inner):
                self._automata[i] = replace(other, back=back)
                return
        self._automata.append(replace(automaton, back=back, judges=False))

    @staticmethod
    def _language(name: str, e: Core) -> Dfa:
        try:
            return language_of(plain(e))
        except NotRegularError as error:
            raise _NotHornError(error.reason, name) from None


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


def _stretched(dfa: Dfa) -> Dfa:
    """The words with r⁺ in place of each transitive letter r."""
    nfa = Nfa()
    start, finals = nfa.embed(dfa)
    nfa.skip(nfa.initial, start)
    for final in finals:
        nfa.skip(final, nfa.final)
    for state, row in enumerate(dfa.moves):
        for letter in TRANSITIVE & row.keys():
            middle = nfa.state()
            nfa.move(start + state, letter, middle)
            nfa.move(middle, letter, middle)
            nfa.skip(middle, start + row[letter])
    return minimise(determinise(nfa))
