#!/bin/bash
# What a request costs through the controller's NGINX, against the same NGINX with a static upstream: requests per
# second of processor time of the workers, both in one run, in turns. Above 1 the controller's is cheaper.
#
#   examples/bench/data-plane.sh CONTROLLER [ROUNDS [SECONDS]]
set -euo pipefail
controller=$(realpath "$1")
rounds=${2:-9}
seconds=${3:-2}
connections=32
work=$(mktemp -d)
pids=()

end() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$work"
}
trap end EXIT

backend=18090 static_http=18091 static_https=18092 http=18093 https=18094
workers=2
mkdir "$work/manifests" "$work/backend" "$work/static"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=bench.test \
    -addext subjectAltName=DNS:bench.test -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null

cat > "$work/backend/nginx.conf" <<CONF
pid $work/backend/pid;
error_log $work/backend/error.log;
daemon off;
worker_processes 1;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000;
    server { listen 127.0.0.1:$backend; location / { return 200 "bench\n"; } }
}
CONF
# As an administrator would write it by hand: most of the headers and the log of the controller, each line written at once as
# NGINX does without further words (the controller collects them for 100 ms), no Lua. Neither side keeps TLS sessions, since
# wrk resumes them: every handshake is a full one, of the same protocol.
cat > "$work/static/nginx.conf" <<CONF
pid $work/static/pid;
error_log $work/static/error.log;
daemon off;
worker_processes $workers;
events { worker_connections 16384; multi_accept on; }
http {
    log_format full '\$remote_addr - \$remote_user [\$time_local] "\$request" \$status \$body_bytes_sent "\$http_referer" '
        '"\$http_user_agent" \$request_length \$request_time \$upstream_addr \$upstream_response_length '
        '\$upstream_response_time \$upstream_status';
    access_log $work/static/access.log full;
    keepalive_requests 1000000;
    ssl_certificate $work/cert.pem;
    ssl_certificate_key $work/key.pem;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache off;
    ssl_session_tickets off;
    upstream bench { server 127.0.0.1:$backend; keepalive 320; }
    server {
        listen $static_http;
        listen $static_https ssl;
        server_name bench.test;
        location / {
            proxy_pass http://bench;
            proxy_http_version 1.1;
            proxy_set_header Host \$host;
            proxy_set_header Connection "";
            proxy_set_header X-Real-IP \$remote_addr;
            proxy_set_header X-Forwarded-For \$remote_addr;
            proxy_set_header X-Forwarded-Host \$host;
            proxy_set_header X-Forwarded-Port \$server_port;
            proxy_set_header X-Forwarded-Proto \$scheme;
        }
    }
}
CONF
cat > "$work/manifests/bench.yaml" <<YAML
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: bench
  namespace: bench
  annotations: {nginx.ingress.kubernetes.io/ssl-redirect: "false"}
spec:
  ingressClassName: nginx
  tls: [{hosts: [bench.test], secretName: bench}]
  rules:
    - host: bench.test
      http:
        paths: [{path: /, pathType: Prefix, backend: {service: {name: bench, port: {number: 80}}}}]
---
apiVersion: v1
kind: Service
metadata: {name: bench, namespace: bench}
spec: {ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: bench-1, namespace: bench, labels: {kubernetes.io/service-name: bench}}
addressType: IPv4
ports: [{name: http, port: $backend, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
---
apiVersion: v1
kind: Secret
metadata: {name: bench, namespace: bench}
type: kubernetes.io/tls
data:
  tls.crt: $(base64 --wrap=0 "$work/cert.pem")
  tls.key: $(base64 --wrap=0 "$work/key.pem")
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: bench}
data: {worker-processes: "$workers", keep-alive-requests: "1000000", ssl-session-cache: "false"}
YAML

nginx -c "$work/backend/nginx.conf" &
pids+=("$!")
nginx -c "$work/static/nginx.conf" &
static=$!
pids+=("$static")
"$controller" --manifests="$work/manifests" --nginx-dir="$work/nginx" --configmap=bench/settings --http-port=$http \
    --https-port=$https --status-port=18095 --healthz-port=18096 --default-server-port=18097 --enable-metrics=true \
    --shutdown-grace-period=0 --post-shutdown-grace-period=0 > "$work/controller.log" 2>&1 &
pids+=("$!")

answers() {
    curl --silent --insecure --resolve "bench.test:$1:127.0.0.1" "$2://bench.test:$1/" | grep -q bench
}
for what in "$static_http http" "$static_https https" "$http http" "$https https"; do
    # shellcheck disable=SC2086 # two words
    timeout 60 bash -c "$(declare -f answers); until answers $what; do sleep 0.1; done"
done
ours=$(cat "$work/nginx/run/nginx.pid")

# Nanoseconds of processor time that the workers of a master have taken.
spent() {
    local total=0 worker fields
    for worker in $(pgrep --parent "$1"); do
        read -r -a fields < "/proc/$worker/schedstat"
        total=$((total + fields[0]))
    done
    echo "$total"
}

# requests MASTER URL [HEADER]: requests per second of processor time.
requests() {
    local before served after
    before=$(spent "$1")
    served=$(wrk --threads 2 --connections "$connections" --duration "${seconds}s" --header "Host: bench.test" \
        ${3:+--header "$3"} "$2" | awk '/requests in/ { print $1 }')
    after=$(spent "$1")
    awk -v served="$served" -v spent=$((after - before)) 'BEGIN { print served * 1e9 / spent }'
}

# compare NAME STATIC-URL OUR-URL [HEADER]: the median ratio of some rounds.
compare() {
    local round a b
    for ((round = 0; round < rounds; round++)); do
        a=$(requests "$static" "$2" "${4-}")
        b=$(requests "$ours" "$3" "${4-}")
        awk -v a="$a" -v b="$b" 'BEGIN { printf "%.3f %.0f %.0f\n", b / a, a, b }'
    done | sort --numeric-sort | awk -v name="$1" '
        { ratio[NR] = $1; fixed[NR] = $2; own[NR] = $3 }
        END {
            middle = int((NR + 1) / 2)
            printf "%-24s %.2f (%.2f-%.2f); requests per CPU second: static %d, controller %d\n",
                name, ratio[middle], ratio[1], ratio[NR], fixed[middle], own[middle]
        }'
}

compare "HTTP, kept alive" "http://127.0.0.1:$static_http/" "http://127.0.0.1:$http/"
compare "HTTPS, kept alive" "https://127.0.0.1:$static_https/" "https://127.0.0.1:$https/"
compare "HTTPS, full handshakes" "https://127.0.0.1:$static_https/" "https://127.0.0.1:$https/" "Connection: close"
