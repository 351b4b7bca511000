# BranchLab. `make demo` and `make test` do all set-up themselves; `make help` lists the targets.

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
# An environment knows its own path: in a folder that was moved or copied it is made again.
MOVED := $(shell grep -qsF "$(BIN)/python" $(VENV)/bin/branchlab || echo moved)
SOURCES := gui lab ssh_agents resources tests
# A process for each processor, as tests/conftest.py divides them; more would keep the measuring ones waiting. A test
# that crashes its process counts as failed, and is not tried for ever.
PYTEST := QT_QPA_PLATFORM=offscreen "$(BIN)/python" -m pytest -n auto --maxprocesses 4 --no-loadscope-reorder \
	--max-worker-restart 1

.DEFAULT_GOAL := help
.PHONY: moved help demo test test-slow campaign screenshots bench lint packages-demo packages-test clean
# Set-up, lint and tests come one after another, also under make -j.
.NOTPARALLEL:

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

demo: packages-demo $(VENV)/.demo ## install what is missing, then measure in an embedded lab, live, in some minutes
	@echo "The command is $(BIN)/branchlab"
	"$(BIN)/branchlab" demo

test: packages-test .programs $(VENV)/.test lint ## install what is missing, check the code, run all tests but the slow ones, several at a time
	$(PYTEST) -m "not slow and not campaign"

# pytest ends with status 5 where no test bears the mark.
test-slow: packages-test .programs $(VENV)/.test ## the tests that take minutes
	$(PYTEST) -m slow || [ $$? = 5 ]

campaign: packages-test $(VENV)/.test ## kill, cut and stop everything fifty times each: is every host put back in time?
	"$(BIN)/python" -m pytest -m campaign

# Xvfb's screen holds the largest window at 200 %.
screenshots: packages-test $(VENV)/.test ## every page and dialog as a picture in build/screenshots, of a short real run or RUN=FILE
	QT_QPA_PLATFORM=xcb xvfb-run --auto-servernum --server-args "-screen 0 2900x1900x24" \
		"$(BIN)/python" tests/screens.py $(if $(RUN),"$(RUN)")

# Under Xvfb, as the window system of a desk would have it; offscreen paints the same, and shows it nowhere.
bench: packages-test $(VENV)/.test ## how quick the window is beside an empty one, in build/bench.json; passes and fails nothing
	QT_QPA_PLATFORM=xcb xvfb-run --auto-servernum --server-args "-screen 0 1600x1000x24" \
		"$(BIN)/python" tests/bench.py

lint: $(VENV)/.test ## style, types, and who may lean on whom
	"$(BIN)/ruff" check $(SOURCES)
	"$(BIN)/ruff" format --check $(SOURCES)
	"$(BIN)/mypy"
	"$(BIN)/lint-imports"

packages-demo packages-test: packages-%:
	@installer/system_packages $*

# Squid and nginx for the tests where the system has none; nothing is installed.
.programs:
	@installer/test_programs $@

# The environment is made again when the stamps are older than what they were made from. One with the tests'
# packages has the demo's too.
$(VENV)/.demo: pyproject.toml $(MOVED)
	@[ -z "$(MOVED)" ] && [ $(VENV)/.test -nt pyproject.toml ] || installer/python_environment $(VENV) .
	@touch $@

$(VENV)/.test: pyproject.toml $(MOVED)
	@installer/python_environment $(VENV) ".[test]"
	@touch $@

clean: ## remove the virtual environment and every cache; runs and profiles are not here and stay
	rm -rf $(VENV) .programs build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
