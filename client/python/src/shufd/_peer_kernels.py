# SPDX-License-Identifier: MIT
"""Kernels that move rows between the GPUs of a machine by one-sided plans. _row_kernel.py says why Triton.

All addresses are in tables. An argument would be compiled into the kernel if it is a multiple of 16.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any, NamedTuple, Sequence

import torch

from ._row_kernel import tile_of, to_device, word_of

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for CPUs comes without it
    triton = None


class Request(NamedTuple):
    """What a rank asks of this one: addresses. The target is that of the first record of the part."""

    begins: int  # of the windows of this rank in the part
    records: int  # the list of these windows
    target: int


class Owner(NamedTuple):
    """A rank whose rows this one reads."""

    rows: int  # address
    window: int  # the number of its first window


class PlanTable(NamedTuple):
    """A one-sided plan for the kernel: addresses of its lists, and numbers."""

    begins: int
    records: int
    indices: int
    places: int
    part: int
    windows: int


def _define_send() -> Any:
    @triton.jit(do_not_specialize=["count", "chunks"])  # type: ignore[misc]
    def send_rows(  # type: ignore[no-untyped-def]
        requests, count, chunks, units: tl.constexpr, word: tl.constexpr, rows: tl.constexpr, words: tl.constexpr
    ):
        program = tl.program_id(0)
        window = program // (chunks * count)
        chunk = program - window * chunks * count
        request = requests + (chunk % count) * 4
        source = tl.load(request).to(tl.pointer_type(word))
        begins = tl.load(request + 1).to(tl.pointer_type(tl.uint32))
        records = tl.load(request + 2).to(tl.pointer_type(tl.uint32))
        target = tl.load(request + 3).to(tl.pointer_type(word))
        first = tl.load(begins).to(tl.int64)
        begin = tl.load(begins + window).to(tl.int64)
        end = tl.load(begins + window + 1).to(tl.int64)
        for start in range(begin + (chunk // count) * rows, end, chunks * rows):
            k = start + tl.arange(0, rows)
            inside = k < end
            i = tl.load(records + (k - first), mask=inside, other=0).to(tl.int64)
            for unit in range(0, units, words):
                at = unit + tl.arange(0, words)
                mask = inside[:, None] & (at < units)[None, :]
                row = tl.load(source + (i[:, None] * units + at[None, :]), mask=mask)
                tl.store(target + (k[:, None] * units + at[None, :]), row, mask=mask)

    return send_rows


def _define_take() -> Any:
    @triton.jit(do_not_specialize=["world"])  # type: ignore[misc]
    def take_rows(  # type: ignore[no-untyped-def]
        plan, owners, world, units: tl.constexpr, word: tl.constexpr, rows: tl.constexpr, words: tl.constexpr
    ):
        begins = tl.load(plan).to(tl.pointer_type(tl.uint32))
        records = tl.load(plan + 1).to(tl.pointer_type(tl.uint32))
        index = tl.load(plan + 2).to(tl.pointer_type(tl.uint32))
        part = tl.load(plan + 4)
        windows = tl.load(plan + 5)
        target = tl.load(plan + 6).to(tl.pointer_type(word))
        j = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
        inside = j < tl.load(plan + 3)
        of = j // part
        k = tl.load(index + j, mask=inside, other=0)
        i = tl.load(records + (of * part + k), mask=inside, other=0).to(tl.int64)
        owner = tl.zeros_like(k)
        for rank in range(1, world):
            begin = begins + (of * (windows + 1) + tl.load(owners + 2 * rank + 1))
            owner += (k >= tl.load(begin, mask=inside, other=0)).to(tl.uint32)
        source = tl.load(owners + 2 * owner, mask=inside, other=0).to(tl.pointer_type(word))
        for unit in range(0, units, words):
            at = unit + tl.arange(0, words)
            mask = inside[:, None] & (at < units)[None, :]
            row = tl.load(source[:, None] + (i[:, None] * units + at[None, :]), mask=mask)
            tl.store(target + (j[:, None] * units + at[None, :]), row, mask=mask)

    return take_rows


@cache
def _send_kernel() -> Any:
    return _define_send()


@cache
def _take_kernel() -> Any:
    return _define_take()


class Sender:
    """Sends the rows of a tensor, in the current stream of its device."""

    def __init__(self, leaf: torch.Tensor, row_bytes: int, windows: int, groups: Sequence[Sequence[Request]]) -> None:
        """Each group of requests is for one launch. The tensor has so many windows."""
        flat = [request for group in groups for request in group]
        source = leaf.data_ptr()
        self.device, self.windows, self.groups = leaf.device, windows, groups
        self.word = word_of(row_bytes, [source, *(request.target for request in flat)])
        self.units = row_bytes * 8 // self.word.primitive_bitwidth
        self.table = to_device([[source, *request] for request in flat] or [[0]], leaf.device)
        self.firsts = list(itertools.accumulate((len(group) for group in groups), initial=0))

    def launch(self, group: int, expected: int) -> None:
        """`expected` is about the rows that a request has in a window."""
        count = len(self.groups[group])
        if count == 0 or self.windows == 0:
            return
        rows, words = tile_of(self.units)
        chunks = max(1, -(-expected // rows))
        with torch.cuda.device(self.device):
            _send_kernel()[(self.windows * chunks * count,)](
                self.table[self.firsts[group]], count, chunks, self.units, self.word, rows, words
            )


def take_rows(out: torch.Tensor, row_bytes: int, plan: PlanTable, owners: Sequence[Owner]) -> None:
    """Reads the rows for all places of `out` from their owners, in the current stream."""
    word = word_of(row_bytes, [out.data_ptr(), *(owner.rows for owner in owners)])
    units = row_bytes * 8 // word.primitive_bitwidth
    rows, words = tile_of(units)
    table, ranks = to_device([[*plan, out.data_ptr()]], out.device), to_device(owners, out.device)
    with torch.cuda.device(out.device):
        _take_kernel()[(max(1, -(-plan.places // rows)),)](
            table, ranks, len(owners), units, word, rows, words
        )


@cache
def compile_send(row_bytes: int, offset: int, device: torch.device) -> None:
    """Compiles the kernel of Sender for rows of this size at addresses with this offset_of(), by a launch without rows.
    A failure is then one of this rank before the exchange, not during it."""
    nothing = torch.zeros(16, dtype=torch.int64, device=device)
    address = nothing.data_ptr()
    Sender(nothing, row_bytes, 1, [[Request(address, address, address + offset)]]).launch(0, 1)


@cache
def compile_take(row_bytes: int, offset: int, device: torch.device) -> None:
    """Compiles the kernel of take_rows() in the same way."""
    nothing = torch.zeros(16, dtype=torch.int64, device=device)
    address = nothing.data_ptr()
    plan = PlanTable(address, address, address, 0, 1, 0)
    take_rows(nothing.view(torch.uint8)[:0], row_bytes, plan, [Owner(address + offset, 0)])
