"""Checks every sentence about a violation against the history.

The checker reads the text of ``--output json`` and the oracle's plain history. It shares no code
with the module that writes the sentences. Transaction ``T3`` is the third transaction of the
history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from oracle.history import UNKNOWN, History

Claim = tuple[Any, ...]
"""``("source", reader, key, value, writer)``, ``("before", key, a, b)``, ``("in", txn)``, or
``("not", claim)`` of the first and the last."""

T0 = -1

_PLACE = r"<memory> transaction \d+, operation \d+"
_VALUE = r"(?:nil|-?\d+|\[[-\d ]*\])"
_OP = r"(?:r|w|append)\(\w+, [^)]*\)"


class FalseSentenceError(AssertionError):
    """The error for a sentence that is not true of the history."""


def check_violation(violation: dict[str, Any], history: History) -> None:
    """Check every statement of a violation.

    Args:
        violation: the violation, as in a JSON report.
        history: the history that the violation is about, built with ``from_transactions``.

    Raises:
        FalseSentenceError: if a sentence is not true, or cannot be parsed.
    """
    _Report(violation, history).check()


class _Report:
    def __init__(self, violation: dict[str, Any], history: History) -> None:
        self._violation = violation
        self._history = history
        self._shown = {txn["name"]: txn for txn in violation["transactions"]}
        self._lemmas: dict[int, list[Claim]] = {}

    def check(self) -> None:
        for txn in self._violation["transactions"]:
            self._transaction(txn)
        self._argument(self._violation["argument"], [])

    # --- transactions ---

    def _transaction(self, shown: dict[str, Any]) -> None:
        number = shown["number"]
        txn = self._history[number]
        _same(shown["name"], f"T{number + 1}")
        _same(shown["where"], f"<memory> transaction {number + 1}")
        _same(shown["status"], txn.status)
        _same(shown["session"], str(txn.session))
        place = {"file": "<memory>", "unit": "record", "position": number + 1}
        _same(shown["place"], place)
        _same(shown["omitted"], len(txn.ops) - len(shown["operations"]))
        first = sum(len(t.ops) for t in self._history[:number])
        for op in shown["operations"]:
            at = op["number"] - first
            _same(op["text"], _operation(*txn.ops[at]))
            _same(op["key"], txn.ops[at][1])
            _same(op["where"], f"{shown['where']}, operation {at + 1}")
            _same(op["place"], place | {"position": at + 1})

    def _txn(self, name: str) -> int:
        if name in ("the initial state", "T0"):
            return T0
        number = int(name.removeprefix("T")) - 1
        _need(0 <= number < len(self._history), f"there is no {name}")
        _need(name in self._shown, f"{name} is spoken of and not shown")
        return number

    # --- arguments ---

    def _argument(self, argument: dict[str, Any], assumed: list[Claim]) -> None:
        for lemma in argument["lemmas"]:
            claims = self._claims(lemma["text"])
            self._about(lemma, claims[0])
            self._reason(lemma["reason"], claims, assumed)
            self._lemmas[lemma["number"]] = claims
        self._node(argument["conclusion"], assumed)

    def _reason(self, reason: dict[str, Any], claims: list[Claim], assumed: list[Claim]) -> None:
        (claim,) = claims
        if reason["kind"] == "sentence":
            because = [*assumed, *self._because(reason["because"])]
            self._sentence(reason["text"], because, claim)
        else:
            self._node(reason, [*assumed, _opposite(claim)])

    def _about(self, step: dict[str, Any], claim: Claim) -> None:
        """Check that the numbers in a step are those of what its text mentions."""
        if claim[0] == "not":
            claim = claim[1]
        txns, key = {
            "source": (claim[1:2] + claim[4:], claim[2] if len(claim) > 2 else None),
            "before": (claim[2:4], claim[1]),
            "in": (claim[1:], None),
        }[claim[0]]
        n = len(self._history)
        _same(set(step["transactions"]), {t if t != T0 else n for t in txns})
        for op in step["operations"]:
            txn, at = self._number(op)
            _need(txn in txns and self._history[txn].ops[at][1] == key, str(step))

    def _number(self, op: int) -> tuple[int, int]:
        for number, txn in enumerate(self._history):
            if op < len(txn.ops):
                return number, op
            op -= len(txn.ops)
        raise FalseSentenceError("no operation has this number")

    def _place_of(self, op: int) -> str:
        txn, at = self._number(op)
        return f"<memory> transaction {txn + 1}, operation {at + 1}"

    def _because(self, numbers: list[int]) -> list[Claim]:
        return [claim for number in numbers for claim in self._lemmas[number]]

    def _node(self, node: dict[str, Any], assumed: list[Claim]) -> None:
        match node["kind"]:
            case "argument":
                self._argument(node, assumed)
            case "cycle":
                self._cycle(node, assumed)
            case "split":
                self._split(node, assumed)
            case "sentence":
                because = [*assumed, *self._because(node["because"])]
                self._sentence(node["text"], because, None)

    def _split(self, node: dict[str, Any], assumed: list[Claim]) -> None:
        cases = [case["assumption"] for case in node["cases"]]
        if node["text"] == "every choice leads to a cycle":
            (text,) = cases
            pattern = r"No choice of sources and orders avoids a cycle: .* too many to list; .*"
            _need(re.fullmatch(pattern, text) is not None, text)
            (case,) = node["cases"]
            self._cycle(case["argument"]["conclusion"], None)
            return
        claims = [self._claims(text)[0] for text in cases]
        if found := re.fullmatch(rf"(T\d+) read (\w+) = ({_VALUE}) from one of (\d+) transactions",
                                 node["text"]):  # fmt: skip
            reader, key, value = self._txn(found[1]), found[2], _value(found[3])
            _same(int(found[4]), len(cases))
            sources = self._sources(reader, key, value)
            known = [*assumed, *(c for lemma in self._lemmas.values() for c in lemma)]
            left = {w for w in sources if ("not", ("source", reader, key, value, w)) not in known}
            _need(left <= {c[4] for c in claims}, f"a source is missing: {node['text']}")
        elif found := re.fullmatch(r"(T\d+) and (T\d+) wrote (\w+) in either order", node["text"]):
            a, b = self._txn(found[1]), self._txn(found[2])
            orders = {("before", found[3], a, b), ("before", found[3], b, a)}
            _same(set(claims), orders)
        else:
            _need(node["text"].endswith((", or did not", ", or did not.")), node["text"])
            _same(_opposite(claims[0]), claims[1])
        for claim, case in zip(claims, node["cases"], strict=True):
            self._about(case, claim)
            self._argument(case["argument"], [*assumed, claim])

    def _cycle(self, cycle: dict[str, Any], assumed: list[Claim] | None) -> None:
        edges = cycle["edges"]
        for edge, following in zip(edges, [*edges[1:], edges[0]], strict=True):
            _same(edge["target"], following["source"])
            self._edge(edge, assumed)

    def _edge(self, edge: dict[str, Any], assumed: list[Claim] | None) -> None:
        """Check an edge: its text must be a fact, or follow from a lemma or an assumption."""
        source, target = self._txn(edge["source"]), self._txn(edge["target"])
        relation, claims = self._edge_claims(edge["text"], source, target, edge["key"])
        _same(edge["relation"] if edge["relation"] != "init" else "so", relation)
        n = len(self._history)
        _same(edge["ends"], [t if t != T0 else n for t in (source, target)])
        _same([self._place_of(op) for op in edge["operations"]], edge["where"])
        because = self._because(edge["because"])
        for claim in claims:
            if self._is_fact(claim) or claim in because or assumed is None:
                continue
            _need(edge["assumed"] and claim in assumed, f"nothing says {claim}: {edge['text']}")

    # --- sentences about edges ---

    def _edge_claims(
        self, text: str, source: int, target: int, key: str
    ) -> tuple[str, list[Claim]]:
        if found := re.fullmatch(r"(T\d+) comes before (T\d+) in session (\d+)", text):
            a, b = self._txn(found[1]), self._txn(found[2])
            _same((a, b), (source, target))
            first, second = self._history[a], self._history[b]
            _need(a < b and first.session == second.session == int(found[3]), text)
            _same(first.status, "committed")
            return "so", []
        if found := re.fullmatch(r"(T\d+) had ended before (T\d+) began", text):
            a, b = self._txn(found[1]), self._txn(found[2])
            _same((a, b), (source, target))
            first, second = self._history[a], self._history[b]
            _need(first.status == "committed" and first.end is not None, text)
            _need(second.begin is not None and first.end < second.begin, text)
            return "rt", []
        if found := re.fullmatch(r"the initial state comes before (T\d+)", text):
            _same((T0, self._txn(found[1])), (source, target))
            return "so", []
        if " before " in text:
            (claim,) = self._claims(text)
            _same(claim, ("before", key, source, target))
            return "ww", [claim]
        for pattern in (
            r"(.*), (?:but (T\d+) had overwritten it|which (T\d+) overwrote)",
            r"(.*), (?:but )?without the (-?\d+) that (T\d+) (?:had )?appended",
        ):
            if found := re.fullmatch(pattern, text):
                return "rw", self._missed(found, source, target, key)
        (claim,) = self._claims(text)
        _same((claim[0], claim[1], claim[2], claim[4]), ("source", target, key, source))
        return "wr", [claim]

    def _missed(self, found: re.Match[str], source: int, target: int, key: str) -> list[Claim]:
        """Return the claims of an anti-dependency: the source of the read, and the later write."""
        if "without" not in found[0]:
            (claim,) = self._claims(found[1])
            _same((claim[0], claim[1], claim[2]), ("source", source, key))
            _same(self._txn(found[2] or found[3]), target)
            self._last(target, key)
            return [claim, ("before", key, claim[4], target)]
        reader, k, value = self._read(found[1])
        _same((reader, k), (source, key))
        _same(self._txn(found[3]), target)
        _same(self._last(target, key), int(found[2]))
        _need(int(found[2]) not in (value or ()), found[0])
        return []

    # --- claims ---

    def _claims(self, text: str) -> list[Claim]:
        """Return the claims of a sentence, after checking the facts that it states."""
        if found := re.fullmatch(r"(T\d+) (took|did not take) effect", text):
            claim = ("in", self._txn(found[1]))
            return [claim if found[2] == "took" else ("not", claim)]
        if found := re.fullmatch(rf"(T\d+) did not (read \w+ = {_VALUE} from T\d+)", text):
            return [("not", *self._claims(f"{found[1]} {found[2]}"))]
        if " before " in text:
            return [self._before(text)]
        if found := re.fullmatch(rf"(T\d+ read \w+ = {_VALUE}), the initial value", text):
            reader, key, value = self._read(found[1])
            _need(value in (None, ()), text)
            return [("source", reader, key, value, T0)]
        if found := re.fullmatch(rf"(T\d+ read \w+ = {_VALUE}), up to what (T\d+) appended", text):
            reader, key, value = self._read(found[1])
            writer = self._txn(found[2])
            _need(bool(value) and self._last(writer, key) == value[-1], text)
            return [("source", reader, key, value, writer)]
        if found := re.fullmatch(rf"(T\d+ read \w+ = {_VALUE}) from (T\d+)", text):
            reader, key, value = self._read(found[1])
            writer = self._txn(found[2])
            _need(writer != reader and writer in self._sources(reader, key, value), text)
            return [("source", reader, key, value, writer)]
        raise FalseSentenceError(f"what does this say? {text!r}")

    def _before(self, text: str) -> Claim:
        did = r"(?:wrote (\w+) = (-?\d+|nil)|appended (-?\d+) to (\w+)|wrote (\w+))"
        who = r"(T\d+|the initial state)"
        pattern = rf"{who} {did} before {who} {did}(?:, as (T\d+) read ({_VALUE}))?"
        found = re.fullmatch(pattern, text)
        if found is None:
            raise FalseSentenceError(f"what does this say? {text!r}")
        sides = []
        for name, *parts in (found.groups()[:6], found.groups()[6:12]):
            txn, key = self._txn(str(name)), str(parts[0] or parts[3] or parts[4])
            if txn != T0:
                _same(self._last(txn, key), _value(str(parts[1] or parts[2])))
            sides.append((txn, key))
        (a, key), (b, other) = sides
        _same(key, other)
        if found[13]:
            value = _value(found[14])
            self._has_read(self._txn(found[13]), key, value)
            _need(self._shows(value, key, a, b), text)
        return ("before", key, a, b)

    def _is_fact(self, claim: Claim) -> bool:
        match claim:
            case ("source", reader, key, value, writer):
                return self._sources(reader, key, value) == {writer}
            case ("before", key, a, b):
                lists = (v for _, k, v in self._reads() if k == key and isinstance(v, tuple))
                return a == T0 or any(self._shows(v, key, a, b) for v in lists)
        return False

    # --- sentences that are not about edges ---

    def _sentence(self, text: str, because: list[Claim], claim: Claim | None) -> None:
        """Check a sentence, which must be a reason for ``claim`` if a claim is given."""
        if text == "the only source left":
            assert claim is not None
            _, reader, key, value, writer = claim
            left = self._left(reader, key, value, because)
            _same(left, {writer})
        elif found := re.fullmatch(rf"no source is left for the read of (\w+) = ({_VALUE})", text):
            key, value = found[1], _value(found[2])
            readers = [r for r, k, v in self._reads() if (k, v) == (key, value)]
            _need(any(not self._left(r, key, value, because) for r in readers), text)
        elif text == "a read has only one source":
            _need(claim is not None and claim[0] == "not", text)
        elif found := re.fullmatch(
            rf"(T\d+) can (read \w+ = {_VALUE} from T\d+) only if (T\d+) took effect", text
        ):
            self._only_if(f"{found[1]} {found[2]}", self._txn(found[3]), because, claim)
        elif found := re.fullmatch(r"(T\d+) comes last unless it took effect", text):
            # An excluded writer comes last, which contradicts that it precedes another writer.
            txn = self._txn(found[1])
            _same(self._history[txn].status, "maybe")
            known = [*because, _opposite(claim or ())]
            _need(any(c[0] == "before" and c[2] == txn for c in known), text)
            _need(("not", ("in", txn)) in known, text)
        elif found := re.fullmatch(r"the versions of (\w+) are in an order", text):
            known = [*because, _opposite(claim or ())]
            _need(sum(c[0] == "before" and c[1] == found[1] for c in known) > 1, text)
        elif text.startswith(("Every order of the transactions leaves", "No choice of ")):
            _same(self._violation["anomaly"] in ("no order", "no assignment"), True)
        elif found := re.fullmatch(rf"(T\d+ read \w+ = {_VALUE}) \(({_PLACE})\),? (.*?)\.?", text):
            self._wrong_read(*self._read(found[1]), self._at(found[2]), found[3])
        elif claim is not None and claim[0] == "before":
            _, key, a, b = claim
            if re.search(r" read ", text):
                ((_, reader, _, _, writer),) = self._claims(text)
                _same((writer, reader), (a, b))
            else:
                self._edge_claims(text, a, b, key)
        else:
            raise FalseSentenceError(f"what does this say? {text!r}")

    def _only_if(self, read: str, txn: int, because: list[Claim], claim: Claim | None) -> None:
        """Check a contradiction: a read from a writer, although one of the two took no effect."""
        ((name, reader, key, value, writer),) = self._claims(read)
        source = (name, reader, key, value, writer)
        _need(txn in (reader, writer), read)
        _same(self._history[txn].status, "maybe")
        out = ("not", ("in", txn))
        _need(claim in (("in", txn), ("not", source), None), f"{read} is no reason of {claim}")
        known = because if claim is None else [*because, _opposite(claim)]
        _need(out in known and (source in known or self._is_fact(source)), f"{read}: why not?")

    def _left(self, reader: int, key: str, value: Any, because: list[Claim]) -> set[int]:
        out = {c[1][1] for c in because if c[0] == "not" and c[1][0] == "in"}
        return {
            w
            for w in self._sources(reader, key, value)
            if ("not", ("source", reader, key, value, w)) not in because and w not in out
        }

    def _wrong_read(
        self, reader: int, key: str, value: Any, at: tuple[int, int] | None, says: str
    ) -> None:
        """Check that a read exists, and that it is wrong by itself in the stated way."""
        assert at is not None
        _same(at[0], reader)
        kind, k, v = self._history[reader].ops[at[1]]
        _same((kind, k, v), ("r", key, value))
        for pattern, holds in self._KINDS.items():
            if found := re.fullmatch(pattern, says):
                _need(holds(self, at, key, value, found), says)
                return
        raise FalseSentenceError(f"what does this say? {says!r}")

    def _nobody(self, _at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        what = value if found[0] == "which no transaction wrote" else int(found[1])
        return not list(self._writes(key, what))

    def _aborted(self, _at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        what = value if found[1] is None else int(found[1])
        writer, place = self._txn(found[2]), self._at(found[3])
        writes = list(self._writes(key, what))
        alone = all(self._history[t].status == "aborted" for t, _ in writes)
        return alone and place in writes and place[0] == writer

    def _between(self, _at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        writer, place = self._txn(found[1]), self._at(found[3])
        own = [p for p in self._all_writes(key) if p[0] == writer]
        return (
            place in own
            and place != own[-1]
            and self._op(place) == found[2]
            and self._history[place[0]].ops[place[1]][2] == value
        )

    def _inside(self, _at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        writer, place = self._txn(found[1]), self._at(found[3])
        own = [p for p in self._all_writes(key) if p[0] == writer]
        return place in own and place != own[-1] and self._op(place) == found[2] and (
            value[-1] == self._history[writer].ops[place[1]][2]
        )  # fmt: skip

    def _later(self, at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        what = value if found[1] is None else int(found[1])
        place = self._at(found[3])
        assert place is not None
        return (
            self._txn(found[2]) == at[0] == place[0]
            and place[1] > at[1]
            and self._history[at[0]].ops[place[1]][1:] == (key, what)
            and (value == what or what in (value or ()))
        )

    def _own(self, at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        """Return whether the read did not return its transaction's own last write before it."""
        place = self._at(found[2])
        own = [p for p in self._all_writes(key) if p[0] == at[0] and p[1] < at[1]]
        written = tuple(self._history[t].ops[i][2] for t, i in own)
        seen = value or () if self._history[at[0]].ops[own[-1][1]][0] == "append" else None
        wrong = value != written[-1] if seen is None else seen[-len(written) :] != written
        return place in own and self._op(place) == found[1] and wrong

    def _older(self, at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        place = self._at(found[2])
        own = [p for p in self._all_writes(key) if p[0] == at[0] and p[1] < at[1]]
        assert place is not None
        written = self._history[place[0]].ops[place[1]][2]
        was_read = written == value or written in (value if isinstance(value, tuple) else ())
        return place in own[:-1] and self._op(place) == found[1] and was_read

    def _no_prefix(self, _at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        other, place = _value(found[2]) or (), self._at(found[3])
        assert place is not None
        read = self._history[place[0]].ops[place[1]]
        n = min(len(value), len(other))
        same = read[0] == "r" and read[1] == key and (read[2] or ()) == other
        return same and place[0] == self._txn(found[1]) and value[:n] != other[:n]

    def _more_often(self, _at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        place, writer = self._at(found[2]), self._txn(found[3])
        assert place is not None
        element = self._history[place[0]].ops[place[1]][2]
        made = [p for p in self._writes(key, element) if p[0] == writer]
        return place in made and self._op(place) == found[1] and value.count(element) > len(made)

    def _apart(self, at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        """Return whether the elements of a transaction are not one complete block in its order."""
        place, writer = self._at(found[3]), self._txn(found[1])
        own = [p for p in self._all_writes(key) if p[0] == writer and (p < at or writer != at[0])]
        made = tuple(self._history[t].ops[i][2] for t, i in own)
        blocks = [i for i in range(len(value)) if value[i : i + len(made)] == made]
        shown = [e for e in value if e in made]
        return (
            place in own
            and self._op(place) == found[2]
            and bool(shown)
            and (not blocks or len(shown) > len(made))
        )

    def _torn(self, _at: Any, key: str, value: Any, found: re.Match[str]) -> bool:
        """Return whether the list has a foreign element inside the block of a transaction."""
        ops = {
            (f"append({key}, {self._history[t].ops[i][2]})", t): self._history[t].ops[i][2]
            for t, i in self._all_writes(key)
        }
        one, middle, last = (ops[found[i], self._txn(found[i + 1])] for i in (3, 1, 5))
        first, second = value.index(one), value.index(middle)
        third = len(value) - 1 - value[::-1].index(last) if last in value else len(value)
        return found[4] == found[6] != found[2] and first < second < third

    _KINDS: ClassVar[dict[str, Callable[..., bool]]] = {
        r"which no transaction wrote": _nobody,
        r"whose element (-?\d+) no transaction appended": _nobody,
        rf"(?:which|whose element (-?\d+)) only the aborted (T\d+) (?:wrote|appended) "
        rf"\(({_PLACE})\)": _aborted,
        rf"which (T\d+) overwrote before it ended \(({_OP}) at ({_PLACE})\)": _between,
        rf"which ends inside the appends of (T\d+): after ({_OP}) at ({_PLACE})": _inside,
        rf"(?:which|whose element (-?\d+)) (T\d+) itself (?:wrote|appended) only later "
        rf"\(({_PLACE})\)": _later,
        rf"though its own ({_OP}) at ({_PLACE}) came before": _own,
        rf"its own ({_OP}) at ({_PLACE}), though it had written the key again since": _older,
        rf"but (T\d+) read ({_VALUE}) \(({_PLACE})\): neither is a prefix of the other": _no_prefix,
        rf"which shows the ({_OP}) at ({_PLACE}) of (T\d+) more often than "
        rf"it happened": _more_often,
        rf"where the appends of (T\d+) do not appear together, complete and in the order in which "
        rf"they were made \(({_OP}) at ({_PLACE})\)": _apart,
        rf"which puts the ({_OP}) of (T\d+) after the ({_OP}) of (T\d+) and before the ({_OP}) of "
        rf"(T\d+)": _torn,
    }  # fmt: skip

    # --- the history ---

    def _read(self, text: str) -> tuple[int, str, Any]:
        found = re.fullmatch(rf"(T\d+) read (\w+) = ({_VALUE})", text)
        if found is None:
            raise FalseSentenceError(f"what does this say? {text!r}")
        reader, key, value = self._txn(found[1]), found[2], _value(found[3])
        self._has_read(reader, key, value)
        return reader, key, value

    def _has_read(self, reader: int, key: str, value: Any) -> None:
        _need((reader, key, value) in self._reads(), f"T{reader + 1} did not read {key} = {value}")

    def _reads(self) -> set[tuple[int, str, Any]]:
        return {
            (i, key, value)
            for i, txn in enumerate(self._history)
            for kind, key, value in txn.ops
            if kind == "r" and value != UNKNOWN and txn.status != "aborted"
        }

    def _all_writes(self, key: str) -> list[tuple[int, int]]:
        return [
            (i, j)
            for i, txn in enumerate(self._history)
            for j, op in enumerate(txn.ops)
            if op[0] != "r" and op[1] == key
        ]

    def _writes(self, key: str, value: Any) -> Iterator[tuple[int, int]]:
        return (p for p in self._all_writes(key) if self._history[p[0]].ops[p[1]][2] == value)

    def _last(self, txn: int, key: str) -> Any:
        written = [op[2] for op in self._history[txn].ops if op[0] != "r" and op[1] == key]
        _need(bool(written), f"T{txn + 1} does not write {key}")
        return written[-1]

    def _sources(self, reader: int, key: str, value: Any) -> set[int]:
        """Return the transactions from which a read may return its value; T0 for no value."""
        wanted = (value[-1] if value else None) if isinstance(value, tuple) else value
        found = {T0} if wanted is None else set()
        for txn, _ in self._all_writes(key):
            live = self._history[txn].status != "aborted" and txn != reader
            if live and self._last(txn, key) == wanted:
                found.add(txn)
        return found

    def _shows(self, value: Any, key: str, a: int, b: int) -> bool:
        """Return whether a list shows an element of ``a``, and no earlier element of ``b``."""
        owner = {self._history[t].ops[i][2]: t for t, i in self._all_writes(key)}
        shown = [owner[e] for e in value or () if e in owner]
        return a in shown and (b not in shown or shown.index(a) < shown.index(b))

    def _at(self, place: str) -> tuple[int, int] | None:
        found = re.fullmatch(r"<memory> transaction (\d+), operation (\d+)", place)
        if found is None:
            return None
        txn, op = int(found[1]) - 1, int(found[2]) - 1
        _need(op < len(self._history[txn].ops), f"nothing is at {place}")
        return txn, op

    def _op(self, place: tuple[int, int] | None) -> str:
        assert place is not None
        return _operation(*self._history[place[0]].ops[place[1]])


def _operation(kind: str, key: str, value: Any) -> str:
    if isinstance(value, tuple):
        text = f"[{' '.join(map(str, value))}]"
    else:
        text = "nil" if value is None else str(value)
    return f"{kind}({key}, {text})"


def _value(text: str) -> Any:
    if text.startswith("["):
        return tuple(int(v) for v in text[1:-1].split())
    return None if text == "nil" else int(text)


def _opposite(claim: Claim) -> Claim:
    match claim:
        case ("not", inner):
            return inner
        case ("before", key, a, b):
            return ("before", key, b, a)
    return ("not", claim)


def _same(got: Any, expected: Any) -> None:
    _need(got == expected, f"got {got!r}, expected {expected!r}")


def _need(holds: bool, text: str) -> None:
    if not holds:
        raise FalseSentenceError(text)
