"""What docs/applications says of each application; a weekly workflow runs this."""

import os
import shutil
import subprocess
import sys

import pytest
from support.paths import ROOT

pytestmark = [
    pytest.mark.application, pytest.mark.campaign, pytest.mark.slow, pytest.mark.timeout(1800)
]  # fmt: skip

SCRIPTS = ROOT / "benchmarks" / "applications"
NEWER = ROOT / "build" / "newer"  # django-treebeard 5.0.3


def printed(command, *paths, folder=ROOT, code=0):
    """What a command prints, with more paths for Python."""
    python = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    run = subprocess.run(
        command, cwd=folder, env={**os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, paths), *python])}, capture_output=True, text=True,
        timeout=1500, check=False,
    )  # fmt: skip
    assert run.returncode == code, run.stderr
    return run.stdout


def reports(script, folder, *paths):
    """The reports that a script prints, by name."""
    texts = printed([sys.executable, SCRIPTS / script, folder], *paths).split("--- ")[1:]
    named = {text.partition(":")[0]: text.partition("\n")[2] for text in texts}
    for name, text in named.items():
        if text.startswith("INVALID, harm"):
            assert '"word":"harm' in next((folder / name).glob("*.html")).read_text()
    return named


def test_the_shops(tmp_path):
    """Too little stock and an offer used twice are harmful; enough stock is harmless.

    A voucher is locked, so it is used once.
    """
    pytest.importorskip("oscar", reason="django-oscar is not installed")
    shops = reports("shop.py", tmp_path)
    assert shops["stock-1"].startswith("INVALID, harmful: ")
    assert "partner_stockrecord/1 num_allocated 3, every order gives 1" in shops["stock-1"]
    assert shops["stock-1000"].startswith("INVALID, harmless with this data: as if ")
    assert shops["offer-once"].startswith("INVALID, harmful: ")
    assert "order_orderdiscount: 3 new rows, every order gives 1" in shops["offer-once"]
    assert "order_order: total_incl_tax 9.00 instead of 10.00, twice" in shops["offer-once"]
    assert shops["voucher-once"].startswith("VALID: serializable")
    assert shops["voucher-once"].count("thank-you") == 1


def test_the_tree(tmp_path):
    """Two roots get the number of one tree, without an invariant that forbids it."""
    pytest.importorskip("mptt", reason="django-mptt is not installed")
    text = reports("tree.py", tmp_path)["roots"]
    assert text.startswith("INVALID, harmful: tree_category: tree_id 2 instead of 3; create('")


def test_the_pages(tmp_path):
    """django-treebeard 4 refuses an addition, its data stays right; version 5 locks the parent."""
    pytest.importorskip("treebeard", reason="django-treebeard is not installed")
    text = reports("pages.py", tmp_path)["django-treebeard-4.7.1"]
    assert text.startswith("VALID: serializable")
    assert text.count("raised IntegrityError") == text.count("gave '00010001'") == 1
    if not NEWER.exists():
        pytest.skip("django-treebeard 5.0.3 is not installed")
    text = reports("pages.py", tmp_path, NEWER)["django-treebeard-5.0.3"]
    assert text.startswith("VALID: serializable")
    assert text.count("gave '00010001'") == text.count("gave '00010002'") == 1


def test_the_transitions(tmp_path):
    """An order of django-fsm-2 is both shipped and cancelled, unless its model is guarded."""
    pytest.importorskip("django_fsm", reason="django-fsm-2 is not installed")
    orders = reports("transitions.py", tmp_path)
    assert orders["plain"].startswith(
        "INVALID, harmful: orders_entry: 2 new rows, every order gives 1 and one refusal; "
    )
    assert orders["guarded"].startswith("VALID: serializable")
    assert orders["guarded"].count("raised ConcurrentTransition") == 1


def test_the_recovery_codes(tmp_path):
    """Two clients sign in with one code of django-otp, unless its function locks the device."""
    pytest.importorskip("django_otp", reason="django-otp is not installed")
    ways = reports("recovery.py", tmp_path)
    assert ways["method"].startswith("INVALID, harmful: otp_static_staticdevice/1 ")
    assert "gave True instead of False" in ways["method"]
    assert ways["function"].startswith("VALID: serializable")
    assert ways["function"].count("gave True") == ways["function"].count("gave False") == 1


@pytest.mark.parametrize("variant", ["plain", "locked"])
def test_the_categories(tmp_path, variant):
    """Two categories of a nested set of TypeORM overlap, unless their parent is locked."""
    folder = SCRIPTS / "typeorm"
    if not (folder / "node_modules").exists() or not shutil.which("npx"):
        pytest.skip("TypeORM is not installed")
    script = "npx tsx categories.ts"
    command = [
        sys.executable, "-m", "isolang", "observe", "postgres", "--spec", "ser", "--into",
        tmp_path / "run.edn", "--setup", f"{script} setup", "--replay",
        f"{script} request {variant}", "--", *script.split(), "at-once", variant,
    ]  # fmt: skip
    text = printed(command, folder=folder, code=1 if variant == "plain" else 0)
    harm = "category: nsleft 2 instead of 4; category: nsright 3 instead of 5"
    assert text.startswith(f"INVALID, harmful: {harm}" if variant == "plain" else "VALID ")
