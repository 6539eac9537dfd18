"""Words and characters of text in any script, and how one of them is chosen."""

import html
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from undrift import TermVectorizer, TextAdapter
from undrift.text import count_words, unseen_share, words
from undrift.text import tokens as module
from undrift.text.tokens import (
    choose_pattern,
    choose_tokens,
    interleave,
    normalise,
)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("I did n't", ["i", "didn't"]),
        ("I didn't", ["i", "didn't"]),
        ("I didn’t", ["i", "didn't"]),
        ("I didn`t", ["i", "didn't"]),
        ("I didn\x92t", ["i", "didn't"]),
        ("ca n't wo n't ai n't", ["can't", "won't", "ain't"]),
        ("it 's he 'd I 'm we 've they 're you 'll", ["it's", "he'd", "i'm", "we've", "they're", "you'll"]),
        ("larkin 's map", ["larkin's", "map"]),
        ("you can not", ["you", "cannot"]),
        ("you cannot", ["you", "cannot"]),
        ("gon na wan na got ta", ["gonna", "wanna", "gotta"]),
        ("gonna wanna gotta", ["gonna", "wanna", "gotta"]),
        ("`` the end '' he said", ["the", "end", "he", "said"]),
        ("``the end'' he said", ["the", "end", "he", "said"]),
        ('"the end" he said', ["the", "end", "he", "said"]),
        ("“the end” he said", ["the", "end", "he", "said"]),
        ("the 's' key and 'quoted'", ["the", "s", "key", "and", "quoted"]),
        ("the dogs' 'n bones", ["the", "dogs", "n", "bones"]),
        ("page-turner", ["page", "turner"]),
        ("snake_case ___", ["snake", "case"]),
        ("a 5.1 system, 1,000 watts, 3-4 mp3", ["a", "5.1", "system", "1,000", "watts", "3", "4", "mp3"]),
        ("v1.5.", ["v1", "5"]),
        ("Über Ångström ŒUVRE", ["über", "ångström", "œuvre"]),
        ("cafe\u0301", ["café"]),
        ("ﬁne ＷＩＤＥ co\u00adoperate", ["fine", "wide", "cooperate"]),
        ("İstanbul", ["istanbul"]),
        ("Отличная книга", ["отличная", "книга"]),
        ("κακό βιβλίο", ["κακό", "βιβλίο"]),
        ("好 书", ["好", "书"]),
        ("...!?", []),
        ("", []),
        ("यह किताब अच्छी है।", ["यह", "किताब", "अच्छी", "है"]),
        ("மிகவும் நல்லது", ["மிகவும்", "நல்லது"]),
        ("কী খবর", ["কী", "খবর"]),
        ("كِتَابٌ جـــميل", ["كِتَابٌ", "جميل"]),
        ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("ดีมาก", ["ดี", "ม", "า", "ก"]),
        ("很好吃！", ["很", "好", "吃"]),
        ("すごいカメラ", list("すごいカメラ")),
        ("ကောင်းတယ်", ["ကော", "င်း", "တ", "ယ်"]),
        ("iPhone很好用 abc", ["iphone", "很", "好", "用", "abc"]),
        ("아주 좋아요", ["아주", "좋아요"]),
        ("great 👍👍 \u2764\ufe0f 👍🏽", ["great", "👍", "👍", "\u2764", "👍"]),
        ("👨\u200d👩\u200d👧 🇩🇪", ["👨", "👩", "👧", "🇩🇪"]),
        ("★★★☆", ["★", "★", "★", "☆"]),
        (
            "fine.<br /><br>But <a href='x?a=b'>this</a> &amp; that&nbsp;is",
            ["fine", "but", "this", "that", "is"],
        ),
        ("<p class=big>a</p><SCRIPT>var x = 1;</SCRIPT>b<!-- c -->d", ["a", "b", "d"]),
        ("if x<y and z>w, 2 < 3", ["if", "x", "y", "and", "z", "w", "2", "3"]),
        ("<style>never closed", []),
        ("I <3 it", ["i", "3", "it"]),
        ("caf\u00e9 na\u0308iv e\u0323\u0302", ["café", "näiv", "\u1ec7"]),
        ("\u0301 alone", ["alone"]),
    ],
)
def test_words_of_any_script(document, expected):
    assert words(document) == expected


PIECES = [
    "did n't",
    "“well”",
    "<br>",
    "&amp;",
    "很好",
    "👍",
    "ดี",
    "है",
    "can not",
    "İ",
    "``",
    "x<y",
    "5.1",
    "'s",
    "_",
]


@pytest.mark.slow
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=12).map(" ".join))
@settings(max_examples=100, deadline=None)
def test_shortcuts_for_most_documents_change_nothing(document):
    text = html.unescape(module._TAGS.sub(" ", document)).translate(module._CHARACTERS)
    text = unicodedata.normalize("NFKC", text).lower().replace("i̇", "i").replace("`", "'")
    text = module._CLITIC_GAP.sub("", module._QUOTES.sub(" ", text))
    text = module._WORD_GAP.sub(r"\1", text)
    assert normalise(document) == text
    assert words(document) == module._WORDS.findall(text)


def test_characters_are_ngrams_inside_runs():
    vectorizer = TermVectorizer(tokens="characters").fit(["ab_c, d!"])
    runs = [" a", "ab", "b ", " ab", "ab ", " ab "], [" c", "c ", " c "], [" d", "d ", " d "]
    assert set(vectorizer.terms_) == {ngram for run in runs for ngram in run}


@pytest.mark.parametrize(
    ("documents", "tokens", "reason"),
    [
        (["很好吃，我喜欢", "不好 ok"], "characters", "% of the letters are of scripts without spaces"),
        (["the screen is 很好", "a plain sentence"], "words", "repeat"),
        ([f"w{i}x y" for i in range(300)], "characters", "50% of the words are in one document only"),
        ([f"w{i}x y" for i in range(100)], "words", "repeat"),
        ([f"w{i % 50}x y" for i in range(300)], "words", "repeat"),
        ([], "words", "repeat"),
    ],
)
def test_tokens_are_chosen_from_the_data(documents, tokens, reason):
    choice = choose_tokens(documents)
    assert choice[0] == tokens
    assert reason in choice[1]
    if documents:
        fitted = TermVectorizer().fit(iter(documents))
        assert (fitted.tokens_, fitted.tokens_reason_) == choice


def test_every_domain_has_a_say():
    source, target = ["plain words here"] * 900, ["很好吃，我喜欢这个餐厅"] * 900
    assert list(interleave([["a", "b", "c"], ["d"], []])) == ["a", "d", "b", "c"]
    assert TermVectorizer().fit([*source, *target]).tokens_ == "words"
    vectorizer = TextAdapter().new_vectorizer().fit(interleave([source, target]))
    assert vectorizer.tokens_reason_ == TermVectorizer().fit([*source, *target]).tokens_reason_
    vectorizer = TextAdapter(tokens="characters").new_vectorizer().fit(source)
    assert vectorizer.tokens_ == "characters"
    assert vectorizer.tokens_reason_ == "given"


def test_unseen_characters():
    for tokens, low, high in (("words", 1.0, 1.0), ("characters", 0.2, 0.7)):
        known, found = (count_words([text], tokens) for text in ("Küchentisch", "Küchengerät"))
        assert low <= unseen_share(found, known) <= high


def test_the_pattern_of_raw_documents_is_the_simplest_that_finds_their_words():
    plain, odd = ["It didn’t break, 5.1 für Müller"], ["हिन्दी", "it didn’t 👍"]
    assert len(choose_pattern(plain)) < 60 < len(choose_pattern([*plain, *odd]))
    for documents in (plain, odd):
        counter = CountVectorizer(token_pattern=choose_pattern(documents))
        tokens = [counter.build_analyzer()(document) for document in documents]
        assert [[word.replace("’", "'") for word in each] for each in tokens] == list(map(words, documents))
