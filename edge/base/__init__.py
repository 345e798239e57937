"""Helpers of all parts of the gateway.

poller, wakeup            the wait of a loop, its end by another thread
message                   a message, as sources give it and the journal records it
http_server, page         a server with the log of its defects; an answer
forked                    child processes with the state of the gateway
logs, errors              log lines; errors that a command prints without a traceback
environment, signals      settings and signals from outside
instants                  instants as text
memory, version, loaded_code   facts about this process
"""
