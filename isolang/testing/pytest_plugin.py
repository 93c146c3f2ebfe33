"""Provides the pytest fixture ``isolation`` and the mark with the same name (docs/pytest.md).

The plugin imports isolang only when a test uses the fixture, so it does not slow down other tests.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Generator, Iterator
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from isolang.options import SupersededReads, Unit
    from isolang.testing.isolation import Isolation

_MARK: Final = (
    "isolation(level, timeout=60, allow_unseen=False, foresee='', superseded_reads='auto', "
    "unit='transaction', harmless='fail'): the history that the test records must satisfy this "
    "level, and only the kinds in allow_unseen may be unseen (True: all); with foresee, violations "
    "are predicted at that level and played; superseded_reads, 'ignore' or 'count', says what to "
    "do with a read whose transaction read the row again under a lock, with another result; "
    "unit='request' judges the calls of isolation.call, too, which may consist of several "
    "transactions; harmless='note' only notes a violation that is harmless with the test's data"
)
_KNOWN: Final = {
    "level",
    "timeout",
    "allow_unseen",
    "foresee",
    "superseded_reads",
    "unit",
    "harmless",
}
_TRANSACTIONS: Final = "isolation transactions"  # the name of a property in a test's report
_UNSEEN: Final = "isolation unseen: "
_FORESEEN: Final = "isolation foreseen"
_IDLE: Final = "isolation nothing observed"
_NOTED: Final = "isolation noted"
_SEED: Final = pytest.StashKey[int]()
_ISOLATION: Final = pytest.StashKey["Isolation"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the plugin's command-line options and ini option."""
    group = parser.getgroup("isolation", "isolation levels")
    group.addoption(
        "--isolation-report",
        metavar="DIR",
        help="save the history, the certificate and an HTML page of each test that checks a level",
    )
    group.addoption(
        "--isolation-seed",
        type=int,
        metavar="N",
        help="seed for the random choices of workloads (default: a random seed, which is printed)",
    )
    group.addoption(
        "--isolation-unknown",
        choices=("fail", "skip"),
        help="whether a test fails or is skipped if its verdict is unknown (default: fail)",
    )
    parser.addini(
        "isolation_unknown", "the default for --isolation-unknown: fail or skip", default="fail"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and choose one seed for all pytest-xdist workers."""
    config.addinivalue_line("markers", _MARK)
    seed = config.getoption("isolation_seed")
    if seed is None:
        seed = getattr(config, "workerinput", {}).get("isolation_seed")
    config.stash[_SEED] = random.SystemRandom().randrange(2**32) if seed is None else seed
    if config.getini("isolation_unknown") not in ("fail", "skip"):
        got = config.getini("isolation_unknown")
        raise pytest.UsageError(
            f"isolation_unknown: unknown choice (got {got!r}, expected fail or skip)"
        )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the seed to a pytest-xdist worker."""
    node.workerinput["isolation_seed"] = node.config.stash[_SEED]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """If a test has the mark, check the mark's arguments and that the test uses the fixture."""
    mark = item.get_closest_marker("isolation")
    if mark is None:
        return
    _mark_arguments(item)
    if level := _foresee_argument(item):
        from isolang.errors import IsolangError
        from isolang.foresee.played import profile_of

        try:
            profile_of(level)
        except IsolangError as error:
            pytest.fail(f"{item.nodeid}: {error}", pytrace=False)
    if "isolation" not in getattr(item, "fixturenames", ()):
        pytest.fail(
            f"{item.nodeid}: the test has the marker isolation, but records nothing; use the "
            "fixture isolation to record",
            pytrace=False,
        )


@pytest.fixture
def isolation(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Isolation]:
    """Records transactions of this test, runs workloads, and asserts a level."""
    from isolang.testing.isolation import Isolation, folder_of

    config = request.config
    level, timeout, allow_unseen, superseded_reads, unit, harmless = _mark_arguments(request.node)
    name = folder_of(request.node.nodeid)
    report = config.getoption("isolation_report")
    one = Isolation(
        tmp_path_factory.mktemp("isolation"),
        seed=config.stash[_SEED],
        level=level,
        timeout=timeout,
        keep=None if report is None else Path(config.invocation_params.dir, report, name),
        allow_unseen=allow_unseen,
        superseded_reads=superseded_reads,
        unit=unit,
        harmless=harmless,
    )
    request.node.stash[_ISOLATION] = one
    yield one
    one.close()


def _mark_arguments(
    item: Any,
) -> tuple[str, float, bool | Collection[str], SupersededReads, Unit, str]:
    """Return the arguments of a test's mark, except for ``foresee``.

    If the test has no mark, return the defaults. If the mark is incorrect, fail the test.
    """
    mark = item.get_closest_marker("isolation")
    if mark is None:
        return "", 60.0, False, "auto", "transaction", "fail"
    arguments = dict(zip(("level",), mark.args, strict=False)) | mark.kwargs
    if len(mark.args) > 1 or "level" not in arguments or arguments.keys() - _KNOWN:
        got = ", ".join([*map(repr, mark.args), *(f"{k}={v!r}" for k, v in mark.kwargs.items())])
        pytest.fail(
            f"{item.nodeid}: the mark names no level (got isolation({got}), expected "
            'isolation(level="si") or isolation(level="si", timeout=60))',
            pytrace=False,
        )
    harmless = arguments.get("harmless", "fail")
    if harmless not in ("fail", "note"):
        pytest.fail(
            f"{item.nodeid}: unknown choice of harmless (got {harmless!r}, expected 'fail' or "
            "'note')",
            pytrace=False,
        )
    return (
        arguments["level"],
        arguments.get("timeout", 60.0),
        arguments.get("allow_unseen", False),
        arguments.get("superseded_reads", "auto"),
        arguments.get("unit", "transaction"),
        harmless,
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test. If it is marked, check the histories that it has not checked itself."""
    skipping = _choice_for_unknown(item.config) == "skip"
    try:
        result = yield
        one = item.stash.get(_ISOLATION, None)
        if one is not None and one.level and (one.waiting or not one.judged):
            _judge(one)
        if one is not None and (level := _foresee_argument(item)):
            _play_predictions(item, one, level, skipping=skipping)
    except AssertionError as error:
        from isolang.testing.assertion import UndecidedError

        if skipping and isinstance(error, UndecidedError):
            pytest.skip(f"unknown: {getattr(error.verdict, 'reason', '')}")
        raise
    return result


def _judge(one: Isolation) -> None:
    __tracebackhide__ = True
    from isolang.errors import IsolangError
    from isolang.testing.assertion import IsolationError, UndecidedError

    try:
        one.assert_level()
    except UndecidedError:
        raise
    except (IsolangError, IsolationError) as error:
        message = str(error)
    else:
        return
    # This is outside the handler, because otherwise pytest would also print the cause.
    pytest.fail(message, pytrace=False)


def _foresee_argument(item: pytest.Item) -> str:
    """Return the level in the mark's ``foresee`` argument; empty if it is not given."""
    mark = item.get_closest_marker("isolation")
    return "" if mark is None else str(mark.kwargs.get("foresee", ""))


def _play_predictions(item: pytest.Item, one: Isolation, level: str, *, skipping: bool) -> None:
    """Play predictions at a weaker level, and fail the test if one violates the asserted level.

    Also fail the test if no prediction violates the level, but the search gave up somewhere; with
    ``skipping``, skip it.
    """
    __tracebackhide__ = True
    from isolang.errors import IsolangError

    try:
        foreseen = one.foresee(level)
    except IsolangError as error:
        message = str(error)
    else:
        item.user_properties.append((_FORESEEN, "\n".join(foreseen.lines())))
        if not foreseen.confirmed and not foreseen.undecided:
            return
        message = "\n".join(foreseen.lines())
        if foreseen.undecided and skipping:
            pytest.skip(message)
    pytest.fail(message, pytrace=False)


def _choice_for_unknown(config: pytest.Config) -> str:
    chosen: str = config.getoption("isolation_unknown") or config.getini("isolation_unknown")
    return chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the verdicts and the unseen activity to a test's report.

    If the test failed, also add the seed and the folder with the history.
    """
    report = yield
    one = item.stash.get(_ISOLATION, None)
    if one is not None and call.when == "call":
        for verdict in one.judged:
            item.user_properties.append((f"isolation {verdict.spec.name}", verdict.outcome))
        transactions = sum(v.history.counts()["transactions"] for v in one.judged)
        item.user_properties.append((_TRANSACTIONS, str(transactions)))
        unseen = list(one.unseen().lines())
        item.user_properties += [(f"{_UNSEEN}{kind}", detail) for kind, detail in unseen]
        if one.noted:
            notes = [f"INVALID, {harm.headline()}" for _, harm in one.noted]
            item.user_properties.append((_NOTED, "\n".join(notes)))
        if one.judged and all(verdict.nothing_observed for verdict in one.judged):
            item.user_properties.append((_IDLE, "true"))
        report.user_properties = list(item.user_properties)
        if report.failed:
            lines = [f"seed: {one.seed} (repeat with --isolation-seed={one.seed})"]
            lines.append(f"history: {one.folder if one.keep is None else one.keep}")
            lines += [f"unseen: {kind} ({detail})" for kind, detail in unseen]
            report.sections.append(("isolation", "\n".join(lines)))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the number of tests and transactions checked, and the activity not recorded."""
    properties = [
        dict(report.user_properties)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
    ]
    for of in properties:
        if _FORESEEN in of:
            terminalreporter.write_line(of[_FORESEEN])
    judged = [int(of[_TRANSACTIONS]) for of in properties if _TRANSACTIONS in of]
    if not judged:
        return
    unseen: dict[str, tuple[int, str]] = {}
    for of in properties:
        for name, detail in of.items():
            if name.startswith(_UNSEEN):
                counted = "".join(takewhile(str.isdigit, detail))
                before, example = unseen.get(name, (0, detail[len(counted) + 2 :]))
                unseen[name] = (before + int(counted), example)
    terminalreporter.write_line(
        f"isolation: {_counted(len(judged), 'test')}, {_counted(sum(judged), 'transaction')}, "
        f"{sum(number for number, _ in unseen.values()):,} unseen"
    )
    if noted := [note for of in properties for note in of.get(_NOTED, "").splitlines()]:
        terminalreporter.write_line(
            f"  {_counted(len(noted), 'violation')} only noted (harmless='note'), first: {noted[0]}"
        )
    if idle := sum(_IDLE in of for of in properties):
        terminalreporter.write_line(
            f"  {_counted(idle, 'test')} passed, but no session in them read or missed what "
            "another session wrote, so this shows next to nothing"
        )
    for name, (number, first) in sorted(unseen.items()):
        example = f" ({first})" if first else ""
        terminalreporter.write_line(f"  {number:,} {name.removeprefix(_UNSEEN)}{example}")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
