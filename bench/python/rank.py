#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One rank of samplers.py: reads the names of measurements from its standard input, and answers each
with a figure, or null where the peer has no such figure.

    rank.py PEER N RANK WORLD BYTES      BYTES: the limit of private memory
"""

import itertools
import json
import resource
import sys
import time

from peers import BATCH, PEERS

SECONDS = 1.5  # of a rate


def rate(iterator, size):
    """Indices a second, from the second item on, for some time; `size` of them in an item."""
    next(iterator)
    start, done = time.perf_counter(), 0
    chunk = max(1, 65_536 // size)
    while (seconds := time.perf_counter() - start) < SECONDS:
        before = time.perf_counter()
        items = sum(1 for _ in itertools.islice(iterator, chunk))
        done += items * size
        if items < chunk:
            seconds = time.perf_counter() - start
            break
        chunk = chunk * 2 if time.perf_counter() - before < SECONDS / 10 else chunk
    return done / seconds if seconds else 0


def one_at_a_time(iterator, count):
    """Indices a second in a loop of Python over `count` indices, but not for longer than SECONDS."""
    next(iterator)
    start, done = time.perf_counter(), 0
    while done + 65_536 < count and time.perf_counter() - start < SECONDS:
        for _ in itertools.islice(iterator, 65_536):
            pass
        done += 65_536
    return done / (time.perf_counter() - start)


def latency(make):
    """Seconds until the first index."""
    start = time.perf_counter()
    next(make())
    return time.perf_counter() - start


class Rank:
    """The measurements of one peer. A new epoch is one that no rank has begun."""

    def __init__(self, peer):
        self.peer = peer
        self.half = peer.n // peer.world // 2

    def new(self, epoch):
        return latency(lambda: self.peer.start(epoch))

    def resident(self, epoch):
        return latency(lambda: self.peer.start(epoch))

    def resume(self, epoch):
        return latency(lambda: self.peer.resume(epoch, self.half))

    def single(self, epoch):
        return one_at_a_time(self.peer.start(epoch), self.peer.n // self.peer.world)

    def batches(self, epoch):
        return rate(self.peer.batches(epoch), BATCH)

    def loader0(self, epoch):
        return rate(iter(self.peer.loader(epoch, 0)), BATCH)

    def loader2(self, epoch):
        return rate(iter(self.peer.loader(epoch, 2)), BATCH)

    def array_loader0(self, epoch):
        return rate(iter(self.peer.array_loader(epoch, 0)), BATCH)

    def array_loader2(self, epoch):
        return rate(iter(self.peer.array_loader(epoch, 2)), BATCH)


def answer(rank, name, epoch):
    try:
        return {"value": getattr(rank, name)(epoch)}
    except AttributeError as error:
        return {"value": None, "error": str(error)}
    except (MemoryError, RuntimeError) as error:
        return {"value": None, "error": f"{type(error).__name__}: {error}"[:200]}


def main():
    peer, n, rank, world, limit = sys.argv[1], *map(int, sys.argv[2:])
    peer = PEERS[peer](n, rank, world)
    measured = Rank(peer)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    print(json.dumps({"ready": peer.versions()}), flush=True)
    for line in sys.stdin:
        name, epoch = line.split()
        print(json.dumps(answer(measured, name, int(epoch))), flush=True)


if __name__ == "__main__":
    main()
