What was processed but not committed is sent again by the broker and counts once.

rule each(n): SELECT n FROM m
rule pairs(total): SELECT sum(n) AS total FROM m GROUP BY COUNTWINDOW(2)

0 s    plant/x {"n": 1}
       -> each {"n": 1}
1 s    plant/x {"n": 2}
       -> each {"n": 2}
       -> pairs {"total": 3}
2 s    crash
3 s    plant/x {"n": 4}
       -> each {"n": 4}
3 s    crash early
4 s    plant/x {"n": 8}
       -> each {"n": 8}
       -> pairs {"total": 12}
