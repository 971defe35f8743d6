# SPDX-License-Identifier: MIT
"""A private daemon for this process and its children.

A shell starts the daemon, starts it again after a crash, and ends it when no process has a certain
FIFO open for writing. Each process that uses the daemon keeps the FIFO open, and forked children
inherit it. So the daemon ends with the last of these processes, even if a signal kills that process.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator

from ._arguments import shown
from ._client import Client
from ._connection import held_lifelines, hold_lifeline, lifeline_of
from ._errors import DeviceError, Error, Invalid, NoDaemon, must_choose
from ._process import locks_for

# ---- The programs of this package, as console commands too ---------------------------------------

# Variables for this process. A daemon would take those of a service manager for its own, and those of OpenMP
# would bind it to few processors.
_NOT_FOR_DAEMONS = (
    "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
    "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
)  # fmt: skip


def program_of(name: str) -> str:
    """The program of this package, else the one in $PATH, but none of the current directory."""
    own = pathlib.Path(__file__).parent / "bin" / name
    folders = os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))
    found = str(own) if own.exists() else shutil.which(name, path=folders)
    if found is None:
        raise Error(f"program {name}: expected at {own} or in $PATH; install the package again")
    return found


def _private_environment() -> dict[str, str]:
    """The environment of a daemon that this process starts. Its PATH also has the folders of the programs of
    the system, for the shell that starts the daemon."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_DAEMONS}
    environment["PATH"] = os.pathsep.join(filter(None, (environment.get("PATH"), os.defpath)))
    return {**environment, "SHUFD_STARTER": "shufd.serve()"}  # for the daemon's messages


def _become(name: str) -> None:
    program = program_of(name)
    os.execv(program, [name, *sys.argv[1:]])


def shufd() -> None:
    """The console command shufd."""
    _become("shufd")


def shufctl() -> None:
    """The console command shufctl."""
    _become("shufctl")


# ---- Options -------------------------------------------------------------------------------------

_Options = Dict[str, str]  # the texts of the arguments that are not None
_FILE = "options"  # beside the socket of a private daemon
# A private daemon has the limits of shufd.conf, but not the settings that only the daemon of the machine needs.
_PRIVATE = ("--socket-mode=0600", "--socket-group=", "--keys=", "--metrics=off", "--metrics-file=")
_LIMITS = {"host_memory": "host_limit", "device_memory": "memory_limit"}  # names in Client.status()
_UNITS = {"": 1, **{f"{unit}{i}": (1024 if i else 1000) ** (k + 1) for k, unit in enumerate("KMGT") for i in ("", "i")}}


def _words(options: _Options) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]


def _ask_shufd(options: _Options, flag: str) -> str:
    """The error of the program shufd about its options; empty if there is none."""
    program = subprocess.run(
        [program_of("shufd"), flag, *_PRIVATE, *_words(options)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, env=_private_environment(),
    )  # fmt: skip
    lines = program.stderr.decode(errors="replace").splitlines()
    last = (lines or ["no reason"])[-1]
    # If this process ignores SIGCHLD, it gets no exit status.
    return last.removeprefix("error: ") if program.returncode or last.startswith("error: ") else ""


def _checked(**arguments: Any) -> _Options:
    """The arguments of serve() as options. Fails with Invalid if shufd refuses one."""
    for name, value in arguments.items():
        if value is not None and (not isinstance(value, (int, str)) or "\n" in str(value)):
            raise Invalid(f"{name}: {shown(value)}: expected text such as {'auto' if name == 'backend' else '8Gi'}")
    options = {name: str(value) for name, value in arguments.items() if value is not None}
    if options == {"backend": "auto"}:
        return options
    if wrong := _ask_shufd(options, "--print-config"):
        raise Invalid(wrong)
    return options


def _try_out(options: _Options) -> None:
    """Fails with NoDaemon if a daemon with these options could not start."""
    if wrong := _ask_shufd(options, "--check"):
        raise NoDaemon(f"shufd did not start: {wrong}")


def _write_options(directory: str, options: _Options) -> None:
    """Replaces the options of a private daemon at once, because its shell may read them at any time."""
    new = pathlib.Path(directory, f"{_FILE}.new")
    new.write_text("".join(f"{word}\n" for word in _words(options)))
    os.replace(new, new.with_name(_FILE))


def _read_options(directory: str) -> _Options:
    """The options of a private daemon; none for another daemon, beside whose socket other users may make files."""
    try:
        file = os.open(os.path.join(directory, _FILE), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return {}
    try:
        state = os.fstat(file)
        is_own = stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid()
        lines = os.read(file, state.st_size).decode().splitlines() if is_own else []
    finally:
        os.close(file)
    pairs = (line.removeprefix("--").partition("=") for line in lines)
    return {name.replace("-", "_"): value for name, _, value in pairs}


def _merged(running: _Options, options: _Options) -> _Options:
    """The options of a daemon that starts again. "auto" leaves the choice of a backend as it was."""
    chosen = {name: value for name, value in options.items() if value != "auto"}
    return {**running, **chosen}


def _bytes(text: str) -> int | None:
    """A size in bytes; None for a part such as 25%."""
    match = re.fullmatch(r"(\d+) ?([KMGT]?i?)B?", text)
    return int(match[1]) * _UNITS[match[2]] if match and match[2] in _UNITS else None


def _is_running(name: str, value: str, state: dict[str, Any]) -> bool:
    """Whether a daemon with this status has the value of an option."""
    if name == "backend":
        return value in ("auto", state["backend"])
    if name == "device_memory" and state["backend"] == "cpu":
        return True  # it has no effect
    return _bytes(value) == int(state[_LIMITS[name]])


def _first_difference(options: _Options, client: Client) -> str | None:
    """The name of the first option that the running daemon has with another value."""
    running = _read_options(os.path.dirname(client.socket))
    if all(running.get(name) == value for name, value in options.items()):
        return None
    state = client.status()
    return next((n for n, v in options.items() if running.get(n) != v and not _is_running(n, v, state)), None)


def _refusal(name: str, options: _Options, client: Client) -> Invalid:
    """The error for an option of a daemon that this process did not start."""
    state = client.status()
    value = state["backend"] if name == "backend" else f"{state[_LIMITS[name]]:,} bytes"
    private = bool(_read_options(os.path.dirname(client.socket)))
    change = "pass it to serve() in the process that started this daemon" if private else (
        "change it in the configuration of this daemon")  # fmt: skip
    return Invalid(
        f"{name}: {options[name]}: expected {value}, as in the daemon that runs on {client.socket} (pid "
        f"{state['pid']}); leave {name} out, or {change}"
    )


# ---- Daemons -------------------------------------------------------------------------------------

_VARIABLE = "SHUFD_SOCKET"  # where libshuf and the children look
_START_SECONDS = 60.0
_POLL_SECONDS = 0.005
_FAILED = " error: "  # in a line of the log, after the time
_CRASHES, _SHORT_SECONDS = 5, 10  # so many crashes, each so soon after the start, are the end
_PATH_BYTES = 107  # the most of a socket's path
# Exit statuses of shufd(8), as patterns of the shell. After others a new start would fail too.
_TERMINATED = "0|75"  # by a signal that asked it to end
_FAILURES = "70|71|73|74|1[2-9]?|2??"  # of the device or the system, or a crash

# $1: the directory; $2: shufd. The file `options` has its options, one a line. serve() replaces it before it
# ends a daemon that is to start with other options. A program that cleans temporary folders may remove it; then the
# shell uses the options of the last start. A SIGTERM to all processes of a job ends only the daemon, which starts
# again: the program may need it until its own end. Then the shell sends SIGTERM to its process group twice, because a
# daemon that is about to start may miss the first one.
_GUARDIAN = f"""
directory=$1 shufd=$2
cd "$directory" || exit 1
trap '' HUP INT TERM
exec 3<lifeline
(
    crashes=0
    while :; do
        read -r begin _ </proc/uptime
        if [ -e options ]; then
            set --
            while IFS= read -r option; do set -- "$@" "$option"; done <options
        fi
        (
            trap - TERM
            exec "$shufd" --socket "$directory/shufd.sock" {" ".join(_PRIVATE)} "$@" 2>>log 3<&-
        ) &
        wait $!
        code=$?
        case $code in
        {_TERMINATED}) crashes=0 ;;
        {_FAILURES})
            read -r end _ </proc/uptime
            [ $((${{end%.*}} - ${{begin%.*}})) -lt {_SHORT_SECONDS} ] || crashes=0
            crashes=$((crashes + 1)) ;;
        *) break ;;
        esac
        if [ $crashes = {_CRASHES} ]; then
            words=$(tail -n 1 log)
            echo "shufd{_FAILED}$crashes crashes in a row, status $code; its last line: $words" >>log
            break
        fi
        sleep 0.$((crashes + 1))
    done
) &
keeper=$!
cat <&3 >/dev/null
kill -KILL $keeper
kill 0
sleep 0.1
kill 0
cd / && rm -rf "$directory"
"""

_lock, _busy = locks_for(sys.modules[__name__])
_guardians: dict[str, tuple[int, subprocess.Popen[bytes]]] = {}  # by directory; with the process that started it


@contextlib.contextmanager
def _unblocked_signals() -> Iterator[None]:
    """For a child that needs the signals that this thread blocks, such as SIGCHLD."""
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _start(directory: str, options: _Options) -> None:
    """Starts the shell. It gets other standard streams, so it does not keep a pipe of this process
    open. Its own messages go to the file `shell`."""
    lifeline = lifeline_of(os.path.join(directory, "x"))
    os.mkfifo(lifeline, 0o600)
    # Opened for reading too, because opening only for writing waits for a reader.
    held_lifelines[lifeline] = os.open(lifeline, os.O_RDWR | os.O_CLOEXEC)
    _write_options(directory, options)
    with pathlib.Path(directory, "shell").open("wb") as messages, _unblocked_signals():
        guardian = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDIAN, "sh", directory, program_of("shufd")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=messages,
            start_new_session=True,
            env=_private_environment(),
        )
    _guardians[directory] = os.getpid(), guardian


def _settle(directory: str) -> None:
    """Replaces the descriptor of _start(), which is open for reading and writing, by one for writing
    only."""
    socket = os.path.join(directory, "shufd.sock")
    both = held_lifelines.pop(lifeline_of(socket))
    hold_lifeline(socket)
    os.close(both)


def _read(directory: str, name: str, begin: int = 0) -> str:
    """A file of a private daemon, from the byte `begin` on: its log, or the messages of its shell."""
    path = pathlib.Path(directory, name)
    return path.read_bytes()[begin:].decode(errors="replace") if path.exists() else ""


def _await(directory: str, reconnect: float, log_begin: int = 0) -> Client:
    """A client, once a daemon answers. Fails with the last line of its log after the byte `log_begin`."""
    socket = os.path.join(directory, "shufd.sock")
    guardian = _guardians[directory][1]
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            return Client(socket, reconnect=reconnect, wait=0.0)
        except (NoDaemon, DeviceError):  # DeviceError: it refuses connections because it cannot start
            pass
        has_ended = guardian.poll() is not None
        lines = _read(directory, "log", log_begin).splitlines()
        failed = [line.partition(_FAILED)[2] or line for line in lines if "error" in line]
        if failed or has_ended or time.monotonic() > deadline:
            words = failed or lines or _read(directory, "shell").splitlines() or ["no log"]
            raise NoDaemon(f"shufd did not start: {words[-1]}")
        time.sleep(_POLL_SECONDS)


def serve(
    *,
    backend: str = "auto",
    host_memory: int | str | None = None,
    device_memory: int | str | None = None,
    reconnect: float = 10.0,
    quiet: bool = False,
) -> Client:
    """Returns a client of the daemon that runs. If none runs, starts a private one for this process
    and its children, says so once on standard error, and sets $SHUFD_SOCKET for the children.

    backend        "auto", "cpu" or "cuda", as in shufd(8)
    host_memory    the limit of results in host memory: bytes, or text such as "8Gi" or "25%". None: as
                   in shufd.conf(5), or as the daemon that runs has it
    device_memory  the same in the memory of the GPU
    reconnect      seconds; as in connect()
    quiet          True: says nothing

    If the private daemon that this process has started runs with other values than these arguments,
    the call starts it again with the new ones. Arrays stay valid, and calls of other threads and
    children wait for it. If another daemon runs with other values, the call fails with Invalid.

    Each rank of a job that calls this function first may start a daemon of its own. The functions of
    the module do not start one if the launcher has several ranks.

    If the daemon of default_client() is gone, the functions of the module, and the samplers that were made
    without `client`, use the daemon of this call from now on.

    The private daemon ends with the last of these processes. If it crashes, it starts again. Fails
    with Invalid for a wrong argument, and with NoDaemon, and the reason, if the daemon cannot start,
    or if the machine has daemons of GPUs, but none of the caller's GPU.
    """
    from . import _replace_lost_daemons

    options = _checked(backend=backend, host_memory=host_memory, device_memory=device_memory)
    with _lock:
        client = _find_or_start(options, reconnect, quiet)
    _replace_lost_daemons(client)
    return client


def _find_or_start(options: _Options, reconnect: float, quiet: bool) -> Client:
    try:
        client = Client(None, reconnect=reconnect)
    except NoDaemon as error:
        if must_choose(str(error)):
            raise NoDaemon(f"not started privately: {error}") from None
        return _serve_privately(options, reconnect, quiet)
    directory = os.path.dirname(client.socket)
    different = _first_difference(options, client)
    if different is None:
        return client
    if _guardians.get(directory, (0,))[0] != os.getpid():
        raise _refusal(different, options, client)
    return _restart(directory, client, options, quiet)


def _check_length(directory: str) -> None:
    """Fails with NoDaemon, and removes the new directory, if its path is too long for a socket."""
    size = len(os.fsencode(os.path.join(directory, "shufd.sock")))
    if size > _PATH_BYTES:
        os.rmdir(directory)
        raise NoDaemon(
            f"its socket in {directory} would have a path of {size} bytes, expected at most {_PATH_BYTES}: "
            "set TMPDIR to a shorter folder"
        )


def _serve_privately(options: _Options, reconnect: float, quiet: bool) -> Client:
    silent = os.environ.get(_VARIABLE)
    try:
        directory = tempfile.mkdtemp(prefix="shufd-")
        _check_length(directory)
        _start(directory, options)
    except OSError as error:  # as in a container whose root is read-only
        raise NoDaemon(f"not started privately: {error}") from error
    try:
        client = _await(directory, reconnect)
    finally:
        _settle(directory)
    os.environ[_VARIABLE] = client.socket
    if not quiet:
        _say("started", client, f"; no daemon answers on ${_VARIABLE}, {silent}" if silent else "")
    return client


def _end(daemon: int) -> None:
    """Ends the process of a private daemon, which first answers the requests that it has accepted."""
    deadline = time.monotonic() + _START_SECONDS
    with contextlib.suppress(ProcessLookupError):
        os.kill(daemon, signal.SIGTERM)
        while time.monotonic() < deadline:
            os.kill(daemon, 0)
            time.sleep(_POLL_SECONDS)
        raise NoDaemon(f"the private daemon (pid {daemon}) has not ended within {_START_SECONDS:.0f} s after a SIGTERM")


def _restart(directory: str, client: Client, options: _Options, quiet: bool) -> Client:
    """Starts the private daemon again, with other values for some options."""
    running = _read_options(directory)
    options = _merged(running, options)
    _try_out(options)
    before = client.status()["pid"]
    client.close()
    try:
        _write_options(directory, options)
        _end(before)
    except BaseException:  # such as Ctrl-C
        _write_options(directory, running)
        raise
    client = _await(directory, client._reconnect, len(_read(directory, "log").encode()))
    if not quiet:
        _say("restarted", client)
    return client


def _say(done: str, client: Client, reason: str = "") -> None:
    if sys.stderr is None:  # print() would write to the standard output
        return
    state = client.status()
    with contextlib.suppress(OSError, ValueError):
        print(
            f"shufd: {done} a private daemon ({state['backend']}, pid {state['pid']}) on {client.socket}; "
            f"it ends with this process and its children{reason}",
            file=sys.stderr,
        )
