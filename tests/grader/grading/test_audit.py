"""The audit believes true answers, and nothing else."""

import dataclasses
from collections.abc import Callable
from statistics import fmean

import numpy as np
import pytest

from grader.common.contract import WORKERS
from grader.grading.audit import Audit, audit, images_as_noted, images_fetched_ahead
from grader.run.hooks.grader_observer.log_format import FROZEN, PROJECTIONS
from grader.run.worker_log import Worker
from grader.sandbox.bubblewrap import Bubblewrap
from tests.support.answers import UPDATES, MadeUp, made_up, promise
from tests.support.short_worker import worker


@pytest.fixture(scope="module")
def right() -> MadeUp:
    return made_up()


def audited(run: MadeUp) -> Audit:
    return audit(run.questions, run.workers, run.train, Bubblewrap)


def with_lines(run: MadeUp, change: Callable[[int, dict], dict]) -> MadeUp:
    """Return the run with other lines, in the logs and as they were when the questions were asked."""

    def changed(rank: int, update: object) -> object:
        return dataclasses.replace(update, **change(rank, vars(update)))

    workers = [
        Worker(each.first, [changed(rank, update) for update in each.updates], each.end)
        for rank, each in enumerate(run.workers)
    ]
    questions = [
        dataclasses.replace(question, lines=[changed(rank, line) for rank, line in enumerate(question.lines)])
        for question in run.questions
    ]
    return MadeUp(run.train, workers, questions)


def test_true_answers_give_the_gradients_that_were_claimed(right: MadeUp):
    found = audited(right)
    assert (found.asked, found.silent, found.false, found.unclear) == (UPDATES - 1, 0, 0, 0)
    assert found.computed == found.fitting == UPDATES - 1
    assert min(found.agreement) > 0.999
    assert min(found.changes) > 0.999


def test_invented_gradients_do_not_fit_the_images(right: MadeUp):
    def invented(rank: int, line: dict) -> dict:
        return {"local": np.random.default_rng([rank, line["update"]]).normal(size=PROJECTIONS).tolist()}

    found = audited(with_lines(right, invented))
    assert found.computed == UPDATES - 1
    assert found.fitting <= 2
    assert abs(fmean(found.agreement)) < 0.3


def test_gradients_of_other_images_do_not_fit(right: MadeUp):
    found = audited(with_lines(right, lambda rank, line: {"images": [(i + 64) % 192 for i in line["images"]]}))
    assert abs(fmean(found.agreement)) < 0.5


def test_gradients_of_the_same_images_fit_although_they_differ_by_distortions_alone(right: MadeUp):
    first = right.workers[0].updates

    def copied(rank: int, line: dict) -> dict:
        own = np.array(first[line["update"] - 1].local)
        noise = np.random.default_rng([rank, line["update"]]).normal(size=PROJECTIONS)
        distorted = own + 0.1 * np.linalg.norm(own) * noise / np.linalg.norm(noise)
        return {"images": first[line["update"] - 1].images, "local": distorted.tolist()}

    found = audited(with_lines(right, copied))
    assert found.computed == found.fitting == UPDATES - 1


def test_other_weights_than_those_that_were_promised_are_false(right: MadeUp):
    other = np.frombuffer(right.questions[0].answer, np.float32).copy()
    other[0] += 1e-6
    questions = [dataclasses.replace(right.questions[0], answer=other.tobytes()), *right.questions[1:]]
    found = audited(dataclasses.replace(right, questions=questions))
    assert (found.false, found.computed) == (1, UPDATES - 2)


def test_a_line_that_was_changed_after_the_question_makes_the_answer_false(right: MadeUp):
    changed = dataclasses.replace(right.workers[3].updates[2], lr=[0.5])
    updates = [*right.workers[3].updates[:2], changed, *right.workers[3].updates[3:]]
    workers = [*right.workers[:3], Worker(None, updates, None)]
    assert audited(dataclasses.replace(right, workers=workers)).false == 1


def test_a_line_with_numbers_that_are_not_finite_makes_no_answer_false(right: MadeUp):
    found = audited(with_lines(right, lambda rank, line: {"local": [float("nan")] * PROJECTIONS}))
    assert (found.false, found.fitting) == (0, 0)


def test_a_worker_that_goes_on_and_does_not_answer_is_silent(right: MadeUp):
    questions = [dataclasses.replace(right.questions[0], answer=None), *right.questions[1:]]
    found = audited(dataclasses.replace(right, questions=questions))
    assert (found.asked, found.silent) == (UPDATES - 1, 1)


def test_a_question_that_came_at_the_end_does_not_count(right: MadeUp):
    questions = [*right.questions[:-1], dataclasses.replace(right.questions[-1], answer=None)]
    found = audited(dataclasses.replace(right, questions=questions))
    assert (found.asked, found.silent) == (UPDATES - 2, 0)


def test_weights_that_go_elsewhere_do_not_follow_the_gradients(right: MadeUp):
    draw, questions = np.random.default_rng(1), []
    for question in right.questions:
        before, after = np.frombuffer(question.answer, np.float32).reshape(2, -1).copy()
        after = before + draw.permutation(after - before)
        questions.append(dataclasses.replace(question, answer=before.tobytes() + after.tobytes()))
    promised = {question.update: promise(np.frombuffer(question.answer, np.float32).reshape(2, -1)[1].copy())
                for question in questions}  # fmt: skip
    run = dataclasses.replace(right, questions=questions)
    found = audited(with_lines(run, lambda rank, line: {"commitment": promised.get(line["update"])}))
    assert found.computed == UPDATES - 1
    assert min(found.agreement) > 0.999
    assert abs(fmean(found.changes)) < 0.02


def test_images_that_do_not_exist_are_unclear(right: MadeUp):
    found = audited(with_lines(right, lambda rank, line: {"images": [10**9, 1]}))
    assert (found.unclear, found.computed) == (UPDATES - 1, 0)


def with_other_weights(run: MadeUp, shift: int = 0) -> MadeUp:
    """Return the run as if only the worker that is asked had these weights. The others' gradients have no meaning.

    The lines name the images that are `shift` places further.
    """

    def changed(rank: int, line: dict) -> dict:
        images = [(image + shift) % len(run.train) for image in line["images"]]
        if rank == line["update"] % WORKERS:
            return {"images": images}
        noise = np.random.default_rng([rank, line["update"]]).normal(size=PROJECTIONS)
        return {"images": images, "commitment": f"{rank}", "local": noise.tolist()}

    return with_lines(run, changed)


def test_where_weights_differ_between_workers_only_the_worker_that_was_asked_counts(right: MadeUp):
    found = audited(with_other_weights(right))
    assert found.false == 0
    assert min(found.agreement) > 0.999


def test_where_weights_differ_gradients_of_other_images_do_not_fit(right: MadeUp):
    found = audited(with_other_weights(right, shift=64))
    assert abs(fmean(found.agreement)) < 0.3


def test_without_questions_nothing_is_computed(right: MadeUp):
    assert audited(dataclasses.replace(right, questions=[])) == Audit()


def test_images_that_were_fetched_at_once_are_divided_among_the_updates():
    one = worker(1, [([0, 1, 2, 3, 4], 1), ([], 2), ([], 3), ([5, 6], 4)])
    assert images_as_noted(one) == [[0, 1], [2, 3], [4], [5, 6]]


def test_images_that_were_fetched_ahead_are_used_one_update_later():
    one = worker(1, [([0, 1, 2, 3], 1), ([4, 5], 2), ([], 3)])
    one.updates[0].calls, one.updates[2].calls = 2, 0
    assert images_fetched_ahead(one) == [[0, 1], [2, 3], [4, 5]]


def test_an_update_of_two_batches_that_were_fetched_ahead_uses_two():
    one = worker(1, [([0, 1, 2, 3, 4, 5], 1), ([6, 7], 2)])
    one.updates[0].calls, one.updates[1].calls = 3, 1
    assert images_fetched_ahead(one) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_numbers_that_name_one_parameter_twice_are_unclear(right: MadeUp):
    found = audited(with_lines(right, lambda rank, line: {"network": [0] * len(line["network"])}))
    assert (found.computed, found.unclear) == (0, UPDATES - 1)


def test_a_frozen_parameter_that_changes_is_found(right: MadeUp):
    found = audited(with_lines(right, lambda rank, line: {"network": [FROZEN, *line["network"][1:]]}))
    assert found.computed == UPDATES - 1 and found.fitting == 0


def test_a_network_of_which_most_is_frozen_is_unclear(right: MadeUp):
    def frozen(rank: int, line: dict) -> dict:
        half = len(line["network"]) // 2  # most of the weights are in the other half
        return {"network": line["network"][:half] + [FROZEN] * (len(line["network"]) - half)}

    assert audited(with_lines(right, frozen)).unclear == UPDATES - 1


def test_a_network_with_another_number_of_parameters_is_unclear(right: MadeUp):
    assert audited(with_lines(right, lambda rank, line: {"network": line["network"][1:]})).unclear == UPDATES - 1


def test_a_gradient_that_is_not_finite_has_no_length(right: MadeUp):
    found = audited(with_lines(right, lambda rank, line: {"local": [float("nan")] * PROJECTIONS}))
    assert set(found.lengths) == {0.0}


def test_a_program_whose_batches_are_fetched_ahead_from_the_middle_on_fits_at_every_update(right: MadeUp):
    """More than half of the updates fit also by the lines alone, so half of them must not be enough."""
    begin = UPDATES // 2 + 1
    images = [[update.images for update in each.updates] for each in right.workers]

    def ahead(rank: int, line: dict) -> dict:
        number = line["update"]
        if number < begin:
            return {}
        if number == begin:
            both = images[rank][number - 1] + images[rank][number]
            return {"images": both, "calls": 2}
        following = images[rank][number] if number < UPDATES else []
        return {"images": following, "calls": int(bool(following))}

    found = audited(with_lines(right, ahead))
    assert found.computed == found.fitting == UPDATES - 1
