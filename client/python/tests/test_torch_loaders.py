# SPDX-License-Identifier: MIT
"""The samplers of shufd.torch in loaders of torch and torchdata, with and without workers."""

import itertools
import json
import os
import pickle
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import shufd
import shufd.torch
from conftest import await_value, lease_count, skip_fork_under_asan
from test_torch import Numbers, expected_indices, make_sampler


class Streams(torch.utils.data.IterableDataset):
    def __init__(self, *samplers):
        self.samplers = samplers

    def __iter__(self):
        for sampler in self.samplers:
            yield from sampler


def test_spawned_workers_begin_at_the_beginning(client):
    """A look at the first index before the epoch does not take it from the workers."""
    data = Streams(shufd.torch.RandomSampler(range(40), seed=3, client=client), make_sampler(client, 30, 1, 0))
    for sampler in data.samplers:
        next(iter(sampler))
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    expected = client.permute(40, 3, 1).tolist() + expected_indices(client, 30, 1, 0, False, 3, 0)[0]
    assert [int(i) for i in loader] == expected


def test_persistent_workers_leave_nothing_in_the_sampler(client):
    sampler = shufd.torch.RandomSampler(range(20), seed=3, client=client)
    loader = torch.utils.data.DataLoader(range(20), 5, sampler=sampler, num_workers=1, persistent_workers=True)
    for _ in range(5):
        list(loader)
    assert len(sampler._begun) == 1


@pytest.mark.parametrize("through_batches", [False, True])
@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_state_while_a_loader_has_batches_left(client, kind, through_batches):
    """Its workers have drawn all indices of the rest of an epoch. A look at the data begins another iteration."""
    sampler = getattr(shufd.torch, kind)(range(40), seed=3, client=client)
    options = {"batch_size": 5, "sampler": sampler}
    if through_batches:
        options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 5, False)}
    loader = torch.utils.data.DataLoader(range(40), num_workers=2, **options)
    sampler.load_state_dict({**sampler.state_dict(), "position": 25})
    batches = iter(loader)
    assert len([*itertools.islice(batches, 2)]) == 2
    next(iter(loader))
    with pytest.raises(shufd.Invalid, match="another iteration began before the last one has ended"):
        sampler.state_dict(used=10)
    assert len([*batches]) == 1  # the rest of the first iteration: the next ones follow it
    sampler.set_epoch(2)
    assert len([*itertools.islice(loader, 2)]) == 2 and sampler.state_dict(used=10)["position"] == 10


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_state_after_loaders_that_have_ended(client, kind):
    """They still have their workers."""
    sampler = getattr(shufd.torch, kind)(range(40), seed=3, client=client)
    loaders = [
        torch.utils.data.DataLoader(range(40), 5, sampler=sampler, num_workers=2, persistent_workers=True) for _ in range(2)
    ]
    epochs = [0, 0, 0] if kind == "DistributedSampler" else [0, 1, 2]
    for loader, epoch in zip([*loaders, loaders[0]], epochs, strict=True):
        batches = iter(loader)
        assert len([*itertools.islice(batches, 3)]) == 3
        state = sampler.state_dict(used=15)
        assert (state["epoch"], state["position"]) == (epoch, 15)
        assert len([*batches]) == 5


def test_a_pass_after_the_selected_epoch_does_not_count(client):
    """A job measures its accuracy by a pass over the same loader. A RandomSampler goes on by an epoch."""
    sampler = shufd.torch.RandomSampler(range(40), seed=3, client=client)
    loader = torch.utils.data.DataLoader(range(40), batch_size=4, sampler=sampler)
    sampler.set_epoch(5)
    assert len([*loader]) == 10
    assert sampler.state_dict(used=40)["epoch"] == 5
    assert len([*loader]) == 10
    with pytest.raises(shufd.Invalid, match="an iteration after epoch 5, .* has gone on to epoch 6"):
        sampler.state_dict(used=40)
    sampler.set_epoch(6)
    assert len([*loader]) == 10 and sampler.state_dict(used=40)["epoch"] == 6


@pytest.mark.parametrize("workers", [0, 2])
def test_state_before_the_first_index(client, workers):
    """A loop makes the iterator of the next epoch when one has ended, and then saves. Only set_epoch() tells that the job
    is at the next epoch."""
    sampler = shufd.torch.RandomSampler(range(400), seed=3, client=client)
    loader = torch.utils.data.DataLoader(range(400), batch_size=10, sampler=sampler, num_workers=workers)
    batches = iter(loader)
    for epoch in (0, 1):
        assert [len(next(batches)) for _ in range(40)] == [10] * 40
        assert sampler.state_dict(used=400)["epoch"] == epoch
        batches = iter(loader)
        with pytest.raises(shufd.Invalid, match="used: 0: .* may be over, .* after its end pass used=400"):
            sampler.state_dict(used=0)
        sampler.set_epoch(epoch + 1)
        batches = iter(loader)
        state = sampler.state_dict(used=0)
        assert (state["epoch"], state["position"]) == (epoch + 1, 0)


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"stateful": True}], ids=str)
def test_used_0_after_workers_have_drawn(client, kind, batches, options):
    """A job that continues near the end of an epoch, and saves before its first step."""
    skip_fork_under_asan()
    options, of = dict(options), torch.utils.data.DataLoader
    if options.pop("stateful", False):
        of = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    ranks = (1, 0) if kind == "DistributedSampler" else ()
    sampler = getattr(shufd.torch, kind)(range(100), *ranks, seed=3, client=client)
    source = {"batch_sampler": shufd.torch.BatchSampler(sampler, 10, False)} if batches else {"sampler": sampler, "batch_size": 10}
    loader = of(range(100), num_workers=2, **source, **options)
    state = {**sampler.state_dict(), "epoch": 5, "position": 35}
    sampler.load_state_dict(state)
    sampler.set_epoch(5)
    for step, batch in enumerate(loader):
        assert sampler.state_dict(used=10 * step) == {**state, "position": 35 + 10 * step}
    assert (step, len(batch)) == (6, 5)
    with pytest.raises(shufd.Invalid, match="used: 0: .* may be over"):  # the job may be before the next epoch
        sampler.state_dict(used=0)
    sampler.set_epoch(6)
    assert sampler.state_dict(used=0) == {**state, "epoch": 6, "position": 0}
    sampler.load_state_dict({**state, "position": 70})
    sampler.set_epoch(5)
    for _ in loader:  # three batches, which workers have drawn: the epoch may have ended
        with pytest.raises(shufd.Invalid, match="used: 0: .* may be over"):
            sampler.state_dict(used=0)


@pytest.mark.parametrize("stop", [1, 3, 9])
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"num_workers": 2, "persistent_workers": True}, {"stateful": True}, {"stateful": True, "num_workers": 2},
], ids=str)  # fmt: skip
def test_used_0_after_an_iteration_is_refused(client, options, batches, stop):
    """Also where the loader keeps its iterator. The job may mean the next epoch."""
    options, of = dict(options), torch.utils.data.DataLoader
    if "num_workers" in options:
        skip_fork_under_asan()
    if options.pop("stateful", False):
        of = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    sampler = shufd.torch.RandomSampler(range(40), seed=3, client=client)
    source = {"batch_sampler": shufd.torch.BatchSampler(sampler, 5, False)} if batches else {"sampler": sampler, "batch_size": 5}
    loader = of(range(40), **source, **options)
    assert sampler.state_dict(used=0)["position"] == 0
    for _ in range(2):
        assert len([*itertools.islice(loader, stop)]) == min(stop, 8)
    with pytest.raises(shufd.Invalid, match="used: 0: .* may be over"):
        sampler.state_dict(used=0)
    sampler.set_epoch(2)
    assert sampler.state_dict(used=0)["epoch"] == 2


def test_used_0_after_indices_that_the_job_keeps(client):
    """It has used none of them."""
    sampler = make_sampler(client, 40, 1, 0)
    assert len(torch.utils.data.Subset(range(40), list(sampler))) == 40
    with pytest.raises(shufd.Invalid, match="used: 0: .* at its beginning save a state_dict\\(\\) from before it"):
        sampler.state_dict(used=0)


def test_used_0_after_an_epoch_that_is_set_late(client):
    """Lightning sets it after the workers have drawn. The loaded place and the beginning of the epoch differ."""
    skip_fork_under_asan()
    sampler = make_sampler(client, 40, 1, 0)
    loader = torch.utils.data.DataLoader(range(40), batch_size=5, sampler=sampler, num_workers=2)
    for position in (0, 15):
        sampler.load_state_dict({**sampler.state_dict(), "epoch": 1, "position": position})
        batches = iter(loader)
        sampler.set_epoch(1)
        if position == 0:
            assert sampler.state_dict(used=0)["position"] == 0
        else:
            with pytest.raises(shufd.Invalid, match="used: 0: .* may be over"):
                sampler.state_dict(used=0)
        next(batches)
        assert sampler.state_dict(used=5)["position"] == position + 5
        del batches
        sampler.set_epoch(2)


def test_state_before_the_first_index_after_a_break(client):
    """It cannot be told from a look at the first batch, after which the epoch begins."""
    sampler = shufd.torch.RandomSampler(range(40), seed=3, client=client)
    loader = torch.utils.data.DataLoader(range(40), batch_size=10, sampler=sampler)
    next(iter(loader))
    batches = iter(loader)
    with pytest.raises(shufd.Invalid, match="used: 0: .* may be over, .* call set_epoch"):
        sampler.state_dict(used=0)
    sampler.set_epoch(0)
    assert sampler.state_dict(used=0)["position"] == 0
    del batches


class StreamOfRank(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from shufd.torch.DistributedSampler(range(12), seed=7)


def test_ranks_are_unknown_in_a_spawned_worker(daemon):
    loader = torch.utils.data.DataLoader(StreamOfRank(), num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(shufd.Invalid, match="a worker process that is not forked does not know the ranks"):
        list(loader)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("workers", [0, 2, pytest.param(8, marks=pytest.mark.long)])
def test_data_loader(client, workers, method):
    if workers == 0 and method == "spawn":
        pytest.skip("no process to start")
    if workers == 8 and method == "spawn" and "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("under AddressSanitizer torch takes 600 MB a process")
    if workers and method == "fork":
        skip_fork_under_asan()
    other = shufd.default_client()
    before = lease_count(other)
    sampler = make_sampler(client, 500, 2, 1, epoch=1)
    loader = torch.utils.data.DataLoader(
        Numbers(500), batch_size=16, sampler=sampler, num_workers=workers,
        multiprocessing_context=method if workers else None, persistent_workers=workers == 2 or method == "spawn",
    )  # fmt: skip
    for epoch in (1, 2):
        sampler.set_epoch(epoch)
        got = torch.cat(list(loader)).tolist()
        assert got == expected_indices(client, 500, 2, 1, False, 3, epoch)[0]
    batches = shufd.torch.BatchSampler(sampler, 16, True, as_arrays=True)
    loader = torch.utils.data.DataLoader(Numbers(500), batch_sampler=batches, num_workers=workers)
    assert torch.cat(list(loader)).tolist() == got[: 250 // 16 * 16]
    client.close()
    del loader, batches, sampler
    assert await_value(lambda: lease_count(other), before) == before


def test_used_indices_of_prefetching_loader(client):
    skip_fork_under_asan()
    sampler = make_sampler(client, 1000, 2, 0, epoch=1)
    loader = torch.utils.data.DataLoader(Numbers(1000), batch_size=10, sampler=sampler, num_workers=2)
    batches = iter(loader)
    seen = [next(batches) for _ in range(7)]
    with pytest.raises(shufd.Invalid, match="used: None: loaders draw indices ahead: pass used="):
        sampler.state_dict()
    state = sampler.state_dict(used=70)
    assert state["position"] == 140
    sampler.load_state_dict(state)
    assert torch.cat(seen).tolist() + list(sampler) == expected_indices(client, 1000, 2, 0, False, 3, 1)[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_state_without_used_indices(client, workers):
    """It is refused from the first index on, also after the end, and where a loader was left."""
    if workers:
        skip_fork_under_asan()

    def make(n):
        sampler = make_sampler(client, n, 1, 0)
        return sampler, torch.utils.data.DataLoader(Numbers(n), batch_size=10, sampler=sampler, num_workers=workers)

    def expect_refusal(sampler):
        with pytest.raises(shufd.Invalid, match="used: None: .*: pass used="):
            sampler.state_dict()

    sampler, loader = make(60)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert sampler.state_dict()["position"] == 0
        for step, _ in enumerate(loader):
            expect_refusal(sampler)
            assert sampler.state_dict(used=10 * (step + 1))["position"] == 10 * (step + 1)
        expect_refusal(sampler)
    for n in 100, 20:  # of 20, workers have drawn all
        sampler, loader = make(n)
        for _ in loader:
            break
        expect_refusal(sampler)
        assert sampler.state_dict(used=10)["position"] == 10


def test_states_of_subclasses_that_draw_ahead_are_refused(client):
    """`used` does not tell their place, unless a method of the class computes it."""
    pytest.importorskip("torchdata.stateful_dataloader")
    from torchdata.stateful_dataloader import StatefulDataLoader

    class Grouped(shufd.torch.DistributedSampler):
        def __iter__(self):
            return iter(sorted(super().__iter__(), key=lambda i: i % 4))

    sampler = Grouped(range(40), 1, 0, seed=3, client=client)
    loader = iter(loader_of := StatefulDataLoader(range(40), batch_size=4, sampler=sampler))
    assert len([next(loader) for _ in range(3)]) == 3
    with pytest.raises(shufd.Invalid, match="Grouped: its own __iter__ may draw ahead"):
        loader_of.state_dict()
    with pytest.raises(shufd.Invalid, match="Grouped: its own __iter__ may draw ahead or leave indices out"):
        sampler.state_dict(used=12)

    class Placed(Grouped):
        def state_dict(self, used=None):
            return super().state_dict(used=40 if used == 40 else 0)  # all indices are drawn at once

    sampler = Placed(range(40), 1, 0, seed=3, client=client)
    assert len([*itertools.islice(sampler, 40)]) == 40 and sampler.state_dict(used=40)["position"] == 40


@pytest.mark.parametrize("workers", [0, 2])
def test_used_indices_of_a_smaller_last_batch(client, workers):
    """1003 indices on 2 ranks are 502 for each: 10 batches of 50, and one of 2."""
    if workers:
        skip_fork_under_asan()
    sampler = make_sampler(client, 1003, 2, 0, epoch=1)
    loader = torch.utils.data.DataLoader(Numbers(1003), batch_size=50, sampler=sampler, num_workers=workers)
    for steps, batch in enumerate(loader, 1):
        assert sampler.state_dict(used=steps * 50)["position"] == min(1003, steps * 100)
    assert steps == 11 and len(batch) == 2
    list(itertools.islice(sampler, 501))
    with pytest.raises(shufd.Invalid, match="used: 502: expected 0 to 501"):
        sampler.state_dict(used=502)
    with pytest.raises(shufd.Invalid, match="used: -1: expected 0 to 501"):
        sampler.state_dict(used=-1)


@pytest.mark.parametrize("kind", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("workers, more", [
    (0, {}), (0, {"pin_memory": True}), (2, {}), (2, {"persistent_workers": True, "pin_memory": True}),
    (2, {"multiprocessing_context": "spawn"}), (8, {}),
], ids=str)  # fmt: skip
def test_stateful_data_loader(client, workers, more, kind):
    loaders = pytest.importorskip("torchdata.stateful_dataloader")
    if workers and "multiprocessing_context" not in more:
        skip_fork_under_asan()

    def make():
        sampler = make_sampler(client, 600, 3, 1)
        if kind == "sampler":
            options = {"sampler": sampler, "batch_size": 8}
        else:
            options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 8, False)}
        return sampler, loaders.StatefulDataLoader(Numbers(600), num_workers=workers, **options, **more)

    sampler, loader = make()
    sampler.set_epoch(4)
    whole = [batch.tolist() for batch in loader]
    assert sum(whole, []) == expected_indices(client, 600, 3, 1, False, 3, 4)[0]
    for steps in (1, 9, 24, 25) if workers < 8 and not more else (9,):
        sampler, loader = make()
        sampler.set_epoch(4)
        iterator = iter(loader)
        for _ in range(steps):
            next(iterator)
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        resumed_sampler, resumed = make()
        resumed.load_state_dict(state)
        assert [batch.tolist() for batch in resumed] == whole[steps:]
        resumed_sampler.set_epoch(5)
        assert sum((b.tolist() for b in resumed), []) == expected_indices(client, 600, 3, 1, False, 3, 5)[0]


@pytest.mark.parametrize("selects", [None, "set", "loaded"])
@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_an_unused_iterator_takes_the_loaded_place(client, kind, batches, selects):
    """A job may make it before it loads its checkpoint, and set an epoch or load another place before."""
    ranks = (1, 0) if kind == "DistributedSampler" else ()
    sampler = getattr(shufd.torch, kind)(range(24), *ranks, seed=7, client=client)
    options = {"sampler": sampler, "batch_size": 4}
    if batches:
        options = {"batch_sampler": shufd.torch.BatchSampler(sampler, 4, False)}
    loader = torch.utils.data.DataLoader(range(24), **options)
    state = sampler.state_dict()
    if selects == "set":
        sampler.set_epoch(0)
    elif selects == "loaded":
        sampler.load_state_dict({**state, "epoch": 1, "position": 4})
    iterator = iter(loader)
    sampler.load_state_dict({**state, "epoch": 3, "position": 16})
    assert [i for batch in iterator for i in batch.tolist()] == client.permute(24, 7, 3).tolist()[16:]
    sampler.set_epoch(4)
    assert [i for batch in loader for i in batch.tolist()] == client.permute(24, 7, 4).tolist()


class Drawn(torch.utils.data.IterableDataset):
    """Draws the indices of a sampler."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        return iter(self.sampler)


def test_workers_need_a_seed(daemon, client):
    """Each would draw another order."""
    os.environ["SHUFD_SOCKET"] = daemon.socket
    loader = torch.utils.data.DataLoader(Drawn(shufd.torch.RandomSampler(range(20))), batch_size=4, num_workers=2)
    with pytest.raises(shufd.Invalid, match="seed: None: each worker of the DataLoader would draw another order"):
        list(loader)


@pytest.mark.parametrize("source", ["sampler", "torch.utils.data.DataLoader(range(100), batch_size=5, sampler=sampler)"])
def test_an_iterator_at_the_end_of_python_is_silent(source):
    text = f"""
import shufd.torch, torch
sampler = shufd.torch.DistributedSampler(range(100), 1, 0, seed=7)
iterator = iter({source})
next(iterator)
"""
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")


# ---- Lost daemons --------------------------------------------------------------------------------

# Trains three epochs with worker processes. The daemon dies before the second epoch, and comes again.
# n is large, so the request for an epoch runs in a thread.
JOB = """
import json, pathlib, sys
import torch, shufd, shufd.torch
sys.path.insert(0, sys.argv[1])
from conftest import Daemon

def run(kind, n, method):
    daemon = Daemon(pathlib.Path(sys.argv[2])).start()
    client = shufd.connect(daemon.socket, reconnect=0.2)
    if kind == "random":
        sampler = shufd.torch.RandomSampler(range(n), num_samples=4000, seed=3, client=client, algorithm="philox24")
    else:
        sampler = shufd.torch.DistributedSampler(range(n), n // 4000, 0, seed=3, drop_last=True, client=client,
                                                 algorithm="philox24")
    batches = {"batch_size": 100, "sampler": sampler}
    if kind == "batches":
        batches = {"batch_sampler": shufd.torch.BatchSampler(sampler, 100, False)}
    loader = torch.utils.data.DataLoader(range(n), num_workers=2, multiprocessing_context=method, **batches)
    seen, losses = [], 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        if epoch == 1:
            client.drop()
            daemon.kill()
        while True:
            try:
                seen.append(torch.cat(list(loader)).tolist())
                break
            except shufd.DaemonLost:
                losses += 1
                daemon.start()
    daemon.stop()
    print(json.dumps([losses, seen]))

if __name__ == "__main__":
    run(sys.argv[3], int(sys.argv[4]), sys.argv[5])
"""


@pytest.mark.long
@pytest.mark.parametrize("kind, n, method", [
    ("sampler", 4_200_000, "fork"), ("batches", 4_200_000, "fork"), ("random", 4_200_000, "fork"),
    ("sampler", 100_000, "fork"), ("sampler", 4_200_000, "spawn"),
])  # fmt: skip
def test_data_loader_iterates_again_after_a_lost_daemon(daemon, tmp_path, kind, n, method):
    """The exception frees the half-made iterator with its workers. Otherwise a worker of the next iteration would
    inherit the old iterator and print tracebacks, and the job could hang."""
    if method == "fork":
        skip_fork_under_asan()
    script = tmp_path / "job.py"
    script.write_text(JOB)
    result = subprocess.run(
        [sys.executable, str(script), os.path.dirname(__file__), str(tmp_path), kind, str(n), method],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0 and "Traceback" not in result.stderr, result.stderr
    losses, seen = json.loads(result.stdout)
    assert losses == 1
    client = shufd.default_client()
    for epoch, indices in enumerate(seen):
        order = client.permute(n, 3, epoch, algorithm="philox24")
        expected = order[:4000] if kind == "random" else order[:: n // 4000][:4000]
        assert indices == expected.tolist()
