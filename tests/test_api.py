"""The public functions, their doctests, and those of the documentation."""

import doctest
import importlib
import inspect
import json
import sys

import pytest
from support.cli import hard_text, run_here
from support.paths import ROOT

import isolang
from isolang import History, Transaction
from isolang.errors import OptionError
from isolang.programs.syntax import parse_program
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


SKEW = [
    Transaction([("r", "x", None), ("w", "y", 1)], session=1),
    Transaction([("r", "y", None), ("w", "x", 1)], session=2),
]


def test_levels_are_those_of_the_command(capfd):
    """The command and the function give each level the same verdict, for the same reason."""
    path = str(ROOT / "examples" / "on-call.edn")
    answer = isolang.levels(isolang.load_history(path), threads=1)
    said = json.loads(run_here(capfd, "levels", path, "-o", "json").out)
    assert (list(answer.strongest()), list(answer.weakest_violated())) == (
        said["strongest"],
        said["weakest_violated"],
    )
    for level in said["levels"]:
        standing = answer.levels[level["name"]]
        assert (
            standing.standing,
            standing.certified,
            standing.follows_from or None,
            standing.anomaly or None,
        ) == (
            level["standing"],
            level["certified"],
            level["follows_from"],
            level["anomaly"],
        )


@pytest.mark.parametrize("function", [isolang.check, isolang.levels])
def test_only_histories_are_judged(function):
    """A path is not a history: its error says how to load one."""
    with pytest.raises(isolang.HistoryError, match="pass a history from load_history"):
        function("history.edn", "si") if function is isolang.check else function("history.edn")


def test_levels_within_a_limit():
    """Without time, a level that needs a search is unknown, and the limit is named."""
    answer = isolang.levels(History.from_transactions(SKEW), timeout=1e-9)
    assert {level.standing for level in answer.levels.values()} == {"unknown", "no times"}
    assert all("timeout" in level.reason for level in answer.levels.values() if level.reason)


def test_compare_takes_whatever_names_a_level(tmp_path):
    """A name, a path, a text and a loaded specification of one level are equal."""
    text = 'include "adya.iso"\nacyclic so | wr | ww | rw as mine\n'
    path = tmp_path / "mine.iso"
    path.write_text(text)
    for other in (text, path, isolang.load_spec(text)):
        answer = isolang.compare("ser", other)
        assert answer.relation == "equal"
        assert answer.forth.proof.holds()
        assert answer.back.proof.holds()


def test_compare_beyond_its_bounds():
    """A bound has the same limits as on the command line, and one that is too small shows."""
    for bound in (0, 9):
        with pytest.raises(OptionError, match=f"transactions: out of bounds .got {bound}, expec"):
            isolang.compare("ser", "si", transactions=bound)
    answer = isolang.compare("si", "ser", transactions=1)
    assert (answer.relation, answer.forth.searched, answer.forth.witness) == ("unknown", 1, None)


def test_outcomes_name_their_levels():
    """By the given name, by a key of a mapping, or by the name in a text, each only once."""
    program = parse_program("a = r(x) || w(x, 1)")
    text = 'spec mine "mine"\ninclude "adya.iso"\nacyclic so | wr as c\n'
    assert isolang.outcomes(program, "si").levels == ("si",)
    assert isolang.outcomes(program, [text, isolang.load_spec("ra")]).levels == ("mine", "RA")
    table = isolang.outcomes(program, {"strong": "ser", "weak": text})
    assert table.levels == ("strong", "weak")
    assert table.with_standing("strong") == table.outcomes
    for wrong in (["si", "si"], []):
        with pytest.raises(OptionError, match="two have the same name, or there is none"):
            isolang.outcomes(program, wrong)
    with pytest.raises(OptionError, match="expected strong, weak"):
        table.with_standing("si")


def test_robust_takes_a_run_or_templates(tmp_path, capfd):
    """Templates from a text or a file, and those of a run, as the command decides them."""
    text = "program P(c) r(x[c]) w(x[c], 0)"
    path = tmp_path / "service.litmus"
    path.write_text(text)
    for source in (text, path, str(path)):
        answer = isolang.robust(source, at="mvrc")
        assert (answer.standing, answer.run) == ("not robust", None)
        assert [row.level for row in answer.lowest] == ["si"]
    row = ("r", "acc/1", None), ("w", "acc/1", 1)
    run = History.from_transactions([Transaction(row, label="Pay")])
    answer = isolang.robust(run, at="mvrc")
    assert [(row.program, row.level, row.standing) for row in answer.table] == [
        ("Pay", "si", "not robust")
    ]
    assert answer.counterexample.programs == ("Pay", "Pay")
    assert answer.unsafe_together == ()
    assert isolang.robust(run).at == "si"
    isolang.save_history(run, tmp_path / "run.edn")
    said = json.loads(
        run_here(capfd, "robust", str(tmp_path / "run.edn"), "--at", "mvrc", "-o", "json").out
    )
    assert [row["program"] for row in said["table"]] == ["Pay"]
    assert said["standing"] == answer.standing


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"at": "ser"}, "no such level .got 'ser', expected mvrc, si, innodb-read-committed"),
        ({"same_keys": [["a", "b"]]}, "same_keys and catalogue apply only to a recorded run"),
    ],
)
def test_robust_refuses_what_it_would_ignore(arguments, said):
    """A level that is not decided, and options of runs for templates, are errors."""
    with pytest.raises(OptionError, match=said):
        isolang.robust("program P(c) r(x[c])", **arguments)
