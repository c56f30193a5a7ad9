"""A kernel in the sandbox executes answers for display."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from grader.classroom.grading import execute_for_display
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.guest_scripts import execute_cells
from tests.conftest import REPOSITORY

PICTURE = """
import matplotlib.pyplot as plt
%matplotlib inline
plt.plot([1, 2]); plt.show()
"""


def shown(*cells: str) -> tuple[list, str]:
    return execute_for_display.execute(list(cells), Bubblewrap)


def test_text_errors_and_pictures_are_shown(monkeypatch: pytest.MonkeyPatch):
    # On a slow machine, matplotlib needs longer to look for fonts.
    monkeypatch.setattr(execute_for_display, "CELL_SECONDS", 100)
    outputs, stopped = shown(
        "x = 6\nprint('hello')", "x * 7", "1 / 0", PICTURE, "import sys; print('w', file=sys.stderr)"
    )
    assert stopped == ""
    # Only the last output counts, because matplotlib may first print that it looks for fonts.
    kinds = [cell[-1].output_type for cell in outputs]
    assert kinds == ["stream", "display_data", "error", "display_data", "stream"]
    assert outputs[0][0].text == "hello\n"
    assert outputs[1][0].data["text/plain"] == "42"
    assert outputs[2][0].ename == "ZeroDivisionError"
    assert "image/png" in outputs[3][-1].data
    assert outputs[4][0].name == "stderr"


def test_markup_scripts_and_terminal_codes_are_not_shown():
    cells = (
        "from IPython.display import HTML, Javascript, SVG, Markdown\nHTML('<script>alert(1)</script>')",
        "Javascript('alert(1)')", "Markdown('<img src=x onerror=alert(1)>')", "print('\\x1b]0;title\\x07\\x08 text')",
    )  # fmt: skip
    outputs, _ = shown(*cells)
    kinds = {kind for cell in outputs[:3] for output in cell for kind in output.data}
    assert kinds == {"text/plain"}
    assert "\x07" not in outputs[3][0].text
    assert "\x08" not in outputs[3][0].text


def test_killed_and_flooding_cells_are_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(execute_for_display, "CELL_SECONDS", 5)
    _, killed = shown("import os\nos.kill(os.getpid(), 9)", "print('after')")
    assert "died" in killed.lower() or "Dead" in killed
    (flood, _), stopped = shown("for _ in range(10**6): print('x' * 100)", "print('after')")
    assert flood or stopped, "it is cut, or reported as ended"
    assert stopped.isprintable()
    assert len(flood) <= execute_cells.MAX_OUTPUTS
    assert all(len(output.get("text", "")) <= execute_cells.MAX_TEXT for output in flood)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff", b"[" * 100_000, b"5", b"[]", b"{}", b'{"outputs": 5, "stopped": ""}',
        b'{"outputs": {"a": 1}, "stopped": []}', b'{"outputs": [5, {}, [5], [{}]], "stopped": ""}',
        b'{"outputs": [[{"output_type": "stream", "text": 5}, {"output_type": "error"}]], "stopped": ""}',
        b'{"outputs": [[{"output_type": "display_data", "data": {"image/png": "%%"}}]], "stopped": "\\ud800\\n"}',
    ],
)  # fmt: skip
def test_any_answer_written_by_a_cell_can_be_read(content: bytes):
    outputs, stopped = execute_for_display.read(content, 2)
    assert len(outputs) == 2
    assert stopped.isprintable()
    nbformat.validate(new_notebook(cells=[new_code_cell("", outputs=cell) for cell in outputs]))


@pytest.mark.slow
def test_only_a_few_of_very_many_outputs_are_shown():
    content = b'{"outputs": [[' + b",".join([b'{"output_type": "error"}'] * 100_000) + b'], []], "stopped": ""}'
    (flood, rest), _ = execute_for_display.read(content, 2)
    assert len(flood) == execute_cells.MAX_OUTPUTS
    assert rest == []


def test_an_endless_loop_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(execute_for_display, "CELL_SECONDS", 2)
    outputs, stopped = shown("while True: pass", "print('after')")
    assert stopped or outputs[0][0].ename == "KeyboardInterrupt"


def test_cells_have_no_network_and_no_files_of_the_course():
    paths = [str(REPOSITORY / name) for name in ("solutions", "tests", "grader/exercises", "grader/work")]
    network = "try:\n    socket.create_connection(('192.0.2.1', 80), 2)\nexcept OSError as error:\n    print('none')"
    outputs, _ = shown(f"import os, socket\nprint([os.path.exists(path) for path in {paths}])\n{network}")
    assert outputs[0][0].text == "[False, False, False, False]\nnone\n"
