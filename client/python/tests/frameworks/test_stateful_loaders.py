# SPDX-License-Identifier: MIT
"""torchdata's StatefulDataLoader at the end of an epoch, without and with workers."""

import copy
import itertools
import json
import multiprocessing

import pytest

from conftest import skip_without

skip_without("torchdata")

import torch
from torchdata.stateful_dataloader import StatefulDataLoader

import shufd
import shufd.torch
from programs import Even


def make(kind, workers, persistent):
    sampler = shufd.torch.RandomSampler(range(20), seed=7)
    options = {"batch_size": 5, "sampler": sampler}
    if kind == "batches":
        options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 5, False)}
    return sampler, StatefulDataLoader(range(20), num_workers=workers, persistent_workers=persistent, **options)


def indices_of(batches):
    return [i for batch in batches for i in batch.tolist()]


def epochs_of(sampler, loader, epochs, sets_epoch):
    for epoch in epochs:
        if sets_epoch:
            sampler.set_epoch(epoch)
        yield indices_of(loader)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loaded_place_below_the_batch_sampler_of_torch_is_refused(workers):
    """The state of the loader would have the number of batches since that place, and the next job would leave out so many
    batches of the whole epoch."""
    sampler = shufd.torch.RandomSampler(range(20), seed=7)
    indices = iter(sampler)
    [*itertools.islice(indices, 10)]
    state = sampler.state_dict(used=10)
    for kind in shufd.torch.BatchSampler, torch.utils.data.BatchSampler:
        sampler.load_state_dict(state)
        loader = StatefulDataLoader(range(20), batch_sampler=kind(sampler, 5, False), num_workers=workers)
        if kind is shufd.torch.BatchSampler:
            assert len(indices_of(loader)) == 10
            continue
        with pytest.raises(shufd.Invalid, match="^sampler: its state, at position 10, .*: use shufd.torch.BatchSampler$"):
            next(iter(loader))


def continued(make, steps):
    """What the loader of a job gives in so many steps, and then that of the next job, which continues."""
    loader = make()
    head = [*itertools.islice(loader, steps)]
    state = copy.deepcopy(loader.state_dict())
    loader = make()
    loader.load_state_dict(state)
    return [*head, *loader]


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


def states_of(sampler_of, n, next_epoch, saves_twice=False, stops_before_end=False, **options):
    """The epochs after the states of an ended epoch: a new job begins with set_epoch(next_epoch)."""
    sampler = sampler_of(n)
    loader = StatefulDataLoader(range(n), sampler=sampler, batch_size=4, **options)
    sampler.set_epoch(0)
    if stops_before_end:  # all batches are drawn, but the loader has not seen the end
        iterator = iter(loader)
        for _ in range(len(loader)):
            next(iterator)
    else:
        list(loader)
    state = loader.state_dict()
    if saves_twice:
        loader = StatefulDataLoader(range(n), sampler=sampler_of(n), batch_size=4, **options)
        loader.load_state_dict(state)
        state = loader.state_dict()
    sampler = sampler_of(n)
    loader = StatefulDataLoader(range(n), sampler=sampler, batch_size=4, **options)
    loader.load_state_dict(json.loads(json.dumps(state)))
    for epoch in range(next_epoch, next_epoch + 2):
        sampler.set_epoch(epoch)
        yield indices_of(loader)


def of_rank(n):
    return shufd.torch.DistributedSampler(range(n), 1, 0, seed=7)


def of_all(n):
    return shufd.torch.RandomSampler(range(n), seed=7)


@pytest.mark.parametrize("sampler_of", [of_rank, of_all])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("options", [{"drop_last": True}, {"snapshot_every_n_steps": 2}, {"snapshot_every_n_steps": 5}], ids=str)
def test_an_epoch_after_the_end(client, sampler_of, workers, options):
    """A batch that is dropped, and a snapshot before the last batch: the state is not at the last index."""
    n = 19 if "drop_last" in options else 12
    got = [*states_of(sampler_of, n, 1, num_workers=workers, **options)]
    assert got == [client.permute(n, 7, epoch).tolist()[: n // 4 * 4] for epoch in (1, 2)]


@pytest.mark.parametrize("sampler_of", [of_rank, of_all])
@pytest.mark.parametrize("workers", [0, 1])
def test_two_saves_after_the_last_batch(client, sampler_of, workers):
    got = [*states_of(sampler_of, 12, 0, saves_twice=True, stops_before_end=True, num_workers=workers)]
    assert got == [[], client.permute(12, 7, 1).tolist()]


def test_a_state_before_the_first_index_has_the_seed(client):
    """The loader has a state of the beginning, and skips batches from there."""

    def make():
        sampler = shufd.torch.RandomSampler(range(40))
        return StatefulDataLoader(range(40), batch_size=4, sampler=sampler, num_workers=2, snapshot_every_n_steps=10)

    assert sorted(indices_of(continued(make, 3))) == [*range(40)]


def test_a_node_saves_the_seed_before_the_first_index(client):
    """It saves the sampler, and skips indices from there. The next job has another seed of torch."""
    nodes = pytest.importorskip("torchdata.nodes")

    def make():
        torch.seed()
        sampler = nodes.SamplerWrapper(shufd.torch.RandomSampler(range(12)))
        return nodes.Loader(nodes.Prefetcher(sampler, prefetch_factor=2, snapshot_frequency=10))

    assert sorted(continued(make, 3)) == [*range(12)]


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_two_loaders_share_a_sampler(client, kind):
    """Both continue at the same place."""

    def make():
        sampler = getattr(shufd.torch, kind)(range(24), seed=7)
        sampler.set_epoch(1)
        return [StatefulDataLoader(range(24), batch_size=4, sampler=sampler) for _ in range(2)]

    loaders = make()
    assert len([*itertools.islice(zip(*loaders, strict=True), 2)]) == 2
    states = [loader.state_dict() for loader in loaders]
    loaders = make()
    for loader, state in zip(loaders, states, strict=True):
        loader.load_state_dict(state)
    order = client.permute(24, 7, 1).tolist()
    for number, (one, other) in enumerate(zip(*loaders, strict=True), 2):
        assert one.tolist() == other.tolist() == order[4 * number : 4 * number + 4]


class Wrapper(torch.utils.data.Sampler):
    """A sampler of a user, which saves the place of its iterator, as docs/python.md says."""

    def __init__(self, inner):
        self.inner = self.indices = inner

    def __len__(self):
        return len(self.inner)

    def __iter__(self):
        self.indices = iter(self.inner)
        return self.hand_on(self.indices)

    def hand_on(self, indices):
        yield from indices

    def state_dict(self):
        return {"inner": self.indices.state_dict()}

    def load_state_dict(self, state):
        self.inner.load_state_dict(state["inner"])


@pytest.mark.parametrize("workers", [0, 2])
def test_states_inside_states_of_users(client, workers):
    def make():
        sampler = Wrapper(shufd.torch.RandomSampler(range(24), seed=7))
        return StatefulDataLoader(range(24), batch_size=4, sampler=sampler, num_workers=workers)

    assert indices_of(continued(make, 2)) == client.permute(24, 7).tolist()


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_a_class_is_saved_before_the_first_batch(client, kind, workers):
    """A job has loaded an ended epoch, and ends before it draws. set_epoch() has selected the next epoch."""

    def make(epoch):
        sampler = getattr(shufd.torch, kind)(range(12), seed=7)
        sampler.set_epoch(epoch)
        return StatefulDataLoader(range(12), batch_size=4, sampler=Wrapper(sampler), num_workers=workers)

    loader = make(0)
    assert len([*loader]) == 3
    for _ in range(3):
        state = json.loads(json.dumps(loader.state_dict()))
        loader = make(2)
        loader.load_state_dict(state)
    assert indices_of(loader) == client.permute(12, 7, 2).tolist()


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("workers, persistent", [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_batches_of_torch_after_the_end(client, kind, workers, persistent, every):
    """torch's BatchSampler has no state. A loader with workers begins an iteration that it discards, after it has drawn the
    batches since the last snapshot."""
    options = {"num_workers": workers, "persistent_workers": persistent, "snapshot_every_n_steps": every}

    def make():
        sampler = getattr(shufd.torch, kind)(range(12), seed=7)
        batches = torch.utils.data.BatchSampler(sampler, 3, False)
        return sampler, StatefulDataLoader(range(12), batch_sampler=batches, **options)

    sampler, loader = make()
    [*epochs_of(sampler, loader, [0, 1], True)]
    state = loader.state_dict()
    sampler, loader = make()
    loader.load_state_dict(state)
    got = [*epochs_of(sampler, loader, [2, 3, 4], True)]
    assert got == [client.permute(12, 7, epoch).tolist() for epoch in (2, 3, 4)]


class Stream(torch.utils.data.IterableDataset):
    """A sampler for each worker, as docs/python.md shows. Persistent workers share the epoch."""

    def __init__(self, kind, epoch, sets_epoch):
        self.kind, self.epoch, self.sets_epoch, self.sampler = kind, epoch, sets_epoch, None

    def make(self):
        if self.sampler is None:
            self.sampler = self.indices = getattr(shufd.torch, self.kind)(range(12), seed=7)
        return self.sampler

    def __iter__(self):
        if self.sets_epoch:
            self.make().set_epoch(self.epoch.value)
        self.indices = iter(self.make())
        return (i for i in self.indices)

    def state_dict(self):
        self.make()
        return self.indices.state_dict()

    def load_state_dict(self, state):
        self.make().load_state_dict(state)


@pytest.mark.parametrize(
    "workers, persistent, sets_epoch", [(0, False, False), (0, False, True), (1, False, True), (1, True, False), (1, True, True)]
)
def test_streams_after_the_end(client, workers, persistent, sets_epoch):
    """A persistent worker continues a state in its first iteration only."""

    def make(first):
        epoch = multiprocessing.get_context("fork").Value("q", first)
        options = {"multiprocessing_context": "fork"} if workers else {}
        stream = Stream("RandomSampler", epoch, sets_epoch)
        return epoch, StatefulDataLoader(stream, 4, num_workers=workers, persistent_workers=persistent, **options)

    def epochs_of_stream(epoch, loader, numbers):
        for epoch.value in numbers:
            yield indices_of(loader)

    epoch, loader = make(0)
    [*epochs_of_stream(epoch, loader, [0])]
    state = loader.state_dict()
    epoch, loader = make(1)
    loader.load_state_dict(state)
    got = [*epochs_of_stream(epoch, loader, [1, 2, 3])]
    assert got == [client.permute(12, 7, epoch).tolist() for epoch in (1, 2, 3)]


@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_an_epoch_that_is_set_after_the_workers_have_drawn(client, kind):
    sampler = getattr(shufd.torch, kind)(range(12), seed=7)
    loader = StatefulDataLoader(range(12), batch_size=4, sampler=sampler, num_workers=2)
    loader.state_dict()
    first = next(epochs_of(sampler, loader, [5], True))  # as docs/python.md says
    assert [first, *epochs_of(sampler, loader, [6], True)] == [client.permute(12, 7, epoch).tolist() for epoch in (0, 6)]


@pytest.mark.parametrize("workers", [0, 1])
def test_the_next_epoch_after_a_state_at_the_last_batch(client, workers):
    """The loader saves after the last batch, before it has ended. The job selects the next epoch."""

    def make():
        sampler = shufd.torch.RandomSampler(range(12), seed=7, client=client)
        return sampler, StatefulDataLoader(range(12), batch_size=4, sampler=sampler, num_workers=workers)

    sampler, loader = make()
    sampler.set_epoch(0)
    for _ in loader:
        state = loader.state_dict()
    sampler, loader = make()
    loader.load_state_dict(state)
    got = [*epochs_of(sampler, loader, [1, 2], True)]
    assert got == [client.permute(12, 7, epoch).tolist() for epoch in (1, 2)]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_the_next_epoch_after_a_state_at_the_last_whole_batch(client, kind, batches, workers):
    """The loader drops the rest of the epoch, and has not ended."""

    def make():
        sampler = getattr(shufd.torch, kind)(range(14), seed=7, client=client)
        options = {"sampler": sampler, "batch_size": 4, "drop_last": True}
        if batches:
            options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 4, True)}
        return sampler, StatefulDataLoader(range(14), num_workers=workers, **options)

    sampler, loader = make()
    sampler.set_epoch(0)
    for _ in loader:
        state = json.loads(json.dumps(loader.state_dict()))
    sampler, loader = make()
    loader.load_state_dict(state)
    assert [*epochs_of(sampler, loader, [1, 2], True)] == [client.permute(14, 7, epoch).tolist()[:12] for epoch in (1, 2)]


@pytest.mark.parametrize("stop", [None, 1, 5, 9])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
@pytest.mark.parametrize("criteria", ["ALL_DATASETS_EXHAUSTED", "CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED"])
def test_weighted_nodes_continue(daemon, monkeypatch, criteria, kind, stop):
    """A state may have a source at its end. Later epochs have all samples again."""
    nodes = pytest.importorskip("torchdata.nodes")
    monkeypatch.setenv("SHUFD_SOCKET", daemon.socket)

    def source(n, seed, base):
        sampler = getattr(shufd.torch, kind)(range(n), seed=seed)
        return nodes.Mapper(nodes.SamplerWrapper(sampler), lambda i: i + base)

    def make():
        weights = {"a": 0.5, "b": 0.5}
        sources = {"a": source(8, 7, 0), "b": source(5, 8, 100)}
        return nodes.Loader(nodes.MultiNodeWeightedSampler(sources, weights, stop_criteria=criteria, seed=1, rank=0, world_size=1))

    every = {*range(8), *range(100, 105)}
    loader = make()
    head = [*itertools.islice(loader, stop)]
    state = copy.deepcopy(loader.state_dict())
    loader = make()
    loader.load_state_dict(state)
    epochs = [[*loader] for _ in range(3)]
    if stop:
        epochs[0] = head + epochs[0]
    for epoch in epochs:
        assert {*epoch} == every, epochs


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_a_state_that_is_loaded_after_workers_have_drawn_is_refused(client, kind, batches):
    """state_dict() of the loader has started them."""
    sampler = getattr(shufd.torch, kind)(range(240), seed=7)
    source = {"batch_sampler": shufd.torch.BatchSampler(sampler, 4, False)} if batches else {"sampler": sampler, "batch_size": 4}
    loader = StatefulDataLoader(range(240), num_workers=2, **source)
    state = {**sampler.state_dict(), "epoch": 3, "position": 20}
    loader.state_dict()
    sampler.load_state_dict(state)
    with pytest.raises(shufd.Invalid, match=r"^sampler: load_state_dict\(\) came after this iteration had begun"):
        [*loader]
    sampler.load_state_dict(state)
    assert indices_of(loader) == client.permute(240, 7, 3).tolist()[20:]


LOOKS = [lambda sampler: next(iter(sampler)), list, lambda sampler: next(iter(torch.utils.data.DataLoader(range(24), 4, sampler=sampler)))]


@pytest.mark.parametrize("look", LOOKS, ids=["index", "pass", "batch"])
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_nodes_save_their_own_iteration(client, kind, batches, look):
    """Not the look at the sampler that began last."""
    nodes = pytest.importorskip("torchdata.nodes")

    def make():
        sampler = getattr(shufd.torch, kind)(range(24), seed=7)
        if batches:
            return sampler, nodes.Loader(nodes.SamplerWrapper(shufd.torch.BatchSampler(sampler, 4, False)))
        return sampler, nodes.Loader(nodes.Batcher(nodes.SamplerWrapper(sampler), 4))

    sampler, loader = make()
    head = [*itertools.islice(loader, 2)]
    look(sampler)
    state = json.loads(json.dumps(loader.state_dict()))
    sampler, loader = make()
    loader.load_state_dict(state)
    assert sum(head + [*loader], []) == client.permute(24, 7).tolist()


@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_two_nodes_share_a_sampler(client, kind):
    nodes = pytest.importorskip("torchdata.nodes")

    def make():
        sampler = getattr(shufd.torch, kind)(range(12), seed=7)
        sources = {name: nodes.Mapper(nodes.SamplerWrapper(sampler), lambda i, name=name: (name, i)) for name in "ab"}
        weights = {"a": 0.7, "b": 0.3}
        return nodes.Loader(nodes.MultiNodeWeightedSampler(sources, weights, stop_criteria="ALL_DATASETS_EXHAUSTED", seed=1, rank=0, world_size=1))

    whole = [*make()]
    assert {*whole} == {(name, i) for name in "ab" for i in range(12)}
    for stop in range(1, len(whole), 4):
        assert continued(make, stop) == whole


@pytest.mark.parametrize("look", LOOKS, ids=["index", "pass", "batch"])
def test_a_look_beside_a_state_of_users(client, look):
    def make():
        sampler = shufd.torch.RandomSampler(range(24), seed=7)
        return sampler, StatefulDataLoader(range(24), batch_size=4, sampler=Wrapper(sampler))

    sampler, loader = make()
    assert len([*itertools.islice(loader, 2)]) == 2
    look(sampler)
    state = loader.state_dict()
    _, loader = make()
    loader.load_state_dict(state)
    assert indices_of(loader) == client.permute(24, 7).tolist()[8:]


@pytest.mark.parametrize("of", [torch.utils.data.DataLoader, StatefulDataLoader])
@pytest.mark.parametrize("workers", [0, 2])
def test_only_a_stateful_loader_saves_an_iterator(client, of, workers):
    """The loader draws ahead of the job."""
    wrapper = Wrapper(shufd.torch.RandomSampler(range(240), seed=7))
    loader = iter(of(range(240), batch_size=4, sampler=wrapper, num_workers=workers))
    assert len(next(loader)) == 4
    with pytest.raises(shufd.Invalid, match="used: None: .* of its iterator for a loader of torchdata"):
        wrapper.state_dict()


class SavesSampler(Wrapper):
    """It saves the sampler, which does not know the place of an iterator."""

    def state_dict(self):
        return {"inner": self.inner.state_dict()}


class Counts(Wrapper):
    """It counts the indices that it hands on."""

    def __iter__(self):
        self.handed = 0
        return super().__iter__()

    def hand_on(self, indices):
        for self.handed, i in enumerate(indices, 1):
            yield i

    def state_dict(self):
        return {"inner": self.inner.state_dict(used=getattr(self, "handed", 0))}


class Indices(torch.utils.data.IterableDataset):
    """It has the indices of a sampler, without set_epoch()."""

    def __init__(self, wrapper):
        self.wrapper = wrapper

    def __iter__(self):
        return iter(self.wrapper)

    def state_dict(self):
        return self.wrapper.state_dict()

    def load_state_dict(self, state):
        self.wrapper.load_state_dict(state)


@pytest.mark.parametrize("of", [Wrapper, SavesSampler, Counts])
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_a_place_of_a_wrapper_is_right_or_refused(client, kind, streams, of):
    """The job has left a pass early, and begins another one."""

    def make():
        wrapper = of(getattr(shufd.torch, kind)(range(24), seed=7))
        if streams:
            return StatefulDataLoader(Indices(wrapper), batch_size=4)
        return StatefulDataLoader(range(24), batch_size=4, sampler=wrapper)

    for left, steps in itertools.product((1, 2, 3), (0, 1, 2)):
        loader = make()
        assert len([*itertools.islice(loader, left)]) == left
        batches = iter(loader)
        head = indices_of(itertools.islice(batches, steps))
        try:
            state = copy.deepcopy(loader.state_dict())
        except shufd.Invalid as error:
            assert of is SavesSampler or (of is Counts and steps == 0), error
            assert str(error).startswith("used: ")
            continue
        assert of is not SavesSampler
        loader = make()
        loader.load_state_dict(state)
        rest = indices_of(loader)
        assert head + rest == client.permute(24, 7, kind == "RandomSampler").tolist(), (left, steps)


@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_a_node_begins_at_the_place_of_its_sampler(client, kind):
    """The job has loaded it, for example with another number of ranks. The node sets the epoch."""
    nodes = pytest.importorskip("torchdata.nodes")
    sampler = getattr(shufd.torch, kind)(range(24), seed=7)
    sampler.load_state_dict({**sampler.state_dict(), "epoch": 3, "position": 9})
    loader = nodes.Loader(nodes.SamplerWrapper(sampler, initial_epoch=sampler.epoch))
    assert [*loader] == client.permute(24, 7, 3).tolist()[9:]
    assert [*loader] == client.permute(24, 7, 4).tolist()


@pytest.mark.parametrize("loaded", [None, 0, 9, 24])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_a_node_counts_from_the_place_of_its_sampler(client, kind, loaded):
    """The job has loaded or set it, and does not tell the node, which counts from 0."""
    nodes = pytest.importorskip("torchdata.nodes")

    def make():
        sampler = getattr(shufd.torch, kind)(range(24), seed=7)
        return sampler, nodes.Loader(nodes.SamplerWrapper(sampler))

    sampler, loader = make()
    if loaded is None:
        sampler.set_epoch(3)
    else:
        sampler.load_state_dict({**sampler.state_dict(), "epoch": 3, "position": loaded})
    first = 4 if loaded == 24 else 3
    orders = [client.permute(24, 7, epoch).tolist() for epoch in range(first, first + 3)]
    assert [*loader] == orders[0][9 if loaded == 9 else 0 :]
    head = [*itertools.islice(loader, 5)]
    state = json.loads(json.dumps(loader.state_dict()))
    _, loader = make()
    loader.load_state_dict(state)
    assert [head + [*loader], [*loader]] == orders[1:]


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("n, size", [(16, 3), (13, 5), (12, 4), (16, 4)])
def test_nodes_after_the_end_of_an_epoch(client, n, size, wraps):
    """The first iteration is empty. An Unbatcher draws the batch before it again, which is then empty, too."""
    nodes = pytest.importorskip("torchdata.nodes")

    def make():
        sampler = shufd.torch.RandomSampler(range(n), seed=7)
        batches = nodes.Batcher(nodes.SamplerWrapper(Even(sampler) if wraps else sampler), size, drop_last=False)
        return nodes.Loader(nodes.Unbatcher(batches), restart_on_stop_iteration=False)

    orders = [[i for i in client.permute(n, 7, epoch).tolist() if not wraps or i % 2 == 0] for epoch in range(3)]
    loader = make()
    assert [*loader] == orders[0]
    state = json.loads(json.dumps(loader.state_dict()))
    loader = make()
    loader.load_state_dict(state)
    assert [[*loader] for _ in range(3)] == [[], *orders[1:]]


@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_the_last_loaded_state_counts(client, kind):
    """The job goes back to the middle of an epoch, and then, before the first batch, to the end of the epoch before."""

    def make():
        sampler = shufd.torch.RandomSampler(range(16), seed=7)
        if kind == "DistributedSampler":
            sampler = shufd.torch.DistributedSampler(range(16), 1, 0, seed=7)
        return sampler, StatefulDataLoader(range(16), batch_size=4, sampler=sampler)

    sampler, loader = make()
    *_, end = (loader.state_dict() for _ in epochs_of(sampler, loader, [0], True))
    sampler.set_epoch(1)
    *_, middle = (loader.state_dict() for _ in zip(range(3), loader))
    sampler, loader = make()
    loader.load_state_dict(middle)
    sampler.set_epoch(1)
    iter(loader)
    loader.load_state_dict(end)
    assert [*epochs_of(sampler, loader, [1], True)] == [client.permute(16, 7, 1).tolist()]


class Batches(shufd.torch.BatchSampler):
    """Of a user."""


@pytest.mark.parametrize("of_nodes", [False, True])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_subclasses_of_batches(client, kind, of_nodes):
    """Loaders of torchdata find that they have a state, and set their epoch."""
    nodes = pytest.importorskip("torchdata.nodes")

    def make():
        batches = Batches(getattr(shufd.torch, kind)(range(24), seed=7), 4, False)
        if of_nodes:
            return batches, nodes.Loader(nodes.Mapper(nodes.SamplerWrapper(batches), torch.tensor))
        return batches, StatefulDataLoader(range(24), batch_sampler=batches)

    batches, loader = make()
    assert len([*epochs_of(batches, loader, range(3), not of_nodes)]) == 3
    if not of_nodes:
        batches.set_epoch(3)
    head = indices_of(itertools.islice(loader, 2))
    state = copy.deepcopy(loader.state_dict())
    batches, loader = make()
    loader.load_state_dict(state)
    assert head + indices_of(loader) == client.permute(24, 7, 3).tolist()


@pytest.mark.parametrize("wrapper", ["SamplerWrapper", "IterableWrapper"])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_a_node_leaves_out_no_indices(client, kind, wrapper):
    """torch's BatchSampler has no state."""
    nodes = pytest.importorskip("torchdata.nodes")

    def make():
        batches = torch.utils.data.BatchSampler(getattr(shufd.torch, kind)(range(24), seed=7), 4, False)
        return nodes.Loader(getattr(nodes, wrapper)(batches))

    loader = make()
    assert len([*itertools.islice(loader, 2)]) == 2
    state = copy.deepcopy(loader.state_dict())
    loader = make()
    loader.load_state_dict(state)
    with pytest.raises(shufd.Invalid, match="^sampler: a node of torchdata leaves out the first indices of a class without a state"):
        next(iter(loader))


class Stateless(torch.utils.data.Sampler):
    """A sampler of a user, without a state."""

    def __init__(self, inner):
        self.inner = inner

    def __len__(self):
        return len(self.inner)

    def __iter__(self):
        yield from self.inner


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("of", ["batches", "wrapper"])
@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_a_place_that_is_loaded_twice_is_refused(client, kind, of, workers):
    """torch's BatchSampler and a user's sampler have no state, so loaders leave out their first batches."""

    def make():
        sampler = getattr(shufd.torch, kind)(range(24), seed=7)
        if of == "wrapper":
            return sampler, StatefulDataLoader(range(24), sampler=Stateless(sampler), batch_size=4, num_workers=workers)
        batches = torch.utils.data.BatchSampler(sampler, 4, False)
        return sampler, StatefulDataLoader(range(24), batch_sampler=batches, num_workers=workers)

    sampler, loader = make()
    assert len([*itertools.islice(loader, 2)]) == 2
    states = sampler.state_dict(used=8), copy.deepcopy(loader.state_dict())
    for position in (8, 0, 24):  # at the beginning, or at the end of the epoch before, nothing is left out twice
        sampler, loader = make()
        sampler.load_state_dict({**states[0], "position": position, "epoch": -(position == 24) % 2**64})
        loader.load_state_dict(states[1])
        if position == 8:
            with pytest.raises(shufd.Invalid, match="^sampler: its state, at position 8, is loaded, and the loader leaves out"):
                next(iter(loader))
        else:
            assert [int(i) for batch in loader for i in batch] == client.permute(24, 7).tolist()[8:]


@pytest.mark.parametrize("batches, workers, every", [
    (torch.utils.data.BatchSampler, 0, 1), (torch.utils.data.BatchSampler, 2, 1),
    (shufd.torch.BatchSampler, 2, 5), (shufd.torch.BatchSampler, 2, 1), (shufd.torch.BatchSampler, 0, 5),
])  # fmt: skip
def test_used_indices_after_batches_that_a_loader_skips(batches, workers, every):
    """A count from its resume would not have them. At the end of the epoch it does not matter."""

    def make():
        sampler = shufd.torch.DistributedSampler(range(40), 1, 0, seed=7)
        of = batches(sampler, 4, False)
        loader = StatefulDataLoader(range(40), batch_sampler=of, num_workers=workers, snapshot_every_n_steps=every)
        sampler.set_epoch(1)
        return sampler, loader

    _, loader = make()
    list(itertools.islice(loader, 3))
    state = loader.state_dict()
    sampler, loader = make()
    loader.load_state_dict(state)
    rest = iter(loader)
    assert [next(rest).tolist() for _ in range(2)] == [shufd.local.permute(40, 7, 1)[i : i + 4].tolist() for i in (12, 16)]
    if batches is torch.utils.data.BatchSampler or (workers > 0 and every > 1):
        for used in (0, 8):
            with pytest.raises(shufd.Invalid, match=f"^used: {used}: the loader has skipped the first batches"):
                sampler.state_dict(used=used)
    else:
        assert sampler.state_dict(used=8)["position"] == 20
    list(rest)
    assert sampler.state_dict(used=len(sampler))["position"] == 40
    sampler.set_epoch(2)
    rest = iter(loader)
    next(rest)
    assert sampler.state_dict(used=4)["position"] == 4


class Counting(Wrapper):
    """Counts the indices that the loader draws, and has this state."""

    drawn = 0

    def hand_on(self, indices):
        self.drawn = 0
        for i in indices:
            self.drawn += 1
            yield i

    def state_dict(self):
        return {"inner": self.inner.state_dict(used=self.drawn)}


def test_a_class_counts_batches_that_are_drawn_again():
    def make():
        sampler = Counting(shufd.torch.DistributedSampler(range(40), 1, 0, seed=7))
        return StatefulDataLoader(range(40), batch_size=4, sampler=sampler, num_workers=1, snapshot_every_n_steps=3)

    got = []
    for _ in range(2):  # the second job draws a batch again, and saves in another interval
        loader = make()
        if got:
            loader.load_state_dict(state)
        got += indices_of(itertools.islice(loader, 4))
        state = loader.state_dict()
    loader = make()
    loader.load_state_dict(state)
    assert got + indices_of(loader) == shufd.local.permute(40, 7).tolist()


class ByLength(Wrapper):
    """Sorts groups of 16 indices. Its state is the place before the group, and the number of indices handed on from it."""

    skipped = 0

    def __iter__(self):
        self.indices, self.handed, self.skipped = iter(self.inner), self.skipped, 0
        self.group = self.indices.state_dict()
        return self.hand_on(self.indices)

    def hand_on(self, indices):
        while group := sorted(itertools.islice(indices, 16), key=lambda i: i * 37 % 64):
            for i in group[self.handed :]:
                self.handed += 1
                yield i
            self.group, self.handed = indices.state_dict(), 0

    def state_dict(self):
        return {"inner": self.group, "handed": self.handed} if hasattr(self, "group") else {"inner": self.inner.state_dict(), "handed": 0}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.skipped = state["handed"]


@pytest.mark.parametrize("workers", [0, 2])
def test_states_of_groups(client, workers):
    def make():
        sampler = ByLength(shufd.torch.DistributedSampler(range(40), 1, 0, seed=7))
        return StatefulDataLoader(range(40), batch_size=4, sampler=sampler, num_workers=workers)

    whole = indices_of(make())
    assert sorted(whole) == [*range(40)]
    for stop in (1, 3, 4, 6, 9) if workers == 0 else (3,):
        assert indices_of(continued(make, stop)) == whole


class Bucket(Wrapper):
    """Keeps six indices, and hands on the smallest of them."""

    def __init__(self, inner):
        super().__init__(inner)
        self.kept = []

    def hand_on(self, indices):
        for index in indices:
            self.kept.append(index)
            if len(self.kept) > 6:
                yield self.kept.pop(self.kept.index(min(self.kept)))
        while self.kept:
            yield self.kept.pop(self.kept.index(min(self.kept)))

    def state_dict(self):
        return {**super().state_dict(), "kept": list(self.kept)}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.kept = list(state["kept"])


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("stop", range(1, 6))
def test_a_sampler_inside_another_keeps_its_rest(drop_last, stop):
    def make():
        sampler = shufd.torch.RandomSampler(range(24), seed=7)
        return sampler, StatefulDataLoader(range(24), batch_size=4, sampler=Bucket(sampler), drop_last=drop_last)

    sampler, loader = make()
    sampler.set_epoch(0)
    batches = iter(loader)
    for _ in range(stop):
        next(batches)
    state = copy.deepcopy(loader.state_dict())
    right = [batch.tolist() for batch in batches]
    sampler, loader = make()
    loader.load_state_dict(state)
    sampler.set_epoch(0)
    assert [batch.tolist() for batch in loader] == right


@pytest.mark.parametrize("wrap", [lambda sampler: sampler, Wrapper])
def test_the_saved_epoch_is_empty_at_its_end(wrap):
    def make():
        sampler = shufd.torch.DistributedSampler(range(12), 1, 0, seed=7)
        return sampler, StatefulDataLoader(range(12), batch_size=4, sampler=wrap(sampler))

    sampler, loader = make()
    sampler.set_epoch(0)
    for _ in loader:
        state = loader.state_dict()  # the last one: in the last step
    sampler, loader = make()
    loader.load_state_dict(state)
    orders = list(epochs_of(sampler, loader, range(3), True))
    assert orders == [[], *(shufd.local.permute(12, 7, epoch).tolist() for epoch in (1, 2))]


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("position", [8, 12])
def test_a_node_with_an_iterator_counts_from_the_place_that_the_job_loads(asks, position):
    import torchdata.nodes as nodes

    sampler = shufd.torch.DistributedSampler(range(12), 1, 0, seed=7)
    loader = nodes.Loader(nodes.SamplerWrapper(sampler))
    state = {**sampler.state_dict(), "epoch": 3, "position": position}
    if asks:
        loader.state_dict()  # makes an iterator
    sampler.load_state_dict(state)
    first = 3 if position == 8 else 4
    orders = [shufd.local.permute(12, 7, first + i).tolist() for i in range(3)]
    orders[0] = orders[0][position % 12 :]
    assert [[*loader] for _ in range(3)] == orders


# ---- Orders --------------------------------------------------------------------------------------

MASK = [i % 3 != 0 for i in range(60)]
ORDERS = {
    "windowed": shufd.local.Permutation(60, 7, chunk=4, window=3),
    "subset": shufd.local.Permutation(60, 7).subset(MASK),
    "weighted": shufd.local.Weighted(range(60), 7, length=70),
    "weighted sample": shufd.local.Weighted(range(60), 7, length=50, replacement=False),
    "mixture": shufd.local.Mixture([50, 10], [1, 1], 7, length=70),
}


@pytest.mark.parametrize("workers, persistent", [(0, False), (2, True)])
@pytest.mark.parametrize("through_batches", [False, True])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
def test_an_order_resumes_in_the_middle_of_an_epoch(order, through_batches, workers, persistent):
    """Of two ranks, after each number of steps, and goes on to the next epoch."""
    epochs = 1 if order.algorithm == "mixture" else 2

    def make(epoch):
        sampler = shufd.torch.DistributedSampler(range(60), 2, 1, order=order)
        sampler.set_epoch(epoch)
        options = {"batch_size": 4, "sampler": sampler}
        if through_batches:
            options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 4, False)}
        return sampler, StatefulDataLoader(range(60), num_workers=workers, persistent_workers=persistent, **options)

    whole = [order.with_epoch(epoch)[1::2].tolist() for epoch in range(epochs)]
    for steps in (1, 4, len(whole[-1]) // 4):
        sampler, loader = make(epochs - 1)
        head = [i for _, batch in zip(range(steps), loader) for i in batch.tolist()]
        state = json.loads(json.dumps(loader.state_dict()))
        sampler, loader = make(epochs - 1)
        loader.load_state_dict(state)
        assert head + indices_of(loader) == whole[-1]
        if epochs > 1:
            sampler.set_epoch(0)
            assert indices_of(loader) == whole[0]


def test_a_loader_with_the_state_of_another_order_is_refused():
    def make(order):
        return StatefulDataLoader(range(60), batch_size=4, sampler=shufd.torch.DistributedSampler(range(60), 1, 0, order=order))

    loader = make(ORDERS["subset"])
    next(iter(loader))
    other = make(ORDERS["subset"].order.subset(range(40)))
    other.load_state_dict(loader.state_dict())
    with pytest.raises(shufd.Invalid, match="^state: subset '0x.*': expected '0x.*', as in this sampler"):
        list(other)
