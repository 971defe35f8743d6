# SPDX-License-Identifier: MIT
"""The verbs of shufctl in fault tests. A verb that succeeds must print what it prints without a fault."""
import collections
import json
import os
import pwd
import re
import subprocess

from programs import SYSEXITS, Bad, check_end

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
USER = pwd.getpwuid(os.getuid()).pw_name  # a number if the name is not found
# The words that differ between two runs. Where the doctor cannot check a thing, its line begins with "note", not "ok".
VARYING = f"[0-9]+|^{USER}$|^(ok|note)$"
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
