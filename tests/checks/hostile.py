#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs with hostile input, and in a hostile place.

    tests/checks/hostile.py characters|directory SHUFCTL SHUFD SHUF_QUALITY SOURCE

characters: gives control characters to each option of each program, as its value and in its name, and to the
names of files. A hostile daemon sends them in its texts. No output may have one, or have more lines than the
same message with letters.

directory: runs each program in a directory of another user, which PATH, PYTHONPATH and others name too. The
directory has modules and programs of all names that the programs may look for. None of them may run.
"""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading

what, shufctl, shufd, quality, source = sys.argv[1:]
wrong = []


@contextlib.contextmanager
def daemon_at(path, **options):
    daemon = subprocess.Popen([shufd, "--no-config", "--backend", "cpu", "--socket", path], stderr=subprocess.PIPE,
                              text=True, **options)  # fmt: skip
    try:
        while "listening on" not in (line := daemon.stderr.readline()):
            assert line, "shufd has ended"
        yield
    finally:
        daemon.terminate()
        daemon.wait()


# ---- Control characters --------------------------------------------------------

NOT_PRINTABLE = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
RAW = "\x1b]0;title\x07\r\x9b1m\nnext"
PLAIN = re.sub("[^a-z]", "_", RAW)
REQUIRED = {"permute": ["--n", "9", "--seed", "1"], "gauss": ["--count", "9", "--seed", "1"],
            "uniform": ["--count", "9", "--seed", "1"], "exponential": ["--count", "9", "--seed", "1"],
            "bernoulli": ["--count", "9", "--seed", "1"],
            "integers": ["--count", "9", "--bound", "5", "--seed", "1"], "index": ["--n", "9", "--seed", "1", "--at", "3"],
            "mix": ["--sizes", "5,6", "--seed", "1", "--count", "3"],
            "shuffle": ["--seed", "1", "--in", "in", "--out", "out"], "bench": ["--help"]}  # fmt: skip


def run(directory, *command):
    environment = {**os.environ, "SHUFD_SOCKET": f"{directory}/s", "TERM": "dumb", "COLUMNS": "9999"}
    done = subprocess.run(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)  # fmt: skip
    return done.stdout + done.stderr


def check_printable(directory, *words):
    """Compares the output with that of the same command with letters."""
    dirty = run(directory, *words)
    lines = len(run(directory, *(word.replace(RAW, PLAIN) for word in words)).splitlines())
    if (found := NOT_PRINTABLE.search(dirty)) or len(dirty.splitlines()) > lines:
        wrong.append(f"{words}: {found[0] if found else 'a line more'} in {dirty!r}")


def options(directory, *command):
    text = run(directory, *command, "--help").decode()
    return set(re.findall(r"^ +(?:-., |    )(--[a-z][a-z-]*)", text, re.MULTILINE)) - {"--help", "--usage", "--version"}


def check_program(directory, *command, required=()):
    for name in sorted(options(directory, *command)):
        given = [word for word in required if word != name]
        check_printable(directory, *command, *given, f"{name}={RAW}")
    for word in (RAW, f"--{RAW}", f"-{RAW}", f"--s{RAW}", f"--no={RAW}"):
        check_printable(directory, *command, word)


def check_file_names(directory):
    pathlib.Path(directory, RAW).write_text("wrong\n")
    pathlib.Path(directory, PLAIN).write_text("wrong\n")
    for value in (RAW, f"{RAW}/none"):
        for words in (["permute", "--out"], ["shuffle", "--in"], ["index", "--at"]):
            check_printable(directory, shufctl, words[0], *REQUIRED[words[0]], f"{words[1]}={value}")
        check_printable(directory, shufctl, "shuffle", "--seed=1", "--record=1", f"--in={value}", f"--out={value}")
        check_printable(directory, shufctl, "status", f"--socket={value}")
        check_printable(directory, shufctl, "doctor", f"--socket={value}")
        check_printable(directory, shufd, "--check", f"--config={value}")
        check_printable(directory, shufd, "--check", "--no-config", "--backend=cpu", f"--socket={value}")
        check_printable(directory, quality, "plot", "--out=x.svg", value)
    keys = pathlib.Path(directory, f"keys{RAW}")
    keys.mkdir()
    (keys / RAW).write_text("no key\n")
    check_printable(directory, shufd, "--check", "--no-config", "--backend=cpu", "--socket=none", f"--keys={keys}")


def forward(source, target, changes):
    while data := source.recv(1 << 16):
        for old, new in changes:
            data = data.replace(old, new)
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def serve_hostile(listening, path):
    """Forwards each connection to the daemon, and puts control characters into the texts of the replies."""
    while True:
        client, daemon = listening.accept()[0], socket.socket(socket.AF_UNIX)
        daemon.connect(path)
        changes = [(b"cpu", b"\x1b[m"), (b"threads", b"\xc2\x9b31m\x07a")]
        for one in ((client, daemon, []), (daemon, client, changes)):
            threading.Thread(target=forward, args=one, daemon=True).start()


def check_hostile_daemon(directory, path):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{directory}/hostile")
    listening.listen()
    threading.Thread(target=serve_hostile, args=(listening, path), daemon=True).start()
    for words in ("status", "status --json", "metrics", "metrics --openmetrics", "metrics --json", "leases", "doctor",
                  "permute --n 9 --seed 1", "permute --n 9 --seed 1 --json"):  # fmt: skip
        output = run(directory, shufctl, *words.split(), "--socket", f"{directory}/hostile")
        if b"shufd" not in output and b"primefold" not in output and b"lease" not in output and b"{" not in output:
            wrong.append(f"{words}: {output!r}: expected an answer")
        if found := NOT_PRINTABLE.search(output):
            wrong.append(f"{words} of a hostile daemon: {found[0]} in {output!r}")


def try_characters(directory):
    pathlib.Path(directory, "in").write_bytes(bytes(64))
    path = f"{directory}/s"
    with daemon_at(path):
        overview = run(directory, shufctl, "--help").decode().split("\nTopics:")[0]
        for verb in set(re.findall(r"^  ([a-z]+) ", overview, re.MULTILINE)) - {"help", "top"}:
            check_program(directory, shufctl, verb, required=REQUIRED.get(verb, ()))
        check_program(directory, shufd, required=["--check", "--no-config"])
        for verb in ("rounds", "stream", "bits", "plot"):
            check_program(directory, quality, verb)
        check_file_names(directory)
        check_hostile_daemon(directory, path)
        for words in ([RAW], ["help", RAW], ["--completion", RAW]):
            check_printable(directory, shufctl, *words)
            check_printable(directory, quality, *words)


# ---- A directory with traps ----------------------------------------------------

MODULES = "torch numpy sitecustomize usercustomize shufd cffi _cffi_backend platform shutil".split()
PROGRAMS = """sh bash dash env timeout python3 python systemctl journalctl gnuplot nvidia-smi nvidia-modprobe
    shufd shufctl grep cat kill sleep getent""".split()


def make_trap(directory):
    """The trap: whatever runs here writes its name into the file `ran`."""
    for name in MODULES:
        (directory / f"{name}.py").write_text(f"open('{directory}/ran', 'a').write('{name}.py\\n')\n")
    for name in [*PROGRAMS, "bash_env"]:
        (directory / name).write_text(f"#!/bin/sh\necho {name} >>{directory}/ran\n")
        (directory / name).chmod(0o755)
    python = directory / "clean/python3"  # -S: without a torch of the machine, which would take seconds
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    (directory / ".gnuplot").write_text(f"set print '{directory}/ran'\nprint '.gnuplot'\n")
    (directory / "shufd.conf").write_text("no configuration\n")
    units = directory / "units/run/systemd/system"
    units.mkdir(parents=True)
    (units / "shufd.target").touch()
    wants = directory / "units/etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "shufd.target").touch()


def trap_environment(directory, **more):
    here = f".::./:{directory}/clean:/usr/sbin:/usr/bin:/sbin:/bin"
    return {**os.environ, "PATH": here, "PYTHONPATH": ".", "PYTHONSTARTUP": "torch.py", "HOME": str(directory),
            "ENV": "./bash_env", "BASH_ENV": "./bash_env", "SHUFD_UNITS": f"{directory}/units", **more}  # fmt: skip


def check_trap(directory, *command, code=(0,), **more):
    done = subprocess.run(command, cwd=directory, env=trap_environment(directory, **more), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    ran = directory / "ran"
    found = sorted(set(ran.read_text().split())) if ran.exists() else []
    ran.unlink(missing_ok=True)
    if found or done.returncode not in code:
        wrong.append(f"{' '.join(command)}: status {done.returncode}, ran {found or 'nothing'}: {done.stderr}")


def check_shufctl(directory, socket):
    for words in ("status", "version", "leases", "metrics", "drop", "help permute", "--completion bash",
                  "permute --n 9 --seed 1 --out a.npy", "shuffle --in a.npy --out b.npy --seed 1",
                  "gauss --count 9 --seed 1", "uniform --count 9 --seed 1", "index --n 9 --seed 1 --at 3",
                  "mix --sizes 5,6 --seed 1 --count 3", "bench --n 1000", "top --count 1 --interval 100ms"):  # fmt: skip
        check_trap(directory, shufctl, *words.split(), SHUFD_SOCKET=socket)
    check_trap(directory, shufctl, "doctor", code=range(80), SHUFD_SOCKET=socket)
    for verb in ("status", "doctor"):  # systemctl tells why no daemon answers
        check_trap(directory, shufctl, verb, code=range(1, 80), SHUFD_SOCKET="/run/shufd/no-daemon.sock")


def check_others(directory):
    check_trap(directory, shufd, "--print-config", "--no-config")
    check_trap(directory, shufd, "--check", "--backend", "cpu", "--socket", f"{directory}/other", "--no-config")
    check_trap(directory, quality, "rounds", "--generator", "lcg", "--n", "8", "--samples", "50", "--plot", "a.svg",
          code=(0, 73))  # fmt: skip
    # The image sets its PATH.
    check_trap(directory, f"{source}/packaging/serve-gpus", "--print-config", "--no-config",
          PATH=f"{os.path.dirname(shufd)}:/usr/bin:/bin")  # fmt: skip


def check_python(directory):
    """The console commands and serve() look for the programs in PATH."""
    text = (pathlib.Path(source) / "client/python/src/shufd/_serve.py").read_text()
    function = text[text.index("def program_of") :].partition("\n\n\n")[0]
    text = f"import os, pathlib, shutil, sys\nclass Error(Exception): pass\n{function}"
    test = "try: found = program_of('shufctl')\nexcept Error: found = '/'\nsys.exit(found[0] != '/')"
    check_trap(directory, sys.executable, "-I", "-c", f"__file__ = '/none/none/x'\n{text}\n{test}")


def try_directory(name):
    directory = pathlib.Path(name)
    make_trap(directory)
    path = f"{directory}/s"
    with daemon_at(path, cwd=directory, env=trap_environment(directory)):
        check_shufctl(directory, path)
        check_others(directory)
        check_python(directory)


with tempfile.TemporaryDirectory() as folder:
    {"characters": try_characters, "directory": try_directory}[what](folder)
for text in wrong:
    print("FAIL:", text)
sys.exit(bool(wrong))
