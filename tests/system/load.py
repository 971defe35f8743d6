#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does the same as tests/system/load, but in Python and on one connection: requests results until
/run/load/stop exists, and logs failures.

    load.py NUMBER
"""
import pathlib
import sys

import shufd

FOLDER = pathlib.Path("/run/load")
number = sys.argv[1]
client = shufd.Client()
first = None
count = 0
while not (FOLDER / "stop").exists():
    count += 1
    try:
        client.permute(100_000, seed=1000 * int(number) + count)
        values = bytes(client.permute(3_000_000, seed=7).data)
        first = first or values
        assert values == first, "other values than before"
    except Exception as error:
        with open(FOLDER / "failed", "a") as failed:
            print(f"Python, request {count}: {error!r}", file=failed)
    written = FOLDER / f"count.{number}.new"
    written.write_text(f"{count}\n")
    written.rename(FOLDER / f"count.{number}")
