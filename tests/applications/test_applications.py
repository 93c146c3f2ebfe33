"""What docs/applications says of each application; a weekly workflow runs this."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT

pytestmark = [
    pytest.mark.application, pytest.mark.campaign, pytest.mark.slow, pytest.mark.timeout(1800)
]  # fmt: skip

SCRIPTS = ROOT / "benchmarks" / "applications"
NEWER = ROOT / "build" / "newer"  # django-treebeard 5.0.3


def printed(command, *paths, folder=ROOT, code=0):
    """What a command prints, with more paths for Python."""
    python = [*map(str, paths), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(python),
    }
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1700,
        check=False,
    )  # fmt: skip
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout


def reports(script, folder):
    """The reports that a script prints, by name."""
    texts = printed([sys.executable, SCRIPTS / script, folder]).split("--- ")[1:]
    named = {text.partition(":")[0]: text.partition("\n")[2] for text in texts}
    for name, text in named.items():
        if text.startswith("INVALID, harm"):
            assert '"word":"harm' in next((folder / name).glob("*.html")).read_text()
    return named


def ruling(case, code, *paths, folder=SCRIPTS):
    """What a court rules, in one line; its exit code is 0 for acquitted, 1 for proved."""
    command = [sys.executable, "-m", "isolang", "court", f"{case}.toml"]
    return " ".join(printed(command, *paths, folder=folder, code=code).split())


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


def test_the_voucher():
    """No schedule of two checkouts uses the voucher twice."""
    pytest.importorskip("oscar", reason="django-oscar is not installed")
    assert not ruling("voucher", 3).startswith("PROVED")


def test_the_tree(tmp_path):
    """Two roots get the number of one tree, without an invariant that forbids it."""
    pytest.importorskip("mptt", reason="django-mptt is not installed")
    text = reports("tree.py", tmp_path)["roots"]
    assert text.startswith("INVALID, harmful: tree_category: tree_id 2 instead of 3; create('")


def test_the_pages():
    """A page of django-treebeard 4 is refused, its data stays right; version 5 locks the parent."""
    pytest.importorskip("treebeard", reason="django-treebeard is not installed")
    assert ruling("pages", 3).startswith("NOT CONVICTED: answers differ")
    if not NEWER.exists():
        pytest.skip("django-treebeard 5.0.3 is not installed")
    assert not ruling("pages", 3, NEWER).startswith("NOT CONVICTED: answers differ")


def test_the_transitions():
    """An order of django-fsm-2 is both shipped and cancelled, unless its model is guarded."""
    pytest.importorskip("django_fsm", reason="django-fsm-2 is not installed")
    harm = "harmful: orders_entry: 2 new rows, every order gives 1 and one refusal; "
    assert ruling("transitions-plain", 1).startswith(f"PROVED: {harm}")
    assert ruling("transitions-guarded", 0).startswith("ACQUITTED")


def test_the_recovery_codes():
    """Two clients sign in with one code of django-otp, unless its function locks the device."""
    pytest.importorskip("django_otp", reason="django-otp is not installed")
    proved = ruling("recovery-method", 1)
    assert proved.startswith("PROVED: harmful: otp_static_staticdevice/1 ")
    assert "gave True instead of False" in proved
    assert ruling("recovery-function", 0).startswith("ACQUITTED")


def test_the_categories():
    """Two categories of a nested set of TypeORM overlap, unless their parent is locked."""
    folder = SCRIPTS / "typeorm"
    if not (folder / "node_modules").exists() or not shutil.which("node"):
        pytest.skip("TypeORM is not installed")
    proved = ruling("categories-plain", 1, folder=folder)
    assert proved.startswith("PROVED: harmful: category: nsleft 2 instead of 4")
    assert ruling("categories-locked", 0, folder=folder).startswith("ACQUITTED")


@pytest.mark.parametrize(
    "idiom",
    ["atomic-update", "parent-lock", "unique-index", "serializable", "advisory-lock", "version"],
)
def test_the_idioms(idiom):
    """Each is acquitted."""
    assert ruling(f"idiom-{idiom}", 0).startswith("ACQUITTED")


def test_the_saga():
    """It is not proved; a call has several transactions, so nothing acquits it."""
    assert ruling("idiom-saga", 3).startswith("NOT CONVICTED: 1")
