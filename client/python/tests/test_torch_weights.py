# SPDX-License-Identifier: MIT
"""shufd.torch.WeightTable and weighted_sample(): the draws and samples of shufd.local, from tensors of each type and device."""

import numpy as np
import pytest
import shufd
import shufd.torch
import torch
from shufd.torch import WeightTable, weighted_sample

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


def same(tensor, expected):
    assert tensor.dtype is torch.int64
    np.testing.assert_array_equal(tensor.cpu().numpy(), expected)


def some_weights(count, kind, seed=1):
    numbers = np.random.default_rng(seed).integers(0, 100, count)
    numbers[0] = 1
    return torch.from_numpy(numbers).to(kind)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", TYPES)
def test_draws(device, kind):
    for count in (1, 2, 1000, 70_001):
        weights = some_weights(count, kind)
        expected = shufd.local.Weighted(weights.to(torch.float64).numpy(), 7, 3)
        table = WeightTable(weights.to(device))
        drawn = table.draw(100_000, seed=7, epoch=3)
        assert drawn.device == table.device and table.device.type == device
        same(drawn, expected.range(0, 100_000))
        same(table.draw(1001, seed=7, epoch=3, offset=10**18, stride=17), expected.range(10**18, 1001, 17))
        same(table.draw(0, seed=7), [])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", TYPES)
def test_samples(device, kind):
    for count in (1, 2, 1000, 70_001):
        weights = some_weights(count, kind)
        most = int((weights != 0).sum())
        for size in {0, 1, most // 2, most}:
            sample = weighted_sample(weights.to(device), size, seed=7, epoch=3)
            same(sample, shufd.local.weighted_sample(weights.to(torch.float64).numpy(), size, 7, 3))
        with pytest.raises(shufd.Invalid, match=f"expected at most {most}"):
            weighted_sample(weights.to(device), most + 1, seed=7)


@pytest.mark.parametrize("device", DEVICES)
def test_weights_of_any_stride_that_change_later(device):
    memory = torch.arange(3001, dtype=torch.float64, device=device, requires_grad=True)
    weights = memory[1::3]
    table, expected = WeightTable(weights), shufd.local.Weighted(weights.detach().cpu().numpy(), 7)
    sample = weighted_sample(weights, 10, seed=7)
    same(sample, shufd.local.weighted_sample(weights.detach().cpu().numpy(), 10, 7))
    memory.detach().zero_()
    same(table.draw(1000, seed=7), expected.range(0, 1000))


@pytest.mark.parametrize("device", DEVICES)
def test_refusals(device):
    def refused(weights, words):
        for call in (WeightTable, lambda values: weighted_sample(values, 1, seed=7)):
            with pytest.raises(shufd.Invalid, match=words):
                call(torch.tensor(weights, device=device))

    refused([], "weights: shape .0,.: expected one dimension")
    refused([[1.0]], "weights: shape .1, 1.: expected one dimension")
    refused([0.0, 0.0], "weights: all are 0")
    refused([1.0, -2.0], r"weights\[1\] -2: expected a finite number")
    refused([1.0, float("nan")], r"weights\[1\] nan: expected a finite number")
    refused([3, -2], "weights: -2: expected numbers of 0 or more")
    refused([1j], "weights: torch.complex64: expected numbers")
    table = WeightTable(torch.ones(5, device=device))
    with pytest.raises(shufd.Invalid, match="below 2.62"):
        table.draw(2, seed=7, offset=2**62 - 1)
    with pytest.raises(shufd.Invalid, match="stride 0"):
        table.draw(2, seed=7, stride=0)
    with pytest.raises(shufd.Invalid, match="count: -1"):
        table.draw(-1, seed=7)
    with pytest.raises(shufd.Invalid, match=f"^count: {2**63}: expected at most 2.62$"):
        table.draw(2**63, seed=7)
    with pytest.raises(shufd.Invalid, match="expected a tensor"):
        WeightTable([1.0, 2.0])
    assert repr(table).startswith("shufd.torch.WeightTable(n=5, device='" + device)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_graphs_and_streams():
    weights = some_weights(1000, torch.float32).cuda()
    table, expected = WeightTable(weights), shufd.local.Weighted(weights.cpu().numpy(), 7)
    graph = torch.cuda.CUDAGraph()
    table.draw(1000, seed=7)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        out = table.draw(1000, seed=7)
    out.zero_()
    graph.replay()
    same(out, expected.range(0, 1000))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        mine = table.draw(1000, seed=7)
        assert not stream.query()
    stream.synchronize()
    same(mine, expected.range(0, 1000))
