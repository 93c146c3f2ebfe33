"""Proves that one specification implies another by comparing the cycles they forbid.

Take a history with choices (sources, version orders, included indeterminate transactions) that
satisfy the stronger specification. The same choices satisfy the weaker one if each closed walk that
violates the weaker one also spells, when read from one of its transactions, a word that the
stronger one forbids. Therefore the inclusion of two languages is a proof for histories of any size.
If the inclusion does not hold, nothing is proved, because the languages of walks ignore keys.

In this module, a letter is a step together with the tests passed by its first transaction: whether
it writes (`[W]`), and whether it has external reads (`[R]`). A test is left out if neither
specification uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, combinations

from msgspec import Struct
from msgspec.structs import replace

from isolang.comparison.containment import follows_from
from isolang.comparison.inclusion import Inclusion, holds, prove
from isolang.comparison.normal import Axiom, Normal, letters_within
from isolang.language.classify.event_graph import steps_of
from isolang.language.classify.expression import (
    WORDS_BY_OPERATION,
    WORDS_BY_STATEMENT,
    NotRegularError,
    by_operation,
    by_statement,
    is_on_one_key,
    language_of,
    lettered,
    simplify,
    visits_statements,
    without_key,
    without_mere_items,
)
from isolang.language.classify.regular import (
    Dfa,
    Nfa,
    TooLargeError,
    concatenate,
    determinise,
    is_included,
    minimise,
    plus,
    rotations,
    union,
    up_to_last,
    words_without,
)
from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    ForKey,
    Inter,
    Lift,
    Named,
    Opt,
    Plus,
    Rel,
    Seq,
    Star,
    Union,
)
from isolang.language.meaning.mentions import children, names, rebuild
from isolang.language.meaning.show import brief, show_check
from isolang.language.vocabulary import (
    BUILTIN_ORDERS,
    COMPARING_SESSIONS,
    COMPARING_TIMES,
    DEPENDENCIES,
    FILTERED,
    FILTERED_RELATIONS,
    NAMED,
    OF_READS,
    OVERWRITING,
    RELATIONS,
    SPLIT,
    TESTS,
    ends_of,
    relation_of,
    whole_letter,
)

_STEPS = frozenset(RELATIONS) - {"init"}
_TESTS = frozenset(TESTS)
_ORDERS = BUILTIN_ORDERS
_PARTS = {
    relation: tuple(letter for letter in FILTERED if relation_of(letter) == relation)
    for relation in FILTERED_RELATIONS
}
_PARTS["rt"] += ("group-rt",)
_PARTS_ONE_AT_A_TIME = {
    **_PARTS, "rt": (*_PARTS["rt"], "so"), "group-rt": (*_PARTS.get("group-rt", ()), "so")
}  # fmt: skip
"""The same table under ``ONE_AT_A_TIME``, by which `rt` and `group-rt` contain session order."""
_READS = OF_READS | {"rf"}
_OF_VERSIONS = OVERWRITING | {"ww"}
_ENDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(OF_READS - OVERWRITING, ("W", "R")),
    "ww": ("W", "W"),
    **dict.fromkeys(OVERWRITING, ("R", "W")),
    "locked": ("W", "W"),
    **{letter: ends_of(letter) for letter in FILTERED},
}


class ProofStep(Struct, frozen=True, kw_only=True):
    """The proof that one specification implies one check of another.

    Attributes:
        by: the checks of the stronger specification that imply it.
        inclusion: the inclusion of the languages; ``None`` if the check is one of ``by``.
        shorter: for a check on single keys, shorter cycles; each violation contains one of them.
    """

    check: str
    by: tuple[str, ...]
    inclusion: Inclusion | None = None
    shorter: str = ""
    part: bool = False

    def __str__(self) -> str:
        if self.part:
            return f"`{self.by[0]}` is about all pairs that `{self.check}` is about"
        if self.inclusion is None:
            return f"`{self.check}` is one of its checks"
        by = " and ".join(f"`{one}`" for one in self.by)
        left, right = len(self.inclusion.left.moves), len(self.inclusion.right.moves)
        what = f"each cycle that violates `{self.check}`"
        if self.shorter:
            what += f" contains one of `{self.shorter}` (lemmas in docs/comparison.md), which"
        return (
            f"{what} spells, from one of its transactions on, a "
            f"word that violates {by} (languages of {left} and {right} states, "
            f"{len(self.inclusion.pairs)} pairs)"
        )


class ImplicationProof(Struct, frozen=True, kw_only=True):
    """A proof that every history satisfying one specification also satisfies another.

    Attributes:
        theorems: sentences stating the theorems that make the normal forms equivalent to the
            specifications.
        one_at_a_time: whether the proof assumes that sessions do one thing at a time.
    """

    stronger: str
    weaker: str
    theorems: tuple[str, ...]
    steps: tuple[ProofStep, ...]
    one_at_a_time: bool = False

    def holds(self) -> bool:
        """Return whether each step is proved by its evidence."""
        return all(step.inclusion is None or holds(step.inclusion) for step in self.steps)

    def argument(self) -> Iterator[str]:
        """Yield the proof as sentences for users."""
        yield from self.theorems
        if self.one_at_a_time:
            yield f"{ONE_AT_A_TIME}: `so` is within `rt`"
        yield (
            f"take sources and version orders for which `{self.stronger}` is satisfied; "
            f"`{self.weaker}` is satisfied for the same ones:"
        )
        yield from map(str, self.steps)


ONE_AT_A_TIME = "sessions do one thing at a time"
"""The assumption that each transaction begins after the previous one in its session has ended; see
docs/comparison.md.
"""


def prove_implication(
    stronger: Normal, weaker: Normal, *, one_at_a_time: bool = False
) -> ImplicationProof | None:
    """Return a proof that ``stronger`` implies ``weaker``.

    If no proof is found, return ``None``; the implication may still hold.

    Args:
        one_at_a_time: whether the proof may assume that sessions do one thing at a time. A recorded
            history may violate this assumption, so conclusions about recorded histories require a
            proof without it.
    """
    found = _implication(stronger, weaker, one_at_a_time=False)
    if found is None and one_at_a_time and may_overlap((stronger, weaker)):
        found = _implication(stronger, weaker, one_at_a_time=True)
    return found


def may_overlap(levels: Sequence[Normal]) -> bool:
    """Return whether a level compares both times and sessions, so that overlaps matter."""
    names = frozenset().union(*(level.mentioned() for level in levels))
    return bool(names & COMPARING_TIMES and names & COMPARING_SESSIONS)


def _implication(
    stronger: Normal, weaker: Normal, *, one_at_a_time: bool
) -> ImplicationProof | None:
    if weaker.uses_reads_from and not stronger.uses_reads_from:
        return None  # aborted reads violate only the weaker level
    if stronger.exists != weaker.exists:
        return None
    steps = []
    for axiom in weaker.axioms:
        step = _step(stronger, axiom, one_at_a_time=one_at_a_time)
        step = step or _step_beyond_own_versions(stronger, axiom)
        if step is None:
            return None
        steps.append(step)
    theorems = [f"{one.spec.name}: {one.theorem}" for one in (stronger, weaker) if one.theorem]
    found = ImplicationProof(
        stronger=stronger.spec.name,
        weaker=weaker.spec.name,
        theorems=tuple(theorems),
        steps=tuple(steps),
        one_at_a_time=one_at_a_time,
    )
    return found if found.holds() else None


def _step(stronger: Normal, axiom: Axiom, *, one_at_a_time: bool = False) -> ProofStep | None:
    shown = _check_text(axiom.check)
    splits = any(SPLIT & names(check.expr) for check in (axiom.check, *stronger.checks))
    for check in stronger.checks:
        if _is_same_check(check, axiom.check):
            return ProofStep(check=shown, by=(_check_text(check),))
        if follows_from(*(_simplified(one, splits=splits) for one in (axiom.check, check))):
            return ProofStep(check=shown, by=(_check_text(check),), part=True)
    if not stronger.chooses_only_dependencies:
        return None
    if any(visits_statements(check.expr) for check in stronger.checks):
        if (step := _step_by_operation_walks(stronger, axiom)) is not None:
            return step
    elif visits_statements(axiom.check.expr):
        with suppress(NotRegularError):
            axiom = Axiom(check=axiom.check, implied_by=_transaction_walks(axiom.check))
    shorter = ""
    if axiom.implied_by is not None:
        form, expr = axiom.check.kind, simplify(axiom.implied_by, splits=splits)
        form = form if form in ("acyclic", "irreflexive") else "irreflexive"
    elif (short := _short_cycles_of_key(axiom.check)) is not None:
        form, expr, shorter = "irreflexive", simplify(short, splits=splits), brief(short)
    elif _is_about_cycles(axiom.check):
        form, expr = axiom.check.kind, simplify(axiom.check.expr, splits=splits)
    else:
        return None
    with suppress(NotRegularError, TooLargeError):
        spelled = violation_language(form, expr)
        if spelled is None:
            return None
        of_key = bool(shorter) or (isinstance(expr, ForKey) and is_on_one_key(expr))
        about = [
            (c.kind, _without_constant_key(simplify(c.expr, splits=splits), of_key=of_key), c)
            for c in stronger.checks
            if _is_about_cycles(c)
        ]
        known = [(k, e, c) for k, e, c in about if _forbidden_words(k, e) is not None]
        tests = spelled.letters.union(
            *(w.letters for k, e, _ in known if (w := _forbidden_words(k, e)))
        )
        tests &= _TESTS
        left = _possible_words(form, expr, tests, one_at_a_time=one_at_a_time)
        right = [
            (_check_text(check), _known_walks(k, e, tests, one_at_a_time=one_at_a_time))
            for k, e, check in known
        ]
        for some in chain(([one] for one in right), [right] if len(right) > 1 else []):
            language = union(*(words for _, words in some))
            if (inclusion := prove(left, language)) is not None:
                by = tuple(name for name, _ in some)
                return ProofStep(check=shown, by=by, inclusion=inclusion, shorter=shorter)
    return None


def _step_beyond_own_versions(stronger: Normal, axiom: Axiom) -> ProofStep | None:
    r"""Prove ``acyclic ww | irw | …`` from cycles of ``ww`` and ``for x: [T \ W[x]] ; irw[x]``.

    SOUND BECAUSE an ``irw[x]`` of a reader that writes x is a pair of ``ww[x]``, unless it leads to
    a version before the reader's own. Then ``ww[x] ; irw[x]`` is closed, or the reader read a
    version after its own, and ``wr | ww`` has a cycle; the stronger specification forbids both.
    Therefore only the ``irw`` of other readers need to be considered.
    """
    check = axiom.check
    if check.kind != "acyclic" or not isinstance(check.expr, Union):
        return None
    parts = set(check.expr.parts)
    if not parts >= {Rel("ww"), Rel("irw")} or "irw" in names(Union(tuple(parts - {Rel("irw")}))):
        return None
    own = [axiom for axiom in stronger.axioms if _forbids_versions_before_own(axiom.check)]
    if not own or not any(
        one.kind == "acyclic"
        and isinstance(one.expr, Union)
        and {Rel("wr"), Rel("ww")} <= set(one.expr.parts)
        for one in stronger.checks
    ):
        return None
    axioms = [
        replace(one, check=replace(one.check, expr=without_mere_items(one.check.expr, Rel("irw"))))
        for one in stronger.axioms
        if one not in own
    ]
    step = _step(replace(stronger, axioms=tuple(axioms)), axiom)
    if step is None:
        return None
    rest = (one.check for one in stronger.axioms if one not in own)
    texts = {
        _check_text(new.check): _check_text(old) for new, old in zip(axioms, rest, strict=True)
    }
    by = (*(texts[text] for text in step.by), _check_text(own[0].check))
    return replace(step, by=by)


def _forbids_versions_before_own(check: Check) -> bool:
    match check:
        case Check(
            kind="irreflexive",
            expr=ForKey(
                key=x,
                body=Seq(parts=(Rel(name="ww", key=first), Rel(name="irw", key=second))),
                within=None,
            ),
        ):
            return x == first == second
    return False


# --- walks over operations ---


def _transaction_walks(check: Check) -> Core:
    """Turn a check whose walks visit operations into an expression for walks over transactions.

    An ``rw`` from a transaction to itself is not an edge. It may be skipped, because the walk is
    closed without it.
    """

    def without_operations(e: Core) -> Core:
        if e == Rel("tx"):
            return Rel("id")
        if e == Rel("rw") and check.kind == "irreflexive":
            return Opt(e)
        return rebuild(e, tuple(map(without_operations, children(e))))

    return without_operations(by_operation(simplify(check.expr)))


def _step_by_operation_walks(stronger: Normal, axiom: Axiom) -> ProofStep | None:
    with suppress(NotRegularError, TooLargeError):
        check = axiom.check
        if axiom.onwards and axiom.implied_by is not None:
            left = language_of(axiom.implied_by, letters=WORDS_BY_OPERATION)
        elif _is_about_cycles(check) and axiom.implied_by is None:
            left = _operation_language(check)
            if check.kind == "irreflexive" and "rw" in left.letters:
                own = language_of(Rel("tx"), letters=WORDS_BY_OPERATION)
                left = union(left, concatenate(up_to_last(left, "rw"), own))
        else:
            return None
        left = words_without(left, ("init",))
        right: list[tuple[str, Dfa]] = []
        for one in filter(_is_about_cycles, stronger.checks):
            with suppress(NotRegularError):
                right.append((_check_text(one), rotations(_operation_language(one))))
        for some in chain(([one] for one in right), [right] if len(right) > 1 else []):
            language = union(*(words for _, words in some))
            if (inclusion := prove(left, language)) is not None:
                by = tuple(name for name, _ in some)
                return ProofStep(check=_check_text(check), by=by, inclusion=inclusion)
    return None


def _operation_language(check: Check) -> Dfa:
    """Return the language of the closed walks over operations that violate a check."""
    expr = by_operation(simplify(check.expr))
    words = language_of(expr, stretch=_ORDERS, letters=WORDS_BY_OPERATION)
    return plus(words) if check.kind == "acyclic" else words


@lru_cache(maxsize=1024)
def _short_cycles_of_key(check: Check) -> Core | None:
    """Return an expression for short cycles on one key; each violation contains one of them.

    If no lemma applies to the check, return ``None``.

    SOUND BECAUSE `ww[x]` is total, as the lemmas in docs/comparison.md require. They cover all
    cycles with steps on one key, all cycles without anti-dependencies, and all cycles with one
    anti-dependency.
    """
    if not _is_about_cycles(check):
        return None
    try:
        words = words_without(language_of(without_key(simplify(check.expr))), ("init",))
    except (NotRegularError, TooLargeError):
        return None
    words = plus(words) if check.kind == "acyclic" else words
    steps = words.letters - {"rw"}
    if not {"wr"} <= steps <= {"so", *DEPENDENCIES}:
        return None
    some = Union(tuple(map(Rel, sorted(steps))))
    every, once = Plus(Union((*some.parts, Rel("rw")))), Seq((Plus(some), Rel("rw")))
    passing = (Seq((Rel("wr"), Rel("so"))),) if "so" in steps else ()
    between = Union((*(part for part in some.parts if part != Rel("ww")), *passing))
    cycles = (Seq((between, Rel("ww"))), *passing)
    if "ww" in steps and _are_equal(words, language_of(Plus(some))):
        return Union(cycles)
    if not any(
        _are_equal(words, language_of(e)) for e in ([every] if "ww" in steps else []) + [once]
    ):
        return None
    return Union((*cycles, Seq((Union((*some.parts, *passing)), Rel("rw")))))


def _are_equal(one: Dfa, other: Dfa) -> bool:
    return is_included(one, other) and is_included(other, one)


def _without_constant_key(e: Core, *, of_key: bool) -> Core:
    """Return the expression without its key if walks stay with one key, otherwise unchanged."""
    if of_key and isinstance(e, ForKey):
        with suppress(NotRegularError):
            return without_key(e)
    return e


def _check_text(check: Check) -> str:
    return show_check(check).partition(" as ")[0]


def _is_same_check(one: Check, other: Check) -> bool:
    def content(check: Check) -> object:
        bound = None if check.bound is None else simplify(check.bound)
        return check.kind, check.negated, simplify(check.expr), bound

    return content(one) == content(other)


def _simplified(check: Check, *, splits: bool) -> Check:
    expr = simplify(check.expr, splits=splits)
    bound = None if check.bound is None else simplify(check.bound, splits=splits)
    return replace(check, expr=expr, bound=bound)


# --- languages of cycles ---


@lru_cache(maxsize=1024)
def _forbidden_words(form: str, e: Core) -> Dfa | None:
    """Return some of the words whose closed walks violate a check.

    If none is found, return ``None``.
    """
    words = None
    if visits_statements(e):
        with suppress(NotRegularError):
            words = _statement_words(language_of(by_statement(e), letters=WORDS_BY_STATEMENT))
    for part in e.parts if isinstance(e, Union) else (e,):
        spelled = _spelled_part(part)
        if spelled is not None:
            own = language_of(spelled)
            words = own if words is None else union(words, own)
    if words is None:
        return None
    return plus(words) if form == "acyclic" else words


def _spelled_part(e: Core) -> Core | None:
    """Return a relation within an expression whose pairs spell words of known letters.

    The alternatives of unions that spell none are left out. If nothing is left, return ``None``.

    SOUND BECAUSE the operators are monotone, and a cycle of a smaller relation is also a cycle of
    the larger one.
    """
    with suppress(NotRegularError):
        if language_of(e).letters <= _STEPS | _TESTS | {"init"}:
            return e
    match e:
        case Union(parts=parts):
            kept = tuple(part for part in map(_spelled_part, parts) if part is not None)
            return Union(kept, e.pos) if kept else None
        case Seq(parts=parts):
            steps = tuple(map(_spelled_part, parts))
            return None if None in steps else rebuild(e, tuple(step for step in steps if step))
        case Opt(arg=arg) | Star(arg=arg):
            inner = _spelled_part(arg)
            return Rel("id", None, e.pos) if inner is None else rebuild(e, (inner,))
        case Plus(arg=arg):
            inner = _spelled_part(arg)
            return None if inner is None else Plus(inner, e.pos)
    return None


def _statement_words(words: Dfa) -> Dfa:
    """Return the words that enter a statement only by ``wr``, and leave it by ``tx``.

    In such a word, `wr` leads from the source of a read to the statement, and `tx` leads from the
    statement to the reader's COMMIT.
    """
    rows = []
    for row in words.moves:
        steps = {a: t for a, t in row.items() if a in _STEPS - OF_READS}
        read = words.moves[row["wr"]].get("tx") if "wr" in row else None
        rows.append(steps if read is None else {**steps, "wr": read})
    return words_without(Dfa(tuple(rows), words.final), ())


@lru_cache(maxsize=1024)
def violation_language(form: str, e: Core, *, names: bool = False) -> Dfa | None:
    """Return a language such that each violation of a condition spells one of its words.

    If a violation may not be a cycle, return ``None``.
    """
    words = language_of(simplify(_without_keys(lettered(e if names else _without_names(e)))))
    if words.nullable or not words_without(words, steps_of(words)).empty:
        return None
    if not set(map(whole_letter, words.letters)) <= _STEPS | _TESTS | set(NAMED) | {"init"}:
        return None
    return plus(words) if form == "acyclic" else words


def _is_about_cycles(check: Check) -> bool:
    return not check.negated and check.kind in ("acyclic", "irreflexive")


def _without_names(e: Core) -> Core:
    """Return a larger relation, without restrictions to names of keys and transactions."""
    match e:
        case Lift(arg=Named() | Diff(left=Rel(name="T"), right=Named())):
            return Rel("id", None, e.pos)
        case ForKey():
            return ForKey(e.key, _without_names(e.body), None, e.pos)
        case Lift(arg=Union(parts=parts)):
            return _without_names(Union(tuple(Lift(part) for part in parts), e.pos))
        case _:
            return rebuild(e, tuple(map(_without_names, children(e))))


def _without_keys(e: Core) -> Core:
    """Return a larger relation in which consecutive steps may be on different keys.

    A difference is replaced by its left side, and an intersection by its first part.
    """
    match e:
        case Rel():
            return Rel(e.name, None, e.pos)
        case ForKey():
            return _without_keys(e.body)
        case Diff():
            return _without_keys(e.left)
        case Inter():
            return _without_keys(e.parts[0])
        case _:
            return rebuild(e, tuple(map(_without_keys, children(e))))


@lru_cache(maxsize=1024)
def _known_walks(form: str, e: Core, tests: frozenset[str], *, one_at_a_time: bool) -> Dfa:
    """Return the words from ``_walks``, or only those of single steps if they are too large."""
    steps = tuple(part for part in e.parts if isinstance(part, Rel)) if isinstance(e, Union) else ()
    try:
        return _walks(form, e, tests, one_at_a_time=one_at_a_time)
    except TooLargeError:
        if not steps:
            raise
    return _walks(form, Union(steps), tests, one_at_a_time=one_at_a_time)


@lru_cache(maxsize=1024)
def _walks(form: str, e: Core, tests: frozenset[str], *, one_at_a_time: bool) -> Dfa:
    """Return the words spelled by violating closed walks, read from each transaction of the walk.

    A `so` or `rt` step of a violation may be several such steps of a walk. A step between arbitrary
    transactions may be a step between transactions that access the same key. No pair leads to T0,
    so `init` is in no closed walk.
    """
    parts = _PARTS_ONE_AT_A_TIME if one_at_a_time else _PARTS
    words = _forbidden_words(form, e)
    assert words is not None
    cyclic = rotations(words)
    kinds = _test_sets(tests)
    nfa = Nfa()
    places = [nfa.state() for _ in cyclic.moves]
    nfa.skip(nfa.initial, places[0])
    for q in cyclic.final:
        # Tests at the end of a word apply to the first transaction. Another rotation of the word
        # begins with them.
        nfa.skip(places[q], nfa.final)
    for q, here in enumerate(places):
        for kind in kinds:
            for step, target in _steps(cyclic, q, kind):
                after, middle = places[target], nfa.state() if step in _ORDERS else None
                for part in (step, *parts.get(step, ())):
                    nfa.move(here, f"{kind}:{part}", after)
                    if middle is not None:
                        nfa.move(here, f"{kind}:{part}", middle)
                        for other in kinds:
                            nfa.move(middle, f"{other}:{part}", middle)
                            nfa.move(middle, f"{other}:{part}", after)
    return minimise(determinise(nfa))


@lru_cache(maxsize=1024)
def _possible_words(form: str, e: Core, tests: frozenset[str], *, one_at_a_time: bool) -> Dfa:
    """Return the words of violating walks that can occur in a history.

    Both transactions of a step write or read as the step requires. Steps of `so` alone, or of `rt`
    alone, close no cycle. If sessions do one thing at a time, real time contains all these steps,
    so they close no cycle together. No walk begins inside a run of steps of one order.
    """

    def within_one_order(last: str, step: str) -> bool:
        return step in _ORDERS and (last in _ORDERS if one_at_a_time else last == step)

    words = violation_language(form, e)
    assert words is not None
    cyclic = rotations(words)
    kinds = _test_sets(tests)
    nfa = Nfa()
    number: dict[tuple[int, str, str, str], int] = {}
    todo: list[tuple[int, str, str, str]] = []

    def state(*place: *tuple[int, str, str, str]) -> int:
        if place not in number:
            number[place] = nfa.state()
            todo.append(place)
        return number[place]

    def follow(here: int, q: int, kind: str, first: str) -> None:
        for step, target in _steps(cyclic, q, kind):
            leaves, enters = _ENDS.get(step, ("", ""))
            if set(leaves) & tests <= set(kind):
                letter = f"{kind}:{step}"
                nfa.move(here, letter, state(target, enters, step, first or letter))

    for kind in kinds:
        follow(nfa.initial, 0, kind, "")
    while todo:
        q, entered, last, first = todo.pop()
        here = number[q, entered, last, first]
        needed = set(entered) & tests
        kind, _, step = first.partition(":")
        if q in cyclic.final and needed <= set(kind) and not within_one_order(last, step):
            nfa.skip(here, nfa.final)
        for kind in kinds:
            if needed <= set(kind):
                follow(here, q, kind, first)
    return minimise(determinise(nfa))


def _steps(dfa: Dfa, q: int, kind: str) -> Iterator[tuple[str, int]]:
    """Yield the steps out of a state for a transaction that passes the tests ``kind``.

    Tests passed by the transaction may precede the step.
    """
    passed = [q]
    for p in passed:
        passed += [
            t for test in kind if (t := dfa.moves[p].get(test)) is not None and t not in passed
        ]
    for p in passed:
        yield from ((step, t) for step, t in dfa.moves[p].items() if step in _STEPS)


def _test_sets(tests: frozenset[str]) -> list[str]:
    """Return the sets of tests that a transaction may pass, each as a string of letters."""
    return ["".join(some) for n in range(len(tests) + 1) for some in combinations(sorted(tests), n)]


def implied_checks(level: Normal) -> Iterator[tuple[Check, tuple[str, ...]]]:
    """Yield checks implied by other checks of the specification, with the names of the latter.

    Some implied checks may be missing. Checks that no history violates are left out. Checks are
    yielded only if the specification itself is expressed by dependencies, because otherwise the
    checks of its normal form are not those of its text.
    """
    if level.theorem or not level.chooses_only_dependencies:
        return
    for axiom in level.axioms:
        rest = tuple(one for one in level.axioms if one is not axiom)
        reads = frozenset().union(*(names(one.check.expr) for one in rest)) & _READS
        if rest and (reads or not names(axiom.check.expr) & _READS):
            step = _step(replace(level, axioms=rest), axiom)
            if step is not None and not (step.inclusion and step.inclusion.left.empty):
                yield axiom.check, step.by


def settled_by_version_orders(level: Normal) -> Iterator[Check]:
    """Yield the checks that a history without lists meets whenever it meets all other checks.

    Such a check is met by version orders that follow a suitable order of the transactions.
    Histories with lists are excluded, because list reads show version orders.

    SOUND BECAUSE all checks that mention version orders are met together by version orders that
    follow a linear extension of relations that are acyclic without them: sessions, real time, or
    relations whose cycles are forbidden by checks that do not mention version orders. Then no step
    of a walk leads back in the linear extension, so no walk is closed.
    """
    if not level.chooses_only_dependencies or level.theorem:
        return
    implied = [check for check, _ in implied_checks(level)]
    checks = [check for check in level.checks if check not in implied]
    about = [check for check in checks if names(check.expr) & _OF_VERSIONS]
    bases = [{"so"}, {"rt"}]
    for check in checks:
        if check not in about and _is_about_cycles(check):
            forbidden = _forbidden_words(check.kind, simplify(check.expr))
            if forbidden is not None:
                bases.append(set(letters_within(forbidden)))
    if any(all(_follows_relations(check, base) for check in about) for base in bases):
        yield from about


def _follows_relations(check: Check, base: set[str]) -> bool:
    """Return whether the steps of a violation are pairs from base relations or version orders."""
    if not _is_about_cycles(check):
        return False
    with suppress(NotRegularError, TooLargeError):
        words = violation_language(check.kind, simplify(check.expr))
        if words is not None:
            steps = words_without(words, ("init",)).letters - _TESTS
            return {relation_of(step) for step in steps} <= base | {"ww"}
    return False
