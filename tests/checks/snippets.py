#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the examples of the documents, with a daemon of their own. The shell commands of a document run in
order, in one shell and an empty directory. The Python blocks run too. The C blocks are compiled with the
installed library.

    snippets.py BUILD WORK CC FLAGS DOCUMENT...

A C block with a file name (```c epoch.c) becomes this file. The other C blocks of a document become one
program, in order. If the comment after a command begins with numbers or with prints "text", these are the
expected output. A C block with a file name equals the example of this name, without its first comment.
"""
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# These are not run: builds, commands that a test machine cannot run, and doctests, which the tests of
# the Python package run.
SKIPPED = re.compile(r"\./dev (demo|test)|cc program\.c|\$ |>>> |\[")
FENCE = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)


def scaled(line):
    """The line with a million values instead of a billion, for which a small machine lacks memory. A look-up
    stays the same, because it needs no memory for the values."""
    return line if " index " in line else line.replace("--n 1e9", "--n 1e7").replace("--count 1e9", "--count 1e7")


def expected_output(comment):
    """The output that the comment gives, in one line, or ""."""
    text = re.match(r'prints "(.*)"', comment)
    numbers = re.match(r"[\d, ]*\d", comment)
    return text[1] if text else " ".join(re.findall(r"\d+", numbers.group())) if numbers else ""


def shell_line(line, directory):
    """The command of the line. If its comment has the output, also a check of the output."""
    command, _, comment = line.partition(" #")
    command = scaled(command.strip()).replace("/tmp/", f"{directory}/")
    if SKIPPED.match(command) or not command:
        return ""
    expected = shlex.quote(expected_output(comment.strip()))
    say = f"echo {shlex.quote('+ ' + command)} >&2\n"
    if expected == "''":
        return f"{say}{command}\n"
    return f'{say}got=$({command} | tr -s "\\n" " "); [ "${{got% }}" = {expected} ] || {{ echo "$got"; exit 1; }}\n'


def blocks(text):
    """(language, file name, text) of each block, in order. An indented block is for the shell."""
    found = [(m.start(), m[1], m[2], m[3]) for m in FENCE.finditer(text)]
    spaces = FENCE.sub(lambda m: re.sub(r"[^\n]", "-", m[0]), text)
    found += [(m.start(), "sh", "", m[0]) for m in INDENTED.finditer(spaces)]
    return [block[1:] for block in sorted(found)]


def program_of(fragments):
    """One program made of C fragments. Each fragment after the first is in braces of its own."""
    includes = [line for part in fragments for line in part.splitlines() if line.startswith("#include")]
    bodies = [re.sub(r"^#include.*\n", "", part, flags=re.MULTILINE) for part in fragments]
    rest = "".join(f"{{\n{body}}}\n" for body in bodies[1:])
    return "\n".join(includes) + f"\nint main(void)\n{{\n{bodies[0]}\n{rest}shuf_close(daemon);\nreturn 0;\n}}\n"


def check_example(document, name, text):
    example = (ROOT / "client/examples" / name).read_text()
    if example.partition("*/\n")[2] != text:
        sys.exit(f"{document.name}: {name} differs from client/examples/{name}")


def script_of(document, directory):
    script, fragments = "set -eu\n", []
    for language, name, text in blocks(document.read_text()):
        if language == "sh":
            script += "".join(shell_line(line, directory) for line in text.splitlines())
        elif language == "python" and importlib.util.find_spec("numpy"):
            script += f"python3 - <<'END'\n{text}END\n"
        elif language == "c" and name:
            check_example(document, name, text)
            (directory / name).write_text(text)
        elif language == "c":
            fragments.append(text)
    if fragments:
        (directory / "program.c").write_text(program_of(fragments))
        script += "cc program.c $(pkg-config --cflags --libs libshuf) -o program\nshufd &\n"
        script += "shufctl status --wait 60 >/dev/null\n./program\nkill %1\n"
    return script + "kill $(jobs -p) 2>/dev/null || true\nwait\n"


def prepare(directory, build, compiler, flags):
    """Makes a new directory with the files that the documents use, this build's compiler as cc, and its Python."""
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "bin").mkdir(parents=True)
    (directory / "bin/cc").write_text(f'#!/bin/sh\nexec {shutil.which(compiler)} {flags} "$@"\n')
    (directory / "bin/cc").chmod(0o755)
    (directory / "bin/python3").symlink_to(sys.executable)
    (directory / "dev").write_text(f'#!/bin/sh\nBUILD={build} exec {ROOT}/dev "$@"\n')
    (directory / "dev").chmod(0o755)
    (directory / "tokens.bin").write_bytes(bytes(range(256)) * 64)
    for name, shape, data in ("a", b"(64, 4)", bytes(1024)), ("sizes", b"(64,)", struct.pack("<64I", *range(2000, 2640, 10))):
        head = b"{'descr': '<u4', 'fortran_order': False, 'shape': %s, }" % shape
        (directory / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00%-117s\n" % head + data)


def run(document, work, build, compiler, flags):
    directory = work / document.stem
    prepare(directory, build, compiler, flags)
    prefix = work / "prefix"
    libraries = [pc.parent for pc in prefix.rglob("libshuf.pc")] or [prefix / "lib/pkgconfig"]
    environment = dict(
        os.environ,
        PREFIX=str(prefix),
        PATH=f"{directory}/bin:{prefix}/bin:{os.environ['PATH']}",
        SHUFD_SOCKET=str(directory / "shufd.sock"),
        PKG_CONFIG_PATH=str(libraries[0]),
        LD_LIBRARY_PATH=str(libraries[0].parent),
    )
    script = script_of(document, directory)
    log = directory / "log"
    with log.open("w") as output:
        shell = ["bash", "-c", "trap 'jobs -p | xargs -r kill 2>/dev/null' EXIT\n" + script]
        status = subprocess.run(
            shell, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        ).returncode
    if status != 0:
        sys.exit(f"{document.name}: status {status}\n{log.read_text()[-5000:]}")
    print(f"{document.name}: {script.count('echo ')} commands, {script.count('python3 -')} Python blocks")


def check_first_screen():
    lines = (ROOT / "README.md").read_text().splitlines()
    first = lines.index("shufd is for you if")
    if first > 40 or len(lines) > 200:
        sys.exit(f"README.md: {first} lines of the first screen, {len(lines)} in all; expected at most 40 and 200")


def main():
    check_first_screen()
    build, work, compiler, flags = sys.argv[1:5]
    work = pathlib.Path(work).resolve()
    shutil.rmtree(work, ignore_errors=True)
    subprocess.run(["cmake", "--install", build, "--prefix", str(work / "prefix")], check=True, stdout=subprocess.DEVNULL)
    for document in sys.argv[5:]:
        run(ROOT / document, work, build, compiler, flags)


main()
