"""Short programs run in the sandbox, and give an answer, or one line that says why there is none."""

import pytest

from grader.sandbox import run_in_sandbox
from grader.sandbox.bubblewrap import Bubblewrap


def answer(program: str, most: int = 1000, seconds: float = 20) -> bytes:
    return run_in_sandbox.answer({"main.py": program.encode()}, {"question": b"6 7"}, most, seconds, Bubblewrap)


def test_a_program_answers():
    program = (
        "import pathlib, sys\n"
        "folder, path = map(pathlib.Path, sys.argv[1:])\n"
        "one, other = (folder / 'question').read_text().split()\n"
        "path.write_text(str(int(one) * int(other)))"
    )
    assert answer(program) == b"42"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("pass", "answer was not written"),
        ("import sys; open(sys.argv[2], 'w').write('x' * 1001)", "answer holds more than 1,000 bytes"),
        ("import os; os._exit(3)", "it ended with status 3"),
        ("while True: print('x' * 10_000)", "xxx"),
    ],
)
def test_no_answer_is_one_line(program: str, message: str):
    with pytest.raises(run_in_sandbox.NoAnswerError, match=message) as refused:
        answer(program)
    assert "\n" not in str(refused.value)


def test_an_endless_program_is_ended():
    with pytest.raises(run_in_sandbox.NoAnswerError, match="no answer within 1 s"):
        answer("import time; time.sleep(60)", seconds=1)
