# The recipes that people and CI share. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

NGINX_PACKAGES := nginx-light libnginx-mod-http-lua libnginx-mod-http-headers-more-filter libnginx-mod-stream \
    libnginx-mod-stream-js lua-cjson lua-resty-core
BUILD_PACKAGES := gcc libc6-dev curl openssl ca-certificates procps
# Modules that only some ConfigMap keys and annotations need.
MODULE_PACKAGES := libnginx-mod-http-modsecurity modsecurity-crs libnginx-mod-http-brotli-filter \
    libnginx-mod-http-brotli-static libnginx-mod-http-geoip2
BENCH_PACKAGES := wrk
export INSTA_UPDATE ?= no

.PHONY: help packages module-packages bench-packages kubectl fmt lint doc unit examples demo test bench bench-data-plane \
    chaos rolling propagation fuzz deny

help: ## Lists the recipes.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

packages: ## Installs Debian's packages that are missing (NGINX with its Lua module, a linker, curl).
	@./examples/quickstart/install-packages.sh $(BUILD_PACKAGES) $(NGINX_PACKAGES)

module-packages: packages ## Installs NGINX's further modules, which tests ask for.
	@./examples/quickstart/install-packages.sh $(MODULE_PACKAGES)

bench-packages: packages
	@./examples/quickstart/install-packages.sh $(BENCH_PACKAGES)

fmt: ## Fails when a file is not formatted.
	cargo fmt --all --check

lint: ## Clippy over everything, warnings denied.
	cargo clippy --workspace --all-targets --locked -- -D warnings

doc: ## The documentation, warnings denied.
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

kubectl: packages
	@command -v kubectl >/dev/null || ./examples/quickstart/install-packages.sh kubernetes-client

unit: module-packages kubectl ## Unit, property, integration and documentation tests.
	cargo test --workspace --all-targets --locked --no-fail-fast
	cargo test --workspace --doc --locked --no-fail-fast

examples: packages ## Runs the examples that end by themselves.
	./examples/run-all.sh

demo: packages ## The quick start: three back ends, two hosts, on ports 8080 and 8443. CHECK=1 verifies and exits.
	cargo build --locked -p controller-bin -p examples --bins --examples
	CHECK=$(CHECK) ./examples/quickstart/demo.sh

test: packages fmt lint doc unit examples ## What CI runs: all of these and the demo.
	$(MAKE) demo CHECK=1

bench: bench-packages ## Benchmarks: merge, rendering, 1,000 Ingresses from start to serving, endpoint propagation.
	cargo bench --workspace --locked
	./examples/bench/run.sh

fuzz: ## Random changes of what comes from outside: FUZZ_SECONDS (60) a target, FUZZ_SEED (the time).
	FUZZ_SECONDS=$${FUZZ_SECONDS:-60} FUZZ_SEED=$${FUZZ_SEED:-$$(date +%s)} \
	    cargo test --locked -p controller-bin --test fuzz -- --nocapture

chaos: packages ## Random faults against a real NGINX: CHAOS_ROUNDS (250), CHAOS_SEED (the time).
	CHAOS_ROUNDS=$${CHAOS_ROUNDS:-250} CHAOS_SEED=$${CHAOS_SEED:-$$(date +%s)} \
	    cargo test --locked -p controller-bin --test chaos --test freshness -- --ignored --nocapture

rolling: packages ## Replaces the only endpoint of a Service under load, and kills NGINX during updates; prints figures.
	cargo test --locked -p controller-bin --test rolling -- --ignored --nocapture

propagation: packages ## Moves an endpoint of an API server's 1,000 Services; prints how long until requests see it.
	cargo test --release --locked -p controller-bin --test propagation -- --ignored --nocapture

bench-data-plane: bench-packages ## What a request costs against a static upstream of the same NGINX.
	cargo build --release --locked -p controller-bin --bins
	./examples/bench/data-plane.sh $${CARGO_TARGET_DIR:-target}/release/nginx-ingress-controller

deny: ## Licences, sources and duplicates of dependencies (needs cargo-deny).
	cargo deny check bans licenses sources
