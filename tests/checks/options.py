#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the options that each program prints with --help with those in its manual page. Each verb of
shufctl must have a page, with all its options in the synopsis and in the section OPTIONS. Also compares
the keys of shufd.conf(5), and the help topics, exit statuses and environment variables of shufctl. An option of one of
these programs that README.md or a document of docs/ names must exist.

    tests/checks/options.py SHUFCTL SHUFD SHUF_QUALITY BUILD
"""
import pathlib
import re
import subprocess
import sys

MAN = pathlib.Path(__file__).resolve().parents[2] / "docs/man"
STANDARD = {"--help", "--usage", "--version"}
# Options that documents name without their program: of cmake, dpkg, python -m venv, node_exporter, tests and tools.
FOREIGN = {"--prefix", "--force-confold", "--system-site-packages", "--collector", "--chains", "--subsets"}
# A program in a line of code, the verb, and the rest of the command.
COMMAND = r"\b(shufd|shufctl|shuf-quality)( [a-z]+)?((?: [^#|;&]*)?)"
wrong = []


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def page(name, made=MAN):
    """The source of a page, with the parts that it includes."""
    text = (MAN / f"{name}.scd").read_text() if (MAN / f"{name}.scd").exists() else ""
    if not text:
        wrong.append(f"docs/man/{name}.scd: missing")

    def part(match):
        file = MAN / "parts" / f"{match[1]}.scd"
        return (file if file.exists() else made / file.name).read_text()

    count = 1
    while count:  # a part may include another one
        text, count = re.subn(r"^; include ([a-z-]+)\n", part, text, flags=re.MULTILINE)
    return text


def options(text):
    """The long options of argp's help that have a line of their own."""
    return set(re.findall(r"^ +(?:-., |    )(--[a-z][a-z-]*)", text, re.MULTILINE)) - STANDARD


def check_order(verb, text):
    """The required options are the first ones."""
    entries = re.findall(r"^ +(?:-., |    )--[a-z].*(?:\n {20,}.*)*", text, re.MULTILINE)
    required = ["(required" in entry for entry in entries]
    if required != sorted(required, reverse=True):
        wrong.append(f"shufctl {verb} --help: another option stands before a required one")


def manual_options(text):
    return set(re.findall(r"[* ](--[a-z][a-z-]*)", text)) - STANDARD


def section(text, name):
    found = re.search(rf"^# {name}$(.*?)(?=^# |\Z)", text, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def terms(text):
    """The terms of the lists. A term is a line above an indented line."""
    return re.findall(r"^(?![\t`])(\S.*)\n\t", text, re.MULTILINE)


def items(text):
    return manual_options("\n".join(term for term in terms(text) if term.startswith("*-")))


def compare(where, printed, described):
    for name in sorted(printed - described):
        wrong.append(f"{where}: {name} is in the program, but not in the manual")
    for name in sorted(described - printed):
        wrong.append(f"{where}: {name} is in the manual, but not in the program")


def verbs_of(program):
    overview = output(program, "--help").split("\nTopics:")[0]
    return set(re.findall(r"^  ([a-z]+) ", overview, re.MULTILINE)) - {"help"}


def compare_verbs(program):
    """Compares each verb with its page, and the list of verbs in shufctl(1)."""
    verbs = verbs_of(program)
    compare("shufctl, pages", verbs, {one.name.split("-")[1].split(".")[0] for one in MAN.glob("shufctl-*.1.scd")})
    listed = re.findall(r"\*shufctl-([a-z]+)\*\(1\)", "\n".join(terms(page("shufctl.1"))))
    compare("shufctl(1), verbs", verbs, set(listed))
    for verb in sorted(verbs):
        text = page(f"shufctl-{verb}.1")
        printed_text = output(program, verb, "--help")
        check_order(verb, printed_text)
        printed = options(printed_text)
        compare(f"shufctl-{verb}(1), synopsis", printed, manual_options(section(text, "SYNOPSIS")))
        compare(f"shufctl-{verb}(1), options", printed, items(section(text, "OPTIONS")))


def compare_names(program, text):
    """Compares the options of all verbs with all options that the page names."""
    used = set()
    for verb in verbs_of(program):
        used |= options(output(program, verb, "--help"))
    own = re.sub(r"^```$.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    compare("shuf-quality", used, manual_options(re.sub(r'"[^"]*"', "", own)))


def keys_of(program):
    return re.findall(r"^([a-z_]+) =[ ]?(.*)$", output(program, "--no-config", "--print-config"), re.MULTILINE)


def key_options(program):
    return {f"--{key.replace('_', '-')}" for key, value in keys_of(program)}


def compare_keys(program, text):
    """Compares the keys and their defaults."""
    pairs = keys_of(program)
    described = re.findall(r"^\*([a-z_]+)\* = (.*)$", section(text, "KEYS"), re.MULTILINE)
    compare("shufd.conf(5)", {f"{k} = {v or '(empty)'}" for k, v in pairs}, {" = ".join(one) for one in described})
    return pairs


def compare_words(name):
    """The page has the words of the daemon's warning about keys of a socket that it does not make."""
    source = (MAN.parent.parent / "daemon/start_report.c").read_text()
    words = re.sub(r'"\s+"', "", source).partition('"has no effect, ')[2].partition('"')[0]
    pattern = re.escape(words).replace("%s", "[^;]*")
    if not words or not re.search(pattern, " ".join((MAN / f"{name}.scd").read_text().replace("*", "").split())):
        wrong.append(f"docs/man/{name}.scd: expected the words of the warning: {words}")


def compare_documents(shufctl, shufd, quality):
    """Each option after the name of a program, in code of a document, is one of this program, or of this verb. An
    option alone is one of any program."""
    known = {"shufd": options(output(shufd, "--help"))}
    for program in (shufctl, quality):
        name = pathlib.Path(program).name
        known |= {f"{name} {verb}": options(output(program, verb, "--help")) for verb in verbs_of(program)}
        known[name] = options(output(program, "--help")).union(*(known[f"{name} {verb}"] for verb in verbs_of(program)))
    every, count = set().union(*known.values()), 0
    for document in [MAN.parent.parent / "README.md", *sorted(MAN.parent.glob("*.md"))]:
        for code in re.findall(r"`([^`\n]+)`|^ {4}(.*)$", document.read_text(), re.MULTILINE):
            if (alone := re.match(r"--[a-z][a-z-]*", code[0])) and alone[0] not in every | STANDARD | FOREIGN:
                wrong.append(f"{document.name}: no program has {alone[0]}")
            for name, verb, rest in re.findall(COMMAND, code[0] or code[1]):
                of = name + verb if name + verb in known else name
                used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)) - STANDARD
                wrong.extend(f"{document.name}: {of} has no {option}" for option in sorted(used - known[of]))
                count += len(used)
    return count


def main():
    shufctl, shufd, quality, build = sys.argv[1:]
    overview = page("shufctl.1")
    compare_verbs(shufctl)
    compare_names(quality, page("shuf-quality.1"))
    printed, names = options(output(shufd, "--help")), key_options(shufd)
    compare("shufd --help, keys", names, printed & names)
    compare("shufd(8)", printed - names, items(section(page("shufd.8"), "DESCRIPTION")) - names)
    made = pathlib.Path(build, "docs/parts")
    keys = compare_keys(shufd, page("shufd.conf.5", made)) if made.exists() else []

    compare_words("shufd.conf.5")
    compare_words("shufd.service.8")
    topics = re.findall(r"^  ([a-z-]+) ", output(shufctl, "help").split("\nTopics:")[1], re.MULTILINE)
    for topic in topics:
        if not output(shufctl, "help", topic).strip():
            wrong.append(f"shufctl help {topic}: is empty")
        if f"*{topic}*" not in overview:
            wrong.append(f"shufctl, topics: {topic} is not in the manual")
    codes = set(re.findall(r"^ *(\d+)  ", output(shufctl, "help", "exit-status"), re.MULTILINE))
    compare("shufctl, exit status", codes,
            {term for term in terms(section(overview, "EXIT STATUS")) if term.isdigit()})
    variable = r"\b(?:[A-Z]+_[A-Z_]+|TMPDIR)\b"
    compare("shufctl, environment", set(re.findall(variable, output(shufctl, "help", "environment"))),
            set(re.findall(variable, section(overview, "ENVIRONMENT"))))
    used = compare_documents(shufctl, shufd, quality)
    for text in wrong:
        print(text, file=sys.stderr)
    print(f"{len(topics)} topics, {len(codes)} exit statuses, {len(keys)} keys, {used} options of documents compared")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
