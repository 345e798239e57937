Rows of a memory action count once in the rule that reads them, whenever the power is cut.

stream CREATE STREAM means () WITH (TYPE="memory", DATASOURCE="t/means")
rule pairs(total): SELECT sum(n) AS total FROM m GROUP BY COUNTWINDOW(2) | {memory: {topic: t/means}}
rule steps(total, before): SELECT total, lag(total) AS before FROM means

0 s    plant/x {"n": 1}
1 s    plant/x {"n": 2}
       -> pairs {"total": 3}
       -> steps {"total": 3, "before": null}
1 s    crash
2 s    plant/x {"n": 3}
2 s    crash
3 s    plant/x {"n": 4}
       -> pairs {"total": 7}
       -> steps {"total": 7, "before": 3}
3 s    snapshot
4 s    crash
5 s    wait
