#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the man pages: groff has no warning about any page, and the pages of section 3 describe each
public function once, with the parameters that the header gives it.

    man.py HEADER...
"""
import pathlib
import re
import shutil
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"


def declared(headers):
    """Function: its return type and parameters."""
    text = "".join(pathlib.Path(header).read_text() for header in headers)
    return {
        name: (returned.strip(), [" ".join(one.split()) for one in parameters.split(",")])
        for returned, name, parameters in re.findall(
            r"^SHUF_API ([^(;]*?)(shuf_[a-z_]+)\(([^)]*)\);", text, re.MULTILINE
        )
    }


def described(page):
    """The functions of the synopsis, as above."""
    return {
        name: (returned, re.findall(r'^\.Fa "(.*)"$', parameters, re.MULTILINE))
        for returned, name, parameters in re.findall(
            r"^\.Ft ([^\n]*)\n\.Fo (\S+)\n(.*?)^\.Fc$", page.read_text(), re.MULTILINE | re.DOTALL
        )
    }


def warnings(page):
    run = subprocess.run(
        ["groff", "-ww", "-mdoc", "-z", "-Tutf8", str(page)], capture_output=True, text=True
    )
    return run.stderr


def main():
    faults, found = [], {}
    for page in sorted((DOCS / "man").glob("*.3")):
        names = set(re.findall(r"^\.Nm (shuf_\S+)", page.read_text(), re.MULTILINE))
        functions = described(page)
        if not set(functions) <= names:
            faults.append(f"{page.name}: section NAME lacks {set(functions) - names}")
        for name in set(functions) & set(found):
            faults.append(f"{page.name}: {name} is described twice")
        found.update(functions)
    wanted = declared(sys.argv[1:])
    for name in sorted(set(wanted) | set(found)):
        if wanted.get(name) != found.get(name):
            faults.append(f"{name}: the pages have {found.get(name)}, the header {wanted.get(name)}")
    if shutil.which("groff"):
        pages = [p for s in "138" for p in sorted(DOCS.rglob(f"*.{s}"))]
        faults += filter(None, map(warnings, pages))
    print("\n".join(faults) or f"{len(found)} functions in the man pages, 0 faults")
    sys.exit(1 if faults or not found else 0)


main()
