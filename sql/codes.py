"""The codes of the engine's problems, each with its meaning and remedy. The manual's page of errors is
generated from them.

P: the text cannot be read. B0: the shape of a rule. B1: declarations. B2: names. B3: expressions and calls.
B4: time. B5: windows. B6: clauses without effect. B7: warnings. B8: patterns, contexts. The meaning of a code
never changes; a new problem gets a new one.
"""

from __future__ import annotations

from typing import NamedTuple


class CodeText(NamedTuple):
    """The meaning of a code, and its remedy. Both are sentences without full stop."""

    title: str
    remedy: str


CODES: dict[str, CodeText] = {
    "P001": CodeText("an unexpected word or sign", "the message names what is expected"),
    "P002": CodeText(
        "a character that no statement contains", "quote it, or use the spelling the message shows"
    ),
    "P003": CodeText("a quoted text or name never ends", "close it with the same quote"),
    "P004": CodeText("a comment never ends", "close it with */"),
    "P005": CodeText("the text is too long", "split it into several rules"),
    "P006": CodeText(
        "nested too deeply, or a chain with too many operators",
        "use IN for lists of values, or split the rule",
    ),
    "P007": CodeText("brackets do not match", "add or remove the bracket"),
    "P008": CodeText("not a number", "put a space between number and name; write 1e3, 0.5 or 10"),
    "P009": CodeText(
        "a clause stands twice or too late",
        "keep one, in the order SELECT FROM WHERE GROUP BY HAVING ORDER BY LIMIT",
    ),
    "P010": CodeText("not the beginning of a statement", "begin with SELECT, FROM, INSERT INTO or CREATE"),
    "P011": CodeText("there is no statement", "write one"),
    "P012": CodeText(
        "a join without condition, CROSS JOIN with one, or a comma beside a window in GROUP BY",
        "add ON with a condition, or use CROSS JOIN for all pairs",
    ),
    "P013": CodeText("an option, or a column of an insert, stands twice", "keep one of them"),
    "P014": CodeText(
        "a command, not a statement of a rule file", "the hint names the command that does the same here"
    ),
    "P017": CodeText("an annotation that patterns do not have", "the message names those there are"),
    "P018": CodeText(
        "steps of a pattern that cannot be combined", "begin with an event; combine absences by OR"
    ),
    "P019": CodeText(
        "an unknown timer, or a timer in the wrong place",
        "timer:interval, timer:at and timer:schedule "
        "stand by themselves, timer:within and timer:withinmax behind WHERE",
    ),
    "P020": CodeText("an impossible definition of a context", "the message names what is expected"),
    "P090": CodeText("valid, but not supported yet", "the hint names an alternative if there is one"),
    "B001": CodeText("a rule is one SELECT statement", "declare streams under streams:, one rule per query"),
    "B002": CodeText("a rule reads at least one stream", "add FROM"),
    "B101": CodeText("unknown type", "use one of the names in the hint"),
    "B102": CodeText("a column is declared twice", "keep one declaration"),
    "B103": CodeText(
        "unknown stream option",
        "options of a stream are DATASOURCE, FORMAT, TIMESTAMP and others; the hint names the nearest one",
    ),
    "B104": CodeText("the timestamp column is not a column of the stream", "declare it, or name another"),
    "B105": CodeText(
        "an option of a stream or table with a wrong value", "the message names the valid values"
    ),
    "B106": CodeText("a default of another type than its column", "write a value of the column's type"),
    "B107": CodeText(
        "a type that inherits from itself, from a stream with a source, or from a table",
        "name a type made before it; use copyfrom for the columns of a stream",
    ),
    "B108": CodeText(
        "a statement that would read one event twice, as two of its types",
        "read the type that the others inherit, alone",
    ),
    "B201": CodeText("unknown column", "the message lists the columns the stream has"),
    "B202": CodeText(
        "unknown stream, or a star in the wrong place", "declare it with CREATE STREAM or under streams:"
    ),
    "B203": CodeText("a column that several streams have", "qualify it with its stream: m.temp"),
    "B204": CodeText("unknown function", "the hint names the nearest one"),
    "B205": CodeText("two sources of the same name", "give one an alias with AS"),
    "B206": CodeText("two result columns of the same name", "give one an alias with AS"),
    "B207": CodeText("unknown variable", "declare it under variables:"),
    "B208": CodeText("a constant is assigned", "assign a variable"),
    "B209": CodeText(
        "a subquery in the wrong place, without window, or with several columns where it needs one",
        "give it a window, for example E#lastevent; select one column",
    ),
    "B210": CodeText(
        "aliases that define each other", "rename one; qualify the column where the column is meant"
    ),
    "B301": CodeText("a value of the wrong type", "convert it, for example with cast(x, 'bigint')"),
    "B302": CodeText(
        "a comparison of different types, which is never true",
        "compare numbers with numbers and strings with strings",
    ),
    "B303": CodeText("unknown type in a cast", "the hint names the nearest one"),
    "B304": CodeText(
        "a number of rows that is no whole number, or ASC and DESC outside of sort criteria", "LIMIT 10"
    ),
    "B305": CodeText(
        "an unknown method, or a lambda outside of one",
        "lists have selectFrom(x => …), countOf(), firstOf() and lastOf()",
    ),
    "B306": CodeText(
        "a length of time where a value is expected", "use periods in windows and output limits only"
    ),
    "B307": CodeText("a text of the wrong form, such as a faulty regular expression", "the message says why"),
    "B310": CodeText("too many or too few arguments", "the message says how many the function takes"),
    "B311": CodeText("DISTINCT or FILTER on a function that is no aggregate", "remove it"),
    "B312": CodeText("a function parameter that must be a constant", "write an expression without columns"),
    "B313": CodeText("a function that is refused on purpose", "the message says why and what to use"),
    "B314": CodeText("a function this engine does not have", "the message says why and what to use"),
    "B315": CodeText(
        "a function that makes rows or columns, in the wrong place",
        "use it by itself in SELECT, one per rule",
    ),
    "B316": CodeText("OVER, or a part of it, where it has no effect", "remove it"),
    "B320": CodeText(
        "a window function without window, or in a clause before the window", "add a window in GROUP BY"
    ),
    "B321": CodeText("meta() without the name of a field", "write meta(topic)"),
    "B322": CodeText(
        "prev or prior without a window in FROM, in a subquery or in a question on demand",
        "use it in SELECT of a query with E#window",
    ),
    "B323": CodeText(
        "prev() without a whole number of events, or prior() with one that is not constant",
        "write prev(1, x), and for prior() the number itself",
    ),
    "B324": CodeText(
        "prev() without data window, or an analytic function in the wrong place",
        "add a window, for example E#length(2)",
    ),
    "B325": CodeText(
        "an analytic function, prev or prior in a join", "compute it in a separate rule and join that"
    ),
    "B330": CodeText("an aggregate in the wrong place", "move the condition to HAVING"),
    "B331": CodeText("a star in an aggregate that needs a column", "name the column"),
    "B332": CodeText("an aggregate parameter that must be a constant", "write an expression without columns"),
    "B333": CodeText(
        "a hit counter in a clause that counts no hits", "use it in SELECT, WHERE, HAVING or WHEN"
    ),
    "B334": CodeText("row_number() outside of SELECT", "number in SELECT; a second rule can filter by it"),
    "B403": CodeText("event time without timestamp column", 'declare it: WITH (…, TIMESTAMP="ts")'),
    "B501": CodeText("unknown window", "the hint names the nearest one"),
    "B502": CodeText("a window in the wrong namespace", "after # the namespace may be left out"),
    "B503": CodeText("too many or too few window parameters", "the message shows how the window is written"),
    "B504": CodeText(
        "a size that is no whole number of at least 1, or too large; a parameter of a window that is NULL",
        "the message names the bound; the value of a variable counts as it is when the rule starts",
    ),
    "B505": CodeText(
        "a window parameter that reads events",
        "use a constant or a variable: the parameter is fixed when the rule starts",
    ),
    "B506": CodeText(
        "no length of time, or one below 1 ms or above a hundred years",
        "write 10 sec, 2 min 30 sec or a number of seconds",
    ),
    "B507": CodeText("a key, sort criterion or time stamp that is constant", "name a column"),
    "B508": CodeText("an unknown flow control keyword", "there are FORCE_UPDATE and START_EAGER"),
    "B510": CodeText(
        "two batch windows", "batch in one rule and insert into a stream that the next one reads"
    ),
    "B511": CodeText("two groupwin", "give groupwin all keys at once"),
    "B512": CodeText("groupwin does not stand first", "move it to the front"),
    "B513": CodeText("groupwin without a window", "for example E#groupwin(k)#length(5)"),
    "B514": CodeText(
        "merge without its groupwin, with other keys, or behind two windows",
        "merge takes the keys of its groupwin",
    ),
    "B515": CodeText(
        "a window behind a derived-value window", "insert into a stream that the next rule reads"
    ),
    "B520": CodeText("a window in GROUP BY with the wrong parameters", "the message names them"),
    "B521": CodeText(
        "a count interval larger than the size",
        "COUNTWINDOW(size, interval): the interval is at most the size",
    ),
    "B522": CodeText("a window that does not begin with a time unit", "the units are DD, HH, MI, SS, MS"),
    "B523": CodeText("two windows in GROUP BY", "keep one; write a rule for each"),
    "B524": CodeText("a window in GROUP BY and one in FROM", "keep one of them"),
    "B525": CodeText(
        "OVER(PARTITION BY …) or a FILTER over several streams on the window of a join",
        "use GROUP BY, ON or WHERE",
    ),
    "B526": CodeText(
        "a reclaim hint that is no number", "@Hint('reclaim_group_aged=10,reclaim_group_freq=30')"
    ),
    "B527": CodeText(
        "a joined stream without window", "give each a window, or mark the driving one unidirectional"
    ),
    "B528": CodeText(
        "a crontab that cannot be read", "five to nine fields: minute, hour, day, month, day of week"
    ),
    "B529": CodeText("an output limit that reads columns", "use variables and its built-in counts"),
    "B530": CodeText("'retain all' together with what needs a bound", "remove one of the two"),
    "B531": CodeText("the remove stream of an aggregate stream query", "select without rstream"),
    "B532": CodeText(
        "a lookup table of a source without KEY", "write KEY, the column that rows are found by"
    ),
    "B533": CodeText("a table where a stream is needed", "read a stream, and join the table to it"),
    "B534": CodeText(
        "a lookup table that cannot be read here",
        "use INNER or LEFT JOIN, or a subquery with an equality, in a rule or trigger over a stream",
    ),
    "B535": CodeText(
        "a column of one item in an aggregate stream query", "group by it, or aggregate it: last(…)"
    ),
    "B536": CodeText(
        "ON of an outer join that reads a later source", "join that source first, or use its own ON"
    ),
    "B541": CodeText(
        "a table read by other values than its key",
        "give one value per column of the primary key: T[k].column",
    ),
    "B542": CodeText(
        "the named and the selected columns differ in number",
        "name each selected column once, and select no *",
    ),
    "B543": CodeText(
        "a data window on a named window or table", "leave the window out: the relation keeps its rows itself"
    ),
    "B544": CodeText(
        "unidirectional in the wrong place",
        "write it at a stream without data window, whose events drive the join",
    ),
    "B545": CodeText(
        "rollup, cube or grouping sets whose rows cannot be made", "select keys of GROUP BY and aggregates"
    ),
    "B546": CodeText(
        "into table groups by other keys than the table has",
        "group by the columns of its primary key, in their order",
    ),
    "B547": CodeText(
        "an aggregate that is not declared so in the table",
        "declare the column as the aggregate that is selected",
    ),
    "B548": CodeText(
        "an aggregate that must remove values, without a data window",
        "declare minever or maxever, or add a window in FROM",
    ),
    "B549": CodeText(
        "a value of another type than its column",
        "select a value of the column's type, or declare the column so",
    ),
    "B550": CodeText(
        "a column that into table maintains is written", "only into table writes columns that aggregate"
    ),
    "B551": CodeText("a name that is taken", "choose another name"),
    "B552": CodeText(
        "a named window without data window", "say which rows it keeps, for example #keepall or #length(100)"
    ),
    "B553": CodeText("a copy of rows from a source that keeps none", "copy from a named window"),
    "B554": CodeText("a key that aggregates", "make a plain column the key"),
    "B555": CodeText(
        "an index with several btree columns, or with a column twice",
        "one column may be btree, the others are hash",
    ),
    "B556": CodeText("WHEN NOT MATCHED with an action other than insert", "use INSERT there"),
    "B557": CodeText(
        "a query that cannot run on demand",
        "select from, insert into, update or delete from a named window or table",
    ),
    "B558": CodeText("an on-demand query that is deployed", "run it on demand: Engine.query"),
    "B559": CodeText("an index that cannot be made", "the message says which rows collide"),
    "B560": CodeText(
        "a parameter without a value", "give values with the query: one for each '?', or by name"
    ),
    "B601": CodeText("retain-union or retain-intersection of fewer than two windows", "remove it"),
    "B602": CodeText(
        "OVER(WHEN …) on a window that is no sliding window", "use FILTER(WHERE …) to choose what enters"
    ),
    "B603": CodeText(
        "an output limit on a window that fires by itself", "remove it, or use a window of FROM"
    ),
    "B604": CodeText(
        "a stream selector where there is no remove stream", "use a window of FROM: E#time(10 sec)"
    ),
    "B605": CodeText("HAVING that reads nothing of the window", "use WHERE"),
    "B606": CodeText("a snapshot of rows without a window that keeps them", "add a window in FROM"),
    "B607": CodeText("DISTINCT where each event gives its own row", "add a window, or remove it"),
    "B608": CodeText("unidirectional without a join", "remove it"),
    "B609": CodeText("sendMetaToSink where a row stands for many messages", "remove it"),
    "B701": CodeText("warning: a hop longer than the window leaves gaps", "make the hop at most the length"),
    "B702": CodeText(
        "warning: a session timeout above the maximum never closes a session",
        "the maximum stands before the timeout",
    ),
    "B703": CodeText("warning: row_number() without a window is always 1", "add a window in GROUP BY"),
    "B704": CodeText(
        "warning: ORDER BY, LIMIT or DISTINCT where each event gives its own row", "add a window in FROM"
    ),
    "B705": CodeText("warning: a remove stream where nothing leaves", "add a window in FROM"),
    "B706": CodeText("warning: an annotation or a hint without effect", "remove it"),
    "B707": CodeText(
        "warning: a rule that inserts into the stream it reads",
        "insert into another stream, or filter so that the circle ends",
    ),
    "B708": CodeText(
        "warning: a column of a join that any of several streams may have",
        "qualify it with its stream: m.temp",
    ),
    "B709": CodeText(
        "warning: processing time, for one of several streams has no time stamps",
        'declare it: WITH (…, TIMESTAMP="ts"); or isEventTime: false',
    ),
    "B711": CodeText("warning: an every inside an every", "keep one of them"),
    "B712": CodeText("warning: keys of every-distinct are never forgotten", "give it a period"),
    "B713": CodeText("warning: one side of an OR ends the every of the other", "write every (a or b)"),
    "B714": CodeText(
        "warning: a step that is only a not waits for nothing",
        "add a timer, as in not b and timer:interval(10 sec)",
    ),
    "B715": CodeText("warning: searches without an end", "add where timer:within(…) or -[n]>"),
    "B716": CodeText(
        "warning: context.… outside of contexts is read from the payload",
        "name the context of the rule, or declare the column",
    ),
    "B717": CodeText(
        "warning: two calls of a function without alias are one column, that of the last",
        "give one an alias with AS",
    ),
    "B718": CodeText(
        "warning: the name of what ends a partition in an expression of a row made before the end",
        "select it as a column of its own, or add a window and OUTPUT SNAPSHOT",
    ),
    "B719": CodeText(
        "warning: a column beside an aggregate, which is of the first row of its group",
        "last_value(column, true), or put it into GROUP BY",
    ),
    "B801": CodeText("a tag that is used twice", "give each its own tag"),
    "B802": CodeText("a timer's parameter that cannot be read", "the message says what is wrong with it"),
    "B803": CodeText(
        "a bound of a pattern that is no count, or too large",
        "[n], [low:high] … until …, with low at most high",
    ),
    "B804": CodeText(
        "a subquery inside a pattern", "put the condition into WHERE, which is evaluated for each match"
    ),
    "B805": CodeText("a key of every-distinct that reads no event", "use a column of a tag inside it"),
    "B806": CodeText(
        "a list of events read like a single event, or the reverse", "a repeated tag is a list: a[0].temp"
    ),
    "B807": CodeText(
        "a window in GROUP BY over a pattern", "put a window into FROM, or insert the matches into a stream"
    ),
    "B808": CodeText(
        "a variable that the pattern does not have, is defined twice, or is read where it has met no row",
        "define each variable of PATTERN once, and read those before it",
    ),
    "B809": CodeText(
        "a construct that cannot be used in or beside match_recognize", "the hint names the right place"
    ),
    "B810": CodeText("unknown context", "declare it with create context, or under contexts:"),
    "B811": CodeText("a name in a context that is already used", "rename one of the two"),
    "B812": CodeText(
        "a property that the context's partitions do not have", "the message lists those they have"
    ),
    "B813": CodeText(
        "a stream that a context cannot divide, or lists twice, itself or by inheritance",
        "list each stream once; tables cannot be divided",
    ),
    "B814": CodeText("keys that do not fit together", "as many keys for each stream, of the same types"),
    "B815": CodeText(
        "a hash without arguments, or of no whole number", "consistent_hash_crc32(id) or hash_code(id)"
    ),
    "B816": CodeText("conditions that cannot be combined", "the message says why"),
    "B817": CodeText(
        "a statement that reads no stream its context divides", "read one of the streams it lists"
    ),
    "B818": CodeText("a construct that needs a partition, or that needs FROM", "the message names it"),
    "B819": CodeText("a context that is still used", "remove the rules that use it before"),
    "B820": CodeText("two contexts for one rule", "name it beside the SQL or in it, not both"),
    "B821": CodeText("a relation of a context outside it", "write CONTEXT and its name before the statement"),
    "B822": CodeText(
        "a join with the rows of a file or topic (KIND scan, lookup) in a context",
        "fill a table with a primary key from it (INSERT INTO), and join that",
    ),
    "B824": CodeText(
        "an annotation of a pattern that has no effect there", "insert the matches into a stream first"
    ),
}
