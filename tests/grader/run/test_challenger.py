"""The grader asks workers for their weights at secret updates, and takes their answers."""

import json
import random
import shutil
import time
from pathlib import Path

import pytest

from grader.common.contract import WORKERS
from grader.run import challenger
from grader.run.challenger import Challenger, Question, draw_updates, name_network
from grader.run.hooks.grader_observer.log_format import DONE_FILE, KEPT_UPDATES, answer_file, question_file
from grader.sandbox.run_paths import RunPaths
from tests.conftest import until
from tests.grader.run.test_worker_log import END, FIRST, UPDATE


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    made = RunPaths(tmp_path)
    for folder in made.parts:
        folder.mkdir()
    name_network(made.challenges)
    return made


def write(paths: RunPaths, updates: int, *last: dict) -> None:
    """Write the logs of workers that have made so many updates."""
    lines = [
        FIRST,
        *(UPDATE | {"update": number, "commitment": f"{number}"} for number in range(1, updates + 1)),
        *last,
    ]
    for rank in range(WORKERS):
        paths.worker_log(rank).write_text("".join(json.dumps(line) + "\n" for line in lines))


def give(paths: RunPaths, question: Question, content: bytes) -> Path:
    """Write the answer to a question as the observer does: the file appears whole. Return its path."""
    answer = paths.observe / answer_file(question.worker, question.number)
    part = answer.with_name(f"{answer.name}.part")
    part.write_bytes(content)
    return part.rename(answer)


def questions(paths: RunPaths) -> list[Path]:
    return sorted(paths.challenges.glob("question*"))


@pytest.mark.parametrize("updates", [2, 8, 24, 784])
def test_the_updates_are_drawn_from_all_parts_of_a_run_but_the_first(updates: int):
    drawn = [draw_updates(updates, random.Random(seed)) for seed in range(100)]
    assert all(one == sorted(set(one)) for one in drawn)
    assert all(challenger.FIRST_ASKED * updates < number <= updates for one in drawn for number in one)
    assert all(len(one) <= challenger.QUESTIONS for one in drawn)
    if updates > 100:
        assert {len(one) for one in drawn} == {challenger.QUESTIONS}
        assert len({tuple(one) for one in drawn}) == 100


def test_a_question_comes_after_its_line_and_names_it(paths: RunPaths):
    write(paths, 60)
    asking = Challenger(paths.challenges, paths, 60)
    until(lambda: asking.questions, 20)
    asking.close()
    assert 1 <= len(questions(paths)) == len(asking.questions)
    for question in asking.questions:
        assert 60 - KEPT_UPDATES < question.update < 60
        assert question.before == f"{question.update - 1}"
        assert [line.update for line in question.lines] == [question.update] * WORKERS
        name = question_file(question.worker, question.number)
        assert (paths.challenges / name).read_text() == str(question.update)


def test_an_answer_is_taken_and_its_file_removed(paths: RunPaths):
    write(paths, 60)
    asking = Challenger(paths.challenges, paths, 60)
    until(lambda: asking.questions, 20)
    first = asking.questions[0]
    answer = give(paths, first, b"weights")
    until(lambda: first.answer, 20)
    until(lambda: not answer.exists(), 20)
    asking.close()
    assert first.answer == b"weights"


def test_an_answer_that_is_too_long_is_none(paths: RunPaths):
    write(paths, 60)
    asking = Challenger(paths.challenges, paths, 60)
    until(lambda: asking.questions, 20)
    first = asking.questions[0]
    give(paths, first, bytes(asking.answer_bytes + 1))
    time.sleep(3 * challenger.LOOK_SECONDS)
    asking.close()
    assert first.answer is None


def test_nobody_is_asked_before_the_first_part_of_a_run_has_passed(paths: RunPaths):
    write(paths, 10)
    asking = Challenger(paths.challenges, paths, 60)
    time.sleep(5 * challenger.LOOK_SECONDS)
    asking.close()
    assert (questions(paths), asking.questions) == ([], [])


def test_workers_that_have_ended_get_the_remaining_questions_and_are_let_go(paths: RunPaths, monkeypatch):
    monkeypatch.setattr(challenger, "FINAL_SECONDS", 0.3)
    write(paths, 60, END | {"end": 60})
    asking = Challenger(paths.challenges, paths, 60)
    until((paths.challenges / DONE_FILE).exists, 20)
    asking.close()
    assert len({question.update for question in asking.questions}) == len(asking.questions) == challenger.QUESTIONS
    assert all(60 - KEPT_UPDATES < question.update <= 60 for question in asking.questions)


def test_no_update_is_asked_about_that_some_worker_has_not_written(paths: RunPaths):
    write(paths, 60)
    paths.worker_log(3).unlink()
    asking = Challenger(paths.challenges, paths, 60)
    time.sleep(5 * challenger.LOOK_SECONDS)
    asking.close()
    assert asking.questions == []


def test_on_a_busy_machine_workers_are_let_go_after_their_last_slow_answer(paths: RunPaths, monkeypatch):
    """Each answer comes late, and all together take longer than the time for one of them."""
    monkeypatch.setattr(challenger, "FINAL_SECONDS", 1.5)
    monkeypatch.setattr(challenger, "QUESTIONS", 4)
    write(paths, 60, END | {"end": 60})
    asking = Challenger(paths.challenges, paths, 60)
    until(lambda: len(asking.questions) == challenger.QUESTIONS, 20)
    for question in asking.questions:
        time.sleep(0.8)
        give(paths, question, b"weights")
    until((paths.challenges / DONE_FILE).exists, 20)
    asking.close()
    assert [question.answer for question in asking.questions] == [b"weights"] * challenger.QUESTIONS


def test_a_question_that_cannot_be_written_is_an_error_of_the_machine(paths: RunPaths):
    """It must not look as if the worker had not answered."""
    write(paths, 60)
    shutil.rmtree(paths.challenges)
    asking = Challenger(paths.challenges, paths, 60)
    until(lambda: asking.failure, 20)
    with pytest.raises(FileNotFoundError):
        asking.close()
