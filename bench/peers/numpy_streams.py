# SPDX-License-Identifier: MIT
"""The peer of streams on the CPU: numpy's Generator on one thread.

The output is existing memory that was touched before. integers() cannot use it and allocates.
Prints one JSON object with every sample in nanoseconds of the thread's CPU time.
"""
import argparse
import json
import sys
import time


def timed(work, count):
    """Times `count` samples after a warm-up run."""
    work()
    taken = []
    for _ in range(count):
        start = time.thread_time_ns()
        work()
        taken.append(time.thread_time_ns() - start)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=2 * 10**7)
    parser.add_argument("--samples", type=int, default=7)
    options = parser.parse_args()
    try:
        import numpy
    except ImportError as error:
        print(json.dumps({"absent": str(error)}))
        return
    n, samples = options.n, options.samples
    generator = numpy.random.default_rng(7)
    reply = {"numpy": numpy.__version__, "words": type(generator.bit_generator).__name__}
    for name, dtype in (("f64", numpy.float64), ("f32", numpy.float32)):
        out = numpy.ones(n, dtype)
        for what, draw in (("normal", generator.standard_normal), ("random", generator.random)):
            reply[f"{what}_{name}_ns"] = timed(lambda: draw(dtype=dtype, out=out), samples)
    for name, dtype in (("u32", numpy.uint32), ("u64", numpy.uint64)):
        top = int(numpy.iinfo(dtype).max) + 1
        reply[f"integers_{name}_ns"] = timed(
            lambda: generator.integers(0, top, n, dtype), samples
        )
    json.dump(reply, sys.stdout)


if __name__ == "__main__":
    main()
