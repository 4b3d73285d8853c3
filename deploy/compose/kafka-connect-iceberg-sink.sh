#!/usr/bin/env bash
# Starts and stops the stack of docker-compose.yaml, which is beside this file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'TEXT'
usage: ./kafka-connect-iceberg-sink.sh start | stop | status | logs [-f] [SERVICE…] | clean

  start    start all services, and wait until topics, tables, connectors and Trino's catalog are there
  stop     stop all services; their data stays
  status   show services, and connectors
  logs     show logs; -f follows them
  clean    stop all services and delete their data
TEXT
}

fail() {
    echo "kafka-connect-iceberg-sink: $1" >&2
    exit 1
}

compose() {
    if docker compose version >/dev/null 2>&1; then
        docker compose "$@"
    elif command -v docker-compose >/dev/null 2>&1; then
        docker-compose "$@"
    else
        fail "neither 'docker compose' nor 'docker-compose' is here; install Docker, or run without it: icestream stack start"
    fi
}

# The value of a variable: the environment's, else the file's, else the default.
setting() {
    local value="${!1:-}"
    if [ -z "$value" ] && [ -f .env ]; then
        value=$(sed -n "s/^$1=//p" .env | tail -n 1)
    fi
    echo "${value:-$2}"
}

# Compose refuses every command where a required variable is missing; only a start needs the licence.
without_licence() {
    MINIO_LICENSE=$(setting MINIO_LICENSE none) compose "$@"
}

start() {
    if [ ! -f .env ]; then
        cp .env.sample .env
        echo "made .env from .env.sample"
    fi
    [ -n "$(setting MINIO_LICENSE '')" ] || fail "MINIO_LICENSE is empty; set it in $PWD/.env"
    mkdir -p plugins
    compose up --detach
    local code
    code=$(docker wait kafka-iceberg-init)
    compose logs --no-log-prefix kafka-iceberg-init
    [ "$code" = 0 ] || fail "the initialisation ended with $code; see its lines above, then run start again"
    echo "worker:      http://localhost:$(setting KAFKA_CONNECT_PORT 8083)"
    echo "source:      http://localhost:$(setting SOURCE_API_PORT 9000), console http://localhost:$(setting SOURCE_CONSOLE_PORT 9001)"
    echo "destination: http://localhost:$(setting DEST_API_PORT 9010), console http://localhost:$(setting DEST_CONSOLE_PORT 9011)"
    echo "Trino:       http://localhost:$(setting TRINO_PORT 9999)"
    echo "Kafka:       localhost:$(setting KAFKA_EXTERNAL_PORT 9092)"
}

status() {
    without_licence ps --all
    curl -fsS --max-time 10 "http://localhost:$(setting KAFKA_CONNECT_PORT 8083)/connectors?expand=status" ||
        echo "the worker does not answer"
    echo
}

verb="${1:-}"
[ "$#" -eq 0 ] || shift
case "$verb" in
    start) start ;;
    stop) without_licence stop ;;
    status) status ;;
    logs) without_licence logs "$@" ;;
    clean) without_licence down --volumes --remove-orphans ;;
    -h | --help | help) usage ;;
    *)
        usage >&2
        exit 2
        ;;
esac
