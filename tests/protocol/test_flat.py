"""What is asked all day examines no more beside ten times as many workflows."""

from pathlib import Path

from bench.flat import compare
from bench.site import Site

PAGE = 40


def test_claims_ticks_and_look_arounds_examine_the_same_beside_few_and_many(
    mongo_url: str, redis_url: str, tmp_path: Path
) -> None:
    site = Site(mongo_url=mongo_url, redis_url=redis_url, data_dir=tmp_path)
    costs = compare(site, [(600, 300), (6_000, 1_500)], repeats=1, page=PAGE)
    for name, (few, crowd) in costs.items():
        assert crowd.examined[1] == few.examined[1], name
        # Looking up a set of keys passes some of them together, by chance.
        assert crowd.examined[0] <= 1.1 * few.examined[0], name
    examined = {name: few.examined for name, (few, _) in costs.items()}
    for name in ("claim from MongoDB alone", "claim of a candidate", "progress"):
        assert examined[name] == (1, 1), name
    assert examined["tick with nothing due"] == (0, 0)
    assert examined["reconcile, due waits, none due"] == (0, 0)
    assert max(examined[f"reconcile, a page of {PAGE} lost candidates"]) <= PAGE + 1
