import sys

import pytest

from undrift_lab import corpora

LOADERS = {
    "amazon-bow": corpora.load_amazon_bow,
    "processed_acl": corpora.load_processed_acl,
    "fdu-mtl": corpora.load_fdu_mtl,
    "multidomain": corpora.load_multidomain_sentiment,
    "amazon-mat": corpora.load_amazon_mat,
}


@pytest.mark.parametrize(("name", "load"), LOADERS.items())
def test_missing_data_says_what_to_do(name, load, tmp_path, monkeypatch):
    remedy = "" if name == "amazon-mat" else f", or `undrift-lab fetch {name} --data "
    for folder in (tmp_path / "nowhere", None):
        monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
        with pytest.raises(
            FileNotFoundError, match=rf"{name}: there is no .*; put its files there.*{remedy}"
        ):
            load(folder)
    monkeypatch.delenv("UNDRIFT_DATA")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    with pytest.raises(FileNotFoundError, match=rf"{name}: there is no .*cache/undrift/{name}; "):
        load()
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match=rf"Where is {name}\? Set UNDRIFT_DATA"):
        load()
