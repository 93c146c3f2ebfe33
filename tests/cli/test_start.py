"""What a start costs: what is imported, the shipped tables of the grammar, the command line."""

import inspect
import json
import subprocess
import sys
import warnings

import lark
import pytest
from support.cli import ENVIRONMENT, LOST_UPDATE, VALID, run_here

from isolang.cli.arguments import Group, HelpWanted, Parser, UsageProblem
from isolang.cli.commands import ISOCHECK
from isolang.language.syntax import grammar
from isolang.options import Options, ReadOptions

RECORDS = {"options", "reading"}

LIBRARIES = {
    "clingo", "click", "hypothesis", "matplotlib", "networkx", "numpy.ma", "pydantic", "pysat",
    "pysmt", "pytest", "typer", "z3", "zstandard",
}  # fmt: skip
PARTS = {
    "isolang.certify.facts", "isolang.certify.refutation", "isolang.certify.steps",
    "isolang.certify.world", "isolang.cli.pool", "isolang.encodings.formula",
    "isolang.encodings.relational", "isolang.explain.explain", "isolang.pipeline.prove",
    "isolang.explain.violation", "isolang.history.readers.viper", "isolang.history.stats",
    "isolang.pipeline.unsat_core",
    "isolang.language.syntax.slips", "isolang.language.classify.return_paths",
    "isolang.language.classify.theorems", "isolang.workload",
}  # fmt: skip


def imported(folder, text, code):
    """What a check of a history imports, besides NumPy."""
    (folder / "h").write_text(text)
    program = (
        "import sys, numpy; before = set(sys.modules); from isolang.cli.main import main;"
        f"assert main(['-s', 'si', 'h']) == {code};"
        "print(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True, text=True, check=True, env=ENVIRONMENT, cwd=folder,
    )  # fmt: skip
    return set(done.stderr.split())


def test_a_plain_check_imports_what_it_needs(tmp_path):
    """A start is paid for by everyone: what only some checks need is not part of it."""
    loaded = imported(tmp_path, VALID, 0)
    assert "isolang.pipeline.decision" in loaded
    assert loaded & (LIBRARIES | PARTS) == set()


def test_an_explanation_imports_no_encodings(tmp_path):
    """Nor other libraries, nor NumPy's masked arrays, which `np.unique` needs."""
    loaded = imported(tmp_path, LOST_UPDATE, 1)
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


def _commands(group, name):
    for key, command in group.commands.items():
        if isinstance(command, Group):
            yield from _commands(command, f"{name} {key}")
        else:
            yield f"{name} {key}", command


@pytest.mark.parametrize(("name", "command"), list(_commands(ISOCHECK, "isocheck")))
def test_commands_take_what_is_declared(name, command):
    """Values reach the functions by name: each of them is a parameter, and none is missing."""
    parser = Parser(name, command.about)
    command.declare(parser)
    with pytest.raises(HelpWanted, match=f"^Usage: {name} "):
        parser.parse(["--help"])
    declared = {a.dest for p in (parser._options, parser._arguments) for a in p._actions}
    parameters = inspect.signature(command.function()).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):  # generate: the fields of a workload
        return
    needed = {p.name for p in parameters if p.default is p.empty}
    taken = {p.name for p in parameters}
    for record in ({"options": Options, "reading": ReadOptions}[n] for n in RECORDS & taken):
        taken |= set(record.__struct_fields__)
    assert needed - RECORDS <= declared <= taken


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
        (["check", "a", "-s", "si", "--jobs", "0"], "got 0, expected at least 1", "check --help"),
        (["check", "a", "-s", "si", "--jobs", "x"], "--jobs", "check --help"),
        (["check", "a", "-s", "si", "--timeout", "0"], "--timeout: not a positive", "check --help"),
        (["check", "a", "-s", "si", "--memory", "nan"], "--memory: not a positive", "check --help"),
        (["check", "a", "-s", "si", "-o", "xml"], "xml", "check --help"),
        (["spec", "lnt", "x"], "no such command: lnt", "did you mean `isocheck spec lint`?"),
        (["spec", "lint", "x", "--seconds", "-1"], "a negative number", "isocheck spec --help`"),
        (["--version", "x"], "", ""),
    ],
)  # fmt: skip
def test_wrong_arguments(capfd, arguments, message, hint):
    """Two lines: what is wrong, and where to read on."""
    run = run_here(capfd, *arguments)
    if arguments[0] == "--version":
        assert run.out.startswith("isocheck")
        return
    assert (run.code, run.out) == (2, "")
    what, more = run.err.splitlines()
    assert what.startswith("isocheck: ")
    assert message in what
    assert more.startswith("  hint: ")
    assert hint in more


def test_a_parser_never_exits():
    """What is wrong is the caller's to say, whatever the parser is given."""
    for _, command in _commands(ISOCHECK, "isocheck"):
        parser = Parser("p", command.about)
        command.declare(parser)
        with pytest.raises(UsageProblem):
            parser.parse(["--no-such-option"])
