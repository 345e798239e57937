A session goes on over a crash and ends by its gap, with all its groups.

rule visits(g, c): SELECT g, count(*) AS c, BOUNDS FROM m GROUP BY g, SESSIONWINDOW(ss, 60, 5)

0 s    plant/x {"g": "a"}
2 s    plant/x {"g": "b"}
3 s    snapshot
4 s    plant/x {"g": "a"}
4 s    crash
6 s    plant/x {"g": "a"}
8 s    stop
11 s   wait
       -> visits {"g": "a", "c": 3}
       -> visits {"g": "b", "c": 1}
