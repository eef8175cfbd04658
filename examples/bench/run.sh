#!/bin/bash
# Figures of the whole controller on this machine: see examples/bench_serving.rs.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --locked -p controller-bin --bins
cargo run --release --locked -p examples --example bench_serving -- "$PWD/${CARGO_TARGET_DIR:-target}/release/nginx-ingress-controller" "${1:-1000}"
