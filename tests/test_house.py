"""The house: floors, who imports what, and words on every door."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"pandas", "scipy", "pptx", "xlsxwriter", "docx", "openpyxl", "matplotlib"}
QT_SHORT = {"data", "event", "flags", "index", "paint", "parent", "sort"}
"""Names of Qt's own methods that have no capital; an override says nothing new."""
PYTHON38 = Path.home() / ".pyenv/versions/3.8.18/bin/python"


def files(*packages: str) -> list[Path]:
    return sorted(file for package in packages for file in (ROOT / package).rglob("*.py"))


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"), str(file))


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """Top-level names of what is imported, `lab` and the like among them."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else str(node.module).split(".")[0]


def by_name(file: Path) -> str:
    return str(file.relative_to(ROOT))


CODE = files("lab", "gui", "ssh_agents", "resources")


def test_the_import_contracts_hold() -> None:
    """Also fails for a module in `lab` that nobody placed on a floor."""
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([str(program), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", files("ssh_agents"), ids=by_name)
def test_agents_need_the_standard_library_only(file: Path) -> None:
    known = sys.stdlib_module_names | {"ssh_agents", "__future__"}
    assert set(imported(ast.walk(tree(file)))) <= known


@pytest.mark.skipif(not PYTHON38.exists(), reason="no Python 3.8 here")
def test_agents_are_python_3_8() -> None:
    script = "import sys; [compile(open(f, encoding='utf-8').read(), f, 'exec') for f in sys.argv[1:]]"
    agents = [str(file) for file in files("ssh_agents")]
    done = subprocess.run(
        [str(PYTHON38), "-I", "-S", "-c", script, *agents], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_vermin_finds_nothing_newer_than_3_8_in_agents() -> None:
    """Also what only running would show: methods, keywords and types that 3.8 lacks."""
    program = Path(sys.executable).with_name("vermin")
    done = subprocess.run(
        [
            str(program),
            "-t=3.8-",
            "--no-tips",
            "--violations",
            "--eval-annotations",
            str(ROOT / "ssh_agents"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", files("lab", "ssh_agents"), ids=by_name)
def test_no_qt_below_the_window(file: Path) -> None:
    assert not set(imported(ast.walk(tree(file)))) & {"PySide6", "PyQt6", "pyqtgraph", "qtawesome", "gui"}


@pytest.mark.parametrize("file", CODE, ids=by_name)
def test_heavy_libraries_are_imported_inside_functions(file: Path) -> None:
    """The window is up in a second, and `--help` too."""
    assert not set(imported(_at_import(tree(file)))) & HEAVY


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below this one that run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        if not (later or typing_only):
            yield child
            yield from _at_import(child)


@pytest.mark.parametrize("file", CODE, ids=by_name)
def test_every_public_door_has_a_word_on_it(file: Path) -> None:
    """Modules, public classes, public functions and public methods have docstrings."""
    module = tree(file)
    missing = [] if ast.get_docstring(module) else ["the module"]
    for node in module.body:
        missing += _without_words(node, "")
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                missing += _without_words(inner, f"{node.name}.")
    assert not missing


def _without_words(node: ast.stmt, prefix: str) -> list[str]:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    theirs = any(isinstance(d, ast.Name) and d.id == "override" for d in node.decorator_list)
    qt = prefix and isinstance(node, ast.FunctionDef) and (not node.name.islower() or node.name in QT_SHORT)
    if node.name.startswith("_") or theirs or qt or ast.get_docstring(node):
        return []
    return [f"{prefix}{node.name} (line {node.lineno})"]


@pytest.mark.parametrize("file", files("lab", "gui", "ssh_agents"), ids=by_name)
def test_nothing_is_imported_from_where_one_stands(file: Path) -> None:
    assert "." not in set(imported(ast.walk(tree(file))))


def test_every_module_has_a_test_beside_it() -> None:
    """For the modules of this floor plan that need no hosts."""
    for name in ("units", "design", "profile", "store", "runner", "export", "model", "events", "stop"):
        assert (ROOT / "tests" / f"test_{name}.py").exists()


def test_the_pieces_of_data_are_no_code() -> None:
    assert [file.name for file in files("resources")] == ["__init__.py"]


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    script = "import sys, lab.__main__, lab.runner, lab.store, lab.profile; print(list(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not set(ast.literal_eval(done.stdout)) & (HEAVY | {"PySide6", "paramiko", "keyring", "numpy"})
