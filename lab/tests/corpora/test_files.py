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
    remedy = (
        rf"corpora\.fetch\('{name}'\) \(`undrift-lab fetch {name}`\)" if name != "amazon-mat" else "folder"
    )
    with pytest.raises(FileNotFoundError, match=rf"{name}: there is no .*nowhere; pass the folder"):
        load(tmp_path / "nowhere")
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=rf"{name}: there is no .*{name}; put its files there, or .*{remedy}"
    ):
        load()
    monkeypatch.delenv("UNDRIFT_DATA")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    with pytest.raises(
        FileNotFoundError,
        match=rf"{name}: there is no .*cache/undrift/{name}; .*{remedy}.* set UNDRIFT_DATA",
    ):
        load()
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match=rf"Where is {name}\? .* set UNDRIFT_DATA .*{remedy}"):
        load()
