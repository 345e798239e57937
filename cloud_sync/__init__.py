"""How results reach the cloud without loss, and what the cloud makes of them.

    sink -> spool (durable, with the rules' state) -> uploader -> target (bucket) -> spark (fleet tables)

Start reading at `spool`, then `uploader` and `layout` (the contract with the cloud job). Nothing here asks
for the time or imports PySpark outside `spark`.
"""
