# SPDX-License-Identifier: MIT
"""Threads that wait for their next work."""

import os
import threading

import pytest

from conftest import await_value
from shufd import _wait


@pytest.fixture
def seats(monkeypatch):
    """The threads that wait. They end after 3 s."""
    monkeypatch.setattr(_wait, "IDLE_S", 3)
    await_value(lambda: len(_wait._seats), 0)
    yield _wait._seats
    await_value(lambda: len(_wait._seats), 1, 1)  # that of the last work
    await_value(lambda: len(_wait._seats), 0)


def run(count):
    """The threads of so many works at the same time."""
    threads, all_run = [], threading.Barrier(count + 1)

    def work():
        threads.append(threading.get_ident())
        all_run.wait(30)

    for _ in range(count):
        _wait.start_in_idle_thread(work)
    all_run.wait(30)
    return set(threads)


def test_a_thread_that_waits_does_the_next_work(seats):
    first = run(3)
    assert len(first) == 3
    assert await_value(lambda: len(seats), 3) == 3
    assert run(3) == first
    assert await_value(lambda: len(seats), 3) == 3
    assert len(run(4) - first) == 1


def test_threads_without_work_end(seats):
    before = len(os.listdir("/proc/self/task"))
    run(2)
    assert await_value(lambda: len(seats), 0) == 0
    # A thread of an earlier test may still have been there before.
    assert await_value(lambda: len(os.listdir("/proc/self/task")) <= before, True)
    assert len(run(1)) == 1


def test_a_thread_that_is_taken_late_waits_longer(seats):
    run(1)
    await_value(lambda: len(seats), 1)
    seat = seats.pop()
    done = threading.Event()
    assert not done.wait(_wait.IDLE_S + 1)
    seat.work.append(done.set)
    seat.lock.release()
    assert done.wait(30)


def test_a_child_has_no_threads(seats):
    run(1)
    await_value(lambda: len(seats), 1)
    child = os.fork()
    if child == 0:
        done = threading.Event()
        _wait.start_in_idle_thread(done.set)
        os._exit(0 if done.wait(30) else 1)
    assert os.waitpid(child, 0)[1] == 0
