"""Options and checks that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from asymhash.cli.wording import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from asymhash.similarity import Similarity

__all__ = [
    "ExistingFile",
    "build_similarity",
    "check_output",
    "count_similarities",
    "jobs_option",
    "json_option",
    "key_option",
    "method_names",
    "quiet_option",
    "read_checked",
    "similarity_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])

ExistingFile = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)

_SIMILARITY_OPTIONS = (
    click.option(
        "--neighbors",
        type=click.IntRange(min=1),
        help="Similar: so many Euclidean neighbours on average. [default: 50]",
    ),
    click.option("--radius", type=float, help="Similar: at most this Euclidean distance."),
    click.option("--labels", type=ExistingFile, help="Similar: equal labels (1-d array, .npy or .npz)."),
    click.option(
        "--tags", type=ExistingFile, help="Similar: a shared tag (0/1 matrix, dense or scipy sparse)."
    ),
    click.option(
        "--query-labels",
        type=ExistingFile,
        help="The labels or tags of the queries, where these are not the database.",
    ),
)


def json_option(command: Command) -> Command:
    """Add the option for machines that read."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(command)


def quiet_option(command: Command) -> Command:
    """Add the option for people who do not want to look."""
    return click.option("-q", "--quiet", is_flag=True, help="No progress and no notes on stderr.")(command)


def key_option(command: Command) -> Command:
    """Add the option that names an array of a .npz file."""
    text = "The array of a .npz file. [default: X, else the only 2-d array]"
    return click.option("--key", help=text)(command)


def jobs_option(command: Command) -> Command:
    """Add the option that says how many processes work at once."""
    text = "Processes at once; the results do not depend on it. [default: the cores there are]"
    return click.option("--jobs", type=click.IntRange(min=1), help=text)(command)


def similarity_options(command: Command) -> Command:
    """Add the options that say what is similar."""
    for option in reversed(_SIMILARITY_OPTIONS):
        command = option(command)
    return command


def method_names() -> click.Choice[str]:
    """Make the choice of a method."""
    from asymhash.methods import METHODS

    return click.Choice(list(METHODS))


def read_checked(
    path: Path, *, key: str | None, where: str, n_features: int | None = None, min_items: int = 1
) -> NDArray[Any]:
    """Read vectors and check them at once, so that an error names the file and not what is made of it later."""
    from asymhash.checks import check_vectors
    from asymhash.vectors import read_vectors

    vectors = read_vectors(path, key=key, where=where)
    return check_vectors(vectors, where=where, name=str(path), n_features=n_features, min_items=min_items)


def count_similarities(given: dict[str, Any]) -> str | None:
    """Name the one option that says what is similar, refusing two of them."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        options = " and ".join(f"--{name}" for name in names)
        raise UsageError(f"what is similar must be said by one option, got {options}. Leave all but one out.")
    return names[0] if names else None


def build_similarity(
    database: NDArray[Any],
    queries: NDArray[Any] | None,
    *,
    neighbors: int | None = None,
    radius: float | None = None,
    labels: Path | None = None,
    tags: Path | None = None,
    query_labels: Path | None = None,
) -> Similarity:
    """Make the similarity that the options describe; 50 neighbours if they describe none."""
    from asymhash import similarity
    from asymhash.vectors import read_labels, read_matrix

    way = count_similarities({"neighbors": neighbors, "radius": radius, "labels": labels, "tags": tags})
    needs_query_labels = queries is not None and way in ("labels", "tags")
    if needs_query_labels != (query_labels is not None):
        raise UsageError(
            f"--{way} for other queries than the database needs --query-labels, got none. Give both."
            if needs_query_labels
            else "--query-labels belongs to --labels or --tags with --queries, got it without. Leave it out."
        )
    if labels is not None:
        own = read_labels(labels, where="--labels")
        if query_labels is None:
            return similarity.labels(own)
        return similarity.labels(read_labels(query_labels, where="--query-labels"), own)
    if tags is not None:
        own_tags = read_matrix(tags, where="--tags")
        if query_labels is None:
            return similarity.shared_labels(own_tags)
        return similarity.shared_labels(read_matrix(query_labels, where="--query-labels"), own_tags)
    points = database if queries is None else queries
    others = None if queries is None else database
    if radius is not None:
        return similarity.neighbors(points, others, radius=radius)
    return similarity.neighbors(points, others, average=50 if neighbors is None else neighbors)


def check_output(path: Path, *, force: bool, option: str = "--output") -> None:
    """Refuse before the work what would fail after it, or would destroy what the command reads."""
    from asymhash.artifact import refuse_special_file

    if path.is_dir():
        raise UsageError(f"{option}: expected a file to write, got the folder {path}. Name a file inside it.")
    refuse_special_file(path, where=option)
    for name, given in _inputs():
        if path.exists() and path.samefile(given):
            raise UsageError(
                f"{option}: expected another file than those that are read, got {path}, which is {name}. "
                "Choose another name."
            )
    if path.exists() and not force:
        raise UsageError(f"{option}: {path} exists already. Give --force to replace it, or another name.")
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise UsageError(f"{option}: expected a file in an existing folder, got {path}. Make {folder} first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(
            f"{option}: expected a folder that can be written, got {folder}. Choose another."
        )


def _inputs() -> Iterator[tuple[str, Path]]:
    """Yield every file that the present command reads: its parameters of the type `ExistingFile`."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.params.get(parameter.name or "")
        if parameter.type is ExistingFile and given is not None:
            is_option = isinstance(parameter, click.Option)
            yield parameter.opts[0] if is_option else parameter.human_readable_name, given
