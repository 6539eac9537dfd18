import subprocess
import sys

import pytest

from undrift import datasets

LOADERS = {
    "amazon-bow": datasets.load_amazon_bow,
    "processed_acl": datasets.load_processed_acl,
    "fdu-mtl": datasets.load_fdu_mtl,
    "multidomain": datasets.load_multidomain_sentiment,
    "amazon-mat": datasets.load_amazon_mat,
}
FETCH = {
    "amazon-bow": r"datasets\.fetch_amazon_bow\(\)",
    "processed_acl": r"datasets\.fetch_processed_acl\(\)",
    "fdu-mtl": r"folder",
    "multidomain": r"datasets\.fetch_multidomain_sentiment\(\)",
    "amazon-mat": r"folder",
}


@pytest.mark.parametrize(("name", "load"), LOADERS.items())
def test_missing_data_says_what_to_do(name, load, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=rf"{name}: there is no .*nowhere; pass the folder"):
        load(tmp_path / "nowhere")
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=rf"{name}: there is no .*{name}; put its files there, or .*{FETCH[name]}"
    ):
        load()
    monkeypatch.delenv("UNDRIFT_DATA")
    with pytest.raises(FileNotFoundError, match=rf"Where is {name}\? .* set UNDRIFT_DATA .*{FETCH[name]}"):
        load()


def test_undrift_data_is_where_loaders_look(tmp_path, monkeypatch):
    (tmp_path / "fdu-mtl").mkdir()
    for part in ("train", "test"):
        (tmp_path / "fdu-mtl" / f"toys.task.{part}").write_text("1\tfun\n")
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert list(datasets.load_fdu_mtl().domains) == ["toys"]


def test_loaders_need_no_extra():
    blocked = "import sys; sys.modules.update(dict.fromkeys(['pooch', 'rich', 'typer']))"
    code = f"{blocked}; from undrift.datasets import load_amazon_bow; load_amazon_bow('nowhere')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        done.stderr.strip().split("\n")[-1].startswith("FileNotFoundError: amazon-bow: there is no nowhere")
    )
