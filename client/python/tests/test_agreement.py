# SPDX-License-Identifier: MIT
"""The ranks of shufd.torch.global_shuffle(): what they gather through the store of their group, and what a call gives back
and tells the others at its end. Without a GPU."""

import contextlib
import datetime
import gc
import os
import signal
import threading
import time
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")
dist = torch.distributed
if not dist.is_available():
    pytest.skip("this torch has no distributed package", allow_module_level=True)

import shufd
import shufd.torch
from conftest import run_threads
from ranks import STORE, free_port
from shufd import _agreement, _errors, _global_shuffle, _moves, _peer_memory, _plan, _process_group

WORLD, WAIT_S = 4, 60


@pytest.fixture
def stores():
    """A server in memory with a connection for each rank. A read waits for a second."""
    port = free_port()
    wait = datetime.timedelta(seconds=1)
    server = dist.TCPStore("127.0.0.1", port, None, True, datetime.timedelta(seconds=60), False, **STORE)
    clients = [
        dist.TCPStore("127.0.0.1", port, None, False, datetime.timedelta(seconds=60), False, **STORE) for _ in range(WORLD)
    ]
    for client in clients:
        client.set_timeout(wait)
    yield clients
    clients.clear()  # before the server: a thread of a client of torch 1.13 ends the process after a reset
    gc.collect()
    del server


def value_of(rank, turn):
    return np.random.default_rng([rank, turn]).bytes(0 if (rank + turn) % 5 == 0 else 1 << turn % 18)


def test_each_turn_has_the_values_of_all_ranks(stores):
    def work(rank):
        own = _process_group.StoreGather(stores[rank], "name", rank, WORLD, WAIT_S)
        for turn in range(20):
            assert own.gather(value_of(rank, turn)) == [value_of(other, turn) for other in range(WORLD)]
            if turn % 3 == 0 or turn == 19:
                own.tidy()

    before = stores[0].num_keys()
    run_threads(work, WORLD)
    each = 1 if hasattr(stores[0], "check") else 2
    assert stores[0].num_keys() == before + each * WORLD  # those of the last turn


def test_gathers_of_other_names_are_apart(stores):
    def work(rank):
        for name in ("first", "second"):
            own = _process_group.StoreGather(stores[rank], name, rank, WORLD, WAIT_S)
            assert own.gather(f"{name}{rank}".encode()) == [f"{name}{r}".encode() for r in range(WORLD)]

    run_threads(work, WORLD)


def test_rank_that_does_not_come_is_an_error(stores):
    own = _process_group.StoreGather(stores[0], "name", 0, 2, 1)
    with pytest.raises(RuntimeError, match="(?i)time"):
        own.gather(b"alone")


@pytest.mark.parametrize("proof", [b"", bytes(32)])
def test_entry_of_another_program_is_an_error(stores, proof):
    """The server of the store has no password, and lists its keys."""
    own = _process_group.StoreGather(stores[0], "secret", 0, 2, WAIT_S)
    other = _process_group.StoreGather(stores[1], "guess", 1, 2, WAIT_S)
    other.name = own.name
    key = f"{own.name}/0/1"
    if proof:
        stores[1].set(key, b"v" + b"a pickle" + proof)
        if not hasattr(stores[1], "check"):
            stores[1].add(key + "/count", 1)
    else:
        other.send(b"a pickle")
    with pytest.raises(RuntimeError, match="the entry of rank 1 in the store is not from this rank"):
        own.gather(b"value")


def gathers_of(stores, world, timeout_s=WAIT_S):
    return [_process_group.StoreGather(stores[rank], "name", rank, world, timeout_s) for rank in range(world)]


def expect_failure(own, words):
    with pytest.raises(RuntimeError, match=words):
        own.gather(b"x")


@pytest.mark.parametrize("interrupt", [False, True])
def test_rank_that_leaves_fails_the_others(stores, monkeypatch, interrupt):
    """It may leave between two rounds, or in one for which it has written. The others fail in this round or in the next
    one, and nobody takes part any more."""
    all_own = gathers_of(stores, 3)
    run_threads(lambda rank: all_own[rank].gather(b"first"), 3)

    def fail(keys):
        raise KeyboardInterrupt

    def work(rank):
        if rank != 1:
            for _ in range(2):
                all_own[rank].gather(b"x")
        elif interrupt:
            monkeypatch.setattr(all_own[1], "_read", fail)
            with pytest.raises(KeyboardInterrupt):
                all_own[1].gather(b"x")
        if rank == 1:
            all_own[1].leave()

    with pytest.raises(RuntimeError, match="rank 1 has left a call after an error; start all ranks again"):
        run_threads(work, 3)
    expect_failure(all_own[1], "this rank has left an earlier call")


def test_late_rank_hears_that_the_others_have_left(stores):
    """Their values are no agreement."""
    all_own = gathers_of(stores, 3, 1)

    def work(rank):
        if rank < 2:
            expect_failure(all_own[rank], "(?i)time|has left")  # the other one is perhaps earlier
            all_own[rank].leave()

    run_threads(work, 3)
    expect_failure(all_own[2], "rank 0 has left")


def test_timeout_is_that_of_the_group(stores):
    """That of the store is a second."""
    all_own = gathers_of(stores, 2)

    def work(rank):
        time.sleep(2.5 * rank)
        return all_own[rank].gather(b"%d" % rank)

    assert run_threads(work, 2) == [[b"0", b"1"]] * 2
    began = time.monotonic()
    expect_failure(_process_group.StoreGather(stores[0], "alone", 0, 2, 2.5), "(?i)time")
    assert 2.4 < time.monotonic() - began < 10


def test_interrupt_ends_the_wait(stores):
    own = _process_group.StoreGather(stores[0], "alone", 0, 2, WAIT_S)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        own.gather(b"x")
    assert time.monotonic() - began < WAIT_S / 2
    own.store.set("key", b"value")  # the connection still works
    assert bytes(own.store.get("key")) == b"value"


def test_ranks_wait_for_the_last_one_before_they_end(stores):
    ended, all_own = [], gathers_of(stores, 3)

    def work(rank):
        time.sleep(0.3 if rank == 2 else 0)
        all_own[rank].finish()
        ended.append((rank, time.monotonic()))

    began = time.monotonic()
    run_threads(work, 3)
    assert min(at for _, at in ended) >= began + 0.3
    all_own[0].name = "other"
    all_own[0].finish()  # alone: for a short time only
    assert time.monotonic() - began < WAIT_S / 2


def test_store_and_timeout_of_a_group():
    port = free_port()
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1, timeout=datetime.timedelta(seconds=50)
    )
    try:
        group = dist.distributed_c10d._get_default_group()
        store = _process_group._store_of(group)
        assert store is not None
        assert _process_group._timeout_of(group, store) == 50
        own = _process_group.store_gather_of(group, 0, 1, lambda value: [value])
        assert own is _process_group.store_gather_of(group, 0, 1, None)
        assert own.gather(b"x") == [b"x"]
        _process_group._gathers.clear()
        assert _process_group.store_gather_of(group, 0, 65, lambda value: [value]) is None
    finally:
        dist.destroy_process_group()


class Group:
    def __init__(self, rank):
        self.rank = rank


class Gather:
    """The engine of a group of threads. Counts its exchanges."""

    def __init__(self):
        self.barrier, self.values, self.count = threading.Barrier(WORLD, timeout=60), [None] * WORLD, 0

    def __call__(self, rank, value):
        self.values[rank] = value
        self.barrier.wait()
        values = list(self.values)
        if self.barrier.wait() == 0:
            self.count += 1
        return values


@pytest.mark.parametrize("without", [None, 2])
def test_groups_gather_by_their_store_if_all_ranks_have_it(stores, monkeypatch, without):
    """All ranks take one name, also after a group with the same store."""
    groups = [Group(rank) for rank in range(WORLD)]
    monkeypatch.setattr(_process_group, "_gathers", {})
    monkeypatch.setattr(_process_group, "_store_of", lambda group: None if group.rank == without else stores[group.rank])
    gather = Gather()
    for _ in range(2):
        def work(rank):
            own_gather = lambda value: gather(rank, value)
            all_own = [_process_group.store_gather_of(groups[rank], rank, WORLD, own_gather) for _ in range(3)]
            assert all_own[0] is all_own[1] is all_own[2]
            return all_own[0]

        all_own = run_threads(work, WORLD)
        if without is not None:
            assert all_own == [None] * WORLD
            break
        assert len({own.name for own in all_own}) == 1
        run_threads(lambda rank: all_own[rank].gather(b"x"), WORLD)
        _process_group._gathers.clear()
    assert gather.count == (2 if without is None else 1)


def test_gather_waits_for_the_event_and_uses_the_store(stores, monkeypatch):
    waited = []
    monkeypatch.setattr(_process_group.Ranks, "has_only_nccl", True)

    def work(rank):
        ranks = object.__new__(_process_group.Ranks)
        ranks.group, ranks.rank, ranks.world = object(), rank, WORLD
        after = types.SimpleNamespace(query=lambda: waited.append(rank) or waited.count(rank) > 3)
        return ranks.gather({"rank": rank}, after)

    def of(group, rank, world, gather):
        return _process_group.StoreGather(stores[rank], "g", rank, world, WAIT_S)

    monkeypatch.setattr(_process_group, "store_gather_of", of)
    assert run_threads(work, WORLD) == [[{"rank": rank} for rank in range(WORLD)]] * WORLD
    assert sorted(waited) == sorted(4 * list(range(WORLD)))


def ranks_with(monkeypatch, own, rank, world):
    """Ranks of a group that has this gather."""
    monkeypatch.setattr(_process_group.Ranks, "has_only_nccl", True)
    monkeypatch.setattr(_process_group, "known_store_gather_of", lambda group: own)
    monkeypatch.setattr(_process_group, "store_gather_of", lambda *arguments: own)
    ranks = object.__new__(_process_group.Ranks)
    ranks.group, ranks.rank, ranks.world, ranks.has_told = object(), rank, world, False
    return ranks


def all_ranks_with(monkeypatch, all_own):
    """The ranks of a group, each with its own gather. The group of a rank is its number."""
    ranks = [ranks_with(monkeypatch, None, rank, len(all_own)) for rank in range(len(all_own))]
    monkeypatch.setattr(_process_group, "known_store_gather_of", lambda group: all_own[group])
    monkeypatch.setattr(_process_group, "store_gather_of", lambda group, *_: all_own[group])
    for rank, own in enumerate(ranks):
        own.group = rank
    return ranks


def test_event_that_waits_for_a_rank_that_has_left(stores, monkeypatch):
    all_own = gathers_of(stores, 2)
    run_threads(lambda rank: all_own[rank].gather(b"x"), 2)
    threading.Timer(0.5, all_own[1].leave).start()
    ranks = ranks_with(monkeypatch, all_own[0], 0, 2)
    end = time.monotonic() + 20
    with pytest.raises(_errors.IOFailure, match="rank 1 has left a call"):
        ranks.gather(1, types.SimpleNamespace(query=lambda: time.monotonic() > end))
    assert time.monotonic() < end
    assert not ranks.has_told


def test_values_travel_while_a_rank_works(stores, monkeypatch):
    """Rank 0 works until rank 1 has the values of both."""
    all_ranks = all_ranks_with(monkeypatch, gathers_of(stores, 2))
    has_both = threading.Event()

    def work(rank):
        ranks = all_ranks[rank]
        if rank == 0:
            return ranks.gather(0, meanwhile=lambda: has_both.wait(WAIT_S) or pytest.fail("the value comes after the work"))
        values = ranks.gather(1)
        has_both.set()
        return values

    assert run_threads(work, 2) == [[0, 1]] * 2


def test_rank_that_fails_after_it_has_told(stores, monkeypatch):
    """Its error is no error of the store. The others fail in this gather or in the next one."""
    all_ranks = all_ranks_with(monkeypatch, gathers_of(stores, 2))

    def work(rank):
        ranks = all_ranks[rank]
        if rank == 0:
            with pytest.raises(RuntimeError, match="^a kernel$"):
                ranks.gather(0, meanwhile=lambda: (_ for _ in ()).throw(RuntimeError("a kernel")))
            ranks.leave()
        else:
            with pytest.raises(_errors.IOFailure, match="rank 0 has left"):
                for _ in range(2):
                    ranks.gather(1)

    run_threads(work, 2)


def test_work_without_a_store(monkeypatch):
    """Before the values travel, so a rank that fails has told nothing."""
    ranks, calls = ranks_with(monkeypatch, None, 0, 2), []
    monkeypatch.setattr(ranks, "_gather_by_engine", lambda value: calls.append(value) or [value] * 2)
    assert ranks.gather(7, meanwhile=lambda: calls.append("work")) == [7, 7]
    ranks.world = 1
    assert ranks.gather(8, meanwhile=lambda: calls.append("work")) == [8]
    assert calls == ["work", 7, "work"]


def test_rank_that_leaves_before_it_has_told_anything(stores, monkeypatch):
    """The others wait for it already."""
    all_own = gathers_of(stores, 2)
    run_threads(lambda rank: all_own[rank].gather(b"x"), 2)

    def work(rank):
        if rank == 1:
            time.sleep(0.3)
            ranks_with(monkeypatch, all_own[1], 1, 2).leave()
        else:
            expect_failure(all_own[0], "rank 1 has left")

    run_threads(work, 2)


def test_rank_that_has_left_is_seen_before_another_one_comes(stores):
    all_own = gathers_of(stores, 3, 30)
    all_own[1].leave()
    began = time.monotonic()
    expect_failure(all_own[0], "rank 1 has left")
    assert time.monotonic() - began < 10


def test_lost_rank_is_named(stores, monkeypatch):
    ranks = ranks_with(monkeypatch, _process_group.StoreGather(stores[0], "lost", 0, 2, 1), 0, 2)
    with pytest.raises(_errors.IOFailure, match="rank 0 of 2: .*a rank may have ended: no answer of rank 1 within 1 s"):
        ranks.gather(1)
    assert ranks.has_told


def test_end_of_a_call_deletes_the_entries(stores, monkeypatch):
    """Of a call that ends well, and of one that all ranks leave alike."""
    monkeypatch.setattr(_process_group.Ranks, "has_only_nccl", True)
    all_own = gathers_of(stores, WORLD)
    monkeypatch.setattr(_process_group, "store_gather_of", lambda group, rank, *_: all_own[rank])
    monkeypatch.setattr(_process_group, "known_store_gather_of", lambda rank: all_own[rank])
    monkeypatch.setattr(_process_group.Ranks, "_group", property(lambda ranks: ranks.rank))
    before = stores[0].num_keys()
    entries_of_a_round = WORLD * (1 if hasattr(stores[0], "check") else 2)
    for end, others in (("tidy", 0), ("finish", 1)):  # finish() has a counter

        def work(rank, end=end):
            ranks = object.__new__(_process_group.Ranks)
            ranks.group, ranks.rank, ranks.world = object(), rank, WORLD
            for turn in range(10):
                assert ranks.gather(turn) == [turn] * WORLD
            getattr(ranks, end)()

        run_threads(work, WORLD)
        assert stores[0].num_keys() == before + entries_of_a_round + others


# ---- The ends of a call, without other ranks -----------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, shufd.IOFailure("a rank has left")])
def test_the_memory_of_peers_is_closed_if_no_plan_comes(client, monkeypatch, error):
    """This rank has opened it while it waited for the plan."""
    opened = []

    def open_peers(call, outs):
        opened.append(call.memory)
        call.memory._keys.append("a mapping")
        return types.SimpleNamespace(is_able=True)

    def fail(*arguments):
        raise error

    given_back = []
    monkeypatch.setattr(_peer_memory._mappings, "give_back", lambda keys, at_once: given_back.extend(keys))
    monkeypatch.setattr(_agreement, "part_of", lambda *arguments: 65536)
    monkeypatch.setattr(_global_shuffle.Planner, "expects", lambda *arguments: True)
    monkeypatch.setattr(_global_shuffle._Call, "_open_peers", open_peers)
    monkeypatch.setattr(_global_shuffle.Planner, "take", fail)
    monkeypatch.setattr(_process_group.Ranks, "gather", lambda ranks, value, *_: fail() if type(value) is tuple else [value])
    with pytest.raises((KeyboardInterrupt, shufd.IOFailure)):
        shufd.torch.global_shuffle(torch.arange(1000), seed=1, client=client)
    assert len(opened) == 1 and given_back == ["a mapping"]


def test_an_interrupt_after_the_moves_waits_for_the_gpu(client, monkeypatch):
    ended = []

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(_global_shuffle.Planner, "keep_mapped", interrupt)
    monkeypatch.setattr(_global_shuffle, "_end", lambda lists, memory: ended.append(lists))
    with pytest.raises(KeyboardInterrupt):
        shufd.torch.global_shuffle(torch.arange(1000), seed=1, client=client)
    assert len(ended) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_lease_ends_if_its_thread_does_not_start(monkeypatch, error):
    calls = []

    def fail(thread):
        raise error

    monkeypatch.setattr(threading.Thread, "start", fail)
    lists = types.SimpleNamespace(on_host=False, mark=lambda: calls.append("mark"), wait=lambda: calls.append("wait"))
    memory = types.SimpleNamespace(close=lambda: calls.append("close"))
    with pytest.raises(KeyboardInterrupt) if error is KeyboardInterrupt else contextlib.nullcontext():
        _global_shuffle._end(lists, memory)
    assert calls == ["mark", "wait", "close"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_one_sided_plan_does_not_end_before_the_gpu_has_read_it(monkeypatch, waits):
    """Also without wait(), after a second Ctrl-C."""
    calls = []

    class Numbers:
        device, ptr = 0, 4096

        def __del__(self):
            calls.append("the lease ends")

    monkeypatch.setattr(_moves, "head_of", lambda numbers, count, stream: np.zeros(count, np.uint32))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: types.SimpleNamespace(
        cuda_stream=0, record_event=lambda: types.SimpleNamespace(synchronize=lambda: calls.append("event"))
    ))  # fmt: skip
    monkeypatch.setattr(_moves._device, "wait_for_work", lambda device: calls.append("wait"))
    lists = _moves.OneSidedLists(_plan.OneSidedPlan(Numbers(), (4,), 4, 65536))
    if waits:
        lists.wait()
    del lists
    gc.collect()
    assert calls == ["event" if waits else "wait", "the lease ends"]


@pytest.mark.parametrize("tells_first", [True, False])
def test_ranks_hear_of_a_move_that_does_not_begin(tells_first):
    """Unless they have heard from this rank before."""

    def begin():
        raise shufd.DeviceError("a kernel")

    told = []

    def gather(own, after=None, meanwhile=None):
        told.append(own)
        if meanwhile:
            meanwhile()
        return [own]

    attempt = _global_shuffle._Attempt()
    attempt.moves = [types.SimpleNamespace(begin=begin)]
    attempt.wait = lambda: None
    ranks = types.SimpleNamespace(gather=gather, tells_first=tells_first)
    with pytest.raises(shufd.DeviceError, match="^a kernel$" if tells_first else "^global_shuffle: rank 0: a kernel$"):
        attempt.agree(ranks, types.SimpleNamespace(close=lambda at_once: None))
    assert told[0][0] == (None if tells_first else ("DeviceError", "a kernel"))
