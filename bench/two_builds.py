#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the requests of two builds by their own shufctl, in turn on one machine: results in host memory, summaries and
files.

    bench/two_builds.py BUILD BUILD [--backend cuda] [--json FILE]

A time is the total that shufctl prints: from the request to the mapped result. A call is a new process, so the daemon was
idle for some milliseconds before it.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
SUMMARIES = ("1e9", str(2**31), str(2**32), str(2**33 + 1))


class Build:
    """The daemon and the shufctl of a build."""

    def __init__(self, folder, backend):
        self.folder = pathlib.Path(folder).resolve()
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.directory.chmod(0o755)
        self.socket = str(self.directory / "socket")
        libraries = [str(self.folder / name) for name in ("kernels/cuda", "client", "lib")]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries), "SHUFD_SOCKET": self.socket}
        arguments = ["--no-config", "--backend", backend, "--socket", self.socket, "--socket-mode", "0666"]
        self.log = open(self.directory / "log", "w")
        self.daemon = subprocess.Popen(
            [self.folder / "daemon/shufd", *arguments], env=self.environment, stdout=self.log, stderr=self.log
        )
        self.seed = 0
        self.call("permute", "--n", "10", "--wait", "60")

    def command(self, *arguments):
        self.seed += 1
        return [str(self.folder / "client/shufctl/shufctl"), *arguments, "--seed", str(self.seed)]

    def call(self, *arguments):
        """Returns the printed object."""
        command = self.command(*arguments, "--json")
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def close(self):
        self.daemon.terminate()
        self.daemon.wait()
        shutil.rmtree(self.directory)


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def compare(report, label, builds, calls, measure):
    """Each build in turn, one call at a time."""
    found = [[] for _ in builds]
    for _ in range(calls):
        for build, values in zip(builds, found):
            values.append(1e6 * measure(build))
    rows = [(statistics.median(values), percentile(values, 0.99), max(values)) for values in found]
    report.append({"label": label, "calls": calls, "median_us": [row[0] for row in rows], "p99_us": [row[1] for row in rows]})
    print(f"{label:44}" + "".join(f"{m:12.1f}{p:12.1f}{most:12.1f}" for m, p, most in rows), flush=True)


def total(*arguments):
    return lambda build: build.call(*arguments)["total_seconds"]


def compute(*arguments):
    return lambda build: build.call(*arguments)["compute_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs=2, metavar="BUILD", help="folders with the daemon and shufctl, the earlier first")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    report = []
    builds = [Build(folder, options.backend) for folder in options.builds]
    print(f"{'microseconds: median, 99 %, longest of each':44}" + "".join(f"{folder[-34:]:>36}" for folder in options.builds))
    few = max(options.calls // 10, 3)
    for n in SIZES:
        compare(report, f"n = {n}, memfd", builds, options.calls, total("permute", "--n", str(n), "--transport", "memfd"))
    compare(report, "n = 1000, inline", builds, options.calls, total("permute", "--n", "1000", "--transport", "inline"))
    for n in SUMMARIES:
        for label, measure in (("compute", compute), ("total", total)):
            compare(report, f"summary of n = {n}, {label}", builds, few, measure("permute", "--n", n))
    for dtype in ("f32", "bf16"):
        for label, measure in (("compute", compute), ("total", total)):
            compare(report, f"summary of 1e9 gauss {dtype}, {label}", builds, few, measure("gauss", "--count", "1e9", "--dtype", dtype))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        path = f"{directory}/values.npy"
        compare(report, "1e9 values into a file of tmpfs", builds, 3, lambda b: timed(b.command("permute", "--n", "1e9", "--out", path), b, path))
        builds[0].call("permute", "--n", "1e9", "--out", path)
        compare(report, "cp of this file", builds[:1], 3, lambda b: timed(["cp", path, f"{path}.copy"], b, f"{path}.copy"))
    for build in builds:
        build.close()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1))


def timed(command, build, path):
    start = time.perf_counter()
    subprocess.run(command, env=build.environment, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    os.unlink(path)
    return seconds


if __name__ == "__main__":
    main()
