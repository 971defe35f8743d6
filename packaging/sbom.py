#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the SBOM of a release as SPDX 2.3: its files, the libraries that they contain, and the packages that they need.

    sbom.py VERSION COMMIT DIRECTORY

The libraries in wheels are packages of the root SHUF_WHEEL_ROOT (packaging/wheel-root).
"""
import datetime
import email
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

# Debian packages of the root that the wheels of shufd contain, and their licences.
IN_WHEELS = {
    "libuv1-dev": "MIT",
    "libprotobuf-c-dev": "BSD-2-Clause",
    "libinih-dev": "BSD-3-Clause",
    "libjansson-dev": "MIT",
    "libgomp1": "GPL-3.0-or-later WITH GCC-exception-3.1",
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def needs_of(path):
    """The names of the packages that a file needs, without those of shufd."""
    if path.suffix == ".deb":
        names = re.findall(r"(?:^|[,|]) *([a-z0-9.+-]+)", run("dpkg-deb", "--field", path, "Depends"))
    elif path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            lines = email.message_from_string(wheel.read(metadata).decode()).get_all("Requires-Dist", [])
        names = [re.match(r"[\w.-]+", line)[0] for line in lines if "extra ==" not in line]
    else:
        names = []
    return sorted({name for name in names if "shuf" not in name})


def names_in(path):
    """The names of the files inside a file."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    return run("dpkg-deb", "--contents", path).split() if path.suffix == ".deb" else []


def version_in_root(name):
    root = pathlib.Path(os.environ["SHUF_WHEEL_ROOT"])
    of_name = name if (root / "var/lib/dpkg/info" / f"{name}.list").exists() else f"{name}:amd64"
    return run("dpkg-query", "--admindir", root / "var/lib/dpkg", "--show", "--showformat=${Version}", of_name)


def cuda_version():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    return re.search(r"release [\d.]+, V([\d.]+)", run(nvcc, "--version"))[1]


class Document:
    def __init__(self):
        self.packages, self.relations = {}, []

    def add(self, name, licence="NOASSERTION", **fields):
        identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        self.packages.setdefault(identifier, {
            "SPDXID": identifier, "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", **fields})
        return identifier

    def relate(self, one, kind, other):
        self.relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})


def add_file(document, product, path):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    file = document.add(path.name, "MIT", packageFileName=path.name,
                        checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
    document.relate(file, "GENERATED_FROM", product)
    for name in needs_of(path):
        document.relate(file, "DEPENDS_ON", document.add(name))
    for name, licence in IN_WHEELS.items() if path.match("shufd-*.whl") else ():
        version = version_in_root(name)
        part = document.add(name, licence, versionInfo=version)
        document.relate(file, "CONTAINS", part)
    if any("libshuf-cuda" in name for name in names_in(path)):
        document.relate(file, "CONTAINS", document.add("cuda-cudart", versionInfo=cuda_version()))


def main():
    version, commit, directory = sys.argv[1:]
    document = Document()
    product = document.add("shufd", "MIT", versionInfo=version, sourceInfo=f"commit {commit}")
    document.relate("SPDXRef-DOCUMENT", "DESCRIBES", product)
    for path in sorted(pathlib.Path(directory).iterdir()):
        add_file(document, product, path)
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    print(json.dumps({
        "spdxVersion": "SPDX-2.3", "SPDXID": "SPDXRef-DOCUMENT", "dataLicense": "CC0-1.0", "name": f"shufd-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/shufd-{version}-{commit}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: shufd-packaging-sbom.py"]},
        "packages": list(document.packages.values()), "relationships": document.relations,
    }, indent=1))  # fmt: skip


main()
