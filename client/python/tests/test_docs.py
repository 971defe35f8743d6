# SPDX-License-Identifier: MIT
"""The examples of the documents and docstrings."""

import doctest
import inspect
import pathlib
import pydoc
import re

import pytest

import shufd
from conftest import skip_fork_under_asan

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
DOCS = PACKAGE.parent.parent / "docs"
DOCUMENTS = {DOCS / "python.md": 68, DOCS / "orders.md": 13, DOCS / "cluster.md": 10, PACKAGE / "README.md": 2, DOCS.parent / "README.md": 2}
OF_TORCH = (DOCS / "python.md", DOCS / "orders.md", DOCS.parent / "README.md")
LOADERS = {"Grain": "grain", "JAX": "jax", "MosaicML Streaming": "streaming", "WebDataset": "webdataset"}
FRAMEWORKS = {"Accelerate", "Hugging Face datasets", "Lightning", "Ray Data", "Transformers"}  # the tests in frameworks/ run them


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(DOCS.parent)))
def test_document(daemon, path):
    names = {"tensor": pytest.importorskip("torch").arange(10)} if path in OF_TORCH else {}
    failed, tried = doctest.testfile(
        str(path), module_relative=False, optionflags=doctest.REPORT_NDIFF, extraglobs=names
    )
    assert failed == 0 and tried >= DOCUMENTS[path]


@pytest.mark.parametrize("path", [*DOCS.glob("*.md"), *list(DOCUMENTS)[3:]], ids=lambda path: path.name)
def test_arguments_in_the_text_exist(path):
    """Calls such as `shufd.connect(wait=10)` within a sentence, which no doctest runs."""
    for name, arguments in re.findall(r"`shufd\.(\w+)\(([^`]*)\)`", path.read_text()):
        for argument in re.findall(r"\b(\w+)=", arguments):
            assert argument in inspect.signature(getattr(shufd, name)).parameters, f"{name}({argument}=)"


def sections():
    """The sections of loaders.md by their headings. The text before the first heading has the key ""."""
    parts = ("\n" + (DOCS / "loaders.md").read_text()).split("\n## ")
    return {"": parts[0]} | {part.partition("\n")[0]: part for part in parts[1:]}


def run_examples(name, text, names):
    test = doctest.DocTestParser().get_doctest(text, names, name, "loaders.md", 0)
    result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test, clear_globs=False)
    assert result.failed == 0 and result.attempted >= 2
    return test.globs


@pytest.mark.parametrize("heading", LOADERS)
def test_loader(daemon, heading):
    pytest.importorskip(LOADERS[heading])
    assert set(sections()) == {"", *FRAMEWORKS, *LOADERS}
    run_examples(heading, sections()[heading], run_examples("", sections()[""], {}))


def streaming_dataset(directory):
    """A StreamingDataset of 1000 samples with the shuffle algorithm of loaders.md."""
    streaming = pytest.importorskip("streaming")
    run_examples("MosaicML Streaming", sections()["MosaicML Streaming"], run_examples("", sections()[""], {}))
    with streaming.MDSWriter(out=str(directory), columns={"x": "int"}, size_limit=1000) as writer:
        for x in range(1000):
            writer.write({"x": x})
    return streaming.StreamingDataset(
        local=str(directory), shuffle=True, shuffle_algo="shufd", shuffle_seed=7, batch_size=10
    )


def test_streaming_dataset(daemon, tmp_path):
    dataset = streaming_dataset(tmp_path)
    for epoch in range(2):
        assert [sample["x"] for sample in dataset] == shufd.permute(1000, 7, epoch).tolist()


def test_streaming_dataset_with_workers(daemon, tmp_path):
    """The workers need 64-bit numbers: others end them."""
    skip_fork_under_asan()
    torch_data = pytest.importorskip("torch.utils.data")
    batches = torch_data.DataLoader(streaming_dataset(tmp_path), batch_size=10, num_workers=2)
    assert sorted(int(x) for batch in batches for x in batch["x"]) == list(range(1000))


def test_webdataset(daemon, tmp_path):
    """WebDataset reads real shards in the order of loaders.md."""
    webdataset = pytest.importorskip("webdataset")
    urls = [str(tmp_path / f"{i}.tar") for i in range(6)]
    for number, url in enumerate(urls):
        with webdataset.TarWriter(url) as writer:
            for i in range(10):
                writer.write({"__key__": f"{number}{i}", "cls": 10 * number + i})
    order = shufd.permute(6, seed=7, epoch=3)
    dataset = webdataset.WebDataset([urls[i] for i in order], shardshuffle=False).decode().to_tuple("cls")
    assert [int(cls) for (cls,) in dataset] == [10 * s + i for s in order for i in range(10)]


def test_docstrings(daemon):
    failed, tried = doctest.testmod(shufd)
    assert failed == 0 and tried >= 2


def test_functions_of_the_module_have_the_signature_and_text_of_their_method():
    for name in ("permute", "prefetch", "index", "inverse_index", "shuffle", "unshuffle", "normal", "uniform"):
        function, method = getattr(shufd, name), getattr(shufd.Client, name)
        expected = list(inspect.signature(method).parameters)[1:]
        assert list(inspect.signature(function).parameters) == expected
        assert inspect.getdoc(method) in inspect.getdoc(function)


def test_help_shows_public_names():
    text = pydoc.render_doc(shufd, renderer=pydoc.plaintext)
    assert "shufd._errors" not in text and "shufd._client" not in text
    for name in shufd.__all__:
        error = isinstance(getattr(shufd, name), type) and issubclass(getattr(shufd, name), shufd.Error)
        assert error or re.search(rf"\b{name}\b", shufd.__doc__), name
        assert name in dir(shufd)


def test_public_names_have_docstrings():
    for name in shufd.__all__:
        value = getattr(shufd, name)
        assert value.__doc__, name
        if isinstance(value, type):
            for method, function in vars(value).items():
                assert method.startswith("_") or not callable(function) or function.__doc__, (name, method)
