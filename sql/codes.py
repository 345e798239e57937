"""Every code the engine's problems carry: what it means, and what to do. The manual's page
of errors is made of this.

P: the text cannot be read. B0: what a rule is. B1: declarations. B2: names. B3: expressions and calls. B4:
time. B5: windows. B6: clauses without effect. B7: warnings. B8: patterns, contexts. A code keeps its meaning
for ever; a new problem gets a new one.
"""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """What a code says, and how to mend it. Both are sentences without full stop."""

    title: str
    remedy: str


CODES: dict[str, Code] = {
    "P001": Code("something else was expected here", "the message names what may stand here"),
    "P002": Code("a character that no statement contains", "quote it, or use the spelling the message shows"),
    "P003": Code("a quoted text or name never ends", "close it with the same quote"),
    "P004": Code("a comment never ends", "close it with */"),
    "P005": Code("the text is too long", "split it into several rules"),
    "P006": Code(
        "nested too deeply, or a chain with too many operators",
        "use IN for lists of values, or split the rule",
    ),
    "P007": Code("brackets do not match", "add or remove the bracket"),
    "P008": Code("not a number", "put a space between number and name; write 1e3, 0.5 or 10"),
    "P009": Code(
        "a clause stands twice or too late",
        "keep one, in the order SELECT FROM WHERE GROUP BY HAVING ORDER BY LIMIT",
    ),
    "P010": Code("not the beginning of a statement", "begin with SELECT, FROM, INSERT INTO or CREATE"),
    "P011": Code("there is no statement", "write one"),
    "P012": Code(
        "a join without condition, or CROSS JOIN with one",
        "add ON with a condition, or use CROSS JOIN for all pairs",
    ),
    "P013": Code("an option stands twice", "keep one of them"),
    "P014": Code("a command, not a statement of a rule file", "the hint says what does the same here"),
    "P017": Code("an annotation that patterns do not have", "the message names those there are"),
    "P018": Code("steps of a pattern that mean nothing together", "begin with an event; join absences by OR"),
    "P019": Code(
        "a timer that there is not, or one in the wrong place",
        "timer:interval, timer:at and timer:schedule "
        "stand by themselves, timer:within and timer:withinmax behind WHERE",
    ),
    "P020": Code("a definition of a context that cannot be", "the message says what may stand here"),
    "P090": Code("understood, but not supported yet", "the hint names another way where there is one"),
    "B001": Code("a rule is one SELECT statement", "declare streams under streams:, one rule per query"),
    "B002": Code("a rule reads at least one stream", "add FROM"),
    "B101": Code("unknown type", "use one of the names in the hint"),
    "B102": Code("a column is declared twice", "keep one declaration"),
    "B103": Code(
        "unknown stream option", "options of a stream are DATASOURCE, FORMAT, TIMESTAMP and their like"
    ),
    "B104": Code("the timestamp column is not a column of the stream", "declare it, or name another"),
    "B105": Code(
        "an option of a stream or table with a value it cannot have", "the message says what it takes"
    ),
    "B106": Code("a default of another type than its column", "write a value of the column's type"),
    "B201": Code("unknown column", "the message lists the columns the stream has"),
    "B202": Code(
        "unknown stream, or a star where none may stand", "declare it with CREATE STREAM or under streams:"
    ),
    "B203": Code("a column that several streams have", "qualify it with its stream: m.temp"),
    "B204": Code("unknown function", "the hint names the nearest one"),
    "B205": Code("two sources of the same name", "give one an alias with AS"),
    "B206": Code("two result columns of the same name", "give one an alias with AS"),
    "B207": Code("unknown variable", "declare it under variables:"),
    "B208": Code(
        "a constant is assigned, or a subquery selects several columns",
        "assign a variable; select one column",
    ),
    "B209": Code(
        "a subquery where none may stand, or without window", "give it a window, for example E#lastevent"
    ),
    "B210": Code(
        "aliases that define each other", "rename one; qualify the column where the column is meant"
    ),
    "B301": Code("a value of the wrong type", "convert it with cast(x, 'bigint') where that is meant"),
    "B302": Code(
        "a comparison of different types, which is never true",
        "compare numbers with numbers and strings with strings",
    ),
    "B303": Code("unknown type in a cast", "the hint names the nearest one"),
    "B304": Code(
        "a number of rows that is no whole number, or ASC and DESC outside of sort criteria", "LIMIT 10"
    ),
    "B305": Code(
        "an unknown method, or a lambda outside of one",
        "lists have selectFrom(x => …), where, anyOf and others",
    ),
    "B306": Code("a length of time where a value is expected", "periods stand in windows and output limits"),
    "B307": Code(
        "a text that cannot be what it must be, such as a regular expression", "the message says why"
    ),
    "B310": Code("too many or too few arguments", "the message says how many the function takes"),
    "B311": Code("DISTINCT or FILTER on a function that is no aggregate", "remove it"),
    "B312": Code("a function parameter that must be a constant", "write the value itself"),
    "B313": Code("a function that is refused on purpose", "the message says why and what to use"),
    "B314": Code("a function this engine does not have", "the message says why and what to use"),
    "B315": Code(
        "a function that makes rows or columns, where none may stand",
        "let it stand by itself in SELECT, one per rule",
    ),
    "B316": Code("OVER, or a part of it, where it has no effect", "remove it"),
    "B320": Code(
        "a window function without window, or in a clause before the window", "add a window in GROUP BY"
    ),
    "B321": Code("meta() without the name of a field", "write meta(topic)"),
    "B322": Code(
        "prev or prior where no window of FROM is read", "use it in SELECT of a query with E#window"
    ),
    "B323": Code("prior() with a number that is not constant", "write the number itself"),
    "B324": Code(
        "prev() without data window, or an analytic function where none may stand",
        "add a window, for example E#length(2)",
    ),
    "B325": Code("an analytic function in a join", "compute it in a rule of its own and join that"),
    "B330": Code("an aggregate where none may stand", "move the condition to HAVING"),
    "B331": Code("a star in an aggregate that needs a column", "name the column"),
    "B332": Code("an aggregate parameter that must be a constant", "write the value itself"),
    "B333": Code(
        "a hit counter in a clause where nothing is counted", "use it in SELECT, WHERE, HAVING or WHEN"
    ),
    "B334": Code("row_number() outside of SELECT", "number in SELECT; a second rule can filter by it"),
    "B403": Code("event time without timestamp column", 'declare it: WITH (…, TIMESTAMP="ts")'),
    "B501": Code("unknown window", "the hint names the nearest one"),
    "B502": Code("a window in the wrong namespace", "after # the namespace may be left out"),
    "B503": Code("too many or too few window parameters", "the message shows how the window is written"),
    "B504": Code("a size that is no whole number of at least 1, or too large", "the message names the bound"),
    "B505": Code(
        "a window parameter that reads events",
        "it is fixed when the rule starts: use a constant or a variable",
    ),
    "B506": Code(
        "a length of time that is none, below 1 ms or above a hundred years",
        "write 10 sec, 2 min 30 sec or a number of seconds",
    ),
    "B507": Code("a key or sort criterion that is constant", "name a column"),
    "B508": Code("an unknown flow control keyword", "there are FORCE_UPDATE and START_EAGER"),
    "B510": Code("two batch windows", "batch in one rule and insert into a stream that the next one reads"),
    "B511": Code("two groupwin", "give groupwin all keys at once"),
    "B512": Code("groupwin does not stand first", "move it to the front"),
    "B513": Code("groupwin without a window", "for example E#groupwin(k)#length(5)"),
    "B514": Code(
        "merge without its groupwin, with other keys, or behind two windows",
        "merge takes the keys of its groupwin",
    ),
    "B515": Code("a window behind a derived-value window", "insert into a stream that the next rule reads"),
    "B520": Code("a window in GROUP BY with the wrong parameters", "the message names them"),
    "B521": Code(
        "a count interval larger than the size",
        "COUNTWINDOW(size, interval): the interval is at most the size",
    ),
    "B522": Code("a window that does not begin with a time unit", "the units are DD, HH, MI, SS, MS"),
    "B523": Code("two windows in GROUP BY", "keep one; write a rule for each"),
    "B524": Code("a window in GROUP BY and one in FROM", "keep one of them"),
    "B525": Code(
        "OVER(PARTITION BY …) or a FILTER over several streams on the window of a join",
        "use GROUP BY, ON or WHERE",
    ),
    "B526": Code("a reclaim hint that is no number", "@Hint('reclaim_group_aged=10,reclaim_group_freq=30')"),
    "B527": Code(
        "a joined stream without window", "give each a window, or mark the driving one unidirectional"
    ),
    "B528": Code(
        "a crontab that cannot be read", "five to nine fields: minute, hour, day, month, day of week"
    ),
    "B529": Code("an output limit that reads columns", "use variables and its built-in counts"),
    "B530": Code("'retain all' together with what needs a bound", "remove one of the two"),
    "B531": Code("the remove stream of an aggregate stream query", "select without rstream"),
    "B532": Code("a lookup table of a source without KEY", "write KEY, the column that rows are found by"),
    "B533": Code("a table where a stream is needed", "read a stream, and join the table to it"),
    "B534": Code(
        "a lookup table that cannot be asked here",
        "join it by INNER or LEFT JOIN, in a rule over a stream, with ON saying its key",
    ),
    "B541": Code(
        "a table read by other values than its key",
        "give one value per column of the primary key: T[k].column",
    ),
    "B542": Code(
        "as many columns must be named as are selected", "name each selected column once, and select no *"
    ),
    "B543": Code(
        "a data window on a named window or table", "leave the window out: the relation keeps its rows itself"
    ),
    "B544": Code(
        "unidirectional where it has no meaning",
        "it stands at a stream without data window, whose events drive the join",
    ),
    "B545": Code("rollup outside of into table", "group by the keys"),
    "B546": Code(
        "into table groups by other keys than the table has",
        "group by the columns of its primary key, in their order",
    ),
    "B547": Code(
        "an aggregate that is not declared so in the table",
        "declare the column as the aggregate that is selected",
    ),
    "B548": Code(
        "an aggregate that must forget, without a data window",
        "declare minever or maxever, or add a window in FROM",
    ),
    "B549": Code(
        "a value of another type than its column",
        "select a value of the column's type, or declare the column so",
    ),
    "B550": Code(
        "a column that into table keeps is written", "only into table writes columns that aggregate"
    ),
    "B551": Code("a name that is taken", "choose another name"),
    "B552": Code(
        "a named window without data window", "say which rows it keeps, for example #keepall or #length(100)"
    ),
    "B553": Code("rows are copied from what keeps none", "copy from a named window"),
    "B554": Code("a key that aggregates", "make a plain column the key"),
    "B555": Code("an index with several btree columns", "the last column may be btree, those before it hash"),
    "B556": Code("WHEN NOT MATCHED that changes rows", "it may only insert"),
    "B557": Code(
        "a question that cannot be asked on demand",
        "select from, insert into, update or delete from a named window or table",
    ),
    "B558": Code("a question that is deployed", "ask it on demand: Engine.query"),
    "B559": Code("an index that cannot be made", "the message says which rows collide"),
    "B560": Code(
        "a parameter without a value", "give values with the question: one for each '?', or by name"
    ),
    "B601": Code("retain-union or retain-intersection of fewer than two windows", "remove it"),
    "B602": Code(
        "OVER(WHEN …) on a window that is no sliding window", "use FILTER(WHERE …) to choose what enters"
    ),
    "B603": Code("an output limit on a window that fires by itself", "remove it, or use a window of FROM"),
    "B604": Code(
        "a stream selector on a window without remove stream", "use a window of FROM: E#time(10 sec)"
    ),
    "B605": Code("HAVING that reads nothing of the window", "use WHERE"),
    "B606": Code("a snapshot of rows that nothing keeps", "add a window in FROM"),
    "B607": Code("DISTINCT where each event gives its own row", "add a window, or remove it"),
    "B608": Code("unidirectional without a join", "remove it"),
    "B609": Code("sendMetaToSink where a row stands for many messages", "remove it"),
    "B701": Code("warning: a hop longer than the window leaves gaps", "make the hop at most the length"),
    "B702": Code(
        "warning: a session timeout above the maximum never closes a session",
        "the maximum stands before the timeout",
    ),
    "B703": Code("warning: row_number() without a window is always 1", "add a window in GROUP BY"),
    "B704": Code(
        "warning: ORDER BY, LIMIT or DISTINCT where each event gives its own row", "add a window in FROM"
    ),
    "B705": Code("warning: rstream without a window selects nothing", "add a window in FROM"),
    "B706": Code("warning: an annotation or a hint without effect", "remove it"),
    "B707": Code(
        "warning: a rule that inserts into the stream it reads",
        "insert into another stream, or filter so that the circle ends",
    ),
    "B708": Code(
        "warning: a column of a join that any of several streams may have",
        "qualify it with its stream: m.temp",
    ),
    "B709": Code(
        "warning: processing time, for one of several streams has no time stamps",
        'declare it: WITH (…, TIMESTAMP="ts"); or isEventTime: false',
    ),
    "B711": Code("warning: an every inside an every", "keep one of them"),
    "B712": Code("warning: keys of every-distinct are remembered for ever", "give it a period"),
    "B713": Code("warning: one side of an OR ends the every of the other", "write every (a or b)"),
    "B714": Code("warning: a step that is only a not waits for nothing", "put a clock beside it"),
    "B715": Code("warning: searches that nothing ends", "add where timer:within(…) or -[n]>"),
    "B716": Code(
        "warning: context.… outside of contexts is read from the payload",
        "name the context of the rule, or declare the column",
    ),
    "B801": Code("a tag that stands for two things", "give each its own tag"),
    "B802": Code("a timer's parameter that cannot be read", "the message says what is wrong with it"),
    "B803": Code("a bound of a pattern that is no count", "[n], [low:high] … until …, with low at most high"),
    "B804": Code("a subquery inside a pattern", "put the condition into WHERE, which sees each match"),
    "B805": Code("a key of every-distinct that no event decides", "use a column of a tag inside it"),
    "B806": Code("a list of events read like one, or one like a list", "a repeated tag is a list: a[0].temp"),
    "B807": Code(
        "a window in GROUP BY over a pattern", "put a window into FROM, or insert the matches into a stream"
    ),
    "B808": Code(
        "a variable that the pattern does not have, or defined twice", "define each variable of PATTERN once"
    ),
    "B809": Code("what cannot stand in or beside match_recognize", "the hint says where it can"),
    "B810": Code("unknown context", "declare it with create context, or under contexts:"),
    "B811": Code("a name in a context that is taken", "rename one of the two"),
    "B812": Code("a property that the context's partitions do not have", "the message lists those they have"),
    "B813": Code(
        "a stream that a context cannot divide, or lists twice",
        "list each stream once; tables cannot be divided",
    ),
    "B814": Code("keys that do not fit together", "as many keys for each stream, of the same types"),
    "B815": Code("a hash of nothing, or no whole number", "consistent_hash_crc32(id) or hash_code(id)"),
    "B816": Code("conditions that cannot stand together", "the message says why"),
    "B817": Code("a statement that reads no stream its context divides", "read one of the streams it lists"),
    "B818": Code(
        "what only a partition has, or what a statement without FROM cannot have", "the message says which"
    ),
    "B819": Code("a context that is still used", "remove the rules that use it before"),
    "B820": Code("two contexts for one rule", "name it beside the SQL or in it, not both"),
    "B821": Code("a relation of a context outside it", "write CONTEXT and its name before the statement"),
    "B822": Code(
        "a window that cannot run in the partitions of a context",
        "an output limit (OUTPUT LAST EVERY 10 SEC), or a window in FROM",
    ),
    "B824": Code(
        "an annotation of a pattern that has no effect there", "insert the matches into a stream first"
    ),
}
