# `make` alone prints the help. Everything lives in .venv and in $ICESTREAM_HOME (~/.cache/icestream).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SITE   := $(or $(ICESTREAM_HOME),$(HOME)/.cache/icestream)/site
# All that a worker or a container may need: everything but the stack of processes and what developers use.
ALL_EXTRAS := postgres mysql aws s3 clouds hive connect delta protobuf operator traces

.DEFAULT_GOAL := help
.PHONY: help setup extras demo dist site test test-long unit check format docs screenshots bench bench-task bench-records bench-commits bench-scale \
	bench-steady bench-observed bench-console bench-partitions bench-maintenance bench-upserts bench-delta-merge bench-sinks bench-scaling lock machine

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## Check Python and Java, make .venv with all that the tests need

extras: machine $(VENV)/.extras ## Install the extras: S3, Delta, databases, clouds, operator, traces

demo: machine $(VENV)/.run ## MinIO logs through Kafka into Iceberg on this machine, then the proof
	@$(BIN)/icestream demo $(ARGS)

# Where this is set, as in images, every process that a test starts would compile all its modules again.
test test-long unit: export PYTHONDONTWRITEBYTECODE :=

test: machine $(VENV)/.dev ## Run all tests, in four processes: they wait much of the time
	@$(BIN)/python -m pytest -n 4 -m "not long" $(ARGS)

test-long: machine $(VENV)/.dev ## Run the long forms: minutes of chaos, full parity tables, attacks, steady rates
	@$(BIN)/python -m pytest -n 2 -m long $(ARGS)

unit: machine $(VENV)/.dev ## Run the tests that need no Kafka and no Spark: a minute or two
	@$(BIN)/python -m pytest tests/unit $(ARGS)

check: machine $(VENV)/.dev ## Lint, formatting, types, layers, the docs as a site
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict icestream
	@$(BIN)/lint-imports
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir "$(SITE)"

site: $(VENV)/.dev ## Build the docs as a site, and serve it on 127.0.0.1:8000
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir "$(SITE)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory "$(SITE)" 8000

dist: $(VENV)/.dev ## Build wheel and sdist into dist/, once version, tag and changelog agree
	@$(BIN)/python scripts/check-release
	@$(BIN)/python -m build --no-isolation --outdir dist

format: $(VENV)/.dev ## Put the code into shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.dev ## Write the settings of connectors and job manager, and the metrics, into docs
	@$(BIN)/python -m scripts.connector_docs
	@$(BIN)/python -m scripts.job_manager_docs
	@$(BIN)/python -m scripts.observability_docs

screenshots: $(VENV)/.dev ## Take the pictures of the console in docs/images, with Chromium
	@$(BIN)/python -m scripts.screenshots

.PHONY: kubernetes
kubernetes: $(VENV)/.dev ## Build the Kubernetes API server that tests/kubernetes asks for: ten minutes, once (needs Go, etcd)
	@$(BIN)/python -m tests.kubernetes.binaries

.PHONY: monitoring pictures
monitoring: $(VENV)/.dev ## Write alert rules and Grafana dashboards from the lists in the code
	@$(BIN)/python -m scripts.monitoring

pictures: machine $(VENV)/.dev ## Draw the dashboards for the docs, with a busy worker and Debian's Prometheus
	@$(BIN)/python -m scripts.monitoring.pictures

bench: machine $(VENV)/.dev ## Us and the real Kafka Connect, side by side
	@$(BIN)/python -m bench $(ARGS)

bench-task: machine $(VENV)/.dev ## CPU of one task, from Kafka to data files; two ways to do it take turns
	@$(BIN)/python -m bench.task $(ARGS)

bench-records: machine $(VENV)/.dev ## Converters, transforms and validation on one core
	@$(BIN)/python -m bench.records $(ARGS)

bench-commits: machine $(VENV)/.dev ## What a commit costs as a table grows older
	@$(BIN)/python -m bench.commits $(ARGS)

bench-scale: machine $(VENV)/.dev ## What 1, 100 and 1,000 idle connectors cost one worker
	@$(BIN)/python -m bench.scale $(ARGS)

bench-steady: machine $(VENV)/.dev ## Even rates with a commit every second, us and the real Kafka Connect
	@$(BIN)/python -m bench.steady $(ARGS)

bench-upserts: machine $(VENV)/.dev ## Changes into a large table, us and Spark Structured Streaming
	@$(BIN)/python -m bench.upserts $(ARGS)

bench-sinks: machine $(VENV)/.dev ## The S3 sink and the JDBC connectors, us and plain loops
	@$(BIN)/python -m bench.sinks $(ARGS)

bench-delta-merge: machine $(VENV)/.dev ## One merge into a Delta table: by Arrow, by delta-rs, by Spark
	@$(BIN)/python -m bench.delta_merge $(ARGS)

bench-scaling: $(VENV)/.dev ## How the operator scales 1,000 connectors over a day, simulated
	@$(BIN)/python -m bench.scaling

bench-console: $(VENV)/.dev ## What the console's overview of 1,000 connectors costs a worker
	@$(BIN)/python -m bench.console $(ARGS)

bench-observed: machine $(VENV)/.dev ## What metrics, history, JSON logs and traces cost: drain with all of it and with none
	@$(BIN)/python -m bench.observed $(ARGS)

bench-partitions: machine $(VENV)/.dev ## What a thousand partitions cost
	@$(BIN)/python -m bench.partitions $(ARGS)

bench-maintenance: machine $(VENV)/.dev ## What maintenance keeps a table at after 500 batches, and what it costs
	@$(BIN)/python -m bench.maintenance $(ARGS)

COMPILE := uv pip compile -q --python-version 3.11 --universal --no-header --no-annotate --generate-hashes
lock: ## Pin the versions that pyproject.toml allows, with the hashes of their files (needs uv)
	@command -v uv >/dev/null || { echo "make: lock needs uv; install it with: pip install uv" >&2; exit 1; }
	$(COMPILE) pyproject.toml --extra dev -o requirements-dev.txt
	$(COMPILE) pyproject.toml -c requirements-dev.txt -o requirements.txt
	$(COMPILE) pyproject.toml $(ALL_EXTRAS:%=--extra %) -c requirements-dev.txt -o requirements-all.txt
	$(COMPILE) --group build -c requirements-dev.txt -o requirements-build.txt

.PHONY: lock-java
lock: lock-java
lock-java: $(VENV)/.dev ## Pin Java and its libraries, with the hashes of their files: from pyproject.toml and the two java-artifacts.lock
	sed -n 's/^java = \["\(.*\)"\].*/\1/p' pyproject.toml | $(COMPILE) - -o requirements-java.txt
	@$(BIN)/python -m scripts.lock_java

.PHONY: image
image: ## Build the container image with buildah, podman or docker
	@deploy/image/build $(ARGS)

machine:
	@scripts/check-machine $(PYTHON)

# The stamps: a second run finds them newer than what they are made from and does nothing.
$(VENV)/bin/python:
	@scripts/check-machine $(PYTHON)
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "make: python's venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }

LOCKED := scripts/install requirements-build.txt pyproject.toml

$(VENV)/.run: requirements.txt $(LOCKED) | $(VENV)/bin/python
	@scripts/install $(BIN)/python requirements.txt
	@touch $@

$(VENV)/.extras: requirements-all.txt $(LOCKED) | $(VENV)/bin/python
	@scripts/install $(BIN)/python requirements-all.txt
	@touch $@ $(VENV)/.run

$(VENV)/.dev: requirements-dev.txt $(LOCKED) | $(VENV)/bin/python
	@scripts/install $(BIN)/python requirements-dev.txt
	@touch $@ $(VENV)/.run $(VENV)/.extras
