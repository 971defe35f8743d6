# SPDX-License-Identifier: MIT
"""For Ray Data: a shuffle whose order depends on the rows alone, not on the blocks or the nodes.

    shuffled = shufd.ray.random_shuffle(dataset, seed=7, epoch=3)

Each row gets its place in the order as a column, in the task that reads its block. Ray's sort by
this column moves the rows. The places are computed in Ray's workers, without a daemon.
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import numpy as np
import ray
import ray.data
from ray.data.block import BlockAccessor

from . import _errors, local
from ._arguments import counted
from ._names import dir_of

__all__ = ["random_shuffle"]
__dir__ = dir_of(__all__)

_PLACE = "_shufd_place"
_TAKEN = f"dataset: column {_PLACE}: expected another name, because the shuffle adds this one"


def random_shuffle(
    dataset: ray.data.Dataset, seed: int, epoch: int = 0, *, inverse: bool = False
) -> ray.data.Dataset:
    """The rows of the dataset in one random order of all rows.

    The order is that of `shufctl shuffle` on all rows, one block after the other, at any number of
    blocks and nodes. Columns keep their names and types; a row has null in a column that only other
    blocks have, or lacks it. Materialize a union before you shuffle it, because Ray takes its parts in turn.

    seed, epoch  0 to 2^64 - 1; they select the permutation
    inverse      undoes the shuffle with the same seed and epoch

    The call executes the dataset, in order, unless it is materialized already. So materialize a
    dataset that you shuffle in several epochs. The result is lazy: Ray sorts the rows when the
    result is used. The result has as many blocks of equal size as the dataset has blocks with rows,
    and keeps its order also in later operations, except in a union, whose parts Ray takes in turn: to chain
    epochs, loop over them. If the structs of a column have other fields in some blocks, Ray fills these fields while it
    sorts, and a struct that is null becomes one of nulls.

    Each worker needs this package. Fails with Invalid for a wrong argument, and if a block that Ray
    computed again has another number of rows than before.
    """
    if not isinstance(dataset, ray.data.Dataset):
        raise _errors.Invalid(f"dataset: {type(dataset).__name__}: expected a ray.data.Dataset")
    local.Permutation(1, seed, epoch)  # fails for a wrong seed or epoch before any work
    rows = _materialize(dataset)
    blocks, counts = _count(rows)
    if not blocks:
        return rows
    if _PLACE in (rows.columns() or ()):
        raise _errors.Invalid(_TAKEN)
    n = sum(counts)
    order = local.Permutation(n, seed, epoch)
    find = order.index if inverse else order.inverse_index
    cuts = [n * i // len(blocks) for i in range(1, len(blocks))]
    placed = _keep_order(ray.data.from_arrow_refs(_place_all(blocks, counts, find)))
    ordered = placed.sort(_PLACE, boundaries=cuts or None)
    return ordered.map_batches(_without_places, batch_size=None, batch_format="pyarrow")


def _materialize(dataset: ray.data.Dataset) -> ray.data.Dataset:
    """The blocks of the dataset, in the order of its rows."""
    options = dataset.context.execution_options
    before = options.preserve_order
    options.preserve_order = True
    try:
        return dataset.materialize()
    finally:
        options.preserve_order = before


def _keep_order(dataset: ray.data.Dataset) -> ray.data.Dataset:
    """Datasets that are made from this one have the same context."""
    dataset.context.execution_options.preserve_order = True
    return dataset


def _count(rows: ray.data.Dataset) -> tuple[list[Any], list[int]]:
    """The blocks that have rows, and how many these are."""
    blocks = rows.to_arrow_refs()
    counts = ray.get([_on_worker(_rows_of).remote(block) for block in blocks])
    filled = [(block, count) for block, count in zip(blocks, counts) if count > 0]
    return [block for block, _ in filled], [count for _, count in filled]


def _place_all(blocks: list[Any], counts: list[int], find: Callable[[Any], Any]) -> list[Any]:
    """The blocks with the column of places. Ray runs each task near its block."""
    firsts = itertools.accumulate(counts, initial=0)
    task, shared = _on_worker(_place), ray.put(find)
    return [task.remote(block, first, count, shared) for block, first, count in zip(blocks, firsts, counts)]


def _on_worker(function: Callable[..., Any]) -> Any:
    return ray.remote(function)


def _rows_of(block: Any) -> int:
    return int(BlockAccessor.for_block(block).num_rows())


def _place(block: Any, first: int, count: int, find: Callable[[Any], Any]) -> Any:
    """The block as an Arrow table with the places of its rows, which are first, first + 1, ..."""
    table = BlockAccessor.for_block(block).to_arrow()
    if table.num_rows != count:
        raise _errors.Invalid(
            f"dataset: the block at row {first} has {counted(table.num_rows, 'row')}: expected {count}, as when it was "
            "computed first; Ray lost the block, and the dataset does not give the same rows again"
        )
    if _PLACE in table.column_names:  # of a later block, which may have other columns than the first one
        raise _errors.Invalid(_TAKEN)
    places = find(np.arange(first, first + count, dtype=np.uint64))
    return table.append_column(_PLACE, [places.astype(np.int64)])


def _without_places(table: Any) -> Any:
    return table.drop_columns([_PLACE])
