# SPDX-License-Identifier: MIT
"""The indices that the samplers of shufd.torch draw, against torch's own samplers; their arguments and ranks."""

import copy
import itertools
import json
import os
import pickle
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
from conftest import LAUNCHERS, Daemon, await_value
from ranks import free_port
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


def test_many_samples_of_a_short_dataset(client):
    draws = list(shufd.torch.RandomSampler(range(8), num_samples=10_000, seed=3, client=client))
    assert draws[-8:] == client.permute(8, 3, 1249).tolist() and np.bincount(draws).tolist() == [1250] * 8


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


def test_subclasses_of_batches_of_other_samplers():
    class Plain(shufd.torch.BatchSampler):
        pass

    batches = Plain(range(10), 3, False)
    assert type(batches) is Plain and not hasattr(batches, "state_dict")
    again = type(Plain(make_sampler(None, 10, 1, 0), 3, False))(range(10), 3, False)
    assert type(again) is Plain and list(again) == list(batches)


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
    early_in_worker = pickle.loads(pickle.dumps(early))  # not forked, so it does not know the ranks
    with pytest.raises(shufd.Invalid, match=r"^rank 0, num_replicas 1, taken before torch.distributed had its 2 ranks"):
        list(early)
    assert sorted(given) == list(range(20))
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    with pytest.raises(shufd.Invalid, match=r"^rank 0, num_replicas 1, taken before torch.distributed had its 2 ranks"):
        list(early_in_worker)


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


@pytest.mark.parametrize("kind", ["distributed", "random", "passes"])
def test_sampler_keeps_its_place_when_the_daemon_is_lost(killable_daemon, kind):
    with shufd.connect(killable_daemon.socket, reconnect=0.1) as client:

        def make():
            if kind == "distributed":
                return shufd.torch.DistributedSampler(range(1000), 2, 1, seed=3, client=client, algorithm="philox24")
            return shufd.torch.RandomSampler(range(1000), num_samples=2500 if kind == "passes" else 1000, seed=3,
                                             client=client, algorithm="philox24")  # fmt: skip

        sampler = make()
        sampler.set_epoch(4)
        whole = list(sampler)
        sampler = make()
        sampler.set_epoch(4)
        list(itertools.islice(sampler, 100))
        state = sampler.state_dict(used=100)
        resumed = make()
        resumed.load_state_dict(state)
        killable_daemon.kill()
        for _ in range(2):
            with pytest.raises(shufd.DaemonLost):
                list(resumed)
            assert resumed.state_dict() == state and resumed.epoch == 4
        killable_daemon.start()
        assert list(resumed) == whole[100:]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_global_shuffle_needs_the_process_group_of_a_launcher(client, monkeypatch, launcher):
    rank, world = LAUNCHERS[launcher]
    rows = torch.arange(10)
    alone = shufd.torch.global_shuffle(rows, seed=7, client=client)
    monkeypatch.setenv(rank, "0")
    monkeypatch.setenv(world, "1")
    assert shufd.torch.global_shuffle(rows, seed=7, client=client).equal(alone)
    monkeypatch.setenv(world, "4")
    text = rf"^{world} is 4, but torch.distributed is not initialised: call torch.distributed.init_process_group\(\) first$"
    with pytest.raises(shufd.Invalid, match=text):
        shufd.torch.global_shuffle(rows, seed=7, client=client)
    with pytest.raises(shufd.Invalid, match=text):
        shufd.verify(client=client)


def test_sampler_of_several_ranks_advises_a_daemon_for_all(monkeypatch):
    """Each rank would start a daemon of its own by serve(). A launcher has started none, so one process may be all."""
    monkeypatch.setenv("SHUFD_SOCKET", "/nonexistent/s")
    sampler = shufd.torch.DistributedSampler(range(10), 4, 1, algorithm="philox24")
    with pytest.raises(shufd.NoDaemon) as failed:
        list(sampler)
    assert "start a daemon with `shufd &` on each machine before the ranks" in str(failed.value)
    end = "; not started privately for one of 4 ranks; if one process has all ranks, call shufd.serve()"
    assert str(failed.value).endswith(end)


def test_dir_has_only_public_names():
    assert {name for name in dir(shufd.torch) if not name.startswith("__")} == set(shufd.torch.__all__)
