"""What Spring Boot's actuator tells, told of a worker: `/actuator/**` on listeners of their own, off unless
`icestream.actuator.listeners` names some. Nothing else knows of it.

* `app.py` has the routes, `shapes.py` what all answers share.
* `health.py` is `/actuator/health`; `kafka_watch.py` asks Kafka for it now and then.
* `meters.py` counts, `metric_answers.py` tells it by Micrometer's rules: `/actuator/metrics`, `/prometheus`.
* `connector_metrics.py` is `/actuator/connector/metrics`.
* `env.py` is `/actuator/env`, whose values are never told.
"""
