# SPDX-License-Identifier: MIT
"""The programs of test_trainers.py, which starts them as ranks. A rank writes a list of JSON: of each program the
samples of this rank, an epoch each, or its error."""

import itertools
import json
import multiprocessing
import os
import pathlib

import torch

import shufd
import shufd.torch

N = 20


def code_of_page(heading):
    """The code of a section of docs/loaders.md."""
    page = pathlib.Path(__file__).resolve().parents[4] / "docs/loaders.md"
    section = page.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return section.partition("```python\n")[2].partition("```")[0]


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return N

    def __getitem__(self, i):
        return {"x": torch.tensor([float(i)]), "labels": torch.tensor([0.0])}


class Model(torch.nn.Module):
    """Notes the samples that it is given in training."""

    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(1, 1), []

    def forward(self, x, labels=None):
        if self.training:
            self.seen += x.flatten().int().tolist()
        return {"loss": ((self.layer(x) - labels) ** 2).mean() * 0}


def accelerate_epochs(
    seed=None, seeds=None, use_seedable=False, dispatches=None, batches=False, kind="RandomSampler", rng_types=None,
    stateful=False,
):
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    torch.manual_seed(int(os.environ["RANK"]))
    config = DataLoaderConfiguration(
        use_seedable_sampler=use_seedable, dispatch_batches=dispatches, use_stateful_dataloader=stateful
    )
    accelerator = Accelerator(cpu=True, dataloader_config=config, rng_types=rng_types)
    seed = seed if seeds is None else seeds[accelerator.process_index]
    data = Numbers()
    sampler = getattr(shufd.torch, kind)(data, **({} if seed is None else {"seed": seed}))
    if batches:
        loader = torch.utils.data.DataLoader(data, batch_sampler=shufd.torch.BatchSampler(sampler, 5, False))
    else:
        loader = torch.utils.data.DataLoader(data, batch_size=5, sampler=sampler)
    loader = accelerator.prepare(loader)
    epochs = [[int(i) for batch in loader for i in batch["x"]] for _ in range(2)]
    accelerator.wait_for_everyone()  # the other rank may ask the store of the first one
    return epochs


def accelerate_restarts(kind="sampler"):
    """A job that is left in epoch 1 after two batches, and the job after it, as docs/loaders.md shows it; and breaks."""
    from accelerate import Accelerator

    def make():
        accelerator = Accelerator(cpu=True)
        sampler = shufd.torch.RandomSampler(range(N), seed=7)
        loader = accelerator.prepare(torch.utils.data.DataLoader(Numbers(), batch_size=5, sampler=sampler))
        return accelerator, sampler, loader

    def samples(loader, most=N):
        return [int(i) for batch in itertools.islice(loader, most) for i in batch["x"]]

    accelerator, sampler, loader = make()
    sampler.set_epoch(0)
    whole = [samples(loader)]
    accelerator, sampler, loader = make()
    sampler.set_epoch(1)
    whole.append(samples(accelerator.skip_first_batches(loader, 1)))
    sampler.set_epoch(2)
    whole.append(samples(loader))
    accelerator, sampler, loader = make()
    for _ in range(2):  # not set: each iteration has another epoch, also after a break
        whole.append(samples(loader, 1))
    accelerator.wait_for_everyone()
    return whole


def accelerate_looks(set_from, seed=7):
    """The first rank looks at a batch after the first epoch. The job sets the epochs from set_from on."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    sampler = shufd.torch.RandomSampler(range(N), seed=seed)
    raw = torch.utils.data.DataLoader(Numbers(), batch_size=5, sampler=sampler)
    loader = accelerator.prepare(raw)
    epochs = []
    for epoch in range(3):
        if epoch >= set_from:
            sampler.set_epoch(epoch)
        epochs.append([int(i) for batch in loader for i in batch["x"]])
        if epoch == 0 and accelerator.is_main_process:
            next(iter(raw))
    accelerator.wait_for_everyone()  # the other rank may ask the store of the first one
    return epochs


class Stream(torch.utils.data.IterableDataset):
    """Reads the numbers in the order of a sampler."""

    def __init__(self, kind):
        self.sampler, self.epoch = getattr(shufd.torch, kind)(range(N), seed=7), 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        self.sampler.set_epoch(self.epoch)
        for k, i in enumerate(self.sampler):
            if worker is None or k % worker.num_workers == worker.id:
                yield torch.tensor(i)


def accelerate_streams(kind="RandomSampler", workers=0, dispatches=False, starts="fork"):
    """An order that an iterable dataset reads, from epoch 3 on."""
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatches))
    context = starts if workers else None
    loader = torch.utils.data.DataLoader(Stream(kind), batch_size=4, num_workers=workers, multiprocessing_context=context)
    loader = accelerator.prepare(loader)
    epochs = []
    for epoch in (3, 4):
        loader.set_epoch(epoch)
        epochs.append([int(i) for batch in loader for i in batch])
    accelerator.wait_for_everyone()
    return epochs


def accelerate_state(used):
    """The state after two batches of 5 of each rank."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    sampler = shufd.torch.RandomSampler(range(N), seed=7)
    loader = accelerator.prepare(torch.utils.data.DataLoader(Numbers(), batch_size=5, sampler=sampler))
    iterator = iter(loader)
    next(iterator)
    state = sampler.state_dict(used=used)
    accelerator.wait_for_everyone()
    return state["position"]


def accelerate_dispatched_state():
    """Batches that rank 0 draws for both, by a StatefulDataLoader."""
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    config = DataLoaderConfiguration(dispatch_batches=True, use_stateful_dataloader=True)
    accelerator = Accelerator(cpu=True, dataloader_config=config)
    batches = shufd.torch.BatchSampler(shufd.torch.RandomSampler(range(N), seed=7), 5, False)
    loader = accelerator.prepare(torch.utils.data.DataLoader(Numbers(), batch_sampler=batches))
    if accelerator.process_index == 0:  # the refusal comes before the first batch is sent
        next(iter(loader))
    return []


def accelerate_skips(selects):
    """The rest of epoch 1 after a batch of each rank."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    sampler = shufd.torch.RandomSampler(range(N), seed=7)
    loader = accelerator.prepare(torch.utils.data.DataLoader(Numbers(), batch_size=5, sampler=sampler))
    if selects:
        sampler.set_epoch(1)
    rest = [int(i) for batch in accelerator.skip_first_batches(loader, 1) for i in batch["x"]]
    accelerator.wait_for_everyone()
    return [rest]


def streams_in_workers():
    """Each worker of each rank has a copy of the sampler."""
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    loader = torch.utils.data.DataLoader(Stream("DistributedSampler"), batch_size=5, num_workers=3)
    samples = [[int(i) for batch in loader for i in batch]]
    torch.distributed.barrier()
    return samples


def fabric_epochs(seeds=(7, 7), kind="DistributedSampler", places=False):
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    seed = seeds[fabric.global_rank]
    sampler = getattr(shufd.torch, kind)(range(N), seed=seed)
    loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(Numbers(), batch_size=5, sampler=sampler))
    epochs = []
    for epoch in range(3, 5):
        if places:
            sampler.set_epoch(epoch)
        epochs.append([int(i) for batch in loader for i in batch["x"]])
    fabric.barrier()
    return epochs


def trainer_epochs(directory, epochs, resume=False, stops=None, seed=7, short=None):
    """With `short` steps in each epoch, which a callback then ends."""
    import transformers

    class Trainer(transformers.Trainer):
        def _get_train_sampler(self, train_dataset=None):
            self.sampler = shufd.torch.RandomSampler(train_dataset or self.train_dataset, seed=seed)
            return self.sampler

    class SetEpoch(transformers.TrainerCallback):
        def on_train_begin(self, args, state, control, **more):
            self.epoch = int(state.epoch)

        def on_epoch_begin(self, args, state, control, **more):
            trainer.sampler.set_epoch(self.epoch)
            self.epoch += 1

    class Stop(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            control.should_training_stop = state.global_step == stops
            control.should_epoch_stop = short is not None and state.global_step % short == 0

    arguments = transformers.TrainingArguments(
        directory, num_train_epochs=epochs, per_device_train_batch_size=2, use_cpu=True, report_to=[], disable_tqdm=True,
        save_strategy="steps", save_steps=1, dataloader_drop_last=False, ddp_backend="gloo", logging_strategy="no",
        remove_unused_columns=False,
    )  # fmt: skip
    model = Model()
    trainer = Trainer(model=model, args=arguments, train_dataset=Numbers(), callbacks=[SetEpoch(), Stop()])
    trainer.train(resume_from_checkpoint=resume)
    return model.seen


def lightning_epochs(kind, batches=False, epochs=2, devices=2, predicts=False, replaces=True):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model, self.seen = Model(), []

        def training_step(self, batch, index):
            return self.model(**batch)["loss"]

        def predict_step(self, batch, index):
            self.seen += batch["x"].flatten().int().tolist()

        def on_train_epoch_end(self):
            self.seen.append(self.model.seen)
            self.model.seen = []

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.0)

        def train_dataloader(self):
            return make_loader()

    def make_loader():
        sampler = getattr(shufd.torch, kind)(Numbers(), seed=7)
        if batches:
            return torch.utils.data.DataLoader(Numbers(), batch_sampler=shufd.torch.BatchSampler(sampler, 5, False))
        return torch.utils.data.DataLoader(Numbers(), batch_size=5, sampler=sampler)

    trainer = lightning.Trainer(
        accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto", max_epochs=epochs, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        use_distributed_sampler=replaces,
    )  # fmt: skip
    module = Module()
    if predicts:
        trainer.predict(module, make_loader())
    else:
        trainer.fit(module)
    return module.seen


def page_of_accelerate():
    model = Model()
    exec(code_of_page("Accelerate"), {
        "dataset": Numbers(), "model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.0),
    })  # fmt: skip
    return [model.seen[:10], model.seen[10:]]


def page_of_transformers(directory, stops=None, resume=False):
    import transformers

    class Stop(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            control.should_training_stop = state.global_step == stops

    model = Model()
    arguments = transformers.TrainingArguments(
        directory, seed=7, num_train_epochs=2, per_device_train_batch_size=5, use_cpu=True, report_to=[],
        disable_tqdm=True, save_strategy="steps", save_steps=1, ddp_backend="gloo", logging_strategy="no",
        remove_unused_columns=False,
    )  # fmt: skip
    code = code_of_page("Transformers").replace("callbacks=[", "callbacks=[stop, ")
    exec(code, {"dataset": Numbers(), "model": model, "arguments": arguments, "stop": Stop(), "resume": resume})
    return [model.seen[:10], model.seen[10:]]


def page_of_lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, index):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.0)

    module = Module()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    exec(code_of_page("Lightning"), {"dataset": Numbers(), "module": module, "trainer": trainer})
    return [module.model.seen[:10], module.model.seen[10:]]


def ranks_taken_early():
    """A sampler made before torch.distributed, which has other ranks than the launcher's variables."""
    os.environ |= {"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "1"}
    kept = {name: os.environ.pop(name) for name in ("RANK", "WORLD_SIZE")}
    sampler = shufd.torch.DistributedSampler(range(N), seed=7)
    os.environ |= kept
    torch.distributed.init_process_group("gloo")
    return list(sampler)


def distributed_epochs(seeds=(7, 7), ns=(20, 20), ranks=(0, 1), epochs=(0, 0), check=True, verifies=False):
    rank = int(os.environ["RANK"])
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    sampler = shufd.torch.DistributedSampler(
        range(ns[rank]), 2, ranks[rank], seed=seeds[rank], check_ranks=check
    )
    sampler.set_epoch(epochs[rank])
    if verifies:
        shufd.verify(sampler)
    else:
        for _ in range(rank):  # the ranks come one after the other
            torch.distributed.barrier()
        try:
            return list(sampler)
        finally:
            for _ in range(1 - rank):
                torch.distributed.barrier()
    return list(sampler)


class Even(torch.utils.data.Sampler):
    """The class of docs/python.md."""

    def __init__(self, sampler):
        self.sampler = self.indices = sampler

    def __iter__(self):
        self.indices = iter(self.sampler)
        return (i for i in self.indices if i % 2 == 0)

    def state_dict(self):
        return self.indices.state_dict()

    def load_state_dict(self, state):
        self.sampler.load_state_dict(state)


def torchdata_epochs(form, seeds=(7, 7)):
    """An epoch, whose second part a second loader gives from the state of the first one."""
    import torchdata.nodes as nodes
    from torchdata.stateful_dataloader import StatefulDataLoader

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    seed = seeds[torch.distributed.get_rank()]

    def make():
        sampler = shufd.torch.DistributedSampler(range(N), seed=seed)
        batches = shufd.torch.BatchSampler(sampler, 2, False)
        return {
            "sampler": lambda: StatefulDataLoader(range(N), 2, sampler=sampler),
            "batches": lambda: StatefulDataLoader(range(N), batch_sampler=batches),
            "torch's batches": lambda: StatefulDataLoader(range(N), batch_sampler=torch.utils.data.BatchSampler(sampler, 2, False)),
            "class": lambda: StatefulDataLoader(range(N), 2, sampler=Even(sampler)),
            "node": lambda: nodes.Loader(nodes.Batcher(nodes.SamplerWrapper(sampler), 2, False)),
            "node of batches": lambda: nodes.Loader(nodes.SamplerWrapper(batches)),
            "node of a class": lambda: nodes.Loader(nodes.Batcher(nodes.SamplerWrapper(Even(sampler)), 2, False)),
        }[form]()

    loader = make()
    head = [*itertools.islice(loader, 1)]
    state = json.loads(json.dumps(loader.state_dict()))
    loader = make()
    loader.load_state_dict(state)
    indices = [int(i) for batch in [*head, *loader] for i in batch]
    torch.distributed.barrier()
    return indices


def run(name, options):
    try:
        return {"epochs": globals()[name](**options)}
    except (shufd.Error, RuntimeError) as error:  # RuntimeError: the other rank has ended
        return {"error": f"{type(error).__name__}: {error}"}


def be_rank(programs, environment, folder):
    """Runs (name, options) of programs in this process. Writes the files `results` and `stderr` in the folder."""
    errors = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(errors, number)
    for name in [name for name in os.environ if name.startswith(("SLURM_", "OMPI_"))]:
        del os.environ[name]
    os.environ.update(environment)
    multiprocessing.set_start_method("fork", force=True)  # of workers; that of this process is another
    results = [run(name, options) for name, options in programs]
    (folder / "results").write_text(json.dumps(results))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    os._exit(0)  # at the end of Python a thread of gloo aborts the process at times
