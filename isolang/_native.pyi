"""Types of the native core. Each part of the package appends the section it needs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

# --- faults ---

def arm_faults(allocation: int = 0, poll: int = 0) -> None: ...
def disarm_faults() -> tuple[int, int]: ...

# --- history ---

def reserve_heap_in_large_pages(size: int) -> None: ...
def trim_heap() -> None: ...

class Columns:
    """The columns of a history, see ``native/core/history.hpp``. Views are read-only.

    A view is valid as long as no transaction or operation is added.
    """

    has_time: bool
    def __init__(self) -> None: ...
    def transactions(self) -> int: ...
    def operations(self) -> int: ...
    def n_keys(self) -> int: ...
    def n_values(self) -> int: ...
    def key_kinds(self) -> NDArray[np.uint8]: ...
    def key_numbers(self) -> NDArray[np.int64]: ...
    def value_kinds(self) -> NDArray[np.uint8]: ...
    def value_numbers(self) -> NDArray[np.int64]: ...
    @property
    def sessions(self) -> int: ...
    @property
    def txn_session(self) -> NDArray[np.int32]: ...
    @property
    def txn_status(self) -> NDArray[np.uint8]: ...
    @property
    def txn_begin(self) -> NDArray[np.int64]: ...
    @property
    def txn_end(self) -> NDArray[np.int64]: ...
    @property
    def txn_number(self) -> NDArray[np.int64]: ...
    @property
    def txn_position(self) -> NDArray[np.int64]: ...
    @property
    def txn_file(self) -> NDArray[np.int32]: ...
    @property
    def txn_group(self) -> NDArray[np.int32]: ...
    @property
    def has_groups(self) -> bool: ...
    versions_ordered: bool
    @property
    def has_versions(self) -> bool: ...
    @property
    def op_version(self) -> NDArray[np.int32]: ...
    def version(self, version: int) -> tuple[int, int | str | None]: ...
    def set_version(self, op: int, kind: int, payload: object) -> None: ...
    def name_sources(self) -> None: ...
    def without_versions(self) -> Columns: ...
    @property
    def txn_labels(self) -> NDArray[np.int32]: ...
    @property
    def txn_levels(self) -> NDArray[np.int32]: ...
    @property
    def label_sets(self) -> list[tuple[str, ...]]: ...
    @property
    def level_sets(self) -> list[tuple[str, ...]]: ...
    def set_labels(self, txn: int, names: Sequence[str]) -> None: ...
    def set_level(self, txn: int, name: str) -> None: ...
    @property
    def op_start(self) -> NDArray[np.int64]: ...
    @property
    def op_kind(self) -> NDArray[np.uint8]: ...
    @property
    def op_ok(self) -> NDArray[np.uint8]: ...
    @property
    def op_key(self) -> NDArray[np.int32]: ...
    @property
    def op_value(self) -> NDArray[np.int32]: ...
    @property
    def op_source(self) -> NDArray[np.int64]: ...
    @property
    def op_position(self) -> NDArray[np.int64]: ...
    @property
    def op_begin(self) -> NDArray[np.int64]: ...
    @property
    def op_end(self) -> NDArray[np.int64]: ...
    @property
    def commit_begin(self) -> NDArray[np.int64]: ...
    @property
    def commit_end(self) -> NDArray[np.int64]: ...
    @property
    def slack(self) -> NDArray[np.int64]: ...
    @property
    def has_operation_times(self) -> bool: ...
    @property
    def list_start(self) -> NDArray[np.int64]: ...
    @property
    def list_values(self) -> NDArray[np.int32]: ...
    @property
    def statement_start(self) -> NDArray[np.int64]: ...
    @property
    def statement_end(self) -> NDArray[np.int64]: ...
    @property
    def statement_txn(self) -> NDArray[np.int32]: ...
    @property
    def statement_predicate(self) -> NDArray[np.int32]: ...
    @property
    def statement_known(self) -> NDArray[np.uint8]: ...
    @property
    def statement_position(self) -> NDArray[np.int64]: ...
    @property
    def statement_sent(self) -> NDArray[np.int64]: ...
    @property
    def statement_answered(self) -> NDArray[np.int64]: ...
    @property
    def predicates(self) -> list[str]: ...
    @property
    def deleted(self) -> int: ...
    @property
    def key_atom(self) -> NDArray[np.int32]: ...
    @property
    def initial_value(self) -> NDArray[np.int32]: ...
    @property
    def initial_alone(self) -> NDArray[np.uint8]: ...
    def key(self, key: int) -> tuple[int, Any]: ...
    def value(self, atom: int) -> tuple[int, Any]: ...
    def group(self, atom: int) -> tuple[int, Any]: ...
    def intern_value(self, kind: int, payload: object) -> int: ...
    def intern_key(self, kind: int, payload: object, initial: int = 0) -> int: ...
    def begin_transaction(
        self,
        session: int,
        status: int,
        number: int,
        position: int,
        file: int = 0,
        begin: int = ...,
        end: int = ...,
    ) -> int: ...
    def add_op(
        self,
        kind: int,
        key: int,
        value: int,
        position: int,
        ok: bool = True,
        source: int = -1,
    ) -> None: ...
    def deleted_atom(self) -> int: ...
    def begin_statement(self, predicate: str, position: int, known: bool = True) -> None: ...
    def end_statement(self) -> None: ...
    @property
    def implicit(self) -> bool: ...
    def lower_predicates(self) -> None: ...
    def implied(self) -> Columns | None: ...
    def written_out(self) -> Columns: ...
    def with_set_reads(self, missed: NDArray[np.int32]) -> Columns: ...
    def missed_by(self, statements: NDArray[np.int32], most: int) -> NDArray[np.int32]: ...
    def contradicted(
        self, commits: NDArray[np.int32], seen: NDArray[np.int64]
    ) -> NDArray[np.int32]: ...
    def forget_statements(self, txn: int) -> None: ...
    def add_list(self, atoms: list[int]) -> int: ...
    def set_operation_times(self, op: int, begin: int, end: int) -> None: ...
    def set_statement_times(self, s: int, begin: int, end: int) -> None: ...
    def set_commit_times(self, txn: int, begin: int, end: int) -> None: ...
    def set_group(self, txn: int, kind: int, payload: object) -> None: ...
    def widened(self, earlier: list[int], later: list[int]) -> Columns: ...
    def set_source(self, op: int, source: int) -> None: ...
    def set_value(self, op: int, value: int) -> None: ...
    def set_status(self, txn: int, status: int) -> None: ...
    def split_sessions_by_key(self) -> list[int]: ...
    def set_initial_value(self, key: int, value: int, alone: bool = False) -> None: ...
    def begin_list_with(self, key: int, atoms: list[int]) -> None: ...
    def take_unwritten_for_initial(self) -> tuple[int, int, list[int]]: ...
    def __copy__(self) -> Columns: ...
    def append(
        self,
        other: Columns,
        transactions: NDArray[np.int32],
        sessions: NDArray[np.int32],
        in_flight: bool = False,
    ) -> None: ...
    def validate(self) -> None: ...
    def part(
        self, operations: NDArray[np.int64], transactions: NDArray[np.int32]
    ) -> tuple[Columns, list[int]]: ...

# --- readers ---

class ReadError(ValueError):
    """The input is not what its format says; the message is complete: ``line 12: …``."""

class UnsupportedInput(ValueError):  # noqa: N818
    """The input is well-formed, but holds what this version cannot judge."""

def read_in_large_pages(file: int, size: int) -> bytes: ...
def read_edn(
    data: Buffer, file_name: str = "", timeout: float = 0.0
) -> tuple[Columns, dict[str, Any]]: ...
def follow_edn(
    data: Buffer, file_name: str, before: dict[str, Any], timeout: float = 0.0
) -> tuple[Columns, dict[str, Any], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def read_registers(
    data: Buffer, file_name: str = "", failed_cas: str = "auto", timeout: float = 0.0
) -> tuple[Columns, dict[str, Any]]: ...
def read_bincode(
    data: Buffer, file_name: str = "", timeout: float = 0.0
) -> tuple[Columns, dict[str, Any]]: ...
def read_dbcop_json(
    data: Buffer, file_name: str = "", timeout: float = 0.0
) -> tuple[Columns, dict[str, Any]]: ...
def read_hist(
    data: Buffer, file_name: str = "", timeout: float = 0.0
) -> tuple[Columns, dict[str, Any]]: ...
def read_plume(
    data: Buffer, file_name: str = "", timeout: float = 0.0
) -> tuple[Columns, dict[str, Any]]: ...
def read_awdit(
    data: Buffer, file_name: str = "", timeout: float = 0.0
) -> tuple[Columns, dict[str, Any]]: ...
def read_cobra(
    files: Sequence[tuple[str, Buffer]], timestamps: bool = False, timeout: float = 0.0
) -> tuple[Columns, dict[str, Any]]: ...
def read_viper(
    files: Sequence[tuple[str, Buffer]], timeout: float = 0.0
) -> tuple[Columns, dict[str, Any]]: ...

# --- writers ---

def write_bincode(
    columns: Columns,
    txns: NDArray[np.int32],
    start: NDArray[np.int64],
    ops: NDArray[np.int64],
    keys: NDArray[np.uint64],
    values: NDArray[np.uint64],
    write: Callable[[bytes], object],
) -> None: ...
def write_plume(
    columns: Columns,
    txns: NDArray[np.int32],
    start: NDArray[np.int64],
    ops: NDArray[np.int64],
    keys: NDArray[np.uint64],
    values: NDArray[np.uint64],
    write: Callable[[bytes], object],
) -> None: ...
def write_jepsen(
    columns: Columns,
    txns: NDArray[np.int32],
    start: NDArray[np.int64],
    ops: NDArray[np.int64],
    names: NDArray[np.int64],
    json: bool,
    real_time: bool,
    processes: Sequence[int],
    keys: Mapping[int, str],
    values: Mapping[int, str],
    groups: Mapping[int, str],
    versions: Mapping[int, str],
    labels: Sequence[str],
    levels: Sequence[str],
    write: Callable[[bytes], object],
) -> tuple[int, int] | None: ...

# --- watch ---

WATCH_NOTHING: str

class LastValues:
    """What the cuts of a stream have left, see ``native/watch/last_values.hpp``."""

    keep_removed: bool
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def memory(self) -> int: ...
    def left_by(
        self, part: Columns, order_start: NDArray[np.int64], order_txn: NDArray[np.int32]
    ) -> bytes: ...
    def replace(self, change: bytes) -> bytes: ...
    def all(self) -> bytes: ...
    def take_all(self) -> list[tuple[bytes, bytes]]: ...
    def missing(self, columns: Columns) -> list[bytes]: ...
    def open_window(self, columns: Columns) -> tuple[Columns, NDArray[np.int32]]: ...

def cut_window(
    window: Columns,
    source: NDArray[np.int32],
    order_start: NDArray[np.int64],
    order_txn: NDArray[np.int32],
    open: NDArray[np.uint8],  # noqa: A002
    in_flight: NDArray[np.uint8],
    young: NDArray[np.uint8],
    timed: bool,
    real_time: bool,
    clock_error: int,
) -> NDArray[np.int32]: ...
def restrict_witness(
    window: Columns,
    source: NDArray[np.int32],
    order_start: NDArray[np.int64],
    order_txn: NDArray[np.int32],
    going: NDArray[np.int32],
    part: Columns,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]: ...

# --- recording ---

def recorded_line(
    index: int,
    kind: str,
    process: int,
    when: int,
    began: int,
    operations: Sequence[tuple[str, Any, Any]],
    planned: bool,
    times: list[int],
    commit: tuple[int, ...],
    spell: Callable[[Any], str],
) -> bytes: ...

# --- engine ---

class OutOfTime(TimeoutError): ...  # noqa: N818 - as the core calls it
class OutOfMemory(MemoryError): ...  # noqa: N818 - as the core calls it

def solve(
    columns: Columns,
    problem: Problem,
    automata: Sequence[object],
    seconds: float = ...,
    seed: int = ...,
    max_clock_bytes: int = ...,
    progress: Callable[[str], object] | None = ...,
    presolve: bool = ...,
    strategy: str = ...,
    max_search_bytes: int = ...,
    threads: int = ...,
    work: int = ...,
) -> dict[str, Any]: ...
def load(problem: Problem) -> float: ...
def strategies() -> list[str]: ...

class AcyclicSolver:
    """Clauses, and guarded edges that must not form a cycle; literals as in DIMACS.

    Variables count from 1; ``-v`` is the negation of ``v``. Clauses and edges may be added between
    two calls of ``solve``.
    """

    def __init__(self, nodes: int, seed: int = 0) -> None: ...
    def new_variables(self, count: int, phase: bool = False, group: int = 0) -> int:
        """Make variables that are first tried as ``phase``; returns the number of the first.

        Those of lower groups are decided first.
        """

    def add_clauses(self, literals: NDArray[np.int32]) -> None:
        """Add clauses, each ended by 0."""

    def add_edges(self, rows: NDArray[np.int32]) -> None:
        """Add rows ``(from, to, literal)``: there iff the literal is true; always if it is 0."""

    def solve(
        self,
        seconds: float = 0.0,
        max_conflicts: int = ...,
        assumptions: Sequence[int] = ...,
        progress: Callable[[str], object] | None = None,
    ) -> bool | None:
        """Whether there is a model; ``None`` after ``max_conflicts``. Raises ``OutOfTime``."""

    def model(self) -> NDArray[np.int8]:
        """0 or 1 by variable number (entry 0 is unused), of the last call that found one."""

    def core(self) -> list[int]:
        """Of the last call that found none: assumptions that clash; empty if none is needed."""

    def statistics(self) -> dict[str, int]: ...

def operation_sources(
    columns: Columns, problem: Problem, source: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Per operation the transaction that it reads from, or -1; ``source``: per read a writer."""

def commit_order(
    problem: Problem,
    source: NDArray[np.int32],
    order_start: NDArray[np.int64],
    order_txn: NDArray[np.int32],
    *,
    so: bool,
    rt: bool,
    serial: bool,
    versions_only: bool = False,
    seconds: float = 0.0,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]] | None:
    """An order of what is included, per transaction how many its reads see, version orders."""

# --- known ---

class KnownGraph:
    """The edges that a history shows by itself, between transactions from low to before high.

    After ``effort`` reads the rest is left out.
    """

    def __init__(self, problem: Problem, low: int, high: int, effort: int) -> None: ...
    def short_cycles(
        self,
        back: frozenset[str],
        closing: frozenset[str],
        longest: int,
        most: int,
        effort: int,
    ) -> tuple[list[tuple[list[tuple[str, int, int, int, int, int, tuple[int, ...]]], int]], bool]:
        """Cycles with their components, and whether these are all.

        An edge is relation, ends, key, read, writer read from, and the reads that show its order.
        """

# --- pruning ---

def prune(
    columns: Columns,
    problem: Problem,
    automata: Sequence[object],
    seconds: float = ...,
    max_clock_bytes: int = ...,
    progress: Callable[[str], object] | None = ...,
) -> dict[str, Any]: ...

# --- problem ---

def reduced_edges(nodes: int, edges: NDArray[np.int32], seconds: float = ...) -> NDArray[np.int32]:
    """The edges of a graph without most that two others replace; all of one with a cycle."""

class NotExpressible(ValueError):  # noqa: N818 - as the core calls it
    """A well-formed history that the neutral problem cannot express; the message is complete."""

class Problem:
    """The neutral problem of one history, see ``native/core/problem.hpp``. Views are read-only.

    ``anomalies`` and ``impossible_reason`` have five columns: kind, transaction, operation, other
    transaction, other operation.
    """

    @property
    def n(self) -> int: ...
    @property
    def sessions(self) -> int: ...
    @property
    def keys(self) -> int: ...
    @property
    def has_time(self) -> bool: ...
    @property
    def ignored_failed_ops(self) -> int: ...
    @property
    def ignored_unknown_reads(self) -> int: ...
    @property
    def inclusion(self) -> NDArray[np.uint8]: ...
    @property
    def unfinished(self) -> NDArray[np.uint8]: ...
    @property
    def session(self) -> NDArray[np.int32]: ...
    @property
    def group(self) -> NDArray[np.int32]: ...
    @property
    def begin(self) -> NDArray[np.int64]: ...
    @property
    def end(self) -> NDArray[np.int64]: ...
    @property
    def key_start(self) -> NDArray[np.int32]: ...
    @property
    def first_answer(self) -> NDArray[np.int64]: ...
    @property
    def commit_begin(self) -> NDArray[np.int64]: ...
    @property
    def commit_end(self) -> NDArray[np.int64]: ...
    @property
    def slack(self) -> NDArray[np.int64]: ...
    @property
    def write_answer(self) -> NDArray[np.int64]: ...
    @property
    def writer_txn(self) -> NDArray[np.int32]: ...
    @property
    def writer_value(self) -> NDArray[np.int32]: ...
    @property
    def writer_op(self) -> NDArray[np.int64]: ...
    @property
    def read_txn(self) -> NDArray[np.int32]: ...
    @property
    def read_key(self) -> NDArray[np.int32]: ...
    @property
    def read_op(self) -> NDArray[np.int64]: ...
    @property
    def read_predicate(self) -> NDArray[np.uint8]: ...
    @property
    def candidate_start(self) -> NDArray[np.int64]: ...
    @property
    def candidate(self) -> NDArray[np.int32]: ...
    @property
    def vo_before(self) -> NDArray[np.int32]: ...
    @property
    def vo_after(self) -> NDArray[np.int32]: ...
    @property
    def vo_op(self) -> NDArray[np.int64]: ...
    @property
    def impossible(self) -> NDArray[np.int32]: ...
    @property
    def anomalies(self) -> NDArray[np.int64]: ...
    @property
    def refusal(self) -> str: ...
    @property
    def impossible_reason(self) -> NDArray[np.int64]: ...

def build_problem(
    columns: Columns, *, unread: bool = False, each_read: bool = False
) -> Problem: ...
def fits_one_total_order(problem: Problem, *, sessions: bool, real_time: bool) -> bool: ...

# --- certify ---

def verify_witness(
    columns: Columns,
    checks: Sequence[tuple[str, str, str, Sequence[tuple[str, Sequence[str], bool]]]],
    source: NDArray[np.int32],
    order_start: NDArray[np.int64],
    order_txn: NDArray[np.int32],
    commits: NDArray[np.int32] | None = None,
    seen: NDArray[np.int64] | None = None,
    seconds: float = 0.0,
) -> str: ...
def verify_refutation(
    columns: Columns,
    checks: Sequence[tuple[str, str, str, Sequence[tuple[str, Sequence[str], bool]]]],
    steps: list[tuple[Any, ...]],
    seconds: float = 0.0,
) -> str: ...

# --- simulator ---

class WorkloadOptions:
    """What to simulate, see ``native/simulator/workload.hpp``."""

    sessions: int
    transactions: int
    operations: int
    read_share: float
    keys: int
    theta: float
    hot_keys: float
    hot_share: float
    values: int
    value_theta: float
    read_modify_write: float
    mini: bool
    lists: bool
    appends: int
    info_rate: float
    abort_rate: float
    session_each: bool
    lag: int
    replicas: int
    seed: int
    def __init__(self) -> None: ...
    def set_mechanism(
        self, reads: str, exclusive: bool = False, stale: bool = False, causal: bool = False
    ) -> None: ...
    def set_key_distribution(self, name: str) -> None: ...
    def add_plant(
        self,
        transactions: Sequence[tuple[int, bool, Sequence[tuple[bool, int, int]]]],
        concurrent: bool,
        clock_ahead: bool,
        at: float,
    ) -> None: ...

def simulate(options: WorkloadOptions, seconds: float = 0.0) -> tuple[Columns, list[list[int]]]: ...
