#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the manual pages. groff must have no warning about a compiled page, and SEE ALSO may name only
existing pages. The pages of section 3 must describe each public function once, with the type and the
parameters of the header; so must they each inline function for single values. They must also describe each public type with its definition, and each status.

    man.py BUILD HEADER...
"""
import pathlib
import re
import shutil
import subprocess
import sys

MAN = pathlib.Path(__file__).resolve().parents[2] / "docs/man"
INLINE = MAN.parent.parent / "kernels/inline/shuf"

# The other inline functions of shuf/*.h serve the loops of the backends.
SINGLE_VALUES = re.compile(
    r"shuf_(primefold|philox24|lcg|gauss|box_muller|uniform|exponential|bernoulli|integers)_(make(_keyed|_inverse)?|forward|inverse|b?f\d\d|u\d\d)"
    r"|shuf_domain_bits|shuf_key_of_seed"
)
EXTERNAL_PAGES = re.compile(r"(dieharder|fork|nvidia-persistenced|sd_listen_fds|sd_notify|systemctl|systemd\.\w+)\(")


def functions(text):
    """For each function, its return type and parameters."""
    return {
        name: (returned.strip(), [" ".join(one.split()) for one in parameters.split(",")])
        for returned, name, parameters in re.findall(
            r"^(?:SHUF_API )?([a-z][^(;\n]*?)(shuf_[a-z0-9_]+)\(([^)]*)\);", text, re.MULTILINE
        )
    }


def declared_functions(header):
    return functions("".join(re.findall(r"^SHUF_API [^;]*;\n", pathlib.Path(header).read_text(), re.MULTILINE)))


def inline_functions():
    definitions = re.findall(
        r"^(?:SHUF_FUNCTION|static inline) (\w[^(){};]*\([^)]*\))\n\{",
        "".join(header.read_text() for header in sorted(INLINE.glob("*.h"))),
        re.MULTILINE,
    )
    found = functions("".join(f"{definition};\n" for definition in definitions))
    return {name: value for name, value in found.items() if SINGLE_VALUES.fullmatch(name)}


def section(page, name):
    found = re.search(rf"^# {name}$(.*?)(?=^# |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def warnings(page):
    run = subprocess.run(
        ["groff", "-t", "-ww", "-man", "-z", "-Tutf8", str(page)], capture_output=True, text=True
    )
    return run.stderr


def broken_references(page):
    """References to pages that exist neither in shufd nor in OTHERS."""
    for name, number in re.findall(r"\*([a-z_.@-]+)\*\((\d)\)", page.read_text()):
        named = any(re.search(rf"\b{name}\b", section(p, "NAME")) for p in MAN.glob(f"*.{number}.scd"))
        if not named and not EXTERNAL_PAGES.match(f"{name}("):
            yield f"{page.name}: {name}({number}): there is no such page"


def documented_functions(pages):
    """The functions that the pages describe, and the faults of the pages."""
    found, faults = {}, []
    for page in pages:
        names = set(re.findall(r"shuf_\w+", section(page, "NAME")))
        own = functions(section(page, "SYNOPSIS") + section(page, "INLINE FUNCTIONS"))
        if not set(own) <= names:
            faults.append(f"{page.name}: section NAME lacks {set(own) - names}")
        faults += [f"{page.name}: {name} is described twice" for name in set(own) & set(found)]
        found.update(own)
    return found, faults


def types(text):
    """The public types whose definition a page can show: all except those that a macro makes from a table."""
    return set(re.findall(r"^typedef \w+ (?:\w+ )?\{[^}#]*\} (\w+);", text, re.MULTILINE)) | set(
        re.findall(r"^typedef \w+ \(\*(\w+)\)", text, re.MULTILINE)
    )


def undocumented_functions(pages, text):
    """Types that are not shown and named on exactly one page, and statuses that shuf(3) lacks."""
    for name in sorted(types(text)):
        shown = [p for p in pages if f"; type {name}\n" in section(p, "SYNOPSIS")]
        if len(shown) != 1 or name not in re.findall(r"\w+", section(shown[0], "NAME")):
            yield f"type {name}: expected one page with it in NAME and SYNOPSIS"
    statuses = re.findall(r"^    X\((\w+), \d+, \"[^\"]+\"\)", text, re.MULTILINE)
    listed = (MAN / "shuf.3.scd").read_text()
    yield from (f"shuf.3.scd: lacks SHUF_{name}" for name in statuses if f"SHUF_{name}" not in listed)


def main():
    build, *headers = sys.argv[1:]
    found, faults = documented_functions(sorted(MAN.glob("*.3.scd")))
    expected = {name: value for header in headers for name, value in declared_functions(header).items()}
    expected |= inline_functions()
    for name in sorted(set(expected) | set(found)):
        if expected.get(name) != found.get(name):
            faults.append(f"{name}: the pages have {found.get(name)}, the header {expected.get(name)}")
    text = "".join(pathlib.Path(header).read_text() for header in headers)
    faults += undocumented_functions(sorted(MAN.glob("*.3.scd")), text)
    for page in sorted(MAN.glob("*.scd")):
        faults += broken_references(page)
    compiled = sorted(pathlib.Path(build, "docs").glob("*.[1-8]"))
    if shutil.which("groff"):
        faults += filter(None, map(warnings, compiled))
    print("\n".join(faults) or f"{len(found)} functions, {len(compiled)} compiled pages, 0 faults")
    sys.exit(1 if faults or not found else 0)


main()
