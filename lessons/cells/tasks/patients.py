"""Lets a learner name the causes of six sick runs, and answers each. The runs are made up. Lesson 05 has their table.

treat("A", ["images"])   # the patient, and the causes that the learner finds
"""

from collections.abc import Sequence

from IPython.display import HTML, display

from lessons.cells.display.tables import bullets
from lessons.cells.tasks.names import refuse_unknown

CAUSES = {
    "images": "The workers have the same images",
    "updates": "The program makes fewer updates than the healthy one",
    "schedule": "The rate does not fall when it should",
    "rate": "It does not begin with the best rate",
    "luck": "One run can end so by chance",
}
# For each patient, its causes, and how one sees them.
FOUND = {
    "A": {
        "images": "Workers 0 and 1 begin with the same images. So all gradients are equal, and their mean is that of "
        "one worker. The line that gives each worker a shard is missing.",
    },
    "B": {
        "schedule": "In epoch 4 the rate is as high as at the start. The schedule waits for update 3,128, where "
        "epoch 4 of one worker begins. Four workers make 196 updates in an epoch. So they reach it in epoch 15, and "
        "the run ends before.",
    },
    "C": {
        "updates": "With 256 images each, it makes 49 updates in an epoch. The healthy program makes 196. A higher "
        "rate does not make up for it, because 0.4 is the best rate there, too. Take 64 images each, or train for more "
        "epochs.",
    },
    "D": {
        "rate": "It trains at 1.6, which is four times the best rate. Somebody scaled it twice. Look for a launcher or "
        "a library that multiplies the rate, too.",
    },
    "E": {
        "luck": "Nothing is wrong, as far as one can see. One run can end 0.4 points higher or lower by chance. Run "
        "more seeds before you look for a cause.",
    },
    "F": {
        "rate": "It begins at 0.1, the rate of one worker. That is too low for four.",
        "schedule": "It is still 0.1 at the end, because the decay comes four times too late. So the two mistakes "
        "partly hide each other: the low rate stays high for longer. Mend both.",
    },
}


def treat(patient: str, causes: str | Sequence[str] = ()) -> None:
    """Say which of the named causes this patient has, and how many are still missing.

    A single cause may stand without a list. Raises ValueError if there is no such patient, or no such cause.
    """
    causes = [causes] if isinstance(causes, str) else list(causes)
    refuse_unknown("patient", patient, FOUND)
    for cause in causes:
        refuse_unknown("cause", cause, CAUSES)
    found = FOUND[patient]
    told = [
        f"{CAUSES[cause]}: {f'yes. {found[cause]}' if cause in found else 'no. Look at its row again.'}"
        for cause in dict.fromkeys(causes)
    ]
    if not causes:
        told = [f'Name its causes, as in treat("{patient}", ["luck"]).']
    elif missing := len(found.keys() - set(causes)):
        told.append(f"{missing} more {'cause is' if missing == 1 else 'causes are'} missing.")
    display(HTML(bullets(f"Patient {patient}", told)))
