"""`asymhash encode`: turn vectors into codes, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asymhash.cli.options import ExistingFile, check_output, json_option, key_option, quiet_option
from asymhash.cli.wording import UsageError, note, print_json, show_progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from asymhash.codes import BinaryCodes
    from asymhash.similarity import Similarity

__all__ = ["block_size", "encode"]

_BLOCK_VALUES = 1 << 22  # 32 MiB of float64 a block
_EXPLANATIONS = {
    "free codes": "free codes that minimise the objective, from --similarity",
    "linear map fitted to the free codes": "a linear map fitted to the free codes, as no --similarity was given",
    "learned linear map": "the linear map that was learned",
}


@click.command()
@click.argument("model", type=ExistingFile)
@click.argument("vectors", type=ExistingFile)
@click.option("--side", type=click.Choice(["query", "database"]), required=True, help="Which hash function.")
@click.option(
    "--similarity",
    type=ExistingFile,
    help="What the items are similar to: the ones of a scipy sparse matrix (.npz), or the +1 or True of a dense one "
    "(+1/-1 or bool), training queries x items.",
)
@click.option(
    "--bit-order",
    type=click.Choice(["little", "big"]),
    default="little",
    show_default=True,
    help="Bit 0 of the code is the lowest (FAISS, Milvus) or the highest (pgvector) bit of byte 0.",
)
@key_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The codes to write: uint8 array (.npy).",
)
@click.option("--force", is_flag=True, help="Replace an existing output.")
@quiet_option
@json_option
def encode(
    model: Path,
    vectors: Path,
    side: str,
    similarity: Path | None,
    bit_order: str,
    key: str | None,
    output: Path,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Turn vectors into packed codes.

    Writes the codes of VECTORS by MODEL as a uint8 array with one row for each item. Rows are padded with
    zero bits to whole bytes.

    Example: asymhash encode model.ahm new.npy --side query --output codes.npy
    """
    from asymhash.model import load
    from asymhash.vectors import read_vectors

    if similarity is not None and side != "database":
        raise UsageError("--similarity belongs to --side database, got --side query. Leave it out.")
    check_output(output, force=force)
    loaded = load(model)
    used = "query map"
    if side == "database":  # before the work, as it may be refused
        used = loaded.database_encoding(with_similarity=similarity is not None)
    items = read_vectors(vectors, key=key, where="encode")
    relation = None if similarity is None else _relation(similarity, items)
    blocks = _checked_blocks(items, vectors, loaded.n_features)
    _write_codes(
        loaded, items.shape[0], blocks, relation, side=side, bit_order=bit_order, output=output, quiet=quiet
    )
    if side == "database":
        note(f"Database side: {_EXPLANATIONS.get(used, used)}.", quiet=quiet)
    result = {
        "codes": str(output),
        "n_items": items.shape[0],
        "n_bits": loaded.n_bits,
        "bytes_per_item": -(-loaded.n_bits // 8),
        "bit_order": bit_order,
        "side": side,
        "map": used,
    }
    if as_json:
        print_json(result)
    else:
        width = "1 byte" if result["bytes_per_item"] == 1 else f"{result['bytes_per_item']} bytes"
        click.echo(
            f"{output}: {items.shape[0]:,} items, {loaded.n_bits} bits in {width} each,"
            f" {bit_order} bit order, {side} side"
        )


def block_size(n_features: int) -> int:
    """Choose how many rows to encode at once."""
    return max(1, _BLOCK_VALUES // max(1, n_features))


def _relation(path: Path, items: NDArray[Any]) -> Similarity:
    from asymhash.similarity import from_matrix
    from asymhash.vectors import read_matrix

    relation = from_matrix(read_matrix(path, where="--similarity"))
    if relation.n_items != items.shape[0]:
        raise UsageError(
            f"--similarity: expected one column for each of the {items.shape[0]} items, "
            f"got {relation.n_items} columns. Give training queries x items."
        )
    return relation


def _checked_blocks(items: NDArray[Any], path: Path, n_features: int | None) -> Iterator[NDArray[Any]]:
    """Yield the items in blocks, each checked when its turn has come: the file may be larger than the memory."""
    from asymhash.checks import check_vectors
    from asymhash.vectors import iter_blocks

    done = 0
    for block in iter_blocks(items, block_size(items.shape[1])):
        yield check_vectors(block, where="encode", name=str(path), n_features=n_features, first_row=done)
        done += block.shape[0]


def _write_codes(
    model: Any,
    n_items: int,
    blocks: Iterator[NDArray[Any]],
    relation: Similarity | None,
    *,
    side: str,
    bit_order: str,
    output: Path,
    quiet: bool,
) -> None:
    import numpy as np

    from asymhash.artifact import open_atomically

    shape = (n_items, -(-model.n_bits // 8))
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    done = 0
    with (
        show_progress("Encoding, items", n_items, quiet=quiet) as steps,
        open_atomically(output) as file,
    ):
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            columns = slice(done, done + block.shape[0])
            codes = _encode_block(model, block, None if relation is None else relation.columns(columns), side)
            file.write(codes.to_bytes(order=bit_order).tobytes())  # type: ignore[arg-type]
            done += block.shape[0]
            steps.show(done)


def _encode_block(model: Any, block: NDArray[Any], relation: Similarity | None, side: str) -> BinaryCodes:
    codes: BinaryCodes
    if side == "query":
        codes = model.encode_queries(block)
    else:
        codes = (
            model.encode_database(block, relation) if relation is not None else model.encode_database(block)
        )
    return codes
