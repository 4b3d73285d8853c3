"""`make bench-sinks`: the S3 sink and the JDBC connectors, each beside a plain loop.

`objects` and `databases` have what is measured, `peers` the loops that one would write by hand, `servers` an
S3 server and a PostgreSQL, `report` the page.
"""
