"""What waits for the rules: slices, lanes per topic, and the order within a topic."""

from __future__ import annotations

from edge.base.message import Message
from edge.intake.backlog import SLICE_BYTES, SLICE_MESSAGES, Arrival, Backlog
from edge.journal.record import Session


def messages(topic: str, count: int, size: int = 10) -> list[Message]:
    return [(topic, b"%09d" % number + b"x" * (size - 9), number, 2) for number in range(count)]


def drained(backlog: Backlog) -> list[Arrival]:
    found = []
    while (arrival := backlog.next_slice()) is not None:
        found.append(arrival)
    assert backlog.bytes == 0 and not backlog
    return found


def test_what_fits_is_handed_on_as_it_came() -> None:
    backlog, arrival = Backlog(), Arrival("mqtt", messages("a", SLICE_MESSAGES), [])
    backlog.put([arrival])
    assert drained(backlog) == [arrival]


def test_several_arrivals_that_fit_keep_their_order() -> None:
    """A table's row and the reading that is joined with it, twice, in two wake-ups."""
    backlog = Backlog()
    first = [*messages("row", 1), *messages("reading", 1)]
    backlog.put([Arrival("mqtt", first, []), Arrival("mqtt", first, [])])
    found = [message[0] for arrival in drained(backlog) for message in arrival.messages]
    assert found == ["row", "reading", "row", "reading"]


def test_each_topic_keeps_its_order_and_nothing_is_lost() -> None:
    backlog = Backlog()
    flood, calm = messages("flood", 5_000), messages("calm", 700)
    backlog.put(
        [Arrival("mqtt", flood[:4_000] + calm[:300] + flood[4_000:], []), Arrival("mqtt", calm[300:], [])]
    )
    found = [message for arrival in drained(backlog) for message in arrival.messages]
    assert [message for message in found if message[0] == "flood"] == flood
    assert [message for message in found if message[0] == "calm"] == calm


def test_a_flood_on_one_topic_does_not_hold_up_another() -> None:
    """100,000 messages came first; the other topic's one is in the second slice at the latest."""
    backlog = Backlog()
    backlog.put([Arrival("mqtt", messages("flood", 100_000), []), Arrival("mqtt", messages("calm", 1), [])])
    topics = [{message[0] for message in arrival.messages} for arrival in drained(backlog)]
    assert any("calm" in found for found in topics[:2])


def test_topics_whose_order_matters_share_a_lane() -> None:
    backlog = Backlog(lambda source, topic: "" if topic in ("row", "reading") else topic)
    both = [
        found
        for pair in zip(messages("row", 3_000), messages("reading", 3_000), strict=True)
        for found in pair
    ]
    backlog.put([Arrival("mqtt", [*both, *messages("calm", 1)], [])])
    slices = [list(arrival.messages) for arrival in drained(backlog)]
    assert [message for found in slices for message in found if message[0] != "calm"] == both
    assert any(message[0] == "calm" for message in [*slices[0], *slices[1]])


def test_large_payloads_hold_up_their_own_topic() -> None:
    """Ten payloads of a megabyte came first; before the other topic's message one of them is processed."""
    backlog = Backlog()
    backlog.put(
        [Arrival("mqtt", messages("large", 10, 1_000_000), []), Arrival("mqtt", messages("calm", 3), [])]
    )
    found = [message[0] for arrival in drained(backlog) for message in arrival.messages]
    assert found[:4] == ["large", "calm", "calm", "calm"]


def test_a_slice_is_bounded() -> None:
    backlog = Backlog()
    backlog.put([Arrival("mqtt", messages(f"t/{number % 50}", 100, 2_000), []) for number in range(500)])
    for arrival in drained(backlog):
        assert len(arrival.messages) <= SLICE_MESSAGES
        assert sum(len(message[1]) for message in arrival.messages) <= 2 * SLICE_BYTES


def test_a_session_waits_for_what_came_before_it() -> None:
    """Packet ids mean something else in a new session."""
    backlog = Backlog()
    before, after = messages("a", 2_000), messages("a", 10)
    session = Arrival("mqtt", [], [], Session("s", {}, True, []))
    backlog.put([Arrival("mqtt", before, []), session, Arrival("mqtt", after, [])])
    found = drained(backlog)
    at = found.index(session)
    assert [message for arrival in found[:at] for message in arrival.messages] == before
    assert [message for arrival in found[at + 1 :] for message in arrival.messages] == after


def test_slices_become_smaller_where_they_take_long_and_larger_again() -> None:
    backlog = Backlog()
    backlog.put([Arrival("mqtt", messages("a", 10 * SLICE_MESSAGES), [])])
    sizes = []
    for elapsed_ms in (20, 20, 20, 0, 0, 0, 0):
        arrival = backlog.next_slice()
        assert arrival is not None
        sizes.append(len(arrival.messages))
        backlog.took(elapsed_ms)
    assert sizes == [500, 250, 125, 62, 125, 250, 500]


def test_what_is_too_much_at_qos_0_is_dropped_from_the_fullest_lane_and_counted() -> None:
    backlog = Backlog()
    flood = [(topic, payload, None, 0) for topic, payload, _, _ in messages("flood", 1_000, 1_000)]
    calm = [(topic, payload, None, 0) for topic, payload, _, _ in messages("calm", 10)]
    backlog.put([Arrival("mqtt", [*flood, *calm], [])])
    first = backlog.next_slice()
    assert first is not None
    backlog.sheds = {"mqtt"}
    backlog.relieve(100_000)
    assert 50_000 < backlog.bytes <= 75_000
    found = [message for arrival in [first, *drained(backlog)] for message in arrival.messages]
    assert [message for message in found if message[0] == "calm"] == calm
    kept = [message for message in found if message[0] == "flood"]
    assert len(kept) + backlog.dropped == 1_000
    assert kept[-1] == flood[-1], "the oldest are dropped"


def test_messages_that_the_broker_keeps_are_not_dropped() -> None:
    backlog = Backlog()
    backlog.put(
        [Arrival("mqtt", messages("a", 1_000, 1_000), []), Arrival("file", messages("b", 1_000, 1_000), [])]
    )
    backlog.next_slice()
    waiting, backlog.sheds = backlog.bytes, {"mqtt"}
    backlog.relieve(1_000)
    assert (backlog.bytes, backlog.dropped) == (waiting, 0)
