# SPDX-License-Identifier: MIT
"""The samplers of shufd.torch when the daemon is lost, and jobs whose ranks do not know each other."""

import itertools
import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import shufd
import shufd.torch
from conftest import LAUNCHERS, skip_fork_under_asan

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


@pytest.mark.parametrize("kind", ["distributed", "random", "passes"])
def test_sampler_keeps_its_place_when_the_daemon_is_lost(killable_daemon, kind):
    with shufd.connect(killable_daemon.socket, reconnect=0.1) as client:

        def make():
            if kind == "distributed":
                return shufd.torch.DistributedSampler(range(1000), 2, 1, seed=3, client=client, algorithm="philox24")
            return shufd.torch.RandomSampler(range(1000), num_samples=2500 if kind == "passes" else 1000, seed=3,
                                             client=client, algorithm="philox24")  # fmt: skip

        sampler = make()
        sampler.set_epoch(4)
        whole = list(sampler)
        sampler = make()
        sampler.set_epoch(4)
        list(itertools.islice(sampler, 100))
        state = sampler.state_dict(used=100)
        resumed = make()
        resumed.load_state_dict(state)
        killable_daemon.kill()
        for _ in range(2):
            with pytest.raises(shufd.DaemonLost):
                list(resumed)
            assert resumed.state_dict() == state and resumed.epoch == 4
        killable_daemon.start()
        assert list(resumed) == whole[100:]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_global_shuffle_needs_the_process_group_of_a_launcher(client, monkeypatch, launcher):
    rank, world = LAUNCHERS[launcher]
    rows = torch.arange(10)
    alone = shufd.torch.global_shuffle(rows, seed=7, client=client)
    monkeypatch.setenv(rank, "0")
    monkeypatch.setenv(world, "1")
    assert shufd.torch.global_shuffle(rows, seed=7, client=client).equal(alone)
    monkeypatch.setenv(world, "4")
    text = rf"^{world} is 4, but torch.distributed is not initialised: call torch.distributed.init_process_group\(\) first$"
    with pytest.raises(shufd.Invalid, match=text):
        shufd.torch.global_shuffle(rows, seed=7, client=client)
    with pytest.raises(shufd.Invalid, match=text):
        shufd.verify(client=client)


def test_sampler_of_several_ranks_advises_a_daemon_for_all(monkeypatch):
    """Each rank would start a daemon of its own by serve(). A launcher has started none, so one process may be all."""
    monkeypatch.setenv("SHUFD_SOCKET", "/nonexistent/s")
    sampler = shufd.torch.DistributedSampler(range(10), 4, 1, algorithm="philox24")
    with pytest.raises(shufd.NoDaemon) as failed:
        list(sampler)
    assert "start a daemon with `shufd &` on each machine before the ranks" in str(failed.value)
    end = "; not started privately for one of 4 ranks; if one process has all ranks, call shufd.serve()"
    assert str(failed.value).endswith(end)


def test_dir_has_only_public_names():
    assert {name for name in dir(shufd.torch) if not name.startswith("__")} == set(shufd.torch.__all__)
