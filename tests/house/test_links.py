"""Links between our pages lead somewhere, and the examples on them are true."""

import doctest
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_OURS = {"build", "dist"}  # and everything that begins with a dot
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def pages():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in NOT_OURS)
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(".md"))


def headings(page):
    """Anchors of a page, as the usual viewers make them."""
    lines = FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()
    titles = [line.lstrip("#").strip().lower() for line in lines if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def name_of(page):
    return str(page.relative_to(ROOT))


PAGES = list(pages())


def local_links(page):
    links = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return [link for link in links if not re.match(r"[a-z]+:", link)]


def test_there_are_pages_and_links():
    assert {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/README.md"} <= set(map(name_of, PAGES))
    assert len([link for page in PAGES for link in local_links(page)]) > 20


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    broken = []
    for link in local_links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_there = target.exists() and ROOT in [target, *target.parents]
        if not is_there or (anchor and anchor not in headings(target)):
            broken.append(link)
    assert not broken


def test_every_page_of_docs_is_in_the_index():
    index = (ROOT / "docs" / "README.md").resolve()
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in local_links(index)}
    missing = [
        name_of(page) for page in PAGES if index.parent in page.parents and page not in {index, *listed}
    ]
    assert len(listed) > 5
    assert not missing


WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


def test_there_are_examples():
    assert WITH_EXAMPLES


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_are_true(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert result.attempted > 0
    assert result.failed == 0
