"""Translates regular core expressions into regular languages of relation names.

A word is the sequence of relation names spelled by a walk through a history. The operators ``|``,
``;``, ``?``, ``^+``, ``^*`` and ``id`` on relations are the regular operators on languages. ``[W]``
and ``[R]`` are also letters, for steps from a transaction to itself. All other expressions are
rejected with an error that explains why they are not regular.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec.structs import replace

from isolang.language.classify.regular import Dfa, Nfa, determinise, minimise
from isolang.language.meaning.core import (
    Core,
    Diff,
    Domain,
    ForKey,
    Inter,
    Inverse,
    Lift,
    Named,
    Opt,
    Plus,
    Product,
    Range,
    Rel,
    Seq,
    Star,
    Union,
)
from isolang.language.meaning.mentions import children, names, rebuild
from isolang.language.meaning.show import brief, show
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import (
    BETWEEN_COMMITS_BY_OPERATION,
    BETWEEN_COMMITS_BY_STATEMENT,
    FILTERED,
    OF_READS,
    OF_STATEMENTS,
    PARTS,
    RELATIONS,
    SPLIT,
    STATEMENT_LETTERS,
    TESTS,
    TRANSITIVE,
    is_test,
    whole_letter,
)

_FORWARD = "an event graph follows so, rt, wr, ww and rw forwards only"


class NotRegularError(Exception):
    """Raised when an expression is not regular over the relations of event graphs."""

    def __init__(self, construct: Core, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.construct = construct
        self.reason = reason
        self.hint = hint


def simplify(e: Core, *, splits: bool = False) -> Core:
    """Simplify an expression.

    If one of the parts ``iwr``, ``pwr``, ``irw`` and ``prw`` occurs, also split ``wr`` into ``iwr |
    pwr`` and ``rw`` into ``irw | prw``.

    The parts are ``iwr | pwr`` and ``irw | prw``.

    >>> brief(simplify(Union((Rel("irw"), Rel("wr")))))
    'irw | (iwr | pwr)'
    """
    e = _simplify(e)
    return _split(e) if splits or names(e) & SPLIT else e


def _split(e: Core) -> Core:
    if isinstance(e, Rel) and e.name in PARTS:
        return Union(tuple(Rel(part, e.key, e.pos) for part in PARTS[e.name]), e.pos)
    return rebuild(e, tuple(map(_split, children(e))))


def _simplify(e: Core) -> Core:
    """Replace the definitions of ``wr`` and ``rw`` by these names, and simplify.

    SOUND BECAUSE each rule is an equality of relations. The identity on a union is the union of the
    identities. ``wr`` and ``rw`` equal their definitions; without its key, ``tx^-1 ; rf ; tx`` is
    also the union over all keys, because composition distributes over unions. ``ww[x]`` is a total
    order, so ``ww[x]^+`` is ``ww[x]``. ``[T]`` is the identity. ``[A]`` and ``[B]`` are parts of
    the identity, so ``[A] ; r ; [B]`` is transitive if r is transitive.

    >>> wr = Seq((Inverse(Rel("tx")), Rel("rf", "y"), Rel("tx")))
    >>> brief(simplify(Diff(Seq((Inverse(wr), Rel("ww", "y"))), Rel("id"))))
    'rw[y]'
    """
    e = rebuild(e, tuple(map(_simplify, children(e))))
    match e:
        case Seq(parts=(Inverse(arg=Rel(name="tx")), Rel(name="rf", key=key), Rel(name="tx"))):
            return Rel("wr", key, e.pos)
        case Diff(
            left=Seq(parts=(Inverse(arg=Rel(name="wr", key=key)), Rel(name="ww", key=other))),
            right=Rel(name="id"),
        ) if key is not None and key == other:
            return Rel("rw", key, e.pos)
        case Inter(parts=parts) if set(parts) == {Rel("rt"), Rel("same-group")}:
            return Rel("group-rt", None, e.pos)  # like `rt & same-group`, it has no pairs with T0
        case Plus(arg=Rel(name="ww", key=str())):
            return e.arg
        case Lift(arg=Rel(name="T")):
            return Rel("id", None, e.pos)
        case Union(parts=(only,)) | Seq(parts=(only,)):
            return only
        case Plus(arg=arg) if _is_restricted(arg):
            return arg
        case Star(arg=arg) if _is_restricted(arg):
            return Opt(arg, e.pos)
        case Lift(arg=ForKey() as over):
            return over.of(Lift(over.body, e.pos))
        case Lift(arg=Union(parts=parts)):
            return simplify(Union(tuple(Lift(part, e.pos) for part in parts), e.pos))
    return e


def without_mere_items(e: Core, item: Core) -> Core:
    r"""Replace each ``for x: [T \ W[x]] ; irw[x]`` in an expression by ``item``."""
    match e:
        case ForKey(
            key=x,
            body=Seq(
                parts=(
                    Lift(arg=Diff(left=Rel(name="T"), right=Rel(name="W", key=w))),
                    Rel(name="irw", key=of),
                )
            ),
            within=None,
        ) if x == w == of:
            return item
    return rebuild(e, tuple(without_mere_items(part, item) for part in children(e)))


def lettered(e: Core) -> Core:
    """Replace the restricted steps in an expression by letters such as ``rt[W,R]``.

    The expression must be a result of :func:`simplify`.

    Each step between accesses to one key becomes a letter, and so does each relation restricted to
    a class of keys, and each test for a name.
    """
    return _named(_lettered(e))


def _lettered(e: Core) -> Core:
    e = rebuild(e, tuple(map(_lettered, children(e))))
    return _merge_tests(e) if isinstance(e, Seq) else e


def _named(e: Core) -> Core:
    """Replace relations restricted to a class of keys, and tests for names, by letters.

    ``for x in "a/*": wr[x]`` becomes ``for x: wr["a/*"][x]``, and ``[label "a"]`` becomes a letter.

    SOUND BECAUSE the union over the keys of a class is the union over all keys, if the relation has
    pairs only for the keys of the class.
    """
    e = rebuild(e, tuple(map(_named, children(e))))
    match e:
        case Lift(arg=Named() as of):
            return Lift(Rel(show(of), None, of.pos), e.pos)
        case Lift(arg=Diff(left=Rel(name="T"), right=Named() as of)):
            return Lift(Rel(f'{of.word} not "{of.name}"', None, of.pos), e.pos)
    if isinstance(e, ForKey) and e.within is not None:
        return ForKey(e.key, _restrict_to_class(e.body, e.key, e.within), None, e.pos)
    return e


def _restrict_to_class(e: Core, key: str, within: KeyClass) -> Core:
    if isinstance(e, Rel) and e.key == key:
        if whole_letter(e.name) != e.name:
            raise NotRegularError(e, f"`{brief(e)}` mixes two classes of keys")
        # T0 wrote every key, so a restriction to keys would not change `init`.
        return e if e.name == "init" else replace(e, name=f"{e.name}[{within}]")
    if isinstance(e, ForKey) and e.key == key:
        return e
    return rebuild(e, tuple(_restrict_to_class(part, key, within) for part in children(e)))


def _merge_tests(e: Seq) -> Core:
    """Replace each ``[A[x]] ; r ; [B[x]]`` in a sequence by one letter, such as ``rt[W,R]``."""
    for i, (first, middle, last) in enumerate(zip(e.parts, e.parts[1:], e.parts[2:], strict=False)):
        before, after = _tests_of(first), _tests_of(last)
        keys = {test.key for test in (*before, *after)}
        steps = middle.parts if isinstance(middle, Union) else (middle,)
        names = [step.name for step in steps if isinstance(step, Rel)]
        if not before or not after or len(keys) != 1 or None in keys or len(names) != len(steps):
            continue
        (key,) = keys
        letters = tuple(
            # T0 accesses every key, so tests would not change `init`.
            Rel("init" if name == "init" else f"{name}[{a.name},{b.name}]", key, e.pos)
            for name in names
            for a in before
            for b in after
        )
        if all(letter.name in (*FILTERED, "init") for letter in letters):
            one = letters[0] if len(letters) == 1 else Union(letters, e.pos)
            parts = (*e.parts[:i], one, *e.parts[i + 3 :])
            return one if len(parts) == 1 else _merge_tests(replace(e, parts=parts))
    return e


def _tests_of(e: Core) -> tuple[Rel, ...]:
    """Return the sets in a test or a union of tests; for other expressions, an empty tuple."""
    parts = e.parts if isinstance(e, Union) else (e,)
    sets = [part.arg for part in parts if isinstance(part, Lift)]
    tests = tuple(one for one in sets if isinstance(one, Rel) and one.name in TESTS)
    return tests if len(tests) == len(parts) else ()


def _is_restricted(e: Core) -> bool:
    """Return whether ``e`` is a transitive relation between transactions that pass tests."""
    parts = e.parts if isinstance(e, Seq) else (e,)
    steps = [part for part in parts if not isinstance(part, Lift)]
    return len(steps) == 1 and isinstance(steps[0], Rel) and steps[0].name in TRANSITIVE


def language_of(
    e: Core, *, stretch: Iterable[str] = (), letters: tuple[str, ...] = RELATIONS
) -> Dfa:
    """Return the minimal automaton that accepts the words of an expression.

    Raises:
        NotRegularError: if the expression is not regular. The error contains the offending
            construct and the reason.
        TooLargeError: if the automaton is too large.
    """
    nfa = Nfa()
    expr = lettered(e)
    for foreign in _relations(expr):
        if whole_letter(foreign.name) not in letters:
            raise _unknown_relation_error(foreign)
    _add(nfa, expr, nfa.initial, nfa.final, frozenset(stretch))
    return minimise(determinise(nfa))


def without_key(e: Core) -> Core:
    """Return the body of ``for x: body`` with the key variable removed.

    The result describes walks that stay on one key.

    Raises:
        NotRegularError: if the expression has another form, or involves more than one key.
    """
    if not isinstance(e, ForKey):
        raise NotRegularError(e, f"`{brief(e)}` is not restricted to one key")
    e = _named(e)
    assert isinstance(e, ForKey)

    def plainly(part: Core) -> Core:
        if isinstance(part, ForKey):
            raise NotRegularError(part, f"`{brief(part)}` changes the key inside `for {e.key}`")
        if isinstance(part, Rel):
            keyed = whole_letter(part.name) in (*OF_READS, "ww", *TESTS)
            if keyed and part.key != e.key:
                reason = f"`{brief(part)}` covers all keys, but `for {e.key}` covers one"
                raise NotRegularError(
                    part, reason, f"write `{part.name}[{e.key}]` for the part on this key"
                )
            return replace(part, key=None) if keyed else part
        return rebuild(part, tuple(map(plainly, children(part))))

    return plainly(e.body)


def is_on_one_key(e: Core) -> bool:
    """Return whether all steps are on one key, as :func:`without_key` requires."""
    with suppress(NotRegularError):
        without_key(e)
        return True
    return False


WORDS_BY_STATEMENT = (*BETWEEN_COMMITS_BY_STATEMENT, "wr", "rw", *STATEMENT_LETTERS)
_FORM = "walks over statements have the form of `consistent-read-by-statement`"


def visits_statements(e: Core) -> bool:
    """Return whether an expression's walks visit individual statements of transactions."""
    return not names(e).isdisjoint(("statement", "last-write", *OF_STATEMENTS))


WORDS_BY_OPERATION = (*BETWEEN_COMMITS_BY_OPERATION, *PARTS, "tx")
_OPERATIONS = "walks over operations have the form of `pl-2l` or `pl-msr`"
_ONWARDS = Opt(Seq((Rel("po"), Rel("statement"))))


def by_operation(e: Core) -> Core:
    """Return an expression for the words spelled by walks over operations.

    A walk enters a transaction by ``wr`` at a read, or by ``ww`` at a write. It may then continue
    to later operations of the transaction, and leaves it by ``rw`` from a read, or by ``tx``.
    Therefore ``wr ; tx`` and ``ww ; tx`` connect whole transactions.

    SOUND BECAUSE each statement that reads is a separate node, as in :func:`by_statement`. A walk
    that may continue to a later statement (``(po ; statement)?``) may continue to any later
    statement, so ``po`` needs no letter. A walk that enters at a write must continue before it
    reads.

    Raises:
        NotRegularError: if a step has another form.
    """
    return _by_operation(e, in_union_with_ww=False)


def leaves_by_commit(e: Core) -> bool:
    """Return whether every walk over operations may leave each transaction by ``tx``.

    If so, the missing ``rw`` edges from a transaction to itself do not matter.
    """
    if isinstance(e, Seq) and Rel("statement") in (parts := _flat(e)):
        away = parts[parts.index(Rel("statement")) + 2 :][:1]
        return any(Rel("tx") in _alternatives(part) for part in away)
    return all(map(leaves_by_commit, children(e)))


def _by_operation(e: Core, *, in_union_with_ww: bool) -> Core:
    match e:
        case Rel(name="wr" | "ww"):
            return Seq((Rel(e.name, None, e.pos), Rel("tx")), e.pos)
        case Rel(name=name) if name in BETWEEN_COMMITS_BY_OPERATION:
            return e
        case Seq() if Rel("statement") in (parts := _flat(e)):
            at = parts.index(Rel("statement"))
            # The entry may consist of two parts: `tx^-1 ; rf` or `so ; tx^-1`.
            first = (
                at - 2 if parts[at - 1 : at] in ((Rel("rf"),), (Inverse(Rel("tx")),)) else at - 1
            )
            met = parts[max(first, 0) : at]
            through = _through_operations(
                e,
                met[0] if len(met) == 1 else Seq(met),
                parts[at + 1 : at + 3],
                in_union_with_ww=in_union_with_ww,
            )
            if not (before := parts[: max(first, 0)]) and not parts[at + 3 :]:
                return through
            outside = [
                tuple(_by_operation(part, in_union_with_ww=False) for part in around)
                for around in (before, parts[at + 3 :])
            ]
            return Seq((*outside[0], through, *outside[1]), e.pos)
        case Union(parts=parts):
            with_ww = any(isinstance(part, Rel) and part.name == "ww" for part in parts)
            return Union(
                tuple(_by_operation(part, in_union_with_ww=with_ww) for part in parts), e.pos
            )
        case Seq() | Opt() | Plus() | Star():
            return rebuild(e, tuple(_by_operation(c, in_union_with_ww=False) for c in children(e)))
    raise _not_over_operations(e)


def _not_over_operations(part: Core, construct: Core | None = None) -> NotRegularError:
    reason = f"`{brief(part)}` next to walks over operations"
    return NotRegularError(construct or part, reason, _OPERATIONS)


def _through_operations(
    e: Core, entry: Core, onwards: tuple[Core, ...], *, in_union_with_ww: bool
) -> Core:
    """Return an expression for the words in ``entry ; statement ; (po ; statement)? ; away``.

    Such a word passes through one transaction: ``entry`` enters it, and each part of ``away``
    leaves it.
    """
    if onwards[:1] != (_ONWARDS,) or onwards[1:] == ():
        raise NotRegularError(e, f"`{brief(e)}` is not a walk through a transaction", _OPERATIONS)
    met = _steps(entry, _to_operation)
    away = _steps(onwards[1], _from_statement)
    reads = tuple(step for step in _alternatives(met) if step != Rel("ww"))
    leaves = tuple(step for step in _alternatives(away) if step != Rel("tx"))
    if any(step != Rel("rw") for step in leaves):
        raise _not_over_operations(onwards[1], e)
    found: list[Core] = [Seq((Union(reads), away))] if reads else []
    if Rel("ww") in _alternatives(met):
        found += [Seq((Rel("ww"), Union(leaves)))] if leaves else []
        if len(leaves) < len(_alternatives(away)) and not in_union_with_ww:
            reason = "the pairs that overwrite, read and commit are a part of `ww`"
            raise NotRegularError(e, reason, "write `| ww` next to it")
    return Union(tuple(found), e.pos)


def _flat(e: Seq) -> tuple[Core, ...]:
    return tuple(p for part in e.parts for p in (_flat(part) if isinstance(part, Seq) else (part,)))


def _alternatives(e: Core) -> tuple[Core, ...]:
    return e.parts if isinstance(e, Union) else (e,)


def _to_operation(e: Core) -> str:
    if isinstance(e, ForKey) and e.within is None:
        written = Seq((Rel("ww", e.key), Inverse(Rel("tx")), Lift(Rel("last-write", e.key))))
        if e.body == Seq((*written.parts, Rel("po"))):
            return "ww"
    return "" if e == Rel("committed-before") else _to_statement(e)


_ON: tuple[tuple[Core, ...], ...] = (
    (),
    (Opt(Seq((Union((Rel("answered-before"), Rel("po"))), Rel("statement")))),),
)


def by_statement(e: Core) -> Core:
    """Return an expression for the words spelled by walks over statements.

    In such a walk, ``wr`` enters a transaction at a statement that reads, and ``rw`` leaves it from
    such a statement.

    SOUND BECAUSE each statement that reads is a separate node between COMMITs, so the steps to this
    node and from it are steps of one walk, as in the composition. The steps from a statement must
    include ``tx``, which leads to the COMMIT of the same transaction. Therefore ``rw`` need not
    exclude its own transaction.

    Raises:
        NotRegularError: if a step has another form.
    """
    match e:
        case Seq(parts=(before, Rel(name="statement"), *between, after)) if tuple(between) in _ON:
            last = _steps(after, _from_statement)
            if Rel("tx") not in _alternatives(last):
                raise NotRegularError(
                    after,
                    f"`{brief(after)}` lacks `tx`, which leads to the same transaction's COMMIT",
                    _FORM,
                )
            on = () if not between else (Opt(Union((Rel("answered-before"), Rel("po")))),)
            return Seq((_steps(before, _to_statement), *on, last), e.pos)
        case Rel(name=name) if name in BETWEEN_COMMITS_BY_STATEMENT:
            return e
        case Union() | Seq() | Opt() | Plus() | Star():
            return rebuild(e, tuple(map(by_statement, children(e))))
    raise NotRegularError(e, f"`{brief(e)}` next to walks over statements", _FORM)


def _steps(e: Core, step: Callable[[Core], str]) -> Core:
    if isinstance(e, Union):
        inner = [_steps(part, step) for part in e.parts]
        return Union(
            tuple(p for part in inner for p in (part.parts if isinstance(part, Union) else (part,)))
        )
    if not (name := step(e)):
        raise NotRegularError(e, f"`{brief(e)}` is not a step of a walk over statements", _FORM)
    return Rel(name, None, e.pos)


def _to_statement(e: Core) -> str:
    match e:
        case Rel(name="committed-before"):
            return e.name
        case Seq(parts=(Inverse(arg=Rel(name="tx")), Rel(name="rf", key=None))):
            return "wr"
        case Seq(parts=(Rel(name="so" | "init") as order, Inverse(arg=Rel(name="tx")))):
            return order.name
    return ""


def _from_statement(e: Core) -> str:
    match e:
        case Rel(name="committed-after" | "tx"):
            return e.name
        case ForKey(
            key=x,
            body=Seq(
                parts=(
                    Inverse(arg=Rel(name="rf", key=a)),
                    Rel(name="tx"),
                    Rel(name="ww", key=b),
                )
            ),
            within=None,
        ) if a == b == x:
            return "rw"
    return ""


def _relations(e: Core) -> Iterable[Rel]:
    """Yield the relations in an expression, but not the sets in tests such as ``[W]``."""
    if isinstance(e, Rel):
        if e.name != "id":
            yield e
    elif not isinstance(e, Lift | Domain | Range | Product):
        for child in children(e):
            yield from _relations(child)


def innermost_closure(e: Core, letters: frozenset[str]) -> Core | None:
    """Return an innermost closure that mentions all of ``letters``, or ``None`` if none does."""
    for child in children(e):
        if (found := innermost_closure(child, letters)) is not None:
            return found
    if isinstance(e, Plus | Star) and letters <= names(e.arg):
        return e
    return None


def _add(nfa: Nfa, e: Core, start: int, end: int, stretch: frozenset[str]) -> None:
    """Add paths that spell the words of ``e`` from state ``start`` to state ``end``."""
    match e:
        case Rel(name="id"):
            nfa.skip(start, end)
        case Rel():
            if e.name in stretch:
                middle = nfa.state()
                nfa.move(start, e.name, middle)
                nfa.move(middle, e.name, middle)
                nfa.skip(middle, end)
            else:
                nfa.move(start, e.name, end)
        case Union():
            for part in e.parts:
                _add(nfa, part, start, end, stretch)
        case Seq():
            for part in e.parts[:-1]:
                middle = nfa.state()
                _add(nfa, part, start, middle, stretch)
                start = middle
            _add(nfa, e.parts[-1], start, end, stretch)
        case Opt():
            nfa.skip(start, end)
            _add(nfa, e.arg, start, end, stretch)
        case Plus() | Star():
            # The loop gets two new states, because other paths may also pass through `start` and
            # `end`.
            first, last = nfa.state(), nfa.state()
            nfa.skip(start, first)
            _add(nfa, e.arg, first, last, stretch)
            nfa.skip(last, first)
            nfa.skip(last, end)
            if isinstance(e, Star):
                nfa.skip(start, end)
        case Lift(arg=Rel(name=name)) if is_test(name):
            nfa.move(start, name, end)
        case ForKey():
            _require_single_key(e)
            _add(nfa, e.body, start, end, stretch)
        case _:
            raise _not_regular_error(e)


def _require_single_key(e: ForKey) -> None:
    """Raise an error unless removing the key variable from ``for x: body`` preserves its meaning.

    SOUND BECAUSE union distributes over ``;`` and ``|``: if every word of the body uses the key
    exactly once, the union over keys can be taken at the letter that uses it. If a word used the
    key twice, both steps would need the same key, which a walk does not remember. If a word did not
    use the key, the union would be empty in a history without keys.
    """
    least, most = _key_use_bounds(e.body, e.key)
    if most > 1:
        reason = (
            f"`{brief(e)}` joins steps on the same key `{e.key}`, which a walk does not remember"
        )
        raise NotRegularError(e, reason, "without keys: `ww` is the union of `ww[x]` over all x")
    if least == 0:
        reason = f"`{brief(e)}` has a path without the key `{e.key}`"
        raise NotRegularError(e, reason, "move what has no key out of the `for`")


def _key_use_bounds(e: Core, key: str) -> tuple[int, int]:
    """Return the minimum and maximum number of times a word uses ``key``; 2 means two or more."""
    match e:
        case Rel():
            return (1, 1) if e.key == key else (0, 0)
        case Union():
            counts = [_key_use_bounds(part, key) for part in e.parts]
            return min(least for least, _ in counts), max(most for _, most in counts)
        case Seq():
            counts = [_key_use_bounds(part, key) for part in e.parts]
            least, most = (sum(column) for column in zip(*counts, strict=True))
            return min(least, 2), min(most, 2)
        case Opt():
            return 0, _key_use_bounds(e.arg, key)[1]
        case Plus() | Star():
            least, most = _key_use_bounds(e.arg, key)
            return (least if isinstance(e, Plus) else 0), (2 if most else 0)
        case ForKey():
            return _key_use_bounds(e.body, key)
        case Lift(arg=Rel(name=name, key=used)) if is_test(name):
            return (1, 1) if used == key else (0, 0)
        case _:
            raise _not_regular_error(e)


def _unknown_relation_error(e: Rel) -> NotRegularError:
    shown = f"`{brief(e)}`"
    match e.name:
        case "rf" | "cand" | "po" | "tx" | "pred" | "last-write":
            hint = "`wr` relates the transactions: `wr[x] = tx^-1 ; rf[x] ; tx`"
            return NotRegularError(e, f"{shown} relates events, not transactions", hint)
        case "vo":
            reason = f"{shown} is the part of the version order that the data shows"
            return NotRegularError(e, reason, "`ww` contains it")
    return NotRegularError(e, f"{shown} is not one of so, rt, wr, ww and rw")


def _not_regular_error(e: Core) -> NotRegularError:
    shown = f"`{brief(e)}`"
    match e:
        case Inverse():
            return NotRegularError(e, f"{shown} goes backwards; {_FORWARD}", "`rw` is given")
        case Inter():
            return NotRegularError(
                e, f"{shown}: two walks between the same ends are not a single walk"
            )
        case Diff():
            return NotRegularError(e, f"{shown}: a walk cannot show that another walk is missing")
        case Product():
            return NotRegularError(e, f"{shown} relates transactions that no walk connects")
        case Lift():
            return NotRegularError(e, f"{shown} concerns a transaction, but a walk only has steps")
        case Domain() | Range():
            return NotRegularError(e, f"{shown} is a set, not a relation")
        case _:
            return NotRegularError(e, f"{shown} is not regular")
