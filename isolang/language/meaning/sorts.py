"""Checks the sort of each expression: whether it is a set or a relation, and its element kinds.

This module also resolves names. Every name must be declared before it is used, so definitions
cannot be recursive. A sort, or the kind of its elements, may be ``any``: a parameter takes
arguments of every sort, and a name whose declaration is wrong causes no further errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from isolang.errors import SpecError
from isolang.language.meaning.scope import ANY, BUILTINS, Scope, ScopeEntry, suggest_name
from isolang.language.syntax import ast
from isolang.language.syntax.source import SourceText, Span, error_at, warning_at
from isolang.language.vocabulary import NAMED, Element, Sort

MAX_DEPTH = 200
"""The maximum depth of nested expressions after expanding calls."""
MAX_STEPS = 100_000
"""The maximum number of visited expressions. A definition is visited once for each combination of
argument sorts, and there can be many such combinations.
"""


def check_sorts(items: Iterable[ast.Item], main: SourceText) -> Scope:
    """Resolve all names and check all sorts in a specification.

    Raises:
        SpecError: if a name or a sort is wrong. The error reports the first mistake, with its
            place, a caret and a hint.
    """
    items = tuple(items)
    checker = _SortChecker(items)
    for item in items:
        checker.item(item)
    scope = Scope(checker.entries, checker.warnings_of(main))
    scope.warnings.extend(_unused(items, main, checker))
    return scope


def find_errors(items: Iterable[ast.Item]) -> list[SpecError]:
    """Return the first error in each item.

    A name with a wrong declaration may have any sort, so its uses cause no further errors.
    """
    items = tuple(items)
    checker = _SortChecker(items)
    errors: list[SpecError] = []
    for item in items:
        try:
            checker.item(item)
        except _TooLargeError as error:
            return [*errors, error]
        except SpecError as error:
            errors.append(error)
            if isinstance(item, ast.Let | ast.ExistsItem) and item.name.text not in checker.entries:
                keyed = item.key is not None
                checker.entries[item.name.text] = ScopeEntry(item.name.text, ANY, keyed, item)
    return errors


class _TooLargeError(SpecError):
    """Raised when an expression exceeds a limit, regardless of a call's arguments."""


class _Context(Struct, frozen=True):
    """The key variables and parameters that an expression may refer to."""

    keys: frozenset[str] = frozenset()
    params: Mapping[str, Sort] = field(default_factory=dict)
    called: str = ""
    """The definition whose body is being checked for a call; empty outside a call."""

    def with_key(self, key: str) -> _Context:
        return _Context(self.keys | {key}, self.params, self.called)


def _too_large(span: Span, what: str) -> _TooLargeError:
    error = error_at(span, what, hint="write out some of the definitions")
    place = span.position
    return _TooLargeError(
        str(error), file=place.file, line=place.line, column=place.column, hint=error.hint
    )


class _SortChecker:
    def __init__(self, items: tuple[ast.Item, ...]) -> None:
        self.entries = {
            name: ScopeEntry(name, builtin.sort, builtin.keyed, None)
            for name, builtin in BUILTINS.items()
        }
        self.used: dict[str, set[str]] = {}
        self._current = ""
        self._depth = 0
        self._steps = 0
        self._calls: dict[tuple[str, tuple[Sort, ...]], Sort] = {}
        self._later = {
            item.name.text: item for item in items if isinstance(item, ast.Let | ast.ExistsItem)
        }
        self._names: dict[str, ast.Ident] = {}
        self._unused_binders: list[tuple[SourceText, str]] = []

    def warnings_of(self, main: SourceText) -> list[str]:
        return [text for source, text in self._unused_binders if source is main]

    # Items

    def item(self, item: ast.Item) -> None:
        match item:
            case ast.Let():
                self._let(item)
            case ast.ExistsItem():
                self._exists(item)
            case ast.CheckItem():
                self._check(item)
            case ast.Show():
                self._current = f"show {item.name.text}"
                self.expr(item.expr, _Context())
            case ast.Example():
                pass
            case ast.Include():
                raise AssertionError("includes are expanded before sorts are checked")

    def _let(self, item: ast.Let) -> None:
        self._declare(item.name)
        self._current = item.name.text
        names = [param.text for param in item.params]
        for index, param in enumerate(item.params):
            if param.text in names[:index]:
                raise error_at(
                    param.span, f"`{param.text}` is declared twice", hint="choose another name"
                )
            if param.text in self.entries:
                hint = "choose another name"
                raise error_at(param.span, f"the parameter hides `{param.text}`", hint=hint)
        context = _Context(
            frozenset((item.key.text,)) if item.key else frozenset(),
            dict.fromkeys(names, ANY),
        )
        sort = self.expr(item.body, context)
        binders = [*item.params, *([item.key] if item.key else [])]
        for binder in binders:
            uses = ast.uses_name if binder is not item.key else ast.uses_key
            if not uses(item.body, binder.text):
                self._warn(binder.span, f"`{binder.text}` is bound but never used")
        self.entries[item.name.text] = ScopeEntry(item.name.text, sort, item.key is not None, item)
        self._calls[item.name.text, (ANY,) * len(names)] = sort

    def _exists(self, item: ast.ExistsItem) -> None:
        self._declare(item.name)
        self._current = item.name.text
        context = _Context(frozenset((item.key.text,)) if item.key else frozenset())
        over = self.expr(item.over, context)
        if item.kind == "choice":
            require_relation(item.over, over, "`choice of` needs a relation")
            sort = over
        else:
            if over.kind == "relation":
                what = f"`{item.kind} on` needs a set (got {over})"
                hint = f"write `{item.kind} on T` or `{item.kind} on W[x]`"
                raise error_at(item.over.span, what, hint=hint)
            sort = Sort("relation", over.left, over.left)
        for word, bound in (("containing", item.containing), ("within", item.within)):
            if bound is not None:
                got = self.expr(bound, context)
                require_relation(bound, got, f"`{word}` needs a relation")
                require_common_sort(bound.span, sort, got, f"`{word}` of `{item.name.text}`")
        self.entries[item.name.text] = ScopeEntry(item.name.text, sort, item.key is not None, item)

    def _check(self, item: ast.CheckItem) -> None:
        name = item.name
        if old := self._names.get(name.text):
            what = f"two checks have the name `{name.text}` (the first is {_where(old.span)})"
            raise error_at(name.span, what, hint="give each check its own name")
        self._names[name.text] = name
        self._current = f"check {name.text}"
        context = _Context(frozenset((item.key.text,)) if item.key else frozenset())
        sort = self.expr(item.expr, context)
        if item.key and not ast.uses_key(item.expr, item.key.text):
            self._warn(item.key.span, f"`{item.key.text}` is bound but never used")
        if item.kind in ("acyclic", "irreflexive"):
            require_same_sorts(item.expr, sort, f"`{item.kind}`")
        if item.bound is not None:
            require_common_sort(
                item.bound.span, sort, self.expr(item.bound, context), "`require … in`"
            )

    def _declare(self, name: ast.Ident) -> None:
        if name.text in BUILTINS:
            what = f"`{name.text}` is defined for every history and cannot be redefined"
            raise error_at(name.span, what, hint="choose another name")
        if old := self.entries.get(name.text):
            assert old.item is not None
            what = f"`{name.text}` is already defined ({_where(old.item.name.span)})"
            raise error_at(name.span, what, hint="choose another name")

    def _warn(self, span: Span, what: str) -> None:
        self._unused_binders.append((span.source, warning_at(span, what)))

    # Expressions

    def expr(self, e: ast.Expr, context: _Context) -> Sort:
        """Return the sort of an expression, or raise an error if it is ill-sorted."""
        if self._depth >= MAX_DEPTH:
            what = f"nested too deeply (expected at most {MAX_DEPTH} levels)"
            raise _too_large(e.span, what)
        self._steps += 1
        if self._steps > MAX_STEPS:
            who = context.called or self._current
            raise _too_large(e.span, f"`{who}` is used with too many kinds of arguments")
        self._depth += 1
        try:
            return self._expr(e, context)
        finally:
            self._depth -= 1

    def _expr(self, e: ast.Expr, context: _Context) -> Sort:
        match e:
            case ast.Ref():
                return self._ref(e, context)
            case ast.Named():
                return self._named(e, context)
            case ast.OfClass():
                entry = self._resolve(e.name, e.span, context)
                if entry.params or not entry.keyed:
                    what = f"`{e.name}` has no key (got `{e.name}[{e.within}]`)"
                    raise error_at(e.span, what, hint=_KEY_HINT)
                return entry.sort
            case ast.Call():
                return self._call(e, context)
            case ast.Nary(op=";"):
                return self._seq(e, context)
            case ast.Nary():
                sorts = [self.expr(part, context) for part in e.parts]
                result = sorts[0]
                for part, sort in zip(e.parts[1:], sorts[1:], strict=True):
                    result = require_common_sort(part.span, result, sort, f"`{e.op}`")
                return result
            case ast.Binary(op="\\"):
                left, right = self.expr(e.left, context), self.expr(e.right, context)
                require_common_sort(e.right.span, left, right, "`\\`")
                return left
            case ast.Binary():
                left, right = self.expr(e.left, context), self.expr(e.right, context)
                for side, sort in ((e.left, left), (e.right, right)):
                    if sort.kind == "relation":
                        hint = "composition is `;`, the closure is `^*`"
                        what = f"`*` is the product of two sets (got {sort})"
                        raise error_at(side.span, what, hint=hint)
                return Sort("relation", left.left, right.left)
            case ast.Postfix(op="^-1"):
                sort = require_relation(e.arg, self.expr(e.arg, context), "`^-1` needs a relation")
                return sort if sort.kind == "any" else Sort("relation", sort.right, sort.left)
            case ast.Postfix():
                return require_same_sorts(e.arg, self.expr(e.arg, context), f"`{e.op}`")
            case ast.Lift():
                sort = self.expr(e.arg, context)
                if sort.kind == "relation":
                    what = f"`[ … ]` is the identity on a set (got {sort})"
                    raise error_at(e.arg.span, what, hint="grouping is `( … )`")
                return Sort("relation", sort.left, sort.left)
            case ast.EndSet():
                sort = require_relation(
                    e.arg, self.expr(e.arg, context), f"`{e.op}` needs a relation"
                )
                return Sort("set", sort.left if e.op == "domain" else sort.right)
            case ast.For():
                if not ast.uses_key(e.body, e.key.text) and not context.called:
                    self._warn(e.key.span, f"`{e.key.text}` is bound but never used")
                return self.expr(e.body, context.with_key(e.key.text))

    def _ref(self, e: ast.Ref, context: _Context) -> Sort:
        if e.name in context.params:
            if e.key is not None:
                what = f"the parameter `{e.name}` has no key (got `{e.name}[{e.key.text}]`)"
                raise error_at(e.key.span, what, hint="state the key at the call, inside a `for`")
            return context.params[e.name]
        entry = self._resolve(e.name, e.span, context)
        if e.name in NAMED:
            what = f"`{e.name}` needs a name (got `{e.name}`)"
            raise error_at(e.span, what, hint=f'write `{e.name} "audit"`; any is `{e.name} "*"`')
        if entry.params:
            want = _call_form(entry)
            what = f"`{e.name}` needs arguments (got `{e.name}`, expected `{want}`)"
            raise error_at(e.span, what, hint=f"write `{want}`")
        if e.key is not None:
            self._require_key(e.name, e.key, entry, context)
        return entry.sort

    def _named(self, e: ast.Named, context: _Context) -> Sort:
        """Return the sort of an expression such as ``label "audit"``."""
        if e.word not in NAMED:
            if e.word in self.entries:
                what = f'`{e.word}` takes no name (got `{e.word} "{e.name}"`)'
                raise error_at(e.span, what, hint=f"names follow {_NAMED_LISTED}")
            self._resolve(e.word, e.span, context)
        if not e.name:
            raise error_at(e.span, f"`{e.word}` has an empty name", hint='write `"*"` for any name')
        return BUILTINS[e.word].sort

    def _require_key(self, name: str, key: ast.Ident, entry: ScopeEntry, context: _Context) -> None:
        if not entry.keyed:
            what = f"`{name}` has no key (got `{name}[{key.text}]`, expected `{name}`)"
            raise error_at(key.span, what, hint=_KEY_HINT)
        if key.text not in context.keys:
            known = ", ".join(f"`{bound}`" for bound in sorted(context.keys))
            what = f"unknown key variable `{key.text}`"
            if known:
                what += f" (expected {known})"
            hint = f"bind it: `for {key.text}: …`, or write `{name}` for the union over keys"
            if len(key.text) > 1:
                hint += f'; write `{name}["{key.text}"]` for the key with that name'
            raise error_at(key.span, what, hint=hint)

    def _call(self, e: ast.Call, context: _Context) -> Sort:
        entry = self._resolve(e.name, e.span, context)
        args = [self.expr(arg, context) for arg in e.args]
        if not entry.params or not isinstance(entry.item, ast.Let):
            what = f"`{e.name}` takes no arguments (got {len(args)})"
            hint = f"write `{e.name}`; composition is `{e.name} ; …`"
            raise error_at(e.span, what, hint=hint)
        if len(args) != len(entry.params):
            count = len(entry.params)
            plural = "" if count == 1 else "s"
            what = f"`{e.name}` takes {count} argument{plural} (got {len(args)})"
            raise error_at(e.span, what, hint=f"write `{_call_form(entry)}`")
        if e.key is not None:
            self._require_key(e.name, e.key, entry, context)
        # SOUND BECAUSE the sort of a body depends on the arguments only through their sorts. If a
        # body is rejected, the check of the whole item ends with an error.
        known = self._calls.get((e.name, tuple(args)))
        if known is not None:
            return known
        names = [param.text for param in entry.params]
        key = entry.item.key
        inner = _Context(
            frozenset((key.text,)) if key is not None else frozenset(),
            dict(zip(names, args, strict=True)),
            e.name,
        )
        try:
            sort = self.expr(entry.item.body, inner)
        except _TooLargeError:
            raise
        except SpecError as error:
            sorts = ", ".join(f"`{n}` is {s}" for n, s in zip(names, args, strict=True))
            first = str(error).split("\n", 1)[0]
            what = f"`{e.name}` cannot take this argument ({sorts})"
            raise error_at(e.span, what, hint=error.hint, context=f"because {first}") from None
        self._calls[e.name, tuple(args)] = sort
        return sort

    def _resolve(self, name: str, span: Span, context: _Context) -> ScopeEntry:
        self.used.setdefault(self._current, set()).add(name)
        if entry := self.entries.get(name):
            return entry
        if name in context.keys:
            what = f"`{name}` is a key variable, not a relation"
            raise error_at(span, what, hint=f"use it as in `ww[{name}]`")
        if name == self._current:
            what = f"`{name}` is used in its own definition"
            raise error_at(span, what, hint="there is no recursion; closures are `^+` and `^*`")
        if later := self._later.get(name):
            what = f"`{name}` is used before it is defined ({_where(later.name.span)})"
            raise error_at(span, what, hint="move the definition up")
        known = [*self.entries, *context.params]
        raise error_at(span, f"unknown name `{name}`", hint=suggest_name(name, known))

    def _seq(self, e: ast.Nary, context: _Context) -> Sort:
        sorts = []
        for part in e.parts:
            sort = self.expr(part, context)
            if sort.kind == "set":
                what = f"`;` composes relations (got {sort})"
                raise error_at(part.span, what, hint="the identity on a set is `[S]`")
            sorts.append(sort)
        for part, left, right in zip(e.parts[1:], sorts, sorts[1:], strict=False):
            if not compatible(left.right, right.left):
                what = f"`;` does not fit (got {right} after {left})"
                raise error_at(part.span, what, hint=TX_HINT)
        # An `id` between two relations may be on any elements, so the ends of the sequence are
        # compared.
        return Sort("relation", sorts[0].left, sorts[-1].right)


_NAMED_LISTED = " and ".join(f"`{word}`" for word in NAMED)
_KEY_HINT = "only W, R, rf, cand, wr, ww, rw, vo and definitions with a key take a key"


def _where(span: Span) -> str:
    return f"{span.source.name}:{span.line}:{span.column}"


def _call_form(entry: ScopeEntry) -> str:
    return f"{entry.name}({', '.join(param.text for param in entry.params)})"


def _unused(items: tuple[ast.Item, ...], main: SourceText, checker: _SortChecker) -> list[str]:
    """Return warnings about names declared in the main text but not used by any check or ``show``.

    The result is empty for texts without checks and for library texts, because their names are used
    by other texts.
    """
    own = [item for item in items if item.span.source is main]
    if main.name.startswith("library:") or not any(isinstance(item, ast.CheckItem) for item in own):
        return []
    todo = [name for name in checker.used if name.startswith(("check ", "show "))]
    reached: set[str] = set()
    while todo:
        for name in checker.used.get(todo.pop(), ()):
            if name not in reached:
                reached.add(name)
                todo.append(name)
    unused = []
    for item in own:
        if isinstance(item, ast.Let) and item.name.text not in reached:
            what = f"`{item.name.text}` is defined but never used"
            unused.append(warning_at(item.name.span, what, hint="remove it, or use it in a check"))
        elif isinstance(item, ast.ExistsItem) and item.name.text not in reached:
            what = f"no check uses `{item.name.text}`, although it must exist"
            unused.append(warning_at(item.name.span, what, hint="remove it, or use it in a check"))
    return unused


TX_HINT = "`tx` leads from an event to its transaction, `tx^-1` back"


def require_relation(e: ast.Expr, sort: Sort, what: str) -> Sort:
    """Require that an expression be a relation, and return its sort.

    Raises:
        SpecError: if the expression is a set. The message begins with ``what``.
    """
    if sort.kind == "set":
        hint = "the identity on a set is `[S]`, the product `S * S`"
        raise error_at(e.span, f"{what} (got {sort})", hint=hint)
    return sort


def require_same_sorts(e: ast.Expr, sort: Sort, who: str) -> Sort:
    """Require that an expression be a relation on one kind of element, and return its sort.

    Raises:
        SpecError: if the expression has a different sort. The message says that ``who`` requires
            this.
    """
    require_relation(e, sort, f"{who} needs a relation")
    if not compatible(sort.left, sort.right):
        what = f"{who} needs a relation on one kind of element (got {sort})"
        raise error_at(e.span, what, hint=TX_HINT)
    return sort


def require_common_sort(span: Span, left: Sort, right: Sort, who: str) -> Sort:
    """Return the common sort of two operands.

    Raises:
        SpecError: if the operands have no common sort. The message says that ``who`` requires this.
    """
    if ANY in (left, right):
        return right if left == ANY else left
    fits = (
        left.kind == right.kind
        and compatible(left.left, right.left)
        and compatible(left.right, right.right)
    )
    if not fits:
        hint = TX_HINT if left.kind == right.kind else "the identity on a set is `[S]`"
        what = f"{who} needs two operands of one kind (got {left} and {right})"
        raise error_at(span, what, hint=hint)
    return Sort(left.kind, _meet(left.left, right.left), _meet(left.right, right.right))


def compatible(left: Element, right: Element) -> bool:
    """Return whether two kinds of elements are equal, or one of them is ``any``."""
    return left == right or "any" in (left, right)


def _meet(left: Element, right: Element) -> Element:
    return right if left == "any" else left
