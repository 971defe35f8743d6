# SPDX-License-Identifier: MIT
"""The places of the samplers of shufd.torch: states, epochs, iterators and copies."""

import copy
import itertools
import json
import os
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

torch = pytest.importorskip("torch")

import shufd
import shufd.torch
from test_torch import Numbers, make_sampler


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_sampler_resumes_at_every_step(client, world, drop_last):
    n = 23
    for rank, through_batches in itertools.product(range(world), (False, True)):
        whole = list(make_sampler(client, n, world, rank, drop_last, epoch=2))
        for step in range(len(whole) + 1):
            sampler = make_sampler(client, n, world, rank, drop_last, epoch=2)
            assert list(itertools.islice(sampler, step)) == whole[:step]
            state = json.loads(json.dumps(sampler.state_dict(used=step)))
            assert sampler.remaining == len(whole) - step
            resumed = make_sampler(client, n, world, rank, drop_last)
            if through_batches:
                batches = shufd.torch.BatchSampler(resumed, 4, False)
                batches.load_state_dict(state)
                assert batches.state_dict() == state
                following = list(make_sampler(client, n, world, rank, drop_last, epoch=3))
                assert sum(batches, []) == (whole[step:] if step < len(whole) else following)
            else:
                resumed.load_state_dict(state)
                resumed.set_epoch(state["epoch"])
                assert resumed.state_dict() == state
                assert list(resumed) == whole[step:]
            resumed.set_epoch(3)
            assert list(resumed) == list(make_sampler(client, n, world, rank, drop_last, epoch=3))


@pytest.mark.parametrize("kind", ["distributed", "drop_last", "random", "replacement"])
def test_state_after_an_epoch_continues_with_the_next(client, kind):
    """A loop over epochs saves its state after each epoch. The next run begins with the next epoch."""

    def make():
        if kind in ("random", "replacement"):
            return shufd.torch.RandomSampler(Numbers(23), kind == "replacement", seed=3, client=client)
        return make_sampler(client, 23, 3, 1, kind == "drop_last")

    def epochs_of(sampler, epochs, through_batches):
        for epoch in range(sampler.epoch, epochs):
            sampler.set_epoch(epoch)
            source = shufd.torch.BatchSampler(sampler, 4, False) if through_batches else [sampler]
            yield epoch, [i for batch in source for i in batch]

    whole = list(epochs_of(make(), 4, False))
    assert len(whole) == 4 and whole[0][1] != whole[1][1]
    for ended, through_batches in itertools.product(range(4), (False, True)):
        sampler = make()
        assert list(epochs_of(sampler, ended + 1, through_batches)) == whole[: ended + 1]
        assert sampler.epoch == ended
        state = json.loads(json.dumps(sampler.state_dict(used=len(sampler))))
        resumed = make()
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state and resumed.epoch == ended + 1
        assert list(epochs_of(resumed, 4, through_batches)) == whole[ended + 1 :]


def test_epoch_without_a_step_for_more_ranks_is_ended(client):
    """With drop_last, 7 of 23 positions are left after 4 steps of 4 ranks: too few for 8 ranks."""
    sampler = make_sampler(client, 23, 4, 0, drop_last=True, epoch=2)
    list(itertools.islice(sampler, 4))
    state = sampler.state_dict(used=4)
    for world, epoch in ((7, 2), (8, 3)):
        resumed = make_sampler(client, 23, world, 0, drop_last=True)
        resumed.load_state_dict(state)
        assert state["position"] == 16 and resumed.epoch == epoch
    assert make_sampler(client, 3, 4, 0, drop_last=True, epoch=2).epoch == 2  # always empty


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 400), st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), max_size=5),
       st.integers(1, 9))  # fmt: skip
def test_resume_with_other_world_sizes(daemon, n, runs, last):
    """A job is interrupted several times, and continues with another number of ranks each time. All runs together
    use every index once. Only the last run pads its end."""
    client = shufd.default_client()
    order = client.permute(n, 3, 1).tolist()
    state, seen = None, []
    for world, steps in [*runs, (last, None)]:
        samplers = [make_sampler(client, n, world, rank, epoch=1) for rank in range(world)]
        if state:
            for sampler in samplers:
                sampler.load_state_dict(state)
                sampler.set_epoch(1)  # of an ended epoch nothing is left
        columns = [list(itertools.islice(sampler, steps)) for sampler in samplers]
        seen += [i for row in zip(*columns) for i in row]
        states = [sampler.state_dict(used=len(column)) for sampler, column in zip(samplers, columns)]
        assert all(state == states[0] for state in states)
        state = states[0]
    assert seen[:n] == order and len(seen) < n + 9
    assert set(seen[n:]) <= set(order)


def test_states_of_other_data_are_refused(client):
    sampler = make_sampler(client, 100, 2, 0)
    state = sampler.state_dict()
    for name, value in (("n", 99), ("seed", 4), ("algorithm", "lcg"), ("shuffle", False), ("version", 9)):
        with pytest.raises(shufd.Invalid, match=f"state: {name} {value!r}: expected"):
            sampler.load_state_dict({**state, name: value})
    for change, text in (
        ({"position": -1}, "^state: position -1: expected 0 to 100$"),
        ({"position": 101}, "^state: position 101: expected 0 to 100$"),
        ({"epoch": -1}, "^state: epoch: -1: expected 0 to"),
        ({"n": 99}, "^state: n 99: expected 100, the length of the dataset of this sampler$"),
        ({"seed": 4}, "^state: seed 4: expected 3, as in this sampler; make the sampler with the seed of the state$"),
        ({"num_samples": 100, "replacement": False}, "^state: of a RandomSampler: expected one of a DistributedSampler"),
    ):
        with pytest.raises(shufd.Invalid, match=text):
            sampler.load_state_dict({**state, **change})
    for name in state:
        with pytest.raises(shufd.Invalid, match=f"^state: no field {name}: expected a whole dict of state_dict"):
            sampler.load_state_dict({k: v for k, v in state.items() if k != name})
    random = shufd.torch.RandomSampler(Numbers(100), seed=3, client=client)
    for whole, text in ((state, "of a DistributedSampler: expected one of a RandomSampler, as this sampler is$"),
                        ({**state, "num_samples": 100}, "no field replacement"),
                        ({}, "no field version")):  # fmt: skip
        with pytest.raises(shufd.Invalid, match=f"^state: {text}"):
            random.load_state_dict(whole)
    state["position"] = 50  # the state is a copy, so the sampler does not move
    assert sampler.state_dict()["position"] == 0


def test_remaining_counts_from_the_place_of_a_state(client):
    sampler = make_sampler(client, 1003, 4, 1)
    batches = shufd.torch.BatchSampler(sampler, 8, False)
    assert (sampler.remaining, len(sampler)) == (251, 251) and (batches.remaining, len(batches)) == (32, 32)
    batches.set_epoch(2)
    assert (batches.epoch, sampler.epoch) == (2, 2)
    batches.load_state_dict({**sampler.state_dict(), "position": 1003})
    assert (batches.epoch, sampler.epoch) == (3, 3)
    batches.set_epoch(0)
    list(itertools.islice(sampler, 100))
    assert sampler.remaining == 151
    state = sampler.state_dict(used=100)
    for world, drop_last, left in ((4, False, 151), (3, False, 201), (8, True, 75)):
        resumed = make_sampler(client, 1003, world, 0, drop_last)
        resumed.load_state_dict(state)
        batches = shufd.torch.BatchSampler(resumed, 8, drop_last)
        assert resumed.remaining == left and len(resumed) == len(make_sampler(client, 1003, world, 0, drop_last))
        assert batches.remaining == len(list(batches)) and resumed.remaining == 0
    replacing = shufd.torch.RandomSampler(Numbers(10), True, 25, seed=1, client=client)
    assert replacing.remaining == 25 and len(list(replacing)) == 25 and replacing.remaining == 0


def test_remaining_after_a_break(client):
    """set_epoch() selects the epoch again."""
    batches = shufd.torch.BatchSampler(make_sampler(client, 20, 1, 0, epoch=1), 5, False)
    next(iter(batches))
    assert batches.remaining == 3
    batches.set_epoch(1)
    assert batches.remaining == len(list(batches)) == 4 and batches.remaining == 0


@pytest.mark.parametrize("num_samples", [10, 1000, 2345])
@pytest.mark.parametrize("replacement", [False, True])
def test_random_sampler_resumes(client, replacement, num_samples):
    def make():
        return shufd.torch.RandomSampler(Numbers(1000), replacement, num_samples, seed=5, client=client)

    whole = list(make())
    assert len(whole) == num_samples and all(0 <= i < 1000 for i in whole)
    if not replacement:
        for begin in range(0, num_samples, 1000):
            part = whole[begin : begin + 1000]
            assert len(set(part)) == len(part)
    later = make()
    later.set_epoch(1)
    following = list(later)
    assert following != whole
    for step in (0, 1, num_samples // 2, num_samples - 1, num_samples):
        sampler = make()
        list(itertools.islice(sampler, step))
        state = sampler.state_dict(used=step)
        resumed = make()
        resumed.load_state_dict(state)
        assert step == num_samples or list(resumed) == whole[step:]
        assert list(resumed) == following


def test_state_while_another_iteration_runs(client):
    """Such as a look at a batch in the middle of an epoch. The place of the job is then unknown."""
    for sampler in (shufd.torch.RandomSampler(range(40), seed=3, client=client), make_sampler(client, 40, 1, 0)):
        sampler.set_epoch(0)
        outer = iter(sampler)
        head = [*itertools.islice(outer, 8)]
        list(sampler)
        with pytest.raises(shufd.Invalid, match="another iteration began before the last one has ended"):
            sampler.state_dict(used=12)
        del outer
        sampler.set_epoch(0)
        assert [*itertools.islice(sampler, 8)] == head and sampler.state_dict(used=8)["position"] == 8


def test_state_before_the_first_index_of_an_epoch(client):
    """The iterator has it. The sampler knows only the last iteration that began."""
    sampler = shufd.torch.RandomSampler(range(40), seed=3, client=client)
    list(sampler)
    state = iter(sampler).state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    with pytest.raises(shufd.Invalid, match="used: None: .* save the state_dict\\(\\) of its iterator for a loader of torchdata"):
        sampler.state_dict()
    assert sampler.state_dict(used=40)["position"] == 40


@pytest.mark.parametrize("epoch", [True, np.uint8(200), np.int32(2**30), torch.tensor(3), 2**64 - 1], ids=repr)
@pytest.mark.parametrize("kind", ["distributed", "random", "passes", "replacement", "batches"])
def test_epochs_are_plain_integers(client, tmp_path, kind, epoch):
    """Also of types whose objects change later, or wrap. A state loads without pickled classes."""
    if kind == "distributed":
        sampler = make_sampler(client, 20, 2, 1)
    else:
        sampler = shufd.torch.RandomSampler(
            Numbers(20), kind == "replacement", 50 if kind == "passes" else None, seed=np.int64(3), client=client
        )
    source = shufd.torch.BatchSampler(sampler, 7, False) if kind == "batches" else sampler
    source.set_epoch(epoch)
    expected = int(epoch)
    if isinstance(epoch, torch.Tensor):
        epoch += 1
    state = source.state_dict()
    assert type(source.epoch) is type(state["epoch"]) is int and source.epoch == state["epoch"] == expected
    head, iterator = [], iter(sampler)
    head = list(itertools.islice(iterator, 5))
    torch.save(sampler.state_dict(used=5), tmp_path / "state")
    loaded = torch.load(tmp_path / "state", **({} if torch.__version__ < "2" else {"weights_only": True}))
    assert loaded == json.loads(json.dumps(loaded))
    rest = list(iterator)
    source.load_state_dict(loaded)
    assert list(sampler) == rest and len(head + rest) == len(sampler)
    if kind in ("random", "batches"):
        assert head + rest == client.permute(20, 3, expected).tolist()


@pytest.mark.parametrize("of", [np.int64, np.uint8, bool, torch.tensor], ids=["int64", "uint8", "bool", "tensor"])
@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_windows_are_plain_integers(tmp_path, kind, of):
    """A state loads without pickled classes."""
    ranks = (of(1), of(0)) if kind == "DistributedSampler" else ()
    sampler, plain = (
        getattr(shufd.torch, kind)(range(20), *ranks, seed=7, chunk=number(1), window=number(1)) for number in (of, int)
    )
    torch.save(sampler.state_dict(), tmp_path / "state")
    state = torch.load(tmp_path / "state", **({} if torch.__version__ < "2" else {"weights_only": True}))
    assert json.dumps(state) == json.dumps(plain.state_dict()) == json.dumps(sampler.state_dict())


@pytest.mark.parametrize("sets", [False, True])
@pytest.mark.parametrize("position, left", [(0, 6), (18, 2), (22, 1), (24, 0), (25, 0), (26, 0)])
def test_a_rest_that_is_dropped_is_the_end(client, position, left, sets):
    """The job has saved after the last whole batch. The next epoch follows."""
    for sampler in (shufd.torch.RandomSampler(range(26), seed=3, client=client), make_sampler(client, 26, 2, 1)):
        size = 4 if isinstance(sampler, shufd.torch.RandomSampler) else 2  # indices of a rank
        batches = shufd.torch.BatchSampler(sampler, size, True)
        batches.load_state_dict({**batches.state_dict(), "epoch": 3, "position": position})
        assert (batches.epoch, batches.remaining) == (3 + (left == 0), left)
        if sets:
            batches.set_epoch(batches.epoch)
        share = client.permute(26, 3, 3 + (left == 0)).tolist()[position if left else 0 :]
        share = share if size == 4 else share[1::2]
        assert [*batches] == [share[i : i + size] for i in range(0, len(share) // size * size, size)]


def test_an_epoch_of_less_than_a_batch(client):
    batches = shufd.torch.BatchSampler(shufd.torch.RandomSampler(range(3), seed=3, client=client), 4, True)
    batches.load_state_dict({**batches.state_dict(), "epoch": 3})
    assert batches.epoch == 3 and [*batches] == []


class Batches(shufd.torch.BatchSampler):
    """Of a user, with another constructor."""

    def __init__(self, sampler, name="mine"):
        super().__init__(sampler, 4, False)
        self.name, self.epoch = name, 2


class Reduced(Batches):
    def __reduce__(self):
        return type(self), (self.sampler, self.name)


@pytest.mark.parametrize("kind", [int, np.int64, torch.tensor])
def test_a_state_before_a_dropped_rest(kind):
    sampler = shufd.torch.DistributedSampler(range(10), 1, 0, seed=7)
    batches = shufd.torch.BatchSampler(sampler, 4, True)
    batches.load_state_dict({**sampler.state_dict(), "position": kind(8)})
    expected = shufd.local.permute(10, 7, 1).tolist()
    assert list(batches) == [expected[:4], expected[4:8]]


@pytest.mark.parametrize("of", [Batches, Reduced])
def test_subclasses_of_batches_resume(client, of):
    """Also copies, and those of another process."""
    batches = of(shufd.torch.RandomSampler(range(24), seed=7))
    order = client.permute(24, 7, 2).tolist()
    assert isinstance(batches, of) and type(batches) is type(of(make_sampler(client, 9, 1, 0)))
    assert sum(itertools.islice(batches, 2), []) == order[:8] and batches.sampler.epoch == batches.epoch == 2
    state = json.loads(json.dumps(batches.state_dict(used=8)))
    batches = of(shufd.torch.RandomSampler(range(24), seed=7), name="other")
    batches.load_state_dict(state)
    for made in (copy.copy(batches), pickle.loads(pickle.dumps(batches, 0)), pickle.loads(pickle.dumps(batches)), batches):
        assert type(made) is type(batches) and made.name == "other"
        made.load_state_dict(state)
        assert made.remaining == 4 and sum(made, []) == order[8:]
    assert pickle.loads(pickle.dumps(type(batches))) is type(batches)


class Sorted(shufd.torch.BatchSampler):
    """Sorts groups of four batches."""

    def __iter__(self):
        batches = super().__iter__()
        while group := [*itertools.islice(batches, 4)]:
            yield from sorted(group)


class Placed(Sorted):
    """It resumes at the beginning of a group."""

    def state_dict(self, used=None):
        return super().state_dict(used=0 if used is None else used // 16 * 16)


def test_states_of_batches_that_draw_ahead_are_refused(client):
    batches = Sorted(shufd.torch.RandomSampler(range(40), seed=7), 4, False)
    assert batches.state_dict()["position"] == 0 and len([*itertools.islice(batches, 3)]) == 3
    with pytest.raises(shufd.Invalid, match="^sampler: Sorted: its own __iter__ may draw ahead or leave indices out"):
        batches.state_dict(used=12)
    batches = Placed(shufd.torch.RandomSampler(range(16), seed=7), 4, False)
    iterator = iter(batches)
    assert len(next(iterator)) == 4 and batches.state_dict(used=12)["position"] == 0
    assert len([*iterator]) == 3 and batches.state_dict(used=16)["position"] == 16


def test_copies_of_random_samplers(client):
    sampler = shufd.torch.RandomSampler(Numbers(100), seed=3, client=client)
    head = list(itertools.islice(sampler, 20))
    state = sampler.state_dict(used=20)
    for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert list(other) == client.permute(100, 3, 1).tolist()
        assert list(other) == client.permute(100, 3, 2).tolist()
    sampler.load_state_dict(state)
    for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert head + list(other) == client.permute(100, 3).tolist()
        assert list(other) == client.permute(100, 3, 1).tolist()
    sampler.load_state_dict({**state, "position": 100})
    assert list(copy.copy(sampler)) == client.permute(100, 3, 1).tolist() and sampler.epoch == 1


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_the_state_of_a_copy_is_where_it_begins(client, kind):
    sampler = getattr(shufd.torch, kind)(range(40), seed=3, client=client)
    for drawn in (4, 40):
        assert len([*itertools.islice(sampler, drawn)]) == drawn
        for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
            state = other.state_dict()
            resumed = getattr(shufd.torch, kind)(range(40), seed=3, client=client)
            resumed.load_state_dict(state)
            assert list(resumed) == list(other)
            with pytest.raises(shufd.Invalid, match="used: 4: expected 0 to 0"):
                copy.copy(sampler).state_dict(used=4)


def test_an_older_iterator_keeps_the_epoch_that_is_set(client):
    """It begins after set_epoch(), which selects the epoch of the next iterator."""
    sampler = make_sampler(client, 24, 1, 0, epoch=1)
    older = iter(sampler)
    sampler.set_epoch(2)
    assert next(older) == client.permute(24, 3, 1)[0]
    with pytest.raises(shufd.Invalid, match="an iteration after epoch 2, .* has gone on to epoch 1"):
        sampler.state_dict(used=1)
    assert [*sampler] == client.permute(24, 3, 2).tolist()


@pytest.mark.parametrize("of", [shufd.torch, torch.utils.data])
@pytest.mark.parametrize("position", [0, 8])
def test_older_batches_take_the_epoch_that_is_set(client, position, of):
    """Lightning calls set_epoch() after iter(), where a batch sampler of torch has not begun."""
    sampler = make_sampler(client, 24, 1, 0)
    batches, state = of.BatchSampler(sampler, 4, False), sampler.state_dict()
    for epoch in (1, 2):
        sampler.load_state_dict({**state, "epoch": 1, "position": position})
        older = iter(batches)
        sampler.set_epoch(epoch)
        assert sum(older, []) == client.permute(24, 3, epoch).tolist()[position if epoch == 1 else 0 :]
    sampler.set_epoch(3)
    older = iter(batches)
    sampler.set_epoch(4)
    assert sum(older, []) == client.permute(24, 3, 4).tolist()
    state = sampler.state_dict(used=24)
    assert (state["epoch"], state["position"]) == (4, 24)


@pytest.mark.parametrize("kind", ["distributed", "random"])
def test_windows(kind):
    """A windowed order has its own place in a state, and resumes with other ranks."""
    windows = {"chunk": 100, "window": 7}
    order = shufd.local.permute(5003, 7, 1, **windows).tolist()
    if kind == "random":
        sampler = shufd.torch.RandomSampler(range(5003), seed=7, **windows)
        sampler.set_epoch(1)
        assert list(sampler) == order
        with pytest.raises(shufd.Invalid, match="^window: 7: expected None with replacement"):
            shufd.torch.RandomSampler(range(5003), True, seed=7, **windows)
        return
    sampler = shufd.torch.DistributedSampler(range(5003), 4, 1, seed=7, **windows)
    sampler.set_epoch(1)
    assert list(itertools.islice(sampler, 300)) == order[1 : 1200 : 4]
    state = json.loads(json.dumps(sampler.state_dict(used=300)))
    rest = []
    for rank in range(3):
        resumed = shufd.torch.DistributedSampler(range(5003), 3, rank, seed=7, **windows)
        resumed.load_state_dict(state)
        rest.append(list(resumed))
    assert [i for step in zip(*rest, strict=True) for i in step][: 5003 - 1200] == order[1200:]
    uniform = shufd.torch.DistributedSampler(range(5003), 3, 0, seed=7)
    with pytest.raises(shufd.Invalid, match="^state: chunk 100: expected None, as in this sampler"):
        uniform.load_state_dict(state)
    with pytest.raises(shufd.Invalid, match="^chunk: 3, window: None: expected both or none"):
        shufd.torch.DistributedSampler(range(5003), 3, 0, seed=7, chunk=3)


def test_copied_sampler_begins_again(client):
    """A loaded place is copied. That of an iteration is not, because it counts drawn indices, not used ones."""
    sampler = make_sampler(client, 100, 2, 1)
    whole = list(sampler)
    list(itertools.islice(sampler, 20))
    state = sampler.state_dict(used=20)
    for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert list(other) == whole
    sampler.load_state_dict(state)
    for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert list(other) == whole[20:]


def test_wrong_states_are_refused(daemon):
    sampler = shufd.torch.DistributedSampler(Numbers(1001), 4, 1, seed=7)
    with pytest.raises(shufd.Invalid, match="used: 1: expected 0 to 0"):
        sampler.state_dict(used=1)
    assert sampler.state_dict(used=0)["position"] == 0
    drawn = list(itertools.islice(sampler, 5))
    assert len(drawn) == 5 and sampler.state_dict(used=5)["position"] == 20
    for used in (-1, 6, 10**6, 1.5, "x"):
        with pytest.raises(shufd.Invalid, match="used: "):
            sampler.state_dict(used=used)
    state = sampler.state_dict(used=5)
    for name, value in (("position", -1), ("position", 1002), ("position", 3.5), ("position", "x"),
                        ("position", None), ("epoch", -1), ("epoch", 2**64), ("epoch", 0.5)):  # fmt: skip
        with pytest.raises(shufd.Invalid, match="state: "):
            sampler.load_state_dict({**state, name: value})
    for wrong in (None, [], "state", 5):
        for loads in (sampler, shufd.torch.BatchSampler(sampler, 2, False)):
            with pytest.raises(shufd.Invalid, match=r"state: .*: expected a dict of state_dict\(\)"):
                loads.load_state_dict(wrong)
    sampler.load_state_dict({**state, "position": 1001})
    sampler.set_epoch(state["epoch"])
    assert list(sampler) == []


def test_a_place_that_an_iterator_loads_is_its_own(client):
    sampler = make_sampler(client, 24, 1, 0)
    state = sampler.state_dict()
    sampler.set_epoch(1)
    one, two = iter(sampler), iter(sampler)
    one.load_state_dict({**state, "epoch": 3, "position": 16})
    assert [*one] == client.permute(24, 3, 3).tolist()[16:] and [*two] == client.permute(24, 3, 1).tolist()


def test_another_epoch_than_the_loaded_one_is_no_warning(client):
    """A job may go on to the next epoch."""
    sampler = make_sampler(client, 40, 1, 0)
    sampler.load_state_dict({**sampler.state_dict(), "epoch": 3, "position": 10})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sampler.set_epoch(4)
    assert list(sampler) == client.permute(40, 3, 4).tolist()


def test_another_length_of_a_loaded_epoch_is_refused(client):
    data = list(range(10))
    sampler = shufd.torch.DistributedSampler(data, 2, 0, seed=7, client=client)
    list(itertools.islice(sampler, 2))
    state = sampler.state_dict(used=2)
    sampler = shufd.torch.DistributedSampler(data, 2, 0, seed=7, client=client)
    sampler.load_state_dict(state)
    data += [10, 11]
    with pytest.raises(shufd.Invalid, match="^dataset: length 12: expected 10, the length of the loaded state"):
        sampler.set_epoch(0)
    sampler.set_epoch(1)
    assert sampler.n == 12 and list(sampler) == client.permute(12, 7, 1).tolist()[::2]


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_records_that_come_after_an_ended_epoch(kind):
    """They are part of the next one, without set_epoch() too."""
    data = list(range(6))
    state = {**getattr(shufd.torch, kind)(data, seed=7).state_dict(), "position": 6}
    for batches in (False, True):
        del data[6:]
        sampler = getattr(shufd.torch, kind)(data, seed=7)
        sampler.load_state_dict(state)
        data += [6, 7, 8]
        assert sampler.epoch == 1
        drawn = sum(shufd.torch.BatchSampler(sampler, 2, False), []) if batches else list(sampler)
        assert drawn == shufd.local.permute(9, 7, 1).tolist() and len(sampler) == 9


@pytest.mark.parametrize("kind", ["DistributedSampler", "RandomSampler"])
def test_an_older_iterator_keeps_the_length_of_its_epoch(kind):
    data = list(range(6))
    sampler = getattr(shufd.torch, kind)(data, seed=7)
    sampler.load_state_dict({**sampler.state_dict(), "position": 2})
    iterator = iter(sampler)
    data += [6, 7, 8]
    sampler.set_epoch(1)
    assert list(iterator) == shufd.local.permute(6, 7).tolist()[2:]
    assert list(sampler) == shufd.local.permute(9, 7, 1).tolist()


@pytest.mark.parametrize("name, value", [
    ("seed", 7.0), ("seed", 2**64), ("seed", "7"), ("epoch", -1), ("position", 51), ("n", 49),
])  # fmt: skip
def test_a_refused_state_changes_nothing(name, value):
    state = {**shufd.torch.RandomSampler(range(50), seed=7).state_dict(), "epoch": 3, "position": 4}
    sampler = shufd.torch.RandomSampler(range(50))
    with pytest.raises(shufd.Invalid, match=name):
        sampler.load_state_dict({**state, name: value})
    assert (sampler.epoch, sampler.remaining, sampler.seed, len(list(sampler))) == (0, 50, None, 50)


def test_a_refused_epoch_changes_nothing():
    """A sampler without a seed draws another one for the next epoch."""
    data = list(range(50))
    sampler = shufd.torch.RandomSampler(data)
    sampler.load_state_dict({**shufd.torch.RandomSampler(data, seed=7).state_dict(), "position": 4})
    data.append(50)
    with pytest.raises(shufd.Invalid, match="^dataset: length 51: expected 50"):
        sampler.set_epoch(0)
    assert list(sampler) == shufd.local.permute(50, 7).tolist()[4:]
    assert len(list(sampler)) == 51 and sampler.seed != 7


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("batches", [False, True])
def test_iterators_are_not_copied(way, batches):
    """A copy would share its place with the iterator."""
    sampler = shufd.torch.RandomSampler(range(10), seed=7)
    iterator = iter(shufd.torch.BatchSampler(sampler, 2, False) if batches else sampler)
    next(iterator)
    with pytest.raises(TypeError, match="^cannot copy or pickle an iterator of a sampler"):
        way(iterator)


# ---- Random programs of one sampler --------------------------------------------------------------
# They have iterators, epochs, states and copies in any order. Each iterator hands out the indices from the place that the
# program has selected, and each state has the place of the program, or is refused.

N = 15
ORDERS = [shufd.local.permute(N, 7, epoch).tolist() for epoch in range(80)]


class Iterator:
    """An iterator of the program, and the place that was selected when it was made, or None."""

    def __init__(self, source, selected):
        self.indices, self.selected = iter(source), selected
        self.epoch, self.start, self.used, self.has_ended = None, None, 0, False


class Programs(RuleBasedStateMachine):
    """A place is an epoch, a position, and whether set_epoch() has selected it: then an ended epoch is empty."""

    @initialize(kind=st.sampled_from(["DistributedSampler", "RandomSampler"]), size=st.sampled_from([None, 1, 4]))
    def make(self, kind, size):
        self.kind, self.size = kind, size
        self.sampler = self.make_sampler()
        self.source = shufd.torch.BatchSampler(self.sampler, size, False) if size else self.sampler
        self.selected, self.last = None, None  # the place of the next iterator; the iterator that began last
        self.set = None  # the epoch of the last set_epoch(), if no load came later
        self.iterators, self.states = [], []

    def make_sampler(self):
        ranks = (1, 0) if self.kind == "DistributedSampler" else ()
        return getattr(shufd.torch, self.kind)(range(N), *ranks, seed=7)

    @rule()
    def iterate(self):
        self.iterators.append(Iterator(self.source, self.selected))

    @precondition(lambda self: self.iterators)
    @rule(data=st.data(), most=st.sampled_from([1, 2, 5, N, 2 * N]))
    def draw(self, data, most):
        one = data.draw(st.sampled_from(self.iterators))
        if one.start is None:
            self.begin(one)
        values = []
        for _ in range(most):
            value = next(one.indices, None)
            if value is None:
                one.has_ended = True
                break
            values += value if self.size else [value]
        if one.epoch is None:  # not selected: a whole epoch
            one.epoch = one.indices.state_dict()["epoch"]
        order = ORDERS[one.epoch][one.start :]
        one.used += len(values)
        assert values == order[one.used - len(values) : one.used] and one.has_ended <= (one.used == len(order))

    def place_of(self, one):
        """Iterators of batches follow a later set_epoch()."""
        is_kept = one.selected and not (self.size and self.set not in (None, one.selected[0]))
        return one.selected if is_kept else self.selected

    def begin(self, one):
        place = self.place_of(one)
        if self.selected and place[:2] == self.selected[:2]:
            place, self.selected = self.selected, None
        one.start, self.last = 0, one
        if place is not None:
            epoch, position, is_set = place
            goes_on = position == N and not is_set
            one.epoch, one.start = epoch + goes_on, 0 if goes_on else position

    @precondition(lambda self: len(self.iterators) > 2)
    @rule()
    def leave(self):
        self.iterators.pop(0)

    @rule(epoch=st.integers(0, 2) | st.none())
    def set_epoch(self, epoch):
        """None: that of the selected place."""
        if epoch is None:
            epoch = self.selected[0] if self.selected else 0
        self.source.set_epoch(epoch)
        position = self.selected[1] if self.selected and self.selected[0] == epoch else 0
        self.selected, self.set = (epoch, position, True), epoch

    @rule(how=st.sampled_from(["None", "0", "used", "used"]))
    def save(self, how):
        used = {"None": None, "0": 0, "used": self.last.used if self.last else 0}[how]
        try:
            state = self.source.state_dict(used=used)
        except shufd.Invalid:
            return
        place = state["epoch"], state["position"]
        if used:
            assert place == (self.last.epoch, self.last.start + used)
        elif self.selected:
            assert place == self.selected[:2]
        elif self.last is None:
            assert place == (0, 0)
        else:  # of an epoch that has begun, and has not ended
            assert place == (self.last.epoch, self.last.start) and (self.last.start == N or not self.last.has_ended)
        self.states.append(state)

    @precondition(lambda self: self.iterators)
    @rule(data=st.data())
    def save_iterator(self, data):
        one = data.draw(st.sampled_from(self.iterators))
        state = one.indices.state_dict()
        if one.start is not None:
            assert (state["epoch"], state["position"]) == (one.epoch, one.start + one.used)
        elif place := self.place_of(one):
            assert (state["epoch"], state["position"]) == place[:2]
        self.states.append(state)

    @precondition(lambda self: self.states)
    @rule(data=st.data())
    def load(self, data):
        state = data.draw(st.sampled_from(self.states))
        self.source.load_state_dict(state)
        self.selected, self.set = (state["epoch"], state["position"], False), None
        for one in [one for one in self.iterators if one.start is not None and not one.has_ended]:
            with pytest.raises(shufd.Invalid, match="load_state_dict.. came after this iteration had begun"):
                list(one.indices)
        self.iterators = [one for one in self.iterators if one.start is None]
        for one in self.iterators:
            one.selected = None

    @rule(way=st.sampled_from([copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]))
    def copy(self, way):
        copied, resumed = way(self.sampler), self.make_sampler()
        resumed.load_state_dict(copied.state_dict())
        if self.selected and self.selected[1] == N and self.selected[2]:
            resumed.set_epoch(self.selected[0])
        assert list(copied) == list(resumed)


Programs.TestCase.settings = settings(
    max_examples=int(os.environ.get("SHUFD_TEST_EXAMPLES", 200)), stateful_step_count=40, deadline=None, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
TestPrograms = Programs.TestCase
