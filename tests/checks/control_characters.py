#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gives control characters to each option of each program, as its value and in its name, and to the
names of files. A hostile daemon sends them in its texts. No output may have one, or have more lines than the
same message with letters.

    tests/checks/control_characters.py SHUFCTL SHUFD SHUF_QUALITY
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading

NOT_PRINTABLE = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
RAW = "\x1b]0;title\x07\r\x9b1m\nnext"
PLAIN = re.sub("[^a-z]", "_", RAW)
shufctl, shufd, quality = sys.argv[1:]
REQUIRED = {"permute": ["--n", "9", "--seed", "1"], "gauss": ["--count", "9", "--seed", "1"],
            "uniform": ["--count", "9", "--seed", "1"], "exponential": ["--count", "9", "--seed", "1"],
            "bernoulli": ["--count", "9", "--seed", "1"],
            "integers": ["--count", "9", "--bound", "5", "--seed", "1"], "index": ["--n", "9", "--seed", "1", "--at", "3"],
            "mix": ["--sizes", "5,6", "--seed", "1", "--count", "3"],
            "shuffle": ["--seed", "1", "--in", "in", "--out", "out"], "bench": ["--help"]}  # fmt: skip
wrong = []


def run(directory, *command):
    environment = {**os.environ, "SHUFD_SOCKET": f"{directory}/s", "TERM": "dumb", "COLUMNS": "9999"}
    done = subprocess.run(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)  # fmt: skip
    return done.stdout + done.stderr


def check(directory, *words):
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
        check(directory, *command, *given, f"{name}={RAW}")
    for word in (RAW, f"--{RAW}", f"-{RAW}", f"--s{RAW}", f"--no={RAW}"):
        check(directory, *command, word)


def check_file_names(directory):
    pathlib.Path(directory, RAW).write_text("wrong\n")
    pathlib.Path(directory, PLAIN).write_text("wrong\n")
    for value in (RAW, f"{RAW}/none"):
        for words in (["permute", "--out"], ["shuffle", "--in"], ["index", "--at"]):
            check(directory, shufctl, words[0], *REQUIRED[words[0]], f"{words[1]}={value}")
        check(directory, shufctl, "shuffle", "--seed=1", "--record=1", f"--in={value}", f"--out={value}")
        check(directory, shufctl, "status", f"--socket={value}")
        check(directory, shufctl, "doctor", f"--socket={value}")
        check(directory, shufd, "--check", f"--config={value}")
        check(directory, shufd, "--check", "--no-config", "--backend=cpu", f"--socket={value}")
        check(directory, quality, "plot", "--out=x.svg", value)
    keys = pathlib.Path(directory, f"keys{RAW}")
    keys.mkdir()
    (keys / RAW).write_text("no key\n")
    check(directory, shufd, "--check", "--no-config", "--backend=cpu", "--socket=none", f"--keys={keys}")


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


def main():
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "in").write_bytes(bytes(64))
        path = f"{directory}/s"
        daemon = subprocess.Popen([shufd, "--no-config", "--backend", "cpu", "--socket", path], stderr=subprocess.PIPE,
                                  text=True)  # fmt: skip
        try:
            while "listening on" not in (line := daemon.stderr.readline()):
                assert line, "shufd has ended"
            overview = run(directory, shufctl, "--help").decode().split("\nTopics:")[0]
            for verb in set(re.findall(r"^  ([a-z]+) ", overview, re.MULTILINE)) - {"help", "top"}:
                check_program(directory, shufctl, verb, required=REQUIRED.get(verb, ()))
            check_program(directory, shufd, required=["--check", "--no-config"])
            for verb in ("rounds", "stream", "bits", "plot"):
                check_program(directory, quality, verb)
            check_file_names(directory)
            check_hostile_daemon(directory, path)
            for words in ([RAW], ["help", RAW], ["--completion", RAW]):
                check(directory, shufctl, *words)
                check(directory, quality, *words)
        finally:
            daemon.terminate()
            daemon.wait()
    print("\n".join(wrong) or "no control characters")
    sys.exit(bool(wrong))


main()
