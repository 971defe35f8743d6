# SPDX-License-Identifier: MIT
"""Random programs of one sampler: iterators, epochs, states and copies in any order. Each iterator hands out the indices
from the place that the program has selected, and each state has the place of the program, or is refused."""

import copy
import os
import pickle

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

pytest.importorskip("torch")

import shufd
import shufd.torch

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

    def begin(self, one):
        place = one.selected or self.selected
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
        self.selected = epoch, position, True

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
        elif one.selected or self.selected:
            assert (state["epoch"], state["position"]) == (one.selected or self.selected)[:2]
        self.states.append(state)

    @precondition(lambda self: self.states)
    @rule(data=st.data())
    def load(self, data):
        state = data.draw(st.sampled_from(self.states))
        self.source.load_state_dict(state)
        self.selected = state["epoch"], state["position"], False
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
