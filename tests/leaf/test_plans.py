"""Plans as people write them: the shipped ones, files, and what is wrong with a file."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from leaf.errors import BadSetting
from leaf.interference import Arrival, Interference, Plan
from leaf.plans import PLAN_BYTES_MAX, SeededPlan, load, profile, read, shipped

REPOSITORY = Path(__file__).parent.parent.parent

GOOD = 'about = "a test"\n[[rules]]\nname = "slow"\nkind = "transit"\n'
TAKES = 'takes = { law = "constant", ms = 5 }\n'


def met(plan: Plan, arrival: Arrival, leaf: int = 0) -> list[float]:
    """How long the legs of one ask are held back or worked on, in seconds."""
    interference = Interference(plan, leaf=leaf, seed=1, began_s=0.0)
    return [trouble.transit_s + trouble.busy_s for trouble in interference.meet(arrival, 0.0)]


def test_the_profiles_are_there() -> None:
    """Every profile that is promised is shipped, can be read, and says what it is about."""
    assert shipped() == [
        "bigtable",
        "blocked-loop",
        "disk-queue",
        "disk-queue-with-background-sort",
        "flapping",
        "mirrored-disk-pressure",
        "one-slow-replica",
        "tail-at-scale",
        "uniform-sleep",
    ]
    assert all(profile(name).about for name in shipped())


def test_the_profiles_are_in_the_package() -> None:
    """A wheel has them too: they are named as data of the package."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["package-data"]["leaf"] == ["profiles/*.toml"]


def test_the_rows_of_the_table_come_out_of_its_profile() -> None:
    """Of the legs of 2,000 queries to 100 leaves, one alone, 95 % and all take what is said."""
    plan = load("tail-at-scale")
    interference = Interference(plan, leaf=0, seed=1, began_s=0.0)
    rows: list[list[float]] = [[], [], []]
    for query in range(2000):
        (alone,) = interference.meet(Arrival("search", [0], alone=True), 0.0)
        legs = interference.meet(Arrival("search", range(100), query), 0.0)
        times = sorted(trouble.transit_s * 1e3 for trouble in legs)
        for row, took_ms in zip(rows, (alone.transit_s * 1e3, times[94], times[99]), strict=True):
            row.append(took_ms)
    for row, medians in zip(rows, (1.0, 12.0, 40.0), strict=True):
        assert sorted(row)[1000] == pytest.approx(medians, rel=0.1)
    for row, p95 in zip(rows, (5.0, 32.0, 87.0), strict=True):
        assert sorted(row)[1900] == pytest.approx(p95, rel=0.12)


def test_one_slow_replica_is_one() -> None:
    """Leaf 0 is slow, and no other."""
    plan = profile("one-slow-replica")
    assert met(plan, Arrival("search", [0], 1), leaf=0)[0] > 0.01
    assert met(plan, Arrival("search", [0], 1), leaf=1) == [0.0]


def test_a_plan_may_be_json(tmp_path: Path) -> None:
    """The same plan, in either language and from either place."""
    file = tmp_path / "plan.toml"
    file.write_text(GOOD + TAKES, encoding="utf-8")
    as_json = (
        '{"about": "a test", "rules": [{"name": "slow", "kind": "transit",'
        ' "takes": {"law": "constant", "ms": 5}}]}'
    )
    assert load(str(file)) == read(as_json, "body") == read(GOOD + TAKES, "body")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "about: Object missing required field `about`"),
        ('about = "x"', "rules: Object missing required field `rules`"),
        ('about = "x"\nrules = []', "rules: Expected `array` of length >= 1"),
        ('about = "x"\nrules = [3]', "rule 1, itself: Expected `object`, got `int`"),
        ('about = ""\nrules = []', "about: Expected `str` of length >= 1"),
        (GOOD, "rule 1 ('slow'), takes: Object missing required field `takes`"),
        (GOOD + "takes = 5", "rule 1 ('slow'), takes: Expected `object`, got `int`"),
        (GOOD + TAKES + "often = 1", "rule 1 ('slow'), often: Object contains unknown field"),
        (GOOD + TAKES + "probability = 2", "rule 1 ('slow'), probability: Expected `float` <= 1"),
        (GOOD + TAKES + "when = { every_s = 1 }", "rule 1 ('slow'), when: every_s and lasts_s"),
        (
            GOOD + TAKES + "when = { every_s = 1, lasts_s = 2 }",
            "rule 1 ('slow'), when: lasts_s must be at most every_s, 1, not 2",
        ),
        (GOOD + TAKES + "where = { leaves = [] }", "rule 1 ('slow'), where.leaves: Expected"),
        (
            GOOD + TAKES + '[[rules]]\nkind = "refuse"\nreason = "tired"',
            "rule 2, reason: Invalid enum value 'tired'",
        ),
        (GOOD + TAKES + '[[rules]]\nkind = "rest"', "rule 2, kind: Invalid value 'rest'"),
        (
            GOOD + 'takes = { law = "pareto", least_ms = 5, alpha = 0 }',
            "rule 1 ('slow'), takes.alpha: Expected `float` >= 0.1",
        ),
        (GOOD + 'takes = { law = "constant", ms = nan }', "rule 1 ('slow'), takes.ms: Expected"),
        ("about = ", "is neither TOML nor JSON: Invalid value (at end of document)"),
        ("{", "is neither TOML nor JSON: Expecting property name"),
        ('{"about": ' + "[" * 10_000, "is neither TOML nor JSON"),
        (" " * PLAN_BYTES_MAX + "\n", f"is over {PLAN_BYTES_MAX} bytes"),
        ("[1]", "1: Object contains unknown field `1`"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(
    tmp_path: Path, text: str, complaint: str
) -> None:
    """The file, the rule by its number and name, the field, and what is wrong with it."""
    file = tmp_path / "plan.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadSetting) as raised:
        load(str(file))
    assert str(raised.value).startswith(f"{file}: {complaint}")
    assert "\n" not in str(raised.value)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A file that is missing or no text, and a name that is none of the shipped."""
    with pytest.raises(BadSetting, match=r"none\.toml: cannot be read: No such file"):
        load(str(tmp_path / "none.toml"))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(BadSetting, match="is no text in UTF-8"):
        load(str(binary))
    with pytest.raises(BadSetting, match="no interference profile 'calm'; there are bigtable, "):
        load("calm")


def test_the_notice_says_what_and_how() -> None:
    """Whoever reads it can bring about the same trouble."""
    notice = SeededPlan("flapping", profile("flapping"), 7).notice
    assert notice.startswith("INTERFERENCE flapping, seed 7: ")


def test_the_shares_of_a_profile_are_those_of_its_source() -> None:
    """A hundred reads of a disk, of which nothing but the law is known, fit its percentiles."""
    plan = profile("mirrored-disk-pressure")
    reads = sorted(met(plan, Arrival("search", range(20_000), 1), leaf=1))
    for share, wanted_ms in ((0.8, 12.0), (0.95, 16.4), (0.99, 21.1)):
        assert reads[int(20_000 * share)] * 1e3 == pytest.approx(wanted_ms, rel=0.05)
    assert math.fsum(reads) / 20_000 == pytest.approx(1 / 103, rel=0.05)
