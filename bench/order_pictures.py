#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/orders.svg, the pictures of docs/orders.md, from orders that the package shufd computes.

    bench/order_pictures.py            # writes docs/orders.svg
    bench/order_pictures.py --check    # fails if docs/orders.svg has other orders

Each dot is a record: its position in the order to the right, its number upwards.
"""
import pathlib
import sys

import numpy as np

from shufd.local import Mixture, Permutation, Weighted, weighted_sample

PICTURE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "orders.svg"

N, CHUNK, SEED = 240, 20, 7

# Pixels.
COLUMNS, SIDE, GAP, MARGIN, TITLE = 3, 240, 40, 16, 44

STYLE = """
text { font: 12px -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 14px; font-weight: 600 }
.note { fill: #59636e }
.page { fill: #ffffff }
path { fill: none; stroke-width: 3; stroke-linecap: round }
.a { stroke: #0969da }
.b { stroke: #bf8700 }
.c { stroke: #1a7f37 }
.line { stroke: #d1d9e0; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.note { fill: #9aa4af }
.page { fill: #0d1117 }
.a { stroke: #4493f8 }
.b { stroke: #d29922 }
.c { stroke: #3fb950 }
.line { stroke: #3d444d }
}
"""


def plain(records):
    return [("a", np.arange(len(records)), np.asarray(records))]


def mixture():
    """Three sources one above the other, with other weights from the middle on."""
    sizes = [120, 80, 40]
    places = Mixture(sizes, [6, 3, 1], seed=SEED, block=20, stages=[(N // 2, [2, 3, 5])]).places(0, N)
    heights = places.record + np.cumsum([0, *sizes[:-1]])[places.source]
    return [(name, np.flatnonzero(places.source == i), heights[places.source == i]) for i, name in enumerate("abc")]


def weights():
    """The weight of a record is in proportion to its number."""
    return np.arange(1, N + 1, dtype=np.float64)


def panels():
    """Title, note, heights of lines, dots."""
    chunks = range(CHUNK, N, CHUNK)
    return [
        ("Uniform", "reads anywhere", [], plain(Permutation(N, SEED).range(0, N))),
        ("Chunks in random order", "window = 1: one open chunk", chunks,
         plain(Permutation(N, SEED, chunk=CHUNK, window=1).range(0, N))),
        ("Windowed", "window = 4: four open chunks", chunks,
         plain(Permutation(N, SEED, chunk=CHUNK, window=4).range(0, N))),
        ("Mixture", "weights 6 : 3 : 1, then 2 : 3 : 5", [120, 200], mixture()),
        ("Weighted draws", "a weight grows with the number", [], plain(Weighted(weights(), SEED)[:N])),
        ("Weighted sample", "the same weights, without replacement", [], plain(weighted_sample(weights(), N, SEED))),
    ]  # fmt: skip


def draw_panel(x, y, title, note, lines, dots):
    bottom = y + TITLE + SIDE
    parts = [f'<text class="title" x="{x}" y="{y + 16}">{title}</text>', f'<text class="note" x="{x}" y="{y + 33}">{note}</text>']
    edges = "".join(f"M{x} {bottom - height}h{SIDE}" for height in (0, *lines, SIDE))
    parts.append(f'<path class="line" d="{edges}M{x} {bottom - SIDE}v{SIDE}M{x + SIDE} {bottom - SIDE}v{SIDE}"/>')
    for kind, positions, heights in dots:
        path = "".join(f"M{x + int(p)} {bottom - 1 - int(h)}h0" for p, h in zip(positions, heights))
        parts.append(f'<path class="{kind}" d="{path}"/>')
    return parts


def draw():
    drawn = panels()
    rows = -(-len(drawn) // COLUMNS)
    width = 2 * MARGIN + COLUMNS * SIDE + (COLUMNS - 1) * GAP
    height = MARGIN + rows * (TITLE + SIDE + MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "<!-- Drawn by bench/order_pictures.py; do not edit. -->",
        "<title>Orders of 240 records: the number of the record at each position</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
    ]
    for i, panel in enumerate(drawn):
        parts += draw_panel(MARGIN + i % COLUMNS * (SIDE + GAP), MARGIN + i // COLUMNS * (TITLE + SIDE + MARGIN), *panel)
    return "\n".join([*parts, "</svg>", ""])


if sys.argv[1:] not in ([], ["--check"]):
    raise SystemExit(f"{' '.join(sys.argv[1:])}: expected --check, or nothing")
if not sys.argv[1:]:
    PICTURE.write_text(draw(), encoding="utf-8")
elif PICTURE.read_text(encoding="utf-8") != draw():
    raise SystemExit("docs/orders.svg: has other orders; run bench/order_pictures.py")
