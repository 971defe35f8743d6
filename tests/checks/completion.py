#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completes command lines of shufctl and shufd in interactive shells, with the scripts of the build. Also
compares the offered values with those that shufctl accepts.

    tests/checks/completion.py SHUFCTL SCRIPTS SCRIPTS-OF-SHUFD
"""
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT = 120  # for one answer, on a machine under load
FILE = "a file.npy"

# The typed line, and the words of the command line after the completion.
LINES = (
    ("perm\t", "permute"),
    ("permute --n 5 --al\tlcg", "permute --n 5 --algorithm lcg"),
    ("permute --algorithm phi\t", "permute --algorithm philox24"),
    ("permute --algorithm=pr\t", "permute --algorithm=primefold"),
    ("gauss --count 5 --dtype bf\t", "gauss --count 5 --dtype bf16"),
    ("mix --until fi\t", "mix --until first-exhausted"),
    ("uniform --meth\t", "uniform --meth"),
    ("--wait 5 stat\t", "--wait 5 status"),
    ("shuffle --in a\t", f"shuffle --in {FILE}"),
    ("help exi\t", "help exit-status"),
)
LINES_OF_SHUFD = (
    ("--print-c\t", "--print-config"),
    ("--check --host-w\t1Gi", "--check --host-warm 1Gi"),
    ("--log-level wa\t", "--log-level warning"),
    ("--backend cu\t", "--backend cuda"),
    ("--socket a\t", f"--socket {FILE}"),
    ("--config a\t", f"--config {FILE}"),
    ("permu\t", "permu"),
)
ALGORITHMS = "primefold", "philox24", "lcg"  # after --algorithm

# For each shell: its command, the file with the script for PROGRAM, and the commands that load this script.
# They replace PROGRAM by a function that prints its arguments.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PROGRAM",
             "bind 'set bell-style none'; source {}; PROGRAM() {{ echo \"<$*>\"; }}; PS1='rea''dy '"),
    "zsh": (["zsh", "-f", "-i"], "_PROGRAM",
            "fpath=($(dirname {}) $fpath); autoload -U compinit; compinit -u -D; "
            "PROGRAM() {{ echo \"<$*>\"; }}; PS1='rea''dy '"),
    "fish": (["fish", "--no-config", "-i"], "PROGRAM.fish",
             "source {}; function PROGRAM; echo \"<$argv>\"; end; function fish_prompt; echo -n rea''dy' '; end"),
}


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, command, folder):
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "dumb", "LANG": "C.UTF-8",
                       "COLUMNS": "200", "LINES": "50"}
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)
        self.text = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern):
        """Reads the output of the shell up to the pattern. Returns the match, or None after the timeout."""
        end = time.monotonic() + TIMEOUT
        while not (found := re.search(pattern, self.text, re.DOTALL)):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                return None
            self.text += os.read(self.fd, 65536).decode(errors="replace")
        self.text = self.text[found.end():]
        return found

    def close(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.fd)


def completion_faults(name, program, lines, scripts, folder):
    """The faults of the shell's completions."""
    command, script, setup = SHELLS[name]
    script, setup = script.replace("PROGRAM", program), setup.replace("PROGRAM", program)
    terminal = Terminal(command, folder)
    terminal.type(setup.format(shlex.quote(str(scripts / script))) + "\r")
    if not terminal.expect("ready "):
        yield f"{name}: no prompt: {terminal.text}"
        return
    for typed, expected in lines:
        terminal.type(f"{program} {typed}\r")
        found = terminal.expect(r"<([^>\r\n]*)>")
        got = found[1].strip() if found else terminal.text
        if got.replace("=", " ") != expected.replace("=", " "):  # zsh completes --algorithm=lcg
            yield f"{name}: {program} {typed!r}: {got!r}, expected {expected!r}"
    if program == "shufctl":
        yield from listing_faults(name, terminal)
    terminal.close()


def listing_faults(name, terminal):
    # On a terminal without a pager, fish goes from one value to the next.
    line = "shufctl permute --algorithm "
    terminal.type(f"complete -C '{line}'\r" if name == "fish" else f"{line}\t\t")
    if not terminal.expect("".join(rf"(?=.*\b{word}\b)" for word in ALGORITHMS)):
        yield f"{name}: {line!r}: {terminal.text!r} does not offer all of {ALGORITHMS}"


REQUIRED = {
    "permute": "--n 5 --seed 1 --out /dev/null",
    "shuffle": f"--in {__file__} --record 1 --seed 1 --out /dev/null",
    "index": "--n 5 --seed 1 --at 0",
    "mix": "--sizes 5,6 --seed 1 --count 1 --out /dev/null",
    "gauss": "--count 5 --seed 1 --out /dev/null",
    "uniform": "--count 5 --seed 1 --out /dev/null",
    "exponential": "--count 5 --seed 1 --out /dev/null",
    "bernoulli": "--count 5 --seed 1 --out /dev/null",
    "integers": "--count 5 --bound 9 --seed 1 --out /dev/null",
}


def offered_values(script):
    """(verb, option, values) for each option with values."""
    verb = None
    for line in script.read_text().splitlines():
        if found := re.match(r"    ([a-z]+)\)$", line):
            verb = found[1]
        elif found := re.match(r"        (--[a-z-]+)\) words='(.*)' ;;", line):
            yield verb, found[1], found[2].split()


def run_verb(shufctl, verb, option, value):
    command = [shufctl, verb, *REQUIRED[verb].split(), option, value, "--socket", "/nonexistent/s"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def value_faults(shufctl, script):
    """The values that are offered but that shufctl refuses, and the values that its error names but that are
    not offered."""
    compared = 0
    for verb, option, values in offered_values(script):
        for value in values:
            if run_verb(shufctl, verb, option, value).returncode == 64:
                yield f"{verb} {option} {value}: offered, but refused"
        refused = run_verb(shufctl, verb, option, "nonsense")
        if refused.returncode != 64:
            continue  # only the daemon checks this option
        compared += 1
        named = set(re.findall(r"[a-z0-9-]+", refused.stderr.partition("expected ")[2].partition(";")[0]))
        if named - {"or", "one", "of"} != set(values):
            yield f"{verb} {option}: offers {values}, but: {refused.stderr}"
    if compared < 10:
        yield f"{compared} options with values, expected 10 or more"


def main():
    shufctl = sys.argv[1]
    scripts, scripts_of_shufd = (pathlib.Path(folder).resolve() for folder in sys.argv[2:])
    faults = list(value_faults(shufctl, scripts / "shufctl"))
    shells = [name for name in SHELLS if shutil.which(name)]
    for name in shells:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, FILE).touch()
            faults += completion_faults(name, "shufctl", LINES, scripts, folder)
            faults += completion_faults(name, "shufd", LINES_OF_SHUFD, scripts_of_shufd, folder)
    print("\n".join(faults) or f"{len(LINES) + len(LINES_OF_SHUFD) + 1} lines in {', '.join(shells)}, 0 faults")
    sys.exit(1 if faults or "bash" not in shells else 0)


main()
