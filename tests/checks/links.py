#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the documents. Each relative link in a *.md file must name an existing file and heading, and
docs/index.md, if it exists, must have a link to every document. A name such as shuf_copy or SHUF_MEMFD must
be a word of the sources, if they lie beside the documents.

    tests/checks/links.py [ROOT]
"""
import os
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"^    .*$|`[^`\n]*`", re.MULTILINE)  # an indented line, or code within a line
NAME = re.compile(r"\b(?:shuf|SHUF|SHUFD)_[A-Za-z0-9_]*[A-Za-z0-9]\b(?!\(\d\)|\.\d)")  # a manual page may have any name
SOURCES = ("CMakeLists.txt", "bench", "cli", "client", "cmake", "core", "daemon", "kernels", "proto", "tests", "tools")
SOURCE = {".c", ".cmake", ".cu", ".cuh", ".def", ".h", ".in", ".inc", ".proto", ".py", ".sh", ".txt", ""}
SKIPPED = {"build", ".git", ".cache"}


def documents(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (pathlib.Path(folder, name) for name in sorted(files) if name.endswith(".md"))


def anchors(text):
    """The names of the headings in links, as a forge such as GitHub makes them. A repeated name gets a number, from 1 on."""
    names, counts = set(), {}
    for heading in HEADING.findall(FENCED.sub("", text)):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = counts[name] = counts.get(name, -1) + 1
        names.add(f"{name}-{count}" if count else name)
    return names


def links(page, text):
    """Each relative link as (its text, the file that it names, the heading)."""
    for link in LINK.findall(CODE.sub("", FENCED.sub("", text))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        yield link, (page.parent / path).resolve() if path else page, anchor


def source_names(root):
    """The names in the sources below `root`; without sources an empty set."""
    names = set()
    for entry in SOURCES:
        for path in (root / entry, *(root / entry).rglob("*")):
            if path.suffix in SOURCE and path.is_file() and "results" not in path.parts:
                names.update(NAME.findall(path.read_text(encoding="utf-8", errors="replace")))
    return names


def faults(root):
    names = source_names(root)
    texts = {page.resolve(): page.read_text(encoding="utf-8") for page in documents(root)}
    index = root / "docs" / "index.md"
    known = {index}
    for page, text in texts.items():
        where = page.relative_to(root)
        if page.name != "CHANGELOG.md" and names:
            for name in sorted(set(NAME.findall(text)) - names - {"shuf_NAME"}):
                yield f"{where}: {name}: the sources have no such name"
        for link, target, anchor in links(page, text):
            if page == index:
                known.add(target)
            if not target.exists():
                yield f"{where}: {link}: there is no such file"
            elif anchor and (target not in texts or anchor not in anchors(texts[target])):
                yield f"{where}: {link}: there is no such heading"
    for page in sorted(texts) if index in texts else ():
        if page not in known:
            yield f"docs/index.md: no link to {page.relative_to(root)}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    found = list(faults(root.resolve()))
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
