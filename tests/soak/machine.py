# SPDX-License-Identifier: MIT
"""The daemon and the clients of an endurance run, and its report.

As root, the daemon and the clients have users of their own; else they all have the caller's.
"""
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

DAEMON_UID = 61000
SLOT = struct.Struct("7Q256s")  # struct slot of slot.h
FIELDS = ("calls", "values", "busy", "cancelled", "failed", "wrong", "worst_ns")
WORST = FIELDS.index("worst_ns") * 8
LIMIT_S = 60  # for anything that should take less than a second
PROGRAMS = ("daemon/shufd", "client/shufctl/shufctl",
            *(f"tests/soak/soak_{name}" for name in ("client", "crowd", "hostile")))
HERE = pathlib.Path(__file__).resolve().parent


class Bad(Exception):
    """Something that a test must report."""


def await_true(condition, text, seconds=LIMIT_S):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Bad(f"after {seconds} s not yet: {text}")
        time.sleep(0.01)


def as_user(uid):
    return {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 else {}


class Folder:
    """A temporary folder with the listening socket, which outlives daemons as a socket of systemd does."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="shuf-soak-"))
        self.path.chmod(0o755)
        self.socket = str(self.path / "shufd.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.socket)
        os.chmod(self.socket, 0o666)
        self.listener.listen(4096)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        shutil.rmtree(self.path)


class Daemon:
    def __init__(self, build, folder, options=()):
        self.build, self.folder, self.options = build, folder, options
        self.sanitized = "SHUF_SANITIZE:STRING=\n" not in (build / "CMakeCache.txt").read_text()
        self.program = folder.path / "shufd"
        self.log = open(folder.path / "shufd.log", "a")
        self.process = None
        for name in PROGRAMS:
            self.install(name)

    def install(self, name="daemon/shufd"):
        """Puts a new file in the place of a program, as a package does. Each user may read the folder."""
        path = self.folder.path / pathlib.Path(name).name
        new = path.with_suffix(".new")
        shutil.copy(self.build / name, new)
        new.rename(path)

    def start(self):
        number = self.folder.listener.fileno()
        environment = {**os.environ, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "shufd", "OMP_WAIT_POLICY": "passive"}
        script = f'export LISTEN_PID=$$; exec "$@" 3<&{number}'
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", self.program, "--no-config", "--backend", "cpu", *self.options],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, pass_fds=(number,), env=environment,
            **as_user(DAEMON_UID))

    def end(self, number, expected):
        self.process.send_signal(number)
        code = self.process.wait(LIMIT_S)
        if code not in expected:
            raise Bad(f"shufd ended with {code}, expected {expected}: {self.last_lines()}")
        return code

    def check(self):
        if self.process.poll() is not None:
            raise Bad(f"shufd ended by itself with {self.process.returncode}: {self.last_lines()}")

    def last_lines(self):
        return " | ".join((self.folder.path / "shufd.log").read_text(errors="replace").splitlines()[-5:])

    def shufctl(self, *arguments):
        command = [self.folder.path / "shufctl", *arguments, "--socket", self.folder.socket]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode != 0:
            raise Bad(f"shufctl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def status(self):
        return json.loads(self.shufctl("status", "--json"))

    def process_file(self, name):
        return pathlib.Path(f"/proc/{self.process.pid}/{name}")

    def anonymous_bytes(self):
        lines = self.process_file("smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:"))

    def descriptors(self):
        """The least of some readings, because the connection of a status may still be open."""
        def read():
            time.sleep(0.005)
            return len(list(self.process_file("fd").iterdir()))
        return min(read() for _ in range(20))

    def usage(self):
        """What the daemon has at present."""
        status = self.status()
        keys = ("clients", "queued", "leases", "blocks", "host_used", "pending_free", "buffers")
        return {
            **{key: status[key] for key in keys},
            "descriptors": self.descriptors(),
            "mapped_blocks": self.process_file("maps").read_text().count("memfd:shufd"),
            "anonymous_bytes": self.anonymous_bytes(),
        }

    def settled(self):
        """Waits until the daemon has no clients, leases and memory, and returns its usage."""
        def is_idle():
            self.shufctl("drop", "--all", "--quiet")
            usage = self.usage()
            return usage["clients"] == 1 and not any(
                usage[key] for key in ("queued", "leases", "blocks", "host_used", "pending_free", "mapped_blocks"))
        self.check()
        try:
            await_true(is_idle, "no clients, leases and memory", 20)
        except Bad as bad:
            raise Bad(f"{bad}: {self.usage()}") from None
        return self.usage()


def restart(daemon, expected=(0,)):
    daemon.end(signal.SIGTERM, expected)
    daemon.start()


def upgrade(daemon, expected=(0,)):
    daemon.install()
    restart(daemon, expected)


def crash(daemon, _=None):
    daemon.end(signal.SIGKILL, (-signal.SIGKILL,))
    daemon.start()


EVENTS = {"restart": restart, "upgrade": upgrade, "crash": crash}


class Client:
    """A place for clients of one role and user: after a kill, another one takes it."""

    def __init__(self, daemon, number, role, uid):
        self.daemon, self.role, self.uid = daemon, role, uid
        self.slot = daemon.folder.path / f"slot.{number}"
        self.slot.write_bytes(bytes(SLOT.size))
        self.slot.chmod(0o666)
        self.log = open(daemon.folder.path / f"client.{number}", "w+")
        self.files = daemon.folder.path / f"files.{number}"
        self.files.mkdir()
        self.files.chmod(0o777)
        self.process = None
        self.problems = []

    def start(self, seed):
        folder = self.daemon.folder
        command = [folder.path / "soak_client", folder.socket, self.slot, str(seed), self.role,
                   folder.path / "shufctl"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        cwd=self.files, **as_user(self.uid))

    def end(self, number, expected):
        self.process.send_signal(number)
        try:
            code = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
            self.problems.append(f"did not end within {LIMIT_S} s")
        if code not in expected:
            self.problems.append(f"ended with {code}, expected {expected}")

    def last_line(self):
        self.log.seek(0)
        lines = self.log.read().splitlines()
        return f" ({lines[-1]})" if lines else ""

    def read(self):
        values = SLOT.unpack(self.slot.read_bytes())
        return dict(zip(FIELDS, values)), values[-1].split(b"\0")[0].decode(errors="replace")

    def forget_worst(self):
        with open(self.slot, "r+b", buffering=0) as file:
            file.seek(WORST)
            file.write(bytes(8))


def totals(clients):
    """The counts of each role, and the problems of all clients."""
    roles, problems = {}, []
    for client in clients:
        counts, text = client.read()
        row = roles.setdefault(client.role, dict.fromkeys(FIELDS[:-1], 0))
        for key in row:
            row[key] += counts[key]
        found = [text] * bool(text) + client.problems
        problems += [f"client {client.role}: {problem}{client.last_line()}" for problem in found]
    return roles, problems


def worst_ms(clients, roles):
    return max(client.read()[0]["worst_ns"] for client in clients if client.role in roles) / 1e6


def stall_of(clients, roles, event):
    """Runs the event, waits until each client of the roles has finished two more calls, and returns the longest call."""
    watched = [client for client in clients if client.role in roles]
    before = {client: client.read()[0]["calls"] for client in watched}
    for client in watched:
        client.forget_worst()
    event()
    after = {client: client.read()[0]["calls"] for client in watched}
    await_true(lambda: all(client.read()[0]["calls"] >= after[client] + 2 for client in watched),
               "each client has finished a call after the event")
    assert all(after[client] >= before[client] for client in watched)
    return worst_ms(watched, roles)


# ---- the report ----


def commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=HERE, capture_output=True,
                          text=True)
    return done.stdout.strip() or "unknown"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':')[1].strip()}, {os.cpu_count()} threads"
    return platform.machine()


def facts(title, command):
    return {
        "title": title,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "command": command,
        "device": processor(),
        "system": f"Linux {platform.release().split('-')[0]}",
        "users": "one for each number" if os.geteuid() == 0 else "one, because the run was not by root",
    }


def table(rows, columns):
    """Prints dictionaries as a table."""
    cells = [list(columns)] + [[str(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def write(report, path):
    if path:
        pathlib.Path(path).write_text(json.dumps(report, indent=2) + "\n")


def conclude(report, path):
    """Prints the problems, writes the report, and returns the exit status."""
    for problem in report["problems"]:
        print(f"PROBLEM: {problem}")
    print(f"{len(report['problems'])} problems")
    write(report, path)
    return 1 if report["problems"] else 0
