"""Writes Jepsen's operation maps in EDN or JSON, one per line, with sessions as processes.

If the history has real time, ``:invoke`` and ``:ok`` lines are in real-time order. Otherwise only
completions are written, because any order of invocations would claim a real-time order that the
history does not have.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolang.arrays import np
from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.readers.reading import quantity
from isolang.history.values import INTEGER, NATURAL, NIL, STRING, atom_text
from isolang.history.writers.naming import INITIAL, Names, name_values
from isolang.history.writers.outline import FormatFeatures, Outline, outline
from isolang.history.writers.report import Contents, Sink, WriteReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from isolang.history.history import History

_EDN = FormatFeatures(
    name="EDN",
    lists=True,
    rows=True,
    initial=True,
    indeterminate=True,
    real_time=True,
    groups=True,
    versions=True,
    labels=True,
    statements=True,
    unknown=True,
    empty=True,
    hint="",
)
_JSON = FormatFeatures(
    name="JSON",
    lists=True,
    initial=True,
    indeterminate=True,
    real_time=True,
    groups=True,
    versions=True,
    labels=True,
    statements=True,
    unknown=True,
    empty=True,
    hint="EDN can express it",
)


def edn(history: History, *, renumber: bool, drop: frozenset[str]) -> tuple[Contents, WriteReport]:
    """Encode a history in EDN.

    Raises:
        HistoryError: EDN cannot express the history.
    """
    return _encode(history, _Texts(history, json=False), "edn", renumber=renumber, drop=drop)


def to_json(
    history: History, *, renumber: bool, drop: frozenset[str]
) -> tuple[Contents, WriteReport]:
    """Encode a history in JSON, with the same maps as in EDN but strings in place of keywords.

    Raises:
        HistoryError: JSON cannot express the history.
    """
    return _encode(history, _Texts(history, json=True), "jepsen-json", renumber=renumber, drop=drop)


def _encode(
    history: History, texts: _Texts, form: str, *, renumber: bool, drop: frozenset[str]
) -> tuple[Contents, WriteReport]:
    from isolang import _native

    columns = history.columns
    part = outline(history, texts.target, drop)
    declarable = texts.declarable(part)
    _check_initial_rows(part, declarable)
    names = name_values(
        part,
        tau=c.NIL_ATOM,
        expressible=texts.expressible,
        tau_writable=True,
        renumber=renumber,
        declarable=declarable,
        declared=_keys_to_declare(history),
    )
    texts.check_keys(part)
    _check_indeterminate_reads(part, names)
    real_time = columns.has_time and "real-time" not in drop
    notes = [*part.notes, *_continued_session_notes(part, drop), *names.notes]
    timed = real_time and columns.has_operation_times and not columns.two_clocks
    initial = texts.initial_line(part, names.declared, timed=timed)
    declared = int(names.declared.sum())
    if declared:
        notes.append(f"the initial values of {quantity(declared, 'key')}, as :init")
    if (columns.txn_status == c.INITIAL).any() and not declared:
        notes.append("left out: the declared initial transaction: what it wrote is nil here")
    if (columns.has_time or columns.has_operation_times) and "real-time" in drop:
        notes.append("left out: real time")

    def write(sink: Sink) -> None:
        if initial:
            sink(initial.encode())
        overlap = _native.write_jepsen(
            columns,
            part.txns,
            part.start,
            part.ops,
            names.of,
            texts.json,
            "real-time" not in drop,
            real_time,
            _process_of_sessions(part),
            texts.keys,
            texts.values,
            texts.groups(part),
            texts.versions(part),
            texts.names(columns.label_sets),
            texts.names(columns.level_sets),
            texts.statements(part),
            texts.units(part),
            sink,
        )
        if overlap is not None:
            later, earlier = overlap
            msg = (
                f"{history.where(later)}: {history.name_of(later)} does not begin after "
                f"{history.name_of(earlier)} of the same session ended, but a process in "
                f"{part.target} does one thing at a time; drop real-time"
            )
            raise HistoryError(msg)

    report = WriteReport(
        format=form,
        transactions=len(part.txns),
        operations=len(part.ops) + declared,
        notes=tuple(notes),
    )
    return write, report


def _keys_to_declare(history: History) -> NDArray[np.bool_]:
    """Return a mask of the keys whose initial values must be declared in the file.

    For all other keys, nil can stand for the initial value.

    These are the keys written by the initial transaction, the keys whose initial value replaces
    nil, and the keys with versions, because one version must not have two values. In a history with
    rows, all keys must be declared, because a predicate may match initial values, and because nil
    also means a deleted row.
    """
    columns = history.columns
    found = c.initial_alone(columns)
    of_initial = np.repeat(columns.txn_status == c.INITIAL, np.diff(columns.op_start))
    found[columns.op_key[of_initial & (columns.op_kind == c.WRITE)]] = True
    if columns.has_versions:
        found[columns.op_key[columns.op_version != c.NO_VERSION]] = True
    deletes = (columns.op_kind == c.WRITE) & (columns.op_value == columns.deleted)
    return found | bool(len(columns.statement_txn) or deletes.any())


def _check_initial_rows(part: Outline, declarable: NDArray[np.bool_]) -> None:
    """Check that the format can declare all rows that existed in the initial state.

    Without a declaration, predicate reads would ignore such a row, and nil would mean both the row
    and its deletion.
    """
    history, columns = part.history, part.history.columns
    rows = np.ones(columns.n_keys(), dtype=bool)
    rows[np.isin(columns.initial_value, (c.NIL_ATOM, columns.deleted))] = False
    rows[columns.op_key[np.isin(columns.op_kind, (c.APPEND, c.READ_LIST))]] = False
    deletes = (columns.op_kind == c.WRITE) & (columns.op_value == columns.deleted)
    needed = np.full(len(rows), bool(len(columns.statement_txn)))
    needed[columns.op_key[deletes]] = True
    missing = np.flatnonzero(rows & needed & ~declarable)
    if len(missing):
        key = int(missing[0])
        kind, payload = columns.value(int(columns.initial_value[key]))
        msg = (
            f"{history.name}: the row {atom_text(kind, payload)} of {history.key(key)}, which was "
            f"there at first, cannot be expressed in {part.target}"
        )
        raise HistoryError(msg)


class _Texts:
    """Makes the texts of non-numeric atoms, and checks each text by reading it back.

    Attributes:
        json: whether the texts are in JSON rather than EDN.
    """

    def __init__(self, history: History, *, json: bool) -> None:
        self.json = json
        self.target = _JSON if json else _EDN
        self.keys: dict[int, str] = {}
        self.values: dict[int, str] = {}
        self._columns = history.columns

    def expressible(self, atoms: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return, for each atom, whether the format can express it.

        The texts of non-numeric atoms are cached.
        """
        kinds = self._columns.value_kinds()[atoms]
        fits = np.isin(kinds, (NIL, INTEGER, NATURAL))
        for i in np.flatnonzero(~fits).tolist():
            atom = int(atoms[i])
            if atom == self._columns.deleted:  # a delete is written as an operation, not as a value
                fits[i] = True
                continue
            text = self._text(self._columns.value(atom))
            fits[i] = text is not None
            self.values[atom] = text or ""
        return fits

    def check_keys(self, part: Outline) -> None:
        """Make and cache the texts of the keys to write."""
        keys = np.unique(self._columns.op_key[part.ops])
        kinds = self._columns.key_kinds()[self._columns.key_atom[keys]]
        for key in keys[~np.isin(kinds, (NIL, INTEGER, NATURAL))].tolist():
            text = self._text(self._columns.key(key), key=True)
            if text is None:
                history = part.history
                msg = (
                    f"{history.name}: the key {history.key(key)} cannot be expressed in "
                    f"{part.target}"
                )
                raise HistoryError(msg)
            self.keys[int(self._columns.key_atom[key])] = text

    def declarable(self, part: Outline) -> NDArray[np.bool_]:
        """Return, for each key, whether the format can declare its initial value.

        In the format, a declared value replaces nil. Therefore a key is not declarable if nil also
        names its initial value and some operation reads nil.
        """
        columns = self._columns
        found = np.ones(columns.n_keys(), dtype=bool)
        found[np.isin(columns.initial_value, (c.NIL_ATOM, columns.deleted))] = False
        found[columns.op_key[np.isin(columns.op_kind, (c.APPEND, c.READ_LIST))]] = False
        kind, value = columns.op_kind[part.ops], columns.op_value[part.ops]
        empty = np.bincount(
            np.searchsorted(
                columns.list_start, np.flatnonzero(columns.list_values == c.NIL_ATOM), side="right"
            )
            - 1,
            minlength=len(columns.list_start),
        ).astype(bool)
        nil = (kind == c.READ) & (value == c.NIL_ATOM)
        sets = np.isin(kind, c.SET_READS) & (value != c.UNKNOWN_VALUE)
        nil[sets] = empty[value[sets]]
        found[columns.op_key[part.ops][nil]] &= c.initial_alone(columns)[
            columns.op_key[part.ops][nil]
        ]
        keys = np.flatnonzero(found).tolist()
        found[:] = False
        found[self._keys_read_back(keys)] = True
        return found

    def _keys_read_back(self, keys: list[int]) -> list[int]:
        """Return the keys whose initial values are read back unchanged from a declaration."""
        from isolang import _native

        if not keys:
            return []
        try:
            back, _ = _native.read_edn(self._declaration_line(keys, "").encode())
            same = [back.key(k) for k in back.op_key.tolist()] == [
                self._columns.key(k) for k in keys
            ] and [back.value(v) for v in back.op_value.tolist()] == [
                self._columns.value(int(self._columns.initial_value[k])) for k in keys
            ]
        except (_native.ReadError, _native.UnsupportedInput):
            same = False
        if same:
            return keys
        half = len(keys) // 2
        return (
            [*self._keys_read_back(keys[:half]), *self._keys_read_back(keys[half:])] if half else []
        )

    def initial_line(self, part: Outline, declared: NDArray[np.bool_], *, timed: bool) -> str:
        """Return the line that declares the initial values; empty if there are none.

        The line precedes all transaction lines, whose indices begin at 1, and uses its own process.
        """
        columns, keys = self._columns, np.flatnonzero(declared).tolist()
        if not keys:
            return ""
        texts = {"process": str(max(_process_of_sessions(part), default=-1) + 1)}
        if timed:
            begins = columns.txn_begin[part.txns]
            known = begins[begins != c.UNKNOWN_BEGIN]
            texts["time"] = str(int(known.min())) if len(known) else "0"
        versions = {}
        if columns.has_versions:
            for txn in np.flatnonzero(columns.txn_status == c.INITIAL).tolist():
                for op in part.history.operations_of(txn):
                    if columns.op_kind[op] == c.WRITE and columns.op_ok[op]:
                        versions[int(columns.op_key[op])] = int(columns.op_version[op])
        stated = [versions.get(key, c.NO_VERSION) for key in keys]
        more = ""
        if any(version != c.NO_VERSION for version in stated):
            between = "," if self.json else " "
            nil = "null" if self.json else "nil"
            shown = between.join(
                nil if one == c.NO_VERSION else self._unchecked_text(columns.version(one))
                for one in stated
            )
            more = f',"versions":[{shown}]' if self.json else f", :versions [{shown}]"
        return self._declaration_line(keys, more, **texts)

    def _declaration_line(
        self, keys: list[int], more: str, process: str = "0", time: str = ""
    ) -> str:
        """Return a line that declares the initial values of some keys."""
        columns = self._columns
        rows = [
            (
                self._unchecked_text(columns.key(k)),
                self._unchecked_text(columns.value(int(columns.initial_value[k]))),
            )
            for k in keys
        ]
        if self.json:
            at = f'"time":{time},' if time else ""
            shown = ",".join(f"{key}:{value}" for key, value in rows)
            return (
                f'{{"index":0,"type":"ok","process":{process},{at}"f":"init",'
                f'"value":{{{shown}}}{more}}}\n'
            )
        at = f":time {time}, " if time else ""
        shown = ", ".join(f"{key} {value}" for key, value in rows)
        return (
            f"{{:index 0, :type :ok, :process {process}, {at}:f :init, :value {{{shown}}}{more}}}\n"
        )

    def _unchecked_text(self, atom: tuple[int, object]) -> str:
        """Return the text of a key, a value or a version.

        The reader may interpret the text as a different value.
        """
        kind, payload = atom
        if not self.json:
            return atom_text(kind, payload)
        return json.dumps(payload) if kind == STRING else str(payload)

    def versions(self, part: Outline) -> dict[int, str]:
        """Return the texts of all versions that are not numbers."""
        columns, texts = self._columns, dict[int, str]()
        if not columns.has_versions or columns.versions_ordered:
            return texts
        stated = np.unique(columns.op_version[part.ops])
        for version in stated[stated != c.NO_VERSION].tolist():
            kind, payload = columns.version(version)
            if kind in (INTEGER, NATURAL):
                continue
            text = self._text((kind, payload))
            if text is None:
                message = (
                    f"the version {atom_text(kind, payload)} cannot be expressed in {part.target}"
                )
                msg = f"{part.history.name}: {message}"
                raise HistoryError(msg)
            texts[version] = text
        return texts

    def groups(self, part: Outline) -> dict[int, str]:
        """Return the texts of groups, by group number."""
        columns, texts = self._columns, dict[int, str]()
        groups = np.unique(columns.txn_group[part.txns]) if columns.has_groups else np.zeros(0)
        for group in groups[groups != c.NIL_ATOM].tolist():
            text = self._text(columns.group(group))
            if text is None:
                txn = int(np.flatnonzero(columns.txn_group == group)[0])
                msg = (
                    f"{part.history.name}: the group {part.history.group_of(txn)} cannot be "
                    f"expressed in {part.target}"
                )
                raise HistoryError(msg)
            texts[group] = text
        return texts

    def names(self, sets: Sequence[tuple[str, ...]]) -> list[str]:
        """Return each set of labels or levels as text."""
        between = "," if self.json else " "

        def text(names: tuple[str, ...]) -> str:
            texts = [json.dumps(n) if self.json else atom_text(STRING, n) for n in names]
            return texts[0] if len(texts) == 1 else f"[{between.join(texts)}]"

        return [text(names) for names in sets]

    def statements(self, part: Outline) -> list[str]:
        """Return each transaction's ``:statements`` field.

        The result is empty if the history has no statements.
        """
        if not part.history.has_statements():
            return []
        between = "," if self.json else " "
        return [
            between.join(f'"{one or ""}"' for one in part.history.statements_of(txn))
            for txn in part.txns.tolist()
        ]

    def units(self, part: Outline) -> list[str]:
        """Return each transaction's ``:unit`` as text; empty if the history has no units."""
        if not part.history.units():
            return []
        units = (part.history.unit_of(txn) for txn in part.txns.tolist())
        return [
            (json.dumps(unit) if self.json else atom_text(STRING, unit)) if unit else ""
            for unit in units
        ]

    def _text(self, atom: tuple[int, object], *, key: bool = False) -> str | None:
        """Return a text that is read back as the same key or value; ``None`` if there is none.

        For example, ``[:t 1]`` can name a row as a key, but as a value it would be read as a list.
        """
        from isolang import _native

        text = self._unchecked_text(atom)
        if not self.json:
            k, v = (text, "1") if key else ("1", text)
            line = f"{{:type :ok, :process 0, :value [[:w {k} {v}] [:r {k} {v}]]}}"
        else:
            k, v = (text, "1") if key else ("1", text)
            line = f'{{"type":"ok","process":0,"value":[["w",{k},{v}],["r",{k},{v}]]}}'
        try:
            back, _ = _native.read_edn(line.encode())
        except (_native.ReadError, _native.UnsupportedInput):
            return None
        same = back.op_kind.tolist() == [c.WRITE, c.READ] and back.n_keys() == 1
        if key:
            same = same and back.key(0) == atom
        else:
            same = same and all(back.value(v) == atom for v in back.op_value.tolist())
        return text if same else None


def _check_indeterminate_reads(part: Outline, names: Names) -> None:
    """Check that no indeterminate transaction reads the initial state.

    In ``:info`` maps, nil means an unknown result.
    """
    history = part.history
    sizes = np.diff(part.start)
    unknown = np.repeat(history.columns.txn_status[part.txns] == c.INDETERMINATE, sizes)
    found = np.flatnonzero(unknown & (names.of == INITIAL))
    if len(found):
        op = int(part.ops[found[0]])
        msg = (
            f"{history.where_op(op)}: {history.describe_op(op)}: a read of the initial state "
            f"by a transaction whose outcome is unknown cannot be expressed in {part.target} "
            "(where nil means that the result is unknown)"
        )
        raise HistoryError(msg)


def _continued_session_notes(part: Outline, drop: frozenset[str]) -> list[str]:
    """Return a note if there are sessions that continue after an indeterminate transaction.

    In the format, a process starts a new session after ``:info``.
    """
    history = part.history
    unknown = history.columns.txn_status[part.txns] == c.INDETERMINATE
    if not unknown.any():
        return []
    within = [s[i] for s in part.sessions() for i in np.flatnonzero(unknown[s[:-1]])]
    if not within:
        return []
    if "order-after-unknown" not in drop:
        first = int(part.txns[min(within)])
        msg = (
            f"{history.where(first)}: the session goes on after {history.name_of(first)}, whose "
            f"outcome is unknown, and a process in {part.target} goes on as a new session; "
            "drop order-after-unknown"
        )
        raise HistoryError(msg)
    return [f"left out: session order after {quantity(len(within), 'unknown outcome')}"]


def _process_of_sessions(part: Outline) -> list[int]:
    """Return the process of each session.

    The process is the session's number in the input if all sessions are numbered, and otherwise the
    session's index.
    """
    history = part.history
    session_of = history.columns.txn_session
    sessions = part.sessions()
    names = [history.session_name(int(session_of[part.txns[s[0]]])) for s in sessions]
    canonical = all(n.isdecimal() and str(int(n)) == n and len(n) < 19 for n in names)
    if history.session_names and canonical and len(set(names)) == len(names):
        return [int(n) for n in names]
    return list(range(len(names)))
