"""House rules that no linter knows: what may be printed, named, imported, and how long things may be."""

import ast
import importlib
import inspect
import os
import pkgutil
import re
from pathlib import Path

import pytest

import asymhash

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
KERNELS = sorted((ROOT / "cpp").glob("*.[ch]pp"))
TEXT_SUFFIXES = {
    "",
    ".cfg",
    ".cpp",
    ".hpp",
    ".in",
    ".json",
    ".md",
    ".py",
    ".pyi",
    ".toml",
    ".txt",
    ".yaml",
    ".yml",
}
# Folders that tools make; none of them is ours to judge.
NOT_OURS = {".git", ".hypothesis", ".venv", "__pycache__", "build", "dist"}

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_README_LINES = 150


def name_of(path):
    return str(path.relative_to(ROOT))


def our_texts():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in NOT_OURS and not name.endswith("_cache"))
        yield from (Path(folder, name) for name in sorted(names) if Path(name).suffix in TEXT_SUFFIXES)


def functions_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def public_modules():
    """Name the modules of the package that no underscore hides."""
    found = pkgutil.walk_packages(asymhash.__path__, prefix="asymhash.")
    return sorted(module.name for module in found if not re.search(r"\._", module.name))


def test_there_is_something_to_look_at():
    assert len(SOURCES) > 5
    assert len(KERNELS) > 3
    assert {"Makefile", "pyproject.toml"} <= {path.name for path in our_texts()}
    assert "asymhash.codes" in public_modules()


@pytest.mark.parametrize("path", SOURCES + KERNELS, ids=name_of)
def test_files_are_short(path):
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= MAX_FILE_LINES, f"{n_lines} lines usually mean that a noun is missing"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_are_short(path):
    long = {
        node.name: length
        for node in functions_of(path)
        if (length := (node.end_lineno or 0) - _first_line_of_body(node) + 1) > MAX_FUNCTION_LINES
    }
    assert not long


def _first_line_of_body(node):
    """Skip the docstring: parameters and examples are no reason to cut a function in two."""
    body = node.body
    if len(body) > 1 and ast.get_docstring(node) is not None:
        return body[1].lineno
    return body[0].lineno


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_only_the_command_line_prints(path):
    if "cli" in path.relative_to(ROOT).parts:
        pytest.skip("the command line prints")
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not calls


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_modules_are_named_after_what_they_hold(path):
    assert not {"utils", "util", "helpers", "common", "manager", "misc"} & set(path.with_suffix("").parts)


def test_no_unfinished_work_is_left_in_comments():
    marks = re.compile("TO" + "DO|FIX" + "ME|XX" + "X")
    found = [name_of(path) for path in our_texts() if marks.search(path.read_text(encoding="utf-8"))]
    assert not found


def test_no_path_or_registry_of_one_machine_is_named():
    # Put together from halves, so that the rule does not find itself.
    places = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "/opt/" + "wheels", "/opt/" + "pypi", "/tm" + "p/"]
    registries = [
        "index" + "-url",
        "find" + "-links",
        "trusted" + "-host",
        "pypi" + ".org",
        "pythonhosted" + ".org",
    ]
    found = [
        f"{name_of(path)}: {word}"
        for path in our_texts()
        for word in places + registries
        if word in path.read_text(encoding="utf-8")
    ]
    assert not found


def test_readme_is_short():
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("there is no README yet")
    assert len(readme.read_text(encoding="utf-8").splitlines()) < MAX_README_LINES


def test_every_public_name_of_the_package_has_a_docstring():
    assert len(asymhash.__all__) > 10
    bare = [name for name in asymhash.__all__ if not (getattr(asymhash, name).__doc__ or "").strip()]
    assert not bare


def test_every_public_name_of_the_package_is_listed_by_dir():
    assert set(asymhash.__all__) <= set(dir(asymhash))
    with pytest.raises(AttributeError, match="module 'asymhash' has no attribute 'LinW'"):
        asymhash.LinW  # noqa: B018


@pytest.mark.parametrize("name", public_modules())
def test_every_public_name_of_a_module_has_a_docstring(name):
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()
    bare = [
        public
        for public in getattr(module, "__all__", [])
        if (inspect.isclass(value := getattr(module, public)) or inspect.isroutine(value))
        and not (inspect.getdoc(value) or "").strip()
    ]
    assert not bare
