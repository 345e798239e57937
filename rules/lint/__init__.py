"""Warnings for rules that are valid but hardly intended: small classes, each with a code. Start at
`check`."""
