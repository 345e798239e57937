"""The upload of results to the cloud without loss, and their aggregation there.

    sink -> spool (durable, with the rules' state) -> uploader -> target (bucket) -> spark (fleet tables)

Start reading at `spool`, then `uploader` and `upload_files` (the contract with the cloud job). Nothing here
reads a clock, and nothing outside `spark` imports PySpark.
"""
