"""Declares the options of runs and of litmus tests, from which the command line is made."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import field

from isolang.declared import COUNT, NUMBER, SEED, SHARE, About, CheckedOptions
from isolang.options import LIMITS, LONGEST

DATABASE: Final = "The database"
"""The name of the help panel for the options that concern the database."""
SIZE: Final = "Size"
"""The name of the help panel for the options that set the size of a run."""

RandomSeed: TypeAlias = Annotated[int, About("The seed for all random choices.", "N", bounds=SEED)]
TablePrefix: TypeAlias = Annotated[
    str, About("The prefix of the tables that the run creates.", "NAME", DATABASE, "--table-prefix")
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
        span: the number of transactions that commit while a long one is open.
    """

    keys: Annotated[int | None, About("The number of keys.", "N", SIZE, bounds=COUNT)] = None
    operations: Annotated[
        int | None, About("The operations in each transaction.", "N", SIZE, bounds=COUNT)
    ] = None
    reads: Annotated[
        float | None, About("The share of operations that read.", "P", SIZE, bounds=SHARE)
    ] = None
    distribution: Annotated[
        Distribution | None, About("How operations choose their keys.", "", SIZE)
    ] = None
    theta: float = 0.99
    rotate: Annotated[
        int,
        About(
            "Change the hot keys after N transactions of a client; 0: never.",
            "N",
            SIZE,
            bounds=NUMBER,
        ),
    ] = 0
    long: Annotated[
        float | None,
        About(
            "With -w pairs: the share of clients that run long transactions.",
            "P",
            SIZE,
            bounds=SHARE,
        ),
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
            "What to test: postgres, mariadb, sqlite, duckdb, redis or etcd; a URL; "
            "sqlalchemy:URL, exec:COMMAND or FILE.py:CLASS.",
            "TARGET",
        ),
    ]
    seed: RandomSeed = 0
    workload: Annotated[
        str,
        About(
            "What the clients do. A survey takes several names, separated by commas, or all.",
            "NAME",
            short="-w",
        ),
    ] = "auto"
    folder: Annotated[str, About("Save the run in this folder.", "DIR", flag="--save")] = (
        "isocheck-runs"
    )
    to_the_end: Annotated[bool, About("Do not stop at the first violation.")] = False
    watched: bool = True
    timeout: Annotated[
        float,
        About(
            "Time limit in seconds for each verdict, all phases included.",
            "S",
            LIMITS,
            bounds=(0, LONGEST),
            above=True,
        ),
    ] = 120.0
    level: Annotated[
        str,
        About("The isolation level to run at; by default the target's first.", "LEVEL", DATABASE),
    ] = ""
    level_mix: Annotated[
        str,
        About(
            "Run transactions at several levels, in the given shares, such as "
            "serializable:0.5,read committed:0.5.",
            "MIX",
            DATABASE,
        ),
    ] = ""
    claims: Annotated[
        str,
        About(
            "The specification to check the run against; by default what the level claims.",
            "SPEC",
            DATABASE,
        ),
    ] = ""
    prefix: TablePrefix = "isocheck_"
    standby: Annotated[
        int,
        About(
            "Add N clients that read from a standby, which isocheck starts (postgres or "
            "redis only).",
            "N",
            DATABASE,
            bounds=(0, 1000),
        ),
    ] = 0
    trusted: Annotated[
        bool, About("Skip the self-test of your own adapter before the run.", "", DATABASE)
    ] = False
    access: Annotated[
        Access,
        About(
            "How statements find rows: by the index on the key, by a scan, or each read by "
            "a different method.",
            "",
            DATABASE,
        ),
    ] = "index"
    update: Annotated[
        Update,
        About(
            "How statements write: UPDATE of the value; UPDATE of the whole row; INSERT that "
            "updates an existing row; UPDATE, then INSERT if there is no row; or each write in "
            "another of these forms.",
            "",
            DATABASE,
        ),
    ] = "update"
    versions: Annotated[
        bool,
        About(
            "Record the row versions that the database reports for each read and write.",
            "",
            DATABASE,
        ),
    ] = False
    savepoints: Annotated[
        float,
        About(
            "Before this share of writes, make another write and roll it back to a savepoint.",
            "P",
            DATABASE,
            bounds=SHARE,
        ),
    ] = 0.0
    pauses: Annotated[
        float,
        About(
            "Pause for up to 4 ms before this share of operations.",
            "P",
            DATABASE,
            bounds=SHARE,
        ),
    ] = 0.0
    retries: Annotated[
        int,
        About(
            "Retry a transaction that the database aborted, up to N times.",
            "N",
            DATABASE,
            bounds=NUMBER,
        ),
    ] = 0
    rounds: Annotated[
        bool,
        About("After the workloads of -w auto, play short rounds with random options.", "", SIZE),
    ] = True
    faults: Annotated[
        tuple[str, ...],
        About(
            "Inject this fault at random times: kill, pause, disconnect, slow, "
            "partition-halves, partition-one-node, partition-one-way, promote, maintenance "
            "or exec:COMMAND; may be repeated.",
            "FAULT",
            DATABASE,
            "--fault",
        ),
    ] = ()
    fault_every: Annotated[
        float | None,
        About(
            "Seconds between faults; by default a random time from 0.5 to 3.",
            "S",
            DATABASE,
            bounds=(0.01, 1e6),
        ),
    ] = None
    seconds: Annotated[
        float | None,
        About(
            "The length of the run; by default 30 s, and 5 s for each cell of a survey.",
            "S",
            SIZE,
            bounds=(0.001, 1e8),
        ),
    ] = None
    transactions: Annotated[
        int | None, About("Stop after N transactions.", "N", SIZE, bounds=COUNT)
    ] = None
    rate: Annotated[
        float | None,
        About(
            "Begin N transactions per second in total; by default as many as possible.",
            "N",
            SIZE,
            bounds=(1, 1e8),
        ),
    ] = None
    sessions: Annotated[
        int, About("The number of concurrent clients.", "N", SIZE, bounds=COUNT)
    ] = 10
    processes: Annotated[
        int, About("Distribute the clients over N processes.", "N", SIZE, bounds=COUNT)
    ] = 1
    shape: Shape = field(default_factory=Shape)

    @property
    def length(self) -> float:
        """Return the length of the run in seconds."""
        return 30.0 if self.seconds is None else self.seconds


class LitmusSettings(CheckedOptions, frozen=True, kw_only=True):
    """The options of litmus tests.

    Attributes:
        seconds: the time after which no further interleaving of a program begins.

    Raises:
        OptionError: a value is out of bounds.
    """

    target: Annotated[
        str,
        About(
            "The database to play it on: postgres, sqlite, duckdb, mariadb or a URL.",
            "TARGET",
            DATABASE,
            "--run",
        ),
    ] = ""
    levels: Annotated[
        tuple[str, ...],
        About(
            "The database's level to play at; may be repeated. By default the target's "
            "first; with --suite, all of them.",
            "LEVEL",
            DATABASE,
            "--level",
        ),
    ] = ()
    prefix: TablePrefix = "isocheck_"
    seconds: Annotated[
        float, About("Time limit in seconds for each program at each level.", "S", bounds=(0, 1e6))
    ] = 1.0
    load: Annotated[
        int,
        About(
            "After each COMMIT during which other transactions are open, run N transactions "
            "of another client.",
            "N",
            DATABASE,
            bounds=NUMBER,
        ),
    ] = 0
    interleavings: Annotated[
        int, About("The most interleavings to play of each program.", "N", bounds=(1, 100_000))
    ] = 200
    seed: RandomSeed = 0  # fmt: skip
