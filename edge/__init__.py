"""The gateway process, and the command `penstock`.

Imports point down this list:

    cli, commands   the subcommands, a module each
    daemon          the process: makes the parts, starts and stops them in order
    monitor         metrics, status, the page, and the flight recorder
    deploy          from the rule directory to running rules
    gateway         the loop: messages in, results out, commits
    delivery        results to sinks and spools, dead letters, taps
    plugins         entry points of other packages
    intake          sources, codecs, the router, stores of lookup tables
    journal         durable inputs, snapshots of state
    config, base, clock   settings, shared helpers, the time

Beside them: `docs` generates the reference pages, `demo` is the program of `make demo`.

Where to start reading: `daemon`, then `gateway`.
"""
