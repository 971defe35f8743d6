# SPDX-License-Identifier: MIT
"""A real shufd for the tests, on a socket of its own."""

import gc
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import shufd
from shufd import _serve

os.environ.pop("SHUFD_SOCKET", None)
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore SIGINT

LAUNCHERS = {  # the variables of a rank and of the number of ranks
    "torchrun": ("RANK", "WORLD_SIZE"),
    "Slurm": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
}


def pytest_configure(config):
    config.addinivalue_line("markers", "long: runs only if $SHUF_TEST_FULL is set, as in the part `launched`")


def pytest_collection_modifyitems(items):
    """Long tests add further parameters to a test that also runs without $SHUF_TEST_FULL."""
    if "SHUF_TEST_FULL" not in os.environ:
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="SHUF_TEST_FULL is not set"))


def skip_without(*packages):
    """Skips a file whose tests need packages that are not installed. Import them after this call."""
    missing = [name for name in packages if not importlib.util.find_spec(name)]
    if missing:
        pytest.skip(f"without {' '.join(missing)}", allow_module_level=True)


def skip_fork_under_asan():
    """Skips a test whose forked processes have parents with threads, such as those of multiprocessing.Queue, in a build
    with AddressSanitizer. GCC's does not hold the locks of its allocator during fork(), so a child may inherit one that a
    thread of its parent holds, and wait for ever."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("under AddressSanitizer the child of a process with threads can wait for ever")


class Daemon:
    """A shufd that can be killed and started again on the same socket."""

    def __init__(self, directory, *options, **environment):
        self.socket = str(directory / "shufd.sock")
        self.options = options
        self.environment = environment
        self.log = directory / "log"
        self.process = None

    def start(self):
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        self.process = subprocess.Popen(
            [_serve.program_of("shufd"), "--socket", self.socket, *(self.options or ("--backend", "cpu"))],
            stderr=self.log.open("ab"),
            env={**environment, **self.environment},
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                shufd.connect(self.socket).close()
                return self
            except shufd.NoDaemon:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(60) == 0, self.log.read_text()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """The daemon that the tests of one file share. The tests of other files use other daemons."""
    daemon = Daemon(tmp_path_factory.mktemp("shufd")).start()
    os.environ["SHUFD_SOCKET"] = daemon.socket
    yield daemon
    shufd.default_client().close()
    os.environ.pop("SHUFD_SOCKET", None)
    daemon.stop()


@pytest.fixture
def client(daemon):
    with shufd.connect(daemon.socket) as client:
        yield client


@pytest.fixture
def killable_daemon(tmp_path):
    """A daemon for one test, which may kill the daemon."""
    daemon = Daemon(tmp_path).start()
    yield daemon
    daemon.stop()


def lease_count(client):
    """The number of leases of all clients, after a collection of garbage."""
    gc.collect()
    if shufd._default is not None and not shufd._default._closed:
        shufd._default.status()  # a call of the default client releases its last small lease
    return client.status()["leases"]


def await_value(read, expected, seconds=30):
    """Repeats read() until it returns `expected`, but not for long. Returns the last value."""
    deadline = time.monotonic() + seconds
    while (value := read()) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


def descriptor_count():
    return len(os.listdir("/proc/self/fd"))


def mapping_count():
    """The number of mappings of the daemon's memory in this process."""
    return sum("memfd:" in line for line in pathlib.Path("/proc/self/maps").open())


def private_bytes():
    """The bytes of heap and stack of this process. A page of a result counts as private in Linux while the daemon
    does not map it, so private pages do not tell the memory of this process."""
    lines = pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))


def run_threads(work, count):
    """The results of work(0) .. work(count - 1), each in a thread of its own. Raises the error that came first."""
    results, errors = [None] * count, []

    def run(number):
        try:
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:  # the others may have failed at a barrier that the first one has left
        raise next((error for error in errors if not isinstance(error, threading.BrokenBarrierError)), errors[0])
    return results


def run_in_child(function):
    """Runs function() in a forked child, and expects that it returns. os._exit() skips the clean-up of pytest."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.__stderr__, flush=True)
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert status == 0
