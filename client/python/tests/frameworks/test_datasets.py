# SPDX-License-Identifier: MIT
"""Mixtures of Hugging Face data sets in place of datasets.interleave_datasets()."""

import json
import multiprocessing
import os
import signal

import numpy as np
import pytest

from conftest import skip_without

skip_without("datasets", "torch")

import datasets
import torch

import shufd.torch
from shufd.local import Mixture
from test_docs import run_examples, sections

SIZES, WEIGHTS, BATCH = (300, 40, 90), (0.6, 0.1, 0.3), 8
RANKS = multiprocessing.get_context("forkserver")
RANKS.set_forkserver_preload(["datasets", "shufd.torch", "test_docs"])


def sources_of():
    """Of three sources the second has a further column, and the third lacks rows of its file."""
    web = datasets.Dataset.from_dict({"text": [f"web {i}" for i in range(SIZES[0])]})
    books = datasets.Dataset.from_dict({"text": [f"book {i}" for i in range(SIZES[1])], "year": [1700 + i for i in range(SIZES[1])]})
    code = datasets.Dataset.from_dict({"text": [f"code {i}" for i in range(2 * SIZES[2])]})
    return [web, books, code.select(range(0, 2 * SIZES[2], 2))]


def mixture_of(**options):
    return Mixture(SIZES, WEIGHTS, seed=7, **options)


def concatenated(world, rank):
    """The order is the sampler's. Each row has all columns."""
    dataset = datasets.concatenate_datasets(sources_of())
    return dataset, shufd.torch.DistributedSampler(dataset, world, rank, order=mixture_of(length=1200))


def wrapped(world, rank):
    """The order is the data set's. Each row has the columns of its source."""
    dataset = shufd.torch.MixtureDataset(sources_of(), mixture_of(length=1200))
    return dataset, shufd.torch.DistributedSampler(dataset, world, rank, shuffle=False)


def expected_rows(way):
    sources, places = sources_of(), mixture_of().places(0, 1200)
    missing = {"year": None} if way is concatenated else {}
    return [{**missing, **sources[s][r]} for s, r in zip(places.source.tolist(), places.record.tolist())]


# ---- A job that is killed ------------------------------------------------------------------------


def train(way, workers, world, rank, state, last, folder):
    """A rank: it writes the rows of each step and the state after it, and kills itself after the step `last`."""
    dataset, sampler = way(world, rank)
    if state:
        sampler.load_state_dict(state)
    # fork: a forkserver of this rank would import all packages again
    options = {"num_workers": workers, "multiprocessing_context": "fork" if workers else None}
    loader = torch.utils.data.DataLoader(dataset, BATCH, sampler=sampler, collate_fn=list, **options)
    used = 0
    for step, rows in enumerate(loader, 1):
        used += len(rows)
        (folder / f"{rank}-{step}").write_text(json.dumps([rows, sampler.state_dict(used=used)]))
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)


def run(way, workers, world, state, last, folder):
    """A job whose ranks are killed, each after another step, or that ends if `last` is None. The rows up to the last step
    that all ranks have written, in the order of their positions, and the state there."""
    folder.mkdir()
    ranks = []
    for rank in range(world):
        arguments = way, workers, world, rank, state, last and last + rank, folder
        ranks.append(RANKS.Process(target=train, args=arguments))
        ranks[-1].start()
    for rank in ranks:
        rank.join(240)
        assert rank.exitcode == (0 if last is None else -signal.SIGKILL)
    steps = min(len([*folder.glob(f"{rank}-*")]) for rank in range(world))
    assert last is None or steps == last
    rows, states = [], []
    for step in range(1, steps + 1):
        read, states = zip(*(json.loads((folder / f"{rank}-{step}").read_text()) for rank in range(world)))
        rows += [row for of_ranks in zip(*read, strict=True) for row in of_ranks]
    assert all(state == states[0] for state in states)
    return rows, states[0]


@pytest.mark.parametrize("way", [concatenated, wrapped])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_job_continues_with_other_ranks(tmp_path, way, workers):
    rows, state = run(way, workers, 3, None, 11, tmp_path / "first")
    more, state = run(way, workers, 5, state, 9, tmp_path / "second")
    rest, state = run(way, workers, 2, state, None, tmp_path / "third")
    rows += more + rest
    assert rows == expected_rows(way) and state["position"] == 1200
    counts = [sum(row["text"].startswith(name) for row in rows) for name in ("web", "book", "code")]
    assert counts == mixture_of().counts(1200).tolist()


# ---- As interleave_datasets() --------------------------------------------------------------------


def ends_of(sources):
    """For each source, the number of rows until it has given all its rows once, or None."""
    found = [np.flatnonzero(np.asarray(sources) == source) for source in range(len(SIZES))]
    return [int(at[size - 1]) + 1 if len(at) >= size else None for at, size in zip(found, SIZES)]


@pytest.mark.parametrize("strategy, options, expected", [
    ("first_exhausted", {"length": "first_exhausted"}, lambda ends: min(end for end in ends if end)),
    ("all_exhausted", {"length": "all_exhausted"}, max),
    ("all_exhausted_without_replacement", {"epochs": 1}, lambda ends: sum(SIZES)),
])  # fmt: skip
def test_lengths_are_those_of_the_stopping_strategies(strategy, options, expected):
    sources = [source.select_columns("text").add_column("of", [i] * len(source)) for i, source in enumerate(sources_of())]
    for seed in range(5):
        mixture = Mixture(SIZES, WEIGHTS, seed, **options)
        ours = [*mixture.places(0, len(mixture)).source]
        theirs = datasets.interleave_datasets(sources, probabilities=WEIGHTS, seed=seed, stopping_strategy=strategy)["of"]
        for of in (ours, [*theirs]):
            assert len(of) == expected(ends_of(of)), seed


def test_columns_are_those_of_interleaved_data_sets():
    sources = sources_of()
    interleaved = datasets.interleave_datasets(sources, probabilities=WEIGHTS, seed=7, stopping_strategy="all_exhausted")
    dataset, sampler = concatenated(1, 0)
    assert dataset.features == interleaved.features and dataset.column_names == ["text", "year"]
    whole = {row["text"]: row for row in interleaved}
    assert all(row == whole[row["text"]] for row in dataset.select(list(sampler)))
    sources[1] = sources[1].cast_column("text", datasets.Value("binary"))
    for combine in (datasets.concatenate_datasets, lambda s: datasets.interleave_datasets(s, probabilities=WEIGHTS)):
        with pytest.raises(ValueError, match="The features can't be aligned because the key text"):
            combine(sources)


def test_formats_of_sources_stay():
    sources = sources_of()
    sources[1] = sources[1].with_format("torch")
    sources[2] = sources[2].with_transform(lambda rows: {"text": [text.upper() for text in rows["text"]]})
    mixture = mixture_of(length=50)
    places = mixture.places(0, 50)
    rows = shufd.torch.MixtureDataset(sources, mixture).__getitems__(range(50))
    assert rows == [sources[s][r] for s, r in zip(places.source.tolist(), places.record.tolist())]
    assert {type(row.get("year")) for row in rows} == {type(None), torch.Tensor}
    assert {row["text"][:4] for row in rows} == {"web ", "book", "CODE"}


def test_page(daemon):
    run_examples("Hugging Face datasets", sections()["Hugging Face datasets"], run_examples("", sections()[""], {}))
