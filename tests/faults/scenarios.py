# SPDX-License-Identifier: MIT
"""The scenarios of the fault tests: what runs, and in which of its programs a call fails."""
import collections
import grp
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from programs import LIMIT_S, SYSEXITS, WATCHDOG_S, Bad, Manager, check_end

# ---- A daemon and a client of it -----------------------------------------------


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


# ---- Daemons with a configuration file, keys, metrics, reloads, passed sockets -

KEY = "000102030405060708090a0b0c0d0e0f\n"  # as in client.c
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


def call_client_as_each_user(run):
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
    call_client_as_each_user(run)
    must(run, lambda: try_to_read_metrics(port), "serve metrics", "serving without HTTP")
    must(run, lambda: waits_for(file.exists), "write metrics", "metrics_file")
    if lives(run):
        reload(run, port)
        call_client_as_each_user(run)
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


# ---- Verbs of shufctl. One that succeeds must print what it prints without a fault

RAW = ["--out", "out", "--format", "raw"]
MIXTURE = ["--sizes", "1000,300", "--weights", "0.7,1/3", "--seed", "7", "--epochs", "0,2", "--count", "1000"]
CHUNKS = ["--chunks", "sizes", "--window", "2", "--seed", "7"]
VERBS = {
    "permute": ["permute", "--n", "1000", "--seed", "7", *RAW],
    "permute-text": ["permute", "--n", "10", "--seed", "7", "--out", "-", "--format", "text"],
    "gauss": ["gauss", "--count", "1000", "--seed", "7", *RAW],
    "uniform": ["uniform", "--count", "1000", "--seed", "7", "--out", "out", "--format", "npy"],
    "exponential": ["exponential", "--count", "1000", "--seed", "7", *RAW],
    "bernoulli": ["bernoulli", "--count", "1000", "--seed", "7", *RAW],
    "integers": ["integers", "--count", "1000", "--bound", "1000", "--seed", "7", *RAW],
    "summary": ["uniform", "--count", "1000", "--seed", "7", "--json"],
    "index": ["index", "--n", "1000", "--seed", "7", "--at", "1,5,999", "--out", "out", "--format", "text"],
    "chunks": ["permute", *CHUNKS, *RAW],
    "chunks-json": ["permute", *CHUNKS, "--json"],
    "chunks-index": ["index", *CHUNKS, "--at", "1,5,999"],
    "mix": ["mix", *MIXTURE, *RAW],
    "mix-text": ["mix", *MIXTURE, "--stage", "500:1,1"],
    "mix-counts": ["mix", *MIXTURE, "--counts"],
    "mix-json": ["mix", *MIXTURE, "--until", "all-exhausted", "--count", "9", "--json"],
    "shuffle": ["shuffle", "--in", "in", "--record", "8", "--seed", "7", "--out", "out"],
    "status": ["status"],
    "status-json": ["status", "--json"],
    "leases": ["leases"],
    "leases-json": ["leases", "--json"],
    "top": ["top", "--count", "1", "--interval", "100ms"],
    "doctor": ["doctor"],
    "doctor-json": ["doctor", "--json"],
    "metrics": ["metrics"],
    "metrics-json": ["metrics", "--json"],
    "drop": ["drop"],
    "drop-json": ["drop", "--user", "0", "--json"],
    "version": ["version"],
    "version-json": ["version", "--json"],
    "completion": ["--completion", "bash"],
}
WITHOUT_DAEMON = {"chunks", "chunks-json", "chunks-index", "completion", "mix", "mix-text", "mix-counts", "mix-json"}
# The faults that these verbs find are on standard output.
REPORTS = {"doctor", "doctor-json"}
# The beginnings of lines that only explain others.
HINTS = {"in"}
USER_NAME = pwd.getpwuid(os.getuid()).pw_name  # a number if the name is not found
# The words that differ between two runs. Where the doctor cannot check a thing, its line begins with "note", not "ok".
VARYING = f"[0-9]+|^{USER_NAME}$|^(ok|note)$"
expected_values, expected_parts = {}, {}


def parts_of_json(value, path=""):
    """The path of each value, without the numbers of array elements."""
    if isinstance(value, dict):
        return [part for key, item in value.items() for part in parts_of_json(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [part for item in value for part in parts_of_json(item, f"{path}[]")]
    return [path]


def parts(text):
    """The names of the printed values: the values themselves differ between two runs."""
    try:
        return collections.Counter(parts_of_json(json.loads(text)))
    except ValueError:
        words = (line.split(" ")[0] for line in text.splitlines())
        return collections.Counter(re.sub(VARYING, "0", word) for word in words)


def hold_lease(run):
    """Starts a program that holds a lease, so lists are not empty."""
    command = [run.build / "tests/faults/fault_client", run.socket, "hold"]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=run.environment(False))
    holder.stdout.readline()
    return holder


def check_output(run, verb, printed):
    out = run.folder / "out"
    values = out.read_bytes() if out.exists() else None
    if values != expected_values.setdefault(verb, values):
        raise Bad("shufctl succeeded with wrong values")
    missing = expected_parts.setdefault(verb, parts(printed)) - parts(printed)
    if missing.keys() - HINTS:
        raise Bad(f"shufctl succeeded without {[*missing]}")


def call_verb(run, verb):
    command = [run.build / "client/shufctl/shufctl", *VERBS[verb]]
    done = run.call(command if verb in WITHOUT_DAEMON else [*command, "--socket", run.socket], True)
    printed, errors = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    check_end(run, "shufctl", done.returncode, errors + (printed if verb in REPORTS else ""), SYSEXITS)
    if done.returncode == 0:
        check_output(run, verb, printed)


def shufctl(run, verb):
    (run.folder / "in").write_bytes(bytes(range(256)) * 8)
    (run.folder / "sizes").write_text("1000 30\n7 200\n")
    if verb in WITHOUT_DAEMON:
        call_verb(run, verb)
        return
    run.start_daemon()
    try:
        holder = hold_lease(run)
        call_verb(run, verb)
        holder.communicate()
        check_end(run, "shufd", run.stop_daemon(), run.daemon_log(), set())
    finally:
        run.kill_daemon()


# ---- The list ------------------------------------------------------------------

expected_print = {}
# The program that the fault is in, the function, and the kind of a fault of CUDA.
SCENARIOS = {
    "daemon": ("shufd", daemon, None),
    "client": ("fault_client", client, None),
    "client-without-path": ("fault_client", client_without_path, None),
    "daemon-configured": ("shufd", configured, None),
    "daemon-passed-socket": ("shufd", passed_socket, None),
    "daemon-check": ("shufd", lambda run: only_prints(run, "--check"), None),
    "daemon-print-config": ("shufd", lambda run: only_prints(run, "--print-config"), None),
}
if subprocess.run([*NAMESPACE, "mount --bind /tmp /run"], capture_output=True).returncode == 0:
    SCENARIOS["daemon-first-start"] = ("shufd", first_start, None)
for name in VERBS:
    SCENARIOS[f"shufctl-{name}"] = ("shufctl", lambda run, verb=name: shufctl(run, verb), None)
CUDA_SCENARIOS = {"cuda-hang": ("shufd", hanging_daemon, "hang")}
for kind in ("fail", "memory", "lost", "late"):
    CUDA_SCENARIOS[f"cuda-{kind}"] = ("shufd", daemon, kind)
    CUDA_SCENARIOS[f"cuda-client-{kind}"] = ("fault_client", client, kind)
