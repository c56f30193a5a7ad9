"""The image has the right files. JupyterLab, four workers and the grader's sandbox run in it."""

import json
import shlex
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.notebooks.handout import with_answers
from tests.container.conftest import UID, Image, buildah

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def layers(image: Callable[[str], Image], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the layers of the learner's image as files."""
    folder = tmp_path_factory.mktemp("layers")
    buildah("push", "--disable-compression", image("learner").name, f"dir:{folder}")
    manifest = json.loads((folder / "manifest.json").read_text())
    return [folder / layer["digest"].removeprefix("sha256:") for layer in manifest["layers"]]


def files(layers: list[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of all files of the course in all layers, also of files that a later layer deletes."""
    for layer in layers:
        with tarfile.open(layer) as tar:
            for member in tar:
                if member.isfile() and member.name.lstrip("./").startswith(("course/", "learner/")):
                    yield member.name.lstrip("./"), tar.extractfile(member).read()


def test_no_layer_holds_an_answer_or_a_test(layers: list[Path]):
    found = dict(files(layers))
    assert (
        "course/notebooks/01_gradient_descent_and_noise.ipynb" in found
        and "course/grader/exercises/sandboxed.py" in found
    )
    names = set(found)
    assert not names & {f"course/{path}" for path in with_answers()}
    assert not [name for name in names if name.startswith(("course/solutions", "course/tests", "course/.git"))]
    marked = [name for name, content in found.items() if b"### BEGIN SOLUTION" in content and name.endswith(".ipynb")]
    assert not marked


def test_it_runs_as_a_user_and_holds_no_token(image: Callable[[str], Image], data: Path):
    for target in ("learner", "grade"):
        config = image(target).config
        assert config["User"] == "learner" and config["Healthcheck"]["Test"][0] == "CMD"
        assert not [one for one in config["Env"] if "TOKEN" in one or "PIP" in one]
    done = image("learner").run(
        "sh", "-c", "id -un; touch source_code/x || touch notebooks/x && rm notebooks/x", data=data
    )
    assert (image("learner").root / "home" / "learner" / ".cache").stat().st_uid == int(UID), (
        "a volume is mounted there"
    )
    assert done.stdout == "learner\n" and done.returncode == 0 and "Permission denied" in done.stderr


RANKS = "import horovod.torch as hvd; hvd.init(); print('rank', hvd.rank(), 'of', hvd.size())"
TRAIN = "source_code/cifar_base.py --images 2048 --epochs 1 --batch-size 64 --output-dir /tmp/o"


def test_four_workers_train_inside(image: Callable[[str], Image], data: Path):
    launch = "horovodrun -np 4 python"
    script = f'{launch} -c "{RANKS}" && {launch} {TRAIN} && cat /tmp/o/metrics.jsonl'
    done = image("learner").run("sh", "-c", script, data=data)
    assert done.returncode == 0, done.stderr
    assert all(f"rank {rank} of 4" in done.stdout for rank in range(4))
    line = json.loads(done.stdout.splitlines()[-1])
    assert line["epoch"] == 1 and line["test_accuracy"] > 0.1


LIVE = "from lessons import live; runs = live('C12'); print('measured', *runs)"


def test_a_live_run_of_a_lesson_works_inside(image: Callable[[str], Image], data: Path):
    done = image("learner").run("sh", "-c", f'cd notebooks && ! command -v git && python -c "{LIVE}"', data=data)
    assert done.returncode == 0 and "measured gradient-descent sgd" in done.stdout, done.stderr


# This starts the command of the image, and repeats its health check until it succeeds. Then it asks for a notebook
# without a token.
JUPYTER = """
{command} & server=$!
for second in $(seq 60); do {health} 2> /dev/null && break; sleep 1; done
python - <<'END'
import urllib.error, urllib.request
print(urllib.request.urlopen("http://localhost:8888/api").read().decode())
try:
    urllib.request.urlopen("http://localhost:8888/api/contents/00_start_here.ipynb")
except urllib.error.HTTPError as error:
    print(error.code)
END
kill $server
"""


def test_jupyterlab_starts_inside_is_healthy_and_wants_its_token(image: Callable[[str], Image], data: Path):
    learner = image("learner")
    command, health = learner.config["Cmd"], learner.config["Healthcheck"]["Test"][1:]
    script = JUPYTER.format(command=shlex.join(command), health=shlex.join(health))
    done = learner.run("bash", "-c", script, data=data)
    assert "lab/tree/00_start_here.ipynb?token=" in done.stdout
    assert '"version"' in done.stdout and done.stdout.splitlines()[-1] == "403", done.stderr


def test_the_grader_and_its_sandbox_work_inside(image: Callable[[str], Image], data: Path):
    command = "python -m grader check solutions/assignment --profile fast --output /tmp/check"
    done = image("grade").run("sh", "-c", command, data=data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "isolation: bubblewrap" in done.stdout and "100 of 100 points" in done.stdout
