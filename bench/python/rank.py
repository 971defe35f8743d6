#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One rank of samplers.py. It reads the names of measurements from its standard input, and replies to
each with a figure, or null if the peer does not have that figure.

    rank.py PEER N RANK WORLD
"""

import itertools
import json
import sys
import time

from peers import BATCH, PEERS

SECONDS = 1.5  # duration of the measurement of a rate


class Timer:
    """Wall and CPU time since the timer was created."""

    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def is_over(self):
        return time.perf_counter() - self.wall > SECONDS

    def rates(self, count):
        """`count` per second of wall time, and per second of CPU time of this process."""
        return count / (time.perf_counter() - self.wall), count / (time.process_time() - self.cpu)


def rate(iterator, size):
    """Indices a second over SECONDS, without the first item. An item has `size` indices."""
    next(iterator)
    timer, done = Timer(), 0
    for _ in iterator:
        done += size
        if done % 32_768 == 0 and timer.is_over():
            break
    return timer.rates(done)


def one_at_a_time(iterator, count):
    """Indices a second in a Python loop over at most `count` indices, for about SECONDS at most."""
    next(iterator)
    timer, done = Timer(), 0
    while done + 65_536 < count and not timer.is_over():
        for _ in itertools.islice(iterator, 65_536):
            pass
        done += 65_536
    return timer.rates(done)


def latency(make):
    """Seconds until the first index."""
    start = time.perf_counter()
    next(make())
    return time.perf_counter() - start, None


class Rank:
    """The measurements of one peer: each returns the figure by wall time, and by CPU time or None. In
    `new`, no rank has started the epoch before; afterwards the parent keeps it in memory."""

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


def reply(rank, name, epoch):
    try:
        value, cpu = getattr(rank, name)(epoch)
        return {"value": value, "cpu": cpu}
    except AttributeError as error:
        return {"value": None, "error": str(error)}
    except (MemoryError, RuntimeError) as error:
        return {"value": None, "error": f"{type(error).__name__}: {error}"[:200]}


def main():
    peer, n, rank, world = sys.argv[1], *map(int, sys.argv[2:])
    peer = PEERS[peer](n, rank, world)
    measured = Rank(peer)
    print(json.dumps({"ready": peer.versions()}), flush=True)
    for line in sys.stdin:
        name, epoch = line.split()
        print(json.dumps(reply(measured, name, int(epoch))), flush=True)


if __name__ == "__main__":
    main()
