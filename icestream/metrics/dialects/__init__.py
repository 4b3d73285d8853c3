"""Kafka Connect's JMX metrics of this worker, under the names that people's dashboards ask for.

`attributes.py` is the table of groups and attributes; `job_measures.py` and `worker_measures.py` keep what
the values are made of, `job_rows.py` and `worker_rows.py` make rows of it; `strimzi.py` and `confluent.py`
are the names; `collecting.py` brings all of it to the scrape.
"""
