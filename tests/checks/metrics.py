#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the daemon's table of metrics with docs/metrics.md, the dashboard and the alert rules. The last two
may use only metrics and labels that the daemon has. If the machine has promtool, it must find no error.

    tests/checks/metrics.py TABLE-PROGRAM [--write]

--write replaces the table in the document.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "dashboards"
DOCUMENT = ROOT / "docs/metrics.md"
SCRAPED = {"instance", "job", "daemon", "le"}  # labels that the scrape adds, so no row of the table has them
# node_exporter reads the daemon's file and has metrics with these names itself. It drops samples of
# the file if their help text differs from its own, so the daemon must use the texts of
# node_exporter.
HELP_OF_GO = {
    "process_start_time_seconds": "Start time of the process since unix epoch in seconds.",
    "process_cpu_seconds_total": "Total user and system CPU time spent in seconds.",
    "process_resident_memory_bytes": "Resident memory size in bytes.",
}
wrong = []


def check_document(table, writes):
    text = DOCUMENT.read_text()
    begin, end = text.index("| metric |"), text.index("\n\n", text.index("| metric |")) + 1
    if writes:
        DOCUMENT.write_text(text[:begin] + table + text[end:])
    elif text[begin:end] != table:
        wrong.append(f"{DOCUMENT}: its table differs from daemon/handlers/metrics.def; run:\n    {' '.join(sys.argv)} --write")


def known_metrics(table):
    """For each name of a series, its labels."""
    known = {}
    wrong.extend(f"{name}: expected the help '{text}'" for name, text in HELP_OF_GO.items()
                 if not re.search(rf"^\| `{name}` .*\| {re.escape(text)} \|$", table, re.MULTILINE))
    for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \| \S+ \| ([^|]*) \|", table, re.MULTILINE):
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        known.update({name + suffix: set(re.findall(r"\w+", labels)) for suffix in suffixes})
    return known


def check(where, expression, known):
    names = re.findall(r"\b(?:shufd|process)_\w+", expression)
    if not names and "up{" not in expression:
        wrong.append(f"{where}: no metric in {expression}")
    for name, selector in re.findall(r"\b((?:shufd|process)_\w+)(\{[^}]*\})?", expression):
        if name not in known:
            wrong.append(f"{where}: the daemon has no metric {name}")
            continue
        if "uid" in known[name]:
            wrong.append(f"{where}: {name} has rows of users, which neither HTTP nor the file has")
        for label in set(re.findall(r"(\w+)\s*(?:=|!=|=~|!~)\s*\"", selector)) - SCRAPED - known[name]:
            wrong.append(f"{where}: {name} has no label {label}")


def promtool(*arguments):
    if not shutil.which("promtool"):
        print("promtool", *arguments, "skipped: there is no promtool (Debian: prometheus)")
        return
    result = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
    if result.returncode:
        wrong.append(f"promtool {' '.join(map(str, arguments))}: {result.stdout}{result.stderr}")


def main():
    table = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
    check_document(table, "--write" in sys.argv)
    known = known_metrics(table)
    dashboard = json.loads((DASHBOARDS / "shufd.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            check(panel["title"], target["expr"], known)
    alerts = (DASHBOARDS / "alerts.yml").read_text()
    for name, expression in re.findall(r"alert: (\w+)\n +expr: (.*?)\n +(?:for|labels):", alerts, re.DOTALL):
        check(name, expression, known)
    if len(known) < 30 or len(dashboard["panels"]) < 10 or alerts.count("alert:") < 5:
        wrong.append("expected at least 30 metrics, 10 panels and 5 alerts")
    tested = (DASHBOARDS / "alerts_test.yml").read_text()
    for name in re.findall(r"alert: (\w+)", alerts):
        if f"alertname: {name}\n" not in tested:
            wrong.append(f"{name}: alerts_test.yml never expects it")
    promtool("check", "rules", DASHBOARDS / "alerts.yml")
    promtool("test", "rules", DASHBOARDS / "alerts_test.yml")
    for text in wrong:
        print(text, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
