#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes a document apart into what an operator types, for tests/system/run.

    page.py DOCUMENT DIRECTORY

A block of code becomes a file of DIRECTORY: ```sh and ```sh USER the scripts NNN.root.sh and
NNN.USER.sh, where NNN is the line; ```LANGUAGE NAME the file files/NAME.
"""
import pathlib
import re
import sys

FENCE = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

text = pathlib.Path(sys.argv[1]).read_text()
directory = pathlib.Path(sys.argv[2])
(directory / "files").mkdir(parents=True)
for block in FENCE.finditer(text):
    language, name, body = block.groups()
    line = text.count("\n", 0, block.start()) + 2
    path = f"{line:03}.{name or 'root'}.sh" if language == "sh" else f"files/{name}"
    (directory / path).write_text(body)
