#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small model whose random numbers all come from shufd.torch: the order of the batches, noise on the inputs, and
the masks of a dropout layer. Prints a digest of everything that was drawn. It is the same on the CPU and on any GPU:

    python noise.py --device cpu
    python noise.py --device cuda

The weights begin with numbers of shufd too, so that both runs begin with the same model. torch computes the model itself, so
the losses of two devices differ in their last digits. No daemon is needed.
"""

import argparse
import hashlib

import torch

import shufd.torch

SAMPLES, FEATURES, HIDDEN, BATCH = 4096, 16, 64, 256
KEPT = 0.8  # of the dropout layer


class Drawn:
    """A digest of the bits of tensors."""

    def __init__(self):
        self._digest = hashlib.sha256()

    def __call__(self, tensor):
        self._digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return tensor

    def text(self):
        return self._digest.hexdigest()[:16]


class Model(torch.nn.Module):
    """Two layers with a dropout between them. Its mask has a generator of its own, so a change of the noise leaves it."""

    def __init__(self, masks, drawn):
        super().__init__()
        self.first, self.second = torch.nn.Linear(FEATURES, HIDDEN), torch.nn.Linear(HIDDEN, 1)
        self._masks, self._drawn = masks, drawn

    @torch.no_grad()
    def begin(self, weights):
        for layer in (self.first, self.second):
            self._drawn(weights.normal_(layer.weight, 0.0, layer.in_features**-0.5))
            layer.bias.zero_()

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        if self.training:
            uniform = torch.empty_like(hidden, dtype=torch.float32)  # under autocast, `hidden` has fewer bits
            mask = self._drawn(self._masks.uniform_(uniform)) < KEPT
            hidden = hidden * mask / KEPT
        return self.second(hidden).squeeze(1)


def train(device, seed, epochs):
    drawn = Drawn()
    data, noise, weights, masks = shufd.torch.Generator(seed).spawn(4)
    x = drawn(data.randn(SAMPLES, FEATURES, device=device))
    model = Model(masks, drawn).to(device)
    model.begin(weights)
    y = torch.sin(x.sum(1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for epoch in range(epochs):
        order = drawn(shufd.torch.randperm(SAMPLES, seed=seed, epoch=epoch, device=device))
        losses = []
        for batch in order.split(BATCH):
            noisy = x[batch] + 0.1 * drawn(noise.normal_(torch.empty(len(batch), FEATURES, device=device)))
            loss = torch.nn.functional.mse_loss(model(noisy), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        print(f"epoch {epoch}: mean loss {torch.stack(losses).mean():.4f}")
    print(f"drawn on {torch.device(device).type}: {drawn.text()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    train(options.device, options.seed, options.epochs)


if __name__ == "__main__":
    main()
