"""Declares the options for runs and litmus tests, each of them once."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import field

from isolang.declared import COUNT, NUMBER, SEED, SHARE, About, CheckedOptions
from isolang.options import LIMITS, LONGEST

DATABASE: Final = "The database"
"""The help panel that lists the options about the database."""
SIZE: Final = "Size"
"""The help panel that lists the options about the size of a run."""

RandomSeed: TypeAlias = Annotated[int, About("Of all random choices.", "N", bounds=SEED)]
TablePrefix: TypeAlias = Annotated[
    str, About("Names of tables begin so.", "NAME", DATABASE, "--table-prefix")
]
Distribution: TypeAlias = Literal["uniform", "zipfian", "hotspot", "exponential"]
Access: TypeAlias = Literal["index", "scan", "any"]
"""How statements find rows: by the primary key; by a column that has no index; or each read by one
of several ways, in tables with several indexes."""

Update: TypeAlias = Literal["update", "row", "upsert", "insert", "any"]
"""How statements write rows: by UPDATE of the value; by UPDATE of all columns, the key included; by
the dialect's INSERT that updates existing rows; by UPDATE, followed by INSERT if the row does not
exist; or each write in one of these forms."""


class Shape(CheckedOptions, frozen=True, kw_only=True):
    """The sizes of a workload; the workload chooses those that are ``None``.

    Attributes:
        keys: the number of keys, pairs, accounts or users, whichever the workload counts.
        distribution: of the chosen keys: ``uniform``; ``zipfian`` with ``theta``; ``hotspot``: 80
            % of the operations on 20 % of the keys; ``exponential``: 95 % on the first 6/7.
        theta: the exponent of ``zipfian``.
        span: the number of transactions that commit while a long one is open.
    """

    keys: Annotated[int | None, About("Of the workload.", "N", SIZE, bounds=COUNT)] = None
    operations: Annotated[int | None, About("Of a transaction.", "N", SIZE, bounds=COUNT)] = None
    reads: Annotated[float | None, About("The share of reads.", "P", SIZE, bounds=SHARE)] = None
    distribution: Annotated[Distribution | None, About("How keys are chosen.", "", SIZE)] = None
    theta: float = 0.99
    rotate: Annotated[
        int,
        About("After N transactions of a client other keys are hot.", "N", SIZE, bounds=NUMBER),
    ] = 0
    long: Annotated[
        float | None,
        About("Of pairs, the share of clients with long transactions.", "P", SIZE, bounds=SHARE),
    ] = None
    span: int | None = None


class Settings(CheckedOptions, frozen=True, kw_only=True):
    """The options of a run.

    Attributes:
        watched: whether to judge growing prefixes while the clients run.

    Raises:
        OptionError: a value is out of bounds.
    """

    target: Annotated[
        str,
        About(
            "postgres, mariadb, sqlite, duckdb, redis, etcd; a URL; sqlalchemy:URL, exec:COMMAND "
            "or FILE.py:CLASS.",
            "TARGET",
        ),
    ]
    seed: RandomSeed = 0
    workload: Annotated[
        str,
        About(
            "What clients do; of a survey several, with commas between, or all.",
            "NAME",
            short="-w",
        ),
    ] = "auto"
    folder: Annotated[str, About("Where to save.", "DIR", flag="--save")] = "isocheck-runs"
    to_the_end: Annotated[bool, About("Go on after a violation.")] = False
    watched: bool = True
    timeout: Annotated[
        float,
        About(
            "Seconds for each verdict, all phases together.",
            "S",
            LIMITS,
            bounds=(0, LONGEST),
            above=True,
        ),
    ] = 120.0
    level: Annotated[str, About("Of the database; by default its first.", "LEVEL", DATABASE)] = ""
    level_mix: Annotated[
        str,
        About(
            "Each transaction at one of several levels, by their shares: serializable:0.5,"
            "read committed:0.5.",
            "MIX",
            DATABASE,
        ),
    ] = ""
    claims: Annotated[
        str, About("What to judge by; by default what the level claims.", "SPEC", DATABASE)
    ] = ""
    prefix: TablePrefix = "isocheck_"
    standby: Annotated[
        int,
        About(
            "This many more clients read from a standby (postgres or redis, started here).",
            "N",
            DATABASE,
            bounds=(0, 1000),
        ),
    ] = 0
    trusted: Annotated[
        bool, About("Do not test an adapter of one's own before the run.", "", DATABASE)
    ] = False
    access: Annotated[
        Access,
        About("Find rows by the key's index, by a scan, or each in another way.", "", DATABASE),
    ] = "index"
    update: Annotated[
        Update,
        About(
            "Write by UPDATE; by one of all columns; by INSERT that updates; by UPDATE, else "
            "INSERT; or each write in another of these forms.",
            "",
            DATABASE,
        ),
    ] = "update"
    versions: Annotated[
        bool,
        About("Record which versions were read and written, as the database tells.", "", DATABASE),
    ] = False
    savepoints: Annotated[
        float,
        About(
            "Before this share of writes, do another one and undo it by a savepoint.",
            "P",
            DATABASE,
            bounds=SHARE,
        ),
    ] = 0.0
    pauses: Annotated[
        float,
        About(
            "Before this share of operations, pause for up to 4 ms.",
            "P",
            DATABASE,
            bounds=SHARE,
        ),
    ] = 0.0
    retries: Annotated[
        int,
        About(
            "Play a transaction that the database aborted again, up to N times, as applications "
            "do.",
            "N",
            DATABASE,
            bounds=NUMBER,
        ),
    ] = 0
    rounds: Annotated[
        bool,
        About("After the workloads of auto, play short rounds with drawn options.", "", SIZE),
    ] = True
    faults: Annotated[
        tuple[str, ...],
        About(
            "At random times: kill, pause, disconnect, slow, partition-halves, partition-one-node, "
            "partition-one-way, promote, maintenance; exec:COMMAND; may be repeated.",
            "FAULT",
            DATABASE,
            "--fault",
        ),
    ] = ()
    fault_every: Annotated[
        float | None,
        About(
            "Seconds from one fault to the next; by default 0.5 to 3.",
            "S",
            DATABASE,
            bounds=(0.01, 1e6),
        ),
    ] = None
    seconds: Annotated[
        float | None,
        About(
            "How long; by default 30, of each cell of a survey 5.", "S", SIZE, bounds=(0.001, 1e8)
        ),
    ] = None
    transactions: Annotated[int | None, About("Stop after this many.", "N", SIZE, bounds=COUNT)] = (
        None
    )
    rate: Annotated[
        float | None,
        About(
            "Begin this many transactions a second in all; by default as many as go.",
            "N",
            SIZE,
            bounds=(1, 1e8),
        ),
    ] = None
    sessions: Annotated[int, About("Clients at a time.", "N", SIZE, bounds=COUNT)] = 10
    processes: Annotated[
        int, About("Share the clients out to this many.", "N", SIZE, bounds=COUNT)
    ] = 1
    shape: Shape = field(default_factory=Shape)

    @property
    def length(self) -> float:
        """Return the length of the run in seconds."""
        return 30.0 if self.seconds is None else self.seconds


class Playing(CheckedOptions, frozen=True, kw_only=True):
    """The options of litmus tests.

    Attributes:
        seconds: the time after which no further interleaving of a program begins.

    Raises:
        OptionError: a value is out of bounds.
    """

    target: Annotated[
        str,
        About(
            "Where to play it: postgres, sqlite, duckdb, mariadb, or a URL.",
            "TARGET",
            DATABASE,
            "--run",
        ),
    ] = ""
    levels: Annotated[
        tuple[str, ...],
        About(
            "Of the database; may be repeated. By default its first, of a suite all.",
            "LEVEL",
            DATABASE,
            "--level",
        ),
    ] = ()
    prefix: TablePrefix = "isocheck_"
    seconds: Annotated[float, About("For each program on each level.", "S", bounds=(0, 1e6))] = 1.0
    load: Annotated[
        int,
        About(
            "This many transactions of another client after each COMMIT that others overlap.",
            "N",
            DATABASE,
            bounds=NUMBER,
        ),
    ] = 0
    interleavings: Annotated[int, About("Of each program, at most.", "N", bounds=(1, 100_000))] = (
        200
    )
    seed: RandomSeed = 0  # fmt: skip
