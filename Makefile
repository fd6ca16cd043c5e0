# Four commands, a shorter run of the tests, and longer runs of two kinds of them. Each does all of its own set-up on a fresh
# machine. `make help` lists them.
.PHONY: run help test test-fast soak fuzz check bench package

TOOLS := .cache/tools
export PATH := $(CURDIR)/$(TOOLS)/bin:$(PATH)

# Builds gembridge and serves whatever agent is there; the built-in demo agent otherwise. It prints the address and the key.
# Where the chat page cannot be built, a page that says so stands in for it.
run:
	scripts/setup web || echo 'make: going on without the chat page' >&2
	cargo run --locked --release --package gembridge -- serve

help:
	@echo 'make run        build gembridge and serve'
	@echo 'make test-fast  the tests that need cargo alone: a few minutes once built'
	@echo 'make test       all tests; installs what they need'
	@echo 'make check      format, lints, dependency policy, the rules of the house'
	@echo 'make bench      the benchmarks; ONLY=name runs one scenario'
	@echo 'make package    a Debian package, a tarball and the npm package of the client, in dist/'
	@echo 'make soak       ten minutes of random faults, a thousand kills'
	@echo 'make fuzz       ten minutes of mutated inputs for each reader; ONLY=name runs one'

# What needs cargo and nothing else: no Debian packages, no browser, no real agent, no client library. Of the suites that
# are named, tests that need such a thing or take long by intent are skipped by name.
FAST := acp behaviour bridge cli commands connect descriptors detection fake_agent_modes fake_agent_processes \
	fake_agent_script faults frontends fuzz gemini_api golden headless house_rules http parked process profiles properties sdk serve \
	suite tool_names tools transcripts ws
SKIPPED := real_agents:: ops:: clock::r18_ soak::
# Most of these tests wait more than they compute.
test-fast: export RUST_TEST_THREADS ?= 6
test-fast:
	cargo test --locked --workspace --exclude gembridge-bench --no-fail-fast --lib --bins
	cargo test --locked --workspace --exclude gembridge-bench --no-fail-fast $(FAST:%=--test %) -- $(SKIPPED:%=--skip %)

# Installs what the tests need, then runs all of them.
test:
	scripts/setup tests
	cargo build --locked --workspace --all-targets
	cargo test --locked --workspace
	npm --prefix web test

# Ten minutes of random faults instead of half a minute, and a busy gateway killed a thousand times instead of thirty.
soak:
	scripts/setup tests
	GEMBRIDGE_SOAK=long cargo test --locked --package gembridge --test serve --test faults -- --nocapture r23 busy_kills

# Ten minutes of mutated inputs for each reader of what others write, instead of a second. What fails is put into target/fuzz;
# in fixtures/fuzz/NAME it is run first each time. `make fuzz FUZZ_SECONDS=60`, `make fuzz ONLY=jsonrpc`.
FUZZ_SECONDS ?= 600
fuzz:
	FUZZ_SECONDS=$(FUZZ_SECONDS) cargo test --locked --workspace --lib --bins -- --nocapture s31_fuzz_$(subst -,_,$(ONLY))

# Format, lints, dependency policy, the rules of the house.
check:
	scripts/setup checks
	cargo fmt --all --check
	npm --prefix web run check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --package gembridge-sdk
	cargo deny --locked --log-level error check bans licenses sources
	scripts/advisories
	cargo test --locked --package gembridge-testkit --test house_rules

# The benchmark suite: ours, peers and the limit side by side. `make bench ONLY=firehose` runs one scenario.
bench:
	scripts/setup bench
	cargo build --locked --profile dist --workspace --bins
	cargo run --locked --profile dist --package gembridge-bench -- $(ONLY)

# What people install: a Debian package and a tarball of the fully optimised binary, which names its commit, and the client
# as npm packs it. `Containerfile` makes an image of the Debian package.
package: export GEMBRIDGE_COMMIT := $(shell git rev-parse --short=12 HEAD)
package:
	scripts/setup web
	cargo build --locked --profile dist --package gembridge
	scripts/package target/dist/gembridge dist
	cd web/client && npm pack --silent --ignore-scripts --pack-destination ../../dist
