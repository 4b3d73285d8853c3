#!/usr/bin/env bash
# A cluster that grows and shrinks on this machine, without Docker: a broker, workers one after the other, connectors
# that share them; then one worker is killed, and all records are counted. Everything is gone at the end.
#   WORKERS     2    how many workers in the end
#   CONNECTORS  4
#   RECORDS     1000 for each connector, before and after the kill
#   KAFKA_PORT  9092 or a free one
set -euo pipefail
cd "$(dirname "$0")/.."

workers=${WORKERS:-2} connectors=${CONNECTORS:-4} records=${RECORDS:-1000}
for number in "$workers" "$connectors" "$records"; do
    [[ $number =~ ^[1-9][0-9]{0,8}$ ]] || {
        echo "test-horizontal-scaling: '$number' is no number; set WORKERS, CONNECTORS and RECORDS" >&2
        exit 2
    }
done
folder=$(mktemp -d)
pids=()
clean_up() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    icestream kafka stop --data "$folder/kafka" >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap clean_up EXIT

until_true() {
    # What it waits for, then the command that says so. Minutes of patience: a busy machine is no failure.
    local what=$1 deadline=$((SECONDS + 400))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || {
            echo "test-horizontal-scaling: still waiting for $what" >&2
            tail -n 5 "$folder"/worker-*.log >&2
            exit 1
        }
        sleep 1
    done
}

icestream kafka start --data "$folder/kafka" ${KAFKA_PORT:+--port "$KAFKA_PORT"}
kafka=$(icestream kafka status --data "$folder/kafka" | grep -oE '[0-9.]+:[0-9]+' | head -n 1)
cat >"$folder/worker.properties" <<END
bootstrap.servers=$kafka
group.id=scaling-test
listeners=http://127.0.0.1:0
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
offset.storage.topic=scaling-offsets
config.storage.topic=scaling-configs
status.storage.topic=scaling-status
offset.storage.replication.factor=1
config.storage.replication.factor=1
status.storage.replication.factor=1
spark.master=local[2]
spark.driver.memory=1g
END

addresses=()
is_up() { grep -q 'worker ready' "$1"; }
start_worker() {
    local log="$folder/worker-$1.log"
    icestream distributed "$folder/worker.properties" >"$log" 2>&1 &
    pids+=($!)
    until_true "worker $1" is_up "$log"
    addresses+=("$(grep -oE 'REST API on http://[0-9.]+:[0-9]+' "$log" | head -n 1 | cut -d ' ' -f 4)")
    export ICESTREAM_URL=${addresses[-1]}
}
shares() { icestream connectors -o json | jq -r '[.[] | .connector.worker_id] | group_by(.) | map("\(.[0]) has \(length)")[]'; }
busy_workers() { icestream connectors -o json | jq '[.[] | select(.connector.state == "RUNNING") | .connector.worker_id] | unique | length'; }
running() { icestream connectors -o json | jq '[.[] | select(.connector.state == "RUNNING" and (.tasks | length > 0) and all(.tasks[]; .state == "RUNNING"))] | length'; }
spread_over() { [[ $(busy_workers) == "$1" && $(running) == "$connectors" ]]; }
load() {
    for ((number = 0; number < connectors; number++)); do
        icestream load --topic "scaling-$number" --records "$records" --start "$1" --bootstrap-servers "$kafka"
    done
}
total=$records
has_landed() {
    for ((number = 0; number < connectors; number++)); do
        icestream verify "scaling-$number" --bootstrap-servers "$kafka" | tr -d , |
            grep -q ": $total in the topic $total in the table" || return 1
    done
}

start_worker 1
load 0
for ((number = 0; number < connectors; number++)); do
    cat >"$folder/sink-$number.properties" <<END
name=scaling-$number
connector.class=org.apache.iceberg.connect.IcebergSinkConnector
tasks.max=1
topics=scaling-$number
iceberg.tables=db.scaling_$number
iceberg.tables.auto-create-enabled=true
iceberg.control.commit.interval-ms=1000
iceberg.catalog=scaling_$number
iceberg.catalog.type=jdbc
iceberg.catalog.uri=jdbc:sqlite:$folder/catalog-$number.db
iceberg.catalog.warehouse=file://$folder/warehouse-$number
END
    touch "$folder/catalog-$number.db"
    icestream connector create -f "$folder/sink-$number.properties"
done
for ((number = 2; number <= workers; number++)); do start_worker "$number"; done
busy=$((workers < connectors ? workers : connectors))
until_true "connectors on $busy workers" spread_over "$busy"
echo "$workers workers:"
shares

if ((workers > 1)); then
    kill -9 "${pids[0]}"
    load "$records"
    total=$((2 * records))
    busy=$((workers - 1 < connectors ? workers - 1 : connectors))
    until_true "the connectors of the worker that was killed" spread_over "$busy"
    echo "one worker killed, $((workers - 1)) left:"
    shares
fi
until_true "all records in their tables" has_landed
KAFKA_BOOTSTRAP_SERVERS=$kafka scripts/verify-data-integrity.sh
