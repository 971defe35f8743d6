# SPDX-License-Identifier: MIT
"""The ends of a rank's call of shufd.torch.global_shuffle(): what it gives back after an error or Ctrl-C, and what the other
ranks hear of it. Without a GPU, and without other ranks."""

import contextlib
import gc
import threading
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shufd
import shufd.torch
from shufd import _agreement, _global_shuffle, _moves, _peer_memory, _plan, _process_group


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
