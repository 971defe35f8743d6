# SPDX-License-Identifier: MIT
"""The choice between one-sided plans and plans of both sides, without a GPU: kernels and offers of memory are replaced."""

import importlib.util
import pathlib
import types

import pytest

torch = pytest.importorskip("torch")

from shufd import _agreement, _one_sided, _peer_memory
from shufd._agreement import Offers, offers_of, part_of
from shufd._moves import StagedMove
from shufd._one_sided import Room, Stage, StageOffer, room_for
from shufd._peer_memory import Offer
from shufd._plan import PART_UNIT

HERE, THERE = (Offer(machine, 1, b"handle", 0) for machine in ("here", "there"))
ALL, LARGE = Room(4 * PART_UNIT, 4 * PART_UNIT), Room(1 << 31, 1 << 31)


def able(tensors=(), room=None, memory=HERE):
    """What an able rank offers."""
    return Offers(True, StageOffer(memory, room, 0) if room else None, tensors)


WIDE, NARROW, EMPTY = able([HERE]), able([None], ALL), able([None])
ONE, MANY = PART_UNIT, 3 * PART_UNIT  # records of a rank


# ---- part_of(), the same on all ranks ------------------------------------------------------------


@pytest.mark.parametrize(
    "offers, sizes, outputs, part",
    [
        ([WIDE] * 2, [MANY, MANY], [MANY, MANY], MANY),  # without stages one part
        ([WIDE] * 2, [5, 5], [10, 0], ONE),
        ([WIDE, able([THERE])], [MANY, MANY], [MANY, MANY], 0),  # several machines
        ([NARROW, able([None], ALL, THERE)], [MANY, MANY], [MANY, MANY], 0),
        ([able([HERE, None], ALL, THERE)] * 2, [MANY, MANY], [MANY, MANY], 0),
        ([WIDE, WIDE, WIDE._replace(is_able=False)], [5, 5, 5], [5, 5, 5], 0),
        ([Offers(), WIDE], [5, 5], [5, 5], 0),
        ([NARROW, NARROW._replace(is_able=False)], [5, 5], [5, 5], 0),
        ([WIDE, EMPTY], [5, 0], [0, 5], ONE),  # an empty rank may offer nothing
        ([EMPTY, EMPTY, WIDE], [0, 0, 5], [0, 0, 5], ONE),
        ([NARROW] * 2, [MANY, MANY], [MANY, MANY], MANY),
        ([NARROW, able([None], Room(2 * PART_UNIT, 4 * PART_UNIT))], [MANY, MANY], [MANY, MANY], 2 * PART_UNIT),
        ([NARROW, able([None], Room(4 * PART_UNIT, 2 * PART_UNIT))], [MANY, MANY], [MANY, MANY], 2 * PART_UNIT),
        ([NARROW, able([None], Room(ONE - 32, 4 * PART_UNIT))], [MANY, MANY], [MANY, MANY], 0),  # too small a stage
        ([NARROW, able([None], Room(ONE - 32, 4 * PART_UNIT))], [MANY, 5], [MANY, 5], MANY),  # enough for few records
        ([EMPTY, NARROW, able([None], Room(ONE - 32, ONE))], [0, MANY, 5], [0, MANY, 5], MANY),
        ([NARROW, able([None], Room(32, 4 * PART_UNIT))], [MANY, MANY], [2 * MANY - 5, 5], MANY),
        ([NARROW, able([None], Room(4 * PART_UNIT, 32))], [2 * MANY - 5, 5], [MANY, MANY], MANY),
        ([able([None], LARGE)] * 2, [1 << 32, 1 << 32], [1 << 32, 1 << 32], 1 << 31),  # the longest part
    ],
)  # fmt: skip
def test_part_of(offers, sizes, outputs, part):
    assert part_of(offers, sizes, outputs) == part


# ---- offers_of(), of one rank --------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch):
    """All tensors fit the kernels, and their memory has handles. Gives what the tests may change."""
    has = types.SimpleNamespace(kernel=lambda leaf: True, handle=lambda tensor: HERE, engine="nccl")
    monkeypatch.setattr(_agreement, "_fits_kernel", lambda leaf: has.kernel(leaf))
    monkeypatch.setattr(_peer_memory, "offer", lambda tensor: has.handle(tensor))
    monkeypatch.setattr(_agreement, "_cannot_open", set())
    return has


def ranks_of(world, has):
    return types.SimpleNamespace(rank=0, world=world, uses_nccl=lambda device: has.engine == "nccl")


def rows_of(width, records=10):
    """Rows of so many bytes, which take the memory of one."""
    return torch.zeros((1, width), dtype=torch.uint8).expand(records, width)


STAGE = Stage(Room(64, 64), 8, 2, "cpu")
OF_STAGE = StageOffer(HERE, STAGE.room, STAGE.half)
NO_PLACES, NO_RECORDS = {"places": 0}, {"records": 0}


@pytest.mark.parametrize(
    "widths, stage, options, expected",
    [
        ([64], None, {}, Offers(True, None, [HERE])),
        ([63], STAGE, {}, Offers(True, OF_STAGE, [None])),
        ([63], None, {}, Offers(False, None, [None])),  # no memory for the stage
        ([256, 8], STAGE, {}, Offers(True, OF_STAGE, [HERE, None])),
        ([256, 8], None, {}, Offers(False, None, [HERE, None])),
        ([64], None, {"world": 64}, Offers(True, None, [HERE])),
        ([64], None, {"world": 65}, Offers()),
        ([8], STAGE, {"world": 65}, Offers()),
        ([64], None, {"records": 1 << 32}, Offers(True, None, [HERE])),
        ([64], None, {"records": (1 << 32) + 1}, Offers()),
        ([8], STAGE, {"records": (1 << 32) + 1}, Offers()),
        ([64], None, {"world": 1}, Offers()),  # a single rank reads no peer
        ([8], STAGE, {"world": 1}, Offers(True, OF_STAGE, [None])),
        ([64, 8], STAGE, {"world": 1}, Offers(True, OF_STAGE, [HERE, None])),
        ([64], None, NO_RECORDS, Offers(True, None, [None])),
        ([8], STAGE, NO_RECORDS, Offers(True, OF_STAGE, [None])),
        ([8], None, NO_RECORDS, Offers(False, None, [None])),  # it gets rows
        ([8], STAGE, NO_PLACES, Offers(True, OF_STAGE, [None])),
        ([8], None, NO_PLACES, Offers(False, None, [None])),  # it has rows
        ([8], None, NO_RECORDS | NO_PLACES, Offers(True, None, [None])),
        ([64, 8], None, NO_RECORDS | NO_PLACES, Offers(True, None, [None, None])),
    ],
)  # fmt: skip
def test_offers_of(machine, widths, stage, options, expected):
    world, places, records = (options.get(name, usual) for name, usual in (("world", 2), ("places", 10), ("records", 10)))
    leaves = [rows_of(width, records) for width in widths]
    assert offers_of(ranks_of(world, machine), leaves, places, stage) == expected


def test_what_has_no_offers(machine):
    """Tensors that no kernel takes, another engine, a device that cannot open memory, and memory without a handle."""

    def is_able(width):
        return offers_of(ranks_of(2, machine), [rows_of(width)], 10, STAGE if width < 64 else None).is_able

    def refused():
        return not is_able(8) and not is_able(64)

    assert is_able(8) and is_able(64)
    machine.kernel = lambda leaf: False
    assert refused()
    machine.kernel = lambda leaf: True
    machine.engine = "gloo"
    assert refused()
    machine.engine = "nccl"
    machine.handle = lambda tensor: None
    assert refused()
    machine.handle = lambda tensor: HERE
    _agreement._cannot_open.add(torch.device("cpu"))
    assert refused()


def test_one_wide_tensor_without_a_handle(machine):
    leaves = [rows_of(64), rows_of(128), rows_of(8)]
    machine.handle = lambda tensor: None if tensor is leaves[1] else HERE
    assert offers_of(ranks_of(2, machine), leaves, 10, STAGE) == Offers(False, OF_STAGE, [HERE, None, None])


def test_make_stage(machine, monkeypatch):
    """A stage for the widest of the narrow rows, if the budget has room for it and the GPU has memory."""

    def stage_of(*widths, records=10, places=10, budget=256 << 20, world=2):
        return _agreement.make_stage(ranks_of(world, machine), [rows_of(width, records) for width in widths], places, budget)

    stage = stage_of(8, 64, 48, 3)
    assert stage.half == stage.room.bytes_of(48, 2) and stage.room.rows == 10
    assert stage_of(64) is None
    assert stage_of(8, records=0, places=0) is None
    assert stage_of(8, records=0) and stage_of(8, places=0)
    assert stage_of(8, budget=1) is None
    machine.engine = "gloo"
    assert stage_of(8) is None
    machine.engine = "nccl"

    def no_memory(*arguments, **options):
        raise torch.cuda.OutOfMemoryError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(_one_sided.torch, "empty", no_memory)
        assert stage_of(8) is None
    _agreement._cannot_open.add(torch.device("cpu"))
    assert stage_of(8) is None


# ---- bench/exchange_model.py, which restates the rounds and the sizes of buffers -----------------

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
    on_gpu = types.SimpleNamespace(device=types.SimpleNamespace(type="cuda"))
    assert _agreement.budget_of(None, rows) != _agreement.budget_of(None, [on_gpu])
    assert _agreement.budget_of(None, [on_gpu]) == model.rounds_of.__defaults__[0] == model.STAGE_BYTES


@pytest.mark.parametrize("gpus", GPUS)
@pytest.mark.parametrize("width, records", JOBS)
def test_rounds(model, gpus, width, records):
    pair = records // gpus
    counts = [pair] * gpus
    lists = types.SimpleNamespace(
        to=counts, arriving=counts, order=types.SimpleNamespace(count=pair * gpus), places=types.SimpleNamespace(count=pair * gpus)
    )
    move = StagedMove(types.SimpleNamespace(rank=0), lists, torch.empty(0, width, dtype=torch.uint8, device="meta"), None)
    rounds, bytes = model.rounds_of(records, width, gpus)
    assert move.count_rounds(model.STAGE_BYTES) == rounds
    move.leaf = types.SimpleNamespace(device="meta")
    if bytes < 1 << 40:
        assert sum(buffer.numel() for pair in move._allocate(rounds) for buffer in pair) == bytes


@pytest.mark.parametrize("gpus", (1, 2, 4, 8))
def test_stage(model, gpus):
    """The model has the largest stage."""
    stage = 2 * room_for(2**28, 2**28, 8, gpus, model.STAGE_BYTES).bytes_of(8, gpus)
    assert 0.99 * model.STAGE_BYTES < stage <= model.STAGE_BYTES
