A window that a crash interrupts holds what came before it.

rule tens(c, total): SELECT count(*) AS c, sum(n) AS total, BOUNDS FROM m GROUP BY TUMBLINGWINDOW(ss, 10)

0 s    plant/x {"n": 1}
1 s    crash
3 s    plant/x {"n": 2}
10 s   wait
       -> tens {"c": 2, "total": 3}
12 s   crash
20 s   wait
