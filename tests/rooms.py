"""The tree as it stands on disk: which module lies in which folder, and what it imports."""

from __future__ import annotations

import ast
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]

FOLDERS = {
    "brute": ROOT / "brute",
    "brute.events": ROOT / "events",
    "brute.projections": ROOT / "projections",
    "brute.transports": ROOT / "transports",
}
"""The import name of each room and the folder that holds it."""

LINKS = {name.removeprefix("brute."): name for name in FOLDERS if name != "brute"}
"""The name of each link in brute/ and the import name it stands for."""


class Import(NamedTuple):
    """One imported name, in the module that asks for it."""

    importer: str
    imported: str
    """The full name; for `from a import b`, `a.b`, whether `b` is a module or not."""
    line: int
    eager: bool
    """Whether importing the module runs it: not in a function body, not under TYPE_CHECKING."""

    @property
    def root(self) -> str:
        """The top-level name that is imported."""
        return self.imported.partition(".")[0]


def pyproject() -> dict[str, Any]:
    """Read pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def files() -> dict[PurePosixPath, Path]:
    """Map where each file of the four folders belongs in the wheel to where it lies here.

    Links are not followed, so each file is seen once, in the folder that holds it.
    """
    found: dict[PurePosixPath, Path] = {}
    for name, folder in FOLDERS.items():
        for directory, subfolders, names in os.walk(folder):
            subfolders[:] = [s for s in subfolders if s != "__pycache__"]
            for path in (Path(directory, n) for n in names):
                found[PurePosixPath(*name.split("."), path.relative_to(folder))] = path
    return found


def modules() -> dict[str, Path]:
    """Map the import name of every module to its file."""
    return {_dotted(place): path for place, path in files().items() if place.suffix == ".py"}


def imports() -> Iterator[Import]:
    """Yield every import statement's names, module by module."""
    for name, path in modules().items():
        yield from _imports_in(name, ast.parse(path.read_text()), eager=True)


def room(module: str) -> str:
    """Say which of the four rooms a module of brute lies in."""
    return max((r for r in FOLDERS if f"{module}.".startswith(f"{r}.")), key=len)


def _dotted(place: PurePosixPath) -> str:
    return ".".join(place.with_suffix("").parts).removesuffix(".__init__")


def _imports_in(importer: str, node: ast.AST, *, eager: bool) -> Iterator[Import]:
    match node:
        case ast.Import(names=names, lineno=line):
            for alias in names:
                yield Import(importer, alias.name, line, eager)
        case ast.ImportFrom(module=str(module), names=names, lineno=line):
            for alias in names:
                yield Import(importer, f"{module}.{alias.name}", line, eager)
        case ast.If(test=test, body=body, orelse=orelse) if _is_type_checking(test):
            for statement in body:
                yield from _imports_in(importer, statement, eager=False)
            for statement in orelse:
                yield from _imports_in(importer, statement, eager=eager)
        case _:
            lazy = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for child in ast.iter_child_nodes(node):
                yield from _imports_in(importer, child, eager=eager and not lazy)


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
