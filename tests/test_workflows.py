"""What runs on GitHub does what it says: the action, step by step, as a runner would do it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.paths import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def scripts(node):
    """Every shell script in a workflow."""
    if isinstance(node, dict):
        yield from (text for name, text in node.items() if name == "run")
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from scripts(inner)


@pytest.mark.parametrize("file", [ROOT / "action.yml", *WORKFLOWS], ids=lambda file: file.name)
def test_scripts_are_shell(file):
    """Each can be parsed, with GitHub's expressions as words."""
    for script in scripts(yaml.safe_load(file.read_text())):
        text = script.replace("${{", "x").replace("}}", "x")
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


def test_what_people_cite_is_this_version():
    """CITATION.cff has the version, the licence and the name of pyproject.toml."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (cited["title"], cited["version"], cited["license"]) == (
        project["name"], project["version"], project["license"],
    )  # fmt: skip


def test_what_is_released_is_attested():
    """Of all files, before they are published, by a job that may sign."""
    release = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())["jobs"]["release"]
    assert release["permissions"]["attestations"] == release["permissions"]["id-token"] == "write"
    places = [
        place
        for place, one in enumerate(release["steps"])
        for word in ("attest-build-provenance", "gh release create")
        if word in one.get("uses", one.get("run", ""))
    ]
    assert len(places) == 2
    assert places == sorted(places)
    assert release["steps"][places[0]]["with"] == {"subject-path": "dist/*"}


def step(name):
    """A step of the action."""
    return next(one for one in ACTION["runs"]["steps"] if one["name"] == name)


def ran(name, folder, **variables):
    """Run a step in a shell, as a runner does; what it said, its outputs and the summary."""
    (folder / "output").touch()
    environment = os.environ | {
        "RUNNER_TEMP": str(folder),
        "RUNNER_OS": "Linux",
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_JOB": "isolation",
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step(name)["run"]],
        cwd=ROOT, env=environment | variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    outputs = dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())
    summary = folder / "summary.md"
    return done, outputs, summary.read_text() if summary.exists() else ""


def judged(folder, *, spec="si", history="examples/on-call.edn", options="--timeout 60", run=None):
    """Judge with the isocheck of this checkout, or what ``run`` says."""
    program = folder / "isocheck" / "bin" / "isocheck"
    program.parent.mkdir(parents=True, exist_ok=True)
    run = run or f'exec "{sys.executable}" -P -m isolang.cli.main "$@"'
    program.write_text(f"#!/bin/sh\n{run}\n")
    program.chmod(0o755)
    return ran(
        "Judge the histories", folder,
        SPEC=spec, OPTIONS=options, HISTORY=str(ROOT / history), ARTIFACT="isocheck",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "code"), [("si", 0), ("si ser", 1)])
def test_the_action_judges_and_keeps_the_evidence(tmp_path, spec, code):
    """The job fails on a violation; the summary says why; each verdict has page and certificate."""
    done, outputs, summary = judged(tmp_path, spec=spec)
    assert done.returncode == code, done.stderr
    assert summary == done.stdout
    assert ("```mermaid" in summary) == (code == 1)
    kept = sorted(Path(f).suffix for f in os.listdir(outputs["evidence"]))
    levels = len(spec.split())
    assert kept == [".html"] * levels + [".json"] * levels + [".md"]


@pytest.mark.parametrize(
    ("wrong", "code", "said"),
    [
        ({"history": "gone.edn"}, 2, "cannot read the file"),
        ({"spec": "sii"}, 2, "did you mean"),
        ({"options": "--timeot 60"}, 2, "--timeot"),
        ({"options": "--timeout 0.0001"}, 3, "timeout"),
        ({"run": "exit 137"}, 137, "ended with 137"),
    ],
)
def test_the_summary_is_never_empty_where_the_job_fails(tmp_path, wrong, code, said):
    """Whatever ends it: a file, a level, an option, a limit, or the machine."""
    done, _, summary = judged(tmp_path, **wrong)
    assert (done.returncode, said in summary) == (code, True), summary


@pytest.mark.slow
def test_two_uses_in_one_run_keep_two_artifacts(tmp_path):
    """Their names differ, and each has its own evidence alone."""
    uses = [judged(tmp_path, spec=spec)[1] for spec in ("si", "pl-2")]
    assert len({use["artifact"] for use in uses}) == 2
    assert all(use["artifact"].startswith("isocheck-isolation-") for use in uses)
    assert [len(os.listdir(use["evidence"])) for use in uses] == [3, 3]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A Python whose environments have a pip that notes what it is asked for."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(
        f"""#!/bin/sh
[ "$1" = -m ] || exec "{sys.executable}" "$@"
mkdir -p "$3/bin"
cat >"$3/bin/pip" <<'EOF'
#!/bin/sh
echo "$*" >>"$RUNNER_TEMP/asked"
[ ! -e "$RUNNER_TEMP/broken" ] || exit 1
[ "$1" != wheel ] || {{ mkdir -p "$5" && touch "$5/isolang.whl"; }}
EOF
chmod +x "$3/bin/pip"
"""
    )
    (tmp_path / "bin" / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path


def test_the_build_is_cached(machine):
    """The second run finds the wheel that the first one built; the key is that of the sources."""
    keys = [ran("Name the build", machine)[1]["key"] for _ in range(2)]
    assert keys[0] == keys[1]
    cached = step("Look for a build of it")
    assert cached["with"]["key"] == "${{ steps.build.outputs.key }}"
    path = "${{ runner.temp }}/${{ steps.build.outputs.key }}"
    assert cached["with"]["path"] == path
    for _ in range(2):
        done, *_ = ran("Install isocheck", machine, PACKAGE="", BUILD=keys[0])
        assert done.returncode == 0, done.stderr
    asked = [line.split()[0] for line in (machine / "asked").read_text().splitlines()]
    assert asked == ["wheel", "install", "install"]
    assert os.listdir(machine / keys[0]) == ["isolang.whl"]


def test_an_installation_that_fails_is_in_the_summary(machine):
    """The job fails before anything is judged."""
    (machine / "broken").touch()
    done, _, summary = ran("Install isocheck", machine, PACKAGE="some.whl", BUILD="")
    assert (done.returncode, "could not be installed" in summary) == (2, True)


def uses(node):
    """Every action of others that a workflow uses."""
    if isinstance(node, dict):
        yield from (name for key, name in node.items() if key == "uses")
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from uses(inner)


@pytest.mark.parametrize("file", ["action.yml", ".github/workflows/wheels.yml"])
def test_what_makes_releases_is_pinned(file):
    """By a commit, or an exact version: no branch, and no tag that moves."""
    found = list(uses(yaml.safe_load((ROOT / file).read_text())))
    assert found
    for name in found:
        assert re.fullmatch(r"[\w./-]+@([0-9a-f]{40}|v\d+\.\d+\.\d+)", name), name


@pytest.mark.slow
def test_the_hooks_need_no_compiler(tmp_path):
    """They run what is installed, on files of specifications, and are documented."""
    page = (ROOT / "docs" / "ci.md").read_text()
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    level = tmp_path / "own.iso"
    level.write_text('spec own\ninclude "prelude.iso"\nacyclic so|wr as own\n')
    for hook in hooks:
        assert hook["language"] == "system"
        assert f"id: {hook['id']}" in page
        assert re.search(hook["files"], level.name)
        program, *command = hook["entry"].split()
        assert program == "isocheck"
        done = subprocess.run(
            [sys.executable, "-P", "-m", "isolang.cli.main", *command, str(level)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "acyclic so | wr as own" in level.read_text()


def test_every_input_of_the_action_is_used_and_documented():
    """In a step, and in the table of docs/ci.md."""
    steps = str(ACTION["runs"])
    page = (ROOT / "docs" / "ci.md").read_text()
    for name in ACTION["inputs"]:
        assert f"inputs.{name}" in steps
        assert f"\n| `{name}` |" in page
