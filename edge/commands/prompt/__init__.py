"""The prompt of `penstock sql`.

session      statements over recorded data
tables       the tables and named windows of these data
live         a query over live streams
gateway      queries of a running gateway
completion   completion of words and names
"""
