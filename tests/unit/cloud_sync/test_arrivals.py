"""Which hours of manifests a run of the cloud job lists."""

from __future__ import annotations

from pathlib import Path

from cloud_sync.names import arrival_hour, arrivals_folder
from cloud_sync.spark.arrivals import IN_TURN, Listing, recent
from cloud_sync.spark.storage import LocalStorage
from tests.unit.cloud_sync.support import NOW_MS

HOUR_MS = 3_600_000


def bucket_of(folder: Path, *hours: int) -> LocalStorage:
    """A bucket with manifests of some hours, counted from now."""
    for hour in hours:
        (folder / arrivals_folder() / arrival_hour(NOW_MS + hour * HOUR_MS)).mkdir(parents=True)
    return LocalStorage(folder)


def hours_of(listing: Listing) -> set[str]:
    assert listing.hours is not None
    assert len(listing.hours) == len(set(listing.hours)), "no hour is listed twice"
    return set(listing.hours)


def test_hours_since_the_last_listing_are_near(tmp_path: Path) -> None:
    bucket = bucket_of(tmp_path, *range(-60, 10))
    last = Listing([], NOW_MS - 30 * HOUR_MS, "")
    found = hours_of(recent(bucket, last, NOW_MS + HOUR_MS // 2, 2 * HOUR_MS))
    near = {arrival_hour(NOW_MS + hour * HOUR_MS) for hour in range(-32, 3)}
    assert near <= found and len(found - near) == IN_TURN


def test_every_other_hour_has_its_turn_before_one_has_it_again(tmp_path: Path) -> None:
    others = [-500_000, *range(-100, -50), -30, 7, 400_000]
    bucket = bucket_of(tmp_path, *others, 0)
    last, now_ms, seen = Listing([], NOW_MS, ""), NOW_MS, []
    for _ in range(2 * -(-len(others) // IN_TURN)):
        last = recent(bucket, last, now_ms, HOUR_MS)
        now_ms += 60_000
        seen += [hour for hour in last.hours or () if hour != arrival_hour(NOW_MS)]
    expected = sorted(arrival_hour(NOW_MS + hour * HOUR_MS) for hour in others)
    assert seen[: len(expected)] == expected == seen[len(expected) : 2 * len(expected)]


def test_few_hours_are_all_listed_and_the_turn_stays(tmp_path: Path) -> None:
    bucket = bucket_of(tmp_path, -50, -40, 0)
    first = recent(bucket, Listing([], NOW_MS, ""), NOW_MS, HOUR_MS)
    assert len(hours_of(first)) == 3
    assert recent(bucket, first, NOW_MS, HOUR_MS) == first


def test_folders_of_other_names_and_an_empty_bucket_are_no_hours(tmp_path: Path) -> None:
    last = Listing([], NOW_MS, "")
    assert recent(LocalStorage(tmp_path / "none"), last, NOW_MS, HOUR_MS).hours == []
    bucket = bucket_of(tmp_path, 0)
    for name in ("day=[x/hour=00", "day=2025-11-21/hour=(", "gw=a/hour=01"):
        (tmp_path / arrivals_folder() / name).mkdir(parents=True)
    far_ms = 10**18
    assert recent(bucket, last, NOW_MS, far_ms).hours == [arrival_hour(NOW_MS)]
