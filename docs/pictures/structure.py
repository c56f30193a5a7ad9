"""Reads the structure of the code without importing it.

The layers and rooms come from the contracts of import-linter in `pyproject.toml`. The steps of a check come from the
calls in `grader/check.py` and from the return annotations of the functions that it calls.
"""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CHECK = Path("grader") / "check.py"


@dataclass(frozen=True)
class Step:
    """A step is a call of the check. It has a room, a module, a function, and the type that it returns, if any."""

    room: str
    module: str
    function: str
    value: str | None


def contract(container: str | None = None) -> list[list[str]]:
    """Return the rows, from top to bottom, of the contract for the packages, or for the modules in `container`."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    for entry in project["tool"]["importlinter"]["contracts"]:
        if entry.get("containers") == ([container] if container else None):
            return [row.split(" | ") for row in entry["layers"]]
    raise LookupError(f"pyproject.toml has no contract for the layers of {container or 'the packages'}")


def imports_layers(path: Path) -> bool:
    """Return whether the module, or a module in the folder, imports one of the packages."""
    packages = {name for row in contract() for name in row}
    modules = path.rglob("*.py") if path.is_dir() else [path]
    return any(packages & _imported(_tree(module)) for module in modules)


def steps() -> list[Step]:
    """Return the calls that `grader.check.check` makes in the grader's rooms, in their order."""
    tree = _tree(REPOSITORY / CHECK)
    functions = _functions(tree)
    modules = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module.startswith("grader.")
        for alias in node.names
    }
    calls = _calls(functions["check"], functions, modules)
    return [_step(modules[module], function) for module, function in calls]


def first_and_last() -> tuple[str, str]:
    """Return the name of the check's first parameter, and the type that the check returns."""
    check = _functions(_tree(REPOSITORY / CHECK))["check"]
    return check.args.args[0].arg, ast.unparse(check.returns)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _imported(tree: ast.Module) -> set[str]:
    """Return the first parts of the names of the packages that a module imports."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def _calls(function: ast.FunctionDef, helpers: dict, modules: dict) -> Iterator[tuple[str, str]]:
    """Yield the calls that are statements of `function`, as (module, function). A helper is replaced by its calls."""
    for statement in function.body:
        call = getattr(statement, "value", None)
        match call.func if isinstance(call, ast.Call) else None:
            case ast.Name(id=name) if name in helpers:
                yield from _calls(helpers[name], helpers, modules)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules:
                yield module, name


def _step(module: str, function: str) -> Step:
    package, room, name = module.split(".")
    returns = _functions(_tree(REPOSITORY / package / room / f"{name}.py"))[function].returns
    value = ast.unparse(returns) if returns else "None"
    return Step(room, f"{name}.py", function, None if value == "None" else value)
