"""The options of a check: declared once, with bounds that hold wherever they are given."""

import inspect
import math

import pytest
from support.cli import VALID, run_here

import isolang
from isolang.api import load_history
from isolang.cli.main import main
from isolang.declared import command_line, options_of, record_from
from isolang.errors import HistoryError, IsolangError, OptionError
from isolang.options import Options, ReadOptions
from isolang.run.settings import LitmusSettings, Settings
from isolang.run.workloads import Shape
from isolang.simulator import Workload

LOST = isolang.History.from_transactions(
    [
        isolang.Transaction([("r", "x", None), ("w", "x", 1)], session=1),
        isolang.Transaction([("r", "x", None), ("w", "x", 2)], session=2),
    ]
)
WRONG = [
    ("timeout", 0, "timeout must be positive (got 0)"),
    ("timeout", -1.5, "timeout must be positive (got -1.5)"),
    ("timeout", math.nan, "timeout must be positive (got nan)"),
    ("timeout", math.inf, "timeout must be at most 100,000,000 (got inf); leave it out"),
    ("timeout", 1e300, "timeout must be at most 100,000,000 (got 1e+300)"),
    ("memory", -1, "memory must be positive (got -1)"),
    ("memory", math.nan, "memory must be positive (got nan)"),
    ("memory", math.inf, "memory must be at most"),
    ("seed", -1, "seed must be at least 0 (got -1)"),
    ("seed", 1 << 64, "seed must be at most"),
    ("threads", 0, "threads must be at least 1 (got 0)"),
    ("threads", 1 << 40, "threads must be at most 256"),
]
NO_NUMBERS = [("timeout", "5"), ("memory", True), ("seed", 1.5), ("threads", 2.0)]


def ids(case):
    return str(case)


@pytest.mark.parametrize(("name", "value", "message"), WRONG, ids=ids)
def test_limits_out_of_bounds_are_refused(name, value, message):
    """In one sentence."""
    with pytest.raises(IsolangError) as caught:
        isolang.check(LOST, "si", **{name: value})
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("name", "value"), NO_NUMBERS, ids=ids)
def test_values_of_another_type_are_refused(name, value):
    """A string is no number, and neither is a truth value."""
    with pytest.raises(IsolangError, match=rf"^{name}: wrong value .*expected a "):
        isolang.check(LOST, "si", **{name: value})


@pytest.mark.parametrize("name", ["timeout", "memory", "seed", "threads"])
def test_the_largest_values_are_taken(tmp_path, capfd, name):
    """What is within the bounds works, with every clock and every solver."""
    most = options_of(Options)[name].about.bounds[1]
    most = float(most) if name in ("timeout", "memory") else most
    if name == "threads":
        most = 4  # as many as that only take long to start
    assert isolang.check(LOST, "si", **{name: most}).outcome == "invalid"
    for solver in ("z3", "clingo", "sat"):
        assert isolang.check(LOST, "si", solver=solver, **{name: most}).outcome == "invalid"
    path = tmp_path / "h"
    path.write_text(VALID)
    assert run_here(capfd, "-s", "si", f"--{name}", most, path).code == 0


def test_check_takes_every_option_by_name():
    """The public function says each option once more, with the same default."""
    parameters = inspect.signature(isolang.check).parameters
    own = {"history", "spec", "progress", "simplest"}
    taken = {name: p.default for name, p in parameters.items() if name not in own}
    options = Options()
    assert taken == {name: getattr(options, name) for name in Options.__struct_fields__}


@pytest.mark.parametrize(
    "record", [Options, ReadOptions, Settings, Shape, LitmusSettings, Workload]
)
def test_every_option_is_described(record):
    """Help says what each one means."""
    no_option = {"watched", "shape", "theta", "span"} if record in {Settings, Shape} else set()
    found = options_of(record)
    assert set(record.__struct_fields__) - no_option <= set(found)
    assert all(option.about.text.endswith(".") for option in found.values())
    assert len({option.flag for option in found.values()}) == len(found)


@pytest.mark.parametrize(
    ("record", "name", "value", "message"),
    [
        (Settings, "sessions", 0, "sessions must be at least 1 (got 0)"),
        (Settings, "savepoints", 1.5, "savepoints must be at most 1.0 (got 1.5)"),
        (
            Settings,
            "access",
            "hash",
            "access: wrong value (got 'hash', expected index, scan or any)",
        ),
        (Settings, "faults", "kill", "faults: not a list (got 'kill', expected several values)"),
        (Settings, "to_the_end", 1, "to_the_end: wrong value (got 1, expected true or false)"),
        (Settings, "level", None, "level: wrong value (got None, expected a string)"),
        (Shape, "reads", -0.1, "reads must be at least 0.0 (got -0.1)"),
        (Shape, "keys", 2.0, "keys: wrong value (got 2.0, expected a whole number)"),
        (LitmusSettings, "interleavings", 10**6, "interleavings must be at most 100,000"),
    ],
)
def test_settings_of_runs_have_bounds_in_python_too(record, name, value, message):
    """Not only on the command line."""
    given = {"target": "sqlite"} if record is Settings else {}
    with pytest.raises(OptionError) as caught:
        record(**given, **{name: value})
    assert str(caught.value).startswith(message)


def test_a_record_says_what_to_type_for_it(monkeypatch):
    """And who types that gets the same record, that in it included."""
    settings = Settings(
        target="sqlite",
        seed=7,
        faults=("kill", "slow"),
        to_the_end=True,
        folder="some where",
        shape=Shape(keys=3, distribution="zipfian", reads=0.25),
    )
    typed = command_line(settings)
    assert typed == [
        *("sqlite", "--seed", "7", "--save", "some where", "--to-the-end", "--fault", "kill"),
        *("--fault", "slow", "--keys", "3", "--reads", "0.25", "--distribution", "zipfian"),
    ]
    taken = []
    monkeypatch.setattr("isolang.cli.run._clean", lambda some: taken.append(some) or 0)
    assert main(["run", *typed, "--clean"]) == 0
    assert taken == [settings]
    assert command_line(Options(certify=False)) == ["--no-certify"]
    values = {"target": "sqlite", "keys": 3, "faults": ["kill"], "level": None}
    expected = Settings(target="sqlite", shape=Shape(keys=3), faults=("kill",))
    assert record_from(Settings, values) == expected


def test_every_reading_option_reaches_load_history(tmp_path):
    """Each has a parameter, and a clock error is applied: one without clocks is refused."""
    assert set(inspect.signature(load_history).parameters) >= set(ReadOptions.__struct_fields__)
    path = tmp_path / "history.edn"
    path.write_text(
        "{:type :invoke, :process 0, :index 0, :f :txn, :value [[:w :x 1]]}\n"
        "{:type :ok, :process 0, :index 1, :f :txn, :value [[:w :x 1]]}\n"
    )
    assert load_history(path).real_time
    with pytest.raises(
        HistoryError, match="--failed-cas applies only to logs of single operations"
    ):
        load_history(path, failed_cas="compared")
    with pytest.raises(
        OptionError, match=r"failed_cas: wrong value .*expected auto, compared or nothing"
    ):
        load_history(path, failed_cas="maybe")
    with pytest.raises(
        HistoryError, match="a clock error makes no sense here, because real time is"
    ):
        load_history(path, clock_error="2ms")


def test_a_history_knows_how_it_was_read(tmp_path):
    """Certificates of it have that, whoever makes them, so that nothing can be left out."""
    path = tmp_path / "history.edn"
    path.write_text(
        "{:type :invoke, :process 0, :f :write, :value 1}\n"
        "{:type :ok, :process 0, :f :write, :value 1}\n"
    )
    assert load_history(path).options == {}
    said = {"initial": 1, "per_key": True, "failed_cas": "nothing"}
    history = load_history(path, **said)
    assert history.options == said
    assert isolang.check(history, "sser").certificate().history_options == said
    assert ReadOptions(format="edn", clock_error="2ms").non_default() == {"clock_error": "2ms"}
