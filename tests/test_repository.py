"""These tests are about the repository as a whole."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
import yaml

from benchmarks.assignment import calibrate
from benchmarks.experiment import results
from grader.common import contract
from grader.submission.intake import source_hash
from tests.conftest import REPOSITORY, SCRIPTS


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def test_the_lock_has_no_index_no_hash_and_no_local_version():
    lines = [line for line in (REPOSITORY / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert "torch==2.13.0" in lines
    pinned = re.compile(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; [a-z0-9 ._'=!<>*()]+)?", re.IGNORECASE)
    assert all(pinned.fullmatch(line) for line in lines if line)
    assert not [line for line in lines if line.startswith(("nvidia", "cuda", "triton"))], "one lock for all builds"


def test_conda_gives_the_same_versions_as_the_lock():
    """conda installs Python, pip and the tools to compile Horovod. Everything else comes from the lock itself."""
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    *brought, from_pip = environment["dependencies"]
    assert from_pip == {"pip": ["-r requirements.txt"]}
    locked = (line.partition(" ;")[0] for line in (REPOSITORY / "requirements.txt").read_text().splitlines())
    lock = dict(line.split("==") for line in locked)
    pinned = dict(entry.split("=") for entry in brought if "=" in entry)
    assert pinned["pip"] == lock["pip"] and f'"{pinned["python"]}"' in (SCRIPTS / "install" / "install.py").read_text()
    assert {"cxx-compiler", "make", "patch", "nodejs", "bubblewrap"} <= {entry.split("=")[0] for entry in brought}
    assert not {entry.split("=")[0] for entry in brought} & (set(lock) - {"pip"})


def test_no_file_names_a_package_registry():
    hosts = re.compile("registry\\." + r"npmjs|pypi\." + r"org|python" + r"hosted|deb\.debian\." + "org")
    for name in tracked():
        assert not hosts.search((REPOSITORY / name).read_text(errors="replace")), name


def test_links_between_texts_lead_somewhere():
    for name in (name for name in tracked() if name.endswith(".md")):
        text = (REPOSITORY / name).read_text()
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", text):
            assert ((REPOSITORY / name).parent / link).exists(), f"{name}: {link}"


def test_each_library_that_is_imported_is_declared_with_its_reason():
    """A library that is installed only because another one needs it may disappear together with that one."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    declared = {re.match(r"[\w-]+", line)[0].lower() for line in project["project"]["dependencies"]} | {"horovod"}
    own = {"cifar", "cluster", "lessons", "benchmarks", "grader", "install"}
    homes = metadata.packages_distributions()
    for name in (
        name
        for name in tracked()
        if name.endswith(".py") and name.startswith(("source_", "grader", "bench", "lessons"))
    ):
        for node in ast.walk(ast.parse((REPOSITORY / name).read_text())):
            modules = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for top in {module.partition(".")[0] for module in modules if module} - own - set(sys.stdlib_module_names):
                brought = {home.lower().replace("_", "-") for home in homes.get(top, [])}
                assert not brought or brought & declared, f"{name}: {top}, of {brought}"


SEEDS = 10  # Each variant has at least this many seeds.


@pytest.mark.parametrize("name", ["full", "fast"])
def test_the_target_is_far_from_reference_and_naive_conversion(name: str):
    """The target is tested over several seeds of the current reference and of the current naive conversion."""
    settings = contract.load(name)
    low, high = calibrate.bounds(settings)
    assert low < settings.target < high
    for variant, folder in calibrate.VARIANTS.items():
        runs = results.read(calibrate.folder(settings), variant)
        assert [run["seed"] for run in runs] == list(range(len(runs))) and len(runs) >= SEEDS
        assert {run["source_sha256"] for run in runs} == {source_hash(folder)}
        for run in runs:
            assert run["settings"] == settings.of_the_run()


def test_each_result_names_a_commit_of_this_history():
    """Anyone can check out this commit and repeat the result."""
    assert not (REPOSITORY / ".git" / "shallow").exists(), "this test needs the whole history: git fetch --unshallow"
    listed = subprocess.run(["git", "rev-list", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    commits = {commit[:12] for commit in listed.stdout.split()}
    for path in results.RESULTS.rglob("*.json"):
        assert json.loads(path.read_text())["machine"]["commit"] in commits, path


@pytest.mark.parametrize(
    ("schema", "file"),
    [("github-workflows", ".github/workflows/course.yml"), ("citation-file-format", "CITATION.cff")],
)
def test_files_for_other_programs_are_valid(schema: str, file: str):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", file]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_citation_names_the_version_of_the_package():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]


def test_the_workflow_runs_what_the_readme_names():
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "course.yml").read_text())
    steps = [step.get("run", "") for step in workflow["jobs"]["commands"]["steps"]]
    readme = (REPOSITORY / "README.md").read_text()
    block = readme.partition("```\n")[2].partition("```")[0]
    commands = [line.partition("#")[0].strip() for line in block.splitlines()]
    assert commands == ["make course", "make lab"]
    assert "`make test`" in readme
    assert {"make course", "make test"} <= set(steps)
