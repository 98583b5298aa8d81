# From a fresh clone: `make run` puts the embedded system through a storm, `make test` passes all tests.
# Both set the checkout up first: a .venv, and a Java for Spark where there is none.

PYTHON ?= python3
SYSTEM ?= rocketmq
WORKLOAD ?= log
ENVIRONMENT ?= simulated
NEMESIS ?= partition,kill,clock
TIME_LIMIT ?= 60
SEED ?=
SEEDS ?= 200
ROOTS ?= 5
COUNT ?= 200
CHANGES ?= 300
OUTCOMES ?= mutation.jsonl
ARGUMENTS ?=

BIN := .venv/bin
WORKERS := -n 3 --dist loadgroup --no-loadscope-reorder
# Hundreds of processes import the same modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test gate thorough lint format modules mutants mutate searches findings interruptions bench setup clean
.DEFAULT_GOAL := help

help:
	@echo "make run       one storm, one verdict (ENVIRONMENT=simulated|docker WORKLOAD= NEMESIS= TIME_LIMIT= SEED= ARGUMENTS=);"
	@echo "               make itself ends with 2 where the verdict is not VALID, and tells the verdict's code as Error N"
	@echo "make test      lint, then all tests; Docker tests where an engine answers"
	@echo "make gate      what CI runs beside that: random histories by the hundred against definitions, storms in containers"
	@echo "make thorough  the same by the thousand"
	@echo "make lint      ruff and mypy"
	@echo "make modules   tests/MODULES.md, the table of which tests notice a mistake in which module"
	@echo "make mutants   every planted bug is caught, the healthy system stays valid (SEEDS=200)"
	@echo "make mutate    which one-token changes of the judging modules the tests notice (CHANGES=300 SEED=1; ARGUMENTS="
	@echo "               passes --only PATH, --minutes N, --change PATH:PLACE on); half an hour, and goes on where it was"
	@echo "               ended (OUTCOMES=mutation.jsonl)"
	@echo "make searches  every planted bug is searched for from random starts, and docs/planted-bugs/SYSTEM.md is made"
	@echo "               of it (SYSTEM=rocketmq|dledger|bookkeeper|cmq ROOTS=5); takes hours, and goes on where it was ended"
	@echo "make findings  storm after storm against releases of RocketMQ itself, in containers, and docs/findings/rocketmq.md is"
	@echo "               made of it (ARGUMENTS passes --count N, --minutes N, --release R on); hours, and goes on where it was"
	@echo "               ended (OUTCOMES=docs/findings/rocketmq/storms.jsonl)"
	@echo "make interruptions  commands interrupted at any moment end alike and leave nothing (COUNT=200)"
	@echo "make bench     the figures of benchmarks/"
	@echo "make setup     only the .venv and Java"

setup:
	@$(PYTHON) -m stormproof.cli.bootstrap

run: setup
	@$(BIN)/stormproof run "$(SYSTEM)" --environment "$(ENVIRONMENT)" --workload "$(WORKLOAD)" --nemesis "$(NEMESIS)" \
		--time-limit "$(TIME_LIMIT)" $(if $(SEED),--seed $(SEED)) --engine spark --progress $(ARGUMENTS)

lint: setup
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: setup
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

# While mypy has one processor another one compiles the tests, which else each worker would do for itself.
test: setup
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null & $(BIN)/mypy; typed=$$?; wait; exit $$typed
	@$(BIN)/python -m pytest $(WORKERS)

gate: setup
	@$(BIN)/python -m pytest $(WORKERS) --tier gate

thorough: setup
	@$(BIN)/python -m pytest $(WORKERS) --tier thorough

modules: setup
	@$(BIN)/python -m tests.mutation.page

mutants: setup
	@$(BIN)/python -m tests.rocketmq.mutants.campaign --seeds $(SEEDS)

mutate: setup
	@$(BIN)/python -m tests.mutation.campaign --count $(CHANGES) --seed $(or $(SEED),1) --outcomes $(OUTCOMES) $(ARGUMENTS)

searches: SYSTEM = rocketmq
searches: setup
	@$(BIN)/python -m tests.rocketmq.mutants.searches --system $(SYSTEM) --roots $(ROOTS) --page docs/planted-bugs/$(SYSTEM).md $(ARGUMENTS)

findings: OUTCOMES = docs/findings/rocketmq/storms.jsonl
findings: setup
	@$(BIN)/python -m tests.rocketmq.findings.campaign --outcomes $(OUTCOMES) --page docs/findings/rocketmq.md $(ARGUMENTS)

interruptions: setup
	@$(BIN)/python -m tests.interruptions.campaign --count $(COUNT)

bench: setup
	@for benchmark in benchmarks/*.py benchmarks/*/*.py; do echo "== $$benchmark"; $(BIN)/python $$benchmark || exit 1; done

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache build dist *.egg-info
