#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the limits of CONTRIBUTING.md: the lengths of functions, and the share of comments in the lines
that are not blank. A function's length is the number of lines between its braces, which clang-format puts
into the first column."""

import argparse
import pathlib
import re
import subprocess
import sys

FOLDERS = ("cli", "client", "core", "daemon", "kernels", "proto")
SUFFIXES = {".c", ".h", ".cu", ".cuh", ".inc"}
TABLES = ("kernels/inline/shuf/gauss_table.h", "kernels/inline/shuf/box_muller_table.h")
MEDIAN, P90, LONGEST = 10, 21, 60
COMMENTS = (0.10, 0.13)


def functions(path, lines):
    """The length and the place of each function. The line before a function's opening brace ends its
    parameters, or in C++ its initialisers."""
    for number, line in enumerate(lines):
        before = lines[number - 1].split("//")[0].rstrip() if number else ""
        if line.strip() != "{" or not re.search(r"(\)|\) const|\}|\w\{\})$", before):
            continue
        end = line.replace("{", "}")
        length = next(i for i, text in enumerate(lines[number:]) if text.rstrip(";") == end)
        yield length - 1, f"{path}:{number + 1}"


def comment_lines(lines):
    """The number of lines with only a comment. The line with the license does not count."""
    count, inside = 0, False
    for line in lines:
        text = line.strip()
        if inside or text.startswith(("/*", "//")):
            count += "SPDX" not in text
            inside = "*/" not in text if inside or text.startswith("/*") else False
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=int, default=0, help="print so many of the longest functions")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    listed = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=root, capture_output=True, text=True
    ).stdout.split() or [str(p.relative_to(root)) for f in FOLDERS for p in (root / f).rglob("*")]
    files = [f for f in listed if pathlib.Path(f).suffix in SUFFIXES and f not in TABLES]
    lengths, wrong, total, comments = [], [], 0, 0
    for name in files:
        lines = (root / name).read_text().splitlines()
        lengths += functions(name, lines)
        total += sum(bool(line.strip()) for line in lines)
        comments += comment_lines(lines)
    lengths.sort()
    median, p90 = (lengths[int(q * (len(lengths) - 1))][0] for q in (0.5, 0.9))
    share = comments / total
    wrong += [f"{where}: {n} lines, expected at most {LONGEST}" for n, where in lengths if n > LONGEST]
    if median > MEDIAN:
        wrong.append(f"median of functions: {median} lines, expected at most {MEDIAN}")
    if p90 > P90:
        wrong.append(f"90th percentile of functions: {p90} lines, expected at most {P90}")
    if not COMMENTS[0] <= share <= COMMENTS[1]:
        wrong.append(f"comments: {share:.1%} of lines, expected {COMMENTS[0]:.0%} to {COMMENTS[1]:.0%}")
    print(
        f"{len(files)} files, {total} lines that are not blank, {len(lengths)} functions: median {median}, 90th percentile "
        f"{p90}, longest {lengths[-1][0]} lines; comments {share:.1%}"
    )
    for n, where in lengths[::-1][: arguments.longest]:
        print(n, where)
    for text in wrong:
        print(text, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
