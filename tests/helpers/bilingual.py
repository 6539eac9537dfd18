"""Short reviews in English, Chinese and Arabic, made of parts that we wrote."""

import random

PARTS = {
    "English": (
        "this phone|the battery|the screen|the shop|the delivery|the colour|this kettle|the case",
        "is excellent and I love it|works perfectly, I am very happy|is beautiful, highly recommended|"
        "is the best I ever bought|was fast and friendly|is of great quality",
        "is terrible and I hate it|broke after two days, I am very disappointed|is ugly, do not buy it|"
        "is the worst I ever bought|was slow and rude|is of poor quality",
        ". ",
    ),
    "Chinese": (
        "手机|电池|屏幕|店家|快递|颜色|水壶|外壳",
        "非常好，我很喜欢|用起来很完美，很满意|很漂亮，强烈推荐|是我买过最好的|又快又热情|质量很棒",
        "非常差，我很讨厌|用了两天就坏了，很失望|很难看，千万别买|是我买过最差的|又慢又没礼貌|质量很糟糕",
        "。",
    ),
    "Arabic": (
        "الهاتف|البطارية|الشاشة|المتجر|التوصيل|اللون|الغلاية|الغطاء",
        "ممتاز وأنا أحبه كثيرا|يعمل بشكل مثالي وأنا سعيد جدا|جميل وأنصح به بشدة|"
        "أفضل ما اشتريت|سريع ولطيف|جودة رائعة",
        "سيئ جدا وأنا أكرهه|تعطل بعد يومين وأنا محبط جدا|قبيح ولا تشتروه|أسوأ ما اشتريت|بطيء وفظ|جودة رديئة",
        "، ",
    ),
}


def write_reviews(language: str, n: int, seed: int = 0, share: float = 0.5) -> tuple[list[str], list[str]]:
    """Return n reviews of two clauses and their labels; `share` of them are good."""
    generator = random.Random(f"{language} {seed}")
    things, good, bad, stop = PARTS[language]
    texts, labels = [], []
    for _ in range(n):
        label = "good" if generator.random() < share else "bad"
        opinions = (good if label == "good" else bad).split("|")
        clauses = [generator.choice(things.split("|")) + " " + generator.choice(opinions) for _ in range(2)]
        joined = stop.join(clauses)
        texts.append(joined.replace(" ", "") if language == "Chinese" else joined)
        labels.append(label)
    return texts, labels
