# SPDX-License-Identifier: MIT
"""The peers of the CPU: numpy's Generator on one thread.

    numpy_peers.py permutation    # permutation(n) allocates int64 values; shuffle() works on existing uint32 values
    numpy_peers.py streams        # into existing memory that was touched before; integers() cannot use it and allocates

Prints one JSON object with every sample in nanoseconds: of wall time for permutations, of the thread's CPU time for
streams.
"""
import argparse
import json
import time

MINUTE_NS = 60 * 10**9


def timed(work, count, clock):
    """Times `count` samples, but begins none after a minute."""
    taken = []
    while len(taken) < count and sum(taken) < MINUTE_NS:
        start = clock()
        work()
        taken.append(clock() - start)
    return taken


def permutation(numpy, n, samples):
    generator, clock = numpy.random.default_rng(7), time.perf_counter_ns
    taken = timed(lambda: generator.permutation(n), samples, clock)
    values = numpy.arange(n, dtype=numpy.uint32)
    return {"permutation_ns": taken, "shuffle_ns": timed(lambda: generator.shuffle(values), samples, clock)}


def streams(numpy, n, samples):
    generator = numpy.random.default_rng(7)

    def warm(work):
        work()
        return timed(work, samples, time.thread_time_ns)

    reply = {"words": type(generator.bit_generator).__name__}
    for name, dtype in (("f64", numpy.float64), ("f32", numpy.float32)):
        out = numpy.ones(n, dtype)
        for what, draw in (("normal", generator.standard_normal), ("random", generator.random)):
            reply[f"{what}_{name}_ns"] = warm(lambda: draw(dtype=dtype, out=out))
    for name, dtype in (("u32", numpy.uint32), ("u64", numpy.uint64)):
        top = int(numpy.iinfo(dtype).max) + 1
        reply[f"integers_{name}_ns"] = warm(lambda: generator.integers(0, top, n, dtype))
    return reply


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["permutation", "streams"])
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--samples", type=int, default=3)
    options = parser.parse_args()
    try:
        import numpy

        reply = {"permutation": permutation, "streams": streams}[options.peer](numpy, options.n, options.samples)
    except (ImportError, MemoryError) as error:
        print(json.dumps({"absent": str(error)}))
        return
    print(json.dumps({"numpy": numpy.__version__, **reply}))


main()
