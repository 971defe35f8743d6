#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an order costs a reader of chunks, and how well it mixes: docs/orders.md.

    orders.py [--records N] [--chunk S]

The records lie in chunks of S neighbours, sorted by 100 classes. For each order:

    chunks ahead  different chunks in the next 10 000 records, on average over 300 random positions
    open          most chunks that a reader has open, from the first to the last record of each
    apart         how far neighbours of a chunk are apart in the order, in parts of n (1/3 if all places are equally likely)
    entropy       bits in the classes of a batch of 256 records, on average; log2(100) = 6.64 at most
    classes       different classes in a batch of 256 records, on average

Peers, where they are installed: the shuffles of MosaicML Streaming in blocks of 64 and 256 chunks, as StreamingDataset reads
them on one machine without workers; WebDataset's pipeline of shards and records in random order.
"""
import argparse
import importlib.util
import random

import numpy as np

import shufd

CLASSES, BATCH, AHEAD = 100, 256, 10_000


def buffered(stream, size, rng):
    """A shuffle buffer: each new record takes the place of a random one, which goes out."""
    buffer, out = stream[:size].copy(), np.empty_like(stream)
    places = rng.integers(size, size=len(stream) - size)
    for i, place in enumerate(places):
        out[i] = buffer[place]
        buffer[place] = stream[size + i]
    out[len(stream) - size :] = rng.permutation(buffer)
    return out


def most_open(chunks):
    """The most chunks between their first and last record."""
    n = len(chunks)
    first = np.unique(chunks, return_index=True)[1]
    last = n - 1 - np.unique(chunks[::-1], return_index=True)[1]
    change = np.bincount(first, minlength=n + 1) - np.bincount(last + 1, minlength=n + 1)[: n + 1]
    return int(np.cumsum(change).max())


def entropy(labels):
    bits = []
    for batch in labels[: len(labels) // BATCH * BATCH].reshape(-1, BATCH):
        share = np.bincount(batch, minlength=CLASSES) / BATCH
        share = share[share > 0]
        bits.append(-(share * np.log2(share)).sum())
    return float(np.mean(bits))


class Absent(Exception):
    pass


def of_mosaicml(n, chunk, algorithm, block):
    from streaming.base.partition import get_partitions
    from streaming.base.shuffle import algos, get_shuffle

    if algorithm not in algos:
        raise Absent(f"mosaicml-streaming has only {', '.join(algos)}")
    nodes = 64 if algorithm == "py1s" else 1  # "canonical nodes" for one machine; it reads from all of them in turn
    places = get_partitions("relaxed", n, nodes, 1, 1, 1, BATCH).reshape(-1)
    return get_shuffle(algorithm, np.full(n // chunk, chunk), nodes, 7, 0, block)[places[places >= 0]]


def of_webdataset(n, chunk, size):
    import webdataset

    def records(shards):
        for shard in shards:
            yield from range(shard * chunk, (shard + 1) * chunk)

    shards, rng = n // chunk, random.Random(7)
    stages = lambda: iter(range(shards)), webdataset.shuffle(shards, rng=rng), records, webdataset.shuffle(size, rng=rng)
    return np.fromiter(webdataset.DataPipeline(*stages), np.int64, n)


def rows_of_peers(n, chunk):
    """(row, package, its order)"""
    yield "MosaicML py1s", "streaming", lambda: of_mosaicml(n, chunk, "py1s", 0)
    for algorithm in ("py1b", "py1br", "py1e"):
        for window in (64, 256):
            name = f"MosaicML {algorithm}, blocks of {window} chunks"
            yield name, "streaming", lambda a=algorithm, w=window: of_mosaicml(n, chunk, a, w * chunk)
    for size in (1_000, 10_000, 100_000):
        yield f"WebDataset, shuffle({size})", "webdataset", lambda s=size: of_webdataset(n, chunk, s)


def row(name, order, chunk):
    n = len(order)
    assert (np.bincount(order, minlength=n) == 1).all(), name
    chunks, labels = order // chunk, order * CLASSES // n
    begins = np.random.default_rng(11).integers(n - AHEAD + 1, size=300)
    ahead = np.mean([len(np.unique(chunks[i : i + AHEAD])) for i in begins])
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    inside = np.arange(n - 1)[(np.arange(n - 1) + 1) % chunk != 0]
    apart = np.abs(place[inside + 1] - place[inside]).mean() / n
    batches = labels[: n // BATCH * BATCH].reshape(-1, BATCH)
    classes = np.mean([len(np.unique(batch)) for batch in batches])
    print(f"{name:44} {ahead:9.1f} {most_open(chunks):7} {apart:8.4f} {entropy(labels):8.2f} {classes:8.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--chunk", type=int, default=1000)
    arguments = parser.parse_args()
    n, chunk, rng = arguments.records, arguments.chunk, np.random.default_rng(7)
    print(f"n {n}, chunks of {chunk}\n{'':44} {'ahead':>9} {'open':>7} {'apart':>8} {'entropy':>8} {'classes':>8}")
    row("as stored", np.arange(n), chunk)
    chunks = rng.permutation(n // chunk)
    shards = (chunks[:, None] * chunk + np.arange(chunk)).reshape(-1)
    row("chunks in random order", shards, chunk)
    for size in (1_000, 10_000, 100_000):
        row(f"the same, through a shuffle buffer of {size}", buffered(shards, size, rng), chunk)
    for window in (1, 4, 16, 64, 256):
        order = shufd.local.permute(n, 7, chunk=chunk, window=window).astype(np.int64)
        row(f"shufd, windows of {window} chunk{'s' * (window > 1)}", order, chunk)
    row("shufd, uniform", shufd.local.permute(n, 7).astype(np.int64), chunk)
    for name, package, order_of in rows_of_peers(n, chunk):
        try:
            if not importlib.util.find_spec(package):
                raise Absent("not installed")
            row(name, order_of(), chunk)
        except Absent as error:
            print(f"{name:44} {error}")


if __name__ == "__main__":
    main()
