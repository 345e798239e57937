"""Observation of the running gateway.

http, access, pages    the HTTP server, its token, the interface of pages
report, samples, metrics, status_tree, figures, readiness   /metrics, /status and /readyz
relations, partitions, apart   rows of tables and contexts; queries in a forked child
flight                 the flight recorder behind `penstock why` and `penstock tap`
console                the page `/ui`
client, top            the side of the commands
footprint              memory of a rule
observed               the parts of the daemon that all of these read
"""
