"""Writes Jepsen's operation maps in EDN or JSON, one per line, with sessions as processes.

If the history has real time, ``:invoke`` and ``:ok`` lines are in this order. Otherwise only
completions are written, because every order of invocations would claim a real-time order that the
history does not have.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.readers.reading import counted
from isolang.history.values import INTEGER, NATURAL, NIL, STRING, show
from isolang.history.writers.naming import INITIAL, Names, name_values
from isolang.history.writers.outline import FormatFeatures, Outline, outline
from isolang.history.writers.report import Contents, Sink, WriteReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from isolang.history.history import History

_EDN = FormatFeatures(
    name="EDN",
    lists=True,
    rows=True,
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
    """Encode a history in JSON, with the same maps as in EDN, but strings in place of keywords.

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
    names = name_values(
        part, tau=c.NIL_ATOM, expressible=texts.expressible, tau_writable=True, renumber=renumber
    )
    texts.check_keys(part)
    _check_indeterminate_reads(part, names)
    real_time = columns.has_time and "real-time" not in drop
    notes = [*part.notes, *_after_unknown(part, drop), *names.notes]
    if (columns.has_time or columns.has_operation_times) and "real-time" in drop:
        notes.append("left out: real time")

    def write(sink: Sink) -> None:
        overlap = _native.write_jepsen(
            columns,
            part.txns,
            part.start,
            part.ops,
            names.of,
            texts.json,
            "real-time" not in drop,
            real_time,
            _processes(part),
            texts.keys,
            texts.values,
            texts.groups(part),
            texts.versions(part),
            texts.names(columns.label_sets),
            texts.names(columns.level_sets),
            texts.statements(part),
            sink,
        )
        if overlap is not None:
            later, earlier = overlap
            msg = (
                f"{history.where(later)}: {history.name_of(later)} does not begin after "
                f"{history.name_of(earlier)} of the same session ended, and a "
                f"process in {part.target} does one thing at a time; drop real-time"
            )
            raise HistoryError(msg)

    report = WriteReport(
        format=form,
        transactions=len(part.txns),
        operations=len(part.ops),
        notes=tuple(notes),
    )
    return write, report


class _Texts:
    """Makes the texts of atoms that are not numbers, and checks each text by reading it back.

    Attributes:
        json: whether the texts are in JSON instead of EDN.
        keys: the texts of keys, by atom.
        values: the texts of values, by atom.
    """

    def __init__(self, history: History, *, json: bool) -> None:
        self.json = json
        self.target = _JSON if json else _EDN
        self.keys: dict[int, str] = {}
        self.values: dict[int, str] = {}
        self._columns = history.columns

    def expressible(self, atoms: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return, for each atom, whether the format can express it.

        The texts of atoms that are not numbers are cached.
        """
        import numpy as np

        kinds = self._columns.value_kinds()[atoms]
        fits = np.isin(kinds, (NIL, INTEGER, NATURAL))
        for i in np.flatnonzero(~fits).tolist():
            atom = int(atoms[i])
            if atom == self._columns.deleted:  # a delete is written as an operation, not a value
                fits[i] = True
                continue
            text = self._text(self._columns.value(atom))
            fits[i] = text is not None
            self.values[atom] = text or ""
        return fits

    def check_keys(self, part: Outline) -> None:
        """Make and cache the texts of the keys to write.

        Raises:
            HistoryError: the format cannot express a key.
        """
        import numpy as np

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

    def versions(self, part: Outline) -> dict[int, str]:
        """Return the texts of versions that are not numbers.

        Raises:
            HistoryError: the format cannot express a version.
        """
        import numpy as np

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
                message = f"the version {show(kind, payload)} cannot be expressed in {part.target}"
                msg = f"{part.history.name}: {message}"
                raise HistoryError(msg)
            texts[version] = text
        return texts

    def groups(self, part: Outline) -> dict[int, str]:
        """Return the texts of groups by their numbers.

        Raises:
            HistoryError: the format cannot express a group.
        """
        import numpy as np

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
        """Return the text of each set of labels or levels."""
        between = "," if self.json else " "

        def text(names: tuple[str, ...]) -> str:
            texts = [json.dumps(n) if self.json else show(STRING, n) for n in names]
            return texts[0] if len(texts) == 1 else f"[{between.join(texts)}]"

        return [text(names) for names in sets]

    def statements(self, part: Outline) -> list[str]:
        """Return the statements of each transaction's operations; empty if none are known."""
        if not part.history.has_statements():
            return []
        between = "," if self.json else " "
        return [
            between.join(f'"{one or ""}"' for one in part.history.statements_of(txn))
            for txn in part.txns.tolist()
        ]

    def _text(self, atom: tuple[int, object], *, key: bool = False) -> str | None:
        """Return a text that the reader reads as the same key or value; ``None`` if none exists.

        For example, the row ``[:t 1]`` can be a key. As a value, it would be read as a list.
        """
        from isolang import _native

        kind, payload = atom
        if not self.json:
            text = show(kind, payload)
            k, v = (text, "1") if key else ("1", text)
            line = f"{{:type :ok, :process 0, :value [[:w {k} {v}] [:r {k} {v}]]}}"
        else:
            text = json.dumps(payload) if kind == STRING else str(payload)
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
    """Require that no indeterminate transaction reads the initial state.

    In ``:info`` maps, nil means an unknown result.

    Raises:
        HistoryError: an indeterminate transaction reads the initial state.
    """
    import numpy as np

    history = part.history
    sizes = np.diff(part.start)
    unknown = np.repeat(history.columns.txn_status[part.txns] == c.INDETERMINATE, sizes)
    found = np.flatnonzero(unknown & (names.of == INITIAL))
    if len(found):
        op = int(part.ops[found[0]])
        msg = (
            f"{history.where_op(op)}: {history.describe_op(op)}: a read of the initial "
            "state by a transaction whose outcome is unknown cannot be expressed in "
            f"{part.target} (there nil means that the result is not known)"
        )
        raise HistoryError(msg)


def _after_unknown(part: Outline, drop: frozenset[str]) -> list[str]:
    """Return a note on sessions that continue after ``:info``, where the format starts a new one.

    Raises:
        HistoryError: such sessions exist, and the user has not allowed to drop their order.
    """
    import numpy as np

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
    return [f"left out: session order after {counted(len(within), 'unknown outcome')}"]


def _processes(part: Outline) -> list[int]:
    """Return the process of each session.

    It is the number of the session in the input if all sessions have numbers, otherwise its index.
    """
    history = part.history
    session_of = history.columns.txn_session
    sessions = part.sessions()
    names = [history.session_name(int(session_of[part.txns[s[0]]])) for s in sessions]
    canonical = all(n.isdecimal() and str(int(n)) == n and len(n) < 19 for n in names)
    if history.session_names and canonical and len(set(names)) == len(names):
        return [int(n) for n in names]
    return list(range(len(names)))
