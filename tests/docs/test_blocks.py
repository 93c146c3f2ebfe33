"""Each block of the documentation runs, or tests/docs/pages.toml says why it does not."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import Counter
from importlib import import_module
from itertools import pairwise

import pytest
from support.command_words import wrong_words
from support.documentation import (
    Block,
    Command,
    blocks,
    commands,
    commands_of,
    elsewhere,
    is_session,
    outputs,
    pages,
    prepare,
    table_of,
)
from support.paths import ROOT, TESTS

import isolang
from isolang.api import load_spec
from isolang.cli.config import defaults
from isolang.comparison.compare import compare
from isolang.court.case import parse_case
from isolang.errors import IsolangError
from isolang.solvers import plugins

# Lists, set-reads, versions, predicates, labels, groups, requested levels, and times of statements.
SMALL = [
    *(f"tests/litmus/{name}.edn" for name in ("lost-update", "lost-update-list", "split-append")),
    *(f"tests/litmus/{name}.edn" for name in ("info-lost-update", "stale-read-in-real-time")),
    "tests/litmus/predicates/predicate-write-skew.edn",
    "tests/litmus/predicates/insert-insert.edn",
    "tests/litmus/times/seen-then-missed.edn",
    "tests/regressions/repeated-elements-hide-order.edn",
    "examples/on-call.edn",
]
ROOTS = (TESTS / "litmus", TESTS / "regressions", TESTS / "data", ROOT / "examples")
EVERYTHING = """
{:versions :ordered}
{:process 0, :type :invoke, :time 1, :f :txn, :value [[:append :l 1] [:w "audit/1" 1]], \
:label "report", :group "a", :level "ser"}
{:process 0, :type :ok, :time 3, :f :txn, :value [[:append :l 1] [:w "audit/1" 1]], \
:versions [nil 3], :label "report", :group "a", :level "ser"}
{:process 1, :type :invoke, :time 2, :f :txn, :value [[:r :l nil] [:w "audit/1" 2]], :level "rc"}
{:process 1, :type :ok, :time 5, :f :txn, :value [[:r :l [1]] [:w "audit/1" 2]], \
:versions [nil 4], :level "rc"}
{:process 1, :type :invoke, :time 6, :f :txn, :value [[:r-in "audit/1" [1 nil]] [:r :l nil]], \
:group "b", :level "rc"}
{:process 1, :type :ok, :time 7, :f :txn, :value [[:r-in "audit/1" [1 nil]] [:r :l []]], \
:group "b", :level "rc"}
"""
KINDS = (
    "before", "printed_by", "other_output", "histories", "parts", "in_file", "slow", "elsewhere"
)  # fmt: skip
RUN_HERE = {"iso", "edn", "clojure", "json", "yaml", "toml", "python"}


def blocks_in(*languages: str) -> list[Block]:
    """Return the blocks of some languages that run here."""
    return [block for block in blocks() if block.language in languages and not elsewhere(block)]


def name_of(block: Block) -> str:
    return block.where


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, in which a page finds what it uses."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- every block is known ---


def left_out(all_blocks) -> list[str]:
    """Return the blocks that neither run here nor stand in pages.toml."""
    beneath = {block for block, command in outputs() if command and not elsewhere(command)}
    return [
        f"{block.where}: {block.first}"
        for block in all_blocks
        if not elsewhere(block)
        and block.language not in RUN_HERE
        and not commands_of(block)
        and block not in beneath
        and not table_of(block, "histories")
        and not table_of(block, "printed_by")
    ]


def test_every_block_runs_or_has_a_reason():
    """A block of another language, and an output of no command, need one in pages.toml."""
    assert left_out(blocks()) == []


@pytest.mark.parametrize("language", ["rust", "", "text"])
def test_a_new_block_without_a_reason_is_noticed(language):
    """Whether it is code of another language, or an output."""
    new = Block("docs/cli.md", 1, language, "fn main() {}\n")
    assert left_out([*blocks(), new]) == ["docs/cli.md:1: fn main() {}"]


def test_every_reason_is_still_needed():
    """An entry of pages.toml names a page, and one block or command of it."""
    items: list[Block | Command] = [*blocks(), *commands()]
    named = Counter((item.page, item.first) for item in items if not is_prompt(item))
    for page, table in pages().items():
        assert (ROOT / page).exists(), page
        assert table.keys() <= {"files", "prepared_by", "together", *KINDS}, page
        for kind in KINDS:
            for first in table.get(kind, ()):
                assert named[page, first] == 1, (page, kind, first, named[page, first])


def is_prompt(item: Block | Command) -> bool:
    """Return whether a block consists of commands, which are named one by one."""
    return isinstance(item, Block) and (item.language == "sh" or is_session(item))


def test_a_test_that_runs_a_block_exists():
    """Where pages.toml names a test instead of a reason, it is there."""
    reasons = [why for table in pages().values() for why in table.get("elsewhere", {}).values()]
    tests = [why for why in reasons if why.startswith("tests/")]
    assert len(tests) > 20
    for test in tests:
        file, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), test


# --- specifications ---


def specifications(block: Block) -> list[str]:
    """Return the specifications of a block; a part of one begins as the table says."""
    before = table_of(block, "before")
    if not before and "include" not in block.text:
        before = 'include "adya.iso"\n'
    return [before + text for text in parts_of(block)]


def parts_of(block: Block) -> list[str]:
    """Return the texts of which a block consists: itself, but for what the table says."""
    lines = block.text.splitlines()
    numbers = table_of(block, "parts") or [len(lines)]
    assert sum(numbers) == len(lines)
    return ["\n".join(lines.pop(0) for _ in range(number)) + "\n" for number in numbers]


def judge(text: str, paths) -> Counter[str]:
    """Check histories, and return how often each verdict, or a refusal, came out."""
    spec = isolang.load_spec(text)
    outcomes: Counter[str] = Counter()
    for path in paths:
        try:
            verdict = isolang.check(isolang.load_history(path), spec, timeout=20, threads=1)
        except IsolangError as refusal:  # such as a level that needs times
            outcomes["internal error" if "internal error" in str(refusal) else "refused"] += 1
        else:
            assert verdict.outcome == "unknown" or verdict.certified, path
            outcomes[verdict.outcome] += 1
    assert outcomes["internal error"] == 0
    return outcomes


def histories_of(page: str, folder) -> list:
    """Write the histories that a page shows, and return their paths."""
    paths = []
    for block in blocks():
        if block.page == page and block in blocks_in("edn", "clojure"):
            for number, text in enumerate(as_histories(block)):
                paths.append(folder / f"shown{block.line}-{number}.edn")
                paths[-1].write_text(text, encoding="utf-8")
    return paths


SPECIFICATIONS = [block for block in blocks_in("iso") if not table_of(block, "in_file")]


@pytest.mark.parametrize("block", SPECIFICATIONS, ids=name_of)
def test_a_specification_judges_small_histories(block, folder):
    """It is well formed, and gives certified verdicts on the page's histories and on others."""
    (folder / "everything.edn").write_text(EVERYTHING, encoding="utf-8")
    paths = [
        *histories_of(block.page, folder),
        folder / "everything.edn",
        *(ROOT / name for name in SMALL),
    ]
    for text in specifications(block):
        outcomes = judge(text, paths)
        # A specification of requested levels judges only histories that have them.
        needed = 1 if "[level" in text else 5
        assert outcomes["valid"] + outcomes["invalid"] >= needed, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("block", SPECIFICATIONS, ids=name_of)
def test_a_specification_judges_all_histories(block, folder):
    """Those of the examples and of the tests."""
    (folder / "everything.edn").write_text(EVERYTHING, encoding="utf-8")
    paths = [
        folder / "everything.edn",
        *(path for root in ROOTS for path in sorted(root.glob("**/*.edn"))),
    ]
    assert len(paths) > 100
    for text in specifications(block):
        outcomes = judge(text, paths)
        needed = 1 if "[level" in text else len(paths) / 2
        assert outcomes["valid"] + outcomes["invalid"] >= needed, outcomes


@pytest.mark.parametrize("block", [b for b in blocks() if table_of(b, "in_file")], ids=name_of)
def test_a_block_stands_in_a_file(block):
    """Each of its lines is one of the file, up to what the file says about it at its end."""
    text = (ROOT / table_of(block, "in_file")).read_text(encoding="utf-8")
    assert [line for line in block.text.splitlines() if f"\n{line}" not in text] == []


@pytest.mark.slow
def test_the_implications_of_the_levels_page_hold():
    """Each implication has a proof."""
    pairs = []
    for block in blocks():
        if block.page == "docs/levels.md" and "⇒" in block.text:
            for chain in re.split(r"\n|;|\s{3,}", block.text.strip()):
                sides = [re.split(r", ", side.split("=")[0]) for side in chain.split("⇒")]
                for stronger, weaker in pairwise(sides):
                    pairs += [(a.strip(), b.strip()) for a in stronger for b in weaker]
    assert len(pairs) > 30
    for a, b in pairs:
        comparison = compare(load_spec(a), load_spec(b), transactions=1)
        assert comparison.forth.proof is not None, (a, b)


# --- histories ---


def as_histories(block: Block) -> list[str]:
    """Return the histories of a block, or one transaction of the operations that it shows."""
    if block.text.startswith("["):
        operations = re.sub(r" ;.*", "", block.text)
        return [f"{{:process 0, :type :ok, :f :txn, :value [{operations}]}}"]
    return parts_of(block)


@pytest.mark.parametrize("block", blocks_in("edn", "clojure"), ids=name_of)
def test_a_history_is_read_and_judged(block, folder):
    """It is read, and has a certified verdict on it at a weak and at a strong level."""
    path = folder / "history.edn"
    for text in as_histories(block):
        path.write_text(text, encoding="utf-8")
        history = isolang.load_history(path)
        assert history.counts()["operations"] > 0
        for level in ("pl-1", "ser"):
            verdict = isolang.check(history, level)
            assert verdict.outcome == "unknown" or verdict.certified


@pytest.mark.parametrize("block", [b for b in blocks() if table_of(b, "histories")], ids=name_of)
def test_a_history_has_the_format_that_is_shown(block, folder):
    """The reader recognises it by the contents."""
    path = folder / "history"
    path.write_text(block.text, encoding="utf-8")
    history = isolang.load_history(path)
    assert history.format == table_of(block, "histories")
    assert history.counts()["operations"] > 0


# --- other languages ---


@pytest.mark.parametrize("block", blocks_in("json"), ids=name_of)
def test_json_is_json(block):
    """Each line by itself."""
    assert [json.loads(line) for line in block.text.splitlines()]


def values_of(tree):
    """Yield all mappings and texts within a tree of YAML."""
    yield tree
    for value in (
        tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    ):
        yield from values_of(value)


@pytest.mark.parametrize("block", blocks_in("yaml"), ids=name_of)
def test_yaml_names_what_there_is(block):
    """Its commands, inputs of the action and hooks exist."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    checked = 0
    for value in values_of(yaml.safe_load(block.text)):
        if isinstance(value, str):
            lines = value.replace("\\\n", " ").splitlines()
            for words in (line.split() for line in lines if re.match(r"\s*isocheck ", line)):
                end = next((i for i, w in enumerate(words) if w in (">", "|", "||")), None)
                assert wrong_words(words[:end]) == []
                checked += 1
        elif isinstance(value, dict) and value.get("uses") == "./isolang":
            assert value["with"].keys() <= action.keys()
            checked += 1
        elif isinstance(value, dict) and "hooks" in value:
            assert {hook["id"] for hook in value["hooks"]} <= {hook["id"] for hook in hooks}
            checked += 1
    assert checked or "dask" in block.text


@pytest.mark.parametrize("block", blocks_in("toml"), ids=name_of)
def test_a_configuration_is_accepted(block, folder, monkeypatch):
    """The command line takes its options, and plugins are looked for in its groups."""
    table = tomllib.loads(block.text)
    if "calls" in table:
        monkeypatch.setattr("shutil.which", str)  # its programs are those of users
        assert [call.name for call in parse_case(block.text, block.page).calls] == table["calls"]
        return
    (folder / "pyproject.toml").write_text(block.text, encoding="utf-8")
    if "tool" in table:
        section = table["tool"]["isocheck"]
        command = "run" if "run" in section else "check"
        assert len(defaults(command)[command]) == len(section.get("run", section))
    else:
        (group,) = table["project"]["entry-points"]
        name = group.removeprefix("isolang.")
        assert name in ("targets", *plugins._registries())


# --- Python ---


@pytest.mark.parametrize("block", blocks_in("python"), ids=name_of)
def test_python_runs(block, folder):
    """It runs with the files and the names that the page takes for granted."""
    prepare(block.page, folder)
    names: dict[str, object] = {"__name__": "shown"}
    before = table_of(block, "before")
    exec(compile(before, "before", "exec"), names)
    text = re.sub(r"until_idle=\d+", "until_idle=0", block.text)  # as in test_commands.py
    exec(compile(text, block.where, "exec"), names)


PYTHON = [b for b in blocks() if b.language == "python" and not b.text.startswith(">>>")]


@pytest.mark.parametrize("block", PYTHON, ids=name_of)
def test_python_imports_what_there_is(block):
    """Each name that it imports from isolang, or uses of it, exists."""
    for node in ast.walk(ast.parse(block.text.replace("…", "..."))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isolang"):
            module = import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "isolang" or hasattr(isolang, node.attr), node.attr
