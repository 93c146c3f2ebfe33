"""The public functions, their doctests, and those of the documentation."""

import doctest
import importlib
import inspect
import sys

import pytest
from support.cli import hard_text
from support.paths import ROOT

import isolang
from isolang import History, Transaction
from isolang.verdict import Unknown

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "isolang").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    """The examples in the code are true."""
    # A package may have a function of its module's name.
    importlib.import_module(name)
    failed, tried = doctest.testmod(sys.modules[name])
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize(("page", "least"), [("python.md", 10), ("models.md", 5)])
def test_documentation(monkeypatch, page, least):
    """The examples in docs/python.md and docs/models.md are true."""
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(
        str(ROOT / "docs" / page), module_relative=False, encoding="utf-8"
    )
    assert tried > least
    assert failed == 0


def test_everything_public_is_there():
    """Each name of ``__all__`` can be imported, and ``dir`` shows it."""
    for name in isolang.__all__:
        assert getattr(isolang, name) is not None
        assert name in dir(isolang)
    with pytest.raises(AttributeError):
        _ = isolang.nosuch


@pytest.mark.parametrize("name", [n for n in isolang.__all__ if n not in ("UNKNOWN", "Verdict")])
def test_everything_public_is_described(name):
    """The API reference is made of docstrings: they name each parameter of a function."""
    named = getattr(isolang, name)
    assert inspect.getdoc(named)
    if inspect.isfunction(named):
        described = inspect.getdoc(named)
        missing = [p for p in inspect.signature(named).parameters if f"{p}: " not in described]
        assert missing == []


LOST = History.from_transactions(
    [
        Transaction([("r", "x", None), ("w", "x", 1)], session=1),
        Transaction([("r", "x", None), ("w", "x", 2)], session=2),
    ]
)


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    """A history that is not decided quickly."""
    path = tmp_path_factory.mktemp("hard") / "hard.txt"
    path.write_text(hard_text())
    return isolang.load_history(path)


def test_timeout(hard):
    """In this process, too, the time holds, and the verdict says what it was spent on."""
    verdict = isolang.check(hard, isolang.load_spec("ser"), timeout=0.05)
    assert isinstance(verdict, Unknown)
    assert (verdict.outcome, verdict.cause) == ("unknown", "timeout")
    assert verdict.phase in verdict.reason
    assert verdict.spent.total < 10
    assert not verdict.certified


@pytest.mark.parametrize("argument", [{"timeout": 0}, {"timeout": -1}, {"memory": 0}])
def test_limits_must_be_positive(argument):
    """A limit of nothing is a mistake, not a very strict check."""
    with pytest.raises(ValueError, match="must be positive"):
        isolang.check(LOST, isolang.load_spec("si"), **argument)


def test_real_time_is_never_assumed():
    """A spec that uses rt is an error on a history without times, not a pass."""
    with pytest.raises(isolang.HistoryError, match="real time"):
        isolang.check(LOST, isolang.load_spec("sser"))


def test_unsupported_histories_are_unknown():
    """A key that is a register and a list cannot be judged; that is no pass."""
    mixed = History.from_transactions(
        [Transaction([("w", "x", 1)], session=1), Transaction([("append", "x", 2)], session=2)]
    )
    verdict = isolang.check(mixed, isolang.load_spec("ser"))
    assert isinstance(verdict, Unknown)
    assert verdict.cause == "unsupported"


def test_seconds_add_up():
    """The phases are parts of the total."""
    seconds = isolang.check(LOST, isolang.load_spec("si")).seconds
    assert 0 < seconds.prepare + seconds.solve + seconds.certify <= seconds.total
    assert seconds.read == 0


def test_progress_names_the_phases():
    """Each phase is announced, in order."""
    phases = []
    isolang.check(LOST, isolang.load_spec("pl-2"), progress=phases.append)
    assert phases[:2] == ["prepare", "solve"]
    assert phases[-1] == "certify"


def test_certify_can_be_switched_off():
    """Then the verdict is not called certified, and says why."""
    verdict = isolang.check(LOST, isolang.load_spec("si"), certify=False)
    assert (verdict.outcome, verdict.certified) == ("invalid", False)
    assert verdict.certified_reason


def test_verdicts_are_immutable():
    """A verdict is a fact."""
    verdict = isolang.check(LOST, isolang.load_spec("si"))
    with pytest.raises(AttributeError):
        verdict.certified = True


def test_memory_cap_is_lifted_afterwards():
    """The limit holds for the check, not for the program that calls it."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    isolang.check(LOST, isolang.load_spec("si"), memory=200)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.parametrize("history", [None, [], "history.edn"])
def test_what_is_no_history_is_refused(history):
    """In one sentence, before anything is done."""
    with pytest.raises(isolang.HistoryError, match="check: not a history \\(got "):
        isolang.check(history, "ser")
