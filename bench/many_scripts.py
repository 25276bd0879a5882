"""A made-up collection with fields of every type and texts in ten scripts, by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

SCRIPTS: Final = {
    "vietnamese": "Tiếng Việt có dấu thanh và chữ đẹp nước non người đọc sách mới hôm nay",
    "decomposed": "Tie\u0302\u0301ng Vie\u0323\u0302t co\u0301 da\u0302\u0301u",
    "chinese": "東京都 搜索引擎 分片 複製 查詢 語言 中文 文本 檢索 最好 結果",
    "japanese": "ひらがな カタカナ 日本語の検索 全文検索 東京 京都 文章 単語",
    "arabic": "مرحبا بالعالم البحث في النصوص العربية كتاب جديد كلمة",
    "german": "Donaudampfschifffahrt Häuser Straße Wörterbuch Suchmaschine größer Übung Prüfung",
    "russian": "поиск слова в тексте книга новая кот коты машина быстрый",
    "hindi": "हिन्दी भाषा खोज शब्द पुस्तक नया पाठ",
    "emoji": "👩‍👩‍👧 👍🏽 ❤️ 🎉 search 🚀 ship",
    "english": "the quick search engine shards replica query language texts ranked results parsing",
}
SCHEMA: Final = """\
[fields.title]
type = "text"
weight = 2.5
language = "none"

[fields.text]
type = "text"
multiple = true

[fields.german]
type = "text"
weight = 0.5
language = "german"
stop_words = true

[fields.script]
type = "keyword"

[fields.tags]
type = "keyword"
multiple = true

[fields.year]
type = "integer"

[fields.rate]
type = "float"

[fields.day]
type = "date"

[fields.read]
type = "boolean"
"""
NAME: Final = "scripts.jsonl"
QUERY_FIELDS: Final = ("title", "text")
TAGS: Final = ("a", "B", "ß", "東京", "two words", 7)
LACKING: Final = 0.1
"""Share of values that are not there."""


def documents(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """So many documents of one or two scripts each."""
    rng = random.Random(f"{seed}:scripts")
    german = [*SCRIPTS["german"].split(), "der", "und"]
    for i in range(count):
        names = rng.sample([*SCRIPTS], rng.randint(1, 2))
        words = " ".join(SCRIPTS[name] for name in names).split()
        drawn = [rng.choice(words) for _ in range(rng.randint(3, 40))]
        values = {
            "german": " ".join(rng.choices(german, k=5)),
            "script": names[0],
            "tags": rng.sample(TAGS, rng.randint(0, 3)),
            "year": rng.randint(1990, 2030),
            "rate": rng.randint(-20, 20) / 4,
            "day": f"20{rng.randint(10, 29)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}",
            "read": rng.random() < 0.5,
        }
        yield {
            "id": f"text-{i:06d}",
            "title": " ".join(drawn[: rng.randint(1, 4)]),
            "text": [" ".join(drawn), drawn[-1]],
            **{name: value for name, value in values.items() if rng.random() >= LACKING},
        }


def write(folder: Path, count: int, seed: int = 0) -> tuple[Path, Path]:
    """Write documents and their schema into a folder; return the two files."""
    source, schema = folder / NAME, folder / "scripts.toml"
    with source.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(one)}\n" for one in documents(count, seed))
    schema.write_text(SCHEMA, encoding="utf-8")
    return source, schema


def words() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of all scripts, and pairs of them."""
    every = [word for text in SCRIPTS.values() for word in text.split()]
    return tuple(every), tuple(f"{one} {other}" for one, other in pairwise(every))
