"""Implements ``isocheck predict``, which predicts violations of a valid run at a weaker level."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Struct, convert

from isolang.cli.choices import number
from isolang.cli.parameters import HistoryPath, Include, Mistake, Output
from isolang.cli.progress import Bar
from isolang.explain.harm import Harm
from isolang.options import OUTPUT, ReadOptions
from isolang.output.records import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import escaped, print_data, print_lines

if TYPE_CHECKING:
    from isolang.foresee.played import Foreseen, PlayedPrediction
    from isolang.foresee.predicted import ChangedRead, Prediction, Predictions


class ReadReport(Struct, frozen=True, kw_only=True):
    """A read that returns a different version in a predicted history.

    Attributes:
        transaction: the name of the transaction that reads.
        operation: the read as it was recorded.
        caller: the ``file:line`` that executed the read; empty if unknown.
        recorded: the transaction whose version the read returned; ``T0`` for the initial version;
            empty if the read did not find the row.
        predicted: the transaction whose version the read returns in the predicted history.
        condition: for a predicate read, its table and condition; empty if it names its row.
        row: the row.
    """

    transaction: str
    operation: str
    caller: str
    recorded: str
    predicted: str
    condition: str
    row: str


class PlayedReport(Struct, frozen=True, kw_only=True):
    """The result of playing a prediction on a database.

    Attributes:
        database: the database, with its version; empty if nothing was played.
        level: the isolation level of the played transactions.
        calls: the functions that were called: first by the stranger, then by the path.
        confirmed: whether the recorded history violates the stronger level, with a certificate.
        why: why the prediction was not confirmed; empty if it was confirmed.
        anomaly: the name of the violation; empty if there is none.
        profile: the outcome of the database's own profile on the recorded history.
        history: the recorded history, in EDN; empty if there is none.
        harm: whether a serial order of the calls has the same outcome (docs/harm.md); ``None`` if
            the prediction was not confirmed, or if the recorded statements were played.
    """

    database: str
    level: str
    calls: tuple[str, ...]
    confirmed: bool
    why: str
    anomaly: str
    profile: str
    history: str
    harm: Harm | None = None


class PredictionReport(Struct, frozen=True, kw_only=True):
    """A history, derived from the run, that a level allows and another level forbids.

    Attributes:
        rule: the rule of docs/foresee.md that derived the history: one stranger, or same
            statements.
        anomaly: the name of the violation.
        stranger: the transaction that reads other versions.
        overlooked: the transaction whose version the stranger overlooks.
        path: the transactions that close the cycle, beginning with the overlooked transaction.
        programs: the programs of the stranger, the overlooked transaction, and the last transaction
            of the path: labels, ``file:line`` or operations.
        changed: the reads that return different versions.
        count: how many predictions of this kind the run has.
        assumption: the assumption about the application.
        certified: whether checkers certified both verdicts on the whole predicted history.
        confirmed: whether the history was played on a database and violated the level there.
        played: the result of playing the history; ``None`` if it was not played.
        transactions: the number of transactions of the predicted history.
        history: the predicted history, in EDN.
    """

    rule: Literal["one stranger", "same statements"]
    anomaly: str
    stranger: str
    overlooked: str
    path: tuple[str, ...]
    programs: tuple[str, str, str]
    changed: tuple[ReadReport, ...]
    count: int
    assumption: str
    certified: Literal[True] = True
    confirmed: bool = False
    played: PlayedReport | None = None
    transactions: int
    history: str


class PredictReport(Struct, frozen=True, kw_only=True):
    """The predictions of a run at a weaker level.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        history: the run, as named on the command line.
        transactions: how many transactions of the run were considered.
        at: the weaker level.
        against: the level that the run satisfies and the predicted histories violate.
        outcome: whether a prediction was found; if not, whether the search was complete. If nothing
            was found, the run need not be safe.
        predictions: one prediction of each kind; those that change the run least come first.
        more: how many further kinds were found but not certified, because of the limit --most.
        bound: the restriction of the search; empty if the levels need no restriction.
        gave_up: the parts of the search that were not finished.
    """

    schema: Literal[1] = 1
    history: str
    transactions: int
    at: str
    against: str
    outcome: Literal["found", "nothing found", "gave up"]
    predictions: tuple[PredictionReport, ...]
    more: int
    bound: str
    gave_up: tuple[str, ...]


def predict(
    *,
    run: HistoryPath,
    at: Annotated[
        str,
        typer.Option(
            "--at", metavar="LEVEL",
            help="Predict for this weaker level; si, ra, cc, rc, PostgreSQL's profiles, "
            "innodb-read-committed and innodb-snapshot are the fastest.",
        ),
    ],
    against: Annotated[
        str,
        typer.Option(
            "--against", metavar="LEVEL", show_default=True,
            help="The level that the run satisfies and that a predicted history violates.",
        ),
    ] = "ser",
    most: Annotated[
        int,
        typer.Option(
            "--most", metavar="N", show_default=True, help="Certify and show at most N kinds of "
            "predictions.",
            parser=number(int, 1, 1_000_000),
        ),
    ] = 10,
    work: Annotated[
        int,
        typer.Option(
            "--work", metavar="N", show_default=True,
            help="Give up after N steps from one transaction to another.",
            parser=number(int, 1, 1_000_000_000_000),
        ),
    ] = 2_000_000,
    play: Annotated[
        str,
        typer.Option(
            "--play", metavar="APP", show_default=False,
            help="Play the predictions on PostgreSQL. APP holds the functions that the run's "
            "labels name: FILE.py, MODULE or FILE.py:OBJECT; `statements` plays the recorded "
            "statements instead.",
        ),
    ] = "",
    setup: Annotated[
        str,
        typer.Option(
            "--setup", metavar="NAME", show_default=True,
            help="The function of APP that restores the database to its state before the run.",
        ),
    ] = "setup",
    database: Annotated[
        str,
        typer.Option(
            "--database", metavar="URL", show_default=True,
            help="The database to play on: its URL, or `postgres` to start a new server.",
        ),
    ] = "postgres",
    save: Annotated[
        str,
        typer.Option(
            "--save", metavar="DIR", rich_help_panel=OUTPUT, show_default=False,
            help="Save the predicted and the played histories, with their certificates, in this "
            "folder.",
        ),
    ] = "",
    reading: ReadOptions,
    include: Include = [],  # noqa: B006
    output: Output = "text",
) -> int:  # fmt: skip
    """Predict violations that a valid run could have shown at a weaker level.

    The exit code is 1 if something was found, 0 if nothing was found, and 3 if nothing was found
    and the search gave up somewhere. "Nothing found" does not mean "safe".
    """
    from isolang.foresee.innodb import NOT_CONSIDERED, level_to_predict
    from isolang.foresee.predict import predict as predicted
    from isolang.history import read_history
    from isolang.language.load import load_spec

    is_innodb = at.lower().startswith("innodb-")
    if play and is_innodb:
        raise Mistake("--play: predictions are played on PostgreSQL only, not at InnoDB's levels")
    names = level_to_predict(at), against
    weaker, stronger = (load_spec(name, include_path=include) for name in names)
    if play:
        from isolang.foresee.played_run import require_level

        require_level(weaker.name.lower())
    with Bar(1, None) as bar:
        bar.phase("read")
        history = read_history(run, reading)
        bar.phase("predict")

        def reached(rule: str, done: int, total: int) -> None:
            bar.phase(f"predict: {rule}")
            bar.reached(done, total)

        found = predicted(
            history, weaker, stronger, most=int(most), work=int(work), reached=reached
        )
    with TemporaryDirectory(prefix="isocheck-") as folder:
        played = _played_predictions(found, play, setup, database, Path(folder)) if play else None
        if save:
            _save(found, played, Path(save))
        if output == "json":
            print_data(json_text(_report(run, found, played)))
        else:
            print_lines(*map(escaped, _text(run, found, played)))
            if is_innodb:
                print_lines(f"  {NOT_CONSIDERED}.")
    if found.found:
        return EXIT_INVALID
    return EXIT_UNKNOWN if found.gave_up else EXIT_VALID


def _played_predictions(
    found: Predictions, play: str, setup: str, database: str, folder: Path
) -> Foreseen | None:
    """Play the predictions, or return ``None`` if nothing was predicted."""
    import sys
    from contextlib import redirect_stdout

    from isolang.foresee.played_run import play_run

    if not found.found:
        return None
    # The application's output must not mix with the report.
    with Bar(len(found.found), None) as bar, redirect_stdout(sys.stderr):
        bar.phase("play")
        return play_run(
            found, play, setup=setup, database=database, folder=folder, reached=bar.reached
        )


def _save(found: Predictions, played: Foreseen | None, folder: Path) -> None:
    """Save each predicted history with its certificates for both levels, and what was played."""
    from isolang.errors import HistoryError
    from isolang.files import open_replacement, write_atomically
    from isolang.verdict import Invalid, Valid

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for n, one in enumerate(found.found, 1):
            with open_replacement(folder / f"prediction-{n}.edn") as stream:
                stream.write(one.edn)
            for verdict, side in ((one.valid, "at"), (one.invalid, "against")):
                path = folder / f"prediction-{n}.{side}.certificate.json"
                write_atomically(path, verdict.certificate().to_json())
        for n, other in enumerate(played.played if played else (), 1):
            if other.path is None:
                continue
            with open_replacement(folder / f"played-{n}.edn") as stream:
                stream.write(other.path.read_bytes())
            if isinstance(other.verdict, Valid | Invalid):
                path = folder / f"played-{n}.against.certificate.json"
                write_atomically(path, other.verdict.certificate().to_json())
    except OSError as error:
        raise HistoryError(
            f"{folder}: cannot write to this folder: {error.strerror or error}"
        ) from None


# --- JSON ---


def _report(run: str, found: Predictions, played: Foreseen | None) -> PredictReport:
    return PredictReport(
        history=run,
        transactions=len(found.run.order),
        at=found.at,
        against=found.against,
        outcome=found.outcome,
        predictions=tuple(
            _prediction(one, _played_report(played, n)) for n, one in enumerate(found.found)
        ),
        more=found.more,
        bound=found.bound,
        gave_up=found.gave_up,
    )


def _played_report(played: Foreseen | None, n: int) -> PlayedReport | None:
    if played is None:
        return None
    one = played.played[n]
    return PlayedReport(
        database=played.server if one.path is not None else "",
        level=played.level,
        calls=tuple(call.located for call in one.calls),
        confirmed=one.confirmed,
        why=one.why,
        anomaly=one.anomaly,
        profile=one.profile,
        history=one.path.read_text() if one.path is not None else "",
        harm=one.harm,
    )


def _prediction(one: Prediction, played: PlayedReport | None) -> PredictionReport:
    return PredictionReport(
        confirmed=played is not None and played.confirmed,
        played=played,
        rule=one.rule,
        anomaly=one.invalid.violation.anomaly,
        stranger=one.stranger,
        overlooked=one.overlooked,
        path=one.path,
        programs=one.programs,
        changed=tuple(convert(read, ReadReport, from_attributes=True) for read in one.changed),
        count=one.count,
        assumption=one.assumption,
        transactions=one.history.counts()["transactions"],
        history=one.edn.decode(),
    )


# --- text ---


def _text(run: str, found: Predictions, played: Foreseen | None) -> Iterator[str]:
    from isolang.foresee.played import ELSEWHERE

    many = len(found.run.order)
    yield (
        f"{run}: {many:,} transactions, which satisfy {found.against} as they ran. "
        f"At {found.at} they could have run otherwise:"
        if found.found
        else f"{run}: {many:,} transactions, which satisfy {found.against} as they ran."
    )
    for n, one in enumerate(found.found, 1):
        yield ""
        yield from _prediction_lines(n, one, found)
        if played is not None:
            yield from _played_lines(played, played.played[n - 1])
    yield ""
    if found.more:
        yield f"  {found.more:,} more kinds (--most)"
    if not found.found:
        yield (
            f"  At {found.at}, the search found nothing. This does not prove safety, because "
            "the search considered"
        )
        within = f", in {found.bound}" if found.bound else ""
        yield f"  only these transactions{within}, by the two rules of docs/foresee.md."
    elif played is None:
        yield (
            "  Nothing was played yet. Only a database that shows the predicted history "
            "confirms it."
        )
    else:
        where = f"{f' on {played.server}' if played.server else ''} at {played.level}"
        yield f"  {len(played.confirmed)} of {len(played.played)} confirmed{where}."
    yield from (f"  gave up: {why}" for why in found.gave_up)
    if not found.found:
        yield f"  {ELSEWHERE}."


def _prediction_lines(n: int, one: Prediction, found: Predictions) -> Iterator[str]:
    times = "once" if one.count == 1 else f"{one.count:,} times"
    yield f"{n}  {one.invalid.violation.anomaly}, by {one.rule} ({times} in this run)"
    names = dict.fromkeys((one.stranger, *one.path))
    width = max(map(len, names))
    for name, role in _roles(one):
        yield f"     {name:{width}}  {role}"
        for read in one.changed:
            if read.transaction == name:
                yield f"     {'':{width}}    {_change(read)}"
    size = one.history.counts()["transactions"]
    yield (
        f"     {found.at}: valid, {found.against}: invalid; both certified on all {size:,} "
        "transactions of the predicted history"
    )
    yield f"     assumed: {one.assumption}"


def _played_lines(played: Foreseen, one: PlayedPrediction) -> Iterator[str]:
    if not one.confirmed:
        yield f"     NOT CONFIRMED at {played.level}: {one.why}"
        return
    yield f"     CONFIRMED on {played.server} at {played.level}: {one.anomaly}, certified"
    for call, does in zip(one.calls, ("", "overlooks ", *["then "] * len(one.calls)), strict=False):
        yield f"       {does}{call.located}"
    if one.harm is not None:
        yield f"     {one.harm.headline()}"
        for name, text in one.harm.details():
            if name not in ("calls", "nearest order"):
                yield f"       {name:12}  {text}"


def _roles(one: Prediction) -> Iterator[tuple[str, str]]:
    stranger, overlooked, closes = one.programs
    yield one.stranger, f"{stranger}   overlooks {one.overlooked}"
    yield one.overlooked, overlooked
    for name in one.path[1:-1]:
        yield name, "in between"
    if len(one.path) > 1:
        yield one.path[-1], closes


def _change(read: ChangedRead) -> str:
    at = f"  {read.caller}" if read.caller else ""
    if read.condition:
        old, new = (
            f"{read.row} in {_version(txn)}" if txn else f"no {read.row}"
            for txn in (read.recorded, read.predicted)
        )
        return f"{read.condition}: found {old}, and could find {new}{at}"
    old, new = (_version(txn) if txn else "no row" for txn in (read.recorded, read.predicted))
    return f"{read.operation} read {old}, and could read {new}{at}"


def _version(txn: str) -> str:
    return "the initial version" if txn == "T0" else f"the version of {txn}"
