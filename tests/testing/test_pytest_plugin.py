"""The pytest plugin, tried on small test files."""

import re
import sys
from importlib.metadata import entry_points

import pytest
from support.cli import ENVIRONMENT
from support.paths import ROOT

import isolang
import isolang.run.play.runner
from isolang import History, Transaction

pytest_plugins = ["pytester"]

INSTALLED = any(one.name == "isolang" for one in entry_points(group="pytest11"))

LOST_UPDATE = """
import pytest

def record(isolation):
    for name, value in (("alice", 1), ("bob", 2)):
        with isolation.transaction(session=name) as t:
            t.read("x", None)
            t.write("x", value)
"""


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """Native modules are loaded once in a process: before pytester looks at what is loaded."""
    with pytest.raises(isolang.IsolationError):
        isolang.assert_level(History.from_transactions([Transaction([("r", "x", 1)], 1)]), "si")
    isolang.run.play.runner.target_named("memory")


@pytest.fixture
def run(pytester, monkeypatch):
    """Write a test file and run pytest on it: here, or in a process of its own."""
    # The package that is tested: the checkout's own may have no native core.
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    plugin = () if INSTALLED else ("-p", "isolang.testing.pytest_plugin")

    def run(text, *options, apart=False):
        pytester.makepyfile(text)
        begin = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
        return begin("-p", "no:cacheprovider", "-p", "no:randomly", *plugin, *options)

    return run


def test_a_mark_asserts_what_was_recorded(run):
    """The failure is the argument itself, with the seed, and no traceback."""
    done = run(
        LOST_UPDATE
        + """
@pytest.mark.isolation(level="si")
def test_si(isolation):
    record(isolation)

@pytest.mark.isolation(level="pl-2")
def test_pl_2(isolation):
    record(isolation)
""",
        "--isolation-seed=7",
    )
    done.assert_outcomes(failed=1, passed=1)
    done.stdout.fnmatch_lines(["INVALID*history.edn*si*", "*lost update*", "*isolation-seed=7*"])
    assert "Traceback" not in done.stdout.str()


def test_a_test_asserts_for_itself(run):
    """``assert_level`` raises in the test, where it can be expected."""
    done = run(
        LOST_UPDATE
        + """
import isolang

def test_levels(isolation):
    record(isolation)
    (verdict,) = isolation.assert_level("pl-2")
    assert verdict.certified
    with pytest.raises(isolang.IsolationError, match="lost update") as caught:
        isolation.assert_level("si")
    assert caught.value.verdict.outcome == "invalid"
"""
    )
    done.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "body", "message"),
    [
        ('level="si"', "pass", "*nothing was recorded*"),
        ("", "record(isolation)", "*the mark names no level (got isolation()*"),
        ('"si", size=3', "record(isolation)", "*the mark names no level*"),
    ],
)
def test_what_would_assert_nothing_fails(run, mark, body, message):
    """A mark without a level, and a marked test that records nothing, are no successes."""
    text = f"@pytest.mark.isolation({mark})\ndef test_it(isolation):\n    {body}\n"
    done = run(f"{LOST_UPDATE}\n{text}")
    outcomes = done.parseoutcomes()
    assert outcomes.get("passed", 0) == 0
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 1
    done.stdout.fnmatch_lines([message])


def test_a_mark_without_the_fixture_fails(run):
    """It could record nothing."""
    done = run('import pytest\n@pytest.mark.isolation("si")\ndef test_it():\n    pass\n')
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*records nothing; use the fixture isolation*"])


@pytest.mark.parametrize(
    ("option", "outcome"),
    [
        ("--isolation-unknown=fail", "failed"),
        ("--isolation-unknown=skip", "skipped"),
        ("", "failed"),
    ],
)
def test_unknown_is_no_success(run, option, outcome):
    """By choice it fails or skips a test, whether the mark or the test asserts."""
    done = run(
        LOST_UPDATE
        + """
@pytest.mark.isolation("si", timeout=1e-9)
def test_marked(isolation):
    record(isolation)

def test_asserting(isolation):
    record(isolation)
    isolation.assert_level("si", timeout=1e-9)
""",
        *([option] if option else []),
    )
    done.assert_outcomes(**{outcome: 2})
    assert "unknown" in done.stdout.str().lower()


@pytest.mark.slow
def test_evidence_is_kept_under_xdist(run, pytester):
    """Each test has a folder; all workers have the same seed, which is printed."""
    body = """
@pytest.mark.isolation("si")
@pytest.mark.parametrize("number", range(4))
def test_it(isolation, number):
    record(isolation)
"""
    done = run(LOST_UPDATE + body, "-n", "2", "--isolation-report=evidence", apart=True)
    done.assert_outcomes(failed=4)
    assert len(set(re.findall(r"--isolation-seed=(\d+)", done.stdout.str()))) == 1
    folders = sorted(pytester.path.joinpath("evidence").iterdir())
    assert len(folders) == 4
    for folder in folders:
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["history.SI.html", "history.edn", "history.edn.SI.certificate.json"]
        verified = pytester.run(
            sys.executable, "-m", "isolang.cli.main", "verify", folder / names[2], folder / names[1]
        )
        assert verified.ret == 0


@pytest.mark.slow
def test_the_summary_counts_what_was_judged_and_unseen(run, pytester):
    """All workers together, each kind of what was left out with its first example."""
    body = """
@pytest.mark.isolation("pl-2", allow_unseen={"copy", "limits"})
@pytest.mark.parametrize("number", range(3))
def test_it(isolation, number):
    from types import SimpleNamespace
    from isolang.observe.unseen import Unseen
    record(isolation)
    unseen = Unseen()
    for _ in range(number):
        unseen.note("copy", f"COPY {number}")
    if number == 2:
        unseen.note("limits", "SELECT a")
        unseen.note("limits", "SELECT b")
    isolation._proxies.append(SimpleNamespace(unseen=lambda: unseen, path=None))

def test_of_something_else():
    pass
"""
    done = run(LOST_UPDATE + body, "-n", "2", "--junitxml=junit.xml", apart=True)
    done.assert_outcomes(passed=4)
    done.stdout.fnmatch_lines(
        [
            "isolation: 3 tests, 6 transactions, 5 unseen",
            "  3 copy (first: COPY [12])",
            "  2 limits (1 × SELECT a; 1 × SELECT b)",
        ]
    )
    junit = pytester.path.joinpath("junit.xml").read_text()
    assert 'name="isolation unseen: copy" value="2; first: COPY 2"' in junit
    assert "isolation:" not in run("def test_it(): pass").stdout.str()


def test_the_summary_says_which_tests_prove_nothing(run):
    """Two sessions that never meet: the test passes, and pytest ends with a word about it."""
    body = """
@pytest.mark.isolation("ser")
@pytest.mark.parametrize("key", "xy")
def test_it(isolation, key):
    with isolation.transaction(session="alice") as t:
        t.write("x", 1)
    with isolation.transaction(session="bob") as t:
        t.read(key, 1 if key == "x" else None)
"""
    done = run(LOST_UPDATE + body)
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(
        ["isolation: 2 tests, 4 transactions, 0 unseen", "  1 test passed, but no session *"]
    )


def test_evidence_of_an_earlier_run_is_replaced(run, pytester):
    """The folder of a test has one history, one page and one certificate."""
    body = '@pytest.mark.isolation("si")\ndef test_it(isolation):\n    record(isolation)\n'
    for _ in range(2):
        run(LOST_UPDATE + body, "--isolation-report=evidence").assert_outcomes(failed=1)
    (folder,) = pytester.path.joinpath("evidence").iterdir()
    assert len(list(folder.iterdir())) == 3


def test_functions_run_concurrently(run):
    """Python's sqlite3 opens no transaction before a SELECT: two counters lose an update."""
    done = run(
        """
import sqlite3
import pytest

@pytest.fixture
def path(tmp_path):
    connection = sqlite3.connect(tmp_path / "bank.db")
    connection.execute("create table account (name, balance)")
    connection.execute("insert into account values ('a', 0)")
    connection.commit()
    connection.close()
    return tmp_path / "bank.db"

def deposit(isolation, path, begin):
    connection = sqlite3.connect(path)
    with isolation.transaction(connection) as t:
        connection.execute(begin)
        (balance,) = connection.execute("select balance from account").fetchone()
        t.read("a", balance or None)
        balance = isolation.random.randrange(1, 2**40)
        t.write("a", balance)
        connection.execute("update account set balance = ?", (balance,))
    connection.close()

@pytest.mark.isolation("ser")
@pytest.mark.parametrize("begin", ["select 1", "begin immediate"])
def test_deposit(isolation, path, begin):
    isolation.concurrently(
        lambda: deposit(isolation, path, begin),
        times=30, clients=4, ignoring=sqlite3.OperationalError,
    )

def test_mistakes_are_raised(isolation):
    with pytest.raises(ZeroDivisionError):
        isolation.concurrently(lambda: 1 / 0, lambda: None, times=3)
"""
    )
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*lost update*", "FAILED*select 1*"])


def test_a_workload_is_run(run):
    """``isolation.run`` gives the history of a workload, and it is judged."""
    done = run(
        """
def test_memory(isolation):
    history = isolation.run(
        "memory", level="serializable", workload="rmw", transactions=200, seconds=20, clients=4
    )
    assert isolation.waiting
    (verdict,) = isolation.assert_level("sser")
    assert verdict.history.counts() == history.counts()
    assert history.counts()["committed"] > 50
    assert not isolation.waiting
"""
    )
    done.assert_outcomes(passed=1)


@pytest.mark.slow
def test_the_plugin_costs_nothing_where_it_is_not_used(run):
    """Nothing of the checker is imported by a session whose tests do not use the fixture."""
    done = run(
        """
import sys

def test_it():
    loaded = {name for name in sys.modules if name.split(".")[0] == "isolang"}
    root = {"isolang", "isolang.renderers"}
    assert loaded <= root | {"isolang.testing", "isolang.testing.pytest_plugin"}
    assert not {"numpy", "rich", "msgspec", "lark", "z3"} & set(sys.modules)
""",
        apart=True,
    )
    done.assert_outcomes(passed=1)


def test_the_plugin_is_declared():
    """pyproject.toml names the module that pytest loads."""
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nisolang = "isolang.testing.pytest_plugin"' in text


def example(file, page="docs/pytest.md"):
    """A test file that a page shows."""
    text = (ROOT / page).read_text()
    (found,) = re.findall(rf"^```python\n(# {file}\n.*?)^```$", text, re.M | re.S)
    return found


def test_the_first_example_of_the_page(run):
    """Without BEGIN the deposits lose an update, with it they do not."""
    done = run(example("test_bank.py"))
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*lost update*", "FAILED*select 1*"])


def test_the_example_of_the_readme(run):
    """It fails by a lost update, as the readme shows it."""
    done = run(example("test_account.py", "README.md"))
    done.assert_outcomes(failed=1)
    shown = (
        "  lost update: a transaction overwrote a key that it had read, without seeing a write in *"
    )
    done.stdout.fnmatch_lines([shown, "*T? -rw balance-> T?  T? read balance = *overwrote*"])
    assert shown[:-2] in (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_interleavings_of_the_page(run):
    """The lost update of Python's sqlite3 is found, and shrunk to six steps."""
    done = run(example("test_interleavings.py"), apart=True)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*lost update*", "*FAILED*test_counters[[]python]*"])
    # Hypothesis may show it more than once.
    shown = re.findall(r"interleaving=((?:[^\n]*T\d  [^\n]*\n)+)", done.stdout.str())
    assert 6 in {len(steps.splitlines()) for steps in shown}


REFUSED = """
import pytest
from isolang.run.outcome import RolledBack

@pytest.mark.isolation("ser")
def test_refused(isolation):
    with pytest.raises(RolledBack), isolation.transaction() as t:
        t.write("x", 1)
        raise RolledBack

@pytest.mark.isolation("ser", allow_unseen=True)
def test_accepted(isolation):
    with pytest.raises(RolledBack), isolation.transaction() as t:
        t.write("x", 1)
        raise RolledBack

def test_empty(isolation):
    with isolation.transaction():
        pass
    isolation.assert_level("ser", allow_unseen=True)
    with pytest.raises(Exception, match="nothing was observed"):
        isolation.assert_level("ser")
"""


def test_a_level_that_nothing_could_have_broken_is_not_kept(run):
    """Where no committed transaction did anything, a test fails unless it allows that."""
    done = run(REFUSED)
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*nothing was observed*(got 1 transactions, 1 of them aborted;*"])


def test_a_report_is_printed_once(run):
    """The exception that holds the argument is not printed again as a cause."""
    done = run(
        LOST_UPDATE
        + """
@pytest.mark.isolation(level="si")
def test_si(isolation):
    record(isolation)
"""
    )
    shown = [line for line in done.stdout.lines if line.startswith("INVALID")]
    assert len(shown) == 1
    assert "During handling" not in done.stdout.str()


REQUESTS = """
import pytest

def order(isolation, value, meanwhile):
    with isolation.transaction(session=value) as t:
        t.read("stock", None)
    meanwhile()
    with isolation.transaction(session=value) as t:
        t.write("stock", value)

def orders(isolation):
    second = lambda: isolation.call(order, isolation, 2, lambda: None)
    isolation.call(order, isolation, 1, second)
"""


def test_a_mark_judges_calls_of_several_transactions(run):
    """The transactions are in order; the calls lose an update."""
    done = run(
        REQUESTS
        + """
@pytest.mark.isolation("ser", allow_unseen=True)
def test_transactions(isolation):
    orders(isolation)

@pytest.mark.isolation("ser", unit="request", allow_unseen=True)
def test_calls(isolation):
    orders(isolation)
"""
    )
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["*INVALID*ser*, requests*", "*writes what T* had read for the same*"]
    )
