"""Imports only go down the layers, and each outside library stays in its room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import fastrank

PACKAGE = Path(fastrank.__file__).parent

# From the top down. A room may import the rooms of every lower line, and modules of its own.
LAYERS = (
    ("fastrank", "__main__"),
    ("cli",),
    ("report", "training", "distributed", "compat"),
    ("verification",),
    ("analysis",),
    ("comparison", "clicks"),
    ("engine",),
    ("io", "ranking", "metrics", "reference"),
    ("evaluation",),
    ("replicates", "statistics", "batch", "per_query", "groups", "gains", "convention", "arrays"),
    ("_objects",),
    ("errors", "_kernel"),
    ("_cached", "_fork", "_lazy"),
)
SIDEWAYS = {
    ("metrics", "ranking"),
    ("batch", "arrays"),
    ("batch", "convention"),
    ("batch", "gains"),
    ("batch", "groups"),
    ("batch", "per_query"),
    ("convention", "gains"),
    ("gains", "arrays"),
    ("per_query", "arrays"),
}
# An Evaluation draws itself as a table, reads the name in result[name] and can be summarised by the bootstrap; a Comparison and what
# is told from clicks draw themselves: all inside the function that does so.
UPWARD = {("evaluation", "report"), ("evaluation", "metrics"), ("evaluation", "comparison"), ("comparison", "report")}
UPWARD |= {("clicks", "report"), ("analysis", "report")}

# Outside libraries and the only rooms that may import them. What stands under LATE is imported inside a function, never at a module's head.
ROOMS = {
    "numba": {"_kernel"},
    "click": {"cli"},
    "rich": {"report", "cli"},
    "matplotlib": {"report"},
    "pandas": {"evaluation", "training", "compat", "distributed"},
    "polars": {"evaluation", "training", "compat", "distributed"},
    "lightgbm": {"training", "compat"},
    "xgboost": {"training", "compat"},
    "catboost": {"training", "compat"},
    "sklearn": {"training", "compat"},
    "ir_measures": {"compat"},
    "torch": {"training"},
    "torchmetrics": {"training"},
    "jax": {"training"},
    "keras": {"training"},
    "transformers": {"training"},
    "sentence_transformers": {"training"},
    "pyspark": {"distributed"},
    "ray": {"distributed"},
    "pickle": set(),
}
LATE = {"numba", "scipy", "matplotlib", "pandas", "polars", "lightgbm", "xgboost", "catboost", "sklearn", "torch", "pyspark", "ray"}
LATE |= {"torchmetrics", "jax", "keras", "transformers", "sentence_transformers"}
# Modules that are nothing without their library, and say so when it is missing: what they define is made of its classes.
OF_A_LIBRARY = {
    "fastrank.training.torch": {"torch", "torchmetrics"},
    "fastrank.training.states": {"torch"},
    "fastrank.training.jax": {"jax"},
    "fastrank.training.keras": {"keras"},
    "fastrank.training.sentence_transformers": {"sentence_transformers"},
}


# Names of fastrank.__all__ that are modules and meant to be.
PUBLIC_MODULES = {"analysis", "metrics", "reference", "clicks", "training", "distributed", "compat"}


class Import(NamedTuple):
    """``at_head``: it runs when the module is imported; ``runs``: it is not for the type checker alone."""

    target: str
    line: int
    at_head: bool
    runs: bool


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Dotted names and files of the package and all its modules."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(tree: ast.AST, known: set[str], *, at_head: bool = True, runs: bool = True) -> Iterator[Import]:
    """Every import statement below ``tree``; ``from package import module`` counts as an import of the module."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, at_head, runs)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the full name, not a relative import"
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield Import(module if module in known else str(node.module), node.lineno, at_head, runs)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from imports(ast.Module(node.body, []), known, at_head=False, runs=False)
            yield from imports(ast.Module(node.orelse, []), known, at_head=at_head, runs=runs)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(node, known, at_head=at_head and not inside, runs=runs)


def room(module: str) -> str:
    """The part of a module's name that stands in LAYERS: ``fastrank.io.letor`` is of room ``io``."""
    return module.split(".")[1] if "." in module else module


def rank(name: str) -> int:
    """Height of a room: 0 is the lowest."""
    for height, rooms in enumerate(reversed(LAYERS)):
        if name in rooms:
            return height
    pytest.fail(f"fastrank/{name} has no place in LAYERS: give it one")


def fault(importer: str, found: Import) -> str | None:
    """What is wrong with an import of one of our own modules, if anything is."""
    here, there = room(importer), room(found.target)
    if here == there:
        return None
    if rank(there) < rank(here) or (here, there) in SIDEWAYS:
        return None
    if (here, there) in UPWARD and not found.at_head:
        return None
    return f"{importer}:{found.line} imports {found.target}, which is not below it"


def faults(sources: dict[str, str]) -> list[str]:
    """All upward and sideways imports among modules given as texts."""
    known = set(sources)
    return [
        complaint
        for module, source in sources.items()
        for found in imports(ast.parse(source), known)
        if found.target.split(".")[0] == "fastrank" and (complaint := fault(module, found))
    ]


def outside_imports() -> Iterator[tuple[str, Import]]:
    for module, path in modules().items():
        for found in imports(ast.parse(path.read_text()), set()):
            yield module, found


def test_imports_only_go_down() -> None:
    assert faults({module: path.read_text() for module, path in modules().items()}) == []


@pytest.mark.parametrize(
    ("module", "source", "fails"),
    [
        ("fastrank.gains", "from fastrank.engine import evaluate", True),
        ("fastrank.gains", "def f():\n    from fastrank import evaluate", True),
        ("fastrank.gains", "import fastrank.errors", False),
        ("fastrank.io.letor", "from fastrank.metrics.base import Metric", True),
        ("fastrank.io.letor", "from fastrank.io.columns import Columns", False),
        ("fastrank.ranking.sort", "if TYPE_CHECKING:\n    from fastrank.cli import main", True),
        ("fastrank.metrics.walk", "from fastrank.ranking.standing import JudgedRanks", False),
        ("fastrank.ranking.standing", "from fastrank.metrics.walk import walk", True),
        ("fastrank.evaluation", "def f():\n    from fastrank.report.text import table", False),
        ("fastrank.evaluation", "from fastrank.report.text import table", True),
        ("fastrank.evaluation", "class A:\n    def f(self):\n        import fastrank.report.text", False),
        ("fastrank.cli.explain", "from fastrank.engine import evaluate", False),
    ],
)
def test_the_reader_of_imports_sees_each_kind(module: str, source: str, fails: bool) -> None:
    assert bool(faults({module: source})) is fails


def test_the_reference_shares_no_code_with_the_kernels() -> None:
    allowed = {"fastrank.errors", "fastrank.reference"}
    known = set(modules())
    targets = {
        found.target
        for module, path in modules().items()
        if room(module) == "reference"
        for found in imports(ast.parse(path.read_text()), known)
        if found.target.startswith("fastrank")
    }
    assert {".".join(target.split(".")[:2]) for target in targets} <= allowed


def test_each_outside_library_stays_in_its_room() -> None:
    strays = [
        f"{module}:{found.line} imports {found.target}"
        for module, found in outside_imports()
        if room(module) not in ROOMS.get(found.target.split(".")[0], {room(module)})
    ]
    assert strays == []


def test_costly_and_optional_libraries_are_imported_where_they_are_used() -> None:
    early = [
        f"{module}:{found.line} imports {found.target}"
        for module, found in outside_imports()
        if found.at_head and found.runs and found.target.split(".")[0] in LATE - OF_A_LIBRARY.get(module, set())
    ]
    assert early == []


def test_no_module_bears_the_name_of_a_public_function_or_table() -> None:
    # Importing fastrank.x.y sets y on the package fastrank.x, over whatever stood there.
    public = set(fastrank.__all__) - PUBLIC_MODULES
    assert {module for module in modules() if module.rsplit(".", 1)[-1] in public} == set()


def test_every_folder_with_modules_is_a_package() -> None:
    # Without __init__.py a folder is a namespace package, which other distributions could add to.
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
