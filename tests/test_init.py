"""What ``import isolang`` does before anything is asked of it."""

import inspect
import pydoc
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

import isolang


def test_sources_without_their_core_say_what_to_do(tmp_path):
    """A checkout that is not installed is imported by a Python that starts in it."""
    (tmp_path / "isolang").mkdir()
    (tmp_path / "isolang" / "__init__.py").write_text(Path(isolang.__file__).read_text())
    command = [sys.executable, "-S", "-c", "import isolang"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(
        "ImportError: isolang: its compiled core is missing"
    )
    assert "pip install -e ." in run.stderr


@pytest.mark.parametrize("name", isolang.__all__)
def test_every_public_name_has_help_and_a_signature(name):
    """``help`` evaluates the annotations of a record, so their names must be imported, too."""
    value = getattr(isolang, name)
    assert pydoc.render_doc(value, renderer=pydoc.plaintext)
    if inspect.isfunction(value):
        assert inspect.signature(value).parameters
    if inspect.isclass(value) and issubclass(value, msgspec.Struct):
        assert [*inspect.signature(value).parameters] == [*value.__struct_fields__]


def test_help_of_the_package_itself():
    """``help(isolang)`` shows all that the package has imported by then."""
    assert "assert_level" in pydoc.render_doc(isolang, renderer=pydoc.plaintext)


@pytest.mark.parametrize("name", isolang.__all__)
def test_no_public_name_is_also_a_submodule(name):
    """Otherwise an import of the submodule would replace the function by the module."""
    assert find_spec(f"isolang.{name}") is None


@pytest.mark.parametrize("before", ["isolang.cli.levels", "isolang.pipeline.levels", "isolang.api"])
def test_a_public_function_is_the_same_after_every_import(before):
    """``from isolang import levels`` gives the function, whatever was imported before or after."""
    program = (
        f"import {before}; from isolang import compare, levels, outcomes, robust; import isolang;"
        f"import isolang.foresee.robust, isolang.programs.outcomes, isolang.comparison.compare;"
        "functions = (compare, levels, outcomes, robust); assert all(map(callable, functions));"
        "assert functions == (isolang.compare, isolang.levels, isolang.outcomes, isolang.robust)"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True)
