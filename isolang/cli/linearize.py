"""Implements ``isocheck linearize``, which decides whether a log of an object is linearizable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Struct

from isolang.cli.choices import completer_of_names, number
from isolang.cli.parameters import HistoryPaths, Output, SelectedOptions
from isolang.options import LIMITS, READING, FailedCas, Options, ReadOptions
from isolang.output.records import EXIT_INPUT, EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from isolang.output.records import exit_code as code_of_all
from isolang.output.terminal import escaped, print_data, print_lines, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolang.models.model import Model
    from isolang.models.operation import Operation
    from isolang.models.read import OperationLog
    from isolang.models.verdicts import Linearizability


class LinearizedOperation(Struct, frozen=True, kw_only=True):
    """An operation of the log.

    Attributes:
        line: the line of its call.
        process: the process, as in the log; null if it has none.
        text: the function, its argument and its result.
    """

    line: int
    process: str | None
    text: str


class DeadEndReport(Struct, frozen=True, kw_only=True):
    """An order of the first operations after which the history cannot go on.

    Attributes:
        order: the operations, in this order.
        state: the state after them.
    """

    order: tuple[LinearizedOperation, ...]
    state: str


class LinearizeReport(Struct, frozen=True, kw_only=True):
    """A verdict on whether a log is linearizable with respect to a model.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        history: the log, as named on the command line.
        model: the model, as named on the command line.
        verdict: the verdict; ``error`` if the log cannot be read.
        reason: why the verdict is not valid, in words; empty if it is.
        certified: whether a second algorithm, which shares no code with the search, confirmed it.
        certified_reason: which algorithm confirmed it, or why none did.
        operations: the number of operations that took effect or may have.
        ignored: the kinds of records that say nothing about the object, with their counts.
        notes: remarks on how the log was read.
        linearization: if valid, the operations in an order that explains the log.
        key: if invalid, the object whose operations have no order; null if the log has no keys.
        stuck: if invalid, the operation that no order reaches.
        window: if invalid, the operations that are enough for the violation.
        longest: if invalid, orders of operations before ``stuck`` that cannot go on.
        configurations: how many configurations the search visited.
        seconds: how long the verdict took.
    """

    schema: Literal[1] = 1
    history: str
    model: str
    verdict: Literal["valid", "invalid", "unknown", "error"]
    reason: str = ""
    certified: bool = False
    certified_reason: str = ""
    operations: int = 0
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    linearization: tuple[LinearizedOperation, ...] = ()
    key: str | None = None
    stuck: LinearizedOperation | None = None
    window: tuple[LinearizedOperation, ...] = ()
    longest: tuple[DeadEndReport, ...] = ()
    configurations: int = 0
    seconds: float = 0.0


def _names() -> list[str]:
    from isolang.models.ready import READY

    return list(READY)


def linearize(
    *,
    histories: HistoryPaths,
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", metavar="MODEL", autocompletion=completer_of_names(_names),
            help="register, counter, queue, unordered-queue, stack, set, mutex, list, or "
            "FILE.py:NAME, a model of your own; the file is executed.",
        ),
    ],
    initial: Annotated[
        str,
        typer.Option(
            "--initial-value", metavar="V", show_default=False, rich_help_panel=READING,
            help="The state before the history begins, in EDN, instead of the model's own.",
        ),
    ] = "",
    independent: Annotated[
        bool,
        typer.Option(
            "--independent", rich_help_panel=READING,
            help="Read each value as a pair: a key, which names an object, and the value itself.",
        ),
    ] = False,
    reading: Annotated[ReadOptions, SelectedOptions("failed_cas")],
    options: Annotated[Options, SelectedOptions("timeout", "memory", "certify")],
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", show_default=False, rich_help_panel=LIMITS,
            parser=number(int, 1, 1_000_000_000),
            help="Visit at most N configurations; beyond, the verdict is unknown.",
        ),
    ] = None,
    output: Output = "text",
) -> int:  # fmt: skip
    """Decide whether a log of operations on an object is linearizable.

    The exit code is 0 if it is, 1 if not, 2 for a mistake, and 3 if it is unknown.
    """
    from isolang.models.load import load_model

    chosen = load_model(model, initial)
    codes = set()
    for history in histories:
        report, lines = _judge(
            history, model, chosen,
            options=options, failed_cas=reading.failed_cas, independent=independent, limit=limit,
        )  # fmt: skip
        if output == "json":
            from isolang.output.records import json_text

            print_data(json_text(report))
        elif report.verdict == "error":
            warn(f"isocheck: {report.reason}")
        else:
            print_lines(*map(escaped, lines))
        codes.add(_CODES[report.verdict])
    return code_of_all(codes)


_CODES = {
    "valid": EXIT_VALID, "invalid": EXIT_INVALID, "unknown": EXIT_UNKNOWN, "error": EXIT_INPUT,
}  # fmt: skip


def _judge(
    history: str,
    model: str,
    chosen: Model,
    *,
    options: Options,
    failed_cas: FailedCas,
    independent: bool,
    limit: int | None,
) -> tuple[LinearizeReport, list[str]]:
    from isolang.errors import HistoryError
    from isolang.limits import Deadline
    from isolang.models.linearize import linearize as decide
    from isolang.models.read import read_log

    deadline = Deadline(options.timeout)
    try:
        with deadline.during("read"):
            log = read_log(
                history, independent=independent, failed_cas=failed_cas,
                timeout=options.timeout,
            )  # fmt: skip
        verdict = decide(
            log.operations, chosen, timeout=deadline.remaining(), memory=options.memory,
            limit=limit, certify=options.certify,
        )  # fmt: skip
    except HistoryError as error:
        text = str(error)
        reason = text if text.startswith(("<stdin>", history)) else f"{history}: {text}"
        return LinearizeReport(history=history, model=model, verdict="error", reason=reason), []
    except TimeoutError:
        reason = f"the time limit of {options.timeout:g} s was reached while reading"
        report = LinearizeReport(history=history, model=model, verdict="unknown", reason=reason)
        return report, [f"UNKNOWN  {history}  {chosen.name} (linearizability)", f"  {reason}"]
    return _report(history, model, log, verdict), _text(history, log, verdict)


def _report(
    history: str, model: str, log: OperationLog, verdict: Linearizability
) -> LinearizeReport:
    from isolang.models.operation import show
    from isolang.models.verdicts import Linearizable, NotLinearizable

    valid = isinstance(verdict, Linearizable)
    invalid = verdict if isinstance(verdict, NotLinearizable) else None
    return LinearizeReport(
        history=history,
        model=model,
        verdict=verdict.outcome,
        reason="" if valid else verdict.lines()[0],
        certified=verdict.certified,
        certified_reason=verdict.certified_reason,
        operations=len(verdict.operations),
        ignored=log.ignored,
        notes=log.notes,
        linearization=_listed(verdict.linearization) if isinstance(verdict, Linearizable) else (),
        key=show(invalid.key) if invalid is not None and invalid.key is not None else None,
        stuck=_listed([invalid.stuck])[0] if invalid is not None else None,
        window=_listed(invalid.window) if invalid is not None else (),
        longest=tuple(
            DeadEndReport(order=_listed(end.order), state=show(end.state))
            for end in (invalid.longest if invalid is not None else ())
        ),
        configurations=verdict.configurations,
        seconds=round(verdict.seconds.total, 6),
    )


def _listed(operations: Sequence[Operation]) -> tuple[LinearizedOperation, ...]:
    from isolang.models.operation import ObjectCall

    return tuple(
        LinearizedOperation(
            line=operation.line, process=operation.process, text=ObjectCall.__str__(operation)
        )
        for operation in operations
    )


def _text(history: str, log: OperationLog, verdict: Linearizability) -> list[str]:
    from isolang.history.readers.reading import quantity

    pending = sum(operation.end == float("inf") for operation in verdict.operations)
    lost = f", {pending} of which never returned" if pending else ""
    lines = [f"{verdict.outcome.upper()}  {history}  {verdict.model.name} (linearizability)"]
    lines += [f"  {line}" if line else "" for line in verdict.lines()]
    lines += ["", f"  input      {quantity(len(verdict.operations), 'operation')}{lost}"]
    lines += [f"  ignored    {phrase}" for phrase in log.ignored]
    lines += [f"  note       {phrase}" for phrase in log.notes]
    if verdict.outcome != "unknown":
        word = "yes" if verdict.certified else "no"
        lines.append(f"  certified  {word}: {verdict.certified_reason}")
    seconds, configurations = verdict.seconds.total, verdict.configurations
    lines.append(f"  time       {seconds:.2f} s, {quantity(configurations, 'configuration')}")
    return lines
