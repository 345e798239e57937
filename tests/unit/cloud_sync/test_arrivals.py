"""Which hours of manifests a run of the cloud job lists."""

from __future__ import annotations

from pathlib import Path

from cloud_sync.names import ARRIVALS_FOLDER, arrival_hour
from cloud_sync.spark.arrivals import IN_TURN, Listing, recent
from cloud_sync.spark.storage import LocalStorage
from tests.unit.cloud_sync.support import NOW_MS

HOUR_MS = 3_600_000


def bucket_of(folder: Path, *hours: int) -> LocalStorage:
    """A bucket with manifests of some hours, counted from now."""
    for hour in hours:
        (folder / ARRIVALS_FOLDER / arrival_hour(NOW_MS + hour * HOUR_MS)).mkdir(parents=True)
    return LocalStorage(folder)


def folders_of(listing: Listing) -> set[str]:
    assert listing.folders is not None
    assert len(listing.folders) == len(set(listing.folders)), "no hour is listed twice"
    return set(listing.folders)


def test_hours_since_the_last_listing_are_near(tmp_path: Path) -> None:
    bucket = bucket_of(tmp_path, *range(-30, 10))
    last = Listing([], NOW_MS - 5 * HOUR_MS, "")
    found = folders_of(recent(bucket, last, NOW_MS + HOUR_MS // 2, 2 * HOUR_MS))
    near = {arrival_hour(NOW_MS + hour * HOUR_MS) for hour in range(-7, 3)}
    assert near <= found and len(found - near) == IN_TURN


def test_whole_days_since_the_last_listing_are_a_folder_each(tmp_path: Path) -> None:
    bucket = bucket_of(tmp_path, *range(-24 * 5, 0))
    found = recent(bucket, Listing([], NOW_MS - 50 * HOUR_MS, ""), NOW_MS, 0)
    late = [arrival_hour(NOW_MS + hour * HOUR_MS) for hour in (-50, -49)]
    assert found.folders is not None
    assert found.folders[:-IN_TURN] == [*late, "day=2025-11-19", "day=2025-11-20"]


def test_after_months_the_whole_bucket_is_listed(tmp_path: Path) -> None:
    bucket = bucket_of(tmp_path, *range(0, 200 * 24, 24))
    last = Listing([], NOW_MS, "day=2025-11-01/hour=00")
    assert recent(bucket, last, NOW_MS + 200 * 24 * HOUR_MS, HOUR_MS) == Listing(
        None, NOW_MS + 200 * 24 * HOUR_MS, last.turn
    )


def test_every_other_hour_has_its_turn_before_one_has_it_again(tmp_path: Path) -> None:
    others = [-500_000, *range(-100, -50), -30, 7, 400_000]
    bucket = bucket_of(tmp_path, *others, 0)
    last, now_ms, seen = Listing([], NOW_MS, ""), NOW_MS, []
    for _ in range(2 * -(-len(others) // IN_TURN)):
        last = recent(bucket, last, now_ms, HOUR_MS)
        now_ms += 60_000
        seen += [hour for hour in last.folders or () if hour != arrival_hour(NOW_MS)]
    expected = sorted(arrival_hour(NOW_MS + hour * HOUR_MS) for hour in others)
    assert seen[: len(expected)] == expected == seen[len(expected) : 2 * len(expected)]


def test_few_hours_are_all_listed_and_the_turn_stays(tmp_path: Path) -> None:
    bucket = bucket_of(tmp_path, -50, -40, 0)
    first = recent(bucket, Listing([], NOW_MS, ""), NOW_MS, HOUR_MS)
    assert len(folders_of(first)) == 3
    assert recent(bucket, first, NOW_MS, HOUR_MS) == first


def test_folders_of_other_names_and_an_empty_bucket_are_no_hours(tmp_path: Path) -> None:
    last = Listing([], NOW_MS, "")
    assert recent(LocalStorage(tmp_path / "none"), last, NOW_MS, HOUR_MS).folders == []
    bucket = bucket_of(tmp_path, 0)
    for name in ("day=[x/hour=00", "day=2025-11-21/hour=(", "gw=a/hour=01"):
        (tmp_path / ARRIVALS_FOLDER / name).mkdir(parents=True)
    assert recent(bucket, last, NOW_MS, HOUR_MS).folders == [arrival_hour(NOW_MS)]
    beyond_the_calendar_ms = 10**18
    assert recent(bucket, last, NOW_MS, beyond_the_calendar_ms).folders == ["day=2025-11-21"]
