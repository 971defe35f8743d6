# SPDX-License-Identifier: MIT
"""The goals of the samplers, and the figures of a report that meet or miss them.

The figures of n = 1e9 are those of the slowest rank, both in one rank alone and in all ranks at once.
"""

import statistics

# figure at 1e9, title, unit, divisor, limit; rates must reach the limit, all else must not exceed it
LIMITS = [
    ("new", "1e9: first index of a new epoch", "ms", 1e-3, 1),
    ("resume", "1e9: resume at half", "ms", 1e-3, 1),
    ("single", "1e9: one index at a time", "M/s", 1e6, 10),
    ("batches", "1e9: batches of 1024 as arrays", "M/s", 1e6, 150),
]


def line(title, value, unit, limit, at_least):
    if value is None:
        return f"    {'not measured':14}{title}"
    met = value >= limit if at_least else value <= limit
    return f"    {'met' if met else 'MISSED':14}{title:48}{value:10.3g} {unit}, {'at least' if at_least else 'at most'} {limit:g}"


def worst(found, name, at_least):
    """The figure of the slowest rank by wall time in all modes, or None."""
    ranks = [pair[0] for mode in ("alone", "together") for pair in found.get(mode, {}).get(name) or ()]
    return (min if at_least else max)(ranks) if ranks else None


def call_goal(files):
    pairs = next((f["call"] for f in files if "call" in f), None)
    more = pairs and statistics.median(python - c for c, _, python, _ in pairs)
    return line("call of n = 1000: more than in C", more, "us", 5, False)


def loader_goals(files):
    """The median over the turns, so that one turn beside another program does not decide."""
    pairs = next((f["pairs"] for f in files if "pairs" in f), {})
    for name, workers in (("loader0", 0), ("loader2", 2)):
        ratio = statistics.median(ours / torch for ours, torch in pairs[name]) if name in pairs else None
        yield line(f"1e6: DataLoader, {workers} workers: rate over torch's", ratio, "times", 1, True)


def goals_of(files):
    """Lines of text."""
    large = next((f for f in files if f.get("peer") == "shufd" and f["n"] == 10**9), {})
    yield "goals:"
    for name, title, unit, divisor, limit in LIMITS:
        value = worst(large, name, unit == "M/s")
        yield line(title, value and value / divisor, unit, limit, unit == "M/s")
    private = large.get("private")
    yield line("1e9: private memory of a rank", private and private / 2**20, "MiB", 1, False)
    yield call_goal(files)
    yield from loader_goals(files)
