# SPDX-License-Identifier: MIT
"""Samplers beside accelerate, the HF Trainer and Lightning, in two processes with gloo."""

import itertools
import json
import multiprocessing
import pathlib
import tempfile

import pytest

from conftest import skip_without

skip_without("accelerate", "lightning", "torch", "transformers")

import programs as programs_module
import torch

import shufd
import shufd.torch
from ranks import free_port

# Each rank is forked from a process that has imported the frameworks once.
RANKS = multiprocessing.get_context("forkserver")
RANKS.set_forkserver_preload(["accelerate", "lightning", "lightning.fabric", "shufd.torch", "transformers"])


def run(daemon, *programs, world=2):
    """Runs programs of programs.py, one after the other in the same ranks. The results of each, a list of those of the
    ranks; and what all wrote to stderr."""
    port = free_port()
    common = {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world), "NODE_RANK": "0", "GROUP_RANK": "0",
              "TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
              "ACCELERATE_USE_CPU": "true", "SHUFD_SOCKET": daemon.socket}  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        folders = [pathlib.Path(directory, str(rank)) for rank in range(world)]
        ranks = []
        for rank, folder in enumerate(folders):
            folder.mkdir()
            environment = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            ranks.append(RANKS.Process(target=programs_module.be_rank, args=(programs, environment, folder)))
            ranks[-1].start()
        for process in ranks:
            process.join(240)
        errors = "\n".join((folder / "stderr").read_text() for folder in folders)
        assert [process.exitcode for process in ranks] == [0] * world, errors
        return [[*results] for results in zip(*(json.loads((f / "results").read_text()) for f in folders))], errors


def run_one(daemon, name, **options):
    (results,), _ = run(daemon, (name, options))
    return results


def by_batches(order, rank, size, world=2):
    """The share of a rank whose batches accelerate deals out."""
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    return [i for batch in batches[rank::world] for i in batch]


def shares(client, share):
    """The samples of two ranks in two epochs. share(order, rank) selects those of a rank."""
    orders = [client.permute(20, 7, epoch).tolist() for epoch in range(2)]
    return [{"epochs": [share(order, rank) for order in orders]} for rank in range(2)]


def by_indices(order, rank):
    return order[rank::2]


def combinations(**values):
    return [dict(zip(values, chosen)) for chosen in itertools.product(*values.values())]


# ---- accelerate ----------------------------------------------------------------------------------


def test_accelerate_uses_the_order(daemon, client):
    cases = combinations(seed=[7], use_seedable=[False, True], dispatches=[False, True], batches=[False, True])
    cases += combinations(seed=[7], stateful=[True], batches=[False, True])
    found, _ = run(daemon, *[("accelerate_epochs", case) for case in cases])
    expected = shares(client, lambda order, rank: by_batches(order, rank, 5))
    for case, results in zip(cases, found, strict=True):
        assert results == expected, case


def test_accelerate_without_a_seed(daemon):
    """accelerate sets the generator of the sampler, the same on all ranks."""
    cases = combinations(batches=[False, True], use_seedable=[False, True])
    found, _ = run(daemon, *[("accelerate_epochs", case) for case in cases])
    for case, results in zip(cases, found, strict=True):
        if case["use_seedable"]:  # accelerate sets no generator
            assert all(r["error"].startswith("Invalid: seed: None: each of 2 ranks would draw") for r in results), case
        else:
            whole = [sorted(results[0]["epochs"][epoch] + results[1]["epochs"][epoch]) for epoch in range(2)]
            assert whole == [[*range(20)]] * 2 and results[0]["epochs"][0] != results[0]["epochs"][1], case


def test_accelerate_refuses_a_distributed_sampler(daemon):
    cases = combinations(seed=[7], kind=["DistributedSampler"], use_seedable=[False, True], batches=[False, True])
    found, _ = run(daemon, *[("accelerate_epochs", case) for case in cases])
    assert len(found) == 4
    for case, results in zip(cases, found):
        assert all("accelerate would divide it a second time" in result["error"] for result in results), case


@pytest.mark.parametrize("options, text", [
    ({"seed": 7, "kind": "DistributedSampler", "dispatches": True}, "accelerate would divide it a second time"),
    ({"rng_types": []}, "Mismatch: sampler: rank "),
    ({"seeds": [7, 8]}, ": seed "),
    ({"seeds": [7, 8], "stateful": True}, ": seed "),
], ids=str)  # fmt: skip
def test_one_rank_is_refused_under_accelerate(daemon, options, text):
    """It then ends, and so does the other one."""
    errors = [result.get("error", "") for result in run_one(daemon, "accelerate_epochs", **options)]
    assert sum(text in error for error in errors) == 1, errors


@pytest.mark.parametrize("world", [1, 2])
def test_accelerate_after_a_restart_and_a_break(daemon, client, world):
    """accelerate counts the iterations of a job, and sets this number as the epoch."""
    results, _ = run(daemon, ("accelerate_restarts", {}), world=world)
    for rank, result in enumerate(results[0]):
        shares = [by_batches(client.permute(20, 7, epoch).tolist(), rank, 5, world) for epoch in range(3)]
        assert result["epochs"] == [shares[0], shares[1][5:], shares[2], shares[0][:5], shares[1][:5]]


def test_a_look_on_one_rank_is_told_under_accelerate(daemon, client):
    """It would divide the orders of all later epochs. set_epoch() joins them again."""
    errors = [result.get("error", "") for result in run_one(daemon, "accelerate_looks", set_from=3)]
    assert sum("Mismatch: sampler: rank " in error and ": epoch " in error for error in errors) == 1, errors
    errors = [result.get("error", "") for result in run_one(daemon, "accelerate_looks", set_from=1, seed=None)]
    assert sum("Mismatch: sampler: rank " in error and ": seed " in error for error in errors) == 1, errors
    for rank, result in enumerate(run_one(daemon, "accelerate_looks", set_from=0)):
        assert result["epochs"] == [by_batches(client.permute(20, 7, epoch).tolist(), rank, 5) for epoch in range(3)]


@pytest.mark.parametrize("world", [1, 2])
def test_accelerate_leaves_the_epoch_of_a_dataset(daemon, client, world):
    """accelerate sets the epoch of an iterable dataset, and this one that of its sampler."""
    found, _ = run(daemon, *[("accelerate_streams", {"workers": workers}) for workers in (0, 1)], world=world)
    orders = [client.permute(20, 7, epoch).tolist() for epoch in (3, 4)]
    for results in found:
        whole = [sorted(i for r in results for i in r["epochs"][k]) for k in range(2)]
        assert whole == [[*range(20)]] * 2 if world == 1 else all({*w} == {*range(20)} for w in whole), results
        if world == 1:
            assert results[0]["epochs"] == orders


def test_accelerate_refuses_a_distributed_sampler_in_a_dataset(daemon):
    programs = [
        ("accelerate_streams", {"kind": "DistributedSampler"}),
        ("accelerate_streams", {"kind": "DistributedSampler", "workers": 1, "dispatches": True, "starts": "spawn"}),
    ]
    each, dispatched = run(daemon, *programs)[0]
    for result in [*each, dispatched[0]]:  # the first rank reads for both
        assert "accelerate would divide it a second time" in result["error"], (each, dispatched)


def test_used_counts_the_indices_of_a_rank(daemon):
    """accelerate reads a batch ahead, and each rank reads the indices of all ranks."""
    for world in (1, 2):
        (results,), _ = run(daemon, ("accelerate_state", {"used": 5}), world=world)
        assert [result["epochs"] for result in results] == [5 * world] * world


def test_arrays_are_refused_under_accelerate(client):
    from accelerate.data_loader import BatchSamplerShard

    sampler = shufd.torch.RandomSampler(range(21), seed=7, client=client)
    batches = BatchSamplerShard(shufd.torch.BatchSampler(sampler, 4, False, as_arrays=True), 2, 0, split_batches=True)
    with pytest.raises(shufd.Invalid, match="as_arrays: True: expected False"):
        list(batches)


def test_ranks_read_in_workers(daemon, client):
    results = run_one(daemon, "streams_in_workers")
    order = client.permute(20, 7).tolist()
    assert [sorted(result["epochs"][0]) for result in results] == [sorted(order[rank::2]) for rank in range(2)]


# ---- The Trainer of transformers -----------------------------------------------------------------


@pytest.mark.parametrize("world", [1, 2])
def test_trainer_uses_the_order_and_resumes(daemon, client, tmp_path, world):
    steps = 20 // 2 // world
    programs = [("trainer_epochs", {"directory": str(tmp_path / "whole"), "epochs": 3})]
    for stops in (2, steps + 2, 2 * steps):
        options = {"directory": str(tmp_path / f"stopped-{stops}"), "epochs": 3}
        programs += [("trainer_epochs", {**options, "stops": stops}), ("trainer_epochs", {**options, "resume": True})]
    found, _ = run(daemon, *programs, world=world)
    whole, *parts = [[result["epochs"] for result in results] for results in found]
    orders = [client.permute(20, 7, epoch).tolist() for epoch in range(3)]
    expected = [[i for order in orders for i in by_batches(order, rank, 2, world)] for rank in range(world)]
    assert whole == expected
    for heads, rests in zip(parts[::2], parts[1::2], strict=True):
        assert [head + rest for head, rest in zip(heads, rests)] == expected


def test_trainer_that_ends_epochs_early(daemon, client, tmp_path):
    """The Trainer's own number of an epoch is then a fraction."""
    options = {"directory": str(tmp_path), "epochs": 3, "short": 4}
    (results,), _ = run(daemon, ("trainer_epochs", options), world=1)
    assert results[0]["epochs"] == [i for epoch in range(3) for i in client.permute(20, 7, epoch).tolist()[:8]]


# ---- Lightning -----------------------------------------------------------------------------------


def test_lightning(daemon, client):
    order = {"kind": "DistributedSampler"}
    (plain, again, torchs, batches), errors = run(
        daemon, ("lightning_epochs", order), ("lightning_epochs", {"kind": "RandomSampler"}),
        ("lightning_epochs", {**order, "batches": True}),
        ("lightning_epochs", {**order, "batches": True, "replaces": False}),
    )  # fmt: skip
    assert plain == batches == shares(client, by_indices)
    assert all("Lightning would draw the whole order at once" in result["error"] for result in again)
    assert errors.count("if Lightning has put it here, use Trainer(use_distributed_sampler=False)") >= 2
    assert [sorted(a + b) for a, b in zip(*(result["epochs"] for result in torchs))] == [[*range(20)]] * 2


def test_lightning_predicts_on_one_device(daemon):
    options = {"kind": "RandomSampler", "batches": True, "devices": 1, "predicts": True}
    (results,), errors = run(daemon, ("lightning_epochs", options), world=1)
    assert sorted(results[0]["epochs"]) == [*range(20)] and "use_distributed_sampler" not in errors


def test_fabric(daemon, client):
    """Fabric sets its number of iterations as the epoch."""
    (chosen, counted), _ = run(daemon, ("fabric_epochs", {"places": True}), ("fabric_epochs", {}))
    for first, results in ((3, chosen), (0, counted)):
        for rank, result in enumerate(results):
            orders = [client.permute(20, 7, epoch).tolist() for epoch in (first, first + 1)]
            assert result["epochs"] == [by_indices(order, rank) for order in orders]
    errors = [r.get("error", "") for r in run_one(daemon, "fabric_epochs", kind="RandomSampler")]
    assert all("use shufd.torch.DistributedSampler(dataset, seed=...)" in error for error in errors), errors
    errors = [r.get("error", "") for r in run_one(daemon, "fabric_epochs", seeds=(7, 8))]
    assert sum("Mismatch: sampler: rank " in error and ": seed " in error for error in errors) == 1, errors


def test_a_state_of_dispatched_batches_is_refused(daemon):
    """accelerate has drawn a batch for each rank, and cannot correct our position as its own counts."""
    results = run_one(daemon, "accelerate_dispatched_state")
    assert "expected dispatch_batches=False" in results[0]["error"], results


def test_fabric_counts_from_a_loaded_place(client):
    from lightning.fabric import Fabric

    sampler = shufd.torch.DistributedSampler(range(20), seed=7, client=client)
    loader = Fabric(accelerator="cpu", devices=1).setup_dataloaders(torch.utils.data.DataLoader(range(20), sampler=sampler))
    for place in ("loaded", "set"):
        if place == "loaded":
            sampler.load_state_dict({**sampler.state_dict(), "epoch": 5, "position": 15})
        else:
            sampler.set_epoch(5)
        epochs = [[int(i) for batch in loader for i in batch] for _ in range(3)]
        orders = [client.permute(20, 7, epoch).tolist() for epoch in (5, 6, 7)]
        assert epochs == [orders[0][15 if place == "loaded" else 0 :], *orders[1:]]


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_fabric_counts_after_workers_have_drawn(client, kind):
    """The first iteration has begun before Fabric sets its epoch, which the job has not selected."""
    from lightning.fabric import Fabric
    from torchdata.stateful_dataloader import StatefulDataLoader

    sampler = getattr(shufd.torch, kind)(range(12), seed=7, client=client)
    inner = StatefulDataLoader(range(12), sampler=sampler, batch_size=4, num_workers=1)
    loader = Fabric(accelerator="cpu", devices=1).setup_dataloaders(inner)
    inner.state_dict()
    epochs = [[int(i) for batch in loader for i in batch] for _ in range(3)]
    assert epochs == [client.permute(12, 7, epoch).tolist() for epoch in range(3)]


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
@pytest.mark.parametrize("steps", [1, 3])
def test_fabric_counts_from_the_state_of_a_loader(client, kind, steps):
    """Fabric sets the epoch before the loader loads its state, in an epoch or at its end."""
    from lightning.fabric import Fabric
    from torchdata.stateful_dataloader import StatefulDataLoader

    def make():
        sampler = getattr(shufd.torch, kind)(range(12), seed=7, client=client)
        inner = StatefulDataLoader(range(12), sampler=sampler, batch_size=4)
        return inner, Fabric(accelerator="cpu", devices=1).setup_dataloaders(inner)

    inner, loader = make()
    for _ in range(4):
        [*loader]
    if steps < 3:
        for _ in zip(range(steps), loader):
            pass
    state = inner.state_dict()
    inner, loader = make()
    inner.load_state_dict(state)
    epochs = [[int(i) for batch in loader for i in batch] for _ in range(4)]
    first = client.permute(12, 7, 4).tolist()
    assert epochs[0] == (first[4:] if steps < 3 else first)
    assert epochs[1:] == [client.permute(12, 7, epoch).tolist() for epoch in (5, 6, 7)]


def test_fabric_counts_from_the_end_of_an_epoch(client):
    from lightning.fabric import Fabric

    sampler = shufd.torch.DistributedSampler(range(20), seed=7, client=client)
    sampler.load_state_dict({**sampler.state_dict(), "epoch": 1, "position": 20})
    loader = Fabric(accelerator="cpu", devices=1).setup_dataloaders(torch.utils.data.DataLoader(range(20), sampler=sampler))
    epochs = [[int(i) for batch in loader for i in batch] for _ in range(sampler.epoch, 5)]
    assert epochs == [client.permute(20, 7, epoch).tolist() for epoch in (2, 3, 4)]


class PassedOn(torch.utils.data.BatchSampler):
    def set_epoch(self, epoch):
        self.sampler.set_epoch(epoch)


def test_a_batch_sampler_that_passes_the_epoch_on(client):
    import accelerate

    batches = PassedOn(shufd.torch.RandomSampler(range(12), seed=7, client=client), 4, False)
    accelerator = accelerate.Accelerator(cpu=True)
    loader = accelerator.prepare(torch.utils.data.DataLoader(range(12), batch_sampler=batches))
    loader.batch_sampler.set_epoch(5)
    rest = [int(i) for batch in accelerator.skip_first_batches(loader, 2) for i in batch]
    loader.batch_sampler.set_epoch(6)
    whole = [int(i) for batch in loader for i in batch]
    assert (rest, whole) == (client.permute(12, 7, 5).tolist()[8:], client.permute(12, 7, 6).tolist())


@pytest.mark.parametrize("kind", ["RandomSampler", "DistributedSampler"])
def test_accelerate_skips_no_loaded_place(client, kind):
    import accelerate

    sampler = getattr(shufd.torch, kind)(range(20), seed=7, client=client)
    accelerator = accelerate.Accelerator(cpu=True)
    loader = accelerator.prepare(torch.utils.data.DataLoader(range(20), batch_size=5, sampler=sampler))
    state = sampler.state_dict()
    for position in (5, 0):
        sampler.load_state_dict({**state, "epoch": 1, "position": position})
        if position:
            with pytest.raises(shufd.Invalid, match="^sampler: its state, at position 5, is loaded"):
                list(accelerator.skip_first_batches(loader, 1))
            assert [int(i) for batch in loader for i in batch] == client.permute(20, 7, 1).tolist()[5:]
        else:
            rest = [int(i) for batch in accelerator.skip_first_batches(loader, 1) for i in batch]
            assert rest == client.permute(20, 7, 1).tolist()[5:]


def test_accelerate_skips_without_a_count(client):
    """The indices that the job has used in the rest of an epoch are not its place."""
    import accelerate

    sampler = shufd.torch.RandomSampler(range(20), seed=7, client=client)
    accelerator = accelerate.Accelerator(cpu=True)
    loader = accelerator.prepare(torch.utils.data.DataLoader(range(20), batch_size=5, sampler=sampler))
    sampler.set_epoch(1)
    rest = iter(accelerator.skip_first_batches(loader, 1))
    next(rest)
    for used in (0, 5):
        with pytest.raises(shufd.Invalid, match=f"^used: {used}: the loader has skipped the first batches"):
            sampler.state_dict(used=used)
    assert len(list(rest)) == 2 and sampler.state_dict(used=20)["position"] == 20
    sampler.set_epoch(2)
    next(iter(loader))
    assert sampler.state_dict(used=5)["position"] == 5


def test_accelerate_continues_the_selected_epoch(daemon, client):
    """On several ranks its wrappers hide the sampler from its own set_epoch()."""
    (told, untold), _ = run(daemon, ("accelerate_skips", {"selects": True}), ("accelerate_skips", {"selects": False}))
    order = client.permute(20, 7, 1).tolist()
    assert [result["epochs"] for result in told] == [[by_batches(order, rank, 5)[5:]] for rank in range(2)]
    assert all("call its set_epoch() before skip_first_batches()" in result["error"] for result in untold)


@pytest.mark.parametrize("workers, batches", [(0, False), (2, False), (0, True)])
def test_lightning_saves_the_sampler_in_a_data_module(daemon, client, monkeypatch, tmp_path, workers, batches):
    """Lightning makes the iterator of a loader, whose workers draw at once, before it calls set_epoch()."""
    import lightning

    monkeypatch.setenv("SHUFD_SOCKET", daemon.socket)

    class Values(torch.utils.data.Dataset):
        def __len__(self):
            return 20

        def __getitem__(self, i):
            return torch.tensor([float(i)])

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer, self.seen, self.steps = torch.nn.Linear(1, 1), {}, 0

        def on_train_epoch_start(self):
            self.steps = 0

        def training_step(self, batch, index):
            self.steps += 1
            self.seen.setdefault(self.current_epoch, []).extend(batch.flatten().int().tolist())
            return self.layer(batch).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.0)

    class Samples(lightning.LightningDataModule):
        saved = None

        def train_dataloader(self):
            self.sampler = shufd.torch.DistributedSampler(Values(), seed=7)
            if self.saved:
                self.sampler.load_state_dict(self.saved)
            if batches:
                return torch.utils.data.DataLoader(Values(), batch_sampler=shufd.torch.BatchSampler(self.sampler, 5, False))
            return torch.utils.data.DataLoader(Values(), batch_size=5, sampler=self.sampler, num_workers=workers)

        def state_dict(self):
            return {"sampler": self.sampler.state_dict(used=self.trainer.model.steps * 5)}

        def load_state_dict(self, state):
            self.saved = state["sampler"]

    def fit(epochs, max_steps=-1, every=None, limit=None, **more):
        module = Module()
        name = ("{step}" if every else "{epoch}") + (f" of {limit}" if limit else "")
        keep = lightning.pytorch.callbacks.ModelCheckpoint(tmp_path, filename=name, save_top_k=-1, every_n_train_steps=every)
        trainer = lightning.Trainer(
            accelerator="cpu", devices=1, max_epochs=epochs, logger=False, enable_progress_bar=False, enable_model_summary=False,
            callbacks=[keep], max_steps=max_steps, limit_train_batches=limit,
        )  # fmt: skip
        trainer.fit(module, datamodule=Samples(), **more)
        return module.seen

    orders = [client.permute(20, 7, epoch).tolist() for epoch in range(4)]
    assert fit(2) == dict(enumerate(orders[:2]))
    assert fit(4, ckpt_path=tmp_path / "epoch=1.ckpt") == {2: orders[2], 3: orders[3]}
    assert fit(3, max_steps=6, every=6) == {0: orders[0], 1: orders[1][:10]}
    assert fit(3, ckpt_path=tmp_path / "step=6.ckpt") == {1: orders[1][10:], 2: orders[2]}
    if workers == 0:  # which draw before set_epoch(), and so the rest of the epoch that the limit has ended
        assert fit(1, limit=3) == {0: orders[0][:15]}
        assert fit(2, limit=3, ckpt_path=tmp_path / "epoch=0 of 3.ckpt") == {1: orders[1][:15]}


def fit_by_lightning(sampler, directory):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = programs_module.Model()

        def training_step(self, batch, index):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.0)

    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    module = Module()
    trainer.fit(module, torch.utils.data.DataLoader(programs_module.Numbers(), batch_size=5, sampler=sampler))
    return module.model.seen


def fit_by_transformers(sampler, directory):
    import transformers

    class Trainer(transformers.Trainer):
        def _get_train_sampler(self, train_dataset=None):
            return sampler

    arguments = transformers.TrainingArguments(
        directory, num_train_epochs=1, per_device_train_batch_size=5, use_cpu=True, report_to=[], disable_tqdm=True,
        save_strategy="no", logging_strategy="no", remove_unused_columns=False,
    )  # fmt: skip
    model = programs_module.Model()
    Trainer(model=model, args=arguments, train_dataset=programs_module.Numbers()).train()
    return model.seen


@pytest.mark.parametrize("fit", [fit_by_lightning, fit_by_transformers])
@pytest.mark.parametrize("epoch, position", [(3, 10), (2, 20), (0, 10)])
def test_a_trainer_that_discards_a_loaded_place_is_told(daemon, client, monkeypatch, tmp_path, recwarn, fit, epoch, position):
    """It counts its epochs from 0 in this job."""
    monkeypatch.setenv("SHUFD_SOCKET", daemon.socket)
    sampler = shufd.torch.DistributedSampler(range(20), 1, 0, seed=7)
    sampler.load_state_dict({**sampler.state_dict(), "epoch": epoch, "position": position})
    seen = fit(sampler, str(tmp_path))
    told = [str(warning.message) for warning in recwarn if "the loaded place" in str(warning.message)]
    assert seen == client.permute(20, 7).tolist()[position if epoch == 0 else 0 :]
    assert len(told) == (epoch > 0) and all(f"epoch {epoch} and position {position}, is discarded" in text for text in told)


def test_accelerate_reads_ahead(client):
    import accelerate

    sampler = shufd.torch.RandomSampler(range(20), seed=7, client=client)
    loader = accelerate.Accelerator(cpu=True).prepare(torch.utils.data.DataLoader(range(20), batch_size=5, sampler=sampler))
    for step, _ in enumerate(loader):
        if step < 3:
            with pytest.raises(shufd.Invalid, match="used: None: loaders draw indices ahead"):
                sampler.state_dict()
        assert sampler.state_dict(used=5 * (step + 1))["position"] == 5 * (step + 1)
    assert sampler.state_dict(used=20)["position"] == 20


# ---- docs/loaders.md -----------------------------------------------------------------------------


def test_pages(daemon, client, tmp_path):
    """Its code, in two ranks."""
    (accelerate,), _ = run(daemon, ("page_of_accelerate", {}))
    (transformers, head, rest), _ = run(
        daemon, ("page_of_transformers", {"directory": str(tmp_path / "whole")}),
        ("page_of_transformers", {"directory": str(tmp_path / "stopped"), "stops": 3}),
        ("page_of_transformers", {"directory": str(tmp_path / "stopped"), "resume": True}),
    )  # fmt: skip
    resumed = [sum(a["epochs"] + b["epochs"], []) for a, b in zip(head, rest)]
    assert resumed == [sum(result["epochs"], []) for result in transformers]
    (lightning,), _ = run(daemon, ("page_of_lightning", {}))
    assert accelerate == transformers == shares(client, lambda order, rank: by_batches(order, rank, 5))
    assert lightning == shares(client, by_indices)


# ---- torch.distributed ---------------------------------------------------------------------------


def test_ranks_that_differ_are_told(daemon):
    wrong = [
        ({"seeds": (7, 8)}, "seed 8, expected 7 as on rank 0"),
        ({"ns": (20, 21)}, "n 21, expected 20 as on rank 0"),
        ({"epochs": (0, 1)}, "epoch 1, expected 0 as on rank 0"),
        ({"ranks": (0, 0)}, "rank 0, which rank 0"),
    ]
    cases = [({**options, "verifies": verifies}, text) for options, text in wrong for verifies in (False, True)]
    found, _ = run(daemon, *[("distributed_epochs", options) for options, _ in cases])
    for (options, text), results in zip(cases, found, strict=True):
        assert results[1]["error"].startswith("Mismatch: ") and text in results[1]["error"], options
        assert ("error" in results[0]) is options["verifies"]  # else the first rank does not wait for the others


def test_ranks_with_loaders_of_torchdata(daemon, client):
    """Each rank saves and loads its own place."""
    pytest.importorskip("torchdata")
    forms = ["sampler", "batches", "torch's batches", "class", "node", "node of batches", "node of a class"]
    programs = [("torchdata_epochs", {"form": form}) for form in forms]
    found, _ = run(daemon, *programs)
    order = client.permute(20, 7).tolist()
    for form, results in zip(forms, found, strict=True):
        shares = [[i for i in order[rank::2] if "class" not in form or i % 2 == 0] for rank in range(2)]
        assert [result.get("epochs", result) for result in results] == shares, form
    results = run_one(daemon, "torchdata_epochs", form="node of a class", seeds=(7, 8))
    assert sum("Mismatch: sampler: rank " in result.get("error", "") for result in results) == 1, results


def test_ranks_that_are_not_those_of_torch_are_refused(daemon):
    results = run_one(daemon, "ranks_taken_early")
    assert all("rank 1, num_replicas 3, taken before torch.distributed had its 2 ranks" in r["error"] for r in results)


def test_equal_ranks_pass(daemon, client):
    found, _ = run(
        daemon, ("distributed_epochs", {}), ("distributed_epochs", {"verifies": True}),
        ("distributed_epochs", {"seeds": (7, 8), "check": False}),
    )  # fmt: skip
    for results, seeds in zip(found, [(7, 7), (7, 7), (7, 8)], strict=True):
        assert [r["epochs"] for r in results] == [client.permute(20, s).tolist()[r::2] for r, s in enumerate(seeds)]
