# SPDX-License-Identifier: MIT
"""Tensors that this process fills, under torch.compile, torch.export, fake tensors, the modes of torch and the transforms
of torch.func. These need torch 2."""

import copy
import ctypes
import shutil

import pytest

from conftest import skip_without

skip_without("torch")

import torch

import shufd
import shufd.torch as shuftorch
from torch_calls import CALLS

BACKENDS = ["eager", "aot_eager"] + (["inductor"] if shutil.which("g++") else [])


def step(rows, epoch):
    """Calls every function."""
    order = shuftorch.randperm(10, seed=2**64 - 1, epoch=epoch)
    noise = shuftorch.normal_(torch.empty(10), 1.0, 2.0, seed=7, offset=epoch)
    mask = shuftorch.uniform_(torch.empty(10), -1.0, 2.0, seed=-7, stream=epoch)
    bits = shuftorch.normal_(torch.empty(3, 4, dtype=torch.bfloat16), seed=7, method="box-muller")
    gaps = shuftorch.exponential_(torch.empty(10), 3.0, seed=7, stream=epoch)
    words = shuftorch.bits_(torch.empty(10, dtype=torch.int32), 0.3, seed=7, offset=epoch)
    picks = shuftorch.integers_(torch.empty(10, dtype=torch.int64), 1000 + epoch, seed=7, stream=epoch)
    shuffled = shuftorch.shuffle(rows, seed=7, epoch=epoch)
    back = shuftorch.shuffle(shuffled, seed=7, epoch=epoch, inverse=True, out=torch.empty_like(rows))
    values = shuftorch.index(order, 100, seed=7, epoch=epoch)
    tail = shuftorch.randperm(100, seed=7, offset=90, out=torch.empty(10, dtype=torch.int64))
    return order, noise * 1, mask, bits, gaps, words, picks, shuffled, back + 1, values, tail


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_functions_give_the_same_values(backend):
    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend=backend)
    rows = torch.arange(30.0).reshape(10, 3)
    for epoch in (3, 4, 5, 6, 2**40):
        for value, expected in zip(compiled(rows, epoch), step(rows, epoch)):
            assert torch.equal(value, expected) and value.dtype is expected.dtype
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 3 * (1 + BACKENDS.index(backend))


def test_compiled_functions_of_dynamic_sizes():
    torch._dynamo.reset()

    def step(rows):
        return shuftorch.randperm(rows.shape[0], seed=7), shuftorch.randperm(rows.shape[0], seed=7, offset=2, stride=3)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=True)
    for n in (5, 9, 100):
        for value, expected in zip(compiled(torch.empty(n, 2)), step(torch.empty(n, 2))):
            assert torch.equal(value, expected)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 20


@pytest.mark.parametrize("call", CALLS)
def test_each_call_compiled(call):
    torch._dynamo.reset()
    value, expected = torch.compile(lambda: call("cpu"), fullgraph=True, backend="aot_eager")(), call("cpu")
    assert torch.equal(value, expected) and value.dtype is expected.dtype


@pytest.mark.parametrize("arguments", [{"seed": 2**64}, {"seed": -(2**63) - 1}, {"seed": 7, "epoch": -1}, {"seed": 7, "epoch": 2**64}])
def test_numbers_out_of_range(arguments):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), pytest.raises(shufd.Invalid, match="(seed|epoch): .*: expected 0 to"):
        shuftorch.randperm(5, **arguments)
    with pytest.raises(Exception, match="(seed|epoch): .*: expected 0 to"):
        torch.compile(lambda: shuftorch.randperm(5, **arguments), backend="eager", fullgraph=True)()


def test_a_compiled_function_has_its_gradient():
    torch._dynamo.reset()

    def loss(rows):
        noisy = rows + shuftorch.normal_(torch.empty_like(rows), seed=7)
        return (shuftorch.shuffle(noisy, seed=7) * torch.arange(10.0)).sum()

    rows = torch.arange(10.0, requires_grad=True)
    loss(rows).backward()
    expected, rows.grad = rows.grad, None
    torch.compile(loss, fullgraph=True, backend="aot_eager")(rows).backward()
    assert torch.equal(rows.grad, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_numbers_have_no_gradient(backend):
    torch._dynamo.reset()
    compiled = torch.compile(lambda w: (shuftorch.normal_(w * 2, seed=7) * w).sum(), fullgraph=True, backend=backend)
    weights = torch.ones(3, requires_grad=True)
    compiled(weights).backward()
    assert torch.equal(weights.grad, shuftorch.normal_(torch.empty(3), seed=7))
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        torch.compile(lambda w: shuftorch.normal_(w, seed=7), backend=backend)(weights)
    assert (weights == 1).all()


def longs(count):
    return torch.zeros(count, dtype=torch.int64)


@pytest.mark.parametrize(
    "call, tensor, message",
    [
        (lambda x: shuftorch.shuffle(x, seed=7, out=torch.empty(2)), torch.ones(100), r"out: torch.float32, shape \(2,\): exp"),
        (lambda x: shuftorch.shuffle(x, seed=7, out=torch.empty(9).half()), torch.ones(9), "out: torch.float16, shape"),
        (lambda x: shuftorch.shuffle(x, seed=7, out=torch.empty(9)), torch.ones(9, requires_grad=True), "out: the tensor requires"),
        (lambda x: shuftorch.shuffle(x, seed=7), torch.tensor(1.0), r"tensor: shape \(\): expected at least one dimension"),
        (lambda x: shuftorch.randperm(10, seed=7, out=x), longs(4), r"out: torch.int64, shape \(4,\): expected"),
        (lambda x: shuftorch.randperm(10, seed=7, out=x), torch.zeros(10), "dtype: torch.float32: expected one of"),
        (lambda x: shuftorch.randperm(10, seed=7, out=x, count=4, offset=7), longs(4), "count: 4: expected 0 to 3"),
        (lambda x: x + shuftorch.randperm(-4, seed=7), longs(4), "n: -4: expected 0 to"),
        (lambda x: x + shuftorch.randperm(4, seed=7, stride=0), longs(4), "stride: 0: expected 1 to 2.62"),
        (lambda x: shuftorch.normal_(x, seed=7, method="uniform"), torch.zeros(3), "method: 'uniform': expected one of table"),
        (lambda x: shuftorch.normal_(x, seed=7, method="zig"), torch.zeros(3), "method: 'zig': expected one of table"),
        (lambda x: shuftorch.normal_(x, 0.0, 0.0, seed=7), torch.zeros(3), "mean: 0.0, std: 0.0: expected"),
        (lambda x: shuftorch.normal_(x, seed=7, offset=-1), torch.zeros(3), "offset: -1: expected 0 to"),
        (lambda x: shuftorch.normal_(x, seed=7), longs(3), "dtype: torch.int64: expected one of float64"),
        (lambda x: shuftorch.uniform_(x, seed=7), torch.zeros(3).half(), "dtype: torch.float16: expected one of float64, float32"),
        (lambda x: shuftorch.index(x, -1, seed=7), longs(3), "n: -1: expected 1 to"),
        (lambda x: shuftorch.index(x, 10, seed=7, inverse=1), longs(3), "inverse: 1: expected True or False"),
        (lambda x: shuftorch.shuffle(x, seed=7, inverse=2), torch.ones(9), "inverse: 2: expected True or False"),
        (lambda x: shuftorch.shuffle(x, seed=7, out=x), torch.ones(9), "tensor and out overlap: .*; a shuffle cannot be in place"),
    ],
)  # fmt: skip
def test_compiled_functions_refuse_wrong_arguments(call, tensor, message):
    """They do so in the same words as the functions themselves."""
    torch._dynamo.reset()
    with pytest.raises(shufd.Invalid, match=f"^{message}"):
        torch.compile(call, backend="aot_eager")(tensor)
    torch._dynamo.reset()
    with pytest.raises(Exception):
        torch.compile(call, backend="aot_eager", fullgraph=True)(tensor)


def test_a_generator_ends_a_graph():
    torch._dynamo.reset()
    generator = shuftorch.Generator(7)
    other = copy.copy(generator)
    compiled = torch.compile(lambda rows: rows + generator.normal_(torch.empty(3)) * 2, backend="eager")
    for _ in range(4):
        assert torch.equal(compiled(torch.zeros(3)), other.normal_(torch.empty(3)) * 2)
    assert generator.draw == other.draw


def test_export():
    class Model(torch.nn.Module):
        def forward(self, x):
            return x + shuftorch.normal_(torch.empty_like(x), seed=7)

    rows = torch.zeros(3, 4)
    exported = torch.export.export(Model(), (rows,), dynamic_shapes=({0: torch.export.Dim("rows", max=99)},))
    for n in (3, 9):
        assert torch.equal(exported.module()(torch.zeros(n, 4)), Model()(torch.zeros(n, 4)))


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        rows = torch.empty(10, 3)
        values = step(rows, 3)
    for value, expected in zip(values, step(torch.empty(10, 3), 3)):
        assert value.shape == expected.shape and value.dtype is expected.dtype and type(value).__name__ == "FakeTensor"


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: shuftorch.normal_(torch.empty(3), 0.0, -1.0, seed=7), "std -1: expected"),
        (lambda: shuftorch.normal_(torch.empty(3), seed="x"), "seed: 'x': expected an integer"),
        (lambda: shuftorch.normal_(torch.empty(3), seed=7.0), "seed: 7.0: expected an integer"),
        (lambda: shuftorch.uniform_(torch.empty(3), 2.0, 1.0, seed=7), "high: 1.0: expected at least low"),
        (lambda: shuftorch.randperm(3, seed=7, algorithm="x"), 'algorithm "x": expected primefold'),
        (lambda: shuftorch.shuffle(torch.empty(3), seed=7, algorithm="x"), 'algorithm "x": expected primefold'),
    ],
)
def test_fake_tensors_refuse_wrong_arguments(call, message):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), pytest.raises(shufd.Invalid, match=f"^{message}"):
        call()


def test_make_fx_records_the_calls():
    from torch.fx.experimental.proxy_tensor import make_fx

    rows = torch.arange(30.0).reshape(10, 3)
    graph = make_fx(lambda rows: step(rows, 3))(rows)
    for value, expected in zip(graph(rows), step(rows, 3)):
        assert torch.equal(value, expected)
    assert graph.code.count("torch.ops.shufd.") == 11


def test_autocast_and_subclasses():
    class Own(torch.Tensor):
        pass

    expected = shuftorch.normal_(torch.empty(3), seed=7)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(shuftorch.normal_(torch.empty(3), seed=7), expected)
    own = shuftorch.normal_(torch.zeros(3).as_subclass(Own), seed=7)
    assert type(own) is Own and (own.numpy() == expected.numpy()).all()


def test_the_default_device():
    with torch.device("meta"), pytest.raises(shufd.Invalid, match="^device: meta: expected cpu or cuda"):
        shuftorch.randperm(3, seed=7)


@pytest.mark.parametrize(
    "operator, arguments",
    [
        ("order", (torch.empty(5, dtype=torch.int64), 10, 7, 3, 2, 5, 1, "primefold")),
        ("numbers", (torch.empty(5), "table", 0.0, 1.0, 7, 0, 0)),
        ("numbers", (torch.empty(5, dtype=torch.int64), "integers", 0.0, 0.0, 7, 0, 0, 10)),
        ("shuffle", (torch.empty(5), torch.ones(5), 7, 3, False, "lcg")),
        ("look_up", (torch.empty(5, dtype=torch.int64), torch.arange(5), 10, 7, 3, True)),
    ],
)
def test_operators_pass_the_checks_of_torch(operator, arguments):
    torch.library.opcheck(getattr(torch.ops.shufd, operator).default, arguments)


@pytest.mark.parametrize(
    "operator, arguments, message",
    [
        ("order", (longs(4), 10, 7, 3, 0, 10, 1, "primefold"), r"out: torch.int64, shape \(4,\), cpu: expected shape \(10,\)"),
        ("order", (torch.empty(10), 10, 7, 3, 0, 10, 1, "primefold"), "dtype: torch.float32: expected one of"),
        ("order", (longs(10), 5, 7, 3, 0, 10, 1, "lcg"), "count: 10: expected 0 to 5"),
        ("numbers", (torch.empty(5).half(), "uniform", 0.0, 1.0, 7, 0, 0), "dtype: torch.float16: expected one of"),
        ("numbers", (torch.empty(5), "zig", 0.0, 1.0, 7, 0, 0), "law: 'zig': expected one of"),
        ("numbers", (torch.empty(5).int(), "integers", 0.0, 0.0, 7, 0, 0, 2**31 + 1), r"bound: 2147483649: expected 1 to 2\^31"),
        ("numbers", (torch.empty(5).int(), "table", 0.0, 1.0, 7, 0, 0, 5), "dtype: torch.int32: expected one of"),
        ("shuffle", (torch.empty(4), torch.ones(5), 7, 3, False, "lcg"), r"out: torch.float32, shape \(4,\), cpu: expected"),
        ("shuffle", (torch.empty(5).half(), torch.ones(5), 7, 3, False, "lcg"), "out: torch.float16, shape"),
        ("look_up", (longs(4), torch.arange(5), 10, 7, 3, True), r"out: torch.int64, shape \(4,\), cpu: expected"),
        ("look_up", (torch.empty(5), torch.arange(5), 10, 7, 3, True), "out: torch.float32, .*: expected torch.int64"),
    ],
)
def test_operators_refuse_tensors_of_another_size_or_type(operator, arguments, message):
    with pytest.raises(shufd.Invalid, match=f"^{message}"):
        getattr(torch.ops.shufd, operator)(*arguments)


# ---- torch.jit.trace -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    "call",
    [
        lambda rows: rows + shuftorch.randperm(4, seed=7),
        lambda rows: shuftorch.normal_(torch.empty_like(rows), seed=7) * rows,
        lambda rows: shuftorch.uniform_(rows * 1, -1.0, 2.0, seed=2**64 - 1),
        lambda rows: shuftorch.shuffle(rows, seed=7, algorithm="lcg"),
        lambda rows: shuftorch.index(rows.to(torch.int64), 100, seed=7),
    ],
)
def test_traced_functions_give_the_same_values(call):
    traced, other = torch.jit.trace(call, (torch.zeros(4),)), torch.tensor([3.0, 1.0, 4.0, 1.0])
    for rows in (torch.zeros(4), other):
        assert torch.equal(traced(rows), call(rows))
    with pytest.raises(shufd.Invalid, match=r"^generator: torch.jit.trace\(\) would repeat its numbers"):
        torch.jit.trace(lambda rows: shuftorch.Generator(7).normal_(rows), (torch.zeros(4),))


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = shuftorch.Generator(7)

    def forward(self, rows):
        return rows + self.generator.normal_(torch.empty_like(rows)) + self.generator.randperm(4)


def test_an_exported_program_does_not_repeat_a_generator():
    with pytest.raises(Exception, match=r"generator: torch.export\(\) or make_fx\(\) would repeat its numbers"):
        torch.export.export(Noisy(), (torch.zeros(4),), strict=False)
    from torch.fx.experimental.proxy_tensor import make_fx

    with pytest.raises(shufd.Invalid, match="make_fx"):
        make_fx(Noisy())(torch.zeros(4))
    noisy = Noisy()
    assert not torch.equal(noisy(torch.zeros(4)), noisy(torch.zeros(4)))


WEIGHTS = torch.tensor([1.0, 2.0, 5.0, 0.0])
TABLE = shuftorch.WeightTable(WEIGHTS)
WEIGHTED = [
    lambda weights: shuftorch.weighted_sample(weights, 3, seed=7),
    lambda weights: shuftorch.WeightTable(weights).draw(3, seed=7),
    lambda weights: weights[TABLE.draw(3, seed=7)],
]


@pytest.mark.parametrize("call", WEIGHTED)
def test_weighted_draws_are_not_recorded(call):
    from torch.fx.experimental.proxy_tensor import make_fx

    for record, name in ((torch.jit.trace, "torch.jit.trace"), (lambda call, weights: make_fx(call)(*weights), "make_fx")):
        with pytest.raises(shufd.Invalid, match=rf"^weights: .*{name}\(\) cannot see weighted draws: make them before"):
            record(call, (WEIGHTS,))
    expected, opaque = call(WEIGHTS), torch.compiler.disable(call)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(lambda weights: opaque(weights) * 2, backend="eager")(WEIGHTS), expected * 2)


# ---- torch.func ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: shuftorch.normal_(rows, seed=7),
        lambda rows: rows + shuftorch.uniform_(torch.empty(4), seed=7),
        lambda rows: rows + shuftorch.randperm(4, seed=7),
        lambda rows: shuftorch.shuffle(rows, seed=7),
        lambda rows: shuftorch.Generator(7).normal_(rows),
        lambda rows: torch.func.grad(lambda x: (x + shuftorch.randperm(4, seed=7)).sum())(rows),
    ],
)
def test_vmap_is_refused(call):
    with pytest.raises(shufd.Invalid, match="^vmap: a call with a seed would give each element"):
        torch.vmap(call)(torch.zeros(3, 4))


@pytest.mark.parametrize(
    "jacobian",
    [
        lambda call, x: torch.func.jacrev(call)(x), lambda call, x: torch.func.jacfwd(call)(x),
        lambda call, x: torch.autograd.functional.jacobian(call, x, vectorize=True),
    ],
)  # fmt: skip
def test_jacobians_by_vmap_are_refused(jacobian):
    with pytest.raises(shufd.Invalid, match=r"^vmap: .*; jacrev\(\), jacfwd\(\) and jacobian\(vectorize=True\) use vmap, too: "):
        jacobian(lambda x: shuftorch.shuffle(x, seed=7), torch.arange(3.0))
    order = shuftorch.randperm(3, seed=7)  # what the message proposes
    assert torch.equal(jacobian(lambda x: x[order], torch.arange(3.0)), torch.eye(3)[order])


def test_jacrev_takes_functions_without_gradients():
    noise = shuftorch.uniform_(torch.empty(3), seed=7)
    scaled = torch.func.jacrev(lambda x: x * shuftorch.uniform_(torch.empty(3), seed=7))(torch.ones(3))
    assert torch.equal(scaled, torch.diag(noise))


def test_grad_of_torch_func():
    expected = shuftorch.normal_(torch.empty(3), seed=7)
    assert torch.equal(
        torch.func.grad(lambda x: (x * shuftorch.normal_(torch.empty_like(x), seed=7)).sum())(torch.zeros(3)), expected
    )
    weights = torch.arange(3.0)
    assert torch.equal(
        torch.func.grad(lambda x: (weights * shuftorch.shuffle(x, seed=7)).sum())(torch.zeros(3)),
        shuftorch.shuffle(weights, seed=7, inverse=True),
    )


@pytest.mark.parametrize("call", WEIGHTED)
def test_transforms_of_weighted_draws_are_refused(call):
    for transform in (torch.func.grad, torch.func.jacrev):
        with pytest.raises(shufd.Invalid, match="^weights: a transform of torch.func cannot see weighted draws"):
            transform(lambda weights: (weights[:3] * call(weights)).sum())(WEIGHTS)
    with pytest.raises(shufd.Invalid, match="^weights: a transform of torch.func"):
        torch.vmap(call)(WEIGHTS.reshape(1, -1))


def test_tangents():
    rows, tangent = torch.arange(4.0), torch.tensor([10.0, 20.0, 30.0, 40.0])
    for inverse in (False, True):
        values, moved = torch.func.jvp(lambda x: shuftorch.shuffle(x, seed=7, inverse=inverse), (rows,), (tangent,))
        assert torch.equal(values, shuftorch.shuffle(rows, seed=7, inverse=inverse))
        assert torch.equal(moved, shuftorch.shuffle(tangent, seed=7, inverse=inverse))
    zero = torch.func.jvp(lambda x: shuftorch.normal_(x * 1, seed=7), (rows,), (tangent,))[1]
    assert (zero == 0).all()
    weights = torch.tensor([1.0, 2.0, 3.0, 5.0])

    def loss(x):
        return (shuftorch.shuffle(x, seed=7) ** 2 * weights).sum()

    curvature = 2 * shuftorch.shuffle(weights, seed=7, inverse=True)
    assert torch.equal(torch.func.jvp(torch.func.grad(loss), (rows,), (tangent,))[1], curvature * tangent)
    forwards = torch.func.grad(lambda x: torch.func.jvp(loss, (x,), (tangent,))[1])
    assert torch.equal(forwards(rows), curvature * tangent)
    double = torch.arange(6.0, dtype=torch.float64).reshape(3, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: shuftorch.shuffle(x, seed=7), double, check_forward_ad=True)


def test_dual_tensors():
    from torch.autograd import forward_ad

    rows, tangent = torch.arange(4.0), torch.tensor([10.0, 20.0, 30.0, 40.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(rows, tangent.clone())
        shuffled = forward_ad.unpack_dual(shuftorch.shuffle(dual, seed=7))
        assert torch.equal(shuffled.tangent, shuftorch.shuffle(tangent, seed=7))
        for arguments in ({"tensor": dual, "out": torch.empty(4)}, {"tensor": rows, "out": dual}):
            with pytest.raises(shufd.Invalid, match="^out: .*requires a gradient"):
                shuftorch.shuffle(**arguments, seed=7)
        for fill in (shuftorch.normal_, shuftorch.uniform_):
            dual = forward_ad.make_dual(torch.zeros(4), tangent.clone())
            assert (forward_ad.unpack_dual(fill(dual, seed=7)).tangent == 0).all()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_tangents_of_compiled_functions(backend):
    """A shuffle with a tangent ends a graph."""
    torch._dynamo.reset()
    rows, tangent = torch.arange(4.0), torch.tensor([10.0, 20.0, 30.0, 40.0])

    def of_shuffle(rows, tangent):
        return torch.func.jvp(lambda x: shuftorch.shuffle(x, seed=7), (rows,), (tangent,))[1]

    def of_numbers(rows, tangent):
        return torch.func.jvp(lambda x: shuftorch.normal_(x * 1, seed=7), (rows,), (tangent,))[1]

    assert torch.equal(torch.compile(of_shuffle, backend=backend)(rows, tangent), shuftorch.shuffle(tangent, seed=7))
    assert (torch.compile(of_numbers, backend=backend, fullgraph=True)(rows, tangent) == 0).all()
    torch._dynamo.reset()
    with pytest.raises(Exception):
        torch.compile(of_shuffle, backend=backend, fullgraph=True)(rows, tangent)


# ---- Other tensors -------------------------------------------------------------------------------


def test_a_distributed_tensor_is_refused(tmp_path):
    from torch.distributed.tensor import DeviceMesh, Replicate, distribute_tensor

    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        tensor = distribute_tensor(torch.zeros(4), DeviceMesh("cpu", [0]), [Replicate()])
        for call in (
            lambda: shuftorch.normal_(tensor, seed=7),
            lambda: shuftorch.shuffle(tensor, seed=7),
            lambda: shuftorch.index(tensor, 10, seed=7),
        ):
            with pytest.raises(shufd.Invalid, match=r": DTensor: expected a tensor of this process; use its to_local\(\)"):
                call()
    finally:
        torch.distributed.destroy_process_group()


def test_a_machine_without_a_gpu():
    """torch itself refuses the device."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        with pytest.raises((RuntimeError, AssertionError)):
            shuftorch.randperm(3, seed=7, device="cuda")
