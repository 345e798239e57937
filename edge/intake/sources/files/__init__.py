"""The `file` source: start at `settings`, then `source`, whose two kinds are `whole` and `followed`."""
