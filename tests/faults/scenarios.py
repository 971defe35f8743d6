# SPDX-License-Identifier: MIT
"""The scenarios of the fault tests: what runs, and in which of its programs a call fails."""
import threading
import time

import configured
import verbs
from programs import LIMIT_S, SYSEXITS, WATCHDOG_S, Bad, Manager, check_end


def call_client(run, is_target):
    command = [run.build / "tests/faults/fault_client", run.socket]
    done = run.call(command + ["cuda"] if run.kind else command, is_target)
    check_end(run, "client", done.returncode, done.stderr.decode(errors="replace"), {2})


def daemon(run):
    """The daemon's calls, while a client makes every kind of request."""
    run.start_daemon(True)
    try:
        call_client(run, False)
        status = run.stop_daemon()
    finally:
        run.kill_daemon()
    check_end(run, "shufd", status, run.daemon_log(), SYSEXITS)


def client(run):
    """The calls of a program of libshuf."""
    run.start_daemon()
    try:
        call_client(run, True)
        check_end(run, "shufd", run.stop_daemon(), run.daemon_log(), set())
    finally:
        run.kill_daemon()


def client_without_path(run):
    """As client(), but the program searches for the socket."""
    run.socket = str(run.folder / "GPU-1.sock")
    run.start_daemon()
    run.socket, run.extra = "", {"SHUFD_RUNTIME_DIR": str(run.folder)}
    try:
        call_client(run, True)
        check_end(run, "shufd", run.stop_daemon(), run.daemon_log(), set())
    finally:
        run.kill_daemon()


def reports_start(run):
    """Whether the daemon reports its start, which may take long on a busy machine. It need not if it hangs before."""
    end = time.monotonic() + LIMIT_S
    while not run.manager.hears(b"READY=1", 0.2):
        if run.failed() and run.at:
            return run.manager.hears(b"READY=1", 1)
        if time.monotonic() > end:
            raise Bad("shufd does not report its start; expected a build with SHUF_SYSTEMD")
    return True


def hanging_daemon(run):
    """A call of the daemon does not return. Then it must not report its start, or its heartbeats must stop, or
    it must end without the call."""
    run.manager = Manager(str(run.folder / "notify"))
    run.start_daemon(True)
    try:
        if not reports_start(run):
            return  # the service manager's start timeout kills it
        watch = threading.Thread(target=run.manager.watch, args=(run.daemon,), daemon=True)
        watch.start()
        call_client(run, False)
        if run.failed():
            watch.join(4 * WATCHDOG_S)
            if watch.is_alive() and run.daemon.poll() is None:
                raise Bad(f"shufd hangs, and its heartbeats continue ({run.manager.beats})")
        run.manager.is_stopping = True
        status = run.stop_daemon()
        if run.manager.has_killed and not run.failed():
            raise Bad("the heartbeats of shufd end without a fault")
        if not run.manager.has_killed:
            check_end(run, "shufd", status, run.daemon_log(), SYSEXITS)
    finally:
        run.kill_daemon()


# The program that the fault is in, the function, and the kind of a fault of CUDA.
SCENARIOS = {
    "daemon": ("shufd", daemon, None),
    "client": ("fault_client", client, None),
    "client-without-path": ("fault_client", client_without_path, None),
}
for name, function in configured.SCENARIOS.items():
    SCENARIOS[name] = ("shufd", function, None)
for name in verbs.VERBS:
    SCENARIOS[f"shufctl-{name}"] = ("shufctl", lambda run, verb=name: verbs.shufctl(run, verb), None)
CUDA_SCENARIOS = {"cuda-hang": ("shufd", hanging_daemon, "hang")}
for kind in ("fail", "memory", "lost", "late"):
    CUDA_SCENARIOS[f"cuda-{kind}"] = ("shufd", daemon, kind)
    CUDA_SCENARIOS[f"cuda-client-{kind}"] = ("fault_client", client, kind)
