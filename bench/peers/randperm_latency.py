# SPDX-License-Identifier: MIT
"""The peer of small requests: torch.randperm(n) in process, from the call to the synchronised result.

Prints one JSON object with every sample in nanoseconds.
"""
import argparse
import json
import sys
import time

WARM_UP = 1000


def samples(torch, n, device, count):
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    taken = []
    for _ in range(WARM_UP + count):
        start = time.perf_counter_ns()
        torch.randperm(n, device=device)
        wait()
        taken.append(time.perf_counter_ns() - start)
    return taken[WARM_UP:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(json.dumps({"absent": str(error)}))
        return
    if options.device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"absent": "torch sees no GPU"}))
        return
    taken = samples(torch, options.n, options.device, options.samples)
    json.dump({"torch": torch.__version__, "ns": taken}, sys.stdout)


if __name__ == "__main__":
    main()
