"""Compiles checks to automata for event graphs, or explains why a check does not compile.

This module tests the conditions under which docs/routes.md#event-graphs proves that the product of
a history with the automaton of a check has a cycle iff the history violates the check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from isolang.errors import SpecError
from isolang.language.classify.automaton import Automaton, Sites
from isolang.language.classify.expression import (
    WORDS_BY_OPERATION,
    WORDS_BY_STATEMENT,
    NotRegularError,
    by_operation,
    by_statement,
    innermost_closure,
    language_of,
    leaves_by_commit,
    simplify,
    visits_statements,
    without_key,
)
from isolang.language.classify.plan import Kind, Route
from isolang.language.classify.regular import (
    Dfa,
    TooLargeError,
    Word,
    concatenate,
    find_loop,
    is_included,
    rotations,
    shortest_word,
    subtract,
    words_without,
)
from isolang.language.meaning import mentions
from isolang.language.meaning.core import Check, Core, ForKey, Spec
from isolang.language.meaning.lower import CANONICAL_EXISTS
from isolang.language.meaning.mentions import names
from isolang.language.syntax.source import Position, message_at
from isolang.language.vocabulary import (
    BUILTIN_ORDERS,
    NAMED,
    NO_ORDERS,
    RELATIONS,
    TRANSITIVE,
    is_test,
    relation_of,
    whole_letter,
)

if TYPE_CHECKING:
    from isolang.language.classify.theorems import Theorem


from msgspec.structs import replace

from isolang.language.classify.automaton import sort_letters
from isolang.language.classify.regular import plus, with_doubled_letter


class NotAnEventGraph(SpecError):  # noqa: N818 - it names what a check is not
    """Raised when a check or a declaration does not compile to an event graph.

    Attributes:
        check: the name of the check; empty if a declaration is at fault.
        reason: a phrase explaining why it does not compile.
        return_path_refusal: the error explaining why the specification does not compile to return
            paths either; ``None`` if that has not been tried.
    """

    def __init__(self, spec: Spec, pos: Position, reason: str, *, check: str, hint: str) -> None:
        what = f"check `{check}` is not an event graph: {reason}" if check else reason
        context = ""
        for candidate in spec.checks:
            # The offending construct may be part of a definition, even in another file.
            if candidate.name == check and (candidate.file, candidate.line) != pos[:2]:
                context = f"used by check `{check}` in {candidate.file}:{candidate.line}"
        text = message_at(pos, spec.texts, what, hint=hint, context=context)
        super().__init__(text, file=pos.file, line=pos.line, column=pos.column, hint=hint)
        self.check = check
        self.reason = reason
        self.return_path_refusal: NotAnEventGraph | None = None

    def reasons(self) -> tuple[str, ...]:
        """Return phrases that explain why the native engine cannot decide a specification.

        If return paths were tried as well, a second phrase explains why they do not apply, possibly
        because of a different check.
        """
        own = f"check `{self.check}`: {self.reason}" if self.check else self.reason
        other = self.return_path_refusal
        if (
            other is None
            or not other.check
            or (other.check, other.reason)
            == (
                self.check,
                self.reason,
            )
        ):
            return (f"no event graph: {own}",)
        return (
            f"no event graph: {own}",
            f"no return paths: check `{other.check}`: {other.reason}",
        )


class Plan(Route, frozen=True, kw_only=True):
    """The route on which the native engine decides a specification with automata.

    Attributes:
        automata: one automaton for each check, in the order of ``spec.checks``.
        theorem: the theorem by which ``spec`` is equivalent to the user's specification; ``None``
            if ``spec`` is the user's own specification.
    """

    kind: Kind = "event graph"
    automata: tuple[Automaton, ...]
    theorem: Theorem | None = None


def classify(spec: Spec) -> Plan:
    """Compile each check of a specification to an automaton whose event graph decides it.

    Raises:
        NotAnEventGraph: if a check or a declaration does not compile. The error names the first
            such check or declaration, and the reason.
        SpecError: if the specification has no check.
    """
    for exists in spec.exists:
        if exists != CANONICAL_EXISTS.get(exists.name):
            reason = (
                f"`exists {exists.name}` is a relation to search for, but event "
                "graphs search only for `rf` and `ww`"
            )
            hint = "`isocheck` decides checks over so, rt, wr, ww and rw; see docs/language.md"
            pos = exists.over.pos or Position(spec.source, 0, 0)
            raise NotAnEventGraph(spec, pos, reason, check="", hint=hint)
    if not spec.checks:
        what = f"{spec.source}: the specification has no check, so every history satisfies it"
        raise SpecError(what + "\n  hint: write `acyclic so | wr as my-check`", file=spec.source)
    compiled = [_compile(spec, check) for check in spec.checks]
    warnings = tuple(warning for _, warning in compiled if warning)
    apart = any(automaton.sites != "transactions" for automaton, _ in compiled)
    return Plan(
        spec=spec,
        kind="reachability" if apart else "event graph",
        automata=tuple(automaton for automaton, _ in compiled),
        uses_reads_from=mentions.uses_reads_from(spec),
        uses_version_order=True,
        uses_sessions=mentions.uses_sessions(spec),
        uses_real_time=mentions.uses_real_time(spec),
        warnings=(*spec.warnings, *warnings),
    )


_FORMS: Mapping[str, tuple[str, str]] = {
    "empty": (
        "`empty` says that a relation has no pair at all, not that it has no cycle",
        "to forbid cycles, write `acyclic` or `irreflexive`",
    ),
    "require": (
        "`require … in …` compares two relations; an event graph only knows cycles",
        "PC, SI and SER have forms with `acyclic`; see docs/levels.md",
    ),
}


def _compile(spec: Spec, check: Check) -> tuple[Automaton, str]:
    """Return the automaton of one check, and a warning if no history can violate the check."""

    def refuse(reason: str, e: Core | None = None, hint: str = "") -> NotAnEventGraph:
        pos = e.pos if e is not None and e.pos is not None else check.pos
        return NotAnEventGraph(spec, pos, reason, check=check.name, hint=hint)

    if check.flag:
        reason = (
            "`flag` asks whether every solution satisfies it, but an event graph finds only one"
        )
        raise refuse(reason, hint="remove `flag` to make it an axiom")
    if check.negated:
        reason = "`not` demands a cycle; an event graph can only forbid one"
        raise refuse(reason, hint="remove `not`")
    if check.kind in _FORMS:
        reason, hint = _FORMS[check.kind]
        raise refuse(reason, hint=hint)
    sites: Sites = "transactions"
    letters: tuple[str, ...] = RELATIONS
    try:
        expr = simplify(check.expr)
        if check.kind == "acyclic" and visits_statements(expr):
            if "last-write" in names(expr):
                if not leaves_by_commit(expr):
                    reason = (
                        "a path misses writes of other transactions, but does not lead to "
                        "its own COMMIT"
                    )
                    raise NotRegularError(expr, reason, "leave by `missed | tx`")
                letters, expr, sites = WORDS_BY_OPERATION, by_operation(expr), "operations"
            else:
                letters, expr, sites = WORDS_BY_STATEMENT, by_statement(expr), "statements"
        try:
            language = language_of(expr, letters=letters)
        except NotRegularError:
            if check.kind != "irreflexive" or not isinstance(expr, ForKey):
                raise
            # The union over all keys has a loop iff the relation for some single key has a loop.
            sites, expr = "accesses", without_key(expr)
            language = language_of(expr)
        if language.nullable:
            reason = (
                f"`{check.kind}` applies to a relation that contains the identity, "
                "so nothing satisfies it"
            )
            raise refuse(reason, check.expr, "`?` and `^*` add the identity; the closure is `^+`")
        if language.empty:
            raise refuse("the expression relates no pair in any history", check.expr)
        if not words_without(language, steps_of(language)).empty:
            reason = f"`{check.kind}` applies to a relation that contains a part of the identity"
            raise refuse(
                reason, check.expr, "`[W]`, `[R]` and names only restrict the steps next to them"
            )
        if check.kind == "irreflexive":
            _require_closed(language, refuse, check.expr)
        # The automaton needs no `init`, because no walk leads back to T0.
        of_key = sites == "accesses"
        # As in the certificate checkers, reject every relation that is not an order, even after
        # `init`.
        if of_key and (whole := [r for r in NO_ORDERS if r in names(expr)]):
            raise refuse(f"`{whole[0]}` compares whole transactions", check.expr)
        transitive = (TRANSITIVE - {"init"}) | {"ww"} if of_key else TRANSITIVE
        base = generating_set(
            words_without(
                language_of(expr, stretch=transitive, letters=letters), ("init",) if of_key else ()
            ),
            acyclic=check.kind == "acyclic",
            transitive=transitive,
        )
    except NotRegularError as error:
        raise refuse(error.reason, error.construct, error.hint) from None
    except TooLargeError:
        raise refuse("its automaton is too large", check.expr, "name fewer alternatives") from None
    if (loop := find_loop(base)) is not None:
        _, turn, _ = loop
        shown, word = _word_text(turn), _word_text(sum(loop, ()))
        reason = f"the loop `{shown}` in `{word}` can repeat without completing the expression"
        construct = innermost_closure(expr, frozenset(map(relation_of, turn))) or check.expr
        hint = "write a closure only if each of its steps alone is a step of the whole expression"
        raise refuse(reason, construct, hint)
    automaton = replace(automaton_of(check.name, base), sites=sites)
    if sites == "operations":
        automaton = with_po_loops(automaton)
    if of_key and (reason := why_leaves_key(automaton)):
        raise refuse(reason, check.expr)
    return automaton, _cannot_fail(spec, check, base)


def with_po_loops(automaton: Automaton) -> Automaton:
    """Return the automaton with a ``po`` loop added to each state whose steps leave a statement."""
    leaving = {q for letter in ("rw", "tx") for q, _ in automaton.steps.get(letter, ())}
    leaving |= {q for q, _ in automaton.back}
    steps = {**automaton.steps, "po": tuple((q, q) for q in sorted(leaving))}
    return replace(automaton, steps=steps, sites="operations")


def why_leaves_key(automaton: Automaton) -> str:
    """Explain why a walk on one key may visit a transaction that does not access the key.

    The result is empty if every such walk can be replaced by one that visits only transactions
    accessing the key.

    SOUND BECAUSE steps other than those of builtin orders lead between transactions that access the
    key. A step of a builtin order that is not next to another such step does the same. Two
    successive steps of one order can be replaced by one step, if the automaton allows this step.
    """
    if whole := [r for r in NO_ORDERS if r in automaton.steps]:
        return f"`{whole[0]}` compares whole transactions"
    orders = {r: automaton.steps[r] for r in BUILTIN_ORDERS if r in automaton.steps}
    if len(orders) > 1:
        some = " and ".join(f"`{r}`" for r in orders)
        return f"a path of {some} may lead over transactions that do not access the key"
    for relation, steps in orders.items():
        behind = {q: _silent_closure(automaton, {q}) for q in range(automaton.states)}
        borne = {q: _silent_closure(automaton, {q}, NAMED) for q in range(automaton.states)}
        for q, middle in steps:
            for start, end in steps:
                if start not in borne[middle]:
                    continue
                once = (b for a, b in steps if a in behind[q])
                if not any(end in behind[b] for b in once):
                    return (
                        f"`{relation} ; {relation}` may lead over a transaction that does not "
                        "access the key"
                    )
    return ""


def _silent_closure(automaton: Automaton, states: set[int], tests: Sequence[str] = ()) -> set[int]:
    """Return the states reachable from ``states`` by silent transitions and by the given tests.

    A transaction that passes ``[W]`` or ``[R]`` accesses the key. A transaction that passes a test
    for a label or a level may not access the key.
    """
    moves = [*automaton.epsilon, *(move for test in tests for move in automaton.of(test))]
    while True:
        more = states | {r for q, r in moves if q in states}
        if more == states:
            return states
        states = more


class _Refuse(Protocol):
    def __call__(self, reason: str, e: Core | None = None, hint: str = "") -> NotAnEventGraph: ...


def _require_closed(language: Dfa, refuse: _Refuse, e: Core) -> None:
    """Raise an error unless L·L ⊆ L for the language L (condition 2 in docs/routes.md)."""
    twice = concatenate(language, language)
    if not is_included(twice, language):
        # A closed walk can be read starting from any of its transactions. Therefore the error
        # shows, if possible, a word none of whose rotations is a word of the expression.
        allowed = subtract(twice, rotations(language))
        shown = _word_text(shortest_word(subtract(twice, language) if allowed.empty else allowed))
        reason = (
            f"`irreflexive` concerns one step of the expression, but `{shown}` "
            "is two steps; an event graph cannot tell such a cycle from a "
            "forbidden one"
        )
        hint = "`acyclic` forbids cycles of any number of steps"
        raise refuse(reason, e, hint)


def _cannot_fail(spec: Spec, check: Check, base: Dfa) -> str:
    """Return a warning if no history can violate the check; otherwise an empty string."""
    rows = tuple({a: t for a, t in row.items() if a != "init"} for row in base.moves)
    letters = steps_of(_without_dead_states(Dfa(rows, base.final)))
    alive = {relation_of(letter) for letter in letters}
    if len(alive) <= 1 and alive <= set(BUILTIN_ORDERS):
        why = f"`{min(alive)}` is an order" if alive else "nothing leads to the initial transaction"
        what = f"warning: check `{check.name}` cannot fail: {why}"
        return message_at(check.pos, spec.texts, what)
    return ""


def _without_dead_states(dfa: Dfa) -> Dfa:
    """Remove the states from which no final state is reachable; the language stays the same."""
    return subtract(dfa, Dfa(({},), frozenset()))


def steps_of(dfa: Dfa) -> tuple[str, ...]:
    """Return the letters of an automaton, without tests."""
    return tuple(letter for letter in sort_letters(dfa.letters) if not is_test(letter))


def _word_text(word: Word) -> str:
    return " ; ".join(letter_text(letter) for letter in word)


def letter_text(letter: str) -> str:
    """Return a letter as written in specifications, with tests in brackets."""
    if " not " in letter and whole_letter(letter) in NAMED:
        return f"[T \\ {letter.replace(' not ', ' ')}]"
    return f"[{letter}]" if is_test(letter) else letter


def generating_set(
    stretched_language: Dfa, *, acyclic: bool, transitive: frozenset[str] = TRANSITIVE
) -> Dfa:
    """Return a finite language F whose closure F⁺ consists of the words forbidden by a check."""
    # For `irreflexive`, condition 2 implies K = L = L⁺, even after each transitive letter r is
    # replaced by r⁺.
    whole = plus(stretched_language) if acyclic else stretched_language
    base = subtract(whole, concatenate(whole, whole))
    return subtract(base, with_doubled_letter(whole, transitive))


def automaton_of(check: str, base: Dfa) -> Automaton:
    """Turn the DFA of a check whose language is finite into an automaton with final state 0.

    A final state of ``base`` with outgoing transitions stays separate, and gets a silent transition
    to state 0.
    """
    number = {0: 0}
    number.update({state: 0 for state in base.final if not base.moves[state]})
    order = [0]
    for state in order:
        row = base.moves[state]
        for letter in sort_letters(row):
            if (target := row.get(letter)) is not None and target not in number:
                number[target] = len(order)
                order.append(target)
    steps: dict[str, tuple[tuple[int, int], ...]] = {}
    for letter in sort_letters({letter for row in base.moves for letter in row}):
        pairs = sorted(
            (number[state], number[row[letter]])
            for state, row in enumerate(base.moves)
            if letter in row
        )
        if pairs:
            steps[letter] = tuple(pairs)
    silent = tuple(sorted((number[state], 0) for state in base.final if number[state]))
    automaton = Automaton(
        check=check,
        states=len(order),
        steps=steps,
        epsilon=silent,
        repeatable=frozenset(),
    )
    repeatable = (r for r in ("so", "rt") if r in steps and is_repeatable(automaton, r))
    return replace(automaton, repeatable=frozenset(repeatable))


def is_repeatable(automaton: Automaton, relation: str) -> bool:
    """Return whether an event graph needs only the immediate pairs of a transitive relation.

    SOUND BECAUSE: if each step q → q' of the relation can be replaced by two successive steps, with
    silent transitions around them, then by induction it can be replaced by any number of steps,
    along a chain of immediate pairs.
    """
    steps = automaton.steps[relation]

    def step(states: set[int]) -> set[int]:
        return {q2 for q1, q2 in steps if q1 in _silent_closure(automaton, states)}

    def twice(q: int) -> set[int]:
        return _silent_closure(automaton, step(step({q})))

    return all(q2 in twice(q1) for q1, q2 in steps)
