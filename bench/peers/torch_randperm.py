# SPDX-License-Identifier: MIT
"""The peer of permute on a GPU: torch.randperm(n, device="cuda"), as int64 (its default) and as int32.

Times are device times by events. Prints one JSON object with every sample in nanoseconds.
"""
import argparse
import json
import sys

SAMPLES = 9


def samples(torch, n, dtype):
    """Returns the times of SAMPLES runs after a warm-up run."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    taken = []
    for _ in range(1 + SAMPLES):
        start.record()
        torch.randperm(n, dtype=dtype, device="cuda")
        stop.record()
        stop.synchronize()
        taken.append(start.elapsed_time(stop) * 1e6)
    return taken[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[10**9])
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(json.dumps({"absent": str(error)}))
        return
    if not torch.cuda.is_available():
        print(json.dumps({"absent": "torch sees no GPU"}))
        return
    rows = []
    for n in options.n:
        for name, dtype in (("int64", torch.int64), ("int32", torch.int32)):
            taken = sorted(samples(torch, n, dtype))
            rows.append({"n": n, "dtype": name, "median_ns": taken[SAMPLES // 2], "ns": taken})
    json.dump(
        {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "rows": rows},
        sys.stdout,
        indent=1,
    )
    print()


if __name__ == "__main__":
    main()
