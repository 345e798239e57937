A rule file that is away for a moment keeps the state of its rules, also over a crash in between.

rule pairs(total): SELECT sum(n) AS total FROM m GROUP BY COUNTWINDOW(2)

0 s    plant/x {"n": 1}
1 s    remove
2 s    crash
3 s    put
4 s    plant/x {"n": 2}
       -> pairs {"total": 3}
