"""What the cloud makes of the uploaded files. The only place that knows PySpark.

`aggregate` holds pure transforms of DataFrames, `job` reads and writes, `java` finds a Java to run on.
"""
