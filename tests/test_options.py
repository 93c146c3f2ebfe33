"""The options of a check: declared once, with bounds that hold wherever they are given."""

import inspect
import math

import pytest
from support.cli import VALID, run_here

import isolang
from isolang.api import load_history
from isolang.errors import HistoryError, IsolangError, OptionError
from isolang.options import Options, ReadOptions, described

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
    with pytest.raises(IsolangError, match=f"^{name}: expected a "):
        isolang.check(LOST, "si", **{name: value})


@pytest.mark.parametrize("name", ["timeout", "memory", "seed", "threads"])
def test_the_largest_values_are_taken(tmp_path, capfd, name):
    """What is within the bounds works, with every clock and every solver."""
    most = described(Options)[name].le
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


@pytest.mark.parametrize("record", [Options, ReadOptions])
def test_every_option_is_described(record):
    """Help, and the schema of the configuration, say what each one means."""
    assert set(described(record)) == set(record.__struct_fields__)
    assert all(meta.description.endswith(".") for meta in described(record).values())


def test_every_reading_option_reaches_load_history(tmp_path):
    """Each has a parameter, and a clock error is applied: one without clocks is refused."""
    assert set(inspect.signature(load_history).parameters) >= set(ReadOptions.__struct_fields__)
    path = tmp_path / "history.edn"
    path.write_text(
        "{:type :invoke, :process 0, :index 0, :f :txn, :value [[:w :x 1]]}\n"
        "{:type :ok, :process 0, :index 1, :f :txn, :value [[:w :x 1]]}\n"
    )
    assert load_history(path).real_time
    with pytest.raises(HistoryError, match="failed-cas is an option of logs of operations"):
        load_history(path, failed_cas="compared")
    with pytest.raises(OptionError, match="failed_cas: expected auto, compared or nothing"):
        load_history(path, failed_cas="maybe")
    with pytest.raises(HistoryError, match="a clock error, but its real time is"):
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
    assert ReadOptions(format="edn", clock_error="2ms").said() == {"clock_error": "2ms"}
