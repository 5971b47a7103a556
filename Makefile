# Commands for everyday use; CMake builds (CMakePresets.json), scripts/setup installs missing dependencies.
PRESET ?= release
JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local
BUILD  := build/$(PRESET)

# Configures each time, because setup may have installed something; prints its output only the first time.
CONFIGURE = cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/build.ninja),>/dev/null)

.NOTPARALLEL:
.PHONY: help build run test test-all bench check format install clean setup-run setup-test setup-check

help:           ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

build: setup-run ## install what is missing, build into build/release (PRESET=debug|asan|tsan: build/that)
	@$(CONFIGURE)
	@cmake --build --preset $(PRESET) -j$(JOBS) --target shima_product

run: build      ## run two ordinary MPI programs, with their MPI's own I/O and under Shima
	@python3 bench/main_job.py

test: setup-test ## build and run the everyday tests; T=REGEX: all tests whose names match
	@$(CONFIGURE)
	@JOBS=$(JOBS) scripts/ci-test $(BUILD) $(if $(T),'$(T)',everyday)

test-all: setup-test ## every test in every combination, those that take long, and the everyday ones under sanitizers: takes hours
	@$(CONFIGURE)
	@JOBS=$(JOBS) scripts/ci-test $(BUILD) all
	@$(MAKE) --no-print-directory test PRESET=asan
	@$(MAKE) --no-print-directory test PRESET=tsan

bench: build    ## measure against stock MPICH, stock Open MPI and the machine's limit
	@python3 bench/bench.py

check: setup-check build ## format, clang-tidy, include directions, man pages, shell scripts
	@scripts/check $(BUILD)

format:         ## format the sources (clang-format)
	@scripts/format

install: build  ## install below PREFIX (default /usr/local)
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:          ## remove the builds; keep the dependencies that setup installed (build/deps)
	@rm -rf build/release build/debug build/asan build/tsan

setup-run setup-test setup-check:
	@scripts/setup $(@:setup-%=%)
