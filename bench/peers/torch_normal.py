# SPDX-License-Identifier: MIT
"""What Gaussian streams on a GPU are measured against: torch's normal_(), which is randn's kernel.

Into memory that is there, device time by events. Prints one JSON object with every sample in
nanoseconds.
"""
import argparse
import json
import sys

SAMPLES = 9


def samples(torch, values):
    """After one that warms up."""
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
