#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the options that each program prints with --help and those that its man page describes; for
shufctl verb by verb. Also the configuration keys of shufd, and the help topics and exit statuses of
shufctl.

    tests/options.py SHUFCTL SHUFD SHUF_QUALITY
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STANDARD = {"--help", "--usage", "--version"}
wrong = []


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def options(text):
    """The long options of argp's help that have a line of their own."""
    return set(re.findall(r"^ +(?:-., |    )(--[a-z][a-z-]*)", text, re.MULTILINE)) - STANDARD


def manual_options(text):
    return {f"-{o}" for o in re.findall(r"(?:Fl|,) (-[a-z][a-z-]*)", text)} - STANDARD


def section(page, name):
    return re.search(rf"^\.Sh {name}$(.*?)(?=^\.Sh |\Z)", page, re.MULTILINE | re.DOTALL).group(1)


def compare(where, printed, described):
    for name in sorted(printed - described):
        wrong.append(f"{where}: {name} is in the program and not in the manual")
    for name in sorted(described - printed):
        wrong.append(f"{where}: {name} is in the manual and not in the program")


def verbs_of(program):
    overview = output(program, "--help").split("\nTopics:")[0]
    return set(re.findall(r"^  ([a-z]+) ", overview, re.MULTILINE)) - {"help"}


def items(text):
    return manual_options(" ".join(re.findall(r"^\.It (.*)$", text, re.MULTILINE)))


def compare_verbs(program, page):
    """Each verb with its synopsis, and all of them with the explained options."""
    blocks = re.split(r"^\.Nm\n\.Cm ", section(page, "SYNOPSIS"), flags=re.MULTILINE)[1:]
    synopsis = {block.split("\n")[0].split()[0]: block for block in blocks}
    compare("shufctl, verbs", verbs_of(program) | {"help"}, set(synopsis))
    used = set()
    for verb in sorted(verbs_of(program)):
        printed = options(output(program, verb, "--help"))
        compare(f"shufctl {verb}", printed, manual_options(synopsis.get(verb, "")))
        used |= printed
    compare("shufctl, options explained", used, items(page))


def compare_names(program, page):
    """The options of all verbs with those that the page names anywhere."""
    used = set()
    for verb in verbs_of(program):
        used |= options(output(program, verb, "--help"))
    own = re.sub(r"^\.Dl.*$", "", page, flags=re.MULTILINE)
    compare("shuf-quality", used, manual_options(own))


def main():
    shufctl, shufd, quality = sys.argv[1:]
    pages = {n: (ROOT / "docs" / n).read_text() for n in ("shufctl.1", "shufd.8", "shuf-quality.1")}
    compare_verbs(shufctl, pages["shufctl.1"])
    compare_names(quality, pages["shuf-quality.1"])

    daemon = options(output(shufd, "--help"))
    compare("shufd", daemon, items(section(pages["shufd.8"], "DESCRIPTION")))
    keys = set(re.findall(r"^([a-z_]+) =", output(shufd, "--no-config", "--print-config"), re.MULTILINE))
    listed = re.search(r"^The keys are\n(.*?)^\.Nm", pages["shufd.8"], re.MULTILINE | re.DOTALL).group(1)
    compare("shufd, keys", keys, set(re.findall(r"[a-z_]{5,}", listed.replace(".Cm", ""))))

    topics = re.findall(r"^  ([a-z-]+) ", output(shufctl, "help").split("\nTopics:")[1], re.MULTILINE)
    for topic in topics:
        if not output(shufctl, "help", topic).strip():
            wrong.append(f"shufctl help {topic}: is empty")
        if f".Cm {topic}" not in pages["shufctl.1"]:
            wrong.append(f"shufctl, topics: {topic} is not in the manual")
    codes = set(re.findall(r"^ *(\d+)  ", output(shufctl, "help", "exit-status"), re.MULTILINE))
    compare("shufctl, exit status", codes,
            set(re.findall(r"^\.It (\d+)$", section(pages["shufctl.1"], "EXIT STATUS"), re.MULTILINE)))
    for text in wrong:
        print(text, file=sys.stderr)
    print(f"{len(topics)} topics, {len(codes)} exit statuses, {len(keys)} keys compared")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
