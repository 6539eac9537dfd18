"""`undrift explain`: words, documents, and the strongest terms."""

import json

from tests.helpers.commands import check_refused
from undrift import load_model


def test_explain_words(folder, succeed, model):
    terms = load_model(model).vectorizer_.terms_
    bigram = next(term for term in terms if " " in term)
    out = succeed("explain", "--model", model, bigram.upper(), "the", "--top", "3")
    assert f"{bigram}: " in out
    assert "suggested by" in out
    (word,) = json.loads(succeed("explain", "--model", model, "the", "--top", "3", "--json"))["words"]
    assert word["term"] == "the"
    assert len(word["from"]) == len(word["to"]) == 3
    assert word["outputs"][0]["class"] == "positive"


def test_explain_documents(folder, succeed, model):
    text = "Excellent, [bold]highly[/bold] recommended by the best"
    out = succeed("explain", "--model", model, "--document", text, "--document", "zzz")
    assert text in out  # markup in data is data
    assert out.endswith("zzz\n  the model knows none of its words, and predicts nothing\n")
    unknown = json.loads(succeed("explain", "--model", model, "--document", "zzz", "--json"))["documents"]
    assert unknown == [{"document": "zzz", "prediction": None, "terms": []}], "as `predict` leaves it empty"
    (found,) = json.loads(succeed("explain", "--model", model, "--document", text, "--json"))["documents"]
    adapter = load_model(model)
    assert found["prediction"] == adapter.predict([text])[0]
    assert {"the"} <= {own["term"] for own in found["terms"]} <= set(adapter.vectorizer_.terms_)


def test_explain_alone_lists_the_strongest_terms(folder, succeed, model):
    top = json.loads(succeed("explain", "--model", model, "--top", "4", "--json"))["top"]
    assert [own["class"] for own in top] == ["negative"] * 4 + ["positive"] * 4
    out = succeed("explain", "--model", model)
    assert top[0]["term"] in out


def test_numbers_say_which_way_they_point(folder, undrift, succeed, model):
    for top in json.loads(succeed("explain", "--model", model, "--top", "3", "--json"))["top"]:
        _, out, _ = undrift("explain", "--model", model, top["term"])
        assert f"speaks for {top['class']}: weight {top['weight']:.3g} " in " ".join(out.split())
        (word,) = json.loads(succeed("explain", "--model", model, top["term"], "--json"))["words"]
        assert word["outputs"][0]["favours"] == top["class"]
    _, out, _ = undrift("explain", "--model", model, "--document", f"{top['term']} {top['term']}")
    assert "Effect: how much the term changes the score for " in out
    assert "for " in out


def test_known_words_are_explained_beside_unknown_ones(folder, undrift, model):
    known = next(term for term in load_model(model).vectorizer_.terms_ if len(term) > 6 and " " not in term)
    status, out, err = undrift("explain", "--model", model, known, known[:-1] + "zz", "--top", "2")
    assert status == 0
    assert f"{known}: in" in out
    assert err.startswith("warning: ")
    assert f"did you mean {known!r}" in err
    said = check_refused(undrift, folder, ["explain", "--model", model, "qqqq", "wwww"])
    assert said.count("is not among the 120 terms") == 2
