# SPDX-License-Identifier: MIT
"""shufd.local.Weighted against the reference of the specification, and shufd.torch.WeightedRandomSampler."""

import copy
import fractions
import importlib.util
import pickle
import secrets
import signal
import subprocess
import sys

import golden
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shufd
from conftest import run_threads
from shufd.local import Weighted, weighted_sample

spec = importlib.util.spec_from_file_location("make", golden.VECTORS / "make.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

SEEDS = st.integers(0, 2**64 - 1)
NUMBERS = {
    np.float64: st.floats(0, allow_infinity=False, allow_nan=False),
    np.float32: st.floats(0, width=32, allow_infinity=False, allow_nan=False),
    np.uint64: st.integers(0, 2**64 - 1),
    np.int32: st.integers(0, 2**31 - 1),
    np.float16: st.floats(0, width=16, allow_infinity=False, allow_nan=False),
    np.bool_: st.booleans(),
}


@st.composite
def weight_arrays(draw):
    kind = draw(st.sampled_from(list(NUMBERS)))
    number = draw(st.sampled_from([NUMBERS[kind], st.integers(0, 1), NUMBERS[kind] if kind == np.bool_ else st.integers(0, 9)]))
    return np.array(draw(st.lists(number, min_size=1, max_size=40).filter(any)), kind)


def law_of(weights):
    """The table of the reference, and the probability of each index."""
    columns = reference.weight_columns(reference.rounded_weights([fractions.Fraction(x) for x in weights.tolist()]))
    law, full = [0] * len(columns), 2**63 // len(columns)
    for i, (threshold, alias) in enumerate(columns):
        law[i] += fractions.Fraction(threshold, 2**63)
        law[alias] += fractions.Fraction(full - threshold, 2**63)
    return columns, law


# ---- Weighted ------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(weight_arrays(), SEEDS, SEEDS, st.integers(0, 2**62 - 40))
def test_draws_of_the_reference(weights, seed, epoch, offset):
    columns, law = law_of(weights)
    exact = [fractions.Fraction(x) for x in weights.tolist()]
    for weight, probability in zip(exact + [0] * (len(law) - len(exact)), law):
        assert abs(probability - weight / sum(exact)) < fractions.Fraction(1, 2**60)
        assert weight or not probability
    draws = Weighted(weights, seed, epoch).range(offset, 40)
    assert draws.dtype == np.int64
    assert draws.tolist() == [reference.weighted_draw(columns, seed, epoch, offset + i) for i in range(40)]


@settings(deadline=None, max_examples=150)
@given(weight_arrays(), SEEDS, st.data())
def test_sequence(weights, seed, data):
    weighted = Weighted(weights, seed, 3)
    values = weighted[:1001]
    bound = st.integers(0, 1000)
    cut = slice(data.draw(bound), data.draw(bound), data.draw(st.sampled_from([None, 1, 2, 7, -1, -3])))
    assert np.array_equal(weighted[cut], values[cut]) and weighted[cut].dtype == np.int64
    at = data.draw(bound)
    assert weighted[at] == values[at] and isinstance(weighted[at], int)
    assert np.array_equal(weighted.range(0, 1001, threads=2), values)
    for other in (pickle.loads(pickle.dumps(weighted)), copy.copy(weighted), copy.deepcopy(weighted)):
        assert np.array_equal(other[:1001], values)
    assert pickle.loads(pickle.dumps(weighted)) == weighted and hash(copy.copy(weighted)) == hash(weighted)
    following = weighted.with_epoch(4)
    assert following == Weighted(weights, seed, 4) != weighted and weighted.epoch == 3
    assert np.array_equal(following[:50], Weighted(weights, seed, 4)[:50])


def test_chi_squared():
    seed, weights = secrets.randbits(64), np.random.default_rng(1).random(5000) + 0.01
    print("seed", seed)
    seen = np.bincount(Weighted(weights, seed).range(0, 5_000_000), minlength=5000)
    expected = 5_000_000 * weights / weights.sum()
    chi = ((seen - expected) ** 2 / expected).sum()
    assert abs(chi - 4999) < 6 * (2 * 4999) ** 0.5


def test_classes():
    """The documented line for a probability of each class."""
    labels, p = np.repeat([0, 1, 2], [900, 90, 10]), np.array([0.2, 0.3, 0.5])
    drawn = labels[Weighted((p / np.bincount(labels))[labels], seed=7).range(0, 100_000)]
    assert np.abs(np.bincount(drawn) / 100_000 - p).max() < 0.01


def test_is_immutable():
    given = np.array([1.0, 2.0])
    weighted = Weighted(given, 7)
    before = weighted[:100]
    given[:] = 5, 0
    assert np.array_equal(weighted[:100], before) and weighted.weights.tolist() == [1, 2]
    with pytest.raises(ValueError):
        weighted.weights[0] = 3
    whole = np.array([1, 2], np.uint64)
    assert not np.may_share_memory(Weighted(whole, 7).weights, whole)


def test_array_layouts():
    expected = Weighted([1.0, 2.0, 3.0], 7)[:100]
    for weights in (np.array([3.0, 2.0, 1.0])[::-1], np.array([1, 9, 2, 9, 3])[::2], np.array([1, 2, 3], ">f8"), np.array([1, 2, 3], ">u4"), (1, 2, 3)):
        assert np.array_equal(Weighted(weights, 7)[:100], expected)


@settings(deadline=None, max_examples=60)
@given(weight_arrays(), SEEDS, SEEDS, st.data())
def test_samples_of_the_reference(weights, seed, epoch, data):
    order = reference.weighted_sample([fractions.Fraction(x) for x in weights.tolist()], seed, epoch)
    count = data.draw(st.integers(0, len(order)))
    sample = weighted_sample(weights, count, seed, epoch)
    assert sample.dtype == np.int64 and sample.tolist() == order[:count]
    with pytest.raises(shufd.Invalid, match="sample of"):
        weighted_sample(weights, len(order) + 1, seed, epoch)


def test_large_sample():
    weights = np.arange(300_000) % 7
    whole = weighted_sample(weights, np.count_nonzero(weights), 7)
    assert np.array_equal(np.sort(whole), np.flatnonzero(weights))
    for count in (1, 1000, 100_000):
        assert np.array_equal(weighted_sample(weights, count, 7), whole[:count])
    assert not np.array_equal(weighted_sample(weights, 1000, 7, 1), whole[:1000])


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1.0, float("nan")], r"weights\[1\] nan"),
        ([float("inf"), 1.0], r"weights\[0\] inf"),
        ([1.0, -1.0], r"weights\[1\] -1"),
        (np.array([1.0, -1.0], np.float32), r"weights\[1\] -1"),
        ([3, -1], "-1"),
        ([0.0, 0.0], "all are 0"),
        ([0], "all are 0"),
        ([False], "all are 0"),
        ([], "1 to 2\\^32"),
        (3.0, "one dimension"),
        ([[1.0, 2.0]], "one dimension"),
        (np.broadcast_to(np.float32(1), 2**32 + 1), "1 to 2\\^32"),
        (["a"], "type"),
        ([1 + 2j], "type"),
        ([None, object()], "type"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), "mask"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(shufd.Invalid, match=message):
        Weighted(weights, 7)
    with pytest.raises(shufd.Invalid, match=message):
        weighted_sample(weights, 1, 7)


def test_bad_arguments():
    weighted = Weighted([1, 2], 7)
    for call in (
        lambda: Weighted([1], 2**64), lambda: Weighted([1], 1, -1), lambda: Weighted([1], 1, 1.5), lambda: weighted.range(2**62, 1),
        lambda: weighted.range(2**62 - 3, 4), lambda: weighted.range(0, 2, 0), lambda: weighted.range(-1, 2),
        lambda: weighted.range(0, 2, threads=-1), lambda: weighted.with_epoch(-1),
    ):  # fmt: skip
        with pytest.raises(shufd.Invalid):
            call()
    for place in (2**62, -(2**62) - 1):
        with pytest.raises(IndexError):
            weighted[place]
    with pytest.raises(TypeError):
        len(weighted)
    with pytest.raises(shufd.OutOfMemory):
        weighted[: 2**61]


def test_repr():
    assert repr(Weighted([1, 2], 7)) == "shufd.local.Weighted(weights=[1, 2], seed=7, epoch=0)"
    assert repr(Weighted(np.ones(1000), 7, 3)) == "shufd.local.Weighted(weights=ndarray of shape (1000,), seed=7, epoch=3)"


def test_threads_share_it():
    weighted = Weighted(np.arange(100_000), 7)
    expected = weighted[:200_000]

    def read(_):
        assert np.array_equal(weighted.range(0, 200_000, threads=2), expected)

    run_threads(read, 8)


def test_ctrl_c_ends_a_call():
    weighted = Weighted([1.0, 2.0], 7)
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    try:
        with pytest.raises(KeyboardInterrupt):
            while True:
                weighted.range(0, 20_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


# ---- The sampler ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("torch")
    import shufd.torch

    return shufd.torch


def sampler_of(torch, weights, num_samples, world=1, rank=0, **options):
    return torch.WeightedRandomSampler(weights, num_samples, seed=7, num_replicas=world, rank=rank, **options)


@settings(deadline=None, max_examples=60)
@given(draws=st.integers(1, 3000), world=st.integers(1, 8), epoch=st.integers(0, 2**64 - 1))
def test_ranks_share_the_draws(torch, draws, world, epoch):
    weights = np.arange(1.0, 50.0)
    expected = Weighted(weights, 7, epoch)[:draws]
    length = -(-draws // world)
    order = [None] * (length * world)
    for rank in range(world):
        sampler = sampler_of(torch, weights, draws, world, rank)
        sampler.set_epoch(epoch)
        assert len(sampler) == sampler.num_samples == length
        order[rank::world] = sampler
    assert order == np.resize(expected, len(order)).tolist()


@settings(deadline=None, max_examples=60)
@given(used=st.integers(0, 300), worlds=st.tuples(st.integers(1, 6), st.integers(1, 6)), batch=st.integers(1, 9))
def test_resumes_with_another_world(torch, used, worlds, batch):
    weights, draws = [1, 5, 0, 2], 2000
    saved = []
    for rank in range(worlds[0]):
        sampler = sampler_of(torch, weights, draws, worlds[0], rank)
        sampler.set_epoch(3)
        steps = min(used, len(sampler))
        iterator = iter(sampler)
        head = [next(iterator) for _ in range(steps)]
        saved.append(sampler.state_dict(used=steps))
        assert head == Weighted(weights, 7, 3)[rank : draws : worlds[0]][:steps].tolist()
    assert all(state == saved[0] for state in saved)
    position = min(draws, steps * worlds[0])
    assert saved[0]["position"] == position
    rest = draws - position
    if not rest:
        return
    order = [None] * (-(-rest // worlds[1]) * worlds[1])
    for rank in range(worlds[1]):
        sampler = sampler_of(torch, weights, draws, worlds[1], rank)
        sampler.load_state_dict(pickle.loads(pickle.dumps(saved[0])))
        order[rank :: worlds[1]] = [i for part in torch.BatchSampler(sampler, batch, False) for i in part]
    assert order[:rest] == Weighted(weights, 7, 3)[position:draws].tolist()


def test_epochs(torch):
    sampler = sampler_of(torch, [1.0, 2.0, 3.0], 50)
    passes = [list(sampler) for _ in range(3)]
    assert passes == [Weighted([1, 2, 3], 7, epoch)[:50].tolist() for epoch in range(3)]
    sampler.set_epoch(1)
    assert list(sampler) == passes[1] and sampler.epoch == 1
    again = pickle.loads(pickle.dumps(sampler))
    assert list(again) == passes[2]
    assert repr(sampler) == (
        "shufd.torch.WeightedRandomSampler(n=3, num_samples=50, replacement=True, rank=0, num_replicas=1, seed=7, "
        "epoch=1)"
    )


def test_without_replacement(torch):
    weights = [3.0, 0.0, 1.0, 2.0, 5.0]
    order = []
    for rank in range(2):
        sampler = sampler_of(torch, weights, 4, 2, rank, replacement=False)
        sampler.set_epoch(3)
        order.append(list(sampler))
        state = sampler.state_dict(used=1)
    assert [i for pair in zip(*order) for i in pair] == weighted_sample(weights, 4, 7, 3).tolist()
    sampler = pickle.loads(pickle.dumps(sampler_of(torch, weights, 4, replacement=False)))
    sampler.load_state_dict(state)
    assert list(sampler) == weighted_sample(weights, 4, 7, 3)[2:].tolist()
    with pytest.raises(shufd.Invalid, match="replacement"):
        sampler_of(torch, weights, 4).load_state_dict(state)
    for bad, count, message in ((weights, 5, "at most 4"), ([1.0, np.nan], 1, "nan"), ([0.0], 1, "all are 0")):
        with pytest.raises(shufd.Invalid, match=message):
            sampler_of(torch, bad, count, replacement=False)


FLUSH = """
import numpy as np, torch
from shufd.local import Weighted
arrays = np.float32([1, 1e-40, 0, 1e-45]), np.array([1, 5e-324, -0.0, 1e-310]), np.uint64([1, 2**63, 0, 2])
torch.set_flush_denormal(True)
for weights in arrays:
    print(len(Weighted(weights, 7, replacement=False)), sorted(Weighted(weights, 7, replacement=False)[:].tolist()))
"""


def test_threads_that_flush_subnormal_numbers(torch):
    out = subprocess.run([sys.executable, "-c", FLUSH], capture_output=True, text=True, timeout=300)
    assert out.stdout == "3 [0, 1, 3]\n" * 3, out.stderr


def test_more_weights_than_torch_takes(torch):
    weights = np.zeros(2**24 + 5, np.float32)
    weights[-3:] = 1
    assert set(sampler_of(torch, weights, 100)) == {2**24 + 2, 2**24 + 3, 2**24 + 4}


def test_in_a_loader(torch):
    import torch as pytorch

    weights = pytorch.tensor([0.5, 0.0, 3.0, 1.5], dtype=pytorch.float64)
    sampler = sampler_of(torch, weights, 100)
    loader = pytorch.utils.data.DataLoader(pytorch.arange(4), batch_size=8, sampler=sampler, num_workers=2)
    seen = pytorch.cat(list(loader)).tolist()
    assert seen == Weighted(weights.numpy(), 7)[:100].tolist() and 1 not in seen
    assert np.array_equal(sampler.weights, weights.numpy()) and len(loader) == 13


def test_states_of_others_are_refused(torch):
    sampler = sampler_of(torch, [1, 2, 3], 50)
    state = sampler.state_dict(used=0)
    for others in (
        sampler_of(torch, [1, 2, 4], 50), sampler_of(torch, [1, 2, 3], 51), sampler_of(torch, [1, 2], 50),
        torch.WeightedRandomSampler([1, 2, 3], 50, seed=8, num_replicas=1, rank=0),
    ):  # fmt: skip
        with pytest.raises(shufd.Invalid, match="as in this sampler|length of the dataset"):
            others.load_state_dict(state)
    for other in (torch.DistributedSampler(range(3), 1, 0, seed=7), torch.RandomSampler(range(3), seed=7)):
        with pytest.raises(shufd.Invalid, match="of a WeightedRandomSampler"):
            other.load_state_dict(state)
        with pytest.raises(shufd.Invalid, match="expected one of a WeightedRandomSampler"):
            sampler.load_state_dict(other.state_dict(used=0))
    sampler.load_state_dict(state)


def test_accelerate_may_not_divide_it(torch, monkeypatch):
    monkeypatch.setattr("shufd._frameworks.divides_again", lambda: True)
    with pytest.raises(shufd.Invalid, match="WeightedRandomSampler: accelerate would divide it a second time"):
        next(iter(sampler_of(torch, [1, 2], 5)))


@pytest.mark.parametrize(
    "arguments, options",
    [
        (([1, 2], 0), {}), (([1, 2], 2.5), {}), (([1, 2], 2**62), {}), (([0, 0], 5), {}), (([[1, 2]], 5), {}),
        (([1, 2], 5, 1), {}), (([1, 2], 5), {"num_replicas": 2, "rank": 2}), (([1, 2], 5), {"seed": 2**64}),
    ],
)  # fmt: skip
def test_bad_samplers(torch, arguments, options):
    with pytest.raises(shufd.Invalid):
        torch.WeightedRandomSampler(*arguments, **{"seed": 7, **options})
