# SPDX-License-Identifier: MIT
"""Kernels that move rows between addresses in the memory of GPUs.

Triton comes with torch and compiles a kernel at its first use. Triton 3.2 is the oldest that can. All addresses are in
tables: an argument would be compiled into the kernel if it is a multiple of 16.
"""

from __future__ import annotations

import itertools
import os
import warnings
from functools import cache
from typing import Any, NamedTuple, Sequence

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for CPUs comes without it
    triton = None

# ---- Rows in the order of lists ------------------------------------------------------------------
# The kernel moves the rows of several segments side by side. So writes to neighbouring places, which come from several
# segments, meet in the cache. torch's own index_select() and index_copy_() take one segment, an index of 64-bit numbers, and
# several times as long for wide rows.

_TILE_WORDS, _NARROW_TILE_WORDS = 1024, 4096  # that a program moves at once; of rows of one word


class Segment(NamedTuple):
    """`rows` rows from one address to another. Row k comes from row source_list[k] of the source, and
    goes to row target_list[k] of the target. A list is the address of its first number; 0 stands for
    k itself."""

    source: int
    target: int
    source_list: int
    target_list: int
    rows: int


@cache
def _kernel() -> Any:
    @triton.jit(do_not_specialize=["segments"])  # type: ignore[misc]
    def move_rows(  # type: ignore[no-untyped-def]
        table, segments, units: tl.constexpr, word: tl.constexpr, number: tl.constexpr, rows: tl.constexpr,
        words: tl.constexpr,
    ):  # fmt: skip
        program = tl.program_id(0)
        segment = table + (program % segments) * 6
        source = tl.load(segment).to(tl.pointer_type(word))
        target = tl.load(segment + 1).to(tl.pointer_type(word))
        k = (program // segments).to(tl.int64) * rows + tl.arange(0, rows)
        inside = k < tl.load(segment + 4)
        source_list = tl.load(segment + 2)
        target_list = tl.load(segment + 3)
        i = tl.load(source_list.to(tl.pointer_type(number)) + k, mask=inside & (source_list != 0), other=0)
        o = tl.load(target_list.to(tl.pointer_type(number)) + k, mask=inside & (target_list != 0), other=0)
        i = tl.where(source_list != 0, i.to(tl.int64), k)
        o = tl.where(target_list != 0, o.to(tl.int64), k)
        for first in range(0, units, words):
            at = first + tl.arange(0, words)
            mask = inside[:, None] & (at < units)[None, :]
            row = tl.load(source + (i[:, None] * units + at[None, :]), mask=mask)
            tl.store(target + (o[:, None] * units + at[None, :]), row, mask=mask)

    return move_rows


def word_of(row_bytes: int, addresses: Sequence[int]) -> Any:
    """The widest word that divides the row and all addresses."""
    bits = row_bytes | 8 | offset_of(addresses)
    return {1: tl.uint8, 2: tl.uint16, 4: tl.uint32, 8: tl.uint64}[bits & -bits]


def offset_of(addresses: Sequence[int]) -> int:
    """An address below 8 for which word_of() gives the same word as for all these addresses."""
    offset = 0
    for address in addresses:
        offset |= address % 8
    return offset


def tile_of(units: int, tile: int = _TILE_WORDS) -> tuple[int, int]:
    """The rows of a program, and the words of a row that it moves at once."""
    words = min(triton.next_power_of_2(units), tile)
    return tile // words, words


def to_device(numbers: Sequence[Sequence[int]], device: torch.device) -> torch.Tensor:
    """A copy from pinned memory, which does not wait for the work of the stream. Without `device` torch would use the
    default device of the user."""
    return torch.tensor(numbers, dtype=torch.int64, device="cpu", pin_memory=True).to(device, non_blocking=True)


class Table:
    """Segments of one device, copied there once, for several launches."""

    def __init__(self, groups: Sequence[Sequence[Segment]], row_bytes: int, width: int, device: torch.device) -> None:
        """Each group is for one launch. `width` is the bytes of a number of the lists."""
        self.groups, self.width, self.device = groups, width, device
        flat = [segment for group in groups for segment in group]
        self.word = word_of(row_bytes, [address for s in flat for address in (s.source, s.target)])
        self.units = row_bytes * 8 // self.word.primitive_bitwidth
        # With six numbers each group begins at a multiple of 16 bytes: Triton compiles other kernels for other addresses.
        self.table = to_device([[*segment, 0] for segment in flat] or [[0] * 6], device)
        self.firsts = list(itertools.accumulate((len(group) for group in groups), initial=0))

    def launch(self, group: int) -> None:
        """Moves the rows of a group, in the current stream of the device."""
        segments = self.groups[group]
        most = max((s.rows for s in segments), default=0)
        if most > 0:
            self._start(group, most)

    def compile(self) -> None:
        """Compiles the kernel by a launch without rows."""
        self._start(0, 0)

    def _start(self, group: int, most: int) -> None:
        segments = max(1, len(self.groups[group]))
        is_narrow = self.units == 1  # many loads of few bytes
        rows, words = tile_of(self.units, _NARROW_TILE_WORDS if is_narrow else _TILE_WORDS)
        number = tl.uint32 if self.width == 4 else tl.uint64
        with torch.cuda.device(self.device):
            _kernel()[(max(1, -(-most // rows)) * segments,)](
                self.table[self.firsts[group]], segments, self.units, self.word, number, rows, words,
                num_warps=16 if is_narrow else 4,
            )  # fmt: skip


@cache
def compile_for(row_bytes: int, offset: int, width: int, device: torch.device) -> None:
    """Compiles the kernel for rows of this size at addresses with this offset_of(), and lists of numbers of `width`
    bytes. A failure is then one of this rank before the exchange, not during it."""
    Table([[Segment(offset, offset, 0, 0, 0)]], row_bytes, width, device).compile()


_available: dict[torch.device, bool] = {}


def is_available(device: torch.device) -> bool:
    """Whether Triton compiles the kernel for the device. Triton needs a C compiler, too. Its interpreter
    cannot read the memory of a GPU."""
    if triton is None or device.type != "cuda" or os.environ.get("TRITON_INTERPRET", "0") != "0":
        return False
    if device not in _available:
        rows = torch.arange(2 * _TILE_WORDS, dtype=torch.int64, device=device)
        moved = torch.zeros_like(rows)
        order = torch.tensor([1, 0], dtype=torch.int32, device=device)
        _available[device] = _moves_rows(rows, moved, order)
    return _available[device]


def _moves_rows(rows: torch.Tensor, moved: torch.Tensor, order: torch.Tensor) -> bool:
    half = len(rows) // 2
    segment = Segment(rows.data_ptr(), moved.data_ptr(), order.data_ptr(), 0, 2)
    try:
        Table([[segment]], 8 * half, 4, rows.device).launch(0)
        return bool(torch.equal(moved, rows.roll(half)))
    except Exception as error:  # of any kind: Triton's own, of the C compiler, of the driver
        warnings.warn(f"shufd: Triton does not work, so rows move slower: {error}", stacklevel=2)
        return False


# ---- Rows between GPUs, by one-sided plans -------------------------------------------------------


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


@cache
def _send_kernel() -> Any:
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


@cache
def _take_kernel() -> Any:
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
