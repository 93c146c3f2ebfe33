"""The options of a check, each declared once: its name, type, default, bounds, and meaning.

``isolang.check`` takes them by name, the command line as ``--name``, and ``pyproject.toml`` as
keys; all three fill the records of this module, and the rest of the package passes these on.

The annotations are not strings, because each command evaluates them when it starts.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from isolang.declared import SEED, About, CheckedOptions
from isolang.errors import OptionError
from isolang.machine import processors

LIMITS: Final = "Limits"
DECIDING: Final = "Deciding"
READING: Final = "How a history is read"
OUTPUT: Final = "Output"

LONGEST: Final = 100_000_000
"""The longest timeout, in seconds (three years), that the clock of every solver can hold."""
_LARGEST: Final = 1_000_000_000  # megabytes
_PER_THREAD: Final = 100  # megabytes of the limit for each thread, whose stack counts
_NO_LIMIT: Final = "; leave it out for no limit"

FailedCas: TypeAlias = Literal["auto", "compared", "nothing"]
SupersededReads: TypeAlias = Literal["auto", "ignore", "count"]
Unit: TypeAlias = Literal["transaction", "request"]
Carry: TypeAlias = Literal["rows", "all"]
PossibleFacts: TypeAlias = Literal["auto", "ignore", "count"]


class ReadOptions(CheckedOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options that change how a history is read, and so change the history itself.

    Raises:
        OptionError: if a value is out of bounds.
    """

    format: Annotated[
        str,
        About(
            "The format of the history; by default detected from its content.",
            "FORMAT",
            READING,
            "--from",
        ),
    ] = "auto"
    timestamps: Annotated[bool, About("Read a Cobra log as one with timestamps.", "", READING)] = (
        False
    )
    initial: Annotated[
        int | None,
        About(
            "Take transaction N as the initial transaction.",
            "N",
            READING,
            bounds=(-(1 << 63), (1 << 63) - 1),
        ),
    ] = None
    initial_value: Annotated[
        tuple[str, ...],
        About(
            "The initial value of all keys (V), or of one key (KEY=V), instead of nil.",
            "V",
            READING,
        ),
    ] = ()
    unwritten_initial: Annotated[
        bool,
        About(
            "Take a value that is read but never written as the initial value; at most one "
            "for each key.",
            "",
            READING,
        ),
    ] = False
    per_key: Annotated[
        bool, About("Let sessions order only operations on the same key.", "", READING)
    ] = False
    failed_cas: Annotated[
        FailedCas,
        About(
            "What a failed :cas means: it read another value (compared), or it reveals "
            "nothing; auto: the convention of the format.",
            "",
            READING,
        ),
    ] = "auto"
    ignore_versions: Annotated[
        bool,
        About("Ignore the versions that operations state, and use only their values.", "", READING),
    ] = False
    superseded_reads: Annotated[
        SupersededReads,
        About(
            "What to do with a read whose transaction read the row again under a lock, with "
            "another result: ignore or count it; auto: the verdict is unknown if it depends on it.",
            "",
            READING,
        ),
    ] = "auto"
    unit: Annotated[
        Unit,
        About(
            "Also ask whether requests race that check in one transaction and act in another: a "
            "transaction that writes has the reads that its request made before.",
            "",
            READING,
        ),
    ] = "transaction"
    carry: Annotated[
        Carry,
        About(
            "With --unit request: carry the reads of the rows that a transaction writes, or all.",
            "",
            READING,
        ),
    ] = "rows"
    possible_facts: Annotated[
        PossibleFacts,
        About(
            "What to do with facts that only may have decided an answer (:perhaps): ignore or "
            "count them; auto: a violation counts without them, a valid verdict with them.",
            "",
            READING,
        ),
    ] = "auto"
    allow_unseen: Annotated[
        tuple[str, ...],
        About(
            "Allow a valid verdict although the recording of an application did not see operations "
            "of this kind.",
            "KIND",
            READING,
        ),
    ] = ()
    clock_error: Annotated[
        str,
        About(
            "How far two clocks may differ (2ms), or how far each session's may be off "
            "(a=2ms,b=1ms).",
            "TIME",
            READING,
        ),
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.initial_value and self.unwritten_initial:
            raise OptionError(
                "initial-value and unwritten-initial: initial values are either given or taken "
                "from the reads (got both options, expected one)"
            )
        if self.carry != "rows" and self.unit != "request":
            raise OptionError(
                f"carry: only requests carry reads (got {self.carry} without unit=request); hint: "
                "--unit request"
            )

    def non_default(self) -> dict[str, Any]:
        """Return the options besides the format that differ from their defaults.

        Together with the format, they suffice to read the history again.
        """
        plain = ReadOptions()
        return {
            name: value
            for name in self.__struct_fields__
            if name != "format" and (value := getattr(self, name)) != getattr(plain, name)
        }


class Options(CheckedOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options that change how a verdict is computed, but never the verdict itself.

    Raises:
        OptionError: if a value is out of bounds.
    """

    timeout: Annotated[
        float | None,
        About(
            "Time limit in seconds for each verdict, all phases included.",
            "S",
            LIMITS,
            bounds=(0, LONGEST),
            above=True,
            hint=_NO_LIMIT,
        ),
    ] = None
    memory: Annotated[
        float | None,
        About(
            "Memory limit in megabytes, all phases included; searches use at most half of it.",
            "MB",
            LIMITS,
            bounds=(0, _LARGEST),
            above=True,
            hint=_NO_LIMIT,
        ),
    ] = None
    threads: Annotated[
        int | None,
        About(
            "The threads for each history; by default one for each processor, up to 8.",
            "N",
            LIMITS,
            bounds=(1, 256),
        ),
    ] = None
    certify: Annotated[
        bool, About("Have an independent checker verify each verdict.", "", DECIDING)
    ] = True
    seed: Annotated[
        int,
        About("The seed of the search; equal seeds give equal runs.", "N", DECIDING, bounds=SEED),
    ] = 0
    solver: Annotated[
        str,
        About(
            "The solver; sat:NAME and pysmt:NAME choose a solver of PySAT and of PySMT.",
            "NAME",
            DECIDING,
        ),
    ] = "auto"
    encoding: Annotated[
        str, About("How the problem is encoded for the solver.", "NAME", DECIDING)
    ] = "auto"
    prune: Annotated[
        str,
        About("How thoroughly to prune choices before the search starts.", "STAGE", DECIDING),
    ] = "auto"

    def search_bytes(self) -> int:
        """Return the bytes that the searches may use: half of the memory, at most a gibibyte."""
        most = 1 << 30
        return most if self.memory is None else min(most, int(self.memory * 1e6 / 2))

    def thread_count(self) -> int:
        """Return how many threads may work on one history."""
        most = processors() if self.threads is None else self.threads
        if self.memory is None:
            return most
        return max(1, min(most, int(self.memory / _PER_THREAD)))


class OutputOptions(CheckedOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a command prints its result, and which files it writes.

    Each command takes some of these options, and lists its own forms
    (:class:`isolang.cli.parameters.SelectedOptions`).
    """

    form: Annotated[str, About("The output format.", "", OUTPUT, "--output", "-o")] = "text"
    all_anomalies: Annotated[
        bool,
        About(
            "Also list every kind of anomaly in the history, with an example of each.",
            "",
            OUTPUT,
            "--all",
        ),
    ] = False
    brief: Annotated[bool, About("Print one line for each verdict.", "", OUTPUT)] = False
    quiet: Annotated[
        bool, About("Print no verdicts; the exit code reports them.", "", OUTPUT, short="-q")
    ] = False
    color: Annotated[
        Literal["auto", "always", "never"],
        About("When to print in colour; auto: only on a terminal.", "", OUTPUT),
    ] = "auto"
    profile: Annotated[
        bool, About("Print how long each phase took (JSON always has it).", "", OUTPUT)
    ] = False
    certificates: Annotated[
        str, About("Save certificates in this folder.", "DIR", OUTPUT, "--certificate")
    ] = ""
    minimal: Annotated[
        str,
        About(
            "Write the smallest invalid part of the history that was found, as EDN.", "FILE", OUTPUT
        ),
    ] = ""
    html: Annotated[str, About("Write the verdict as an HTML page.", "FILE", OUTPUT)] = ""
    plot: Annotated[
        str,
        About(
            "Draw the result for a paper: .svg; with matplotlib also .png and .pdf.",
            "FILE",
            OUTPUT,
        ),
    ] = ""

    def require_verdicts(self, *, brief: tuple[str, ...]) -> None:
        """Check that ``--quiet`` and ``--brief`` suit the form of the output.

        Args:
            brief: the forms that can be brief.

        Raises:
            OptionError: if the form cannot be brief or quiet.
        """
        if self.quiet and self.form != "text":
            raise OptionError(f"--quiet prints no verdicts (got --output {self.form})")
        if self.brief and self.form not in brief:
            *first, last = brief
            raise OptionError(
                f"--brief: expected --output {', '.join(first)} or {last} (got {self.form})"
            )
