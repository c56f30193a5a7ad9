"""This program runs inside the sandbox. It calls a learner's functions and writes the result of each call.

    python main.py DATA ANSWER

This file is copied into the sandbox alone, so it imports nothing else of the grader. DATA/calls.json holds the
learner's cells and the arguments. It holds no right answers.
A child process loads a cell. The child starts a process of its own for each call, so that a crash or a changed variable
does not affect the next call. After a call that hangs, another child continues with the next call. The result of a call
is one of three JSON objects:
{"value": ...}, {"raised": NAME, "said": TEXT}, {"none": REASON}.
"""

import contextlib
import importlib
import json
import math
import os
import re
import resource
import select
import signal
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

# The first five limits are far above a right answer. They keep a wrong answer from filling the memory of the grader.
ANSWER_BYTES = 4096  # bytes; one answer, written as JSON, may have so many
LINE_BYTES = ANSWER_BYTES + 64  # bytes; one result, written as JSON, is an answer and its key
ELEMENTS = 2048  # elements; one list may have so many
DEPTH = 6  # levels; lists may lie inside each other so deep
TEXT = 300  # characters; a message may have so many, because a learner must be able to read it
CELL = "cell"  # tracebacks show this name as the name of the cell's file
DATA_BYTES = 2 * 2**30  # bytes; a child may use so much memory, because the machine serves others too
FILE_BYTES = 2**20  # bytes; a child may write files up to this size, and no exercise needs one
NO_TIME = "no time is left: the calls before it took too long"


class UnfitError(Exception):
    """An answer is of a kind that cannot be passed on. The message is one line for the learner."""


def plain(value: object, depth: int = 0) -> object:
    """Return a value in a form that JSON can hold.

    JSON holds finite numbers, text, True and False, and lists of them. Arrays become lists. Raises UnfitError for any
    other value.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | float):
        return _number(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist(), depth + 1)
    if not isinstance(value, list | tuple | range):
        raise UnfitError(_not_an_answer(value))
    if depth >= DEPTH:
        raise UnfitError(f"the answer's lists are nested more than {DEPTH} deep")
    if len(value) > ELEMENTS:
        raise UnfitError(f"the answer holds a list of {len(value):,} elements, more than {ELEMENTS:,}")
    return [plain(element, depth + 1) for element in value]


def _number(value: float) -> float:
    if isinstance(value, int):
        if abs(value) > 2**63:
            raise UnfitError("the answer holds a whole number beyond 64 bits")
        return int(value)
    if not math.isfinite(value):
        raise UnfitError(f"the answer holds {float(value)}, which is no finite number")
    return float(value)


def _not_an_answer(value: object) -> str:
    if value is None:
        return "the function returned None: is a return missing?"
    return f"the answer holds a {type(value).__name__}, where numbers, text or lists of them are expected"[:TEXT]


def called(function: Callable, arguments: dict) -> dict:
    """Return the result of one call. The `arguments` are passed by position, as copies that the function may change."""
    try:
        value = plain(function(*json.loads(json.dumps(arguments)).values()))
        if (size := len(json.dumps(value))) > ANSWER_BYTES:
            raise UnfitError(f"the answer has {size:,} bytes as JSON, more than {ANSWER_BYTES:,}")
        return {"value": value}
    except UnfitError as error:
        return {"none": str(error)}
    except (Exception, SystemExit) as error:
        name = "ValueError" if isinstance(error, ValueError) else type(error).__name__
        return {"raised": name[:TEXT], "said": words(error)}


def words(error: BaseException) -> str:
    """Return an error as one line of text. It names the line of the cell where the error arose."""
    try:
        said = str(error)
    except Exception:  # the learner may have written the class of the error, and its `__str__` may fail
        said = ""
    line = _line(error)
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return " ".join(text[:TEXT].split()) + (f" (line {line})" if line else "")


def _line(error: BaseException) -> int | None:
    line, trace = None, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == CELL:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def load(source: str, name: str) -> Callable:
    """Return the function `name` of a cell. As in a notebook, the function remains if a later line raises an error.

    Raises UnfitError if the cell does not define it.
    """
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    reason = f"the cell defines no function {name}"
    try:
        exec(_compiled(source), module.__dict__)
    except (Exception, SystemExit) as error:
        reason = f"the cell ended with {words(error)}"
    function = module.__dict__.get(name)
    if not callable(function):
        raise UnfitError(reason)
    return function


def _compiled(source: str) -> types.CodeType:
    """Return a cell's compiled code.

    A cell may have lines that only a notebook understands, like %timeit or !ls. They are left out if the cell is not
    Python with them.
    """
    try:
        return compile(source, CELL, "exec")
    except SyntaxError:
        return compile(re.sub(r"^(\s*)[%!].*", r"\1pass", source, flags=re.MULTILINE), CELL, "exec")


class Child:
    """This process loads a cell and answers calls. It writes {} when the cell is loaded, and then one line per call.

    `gone` is true once the process has ended. Raises OSError if the system allows no more processes.
    """

    def __init__(self, exercise: dict, calls: list[dict]):
        self.pipe, send = os.pipe()
        self.buffer, self.gone = b"", False
        self.id = os.fork()
        if self.id == 0:
            _leave_after(_work, exercise, calls, send)
        os.close(send)

    def line(self, end: float, late: str) -> str:
        """Return the next line, or a result that says why there is none.

        `end` is a time of the monotonic clock in seconds. If no line has come by then, the reason is `late`.
        """
        while b"\n" not in self.buffer and len(self.buffer) < LINE_BYTES:
            ready, _, _ = select.select([self.pipe], [], [], max(0, end - time.monotonic()))
            part = os.read(self.pipe, 65536) if ready else b""
            if not part:
                self.gone = True
                return none(_farewell(self._kill()) if ready else late)
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line[:LINE_BYTES].decode(errors="replace")

    def close(self) -> None:
        """Kill the process, if it still runs, and the processes that it started."""
        if self.id:
            self._kill()
        os.close(self.pipe)

    def _kill(self) -> int:
        """Kill the process and return the status of os.waitpid."""
        for kill in (os.killpg, os.kill):  # `killpg` fails if the child has not made its group yet
            with contextlib.suppress(OSError):
                kill(self.id, signal.SIGKILL)
        _, status = os.waitpid(self.id, 0)
        self.id = 0
        return status


def none(reason: str) -> str:
    """Return the result of a call that has no answer."""
    return json.dumps({"none": reason})


def _farewell(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    how = f"by signal {-code}" if code < 0 else f"with exit status {code}"
    return f"the process ended {how} before it answered"


def _leave_after(work: Callable, *arguments: object) -> None:
    """Do the work of a forked process and end the process. This function never returns."""
    status = 1
    try:
        work(*arguments)
        status = 0
    finally:
        os._exit(status)


def _work(exercise: dict, calls: list[dict], send: int) -> None:
    _restrict()
    try:
        function = load(exercise["source"], exercise["function"])
    except UnfitError as error:
        os.write(send, none(str(error)).encode() + b"\n")
        return
    os.write(send, b"{}\n")
    for arguments in calls:
        os.write(send, _call_apart(function, arguments) + b"\n")


def _restrict() -> None:
    os.setpgid(0, 0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # the grader must not read what a cell prints as an answer
        os.dup2(null, stream)
    limits = {resource.RLIMIT_DATA: DATA_BYTES, resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_CORE: 0}
    for limit, value in limits.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (value, value))


def _call_apart(function: Callable, arguments: dict) -> bytes:
    """Make a call in its own process, and return the result."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        _leave_after(_call, function, arguments, send)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        result = pipe.read(LINE_BYTES)
    _, status = os.waitpid(child, 0)
    return result or none(_farewell(status)).encode()


def _call(function: Callable, arguments: dict, send: int) -> None:
    # Each process has a copy of one random state. Calls without a seed must differ, as they do on workers.
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    os.write(send, json.dumps(called(function, arguments)).encode())


def answer(exercise: dict, call_seconds: float, exercise_seconds: float) -> list[str]:
    """Return the results of all calls of an exercise."""
    end, calls, results = time.monotonic() + exercise_seconds, exercise["calls"], []
    while len(results) < len(calls):
        if results and time.monotonic() >= end:
            return results + [none(NO_TIME)] * (len(calls) - len(results))
        try:
            told, hopeless = _answer_until_hang(exercise, calls[len(results) :], call_seconds, end)
        except OSError as error:
            told, hopeless = [], none(f"no process could be started for it: {error.strerror}")
        results += told
        if hopeless:
            return results + [hopeless] * (len(calls) - len(results))
    return results


def _answer_until_hang(exercise: dict, calls: list[dict], call_seconds: float, end: float) -> tuple[list[str], str]:
    """Return one child's results, up to a hang, and the reason why no other child could answer (or "")."""
    told: list[str] = []
    with contextlib.closing(Child(exercise, calls)) as child:
        loaded = child.line(end, "the cell itself does not come to an end: an endless loop?")
        if loaded != "{}":
            return told, loaded
        for _ in calls:
            if time.monotonic() >= end:
                break
            late = f"it did not end within {call_seconds:g} s: an endless loop?"
            told.append(child.line(min(end, time.monotonic() + call_seconds), late))
            if child.gone:
                break
    return told, ""


def main(data: str, path: str) -> None:
    """Answer all exercises, one after the other, and write the results as a list of lists of texts."""
    asked = json.loads(Path(data, "calls.json").read_text())
    os.environ["OMP_NUM_THREADS"] = "1"  # a library with threads does not survive a fork
    for library in ("numpy", "torch"):
        if any(library in exercise["source"] for exercise in asked["exercises"]):
            with contextlib.suppress(ImportError):  # the import is made once for all children, because it is slow
                importlib.import_module(library)
    seconds = asked["call_seconds"], asked["exercise_seconds"]
    Path(path).write_text(json.dumps([answer(exercise, *seconds) for exercise in asked["exercises"]]))


if __name__ == "__main__":
    main(*sys.argv[1:3])
