In event time the watermark comes back too: what was late before the crash is late after it.

stream CREATE STREAM stamped () WITH (DATASOURCE="stamped/#", TIMESTAMP="ts")
rule tens(total): SELECT sum(n) AS total, BOUNDS FROM stamped GROUP BY TUMBLINGWINDOW(ss, 10)

0 s    stamped/x {"n": 1, "ts": 1000}
1 s    stamped/x {"n": 2, "ts": 9000}
1 s    crash
2 s    stamped/x {"n": 4, "ts": 15000}
       -> tens {"total": 3}
3 s    crash
4 s    stamped/x {"n": 8, "ts": 2000}
5 s    stamped/x {"n": 16, "ts": 25000}
       -> tens {"total": 4}
