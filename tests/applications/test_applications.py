"""What docs/applications says of django-oscar and django-mptt; a weekly workflow runs this."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT

pytestmark = [pytest.mark.application, pytest.mark.campaign, pytest.mark.slow]

SCRIPTS = ROOT / "benchmarks" / "applications"


def printed(script, folder):
    """Run a script, and return what it prints."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    run = subprocess.run(
        [sys.executable, SCRIPTS / script, folder], env={**os.environ,
        "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True, timeout=1200,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.timeout(1200)
def test_the_shops(tmp_path):
    """Too little stock and an offer used twice are harmful; enough stock is harmless."""
    pytest.importorskip("oscar", reason="django-oscar is not installed")
    reports = printed("shop.py", tmp_path).split("--- ")[1:]
    first = {text.partition(":")[0]: text.splitlines()[1] for text in reports}
    assert first["stock-1"].startswith("INVALID, harmful: ")
    assert "partner_stockrecord/1 num_allocated 3, every order gives 1" in reports[0]
    assert first["stock-1000"].startswith("INVALID, harmless with this data: as if ")
    assert first["offer-once"].startswith("INVALID, harmful: ")
    assert "order_orderdiscount: 3 new rows, every order gives 1" in reports[2]
    assert "order_order: total_incl_tax 9.00 instead of 10.00, twice" in reports[2]
    for name in first:
        assert '"word":"harm' in next(Path(tmp_path, name).glob("*.html")).read_text()


def test_the_tree(tmp_path):
    """Two roots get the number of one tree, without an invariant that forbids it."""
    pytest.importorskip("mptt", reason="django-mptt is not installed")
    text = printed("tree.py", tmp_path)
    assert text.startswith("INVALID, harmful: tree_category: tree_id 2 instead of 3; create('")
