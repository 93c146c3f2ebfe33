"""Who may import whom: the table of docs/architecture.md, enforced on the source text.

Imports inside functions count too: a lazy import is an import. What a layer takes from the native
module is judged by the section of ``_native.pyi`` that declares it.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from support.paths import ROOT

PACKAGE = ROOT / "isolang"
NATIVE = ROOT / "native"

# Any layer may import these.
BASIC = ("arrays", "caveat", "digests", "errors", "files", "patterns", "release", "rows")

DIRECT = {
    "arrays": set(),
    "digests": set(),
    "errors": set(),
    "patterns": set(),
    "caveat": set(),
    "declared": set(),
    "files": set(),
    "rows": set(),
    "release": set(),
    "specs": set(),
    "language": {"specs"},
    "history": {"options"},
    "problem": {"language", "history"},
    "encodings": {"problem", "certify"},
    "solvers": {"encodings", "problem", "certify"},
    "certify": {"history", "language"},
    "explain": {"problem", "certify"},
    "simulator": {"history", "language", "declared"},
    "machine": set(),
    "renderers": set(),
    "limits": {"machine"},
    "options": {"machine", "declared"},
    "verdict": {"explain", "solvers", "limits", "renderers"},
    "pipeline": {"verdict", "options"},
    "comparison": {"pipeline"},
    "api": {"pipeline"},
    "many": {"api"},
    "models": {"history", "limits", "options"},
    "output": {"verdict"},
    "report": {"output", "comparison"},
    "programs": {"api", "report"},
    "run": {"api", "report", "watch"},
    "harm": {"observe"},
    "foresee": {"programs", "observe", "harm"},
    "court": {"foresee"},
    "observe": {"run"},
    "testing": {"foresee", "observe"},
    "strategies": {"testing"},
    "watch": {"api"},
    "jobs": {"api", "report"},
    "cli": {"court", "foresee", "jobs", "models", "programs", "run", "simulator", "watch"},
    "__init__": {"many", "models", "testing"},
    "__main__": {"cli"},
}

# The sections of _native.pyi, and the layer that each one belongs to.
SECTIONS = {
    "arrays": "arrays",
    "faults": "limits",
    "history": "history",
    "readers": "history",
    "writers": "history",
    "problem": "problem",
    "engine": "solvers",
    "known": "explain",
    "pruning": "problem",
    "certify": "certify",
    "simulator": "simulator",
    "recording": "run",
    "watch": "watch",
}

# native/<layer>: the prefixes of what it may include.
INCLUDES = {
    "core": ("core/",),
    "readers": ("readers/", "core/"),
    "writers": ("writers/", "core/"),
    "problem": ("problem/", "core/"),
    "watch": ("watch/", "core/", "readers/predicate"),
    "engine": ("engine/", "core/"),
    "certify": (
        "certify/",
        "core/history.hpp",
        "core/budget.hpp",
        "core/implicit.hpp",
        "core/index.hpp",
        "core/prefetch.hpp",
        "core/relations.def",
    ),
    "simulator": ("simulator/", "core/"),
    "bindings": ("",),
}

# Words that would say that the engine knows a level.
LEVELS = re.compile(
    r"\b(ser|si|sser|psi|serializ\w*|serialis\w*|snapshot\w*|pl-?[123]|causal\w*|read[ -]committed|"
    r"repeatable[ -]read|long[ -]fork|write[ -]skew|lost[ -]update)\b",
    re.IGNORECASE,
)


def allowed(layer: str) -> set[str]:
    """The layers that a layer may import, directly or through those that it may import."""
    found = {layer, *BASIC}
    todo = set(DIRECT[layer])
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo |= DIRECT[one]
    return found


def layer_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def native_sections() -> dict[str, str]:
    """Each public name of the native module, and the layer of its section."""
    text = (PACKAGE / "_native.pyi").read_text()
    lines = text.splitlines()
    headings = [
        (number, match[1])
        for number, line in enumerate(lines, 1)
        if (match := re.fullmatch(r"# --- (\w+) ---", line))
    ]
    owner = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names = [node.name]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            continue
        section = [name for line, name in headings if line < node.lineno][-1]
        owner |= dict.fromkeys(names, SECTIONS[section])
    return owner


@cache
def imports(tree: ast.AST) -> set[tuple[int, str]]:
    """All absolute imports from this package: line, dotted name (with the imported name last)."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(node.lineno, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            found |= {(node.lineno, f"{node.module}.{alias.name}") for alias in node.names}
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "_native"
        ):
            found.add((node.lineno, f"isolang._native.{node.attr}"))
    return {(line, name) for line, name in found if name.split(".")[0] == "isolang"}


def target_layers(name: str, owner: dict[str, str]) -> set[str]:
    """The layers that an import of this dotted name reaches."""
    parts = name.split(".")
    if len(parts) < 2:
        return {"__init__"}
    if parts[1] == "_native":
        return {owner[parts[2]]} if len(parts) > 2 and parts[2] != "*" else set()
    return {parts[1]} if (PACKAGE / parts[1]).exists() or parts[1] in DIRECT else {"__init__"}


@pytest.mark.slow
@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports(path):
    """A module imports only what the table gives its layer."""
    layer = layer_of(path)
    assert layer in DIRECT, f"the layer {layer} is not in the table of docs/architecture.md"
    owner = native_sections()
    wrong = [
        f"line {line}: {layer} may not import {name}"
        for line, name in sorted(imports(tree_of(path)))
        if not target_layers(name, owner) <= allowed(layer)
    ]
    assert wrong == []


def packages() -> dict[str, set[str]]:
    """The packages, and the modules beside them, that each one really imports."""
    owner = native_sections()
    found: dict[str, set[str]] = {}
    for path in modules():
        layer = layer_of(path)
        for _, name in imports(tree_of(path)):
            found.setdefault(layer, set()).update(target_layers(name, owner) - {layer})
    return found


@pytest.mark.slow
def test_no_cycle_among_packages():
    """None among the imports, lazy ones included, and the table would allow none."""
    for graph in (packages(), DIRECT):
        assert list(TopologicalSorter(graph).static_order())


@pytest.mark.slow
def test_a_cycle_is_found():
    """One import upwards is enough."""
    graph = packages()
    assert "pipeline" in graph["api"]
    graph["pipeline"].add("api")
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph).static_order())


def parts_of(package: str) -> dict[str, set[str]]:
    """The folders of a package and the modules beside them, and which of them each imports."""
    room = PACKAGE / package
    found: dict[str, set[str]] = {}
    for path in sorted(room.rglob("*.py")):
        part = path.relative_to(room).parts[0].removesuffix(".py")
        names = {name for _, name in imports(tree_of(path))}
        used = {name.split(".")[2] for name in names if name.startswith(f"isolang.{package}.")}
        found.setdefault(part, set()).update(used - {part})
    return found


@pytest.mark.slow
def test_no_cycle_among_the_folders_of_run():
    """Lazy imports included, and those for types alone; nobody imports the folder as a whole."""
    graph = parts_of("run")
    assert list(TopologicalSorter(graph).static_order())
    assert {used for part in graph.values() for used in part} < set(graph)
    graph["record"].add("play")
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph).static_order())


def test_a_statement_goes_down_through_the_folders_of_observe():
    """Each folder uses only those below it, and no module beside them closes a cycle."""
    graph = parts_of("observe")
    assert list(TopologicalSorter(graph).static_order())
    folders = ["wire", "versions", "history", "sql"]
    for above, folder in enumerate(folders):
        assert not graph[folder].intersection(folders[:above]), folder


def test_one_module_of_observe_names_the_database():
    """All others use a database by the protocols, so that another one adds modules."""
    room = PACKAGE / "observe"
    postgres = {
        f"isolang.observe.{name}"
        for name in ("postgres", "sql.postgres", "versions.postgres", "wire.connection",
                     "wire.requests", "wire.answers", "wire.conversation")
    }  # fmt: skip
    users = {
        (path.relative_to(room).as_posix(), name.rpartition(".")[0])
        for path in room.rglob("*.py")
        for _, name in imports(tree_of(path))
        if name.rpartition(".")[0] in postgres
    }
    files = {name.removeprefix("isolang.observe.").replace(".", "/") + ".py" for name in postgres}
    assert {use for use in users if use[0] not in files} == {
        ("observer.py", "isolang.observe.postgres")
    }
    assert {name for file, name in users if file == "postgres.py"} == {
        f"isolang.observe.{name}"
        for name in ("sql.postgres", "versions.postgres", "wire.connection")
    }


def test_loose_modules_of_run_are_what_adapters_import():
    """Whatever else is new belongs into a folder."""
    loose = {path.stem for path in (PACKAGE / "run").glob("*.py")} - {"__init__"}
    assert loose == {"adapter", "address", "operation", "outcome", "settings", "target"}


@pytest.mark.slow
def test_no_class_grows_long():
    """A class of more than 300 lines is two classes."""
    assert [
        node.name
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and node.end_lineno - node.lineno >= 300
    ] == []


def test_every_row_has_a_package():
    """The table names nothing that is gone."""
    assert set(DIRECT) - {"specs"} == {layer_of(path) for path in modules()}


def test_the_table_is_the_documented_one():
    """docs/architecture.md names the same layers and the same imports."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    documented = {}
    for name, may in re.findall(r"^\| `isolang\.(\w+)` \|[^|]*\|([^|]*)\|$", text, re.MULTILINE):
        documented[name] = set(re.findall(r"`(?:isolang\.)?(\w+)`", may))
    assert documented == {k: v for k, v in DIRECT.items() if k not in (*BASIC, "specs")}


def test_the_checkers_import_no_engine():
    """The independence that certificates rest on."""
    assert allowed("certify") == {
        "certify",
        "history",
        "language",
        "specs",
        "options",
        "declared",
        "machine",
        *BASIC,
    }


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["encodings", "solvers"])
def test_solvers_take_of_the_checkers_only_what_proofs_are(layer):
    """A model or a refutation is data that both sides know; how it is checked only one does."""
    taken = {
        name.split(".")[2]
        for path in modules()
        if layer_of(path) == layer
        for _, name in imports(tree_of(path))
        if name.startswith("isolang.certify.")
    }
    assert taken == {"proofs"}


def test_layers_see_lazy_imports():
    """Imports inside functions, and attributes of the native module, are found."""
    tree = ast.parse(
        "def f():\n    from isolang.solvers import x\n    from isolang import _native\n"
        "    return _native.solve\n"
    )
    assert {name for _, name in imports(tree)} >= {"isolang.solvers.x", "isolang._native.solve"}


def sources(layer: str) -> list[Path]:
    return sorted(p for p in (NATIVE / layer).rglob("*") if p.suffix in {".cpp", ".hpp"})


@pytest.mark.parametrize("layer", sorted(p.name for p in NATIVE.iterdir() if p.is_dir()))
def test_includes(layer):
    """A native file includes only what its directory may see."""
    wrong = [
        f"{path.relative_to(ROOT)} includes {name}"
        for path in sources(layer)
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE)
        if not name.startswith(INCLUDES[layer])
    ]
    assert wrong == []


@pytest.mark.parametrize("layer", ["engine", "problem", "core"])
def test_the_native_core_names_no_level(layer):
    """Its only description of a level is an automaton; a special case would need a name."""
    assert sources(layer)
    named = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources(layer)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if LEVELS.search(line)
    ]
    assert named == []


def test_level_words_are_found():
    """The pattern does find what it is for, and nothing inside other words."""
    assert all(
        LEVELS.search(s) for s in ("if SER then", "// SI: two states", "serializable", "PL-3")
    )
    assert not any(
        LEVELS.search(s) for s in ("series", "size", "user session", "single", "inserts")
    )


_MACRO = re.compile(r"\bPy(?!BUF_)[A-Z][A-Za-z]*_(?:[A-Z]+_)*[A-Z]{2,}\b")


def test_the_core_keeps_to_the_limited_api():
    """Macros that reach into objects of Python compile on 3.11 alone, which does not use it."""
    assert _MACRO.findall("PyBytes_AS_STRING(b) PySequence_Fast_GET_ITEM(o, 1) PyList_GET_SIZE(o)")
    assert not _MACRO.search("PyBytes_AsString(b) PyList_Size(o) PyBUF_SIMPLE")
    used = [
        (path.relative_to(NATIVE).as_posix(), name)
        for path in NATIVE.rglob("*.?pp")
        for name in _MACRO.findall(path.read_text())
    ]
    assert used == []
