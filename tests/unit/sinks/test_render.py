"""Rendering: what the common properties make of rows."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from sinks import SinkSettings
from sinks.builtin.file import FileSettings
from sinks.builtin.memory import MemorySettings
from sinks.render import Rendered, Renderer
from sql import Emission
from tests.unit.sinks.support import rows

A = {"dev": "a", "temp": 21.5, "gap": None}
B = {"dev": "b", "temp": 22, "gap": None}


def render(settings: dict[str, Any], *emissions: Any, model: type[SinkSettings] = SinkSettings) -> Rendered:
    return Renderer(model.model_validate(settings), "hot").render(emissions or [rows(A, B)])


def payloads(settings: dict[str, Any], *emissions: Any) -> list[str]:
    rendered = render(settings, *emissions)
    assert not rendered.failed
    return [message.payload.decode() for message in rendered.messages]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ['[{"dev":"a","temp":21.5},{"dev":"b","temp":22}]']),
        ({"sendSingle": True}, ['{"dev":"a","temp":21.5}', '{"dev":"b","temp":22}']),
        (
            {"sendNilField": True, "fields": ["gap", "dev"]},
            ['[{"gap":null,"dev":"a"},{"gap":null,"dev":"b"}]'],
        ),
        (
            {"fields": ["temp", "dev", "gap"]},
            ['[{"temp":21.5,"dev":"a","gap":null},{"temp":22,"dev":"b","gap":null}]'],
        ),
        ({"excludeFields": ["temp"]}, ['[{"dev":"a"},{"dev":"b"}]']),
        ({"dataTemplate": "{{range .}}{{.dev}} {{end}}"}, ["a b "]),
        ({"dataTemplate": "{{.dev}}!", "sendSingle": True}, ["a!", "b!"]),
        (
            {"dataTemplate": '{"d":{"v":"{{.dev}}"},"k":1}', "sendSingle": True, "dataField": "d"},
            ['{"v":"a"}', '{"v":"b"}'],
        ),
        ({"dataTemplate": '{"v":1,"w":2}', "fields": ["w"]}, ['{"w":2}']),
        ({"dataTemplate": '[{"v":1,"w":2}]', "fields": ["w"]}, ['[{"w":2}]']),
        (
            {"dataTemplate": '[{"v":"{{.dev}}","w":2}]', "fields": ["v"], "sendSingle": True},
            ['[{"v":"a"}]', '[{"v":"b"}]'],
        ),
        ({"dataField": "temp"}, ["[21.5,22]"]),
        ({"format": "delimited"}, ["a,21.5,\nb,22,"]),
        (
            {"format": "delimited", "delimiter": ";", "hasHeader": True, "fields": ["temp", "dev"]},
            ["temp;dev\n21.5;a\n22;b"],
        ),
        (
            {"format": "delimited", "sendSingle": True, "hasHeader": True},
            ["dev,temp,gap\na,21.5,", "dev,temp,gap\nb,22,"],
        ),
    ],
)
def test_common_properties(settings: dict[str, Any], expected: list[str]) -> None:
    assert payloads(settings) == expected


def test_an_empty_result_is_an_empty_array_unless_omitted() -> None:
    assert payloads({}, rows()) == ["[]"]
    assert payloads({"omitIfEmpty": True}, rows()) == []
    assert payloads({"sendSingle": True}, rows()) == []


def test_a_row_without_a_value_is_no_message_of_its_own_if_omitted() -> None:
    some = rows({"ab": "hello1"}, {}, {"ab": None})
    one = {"sendSingle": True}
    assert payloads(one, some) == ['{"ab":"hello1"}', "{}", "{}"]
    assert payloads(one | {"omitIfEmpty": True}, some) == ['{"ab":"hello1"}']
    assert payloads(one | {"omitIfEmpty": True, "sendNilField": True}, some)[1:] == ['{"ab":null}']
    assert payloads(one | {"omitIfEmpty": True, "dataTemplate": "{{.ab}}"}, some) == ["hello1"]
    assert payloads({"omitIfEmpty": True}, rows({})) == ["[{}]"]


def test_delimited_lines_quote_and_keep_columns_of_unequal_rows_apart() -> None:
    assert payloads(
        {"format": "delimited", "hasHeader": True}, rows({"a": 'x,"y"', "b": [1, 2]}, {"c": True, "a": "z"})
    ) == ['a,b,c\n"x,""y""","[1,2]",\nz,,true']


def test_a_list_in_data_field_gives_several_rows() -> None:
    assert payloads(
        {"dataField": "values"}, rows({"values": [{"v": 1}, {"v": 2}]}, {"values": {"v": 3}})
    ) == ['[{"v":1},{"v":2},{"v":3}]']


def test_what_data_field_of_one_row_holds_is_the_message() -> None:
    assert payloads({"dataField": "value"}, rows({"value": {"v": 1}})) == ['{"v":1}']
    assert payloads({"dataField": "value", "fields": ["w"]}, rows({"value": {"v": 1, "w": 2}})) == ['{"w":2}']
    assert payloads({"dataField": "value"}, rows({"value": [{"v": 1}]})) == ['[{"v":1}]']


def test_each_of_the_fields_is_sent() -> None:
    """What a row does not have is null, as eKuiper sends it; other NULLs are left out."""
    some = rows({"a": 1, "b": 2}, {"a": 3, "c": {"d": None}}, {"data": 1})
    expected = ['{"a":1,"b":2}', '{"a":3,"b":null}', '{"a":null,"b":null}']
    assert payloads({"fields": ["a", "b"], "sendSingle": True}, some) == expected
    assert payloads({"fields": ["d"], "dataField": "c"}, rows({"c": {"a": 1}})) == ['{"d":null}']
    assert payloads({"excludeFields": ["b"], "sendSingle": True}, rows({"a": None, "b": 2})) == ["{}"]


def test_a_list_in_data_field_is_a_list_of_a_row_by_itself_too() -> None:
    one = {"dataField": "data", "fields": ["a", "b"], "sendSingle": True}
    nested = {"a": 5, "b": 6, "c": "world"}
    some = rows({"a": 3, "data": [nested]}, {"data": nested}, {"data": [nested, nested]}, {"data": []})
    assert payloads(one, some) == [
        '[{"a":5,"b":6}]', '{"a":5,"b":6}', '[{"a":5,"b":6},{"a":5,"b":6}]', "[]",
    ]  # fmt: skip


def test_numbers_of_delimited_lines_have_no_exponent() -> None:
    assert payloads({"format": "delimited"}, rows({"a": 3.0, "b": 1e21, "c": 0.00001})) == [
        "3,1000000000000000000000,0.00001"
    ]


def test_empty_properties_are_as_absent() -> None:
    empty = {
        "fields": [],
        "dataField": "",
        "dataTemplate": "",
        "schemaId": "",
        "compression": "",
        "encryption": "",
    }
    assert payloads(empty) == payloads({})


def test_removed_rows_follow_and_are_marked_on_request() -> None:
    emission = Emission("hot", 5, inserted=[{"n": 1}], removed=[{"n": 2}])
    assert payloads({}, emission) == ['[{"n":1},{"n":2}]']
    assert payloads({"rowkindField": "kind"}, emission) == [
        '[{"n":2,"kind":"delete"},{"n":1,"kind":"insert"}]'
    ]


def test_a_row_that_is_inserted_and_removed_is_no_change_of_a_store() -> None:
    came = [{"k": "a", "n": [1]}, {"k": "b", "n": [1]}, {"k": "a", "n": [1]}]
    went = [{"k": "c", "n": [1]}, {"k": "a", "n": [1]}]
    emission = Emission("worst", 5, inserted=came, removed=went)
    (payload,) = payloads({"rowkindField": "kind"}, emission)
    assert json.loads(payload) == [
        {"k": "c", "n": [1], "kind": "delete"},
        {"k": "b", "n": [1], "kind": "insert"},
        {"k": "a", "n": [1], "kind": "insert"},
    ]
    assert len(json.loads(payloads({}, emission)[0])) == 5


def test_error_emissions_say_what_happened_to_which_event() -> None:
    emission = Emission("hot", 5, "error", error="cannot add text", inserted=[{"temp": "x"}])
    assert json.loads(payloads({}, emission)[0]) == [
        {"error": "cannot add text", "rule": "hot", "at": 5, "event": {"temp": "x"}}
    ]
    assert json.loads(payloads({}, Emission("hot", 5, "error", error="gone"))[0]) == [
        {"error": "gone", "rule": "hot", "at": 5}
    ]


def test_nan_and_infinities_become_null_and_are_counted() -> None:
    rendered = render({}, rows({"a": float("nan"), "b": [float("inf")], "c": 1.5}))
    assert rendered.messages[0].payload == b'[{"a":null,"b":[null],"c":1.5}]'
    assert rendered.non_finite == 2


def test_nan_in_a_column_that_is_left_out_is_not_counted() -> None:
    rendered = render(
        {"fields": ["b", "c"], "sendNilField": True}, rows({"a": float("nan"), "b": None, "c": 1})
    )
    assert rendered.messages[0].payload == b'[{"b":null,"c":1}]'
    assert rendered.non_finite == 0


def test_integers_of_any_size_stay_exact() -> None:
    assert payloads({"sendSingle": True}, rows({"n": 2**80})) == ['{"n":1208925819614629174706176}']


def test_rows_for_different_targets_go_into_separate_messages_in_order_of_appearance() -> None:
    settings = {"topic": "site/{{.dev}}", "sendNilField": False}
    rendered = render(settings, rows(B, A, {"dev": "b", "temp": 1}), model=MemorySettings)
    assert [(message.target, [row["temp"] for row in message.rows]) for message in rendered.messages] == [
        ("site/b", [22, 1]),
        ("site/a", [21.5]),
    ]


def test_single_rows_keep_their_order_across_targets() -> None:
    rendered = render({"topic": "s/{{.dev}}", "sendSingle": True}, rows(B, A, B), model=MemorySettings)
    assert [message.target for message in rendered.messages] == ["s/b", "s/a", "s/b"]


def test_a_row_without_target_fails_alone() -> None:
    rendered = render({"topic": "s/{{.dev}}"}, rows(A, {"temp": 1}, B), model=MemorySettings)
    assert [message.target for message in rendered.messages] == ["s/a", "s/b"]
    assert [(failed.rows, failed.reason) for failed in rendered.failed] == [
        (({"temp": 1},), "topic: field 'dev' is NULL")
    ]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"dataTemplate": "{{.dev.x}}", "sendSingle": True}, "field 'x' of a text"),
        ({"dataTemplate": "no json", "fields": ["a"]}, "dataTemplate gives no JSON"),
        ({"dataField": "gap"}, "dataField 'gap' is absent or NULL"),
        ({"format": "delimited", "dataField": "temp"}, "needs rows of columns"),
    ],
)
def test_rows_that_cannot_be_rendered_are_given_back_with_the_reason(
    settings: dict[str, Any], reason: str
) -> None:
    rendered = render(settings, rows(A))
    assert rendered.messages == []
    assert reason in rendered.failed[0].reason
    assert rendered.failed[0].rows == (A,)


def test_compression_is_of_the_whole_message_and_repeatable() -> None:
    settings = {"format": "delimited", "hasHeader": True}
    plain = payloads(settings)[0].encode()
    zipped = render(settings | {"compression": "gzip"}).messages[0].payload
    assert gzip.decompress(zipped) == plain
    assert zipped == render(settings | {"compression": "gzip"}).messages[0].payload
    assert zlib.decompress(render(settings | {"compression": "zlib"}).messages[0].payload) == plain


def test_sinks_that_append_get_the_header_apart_and_compress_themselves() -> None:
    settings = {"path": "a.csv", "format": "delimited", "hasHeader": True, "compression": "gzip"}
    message = render(settings, rows({"n": 1}), model=FileSettings).messages[0]
    assert (message.header, message.payload) == (b"n\n", b"1\n")


def test_several_results_can_be_one_message() -> None:
    rendered = render({}, rows({"n": 1}, at_ms=7), rows({"n": 2}, at_ms=9))
    assert [(message.payload, message.at_ms, message.rule_id) for message in rendered.messages] == [
        (b'[{"n":1},{"n":2}]', 7, "hot")
    ]
