"""Lets a learner say which technique four made-up programs lack, and answers each. Lesson 06 has their table.

missing("A", "warmup")   # the program, and what the learner thinks
"""

from IPython.display import HTML, display

from lessons.cells.display.tables import bullets
from lessons.cells.tasks.names import refuse_unknown

ANSWERS = {
    "warmup": "The warmup is missing",
    "scaling": "The rate is not scaled",
    "statistics": "The running statistics are not averaged",
    "scaled twice": "The rate is scaled twice",
}
# For each program: what is wrong, and the numbers that show it.
FOUND = {
    "A": (
        "warmup",
        "The rate is 0.8, eight times the base rate, from the first update on. At update 10 the loss is 19.5, far "
        "above that of guessing, which is 2.30. Its accuracy is 11 %, and guessing gives 10 %.",
    ),
    "B": (
        "scaling",
        "The rate is 0.1 from the first update to the last. Nothing breaks, but each image moves the weights only an "
        "eighth as far as with one worker. Search for a higher rate.",
    ),
    "C": (
        "statistics",
        "The printed accuracy is 58 %, and that of the saved network is 51 %. Warmup and rate are as they should be. "
        "But the printed accuracy is a mean over eight different networks, and the saved network is that of rank 0.",
    ),
    "D": (
        "scaled twice",
        "The rate ends at 6.4. That is 64 times the base rate, and not 8 times. The warmup hides this at first. Look "
        "for a library or a launcher that multiplies the rate, too.",
    ),
}


def missing(program: str, answer: str = "") -> None:
    """Say whether an answer is right for a program.

    Raises ValueError if there is no such program, or no such answer.
    """
    refuse_unknown("program", program, FOUND)
    if answer:
        refuse_unknown("answer", answer, ANSWERS)
    right, why = FOUND[program]
    if not answer:
        told = f'Name what is wrong, as in missing("{program}", "warmup").'
    else:
        told = f"{ANSWERS[answer]}: {f'yes. {why}' if answer == right else 'no. Look at its row again.'}"
    display(HTML(bullets(f"Program {program}", [told])))
