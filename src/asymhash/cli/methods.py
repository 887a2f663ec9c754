"""`asymhash methods`: the methods, with what each needs and costs."""

from __future__ import annotations

import click

from asymhash.cli.options import json_option
from asymhash.cli.wording import print_json, print_table
from asymhash.methods import METHODS

__all__ = ["methods"]


@click.command()
@json_option
def methods(as_json: bool) -> None:
    """List the methods, what each needs and costs.

    Example: asymhash methods
    """
    if as_json:
        facts = ("name", "title", "class_name", "summary", "needs", "cost", "takes_queries", "nests")
        print_json([{fact: getattr(method, fact) for fact in facts} for method in METHODS.values()])
        return
    rows = [[method.name, method.needs, method.cost, method.summary] for method in METHODS.values()]
    columns = ["--method", "learns from", "time grows with", "what it is"]
    print_table("Methods; fit and evaluate take their names", columns, rows, n_text=4)
