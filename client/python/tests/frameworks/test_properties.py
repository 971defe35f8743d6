# SPDX-License-Identifier: MIT
"""Whatever a job saves and another one loads, each epoch has each sample once, in the order of shufd.

Hypothesis combines samplers, loaders, workers, places of the save, and numbers of ranks. The ranks of a job run in turn
in this process, each with its own loader.
"""

import json
import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import skip_without

skip_without("torchdata")

import torch
import torchdata.nodes as nodes
from torchdata.stateful_dataloader import StatefulDataLoader

import shufd
import shufd.torch


class Rank:
    """The sampler and the loader of one rank."""

    def __init__(self, case, rank, world, state):
        data = list(range(case["n"]))
        self.case, self.loads_sampler = case, case["loader"] == "DataLoader" or case["world"] != case["next_world"]
        if case["sampler"] == "DistributedSampler":
            self.sampler = shufd.torch.DistributedSampler(data, world, rank, seed=7, drop_last=case["drop_last"])
        elif case["sampler"] == "RandomSampler":
            self.sampler = shufd.torch.RandomSampler(data, num_samples=case["num_samples"], seed=7)
        else:
            self.sampler = torch.utils.data.DistributedSampler(data, world, rank, seed=7, drop_last=case["drop_last"])
        self.source = self.sampler
        if case["batches"]:
            of = torch.utils.data if case["sampler"] == "torch" else shufd.torch
            self.source = of.BatchSampler(self.sampler, case["batch_size"], case["drop_last"])
        if state is not None and self.loads_sampler:
            self.source.load_state_dict(state[0])
        self.loader = self.make_nodes(data) if case["loader"] == "nodes" else self.make_loader(data)
        if state is not None and not self.loads_sampler:
            self.loader.load_state_dict(state[rank])
        self.iterator, self.used, self.has_ended = None, 0, False

    def make_loader(self, data):
        case = self.case
        options = {"num_workers": case["workers"], "persistent_workers": case["persistent"] and case["workers"] > 0}
        if case["batches"]:
            options["batch_sampler"] = self.source
        else:
            options |= {"sampler": self.sampler, "batch_size": case["batch_size"], "drop_last": case["drop_last"]}
        if case["loader"] == "DataLoader":
            return torch.utils.data.DataLoader(data, **options)
        return StatefulDataLoader(data, snapshot_every_n_steps=case["snapshot_steps"], **options)

    def make_nodes(self, data):
        node = nodes.SamplerWrapper(self.source, initial_epoch=self.sampler.epoch if self.case["tells_node"] else 0)
        if not self.case["batches"]:
            node = nodes.Batcher(node, self.case["batch_size"], drop_last=self.case["drop_last"])
        if workers := self.case["workers"]:
            node = nodes.ParallelMapper(node, torch.tensor, num_workers=workers, method="thread")
        else:
            node = nodes.Mapper(node, torch.tensor)
        # A Loader that restarts at the end of a state saves that state again and again, also with torch's samplers.
        return nodes.Loader(node, restart_on_stop_iteration=len(self.case["stops"]) == 1)

    def begin(self, epoch):
        if epoch is not None:
            (self.sampler if self.case["sampler"] == "torch" else self.source).set_epoch(epoch)
        if self.loads_sampler:  # saved before workers and threads draw
            is_selected = self.iterator is None or epoch is not None
            self.before = self.source.state_dict(used=None if is_selected else 10**9)
        self.iterator, self.used, self.has_ended = iter(self.loader), 0, False

    def draw(self, steps):
        """The indices of the next batches; None: of all that are left."""
        indices = []
        while steps is None or steps > 0:
            batch = next(self.iterator, None)
            if batch is None:
                self.has_ended = True
                break
            indices += batch.tolist()
            self.used += self.case["batch_size"]
            steps = None if steps is None else steps - 1
        return indices

    def save(self):
        if not self.loads_sampler:
            state = self.loader.state_dict()
        elif self.used == 0 and not self.has_ended:
            state = self.before
        else:
            # A loader that drops its last batch leaves indices, but its job is at the end of the epoch.
            state = self.source.state_dict(used=10**9 if self.has_ended else self.used)
        return json.loads(json.dumps(state))


class Job:
    """A job of several ranks, from the start or from the states of an earlier job."""

    def __init__(self, case, world, states, epoch):
        self.case = case
        self.ranks = [Rank(case, rank, world, states) for rank in range(world)]
        self.sets_epoch = case["sets_epoch"] and case["loader"] != "nodes"  # nodes set it themselves
        self.epoch = self.ranks[0].sampler.epoch if self.ranks[0].loads_sampler else epoch

    def iterate(self, steps=None):
        """The indices of one iteration over the loaders, or of its first batches, in the order of the ranks' turns."""
        for rank in self.ranks:
            rank.begin(self.epoch if self.sets_epoch else None)
        indices = [index for row in zip(*[rank.draw(steps) for rank in self.ranks]) for index in row]
        self.epoch += self.ranks[0].has_ended
        return indices

    def save(self):
        states = [rank.save() for rank in self.ranks]
        assert not self.ranks[0].loads_sampler or all(state == states[0] for state in states)
        return states


class Record:
    """The indices of all jobs together, epoch by epoch."""

    def __init__(self, case):
        repeats = case["sampler"] == "DistributedSampler" and not case["sets_epoch"] and case["loader"] != "nodes"
        self.n, self.repeats, self.is_of_torch = case["n"], repeats, case["sampler"] == "torch"
        self.size = case["num_samples"] or self.n
        self.batch_size, self.drops_last = case["batch_size"], case["drop_last"]
        self.epoch, self.current = 0, []
        self.world = 1  # of the latest iteration
        self.repeated = 0  # the epoch that a sampler without set_epoch() repeats

    def order(self):
        if not self.is_of_torch:
            passes = -(-self.size // self.n)
            first = self.repeated if self.repeats else self.epoch * passes
            return [i for k in range(passes) for i in shufd.permute(self.n, 7, first + k).tolist()][: self.size]
        sampler = torch.utils.data.DistributedSampler(range(self.n), 1, 0, seed=7)
        sampler.set_epoch(self.epoch)
        return list(sampler)

    def is_whole(self, world):
        """Whether no rank has a batch left, or no rank of the job before had an index left."""
        left = self.size - len(self.current)
        return left // world < self.batch_size or left < self.world if self.drops_last else left <= 0

    def end_epoch(self, world):
        order, count = self.order(), len(self.current)
        assert self.current[: self.size] == order[:count] and self.is_whole(world)
        if not self.drops_last:
            assert count < self.size + 3 and set(self.current) == set(order)  # padding of up to 3 ranks
        self.epoch, self.current = self.epoch + 1, []

    def add(self, indices, world, is_first, has_ended, loaded):
        """An iteration. The first one of a job may be the empty rest of an epoch that was used up, or skip it. It has
        the epoch that the sampler has loaded, which is not None."""
        if is_first and self.current and self.is_whole(world) and indices:
            self.end_epoch(world)
        if is_first and loaded is not None:
            self.repeated = loaded
        self.current, self.world = self.current + indices, world
        if has_ended and (self.current or not is_first):
            self.end_epoch(world)


CASES = st.fixed_dictionaries({
    "sampler": st.sampled_from(["DistributedSampler", "RandomSampler", "torch"]),
    "batches": st.booleans(),
    "loader": st.sampled_from(["DataLoader", "StatefulDataLoader", "nodes"]),
    "workers": st.sampled_from([0, 1, 3]),
    "persistent": st.booleans(),
    "sets_epoch": st.booleans(),
    "tells_node": st.booleans(),  # the epoch of the sampler
    "drop_last": st.booleans(),
    "snapshot_steps": st.sampled_from([1, 3]),
    "n": st.integers(1, 40),
    "num_samples": st.none() | st.integers(1, 90),  # of a RandomSampler
    "batch_size": st.integers(1, 8),
    "world": st.integers(1, 3),
    "next_world": st.integers(1, 3),
    # Each job but the last: iterations that it ends, then batches of another one that it begins, or None.
    "stops": st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(0, 12)), min_size=1, max_size=3),
})  # fmt: skip


@settings(max_examples=int(os.environ.get("SHUFD_TEST_EXAMPLES", 80)), deadline=None, print_blob=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])  # fmt: skip
@given(case=CASES)
def test_each_epoch_is_whole_and_in_order(daemon, case):
    if case["sampler"] == "RandomSampler":  # of a single rank
        case = {**case, "world": 1, "next_world": 1}
    else:
        case = {**case, "num_samples": None}
    if (case["num_samples"] or case["n"]) // max(case["world"], case["next_world"]) < case["batch_size"]:
        case = {**case, "drop_last": False}  # which would leave no batch of an epoch: the record cannot see it pass
    if case["sampler"] == "torch":  # what torch's own samplers can do passes, too
        case = {**case, "loader": "StatefulDataLoader", "sets_epoch": True, "next_world": case["world"]}
    record, states, worlds = Record(case), None, [case["world"], case["next_world"]]
    for number, (iterations, steps) in enumerate([*case["stops"], (3, None)]):
        job = Job(case, worlds[number % 2], states, record.epoch)
        loaded = job.ranks[0].sampler.epoch if states is not None and job.ranks[0].loads_sampler else None
        for iteration, most in enumerate([None] * iterations + [steps] * (steps is not None)):
            indices = job.iterate(most)
            record.add(indices, len(job.ranks), states is not None and iteration == 0, job.ranks[0].has_ended, loaded)
        if iterations == 0 and steps is None:
            continue  # the job has done nothing, and saves nothing
        states = job.save()
    assert record.epoch >= 2
