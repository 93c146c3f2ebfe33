"""Evaluates a level on a history by brute force: it tries all choices.

The definitions follow docs/language.md, in the order of ``kernel/Defs.v``, and evaluate the text
that the kernel reads. They use no code of isolang. Each name in :data:`MUTANTS` selects one wrong
definition, so that a test can show that it would notice the mistake.
"""

import re
from functools import cache
from itertools import permutations, product

from support.paths import ROOT

T0 = 1
MUTANTS = ("source", "indeterminate so", "rw with identity", "rt not strict", "own element")


class Text:
    """The words of the kernel's input, in order."""

    def __init__(self, text):
        self.words = iter(text.split())

    def word(self):
        return next(self.words)

    def number(self):
        return int(self.word())

    def many(self, one):
        return [one() for _ in range(self.number())]

    def operation(self):
        kind, key = self.word(), self.number()
        return (kind, key, self.number() if kind in "wr" else self.many(self.number))

    def transaction(self):
        assert self.word() == "t"
        session, outcome = self.number(), self.word()
        times = [None if w == "-" else int(w) for w in (self.word(), self.word())]
        return (session, outcome, *times, self.many(self.operation))

    def variable(self):
        word = self.word()
        return None if word == "_" else int(word)

    def expression(self):
        word = self.word()
        if word in ("wr", "ww", "rw", "W", "R"):
            return (word, self.variable())
        if word in ("union", "inter", "minus", "seq"):
            return (word, self.expression(), self.expression())
        if word in ("inv", "plus", "opt"):
            return (word, self.expression())
        if word == "for":
            return (word, self.number(), self.expression())
        return (word,)

    def values_of_keys(self, name):
        assert self.word() == name
        return dict(self.many(lambda: (self.number(), self.many(self.number))))


def parse(text):
    """Parse the kernel's input: transactions, initial values, initial lists, order, and checks."""
    words = Text(text)
    assert [words.word() for _ in range(3)] == ["isolang-kernel", "2", "history"]
    txns = dict(enumerate(words.many(words.transaction), 2))
    assert words.word() == "keys"
    keys = range(1, words.number() + 1)
    initial, beginning = words.values_of_keys("initial"), words.values_of_keys("beginning")
    assert words.word() == "level"
    has_order = words.word() == "order"
    checks = words.many(lambda: (words.word(), words.expression()))
    return (txns, initial, beginning, keys), has_order, checks


@cache
def judging_relations():
    """Return the relations by which a level judges reads, as docs/language.md lists them."""
    text = " ".join((ROOT / "docs" / "language.md").read_text(encoding="utf-8").split())
    (sentence,) = re.findall(r"A specification \*judges reads\* if [^.]* mentions ([^.]*)\.", text)
    return set(re.findall(r"`([\w-]+)`", sentence))


def says_where_from(e):
    """Return whether an expression mentions a relation by which a level judges reads."""
    return e[0] in judging_relations() or any(says_where_from(x) for x in e if isinstance(x, tuple))


def matches(result, value):
    kind, said = result
    if kind == "r":
        return value == said
    return kind != "l" and (value in said) == (kind == "o")


class Choice:
    """A choice of included transactions, sources, version orders and the total order."""

    def __init__(self, history, included, source, order, total, *, judged=True, mutant=""):
        self.txns, self.initial, self.beginning, self.keys = history
        self.judged = judged  # whether a choice must explain what reads returned
        self.included, self.source, self.order, self.total = included, source, order, total
        self.mutant = mutant
        self.everyone = [T0, *included]

    def reads(self, t):
        """Yield each read as its number, key, result, and the transaction's own earlier writes."""
        before = {}
        for i, (kind, key, said) in enumerate(self.txns[t][4], 1):
            if kind == "w":
                before.setdefault(key, []).append(said)
            else:
                yield i, key, (kind, said), list(before.get(key, []))

    def written(self, t, key):
        return [v for kind, k, v in self.txns[t][4] if kind == "w" and k == key]

    def version(self, u, key):
        if u == T0:
            return self.initial.get(key, [0])
        return self.written(u, key)[-1:]

    def appended(self, key, txns):
        return [v for u in txns for v in self.written(u, key)]

    def is_explicable(self, t, key, result):
        """Return whether a read has a candidate: a version that may count has what it returned."""
        others = [u for u in self.txns if u != t and self.txns[u][1] != "a"]
        values = [v for u in (T0, *others) for v in self.version(u, key)]
        return result[0] == "l" or any(matches(result, v) for v in values)

    def is_legal(self):
        for t in self.included:
            for i, key, result, own in self.reads(t):
                order, first = self.order.get(key, ()), self.beginning.get(key, [])
                if not (self.judged or (not own and self.is_explicable(t, key, result))):
                    continue
                if not own:
                    u = self.source[t, i]
                    if u == t and self.mutant != "source":
                        return False
                    if result[0] == "l":
                        shown = order[: order.index(u) + 1] if u != T0 else ()
                        if t in shown and self.mutant != "own element":
                            return False
                        if result[1] != first + self.appended(key, shown):
                            return False
                    elif not any(matches(result, v) for v in self.version(u, key)):
                        return False
                elif result[0] == "l":
                    shown = order[: order.index(t)]
                    if result[1] != first + self.appended(key, shown) + own:
                        return False
                elif not matches(result, own[-1]):
                    return False
        return True

    # --- relations, as sets of pairs ---

    def so(self):
        return {
            (a, b)
            for a, b in product(self.included, repeat=2)
            if (self.txns[a][1] == "c" or self.mutant == "indeterminate so")
            and self.txns[a][0] == self.txns[b][0]
            and a < b
        }

    def rt(self):
        found = set()
        for a, b in product(self.included, repeat=2):
            end, begin = self.txns[a][3], self.txns[b][2]
            if a == b or self.txns[a][1] != "c" or None in (end, begin):
                continue
            if end < begin or (end == begin and self.mutant == "rt not strict"):
                found.add((a, b))
        return found

    def init(self):
        return {(T0, b) for b in self.included}

    def wr(self, key):
        return {
            (self.source[t, i], t)
            for t in self.included
            for i, k, result, own in self.reads(t)
            if k == key and not own and self.is_explicable(t, k, result)
        }

    def ww(self, key):
        return ordered_pairs((T0, *self.order.get(key, ())))

    def rw(self, key):
        return {
            (a, b)
            for u, a in self.wr(key)
            for v, b in self.ww(key)
            if u == v and (a != b or self.mutant == "rw with identity")
        }

    def value(self, e, env):
        match e:
            case ("so",):
                return self.so() | self.init()
            case ("rt",):
                return self.rt() | self.init()
            case ("init",):
                return self.init()
            case ("co",):
                return ordered_pairs(self.total)
            case ("id",) | ("T",):
                return {(t, t) for t in self.everyone}
            case ("wr" | "ww" | "rw" as name, x):
                keys = self.keys if x is None else [env[x]]
                return {pair for key in keys for pair in getattr(self, name)(key)}
            case ("W", x):
                keys = self.keys if x is None else [env[x]]
                return {(t, t) for k in keys for t in (T0, *self.order.get(k, ()))}
            case ("R", x):
                keys = self.keys if x is None else [env[x]]
                return {(t, t) for k in keys for _, t in self.wr(k)}
            case ("union", a, b):
                return self.value(a, env) | self.value(b, env)
            case ("inter", a, b):
                return self.value(a, env) & self.value(b, env)
            case ("minus", a, b):
                return self.value(a, env) - self.value(b, env)
            case ("seq", a, b):
                return compose(self.value(a, env), self.value(b, env))
            case ("inv", a):
                return {(b, a) for a, b in self.value(a, env)}
            case ("plus", a):
                return transitive_closure(self.value(a, env))
            case ("opt", a):
                return self.value(a, env) | {(t, t) for t in self.everyone}
            case ("for", x, a):
                return {pair for key in self.keys for pair in self.value(a, {**env, x: key})}
        raise AssertionError(e)

    def meets(self, check):
        kind, e = check
        pairs = self.value(e, {})
        match kind:
            case "acyclic":
                return all(a != b for a, b in transitive_closure(pairs))
            case "irreflexive":
                return all(a != b for a, b in pairs)
            case "empty":
                return not pairs
            case "inorder":
                return pairs <= ordered_pairs(self.total)
        raise AssertionError(kind)

    def meets_all(self, checks):
        return all(self.meets(check) for check in checks)

    def witness(self):
        """Return the choice as a witness in the kernel's input format."""
        maybe = [str(t) for t in self.included if self.txns[t][1] == "u"]
        sources = [f"{t} {i} {u}" for (t, i), u in self.source.items()]
        orders = [" ".join(map(str, (k, len(order), *order))) for k, order in self.order.items()]
        lines = ["witness", " ".join(["included", str(len(maybe)), *maybe])]
        lines += [f"source {len(sources)}", *sources, f"orders {len(orders)}", *orders, "end\n"]
        return "\n".join(lines)


def ordered_pairs(line):
    return {(a, b) for i, a in enumerate(line) for b in line[i + 1 :]}


def compose(first, second):
    return {(a, d) for a, b in first for c, d in second if b == c}


def transitive_closure(pairs):
    found = set(pairs)
    while more := compose(found, pairs) - found:
        found |= more
    return found


def every_choice(history, has_order, *, judged=True, mutant=""):
    """Yield every choice, legal or not: what counts, where reads read from, and the orders."""
    txns, _, _, keys = history
    certain = [t for t in txns if txns[t][1] == "c"]
    maybe = [t for t in txns if txns[t][1] == "u"]
    for took in product((False, True), repeat=len(maybe)):
        included = sorted([*certain, *(t for t, yes in zip(maybe, took, strict=True) if yes)])
        bare = Choice(history, included, {}, {}, ())
        writers = {k: [t for t in included if bare.written(t, k)] for k in keys}
        external = [(t, i, k) for t in included for i, k, _, own in bare.reads(t) if not own]
        sources = [[T0, *writers[k]] for _, _, k in external]
        orders = [list(permutations(writers[k])) for k in keys]
        totals = permutations([T0, *included]) if has_order else [()]
        for total in totals:
            for order in product(*orders):
                for chosen in product(*sources):
                    source = {(t, i): u for (t, i, _), u in zip(external, chosen, strict=True)}
                    by_key = dict(zip(keys, order, strict=True))
                    yield Choice(
                        history, included, source, by_key, total, judged=judged, mutant=mutant
                    )


def size(text):
    """Return an upper bound on the number of choices."""
    (txns, *_), has_order, _ = parse(text)
    count = 120 if has_order else 1
    for txn in txns.values():
        for kind, _, _ in txn[4]:
            count *= 1 if kind == "w" else 1 + len(txns)
    return count


def satisfies(text, mutant=""):
    """Return whether the history in a text satisfies the level in the same text."""
    history, has_order, checks = parse(text)
    judged = any(says_where_from(e) for _, e in checks)
    return any(
        choice.is_legal() and choice.meets_all(checks)
        for choice in every_choice(history, has_order, judged=judged, mutant=mutant)
    )
