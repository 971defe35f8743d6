#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The time, the bytes and the memory of an exchange between GPUs, calculated from measured rates.

    exchange_model.py                  prints the tables of docs/exchange.md
    exchange_model.py --check PAGE     fails if the tables in the page differ
    exchange_model.py --write PAGE     replaces them

docs/exchange.md explains the formulas and names the source of each rate.
"""

import argparse
import dataclasses
import math
import pathlib
import sys

NODE = 8  # GPUs that NVLink connects
NARROW = 2**31 - 2**23  # from this n on, primefold needs words of 64 bits
SELECT = {32: 305e9, 64: 189e9}  # positions of the output a second, by the bits of the words
SPLIT = {32: 336e9, 64: 150e9}  # places a second
SORT = {32: 1500e9, 64: 1100e9}  # bytes a second that sorts read and write, with the evaluations between them
ONE_SIDED = 102e9  # places a second of a one-sided plan
SELECT_GPUS, SPLIT_GPUS = 12, 8  # for more GPUs, sorts make the order, and the places
NVLINK = 349e9  # bytes a second that NCCL's all-to-all sends over the links of a GPU
PLACED = 134e9  # written rows of 8 bytes a second that a GPU puts in their places
REQUEST_BYTES = 4  # for each row that a peer writes
INFINIBAND = 50e9  # bytes a second of a GPU's NDR adapter
ROUND_BYTES, ROUND_SECONDS = 2**28, 0.12e-3  # the bytes that a rank sends in a round; the least time of a round
PLAN_BYTES, SORT_BYTES = 8, 8  # for each record: the plan; the scratch memory of sorts
ONE_SIDED_BYTES = 2.5  # for each place: the most scratch memory of a one-sided plan
STAGE_BYTES = 2**31  # the rows and requests that peers write, by the default budget
GPUS = (1, 2, 4, 8, 64, 1024)

# Plans on one H200: GPUs, records of a GPU, milliseconds.
MEASURED = [
    (1, 2**28, 2.02),
    (2, 2**28, 2.56),
    (4, 2**28, 4.27),
    (7, 2**28, 6.95),
    (8, 2**28, 8.04),
    (8, 2**26, 1.95),
    (16, 2**26, 3.12),
    (24, 2**28, 25.2),
    (64, 2**28, 25.4),
    (1024, 2**28, 28.1),
    (1024, 2**30, 112.2),
]

# Plans of both kinds, calculated: GPUs, records of a GPU.
BOTH_KINDS = [(2, 2**28), (4, 2**28), (8, 2**28)]


@dataclasses.dataclass
class Case:
    """A method for records of one size, in a table of its own."""

    title: str
    width: int  # bytes of a record
    records: int  # of a GPU
    move: float  # records a second that a GPU reads or writes in the order of a plan
    gpus: tuple = GPUS
    peer: float = 0.0  # bytes a second that a kernel reads from a peer, by a one-sided plan; 0: by all-to-all
    is_written: bool = False  # by kernels of the peers, by a one-sided plan


CASES = [
    Case("Records of 8 bytes, 2^28 a GPU (2 GiB), one by one", 8, 2**28, 34.6e9),
    Case("The same by windows", 8, 2**28, 59e9),
    Case("The same, written into the memory of the peers", 8, 2**28, PLACED, (2, 4, 8), is_written=True),
    Case("Records of 256 bytes, 2^24 a GPU (4 GiB)", 256, 2**24, 1986e9 / 256),
    Case("The same, read directly from the memory of the peers", 256, 2**24, 1986e9 / 256, (2, 4, 8), 375e9),
    Case("Records of 8 bytes, 2^30 a GPU (8 GiB), by windows: n = 2^40 on 1024 GPUs", 8, 2**30, 59e9, (1024,)),
]


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


def plan_seconds(n, gpus, records):
    bits, ranks = (n - 1).bit_length(), (gpus - 1).bit_length()
    word = 32 if n < NARROW else 64
    sorted_order = records * (bytes_by_keys(bits) if bits <= 32 else bytes_by_digits(bits)) / SORT[word]
    sorted_places = records * bytes_by_digits(ranks) / SORT[word]
    few = 32 if n < 2**32 else 64  # the words of selection and split
    order = n / SELECT[few] if gpus <= SELECT_GPUS else sorted_order
    places = records / SPLIT[few] if gpus <= SPLIT_GPUS else sorted_places
    return order + places


def plan_bytes(gpus, records):
    """The memory of the plan, while it is computed."""
    return records * (PLAN_BYTES + (0 if gpus <= min(SELECT_GPUS, SPLIT_GPUS) else SORT_BYTES))


def one_sided_seconds(places):
    return places / ONE_SIDED


def one_sided_bytes(places):
    """The memory of a one-sided plan, while it is computed."""
    return places * (PLAN_BYTES + ONE_SIDED_BYTES)


# ---- The exchange --------------------------------------------------------------------------------


@dataclasses.dataclass
class Row:
    """One rank of a job."""

    gpus: int
    n: int
    plan: float  # seconds
    move: float
    exchange: float
    nvlink: float  # bytes that the rank sends
    infiniband: float
    pair: float  # bytes from one rank to another
    memory: float  # beside input and output
    has_overlap: bool = True  # of move and exchange

    @property
    def in_sequence(self):
        return self.plan + self.move + self.exchange

    @property
    def overlapped(self):
        return self.plan + max(self.move, self.exchange) if self.has_overlap else self.in_sequence


def row_of(case, gpus):
    own = case.records * case.width
    near = min(gpus, NODE) - 1
    nvlink, infiniband = own * near / gpus, own * (gpus - 1 - near) / gpus
    if case.peer:
        plan, memory = one_sided_seconds(case.records), one_sided_bytes(case.records)
        from_own = case.records / gpus / case.move
        return Row(gpus, case.records * gpus, plan, from_own, nvlink / case.peer, nvlink, 0, own / gpus, memory)
    if case.is_written:
        plan, sent = one_sided_seconds(case.records), nvlink + case.records * near / gpus * REQUEST_BYTES
        memory = one_sided_bytes(case.records) + STAGE_BYTES
        move = case.records / case.move
        return Row(gpus, case.records * gpus, plan, move, sent / NVLINK, sent, 0, own / gpus, memory, False)
    plan = plan_seconds(case.records * gpus, gpus, case.records)
    memory = plan_bytes(gpus, case.records)
    rounds = 0 if gpus == 1 else math.ceil(own / ROUND_BYTES)
    exchange = rounds * ROUND_SECONDS + max(nvlink / NVLINK, infiniband / INFINIBAND)
    memory = max(memory, case.records * PLAN_BYTES + 4 * ROUND_BYTES)
    move = 2 * case.records / case.move
    return Row(gpus, case.records * gpus, plan, move, exchange, nvlink, infiniband, own / gpus, memory)


# ---- The tables ----------------------------------------------------------------------------------


def ms(seconds):
    return f"{seconds * 1e3:.1f}"


def gigabytes(value):
    return f"{value / 1e9:.2f}" if value else "0"


def size(value):
    return f"{value / 2**20:,.0f} MiB" if value >= 2**20 else f"{value / 2**10:,.0f} KiB"


COLUMNS = [
    ("GPUs", lambda row: f"{row.gpus}"),
    ("n", lambda row: f"2^{row.n.bit_length() - 1}"),
    ("plan, ms", lambda row: ms(row.plan)),
    ("move, ms", lambda row: ms(row.move)),
    ("exchange, ms", lambda row: ms(row.exchange)),
    ("one after the other, ms", lambda row: ms(row.in_sequence)),
    ("overlapped, ms", lambda row: ms(row.overlapped)),
    ("10^9 records/s, all GPUs", lambda row: f"{row.n / row.overlapped / 1e9:.1f}"),
    ("NVLink, GB", lambda row: gigabytes(row.nvlink)),
    ("InfiniBand, GB", lambda row: gigabytes(row.infiniband)),
    ("a pair", lambda row: size(row.pair)),
    ("memory, GiB", lambda row: f"{row.memory / 2**30:.2f}"),
]


PLAN_COLUMNS = [
    ("GPUs", lambda row: f"{row[0]}"),
    ("records of a GPU", lambda row: f"2^{row[1].bit_length() - 1}"),
    ("measured, ms", lambda row: f"{row[2]}"),
    ("calculated, ms", lambda row: ms(calculated(row))),
    ("difference", lambda row: f"{100 * (calculated(row) * 1e3 / row[2] - 1):+.0f}%"),
]


KIND_COLUMNS = [
    ("GPUs", lambda row: f"{row[0]}"),
    ("records of a GPU", lambda row: f"2^{row[1].bit_length() - 1}"),
    ("plan of both sides, ms", lambda row: ms(plan_seconds(row[0] * row[1], *row))),
    ("one-sided plan, ms", lambda row: ms(one_sided_seconds(row[1]))),
]


def calculated(row):
    gpus, records, _ = row
    return plan_seconds(gpus * records, gpus, records)


def table(rows, columns=COLUMNS):
    yield "| " + " | ".join(name for name, _ in columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(text(row) for _, text in columns) + " |"


def tables():
    parts = ["### Plans, measured on one H200", "", *table(MEASURED, PLAN_COLUMNS), ""]
    parts += ["### Plans of both kinds, calculated", "", *table(BOTH_KINDS, KIND_COLUMNS), ""]
    for case in CASES:
        parts += [f"### {case.title}", "", *table([row_of(case, gpus) for gpus in case.gpus]), ""]
    return "\n".join(parts)


BEGIN, END = "<!-- tables of bench/exchange_model.py -->\n\n", "\n<!-- end -->"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    action.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    options = parser.parse_args()
    page = options.check or options.write
    if page is None:
        print(tables())
        return
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = before + BEGIN + tables() + END + after
    if options.write:
        page.write_text(expected)
    elif text != expected:
        sys.exit(f"{page}: the tables differ from those of bench/exchange_model.py; write them with --write {page}")


if __name__ == "__main__":
    main()
