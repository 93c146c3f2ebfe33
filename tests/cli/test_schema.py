"""``isocheck schema``: the published schemas are current, and all JSON output satisfies them."""

import json

import jsonschema
import pytest
from support.cli import LOST_UPDATE, THIN_AIR, VALID, hard_text, run_here
from support.paths import ROOT

from isolang.cli.commands import ISOCHECK, SPEC
from isolang.cli.schema import RECORDS, schema_of

PUBLISHED = ROOT / "docs" / "schema"


def satisfies(command, value):
    """The value, if the schema of the command's output takes it."""
    schema = json.loads((PUBLISHED / f"{command}.json").read_text())
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
    return value


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("valid", VALID), ("lost", LOST_UPDATE), ("thin", THIN_AIR), ("bad", "x")):
        (tmp_path / name).write_text(text)
    (tmp_path / "hard").write_text(hard_text())
    (tmp_path / "own.iso").write_text('include "adya.iso"\nirreflexive for x: rw[x] ; ww[x] as c\n')
    (tmp_path / "typo.iso").write_text("acyclic wx as c\n")
    return tmp_path


@pytest.mark.parametrize("command", RECORDS)
def test_the_published_schemas_are_current(capfd, command):
    """``isocheck schema COMMAND > docs/schema/COMMAND.json`` writes them anew."""
    published = (PUBLISHED / f"{command}.json").read_text()
    assert run_here(capfd, "schema", command).out == published
    jsonschema.Draft202012Validator.check_schema(json.loads(published))


@pytest.mark.slow
def test_every_command_with_json_output_has_a_schema(capfd):
    """And no schema is of a command that there is not."""
    commands = [*ISOCHECK, *(f"spec {name}" for name in SPEC)]
    commands.remove("spec")
    with_json = {
        name.replace(" ", "-")
        for name in commands
        if "text|json" in run_here(capfd, *name.split(), "--help").out
    }
    tables = {"run-effectiveness", "run-selftest", "run-survey", "run-swarm"}
    assert with_json | tables == set(RECORDS)
    assert {path.stem for path in PUBLISHED.glob("*.json")} == set(RECORDS)


def test_every_field_is_described():
    """A reader of the schema needs no other page."""
    for command in ("check", "levels", "stats", "solvers"):
        for name, part in schema_of(command)["$defs"].items():
            assert part["description"], name
    report = schema_of("check")["$defs"]["Report"]["properties"]
    assert all(field.get("description") or "$ref" in str(field) for field in report.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["valid", "lost", "thin", "bad", "missing"],
        ["lost", "--cross-check", "all", "--certificate", "c", "--minimal", "m.edn"],
        ["lost", "--timeout", "60", "--jobs", "2"],
        ["hard", "--timeout", "0.01"],
        ["lost", "--solver", "z3", "--no-certify"],
        ["lost", "--encoding", "relational"],
    ],
)
def test_check(files, capfd, arguments):
    """Verdicts of all kinds, with what each option adds."""
    specs = ["-s", "si"] if "--minimal" in arguments else ["-s", "si", "-s", "pl-1"]
    run = run_here(capfd, *specs, "-o", "json", *arguments)
    reports = run.reports()
    assert reports
    for report in reports:
        satisfies("check", report)


@pytest.mark.slow
def test_the_schema_refuses_what_is_no_report(files, capfd):
    """It says something: a verdict by another name is none, nor is a history without one."""
    (report,) = run_here(capfd, "-s", "si", "-o", "json", "lost").reports()
    violation = report["violation"]
    for wrong in (
        report | {"verdict": "perhaps"},
        report | {"seconds": {"read": "soon"}},
        report | {"violation": violation | {"argument": {"kind": "guess"}}},
        {name: value for name, value in report.items() if name != "history"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            satisfies("check", wrong)


@pytest.mark.parametrize("history", ["lost", "valid"])
def test_levels_and_stats(files, capfd, history):
    satisfies("levels", json.loads(run_here(capfd, "levels", "-o", "json", history).out))
    for spec in ((), ("-s", "si")):
        satisfies("stats", json.loads(run_here(capfd, "stats", *spec, "-o", "json", history).out))


@pytest.mark.slow
def test_solvers(files, capfd):
    arguments = ["solvers", "-s", "si", "-o", "json", "--only", "native", "--timeout", "20"]
    for history in ("lost", "missing"):
        for row in run_here(capfd, *arguments, history).reports():
            satisfies("solvers", row)


@pytest.mark.parametrize("spec", ["si", "si-co", "rc", "own.iso"])
def test_specifications(files, capfd, spec):
    for command in ("show", "explain"):
        run = run_here(capfd, "spec", command, "-o", "json", spec)
        satisfies(f"spec-{command}", json.loads(run.out))


@pytest.mark.slow
def test_lists(files, capfd):
    assert satisfies("spec-list", json.loads(run_here(capfd, "spec", "list", "-o", "json").out))
    run = run_here(capfd, "spec", "lint", "-o", "json", "--seconds", "0.2", "own.iso", "typo.iso")
    assert len(satisfies("spec-lint", json.loads(run.out))) == 2
