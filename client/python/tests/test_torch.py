# SPDX-License-Identifier: MIT
"""The samplers of shufd.torch against torch's own."""

import copy
import itertools
import json
import os
import pickle
import subprocess
import sys
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import shufd
import shufd.torch
from conftest import LAUNCHERS, Daemon, await_value, lease_count, skip_fork_under_asan
from ports import free_port
from shufd import _ranks

TorchSampler = torch.utils.data.distributed.DistributedSampler


class Numbers(torch.utils.data.Dataset):
    """A map-style dataset whose sample is its index."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i


def expected_indices(client, n, world, rank, drop_last, seed, epoch, shuffle=True):
    """The indices and the length of torch's own sampler, with shufd's permutation in place of randperm()."""
    sampler = TorchSampler(range(n), world, rank, shuffle, seed, drop_last)
    sampler.set_epoch(epoch)
    order = torch.from_numpy(client.permute(n, seed, epoch).astype(np.int64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "randperm", lambda n, generator=None: order)
        return list(sampler), len(sampler)


def make_sampler(client, n, world, rank, drop_last=False, seed=3, epoch=0, **options):
    sampler = shufd.torch.DistributedSampler(
        Numbers(n), world, rank, seed=seed, drop_last=drop_last, client=client, **options
    )
    sampler.set_epoch(epoch)
    return sampler


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("world", [1, 2, 3, 4, 8, 40])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 16, 31, 1000])
def test_sampler_equals_torch(client, n, world, drop_last):
    for rank in range(world):
        for shuffle in (True, False):
            sampler = make_sampler(client, n, world, rank, drop_last, epoch=5, shuffle=shuffle)
            indices, length = expected_indices(client, n, world, rank, drop_last, 3, 5, shuffle)
            assert list(sampler) == indices and len(sampler) == length
            torch_sampler = TorchSampler(range(n), world, rank, shuffle, 3, drop_last)
            torch_sampler.set_epoch(5)
            for name in ("num_replicas", "rank", "shuffle", "seed", "drop_last", "epoch", "num_samples", "total_size"):
                assert getattr(sampler, name) == getattr(torch_sampler, name)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 64), st.integers(0, 63), st.booleans(),
       st.integers(0, 2**64 - 1), st.integers(0, 2**63))  # fmt: skip
def test_random_samplers_match(daemon, n, world, rank, drop_last, seed, epoch):
    client = shufd.default_client()
    rank %= world
    sampler = make_sampler(client, n, world, rank, drop_last, seed, epoch)
    order = client.permute(n, seed, epoch, rank=rank, world=world, drop_last=drop_last)
    assert list(sampler) == order.tolist() and len(sampler) == len(order)


def test_indices_are_integers_and_large_epochs(client):
    sampler = make_sampler(client, 20_000, 2, 1)
    indices = list(sampler)
    assert {type(i) for i in indices} == {int}
    assert indices == client.permute(20_000, 3)[1::2].tolist()
    assert list(sampler) == indices  # without set_epoch the epoch repeats, as in torch
    sampler.set_epoch(1)
    assert list(sampler) == client.permute(20_000, 3, 1)[1::2].tolist()


def test_unused_iterator_sends_no_request(daemon):
    class Used(Exception):
        pass

    class ClientThatFails:
        def permute(self, *arguments, **options):
            raise Used

    sampler = shufd.torch.DistributedSampler(Numbers(10), 2, 0, client=ClientThatFails(), algorithm="philox24")
    iter(sampler), iter(sampler)
    with pytest.raises(Used):
        next(iter(sampler))


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_sampler_resumes_at_every_step(client, world, drop_last):
    n = 23
    for rank, through_batches in itertools.product(range(world), (False, True)):
        whole = list(make_sampler(client, n, world, rank, drop_last, epoch=2))
        for step in range(len(whole) + 1):
            sampler = make_sampler(client, n, world, rank, drop_last, epoch=2)
            assert list(itertools.islice(sampler, step)) == whole[:step]
            state = json.loads(json.dumps(sampler.state_dict(used=step)))
            assert sampler.remaining == len(whole) - step
            resumed = make_sampler(client, n, world, rank, drop_last)
            if through_batches:
                batches = shufd.torch.BatchSampler(resumed, 4, False)
                batches.load_state_dict(state)
                assert batches.state_dict() == state
                following = list(make_sampler(client, n, world, rank, drop_last, epoch=3))
                assert sum(batches, []) == (whole[step:] if step < len(whole) else following)
            else:
                resumed.load_state_dict(state)
                resumed.set_epoch(state["epoch"])
                assert resumed.state_dict() == state
                assert list(resumed) == whole[step:]
            resumed.set_epoch(3)
            assert list(resumed) == list(make_sampler(client, n, world, rank, drop_last, epoch=3))


@pytest.mark.parametrize("kind", ["distributed", "drop_last", "random", "replacement"])
def test_state_after_an_epoch_continues_with_the_next(client, kind):
    """A loop over epochs saves its state after each epoch. The next run begins with the next epoch."""

    def make():
        if kind in ("random", "replacement"):
            return shufd.torch.RandomSampler(Numbers(23), kind == "replacement", seed=3, client=client)
        return make_sampler(client, 23, 3, 1, kind == "drop_last")

    def epochs_of(sampler, epochs, through_batches):
        for epoch in range(sampler.epoch, epochs):
            sampler.set_epoch(epoch)
            source = shufd.torch.BatchSampler(sampler, 4, False) if through_batches else [sampler]
            yield epoch, [i for batch in source for i in batch]

    whole = list(epochs_of(make(), 4, False))
    assert len(whole) == 4 and whole[0][1] != whole[1][1]
    for ended, through_batches in itertools.product(range(4), (False, True)):
        sampler = make()
        assert list(epochs_of(sampler, ended + 1, through_batches)) == whole[: ended + 1]
        assert sampler.epoch == ended
        state = json.loads(json.dumps(sampler.state_dict(used=len(sampler))))
        resumed = make()
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state and resumed.epoch == ended + 1
        assert list(epochs_of(resumed, 4, through_batches)) == whole[ended + 1 :]


def test_epoch_without_a_step_for_more_ranks_is_ended(client):
    """With drop_last, 7 of 23 positions are left after 4 steps of 4 ranks: too few for 8 ranks."""
    sampler = make_sampler(client, 23, 4, 0, drop_last=True, epoch=2)
    list(itertools.islice(sampler, 4))
    state = sampler.state_dict(used=4)
    for world, epoch in ((7, 2), (8, 3)):
        resumed = make_sampler(client, 23, world, 0, drop_last=True)
        resumed.load_state_dict(state)
        assert state["position"] == 16 and resumed.epoch == epoch
    assert make_sampler(client, 3, 4, 0, drop_last=True, epoch=2).epoch == 2  # always empty


def test_state_is_the_same_on_all_ranks(client):
    samplers = [make_sampler(client, 1000, 4, rank) for rank in range(4)]
    states = []
    for sampler in samplers:
        list(itertools.islice(sampler, 77))
        states.append(sampler.state_dict(used=77))
    assert all(state == states[0] for state in states) and states[0]["position"] == 4 * 77


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 400), st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), max_size=5),
       st.integers(1, 9))  # fmt: skip
def test_resume_with_other_world_sizes(daemon, n, runs, last):
    """A job is interrupted several times, and continues with another number of ranks each time. All runs together
    use every index once. Only the last run pads its end."""
    client = shufd.default_client()
    order = client.permute(n, 3, 1).tolist()
    state, seen = None, []
    for world, steps in [*runs, (last, None)]:
        samplers = [make_sampler(client, n, world, rank, epoch=1) for rank in range(world)]
        if state:
            for sampler in samplers:
                sampler.load_state_dict(state)
                sampler.set_epoch(1)  # of an ended epoch nothing is left
        columns = [list(itertools.islice(sampler, steps)) for sampler in samplers]
        seen += [i for row in zip(*columns) for i in row]
        state = samplers[0].state_dict(used=len(columns[0]))
    assert seen[:n] == order and len(seen) < n + 9
    assert set(seen[n:]) <= set(order)


def test_resume_with_4_3_and_8_ranks(client):
    n, state, seen = 10_007, None, []
    for world, batches in ((4, 30), (3, 50), (8, None)):
        rows = []
        for rank in range(world):
            sampler = make_sampler(client, n, world, rank, epoch=6)
            batch_sampler = shufd.torch.BatchSampler(sampler, 16, False)
            if state:
                batch_sampler.load_state_dict(state)
            rows.append(sum(itertools.islice(batch_sampler, batches), []))
            new = batch_sampler.state_dict(used=len(rows[-1]))
        state = new
        seen += [i for row in zip(*rows) for i in row]
    assert seen[:n] == client.permute(n, 3, 6).tolist() and len(seen) - n < 8


def test_order_above_memory_limit(client):
    """At n = 10^9 the order does not fit into memory here, so the sampler computes single values."""

    class ClientWithoutMemory:
        def permute(self, *arguments, **options):
            raise shufd.OutOfMemory("n 1000000000: too large here")

        def _prefetch(self, request, device):
            raise shufd.OutOfMemory("n 1000000000: too large here")

    n = 1_000_000_000
    positions = np.random.default_rng(1).integers(0, n, 20)
    for position in [*positions.tolist(), n - 1, n - 5]:
        sampler = make_sampler(ClientWithoutMemory(), n, 8, 5, epoch=4)
        state = {**sampler.state_dict(), "position": position}
        sampler.load_state_dict(state)
        got = list(itertools.islice(sampler, 3))
        places = [(position + 5 + 8 * k) % n for k in range(-(-(n - position) // 8))[:3]]
        assert got == client.index(places, n, 3, 4).tolist() == shufd.local.index(places, n, 3, 4).tolist()


def test_states_of_other_data_are_refused(client):
    sampler = make_sampler(client, 100, 2, 0)
    state = sampler.state_dict()
    for name, value in (("n", 99), ("seed", 4), ("algorithm", "lcg"), ("shuffle", False), ("version", 9)):
        with pytest.raises(shufd.Invalid, match=f"state: {name} {value!r}: expected"):
            sampler.load_state_dict({**state, name: value})
    for change, text in (
        ({"position": -1}, "^state: position -1: expected 0 to 100$"),
        ({"position": 101}, "^state: position 101: expected 0 to 100$"),
        ({"epoch": -1}, "^state: epoch: -1: expected 0 to"),
        ({"n": 99}, "^state: n 99: expected 100, the length of the dataset of this sampler$"),
        ({"seed": 4}, "^state: seed 4: expected 3, as in this sampler; make the sampler with the seed of the state$"),
        ({"num_samples": 100, "replacement": False}, "^state: of a RandomSampler: expected one of a DistributedSampler"),
    ):
        with pytest.raises(shufd.Invalid, match=text):
            sampler.load_state_dict({**state, **change})
    for name in state:
        with pytest.raises(shufd.Invalid, match=f"^state: no field {name}: expected a whole dict of state_dict"):
            sampler.load_state_dict({k: v for k, v in state.items() if k != name})
    random = shufd.torch.RandomSampler(Numbers(100), seed=3, client=client)
    for whole, text in ((state, "of a DistributedSampler: expected one of a RandomSampler, as this sampler is$"),
                        ({**state, "num_samples": 100}, "no field replacement"),
                        ({}, "no field version")):  # fmt: skip
        with pytest.raises(shufd.Invalid, match=f"^state: {text}"):
            random.load_state_dict(whole)
    state["position"] = 50  # the state is a copy, so the sampler does not move
    assert sampler.state_dict()["position"] == 0


WRONG_ARGUMENTS = {
    "^rank: '1': expected an integer; convert": lambda d: shufd.torch.DistributedSampler(d, 4, "1"),
    r"^rank: 1\.0: expected an integer; convert": lambda d: shufd.torch.DistributedSampler(d, 4, 1.0),
    "^num_replicas: '4': expected an integer; convert": lambda d: shufd.torch.DistributedSampler(d, "4", 1),
    "^seed: -9223372036854775809: expected 0 to": lambda d: shufd.torch.DistributedSampler(d, 4, 1, seed=-(2**63) - 1),
    "^seed: 18446744073709551616: expected 0": lambda d: shufd.torch.DistributedSampler(d, 4, 1, seed=2**64),
    "^seed: 'a': expected an integer": lambda d: shufd.torch.DistributedSampler(d, 4, 1, seed="a"),
    "^seed: None: expected an integer": lambda d: shufd.torch.DistributedSampler(d, 4, 1, seed=None),
    '^algorithm "x": expected primefold': lambda d: shufd.torch.DistributedSampler(d, 4, 1, algorithm="x"),
    "^algorithm: 5: expected the name": lambda d: shufd.torch.DistributedSampler(d, 4, 1, algorithm=5),
    "^shuffle: 'no': expected True or False": lambda d: shufd.torch.DistributedSampler(d, 4, 1, shuffle="no"),
    "^drop_last: 1: expected True or False": lambda d: shufd.torch.DistributedSampler(d, 4, 1, drop_last=1),
    "^client: 'c': expected a shufd.Client": lambda d: shufd.torch.DistributedSampler(d, 4, 1, client="c"),
    "^dataset: 100: expected a dataset with a length": lambda d: shufd.torch.DistributedSampler(100, 4, 1),
    "^epoch: -1: expected 0 to": lambda d: shufd.torch.DistributedSampler(d, 4, 1).set_epoch(-1),
    r"^epoch: 1\.0: expected an integer": lambda d: shufd.torch.DistributedSampler(d, 4, 1).set_epoch(1.0),
    "^epoch: '1': expected an integer": lambda d: shufd.torch.RandomSampler(d, seed=1).set_epoch("1"),
    "^num_samples: 0, of n 100: expected 1 or more": lambda d: shufd.torch.RandomSampler(d, num_samples=0, seed=1),
    r"^num_samples: 2\.5: expected an integer": lambda d: shufd.torch.RandomSampler(d, num_samples=2.5, seed=1),
    "^replacement: 1: expected True or False": lambda d: shufd.torch.RandomSampler(d, 1, seed=1),
    "^check_ranks: 0: expected True or False": lambda d: shufd.torch.DistributedSampler(d, 4, 1, check_ranks=0),
    r"^seed: 1\.5: expected an integer": lambda d: shufd.torch.RandomSampler(d, seed=1.5),
    r"^generator: Generator\(.*: expected a torch.Generator": lambda d: shufd.torch.RandomSampler(
        d, generator=np.random.default_rng(1)
    ),
    '^algorithm "y": expected primefold': lambda d: shufd.torch.RandomSampler(d, seed=1, algorithm="y"),
    "^client: 'r': expected a shufd.Client": lambda d: shufd.torch.RandomSampler(d, seed=1, client="r"),
    "^sampler: 5: expected a sampler, such as one of shufd.torch": lambda d: shufd.torch.BatchSampler(5, 2, False),
}


@pytest.mark.parametrize("text", WRONG_ARGUMENTS)
def test_wrong_arguments_are_refused_at_once(text):
    """The constructors and set_epoch() refuse them, without a daemon."""
    with pytest.raises(shufd.Invalid, match=text):
        WRONG_ARGUMENTS[text](Numbers(100))


def test_remaining_counts_from_the_place_of_a_state(client):
    sampler = make_sampler(client, 1003, 4, 1)
    batches = shufd.torch.BatchSampler(sampler, 8, False)
    assert (sampler.remaining, len(sampler)) == (251, 251) and (batches.remaining, len(batches)) == (32, 32)
    batches.set_epoch(2)
    assert (batches.epoch, sampler.epoch) == (2, 2)
    batches.load_state_dict({**sampler.state_dict(), "position": 1003})
    assert (batches.epoch, sampler.epoch) == (3, 3)
    batches.set_epoch(0)
    list(itertools.islice(sampler, 100))
    assert sampler.remaining == 151
    state = sampler.state_dict(used=100)
    for world, drop_last, left in ((4, False, 151), (3, False, 201), (8, True, 75)):
        resumed = make_sampler(client, 1003, world, 0, drop_last)
        resumed.load_state_dict(state)
        batches = shufd.torch.BatchSampler(resumed, 8, drop_last)
        assert resumed.remaining == left and len(resumed) == len(make_sampler(client, 1003, world, 0, drop_last))
        assert batches.remaining == len(list(batches)) and resumed.remaining == 0
    replacing = shufd.torch.RandomSampler(Numbers(10), True, 25, seed=1, client=client)
    assert replacing.remaining == 25 and len(list(replacing)) == 25 and replacing.remaining == 0


def test_bad_arguments_are_refused(client):
    for rank in (4, 5, -1):
        with pytest.raises(ValueError, match=f"rank: {rank}: expected 0 to num_replicas - 1"):
            shufd.torch.DistributedSampler(Numbers(10), 4, rank)
    for world, rank in ((0, None), (0, 0), (-1, 0)):
        with pytest.raises(shufd.Invalid, match=f"num_replicas: {world}: expected 1 or more"):
            shufd.torch.DistributedSampler(Numbers(10), world, rank)
    with pytest.raises(ValueError):
        shufd.torch.BatchSampler(make_sampler(client, 10, 1, 0), 0, False)
    with pytest.raises(ValueError):
        shufd.torch.RandomSampler(Numbers(0))
    assert list(make_sampler(client, 0, 2, 1)) == [] and list(make_sampler(client, 1, 3, 2, True)) == []


def test_batches_equal_torch(client):
    for drop_last, size in itertools.product((False, True), (1, 7, 10, 1000)):
        sampler = make_sampler(client, 205, 2, 0)
        torch_sampler = torch.utils.data.BatchSampler(make_sampler(client, 205, 2, 0), size, drop_last)
        batches = shufd.torch.BatchSampler(sampler, size, drop_last)
        assert list(batches) == list(torch_sampler) and len(batches) == len(torch_sampler)
        arrays = list(shufd.torch.BatchSampler(sampler, size, drop_last, as_arrays=True))
        assert [a.tolist() for a in arrays] == list(torch_sampler)
        assert all(a.dtype == np.int64 for a in arrays)


def test_random_sampler(client):
    sampler = shufd.torch.RandomSampler(Numbers(1000), seed=5, client=client)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(1000)) and first != second
    sampler.set_epoch(0)
    assert list(sampler) == first
    # Other libraries replace instances of torch's class by samplers of their own.
    assert not isinstance(sampler, torch.utils.data.RandomSampler) and len(sampler) == 1000


def test_generator_advances(client):
    """Each iteration has an order of its own, also of several samplers, as with torch's."""
    for cls, options in ((torch.utils.data.RandomSampler, {}), (shufd.torch.RandomSampler, {"client": client})):

        def make(generator, n=30, cls=cls, options=options):
            return cls(range(n), generator=generator, **options)

        generator = torch.Generator().manual_seed(5)
        shared = [make(generator), make(generator)]
        orders = [list(sampler) for _ in range(3) for sampler in (*shared, make(generator))]
        assert len({tuple(order) for order in orders}) == 9
        assert all(sorted(order) == list(range(30)) for order in orders)
        generator.manual_seed(5)
        again = [make(generator), make(generator)]
        assert [list(sampler) for sampler in again] == orders[:2]
        generator.manual_seed(5)
        assert list(make(generator)) == orders[0]
    sampler = make(generator)
    order = list(itertools.islice(sampler, 10))
    state, resumed = json.loads(json.dumps(sampler.state_dict(used=10))), make(torch.Generator())
    resumed.load_state_dict(state)
    assert sorted(order + list(resumed)) == list(range(30))
    sampler.set_epoch(0)  # an order of its epochs from now on
    assert list(sampler)[:10] == order and list(sampler) == client.permute(30, sampler.seed, 1).tolist()


def test_default_seed_follows_manual_seed(client):
    def drawn(seed):
        torch.manual_seed(seed)
        sampler = shufd.torch.RandomSampler(Numbers(1000), client=client)
        return list(sampler), torch.rand(3).tolist()

    assert drawn(1) == drawn(1) != drawn(2)
    torch.manual_seed(1)
    one, two = (shufd.torch.RandomSampler(Numbers(1000), client=client) for _ in range(2))
    assert list(one) != list(two) and one.seed != two.seed
    assert torch.initial_seed() == 1


@pytest.mark.parametrize("num_samples", [10, 1000, 2345])
@pytest.mark.parametrize("replacement", [False, True])
def test_random_sampler_resumes(client, replacement, num_samples):
    def make():
        return shufd.torch.RandomSampler(Numbers(1000), replacement, num_samples, seed=5, client=client)

    whole = list(make())
    assert len(whole) == num_samples and all(0 <= i < 1000 for i in whole)
    if not replacement:
        for begin in range(0, num_samples, 1000):
            part = whole[begin : begin + 1000]
            assert len(set(part)) == len(part)
    later = make()
    later.set_epoch(1)
    following = list(later)
    assert following != whole
    for step in (0, 1, num_samples // 2, num_samples - 1, num_samples):
        sampler = make()
        list(itertools.islice(sampler, step))
        state = sampler.state_dict(used=step)
        resumed = make()
        resumed.load_state_dict(state)
        assert step == num_samples or list(resumed) == whole[step:]
        assert list(resumed) == following


@pytest.mark.parametrize("num_samples", [7, 10, 11, 25, 30])
def test_passes_are_permutations_of_their_own_epochs(client, num_samples):
    """Pass k of epoch e is the permutation of epoch e * passes + k, so no two passes are the same one."""
    sampler = shufd.torch.RandomSampler(Numbers(10), num_samples=num_samples, seed=5, client=client)
    passes = -(-num_samples // 10)
    for epoch in (0, 1, 2, 7):
        sampler.set_epoch(epoch)
        expected = [i for k in range(passes) for i in client.permute(10, 5, epoch * passes + k).tolist()]
        assert list(sampler) == expected[:num_samples]


def test_iteration_needs_little_memory(client):
    """An iteration converts the indices chunk by chunk, so it needs little memory for any n."""
    n = 3_000_000
    tracemalloc.start()
    try:
        for sampler in (make_sampler(client, n, 1, 0), shufd.torch.RandomSampler(Numbers(n), seed=5, client=client),
                        shufd.torch.BatchSampler(make_sampler(client, n, 1, 0), 1024, False)):  # fmt: skip
            assert sum(1 for _ in itertools.islice(sampler, 1_000_000 if len(sampler) == n else 1000))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_arguments_of_other_names_are_explained():
    with pytest.raises(TypeError, match="'world_size'; did you mean num_replicas=\\?$"):
        shufd.torch.DistributedSampler(range(9), world_size=4, rank=1)


def test_reprs(client):
    sampler = make_sampler(client, 10, 4, 3, epoch=2)
    text = "shufd.torch.DistributedSampler(n=10, rank=3, num_replicas=4, shuffle=True, seed=3, epoch=2, drop_last=False)"
    assert repr(sampler) == text
    batches = shufd.torch.BatchSampler(sampler, 2, True)
    assert repr(batches) == f"shufd.torch.BatchSampler({text}, batch_size=2, drop_last=True)"
    assert repr(shufd.torch.RandomSampler(Numbers(10), seed=5)).endswith("num_samples=10, replacement=False, seed=5, epoch=0)")
    for sampler in (
        shufd.torch.RandomSampler(Numbers(10), seed=5, chunk=[3, 7], window=2),
        shufd.torch.DistributedSampler(Numbers(10), 4, 3, chunk=[3, 7], window=2),
    ):
        assert ", chunk=[3, 7], window=2" in repr(sampler)


def test_replacement_is_uniform(client):
    draws = list(shufd.torch.RandomSampler(Numbers(7), True, 70_000, seed=1, client=client))
    counts = np.bincount(draws, minlength=7)
    assert (abs(counts - 10_000) < 600).all()  # 6 standard deviations


class Streams(torch.utils.data.IterableDataset):
    def __init__(self, *samplers):
        self.samplers = samplers

    def __iter__(self):
        for sampler in self.samplers:
            yield from sampler


def test_spawned_workers_begin_at_the_beginning(client):
    """A look at the first index before the epoch does not take it from the workers."""
    data = Streams(shufd.torch.RandomSampler(range(40), seed=3, client=client), make_sampler(client, 30, 1, 0))
    for sampler in data.samplers:
        next(iter(sampler))
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    expected = client.permute(40, 3, 1).tolist() + expected_indices(client, 30, 1, 0, False, 3, 0)[0]
    assert [int(i) for i in loader] == expected


def test_state_while_another_iteration_runs(client):
    """Such as a look at a batch in the middle of an epoch. The place of the job is then unknown."""
    for sampler in (shufd.torch.RandomSampler(range(40), seed=3, client=client), make_sampler(client, 40, 1, 0)):
        sampler.set_epoch(0)
        outer = iter(sampler)
        head = [*itertools.islice(outer, 8)]
        list(sampler)
        with pytest.raises(shufd.Invalid, match="another iteration began before the last one has ended"):
            sampler.state_dict(used=12)
        del outer
        sampler.set_epoch(0)
        assert [*itertools.islice(sampler, 8)] == head and sampler.state_dict(used=8)["position"] == 8


@pytest.mark.parametrize("through_batches", [False, True])
@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_state_while_a_loader_has_batches_left(client, kind, through_batches):
    """Its workers have drawn all indices of the rest of an epoch. A look at the data begins another iteration."""
    sampler = getattr(shufd.torch, kind)(range(40), seed=3, client=client)
    options = {"batch_size": 5, "sampler": sampler}
    if through_batches:
        options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 5, False)}
    loader = torch.utils.data.DataLoader(range(40), num_workers=2, **options)
    sampler.load_state_dict({**sampler.state_dict(), "position": 25})
    batches = iter(loader)
    assert len([*itertools.islice(batches, 2)]) == 2
    next(iter(loader))
    with pytest.raises(shufd.Invalid, match="another iteration began before the last one has ended"):
        sampler.state_dict(used=10)
    assert len([*batches]) == 1  # the rest of the first iteration: the next ones follow it
    sampler.set_epoch(2)
    assert len([*itertools.islice(loader, 2)]) == 2 and sampler.state_dict(used=10)["position"] == 10


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_state_after_loaders_that_have_ended(client, kind):
    """They still have their workers."""
    sampler = getattr(shufd.torch, kind)(range(40), seed=3, client=client)
    loaders = [
        torch.utils.data.DataLoader(range(40), 5, sampler=sampler, num_workers=2, persistent_workers=True) for _ in range(2)
    ]
    epochs = [0, 0, 0] if kind == "DistributedSampler" else [0, 1, 2]
    for loader, epoch in zip([*loaders, loaders[0]], epochs, strict=True):
        batches = iter(loader)
        assert len([*itertools.islice(batches, 3)]) == 3
        state = sampler.state_dict(used=15)
        assert (state["epoch"], state["position"]) == (epoch, 15)
        assert len([*batches]) == 5


def test_a_pass_after_the_selected_epoch_does_not_count(client):
    """A job measures its accuracy by a pass over the same loader. A RandomSampler goes on by an epoch."""
    sampler = shufd.torch.RandomSampler(range(40), seed=3, client=client)
    loader = torch.utils.data.DataLoader(range(40), batch_size=4, sampler=sampler)
    sampler.set_epoch(5)
    assert len([*loader]) == 10
    assert sampler.state_dict(used=40)["epoch"] == 5
    assert len([*loader]) == 10
    with pytest.raises(shufd.Invalid, match="an iteration after epoch 5, .* has gone on to epoch 6"):
        sampler.state_dict(used=40)
    sampler.set_epoch(6)
    assert len([*loader]) == 10 and sampler.state_dict(used=40)["epoch"] == 6


@pytest.mark.parametrize("workers", [0, 2])
def test_state_before_the_first_index(client, workers):
    """A loop makes the iterator of the next epoch when one has ended, and then saves. Only set_epoch() tells that the job
    is at the next epoch."""
    sampler = shufd.torch.RandomSampler(range(400), seed=3, client=client)
    loader = torch.utils.data.DataLoader(range(400), batch_size=10, sampler=sampler, num_workers=workers)
    batches = iter(loader)
    for epoch in (0, 1):
        assert [len(next(batches)) for _ in range(40)] == [10] * 40
        assert sampler.state_dict(used=400)["epoch"] == epoch
        batches = iter(loader)
        with pytest.raises(shufd.Invalid, match="used: 0: .* may be over, .* after its end pass used=400"):
            sampler.state_dict(used=0)
        sampler.set_epoch(epoch + 1)
        batches = iter(loader)
        state = sampler.state_dict(used=0)
        assert (state["epoch"], state["position"]) == (epoch + 1, 0)


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"stateful": True}], ids=str)
def test_used_0_after_workers_have_drawn(client, kind, batches, options):
    """A job that continues near the end of an epoch, and saves before its first step."""
    skip_fork_under_asan()
    options, of = dict(options), torch.utils.data.DataLoader
    if options.pop("stateful", False):
        of = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    ranks = (1, 0) if kind == "DistributedSampler" else ()
    sampler = getattr(shufd.torch, kind)(range(100), *ranks, seed=3, client=client)
    source = {"batch_sampler": shufd.torch.BatchSampler(sampler, 10, False)} if batches else {"sampler": sampler, "batch_size": 10}
    loader = of(range(100), num_workers=2, **source, **options)
    state = {**sampler.state_dict(), "epoch": 5, "position": 35}
    sampler.load_state_dict(state)
    sampler.set_epoch(5)
    for step, batch in enumerate(loader):
        assert sampler.state_dict(used=10 * step) == {**state, "position": 35 + 10 * step}
    assert (step, len(batch)) == (6, 5)
    with pytest.raises(shufd.Invalid, match="used: 0: .* may be over"):  # the job may be before the next epoch
        sampler.state_dict(used=0)
    sampler.set_epoch(6)
    assert sampler.state_dict(used=0) == {**state, "epoch": 6, "position": 0}
    sampler.load_state_dict({**state, "position": 70})
    sampler.set_epoch(5)
    for _ in loader:  # three batches, which workers have drawn: the epoch may have ended
        with pytest.raises(shufd.Invalid, match="used: 0: .* may be over"):
            sampler.state_dict(used=0)


@pytest.mark.parametrize("stop", [1, 3, 9])
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"num_workers": 2, "persistent_workers": True}, {"stateful": True}, {"stateful": True, "num_workers": 2},
], ids=str)  # fmt: skip
def test_used_0_after_an_iteration_is_refused(client, options, batches, stop):
    """Also where the loader keeps its iterator. The job may mean the next epoch."""
    options, of = dict(options), torch.utils.data.DataLoader
    if "num_workers" in options:
        skip_fork_under_asan()
    if options.pop("stateful", False):
        of = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    sampler = shufd.torch.RandomSampler(range(40), seed=3, client=client)
    source = {"batch_sampler": shufd.torch.BatchSampler(sampler, 5, False)} if batches else {"sampler": sampler, "batch_size": 5}
    loader = of(range(40), **source, **options)
    assert sampler.state_dict(used=0)["position"] == 0
    for _ in range(2):
        assert len([*itertools.islice(loader, stop)]) == min(stop, 8)
    with pytest.raises(shufd.Invalid, match="used: 0: .* may be over"):
        sampler.state_dict(used=0)
    sampler.set_epoch(2)
    assert sampler.state_dict(used=0)["epoch"] == 2


def test_used_0_after_indices_that_the_job_keeps(client):
    """It has used none of them."""
    sampler = make_sampler(client, 40, 1, 0)
    assert len(torch.utils.data.Subset(range(40), list(sampler))) == 40
    with pytest.raises(shufd.Invalid, match="used: 0: .* at its beginning save a state_dict\\(\\) from before it"):
        sampler.state_dict(used=0)


def test_used_0_after_an_epoch_that_is_set_late(client):
    """Lightning sets it after the workers have drawn. The loaded place and the beginning of the epoch differ."""
    skip_fork_under_asan()
    sampler = make_sampler(client, 40, 1, 0)
    loader = torch.utils.data.DataLoader(range(40), batch_size=5, sampler=sampler, num_workers=2)
    for position in (0, 15):
        sampler.load_state_dict({**sampler.state_dict(), "epoch": 1, "position": position})
        batches = iter(loader)
        sampler.set_epoch(1)
        if position == 0:
            assert sampler.state_dict(used=0)["position"] == 0
        else:
            with pytest.raises(shufd.Invalid, match="used: 0: .* may be over"):
                sampler.state_dict(used=0)
        next(batches)
        assert sampler.state_dict(used=5)["position"] == position + 5
        del batches
        sampler.set_epoch(2)


def test_another_dataset_counts_from_the_next_epoch(client):
    random = shufd.torch.RandomSampler(range(10), seed=3, client=client)
    of_rank = make_sampler(client, 10, 1, 0)
    assert len(list(random)) == len(list(of_rank)) == 10
    random.data_source = of_rank.dataset = range(20)
    assert (random.data_source, of_rank.dataset) == (range(20), range(20))
    assert list(random) == client.permute(20, 3, 1).tolist() and list(of_rank) == client.permute(20, 3).tolist()


class OfSplit(shufd.torch.RandomSampler):
    """Its indices are those of a part of the data."""

    def __iter__(self):
        return (90 + i for i in super().__iter__() if i != 3)


def test_batches_of_a_subclass(client):
    sampler = OfSplit(range(6), seed=7, client=client)
    expected = [90 + i for i in client.permute(6, 7).tolist() if i != 3]
    batches = shufd.torch.BatchSampler(sampler, 2, False)
    assert sum(batches, []) == expected
    sampler.set_epoch(0)
    assert sum(torch.utils.data.BatchSampler(sampler, 2, False), []) == expected


def test_state_before_the_first_index_after_a_break(client):
    """It cannot be told from a look at the first batch, after which the epoch begins."""
    sampler = shufd.torch.RandomSampler(range(40), seed=3, client=client)
    loader = torch.utils.data.DataLoader(range(40), batch_size=10, sampler=sampler)
    next(iter(loader))
    batches = iter(loader)
    with pytest.raises(shufd.Invalid, match="used: 0: .* may be over, .* call set_epoch"):
        sampler.state_dict(used=0)
    sampler.set_epoch(0)
    assert sampler.state_dict(used=0)["position"] == 0
    del batches


def test_many_samples_of_a_short_dataset(client):
    draws = list(shufd.torch.RandomSampler(range(8), num_samples=10_000, seed=3, client=client))
    assert draws[-8:] == client.permute(8, 3, 1249).tolist() and np.bincount(draws).tolist() == [1250] * 8


class StreamOfRank(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from shufd.torch.DistributedSampler(range(12), seed=7)


def test_ranks_are_unknown_in_a_spawned_worker(daemon):
    loader = torch.utils.data.DataLoader(StreamOfRank(), num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(shufd.Invalid, match="a worker process that is not forked does not know the ranks"):
        list(loader)


def test_state_before_the_first_index_of_an_epoch(client):
    """The iterator has it. The sampler knows only the last iteration that began."""
    sampler = shufd.torch.RandomSampler(range(40), seed=3, client=client)
    list(sampler)
    state = iter(sampler).state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    with pytest.raises(shufd.Invalid, match="used: None: .* save the state_dict\\(\\) of its iterator for a loader of torchdata"):
        sampler.state_dict()
    assert sampler.state_dict(used=40)["position"] == 40


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("workers", [0, 2, pytest.param(8, marks=pytest.mark.long)])
def test_data_loader(client, workers, method):
    if workers == 0 and method == "spawn":
        pytest.skip("no process to start")
    if workers == 8 and method == "spawn" and "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("under AddressSanitizer torch takes 600 MB a process")
    if workers and method == "fork":
        skip_fork_under_asan()
    other = shufd.default_client()
    before = lease_count(other)
    sampler = make_sampler(client, 500, 2, 1, epoch=1)
    loader = torch.utils.data.DataLoader(
        Numbers(500), batch_size=16, sampler=sampler, num_workers=workers,
        multiprocessing_context=method if workers else None, persistent_workers=workers == 2 or method == "spawn",
    )  # fmt: skip
    for epoch in (1, 2):
        sampler.set_epoch(epoch)
        got = torch.cat(list(loader)).tolist()
        assert got == expected_indices(client, 500, 2, 1, False, 3, epoch)[0]
    batches = shufd.torch.BatchSampler(sampler, 16, True, as_arrays=True)
    loader = torch.utils.data.DataLoader(Numbers(500), batch_sampler=batches, num_workers=workers)
    assert torch.cat(list(loader)).tolist() == got[: 250 // 16 * 16]
    client.close()
    del loader, batches, sampler
    assert await_value(lambda: lease_count(other), before) == before


def test_used_indices_of_prefetching_loader(client):
    skip_fork_under_asan()
    sampler = make_sampler(client, 1000, 2, 0, epoch=1)
    loader = torch.utils.data.DataLoader(Numbers(1000), batch_size=10, sampler=sampler, num_workers=2)
    batches = iter(loader)
    seen = [next(batches) for _ in range(7)]
    with pytest.raises(shufd.Invalid, match="used: None: loaders draw indices ahead: pass used="):
        sampler.state_dict()
    state = sampler.state_dict(used=70)
    assert state["position"] == 140
    sampler.load_state_dict(state)
    assert torch.cat(seen).tolist() + list(sampler) == expected_indices(client, 1000, 2, 0, False, 3, 1)[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_state_without_used_indices(client, workers):
    """It is refused from the first index on, also after the end, and where a loader was left."""
    if workers:
        skip_fork_under_asan()

    def make(n):
        sampler = make_sampler(client, n, 1, 0)
        return sampler, torch.utils.data.DataLoader(Numbers(n), batch_size=10, sampler=sampler, num_workers=workers)

    def expect_refusal(sampler):
        with pytest.raises(shufd.Invalid, match="used: None: .*: pass used="):
            sampler.state_dict()

    sampler, loader = make(60)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert sampler.state_dict()["position"] == 0
        for step, _ in enumerate(loader):
            expect_refusal(sampler)
            assert sampler.state_dict(used=10 * (step + 1))["position"] == 10 * (step + 1)
        expect_refusal(sampler)
    for n in 100, 20:  # of 20, workers have drawn all
        sampler, loader = make(n)
        for _ in loader:
            break
        expect_refusal(sampler)
        assert sampler.state_dict(used=10)["position"] == 10


def test_states_of_subclasses_that_draw_ahead_are_refused(client):
    """`used` does not tell their place, unless a method of the class computes it."""
    pytest.importorskip("torchdata.stateful_dataloader")
    from torchdata.stateful_dataloader import StatefulDataLoader

    class Grouped(shufd.torch.DistributedSampler):
        def __iter__(self):
            return iter(sorted(super().__iter__(), key=lambda i: i % 4))

    sampler = Grouped(range(40), 1, 0, seed=3, client=client)
    loader = iter(loader_of := StatefulDataLoader(range(40), batch_size=4, sampler=sampler))
    assert len([next(loader) for _ in range(3)]) == 3
    with pytest.raises(shufd.Invalid, match="Grouped: its own __iter__ may draw ahead"):
        loader_of.state_dict()
    with pytest.raises(shufd.Invalid, match="Grouped: its own __iter__ may draw ahead or leave indices out"):
        sampler.state_dict(used=12)

    class Placed(Grouped):
        def state_dict(self, used=None):
            return super().state_dict(used=40 if used == 40 else 0)  # all indices are drawn at once

    sampler = Placed(range(40), 1, 0, seed=3, client=client)
    assert len([*itertools.islice(sampler, 40)]) == 40 and sampler.state_dict(used=40)["position"] == 40


@pytest.mark.parametrize("workers", [0, 2])
def test_used_indices_of_a_smaller_last_batch(client, workers):
    """1003 indices on 2 ranks are 502 for each: 10 batches of 50, and one of 2."""
    if workers:
        skip_fork_under_asan()
    sampler = make_sampler(client, 1003, 2, 0, epoch=1)
    loader = torch.utils.data.DataLoader(Numbers(1003), batch_size=50, sampler=sampler, num_workers=workers)
    for steps, batch in enumerate(loader, 1):
        assert sampler.state_dict(used=steps * 50)["position"] == min(1003, steps * 100)
    assert steps == 11 and len(batch) == 2
    list(itertools.islice(sampler, 501))
    with pytest.raises(shufd.Invalid, match="used: 502: expected 0 to 501"):
        sampler.state_dict(used=502)
    with pytest.raises(shufd.Invalid, match="used: -1: expected 0 to 501"):
        sampler.state_dict(used=-1)


@pytest.mark.parametrize("kind", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("workers, more", [
    (0, {}), (0, {"pin_memory": True}), (2, {}), (2, {"persistent_workers": True, "pin_memory": True}),
    (2, {"multiprocessing_context": "spawn"}), (8, {}),
], ids=str)  # fmt: skip
def test_stateful_data_loader(client, workers, more, kind):
    loaders = pytest.importorskip("torchdata.stateful_dataloader")
    if workers and "multiprocessing_context" not in more:
        skip_fork_under_asan()

    def make():
        sampler = make_sampler(client, 600, 3, 1)
        if kind == "sampler":
            options = {"sampler": sampler, "batch_size": 8}
        else:
            options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 8, False)}
        return sampler, loaders.StatefulDataLoader(Numbers(600), num_workers=workers, **options, **more)

    sampler, loader = make()
    sampler.set_epoch(4)
    whole = [batch.tolist() for batch in loader]
    assert sum(whole, []) == expected_indices(client, 600, 3, 1, False, 3, 4)[0]
    for steps in (1, 9, 24, 25) if workers < 8 and not more else (9,):
        sampler, loader = make()
        sampler.set_epoch(4)
        iterator = iter(loader)
        for _ in range(steps):
            next(iterator)
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        resumed_sampler, resumed = make()
        resumed.load_state_dict(state)
        assert [batch.tolist() for batch in resumed] == whole[steps:]
        resumed_sampler.set_epoch(5)
        assert sum((b.tolist() for b in resumed), []) == expected_indices(client, 600, 3, 1, False, 3, 5)[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_data_loader_at_the_end_of_an_epoch(client, workers):
    loaders = pytest.importorskip("torchdata.stateful_dataloader")
    if workers:
        skip_fork_under_asan()

    def make():
        sampler = make_sampler(client, 100, 2, 1)
        return sampler, loaders.StatefulDataLoader(Numbers(100), 8, sampler=sampler, num_workers=workers)

    def indices(loader):
        return [i for batch in loader for i in batch.tolist()]

    sampler, loader = make()
    sampler.set_epoch(4)
    assert len(indices(loader)) == 50
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    sampler, loader = make()
    loader.load_state_dict(state)
    got = []
    for epoch in (5, 6):
        sampler.set_epoch(epoch)
        got.append(indices(loader))
    assert got == [expected_indices(client, 100, 2, 1, False, 3, epoch)[0] for epoch in (5, 6)]


@pytest.mark.parametrize("epoch", [True, np.uint8(200), np.int32(2**30), torch.tensor(3), 2**64 - 1], ids=repr)
@pytest.mark.parametrize("kind", ["distributed", "random", "passes", "replacement", "batches"])
def test_epochs_are_plain_integers(client, tmp_path, kind, epoch):
    """Also of types whose objects change later, or wrap. A state loads without pickled classes."""
    if kind == "distributed":
        sampler = make_sampler(client, 20, 2, 1)
    else:
        sampler = shufd.torch.RandomSampler(
            Numbers(20), kind == "replacement", 50 if kind == "passes" else None, seed=np.int64(3), client=client
        )
    source = shufd.torch.BatchSampler(sampler, 7, False) if kind == "batches" else sampler
    source.set_epoch(epoch)
    expected = int(epoch)
    if isinstance(epoch, torch.Tensor):
        epoch += 1
    state = source.state_dict()
    assert type(source.epoch) is type(state["epoch"]) is int and source.epoch == state["epoch"] == expected
    head, iterator = [], iter(sampler)
    head = list(itertools.islice(iterator, 5))
    torch.save(sampler.state_dict(used=5), tmp_path / "state")
    loaded = torch.load(tmp_path / "state", **({} if torch.__version__ < "2" else {"weights_only": True}))
    assert loaded == json.loads(json.dumps(loaded))
    rest = list(iterator)
    source.load_state_dict(loaded)
    assert list(sampler) == rest and len(head + rest) == len(sampler)
    if kind in ("random", "batches"):
        assert head + rest == client.permute(20, 3, expected).tolist()


@pytest.mark.parametrize("of", [np.int64, np.uint8, bool, torch.tensor], ids=["int64", "uint8", "bool", "tensor"])
@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_windows_are_plain_integers(tmp_path, kind, of):
    """A state loads without pickled classes."""
    ranks = (of(1), of(0)) if kind == "DistributedSampler" else ()
    sampler, plain = (
        getattr(shufd.torch, kind)(range(20), *ranks, seed=7, chunk=number(1), window=number(1)) for number in (of, int)
    )
    torch.save(sampler.state_dict(), tmp_path / "state")
    state = torch.load(tmp_path / "state", **({} if torch.__version__ < "2" else {"weights_only": True}))
    assert json.dumps(state) == json.dumps(plain.state_dict()) == json.dumps(sampler.state_dict())


@pytest.mark.parametrize("world", [1, 2, 3])
def test_one_length_an_epoch(client, world):
    """set_epoch() or else iter() takes the length of the data, for the indices and for len()."""
    for before, after in ((20, 30), (20, 12), (30, 20)):
        data = [0] * before
        samplers = [shufd.torch.DistributedSampler(data, world, rank, seed=3, client=client) for rank in range(world)]
        samplers.append(shufd.torch.RandomSampler(data, seed=3, client=client))
        for epoch, change in ((0, False), (1, True), (2, False)):
            n = len(data)
            for sampler in samplers:
                sampler.set_epoch(epoch)
            if change:
                data[:] = [0] * after
            for sampler in samplers:
                batches = shufd.torch.BatchSampler(sampler, 4, False)
                assert len(batches) == len(list(batches)) and sampler.state_dict(used=n)["n"] == n
                sampler.set_epoch(epoch) if not change else None
            if not change:
                indices = [list(sampler) for sampler in samplers]
                assert [len(part) for part in indices] == [len(sampler) for sampler in samplers]
                assert {i for part in indices[:-1] for i in part} == set(indices[-1]) == set(range(n))
        data += [0] * 5  # without set_epoch()
        for sampler in samplers:
            iterator = iter(sampler)
            data.append(0)
            assert len(list(iterator)) == len(sampler)


@pytest.mark.parametrize("of", ["torch", "list"])
def test_batches_of_other_samplers(of):
    sampler = torch.utils.data.SequentialSampler(range(10)) if of == "torch" else list(range(10))
    for drop_last, count in ((False, 4), (True, 3)):
        batches = shufd.torch.BatchSampler(sampler, 3, drop_last)
        assert list(batches) == list(torch.utils.data.BatchSampler(sampler, 3, drop_last)) and len(batches) == count
        assert not hasattr(batches, "state_dict") and not hasattr(pickle.loads(pickle.dumps(batches)), "set_epoch")
        assert [b.dtype for b in shufd.torch.BatchSampler(sampler, 3, drop_last, as_arrays=True)] == [np.int64] * count
    other = type(shufd.torch.BatchSampler(make_sampler(None, 10, 1, 0), 3, False))(sampler, 3, False)
    assert list(other) == list(shufd.torch.BatchSampler(sampler, 3, False)) and not hasattr(other, "state_dict")
    with pytest.warns(RuntimeWarning, match=r"^sampler: .* use Trainer\(use_distributed_sampler=False\)"):
        shufd.torch.BatchSampler(TorchSampler(range(10), 2, 0), 3, False)


@pytest.mark.parametrize("sets", [False, True])
@pytest.mark.parametrize("position, left", [(0, 6), (18, 2), (22, 1), (24, 0), (25, 0), (26, 0)])
def test_a_rest_that_is_dropped_is_the_end(client, position, left, sets):
    """The job has saved after the last whole batch. The next epoch follows."""
    for sampler in (shufd.torch.RandomSampler(range(26), seed=3, client=client), make_sampler(client, 26, 2, 1)):
        size = 4 if isinstance(sampler, shufd.torch.RandomSampler) else 2  # indices of a rank
        batches = shufd.torch.BatchSampler(sampler, size, True)
        batches.load_state_dict({**batches.state_dict(), "epoch": 3, "position": position})
        assert (batches.epoch, batches.remaining) == (3 + (left == 0), left)
        if sets:
            batches.set_epoch(batches.epoch)
        share = client.permute(26, 3, 3 + (left == 0)).tolist()[position if left else 0 :]
        share = share if size == 4 else share[1::2]
        assert [*batches] == [share[i : i + size] for i in range(0, len(share) // size * size, size)]


def test_an_epoch_of_less_than_a_batch(client):
    batches = shufd.torch.BatchSampler(shufd.torch.RandomSampler(range(3), seed=3, client=client), 4, True)
    batches.load_state_dict({**batches.state_dict(), "epoch": 3})
    assert batches.epoch == 3 and [*batches] == []


class Batches(shufd.torch.BatchSampler):
    """Of a user, with another constructor."""

    def __init__(self, sampler, name="mine"):
        super().__init__(sampler, 4, False)
        self.name, self.epoch = name, 2


class Reduced(Batches):
    def __reduce__(self):
        return type(self), (self.sampler, self.name)


@pytest.mark.parametrize("kind", [int, np.int64, torch.tensor])
def test_a_state_before_a_dropped_rest(kind):
    sampler = shufd.torch.DistributedSampler(range(10), 1, 0, seed=7)
    batches = shufd.torch.BatchSampler(sampler, 4, True)
    batches.load_state_dict({**sampler.state_dict(), "position": kind(8)})
    expected = shufd.local.permute(10, 7, 1).tolist()
    assert list(batches) == [expected[:4], expected[4:8]]


@pytest.mark.parametrize("of", [Batches, Reduced])
def test_subclasses_of_batches_resume(client, of):
    """Also copies, and those of another process."""
    batches = of(shufd.torch.RandomSampler(range(24), seed=7))
    order = client.permute(24, 7, 2).tolist()
    assert isinstance(batches, of) and type(batches) is type(of(make_sampler(client, 9, 1, 0)))
    assert sum(itertools.islice(batches, 2), []) == order[:8] and batches.sampler.epoch == batches.epoch == 2
    state = json.loads(json.dumps(batches.state_dict(used=8)))
    batches = of(shufd.torch.RandomSampler(range(24), seed=7), name="other")
    batches.load_state_dict(state)
    for made in (copy.copy(batches), pickle.loads(pickle.dumps(batches, 0)), pickle.loads(pickle.dumps(batches)), batches):
        assert type(made) is type(batches) and made.name == "other"
        made.load_state_dict(state)
        assert made.remaining == 4 and sum(made, []) == order[8:]
    assert pickle.loads(pickle.dumps(type(batches))) is type(batches)


def test_subclasses_of_batches_of_other_samplers():
    class Plain(shufd.torch.BatchSampler):
        pass

    batches = Plain(range(10), 3, False)
    assert type(batches) is Plain and not hasattr(batches, "state_dict")
    again = type(Plain(make_sampler(None, 10, 1, 0), 3, False))(range(10), 3, False)
    assert type(again) is Plain and list(again) == list(batches)


class Sorted(shufd.torch.BatchSampler):
    """Sorts groups of four batches."""

    def __iter__(self):
        batches = super().__iter__()
        while group := [*itertools.islice(batches, 4)]:
            yield from sorted(group)


class Placed(Sorted):
    """It resumes at the beginning of a group."""

    def state_dict(self, used=None):
        return super().state_dict(used=0 if used is None else used // 16 * 16)


def test_states_of_batches_that_draw_ahead_are_refused(client):
    batches = Sorted(shufd.torch.RandomSampler(range(40), seed=7), 4, False)
    assert batches.state_dict()["position"] == 0 and len([*itertools.islice(batches, 3)]) == 3
    with pytest.raises(shufd.Invalid, match="^sampler: Sorted: its own __iter__ may draw ahead or leave indices out"):
        batches.state_dict(used=12)
    batches = Placed(shufd.torch.RandomSampler(range(16), seed=7), 4, False)
    iterator = iter(batches)
    assert len(next(iterator)) == 4 and batches.state_dict(used=12)["position"] == 0
    assert len([*iterator]) == 3 and batches.state_dict(used=16)["position"] == 16


def test_ranks_without_a_common_seed_are_refused(client, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    sampler = shufd.torch.RandomSampler(Numbers(20), client=client)
    with pytest.raises(shufd.Invalid, match="^seed: None: each of 2 ranks would draw another order; pass the same seed="):
        list(sampler)
    sampler.generator = torch.Generator().manual_seed(1)  # as accelerate does
    assert sorted(sampler) == list(range(20))
    assert sorted(shufd.torch.RandomSampler(Numbers(20), seed=7, client=client)) == list(range(20))


@pytest.mark.parametrize("seed", [-1, -(2**63)])
def test_negative_seeds_have_the_same_bits(client, seed):
    same = seed + 2**64
    whole = client.permute(20, same).tolist()
    assert client.permute(20, seed).tolist() == list(shufd.local.Permutation(20, seed)) == whole
    assert list(make_sampler(client, 20, 1, 0, seed=seed)) == whole
    assert list(shufd.torch.RandomSampler(Numbers(20), seed=seed, client=client)) == whole
    assert (client.uniform(size=5, seed=seed) == client.uniform(size=5, seed=same)).all()
    assert shufd.BitGenerator(seed).random_raw() == shufd.BitGenerator(same).random_raw()
    rows = torch.arange(20)
    assert shufd.torch.global_shuffle(rows, seed=seed, client=client).tolist() == whole
    with pytest.raises(shufd.Invalid, match="^seed: -9223372036854775809: expected 0 to 2"):
        client.permute(20, -(2**63) - 1)


def test_copies_of_random_samplers(client):
    sampler = shufd.torch.RandomSampler(Numbers(100), seed=3, client=client)
    head = list(itertools.islice(sampler, 20))
    state = sampler.state_dict(used=20)
    for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert list(other) == client.permute(100, 3, 1).tolist()
        assert list(other) == client.permute(100, 3, 2).tolist()
    sampler.load_state_dict(state)
    for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert head + list(other) == client.permute(100, 3).tolist()
        assert list(other) == client.permute(100, 3, 1).tolist()
    sampler.load_state_dict({**state, "position": 100})
    assert list(copy.copy(sampler)) == client.permute(100, 3, 1).tolist() and sampler.epoch == 1


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_the_state_of_a_copy_is_where_it_begins(client, kind):
    sampler = getattr(shufd.torch, kind)(range(40), seed=3, client=client)
    for drawn in (4, 40):
        assert len([*itertools.islice(sampler, drawn)]) == drawn
        for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
            state = other.state_dict()
            resumed = getattr(shufd.torch, kind)(range(40), seed=3, client=client)
            resumed.load_state_dict(state)
            assert list(resumed) == list(other)
            with pytest.raises(shufd.Invalid, match="used: 4: expected 0 to 0"):
                copy.copy(sampler).state_dict(used=4)


def test_unused_iterators_take_the_loaded_place(client):
    """The first one that is used continues there."""
    for order in ((0, 1), (1, 0)):
        sampler = shufd.torch.RandomSampler(range(24), seed=7, client=client)
        sampler.set_epoch(1)
        unused = [iter(sampler), iter(sampler)]
        sampler.load_state_dict({**sampler.state_dict(), "epoch": 3, "position": 16})
        assert [*unused[order[0]]] == client.permute(24, 7, 3).tolist()[16:]
        assert [*unused[order[1]]] == client.permute(24, 7, 4).tolist()


def test_an_older_iterator_keeps_the_epoch_that_is_set(client):
    """It begins after set_epoch(), which selects the epoch of the next iterator."""
    sampler = make_sampler(client, 24, 1, 0, epoch=1)
    older = iter(sampler)
    sampler.set_epoch(2)
    assert next(older) == client.permute(24, 3, 1)[0]
    with pytest.raises(shufd.Invalid, match="an iteration after epoch 2, .* has gone on to epoch 1"):
        sampler.state_dict(used=1)
    assert [*sampler] == client.permute(24, 3, 2).tolist()


def test_next_epoch_is_prefetched(client):
    computed = client.status()["computed"]
    sampler = make_sampler(client, 300_000, 2, 0, seed=91, algorithm="philox24")
    next(iter(sampler))
    assert await_value(lambda: client.status()["computed"], computed + 2) == computed + 2
    sampler.set_epoch(1)
    next(iter(sampler))
    assert await_value(lambda: client.status()["computed"], computed + 3) == computed + 3


def test_no_room_for_the_next_epoch_warns(tmp_path, request):
    daemon = Daemon(tmp_path, "--backend", "cpu", "--host-memory", "64MiB").start()
    request.addfinalizer(daemon.stop)
    text = (
        r"^sampler: the next epoch, n 12000000, needs 45\.8 MiB, and 48\.0 MiB of 64\.0 MiB \(host_memory\) are in use; "
        r"the daemon may compute it only when it begins; .* larger host_memory$"
    )
    with shufd.connect(daemon.socket) as client:
        sampler = make_sampler(client, 12_000_000, 2, 0, algorithm="philox24")
        with pytest.warns(RuntimeWarning, match=text) as warned:
            first = next(iter(sampler))
        assert len(warned) == 1 and "drop" not in str(warned[0].message)
        assert first == client.permute(12_000_000, 3, algorithm="philox24")[0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            next(iter(make_sampler(client, 1_000_000, 2, 0, algorithm="philox24")))


def test_orders_need_no_daemon(monkeypatch):
    """primefold is computed in this process, also for a length of which no machine could hold an order."""
    monkeypatch.setenv("SHUFD_SOCKET", "/nonexistent/s")
    n = 10**13
    sampler = shufd.torch.DistributedSampler(range(n), 3, 1, seed=7)
    sampler.set_epoch(2)
    expected = shufd.local.permute(n, 7, 2, rank=1, world=3, count=20_000)
    assert list(itertools.islice(sampler, 20_000)) == expected.tolist()
    state = sampler.state_dict(used=20_000)
    resumed = shufd.torch.DistributedSampler(range(n), 5, 4, seed=7)
    resumed.load_state_dict(state)
    assert next(iter(resumed)) == shufd.local.index(60_004, n, 7, 2)


@pytest.mark.parametrize("kind", ["distributed", "random"])
def test_windows(kind):
    """A windowed order has its own place in a state, and resumes with other ranks."""
    windows = {"chunk": 100, "window": 7}
    order = shufd.local.permute(5003, 7, 1, **windows).tolist()
    if kind == "random":
        sampler = shufd.torch.RandomSampler(range(5003), seed=7, **windows)
        sampler.set_epoch(1)
        assert list(sampler) == order
        with pytest.raises(shufd.Invalid, match="^window: 7: expected None with replacement"):
            shufd.torch.RandomSampler(range(5003), True, seed=7, **windows)
        return
    sampler = shufd.torch.DistributedSampler(range(5003), 4, 1, seed=7, **windows)
    sampler.set_epoch(1)
    assert list(itertools.islice(sampler, 300)) == order[1 : 1200 : 4]
    state = json.loads(json.dumps(sampler.state_dict(used=300)))
    rest = []
    for rank in range(3):
        resumed = shufd.torch.DistributedSampler(range(5003), 3, rank, seed=7, **windows)
        resumed.load_state_dict(state)
        rest.append(list(resumed))
    assert [i for step in zip(*rest, strict=True) for i in step][: 5003 - 1200] == order[1200:]
    uniform = shufd.torch.DistributedSampler(range(5003), 3, 0, seed=7)
    with pytest.raises(shufd.Invalid, match="^state: chunk 100: expected None, as in this sampler"):
        uniform.load_state_dict(state)
    with pytest.raises(shufd.Invalid, match="^chunk: 3, window: None: expected both or none"):
        shufd.torch.DistributedSampler(range(5003), 3, 0, seed=7, chunk=3)


def test_copied_sampler_begins_again(client):
    """A loaded place is copied. That of an iteration is not, because it counts drawn indices, not used ones."""
    sampler = make_sampler(client, 100, 2, 1)
    whole = list(sampler)
    list(itertools.islice(sampler, 20))
    state = sampler.state_dict(used=20)
    for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert list(other) == whole
    sampler.load_state_dict(state)
    for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert list(other) == whole[20:]


def test_iterations_without_set_epoch_repeat_the_epoch(client):
    """As torch's sampler does: also in copies and through loaders. Only a loaded state is continued."""
    sampler = make_sampler(client, 100, 2, 1)
    whole = list(sampler)
    copies = [copy.copy(sampler), copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))]
    for other in (sampler, *copies):
        assert other.epoch == 0 and list(other) == whole and list(other) == whole
    loader = torch.utils.data.DataLoader(Numbers(100), sampler=pickle.loads(pickle.dumps(sampler)))
    for _ in range(2):
        assert [int(batch) for batch in loader] == whole
    resumed = make_sampler(client, 100, 2, 1)
    resumed.load_state_dict(sampler.state_dict(used=50))
    following = list(make_sampler(client, 100, 2, 1, epoch=1))
    assert list(resumed) == following and list(resumed) == following


def test_epoch_continues_after_killed_daemon(killable_daemon):
    with shufd.connect(killable_daemon.socket, reconnect=20) as client:
        sampler = make_sampler(client, 100_000, 2, 1)
        whole = list(make_sampler(client, 100_000, 2, 1))
        iterator = iter(sampler)
        head = list(itertools.islice(iterator, 10_000))
        killable_daemon.kill()
        assert head + list(iterator) == whole
        killable_daemon.start()
        sampler.set_epoch(1)
        assert sorted(sampler) != sorted(whole) and len(list(sampler)) == 50_000


@pytest.mark.parametrize("names", LAUNCHERS.values())
def test_rank_from_the_launcher(monkeypatch, names):
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(names[0], "2")
    monkeypatch.setenv(names[1], "5")
    sampler = shufd.torch.DistributedSampler(Numbers(10))
    assert (sampler.rank, sampler.num_replicas) == (2, 5)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    sampler = shufd.torch.DistributedSampler(Numbers(10))
    assert (sampler.rank, sampler.num_replicas) == (1, 3)
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(shufd.Invalid, match="RANK"):
        shufd.torch.DistributedSampler(Numbers(10))


def test_ranks_beside_slurm(monkeypatch):
    """A script of sbatch has variables of Slurm in its one process, and so have the processes of Open MPI in a step."""
    for name in itertools.chain(*LAUNCHERS.values()):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    sampler = shufd.torch.DistributedSampler(Numbers(10))
    assert (sampler.rank, sampler.num_replicas) == (0, 1)
    for name, value in zip(itertools.chain(LAUNCHERS["Open MPI"], ["SLURM_STEP_NUM_TASKS"]), "382", strict=True):
        monkeypatch.setenv(name, value)
    sampler = shufd.torch.DistributedSampler(Numbers(10))
    assert (sampler.rank, sampler.num_replicas) == (3, 8)


def test_one_rank_without_a_launcher(monkeypatch):
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    sampler = shufd.torch.DistributedSampler(Numbers(10))
    assert (sampler.rank, sampler.num_replicas) == (0, 1)
    assert shufd.torch.DistributedSampler(Numbers(10), 1).num_replicas == 1
    for arguments in ({"num_replicas": 4}, {"rank": 0}, {"rank": 3}):
        with pytest.raises(shufd.Invalid, match="expected both"):
            shufd.torch.DistributedSampler(Numbers(10), **arguments)


def test_ranks_must_match_launcher(monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert shufd.torch.DistributedSampler(Numbers(10), 4).rank == 2
    assert shufd.torch.DistributedSampler(Numbers(10), rank=1).num_replicas == 4
    with pytest.raises(shufd.Invalid, match="num_replicas: 8: expected 4"):
        shufd.torch.DistributedSampler(Numbers(10), 8)
    with pytest.raises(shufd.Invalid, match="rank: 4: expected 0 to num_replicas - 1"):
        shufd.torch.DistributedSampler(Numbers(10), rank=4)


def test_wrong_states_are_refused(daemon):
    sampler = shufd.torch.DistributedSampler(Numbers(1001), 4, 1, seed=7)
    with pytest.raises(shufd.Invalid, match="used: 1: expected 0 to 0"):
        sampler.state_dict(used=1)
    assert sampler.state_dict(used=0)["position"] == 0
    drawn = list(itertools.islice(sampler, 5))
    assert len(drawn) == 5 and sampler.state_dict(used=5)["position"] == 20
    for used in (-1, 6, 10**6, 1.5, "x"):
        with pytest.raises(shufd.Invalid, match="used: "):
            sampler.state_dict(used=used)
    state = sampler.state_dict(used=5)
    for name, value in (("position", -1), ("position", 1002), ("position", 3.5), ("position", "x"),
                        ("position", None), ("epoch", -1), ("epoch", 2**64), ("epoch", 0.5)):  # fmt: skip
        with pytest.raises(shufd.Invalid, match="state: "):
            sampler.load_state_dict({**state, name: value})
    for wrong in (None, [], "state", 5):
        for loads in (sampler, shufd.torch.BatchSampler(sampler, 2, False)):
            with pytest.raises(shufd.Invalid, match=r"state: .*: expected a dict of state_dict\(\)"):
                loads.load_state_dict(wrong)
    sampler.load_state_dict({**state, "position": 1001})
    sampler.set_epoch(state["epoch"])
    assert list(sampler) == []


@pytest.mark.parametrize("selects", [None, "set", "loaded"])
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_an_unused_iterator_takes_the_loaded_place(client, kind, batches, selects):
    """A job may make it before it loads its checkpoint, and set an epoch or load another place before."""
    ranks = (1, 0) if kind == "DistributedSampler" else ()
    sampler = getattr(shufd.torch, kind)(range(24), *ranks, seed=7, client=client)
    options = {"sampler": sampler, "batch_size": 4}
    if batches:
        options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 4, False)}
    loader = torch.utils.data.DataLoader(range(24), **options)
    state = sampler.state_dict()
    if selects == "set":
        sampler.set_epoch(0)
    elif selects == "loaded":
        sampler.load_state_dict({**state, "epoch": 1, "position": 4})
    iterator = iter(loader)
    sampler.load_state_dict({**state, "epoch": 3, "position": 16})
    assert [i for batch in iterator for i in batch.tolist()] == client.permute(24, 7, 3).tolist()[16:]
    sampler.set_epoch(4)
    assert [i for batch in loader for i in batch.tolist()] == client.permute(24, 7, 4).tolist()


def test_a_place_that_an_iterator_loads_is_its_own(client):
    sampler = make_sampler(client, 24, 1, 0)
    state = sampler.state_dict()
    sampler.set_epoch(1)
    one, two = iter(sampler), iter(sampler)
    one.load_state_dict({**state, "epoch": 3, "position": 16})
    assert [*one] == client.permute(24, 3, 3).tolist()[16:] and [*two] == client.permute(24, 3, 1).tolist()


def test_another_epoch_than_the_loaded_one_is_no_warning(client):
    """A job may go on to the next epoch."""
    sampler = make_sampler(client, 40, 1, 0)
    sampler.load_state_dict({**sampler.state_dict(), "epoch": 3, "position": 10})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sampler.set_epoch(4)
    assert list(sampler) == client.permute(40, 3, 4).tolist()


def test_an_iteration_keeps_its_place(client):
    """set_epoch() and another iteration may come before its first index."""
    first = shufd.torch.DistributedSampler(range(12), 1, 0, client=client)
    first.set_epoch(1)
    head = [*itertools.islice(first, 4)]
    sampler = shufd.torch.DistributedSampler(range(12), 1, 0, client=client)
    sampler.load_state_dict(first.state_dict(used=4))
    now = iter(sampler)
    sampler.set_epoch(2)
    later = iter(sampler)
    assert head + [*now] == client.permute(12, 0, 1).tolist() and [*later] == client.permute(12, 0, 2).tolist()


class Drawn(torch.utils.data.IterableDataset):
    """Draws the indices of a sampler."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        return iter(self.sampler)


def test_workers_need_a_seed(daemon, client):
    """Each would draw another order."""
    os.environ["SHUFD_SOCKET"] = daemon.socket
    loader = torch.utils.data.DataLoader(Drawn(shufd.torch.RandomSampler(range(20))), batch_size=4, num_workers=2)
    with pytest.raises(shufd.Invalid, match="seed: None: each worker of the DataLoader would draw another order"):
        list(loader)


def test_a_seed_that_a_sampler_keeps_does_not_depend_on_draws(client):
    orders = []
    for draws in (0, 3):
        torch.manual_seed(5)
        torch.rand(draws)
        sampler = shufd.torch.RandomSampler(range(50), client=client)
        sampler.set_epoch(1)
        orders.append(list(sampler))
    assert orders[0] == orders[1]


def rank_main(rank, world, port, socket, seed, out):
    """A rank of test_verify. Without a seed, it has no daemon."""
    socket, seed = (socket, seed) if seed is not None else ("/nonexistent/s", 7)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), SHUFD_SOCKET=socket)
    os.environ.update(RANK="6", WORLD_SIZE="7")  # wrong on purpose: torch.distributed overrides these variables
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    read = _ranks._await
    if rank == 2:  # the first rank, which has the store, could end before this one has read

        def read_late(store, key, owner):
            time.sleep(owner == 0)
            return read(store, key, owner)

        _ranks._await = read_late
    try:
        result = shufd.verify(n=1000, seed=seed)
    except shufd.Error as error:
        result = f"{type(error).__name__}: {error}"
    sampler = shufd.torch.DistributedSampler(Numbers(10))
    out.put((rank, result, sampler.rank, sampler.num_replicas))


@pytest.mark.parametrize("seeds", [pytest.param((7, 7, 7), marks=pytest.mark.long), (7, 7, 8),
                                   pytest.param((7, None, 7), marks=pytest.mark.long)])  # fmt: skip
def test_verify(daemon, seeds):
    import multiprocessing
    import socket

    if not torch.distributed.is_available():
        pytest.skip("this torch has no distributed package")
    port = free_port()
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    ranks = [
        context.Process(target=rank_main, args=(rank, 3, port, daemon.socket, seed, out))
        for rank, seed in enumerate(seeds)
    ]
    for process in ranks:
        process.start()
    results = sorted(out.get(timeout=120) for _ in ranks)
    for process in ranks:
        process.join(60)
        assert process.exitcode == 0
    assert [(r, w) for _, _, r, w in results] == [(0, 3), (1, 3), (2, 3)]
    texts = {result for _, result, _, _ in results}
    assert len(texts) == 1
    text = texts.pop()
    if None in seeds:
        assert text.startswith(f"NoDaemon: rank 1 on {socket.gethostname()}: ")
        assert "not started privately for one of 3 ranks" in text
    elif len(set(seeds)) == 1:
        assert text == shufd.default_client().fingerprint(1000, 7)
    else:
        assert text.startswith(f"Mismatch: rank 2 on {socket.gethostname()}: seed 8, expected 7 as on rank 0")


def test_sampler_made_before_the_ranks_is_refused(client, monkeypatch):
    """It would be the only rank, so each rank would draw all indices."""
    for name in itertools.chain(*LAUNCHERS.values()):
        monkeypatch.delenv(name, raising=False)
    early, given = (shufd.torch.DistributedSampler(Numbers(20), *ranks, client=client) for ranks in ((), (1, 0)))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(shufd.Invalid, match=r"^rank 0, num_replicas 1, taken before torch.distributed had its 2 ranks"):
        list(early)
    assert sorted(given) == list(range(20))


def test_sampler_made_before_a_group_of_one_rank_is_refused(client, monkeypatch, tmp_path):
    """Each task of a Slurm step is a job of its own, so the variables of the step tell the wrong ranks."""
    if not torch.distributed.is_available():
        pytest.skip("this torch has no distributed package")
    for name in itertools.chain(*LAUNCHERS.values()):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    early = shufd.torch.DistributedSampler(Numbers(20), client=client)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        with pytest.raises(shufd.Invalid, match=r"^rank 1, num_replicas 2, taken before torch.distributed had its 1 rank: "):
            list(early)
        assert len([*shufd.torch.DistributedSampler(Numbers(20), client=client)]) == 20
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("make", [
    lambda client: shufd.torch.DistributedSampler(Numbers(20), 1, 0, seed=7, client=client),
    lambda client: shufd.torch.RandomSampler(Numbers(20), seed=7, client=client),
], ids=["DistributedSampler", "RandomSampler"])  # fmt: skip
def test_iterators_keep_the_epoch_that_was_set(client, make):
    sampler, iterators = make(client), []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        iterators.append(iter(sampler))
    for epoch in (2, 0, 1):
        assert list(iterators[epoch]) == client.permute(20, 7, epoch).tolist()


def test_another_length_of_a_loaded_epoch_is_refused(client):
    data = list(range(10))
    sampler = shufd.torch.DistributedSampler(data, 2, 0, seed=7, client=client)
    list(itertools.islice(sampler, 2))
    state = sampler.state_dict(used=2)
    sampler = shufd.torch.DistributedSampler(data, 2, 0, seed=7, client=client)
    sampler.load_state_dict(state)
    data += [10, 11]
    with pytest.raises(shufd.Invalid, match="^dataset: length 12: expected 10, the length of the loaded state"):
        sampler.set_epoch(0)
    sampler.set_epoch(1)
    assert sampler.n == 12 and list(sampler) == client.permute(12, 7, 1).tolist()[::2]


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_records_that_come_after_an_ended_epoch(kind):
    """They are part of the next one, without set_epoch() too."""
    data = list(range(6))
    state = {**getattr(shufd.torch, kind)(data, seed=7).state_dict(), "position": 6}
    for batches in (False, True):
        del data[6:]
        sampler = getattr(shufd.torch, kind)(data, seed=7)
        sampler.load_state_dict(state)
        data += [6, 7, 8]
        assert sampler.epoch == 1
        drawn = sum(shufd.torch.BatchSampler(sampler, 2, False), []) if batches else list(sampler)
        assert drawn == shufd.local.permute(9, 7, 1).tolist() and len(sampler) == 9


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_an_older_iterator_keeps_the_length_of_its_epoch(kind):
    data = list(range(6))
    sampler = getattr(shufd.torch, kind)(data, seed=7)
    sampler.load_state_dict({**sampler.state_dict(), "position": 2})
    iterator = iter(sampler)
    data += [6, 7, 8]
    sampler.set_epoch(1)
    assert list(iterator) == shufd.local.permute(6, 7).tolist()[2:]
    assert list(sampler) == shufd.local.permute(9, 7, 1).tolist()


@pytest.mark.parametrize("name, value", [
    ("seed", 7.0), ("seed", 2**64), ("seed", "7"), ("epoch", -1), ("position", 51), ("n", 49),
])  # fmt: skip
def test_a_refused_state_changes_nothing(name, value):
    state = {**shufd.torch.RandomSampler(range(50), seed=7).state_dict(), "epoch": 3, "position": 4}
    sampler = shufd.torch.RandomSampler(range(50))
    with pytest.raises(shufd.Invalid, match=name):
        sampler.load_state_dict({**state, name: value})
    assert (sampler.epoch, sampler.remaining, sampler.seed, len(list(sampler))) == (0, 50, None, 50)


def test_a_refused_epoch_changes_nothing():
    """A sampler without a seed draws another one for the next epoch."""
    data = list(range(50))
    sampler = shufd.torch.RandomSampler(data)
    sampler.load_state_dict({**shufd.torch.RandomSampler(data, seed=7).state_dict(), "position": 4})
    data.append(50)
    with pytest.raises(shufd.Invalid, match="^dataset: length 51: expected 50"):
        sampler.set_epoch(0)
    assert list(sampler) == shufd.local.permute(50, 7).tolist()[4:]
    assert len(list(sampler)) == 51 and sampler.seed != 7


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("batches", [False, True])
def test_iterators_are_not_copied(way, batches):
    """A copy would share its place with the iterator."""
    sampler = shufd.torch.RandomSampler(range(10), seed=7)
    iterator = iter(shufd.torch.BatchSampler(sampler, 2, False) if batches else sampler)
    next(iterator)
    with pytest.raises(TypeError, match="^cannot copy or pickle an iterator of a sampler"):
        way(iterator)


@pytest.mark.parametrize("source", ["sampler", "torch.utils.data.DataLoader(range(100), batch_size=5, sampler=sampler)"])
def test_an_iterator_at_the_end_of_python_is_silent(source):
    text = f"""
import shufd.torch, torch
sampler = shufd.torch.DistributedSampler(range(100), 1, 0, seed=7)
iterator = iter({source})
next(iterator)
"""
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")


def test_several_passes_continue_after_a_lost_daemon(killable_daemon):
    n = 20000  # a pass is longer than a chunk, so the loss comes in the middle
    order = [shufd.local.permute(n, 7, epoch, algorithm="philox24").tolist() for epoch in range(3)]
    with shufd.connect(killable_daemon.socket, reconnect=0) as client:
        sampler = shufd.torch.RandomSampler(range(n), num_samples=3 * n, seed=7, client=client, algorithm="philox24")
        iterator = iter(sampler)
        seen = [*itertools.islice(iterator, 5)]
        killable_daemon.kill()
        with pytest.raises(shufd.DaemonLost):
            for index in iterator:
                seen.append(index)
        killable_daemon.start()
        seen += sampler
    assert seen == sum(order, [])
