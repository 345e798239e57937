"""Functions of other engines that penstock does not offer, each with the reason and the remedy, and those
that have another name here."""

from __future__ import annotations

COUNT_PER_KEY = "use a table with a count per key, create table T(k string primary key, n count(*))"

REFUSED: dict[str, str] = {
    "delay": (
        "it would stop the gateway while it waits; use a sliding window with a delay, SLIDINGWINDOW(ss, 0, 5)"
    ),
    "bypass": "it is internal to eKuiper; use the column itself",
    "inc_avg": "it is internal to eKuiper; use avg(x), which is always incremental",
    "inc_count": "it is internal to eKuiper; use count(x), which is always incremental",
    "inc_max": "it is internal to eKuiper; use max(x), which is always incremental",
    "inc_min": "it is internal to eKuiper; use min(x), which is always incremental",
    "inc_sum": "it is internal to eKuiper; use sum(x), which is always incremental",
    "inc_merge_agg": "it is internal to eKuiper; use merge_agg(x), which is always incremental",
    "inc_collect": "it is internal to eKuiper; use collect(x), which is always incremental",
    "inc_last_value": "it is internal to eKuiper; use last_value(x, true), which is always incremental",
    "instanceof": "events have no classes; compare typeof(x) with a type name, typeof(x) = 'bigint'",
    "array_avg": "a method of arrays gives it; use xs.average()",
    "countminsketch": COUNT_PER_KEY,
    "countminsketchadd": COUNT_PER_KEY,
    "exists": "a missing column is NULL; use x IS NOT NULL",
    "istream": (
        "it tells rows that come from rows that leave, which only statements of EPL have; use it in "
        "select irstream …, istream() from S#length(2)"
    ),
    "rstream": "NOT istream() tells the rows that leave; use that in a statement of EPL",
    "theta_sketch": "it needs the package datasketches; use pip install 'penstock[sketch]'",
    "theta_sketch_agg": "it needs the package datasketches; use pip install 'penstock[sketch]'",
    "transpose": "an event's type cannot be changed in place; name the columns, or use extract(x)",
}
"""Name in lower case to reason and remedy, which complete the sentence "<name>() is not offered: …"."""

NAMED_OTHERWISE: dict[str, str] = {
    **dict.fromkeys(("len", "strlen", "char_length", "character_length"), "length"),
    **dict.fromkeys(("array_length", "array_size", "json_array_length"), "cardinality"),
    **dict.fromkeys(("instr", "position", "strpos", "charindex"), "indexof"),
    **dict.fromkeys(("array_agg", "collect_list", "group_array"), "collect"),
    **dict.fromkeys(("now_ms", "epoch_ms"), "tstamp"),
    **dict.fromkeys(("json_extract", "json_value"), "json_path_query_first"),
    **dict.fromkeys(("date_format", "to_char"), "format_time"),
    "substr": "substring",
    "ucase": "upper",
    "lcase": "lower",
    "split_part": "split_value",
    "from_json": "parse_json",
}
"""Names of functions in other engines and here, where the nearest spelling is another function."""
