"""What a start costs: what is imported, the shipped tables of the grammar, the command line."""

import importlib
import inspect
import json
import signal
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import lark
import pytest
from support.cli import ENVIRONMENT, LOST_UPDATE, VALID, run_here

from isolang.cli.commands import ISOCHECK, SPEC
from isolang.cli.parameters import as_command
from isolang.declared import options_of
from isolang.language.syntax import grammar
from isolang.options import Options, ReadOptions

VALID_QUEUE = "{:process 0, :type :invoke, :f :enqueue, :value 1}"
VALID_EDN = (
    "{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}\n"
    "{:type :ok, :process 0, :f :txn, :value [[:w :x 1]]}\n"
)
LIBRARIES = {
    "clingo", "hypothesis", "matplotlib", "networkx", "numpy.ma", "pydantic", "pysat", "pysmt",
    "pytest", "z3", "zstandard",
}  # fmt: skip
PARTS = {
    "isolang.certify.facts", "isolang.certify.refutation", "isolang.certify.steps",
    "isolang.certify.world", "isolang.jobs.pool", "isolang.cli.solvers",
    "isolang.encodings.formula", "isolang.encodings.relational", "isolang.explain.explain",
    "isolang.pipeline.prove",
    "isolang.pipeline.unsat_core",
    "isolang.history.readers.viper", "isolang.history.stats",
    "isolang.language.syntax.slips", "isolang.language.classify.return_paths",
    "isolang.language.classify.theorems", "isolang.simulator",
}  # fmt: skip


def imported(folder, arguments, code, before="numpy"):
    """What a command imports, besides what is imported before."""
    program = (
        f"import sys, {before}; before = set(sys.modules); from isolang.cli.main import main;"
        f"assert main({arguments!r}) == {code};"
        "print(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True, text=True, check=True, env=ENVIRONMENT, cwd=folder,
    )  # fmt: skip
    return set(done.stderr.split())


def of_check(folder, text, code):
    """What a check of a history imports, besides NumPy; text would judge other levels, too."""
    (folder / "h").write_text(text)
    return imported(folder, ["-s", "si", "-o", "json", "h"], code)


def test_help_imports_no_language_and_no_arrays(tmp_path):
    """It lists every command from their table, and imports none of them."""
    loaded = imported(tmp_path, ["--help"], 0, before="os")
    commands = {line.where.partition(":")[0] for line in ISOCHECK.values()}
    assert loaded & commands == {"isolang.cli.commands"}
    assert loaded & {"lark", "numpy", "pydantic", "isolang.language.load"} == set()
    assert len(loaded) < 260


def test_a_small_check_imports_few_modules(tmp_path):
    """A parameter is converted without Typer's adapters, which would bring a hundred modules."""
    assert len(of_check(tmp_path, VALID, 0)) < 300
    assert "rich" not in imported(tmp_path, ["-s", "si", "h"], 0)


def test_a_plain_check_imports_what_it_needs(tmp_path):
    """A start is paid for by everyone: what only some checks need is not part of it."""
    loaded = of_check(tmp_path, VALID, 0)
    assert "isolang.pipeline.decision" in loaded
    assert loaded & (LIBRARIES | PARTS) == set()


def test_an_explanation_imports_no_encodings(tmp_path):
    """Nor other libraries, nor NumPy's masked arrays, which `np.unique` needs."""
    loaded = of_check(tmp_path, LOST_UPDATE, 1)
    assert "isolang.explain.explain" in loaded
    wanted = {name for name in PARTS if name.startswith(("isolang.certify", "isolang.explain"))}
    assert loaded & (LIBRARIES | PARTS - wanted) == set()


# --- the tables of the grammar ---


def _automaton(parser):
    """The parse table, its states numbered in the order of a walk from the start."""
    table = parser.parser.parser.parser.parse_table
    start = table.start_states["start"]
    numbers, rows = {start: 0}, []
    queue = [start]
    for state in queue:
        row = []
        for token, (action, what) in sorted(table.states[state].items()):
            if str(action) == "Shift":
                if what not in numbers:
                    numbers[what] = len(numbers)
                    queue.append(what)
                row.append((token, "shift", numbers[what]))
            else:
                names = [str(part.name) for part in (what.origin, *what.expansion)]
                row.append((token, "reduce", names, what.alias, repr(what.options)))
        rows.append(row)
    return rows, numbers[table.end_states["start"]]


def _terminals(parser):
    return sorted((t.name, repr(t.pattern), t.priority) for t in parser.terminals)


def test_the_tables_are_of_the_grammar():
    """``python -m isolang.language.syntax.grammar`` writes them after a change of the grammar."""
    shipped = json.loads(grammar.TABLES.read_bytes())
    text = grammar.GRAMMAR.read_text(encoding="utf-8")
    assert shipped["grammar"] == grammar.digest(text)
    if shipped["lark"] != lark.__version__:
        pytest.skip(f"the tables are of Lark {shipped['lark']}: they are not used")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = grammar.parser.__wrapped__()
    assert ours.source_path == "<deserialized>"
    made = grammar.from_grammar(text)
    assert _automaton(ours) == _automaton(made)
    assert len(_automaton(ours)[0]) > 50
    assert _terminals(ours) == _terminals(made)
    assert sorted(ours.lexer_conf.ignore) == sorted(made.lexer_conf.ignore)


@pytest.mark.parametrize(
    ("name", "category"), [("grammar", RuntimeWarning), ("lark", ImportWarning)]
)
def test_tables_of_something_else_are_not_used(tmp_path, monkeypatch, name, category):
    """Of another grammar or another Lark: the parser is made, and it is said."""
    shipped = json.loads(grammar.TABLES.read_bytes())
    other = tmp_path / "grammar.json"
    other.write_text(json.dumps({**shipped, name: "another"}))
    monkeypatch.setattr(grammar, "TABLES", other)
    with pytest.warns(category, match="grammar.json"):
        parser = grammar.parser.__wrapped__()
    assert parser.source_path != "<deserialized>"
    assert parser.parse("acyclic so as x").data == "start"


def test_the_tables_can_be_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(grammar, "TABLES", tmp_path / "grammar.json")
    grammar.write()
    assert grammar.parser.__wrapped__().source_path == "<deserialized>"


# --- the command line ---


def _commands(lines, name):
    for key, line in lines.items():
        if key == "spec":
            yield from _commands(SPEC, f"{name} spec")
        else:
            yield f"{name} {key}", line


ALL = dict(_commands(ISOCHECK, "isocheck"))


@pytest.mark.parametrize("name", ALL)
def test_every_command_explains_itself(capfd, name):
    """Its help names it, and every option says what it is."""
    run = run_here(capfd, *name.split()[1:], "--help")
    assert run.code == 0
    assert f"Usage: {name} " in run.out
    assert ALL[name].example.startswith(f"{name} " if ALL[name].example else "")
    assert ALL[name].example in " ".join(run.out.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, entry in ALL.items()
        if entry.example and name not in ("isocheck run", "isocheck court")
    ],
)
def test_the_example_of_a_help_works(capfd, tmp_path, monkeypatch, name):
    """With a valid history and with less of patience; others have tests with a server."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "history.edn").write_text(VALID_EDN)
    (tmp_path / "history.txt").write_text(VALID)
    (tmp_path / "queue.edn").write_text(VALID_QUEUE)
    (tmp_path / "reports").mkdir()
    report = run_here(capfd, "check", "-s", "ser", "-o", "json", "history.txt").out
    (tmp_path / "reports" / "night.json").write_text(report)
    example = ALL[name].example.replace("60", "0.2").replace("10000", "10")
    run = run_here(capfd, *example.split()[1:])
    assert run.code == 0, run.err


@pytest.mark.parametrize("name", ALL)
def test_the_table_has_the_first_sentence_of_each_help(name):
    """What lists the commands says of each what it says of itself."""
    module, attribute = ALL[name].where.split(":")
    first = inspect.getdoc(getattr(importlib.import_module(module), attribute)).split("\n\n")[0]
    assert ALL[name].about == " ".join(first.split())


@pytest.mark.parametrize("name", ALL)
def test_every_parameter_is_described(name):
    """By a text of its own: help shows no option that it does not explain."""
    module, attribute = ALL[name].where.split(":")
    command = as_command(getattr(importlib.import_module(module), attribute))
    assert command.__doc__
    for parameter in inspect.signature(command).parameters.values():
        (about,) = parameter.annotation.__metadata__
        assert about.help, parameter.name


def test_options_are_the_same_in_all_commands():
    """What is an option of a check has the name and the help of its record."""
    command = as_command(importlib.import_module("isolang.cli.check").check)
    parameters = inspect.signature(command).parameters
    for record in (Options, ReadOptions):
        for name, option in options_of(record).items():
            (about,) = parameters[name].annotation.__metadata__
            assert about.help == option.about.text
            assert parameters[name].default == getattr(record(), name)


def test_a_history_may_begin_with_a_dash(tmp_path, monkeypatch, capfd):
    """Behind ``--`` everything is an argument."""
    monkeypatch.chdir(tmp_path)
    for name in ("-a", "--help"):
        (tmp_path / name).write_text(VALID)
    run = run_here(capfd, "--spec", "si", "-o", "json", "--", "-a", "--help")
    assert [r["history"] for r in run.reports()] == ["-a", "--help"]
    assert "no such option: -a" in run_here(capfd, "--spec", "si", "-a").err


def test_options_and_histories_may_be_mixed(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text(VALID)
    (tmp_path / "b").write_text(LOST_UPDATE)
    for arguments in (
        ["check", "a", "--spec", "si", "b", "-o", "json", "-sser"],
        ["a", "b", "--spec=si", "-s", "ser", "--output=json"],
    ):
        run = run_here(capfd, *arguments)
        verdicts = [(r["history"], r["spec"], r["verdict"]) for r in run.reports()]
        assert verdicts == [
            ("a", "si", "valid"), ("a", "ser", "valid"),
            ("b", "si", "invalid"), ("b", "ser", "invalid"),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["check", "--spec", "si", "a", "--sedd", "1"], "no such option: --sedd (did you mean "
         "--seed?)", "isocheck check --help"),
        (["--see", "1", "-s", "si", "a"], "no such option: --see", "isocheck check --help"),
        (["--spce", "si", "a"], "no such option: --spce (did you mean --spec?)", ""),
        (["a"], "--spec/-s SPEC is missing", "isocheck check --help"),
        (["check", "--spec", "si"], "HISTORY", "isocheck check --help"),
        (["check", "a"], "--spec", "isocheck check --help"),
        (["check", "a", "--spec"], "--spec", "isocheck check --help"),
        (["check", "a", "-s", "si", "-j", "0"], "--jobs/-j: expected a whole number of at least 1",
         "check --help"),
        (["check", "a", "-s", "si", "--jobs", "x"], "expected a whole number (got 'x')", ""),
        (["check", "a", "-s", "si", "--timeout", "0"], "--timeout must be positive", "check"),
        (["check", "a", "-s", "si", "--timeout", "x"], "expected a number (got 'x')", ""),
        (["check", "a", "-s", "si", "--memory", "nan"], "--memory must be positive", "check"),
        (["check", "a", "-s", "si", "--seed", "-1"], "--seed must be at least 0", "check --help"),
        (["check", "a", "-s", "si", "-o", "xml"], "expected text, json, edn", "check --help"),
        (["check", "a", "-s", "si", "-o", "josn"], "did you mean json?", "check --help"),
        (["check", "a", "-s", "si", "--from", "plum"], "did you mean plume?", "check --help"),
        (["check", "a", "-s", "si", "--encoding", "monosatt"], "did you mean monosat?", ""),
        (["check", "a", "-s", "si", "--solver", "klingo"], "did you mean clingo?", ""),
        (["check", "a", "-s", "si", "--prune", "fixpiont"], "did you mean fixpoint?", ""),
        (["chek", "a"], "no such command: chek", "did you mean `isocheck check`?"),
        (["levles", "a"], "no such command: levles", "did you mean `isocheck levels`?"),
        (["spec", "lnt", "x"], "no such command: lnt", "did you mean `isocheck spec lint`?"),
        (["spec", "lint", "x", "--seconds", "-1"], "of at least 0", "isocheck spec lint --help`"),
        (["schema", "chck"], "did you mean check?", "isocheck schema --help"),
    ],
)  # fmt: skip
def test_wrong_arguments(tmp_path, monkeypatch, capfd, arguments, message, hint):
    """Two lines: what is wrong, and where to read on."""
    monkeypatch.chdir(tmp_path)
    run = run_here(capfd, *arguments)
    assert (run.code, run.out) == (2, "")
    what, more = run.err.splitlines()
    assert what.startswith("isocheck: ")
    assert message in what
    assert more.startswith("  hint: ")
    assert hint in more


def test_a_file_of_a_command_s_name_is_a_history(tmp_path, monkeypatch, capfd):
    """What may be a mistyped command is a history if there is such a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chek").write_text(VALID)
    (report,) = run_here(capfd, "chek", "-s", "si", "-o", "json").reports()
    assert (report["history"], report["verdict"]) == ("chek", "valid")


def test_the_version_needs_no_command(capfd):
    assert run_here(capfd, "--version", "x").out.startswith("isocheck")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("isocheck ch", {"check"}),
        ("isocheck check --spec strict-ser", {"strict-serializable"}),
        ("isocheck --spec pl-", {"pl-1", "pl-2", "pl-3"}),
        ("isocheck check --from e", {"edn"}),
        ("isocheck check --solver z", {"z3"}),
        ("isocheck encode --encoding one", {"one_variable"}),
        ("isocheck convert --to plu", {"plume"}),
        ("isocheck check --output j", {"json"}),
        ("isocheck spec li", {"list", "lint"}),
        ("isocheck check --cert", {"--certify", "--certificate"}),
    ],
)
def test_shell_completion(words, expected):
    """Of commands, options, and the names that an option may have."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "isolang.cli.main"],
        capture_output=True, text=True, check=False,
        env={
            **ENVIRONMENT,
            "_ISOCHECK_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        },
    )  # fmt: skip
    assert set(done.stdout.split()) >= expected
    assert all(word.startswith(words.split()[-1]) for word in done.stdout.split())


def test_ctrl_c_while_the_program_is_imported(tmp_path):
    """No traceback: it ends as by any signal. Where Ctrl-C is ignored, it stays so."""
    (tmp_path / "typer.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(0.2)\nraise SystemExit(7)\n"
    )
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop()); {}"
        "from isolang.cli.entry import main; main()"
    )
    ignores = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    for before, code in (("", -signal.SIGINT), (ignores, 7)):
        done = subprocess.run(
            [sys.executable, "-P", "-c", program.format(before), tmp_path],
            capture_output=True, text=True, check=False, env=ENVIRONMENT,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_the_program_catches_ctrl_c_again(tmp_path):
    """What is interrupted later says so."""
    program = (
        "import os, signal, sys; from isolang.cli import entry, main; "
        "main.main = lambda: os.kill(os.getpid(), signal.SIGINT) or 5\n"
        "try: entry.main()\nexcept KeyboardInterrupt: sys.exit(130)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, check=False, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (130, b"")


def test_no_garbage_is_sought_among_modules():
    """While the command line is imported, none is collected; later it is, without the modules."""
    program = (
        "import gc, sys; from isolang.cli import entry; seen = [];"
        "gc.callbacks.append(lambda phase, info: seen.append(hasattr("
        "sys.modules.get('isolang.cli.main'), 'main'))); sys.argv[1:] = ['--version'];"
        "code = entry.main(); gc.collect();"
        "sys.exit(code or not (seen and all(seen) and gc.isenabled() and gc.get_freeze_count()))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, check=False, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_program_is_the_entry():
    """Not the module whose imports Ctrl-C would end in a traceback."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"isocheck": "isolang.cli.entry:main"}
