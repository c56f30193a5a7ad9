"""Lets a learner judge a conclusion that somebody draws from a table: which rules of a good table does it break?

    judge(1, [3, 4])   # the number of the conclusion, and the numbers of the rules that the learner finds broken

The table, its conclusions and the rules stand in lesson 07. The table is invented.
"""

from collections.abc import Sequence

from IPython.display import HTML, display

from lessons.cells.display.tables import bullets

RULES = {
    1: "One change from row to row",
    2: "Test images, and the last epoch",
    3: "Several seeds",
    4: "The number of updates",
    5: "As much tuning for the old as for the new",
}
# For each conclusion, the rules that it breaks, and what is wrong.
BROKEN = {
    1: {
        2: "Row B has its last epoch, and row C has its best.",
        3: "Row C has one seed. Chance alone may explain several points.",
        5: "Row C is the best of forty rates, and row B is the best of four.",
    },
    2: {
        2: "Both rows have their best epoch. A longer training has more epochs to choose from.",
        3: "Both rows have one seed.",
        4: "Row D does not say how many updates it makes.",
    },
    3: {
        1: "The workers, the optimizer and the number of epochs change together.",
        2: "Row A has its last epoch, and row D has its best.",
        3: "Row D has one seed.",
        4: "Row D does not say how many updates it makes.",
        5: "Row D is the best of forty rates, and row A is the best of four.",
    },
}


def judge(conclusion: int, rules: int | Sequence[int] = ()) -> None:
    """Say which of the named rules the conclusion breaks, and how many are still missing.

    A single rule may stand without a list. Raises ValueError if there is no such conclusion, or no such rule.
    """
    rules = [rules] if isinstance(rules, int) else rules
    for kind, number, known in (("conclusion", conclusion, BROKEN), *(("rule", rule, RULES) for rule in rules)):
        if number not in known:
            raise ValueError(f"there is no {kind} {number!r}; choose a number from 1 to {max(known)}")
    broken = BROKEN[conclusion]
    told = [
        f"{RULES[rule]}: {f'broken. {broken[rule]}' if rule in broken else 'kept. Look at the two rows again.'}"
        for rule in dict.fromkeys(rules)
    ]
    missing = len(broken.keys() - set(rules))
    told.append(
        _missing(missing, bool(set(rules) - broken.keys()))
        if rules
        else f"Name the rules that it breaks, as in judge({conclusion}, [3, 4])."
    )
    display(HTML(bullets(f"Conclusion {conclusion}", told)))


def _missing(number: int, kept: bool) -> str:
    if number:
        return f"{number} more {'rule is' if number == 1 else 'rules are'} broken."
    return "You have found all that are broken." + (" But you have named others, too." if kept else "")
