A retained message that the broker sends again at every connection counts once.

rule each(n): SELECT n FROM m

0 s    retained plant/x {"n": 1}
       -> each {"n": 1}
1 s    crash
1 s    retained plant/x {"n": 1}
2 s    stop
2 s    retained plant/x {"n": 1}
3 s    retained plant/x {"n": 2}
       -> each {"n": 2}
