#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/speed.svg, the README's picture, from the JSON in a report of bench/results.

    bench/speed.py            # writes docs/speed.svg
    bench/speed.py --check    # fails if docs/speed.svg does not match the reports

After a new report: change REPORT below, run it, and commit the picture with the report. It needs
Python's standard library alone. This file contains no figures.
"""
import json
import pathlib
import re
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "speed.svg"
REPORT = "bench/results/2026-11-22-h200-sound.txt"

# A panel: title, unit, output in the report, n, and its bars: label, row of the report, class.
# The classes are `ours` (shufd), `peer`, and `limit`: the GPU's memory and nothing else.
PANELS = [
    ("Permutation of {n} indices, u32", "values", "permute_cuda.json", 10**9, [
        ("primefold", "primefold", "ours"),
        ("philox24", "philox24", "ours"),
        ("thrust::shuffle_copy", "thrust::shuffle_copy", "peer"),
        ("memset", "memset", "limit"),
    ]),
    ("Shuffle of {n} records of 8 bytes", "records", "shuffle_cuda.json", 2**29 + 1, [
        ("primefold", "primefold, 8 bytes", "ours"),
        ("philox24", "philox24, 8 bytes", "ours"),
        ("gather, indices in memory", "gather by indices in memory, 8 bytes", "peer"),
        ("thrust::shuffle_copy", "thrust::shuffle_copy, 8 bytes", "peer"),
        ("copy", "copy, 8 bytes", "limit"),
    ]),
    ("{n} normal numbers, f32", "values", "stream_cuda.json", 2**30, [
        ("table", "gauss f32", "ours"),
        ("box-muller", "box-muller f32", "ours"),
        ("cuRAND Philox, dynamic", "cuRAND Philox, normal f32, dynamic order", "peer"),
        ("cuRAND Philox, default", "cuRAND Philox, normal f32", "peer"),
        ("torch normal_", "torch normal_ f32", "peer"),
        ("memset", "memset, 4 bytes a value", "limit"),
    ]),
    ("{n} normal numbers, f64", "values", "stream_cuda.json", 2**30, [
        ("table", "gauss f64", "ours"),
        ("box-muller", "box-muller f64", "ours"),
        ("cuRAND Philox, dynamic", "cuRAND Philox, normal f64, dynamic order", "peer"),
        ("cuRAND Philox, default", "cuRAND Philox, normal f64", "peer"),
        ("torch normal_", "torch normal_ f64", "peer"),
        ("memset", "memset, 8 bytes a value", "limit"),
    ]),
]

LEGEND = [("ours", "shufd"), ("peer", "peer"), ("limit", "limit of the memory: the same bytes, written or copied")]

# Pixels.
COLUMNS, WIDTH, PANEL = 2, 880, 424
MARGIN, LABELS, BARS, ROW, BAR = 16, 166, 194, 24, 15
HEAD, FOOT, TITLE, GAP = 44, 34, 46, 20

# Both colour schemes set a background, so the text is readable on any page.
STYLE = """
text { font: 12px -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 14px; font-weight: 600 }
.note { fill: #59636e }
.page { fill: #ffffff }
.ours { fill: #0969da }
.peer { fill: #9aa3ad }
.limit { fill: none; stroke: #59636e; stroke-dasharray: 3 2 }
.axis { stroke: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.note { fill: #9aa4af }
.page { fill: #0d1117 }
.ours { fill: #4493f8 }
.peer { fill: #6e7681 }
.limit { stroke: #9aa4af }
.axis { stroke: #9aa4af }
}
"""


def load(name):
    """The output that the report has under this name."""
    parts = re.split(r"^==> (.+) <==$", (ROOT / REPORT).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return json.loads(parts[parts.index(name) + 1])


def rate(report, what, n):
    """The rate in 10^9 a second, from the median time of the row with this name and size."""
    rows = [row for row in report["results"] if row["what"] == what and row["n"] == n]
    if len(rows) != 1:
        raise SystemExit(f"{REPORT}: {len(rows)} rows have the name {what!r} and n = {n}, expected 1")
    return rows[0]["items"] / rows[0]["median_ns"]


def name_of(n):
    """10^9, 2^30, 2^29 + 1."""
    for base in (10, 2):
        for rest in (0, 1):
            power = 1
            while base**power < n - rest:
                power += 1
            if base**power == n - rest:
                return f"{base}^{power}" + (" + 1" if rest else "")
    return str(n)


def three_digits(value):
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def text(x, y, words, kind=None, anchor=None):
    attributes = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x}" y="{y}"{attributes}>{escape(words)}</text>'


def bar(x, y, width, kind):
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width:.1f}" height="{BAR}"/>'


def panel(x, y, title, unit, bars):
    """bars: label, rate, class."""
    most = max(value for _, value, _ in bars)
    left = x + LABELS
    parts = [text(x, y + 14, title, "title"), text(x, y + 31, f"10^9 {unit} a second", "note")]
    for i, (label, value, kind) in enumerate(bars):
        top = y + TITLE + i * ROW
        width = BARS * value / most
        parts.append(text(left - 8, top + 12, label, anchor="end"))
        parts.append(bar(left, top, width, kind))
        parts.append(text(f"{left + width + 6:.1f}", top + 12, three_digits(value)))
    bottom = y + TITLE + len(bars) * ROW - (ROW - BAR) + 3
    parts.append(f'<path class="axis" d="M{left} {y + TITLE - 3}V{bottom}"/>')
    return parts


def legend(y):
    parts, x = [], MARGIN
    for kind, words in LEGEND:
        parts.append(bar(x, y, 22, kind))
        parts.append(text(x + 29, y + 12, words))
        x += 29 + 7 * len(words) + 24
    return parts


def source(reports):
    """The line below the panels. All reports must have the same device, driver and commit."""
    facts = {(r["device"], r["driver"], r["commit"], r["date"][:10]) for r in reports}
    if len(facts) != 1:
        raise SystemExit(f"{REPORT}: reports of several devices or commits: {sorted(facts)}, expected one")
    device, driver, commit, date = facts.pop()
    return f"One {device}, {driver}, commit {commit}, {date}. Medians of device time. {REPORT}"


def draw():
    reports = {name: load(name) for name in sorted({p[2] for p in PANELS})}
    parts, described, y = [], [], HEAD
    for first in range(0, len(PANELS), COLUMNS):
        row = PANELS[first:first + COLUMNS]
        for column, (title, unit, name, n, bars) in enumerate(row):
            title = title.format(n=name_of(n))
            rates = [(label, rate(reports[name], what, n), kind) for label, what, kind in bars]
            parts += panel(MARGIN + column * (PANEL + GAP // 2), y, title, unit, rates)
            figures = ", ".join(f"{label} {three_digits(value)}" for label, value, _ in rates)
            described.append(f"{title}, 10^9 {unit} a second: {figures}.")
        y += TITLE + max(len(p[4]) for p in row) * ROW + GAP
    height = y + FOOT - GAP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img">',
        "<!-- Drawn by bench/speed.py; do not edit. -->",
        "<title>Speed of shufd and of its peers on a GPU</title>",
        f"<desc>{escape(' '.join(described))}</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>',
        *legend(14),
        *parts,
        text(MARGIN, height - 12, source(reports.values()), "note"),
        "</svg>",
    ]) + "\n"


def main(arguments):
    if arguments not in ([], ["--check"]):
        raise SystemExit(__doc__)
    drawn = draw().encode()
    if not arguments:
        PICTURE.write_bytes(drawn)
    elif not PICTURE.exists() or PICTURE.read_bytes() != drawn:
        raise SystemExit(f"{PICTURE.relative_to(ROOT)}: does not match the reports; run bench/speed.py")


if __name__ == "__main__":
    main(sys.argv[1:])
