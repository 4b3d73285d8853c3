#!/usr/bin/env bash
# Proves of every sink of a cluster that no record is missing and none is there twice, from the data files themselves.
#   scripts/verify-data-integrity.sh [connector…]     all sinks of the worker, if none is named
#   ICESTREAM_URL            http://127.0.0.1:8083
#   KAFKA_BOOTSTRAP_SERVERS  localhost:9092
set -euo pipefail

sinks=("$@")
if ((${#sinks[@]} == 0)); then
    listed=$(icestream connectors -o json)
    mapfile -t sinks < <(jq -r '.[] | select(.type == "sink") | .name' <<<"$listed")
fi
((${#sinks[@]})) || {
    echo "verify-data-integrity: the worker has no sink; create one, or set ICESTREAM_URL to another worker" >&2
    exit 1
}
wrong=()
for sink in "${sinks[@]}"; do
    icestream verify --deep --bootstrap-servers "${KAFKA_BOOTSTRAP_SERVERS:-localhost:9092}" -- "$sink" ||
        wrong+=("$sink")
done
if ((${#wrong[@]})); then
    echo "verify-data-integrity: the books of these do not balance: ${wrong[*]}" >&2
    exit 1
fi
echo "${#sinks[@]} connectors: nothing is missing, nothing is there twice"
