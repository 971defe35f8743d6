# SPDX-License-Identifier: MIT
"""bench/exchange_model.py restates the rounds and the sizes of buffers. Here they are compared with the code."""

import ctypes
import importlib.util
import pathlib
import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from shufd import _agreement
from shufd._kernel_move import StagedMove
from shufd._stage import room_for

ROOT = pathlib.Path(__file__).resolve().parents[3]
GPUS = (2, 3, 4, 8, 64, 1024)
JOBS = [(8, 2**28), (256, 2**24), (8, 2**30), (8, 2**20), (64, 2**23), (1 << 20, 2**12)]  # bytes, records of a rank


@pytest.fixture(scope="module")
def model():
    spec = importlib.util.spec_from_file_location("exchange_model", ROOT / "bench" / "exchange_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_budgets(model):
    rows = [torch.empty(1, device="meta")]
    on_gpu = SimpleNamespace(device=SimpleNamespace(type="cuda"))
    assert _agreement.budget_of(None, rows) != _agreement.budget_of(None, [on_gpu])
    assert _agreement.budget_of(None, [on_gpu]) == model.rounds_of_torch.__defaults__[0] == model.STAGE_BYTES
    source = (ROOT / "client" / "nccl" / "shuffle.c").read_text()
    mebibytes = re.search(r"#define DEFAULT_BUDGET \(UINT64_C\((\d+)\) << 20\)", source)[1]
    assert int(mebibytes) << 20 == model.rounds_of_nccl.__defaults__[0]


@pytest.mark.parametrize("gpus", GPUS)
@pytest.mark.parametrize("width, records", JOBS)
def test_rounds_of_torch(model, gpus, width, records):
    pair = records // gpus
    counts = [pair] * gpus
    lists = SimpleNamespace(
        to=counts, arriving=counts, order=SimpleNamespace(count=pair * gpus), places=SimpleNamespace(count=pair * gpus)
    )
    move = StagedMove(SimpleNamespace(rank=0), lists, torch.empty(0, width, dtype=torch.uint8, device="meta"), None)
    rounds, bytes = model.rounds_of_torch(records, width, gpus)
    assert move.count_rounds(model.STAGE_BYTES) == rounds
    move.leaf = SimpleNamespace(device="meta")
    if bytes < 1 << 40:
        assert sum(buffer.numel() for pair in move._allocate(rounds) for buffer in pair) == bytes


@pytest.fixture(scope="module")
def rounds_of_c(tmp_path_factory):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("rounds") / "rounds.so"
    source = ROOT / "client" / "nccl" / "rounds.c"
    subprocess.run([compiler, "-std=c11", "-shared", "-fPIC", "-o", library, source], check=True)
    c = ctypes.CDLL(str(library))
    c.shuf__nccl_count_rounds.restype = c.shuf__nccl_buffer_records.restype = ctypes.c_uint64
    return c


@pytest.mark.parametrize("gpus", GPUS)
@pytest.mark.parametrize("width, records", JOBS)
def test_rounds_of_nccl(model, rounds_of_c, gpus, width, records):
    """A segment has a count and two places in lists. Its own segment has no records."""
    segments = (ctypes.c_uint64 * (3 * gpus))()
    segments[::3] = [0] + [records // gpus] * (gpus - 1)
    rounds, bytes = model.rounds_of_nccl(records, width, gpus)
    budget = ctypes.c_uint64(model.rounds_of_nccl.__defaults__[0])
    assert rounds == rounds_of_c.shuf__nccl_count_rounds(segments, segments, gpus, ctypes.c_uint64(width), budget)
    buffer = rounds_of_c.shuf__nccl_buffer_records(segments, gpus, ctypes.c_uint64(rounds)) * width
    assert bytes == 4 * buffer


@pytest.mark.parametrize("gpus", (1, 2, 4, 8))
def test_stage(model, gpus):
    """The model has the largest stage."""
    stage = 2 * room_for(2**28, 2**28, 8, gpus, model.STAGE_BYTES).bytes_of(8, gpus)
    assert 0.99 * model.STAGE_BYTES < stage <= model.STAGE_BYTES
