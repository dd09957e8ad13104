# The front door: every target installs what it needs, then hands over to CMake, CTest or tools/.
T       ?=
SECONDS ?= 60
PREFIX  ?= /usr/local
EXAMPLE ?= examples/checkout.pb.gz
DATA    ?= build/data
DIST    ?= build/dist
KILN    := build/kiln

.PHONY: all run demo test check format lint asan tsan cov fuzz torture soak bench image-oci pictures install deb dist tarball clean help deps deps-test deps-more
.DEFAULT_GOAL := all

all: deps build/build.ninja ## build build/kiln; KILN_NO_INSTALL=1 installs no packages
	@ninja -C build

run: all ## start Kiln on port 4040, with its data in DATA=build/data
	@KILN_DATA_DIR=$(DATA) exec $(KILN)

demo: all ## start a server on port 4040 that has a day of an invented shop
	@KILN=$(KILN) exec tests/support/shop.py --demo

test: deps-test ## run every test once; T=name selects tests by a regular expression
	@cmake --preset default >/dev/null
	@ninja -C build all tests
	@tools/run-tests build "$(T)"

check: format lint test asan ## format, lint, tests and sanitizers: must pass before a change lands

format: deps-test ## check the form of all C files; FIX=1 rewrites them
	@tools/check-format $(if $(FIX),--fix)

lint: deps-more build/build.ninja ## check layers, house style, clang-tidy, shellcheck
	@tools/check-layers
	@tools/check-style
	@tools/check-scripts
	@tools/check-tidy build $(T)

# LeakSanitizer cannot trace a server that gave up its privileges: KILN_USER=root keeps them.
asan: deps-more ## unit, fuzz replay, command line and hostile query tests under ASan and UBSan
	@cmake --preset asan >/dev/null
	@ninja -C build-asan all tests
	@KILN_USER=root tools/run-tests build-asan "$(or $(T),^(unit|fuzz|cli)/|^torture/(power_cut|questions|round_trip))"

tsan: deps-more ## unit tests and tests of everything with threads under ThreadSanitizer
	@cmake --preset tsan >/dev/null
	@ninja -C build-tsan all tests
	@TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp tools/run-tests build-tsan "$(or $(T),^(unit|fuzz)/|^torture/(power_cut|questions)|^e2e/readers_writers)"

cov: deps-more ## measure line coverage of the tests, by folder
	@cmake --preset cov >/dev/null
	@ninja -C build-cov all tests
	@tools/coverage build-cov

fuzz: deps-more ## fuzz every decoder for SECONDS=60 each; T=otlp selects one
	@cmake --preset fuzz >/dev/null
	@ninja -C build-fuzz fuzzers
	@tools/fuzz build-fuzz $(SECONDS) "$(T)"

torture: deps-more ## power cuts, kills, failing allocations, valgrind: hours
	@cmake --preset default >/dev/null
	@ninja -C build all tests
	@tools/torture build "$(T)"

soak: all deps-more ## long runs of server, collector and libkiln; fuzz every decoder for an hour each
	@KILN=$(KILN) tests/e2e/readers_writers_test.py 600
	@KILN=$(KILN) tests/e2e/collector_flow_test.py 600
	@KILN=$(KILN) OTELCOL_CONTRIB=make tests/interop/processors_test.py
	@ninja -C build inproc_programs
	@KILN_ALLOCATIONS=1000000000 KILN_BUILD_DIR=$(CURDIR)/build LIBKILN=$(CURDIR)/build/libkiln.so tests/inproc/alloc_family_test.py
	@KILN_SLEEPERS_S=400 KILN=$(KILN) KILN_BUILD_DIR=$(CURDIR)/build LIBKILN=$(CURDIR)/build/libkiln.so tests/inproc/signals_test.py
	@KILN=$(KILN) tests/inproc/real_test.py --all
	@$(MAKE) fuzz SECONDS=3600

bench: deps-more all ## measure Kiln and its peers in the same run; T=size selects one
	@tools/bench build "$(T)"

image-oci: all ## build the container images build/kiln-{agent,server}.tar, without Docker
	@tools/install-deps tools/packages-oci.txt
	@tools/image-oci tree build build/image
	@tools/image-oci pack build/image agent build/kiln-agent.tar
	@tools/image-oci pack build/image server build/kiln-server.tar

pictures: all ## draw the pictures in docs/images
	@mkdir -p docs/images
	@$(KILN) flamegraph $(EXAMPLE) -o docs/images/flamegraph.svg
	@KILN=$(KILN) tests/browser/page/run.sh tests/browser/page/picture.ts docs/images

install: all ## install under DESTDIR and PREFIX=/usr/local
	@cmake --install build --prefix $(PREFIX)

deb: ## build Debian packages for the release that this machine runs: build/deb/*.deb
	@tools/install-deps tools/packages.txt tools/packages-deb.txt
	@tools/deb

dist: ## pack the committed sources, with checksums, into DIST=build/dist
	@tools/dist $(DIST)

tarball: ## pack programs for x86-64 Linux with glibc 2.31 or newer, into DIST=build/dist
	@tools/install-deps tools/packages.txt tools/packages-tarball.txt
	@tools/tarball $(DIST)

clean: ## remove everything built
	@rm -rf build build-*

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

deps:
	@tools/install-deps tools/packages.txt
deps-test:
	@tools/install-deps tools/packages.txt tools/packages-test.txt
deps-more:
	@tools/install-deps tools/packages.txt tools/packages-test.txt tools/packages-more.txt
build/build.ninja: | deps
	@cmake --preset default >/dev/null
