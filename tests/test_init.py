"""What ``import isolang`` does before anything is asked of it."""

import subprocess
import sys
from pathlib import Path

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
