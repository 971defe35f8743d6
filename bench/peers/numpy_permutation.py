# SPDX-License-Identifier: MIT
"""The peer of permute on the CPU: numpy's Generator on one thread.

permutation(n) allocates int64 values. shuffle() works on existing uint32 values.
Prints one JSON object with every sample in nanoseconds.
"""
import argparse
import json
import sys
import time


MINUTE_NS = 60 * 10**9


def timed(work, count):
    """Times `count` samples, but begins none after a minute."""
    taken = []
    while len(taken) < count and sum(taken) < MINUTE_NS:
        start = time.perf_counter_ns()
        work()
        taken.append(time.perf_counter_ns() - start)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10**9)
    parser.add_argument("--samples", type=int, default=3)
    options = parser.parse_args()
    try:
        import numpy
    except ImportError as error:
        print(json.dumps({"absent": str(error)}))
        return
    generator = numpy.random.default_rng(7)
    try:
        permutation = timed(lambda: generator.permutation(options.n), options.samples)
        values = numpy.arange(options.n, dtype=numpy.uint32)
        shuffle = timed(lambda: generator.shuffle(values), options.samples)
    except MemoryError as error:
        print(json.dumps({"absent": str(error)}))
        return
    reply = {"numpy": numpy.__version__, "permutation_ns": permutation, "shuffle_ns": shuffle}
    json.dump(reply, sys.stdout)


if __name__ == "__main__":
    main()
