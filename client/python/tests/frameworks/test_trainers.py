# SPDX-License-Identifier: MIT
"""Samplers beside accelerate, the HF Trainer and Lightning, in two processes with gloo."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).with_name("programs.py")


def run(daemon, name, world=2, **options):
    """The results of the ranks, and what they wrote to stderr."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_"))}
    ranks = [
        subprocess.Popen(
            [sys.executable, PROGRAMS, name, json.dumps(options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world),
                            "LOCAL_WORLD_SIZE": str(world), "NODE_RANK": "0", "GROUP_RANK": "0", "OMP_NUM_THREADS": "1",
                            "TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                            "ACCELERATE_USE_CPU": "true", "SHUFD_SOCKET": daemon.socket},
        )
        for rank in range(world)
    ]  # fmt: skip
    ended = [process.communicate(timeout=240) for process in ranks]
    errors = "\n".join(error for _, error in ended)
    assert all(process.returncode == 0 for process in ranks), errors
    return [json.loads(out.splitlines()[-1]) for out, _ in ended], errors


def epochs_of(results):
    """The samples of all ranks, an epoch each, in the order of their batches of 5."""
    return [result["epochs"] for result in results]


def by_batches(order, rank, size, world=2):
    """The share of a rank whose batches accelerate deals out."""
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    return [i for batch in batches[rank::world] for i in batch]


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("use_seedable", [False, True])
def test_accelerate_uses_the_order(daemon, client, use_seedable, batches):
    results, _ = run(daemon, "accelerate_epochs", seed=7, use_seedable=use_seedable, batches=batches)
    for epoch in range(2):
        order = client.permute(20, 7, epoch).tolist()
        assert [result["epochs"][epoch] for result in results] == [by_batches(order, rank, 5) for rank in range(2)]


@pytest.mark.parametrize("batches", [False, True])
def test_accelerate_without_a_seed(daemon, batches):
    """accelerate sets the generator of the sampler, the same on all ranks."""
    results, _ = run(daemon, "accelerate_epochs", batches=batches)
    whole = [sorted(results[0]["epochs"][epoch] + results[1]["epochs"][epoch]) for epoch in range(2)]
    assert whole == [list(range(20))] * 2 and results[0]["epochs"][0] != results[0]["epochs"][1]
    results, _ = run(daemon, "accelerate_epochs", batches=batches, use_seedable=True)  # sets no generator
    assert all(r["error"].startswith("Invalid: seed: None: each of 2 ranks would draw") for r in results)


def test_accelerate_refuses_a_distributed_sampler(daemon):
    results, _ = run(daemon, "accelerate_epochs", seed=7, kind="DistributedSampler")
    assert all("accelerate would divide it a second time" in r["error"] for r in results)


@pytest.mark.parametrize("world", [1, 2])
def test_trainer_uses_the_order_and_resumes(daemon, client, tmp_path, world):
    steps = 20 // 2 // world
    whole, _ = run(daemon, "trainer_epochs", world, directory=str(tmp_path / "whole"), epochs=3)
    orders = [client.permute(20, 7, epoch).tolist() for epoch in range(3)]
    expected = [[i for order in orders for i in by_batches(order, rank, 2, world)] for rank in range(world)]
    assert epochs_of(whole) == expected
    for stops in (2, steps + 2, 2 * steps):
        directory = str(tmp_path / f"stopped-{stops}")
        heads, _ = run(daemon, "trainer_epochs", world, directory=directory, epochs=3, stops=stops)
        rests, _ = run(daemon, "trainer_epochs", world, directory=directory, epochs=3, resume=True)
        assert [head + rest for head, rest in zip(epochs_of(heads), epochs_of(rests))] == expected


@pytest.mark.parametrize("kind", [
    pytest.param("RandomSampler", marks=pytest.mark.xfail(
        strict=True, reason="Lightning wraps the sampler, and shuffles its order again without a word")),
    "DistributedSampler",
])  # fmt: skip
def test_lightning_uses_the_order(daemon, client, kind):
    results, _ = run(daemon, "lightning_epochs", kind=kind)
    for rank, result in enumerate(results):
        assert result["epochs"] == [client.permute(20, 7, epoch).tolist()[rank::2] for epoch in range(2)]


def test_lightning_and_batches(daemon, client):
    results, errors = run(daemon, "lightning_epochs", kind="DistributedSampler", batches=True)
    assert errors.count("if Lightning has put it here, use Trainer(use_distributed_sampler=False)") >= 2
    assert [sorted(a + b) for a, b in zip(*epochs_of(results))] == [list(range(20))] * 2  # of torch's sampler
    results, errors = run(daemon, "lightning_epochs", kind="DistributedSampler", batches=True, replaces=False)
    for rank, result in enumerate(results):
        assert result["epochs"] == [client.permute(20, 7, epoch).tolist()[rank::2] for epoch in range(2)]
    assert "use_distributed_sampler" not in errors
    results, _ = run(daemon, "lightning_epochs", 1, kind="RandomSampler", batches=True, devices=1, predicts=True)
    assert sorted(results[0]["epochs"]) == list(range(20))


@pytest.mark.parametrize("verifies", [False, True])
@pytest.mark.parametrize("options, text", [
    ({"seeds": (7, 8)}, "seed 8, expected 7 as on rank 0"),
    ({"ns": (20, 21)}, "n 21, expected 20 as on rank 0"),
    ({"epochs": (0, 1)}, "epoch 1, expected 0 as on rank 0"),
    ({"ranks": (0, 0)}, "rank 0, which rank 0"),
], ids=str)  # fmt: skip
def test_ranks_that_differ_are_told(daemon, options, text, verifies):
    results, _ = run(daemon, "distributed_epochs", **options, verifies=verifies)
    assert results[1]["error"].startswith("Mismatch: ") and text in results[1]["error"]
    assert ("error" in results[0]) is verifies  # the first rank does not wait for the others


def test_equal_ranks_pass(daemon, client):
    for options in ({}, {"verifies": True}, {"seeds": (7, 8), "check": False}):
        results, _ = run(daemon, "distributed_epochs", **options)
        seeds = options.get("seeds", (7, 7))
        assert epochs_of(results) == [client.permute(20, seed).tolist()[r::2] for r, seed in enumerate(seeds)]
