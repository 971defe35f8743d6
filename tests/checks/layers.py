#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the includes of the product's code against the section "Layers" of docs/architecture.md. The
section must list each folder with code, and each *arrow*: an include from one folder to another. Neither
folders nor modules may include each other in a circle. A module is a source file together with the header
and the other files of the same name.

    tests/checks/layers.py [--list]   --list prints all arrows
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = {".c", ".h", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
PUBLIC = ["client/include", "kernels/inline"]  # the folders of headers in <...>; the others are the system's
ROW = re.compile(r"^    (\S+) ->(.*)$", re.MULTILINE)


def allowed():
    """For each folder, the folders that its files may include."""
    text = (ROOT / "docs/architecture.md").read_text()
    section = re.search(r"^## Layers$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not section:
        sys.exit('docs/architecture.md: no section "Layers"')
    return {folder: set(rest.split()) for folder, rest in ROW.findall(section.group(1))}


def sources(folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in CODE and path.is_file():
                yield path.relative_to(ROOT)


def folder_of(path, folders):
    """The layer of the file: the deepest listed folder that contains it."""
    for parent in path.parents:
        if str(parent) in folders:
            return str(parent)
    raise ValueError(path)


def common(a, b):
    """The number of folders that both paths begin with."""
    pairs = list(zip(a.parent.parts, b.parent.parts))
    return next((i for i, (x, y) in enumerate(pairs) if x != y), len(pairs))


def resolve(name, path, known, roots):
    """The file of the tree that the include names, or None. If several roots have such a file, the one
    closest to the including file."""
    found = [p for p in (pathlib.Path(root, name) for root in roots) if p in known]
    found = sorted(set(found), key=lambda p: (p.parent != path.parent, -common(p, path)))
    if len(found) > 1 and found[0].parent != path.parent:
        if common(found[0], path) == common(found[1], path):
            sys.exit(f"{path}: {name} can be {found[0]} or {found[1]}")
    return found[0] if found else None


def circles(arrows):
    """Strongly connected components of more than one node (Tarjan, 1972)."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for other in arrows.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on.discard(component[-1])
            if len(component) > 1:
                found.append(sorted(map(str, component)))

    for node in list(arrows):
        if node not in index:
            visit(node)
    return found


def main():
    sys.setrecursionlimit(10000)
    folders = allowed()
    known = set(sources(folders))
    roots = [".", *(str(pathlib.Path(f).parent) if f.endswith("/shuf") else f for f in folders)]
    tops = {f.split("/")[0] for f in folders}
    roots += tops - set(roots)
    modules, layers, places = {}, {}, {}
    for path in sorted(known):
        for quote, name in INCLUDE.findall((ROOT / path).read_text()):
            other = resolve(name, path, known, [path.parent, *roots] if quote == '"' else PUBLIC)
            if other is None:
                continue
            if other.with_suffix("") != path.with_suffix(""):
                modules.setdefault(path.with_suffix(""), set()).add(other.with_suffix(""))
            here, there = folder_of(path, folders), folder_of(other, folders)
            if here != there:
                layers.setdefault(here, set()).add(there)
                places.setdefault((here, there), f"{path} includes {other}")
    wrong = [
        f"{here} -> {there}: docs/architecture.md allows no such arrow; {place}"
        for (here, there), place in sorted(places.items())
        if there not in folders[here]
    ]
    wrong += [f"{path}: in no layer of docs/architecture.md" for path in sorted(set(sources(tops)) - known)]
    wrong += ["folders in a circle: " + ", ".join(c) for c in circles(layers)]
    wrong += ["modules in a circle: " + ", ".join(c) for c in circles(modules)]
    if "--list" in sys.argv:
        for here in sorted(layers):
            print(f"    {here} -> {' '.join(sorted(layers[here]))}")
    print(f"{len(known)} files, {len(folders)} layers, {len(places)} arrows, {len(wrong)} wrong")
    for text in wrong:
        print(text, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
