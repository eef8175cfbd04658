#!/bin/bash
# The quick start behind `make demo`: three back ends, the controller on a copy of the manifests beside this script,
# a few requests with their answers, and an endpoint change that does not reload NGINX.
# CHECK=1 verifies every answer and exits; otherwise everything keeps running until Ctrl-C.
# Needs the ports named below; needs no root.
set -euo pipefail
cd "$(dirname "$0")/../.."

check=${CHECK:-}
work=target/demo
manifests=$work/manifests
ports=(8080 8443 8181 9001 9002 9003 10246 10254)
binaries=${CARGO_TARGET_DIR:-target}/debug
passed=0
failed=0
pids=()

finish() {
    local status=$?
    trap - EXIT INT TERM
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    exit "$status"
}
trap finish EXIT INT TERM

write_secret() { # NAME HOST: a self-signed certificate as the Secret that the manifests name
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "/CN=$2" \
        -addext "subjectAltName=DNS:$2" -keyout "$work/tls.key" -out "$work/tls.crt" 2>/dev/null
    cat > "$manifests/.secret" <<YAML
apiVersion: v1
kind: Secret
metadata: {name: $1, namespace: demo}
type: kubernetes.io/tls
data:
  tls.crt: $(base64 --wrap=0 "$work/tls.crt")
  tls.key: $(base64 --wrap=0 "$work/tls.key")
YAML
    mv "$manifests/.secret" "$manifests/40-$1.yaml"
    rm "$work/tls.key"
}

show() { # EXPECTED CURL-ARGUMENT...: prints the command and its answer, and counts whether it is the expected one
    local expected=$1 answer
    shift
    printf '\n$ curl%s\n' "$(printf ' %s' "${@@Q}" | sed -E "s/'([[:alnum:]_./:=-]+)'/\1/g")"
    answer=$(curl --silent --show-error --max-time 20 "$@" 2>&1) || true
    printf '%s\n' "$answer"
    if grep --quiet --fixed-strings -- "$expected" <<<"$answer"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        [ -z "$check" ] || printf 'FAILED: expected to see %s\n' "$expected"
    fi
}

await() { # SECONDS COMMAND...: until the command succeeds
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "$controller"; then
            printf 'gave up waiting for: %s\n' "$*" >&2
            tail -n 20 "$work/controller.log" >&2
            return 1
        fi
        sleep 0.05
    done
}

workers() { # the process ids of NGINX's workers: a reload replaces them all
    pgrep -P "$(cat "$work/nginx/run/nginx.pid")" | sort | tr '\n' ' '
}

answers() { # WORD CURL-ARGUMENT...: whether the answer starts with the word
    local word=$1
    shift
    curl --silent --max-time 20 "$@" | grep --quiet "^$word:"
}

mkdir -p "$(dirname "$work")"
exec 9> "$(dirname "$work")/demo.lock"
if ! flock --nonblock 9; then
    echo "a demo of this checkout runs already; end it first" >&2
    exit 1
fi
for port in "${ports[@]}"; do
    if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        echo "port $port is in use, and the demo needs it (see 'ss -ltnp sport = :$port')" >&2
        exit 1
    fi
done
rm -rf "$work"
mkdir -p "$manifests"
cp examples/quickstart/manifests/*.yaml "$manifests"
write_secret account-tls account.localhost

for backend in storefront:9001 cart:9002 account:9003; do
    "$binaries/examples/backend" "${backend%:*}" "127.0.0.1:${backend#*:}" & pids+=($!)
done
"$binaries/nginx-ingress-controller" --manifests="$manifests" --nginx-dir="$work/nginx" \
    --http-port=8080 --https-port=8443 --post-shutdown-grace-period=0 > "$work/controller.log" 2>&1 & pids+=($!)
controller=$!
echo "the controller's log is in $work/controller.log"
await 120 curl --silent --fail --max-time 20 http://127.0.0.1:10254/healthz
for port in 9001 9002 9003; do
    await 120 curl --silent --max-time 20 "http://127.0.0.1:$port/"
done

show "storefront: GET /" -H "Host: shop.localhost" http://127.0.0.1:8080/
show "cart: GET /cart/7" -H "Host: shop.localhost" http://127.0.0.1:8080/cart/7
show "cart: GET /status" -H "Host: shop.localhost" http://127.0.0.1:8080/status
show "storefront: GET /status/x" -H "Host: shop.localhost" http://127.0.0.1:8080/status/x
show "404" --head -H "Host: nobody.localhost" http://127.0.0.1:8080/
show "Location: https://account.localhost/me" --head -H "Host: account.localhost" http://127.0.0.1:8080/me
show "account: GET /me for account.localhost:8443 over https" \
    --cacert "$work/tls.crt" --resolve account.localhost:8443:127.0.0.1 https://account.localhost:8443/me

printf '\nNow the endpoint of the Service storefront moves to port 9003:\n'
before=$(workers)
sed 's/port: 9001, protocol/port: 9003, protocol/' examples/quickstart/manifests/30-storefront.yaml > "$work/moved.yaml"
mv "$work/moved.yaml" "$manifests/30-storefront.yaml"
await 120 answers account -H "Host: shop.localhost" http://127.0.0.1:8080/
show "account: GET /" -H "Host: shop.localhost" http://127.0.0.1:8080/
if [ "$(workers)" = "$before" ]; then
    echo "NGINX was not reloaded: its workers are still $before"
    passed=$((passed + 1))
else
    echo "FAILED: NGINX was reloaded"
    failed=$((failed + 1))
fi

if [ -n "$check" ]; then
    printf '\ndemo: %d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ]
    exit
fi
printf '\nEdit the files in %s and try again; Ctrl-C ends everything.\n' "$manifests"
wait
