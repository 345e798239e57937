"""The aggregation of the uploaded files in the cloud. The only package that imports PySpark.

`aggregate` holds pure transforms of DataFrames, `job` reads and writes, `java` finds a Java to run on.
"""
