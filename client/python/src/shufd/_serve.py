# SPDX-License-Identifier: MIT
"""A private daemon for this process and its children.

A shell starts the daemon, starts it again after a crash, and ends it when no process has a certain
FIFO open for writing. Each process that uses the daemon keeps the FIFO open, and forked children
inherit it. So the daemon ends with the last of these processes, even if a signal kills that process.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from . import _lifeline
from ._client import Client
from ._errors import NoDaemon, must_choose
from ._programs import path_of

_VARIABLE = "SHUFD_SOCKET"  # where libshuf and the children look
_START_SECONDS = 60.0
_POLL_SECONDS = 0.005
_FAILED = " error: "  # in a line of the log, after the time
_KILLED = 128  # a shell's status of a process that a signal ended begins here

# $1: the directory; $2: shufd; the rest: its options
_GUARDIAN = f"""
directory=$1 shufd=$2
shift 2
cd "$directory" || exit 1
trap '' HUP INT
exec 3<lifeline
(
    while :; do
        "$shufd" --socket "$directory/shufd.sock" "$@" 2>>log 3<&- &
        echo $! >pid
        wait $!
        code=$?
        [ $code -ge {_KILLED} ] || exit $code
    done
) &
keeper=$!
cat <&3 >/dev/null
kill $keeper
kill "$(cat pid)"
cd / && rm -rf "$directory"
"""

_lock = threading.Lock()
_guardians: list[subprocess.Popen[bytes]] = []


def _start(directory: str, options: list[str]) -> None:
    """Starts the shell. It gets other standard streams, so it does not keep a pipe of this process
    open."""
    lifeline = _lifeline.path_of(os.path.join(directory, "x"))
    os.mkfifo(lifeline, 0o600)
    # Opened for reading too, because opening only for writing waits for a reader.
    _lifeline.held[lifeline] = os.open(lifeline, os.O_RDWR | os.O_CLOEXEC)
    guardian = subprocess.Popen(
        ["/bin/sh", "-c", _GUARDIAN, "sh", directory, path_of("shufd"), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "SHUFD_STARTER": "shufd.serve()"},  # for the daemon's messages
    )
    _guardians.append(guardian)


def _settle(directory: str) -> None:
    """Replaces the descriptor of _start(), which is open for reading and writing, by one for writing
    only."""
    socket = os.path.join(directory, "shufd.sock")
    both = _lifeline.held.pop(_lifeline.path_of(socket))
    _lifeline.hold(socket)
    os.close(both)


def _await(directory: str, reconnect: float) -> Client:
    """A client, once the daemon answers. Fails with the last line of its log."""
    socket = os.path.join(directory, "shufd.sock")
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            return Client(socket, reconnect=reconnect)
        except NoDaemon:
            log = pathlib.Path(directory, "log")
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            failed = [line.partition(_FAILED)[2] or line for line in lines if "error" in line]
            if failed or time.monotonic() > deadline:
                raise NoDaemon(f"shufd did not start: {(failed or lines or ['no log'])[-1]}") from None
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

    backend        "auto", "cpu" or "cuda", as in shufd(8); for a new daemon
    host_memory    the limit of results in host memory: bytes, or text such as "8Gi" or "25%"; for a
                   new daemon. None: as in shufd.conf(5)
    device_memory  the same in the memory of the GPU
    reconnect      seconds; as in connect()
    quiet          True: says nothing

    Each rank of a job that calls this function first may start a daemon of its own. The functions of
    the module do not start one if the launcher has several ranks.

    The private daemon ends with the last of these processes. If it crashes, it starts again. Fails
    with NoDaemon, and the reason, if it cannot start, or if the machine has daemons of GPUs, but
    none of the caller's GPU.
    """
    options = [f"--backend={backend}"]
    if host_memory is not None:
        options.append(f"--host-memory={host_memory}")
    if device_memory is not None:
        options.append(f"--device-memory={device_memory}")
    with _lock:
        try:
            return Client(None, reconnect=reconnect)
        except NoDaemon as error:
            if must_choose(str(error)):
                raise NoDaemon(f"not started privately: {error}") from None
            return _serve_privately(options, reconnect, quiet)


def _serve_privately(options: list[str], reconnect: float, quiet: bool) -> Client:
    directory = tempfile.mkdtemp(prefix="shufd-")
    _start(directory, options)
    try:
        client = _await(directory, reconnect)
    finally:
        _settle(directory)
    os.environ[_VARIABLE] = client.socket
    if not quiet:
        _say(client)
    return client


def _say(client: Client) -> None:
    state = client.status()
    print(
        f"shufd: started a private daemon ({state['backend']}, pid {state['pid']}) on {client.socket}; "
        "it ends with this process and its children",
        file=sys.stderr,
    )
