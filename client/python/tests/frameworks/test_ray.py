# SPDX-License-Identifier: MIT
"""shufd.ray.random_shuffle on a Ray cluster of two local nodes, against one shuffle of all rows."""

import contextlib
import logging
import os
import shutil
import subprocess
import tempfile
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import skip_without

skip_without("ray")
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", RAY_DATA_DISABLE_PROGRESS_BARS="1",
    RAY_num_workers_soft_limit="12",  # else Ray ends idle processes, and starts others for the next call
)  # fmt: skip

import pandas as pd
import pyarrow as pa
import ray
from ray.cluster_utils import Cluster
from ray.data.context import DataContext, ShuffleStrategy

import shufd
import shufd.ray
from shufd import _serve
from test_docs import DOCS, run_examples, sections

SEED, EPOCH = 7, 3
LARGE = 10_000_000


@pytest.fixture(scope="module")
def cluster():
    """Two nodes. The path of a socket is short, so the directory is not pytest's. Ray also writes the
    cluster's address to its default directory, $RAY_TMPDIR/ray, which it does not make itself."""
    directory = tempfile.mkdtemp(prefix="ray-")
    os.environ["RAY_TMPDIR"] = directory
    os.mkdir(os.path.join(directory, "ray"))
    cluster = Cluster()
    for _ in range(2):
        cluster.add_node(num_cpus=2, object_store_memory=1 << 30, include_dashboard=False, temp_dir=directory)
    ray.init(cluster.address, log_to_driver=False)
    logging.getLogger("ray").setLevel(logging.WARNING)
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    del os.environ["RAY_TMPDIR"]
    shutil.rmtree(directory, ignore_errors=True)


def order_of(n, seed=SEED, epoch=EPOCH):
    return shufd.local.Permutation(n, seed, epoch).range(0, n).astype(np.int64) if n else np.empty(0, np.int64)


def table_of(dataset):
    """The rows in the order in which a job reads them."""
    tables = [t for t in dataset.iter_batches(batch_size=None, batch_format="pyarrow") if t.num_rows]
    return pa.concat_tables(tables).combine_chunks()


def numbers_of(dataset, column="id"):
    batches = list(dataset.iter_batches(batch_size=None, batch_format="numpy"))
    return np.concatenate([b[column] for b in batches if column in b] or [np.empty(0, np.int64)])


def blocks_of(sizes):
    """A dataset whose blocks have these sizes. The rows are 0, 1, ..."""
    ends = np.cumsum(sizes)
    return ray.data.from_arrow([pa.table({"id": np.arange(e - s, e)}) for s, e in zip(sizes, ends)])


def check(dataset, n, seed=SEED, epoch=EPOCH):
    """For a dataset of the rows 0, 1, ...: the shuffle has the right order, and its inverse undoes it."""
    shuffled = shufd.ray.random_shuffle(dataset, seed, epoch).materialize()
    assert np.array_equal(numbers_of(shuffled), order_of(n, seed, epoch))
    assert np.array_equal(numbers_of(shufd.ray.random_shuffle(shuffled, seed, epoch, inverse=True)), np.arange(n))
    return shuffled


# ---- The order -----------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 2, 3, 8, 19, 20])
def test_any_number_of_blocks(cluster, blocks):
    shuffled = check(blocks_of([50] * (blocks - 1) + [1050 - 50 * blocks]), 1000)
    assert shuffled.num_blocks() == blocks
    sizes = [len(b["id"]) for b in shuffled.iter_batches(batch_size=None)]
    assert sum(sizes) == 1000 and max(sizes) - min(sizes) <= 1


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=20),
    seed=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**64 - 1),
)
def test_blocks_of_any_size(cluster, sizes, seed, epoch):
    check(blocks_of(sizes), sum(sizes), seed, epoch)


@contextlib.contextmanager
def engine(strategy):
    """Ray shuffles by this strategy."""
    context = DataContext.get_current()
    before = context.shuffle_strategy
    context.shuffle_strategy = strategy
    try:
        yield
    finally:
        context.shuffle_strategy = before


@pytest.mark.parametrize("strategy", [s for s in ShuffleStrategy if s != ShuffleStrategy.GPU_SHUFFLE])
def test_any_engine_of_ray(cluster, strategy):
    with engine(strategy):
        check(blocks_of([300, 0, 1, 700]), 1001)


def test_blocks_that_end_out_of_order(cluster):
    """The first block is the slowest, and the size of no block is known before its task has run."""

    def slow(batch):
        import time

        time.sleep(2.0 if batch["id"][0] == 0 else 0.01)
        return {"id": np.repeat(batch["id"], 2) * 2 + np.tile([0, 1], len(batch["id"]))}

    dataset = ray.data.range(500, override_num_blocks=8).map_batches(slow, batch_size=None)
    before = dataset.context.execution_options.preserve_order
    check(dataset, 1000)
    assert dataset.context.execution_options.preserve_order == before


def test_order_remains_in_later_operations(cluster):
    """The first block is the slowest. The pull-based engine gives blocks to later operations in any order."""
    first = order_of(1000)[0]

    def slow(batch):
        import time

        time.sleep(3.0 if batch["id"][0] == first else 0.01)
        return batch

    dataset = ray.data.range(1000, override_num_blocks=8)
    with engine(ShuffleStrategy.SORT_SHUFFLE_PULL_BASED):
        shuffled = shufd.ray.random_shuffle(dataset, SEED, EPOCH).map_batches(slow, batch_size=None)
        assert np.array_equal(numbers_of(shuffled), order_of(1000))


def test_ten_million_rows_on_two_nodes(cluster, daemon, tmp_path):
    nodes = sorted(node["NodeID"] for node in ray.nodes() if node["Alive"])
    assert len(nodes) == 2

    def with_node(batch):
        return {**batch, "node": np.full(len(batch["id"]), nodes.index(ray.get_runtime_context().get_node_id()))}

    dataset = ray.data.range(LARGE, override_num_blocks=16).map_batches(with_node)
    np.save(tmp_path / "rows.npy", np.arange(LARGE))
    subprocess.run(
        [_serve.program_of("shufctl"), "shuffle", "--in", tmp_path / "rows.npy", "--seed", str(SEED),
         "--epoch", str(EPOCH), "--out", tmp_path / "shuffled.npy"],
        check=True,
    )  # fmt: skip
    shuffled = shufd.ray.random_shuffle(dataset, SEED, EPOCH).materialize()
    assert np.array_equal(numbers_of(shuffled), np.load(tmp_path / "shuffled.npy"))
    assert set(shuffled.unique("node")) == {0, 1}  # the first tasks ran on both


def test_example_of_the_document(cluster, daemon):
    run_examples("Ray Data", sections()["Ray Data"], run_examples("", sections()[""], {}))


def code_of_cluster_md(replaced):
    """The code of the section "Ray Data", with other values."""
    section = (DOCS / "cluster.md").read_text().partition("\n## Ray Data\n")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    for old, new in replaced.items():
        assert code.count(old) == 1, code
        code = code.replace(old, new)
    return code


def test_code_of_cluster_md(cluster, tmp_path, monkeypatch):
    """It reads files of this machine, in two epochs instead of ten."""
    options = DataContext.get_current().execution_options
    monkeypatch.setattr(options, "preserve_order", options.preserve_order)  # the code sets it
    ray.data.range(3000, override_num_blocks=7).write_parquet(str(tmp_path))
    shuffled, shuffle = [], shufd.ray.random_shuffle

    def keep(*given, **named):
        shuffled.append(shuffle(*given, **named))
        return shuffled[-1]

    monkeypatch.setattr(shufd.ray, "random_shuffle", keep)
    names = {}
    exec(code_of_cluster_md({"s3://bucket/rows": str(tmp_path), "range(10)": "range(2)"}), names)
    rows = numbers_of(names["dataset"])
    assert sorted(rows) == list(range(3000)) and len(shuffled) == 2
    for epoch, dataset in enumerate(shuffled):
        assert np.array_equal(numbers_of(dataset), rows[order_of(3000, 7, epoch)])
    assert options.preserve_order
    last = numbers_of(shuffled[-1])
    assert np.array_equal(names["batch"]["id"], last[3000 // 1024 * 1024 :])


# ---- The columns ---------------------------------------------------------------------------------


def columns_of(n):
    """Columns of many types, with nulls."""
    random = np.random.default_rng(1)
    some = [None if i % 5 == 0 else i for i in range(n)]
    return {
        "i8": pa.array(random.integers(-128, 128, n), pa.int8()),
        "u64": pa.array(random.integers(0, 2**64, n, np.uint64)),
        "f16": pa.array(random.random(n).astype(np.float16)),
        "f32": pa.array(random.random(n), pa.float32()),
        "bool": pa.array([i % 3 == 0 for i in range(n)]),
        "null": pa.array(some, pa.int16()),
        "text": pa.array([None if i is None else f"row {i}" for i in some]),
        "binary": pa.array([bytes([i % 256]) * (i % 7) for i in range(n)]),
        "time": pa.array(range(n), pa.timestamp("ns", "UTC")),
        "list": pa.array([list(range(i % 4)) for i in range(n)], pa.list_(pa.int32())),
        "struct": pa.array([{"a": i, "b": [str(i)]} for i in range(n)]),
        "map": pa.array([[(str(i), i)] for i in range(n)], pa.map_(pa.string(), pa.int64())),
        "dictionary": pa.array([f"class {i % 3}" for i in range(n)]).dictionary_encode(),
    }


@pytest.mark.parametrize("blocks", [1, 5])
def test_types_of_columns(cluster, blocks):
    n = 200
    rows = pa.table(columns_of(n))
    dataset = ray.data.from_arrow([rows.slice(n * i // blocks, n // blocks) for i in range(blocks)])
    shuffled = shufd.ray.random_shuffle(dataset, SEED, EPOCH).materialize()
    assert shuffled.schema() == dataset.schema()
    got, expected = table_of(shuffled), rows.take(order_of(n))
    assert got.schema == rows.schema
    assert got.to_pylist() == expected.to_pylist()


def test_tensors(cluster):
    images = np.random.default_rng(1).integers(0, 256, (100, 4, 3), np.uint8)
    dataset = ray.data.from_numpy(images).repartition(3)
    shuffled = shufd.ray.random_shuffle(dataset, SEED, EPOCH).materialize()
    assert shuffled.schema() == dataset.schema()
    got = numbers_of(shuffled, "data")
    assert got.dtype == np.uint8 and np.array_equal(got, images[order_of(100)])


def test_tensors_of_different_shapes(cluster):
    dataset = ray.data.from_items([{"x": np.full((i % 3 + 1, 2), i)} for i in range(30)], override_num_blocks=4)
    rows = shufd.ray.random_shuffle(dataset, SEED, EPOCH).take_all()
    for row, i in zip(rows, order_of(30), strict=True):
        assert np.array_equal(row["x"], np.full((i % 3 + 1, 2), i))


def test_pandas(cluster):
    rows = pd.DataFrame({"a": np.arange(50, dtype=np.int16), "b": [f"{i}" for i in range(50)], "c": np.arange(50) / 4})
    dataset = ray.data.from_pandas([rows[:20], rows[20:]])
    got = table_of(shufd.ray.random_shuffle(dataset, SEED, EPOCH))
    assert got.schema.names == ["a", "b", "c"] and got.schema.types[::2] == [pa.int16(), pa.float64()]
    assert got.to_pylist() == rows.iloc[order_of(50)].to_dict("records")


def test_python_objects(cluster):
    dataset = ray.data.from_items([{"x": {i, "set"}} for i in range(20)])
    got = shufd.ray.random_shuffle(dataset, SEED, EPOCH).take_all()
    assert [row["x"] for row in got] == [{i, "set"} for i in order_of(20).tolist()]


# ---- Small datasets, and errors ------------------------------------------------------------------


def test_no_rows(cluster):
    empty = ray.data.range(10, override_num_blocks=3).filter(lambda row: False)
    shuffled = shufd.ray.random_shuffle(empty, SEED)
    assert shuffled.count() == 0
    assert shufd.ray.random_shuffle(ray.data.from_arrow(pa.table({"id": pa.array([], pa.int8())})), SEED).count() == 0


def test_most_blocks_are_empty(cluster):
    some = ray.data.range(1000, override_num_blocks=20).filter(lambda row: row["id"] < 3)
    check(some, 3)


def test_one_row(cluster):
    check(ray.data.range(1), 1)


def test_wrong_arguments(cluster):
    rows = ray.data.range(10)

    def refused(words, *arguments):
        with pytest.raises(shufd.Invalid, match=words):
            shufd.ray.random_shuffle(*arguments)

    refused("dataset: list: expected a ray.data.Dataset", [1, 2], SEED)
    refused("seed: 18446744073709551616", rows, 2**64)
    refused("epoch: 18446744073709551616", rows, SEED, 2**64)
    refused("dataset: column _shufd_place: expected another name", rows.rename_columns({"id": "_shufd_place"}), SEED)


def test_columns_that_some_blocks_lack(cluster):
    """As read_json() makes them from files that lack an optional field."""
    short = [{"a": i} for i in range(4)]
    long = [{"a": 10 + i, "b": i} for i in range(4)]
    for parts in ((short, long), (long, short)):
        first, second = (ray.data.from_items(rows, override_num_blocks=4) for rows in parts)
        union = first.union(second).materialize()
        before = union.take_all()
        shuffled = shufd.ray.random_shuffle(union, seed=SEED).take_all()
        expected = [before[i] for i in order_of(8, epoch=0)]
        assert [{k: v for k, v in row.items() if v is not None} for row in shuffled] == [
            {k: v for k, v in row.items() if v is not None} for row in expected
        ]


def test_an_error_of_the_dataset(cluster):
    def fail(batch):
        raise KeyError("broken")

    with pytest.raises(Exception, match="broken"):
        shufd.ray.random_shuffle(ray.data.range(10).map_batches(fail), SEED)


# ---- A node that ends ----------------------------------------------------------------------------


def end_node_after_count(cluster, monkeypatch, rows_of_block):
    """A dataset of three blocks on a node that ends while random_shuffle() works. Ray computes the blocks again.
    They have 1 MB, because Ray keeps small ones in the memory of the driver."""
    node = cluster.add_node(num_cpus=1, resources={"extra": 1}, object_store_memory=1 << 28)
    dataset = ray.data.range(300_000, override_num_blocks=3).map_batches(
        rows_of_block, batch_size=None, num_cpus=0, resources={"extra": 0.01}
    )
    count = shufd.ray._count

    def count_and_end(rows):
        found = count(rows)
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=1, resources={"extra": 1}, object_store_memory=1 << 28)
        return found

    monkeypatch.setattr(shufd.ray, "_count", count_and_end)
    return dataset


def test_a_node_that_ends(cluster, monkeypatch, tmp_path):
    def count_calls(batch):
        (tmp_path / str(time.time_ns())).touch()
        return {"id": batch["id"], "x": batch["id"] * 2}

    dataset = end_node_after_count(cluster, monkeypatch, count_calls)
    shuffled = shufd.ray.random_shuffle(dataset, SEED, EPOCH)
    assert np.array_equal(numbers_of(shuffled, "x"), 2 * order_of(300_000))
    assert len([*tmp_path.iterdir()]) > 3


def test_other_rows_when_computed_again(cluster, monkeypatch, tmp_path):
    def more_rows_each_time(batch):
        (tmp_path / str(time.time_ns())).touch()
        return {"id": np.zeros(100_000 + len([*tmp_path.iterdir()]), np.int64)}

    dataset = end_node_after_count(cluster, monkeypatch, more_rows_each_time)
    with pytest.raises(shufd.Invalid, match="rows: expected .* Ray lost the block"):
        shufd.ray.random_shuffle(dataset, SEED, EPOCH)


def test_ray_train_reads_ahead(client):
    """Without a cluster: the loader that prepare_data_loader() makes."""
    torch = pytest.importorskip("torch")
    from ray.train.torch.train_loop_utils import _WrappedDataLoader

    import shufd.torch

    sampler = shufd.torch.DistributedSampler(range(24), seed=7, client=client)
    loader = _WrappedDataLoader(torch.utils.data.DataLoader(range(24), batch_size=4, sampler=sampler), torch.device("cpu"), False)
    for step, _ in enumerate(loader, 1):
        if step < 6:
            with pytest.raises(shufd.Invalid, match="used: None"):
                sampler.state_dict()
        assert sampler.state_dict(used=4 * step)["position"] == 4 * step
    assert sampler.state_dict(used=24)["position"] == 24
