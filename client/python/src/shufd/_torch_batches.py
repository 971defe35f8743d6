# SPDX-License-Identifier: MIT
"""Batches of a sampler, as torch.utils.data.BatchSampler makes them, which resume where their sampler does."""

from __future__ import annotations

import copyreg
import functools
import itertools
import warnings
from typing import Any, Iterator

import numpy as np
import torch.utils.data

from . import _errors, _frameworks, _sampling
from ._arguments import shown
from ._share import Cursor


class BatchSampler(torch.utils.data.BatchSampler):
    """Batches of a sampler, as torch.utils.data.BatchSampler makes them.

    sampler        any sampler; those of this module resume, and give arrays without a list
    batch_size     indices of a batch, at least 1
    drop_last      True: leaves out a last batch that is smaller
    as_arrays      True: batches are int64 arrays; else lists of integers

    With a sampler of this module, `state_dict()`, `load_state_dict()`, `set_epoch()` and `epoch` are those of the
    sampler, and `remaining` counts batches; subclasses have them too. With another sampler, these do not exist. Warns
    (RuntimeWarning) of torch's DistributedSampler, which Lightning puts here.
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool, *, as_arrays: bool = False) -> None:
        if not hasattr(sampler, "__iter__"):
            raise _errors.Invalid(f"sampler: {shown(sampler)}: expected a sampler, such as one of shufd.torch")
        super().__init__(sampler, batch_size, drop_last)
        self.as_arrays = as_arrays
        plain = type(self).__dict__.get("_plain", type(self))
        self.__class__ = _resumable(plain) if isinstance(sampler, _sampling.Resumable) else plain
        if type(sampler) is torch.utils.data.distributed.DistributedSampler:
            warnings.warn(
                "sampler: torch.utils.data.DistributedSampler: the batches have its order, not one of shufd; if Lightning "
                "has put it here, use Trainer(use_distributed_sampler=False) and a shufd.torch.DistributedSampler",
                RuntimeWarning, stacklevel=2,
            )  # fmt: skip

    def __iter__(self) -> Iterator[Any]:
        indices = iter(self.sampler)
        while batch := [*itertools.islice(indices, self.batch_size)]:
            if len(batch) == self.batch_size or not self.drop_last:
                yield np.array(batch, np.int64) if self.as_arrays else batch

    def __repr__(self) -> str:
        return f"shufd.torch.BatchSampler({self.sampler!r}, batch_size={self.batch_size}, drop_last={self.drop_last})"


class _ResumableBatches(BatchSampler):
    """A BatchSampler of a sampler of this module."""

    _plain = BatchSampler  # the class whose instances have this class with such a sampler

    @property
    def _least(self) -> int:
        """The size of the smallest batch."""
        return int(self.batch_size) if self.drop_last else 1

    def _batches(self, cursor: Cursor) -> Iterator[tuple[Any]]:
        if self.as_arrays and _frameworks.divider()[0] == "BatchSamplerShard":
            raise _errors.Invalid("as_arrays: True: expected False, because accelerate joins batches as lists")
        while len(batch := cursor.take(self.batch_size)) >= self._least:
            yield (batch.astype(np.int64) if self.as_arrays else batch.tolist(),)

    def __iter__(self) -> Iterator[Any]:
        if _sampling.iterates_itself(self.sampler):
            return super().__iter__()
        iteration: Iterator[Any] = self.sampler.iterate(self._batches, self._least)
        return iteration

    def set_epoch(self, epoch: int) -> None:
        """As the method of the sampler."""
        self.sampler.set_epoch(epoch)

    @property
    def epoch(self) -> int:
        """As the property of the sampler: the epoch to continue with."""
        return int(self.sampler.epoch)

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    @property
    def remaining(self) -> int:
        """The number of batches that are left in the epoch, from the place of a loaded state on."""
        rest, size = int(self.sampler.remaining), int(self.batch_size)
        return rest // size if self.drop_last else -(-rest // size)

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """As the method of the sampler; `used` counts indices, not batches."""
        counts = _sampling.is_own(self, "state_dict") and _sampling.is_own(self.sampler, "state_dict")
        is_of_sampler = counts or not _sampling.iterates_itself(self)
        state: dict[str, Any] = self.sampler.state_dict(used) if is_of_sampler else self.sampler._state_for(self, used)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As the method of the sampler. With `drop_last`, a rest of less than a batch is the end of the epoch."""
        least = 1 if _sampling.iterates_itself(self) else self._least
        self.sampler.load_state_dict(self.sampler._rounded(state_dict, least))


@functools.cache
def _resumable(plain: type) -> type:
    """The class of the resumable instances of a subclass of BatchSampler. torchdata looks for their methods in the class.
    pickle does not find this class by its name, so its metaclass tells how to make it."""
    if plain is BatchSampler:
        return _ResumableBatches
    kind = type(plain.__name__, (type(plain),), {})
    copyreg.pickle(kind, lambda made: (_resumable, (plain,)))
    names = {"__module__": plain.__module__, "__qualname__": plain.__qualname__, "__doc__": plain.__doc__, "_plain": plain}
    made: type = kind(plain.__name__, (plain, _ResumableBatches), names)
    return made
