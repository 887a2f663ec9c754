"""ARCHITECTURE.md tells the truth about layers, files and tests."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_layers_are_those_of_the_import_contract():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        contract for contract in settings["tool"]["importlinter"]["contracts"] if contract["type"] == "layers"
    )
    listed = re.search(r"<!-- layers: .*?-->\n```\n(.*?)\n```", PAGE, re.DOTALL)
    assert listed
    assert len(contract["layers"]) > 10
    assert listed[1].splitlines() == contract["layers"]


def test_every_module_of_the_package_is_in_the_tree():
    tree = PAGE.split("## The tree")[1].split("```")[1]
    package = ROOT / "src" / "asymhash"
    modules = {path.name + "/" if path.is_dir() else path.name for path in package.iterdir()}
    modules -= {"__init__.py", "__pycache__/", "py.typed"}
    assert len(modules) > 10
    named = set(re.findall(r"(?<!\S)[a-z_]+(?:\.py|/)(?!\S)", tree))
    assert modules <= named, sorted(modules - named)
    methods = {
        path.name for folder in ("learn", "baselines") for path in (package / folder).glob("[a-z]*.py")
    }
    assert methods <= set(re.findall(r"[a-z_]+\.py", tree))


def test_files_that_the_page_names_exist():
    text = PAGE.split("## Where this departs")[0].split("## The layers")[1]
    names = {name for name in re.findall(r"`([a-z_/]+\.(?:py|pyi|md))`", text) if "/" in name}
    assert len(names) > 5
    homes = (ROOT, ROOT / "src" / "asymhash")
    assert [name for name in sorted(names) if not any((home / name).exists() for home in homes)] == []


def test_tests_that_hold_the_promises_exist():
    promised = re.findall(r"`(tests/\S+\.py)::(\w+)`", PAGE)
    assert len(promised) > 10
    for path, name in promised:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
            f"{path}::{name}"
        )
