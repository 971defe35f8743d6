# SPDX-License-Identifier: MIT
"""Runs the examples like a user."""

import pathlib
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def run(name, *options):
    program = [sys.executable, EXAMPLES / f"{name}.py", *options]
    result = subprocess.run(program, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def skip_without_ranks():
    if not torch.distributed.is_available():
        pytest.skip("this torch has no distributed package")


@pytest.mark.long
def test_training_survives_kills(daemon):
    """The job is killed with 4 ranks, continues with 3, and then with 8."""
    skip_without_ranks()
    text = run("train", "--samples", "300_007", "--batch", "2000", "--every", "3")
    assert text.count("killed; the checkpoint is at epoch") == 2
    for epoch in (0, 1):
        assert f"epoch {epoch}: 300,007 samples, 0 missing" in text


def test_each_source_is_read_as_the_mixture_says():
    """The job is killed with 4 ranks, continues with 3, and then with 8."""
    skip_without_ranks()
    text = run("mixture", "--steps", "600", "--every", "3")
    assert text.count("killed; the checkpoint is at position") == 2
    assert re.search(r"^maths: ([\d,]+) records read, \1 expected, each 1 to 2 times$", text, re.M), text


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_same_numbers_are_drawn(device):
    """The digest of all drawn numbers is the same on every machine and device."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    assert run("noise", "--device", device).splitlines()[-1] == f"drawn on {device}: 059899cb4088c57c"


def test_the_same_numbers_are_drawn_under_autocast(monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)
    import noise

    noise.train("cpu", 7, 1)
    with torch.autocast("cpu", torch.bfloat16):
        noise.train("cpu", 7, 1)
    _, drawn, _, under_autocast = capsys.readouterr().out.splitlines()
    assert drawn == under_autocast and drawn.startswith("drawn on cpu: ")
