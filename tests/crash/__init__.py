"""Campaigns that kill the gateway and compare what the cloud got with what the broker confirmed.

    python -m tests.crash [--seconds S] [--seed N]    a real daemon, a real broker, kill -9 at random moments

Everything that is counted must be there exactly once: raw rows, windows of counts, sessions and event time,
and rows that went through a chain of rules. `make crash` runs it for a minute.
"""
