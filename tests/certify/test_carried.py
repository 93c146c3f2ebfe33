"""Certificates state carried reads, and their checkers derive them again."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.cli import run_here

from isolang import check, load_history
from isolang.certify.carried import check_carried_reads
from isolang.certify.errors import CertificateRejected
from isolang.history.carried import with_carried_reads

LINES = [
    ("invoke", 0, "[:r :stock 1] [:r :other 0]", "a"),
    ("ok", 0, "[:r :stock 1] [:r :other 0]", "a"),
    ("invoke", 1, "[:r :stock 1]", "b"),
    ("ok", 1, "[:r :stock 1]", "b"),
    ("invoke", 0, "[:w :stock 0]", "a"),
    ("ok", 0, "[:w :stock 0]", "a"),
    ("invoke", 1, "[:w :stock 5]", "b"),
    ("ok", 1, "[:w :stock 5]", "b"),
]
RACE = "{:type :ok, :process 9, :f :init, :value {:stock 1 :other 0}}\n" + "".join(
    f'{{:type :{kind}, :process {process}, :f :txn, :value [{value}], :unit "{unit}"}}\n'
    for kind, process, value, unit in LINES
)


@pytest.fixture
def certified(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """The history of a race, and the certificate that requests violate ``ser``."""
    history, folder = tmp_path / "race.edn", tmp_path / "certificates"
    history.write_text(RACE)
    run = run_here(
        capfd, "check", history, "--spec", "ser", "--unit", "request", "--certificate", folder
    )
    assert run.code == 1
    assert [line.split("  ")[0] for line in run.out.splitlines() if "race.edn  ser" in line] == [
        "VALID",
        "INVALID",
    ]
    (certificate,) = folder.glob("*-2.certificate.json")
    return history, certificate


def test_a_certificate_is_accepted_with_its_history(certified, capfd):
    history, certificate = certified
    run = run_here(capfd, "verify", certificate, history)
    assert run.code == 0, run.out
    assert 'read as edn with unit "request"' in run.out
    about = json.loads(certificate.read_text())["history"]
    assert about["carried"] == [[3, 1, 2, -1, []], [4, 2, 4, -1, []]]


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (lambda about: about["carried"].append([3, 1, 3, -1, []]), "has a read that is not"),
        (lambda about: about["carried"][0].__setitem__(1, 2), "has a read that is not carried"),
        (lambda about: about["carried"].pop(), "lacks a carried read"),
        (lambda about: about.pop("carried"), "lacks a carried read"),
        (lambda about: about["options"].pop("unit"), "read without --unit request"),
        (lambda about: about["options"].update(carry="all"), "lacks a carried read"),
    ],
)
def test_a_forged_carried_read_is_refused(forge, said, certified, capfd):
    history, certificate = certified
    data = json.loads(certificate.read_text())
    forge(data["history"])
    certificate.write_text(json.dumps(data))
    run = run_here(capfd, "verify", certificate, history)
    assert run.code != 0
    assert "REJECTED" in run.out
    assert said in run.out


@pytest.mark.parametrize("column", ["op_value", "op_key"])
def test_a_history_with_another_carried_read_is_refused(column):
    """The checkers look at the operations, too, and not only at their list."""
    history = load_history(io.BytesIO(RACE.encode()), "edn", unit="request")
    check_carried_reads(history)
    columns = history.columns.__copy__()
    first = int(columns.op_start[3])
    if column == "op_value":
        columns.set_value(first, int(columns.op_value[first]) + 1)
        forged = replace(history, columns=columns, _lazy={})
    else:
        other = load_history(io.BytesIO(RACE.replace("[:w :stock 5]", "[:w :other 5]").encode()))
        forged = replace(with_carried_reads(other), carrying=history.carrying)
    with pytest.raises(CertificateRejected):
        check_carried_reads(forged)
    assert check(history, "ser").certified
