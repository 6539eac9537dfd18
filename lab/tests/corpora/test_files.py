import subprocess
import sys
from pathlib import Path

import pytest

from undrift_lab import corpora
from undrift_lab.corpora import fetch

LOADERS = {
    "amazon-bow": corpora.load_amazon_bow,
    "processed_acl": corpora.load_processed_acl,
    "fdu-mtl": corpora.load_fdu_mtl,
    "multidomain": corpora.load_multidomain_sentiment,
    "amazon-mat": corpora.load_amazon_mat,
}
FETCH = {
    "amazon-bow": r"corpora\.fetch\('amazon-bow'\) \(`undrift-lab fetch amazon-bow`\)",
    "processed_acl": r"corpora\.fetch\('processed_acl'\) \(`undrift-lab fetch processed_acl`\)",
    "fdu-mtl": r"corpora\.fetch\('fdu-mtl'\) \(`undrift-lab fetch fdu-mtl`\)",
    "multidomain": r"corpora\.fetch\('multidomain'\) \(`undrift-lab fetch multidomain`\)",
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
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    with pytest.raises(
        FileNotFoundError,
        match=rf"{name}: there is no .*cache/undrift/{name}; .*{FETCH[name]}.* set UNDRIFT_DATA",
    ):
        load()
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match=rf"Where is {name}\? .* set UNDRIFT_DATA .*{FETCH[name]}"):
        load()


def test_without_undrift_data_loaders_look_where_downloads_go(tmp_path, monkeypatch):
    monkeypatch.delenv("UNDRIFT_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: str(tmp_path / project))
    folder = tmp_path / "undrift" / "processed_acl" / "books"
    folder.mkdir(parents=True)
    for label in ("positive", "negative"):
        (folder / f"{label}.review").write_text(f"word:1 #label#:{label}\n")
    assert fetch("processed_acl") == Path(tmp_path / "undrift" / "processed_acl")
    assert list(corpora.load_processed_acl().domains) == ["books"]


def test_undrift_data_is_where_loaders_look(tmp_path, monkeypatch):
    (tmp_path / "fdu-mtl").mkdir()
    for part in ("train", "test"):
        (tmp_path / "fdu-mtl" / f"toys.task.{part}").write_text("1\tfun\n")
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert list(corpora.load_fdu_mtl().domains) == ["toys"]


def test_loaders_need_no_extra():
    blocked = "import sys; sys.modules.update(dict.fromkeys(['pooch', 'rich', 'typer']))"
    code = f"{blocked}; from undrift_lab.corpora import load_amazon_bow; load_amazon_bow('nowhere')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        done.stderr.strip().split("\n")[-1].startswith("FileNotFoundError: amazon-bow: there is no nowhere")
    )
