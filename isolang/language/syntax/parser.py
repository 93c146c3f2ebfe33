"""Parses texts into syntax trees. Lark finds syntax errors, and ``slips`` explains them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal, cast

from isolang.language.syntax import ast
from isolang.language.syntax.ast import ITEM, POSTFIX
from isolang.language.syntax.source import SourceText, Span, error_at

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

MAX_DEPTH = 50
"""The maximum nesting depth of brackets and postfix operators. Real texts are nested far less
deeply, and the stack allows far more.
"""


def _lark() -> Lark:
    from isolang.language.syntax.grammar import parser

    return parser()


def keywords() -> frozenset[str]:
    """Return the reserved words, which cannot be used as names."""
    from lark.lexer import PatternStr

    values = {t.pattern.value for t in _lark().terminals if isinstance(t.pattern, PatternStr)}
    return frozenset(value for value in values if value.isalpha())


def tokens(source: SourceText) -> list[Token]:
    """Return the tokens, without comments, of a text accepted by ``parse``.

    The fields ``start_pos`` and ``end_pos`` of a token are offsets in the text.
    """
    return list(_tokens(source.text, stop=None))


def parse(source: SourceText) -> ast.File:
    """Parse one text.

    Raises:
        SpecError: if the text does not follow the grammar. The error message includes the place, a
            caret and a hint.
    """
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    text = source.text
    _check_depth(source)
    try:
        tree = _lark().parse(text)
    except UnexpectedToken as error:
        from isolang.language.syntax.slips import Got, explain

        token = error.token
        at_end = token.type == "$END"
        before = list(_tokens(text, stop=None if at_end else token.start_pos))
        span = _end_span(source, before) if at_end else _token_span(source, token)
        accepts = frozenset(error.accepts or error.expected)
        got = Got(token.type, "" if at_end else str(token), frozenset(map(_terminal, accepts)))
        rest = "" if at_end else text[token.start_pos :]
        raise explain(span, before, got, keywords(), rest=rest) from None
    except UnexpectedCharacters as error:
        from isolang.language.syntax.slips import Got, explain

        start = error.pos_in_stream or 0
        before = list(_tokens(text, stop=start))
        span = Span(source, error.line, error.column, error.line, error.column + 1)
        got = Got("character", text[start], frozenset())
        rest = text[start:]
        raise explain(span, before, got, keywords(), rest=rest) from None
    return _SyntaxTreeBuilder(source).file(tree)


def begins_like_a_specification(source: SourceText) -> bool:
    """Return whether a text begins with a token that can begin an item, or has no tokens."""
    from lark.exceptions import UnexpectedCharacters

    try:
        first = next(_lark().lex(source.text), None)
    except UnexpectedCharacters:
        return False
    return first is None or str(first) in ITEM


def _tokens(text: str, *, stop: int | None) -> Iterator[Token]:
    """Yield the tokens that begin before offset ``stop``, up to the first invalid character."""
    from lark.exceptions import UnexpectedCharacters

    try:
        for token in _lark().lex(text):
            if stop is not None and token.start_pos is not None and token.start_pos >= stop:
                return
            yield token
    except UnexpectedCharacters:
        return


@cache
def _terminal(name: str) -> str:
    """Return the text of a terminal such as ``;``, or the name of a terminal that is a pattern."""
    from lark.lexer import PatternStr

    for terminal in _lark().terminals:
        if terminal.name == name and isinstance(terminal.pattern, PatternStr):
            return terminal.pattern.value
    return name


def _token_span(source: SourceText, token: Token) -> Span:
    line, column = token.line or 1, token.column or 1
    return Span(source, line, column, token.end_line or line, token.end_column or column + 1)


def _end_span(source: SourceText, before: list[Token]) -> Span:
    """Return the place directly after the last token, for a caret to point to."""
    if not before:
        return Span(source, 1, 1, 1, 2)
    last = before[-1]
    line, column = last.end_line or 1, last.end_column or 1
    return Span(source, line, column, line, column + 1)


def _check_depth(source: SourceText) -> None:
    """Raise an error if recursive functions on the syntax tree could exhaust the stack.

    SOUND BECAUSE only brackets, postfix operators and ``for`` put one expression inside another,
    and the sum below counts each of these. At most a union and a term lie between two of them.
    """
    outer: list[tuple[int, int]] = []  # for each open bracket, `before` and `fors` outside it
    before = last = 0  # the height of the last expression, and of the expressions before it
    fors = 0  # the number of `for` bodies that contain the token
    for token in _tokens(source.text, stop=None):
        if token in ("(", "["):
            outer.append((max(before, last), fors))
            before = last = 0
        elif token in (")", "]"):
            inside = max(before, last) + 1
            before, around = outer.pop() if outer else (0, 0)
            last = inside + fors - around
            fors = around
        elif token in POSTFIX:
            last += 1
        elif token == "for":
            fors += 1
        elif token in ("as", "let", "exists"):
            outer, before, last, fors = [], 0, 0, 0
        else:
            # The token is an operator or a name. A name has height 0.
            before, last = max(before, last), 0
        if max(before, last) + len(outer) + fors > MAX_DEPTH:
            raise error_at(
                _token_span(source, token),
                f"nested too deeply (expected at most {MAX_DEPTH} levels)",
                hint="give a part a name with `let`, and use the name",
            )


class _SyntaxTreeBuilder:
    """Converts Lark's parse tree to the syntax tree of ``ast``."""

    def __init__(self, source: SourceText) -> None:
        self._source = source

    def file(self, tree: Tree[Token]) -> ast.File:
        header: ast.Header | None = None
        items: list[ast.Item] = []
        for node in self._trees(tree):
            if node.data == "header":
                name, *title = self._leaves(node)
                header = ast.Header(self._span(node), str(name), _text(title))
            else:
                items.append(self._item(node))
        return ast.File(self._source, header, tuple(items))

    def _item(self, node: Tree[Token]) -> ast.Item:
        span = self._span(node)
        match node.data:
            case "include":
                return ast.Include(
                    _token_span(self._source, self._leaves(node)[0]), self._string(node)
                )
            case "let":
                key: ast.Ident | None = None
                params: tuple[ast.Ident, ...] = ()
                body: ast.Expr | None = None
                for child in self._trees(node):
                    if child.data == "key":
                        key = self._ident(self._leaves(child)[0])
                    elif child.data == "params":
                        params = tuple(self._ident(leaf) for leaf in self._leaves(child))
                    else:
                        body = self._expr(child)
                name = self._ident(self._leaves(node)[0])
                assert body is not None
                return ast.Let(span, name, key, params, body)
            case "exists":
                return self._exists(node, span)
            case "check":
                return self._check(node, span)
            case "show":
                (expr,) = self._trees(node)
                return ast.Show(span, self._ident(self._leaves(node)[0]), self._expr(expr))
            case "allows" | "forbids":
                return ast.Example(span, node.data == "allows", self._string(node))
        raise AssertionError(f"unknown rule {node.data}")

    def _exists(self, node: Tree[Token], span: Span) -> ast.ExistsItem:
        parts = {str(child.data): child for child in self._trees(node)}
        key = self._ident(self._leaves(parts["key"])[0]) if "key" in parts else None
        kinds: tuple[Literal["order", "choice", "relation"], ...] = ("order", "choice", "relation")
        kind = next(kind for kind in kinds if kind in parts)

        def sub(rule: str) -> ast.Expr | None:
            return self._expr(self._trees(parts[rule])[0]) if rule in parts else None

        over = sub(kind)
        assert over is not None
        return ast.ExistsItem(
            span,
            self._ident(self._leaves(node)[0]),
            key,
            kind,
            over,
            sub("containing"),
            sub("within"),
        )

    def _check(self, node: Tree[Token], span: Span) -> ast.CheckItem:
        *each, test = self._trees(node)
        leaves = self._leaves(node)
        types = {leaf.type for leaf in leaves}
        name = next(leaf for leaf in leaves if leaf.type == "NAME")
        exprs = [self._expr(child) for child in self._trees(test)]
        return ast.CheckItem(
            span,
            self._ident(name),
            cast("Literal['acyclic', 'irreflexive', 'empty', 'require']", str(test.data)),
            exprs[0],
            exprs[1] if len(exprs) > 1 else None,
            "FLAG" in types,
            "NOT" in types,
            _text([leaf for leaf in leaves if leaf.type == "STRING"]),
            self._ident(self._leaves(each[0])[0]) if each else None,
            self._class(self._trees(each[0])[0]) if each and self._trees(each[0]) else None,
        )

    def _expr(self, node: Tree[Token]) -> ast.Expr:
        span = self._span(node)
        children = self._trees(node)
        match str(node.data):
            case "parens":
                return self._expr(children[0])
            case "union" | "seq" | "inter":
                ops: dict[str, Literal["|", ";", "&"]] = {"union": "|", "seq": ";", "inter": "&"}
                parts = tuple(self._expr(child) for child in children)
                return ast.Nary(span, ops[str(node.data)], parts)
            case "diff":
                return ast.Binary(span, "\\", self._expr(children[0]), self._expr(children[1]))
            case "product":
                return ast.Binary(span, "*", self._expr(children[0]), self._expr(children[1]))
            case "inverse":
                return ast.Postfix(span, "^-1", self._expr(children[0]))
            case "plus":
                return ast.Postfix(span, "^+", self._expr(children[0]))
            case "star":
                return ast.Postfix(span, "^*", self._expr(children[0]))
            case "opt":
                return ast.Postfix(span, "?", self._expr(children[0]))
            case "ref":
                key = self._ident(self._leaves(children[0])[0]) if children else None
                return ast.Ref(span, str(self._leaves(node)[0]), key)
            case "named":
                word, name = self._leaves(node)
                return ast.Named(span, str(word), _text([name]))
            case "of_class":
                return ast.OfClass(span, str(self._leaves(node)[0]), self._class(children[0]))
            case "call":
                keyed = bool(children) and children[0].data == "key"
                key = self._ident(self._leaves(children[0])[0]) if keyed else None
                args = tuple(self._expr(child) for child in children[keyed:])
                return ast.Call(span, str(self._leaves(node)[0]), key, args)
            case "lift":
                return ast.Lift(span, self._expr(children[0]))
            case "domain":
                return ast.EndSet(span, "domain", self._expr(children[0]))
            case "range":
                return ast.EndSet(span, "range", self._expr(children[0]))
            case "for_key":
                *within, body = children
                key = self._ident(self._leaves(node)[0])
                keys = self._class(within[0]) if within else None
                return ast.For(span, key, self._expr(body), keys)
        raise AssertionError(f"unknown rule {node.data}")

    def _class(self, node: Tree[Token]) -> ast.KeyClass:
        names = self._leaves(self._trees(node)[0])
        return ast.KeyClass(tuple(_text([n]) for n in names), node.data == "not_in_keys")

    def _ident(self, token: Token) -> ast.Ident:
        return ast.Ident(_token_span(self._source, token), str(token))

    def _string(self, node: Tree[Token]) -> str:
        return _text(self._leaves(node))

    def _span(self, node: Tree[Token]) -> Span:
        meta = node.meta
        return Span(self._source, meta.line, meta.column, meta.end_line, meta.end_column)

    @staticmethod
    def _trees(node: Tree[Token]) -> list[Tree[Token]]:
        from lark import Tree

        return [child for child in node.children if isinstance(child, Tree)]

    @staticmethod
    def _leaves(node: Tree[Token]) -> list[Token]:
        from lark import Token

        return [child for child in node.children if isinstance(child, Token)]


def _text(strings: list[Token]) -> str:
    return str(strings[0])[1:-1] if strings else ""
