#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs each program in a directory of another user, which PATH, PYTHONPATH and others name too. The
directory has modules and programs of all names that the programs may look for. None of them may run.

    tests/checks/hostile_directory.py SHUFCTL SHUFD SHUF_QUALITY SOURCE
"""
import os
import pathlib
import subprocess
import sys
import tempfile

MODULES = "torch numpy sitecustomize usercustomize shufd cffi _cffi_backend platform shutil".split()
PROGRAMS = """sh bash dash env timeout python3 python systemctl journalctl gnuplot nvidia-smi nvidia-modprobe
    shufd shufctl grep cat kill sleep getent""".split()
shufctl, shufd, quality, source = sys.argv[1:]
failures = 0


def make(directory):
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


def environment(directory, **more):
    here = f".::./:{directory}/clean:/usr/sbin:/usr/bin:/sbin:/bin"
    return {**os.environ, "PATH": here, "PYTHONPATH": ".", "PYTHONSTARTUP": "torch.py", "HOME": str(directory),
            "ENV": "./bash_env", "BASH_ENV": "./bash_env", "SHUFD_UNITS": f"{directory}/units", **more}  # fmt: skip


def check(directory, *command, code=(0,), **more):
    global failures
    done = subprocess.run(command, cwd=directory, env=environment(directory, **more), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    ran = directory / "ran"
    found = sorted(set(ran.read_text().split())) if ran.exists() else []
    ran.unlink(missing_ok=True)
    if found or done.returncode not in code:
        failures += 1
        print(f"FAIL: {' '.join(command)}: status {done.returncode}, ran {found or 'nothing'}: {done.stderr}")


def check_shufctl(directory, socket):
    for words in ("status", "version", "leases", "metrics", "drop", "help permute", "--completion bash",
                  "permute --n 9 --seed 1 --out a.npy", "shuffle --in a.npy --out b.npy --seed 1",
                  "gauss --count 9 --seed 1", "uniform --count 9 --seed 1", "index --n 9 --seed 1 --at 3",
                  "mix --sizes 5,6 --seed 1 --count 3", "bench --n 1000", "top --count 1 --interval 100ms"):  # fmt: skip
        check(directory, shufctl, *words.split(), SHUFD_SOCKET=socket)
    check(directory, shufctl, "doctor", code=range(80), SHUFD_SOCKET=socket)
    for verb in ("status", "doctor"):  # systemctl tells why no daemon answers
        check(directory, shufctl, verb, code=range(1, 80), SHUFD_SOCKET="/run/shufd/no-daemon.sock")


def check_others(directory):
    check(directory, shufd, "--print-config", "--no-config")
    check(directory, shufd, "--check", "--backend", "cpu", "--socket", f"{directory}/other", "--no-config")
    check(directory, quality, "rounds", "--generator", "lcg", "--n", "8", "--samples", "50", "--plot", "a.svg",
          code=(0, 73))  # fmt: skip
    # The image sets its PATH.
    check(directory, f"{source}/packaging/serve-gpus", "--print-config", "--no-config",
          PATH=f"{os.path.dirname(shufd)}:/usr/bin:/bin")  # fmt: skip


def check_python(directory):
    """The console commands and serve() look for the programs in PATH."""
    text = (pathlib.Path(source) / "client/python/src/shufd/_serve.py").read_text()
    function = text[text.index("def program_of") :].partition("\n\n\n")[0]
    text = f"import os, pathlib, shutil, sys\nclass Error(Exception): pass\n{function}"
    test = "try: found = program_of('shufctl')\nexcept Error: found = '/'\nsys.exit(found[0] != '/')"
    check(directory, sys.executable, "-I", "-c", f"__file__ = '/none/none/x'\n{text}\n{test}")


def main():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        make(directory)
        socket = f"{directory}/s"
        daemon = subprocess.Popen([shufd, "--no-config", "--backend", "cpu", "--socket", socket], cwd=directory,
                                  env=environment(directory), stderr=subprocess.PIPE, text=True)  # fmt: skip
        try:
            while "listening on" not in (line := daemon.stderr.readline()):
                assert line, "shufd has ended"
            check_shufctl(directory, socket)
            check_others(directory)
            check_python(directory)
        finally:
            daemon.terminate()
            daemon.wait()
    sys.exit(failures > 0)


main()
