"""Judges the outcomes of an exercise's calls: points by group of probes, the first difference, the likely mistake."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from grader import exercises
from grader.exercises import Finding
from grader.exercises.call_results import Outcome, shown, told
from grader.exercises.compare import Tolerance, difference
from grader.exercises.test_cases import Question, Sheet

ALONE = "The cell is tried by itself: what the function needs, imports included, has to stand in it."
CALLS_SHOWN = 900  # letters


@dataclass(frozen=True)
class Group:
    """A group of probes: how many of them were right, the first that was not, and the mistake if it is a known one."""

    name: str
    points: float
    max: int
    right: int
    probes: int
    difference: str
    advice: str


@dataclass(frozen=True)
class Judgement:
    """An exercise's points. `note` says what holds for all of it. All text is short and printable, not escaped."""

    id: str
    title: str
    points: float
    max: int
    note: str
    groups: list[Group]


@dataclass(frozen=True)
class Verdict:
    """What is wrong with the outcomes of one question; empty if nothing is. `mistakes`: those with the same outcome."""

    question: Question
    outcomes: list[Outcome]
    finding: Finding
    mistakes: list[str]

    @property
    def right(self) -> bool:
        return not self.finding.seen


def judge(sheet: Sheet, outcomes: list[Outcome], reveal: bool) -> Judgement:
    """Judge one outcome for each of the sheet's calls. `reveal`: show the right answers, as for public probes."""
    remaining = iter(outcomes)
    verdicts = [_verdict(sheet, question, remaining, reveal) for question in sheet.questions]
    note = _note(outcomes)
    likely = [] if note else _likely(sheet, verdicts)
    groups = [_group(sheet, name, verdicts, likely, worthless=bool(note)) for name in sheet.groups]
    points = round(sum(group.points for group in groups), 2)
    return Judgement(sheet.id, sheet.title, points, sum(sheet.groups.values()), note, groups)


def refused(sheet: Sheet, reason: str) -> Judgement:
    """No points for a cell that was not tried at all."""
    return judge(sheet, [Outcome(none=shown(reason))] * len(sheet.calls), reveal=False)


def _note(outcomes: list[Outcome]) -> str:
    """What to say if all outcomes are the same: no right function answers alike whatever it is asked."""
    if any(other != outcomes[0] for other in outcomes):
        return ""
    return f"Whatever it was asked, the function {outcomes[0]}"


def _verdict(sheet: Sheet, question: Question, remaining: Iterator[Outcome], reveal: bool) -> Verdict:
    outcomes = [next(remaining) for _ in question.calls]
    if question.right is None:
        return Verdict(question, outcomes, _properties(sheet, question, outcomes), [])
    (given,), tolerance = outcomes, Tolerance(sheet.relative, sheet.absolute)
    seen = difference(given, question.right, tolerance)
    if not seen:
        return Verdict(question, outcomes, Finding(), [])
    mistakes = [name for name, wrong in question.wrong.items() if not difference(given, wrong, tolerance)]
    return Verdict(question, outcomes, Finding(_revealed(question.right) if reveal else seen), mistakes)


def _revealed(right: Outcome) -> str:
    return f"it should raise {right.raised}" if right.raised else f"expected: {shown(told(right.value))}"


def _properties(sheet: Sheet, question: Question, outcomes: list[Outcome]) -> Finding:
    if any(given.value is None for given in outcomes):
        return Finding("an answer is missing")
    return exercises.get(sheet.id).judge(question.calls, [given.value for given in outcomes])


def _likely(sheet: Sheet, verdicts: list[Verdict]) -> list[str]:
    """Mistakes that explain at least half of the answers in which they would show, those that explain most first."""
    seen = {name for verdict in verdicts for name in verdict.mistakes}
    shares = {name: _explained(sheet, verdicts, name) for name in sheet.sentences if name in seen}
    return sorted((name for name in shares if shares[name][0] >= 0.5), key=shares.get, reverse=True)


def _explained(sheet: Sheet, verdicts: list[Verdict], mistake: str) -> tuple[float, int]:
    """Share and number of the answers that are what a mistake makes them, where that is not right."""
    tolerance = Tolerance(sheet.relative, sheet.absolute)
    showing = [v for v in verdicts if difference(v.question.wrong[mistake], v.question.right, tolerance)]
    telling = [v for v in showing if not v.question.right.raised] or showing
    explained = sum(mistake in verdict.mistakes for verdict in telling)
    return explained / max(1, len(telling)), explained


def _group(sheet: Sheet, name: str, verdicts: list[Verdict], likely: list[str], worthless: bool) -> Group:
    own = [verdict for verdict in verdicts if verdict.question.group == name]
    wrong = [verdict for verdict in own if not verdict.right]
    right, most = len(own) - len(wrong), sheet.groups[name]
    points = 0.0 if worthless else round(most * right / len(own), 2)
    if not wrong:
        return Group(name, points, most, right, len(own), "", "")
    return Group(name, points, most, right, len(own), _described(sheet, wrong[0]), _advice(sheet, wrong, likely))


def _described(sheet: Sheet, verdict: Verdict) -> str:
    """A question's calls with what came of them, and what is wrong; only the call without an answer if there is one."""
    pairs = list(zip(verdict.question.calls, verdict.outcomes, strict=True))
    missing = [pair for pair in pairs if pair[1].value is None][:1]
    calls = [f"{_call(sheet, call)} {given}" for call, given in missing or pairs]
    described = shown(", ".join(calls), CALLS_SHOWN)
    right = verdict.question.right
    tells_all = missing and missing[0][1].none and not (right and right.raised)
    return described if tells_all else f"{described}; {shown(verdict.finding.seen)}"


def _call(sheet: Sheet, arguments: dict) -> str:
    return f"{sheet.function}({', '.join(map(told, arguments.values()))})"


def _advice(sheet: Sheet, wrong: list[Verdict], likely: list[str]) -> str:
    """What the judge of properties advises, or the sentence of a likely mistake that explains half of a group's."""
    counts = Counter(mistake for verdict in wrong for mistake in verdict.mistakes)
    named = next((mistake for mistake in likely if 2 * counts[mistake] >= len(wrong)), None)
    return sheet.sentences[named] if named else wrong[0].finding.advice


def as_text(judgement: Judgement) -> str:
    """A judgement for a terminal or a notebook's output."""
    lines = [f"{judgement.title}: {judgement.points:g} of {judgement.max} points"]
    lines += [judgement.note] if judgement.note else []
    for group in judgement.groups:
        sign = "ok   " if group.right == group.probes else "wrong"
        lines.append(f"{sign} {group.name}: {group.right} of {group.probes}")
        details = [] if judgement.note else [group.difference, group.advice]
        lines += [f"      {text}" for text in details if text]
    if any("NameError" in text for text in lines):
        lines.append(f"Does it use another cell's names or imports? {ALONE}")
    return "\n".join(lines)
