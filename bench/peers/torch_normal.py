# SPDX-License-Identifier: MIT
"""The peer of Gaussian streams on a GPU: torch's normal_(), which runs the kernel of randn().

It writes to existing memory. Times are device times by events. Prints one JSON object with every
sample in nanoseconds.
"""
import argparse
import json
import sys

SAMPLES = 9


def samples(torch, values):
    """Returns the times of SAMPLES runs after a warm-up run."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    taken = []
    for _ in range(1 + SAMPLES):
        start.record()
        values.normal_()
        stop.record()
        stop.synchronize()
        taken.append(start.elapsed_time(stop) * 1e6)
    return taken[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[2**30])
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(json.dumps({"absent": str(error)}))
        return
    if not torch.cuda.is_available():
        print(json.dumps({"absent": "torch sees no GPU"}))
        return
    numbers = {
        "f64": torch.float64,
        "f32": torch.float32,
        "f16": torch.float16,
        "bf16": torch.bfloat16,
    }
    rows = []
    for n in options.n:
        for number, dtype in numbers.items():
            values = torch.ones(n, dtype=dtype, device="cuda")
            taken = samples(torch, values)
            rows.append({"n": n, "number": number, "width": values.element_size(), "ns": taken})
            del values
    json.dump({"torch": torch.__version__, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main()
