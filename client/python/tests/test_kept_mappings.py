# SPDX-License-Identifier: MIT
"""Blocks that stay mapped between calls of global_shuffle(), with connections that record the limits."""

import gc
import threading
import time

import pytest
import shufd
from shufd import _kept_mappings

BYTES = 8 << 20


class Connection:
    def __init__(self):
        self.limits = []
        self.set = threading.Event()

    def call(self, function, bytes):
        self.limits.append(bytes)
        self.set.set()


@pytest.fixture(autouse=True)
def short_time(monkeypatch):
    monkeypatch.setattr(_kept_mappings, "SECONDS", 0.3)


def keep_all(connection, blocks, bytes=BYTES):
    for block in blocks:
        _kept_mappings.keep(connection, block, bytes)


def wait_for_end(connection):
    end = time.monotonic() + 20
    while connection.limits[-1:] != [0] and time.monotonic() < end:
        time.sleep(0.01)
    assert connection.limits[-1] == 0


def test_blocks_stay_mapped_only_if_they_come_again():
    connection = Connection()
    keep_all(connection, range(20))
    assert connection.limits == []
    keep_all(connection, [18, 19, 18])
    assert connection.limits == [2 * BYTES]
    wait_for_end(connection)
    assert connection.limits == [2 * BYTES, 0]


def test_the_limit_grows_with_the_blocks():
    connection = Connection()
    keep_all(connection, [1, 1, 1])
    keep_all(connection, [2, 2], 5 * BYTES)
    keep_all(connection, [1, 2])
    assert connection.limits == [2 * BYTES, 10 * BYTES]
    wait_for_end(connection)
    keep_all(connection, [1])
    assert connection.limits == [2 * BYTES, 10 * BYTES, 0, 2 * BYTES]
    wait_for_end(connection)


def test_each_call_extends_the_time(monkeypatch):
    monkeypatch.setattr(_kept_mappings, "SECONDS", 3)
    connection = Connection()
    end = time.monotonic() + 5
    while time.monotonic() < end:
        keep_all(connection, [1])
        time.sleep(0.01)
    assert connection.limits == [2 * BYTES]
    wait_for_end(connection)


def test_the_time_keeps_no_connection():
    connection = Connection()
    keep_all(connection, [1, 1])
    limits = connection.limits
    del connection
    gc.collect()
    assert len(_kept_mappings._kept) == 0
    time.sleep(0.5)
    assert limits == [2 * BYTES]


def test_a_daemon_that_has_ended_is_no_error(capfd):
    connection = Connection()
    keep_all(connection, [1, 1])
    connection.set.clear()

    def fail(function, bytes):
        connection.set.set()
        raise shufd.NoDaemon("gone")

    connection.call = fail
    assert connection.set.wait(20)
    time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_the_limit_is_set_again_after_an_error_at_its_end():
    connection = Connection()
    keep_all(connection, [1, 1])
    call, connection.call = connection.call, None
    connection.set.clear()

    def fail(function, bytes):
        connection.limits.append(bytes)
        connection.set.set()
        raise shufd.Timeout("the daemon is busy")  # libshuf has set the limit all the same

    connection.call = fail
    assert connection.set.wait(20)
    connection.call = call
    keep_all(connection, [1])
    assert connection.limits == [2 * BYTES, 0, 2 * BYTES]
    wait_for_end(connection)


def test_small_blocks_leave_the_limit_alone():
    """libshuf keeps them mapped by itself."""
    connection = Connection()
    keep_all(connection, [1, 1, 1], 4 << 20)
    assert connection.limits == []


def test_nothing_stays_mapped_if_no_thread_can_end_it(monkeypatch):
    def fail(self):
        raise RuntimeError("can't start new thread")

    connection = Connection()
    monkeypatch.setattr(threading.Timer, "start", fail)
    keep_all(connection, [1, 1, 1])
    assert connection.limits == []
    monkeypatch.undo()


def test_a_real_connection_takes_the_limit(client):
    connection = client._connection()
    keep_all(connection, [1, 1])
    assert _kept_mappings._kept[connection].limit == 2 * BYTES
    _kept_mappings._kept[connection]._set_limit(0)
    client.permute(10, seed=1)
