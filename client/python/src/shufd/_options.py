# SPDX-License-Identifier: MIT
"""The options of serve(): their check by the program shufd, and their values in a daemon that runs."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
from typing import Any, Dict

from ._arguments import shown
from ._client import Client
from ._errors import Invalid, NoDaemon
from ._programs import path_of, private_environment

Options = Dict[str, str]  # the texts of the arguments that are not None
_FILE = "options"  # beside the socket of a private daemon
# A private daemon has the limits of shufd.conf, but not the settings that only the daemon of the machine needs.
PRIVATE = ("--socket-mode=0600", "--socket-group=", "--keys=", "--metrics=off", "--metrics-file=")
_LIMITS = {"host_memory": "host_limit", "device_memory": "memory_limit"}  # names in Client.status()
_UNITS = {"": 1, **{f"{unit}{i}": (1024 if i else 1000) ** (k + 1) for k, unit in enumerate("KMGT") for i in ("", "i")}}


def _words(options: Options) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]


def _ask_shufd(options: Options, flag: str) -> str:
    """The error of the program shufd about its options; empty if there is none."""
    program = subprocess.run(
        [path_of("shufd"), flag, *PRIVATE, *_words(options)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, env=private_environment(),
    )  # fmt: skip
    lines = program.stderr.decode(errors="replace").splitlines()
    return (lines or ["no reason"])[-1].removeprefix("error: ") if program.returncode else ""


def checked(**arguments: Any) -> Options:
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


def try_out(options: Options) -> None:
    """Fails with NoDaemon if a daemon with these options could not start."""
    if wrong := _ask_shufd(options, "--check"):
        raise NoDaemon(f"shufd did not start: {wrong}")


def write(directory: str, options: Options) -> None:
    """Replaces the options of a private daemon at once, because its shell may read them at any time."""
    new = pathlib.Path(directory, f"{_FILE}.new")
    new.write_text("".join(f"{word}\n" for word in _words(options)))
    os.replace(new, new.with_name(_FILE))


def read(directory: str) -> Options:
    """The options of a private daemon; none for another daemon."""
    path = pathlib.Path(directory, _FILE)
    if not path.exists():
        return {}
    pairs = (line.removeprefix("--").partition("=") for line in path.read_text().splitlines())
    return {name.replace("-", "_"): value for name, _, value in pairs}


def merged(running: Options, options: Options) -> Options:
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


def first_difference(options: Options, client: Client) -> str | None:
    """The name of the first option that the running daemon has with another value."""
    running = read(os.path.dirname(client.socket))
    if all(running.get(name) == value for name, value in options.items()):
        return None
    state = client.status()
    return next((n for n, v in options.items() if running.get(n) != v and not _is_running(n, v, state)), None)


def refusal(name: str, options: Options, client: Client) -> Invalid:
    """The error for an option of a daemon that this process did not start."""
    state = client.status()
    value = state["backend"] if name == "backend" else f"{state[_LIMITS[name]]:,} bytes"
    private = bool(read(os.path.dirname(client.socket)))
    change = "pass it to serve() in the process that started this daemon" if private else (
        "change it in the configuration of this daemon")  # fmt: skip
    return Invalid(
        f"{name}: {options[name]}: expected {value}, as in the daemon that runs on {client.socket} (pid "
        f"{state['pid']}); leave {name} out, or {change}"
    )
