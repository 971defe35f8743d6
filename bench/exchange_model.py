#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The time, the bytes and the memory of an exchange between GPUs, calculated from measured rates.

    exchange_model.py                  prints the tables of docs/exchange.md
    exchange_model.py --check PAGE     fails if the tables in the page differ, else prints how far the model is from the
                                       measurements
    exchange_model.py --write PAGE     replaces them

docs/exchange.md names the source of each rate. The measured times are read from the reports in
bench/results. test_moves.py of the Python package compares the rounds with those of the code.
"""

import argparse
import dataclasses
import math
import pathlib
import re
import sys

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
SHUFFLES = RESULTS / "2026-11-28-h200-shuffle.txt"
STAGED_BY_TORCH = RESULTS / "2026-11-26-h200-exchange.txt"
STAGED_BY_TORCH_ROUNDS = 7  # of that commit

NODE = 8  # GPUs that NVLink connects
NARROW = 2**31 - 2**23  # from this n on, primefold needs words of 64 bits
SELECT = {32: 305e9, 64: 189e9}  # positions of the output a second, by the bits of the words
SPLIT = {32: 336e9, 64: 150e9}  # places a second
SORT = {32: 1500e9, 64: 1100e9}  # bytes a second that sorts read and write, with the evaluations between them
SELECT_GPUS, SPLIT_GPUS = 12, 8  # for more GPUs, sorts make the order, and the places
ONE_SIDED = ((2**32, 122e9), (math.inf, 81e9))  # places a second of a one-sided plan, for n below
NVLINK = 349e9  # bytes a second that NCCL's all-to-all sends over the links of a GPU
INFINIBAND = 50e9  # bytes a second of a GPU's NDR adapter
ROUND_SECONDS = 0.12e-3  # the least time of an all-to-all
READ = 330e9  # bytes a second that a kernel reads from peers, records of 256 bytes
WRITTEN = 300e9  # bytes a second that a kernel writes into the memory of peers, records of 8 bytes
REQUESTS, REQUEST_BYTES = 381e9, 4  # bytes a second that copy engines write to peers; bytes for each record
WINDOWS = 111e9  # records of 8 bytes a second that are gathered window by window
PLACED = 168e9  # written records of 8 bytes a second that a GPU puts in their places


@dataclasses.dataclass
class Moves:
    """Records a second that a GPU moves by a plan of both sides."""

    gather: float
    scatter: float
    direct: tuple  # in one pass from their places before to those after the shuffle: for one GPU, for several


MOVES = {8: Moves(34.6e9, 66.3e9, (33.1e9, 23.7e9)), 256: Moves(7.65e9, 7.65e9, (7.65e9, 7.65e9))}


# ---- Rounds and memory ---------------------------------------------------------------------------


def rounds_of(records, width, gpus, budget=2**31):
    """The rounds of staged records, and the bytes of their buffers: StagedMove of global_shuffle(). The ranks have equal
    parts, and each pair of ranks exchanges equally many records."""
    pair = records // gpus
    away = pair * (gpus - 1) * width
    overlapped = max(1, min(4, away // 2**25))
    fitting = 1 if 2 * away <= budget else math.ceil(4 * away / budget)
    rounds = min(max(1, pair), max(overlapped, fitting))
    return rounds, min(2, rounds) * 2 * (gpus - 1) * math.ceil(pair / rounds) * width


STAGE_BYTES = 2**31  # at most: the default budget of global_shuffle()
PLAN_BYTES, SORT_BYTES = 8, 8  # for each record: the plan; the scratch memory of sorts


def block(bytes):
    """The bytes of a block of the daemon: one of eight sizes between two powers of two."""
    step = 2**21
    while step <= bytes // 16:
        step *= 2
    return math.ceil(bytes / step) * step


def plan_block(records, gpus):
    return block(records * PLAN_BYTES + 8 * gpus)


def one_sided_scratch(n, records):
    """The scratch memory for a one-sided plan: 2 bytes for each place, counts for each window, and their sums."""
    bits = max(21, math.ceil(math.log2(n / 256)))
    return block(records * 2 + math.ceil(n / 2**bits) * records // 1024 + 2**17)


# ---- The plan ------------------------------------------------------------------------------------


def bytes_by_digits(bits):
    """Moved for a number that is sorted by 16 bits of its key at a time."""
    moved = 4
    for shift in range(0, bits, 16):
        passes = math.ceil(min(bits - shift, 16) / 8)
        moved += (4 if shift else 0) + 2 + 2 + passes * 2 * (2 + 4)
    return moved


def bytes_by_keys(bits):
    """Moved for a number whose key of 32 bits is sorted alone."""
    return 4 + 4 + math.ceil(bits / 8) * 2 * 4 + 4 + 4


def plan_seconds(gpus, records):
    """A plan of both sides."""
    n = gpus * records
    bits, ranks = (n - 1).bit_length(), (gpus - 1).bit_length()
    word = 32 if n < NARROW else 64
    sorted_order = records * (bytes_by_keys(bits) if bits <= 32 else bytes_by_digits(bits)) / SORT[word]
    sorted_places = records * bytes_by_digits(ranks) / SORT[word]
    few = 32 if n < 2**32 else 64  # the words of selection and split
    order = n / SELECT[few] if gpus <= SELECT_GPUS else sorted_order
    places = records / SPLIT[few] if gpus <= SPLIT_GPUS else sorted_places
    return order + places


def one_sided_seconds(gpus, records):
    n = gpus * records
    return records / next(rate for below, rate in ONE_SIDED if n < below)


# ---- The exchange --------------------------------------------------------------------------------


@dataclasses.dataclass
class Job:
    """One rank of a shuffle. Times are in seconds."""

    gpus: int
    records: int  # of the rank
    width: int  # bytes of a record
    plan: float = 0
    move: float = 0
    exchange: float = 0
    rounds: int = 0
    nvlink: float = 0  # bytes that the rank sends
    infiniband: float = 0
    memory: float = 0  # beside input and output
    overlaps: bool = True  # move and exchange may
    sequence: bool = True  # they may be one after the other

    @property
    def least(self):
        """Without the plan."""
        return max(self.move, self.exchange) if self.overlaps else self.move + self.exchange

    @property
    def most(self):
        return self.move + self.exchange if self.sequence else self.least


def sent_bytes(bytes, gpus):
    """The bytes that a rank sends by NVLink and by InfiniBand."""
    near = min(gpus, NODE) - 1
    return bytes * near / gpus, bytes * (gpus - 1 - near) / gpus


def staged(gpus, records, width, rounds=None):
    """Gathered, sent by NCCL, and put in their places. The own records move in one pass."""
    away, rate = records * (gpus - 1) / gpus, MOVES[width]
    job = Job(gpus, records, width, plan=plan_seconds(gpus, records))
    job.move = away / rate.gather + away / rate.scatter + (records - away) / rate.direct[gpus > 1]
    job.nvlink, job.infiniband = sent_bytes(records * width, gpus)
    scratch = 0 if gpus <= min(SELECT_GPUS, SPLIT_GPUS) else block(records * SORT_BYTES)
    buffers = 0
    if gpus > 1:
        job.rounds, buffers = rounds_of(records, width, gpus)
        job.rounds = rounds or job.rounds
        job.exchange = job.rounds * ROUND_SECONDS + max(job.nvlink / NVLINK, job.infiniband / INFINIBAND)
    job.memory = plan_block(records, gpus) + max(scratch, buffers)
    return job


def one_sided(gpus, records, width, stage):
    job = Job(gpus, records, width, plan=one_sided_seconds(gpus, records))
    job.nvlink, _ = sent_bytes(records * width, gpus)
    job.memory = plan_block(records, gpus) + one_sided_scratch(gpus * records, records) + stage
    return job


def written(gpus, records, width=8):
    """Sent by kernels of the peers, then put in their places."""
    job = one_sided(gpus, records, width, STAGE_BYTES)
    job.overlaps = False
    requests, _ = sent_bytes(records * REQUEST_BYTES, gpus)
    job.exchange = max(job.nvlink / WRITTEN + requests / REQUESTS, records / WINDOWS)
    job.nvlink += requests
    job.move = records / PLACED
    return job


def direct(gpus, records, width=256):
    """Read from the peers. Meanwhile the same kernel moves the own records."""
    job = one_sided(gpus, records, width, 0)
    job.sequence = False
    job.move = records / gpus / MOVES[width].direct[0]
    job.exchange = job.nvlink / READ
    return job


# ---- The reports ---------------------------------------------------------------------------------


def part_of(report, name):
    """The output that a report has under this name."""
    parts = re.split(r"^==> (.+) <==$", report.read_text(), flags=re.MULTILINE)
    return parts[parts.index(name) + 1]


def figures_of_torch(report, name):
    """Milliseconds of bench/python/global_shuffle.py: the medians, by GPUs, rows, bytes of a row, and title."""
    figures, key = {}, None
    for line in part_of(report, name).splitlines():
        if head := re.match(r"(\d+) x NVIDIA H200, (\d+) rows of (\d+) bytes", line):
            key = tuple(map(int, head.groups()))
        elif key and (row := re.match(r"(.+?)  +([\d.]+) ms \(least", line)):
            figures[(*key, row[1])] = float(row[2])
    return figures


def plans_measured():
    """Milliseconds of bench_plan_cuda, by the number of ranks and the records of a rank: plans of both sides by the
    daemon's methods, and one-sided plans."""
    text = part_of(SHUFFLES, "plans.txt")
    both = r"^plan of one of (\d+) ranks, 32 bits, order \w+, places \w+ \* +(\d+) +([\d.]+)"
    one = r"^one-sided plan of one of (\d+) ranks +(\d+) +([\d.]+)"
    found = [
        {(int(gpus), int(n) // int(gpus)): float(ms) for gpus, n, ms in re.findall(pattern, text, re.MULTILINE)}
        for pattern in (both, one)
    ]
    return [{key: ms for key, ms in times.items() if key[1] >= 2**24} for times in found]


@dataclasses.dataclass
class Measured:
    """A job and its measured milliseconds."""

    method: str
    job: Job
    new: float  # with a new plan
    cached: float | None  # with a plan from the cache


def shuffles_measured():
    torch = figures_of_torch(SHUFFLES, "torch.txt") | figures_of_torch(SHUFFLES, "large.txt")

    def by_torch(method, job, times=torch, has_cached=True):
        key = job.gpus, job.records, job.width
        cached = times[(*key, "global_shuffle(), plan from the cache")] if has_cached else None
        return Measured(method, job, times[(*key, "global_shuffle(), new plan")], cached)

    for width, records in (8, 2**28), (256, 2**24):
        if width == 8:
            before = figures_of_torch(STAGED_BY_TORCH, "before.txt")
            job = staged(4, records, width, STAGED_BY_TORCH_ROUNDS)
            yield by_torch("staged, before", job, before)
        else:
            yield by_torch("staged", staged(1, records, width))
    for gpus in 1, 2, 4:
        yield by_torch("written", written(gpus, 2**28))
    yield by_torch("written", written(4, 2**31), has_cached=False)
    for gpus in 2, 4:
        yield by_torch("direct", direct(gpus, 2**24))


# ---- The tables ----------------------------------------------------------------------------------


def ms(seconds):
    return f"{seconds * 1e3:.1f}"


def power(value):
    return f"2^{value.bit_length() - 1}"


def gigabytes(value):
    return f"{value / 1e9:.2f}" if value else "0"


def signed(value, digits=0):
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def span(low, high):
    """A range of texts."""
    return low if low == high else f"{low} to {high}"


def table(columns, rows):
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"


def percent(calculated_s, measured_ms):
    return 100 * (calculated_s * 1e3 / measured_ms - 1)


def plan_rows():
    """The measured plans: GPUs, records; then for both kinds the measured milliseconds and the calculated seconds, or
    None."""
    both, one = plans_measured()
    for gpus, records in sorted(both.keys() | one.keys(), key=lambda key: (key[1], key[0])):
        key = gpus, records
        yield (
            gpus, records, (both[key], plan_seconds(*key)) if key in both else None,
            (one[key], one_sided_seconds(*key)) if key in one else None,
        )  # fmt: skip


def plan_table():
    def cells(pair):
        if not pair:
            return ["-"] * 3
        measured, seconds = pair
        return [f"{measured:.2f}", f"{seconds * 1e3:.2f}", f"{signed(percent(seconds, measured))}%"]

    columns = ["GPUs", "records of a GPU"]
    for kind in "both sides", "one-sided":
        columns += [f"{kind}: measured, ms", "calculated", "difference"]
    return table(columns, ([gpus, power(records), *cells(a), *cells(b)] for gpus, records, a, b in plan_rows()))


def compared(measured_ms, least, most):
    if measured_ms is None:
        return ["-"] * 3
    difference = span(signed(percent(least, measured_ms)), signed(percent(most, measured_ms)))
    return [f"{measured_ms:.1f}", span(ms(least), ms(most)), f"{difference}%"]


def shuffle_table():
    columns = ["records", "GPUs"]
    for plan in "new plan", "cached plan":
        columns += [f"{plan}: measured, ms", "calculated", "difference"]
    rows = []
    for row in shuffles_measured():
        job = row.job
        first = [f"{power(job.records)} of {job.width} bytes a GPU, {row.method}", job.gpus]
        rows.append(
            first + compared(row.new, job.plan + job.least, job.plan + job.most)
            + compared(row.cached, job.least, job.most)
        )  # fmt: skip
    return table(columns, rows)


def summary():
    """How far the model is from the measurements."""
    rows = []

    def add(name, pairs):
        """Pairs of calculated seconds and measured milliseconds."""
        pairs = list(pairs)
        differences = [percent(*pair) for pair in pairs]
        less = [measured - seconds * 1e3 for seconds, measured in pairs]
        rows.append([
            name, len(pairs), span(signed(min(differences)), signed(max(differences))) + "%",
            span(signed(min(less), 1), signed(max(less), 1)),
        ])  # fmt: skip

    plans, shuffles = list(plan_rows()), list(shuffles_measured())
    add("plans of both sides alone", ((pair[1], pair[0]) for *_, pair, _ in plans if pair))
    add("one-sided plans alone", ((pair[1], pair[0]) for *_, pair in plans if pair))
    for way in "staged", "written", "direct":
        chosen = [row for row in shuffles if row.method.startswith(way) and row.cached]
        times = {"records": "least"}
        if way == "staged":
            times = {"records, overlapped": "least", "records, one after the other": "most"}
        for records, time in times.items():
            calculated = [getattr(row.job, time) for row in chosen]
            name = f"{way} {records}"
            add(f"{name}, new plan", [(row.job.plan + c, row.new) for row, c in zip(chosen, calculated)])
            add(f"{name}, cached plan", [(c, row.cached) for row, c in zip(chosen, calculated)])
    add("written records, n = 2^33", ((row.job.plan + row.job.least, row.new) for row in shuffles if not row.cached))
    return table(["measured", "times", "calculated against measured", "measured less calculated, ms"], rows)


def job_table(jobs):
    columns = ["GPUs", "n", "plan, ms", "move, ms", "exchange, ms", "overlapped, ms"]
    columns += ["one after the other, ms", "NVLink, GB", "InfiniBand, GB", "memory, GiB"]
    return table(columns, (
        [
            job.gpus, power(job.gpus * job.records), ms(job.plan), ms(job.move), ms(job.exchange),
            ms(job.plan + job.least) if job.overlaps else "-", ms(job.plan + job.most) if job.sequence else "-",
            gigabytes(job.nvlink), gigabytes(job.infiniband), f"{job.memory / 2**30:.2f}",
        ]
        for job in jobs
    ))  # fmt: skip


def job_tables():
    many, node = (1, 2, 4, 8, 64, 1024), (1, 2, 4, 8)
    yield "Records of 8 bytes, 2^28 a GPU (2 GiB), staged", [staged(gpus, 2**28, 8) for gpus in many[1:]]
    yield "The same, written into the memory of the peers", [written(gpus, 2**28) for gpus in node]
    yield "Records of 256 bytes, 2^24 a GPU (4 GiB), staged", [staged(gpus, 2**24, 256) for gpus in many]
    yield "The same, read directly from the memory of the peers", [direct(gpus, 2**24) for gpus in node[1:]]


def calculated():
    for title, jobs in job_tables():
        yield from ("", f"### {title}", "")
        yield from job_table(jobs)


PARTS = {"plans": plan_table, "shuffles": shuffle_table, "calculated": calculated}


def part(name):
    """The part in the page, between two comments."""
    begin = f"<!-- bench/exchange_model.py: {name} -->\n\n"
    return begin, "\n".join(PARTS[name]()).strip() + "\n", f"\n<!-- end of {name} -->"


def rewrite(page):
    """The page with new tables. Fails if one is missing."""
    for name in PARTS:
        begin, body, end = part(name)
        before, found, rest = page.partition(begin)
        _, ended, after = rest.partition(end)
        if not found or not ended:
            sys.exit(f"no part {begin.strip()} ... {end.strip()}")
        page = before + begin + body + end + after
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    action.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    options = parser.parse_args()
    page = options.check or options.write
    if page is None:
        print("\n\n".join(part(name)[1].strip() for name in PARTS))
        return
    text = page.read_text()
    expected = rewrite(text)
    if options.write:
        page.write_text(expected)
    elif text != expected:
        sys.exit(f"{page}: the tables differ from those of bench/exchange_model.py; write them with --write {page}")
    else:
        print(f"{page}: the tables are those of the model")
        print("\n".join(summary()))


if __name__ == "__main__":
    main()
