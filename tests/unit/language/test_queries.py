"""Queries of the three languages: text to tree."""

from __future__ import annotations

from sql.language import parse
from sql.syntax import (
    Annotation,
    Assignment,
    Binary,
    Call,
    Column,
    Constant,
    CronField,
    GroupWindow,
    InsertInto,
    Join,
    LotSource,
    Ordering,
    OutputLimit,
    Over,
    PeriodLiteral,
    PeriodPart,
    Select,
    SelectItem,
    Star,
    StreamSource,
    Terminated,
    Unary,
    WindowCall,
)


def select(text: str) -> Select:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return statement


def output(text: str) -> OutputLimit:
    limit = select(f"select a from E {text}").output
    assert limit is not None
    return limit


def seconds(amount: float) -> PeriodLiteral:
    return PeriodLiteral((PeriodPart(Constant(amount), "second"),))


def greater(name: str, value: int) -> Binary:
    return Binary(">", Column(name), Constant(value))


class TestSelectItems:
    def test_aliases_and_texts(self) -> None:
        items = select(
            "SELECT a, b AS x, count( * )  y, c+1, avg(v) AS `my avg`, d invisible, e AS z INVISIBLE FROM s"
        ).items
        assert [(item.alias, item.text, item.invisible) for item in items] == [
            (None, "a", False),
            ("x", "b", False),
            ("y", "count( * )", False),
            (None, "c+1", False),
            ("my avg", "avg(v)", False),
            (None, "d", True),
            ("z", "e", True),
        ]

    def test_stars(self) -> None:
        star = Star(None, ("a", "b"), (SelectItem(Binary("+", Column("c"), Constant(1)), "c", text="c + 1"),))
        items = select("select * except(a, b) replace(c + 1 as c), s.*, * from s").items
        assert [item.expr for item in items] == [star, Star("s"), Star()]

    def test_selector_or_column(self) -> None:
        assert select("select irstream a from E").selector == "irstream"
        assert select("select rstream * from E").selector == "rstream"
        assert select("select istream distinct a from E").distinct
        assert select("select rstream, istream() as i from E").selector is None
        assert select("select rstream from E").items[0].expr == Column("rstream")

    def test_without_from(self) -> None:
        assert select("select current_timestamp as ts").source is None


class TestEkuiper:
    def test_all_clauses(self) -> None:
        query = select(
            "SELECT dev FROM demo AS d WHERE v > 1 GROUP BY dev, TUMBLINGWINDOW(ss, 10) HAVING v > 2 "
            "ORDER BY dev DESC, n NULLS FIRST LIMIT 5 OFFSET 2"
        )
        assert query == Select(
            (SelectItem(Column("dev"), text="dev"),),
            StreamSource("demo", "d"),
            where=greater("v", 1),
            group_by=(Column("dev"),),
            windows=(GroupWindow("tumbling", (Column("ss"), Constant(10))),),
            having=greater("v", 2),
            order_by=(Ordering(Column("dev"), True), Ordering(Column("n"), False, True)),
            limit=Constant(5),
            offset=Constant(2),
        )

    def test_windows_in_any_case_and_order(self) -> None:
        query = select("select * from s group by hoppingwindow(ms, 10, 5), a, CountWindow(3)")
        assert [(window.name, len(window.args)) for window in query.windows] == [("hopping", 3), ("count", 1)]
        assert query.group_by == (Column("a"),)

    def test_filter_and_over_in_either_order(self) -> None:
        want = GroupWindow(
            "sliding",
            (Column("ss"), Constant(10)),
            greater("a", 1),
            Over((Column("b"), Column("c")), greater("d", 2)),
        )
        for suffix in (
            "FILTER(WHERE a > 1) OVER(WHEN d > 2 PARTITION BY b, c)",
            "over (partition by b, c when d > 2) filter (where a > 1)",
        ):
            assert select(f"SELECT * FROM s GROUP BY SLIDINGWINDOW(ss, 10) {suffix}").windows == (want,)

    def test_state_window_takes_conditions(self) -> None:
        (window,) = select("SELECT * FROM s GROUP BY STATEWINDOW(a > 1, b > 2)").windows
        assert window.args == (greater("a", 1), greater("b", 2))

    def test_a_column_may_be_called_like_a_window(self) -> None:
        query = select("SELECT * FROM s GROUP BY countwindow")
        assert query.group_by == (Column("countwindow"),) and not query.windows

    def test_joins(self) -> None:
        same = Binary("=", Column("id", "a"), Column("id", "b"))
        for words, kind in [
            ("JOIN", "inner"),
            ("INNER JOIN", "inner"),
            ("LEFT JOIN", "left"),
            ("left outer join", "left"),
            ("RIGHT JOIN", "right"),
            ("FULL OUTER JOIN", "full"),
        ]:
            query = select(f"SELECT * FROM a {words} t AS b ON a.id = b.id")
            assert query.joins == (Join(kind, StreamSource("t", "b"), same),)  # type: ignore[arg-type]
        query = select("SELECT * FROM a CROSS JOIN b INNER JOIN c ON x")
        assert [join.kind for join in query.joins] == ["cross", "inner"]


class TestEpl:
    def test_source_with_everything(self) -> None:
        source = select(
            "select * from E(a > 1, b > 2)#groupwin(k)#win:time(1 min)#sort(3, n desc, m).std:lastevent "
            "retain-union as e unidirectional"
        ).source
        assert source == StreamSource(
            "E",
            "e",
            Binary("and", greater("a", 1), greater("b", 2)),
            (
                WindowCall("groupwin", (Column("k"),)),
                WindowCall("time", (PeriodLiteral((PeriodPart(Constant(1), "minute"),)),), "win"),
                WindowCall("sort", (Constant(3), Ordering(Column("n"), True), Column("m"))),
                WindowCall("lastevent", (), "std"),
            ),
            "union",
            True,
        )

    def test_window_arguments(self) -> None:
        def args(text: str) -> tuple[object, ...]:
            source = select(f"select * from E#w({text})").source
            assert isinstance(source, StreamSource)
            return source.windows[0].args

        assert args("") == ()
        assert args("10 sec, 5000L, 'START_EAGER'") == (seconds(10), Constant(5000), Constant("START_EAGER"))
        assert args("price, *") == (Column("price"), Star())
        assert args("d minutes") == (PeriodLiteral((PeriodPart(Column("d"), "minute"),)),)
        assert args("n asc") == (Ordering(Column("n"), False),)
        assert args("sum(n) > 10, false") == (
            Binary(">", Call("sum", (Column("n"),)), Constant(10)),
            Constant(False),
        )

    def test_sources_of_a_join(self) -> None:
        query = select("select * from E as e unidirectional, S#keepall s where e.k = s.id")
        assert query.source == StreamSource("E", "e", unidirectional=True)
        assert query.joins == (Join("cross", StreamSource("S", "s", windows=(WindowCall("keepall"),))),)

    def test_retain_after_the_alias(self) -> None:
        source = select("select * from E#length(2)#time(5) as e retain-intersection").source
        assert isinstance(source, StreamSource) and (source.alias, source.retain) == ("e", "intersection")

    def test_insert_into(self) -> None:
        assert select("insert into X select a from E").insert_into == InsertInto("X")
        assert select("insert rstream into X(a, b) select rstream a, b from E").insert_into == InsertInto(
            "X", "rstream", ("a", "b")
        )

    def test_annotations(self) -> None:
        query = select("@name('s0') @Hint(\"a=10,b=30\") @Priority(-1) @public select a from E")
        assert query.annotations == (
            Annotation("name", "s0"),
            Annotation("hint", "a=10,b=30"),
            Annotation("priority", -1),
            Annotation("public"),
        )

    def test_annotations_with_named_attributes(self) -> None:
        query = select("@Tag(name='unit', value='bar') @Priority(value=2) @Tag(name='x') select a from E")
        assert query.annotations == (
            Annotation("tag", "bar"),
            Annotation("priority", 2),
            Annotation("tag"),
        )

    def test_annotations_of_java(self) -> None:
        """Arrays and names as values, a package before the name, and no attribute."""
        query = select("@Alert(keys={'a', \"b\"}) @com.acme.Mode(JSON) @Audit() select a from E")
        assert query.annotations == (Annotation("alert"), Annotation("mode", "JSON"), Annotation("audit"))

    def test_order_limit_after_output(self) -> None:
        query = select("select a from E output snapshot every 5 seconds order by a limit 1")
        assert query.output == OutputLimit("snapshot", every=seconds(5))
        assert query.order_by == (Ordering(Column("a")),) and query.limit == Constant(1)


class TestOutput:
    def test_every(self) -> None:
        assert output("output every 2.5 sec") == OutputLimit(every=seconds(2.5))
        assert output("output last every 2 events") == OutputLimit("last", every_events=Constant(2))
        assert output("output all every N events") == OutputLimit("all", every_events=Column("N"))

    def test_after(self) -> None:
        assert output("output after 2 events") == OutputLimit(after_events=Constant(2))
        assert output("output after 2 sec first every 1 sec") == OutputLimit(
            "first", seconds(2), every=seconds(1)
        )

    def test_at_a_crontab(self) -> None:
        fields = output("output at (*/2, *, [1,15], *, 5 last, 0:30, 'GMT+1')").at
        assert fields == tuple(
            CronField(text) for text in ("*/2", "*", "[1,15]", "*", "5 last", "0:30", "GMT+1")
        )

    def test_when(self) -> None:
        zero, one = Assignment("v", Constant(0)), Assignment("w", Binary("+", Column("w"), Constant(1)))
        assert output("output when a > 1 then set v = 0, w = w + 1") == OutputLimit(
            when=greater("a", 1), then_set=(zero, one)
        )

    def test_when_terminated(self) -> None:
        assert output("output last when terminated") == OutputLimit("last", terminated=Terminated())
        assert output("output when terminated and a > 1 then set v = 0") == OutputLimit(
            terminated=Terminated(greater("a", 1), (Assignment("v", Constant(0)),))
        )

    def test_both(self) -> None:
        assert output("output when a > 1 and b > 2 and when terminated") == OutputLimit(
            when=Binary("and", greater("a", 1), greater("b", 2)), terminated=Terminated()
        )
        assert output("output every 1 sec and when terminated").terminated == Terminated()


class TestStreamQueries:
    def test_batched_window(self) -> None:
        assert select("from v in values within 1.5 every 1.0 select sum(v)") == Select(
            (SelectItem(Call("sum", (Column("v"),)), text="sum(v)"),),
            LotSource("values", "v", windows=(("within", Constant(1.5)),), every=Constant(1.0)),
            lots=True,
        )

    def test_all_parts_of_a_window(self) -> None:
        source = select(
            "from v in s partition by v.k, v.j within d every 2 retain 3 with unique v.x select v"
        ).source
        assert source == LotSource(
            "s",
            "v",
            (Column("k", "v"), Column("j", "v")),
            (("within", Column("d")), ("retain", Constant(3))),
            Constant(2),
            unique=(Column("x", "v"),),
        )

    def test_by_count(self) -> None:
        assert select("from v in s retain 3 every 2 select v").source == LotSource(
            "s", "v", windows=(("retain", Constant(3)),), every=Constant(2)
        )
        assert select("from v in s retain all select count()").source == LotSource(
            "s", "v", windows=(("retain all", None),)
        )

    def test_templates(self) -> None:
        same = Binary("=", Column("k"), Constant("A"))
        assert select('from v in all s(k="A") retain 3 select v').source == LotSource(
            "s", "v", windows=(("retain", Constant(3)),), filter=same
        )
        assert select("from v in all s() select v").source == LotSource("s", "v")
        assert select("from v in all within 5.0 select v").source == LotSource(
            "all", "v", windows=(("within", Constant(5.0)),)
        )

    def test_periods_in_words(self) -> None:
        assert select("from v in s within 5 sec every 1 sec select v").source == LotSource(
            "s", "v", windows=(("within", seconds(5)),), every=seconds(1)
        )

    def test_clauses(self) -> None:
        query = select(
            "from v in s retain 2 where v.a > 1 group by v.k having count() > 1 select rstream v.k as key"
        )
        assert query.selector == "rstream" and query.group_by == (Column("k", "v"),)
        assert query.having == Binary(">", Call("count"), Constant(1))
        assert query.items == (SelectItem(Column("k", "v"), "key", text="v.k"),)

    def test_joins(self) -> None:
        query = select("from a in s within 5 join b in t retain 1 on a.k equals b.k select a")
        same = Binary("=", Column("k", "a"), Column("k", "b"))
        assert query.joins == (Join("inner", LotSource("t", "b", windows=(("retain", Constant(1)),)), same),)
        query = select("from a in s retain 1 from b in t where not a.x select b")
        assert query.joins == (Join("cross", LotSource("t", "b")),)
        assert query.where == Unary("not", Column("x", "a"))
