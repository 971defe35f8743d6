# SPDX-License-Identifier: MIT
"""Fault tests of daemons with a configuration file, named keys, metrics, reloads, and passed sockets."""
import grp
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from programs import LIMIT_S, SYSEXITS, Bad, Manager, check_end

KEY = "000102030405060708090a0b0c0d0e0f\n"  # as in client_copies.c
# A user and a supplementary group that may use the key alpha, if the tests run as root.
USER, GROUP = 61234, 61235  # not 65534, which stands for unmapped users where /proc cannot be read
OTHER_USER = {"user": USER, "group": USER, "extra_groups": [GROUP]} if os.geteuid() == 0 else {}
NAMESPACE = ["unshare", "--map-root-user", "--mount", "sh", "-c"]  # with mounts of its own
PATIENCE_S = 30  # for actions of the daemon that nobody requests


def write_files(run, port):
    run.folder.chmod(0o755)  # for OTHER_USER
    keys = run.folder / "keys"
    keys.mkdir()
    for name in ("alpha", "beta"):
        (keys / name).write_text(KEY)
        (keys / name).chmod(0o600)
    (keys / "alpha.group").write_text(f"{GROUP}\n")
    (keys / "beta.group").write_text(f"{grp.getgrgid(os.getgid()).gr_name}\n")
    write_config(run, port, "10min")
    (run.folder / "shufd.prom.tmp").write_text("of a daemon that was killed")


def write_config(run, port, cache_time):
    lines = {
        "backend": "cpu", "threads": "1", "host_memory": "64Mi", "host_warm": "2Mi", "drain_timeout": "2s",
        "socket": run.socket, "socket_mode": "0666", "socket_group": grp.getgrgid(os.getgid()).gr_name,
        "keys": run.folder / "keys", "cache_time": cache_time,
        "metrics": f"127.0.0.1:{port}", "metrics_file": run.folder / "shufd.prom", "metrics_interval": "100ms",
    }
    (run.folder / "shufd.conf").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))


def leave_socket(path):
    """Leaves the file of a socket that nobody listens on. Returns its time."""
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    return os.stat(path).st_ctime_ns


def waits_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return holds


def lives(run):
    return run.daemon.poll() is None


# ---- duties of the daemon, also after the fault --------------------------------------


def try_to_read_metrics(port):
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b""
            while chunk := connection.recv(65536):
                text += chunk
    except OSError:
        return False
    return text.startswith(b"HTTP/1.1 200 ") and b"shufd_build_info" in text


def must(run, does, what, excuse):
    """`does` must succeed, or succeed later if the fault comes before, or the log must have the excuse."""
    had_fault = bool(run.failed())
    if does() or not lives(run) or excuse in run.daemon_log():
        return
    if had_fault or not run.failed() or not waits_for(does):
        if lives(run):
            raise Bad(f"shufd does not {what}: {run.daemon_log()[-600:]}")


def call_as(run, user, command):
    """Calls a program as the user, or as this one if that user cannot reach the program."""
    try:
        return run.call(command, False, **user)
    except PermissionError:
        return run.call(command, False)


def call_client(run):
    for extra, user in ([], {}), (["key"], OTHER_USER):
        had_fault = bool(run.failed())
        done = call_as(run, user, [run.build / "tests/faults/fault_client", run.socket, *extra])
        errors = done.stderr.decode(errors="replace")
        check_end(run, "client", done.returncode, errors, {2})
        if "DENIED" in errors:
            raise Bad(f"the client may not use its key: {errors}")
        if done.returncode != 0 and had_fault and not waits_for(lambda: not lives(run)):
            raise Bad(f"the client fails after the fault: {errors}")


def reload(run, port):
    before = run.daemon_log().count("reload:")
    write_config(run, port, "5min")
    run.daemon.send_signal(signal.SIGHUP)
    waits_for(lambda: not lives(run) or run.daemon_log().count("reload:") > before)


def use(run, port):
    """A client, the metrics, a reload, and a client again."""
    file = run.folder / "shufd.prom"
    call_client(run)
    must(run, lambda: try_to_read_metrics(port), "serve metrics", "serving without HTTP")
    must(run, lambda: waits_for(file.exists), "write metrics", "metrics_file")
    if lives(run):
        reload(run, port)
        call_client(run)
        must(run, lambda: try_to_read_metrics(port), "serve metrics after a reload", "serving without HTTP")


def serve(run, port, started=lambda: None, **start):
    try:
        run.start_daemon(True, ["--config", run.folder / "shufd.conf"], **start)
        started()
        if lives(run):
            use(run, port)
        status = run.stop_daemon()
    finally:
        run.kill_daemon()
    check_end(run, "shufd", status, run.daemon_log(), SYSEXITS)


# ---- scenarios -----------------------------------------------------------------------


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configured(run):
    """A daemon with every kind of file, in the place of one that was killed. It executes itself again, because
    OMP_WAIT_POLICY is not set."""
    port = free_port()
    write_files(run, port)
    run.stale = leave_socket(run.socket)
    environment = run.environment
    run.environment = lambda is_target: {name: value for name, value in environment(is_target).items()
                                         if not is_target or name != "OMP_WAIT_POLICY"}
    serve(run, port)


PASS_SOCKET = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


def passed_socket(run):
    """A daemon of a service manager, which passes the socket as descriptor 3, and takes notifications. It closes its own
    descriptor then: clients would wait for the next daemon, and this service manager starts none."""
    port = free_port()
    write_files(run, port)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(run.socket)
        os.chmod(run.socket, 0o666)
        listener.listen()
        run.manager = Manager(str(run.folder / "notify"))
        threading.Thread(target=run.manager.hears, args=(b"never", LIMIT_S), daemon=True).start()
        run.extra = {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "shufd"}
        serve(run, port, listener.close,
              prefix=[sys.executable, "-c", PASS_SOCKET, str(listener.fileno())], pass_fds=[listener.fileno()])


def first_start(run):
    """A daemon with the default socket, which makes the directory /run/shufd. For it, /run is the folder."""
    run.socket = str(run.folder / "shufd/shufd.sock")
    shell = 'mount --bind "$0" /run && exec "$@"'
    try:
        run.start_daemon(True, run.options()[:-2], prefix=[*NAMESPACE, shell, str(run.folder)])
        status = run.stop_daemon()
    finally:
        run.kill_daemon()
    check_end(run, "shufd", status, run.daemon_log(), SYSEXITS)


def only_prints(run, option):
    """A daemon that does not serve."""
    write_files(run, free_port())
    done = run.call([run.build / "daemon/shufd", "--config", run.folder / "shufd.conf", option], True)
    check_end(run, "shufd", done.returncode, done.stderr.decode(errors="replace"), SYSEXITS)
    printed = [line.split(" ")[0] for line in done.stdout.decode(errors="replace").splitlines()]
    if done.returncode == 0 and printed != expected_print.setdefault(option, printed):
        raise Bad(f"shufd succeeded, but printed {printed}")


expected_print = {}
SCENARIOS = {
    "daemon-configured": configured,
    "daemon-passed-socket": passed_socket,
    "daemon-check": lambda run: only_prints(run, "--check"),
    "daemon-print-config": lambda run: only_prints(run, "--print-config"),
}
if subprocess.run([*NAMESPACE, "mount --bind /tmp /run"], capture_output=True).returncode == 0:
    SCENARIOS["daemon-first-start"] = first_start
