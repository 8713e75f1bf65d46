"""The wheel installs one import package, whole: docs/decisions/0001-folders-and-import-names.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

from tests import rooms

BUILT_FROM = ["pyproject.toml", "LICENSE", "README.md", "brute", *rooms.LINKS, "tests"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel by way of an sdist, as a release does, but with no network."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in BUILT_FROM:
        path = rooms.ROOT / name
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(path, source / name, symlinks=True, ignore=ignored)
        elif path.exists():
            shutil.copy(path, source)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> set[PurePosixPath]:
    with ZipFile(wheel) as archive:
        return {PurePosixPath(name) for name in archive.namelist()}


def test_installing_brute_adds_one_import_package_and_nothing_else(
    installed: set[PurePosixPath],
) -> None:
    version = rooms.pyproject()["project"]["version"]

    assert {path.parts[0] for path in installed} == {"brute", f"brute_log-{version}.dist-info"}


def test_every_file_of_the_four_folders_is_installed_and_no_other(
    installed: set[PurePosixPath],
) -> None:
    assert {path for path in installed if path.parts[0] == "brute"} == set(rooms.files())


def test_every_installed_module_imports_without_the_checkout(wheel: Path) -> None:
    names = sorted(name for name in rooms.modules() if not name.endswith("__main__"))
    script = f"""
import importlib, sys
sys.path.insert(0, {str(wheel)!r})
for name in {names!r}:
    module = importlib.import_module(name)
    assert module.__file__.startswith({str(wheel)!r}), f"{{name}} came from {{module.__file__}}"
"""

    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=wheel.parent,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_type_checkers_of_users_see_our_types(installed: set[PurePosixPath]) -> None:
    assert PurePosixPath("brute/py.typed") in installed


def test_the_brute_command_is_installed(wheel: Path) -> None:
    version = rooms.pyproject()["project"]["version"]
    with ZipFile(wheel) as archive:
        entry_points = archive.read(f"brute_log-{version}.dist-info/entry_points.txt").decode()

    assert entry_points.split() == ["[console_scripts]", "brute", "=", "brute.cli:main"]


def test_folders_and_package_list_agree() -> None:
    setuptools = rooms.pyproject()["tool"]["setuptools"]

    packages = {name for name, path in rooms.modules().items() if path.name == "__init__.py"}
    folders = {name: str(p.relative_to(rooms.ROOT)) for name, p in rooms.FOLDERS.items()}

    assert sorted(setuptools["packages"]) == sorted(packages)
    assert setuptools["package-dir"] == folders


def test_no_module_lies_in_a_folder_that_is_no_package() -> None:
    modules = rooms.modules()

    assert [n for n in modules if "." in n and n.rpartition(".")[0] not in modules] == []


def test_links_and_folders_agree_also_for_pyright() -> None:
    links = {
        path.name: str(path.readlink())
        for path in rooms.FOLDERS["brute"].iterdir()
        if path.is_symlink()
    }

    assert links == {name: f"../{name}" for name in rooms.LINKS}
    assert {f"brute/{name}" for name in links} < set(
        rooms.pyproject()["tool"]["pyright"]["include"]
    )
