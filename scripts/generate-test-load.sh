#!/usr/bin/env bash
# Fills a topic with realistic records: scripts/generate-test-load.sh [records]
#   TOPIC                    order-events
#   KAFKA_BOOTSTRAP_SERVERS  localhost:9092
#   RATE                     records a second; as fast as it goes if it is not set
set -euo pipefail

records=${1:-10000}
[[ $records =~ ^[0-9]{1,12}$ ]] || {
    echo "generate-test-load: '$records' is no number of records; for example: $0 50000" >&2
    exit 2
}
exec icestream load --topic "${TOPIC:-order-events}" --records "$records" \
    --bootstrap-servers "${KAFKA_BOOTSTRAP_SERVERS:-localhost:9092}" ${RATE:+--rate "$RATE"}
