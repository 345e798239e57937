A window whose end passes while the gateway is down is shown at the start, once.

rule tens(c): SELECT count(*) AS c, BOUNDS FROM m GROUP BY TUMBLINGWINDOW(ss, 10)

4 s    plant/x {"n": 1}
5 s    crash
31 s   wait
       -> tens {"c": 1}
32 s   crash
33 s   wait
