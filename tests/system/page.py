#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Extracts from a document the commands and files that an operator types, for tests/system/run.

    page.py DOCUMENT DIRECTORY

Each block of code becomes a file in DIRECTORY. ```sh becomes the script NNN.root.sh, and ```sh USER the
script NNN.USER.sh, where NNN is the line number. ```LANGUAGE NAME becomes the file files/NAME.
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
