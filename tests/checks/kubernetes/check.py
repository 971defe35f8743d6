#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the manifests of packaging/kubernetes with the schema of Kubernetes, and with the image and
the daemon that they use.

    check.py SHUFD MANIFEST...

Exits with 77 if jsonschema or PyYAML is missing.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(missing)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCHEMA = {
    ("v1", "ConfigMap"): "io.k8s.api.core.v1.ConfigMap",
    ("v1", "Namespace"): "io.k8s.api.core.v1.Namespace",
    ("v1", "Pod"): "io.k8s.api.core.v1.Pod",
    ("apps/v1", "DaemonSet"): "io.k8s.api.apps.v1.DaemonSet",
}
failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)


def check_schema(schema, document, where):
    name = SCHEMA[document["apiVersion"], document["kind"]]
    validator = jsonschema.Draft7Validator({**schema, "$ref": f"#/$defs/{name}"})
    for error in validator.iter_errors(document):
        failures.append(f"{where}: {'/'.join(map(str, error.absolute_path))}: {error.message}")


def check_pod(pod, user, where):
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in pod.get("initContainers", []) + pod["containers"]:
        for mount in container["volumeMounts"]:
            expect(mount["name"] in volumes, f"{where}: no volume {mount['name']}")
        security = container["securityContext"]
        expect(security["capabilities"]["drop"] == ["ALL"], f"{where}: {container['name']} keeps capabilities")
        expect(security["readOnlyRootFilesystem"], f"{where}: {container['name']} may write to its image")
    paths = [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]
    expect(paths == ["/run/shufd"], f"{where}: paths of the node {paths}, expected only /run/shufd")
    text = str(pod)
    expect(f"'{user}'" in text or f"[{user}]" in text, f"{where}: the user or group {user} of the image is missing")
    expect(int(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]) > 0, f"{where}: no GPU")


def check_daemon(pod, user):
    container = pod["containers"][0]
    expect(container["securityContext"].get("runAsUser") == user, f"DaemonSet: its user is not the image's, {user}")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        expect(container[probe]["exec"]["command"] == ["shufctl", "status"], f"DaemonSet: {probe}")
    drain = re.search(r"^drain_timeout = (\d+)s", (ROOT / "config/shufd.conf").read_text(), re.MULTILINE)
    expect(pod["terminationGracePeriodSeconds"] > int(drain[1]), "DaemonSet: it ends before drain_timeout")


def check_configuration(shufd, text):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "shufd.conf")
        path.write_text(text)
        command = [shufd, "--config", path, "--check", "--backend", "cpu", "--socket", f"{directory}/s"]
        done = subprocess.run(command, capture_output=True, text=True)
    expect(done.returncode == 0, f"ConfigMap: {done.stderr}")


def main():
    shufd, *manifests = sys.argv[1:]
    schema = yaml.safe_load((ROOT / "tests/checks/kubernetes/schema.json").read_text())
    user = int(re.search(r"^ARG ID=(\d+)", (ROOT / "packaging/oci/Containerfile").read_text(), re.MULTILINE)[1])
    kinds = []
    for manifest in manifests:
        for document in yaml.safe_load_all(pathlib.Path(manifest).read_text()):
            kinds.append(document["kind"])
            check_schema(schema, document, f"{pathlib.Path(manifest).name}: {document['kind']}")
            if document["kind"] == "ConfigMap":
                check_configuration(shufd, document["data"]["shufd.conf"])
            elif document["kind"] == "Pod":
                check_pod(document["spec"], user, "Pod")
            elif document["kind"] == "DaemonSet":
                check_pod(document["spec"]["template"]["spec"], user, "DaemonSet")
                check_daemon(document["spec"]["template"]["spec"], user)
    expect(set(kinds) == {kind for _, kind in SCHEMA}, f"kinds: {kinds}")
    print("\n".join(failures) or f"{len(kinds)} documents")
    sys.exit(bool(failures))


main()
