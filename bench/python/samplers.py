#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Samplers of several ranks on one machine: shufd.torch against its peers, in one run.

    samplers.py DIRECTORY [--sizes 1e6,1e8,1e9] [--peers shufd,torch,...] [--ranks 4] [--call PROGRAM]
                [--modes alone,together] [--figures new,resume,...] [--pairs] [--seconds 1] [--limit 60]

Each peer and size has a file in DIRECTORY. The program skips a file that exists, so an interrupted
run continues. report.txt there has all figures as a table. Every figure is measured twice: in one
rank while the others wait, and in all ranks at once. Rates are reported by wall time and by CPU time:
other programs affect CPU time less. Private memory is the largest increase of a rank after its
imports. This process reads it from /proc. `--pairs` compares the DataLoader with that of torch: the
two peers take turns, so that other programs slow both down. The report ends with the goals.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time

import shufd

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from peers import PEERS  # noqa: E402

# name, title, unit, divisor
FIGURES = [
    ("new", "first index, new epoch", "ms", 1e-3),
    ("again", "first index, same epoch again", "ms", 1e-3),
    ("resume", "resume at half", "ms", 1e-3),
    ("single", "one at a time", "M/s", 1e6),
    ("batches", "batches of 1024", "M/s", 1e6),
    ("loader0", "DataLoader, 0 workers", "M/s", 1e6),
    ("loader2", "DataLoader, 2 workers", "M/s", 1e6),
    ("array_loader0", "the same, batches as arrays, 0 workers", "M/s", 1e6),
    ("array_loader2", "the same, batches as arrays, 2 workers", "M/s", 1e6),
]

IN_WORKERS = ("loader2", "array_loader2")  # most CPU time is in the workers, not in the rank


def private_bytes(pid):
    """Bytes of private memory of the process."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")) << 10


class Memory(threading.Thread):
    """Samples the private memory of processes."""

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.before = {pid: private_bytes(pid) for pid in pids}
        self.most = dict(self.before)
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.1):
            for pid in self.most:
                self.most[pid] = max(self.most[pid], private_bytes(pid))

    def end(self):
        self.ended.set()
        self.join()
        return max(self.most[pid] - self.before[pid] for pid in self.most)


class Ranks:
    """The rank processes of a peer. They are killed after `limit` seconds."""

    def __init__(self, peer, n, options, world=None):
        world = world or options.ranks
        self.limit, self.is_late = options.limit, False
        self.timer = threading.Timer(options.limit, self.kill)
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(HERE / "peers.py"), peer, str(n), str(rank), str(options.ranks), str(options.seconds)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True,
                start_new_session=True,
            )
            for rank in range(1 if getattr(PEERS[peer], "one_rank", False) else world)
        ]  # fmt: skip
        ready = [self.read(process) for process in self.processes][0]
        if "ready" not in ready:
            self.end()
            raise RuntimeError(f"{peer}: {ready['error']}")
        self.versions = ready["ready"]
        self.timer.start()

    def kill(self):
        """Ends the ranks and their workers, which have the pipes of the ranks open, too."""
        self.is_late = True
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def read(self, process):
        line = process.stdout.readline()
        if line:
            return json.loads(line)
        end = f"no end within {self.limit:g} s" if self.is_late else process.wait()
        return {"value": None, "error": f"the process ended: {end}"}

    def measure(self, name, epoch, processes):
        for process in processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(f"{name} {epoch}\n")
                process.stdin.flush()
        replies = [self.read(process) for process in processes]
        wrong = [reply["error"] for reply in replies if reply.get("value") is None]
        return (None, wrong[0]) if wrong else ([(reply["value"], reply["cpu"]) for reply in replies], None)

    def end(self):
        self.timer.cancel()
        for process in self.processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()


def available():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("MemAvailable"))) << 10


def limit_memory(processes, total):
    """Divides a limit of private memory evenly among the processes. Above it, they raise MemoryError."""
    for process in processes:
        share = total // len(processes)
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (share, resource.RLIM_INFINITY))


def measure_mode(ranks, processes, epoch, options, errors):
    """Measures the figures in these processes at once. If a peer cannot begin an epoch, it has no other
    figures."""
    found = {}
    for name in options.figures:
        found[name], error = ranks.measure(name, epoch, processes)
        if error:
            errors[name] = error
        if error and (name == "new" or "process ended" in error):
            break
    return found


def measure(peer, n, options):
    ranks = Ranks(peer, n, options)
    memory = Memory([process.pid for process in ranks.processes])
    memory.start()
    total = int(options.memory or 0.6 * available())
    found = {"peer": peer, "n": n, "ranks": options.ranks, "versions": ranks.versions, "memory": total,
             "load": os.getloadavg()[0], "errors": {"alone": {}, "together": {}}}  # fmt: skip
    for mode, processes, epoch in (("alone", ranks.processes[:1], 100), ("together", ranks.processes, 200)):
        limit_memory(processes, total)
        if mode in options.modes:
            errors = found["errors"][mode]
            found[mode] = measure_mode(ranks, processes, epoch, options, errors)
    found["private"] = memory.end()
    ranks.end()
    return found


def measure_pairs(options, n=1_000_000, rounds=9):
    """DataLoader's indices a second over the samplers of shufd and of torch in turn."""
    ranks = [Ranks(peer, n, options, world=1) for peer in ("shufd", "torch")]
    found = {"pairs": {}, "n": n, "load": os.getloadavg()[0]}
    for name in ("loader0", "loader2"):
        turns = [[r.measure(name, 300, r.processes)[0][0][0] for r in ranks] for _ in range(rounds)]
        found["pairs"][name] = turns
    for r in ranks:
        r.end()
    return found


# ---- A call against C ----------------------------------------------------------------------------


def call_in_python(client, n, rounds):
    """Microseconds of a call: wall and CPU time."""
    for epoch in range(1000):
        client.permute(n, 7, epoch % 4)
    wall, cpu = time.perf_counter(), time.process_time()
    for epoch in range(rounds):
        client.permute(n, 7, epoch % 4)
    return [(end - start) / rounds * 1e6 for start, end in ((wall, time.perf_counter()), (cpu, time.process_time()))]


def measure_call(client, program, n=1000, rounds=20_000):
    """Times a call whose result is in the cache, alternately in C and in Python."""
    pairs = []
    for _ in range(9):
        c = subprocess.run([program, client.socket, str(n), str(rounds)], check=True, capture_output=True, text=True)
        pairs.append([*map(float, c.stdout.split()), *call_in_python(client, n, rounds)])
    return {"call": pairs, "n": n, "load": os.getloadavg()[0]}


# ---- The report ----------------------------------------------------------------------------------


def text_of(values, unit, divisor):
    """The figure of the worst rank."""
    return f"{(max if unit == 'ms' else min)(values) / divisor:.3g}"


def rows_of(found):
    for name, title, unit, divisor in FIGURES:
        both = [found.get(mode, {}).get(name) for mode in ("alone", "together")]
        for which, kind in ((0, unit), (1, "M/CPU s")):
            columns = [v and [pair[which] for pair in v] for v in both]
            if any(column and column[0] is not None for column in columns) and not (which and name in IN_WORKERS):
                yield title, kind, *(text_of(c, unit, divisor) if c else "-" for c in columns)
    yield "private memory of a rank", "MiB", "", f"{found['private'] / 2**20:.3g}"


def write_whole(path, text):
    """Replaces the file in one step: other runs of this program may read it."""
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(text)
    part.rename(path)


def write_report(directory, command):
    files = [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]
    lines = [f"command: {command}", f"machine: {platform.processor() or platform.machine()}, "
             f"{os.cpu_count()} CPUs, Python {platform.python_version()}, {datetime.date.today()}"]  # fmt: skip
    for found in files:
        if "call" in found:
            middle = [sorted(column)[len(column) // 2] for column in zip(*found["call"])]
            text = "{:.2f} us in C, of them {:.2f} of CPU time; {:.2f} and {:.2f} us in Python".format(*middle)
            lines.append(f"\na call of n = {found['n']}: {text} (medians; load {found['load']:.1f})")
    order = list(PEERS)
    for found in sorted((f for f in files if "peer" in f), key=lambda f: (f["n"], order.index(f["peer"]))):
        lines.append(f"\n{found['peer']}, n = {found['n']:,}, {found['ranks']} ranks ({found['versions']}; "
                     f"load {found['load']:.1f}, limit {found['memory'] / 2**30:.1f} GiB)")  # fmt: skip
        lines.append(f"    {'':42}{'':9}{'one rank':>10}{'all ranks':>11}")
        for title, unit, alone, together in rows_of(found):
            lines.append(f"    {title:42}{unit:9}{alone:>10}{together:>11}")
        for mode, errors in found["errors"].items():
            lines += [f"    {mode}, {name}: {error}" for name, error in errors.items() if "attribute" not in error]
    write_whole(directory / "report.txt", "\n".join([*lines, "", *goals_of(files)]) + "\n")


# ---- Goals ---------------------------------------------------------------------------------------

# The figures of n = 1e9 are those of the slowest rank, both in one rank alone and in all ranks at once.
# figure at 1e9, title, unit, divisor, limit; rates must reach the limit, all else must not exceed it
LIMITS = [
    ("new", "1e9: first index of a new epoch", "ms", 1e-3, 1),
    ("resume", "1e9: resume at half", "ms", 1e-3, 1),
    ("single", "1e9: one index at a time", "M/s", 1e6, 10),
    ("batches", "1e9: batches of 1024 as arrays", "M/s", 1e6, 150),
]


def line(title, value, unit, limit, at_least):
    if value is None:
        return f"    {'not measured':14}{title}"
    met = value >= limit if at_least else value <= limit
    return f"    {'met' if met else 'MISSED':14}{title:48}{value:10.3g} {unit}, {'at least' if at_least else 'at most'} {limit:g}"


def worst(found, name, at_least):
    """The figure of the slowest rank by wall time in all modes, or None."""
    ranks = [pair[0] for mode in ("alone", "together") for pair in found.get(mode, {}).get(name) or ()]
    return (min if at_least else max)(ranks) if ranks else None


def call_goal(files):
    pairs = next((f["call"] for f in files if "call" in f), None)
    more = pairs and statistics.median(python - c for c, _, python, _ in pairs)
    return line("call of n = 1000: more than in C", more, "us", 5, False)


def loader_goals(files):
    """The median over the turns, so that one turn beside another program does not decide."""
    pairs = next((f["pairs"] for f in files if "pairs" in f), {})
    for name, workers in (("loader0", 0), ("loader2", 2)):
        ratio = statistics.median(ours / torch for ours, torch in pairs[name]) if name in pairs else None
        yield line(f"1e6: DataLoader, {workers} workers: rate over torch's", ratio, "times", 1, True)


def goals_of(files):
    """Lines of text."""
    large = next((f for f in files if f.get("peer") == "shufd" and f["n"] == 10**9), {})
    yield "goals:"
    for name, title, unit, divisor, limit in LIMITS:
        value = worst(large, name, unit == "M/s")
        yield line(title, value and value / divisor, unit, limit, unit == "M/s")
    private = large.get("private")
    yield line("1e9: private memory of a rank", private and private / 2**20, "MiB", 1, False)
    yield call_goal(files)
    yield from loader_goals(files)


# ---- The program ---------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--sizes", type=lambda t: [int(float(s)) for s in t.split(",")], default=[10**6, 10**8, 10**9])
    parser.add_argument("--peers", type=lambda t: t.split(","), default=list(PEERS))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--modes", type=lambda t: t.split(","), default=["alone", "together"])
    parser.add_argument("--figures", type=lambda t: t.split(","), default=[name for name, *_ in FIGURES])
    parser.add_argument("--pairs", action="store_true", help="compares the DataLoaders of shufd and torch in turn")
    parser.add_argument("--seconds", type=float, default=1, help="duration of the measurement of a rate")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for a peer and a size, without its imports")
    parser.add_argument("--memory", type=float, help="limit of the private bytes of the ranks that run; by default 60 %% of the free memory")
    parser.add_argument("--call", help="the program python_call: compares a call with C")
    return parser.parse_args()


def main():
    options = parse()
    options.directory.mkdir(parents=True, exist_ok=True)
    command = " ".join(["samplers.py", *sys.argv[1:]])
    if options.call:
        client = shufd.serve(backend="cpu", quiet=True)
        write_whole(options.directory / "call.json", json.dumps(measure_call(client, options.call)))
        client.close()
    if options.pairs:
        write_whole(options.directory / "pairs.json", json.dumps(measure_pairs(options)))
    for n in options.sizes:
        for peer in options.peers:
            path = options.directory / f"{peer}-{n:.0e}.json".replace("+0", "").replace("+", "")
            if path.exists():
                continue
            print(f"{peer}, n = {n:,}", file=sys.stderr)
            try:
                write_whole(path, json.dumps(measure(peer, n, options), indent=1))
            except RuntimeError as error:
                print(f"not measured: {error}", file=sys.stderr)
    write_report(options.directory, command)


if __name__ == "__main__":
    main()
