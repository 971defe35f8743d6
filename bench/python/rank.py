#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One rank of samplers.py. It reads the names of measurements from its standard input, and replies to
each with a figure, or null if the peer does not have that figure.

    rank.py PEER N RANK WORLD SECONDS
"""

import itertools
import json
import sys
import time

from peers import BATCH, PEERS

class Timer:
    """Wall and CPU time of the rates. A rate takes `seconds`, in as many epochs as it needs."""

    def __init__(self, seconds):
        self.seconds, self.wall, self.cpu = seconds, 0.0, 0.0

    def start(self):
        self.began = time.perf_counter(), time.process_time()

    def stop(self):
        self.wall += time.perf_counter() - self.began[0]
        self.cpu += time.process_time() - self.began[1]

    def is_over(self):
        return self.wall + time.perf_counter() - self.began[0] > self.seconds

    def rates(self, count):
        """`count` per second of wall time, and per second of CPU time of this process."""
        return count / self.wall, count / self.cpu


def rate(make, size, seconds):
    """Items a second, without the first item of each epoch. An item has `size` indices. The end of an
    epoch counts, such as that of a DataLoader's workers."""
    timer, done = Timer(seconds), 0
    while timer.wall < seconds:
        iterator = iter(make())
        next(iterator)
        timer.start()
        for number, _ in enumerate(iterator):
            done += size
            if number % 8 == 0 and timer.is_over():
                break
        del iterator
        timer.stop()
    return timer.rates(done)


def one_at_a_time(make, count, seconds):
    """Indices a second in a Python loop, in blocks of at most 65 536 indices of epochs of `count`."""
    timer, done = Timer(seconds), 0
    block = min(65_536, count // 2)
    while timer.wall < seconds:
        iterator = make()
        next(iterator)
        timer.start()
        for _ in range((count - 1) // block):
            for _ in itertools.islice(iterator, block):
                pass
            done += block
            if timer.is_over():
                break
        timer.stop()
    return timer.rates(done)


def latency(make):
    """Seconds until the first index."""
    start = time.perf_counter()
    next(make())
    return time.perf_counter() - start, None


class Rank:
    """The measurements of one peer: each returns the figure by wall time, and by CPU time or None. In
    `new`, this rank has not started the epoch before; in `again` it has."""

    def __init__(self, peer, seconds):
        self.peer, self.seconds = peer, seconds
        self.half = peer.n // peer.world // 2

    def new(self, epoch):
        return latency(lambda: self.peer.start(epoch))

    def again(self, epoch):
        return latency(lambda: self.peer.start(epoch))

    def resume(self, epoch):
        return latency(lambda: self.peer.resume(epoch, self.half))

    def single(self, epoch):
        return one_at_a_time(lambda: self.peer.start(epoch), self.peer.n // self.peer.world, self.seconds)

    def rate(self, make, *arguments):
        return rate(lambda: make(*arguments), BATCH, self.seconds)

    def batches(self, epoch):
        return self.rate(self.peer.batches, epoch)

    def loader0(self, epoch):
        return self.rate(self.peer.loader, epoch, 0)

    def loader2(self, epoch):
        return self.rate(self.peer.loader, epoch, 2)

    def array_loader0(self, epoch):
        return self.rate(self.peer.array_loader, epoch, 0)

    def array_loader2(self, epoch):
        return self.rate(self.peer.array_loader, epoch, 2)


def reply(rank, name, epoch):
    try:
        value, cpu = getattr(rank, name)(epoch)
        return {"value": value, "cpu": cpu}
    except AttributeError as error:
        return {"value": None, "error": str(error)}
    except (MemoryError, RuntimeError) as error:
        return {"value": None, "error": f"{type(error).__name__}: {error}"[:200]}


def main():
    n, rank, world = map(int, sys.argv[2:5])
    peer = PEERS[sys.argv[1]](n, rank, world)
    measured = Rank(peer, float(sys.argv[5]))
    print(json.dumps({"ready": peer.versions()}), flush=True)
    for line in sys.stdin:
        name, epoch = line.split()
        print(json.dumps(reply(measured, name, int(epoch))), flush=True)


if __name__ == "__main__":
    main()
