"""Names the lines of a program that an instructor may want to read. They cost no points, and nothing is executed.

A program that looks into the memory, starts or ends processes, or names the grader's own files may have a good reason.
So may one that takes images from a split without `batch`, which is how the grader sees them. And so may one that lets a
function run within an optimizer's step, where the grader cannot tell it from the step.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from grader.common.text import one_line

MAX_LINES = 20  # of one submission that are named
MAX_LENGTH = 100  # characters of a line that are shown
MODULES = {"ctypes", "gc", "grader_observer", "inspect", "psutil", "signal", "sitecustomize", "socket", "subprocess"}
ATTRIBUTES = {
    "os": {"_exit", "environ", "execv", "fork", "getppid", "kill", "killpg", "spawnv", "system"},
    "sys": {"_current_frames", "_getframe", "addaudithook", "modules", "setprofile", "settrace"},
}  # by module
CALLS = {"__import__", "compile", "eval", "exec"}
HOOKS = {"register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "register_step_post_hook",
         "register_step_pre_hook"}  # fmt: skip
TEXTS = ("/proc", "GRADER_", "challenges", "grader_observer")
OF_A_SPLIT, DESCRIBES = {"images", "labels"}, {"device", "dtype", "shape"}


def worth_a_look(folder: Path) -> list[str]:
    """Return the lines, for example "train.py, line 12: os.kill(pid, 9)"."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines()
        for number in sorted(set(_numbers(text))):
            code = lines[number - 1].strip() if number <= len(lines) else ""
            found.append(one_line(f"{path.relative_to(folder)}, line {number}: {code}", MAX_LENGTH))
    return found[:MAX_LINES]


def _numbers(text: str) -> Iterator[int]:
    """The numbers of the lines that are worth a look. There are none in a program that Python cannot read."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    usual = {id(environment) for node in nodes if (environment := _environment_of_one_variable(node))}
    usual |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr in DESCRIBES}
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    splits = {name for node in nodes for name in _splits(node)}
    for node in nodes:
        odd = _is_worth_a_look(node) or _takes_images(node, splits) or _steps_with(node, functions)
        if id(node) not in usual and odd:
            yield node.lineno


def _splits(node: ast.AST) -> list[str]:
    """The names in `train, test = load(...)`."""
    match node:
        case ast.Assign(
            targets=[ast.Tuple(elts=names)], value=ast.Call(func=ast.Name(id="load") | ast.Attribute(attr="load"))
        ):
            return [name.id for name in names if isinstance(name, ast.Name)]
    return []


def _takes_images(node: ast.AST, splits: set[str]) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return name in splits and attribute in OF_A_SPLIT
    return False


def _steps_with(node: ast.AST, functions: set[str]) -> bool:
    """Whether this is a step of an optimizer, during which a function of the program runs."""
    match node:
        case ast.Call(func=ast.Attribute(attr="step"), args=args, keywords=keywords):
            given = [*args, *(keyword.value for keyword in keywords)]
            return any(isinstance(one, ast.Lambda) or getattr(one, "id", None) in functions for one in given)
    return False


def _environment_of_one_variable(node: ast.AST) -> ast.Attribute | None:
    """The `os.environ` in `os.environ["NAME"]` or `os.environ.get("NAME")`, as many programs read one variable."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="environ") as environment, slice=ast.Constant(), ctx=ast.Load()):
            return environment
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="environ") as environment, attr="get"),
            args=[ast.Constant(), *_],
        ):
            return environment
    return None


def _is_worth_a_look(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(name.name.partition(".")[0] in MODULES for name in names)
        case ast.ImportFrom(module=str(module), names=names):
            return module.partition(".")[0] in MODULES or any(name.name in ATTRIBUTES.get(module, ()) for name in names)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return name in HOOKS or name in ATTRIBUTES.get(module, ())
        case ast.Call(func=ast.Name(id=name)):
            return name in CALLS | HOOKS
        case ast.Constant(value=str(text)):
            return any(part in text for part in TEXTS)
    return False
