# SPDX-License-Identifier: MIT
"""Samplers of torch and JAX that take an order of shufd.local."""

import copy
import itertools
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import skip_without

skip_without("torch")

import torch

import ranks
import shufd
import shufd.torch
from shufd.local import Mixture, Permutation, Weighted
from shufd.torch import BatchSampler, DistributedSampler, MixtureDataset, RandomSampler, WeightedRandomSampler
from test_orders import ORDERS

KINDS = {
    "uniform": Permutation(200, 7),
    "windowed": Permutation(200, 7, chunk=9, window=3),
    "subset": Permutation(200, 7).subset(np.arange(200) % 3 != 0),
    "windowed subset": Permutation(200, 7, chunk=9, window=3).subset(np.arange(50, 180)),
    "unequal chunks": Permutation(seed=7, chunk=[50, 30, 100, 20], window=2),
    "weighted": Weighted(np.arange(200), 7, length=500),
    "weighted sample": Weighted(np.arange(200), 7, length=150, replacement=False),
    "mixture": Mixture([150, 50], [1, 3], 7, length=500),
}
EACH = pytest.mark.parametrize("order", KINDS.values(), ids=KINDS.keys())


def sampler_of(order, world=1, rank=0, **options):
    return DistributedSampler(range(order.n), world, rank, order=order, **options)


# ---- Indices -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(ORDERS, st.integers(1, 7), st.booleans())
def test_ranks_divide_an_order(order, world, drop_last):
    samplers = [sampler_of(order, world, rank, drop_last=drop_last) for rank in range(world)]
    length = len(order) // world if drop_last else -(-len(order) // world)
    for sampler in samplers:
        assert len(sampler) == sampler.num_samples == length and sampler.total_size == world * length
        assert sampler.epoch == order.epoch and sampler.seed == order.seed
    got = [index for row in zip(*samplers) for index in row]
    assert got == np.resize(order[:], len(got)).tolist() and len(got) == world * length


@settings(deadline=None, max_examples=100)
@given(ORDERS, st.data())
def test_resumes_anywhere_with_another_world(order, data):
    """A job is interrupted several times, and continues with another number of ranks each time."""
    state, got = None, []
    worlds = [*data.draw(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 40)), max_size=4)), (data.draw(st.integers(1, 6)), None)]
    for world, steps in worlds:
        samplers = [sampler_of(order, world, rank) for rank in range(world)]
        for sampler in samplers:
            if state:
                sampler.load_state_dict(json.loads(json.dumps(state)))
                sampler.set_epoch(order.epoch)  # of an ended epoch nothing is left
        columns = [list(itertools.islice(sampler, steps)) for sampler in samplers]
        got += [index for row in zip(*columns) for index in row]
        states = [sampler.state_dict(used=len(column)) for sampler, column in zip(samplers, columns)]
        assert all(state == states[0] for state in states)
        state = states[0]
        assert state["position"] == min(len(got), len(order)) and state["epoch"] == order.epoch
    assert got[: len(order)] == order[:].tolist()


@EACH
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("through_batches", [False, True])
def test_loaders(order, workers, through_batches):
    dataset = range(order.n)
    if isinstance(order, Mixture):
        dataset = torch.utils.data.ConcatDataset([range(150), range(150, 200)])
    sampler = DistributedSampler(dataset, 2, 1, order=order)
    options = {"batch_sampler": BatchSampler(sampler, 8, False)} if through_batches else {"batch_size": 8, "sampler": sampler}
    loader = torch.utils.data.DataLoader(dataset, num_workers=workers, persistent_workers=workers > 0, **options)
    for epoch in (0,) if isinstance(order, Mixture) else (0, 1):
        sampler.set_epoch(epoch)
        expected = np.resize(order.with_epoch(epoch)[:], 2 * len(sampler))[1::2]
        assert torch.cat(list(loader)).tolist() == expected.tolist() and len(loader) == -(-len(sampler) // 8)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_that_have_orders(start):
    for order in (KINDS["windowed subset"], KINDS["weighted sample"]):
        dataset = torch.utils.data.Subset(range(order.n), order)
        loader = torch.utils.data.DataLoader(dataset, batch_size=50, num_workers=1, multiprocessing_context=start)
        assert torch.cat(list(loader)).tolist() == order[:].tolist()


@EACH
def test_epochs(order):
    sampler = sampler_of(order.with_epoch(0))
    assert list(sampler) == list(sampler) == order[:].tolist() and sampler.epoch == 0  # as without order=
    if isinstance(order, Mixture):
        with pytest.raises(shufd.Invalid, match="^epoch: 1: expected 0, because a mixture is one run"):
            sampler.set_epoch(1)
        assert list(sampler) == order[:].tolist()
        return
    sampler.set_epoch(5)
    assert list(sampler) == order.with_epoch(5)[:].tolist() and sampler.epoch == 5
    later = sampler_of(order.with_epoch(3))
    assert later.epoch == 3 and list(later) == order.with_epoch(3)[:].tolist() and later.order == order.with_epoch(3)
    with pytest.raises(shufd.Invalid, match="^epoch: -1: "):
        sampler.set_epoch(-1)


def test_the_end_of_a_mixture():
    """The state after the last position says that nothing is left, until set_epoch(0)."""
    order = KINDS["mixture"]
    sampler = sampler_of(order)
    list(sampler)
    state = sampler.state_dict(used=500)
    later = sampler_of(order)
    later.load_state_dict(state)
    with pytest.raises(shufd.Invalid, match="^epoch: 1: expected 0, because a mixture is one run"):
        list(later)
    later.load_state_dict(state)
    later.set_epoch(0)
    assert list(later) == []


@EACH
def test_copies(order):
    sampler = sampler_of(order, 2, 1)
    for other in (pickle.loads(pickle.dumps(sampler)), copy.copy(sampler), copy.deepcopy(sampler)):
        assert other.order == order and other.state_dict() == sampler.state_dict() and list(other) == list(sampler_of(order, 2, 1))
    batches = pickle.loads(pickle.dumps(BatchSampler(sampler, 7, True)))
    assert sum(batches, []) == list(sampler_of(order, 2, 1))[: len(sampler) // 7 * 7]


def test_large_orders():
    for order in (Permutation(2**59, 7), Weighted([1, 0, 3], 7, length=2**62 - 1), Permutation(2**59, 7, chunk=2**40, window=99)):
        sampler = DistributedSampler(range(order.n), 1000, 5, order=order)
        for position in (2**41, len(order) - 3000):
            sampler.load_state_dict({**sampler_of(order).state_dict(), "position": position})
            assert list(itertools.islice(sampler, 3)) == order[position + 5 : position + 2006 : 1000].tolist()


# ---- States --------------------------------------------------------------------------------------


def test_the_sampler_of_a_permutation_is_that_of_its_arguments():
    for windows in ({}, {"chunk": 9, "window": 3}):
        plain = DistributedSampler(range(200), 2, 1, seed=7, **windows)
        plain.set_epoch(3)
        ordered = sampler_of(Permutation(200, 7, 3, **windows), 2, 1)
        assert ordered.state_dict() == plain.state_dict() and list(ordered) == list(plain)
        ordered.load_state_dict(plain.state_dict(used=5))
        assert list(ordered) == list(plain)[5:]


def test_states_of_other_orders_are_refused_by_name():
    uniform, mask = Permutation(200, 7), np.arange(200) % 3 != 0
    own, whole = "as in this sampler; make the sampler with the", "a DistributedSampler, as this sampler is"
    for order, other, message in (
        (uniform, Permutation(200, 8), f"^state: seed 8: expected 7, {own} seed of the state"),
        (uniform, Permutation(201, 7), "^state: n 201: expected 200, the length of the dataset"),
        (uniform, Permutation(200, 7, chunk=9, window=3), f"^state: chunk 9: expected None, {own} chunk of the state"),
        (uniform, Permutation(200, 7, chunk=[150, 50], window=3), f"^state: chunk '0x.*': expected None, {own} chunk of the state"),
        (uniform, uniform.subset(mask), f"^state: of a sampler of a subset: expected one of {whole}"),
        (uniform, uniform.subset(np.ones(200, bool)), f"^state: of a sampler of a subset: expected one of {whole}"),
        (uniform.subset(mask), uniform, "^state: of a DistributedSampler: expected one of a sampler of a subset"),
        (uniform.subset(mask), uniform.subset(~mask), "^state: length 67: expected 133, as in this sampler"),
        (uniform.subset([1, 2]), uniform.subset([1, 3]), f"^state: subset '0x[0-9a-f]{{16}}': expected '0x.*', {own} subset"),
        (Weighted([1, 2], 7, length=9), Weighted([2, 1], 7, length=9), f"^state: weights '0x.*': expected '0x.*', {own} weights"),
        (Weighted([1, 2], 7, length=9), Weighted([1, 2], 7, length=8), f"^state: length 8: expected 9, {own} length"),
        (Weighted([1, 2], 7, length=2), Weighted([1, 2], 7, replacement=False), "^state: replacement False: expected True"),
        (uniform, Weighted(np.ones(200), 7, length=200), f"^state: of a WeightedRandomSampler: expected one of {whole}"),
        (uniform, Mixture([150, 50], [1, 1], 7, length=200), f"^state: of a sampler of a mixture: expected one of {whole}"),
        (Mixture([5], [1], 7, length=9), Mixture([5], [1], 7, length=8), f"^state: length 8: expected 9, {own} length"),
        (Mixture([5, 5], [1, 1], 7, length=9), Mixture([5, 5], [1, 2], 7, length=9), f"^state: mixture '0x.*': expected '0x.*', {own}"),
        (Mixture([6, 4], [1, 1], 7, length=9), Mixture([5, 5], [1, 1], 7, length=9), "^state: mixture"),
        (Mixture([5], [1], 7, length=9, block=9), Mixture([5], [1], 7, length=9), "^state: mixture"),
        (Mixture([5], [1], 7, length=9), Mixture([5], [1], 8, length=9), "^state: seed 8: expected 7"),
    ):  # fmt: skip
        sampler, state = sampler_of(order), sampler_of(other).state_dict()
        with pytest.raises(shufd.Invalid, match=message):
            sampler.load_state_dict(state)
        assert sampler.state_dict() == sampler_of(order).state_dict()
        sampler.load_state_dict({**sampler.state_dict(), "position": len(order)})
        with pytest.raises(shufd.Invalid, match=f"state: position {len(order) + 1}: expected 0 to {len(order)}"):
            sampler.load_state_dict({**sampler.state_dict(), "position": len(order) + 1})
    with pytest.raises(shufd.Invalid, match="^state: of a sampler of a subset: expected one of a RandomSampler"):
        RandomSampler(range(200), seed=7).load_state_dict(sampler_of(uniform.subset(mask)).state_dict())


@pytest.mark.parametrize("replacement", [True, False])
def test_weighted_samplers_and_weighted_orders_have_the_same_states(replacement):
    weights = np.arange(1.0, 20)
    sampler = WeightedRandomSampler(weights, 15, replacement, seed=7, num_replicas=2, rank=1)
    order = Weighted(weights, 7, length=15, replacement=replacement)
    assert sampler.order == order and np.array_equal(sampler.weights, weights) and sampler.replacement is replacement
    first = list(itertools.islice(sampler, 3))
    ordered = sampler_of(order, 3, 0)
    ordered.load_state_dict(sampler.state_dict(used=3))
    assert first == order[1:6:2].tolist() and list(ordered) == order[6::3].tolist()


# ---- Refusals ------------------------------------------------------------------------------------


def wrong(message, dataset=range(200), **options):
    return pytest.param(dataset, options, message, id=message)


@pytest.mark.parametrize("dataset, options, message", [
    wrong("dataset: length 199: expected 200, the n of the order", range(199)),
    wrong("dataset: length 0: expected 200, the n of the order", []),
    wrong("dataset: 5: expected a dataset with a length", 5),
    wrong(r"order: \[0, 1, 2\]: expected an order of shufd.local, such as Permutation\(n, seed\)", order=[0, 1, 2]),
    wrong("order: ndarray of shape .*: expected an order of shufd.local", order=np.arange(200)),
    wrong("order: <class .*: expected an order of shufd.local", order=Permutation),
    wrong("order: False: expected an order of shufd.local", order=False),
    wrong(r"order: shufd.local.Weighted\(.*: it has no end; expected one with length=", range(2), order=Weighted([1, 2], 7)),
    wrong(r"order: shufd.local.Mixture\(.*: it has no end; expected one with length=", range(9), order=Mixture([9], [1], 7)),
    wrong("shuffle: False: expected no shuffle beside order=, which decides it", shuffle=False),
    wrong("seed: 8: expected no seed beside order=", seed=8),
    wrong("algorithm: 'lcg': expected no algorithm beside order=", algorithm="lcg"),
    wrong("chunk: 5: expected no chunk beside order=", chunk=5, window=2),
    wrong("client: .*: expected no client beside order=", client=type("Client", (), {"permute": print})()),
])  # fmt: skip
def test_wrong_arguments(dataset, options, message):
    with pytest.raises(shufd.Invalid, match=f"^{message}"):
        DistributedSampler(dataset, 1, 0, **{"order": Permutation(200, 7), **options})


@pytest.mark.parametrize("name, value", [("seed", 8), ("shuffle", False), ("chunk", 5), ("window", 5), ("algorithm", "lcg")])
def test_attributes_that_the_order_decides(name, value):
    sampler = sampler_of(Permutation(200, 7))
    setattr(sampler, name, value)
    with pytest.raises(shufd.Invalid, match=f"^{name}: {value!r}: expected no {name} beside order=, which decides it"):
        next(iter(sampler))
    with pytest.raises(AttributeError):
        sampler.order = Permutation(200, 7)


def test_a_mixture_that_would_be_mixed_twice():
    mixture = Mixture([3, 2], [1, 1], 7, epochs=1)  # of 5 positions and 5 records
    dataset = MixtureDataset([range(3), range(2)], mixture)
    with pytest.raises(shufd.Invalid, match="order: a Mixture: expected none with a MixtureDataset"):
        DistributedSampler(dataset, 1, 0, order=mixture)
    assert sorted(dataset[i] for i in DistributedSampler(dataset, 1, 0, order=Permutation(5, 7))) == [0, 0, 1, 1, 2]


def test_a_dataset_that_grows():
    dataset = [0] * 10
    sampler = DistributedSampler(dataset, 1, 0, order=Permutation(10, 7))
    dataset.append(0)
    for _ in range(2):
        with pytest.raises(shufd.Invalid, match="^dataset: length 11: expected 10, the n of the order"):
            next(iter(sampler))
    del dataset[-1]
    assert sorted(sampler) == list(range(10))


def test_text():
    assert repr(sampler_of(Permutation(10, 7).subset([1, 5]), 2, 1)) == (
        "shufd.torch.DistributedSampler(n=10, rank=1, num_replicas=2, order=shufd.local.Permutation(n=10, seed=7, "
        "epoch=0).subset([1, 5]), epoch=0, drop_last=False)"
    )


class Reversed(Permutation):
    """A subclass with another order names it."""

    algorithm = "reversed"

    def range(self, offset, count, stride=1, *, out=None):
        return self.n - 1 - super().range(offset, count, stride, out=out)


def test_an_order_of_a_subclass():
    order = Reversed(20, 7, 3)
    assert list(sampler_of(order)) == [19 - i for i in Permutation(20, 7, 3)]
    for own, other in ((order, Permutation(20, 7, 3)), (Permutation(20, 7, 3), order)):
        with pytest.raises(shufd.Invalid, match="^state: algorithm '"):
            sampler_of(own).load_state_dict(sampler_of(other).state_dict())


# ---- Ranks ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def job():
    job = ranks.Job(2)
    yield job
    job.close()


@EACH
def test_two_ranks(job, order):
    results = job.call("read_order", [(order, 20)] * 2)
    assert [i for row in zip(results[0][0], results[1][0]) for i in row] == order[:40].tolist()
    (state, other) = (result[1] for result in results)
    assert state == other and state["position"] == 40
    results = job.call("read_order", [(order, 10**6, state)] * 2)
    rest = [i for row in zip(results[0][0], results[1][0]) for i in row]
    assert rest[: len(order) - 40] == order[40:].tolist()


def test_ranks_with_other_orders_are_told(job):
    order, weights = Permutation(6, 7), np.ones(6)
    for one, other, text in (
        (order.subset([1, 2, 3]), order.subset([1, 2, 4]), "subset 0x"), (order, order.subset([1, 2, 3]), "subset "),
        (order, order.subset(np.ones(6, bool)), "subset "), (order, Weighted(weights, 7, length=3), "algorithm "),
        (Weighted(weights, 7, length=5), Weighted(weights, 7, length=6), "length "),
        (Mixture([6], [1], 7, length=5), Mixture([6], [1], 7, length=6), "length "),
    ):  # fmt: skip
        results = job.call_each("read_order", [(one, 1), (other, 1)])
        failed = [result for result in results if isinstance(result, ranks.Failed)]
        assert [error.kind for error in failed] == ["Mismatch"] and text in failed[0].text


def test_a_rank_that_differs_fails_each_time(job):
    results = job.call("iterate_twice", [(7,), (8,)])
    assert sorted(results, key=str) == [["Mismatch", "Mismatch"], [None, None]]


# ---- Chunks of unequal sizes ---------------------------------------------------------------------

LISTED = [30, 1, 500, 77, 8, 8, 120, 256, 3]


def sampler_of_list(sizes=LISTED, world=1, rank=0, window=3, **options):
    return DistributedSampler(range(sum(LISTED)), world, rank, seed=7, chunk=sizes, window=window, **options)


@pytest.mark.parametrize("world", [1, 2, 7])
def test_ranks_share_unequal_chunks(world):
    n = sum(LISTED)
    for epoch in (0, 5):
        order = Permutation(seed=7, epoch=epoch, chunk=LISTED, window=3).range(0, -(-n // world) * world)
        for rank in range(world):
            sampler = sampler_of_list(np.array(LISTED, np.int32), world, rank)
            sampler.set_epoch(epoch)
            assert [*sampler] == order[rank::world].tolist()


@settings(deadline=None, max_examples=40)
@given(used=st.integers(0, 249), worlds=st.tuples(st.integers(1, 4), st.integers(1, 4)), epoch=st.integers(0, 2**64 - 1))
def test_unequal_chunks_resume_with_another_world(used, worlds, epoch):
    """The last index of a rank of four is number 249: the state after it is that of the next epoch."""
    n, seen = sum(LISTED), []
    for rank in range(worlds[0]):
        sampler = sampler_of_list(LISTED, worlds[0], rank, drop_last=True)
        sampler.set_epoch(epoch)
        seen += itertools.islice(sampler, used)
        state = pickle.loads(pickle.dumps(sampler.state_dict(used=used)))
    for rank in range(worlds[1]):
        sampler = pickle.loads(pickle.dumps(sampler_of_list(tuple(LISTED), worlds[1], rank, drop_last=True)))
        sampler.load_state_dict(state)
        seen += [*sampler]
    left = n - used * worlds[0]
    assert len(seen) == len({*seen}) == n - left % worlds[1] and {*seen} <= {*range(n)}


def test_a_state_names_the_sizes():
    state = sampler_of_list().state_dict()
    assert state["chunk"] == shufd.local.fingerprint(np.array(LISTED, np.uint64)) and state["window"] == 3
    sampler_of_list(np.array(LISTED)).load_state_dict(state)
    swapped = [LISTED[1], LISTED[0], *LISTED[2:]]
    for other in (sampler_of_list(swapped), sampler_of_list(100), sampler_of_list(None, window=None)):
        with pytest.raises(shufd.Invalid, match="^state: chunk '0x[0-9a-f]{16}': expected"):
            other.load_state_dict(state)
    with pytest.raises(shufd.Invalid, match="^state: window 3: expected 4"):
        sampler_of_list(window=4).load_state_dict(state)


def test_random_sampler_of_unequal_chunks():
    n = sum(LISTED)
    sampler = RandomSampler(range(n), num_samples=n + 10, seed=7, chunk=LISTED, window=3)
    first, second = (Permutation(seed=7, epoch=e, chunk=LISTED, window=3).range(0, n).tolist() for e in (0, 1))
    assert [*sampler] == first + second[:10]
    with pytest.raises(shufd.Invalid, match="window: 3: expected None with replacement"):
        RandomSampler(range(n), True, seed=7, chunk=LISTED, window=3)


def test_loader_with_workers():
    n = sum(LISTED)
    loader = torch.utils.data.DataLoader(range(n), 64, sampler=sampler_of_list(), num_workers=2)
    expected = Permutation(seed=7, chunk=LISTED, window=3).range(0, n).tolist()
    assert [int(i) for batch in loader for i in batch] == expected


def test_the_data_set_has_the_records_of_the_chunks():
    with pytest.raises(shufd.Invalid, match=f"^dataset: length 5: expected {sum(LISTED)}, the sum of the sizes of its chunks"):
        DistributedSampler(range(5), 1, 0, seed=7, chunk=LISTED, window=3)
    with pytest.raises(shufd.Invalid, match="^algorithm philox24: expected primefold with a window"):
        sampler_of_list(algorithm="philox24")
    with pytest.raises(shufd.Invalid, match="^window: None: expected at least 1"):
        sampler_of_list(window=None)
    data = [*range(sum(LISTED))]
    sampler = DistributedSampler(data, 1, 0, seed=7, chunk=LISTED, window=3)
    data.append(0)
    with pytest.raises(shufd.Invalid, match=f"^n: {len(data)}: expected {sum(LISTED)}, the sum of the sizes"):
        next(iter(sampler))


# ---- Grain ---------------------------------------------------------------------------------------


@EACH
def test_grain_reads_any_order(order):
    grain = pytest.importorskip("grain")
    import shufd.jax

    epochs = range(1) if isinstance(order, Mixture) else range(3, 5)
    shards = grain.sharding.ShardOptions(1, 3, True)
    sampler = shufd.jax.IndexSampler(order.n, shards, num_epochs=len(epochs), order=order.with_epoch(epochs[0]), seed=5)
    size = len(order) // 3 * 3
    expected = [i for epoch in epochs for i in order.with_epoch(epoch)[:size].tolist()]
    assert len(sampler) == len(expected) and [sampler[i].record_key for i in range(len(sampler))] == expected
    assert [pickle.loads(pickle.dumps(sampler))[i].record_key for i in (0, 5)] == [expected[0], expected[5]]
    loader = grain.DataLoader(data_source=range(order.n), sampler=sampler, shard_options=shards)
    assert list(loader) == expected[1::3]


def test_grain_tells_orders_apart():
    grain = pytest.importorskip("grain")
    import shufd.jax

    texts = [
        repr(shufd.jax.IndexSampler(200, order=order))
        for order in [*KINDS.values(), KINDS["subset"].order.subset(np.arange(200) % 3 == 0), Weighted(np.ones(200), 7, length=500)]
    ]
    assert len({*texts}) == len(texts)
    for options, message in (
        ({"num_records": 199}, "num_records: length 199: expected 200, the n of the order"), ({"order": [1]}, "order: "),
        ({"shuffle": True, "seed": 7}, "shuffle: True: expected no shuffle beside order="), ({"algorithm": "lcg"}, "algorithm: 'lcg'"),
        ({"chunk": 5}, "chunk: 5"), ({"order": Weighted(np.ones(200), 7)}, "no end"),
    ):  # fmt: skip
        with pytest.raises(shufd.Invalid, match=f"^{message}|no end"):
            shufd.jax.IndexSampler(**{"num_records": 200, "order": Permutation(200, 7), **options})
    with pytest.raises(shufd.Invalid, match="^order: length 2: expected 3 or more, a record for each shard"):
        shufd.jax.IndexSampler(200, grain.sharding.ShardOptions(1, 3, True), order=Permutation(200, 7).subset([1, 2]))
    mixture = shufd.jax.IndexSampler(200, order=KINDS["mixture"])
    assert mixture[499].record_key == KINDS["mixture"][499]
    with pytest.raises(shufd.Invalid, match="^epoch: 1: expected 0, because a mixture is one run"):
        mixture[500]
