"""Scores the results of an exercise's calls. It names points, differences and likely mistakes by group."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from grader import exercises
from grader.exercises import Finding, TestCase
from grader.exercises.call_results import CallResult, shown, told
from grader.exercises.compare import Tolerance, difference
from grader.exercises.test_cases import TestSuite

ALONE = "The grader runs this cell alone. So write all that the function needs into it, also its imports."
CALLS_SHOWN = 900  # characters; a description of calls must stay readable in a notebook
NEAR = 0.25  # a share; answers that differ from the right ones by less are near to them
NEAR_ADVICE = (
    "Your answers are near the right ones, but they are not equal. Do you round, or simulate with random draws? "
    "The exact result is asked for."
)
EXACT = 1e-9  # the relative tolerance of exercises that count something; there a near answer is no rounded one


@dataclass(frozen=True)
class GroupScore:
    """This is the score of one group of test cases.

    `right` of its `cases` were right. `difference` describes the first one that was not. `advice` is for the learner.
    """

    name: str
    points: float
    max: int
    right: int
    cases: int
    difference: str
    advice: str


@dataclass(frozen=True)
class Score:
    """This is the score of an exercise. `note` is for all groups. All text is short and printable, but not escaped."""

    id: str
    title: str
    points: float
    max: int
    note: str
    groups: list[GroupScore]


@dataclass(frozen=True)
class ScoredCase:
    """This is one test case with its results.

    `finding` says what is wrong with them, and is empty if they are right. `mistakes` names the mistakes that give the
    same result. `near` says whether the result is near the right one, without being equal.
    """

    case: TestCase
    results: list[CallResult]
    finding: Finding
    mistakes: list[str]
    near: bool = False

    @property
    def right(self) -> bool:
        return not self.finding.seen


def score(suite: TestSuite, results: list[CallResult], reveal: bool) -> Score:
    """Score one result for each of the suite's calls. `reveal` shows the right answers, as for public test cases."""
    remaining = iter(results)
    scored = [_score_case(suite, case, remaining, reveal) for case in suite.cases]
    note = _note(results)
    likely = [] if note else _likely(suite, scored)
    groups = [_group(suite, name, scored, likely, worthless=bool(note)) for name in suite.groups]
    points = round(sum(group.points for group in groups), 2)
    return Score(suite.id, suite.title, points, sum(suite.groups.values()), note, groups)


def refused(suite: TestSuite, reason: str) -> Score:
    """Return the score of a cell that was not run. It has no points, and it gives the reason."""
    return score(suite, [CallResult(none=shown(reason))] * len(suite.calls), reveal=False)


def _note(results: list[CallResult]) -> str:
    """Return a note if all results are the same, because a right function gives different answers."""
    if any(other != results[0] for other in results):
        return ""
    alike = f"Whatever it was asked, the function {results[0]}"
    return alike if results[0].value is None else f"{alike}. One answer to all calls earns no points."


def _score_case(suite: TestSuite, case: TestCase, remaining: Iterator[CallResult], reveal: bool) -> ScoredCase:
    results = [next(remaining) for _ in case.calls]
    if case.right is None:
        return ScoredCase(case, results, _properties(suite, case, results), [])
    (given,), tolerance = results, Tolerance(suite.relative, suite.absolute)
    seen = difference(given, case.right, tolerance)
    if not seen:
        return ScoredCase(case, results, Finding(), [])
    mistakes = [name for name, wrong in case.wrong.items() if not difference(given, wrong, tolerance)]
    near = suite.relative > EXACT and not difference(given, case.right, Tolerance(NEAR, suite.absolute))
    return ScoredCase(case, results, Finding(_revealed(case.right) if reveal else seen), mistakes, near)


def _revealed(right: CallResult) -> str:
    return f"it should raise {right.raised}" if right.raised else f"expected: {shown(told(right.value))}"


def _properties(suite: TestSuite, case: TestCase, results: list[CallResult]) -> Finding:
    if any(given.value is None for given in results):
        return Finding("an answer is missing")
    return exercises.get(suite.id).judge(case.calls, [given.value for given in results])


def _likely(suite: TestSuite, scored: list[ScoredCase]) -> list[str]:
    """Return the likely mistakes. Those that explain the largest share of the answers come first.

    A mistake is likely if it explains at least half of the answers in which it would show.
    """
    seen = {name for scored_case in scored for name in scored_case.mistakes}
    shares = {name: _explained(suite, scored, name) for name in suite.sentences if name in seen}
    return sorted((name for name in shares if shares[name][0] >= 0.5), key=shares.get, reverse=True)


def _explained(suite: TestSuite, scored: list[ScoredCase], mistake: str) -> tuple[float, int]:
    """Return the share and the number of answers that a mistake explains. Cases that it gets right do not count."""
    tolerance = Tolerance(suite.relative, suite.absolute)
    showing = [v for v in scored if difference(v.case.wrong[mistake], v.case.right, tolerance)]
    telling = [v for v in showing if not v.case.right.raised] or showing
    explained = sum(mistake in scored_case.mistakes for scored_case in telling)
    return explained / max(1, len(telling)), explained


def _group(suite: TestSuite, name: str, scored: list[ScoredCase], likely: list[str], worthless: bool) -> GroupScore:
    own = [scored_case for scored_case in scored if scored_case.case.group == name]
    wrong = [scored_case for scored_case in own if not scored_case.right]
    right, most = len(own) - len(wrong), suite.groups[name]
    points = 0.0 if worthless else round(most * right / len(own), 2)
    if not wrong:
        return GroupScore(name, points, most, right, len(own), "", "")
    return GroupScore(name, points, most, right, len(own), _described(suite, wrong[0]), _advice(suite, wrong, likely))


def _described(suite: TestSuite, scored_case: ScoredCase) -> str:
    """Describe a test case's calls, their results and what is wrong. A call without an answer is described alone."""
    pairs = list(zip(scored_case.case.calls, scored_case.results, strict=True))
    missing = [pair for pair in pairs if pair[1].value is None][:1]
    calls = [f"{_call(suite, call)} {given}" for call, given in missing or pairs]
    described = shown(", ".join(calls), CALLS_SHOWN)
    right = scored_case.case.right
    tells_all = missing and missing[0][1].none and not (right and right.raised)
    return described if tells_all else f"{described}; {shown(scored_case.finding.seen)}"


def _call(suite: TestSuite, arguments: dict) -> str:
    return f"{suite.function}({', '.join(map(told, arguments.values()))})"


def _advice(suite: TestSuite, wrong: list[ScoredCase], likely: list[str]) -> str:
    """Return the advice for a group.

    This is the sentence of a likely mistake that explains half of the group's wrong answers. If there is no such
    mistake, it is the advice of the first finding, or says that all answers are near the right ones.
    """
    counts = Counter(mistake for scored_case in wrong for mistake in scored_case.mistakes)
    named = next((mistake for mistake in likely if 2 * counts[mistake] >= len(wrong)), None)
    if named:
        return suite.sentences[named]
    return NEAR_ADVICE if all(scored_case.near for scored_case in wrong) else wrong[0].finding.advice


def as_text(score: Score) -> str:
    """Return a score as text for a terminal or a notebook's output.

    If all results are the same, one wrong call is shown, because the others would say the same again.
    """
    lines = [f"{score.title}: {score.points:g} of {score.max} points"]
    lines += [score.note] if score.note else []
    first_wrong = next((group for group in score.groups if group.difference), None)
    for group in score.groups:
        sign = "ok   " if group.right == group.cases else "wrong"
        lines.append(f"{sign} {group.name}: {group.right} of {group.cases} calls")
        if not score.note or group is first_wrong:
            lines += [f"      {text}" for text in (group.difference, group.advice) if text]
    if any("NameError" in text for text in lines):
        lines.append(f"Does it use another cell's names or imports? {ALONE}")
    return "\n".join(lines)
