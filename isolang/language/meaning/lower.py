"""Lowers syntax trees to core expressions by expanding definitions and renaming key variables."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.errors import SpecError
from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    Domain,
    Exists,
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
from isolang.language.meaning.mentions import children
from isolang.language.meaning.scope import BUILTINS, Scope
from isolang.language.syntax import ast
from isolang.language.syntax.source import Position, Span, error_at
from isolang.language.vocabulary import FRAGMENTS

MAX_NODES = 20_000
"""The maximum number of operators after expansion. Each definition can double the size of the
result. Terms in this module share their parts, but automata, certificates and messages write out
every part.
"""
MAX_STEPS = 100_000
"""The maximum number of visited expressions. Equal uses of a definition are expanded only once. An
argument that a definition does not use is still visited, although it does not appear in the result.
"""
MAX_EXPANSION = 60
"""The maximum depth to which definitions may use other definitions. The body of each definition may
be as deep as the parser allows.
"""
MAX_DEPTH = 120
"""The maximum depth of nested operators after expansion."""

KEY = "x"
"""The key variable of all keyed definitions after lowering."""

WR: Core = Seq((Inverse(Rel("tx")), Rel("rf", KEY), Rel("tx")))
_OF_PREDICATES: Core = Seq((Rel("rf", KEY), Lift(Rel("pred"))))


def _reads_from(chosen: Core) -> Core:
    return Seq((Inverse(Rel("tx")), chosen, Rel("tx")))


def _overwritten(read: str) -> Core:
    return Diff(Seq((Inverse(Rel(read, KEY)), Rel("ww", KEY))), Rel("id"))


RW: Core = _overwritten("wr")

CANONICAL_LETS: Mapping[str, Core] = {
    "wr": WR,
    "rw": RW,
    "iwr": _reads_from(Diff(Rel("rf", KEY), _OF_PREDICATES)),
    "pwr": Seq((Inverse(Rel("tx")), Rel("rf", KEY), Lift(Rel("pred")), Rel("tx"))),
    "irw": _overwritten("iwr"),
    "prw": _overwritten("pwr"),
}
CANONICAL_EXISTS: Mapping[str, Exists] = {
    "rf": Exists(name="rf", key=KEY, kind="choice", over=Rel("cand", KEY)),
    "ww": Exists(name="ww", key=KEY, kind="order", over=Rel("W", KEY), containing=Rel("vo", KEY)),
}
_FILES = {name: FRAGMENTS[name] for name in (*CANONICAL_EXISTS, *CANONICAL_LETS)}


class Lowered(Struct, frozen=True, kw_only=True):
    """The checks, chosen relations, shown expressions and definitions after lowering."""

    checks: tuple[Check, ...]
    exists: tuple[Exists, ...]
    shows: tuple[tuple[str, Core], ...]
    definitions: dict[str, Core]


class _Env(Struct, frozen=True):
    """The meanings of the names in scope.

    ``taken`` contains the key variables that may occur in the values of ``params``. A ``for`` must
    not capture any of them, so its own key variable is renamed: in ``for x: obs(ww[x])``, the ``x``
    inside ``obs`` becomes ``x_2``.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Core] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    expansion: int = 0
    depth: int = 0
    within: str = ""
    """The name of the definition or check being expanded, for messages."""

    def deeper(self) -> _Env:
        return replace(self, depth=self.depth + 1)


class _Shared(Struct, frozen=True):
    """A term with its number, size and depth.

    Attributes:
        term: the term. It is kept alive because otherwise a new object could be given its identity.
    """

    term: Core
    number: int
    size: int
    depth: int


def lower(items: tuple[ast.Item, ...], scope: Scope) -> Lowered:
    """Expand all definitions of a specification.

    Raises:
        SpecError: if a definition of ``wr``, ``rw``, ``rf`` or ``ww`` differs from the language's
            definition, or if an expansion exceeds one of the limits above.
    """
    return _Lowering(scope).items(items)


class _Lowering:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._steps = 0
        self._size = 0
        self._shared: dict[int, _Shared] = {}
        self._numbers: dict[object, int] = {}
        self._expanded: dict[object, Core] = {}

    def items(self, items: tuple[ast.Item, ...]) -> Lowered:
        checks: list[Check] = []
        exists: list[Exists] = []
        shows: list[tuple[str, Core]] = []
        definitions: dict[str, Core] = {}
        for item in items:
            match item:
                case ast.Let():
                    if not item.params:
                        definitions[item.name.text] = self._let(item)
                case ast.ExistsItem():
                    exists.append(self._exists(item))
                case ast.CheckItem():
                    checks.append(self._check(item))
                case ast.Show():
                    shows.append(
                        (item.name.text, self._whole(item.expr, _Env(within=item.name.text)))
                    )
                case ast.Example():
                    pass
                case ast.Include():
                    raise AssertionError("includes are expanded before lowering")
        return Lowered(
            checks=tuple(checks),
            exists=tuple(exists),
            shows=tuple(shows),
            definitions=definitions,
        )

    def _let(self, item: ast.Let) -> Core:
        name = item.name.text
        body = self._whole(item.body, _keyed_env(item.key, name))
        canonical = item.key is not None and body == CANONICAL_LETS.get(name)
        if name in _FILES and not canonical:
            raise _not_canonical(item.name)
        return body

    def _exists(self, item: ast.ExistsItem) -> Exists:
        env = _keyed_env(item.key, item.name.text)
        result = Exists(
            name=item.name.text,
            key=KEY if item.key else None,
            kind=item.kind,
            over=self._whole(item.over, env),
            containing=self._whole(item.containing, env) if item.containing else None,
            within=self._whole(item.within, env) if item.within else None,
        )
        if result.name in _FILES and result != CANONICAL_EXISTS.get(result.name):
            raise _not_canonical(item.name)
        return result

    def _check(self, item: ast.CheckItem) -> Check:
        r"""Lower a check. A check ``for each`` key becomes one check on the union over all keys.

        SOUND BECAUSE a union of relations has a loop (or any pair) iff one of the relations has a
        loop (or any pair); e has a cycle iff e^+ has a loop; and ``a in b`` says that ``a \ b`` is
        empty.
        """
        span = item.span
        kind, bound = item.kind, None
        if item.key is None:
            env = _Env(within=item.name.text)
            expr = self._whole(item.expr, env)
            if item.bound is not None:
                bound = self._whole(item.bound, env)
        else:
            key = item.key.text
            env = _Env({key: key}, {}, frozenset((key,)), within=item.name.text)
            expr = self._whole(item.expr, env)
            if kind == "acyclic":
                kind, expr = "irreflexive", Plus(expr, item.expr.span.position)
            elif item.bound is not None:
                kind, expr = "empty", Diff(expr, self._whole(item.bound, env), expr.pos)
            expr = ForKey(key, expr, item.within, span.position)
        return Check(
            name=item.name.text,
            kind=kind,
            expr=expr,
            bound=bound,
            flag=item.flag,
            negated=item.negated,
            title=item.title,
            file=span.source.name,
            line=span.line,
            column=span.column,
        )

    def _whole(self, e: ast.Expr, env: _Env) -> Core:
        """Lower an item's expression and add its size to the total, which is limited."""
        term = self.expr(e, env)
        self._size += self._shared[id(term)].size
        if self._size > MAX_NODES:
            raise _too_large(e.span, env.within)
        return term

    def expr(self, e: ast.Expr, env: _Env) -> Core:
        self._steps += 1
        if self._steps > MAX_STEPS:
            what = f"`{env.within}` is used with too many different arguments"
            raise error_at(e.span, what, hint="write out some of the definitions")
        if env.depth > MAX_DEPTH:
            raise _too_deep(e.span)
        term = self._expr(e, env.deeper())
        shared = self._share(term)
        if shared.size > MAX_NODES:
            raise _too_large(e.span, env.within)
        if shared.depth > MAX_DEPTH:
            raise _too_deep(e.span)
        return term

    def _share(self, term: Core) -> _Shared:
        """Return the number, size and depth of a term, computing them only once."""
        if (known := self._shared.get(id(term))) is not None:
            return known
        parts = [self._share(part) for part in children(term)]
        name = term.name if isinstance(term, Rel) else ""
        key = term.key if isinstance(term, Rel | ForKey) else None
        of: object = None
        if isinstance(term, ForKey):
            of = term.within
        elif isinstance(term, Named):
            of = (term.word, term.name)
        content = (type(term), name, key, of, tuple(part.number for part in parts))
        shared = _Shared(
            term,
            self._numbers.setdefault(content, len(self._numbers)),
            1 + sum(part.size for part in parts),
            1 + max((part.depth for part in parts), default=0),
        )
        self._shared[id(term)] = shared
        return shared

    def _expr(self, e: ast.Expr, inner: _Env) -> Core:
        pos = e.span.position
        match e:
            case ast.Ref():
                return self._ref(e, inner, pos)
            case ast.Named():
                return Named(e.word, e.name, pos)
            case ast.OfClass():
                return self._of_class(e, inner, pos)
            case ast.Call():
                return self._call(e, inner, pos)
            case ast.Nary():
                parts = tuple(self.expr(part, inner) for part in e.parts)
                if e.op == "|":
                    return Union(parts, pos)
                return Seq(parts, pos) if e.op == ";" else Inter(parts, pos)
            case ast.Binary():
                left, right = self.expr(e.left, inner), self.expr(e.right, inner)
                return Diff(left, right, pos) if e.op == "\\" else Product(left, right, pos)
            case ast.Postfix():
                arg = self.expr(e.arg, inner)
                if e.op == "^-1":
                    return Inverse(arg, pos)
                if e.op == "^+":
                    return Plus(arg, pos)
                return Star(arg, pos) if e.op == "^*" else Opt(arg, pos)
            case ast.Lift():
                return Lift(self.expr(e.arg, inner), pos)
            case ast.EndSet():
                arg = self.expr(e.arg, inner)
                return Domain(arg, pos) if e.op == "domain" else Range(arg, pos)
            case ast.For():
                fresh = _fresh(e.key.text, inner.taken)
                keys = {**inner.keys, e.key.text: fresh}
                taken = inner.taken | {fresh}
                body = replace(inner, keys=keys, taken=taken)
                return ForKey(fresh, self.expr(e.body, body), e.within, pos)

    def _ref(self, e: ast.Ref, env: _Env, pos: Position) -> Core:
        if e.name in env.params:
            return env.params[e.name]
        item = self._scope.entries[e.name].item
        if e.name in BUILTINS or e.name in CANONICAL_LETS or not isinstance(item, ast.Let):
            return Rel(e.name, env.keys[e.key.text] if e.key is not None else None, pos)
        return self._use(item, e, env, {}, pos)

    def _of_class(self, e: ast.OfClass, env: _Env, pos: Position) -> Core:
        """Lower ``ww["audit/*"]`` to ``for x in "audit/*": ww[x]``."""
        item = self._scope.entries[e.name].item
        fresh = _fresh(KEY, env.taken)
        if e.name in BUILTINS or e.name in CANONICAL_LETS or not isinstance(item, ast.Let):
            return ForKey(fresh, Rel(e.name, fresh, pos), e.within, pos)
        union = replace(env, taken=env.taken | {fresh})
        assert item.key is not None
        body = self._expand(item, e.span, union, {item.key.text: fresh}, {})
        return ForKey(fresh, body, e.within, pos)

    def _call(self, e: ast.Call, env: _Env, pos: Position) -> Core:
        item = self._scope.entries[e.name].item
        assert isinstance(item, ast.Let)
        args = [self.expr(arg, env) for arg in e.args]
        names = [param.text for param in item.params]
        return self._use(item, e, env, dict(zip(names, args, strict=True)), pos)

    def _use(
        self,
        item: ast.Let,
        e: ast.Ref | ast.Call,
        env: _Env,
        params: Mapping[str, Core],
        pos: Position,
    ) -> Core:
        """Expand the use of a definition.

        If the definition is keyed but used without a key, the result is the union over all keys.
        """
        if item.key is None:
            return self._expand(item, e.span, env, {}, params)
        if e.key is not None:
            return self._expand(item, e.span, env, {item.key.text: env.keys[e.key.text]}, params)
        fresh = _fresh(item.key.text, env.taken)
        union = replace(env, taken=env.taken | {fresh})
        body = self._expand(item, e.span, union, {item.key.text: fresh}, params)
        return ForKey(fresh, body, None, pos)

    def _expand(
        self,
        item: ast.Let,
        span: Span,
        env: _Env,
        keys: Mapping[str, str],
        params: Mapping[str, Core],
    ) -> Core:
        if env.expansion >= MAX_EXPANSION:
            what = f"definitions are nested too deeply (expected at most {MAX_EXPANSION} levels)"
            raise error_at(span, what, hint="write out some of them")
        # SOUND BECAUSE an expansion depends only on the definition, its keys, the meanings of its
        # arguments, and the key variables that are taken. Terms with the same number have the same
        # meaning.
        numbers = tuple(self._shared[id(term)].number for term in params.values())
        use = (item.name.text, tuple(keys.values()), numbers, env.taken)
        if (known := self._expanded.get(use)) is not None:
            return known
        # SOUND BECAUSE: `taken` has every key variable that is in scope where the definition is
        # used, so no `for` in the definition can capture a key variable of an argument.
        inside = _Env(keys, params, env.taken, env.expansion + 1, env.depth, item.name.text)
        term = self._expanded[use] = self.expr(item.body, inside)
        return term


def _keyed_env(key: ast.Ident | None, within: str) -> _Env:
    if key is None:
        return _Env(within=within)
    return _Env({key.text: KEY}, {}, frozenset((KEY,)), within=within)


def _too_large(span: Span, within: str) -> SpecError:
    what = f"`{within}` has more than {MAX_NODES} operators once its definitions are written out"
    return error_at(span, what, hint="a definition that uses another one twice doubles its size")


def _too_deep(span: Span) -> SpecError:
    return error_at(
        span,
        f"expands to operators that are nested too deeply (expected at most {MAX_DEPTH} levels)",
    )


def _fresh(name: str, taken: frozenset[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _not_canonical(name: ast.Ident) -> SpecError:
    what = f"`{name.text}` is already defined by the language, and this definition differs from it"
    hint = f'choose another name, or write `include "{_FILES[name.text]}"`'
    return error_at(name.span, what, hint=hint)
