#!/bin/bash
# Runs the examples that end by themselves and checks what they say.
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0
failed=0

run() { # EXPECTED EXAMPLE ARGUMENT...
    local expected=$1 example=$2 output
    shift 2
    printf '\n== %s\n' "$example"
    if output=$(cargo run --quiet --locked -p examples --example "$example" -- "$@" 2>&1) &&
        grep --quiet --fixed-strings -- "$expected" <<<"$output"; then
        passed=$((passed + 1))
        printf '%s\n' "$output"
    else
        failed=$((failed + 1))
        printf '%s\nFAILED: expected to see %s\n' "$output" "$expected"
    fi
}

run "push: shop-web-80 with 1 endpoints" custom_controller
run "shop.localhost: 4 locations" render_manifests examples/quickstart/manifests target/rendered
run 'the answer is "second"' push_backends
run "the rules are tests" model_rules

printf '\nexamples: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
