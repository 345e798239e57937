"""Rule files: their model, their checks, their tests.

Reading order: `source.yaml_source` (text to data with positions), `model` (the keys of a file), `loader` and
`read` (a file to rules and problems), `compile` and `planning.catalog` (to plans), `inline` (its tests on a
virtual clock), `schema` (for editors). Nothing here opens a socket, starts a thread or reads a clock.
"""
