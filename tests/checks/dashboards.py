#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the dashboard and the alert rules. They may use only metrics and labels that the daemon has. If
the machine has promtool, it must find no error.

    tests/checks/dashboards.py TABLE-PROGRAM
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "dashboards"
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


def known_metrics(program):
    """For each name of a series, its labels."""
    known = {}
    table = subprocess.run([program], capture_output=True, text=True, check=True).stdout
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
    known = known_metrics(sys.argv[1])
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
