# SPDX-License-Identifier: MIT
"""torchdata's StatefulDataLoader at the end of an epoch, without and with workers."""

import json

import pytest

from conftest import skip_without

skip_without("torchdata")

import torch
from torchdata.stateful_dataloader import StatefulDataLoader

import shufd
import shufd.torch


def make(kind, workers, persistent):
    sampler = shufd.torch.RandomSampler(range(20), seed=7)
    options = {"batch_size": 5, "sampler": sampler}
    if kind == "batches":
        options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 5, False)}
    return sampler, StatefulDataLoader(range(20), num_workers=workers, persistent_workers=persistent, **options)


def epochs_of(sampler, loader, epochs, sets_epoch):
    for epoch in epochs:
        if sets_epoch:
            sampler.set_epoch(epoch)
        yield [i for batch in loader for i in batch.tolist()]


@pytest.mark.parametrize("workers, persistent", [(0, False), (1, False), (3, True)])
@pytest.mark.parametrize("sets_epoch", [True, False])
@pytest.mark.parametrize("kind", ["sampler", "batches"])
def test_the_next_job_runs_the_next_epochs(client, kind, sets_epoch, workers, persistent):
    sampler, loader = make(kind, workers, persistent)
    first = next(epochs_of(sampler, loader, [0], sets_epoch))
    state = json.loads(json.dumps(loader.state_dict()))
    sampler, loader = make(kind, workers, persistent)
    loader.load_state_dict(state)
    got = [first, *epochs_of(sampler, loader, [1, 2], sets_epoch)]
    assert got == [client.permute(20, 7, epoch).tolist() for epoch in range(3)]
