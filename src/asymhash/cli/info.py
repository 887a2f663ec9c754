"""`asymhash info`: what this machine, the kernels and the extras are."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from pathlib import Path
from typing import Any

import click

from asymhash.cli.options import json_option
from asymhash.cli.wording import print_json

__all__ = ["info"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "safetensors", "xxhash")


@click.command()
@json_option
def info(as_json: bool) -> None:
    """Tell versions, kernels, extras, data.

    Example: asymhash info --json
    """
    facts = _gather()
    if as_json:
        print_json(facts)
        return
    for name, version in facts["versions"].items():
        click.echo(f"{name:<14}{version}")
    kernels = facts["kernels"]
    click.echo(f"{'kernels':<14}{kernels['level']} (this machine can: {', '.join(kernels['levels'])})")
    click.echo(
        f"{'threads':<14}{facts['threads']['cores']} usable cores; BLAS uses {facts['threads']['blas']}"
    )
    click.echo("extras")
    for name, extra in facts["extras"].items():
        cure = "" if extra["present"] else f": {extra['install']}"
        click.echo(f"  {name:<18}{'present' if extra['present'] else 'missing'}{cure}")
    click.echo(f"data sets (ASYMHASH_DATA: {facts['data']['folder'] or 'not set'})")
    for name, state in facts["data"]["sets"].items():
        click.echo(f"  {name:<18}{state}")


def _gather() -> dict[str, Any]:
    from threadpoolctl import threadpool_info

    from asymhash import kernels
    from asymhash.kernels import usable_cores

    names = ("asymhash", *_PACKAGES)
    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "versions": {name: importlib.metadata.version(name) for name in names}
        | {"python": platform.python_version(), "machine": platform.machine()},
        "kernels": {"level": kernels.level(), "levels": list(kernels.levels())},
        "threads": {"cores": usable_cores(), "blas": max(blas, default=1)},
        "extras": _extras(),
        "data": _data_sets(),
    }


def _extras() -> dict[str, dict[str, Any]]:
    """Read the extras from the installed package, so that this list cannot go stale."""
    metadata = importlib.metadata.metadata("asymhash")
    requirements = importlib.metadata.requires("asymhash") or []
    extras = {}
    for extra in metadata.get_all("Provides-Extra") or []:
        wanted = [text for text in requirements if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", text)]
        projects = [match[0] for text in wanted if (match := re.match(r"[A-Za-z0-9._-]+", text))]
        extras[extra] = {
            "present": all(_is_installed(project) for project in projects),
            "packages": projects,
            "install": f"pip install 'asymhash[{extra}]'",
        }
    return extras


def _is_installed(project: str) -> bool:
    try:
        importlib.metadata.version(project)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _data_sets() -> dict[str, Any]:
    from asymhash import datasets
    from asymhash.datasets.files import FILES

    folder = os.environ.get("ASYMHASH_DATA") or None
    sets = {}
    for name in datasets.names():
        if name not in FILES:
            sets[name] = "built in"
        elif folder is not None and (Path(folder) / f"{name}.npz").is_file():
            sets[name] = "found"
        else:
            sets[name] = "not found"
    return {"folder": folder, "sets": sets}
