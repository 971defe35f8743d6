# SPDX-License-Identifier: MIT
"""Calls of several threads: a call lets other threads run, and threads that share a client get right values, also
without the GIL."""

import sys
import sysconfig
import threading
import time

import numpy as np
import pytest

import shufd
from conftest import run_threads

N = 10_000
CALLS = {
    "permute": lambda client: client.permute(N, seed=7),
    "index": lambda client: client.index(np.arange(N), N, seed=7),
    "normal": lambda client: client.normal(size=N, seed=7),
    "shuffle": lambda client: client.shuffle(np.arange(N), seed=7),
    "local.permute": lambda client: shufd.local.permute(N, seed=7, threads=1),
    "local.index": lambda client: shufd.local.index(np.arange(N), N, seed=7),
    "local.normal": lambda client: shufd.local.normal(size=N, seed=7, threads=1),
    "local.shuffle": lambda client: shufd.local.shuffle(np.arange(N), seed=7, threads=1),
}


def test_without_the_gil():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has the GIL")
    assert not sys._is_gil_enabled()  # the import of the extension module could enable it


def call_until_other_runs(call):
    """Repeats the call until another thread has run. That thread gets the GIL only if the call releases it."""
    begin, has_run = threading.Lock(), []
    begin.acquire()
    other = threading.Thread(target=lambda: (begin.acquire(), has_run.append(True)))
    other.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    deadline = time.monotonic() + 60
    try:
        begin.release()
        while not has_run and time.monotonic() < deadline:
            call()
    finally:
        sys.setswitchinterval(interval)
    other.join()
    return time.monotonic() < deadline


@pytest.mark.parametrize("name", CALLS)
def test_call_releases_the_gil(client, name):
    # Not in the main thread, which waits for a long call of another thread.
    assert run_threads(lambda _: call_until_other_runs(lambda: CALLS[name](client)), 1) == [True]


def test_shared_client(client):
    expected = {name: call(client).copy() for name, call in CALLS.items()}
    ready = threading.Barrier(8)

    def work(number):
        ready.wait()
        for i in range(20):
            name = list(CALLS)[(number + i) % len(CALLS)]
            assert (CALLS[name](client) == expected[name]).all(), name

    run_threads(work, 8)


def test_first_calls_of_the_module(daemon):
    """The module's client is made by the first call, here of several threads at a time."""
    shufd.default_client().close()
    ready = threading.Barrier(8)

    def work(_):
        ready.wait()
        return shufd.permute(N, seed=7)

    first, *others = run_threads(work, 8)
    assert all((first == other).all() for other in others)
