"""The folders of the engine: what each says of itself, and who may include whom."""

import re

import pytest
from support.paths import ROOT

ENGINE = ROOT / "native" / "engine"
FOLDERS = sorted(p.name for p in ENGINE.iterdir() if p.is_dir())

# What each folder may include of the engine, besides itself.
INCLUDES = {
    "graph": (),
    "cdcl": ("graph",),
    "prune": ("graph",),
    "search": ("cdcl", "graph", "prune"),
    "hard": ("cdcl", "graph", "prune", "search"),
    "proof": ("cdcl", "graph", "prune", "search"),
    "presolve": ("graph", "proof"),
}


def included(path):
    """What a file includes of the engine: (folder, file)."""
    found = re.findall(r'#include "engine/(\w+)/(\w+\.hpp)"', path.read_text())
    return [(folder, name) for folder, name in found if folder != path.parent.name]


@pytest.mark.parametrize("folder", FOLDERS)
def test_includes(folder):
    """Each folder includes only those below it."""
    for path in (ENGINE / folder).glob("*.[ch]pp"):
        for other, name in included(path):
            assert other in INCLUDES[folder], f"{path.name} includes {other}/{name}"


def test_one_door_to_the_hard_region():
    """Nothing outside knows the searches of the hard region, only their interface."""
    native = ROOT / "native"
    outside = [p for p in native.rglob("*.[ch]pp") if p.parent != ENGINE / "hard"]
    names = {name for p in outside for folder, name in included(p) if folder == "hard"}
    assert names == {"portfolio.hpp"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_says_what_lives_in_it(folder):
    """A stranger finds the paragraph beside the files, and it names what is there."""
    text = (ENGINE / folder / "README.md").read_text()
    assert len(text) > 100
    for name in re.findall(r"`(\w+)(?:\.hpp)?`", text):
        assert (ENGINE / folder / f"{name}.hpp").exists(), name
