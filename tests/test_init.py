"""What ``import isolang`` does before anything is asked of it."""

import inspect
import pydoc
import subprocess
import sys
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
