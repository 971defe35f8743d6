# SPDX-License-Identifier: MIT
"""The board on which the ranks of a process group exchange values."""

import datetime
import socket
import threading
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")
dist = torch.distributed
if not dist.is_available():
    pytest.skip("this torch has no distributed package", allow_module_level=True)

from shufd import _board, _errors, _process_group

WORLD = 4


def run_threads(work, world=WORLD):
    """Returns work(rank) of each rank, which is a thread."""
    results, errors = [None] * world, []

    def run(rank):
        try:
            results[rank] = work(rank)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


@pytest.fixture
def stores():
    """A server in memory with a connection for each rank. A read waits for a second."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    wait = datetime.timedelta(seconds=1)
    server = dist.TCPStore("127.0.0.1", port, None, True, datetime.timedelta(seconds=60), False)
    clients = [dist.TCPStore("127.0.0.1", port, None, False, datetime.timedelta(seconds=60), False) for _ in range(WORLD)]
    for client in clients:
        client.set_timeout(wait)
    yield clients
    del clients, server


def value_of(rank, turn):
    return np.random.default_rng([rank, turn]).bytes(0 if (rank + turn) % 5 == 0 else 1 << turn % 18)


def test_each_turn_has_the_values_of_all_ranks(stores):
    def work(rank):
        board = _board.Board(stores[rank], "name", rank, WORLD)
        for turn in range(20):
            assert board.exchange(value_of(rank, turn)) == [value_of(other, turn) for other in range(WORLD)]

    before = stores[0].num_keys()
    run_threads(work)
    assert stores[0].num_keys() == before + WORLD  # those of the last turn


def test_boards_of_other_names_are_apart(stores):
    def work(rank):
        for name in ("first", "second"):
            board = _board.Board(stores[rank], name, rank, WORLD)
            assert board.exchange(f"{name}{rank}".encode()) == [f"{name}{r}".encode() for r in range(WORLD)]

    run_threads(work)


def test_rank_that_does_not_come_is_an_error(stores):
    board = _board.Board(stores[0], "name", 0, 2)
    with pytest.raises(RuntimeError, match="(?i)time"):
        board.exchange(b"alone")


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
def test_groups_share_a_board_if_all_ranks_have_its_store(stores, monkeypatch, without):
    """The ranks give the board one name, also after a group with the same store."""
    groups = [Group(rank) for rank in range(WORLD)]
    monkeypatch.setattr(_board, "_boards", {})
    monkeypatch.setattr(_board, "_store_of", lambda group: None if group.rank == without else stores[group.rank])
    gather = Gather()
    for _ in range(2):
        def work(rank):
            boards = [_board.board_of(groups[rank], rank, WORLD, lambda value: gather(rank, value)) for _ in range(3)]
            assert boards[0] is boards[1] is boards[2]
            return boards[0]

        boards = run_threads(work)
        if without is not None:
            assert boards == [None] * WORLD
            break
        assert len({board.name for board in boards}) == 1
        run_threads(lambda rank: boards[rank].exchange(b"x"))
        _board._boards.clear()
    assert gather.count == (2 if without is None else 1)


def test_gather_waits_for_the_event_and_uses_the_board(stores, monkeypatch):
    waited = []
    monkeypatch.setattr(_process_group.Ranks, "has_only_nccl", True)

    def work(rank):
        ranks = object.__new__(_process_group.Ranks)
        ranks.group, ranks.rank, ranks.world = object(), rank, WORLD
        after = types.SimpleNamespace(synchronize=lambda: waited.append(rank))
        return ranks.gather({"rank": rank}, after)

    monkeypatch.setattr(
        _process_group, "board_of", lambda group, rank, world, gather: _board.Board(stores[rank], "g", rank, world)
    )
    assert run_threads(work) == [[{"rank": rank} for rank in range(WORLD)]] * WORLD
    assert sorted(waited) == list(range(WORLD))


def test_lost_rank_is_named(stores, monkeypatch):
    monkeypatch.setattr(_process_group.Ranks, "has_only_nccl", True)
    monkeypatch.setattr(_process_group, "board_of", lambda *arguments: _board.Board(stores[0], "lost", 0, 2))
    ranks = object.__new__(_process_group.Ranks)
    ranks.group, ranks.rank, ranks.world = object(), 0, 2
    with pytest.raises(_errors.IOFailure, match="rank 0 of 2: .*a rank may have ended"):
        ranks.gather(1)
