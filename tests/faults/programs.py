# SPDX-License-Identifier: MIT
"""The programs of one run of a fault test, and the check of their ends."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

LIMIT_S = 30  # of one run
WATCHDOG_S = 4
LEAK = 23
SANITIZER = f"exitcode={LEAK}:verify_asan_link_order=0:allocator_may_return_null=1:detect_leaks=1"
SYSEXITS = set(range(64, 79))
# Libraries end the process if these calls fail inside them. libgomp and libmicrohttpd print a line, libuv does not.
LIBRARIES = re.compile(r"(epoll_ctl|realloc|pthread_create|pipe2|malloc) in libuv|epoll_ctl in libmicrohttpd|"
                       r"(calloc|mmap) in (ld-linux|libc)")
ABORTS = ("libgomp:",)


class Bad(Exception):
    pass


class Library(Exception):
    """A library has ended the process."""


def sanitized(build):
    cache = build / "CMakeCache.txt"
    return cache.exists() and "SHUF_SANITIZE:STRING=address" in cache.read_text()


class Manager:
    """The service manager's side of sd_notify(3). It kills a daemon whose heartbeats end."""

    def __init__(self, path):
        self.inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.inbox.bind(path)
        self.environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": str(WATCHDOG_S * 1_000_000)}
        self.beats = 0
        self.is_stopping = False  # the watchdog is off
        self.has_killed = False

    def hears(self, word, seconds):
        """Whether a message with the word comes within the time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.inbox.settimeout(left)
            try:
                if word in self.inbox.recv(4096):
                    return True
            except TimeoutError:
                break
        return False

    def watch(self, daemon):
        """Counts the heartbeats of the daemon, and kills it when they end before it is stopped."""
        while self.hears(b"WATCHDOG=1", WATCHDOG_S):
            self.beats += 1
        if not self.is_stopping and daemon.poll() is None:
            self.has_killed = True
            daemon.kill()


class Run:
    """The programs of one run, in a folder of their own."""

    def __init__(self, build, folder, program, at, kind=None):
        self.build, self.folder, self.program, self.at = build, pathlib.Path(folder), program, at
        self.kind = kind  # of a fault of CUDA
        self.manager = None
        self.socket = str(self.folder / "shufd.sock")
        self.stale = None  # the time of a socket that was there before; a new one may have its inode
        self.report = self.folder / "report"
        self.extra = {}  # variables of the environment

    def environment(self, is_target):
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "LC_ALL": "C"}
        environment.pop("SHUFD_SOCKET", None)
        if sanitized(self.build):
            environment["ASAN_OPTIONS"] = SANITIZER
        if is_target:
            shim = "libcuda_fault_shim.so" if self.kind else "libfault_shim.so"
            environment |= {
                "LD_PRELOAD": str(self.build / "tests/faults" / shim),
                "SHUF_FAULT_PROGRAM": self.program,
                "SHUF_FAULT_KIND": self.kind or "",
                "SHUF_FAULT_AT": str(self.at),
                "SHUF_FAULT_REPORT": str(self.report),
            }
        return environment | self.extra

    def options(self):
        """The options of a daemon without a configuration file."""
        backend = ["--backend", "cuda"] if self.kind else ["--backend", "cpu", "--threads", "1"]
        return ["--no-config", *backend, "--drain-timeout", "2s", "--host-memory", "64Mi", "--socket", self.socket]

    def start_daemon(self, is_target=False, options=None, prefix=(), **arguments):
        """Starts shufd, by the command `prefix`, and waits until it serves or ends."""
        self.log = open(self.folder / "shufd.log", "w+")
        command = [*prefix, self.build / "daemon/shufd", *(self.options() if options is None else options)]
        environment = self.environment(is_target) | (self.manager.environment if self.manager else {})
        self.daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                       env=environment, **arguments)
        end = time.monotonic() + LIMIT_S
        while self.daemon.poll() is None and not self.answers() and time.monotonic() < end:
            time.sleep(0.01)
        if time.monotonic() >= end and not self.manager:
            raise Bad("shufd neither serves nor ends")

    def failed(self):
        return self.report.read_text() if self.report.exists() else ""

    def answers(self):
        """Whether the daemon is ready. Before it logs "listening", it may not handle signals yet. But the
        fault may be in the log itself, so an old socket counts too."""
        listens = "listening" in self.daemon_log()
        if listens or self.kind:
            return listens
        try:
            status = os.stat(self.socket)
            return status.st_ctime_ns != self.stale and time.time() - status.st_ctime > 2
        except OSError:
            return False

    def daemon_log(self):
        return (self.folder / "shufd.log").read_text(errors="replace")

    def stop_daemon(self):
        if self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGTERM)
        try:
            return self.daemon.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Bad("shufd does not end after SIGTERM") from None
        finally:
            self.log.close()

    def kill_daemon(self):
        if self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()

    def call(self, command, is_target, **arguments):
        try:
            return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S,
                                  cwd=self.folder, env=self.environment(is_target), **arguments)
        except subprocess.TimeoutExpired:
            raise Bad(f"{command[0].name} hangs") from None


def check_end(run, name, status, text, expected):
    """Checks how a program ended. `expected`: the exit statuses that a fault may cause."""
    if run.at == 0 and status != 0:
        raise Bad(f"{name} ended with {status}: {text[-600:]}")
    if status == -signal.SIGABRT and "Assertion" not in text and LIBRARIES.match(run.failed()):
        raise Library
    if status < 0:
        raise Bad(f"{name} ended by signal {-status}: {text[-600:]}")
    if status == LEAK:
        raise Bad(f"{name} leaks: {text[-3000:]}")
    if status != 0 and not text.strip():
        raise Bad(f"{name} ended with {status} without a message")
    if status != 0 and status not in expected and not any(word in text for word in ABORTS):
        raise Bad(f"{name} ended with {status}, expected 0 or one of {sorted(expected)}: {text[-600:]}")
