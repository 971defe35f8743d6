# SPDX-License-Identifier: MIT
"""shufd.local.Mixture: what Python adds to shuf_mixture.h, which tests/kernels/test_mixture.c tests place by place."""

import fractions
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shufd
from conftest import run_threads
from shufd.local import Mixture, tempered


@st.composite
def mixtures(draw):
    count = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.integers(1, 200), min_size=count, max_size=count))
    weight = st.one_of(st.integers(0, 9), st.floats(0, 9).map(lambda x: round(x, 2)), st.fractions(0, 3, max_denominator=50))
    weights = draw(st.lists(weight, min_size=count, max_size=count).filter(any))
    epochs = draw(st.one_of(st.none(), st.integers(1, 3), st.lists(st.one_of(st.none(), st.integers(1, 3)), min_size=count, max_size=count)))
    chunk = draw(st.one_of(st.none(), st.integers(1, 20)))
    return Mixture(
        sizes, weights, draw(st.integers(0, 2**64 - 1)), epochs=epochs, chunk=chunk, window=chunk and 3,
        block=draw(st.integers(count, 100)),
    )  # fmt: skip


def end_of(mixture):
    return 1000 if mixture.length is None else min(mixture.length, 1000)


@settings(deadline=None, max_examples=150)
@given(mixtures(), st.data())
def test_sequence(mixture, data):
    end = end_of(mixture)
    places = mixture.places(0, end)
    values = mixture[:end]
    assert values.dtype == np.int64
    assert np.array_equal(values, mixture.offsets[places.source] + places.record)
    cut = slice(*(data.draw(st.one_of(st.none(), st.integers(-end, end))) for _ in range(2)), data.draw(st.sampled_from([None, 1, 2, 7, -1, -3])))
    limited = Mixture(mixture.sizes, mixture.weights, mixture.seed, **{**mixture._arguments(), "length": end})
    assert np.array_equal(limited[cut], values[cut])
    at = data.draw(st.integers(-end, end - 1))
    assert limited[at] == values[at] and len(limited) == end
    assert np.array_equal(mixture.positions(*places), np.arange(end))
    counts = mixture.counts(at % end)
    assert np.array_equal(counts, np.bincount(places.source[: at % end], minlength=len(mixture.sizes)))
    assert pickle.loads(pickle.dumps(limited)) == limited and np.array_equal(pickle.loads(pickle.dumps(limited))[:], values)


@settings(deadline=None, max_examples=60)
@given(mixtures())
def test_each_epoch_has_each_record_once(mixture):
    places = mixture.places(0, end_of(mixture))
    for source, size in enumerate(mixture.sizes):
        records, epochs = places.record[places.source == source], places.epoch[places.source == source]
        for epoch in range(int(epochs.max(initial=-1)) + 1):
            of_epoch = records[epochs == epoch]
            assert len(set(of_epoch.tolist())) == len(of_epoch)
            assert len(of_epoch) == size or epoch == epochs.max()
        assert np.array_equal(epochs, np.arange(len(epochs)) // size)  # one epoch after the other


def test_a_mixture_that_ends_has_each_record_as_often_as_its_epochs():
    mixture = Mixture([10, 20, 30], [5, 1, 1], 3, epochs=[2, 1, 1], block=7)
    assert len(mixture) == 70
    assert np.bincount(mixture[:]).tolist() == [2] * 10 + [1] * 50


def test_weights_are_exact_ratios():
    for weights in ([0.7, 0.2, 0.1], ["0.7", "1/5", 0.1], [fractions.Fraction(7, 10), np.float64(0.2), np.float32(0.1)], np.array([70, 20, 10])):
        assert Mixture([5, 5, 5], weights, 1).weights == (7, 2, 1)
    assert Mixture([30, 20], seed=1).weights == (3, 2)


def test_weights_of_many_digits_are_rounded():
    rng = np.random.default_rng(3)
    for _ in range(100):
        weights = rng.dirichlet(np.ones(20)) + 1e-6
        whole = Mixture([5] * 20, weights, 1).weights
        assert np.allclose(np.array(whole) / sum(whole), weights / weights.sum(), rtol=1e-9)
    assert Mixture([2**61, 2**61 - 1]).weights == (2**59, 2**59)
    with pytest.raises(shufd.Invalid, match=r"weights\[1\]: 1e-20: expected at least 2\^-30 of the sum, or 0"):
        Mixture([5, 5], [0.123456789123456789, 1e-20], 1)


def test_arguments_are_taken_once():
    once = Mixture([10, 20], [1, 1], epochs=iter([1, 2]))
    assert once == Mixture([10, 20], [1, 1], epochs=[1, 2]) != Mixture([10, 20], [1, 1], epochs=iter([2, 1]))
    assert pickle.loads(pickle.dumps(once)) == once and len(once) == 50
    numbers = np.array([1, 2])
    mixture = Mixture([10, 20], [1, 1], epochs=numbers)
    numbers[:] = 5
    assert pickle.loads(pickle.dumps(mixture)) == once
    assert Mixture([10, 20], epochs=1) == Mixture([10, 20], epochs=[1, 1])
    assert "epochs=1" in repr(Mixture([10, 20], epochs=[1, 1]))
    assert "chunk=4096" in repr(Mixture([10**6, 3], [1, 1], chunk=4096, window=8))
    for wrong in ({1: 0.7, 2: 0.3}, {0.7, 0.3}):
        with pytest.raises(shufd.Invalid, match="expected a list"):
            Mixture([10, 20], wrong)
    assert Mixture({"a": 10, "b": 20}.values()).sizes == (10, 20)


def test_many_sources_that_end():
    mixture = Mixture([50 + i for i in range(300)], [1 + i % 7 for i in range(300)], 5, epochs=1)
    values = mixture[:]
    assert sorted(values.tolist()) == list(range(len(mixture)))
    places = mixture.places(0, len(mixture))
    assert np.array_equal(mixture.positions(*places), np.arange(len(mixture)))
    ends = mixture.exhausted()
    assert max(ends) == len(mixture) and ends[0] == np.flatnonzero(places.source == 0)[-1] + 1


def test_stop_rules():
    mixture = Mixture([50, 7, 20], [2, 1, 1], 9)
    values, ends = mixture[:10_000], []
    for first, size in zip(mixture.offsets, mixture.sizes):
        seen = [np.flatnonzero(values == record)[0] for record in range(first, first + size)]
        ends.append(max(seen) + 1)
    assert mixture.exhausted().tolist() == ends
    assert len(Mixture([50, 7, 20], [2, 1, 1], 9, length="first_exhausted")) == min(ends)
    assert len(Mixture([50, 7, 20], [2, 1, 1], 9, length="all_exhausted")) == max(ends)
    with pytest.raises(shufd.Invalid, match="never has all records of source 1"):
        Mixture([50, 7, 20], [2, 0, 1], 9, length="all_exhausted")


@pytest.mark.parametrize("at", [512, 600, 1023])
def test_a_stage_that_is_added_changes_only_the_block_in_which_it_begins(at):
    before = Mixture([1000, 1000], [2, 1], 7, block=256)
    after = Mixture([1000, 1000], [2, 1], 7, block=256, stages=[(at, [1, 3])])
    begin = at // 256 * 256
    assert (after.range(0, begin) == before.range(0, begin)).all()
    assert begin == at or (after.range(begin, at - begin) != before.range(begin, at - begin)).any()
    assert (after.counts(begin) == before.counts(begin)).all()


def test_stages_change_the_weights_and_keep_the_counts():
    mixture = Mixture([100, 100], [1, 0], 5, stages=[(1000, [0, 1]), (1500, [1, 1])], block=10)
    assert mixture.counts(1000).tolist() == [1000, 0] and mixture.counts(1500).tolist() == [1000, 500]
    assert mixture.counts(2500).tolist() == [1500, 1000]
    plain = Mixture([100, 100], [1, 0], 5, block=10)
    assert np.array_equal(mixture[:1000], plain[:1000])
    places = mixture.places(1500, 1000)
    assert places.epoch[places.source == 0].min() == 10  # continues after ten epochs


def test_orders_of_a_source_do_not_depend_on_the_others():
    def records_of_first(mixture):
        places = mixture.places(0, 4096)
        return places.record[places.source == 0][:1000]

    one = records_of_first(Mixture([1000, 30], [1, 1], 5))
    assert sorted(one.tolist()) == list(range(1000))
    assert np.array_equal(one, records_of_first(Mixture([1000, 500, 20], [1, 2, 1], 5)))


def test_windowed_sources_keep_their_chunks_together():
    places = Mixture([10_000, 10_000], [1, 1], 3, chunk=100, window=4).places(0, 8192)
    records = places.record[places.source == 0]
    for first in range(0, 4000, 400):
        assert len(set((records[first : first + 400] // 100).tolist())) <= 8


def test_threads_and_far_positions():
    mixture = Mixture([8 * 10**9, 2 * 10**6, 5 * 10**5], [0.7, 0.2, 0.1], 7)
    assert mixture[:5].tolist() == [3369564907, 4732790860, 5322520745, 8000880155, 7535847895]  # tests/vectors
    far = 2**62 - 10_000
    expected = mixture[far:]
    assert len(expected) == 10_000

    def read(number):
        assert np.array_equal(mixture[far + 100 * number :], expected[100 * number :])

    run_threads(read, 8)
    assert np.array_equal(mixture.places(10, 200_000, 3, threads=2).record, mixture.places(10, 200_000, 3).record)


LONG = """
import numpy as np
from shufd.local import Mixture
mixture = Mixture([10**9] * 4, [1, 2, 3, 4], seed=7, block=2**20)
print("begins", flush=True)
mixture.positions(0, 0, np.arange(10**6))
"""


def test_ctrl_c_ends_a_look_up_of_positions():
    """It would take many minutes."""
    process = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begins\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    try:
        assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    finally:
        process.kill()


def test_place_that_does_not_stand_there():
    mixture = Mixture([10, 10], [1, 1], 1, epochs=2)
    assert mixture.positions(0, 2, 0) == -1 and mixture.positions(0, 2**63, 0) == -1
    cut = Mixture([10, 10], [1, 1], 1, length=5, block=2)
    positions = cut.positions(np.repeat([0, 1], 10), 0, np.tile(np.arange(10), 2))
    assert sorted(positions[positions >= 0].tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("arguments, options, text", [
    (([],), {}, r"sizes: \[\]: expected the records"),
    (([10, 0],), {}, r"weights|records 0 of source 1"),
    (([10, -1],), {}, r"sizes\[1\]: -1"),
    (([10, 2.5],), {}, r"sizes\[1\]: 2.5: expected an integer"),
    ((7,), {}, "sizes: 7: expected a list"),
    (([10, 10], [1]), {}, "weights: 1 of them, expected 2"),
    (([10, 10], [1, -1]), {}, r"weights\[1\]: -1: expected 0 or more"),
    (([10, 10], [1, float("nan")]), {}, r"weights\[1\]: nan: expected a finite number"),
    (([10, 10], [1, float("inf")]), {}, r"weights\[1\]: inf: expected a finite"),
    (([10, 10], [0, 0]), {}, "weights: all are 0"),
    (([10, 10], [1e-20, 1]), {}, r"weights\[0\]: 1e-20: expected at least 2\^-30"),
    (([10, 10], ["1e5000", 1]), {}, r"weights\[0\]: '1e5000'"),
    (([10, 10], [1, "x"]), {}, r"weights\[1\]: 'x'"),
    (([10, 10], [1, 1], 2**64), {}, "seed: "),
    (([10, 10], [1, 1], 1), {"epochs": [1]}, "epochs: 1 of them, expected 2"),
    (([10, 10], [1, 1], 1), {"epochs": 0}, r"epochs\[0\]: 0: expected 1 or more, or None"),
    (([10, 10], [1, 1], 1), {"chunk": 5}, "window"),
    (([10, 10], [1, 1], 1), {"block": 1}, "block 1: expected from 2"),
    (([10, 10], [1, 1], 1), {"block": 0}, "block: 0"),
    (([10, 10], [1, 1], 1), {"stages": [3]}, r"stages\[0\]: 3: expected \(position, weights\)"),
    (([10, 10], [1, 1], 1), {"stages": [(5, [1])]}, r"stages\[0\]: weights: 1 of them"),
    (([10, 10], [1, 1], 1), {"stages": [(5, [1, 2]), (5, [1, 1])]}, "more than 5, that of the stage before"),
    (([10, 10], [1, 1], 1), {"stages": [(50, [1, 2])], "epochs": 1}, "all sources of the stage before end at position 20"),
    (([10, 10], [1, 1], 1), {"length": 0}, "length: 0: expected 1 to 2\\^62"),
    (([10, 10], [1, 1], 1), {"length": 21, "epochs": 1}, "length: 21: expected 1 to 20"),
    (([10, 10], [1, 1], 1), {"length": "longest"}, "expected an integer, 'first_exhausted', 'all_exhausted' or None"),
    (([2**62, 1], [1, 1], 1), {}, "together have more than 2\\^62"),
    (([1] * 4097,), {}, "4097 of them, expected 1 to 4096"),
])  # fmt: skip
def test_bad_arguments(arguments, options, text):
    with pytest.raises(shufd.Invalid, match=text):
        Mixture(*arguments, **options)


def test_a_mixture_does_not_change():
    mixture = Mixture([10, 10], [1, 3], 1, epochs=2)
    for name in ("sizes", "seed", "length", "_mixture", "other"):
        with pytest.raises(AttributeError):
            setattr(mixture, name, 5)
    assert pickle.loads(pickle.dumps(mixture)) == mixture and mixture.seed == 1 and len(mixture) == 40


def test_indices_in_a_mixture():
    for mixture in (
        Mixture([10, 30], [1, 3], 1, length=20), Mixture([3, 10, 5], [1, 0, 1], 1, length=9),
        Mixture([10, 10], [1, 0], 1, stages=[(5, [0, 1])], length=9),
    ):  # fmt: skip
        found = set(mixture[:].tolist())
        assert [index in mixture for index in range(-2, 45)] == [index in found for index in range(-2, 45)]
    endless = Mixture([2**60, 2**61], [1, 1], 1)
    assert 2**60 + 2**61 - 1 in endless and 2**60 + 2**61 not in endless and 0.5 not in endless and "a" not in endless


def test_bad_positions():
    mixture = Mixture([10, 10], [1, 1], 1, epochs=1)
    for call in (lambda: mixture[20], lambda: mixture[-21]):
        with pytest.raises(IndexError):
            call()
    with pytest.raises(shufd.Invalid, match="offset: 19, count 2"):
        mixture.places(19, 2)
    with pytest.raises(shufd.Invalid, match="position: 21"):
        mixture.counts(21)
    with pytest.raises(shufd.Invalid, match="source: 2"):
        mixture.positions(2, 0, 0)
    with pytest.raises(shufd.Invalid, match="record"):
        mixture.positions(1, 0, 10)
    with pytest.raises(TypeError, match="length="):
        len(Mixture([10, 10], [1, 1], 1))


def test_tempered():
    assert tempered([100, 10_000], 0.5) == [10**8, 10**9] and tempered([3, 9], 0) == [10**9, 10**9]
    with pytest.raises(shufd.Invalid, match="alpha: 2"):
        tempered([1], 2)
    with pytest.raises(shufd.Invalid, match="sizes"):
        tempered([], 1)


# ---- torch ---------------------------------------------------------------------------------------


def datasets_of(sizes):
    return [[(number, record) for record in range(size)] for number, size in enumerate(sizes)]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_dataset(torch):
    import shufd.torch

    mixture = Mixture([50, 7, 20], [2, 1, 1], 9, length=300)
    places = mixture.places(0, 300)
    expected = list(zip(places.source.tolist(), places.record.tolist()))
    dataset = shufd.torch.MixtureDataset(datasets_of(mixture.sizes), mixture)
    assert [dataset[i] for i in range(300)] == expected and dataset[-1] == expected[-1] and len(dataset) == 300
    assert dataset.__getitems__([5, 3, 3, -1]) == [expected[i] for i in (5, 3, 3, 299)]
    assert dataset.__getitems__([]) == []
    assert dataset.__getitems__([0, 1, 299]) == [expected[i] for i in (0, 1, 299)]

    class Short(list):
        def __getitems__(self, records):
            return [0] * (len(records) - 1)

    with pytest.raises(shufd.Invalid, match=r"datasets\[0\]: its __getitems__ gave"):
        shufd.torch.MixtureDataset([Short(range(50)), *datasets_of([7, 20])], mixture).__getitems__(range(9))
    with pytest.raises(shufd.Invalid, match=r"datasets\[0\]: None: expected a map-style data set"):
        shufd.torch.MixtureDataset([None, *datasets_of([7, 20])], mixture)
    with_source = shufd.torch.MixtureDataset(datasets_of(mixture.sizes), mixture, with_source=True)
    assert with_source[4] == (expected[4], expected[4][0])
    with pytest.raises(IndexError):
        dataset[300]
    with pytest.raises(shufd.Invalid, match="datasets: 2 of them"):
        shufd.torch.MixtureDataset(datasets_of([50, 7]), mixture)
    with pytest.raises(shufd.Invalid, match=r"datasets\[1\]: length 8: expected 7"):
        shufd.torch.MixtureDataset(datasets_of([50, 8, 20]), mixture)
    with pytest.raises(shufd.Invalid, match="no end"):
        shufd.torch.MixtureDataset(datasets_of([5]), Mixture([5], [1], 1))


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_read_and_resume_with_other_ranks(torch, workers):
    """Three ranks read 40 batches; five resume there. Together they read the mixture."""
    import shufd.torch

    mixture = Mixture([500, 70, 200], [2, 1, 1], 9, length=1500)
    dataset = shufd.torch.MixtureDataset(datasets_of(mixture.sizes), mixture, with_source=True)
    places = mixture.places(0, 1500)
    expected = list(zip(places.source.tolist(), places.record.tolist()))

    def read(world, rank, state, steps):
        sampler = shufd.torch.DistributedSampler(dataset, world, rank, shuffle=False)
        if state:
            sampler.load_state_dict(state)
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=8, sampler=sampler, num_workers=workers, collate_fn=list,
            multiprocessing_context="fork" if workers else None,
        )  # fmt: skip
        items, step = [], 0
        for step, batch in enumerate(loader, 1):
            items += [item for item, _ in batch]
            if step == steps:
                break
        return items, sampler.state_dict(used=len(items))

    first = [read(3, rank, None, 40) for rank in range(3)]
    state = first[0][1]
    assert all(state == other for _, other in first)
    second = [read(5, rank, state, None) for rank in range(5)]
    head = [items[i] for i in range(320) for items, _ in first]
    tail = [items[i] for i in range(len(second[0][0])) for items, _ in second]
    assert head + tail[: 1500 - len(head)] == expected
