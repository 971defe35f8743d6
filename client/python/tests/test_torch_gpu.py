# SPDX-License-Identifier: MIT
"""Tensors and arrays of CuPy in the memory of a GPU have the bits of those on the CPU. Needs a GPU, torch for CUDA, and the
CUDA library of shufd."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shufd
import shufd.torch as shuftorch
from conftest import run_in_child, run_threads
from shufd import _in_process, local
from torch_calls import CALLS

if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
SIZES = (0, 1, 2, 3, 1000, 65_537, 1_000_003)


def same(on_gpu, on_cpu):
    assert on_gpu.is_cuda and on_gpu.dtype is on_cpu.dtype and on_gpu.shape == on_cpu.shape
    kind = INTEGERS[on_cpu.element_size()]
    assert torch.equal(on_gpu.detach().cpu().contiguous().view(kind), on_cpu.detach().contiguous().view(kind))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("algorithm", ["primefold", "philox24", "lcg"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_randperm(n, algorithm, dtype):
    for part in ({}, {"offset": n // 3, "stride": 3}, {"offset": n // 2, "count": n // 4}):
        arguments = {"seed": 2**63 + 7, "epoch": 3, "dtype": dtype, "algorithm": algorithm, **part}
        same(shuftorch.randperm(n, device="cuda", **arguments), shuftorch.randperm(n, **arguments))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers(size, dtype):
    for method, offset in itertools.product(("table", "box-muller"), (0, 3, 2**40)):
        place = {"seed": 7, "stream": 5, "offset": offset}
        on_gpu, on_cpu = torch.empty(size, dtype=dtype, device="cuda"), torch.empty(size, dtype=dtype)
        same(shuftorch.normal_(on_gpu, 1.0, 2.0, method=method, **place),
             shuftorch.normal_(on_cpu, 1.0, 2.0, method=method, **place))  # fmt: skip
        if dtype in (torch.float64, torch.float32):
            for low, high in ((0.0, 1.0), (-1.0, 2.0), (1000.0, 1001.0), (3.0, 3.0)):
                same(shuftorch.uniform_(on_gpu, low, high, **place), shuftorch.uniform_(on_cpu, low, high, **place))
            same(shuftorch.exponential_(on_gpu, 3.0, **place), shuftorch.exponential_(on_cpu, 3.0, **place))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_bits_and_integers(size, dtype):
    for p, offset in itertools.product((0.0, 0.1, 0.5, 1.0), (0, 3, 2**40)):
        place = {"seed": 7, "stream": 5, "offset": offset}
        on_gpu, on_cpu = torch.empty(size, dtype=dtype, device="cuda"), torch.empty(size, dtype=dtype)
        same(shuftorch.bits_(on_gpu, p, **place), shuftorch.bits_(on_cpu, p, **place))
        bound = 1 + int(p * (3 << 29 if dtype is torch.int32 else 3 << 61))
        same(shuftorch.integers_(on_gpu, bound, **place), shuftorch.integers_(on_cpu, bound, **place))


@pytest.mark.parametrize("shape", [(0, 3), (1,), (1000,), (300, 7), (70_000, 3), (5, 70_000), (3, 1 << 20)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64])
@pytest.mark.parametrize("algorithm", ["primefold", "philox24"])
def test_shuffle(shape, dtype, algorithm):
    rows = torch.arange(int(np.prod(shape))).reshape(shape).to(dtype)
    place = {"seed": 7, "epoch": 3, "algorithm": algorithm}
    shuffled = shuftorch.shuffle(rows.cuda(), **place)
    assert torch.equal(shuffled.cpu(), shuftorch.shuffle(rows, **place))
    assert torch.equal(shuftorch.shuffle(shuffled, inverse=True, **place).cpu(), rows)


def test_index():
    at = torch.randint(0, 10**12, (300, 40))
    values = shuftorch.index(at.cuda(), 10**12, seed=7, epoch=3)
    assert torch.equal(values.cpu(), shuftorch.index(at, 10**12, seed=7, epoch=3))
    assert torch.equal(shuftorch.index(values, 10**12, seed=7, epoch=3, inverse=True).cpu(), at)
    assert shuftorch.index(torch.tensor([1, 10, -1], device="cuda"), 10, seed=7).tolist()[1:] == [-1, -1]


def test_tensors_that_a_kernel_cannot_write():
    """Of other strides, and at an address that is no multiple of 16. Their neighbours stay."""
    for first, step in ((1, 1), (0, 2), (3, 3)):
        memory = torch.full((4000,), -1, dtype=torch.int64, device="cuda")
        out = memory[first::step][:1000]
        shuftorch.randperm(1000, seed=7, out=out)
        same(out.contiguous(), shuftorch.randperm(1000, seed=7))
        assert (memory == -1).sum() == 3000
        places = memory[first::step][:1000]
        same(shuftorch.index(places, 1000, seed=7), shuftorch.index(places.cpu(), 1000, seed=7))
    turned = torch.empty(30, 40, device="cuda").T
    same(shuftorch.normal_(turned, seed=7), shuftorch.normal_(torch.empty(40, 30), seed=7))


# ---- Streams, graphs, threads --------------------------------------------------------------------


def test_the_current_stream():
    """The call returns before the work before it has ended, and the values come after it."""
    stream = torch.cuda.Stream()
    tensor = torch.zeros(1000, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        shuftorch.normal_(tensor, seed=7)
        torch.cuda._sleep(200_000_000)
        tensor.zero_()
        shuftorch.normal_(tensor, seed=8)
        assert not stream.query()
    stream.synchronize()
    same(tensor, shuftorch.normal_(torch.empty(1000), seed=8))


def test_graphs():
    out, noise = torch.empty(1000, dtype=torch.int64, device="cuda"), torch.empty(1000, device="cuda")
    generator = shuftorch.Generator(7)
    shuftorch.randperm(1000, seed=7, out=out)
    shuftorch.normal_(noise, seed=7)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        shuftorch.randperm(1000, seed=7, epoch=3, out=out)
        shuftorch.normal_(noise, seed=9)
        shuftorch.uniform_(noise, -1.0, 1.0, seed=9)
        other = shuftorch.randperm(1000, seed=9, device="cuda", algorithm="philox24")
        for call in (lambda: generator.normal_(noise), lambda: generator.rand(3), lambda: generator.randperm(3)):
            with pytest.raises(shufd.Invalid, match="^generator: a CUDA graph would repeat.*pass seed= and offset="):
                call()
    assert generator.draw == 0
    for _ in range(3):
        out.zero_(), noise.zero_(), other.zero_()
        graph.replay()
        same(out, shuftorch.randperm(1000, seed=7, epoch=3))
        same(noise, shuftorch.uniform_(torch.empty(1000), -1.0, 1.0, seed=9))
        same(other, shuftorch.randperm(1000, seed=9, algorithm="philox24"))


def test_each_call_in_a_graph():
    """One graph has all calls, with the tensors that they make."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # loads all kernels
        for call in CALLS:
            call("cuda")
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        values = [call("cuda") for call in CALLS]
    for value in values:
        value.zero_()
    for _ in range(2):
        graph.replay()
        for value, call in zip(values, CALLS):
            same(value, call("cpu"))


def test_a_fingerprint_in_a_graph():
    """By libshuf itself, because shufd.torch has no function for it."""
    values = shuftorch.normal_(torch.empty(100_003, device="cuda"), seed=7)
    found = torch.zeros(1, dtype=torch.int64, device="cuda")

    def fingerprint():
        stream = torch.cuda.current_stream().cuda_stream
        _in_process.check(_in_process.lib.shufpy_cuda_fingerprint(
            values.data_ptr(), 4, values.numel(), found.data_ptr(), stream
        ))  # fmt: skip

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fingerprint()
    found.zero_()
    for _ in range(2):
        graph.replay()
        assert f"{found.item() % 2**64:#018x}" == local.fingerprint(values.cpu().numpy())


def test_eight_threads():
    def run(number):
        expected = shuftorch.randperm(100_003, seed=number, algorithm=("primefold", "philox24")[number % 2])
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                order = shuftorch.randperm(
                    100_003, seed=number, device="cuda", algorithm=("primefold", "philox24")[number % 2]
                )
                assert torch.equal(order.cpu(), expected)

    run_threads(run, 8)


def test_compiled_functions():
    if not hasattr(torch, "compile"):
        pytest.skip("without torch.compile")

    def step(rows, epoch):
        noise = shuftorch.normal_(torch.empty_like(rows), seed=7, offset=epoch)
        return shuftorch.shuffle(rows, seed=7, epoch=epoch) + noise, shuftorch.randperm(10, seed=7, device=rows.device)

    rows = torch.arange(3000.0, device="cuda").reshape(1000, 3)
    compiled = torch.compile(step, fullgraph=True)
    for epoch in (3, 4, 5):
        for value, expected in zip(compiled(rows, epoch), step(rows, epoch)):
            same(value, expected.cpu())


def test_a_generator_gives_the_same_numbers():
    on_gpu, on_cpu = shuftorch.Generator(7, 3), shuftorch.Generator(7, 3)
    for size, dtype in itertools.product((1, 5, 1000), (torch.float32, torch.float64)):
        same(on_gpu.randn(size, dtype=dtype, device="cuda"), on_cpu.randn(size, dtype=dtype))
        same(on_gpu.rand(size, dtype=dtype, device="cuda"), on_cpu.rand(size, dtype=dtype))
        same(on_gpu.randperm(size, device="cuda"), on_cpu.randperm(size))


def test_another_gpu():
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    tensor = torch.empty(1000, device="cuda:1")
    same(shuftorch.normal_(tensor, seed=7), shuftorch.normal_(torch.empty(1000), seed=7))
    assert torch.cuda.current_device() == 0
    with pytest.raises(shufd.Invalid, match="^out: on cuda:1: expected cuda:0"):
        shuftorch.randperm(3, seed=7, device="cuda:0", out=torch.empty(3, dtype=torch.int64, device="cuda:1"))


def test_child_of_fork():
    shuftorch.randperm(3, seed=7, device="cuda")
    address = torch.empty(16, dtype=torch.int64, device="cuda").data_ptr()

    def child():
        with pytest.raises(shufd.DeviceError):
            _in_process.check(_in_process.lib.shufpy_cuda_slice(3, 7, 0, 0, 3, 1, 3, 0, address, 24))
        assert shuftorch.randperm(3, seed=7).tolist() == local.permute(3, 7).tolist()

    run_in_child(child)


# ---- CuPy ----------------------------------------------------------------------------------------


def test_cupy():
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Stream():
        for algorithm in ("primefold", "philox24"):
            out = cupy.empty(100_003, cupy.int64)
            assert local.permute(100_003, 7, algorithm=algorithm, out=out) is out
            assert (cupy.asnumpy(out) == local.permute(100_003, 7, algorithm=algorithm, dtype="i64")).all()
        for dtype in ("f8", "f4", "f2"):
            out = cupy.empty((300, 5), dtype)
            assert (cupy.asnumpy(local.normal(seed=7, out=out)) == local.normal(size=(300, 5), seed=7, dtype=dtype)).all()
        out = cupy.empty(1000, "f4")
        assert (cupy.asnumpy(local.uniform(-1, 2, seed=7, out=out)) == local.uniform(-1, 2, 1000, seed=7, dtype="f4")).all()
        rows = np.arange(3000.0).reshape(1000, 3)
        shuffled = local.shuffle(cupy.asarray(rows), 7, out=cupy.empty((1000, 3)))
        assert (cupy.asnumpy(shuffled) == local.shuffle(rows, 7)).all()
    with pytest.raises(shufd.Invalid, match="^out: a tensor of torch: expected"):
        local.permute(10, 7, out=torch.empty(10, dtype=torch.int64, device="cuda"))
