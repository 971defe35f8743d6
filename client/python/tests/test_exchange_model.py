# SPDX-License-Identifier: MIT
"""bench/exchange_model.py restates the rounds and the sizes of buffers. Here they are compared with the code."""

import importlib.util
import pathlib
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
    assert _agreement.budget_of(None, [on_gpu]) == model.rounds_of.__defaults__[0] == model.STAGE_BYTES


@pytest.mark.parametrize("gpus", GPUS)
@pytest.mark.parametrize("width, records", JOBS)
def test_rounds(model, gpus, width, records):
    pair = records // gpus
    counts = [pair] * gpus
    lists = SimpleNamespace(
        to=counts, arriving=counts, order=SimpleNamespace(count=pair * gpus), places=SimpleNamespace(count=pair * gpus)
    )
    move = StagedMove(SimpleNamespace(rank=0), lists, torch.empty(0, width, dtype=torch.uint8, device="meta"), None)
    rounds, bytes = model.rounds_of(records, width, gpus)
    assert move.count_rounds(model.STAGE_BYTES) == rounds
    move.leaf = SimpleNamespace(device="meta")
    if bytes < 1 << 40:
        assert sum(buffer.numel() for pair in move._allocate(rounds) for buffer in pair) == bytes


@pytest.mark.parametrize("gpus", (1, 2, 4, 8))
def test_stage(model, gpus):
    """The model has the largest stage."""
    stage = 2 * room_for(2**28, 2**28, 8, gpus, model.STAGE_BYTES).bytes_of(8, gpus)
    assert 0.99 * model.STAGE_BYTES < stage <= model.STAGE_BYTES
