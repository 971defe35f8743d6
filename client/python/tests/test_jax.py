# SPDX-License-Identifier: MIT
"""The index sampler in Grain's DataLoader, and permutations as JAX arrays."""

import pickle

import numpy as np
import pytest

import shufd
import shufd.jax
from conftest import await_value, lease_count


def test_permutation(client):
    pytest.importorskip("jax")
    import jax

    leases_before = lease_count(client)
    order = client.permute(1_000_003, 7, 3)
    array = shufd.jax.permutation(1_000_003, 7, 3, client=client)
    assert isinstance(array, jax.Array) and array.dtype == np.uint32
    assert array.unsafe_buffer_pointer() == order.ctypes.data
    assert (np.asarray(array) == order).all()
    del order
    assert lease_count(client) == leases_before + 1  # JAX holds a lease
    del array
    assert await_value(lambda: lease_count(client), leases_before) == leases_before
    assert shufd.jax.permutation(10, 7, rank=1, world=4, client=client).tolist() == [0, 9, 3]


def test_permutation_of_64_bits(client):
    jax = pytest.importorskip("jax")
    with pytest.raises(shufd.Invalid, match="dtype: uint64: expected u32; set jax_enable_x64"):
        shufd.jax.permutation(10, 7, dtype="u64", client=client)
    jax.config.update("jax_enable_x64", True)
    try:
        assert shufd.jax.permutation(10, 7, dtype="i64", client=client).dtype == np.int64
    finally:
        jax.config.update("jax_enable_x64", False)


# ---- In this process -----------------------------------------------------------------------------


def same(array, expected):
    array = np.asarray(array)
    assert array.dtype == expected.dtype and array.shape == expected.shape and (array == expected).all()


def test_values_in_this_process():
    pytest.importorskip("jax")
    for seed in (7, -7, 2**64 - 1):
        same(shufd.jax.randperm(1000, seed, 2**40), shufd.local.permute(1000, seed, 2**40))
        for dtype in ("f32", "f16", "bf16"):
            for method in ("table", "box-muller"):
                same(shufd.jax.normal((3, 5), seed, loc=1.0, scale=2.0, stream=3, offset=2**40, dtype=dtype, method=method),
                     shufd.local.normal(1.0, 2.0, (3, 5), seed=seed, stream=3, offset=2**40, dtype=dtype, method=method))
        for dtype in ("f32", "u32"):
            same(shufd.jax.uniform(5, seed, dtype=dtype), shufd.local.uniform(size=5, seed=seed, dtype=dtype))  # fmt: skip
    assert shufd.jax.normal((0, 3), 7).shape == (0, 3) and shufd.jax.uniform((), 7).shape == ()


def test_jit_and_vmap():
    jax = pytest.importorskip("jax")
    orders = jax.jit(lambda seed, epoch: shufd.jax.randperm(100, seed, epoch))
    for seed, epoch in ((7, 3), (-7, 2**31 - 1)):
        same(orders(seed, epoch), shufd.local.permute(100, seed, epoch))
    same(orders(np.uint32(2**32 - 1), 0), shufd.local.permute(100, 2**32 - 1))
    epochs = np.arange(6).reshape(2, 3)
    each = jax.jit(jax.vmap(jax.vmap(lambda epoch: shufd.jax.randperm(10, 7, epoch))))(epochs)
    same(each, np.stack([[shufd.local.permute(10, 7, int(epoch)) for epoch in row] for row in epochs]))
    noisy = jax.vmap(lambda x, step: x + shufd.jax.normal(4, 7, offset=4 * step))(np.zeros((3, 4), np.float32), np.arange(3))
    same(noisy, shufd.local.normal(size=(3, 4), seed=7, dtype="f32"))
    same(jax.jit(lambda step: shufd.jax.uniform((2, 2), 7, stream=step))(5), shufd.local.uniform(size=(2, 2), seed=7, stream=5, dtype="f32"))


def test_grad_and_scan():
    jax = pytest.importorskip("jax")
    noise = shufd.local.normal(size=3, seed=7, dtype="f32")
    same(jax.jit(jax.grad(lambda x: (x * shufd.jax.normal(3, 7)).sum()))(np.zeros(3, np.float32)), noise)
    _, rows = jax.lax.scan(lambda step, _: (step + 1, shufd.jax.randperm(10, 7, step)), 0, None, length=4)
    same(rows, np.stack([shufd.local.permute(10, 7, epoch) for epoch in range(4)]))


def test_64_bits():
    jax = pytest.importorskip("jax")
    with pytest.raises(shufd.Invalid, match="^dtype: float64: expected a type of at most 32 bits; set jax_enable_x64"):
        shufd.jax.normal(3, 7, dtype="f64")
    jax.config.update("jax_enable_x64", True)
    try:
        same(jax.jit(lambda seed: shufd.jax.normal(3, seed, dtype="f64"))(np.int64(-7)), shufd.local.normal(size=3, seed=-7))
        same(shufd.jax.randperm(10, np.uint64(2**63 + 1), dtype="i64"), shufd.local.permute(10, 2**63 + 1, dtype="i64"))
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: shufd.jax.randperm(0, 7), r"n 0: expected 1 to 2\^62"),
        (lambda: shufd.jax.randperm(10, np.zeros(3, np.int32)), r"seed: int32, shape \(3,\): expected a single integer"),
        (lambda: shufd.jax.randperm(10, 1.5), "seed: 1.5: expected an integer"),
        (lambda: shufd.jax.normal(3, 7, scale=0), "scale 0: expected"),
        (lambda: shufd.jax.normal(-1, 7), "size: -1: expected 0 or more"),
        (lambda: shufd.jax.uniform(3, 7, dtype="f16"), "dtype: 'f16': expected one of"),
    ],
)
def test_refusals_in_this_process(call, message):
    pytest.importorskip("jax")
    with pytest.raises(shufd.Invalid, match=f"^{message}"):
        call()


# ---- Grain ---------------------------------------------------------------------------------------


class Source:
    """A source with random access for Grain. Each record is its own key."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, key):
        return key

    def __repr__(self):
        return f"Source({self.n})"


def sharding(index=0, count=1, drop_remainder=False):
    grain = pytest.importorskip("grain")
    return grain.sharding.ShardOptions(index, count, drop_remainder)


def sampler_of(client, n, shards=None, epochs=1, seed=7, **options):
    pytest.importorskip("grain")
    return shufd.jax.IndexSampler(n, shards, True, epochs, seed, client=client, **options)


def test_random_access(client):
    sampler = sampler_of(client, 1000, epochs=3)
    assert len(sampler) == 3000
    orders = np.concatenate([client.permute(1000, 7, epoch) for epoch in range(3)])
    for i in np.random.default_rng(1).permutation(3000).tolist():
        metadata = sampler[i]
        assert (metadata.index, metadata.record_key) == (i, orders[i]) and type(metadata.record_key) is int
    for i in (3000, 3001, -1, 1 << 70):
        with pytest.raises(IndexError, match=f"index {i}: expected less than 3000"):
            sampler[i]


def test_each_record_has_a_generator(client):
    sampler = sampler_of(client, 1000)
    again = sampler_of(client, 1000)
    draws = [sampler[i].rng.random() for i in range(100)]
    assert draws == [again[i].rng.random() for i in range(100)] and len(set(draws)) == 100
    plain = shufd.jax.IndexSampler(1000, num_epochs=1, client=client)
    assert plain[5].record_key == 5 and plain[5].rng is None


def test_pickled_sampler_is_equal(client):
    sampler = sampler_of(client, 1000, sharding(1, 2), None)
    sampler[10]
    copy = pickle.loads(pickle.dumps(sampler))
    assert repr(copy) == repr(sampler) and copy[10**9].record_key == sampler[10**9].record_key
    assert repr(sampler) == (
        "shufd.jax.IndexSampler(num_records=1000, shard_options=ShardOptions(shard_index=1, shard_count=2, "
        "drop_remainder=False), shuffle=True, num_epochs=None, seed=7, algorithm='primefold')"
    )


def test_bad_arguments_are_refused(client):
    for arguments, text in (
        ((0,), "num_records: 0"), ((10, None, False, 0), "num_epochs: 0"),
        ((10, None, True), "seed: None"), ((10, None, True, 1, 2**64), "seed: 18446744073709551616"),
        ((3, sharding(0, 4, True)), "num_records: 3: expected 4 or more"),
    ):  # fmt: skip
        with pytest.raises(shufd.Invalid, match=text):
            shufd.jax.IndexSampler(*arguments)


def loader_of(sampler, workers=0):
    grain = pytest.importorskip("grain")
    return grain.DataLoader(data_source=Source(sampler.num_records), sampler=sampler, worker_count=workers)


@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_data_loader(client, count, drop_remainder):
    """Together, the shards read each epoch once, in the order of the permutation."""
    columns = [
        list(loader_of(sampler_of(client, 1000, sharding(i, count, drop_remainder), 2))) for i in range(count)
    ]
    used = 1000 // count * count if drop_remainder else 1000
    expected = np.concatenate([client.permute(1000, 7, epoch)[:used] for epoch in (0, 1)])
    assert np.stack(columns, 1).ravel().tolist() == expected[: 2 * used // count * count].tolist()


def test_data_loader_with_workers(daemon):
    """Workers are new processes. They find the daemon by an environment variable."""
    pytest.importorskip("grain")
    from absl import flags

    flags.FLAGS.mark_as_parsed()
    got = list(loader_of(sampler_of(None, 200, epochs=2), workers=2))
    both = [shufd.permute(200, 7, epoch).tolist() for epoch in (0, 1)]
    assert sorted(got) == sorted(both[0] + both[1]) and got[:10] == both[0][:10]


def test_checkpoint(client):
    loader = loader_of(sampler_of(client, 500, epochs=2))
    whole = list(loader)
    iterator = iter(loader)
    for _ in range(321):
        next(iterator)
    state = iterator.get_state()
    resumed = iter(loader_of(sampler_of(client, 500, epochs=2)))
    resumed.set_state(state)
    assert list(resumed) == whole[321:]
    for options in ({"seed": 8}, {"chunk": 10, "window": 4}):
        other = iter(loader_of(sampler_of(client, 500, epochs=2, **options)))
        with pytest.raises(ValueError, match="[Ss]ampler"):
            other.set_state(state)


def test_order_above_memory_limit(client):
    """If an order does not fit into memory, this process computes single values itself."""

    class ClientWithoutMemory:
        def permute(self, *arguments, **options):
            raise shufd.OutOfMemory("n: too large here")

        _prefetch = permute

    sampler = sampler_of(ClientWithoutMemory(), 1 << 40)
    at = [0, 12345, (1 << 40) - 1]
    assert [sampler[i].record_key for i in at] == client.index(at, 1 << 40, 7).tolist()
