# ruff: noqa: E501
"""Generated reviews in seven languages, adapted from restaurants to phones: the error of `undrift adapt`'s
defaults beside that of a linear SVM trained on the source, for every way to cut text into tokens.

Sentences are written as the language writes them: without spaces in Chinese, Japanese and Thai, with vowel
signs in Hindi, with compounds in German that hardly ever repeat."""

from __future__ import annotations

import argparse
import random
import warnings
from dataclasses import dataclass
from typing import Any

from harness import add_store, report, store


@dataclass(frozen=True)
class Language:
    """The words of a language, each list separated by blanks; `|` stands for a blank inside a word."""

    good: str  # opinions of both domains
    bad: str
    source_good: str  # opinions of restaurants
    source_bad: str
    target_good: str  # opinions of phones
    target_bad: str
    source_things: str
    target_things: str
    fillers: str  # what says nothing
    space: str = " "  # between words
    stop: str = ". "  # between clauses
    heads: str = ""  # of compounds: every thing is then a compound of two


LANGUAGES = {
    "Chinese": Language(
        "很好 满意 喜欢 值得推荐 非常棒 超出期待", "很差 失望 讨厌 不推荐 非常糟 浪费钱",
        "好吃 新鲜 美味可口 热情周到 香气扑鼻 分量足", "难吃 不新鲜 太咸了 态度冷淡 油腻 等太久",
        "流畅 清晰 耐用 充电快 轻薄 反应灵敏", "卡顿 模糊 容易坏 发热严重 笨重 经常死机",
        "菜 汤 服务员 米饭 环境 面条 餐厅 甜点", "屏幕 电池 手机 相机 按键 系统 耳机 外壳",
        "昨天和朋友一起去的 我觉得 总的来说 这次 老实说 用了一个月 第二次来 看了介绍", "", "，",
    ),
    "Japanese": Language(
        "とても良い 満足です 気に入りました おすすめです 最高でした 期待以上", "とても悪い 不満です 残念でした おすすめしません 最低でした 期待外れ",
        "おいしい 新鮮だった 香りがいい 接客が丁寧 量が多い 味が深い", "まずい 古かった 塩辛い 接客が雑 量が少ない 油っぽい",
        "動作が速い 鮮明です 長持ちする 充電が早い 軽くて薄い 反応がいい", "動作が遅い ぼやける すぐ壊れる 熱くなる 重くて厚い 固まる",
        "料理 スープ 店員 ご飯 雰囲気 麺 デザート ランチ", "画面 バッテリー スマホ カメラ ボタン アプリ イヤホン ケース",
        "昨日友達と行きました 正直に言うと 全体的に 今回 一か月使いました 二回目です 説明を読んで 家族も", "", "。",
    ),
    "Thai": Language(
        "ดีมาก พอใจ ชอบ แนะนำเลย ยอดเยี่ยม เกินคาด", "แย่มาก ไม่พอใจ ไม่ชอบ ไม่แนะนำ ห่วยแตก ผิดหวัง",
        "อร่อย สดใหม่ หอมกรุ่น บริการดี ให้เยอะ กลมกล่อม", "ไม่อร่อย ไม่สด เค็มเกินไป พนักงานหยาบคาย ให้น้อย เลี่ยน",
        "ลื่นไหล คมชัด ทนทาน ชาร์จเร็ว เบาบาง ตอบสนองไว", "กระตุก เบลอ พังง่าย ร้อนจัด หนักเทอะทะ ค้างบ่อย",
        "อาหาร น้ำซุป พนักงาน ข้าว บรรยากาศ ก๋วยเตี๋ยว ร้านอาหาร ของหวาน", "หน้าจอ แบตเตอรี่ มือถือ กล้อง ปุ่ม ระบบ หูฟัง ตัวเครื่อง",
        "เมื่อวานไปกับเพื่อน คิดว่า โดยรวมแล้ว ครั้งนี้ พูดตรงๆ ใช้มาหนึ่งเดือน มาครั้งที่สอง อ่านรีวิวมา", "", " ",
    ),
    "Hindi": Language(
        "बहुत|अच्छा संतुष्ट पसंद|आया सिफारिश|करूंगा शानदार उम्मीद|से|बेहतर", "बहुत|बुरा निराश नापसंद सिफारिश|नहीं बेकार पैसे|की|बर्बादी",
        "स्वादिष्ट ताज़ा खुशबूदार विनम्र भरपूर लज़ीज़", "बेस्वाद बासी नमकीन|ज़्यादा अशिष्ट कम|मात्रा तैलीय",
        "तेज़ साफ़ टिकाऊ जल्दी|चार्ज हल्का संवेदनशील", "धीमा धुंधला कमज़ोर गर्म|हो|जाता भारी अटकता",
        "खाना सूप बैरा चावल माहौल रोटी मिठाई रेस्तरां", "स्क्रीन बैटरी फ़ोन कैमरा बटन सॉफ़्टवेयर हेडफ़ोन ढांचा",
        "कल|दोस्तों|के|साथ मुझे|लगा कुल|मिलाकर इस|बार सच|कहूं|तो एक|महीने|से दूसरी|बार समीक्षा|पढ़कर",
        stop="। ",
    ),
    "Arabic": Language(
        "جيد|جدا راض أعجبني أنصح|به رائع فاق|التوقعات", "سيئ|جدا مستاء خيب|أملي لا|أنصح|به فظيع مضيعة|للمال",
        "لذيذ طازج شهي ودود وفير متبل", "مقرف بائت مالح|كثيرا فظ قليل دهني",
        "سريع واضح متين يشحن|بسرعة خفيف سلس", "بطيء ضبابي هش يسخن|كثيرا ثقيل يتجمد",
        "الطعام الحساء النادل الأرز المكان الخبز الحلوى المطعم", "الشاشة البطارية الهاتف الكاميرا الزر النظام السماعة الغلاف",
        "ذهبت|مع|أصدقائي أعتقد|أن بشكل|عام هذه|المرة بصراحة منذ|شهر للمرة|الثانية قرأت|المراجعات",
        stop="، ",
    ),
    "German": Language(
        "Spitzen Traum Lieblings Glanz Meister Wunder", "Katastrophen Schrott Pannen Albtraum Murks Mogel",
        "Feinschmecker Gourmet Frische Genuss Aroma Schlemmer", "Fraß Fett Versalzen Matsch Ekel Gammel",
        "Turbo Blitz Langlebigkeits Präzisions Leicht Komfort", "Ruckel Absturz Wackel Hitze Klotz Aussetzer",
        "Küchen Suppen Kellner Braten Nudel Dessert Tisch Salat", "Bildschirm Akku Kamera Tasten Hörer Lade Gehäuse Chip",
        "gestern|mit|Freunden ehrlich|gesagt insgesamt dieses|Mal seit|einem|Monat zum|zweiten|Mal wie|beschrieben",
        heads="erlebnis qualität leistung angebot gefühl eindruck moment verhalten ergebnis versuch abend kauf "
        "bestellung ausstattung auswahl verarbeitung lieferung preis garantie beratung haltbarkeit bedienung",
    ),
}  # fmt: skip
MIXED = ("Chinese", "Hindi", "Arabic")  # languages of the mixed corpus, `n` documents of each


def make_reviews_in(
    language: str, n: int = 400, seed: int = 0, contradicting: float = 0.1
) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return documents and labels of the source (restaurants), then of the target (phones), `n` of each.

    "Mixed scripts" are three languages, with `n` documents of each. A share of the opinions contradicts the
    label.
    """
    generator = random.Random(f"{language} {seed}")
    result: list[list[str]] = []
    for is_target in (False, True):
        names = MIXED if language == "Mixed scripts" else (language,)
        labels = [generator.choice(["good", "bad"]) for _ in range(n * len(names))]
        documents = [
            _write_review(LANGUAGES[names[i % len(names)]], label, is_target, contradicting, generator)
            for i, label in enumerate(labels)
        ]
        result += [documents, labels]
    return result[0], result[1], result[2], result[3]


def _write_review(
    language: Language, label: str, is_target: bool, contradicting: float, generator: random.Random
) -> str:
    """Return three clauses, each of a thing and an opinion."""
    clauses = [generator.choice(language.fillers.split())] if generator.random() < 0.6 else []
    things = language.target_things if is_target else language.source_things
    for _ in range(3):
        mood = label if generator.random() < 1 - contradicting else {"good": "bad", "bad": "good"}[label]
        domain = "target_" if is_target else "source_"
        is_shared = generator.random() < 0.4
        opinion = generator.choice(getattr(language, ("" if is_shared else domain) + mood).split())
        thing = generator.choice(things.split())
        if language.heads:
            head = generator.choice(language.heads.split())
            parts = [f"{opinion}{thing.lower()}{head}"]
        else:
            parts = [thing, opinion]
        clauses.append(language.space.join(parts))
    generator.shuffle(clauses)
    return (language.stop.join(clauses) + language.stop.strip()).replace("|", " ")


COLUMNS = {"source_only": "source-only, %", "adapted": "adapted, %"}


def measure(language: str, tokens: str, n: int, seed: int, contradicting: float) -> dict[str, Any]:
    import numpy as np

    from undrift import MSDAClassifier, TextAdapter
    from undrift.results import fitted_svm

    documents, labels, target, truth = make_reviews_in(language, n, seed, contradicting)
    adapter = TextAdapter(classifier=MSDAClassifier(random_state=seed), tokens=tokens)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapter.fit(documents, labels, target)
    transform = adapter.vectorizer_.transform
    svm = fitted_svm(transform(documents), np.array(labels))
    error = {
        "source_only": float(np.mean(svm.predict(transform(target)) != np.array(truth))),
        "adapted": float(np.mean(adapter.predict(target) != np.array(truth))),
    }
    chosen = adapter.vectorizer_.tokens_
    return {"language": language, "tokens": tokens, "chosen": chosen, "seed": seed, **error}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--languages", nargs="+", default=[*LANGUAGES, "Mixed scripts"])
    parser.add_argument("--tokens", nargs="+", default=["auto", "words", "characters"])
    parser.add_argument("--rows", type=int, default=400, help="documents of each domain")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--contradicting", type=float, default=0.1, help="share of opinions against the label"
    )
    add_store(parser)
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    table: dict[str, dict] = {}
    for language in args.languages:
        for tokens in args.tokens:
            options = language, tokens, args.rows
            records = [measure(*options, seed, args.contradicting) for seed in range(args.seeds)]
            table[f"{language}, {tokens}"] = {"chosen": records[0]["chosen"]} | {
                name: sum(record[name] for record in records) / len(records)
                for name in ("source_only", "adapted")
            }
            print(f"{language}, {tokens}", table[f"{language}, {tokens}"], flush=True)
    rows = [
        {"language, tokens": name, "tokens taken": own["chosen"]}
        | {says: f"{100 * own[key]:.1f}" for key, says in COLUMNS.items()}
        for name, own in table.items()
    ]
    store("languages", rows)
    return report("Errors on phones, learnt from restaurants", table, rows=args.rows, seeds=args.seeds)


if __name__ == "__main__":
    main()
