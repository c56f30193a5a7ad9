"""The rules of a course, which an instructor writes into `policy.toml`: penalties, extensions, attempts and weights."""

import math
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from grader.common.errors import GraderError
from grader.common.text import one_line, quoted

FILE = "policy.toml"
DAY_SECONDS = 24 * 3600
MAX_VALUE = 60  # characters of a wrong value in a message
UNKNOWN = "extra_forbidden"  # pydantic's name for an entry that no field has
NO_ZONE = "timezone_aware"  # and for a time without its zone


class PolicyError(GraderError):
    """An entry of the file is wrong. The message is one line, which names each wrong entry."""


class Rules(BaseModel):
    """A part of the file. An entry must have the right type and a known name."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Late(Rules):
    """`share_per_day` of the points is taken off for each day begun, and at most `max_share` of them."""

    share_per_day: float = Field(0.0, ge=0, le=1)
    max_share: float = Field(1.0, ge=0, le=1)

    def share(self, seconds: float) -> float:
        """The share of the points that is taken off from a submission that is so many seconds late."""
        return min(self.max_share, self.share_per_day * math.ceil(max(0.0, seconds) / DAY_SECONDS))


class Attempts(Rules):
    """The best of the first `best_of` attempts counts. Without it the last attempt counts."""

    best_of: int | None = Field(None, ge=1)


class Assignment(Rules):
    """The `weight` multiplies an assignment's points in the total. A dropped assignment is not in the total.

    `due` is when its work must be handed in. Without it, the due date in formgrader stays. `column` is the assignment's
    title in a learning platform's table. None is the assignment's own name.
    """

    due: AwareDatetime | None = None
    dropped: bool = False
    weight: float = Field(1.0, gt=0, le=100)
    column: str | None = Field(None, min_length=1)

    @property
    def factor(self) -> float:
        """By what the points are multiplied in the total."""
        return 0.0 if self.dropped else self.weight


class Program(Rules):
    """`target` is the test accuracy that the four-worker program must reach, 0 to 1. None is the profile's.

    `data` is a folder with data of one's own, which it trains on. None is CIFAR-10.
    """

    target: float | None = Field(None, gt=0, lt=1)
    data: str | None = Field(None, min_length=1)


class Policy(Rules):
    """All rules. `extensions` holds due dates by student and assignment.

    `lessons` has the numbers of the course's lessons and labs, like "03". None stands for all.
    """

    lessons: list[str] | None = None
    late: Late = Late()
    attempts: Attempts = Attempts()
    program: Program = Program()
    assignments: dict[str, Assignment] = {}
    extensions: dict[str, dict[str, AwareDatetime]] = {}

    def assignment(self, name: str) -> Assignment:
        """The rules of one assignment."""
        return self.assignments.get(name, Assignment())

    def is_chosen(self, lesson: str) -> bool:
        """Whether a lesson or lab, like `03_data_parallelism_by_hand`, belongs to the course."""
        return self.lessons is None or any(_is_named(lesson, name) for name in self.lessons)

    def check_lessons(self, known: list[str]) -> None:
        """Raise PolicyError if an entry of `lessons` names none of the lessons `known`."""
        unknown = [name for name in self.lessons or [] if not any(_is_named(lesson, name) for lesson in known)]
        if unknown:
            raise PolicyError(f"{FILE}: no lesson {', '.join(unknown)}; there are: {', '.join(known)}")

    def unknown_students(self, known: Iterable[str]) -> list[str]:
        """The students with an extension whom nobody knows. Their names may be misspelt."""
        return sorted(set(self.extensions) - set(known))


def _is_named(lesson: str, name: str) -> bool:
    return name in (lesson, lesson.partition("_")[0])


def load(root: Path, assignments: list[str]) -> Policy:
    """Read the policy of the course in `root`, whose assignments have these names. Without a file it is the usual one.

    Raises PolicyError if an entry is wrong.
    """
    path = root / FILE
    if not path.exists():
        return Policy()
    try:
        policy = Policy.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path} is no TOML file: {one_line(str(error))}") from None
    except ValidationError as error:
        raise PolicyError(f"{path}: {'; '.join(_wrong_entries(error))}") from None
    named = [*policy.assignments, *(name for dates in policy.extensions.values() for name in dates)]
    if unknown := [name for name in named if name not in assignments]:
        raise PolicyError(
            f"{path}: no assignment {', '.join(map(quoted, unknown))}; released are: {', '.join(assignments)}"
        )
    return policy


def _wrong_entries(error: ValidationError) -> Iterator[str]:
    for wrong in error.errors():
        entry = ".".join(map(str, wrong["loc"]))
        if wrong["type"] == UNKNOWN:
            yield f"there is no entry {quoted(entry)}"
            continue
        message = "a time needs its zone, as in 2026-02-01T23:59:00+01:00" if wrong["type"] == NO_ZONE else wrong["msg"]
        yield f"{entry} = {one_line(str(wrong['input']), MAX_VALUE)}: {message[0].lower()}{message[1:]}"
