# SPDX-License-Identifier: MIT
"""A data set for PyTorch whose items are those of several data sets, mixed by weights."""

from __future__ import annotations

import itertools
import operator
from typing import Any, Sequence

import numpy as np
import torch.utils.data

from ._arguments import shown
from ._errors import Invalid
from ._mixture import Mixture, Places


class MixtureDataset(torch.utils.data.Dataset):
    """Item p is the record that stands at position p of a mixture. Read it in order: with
    shufd.torch.DistributedSampler(dataset, shuffle=False), with several ranks, or without a sampler. So a job resumes by
    the sampler's state, with any number of ranks. The state does not name the mixture, so another one of the same length is
    not refused: make it again with the same arguments, apart from stages that begin at least a block later.

    datasets  map-style data sets, one for each source of the mixture, of its sizes
    mixture   a shufd.local.Mixture with a length: that of the whole run, since each pass repeats the same positions
    with_source
              True: items are (item, number of its source)

    A batch of a DataLoader is looked up at once; data sets with __getitems__ get their records in one call. Fails with
    Invalid for data sets that do not fit, and with IndexError for a position outside of the mixture.
    """

    def __init__(self, datasets: Sequence[Any], mixture: Mixture, *, with_source: bool = False) -> None:
        if not isinstance(mixture, Mixture):
            raise Invalid(f"mixture: {shown(mixture)}: expected a shufd.local.Mixture")
        self.datasets, self.mixture, self.with_source = list(datasets), mixture, bool(with_source)
        if len(self.datasets) != len(mixture.sizes):
            raise Invalid(f"datasets: {len(self.datasets)} of them, expected {len(mixture.sizes)}, the sources of the mixture")
        for i, (dataset, size) in enumerate(zip(self.datasets, mixture.sizes)):
            if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
                raise Invalid(f"datasets[{i}]: {shown(dataset)}: expected a map-style data set, with a length")
            if len(dataset) != size:
                raise Invalid(f"datasets[{i}]: length {len(dataset)}: expected {size}, the size in the mixture")
        if mixture.length is None:
            raise Invalid("mixture: it has no end: expected one with length= or epochs=")

    def __len__(self) -> int:
        return len(self.mixture)

    def __getitem__(self, position: Any) -> Any:
        return self.__getitems__([position])[0]

    def __getitems__(self, positions: Sequence[Any]) -> list[Any]:
        places = self._places([self._position(position) for position in positions])
        items: list[Any] = [None] * len(positions)
        for source in np.unique(places.source).tolist():
            at = np.flatnonzero(places.source == source).tolist()
            records = places.record[at].tolist()
            found = _items(self.datasets[source], records)
            if not isinstance(found, (list, tuple)) or len(found) != len(records):
                raise Invalid(
                    f"datasets[{source}]: its __getitems__ gave {shown(found)} for {len(records)} records: expected a list with "
                    "an item for each"
                )
            for i, item in zip(at, found):
                items[i] = (item, source) if self.with_source else item
        return items

    def _position(self, position: Any) -> int:
        number, length = operator.index(position), len(self.mixture)
        if not -length <= number < length:
            raise IndexError(f"position {number}: expected less than the length, which is {length}")
        return number % length

    def _places(self, positions: list[int]) -> Places:
        """One call for positions with equal distances, as those of a batch have, else one for each."""
        if not positions:
            return self.mixture.places(0, 0)
        stride = positions[1] - positions[0] if len(positions) > 1 else 1
        if stride > 0 and all(map(operator.eq, positions, itertools.count(positions[0], stride))):
            return self.mixture.places(positions[0], len(positions), stride)
        sources, epochs, records = zip(*(self.mixture.places(position, 1) for position in positions))
        return Places(np.concatenate(sources), np.concatenate(epochs), np.concatenate(records))


def _items(dataset: Any, records: list[int]) -> Sequence[Any]:
    if callable(getattr(dataset, "__getitems__", None)):
        items: Sequence[Any] = dataset.__getitems__(records)
        return items
    return [dataset[record] for record in records]
