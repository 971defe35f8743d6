# SPDX-License-Identifier: MIT
"""Runs examples/noise.py like a user. The digest of all drawn numbers is the same on every machine and device."""

import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
EXAMPLE = pathlib.Path(__file__).parent.parent / "examples/noise.py"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_same_numbers_are_drawn(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    text = subprocess.check_output([sys.executable, str(EXAMPLE), "--device", device], text=True, timeout=300)
    assert text.splitlines()[-1] == f"drawn on {device}: 059899cb4088c57c"
