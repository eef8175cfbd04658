//! For every annotation a value that is accepted, how it shows, and a value that is not; and what manifests with them
//! lead to.

use std::{collections::BTreeMap, path::Path, sync::LazyLock};

use ingress_model::{ObjectName, Options, Outcome, Snapshot, merge, testing::Fixture};
use jiff::Timestamp;
use k8s_openapi::api::{core::v1::ConfigMap, networking::v1::Ingress};
use nginx_render::{Capabilities, ModSecurityRules, Rendered, Renderer};
use serde_json::json;

use crate::support::{certificate, environment};

/// How an annotation shows.
#[derive(Clone, Copy)]
pub(crate) enum Effect {
    /// The server of the host has the text, which it does not have without the annotation.
    Shown(&'static str),
    /// The server of the host does not have the text, which it has without the annotation.
    Gone(&'static str),
    /// The main file has the text, which it does not have without the annotation.
    Main(&'static str),
    /// A file whose path has the first text has the second one.
    File(&'static str, &'static str),
    /// A running NGINX is told the text, and is not reloaded.
    Live(&'static str),
}

use Effect::{File, Gone, Live, Main, Shown};

/// An annotation, a value, how it shows, a value that cannot be used (none for raw configuration), and what else is set:
/// other annotations, keys of the ConfigMap behind [`KEY`], or one of the words below.
pub(crate) type Row = (
    &'static str,
    &'static str,
    Effect,
    Option<&'static str>,
    &'static [(&'static str, &'static str)],
);

/// What is set is a key of the ConfigMap.
const KEY: &str = "key:";

/// The Ingress has a TLS section.
const TLS: (&str, &str) = ("with:tls", "");

/// Another Ingress defines the host, so that a canary has something to take a share of.
pub(crate) const MAIN: (&str, &str) = ("with:main", "");

const HTTPS: (&str, &str) = ("backend-protocol", "HTTPS");
const FCGI: (&str, &str) = ("backend-protocol", "FCGI");
const UPSTREAM_TLS: (&str, &str) = ("proxy-ssl-secret", "shop/authority");
const CLIENTS: (&str, &str) = ("auth-tls-secret", "shop/authority");
const BASIC: (&str, &str) = ("auth-type", "basic");
const USERS: (&str, &str) = ("auth-secret", "users");
const ASK: (&str, &str) = ("auth-url", "http://auth.test/verify");
const KEPT: (&str, &str) = ("auth-keepalive", "7");
const HTTP1: (&str, &str) = ("key:use-http2", "false");
const CORS: (&str, &str) = ("enable-cors", "true");
const COOKIE: (&str, &str) = ("affinity", "cookie");
const CANARY: (&str, &str) = ("canary", "true");
const RAW: (&str, &str) = ("key:allow-snippet-annotations", "true");
const CRITICAL: (&str, &str) = ("key:annotations-risk-level", "Critical");
const COLLECTOR: (&str, &str) = ("key:otlp-collector-host", "otel.test");
const TRACED: (&str, &str) = ("enable-opentelemetry", "true");
const GUARDED: (&str, &str) = ("enable-modsecurity", "true");
const MIRROR: (&str, &str) = ("mirror-target", "http://mirror.test/copy");
const HASHED: (&str, &str) = ("upstream-hash-by", "$request_uri");

const MAYBE: Option<&str> = Some("maybe");
const WORD: Option<&str> = Some("many");
const BREAKS: Option<&str> = Some("a; b {");

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    // Paths and rewriting.
    ("rewrite-target", "/new", Shown(r#"rewrite "(?i)/" "/new" break;"#), BREAKS, &[]),
    ("use-regex", "true", Shown(r#"location ~* "^/" {"#), MAYBE, &[]),
    ("x-forwarded-prefix", "/pre", Shown(r#"X-Forwarded-Prefix "/pre";"#), BREAKS, &[("rewrite-target", "/x")]),
    // Redirects.
    ("permanent-redirect", "http://new.test/a", Shown(r#"return 301 "http://new.test/a";"#), BREAKS, &[]),
    ("permanent-redirect-code", "308", Shown(r#"return 308 "http://new.test/";"#), WORD, &[("permanent-redirect", "http://new.test/")]),
    ("temporal-redirect", "http://away.test/", Shown(r#"return 302 "http://away.test/";"#), BREAKS, &[]),
    ("temporal-redirect-code", "307", Shown(r#"return 307 "http://away.test/";"#), WORD, &[("temporal-redirect", "http://away.test/")]),
    ("app-root", "/app", Shown(r#"return 302 "$scheme://$http_host/app";"#), Some("app"), &[]),
    ("relative-redirects", "true", Shown("absolute_redirect off;"), MAYBE, &[]),
    ("from-to-www-redirect", "true", Main(r#"server_name "www.shop.test";"#), MAYBE, &[]),
    // Redirects to HTTPS.
    ("ssl-redirect", "false", Gone("return 308 https://$redirect_host$redirect_uri;"), MAYBE, &[TLS]),
    ("force-ssl-redirect", "true", Shown("return 308 https://$redirect_host$redirect_uri;"), MAYBE, &[]),
    ("preserve-trailing-slash", "true", Shown("https://$redirect_host$request_uri;"), MAYBE, &[("force-ssl-redirect", "true")]),
    ("use-port-in-redirects", "true", Shown("https://$redirect_host:8443$redirect_uri;"), MAYBE, &[("force-ssl-redirect", "true")]),
    // Hosts and TLS.
    ("server-alias", r"other.test,~^o[0-9]+\.test$", Shown(r#"server_name "shop.test" "other.test" "~^o[0-9]+\\.test$";"#), BREAKS, &[]),
    ("ssl-ciphers", "HIGH:!aNULL", Shown("ssl_ciphers HIGH:!aNULL;"), BREAKS, &[]),
    ("ssl-prefer-server-ciphers", "true", Shown("ssl_prefer_server_ciphers on;"), MAYBE, &[]),
    ("ssl-passthrough", "true", Live("TLS of shop.test is passed through"), MAYBE, &[]),
    ("http2-push-preload", "true", Shown("http2_push_preload on;"), MAYBE, &[]),
    // Client certificates.
    ("auth-tls-secret", "shop/authority", Shown("ssl_client_certificate "), Some("authority"), &[TLS]),
    ("auth-tls-verify-client", "optional", Shown("ssl_verify_client optional;"), MAYBE, &[TLS, CLIENTS]),
    ("auth-tls-verify-depth", "2", Shown("ssl_verify_depth 2;"), WORD, &[TLS, CLIENTS]),
    ("auth-tls-error-page", "http://shop.test/no", Shown("error_page 495 496 = http://shop.test/no;"), BREAKS, &[TLS, CLIENTS]),
    ("auth-tls-match-cn", "CN=(a|b)", Shown(r#"if ($ssl_client_s_dn !~ "CN=(a|b)")"#), Some("a"), &[TLS, CLIENTS]),
    ("auth-tls-pass-certificate-to-upstream", "true", Shown("ssl-client-cert $ssl_client_escaped_cert;"), MAYBE, &[TLS, CLIENTS]),
    // Passwords.
    ("auth-type", "basic", Shown(r#"auth_basic "";"#), Some("token"), &[USERS]),
    ("auth-secret", "users", Shown("auth_basic_user_file "), Some("other/users"), &[BASIC]),
    ("auth-secret-type", "auth-map", File("auth/", "auth:mira:hash"), Some("file"), &[BASIC, USERS]),
    ("auth-realm", "Members only", Shown(r#"auth_basic "Members only";"#), BREAKS, &[BASIC, USERS]),
    // External authentication.
    ("auth-url", "http://auth.test/verify", Shown(r#"set $auth_target "http://auth.test/verify";"#), Some("auth.test"), &[]),
    ("auth-method", "POST", Shown(r#"proxy_method "POST";"#), Some("FETCH"), &[ASK]),
    ("auth-signin", "http://auth.test/start", Shown(r#"return 302 "http://auth.test/start?rd="#), BREAKS, &[ASK]),
    ("auth-signin-redirect-param", "next", Shown("start?next="), BREAKS, &[ASK, ("auth-signin", "http://auth.test/start")]),
    ("auth-response-headers", "X-User", Shown(r#"proxy_set_header "X-User" $auth_header_0;"#), Some("X$User"), &[ASK]),
    ("auth-proxy-set-headers", "shop/headers", Shown(r#"proxy_set_header "X-Team" "shop";"#), Some("headers"), &[ASK]),
    ("auth-request-redirect", "http://shop.test/", Shown(r#"X-Auth-Request-Redirect "http://shop.test/";"#), BREAKS, &[ASK]),
    ("auth-cache-key", "$remote_user", Shown("proxy_cache auth_cache;"), BREAKS, &[ASK]),
    ("auth-cache-duration", "200 10m", Shown("proxy_cache_valid 200 10m;"), Some("200"), &[ASK, ("auth-cache-key", "$remote_user")]),
    ("auth-always-set-cookie", "true", Shown("add_header Set-Cookie $auth_cookie always;"), MAYBE, &[ASK]),
    ("auth-keepalive", "7", Main("keepalive 7;"), WORD, &[HTTP1, ASK]),
    ("auth-keepalive-requests", "55", Main("keepalive_requests 55;"), WORD, &[HTTP1, ASK, KEPT]),
    ("auth-keepalive-timeout", "33", Main("keepalive_timeout 33s;"), WORD, &[HTTP1, ASK, KEPT]),
    ("auth-keepalive-share-vars", "true", Gone("access_by_lua_block"), MAYBE, &[HTTP1, ASK, KEPT]),
    ("auth-snippet", "proxy_set_header X-From edge;", Shown("proxy_set_header X-From edge;"), None, &[RAW, CRITICAL, ASK]),
    ("enable-global-auth", "false", Gone("auth_request "), MAYBE, &[("key:global-auth-url", "http://auth.test/")]),
    // Addresses of clients, and several access checks.
    ("allowlist-source-range", "10.0.0.0/8", Shown("allow 10.0.0.0/8;"), Some("all"), &[]),
    ("denylist-source-range", "192.0.2.7", Shown("deny 192.0.2.7;"), Some("all"), &[]),
    ("satisfy", "any", Shown("satisfy any;"), Some("some"), &[]),
    // Limits.
    ("limit-connections", "8", Shown("limit_conn limit_"), WORD, &[]),
    ("limit-rps", "5", Main("rate=5r/s;"), WORD, &[]),
    ("limit-rpm", "300", Main("rate=300r/m;"), WORD, &[]),
    ("limit-burst-multiplier", "3", Shown("burst=15 "), WORD, &[("limit-rps", "5")]),
    ("limit-allowlist", "10.0.0.0/8", Main("10.0.0.0/8 1;"), Some("all"), &[("limit-rps", "5")]),
    ("limit-rate", "100", Shown("limit_rate 100k;"), WORD, &[("proxy-buffering", "on")]),
    ("limit-rate-after", "9", Shown("limit_rate_after 9k;"), WORD, &[("limit-rate", "1")]),
    // Protocol of the endpoints, and proxying.
    ("backend-protocol", "grpc", Shown("grpc_pass grpc://upstream_balancer_"), Some("AJP"), &[]),
    ("proxy-body-size", "9m", Shown("client_max_body_size 9m;"), BREAKS, &[]),
    ("client-body-buffer-size", "9k", Shown("client_body_buffer_size 9k;"), BREAKS, &[]),
    ("proxy-connect-timeout", "7", Shown("proxy_connect_timeout 7s;"), Some("7s"), &[]),
    ("proxy-send-timeout", "7", Shown("proxy_send_timeout 7s;"), Some("7s"), &[]),
    ("proxy-read-timeout", "7", Shown("proxy_read_timeout 7s;"), Some("7s"), &[]),
    ("proxy-buffering", "on", Shown("proxy_buffering on;"), MAYBE, &[]),
    ("proxy-request-buffering", "off", Shown("proxy_request_buffering off;"), MAYBE, &[]),
    ("proxy-buffer-size", "16k", Shown("proxy_buffer_size 16k;"), BREAKS, &[]),
    ("proxy-buffers-number", "9", Shown("proxy_buffers 9 "), WORD, &[]),
    ("proxy-busy-buffers-size", "24k", Shown("proxy_busy_buffers_size 24k;"), BREAKS, &[("proxy-buffer-size", "16k")]),
    ("proxy-max-temp-file-size", "64m", Shown("proxy_max_temp_file_size 64m;"), BREAKS, &[]),
    ("proxy-http-version", "1.0", Shown("proxy_http_version 1.0;"), Some("2"), &[]),
    ("proxy-next-upstream", "error http_502", Shown("proxy_next_upstream error http_502;"), Some("http_418"), &[]),
    ("proxy-next-upstream-timeout", "10", Shown("proxy_next_upstream_timeout 10"), WORD, &[]),
    ("proxy-next-upstream-tries", "2", Shown("proxy_next_upstream_tries 2;"), WORD, &[]),
    ("proxy-cookie-domain", "in.test out.test", Shown("proxy_cookie_domain in.test out.test;"), BREAKS, &[]),
    ("proxy-cookie-path", "/in/ /out/", Shown("proxy_cookie_path /in/ /out/;"), Some("/in/"), &[]),
    ("proxy-redirect-from", "http://in.test/", Shown("proxy_redirect http://in.test/ http://out.test/;"), BREAKS, &[("proxy-redirect-to", "http://out.test/")]),
    ("proxy-redirect-to", "http://out.test/", Shown("proxy_redirect http://in.test/ http://out.test/;"), BREAKS, &[("proxy-redirect-from", "http://in.test/")]),
    ("connection-proxy-header", "keep-alive", Shown(r#"proxy_set_header Connection "keep-alive";"#), MAYBE, &[]),
    ("upstream-vhost", "in.test", Shown(r#"proxy_set_header Host "in.test";"#), BREAKS, &[]),
    // TLS to the endpoints.
    ("proxy-ssl-secret", "shop/authority", Shown("proxy_ssl_trusted_certificate "), Some("authority"), &[HTTPS]),
    ("proxy-ssl-ciphers", "HIGH:!aNULL", Shown("proxy_ssl_ciphers HIGH:!aNULL;"), BREAKS, &[HTTPS, UPSTREAM_TLS]),
    ("proxy-ssl-name", "in.test", Shown(r#"proxy_ssl_name "in.test";"#), BREAKS, &[HTTPS, UPSTREAM_TLS]),
    ("proxy-ssl-protocols", "TLSv1.3", Shown("proxy_ssl_protocols TLSv1.3;"), Some("SSLv3"), &[HTTPS, UPSTREAM_TLS]),
    ("proxy-ssl-server-name", "on", Shown("proxy_ssl_server_name on;"), MAYBE, &[HTTPS, UPSTREAM_TLS]),
    ("proxy-ssl-verify", "on", Shown("proxy_ssl_verify on;"), MAYBE, &[HTTPS, UPSTREAM_TLS]),
    ("proxy-ssl-verify-depth", "3", Shown("proxy_ssl_verify_depth 3;"), WORD, &[HTTPS, UPSTREAM_TLS]),
    // FastCGI.
    ("fastcgi-index", "index.php", Shown("fastcgi_index index.php;"), BREAKS, &[FCGI]),
    ("fastcgi-params-configmap", "headers", Shown(r#"fastcgi_param "X-Team" "shop""#), Some("other/headers"), &[FCGI]),
    // Balancing.
    ("load-balance", "ewma", Live("load_balance: Some(Ewma)"), Some("guess"), &[]),
    ("upstream-hash-by", "$request_uri", Live(r#"key: "$request_uri""#), BREAKS, &[]),
    ("upstream-hash-by-subset", "true", Live("subset: true"), MAYBE, &[HASHED]),
    ("upstream-hash-by-subset-size", "2", Live("subset_size: 2"), WORD, &[HASHED, ("upstream-hash-by-subset", "true")]),
    ("service-upstream", "true", Live(r#"address: "10.96.0.1""#), MAYBE, &[]),
    // Affinity.
    ("affinity", "cookie", Live(r#"name: "INGRESSCOOKIE""#), MAYBE, &[]),
    ("affinity-mode", "persistent", Live("persistent: true"), MAYBE, &[COOKIE]),
    ("affinity-canary-behavior", "legacy", Live("affinity: None, canary: true"), MAYBE, &[MAIN, ("with:sticky", ""), CANARY, ("canary-weight", "10")]),
    ("session-cookie-name", "route", Live(r#"name: "route""#), BREAKS, &[COOKIE]),
    ("session-cookie-expires", "60", Live(r#"expires: Some("60")"#), WORD, &[COOKIE]),
    ("session-cookie-max-age", "60", Live(r#"max_age: Some("60")"#), WORD, &[COOKIE]),
    ("session-cookie-path", "/shop", Live(r#"path: Some("/shop")"#), BREAKS, &[COOKIE]),
    ("session-cookie-domain", "shop.test", Live(r#"domain: Some("shop.test")"#), BREAKS, &[COOKIE]),
    ("session-cookie-samesite", "Lax", Live(r#"same_site: Some("Lax")"#), MAYBE, &[COOKIE]),
    ("session-cookie-secure", "true", Live("secure: Some(true)"), MAYBE, &[COOKIE]),
    ("session-cookie-conditional-samesite-none", "true", Live("conditional_same_site_none: true"), MAYBE, &[COOKIE, ("session-cookie-samesite", "None")]),
    ("session-cookie-change-on-failure", "true", Live("change_on_failure: true"), MAYBE, &[COOKIE]),
    // Canaries.
    ("canary", "true", Live("canary: true"), MAYBE, &[MAIN, ("canary-weight", "10")]),
    ("canary-weight", "10", Live("weight: 10,"), WORD, &[MAIN, CANARY]),
    ("canary-weight-total", "500", Live("weight_total: 500"), WORD, &[MAIN, CANARY, ("canary-weight", "10")]),
    ("canary-by-header", "X-Canary", Live(r#"header: "X-Canary""#), BREAKS, &[MAIN, CANARY]),
    ("canary-by-header-value", "beta", Live(r#"header_value: "beta""#), BREAKS, &[MAIN, CANARY, ("canary-by-header", "X-Canary")]),
    ("canary-by-header-pattern", "(de|fr)", Live(r#"header_pattern: "(de|fr)""#), BREAKS, &[MAIN, CANARY, ("canary-by-header", "X-Canary")]),
    ("canary-by-cookie", "beta", Live(r#"cookie: "beta""#), BREAKS, &[MAIN, CANARY]),
    // Cross-origin requests.
    ("enable-cors", "true", Shown("Access-Control-Allow-Origin: *"), MAYBE, &[]),
    ("cors-allow-origin", "https://a.test", Shown(r#"$http_origin ~* "^(?:https://a\\.test)$""#), Some("https://a b"), &[CORS]),
    ("cors-allow-methods", "GET, POST", Shown(r#""Access-Control-Allow-Methods: GET, POST";"#), BREAKS, &[CORS]),
    ("cors-allow-headers", "X-Token", Shown(r#""Access-Control-Allow-Headers: X-Token";"#), BREAKS, &[CORS]),
    ("cors-expose-headers", "X-Total", Shown(r#""Access-Control-Expose-Headers: X-Total";"#), BREAKS, &[CORS]),
    ("cors-allow-credentials", "false", Gone("Access-Control-Allow-Credentials"), MAYBE, &[CORS]),
    ("cors-max-age", "600", Shown(r#""Access-Control-Max-Age: 600";"#), WORD, &[CORS]),
    // Response headers and error pages.
    ("custom-headers", "shop/headers", Shown(r#"more_set_headers "X-Team: shop";"#), Some("shop/absent"), &[("key:global-allowed-response-headers", "X-Team")]),
    ("custom-http-errors", "404", Shown("error_page 404 = @custom_upstream-default-backend_404;"), Some("200"), &[]),
    ("default-backend", "web", Shown(r#"set $default_backend "custom-default-backend-shop-web";"#), Some("Web"), &[]),
    ("disable-proxy-intercept-errors", "true", Gone("proxy_intercept_errors on;"), MAYBE, &[("custom-http-errors", "404")]),
    // Mirroring.
    ("mirror-target", "http://mirror.test/copy", Shown(r#"set $mirror_target "http://mirror.test/copy";"#), BREAKS, &[]),
    ("mirror-host", "in.test", Shown(r#"proxy_set_header Host "in.test";"#), BREAKS, &[MIRROR]),
    ("mirror-request-body", "off", Shown("mirror_request_body off;"), MAYBE, &[MIRROR]),
    // Logs and tracing.
    ("enable-access-log", "false", Shown("access_log off;"), MAYBE, &[]),
    ("enable-rewrite-log", "true", Shown("rewrite_log on;"), MAYBE, &[]),
    ("enable-opentelemetry", "true", Shown("opentelemetry on;"), MAYBE, &[COLLECTOR]),
    ("opentelemetry-trust-incoming-span", "false", Shown("opentelemetry_trust_incoming_spans off;"), MAYBE, &[COLLECTOR, TRACED]),
    ("opentelemetry-operation-name", "shop", Shown("opentelemetry_operation_name shop;"), BREAKS, &[COLLECTOR, TRACED]),
    // ModSecurity.
    ("enable-modsecurity", "true", Shown("modsecurity on;"), MAYBE, &[]),
    ("enable-owasp-core-rules", "true", Shown("modsecurity/owasp-crs.conf"), MAYBE, &[GUARDED]),
    ("modsecurity-transaction-id", "$request_id", Shown(r#"modsecurity_transaction_id "$request_id";"#), BREAKS, &[GUARDED]),
    ("modsecurity-snippet", "SecRuleEngine On", File("modsecurity/shop_web.conf", "SecRuleEngine On"), None, &[RAW, CRITICAL, GUARDED]),
    // Raw configuration.
    ("configuration-snippet", "add_header X-From edge;", Shown("add_header X-From edge;"), None, &[RAW, CRITICAL]),
    ("server-snippet", "add_header X-From edge;", Shown("add_header X-From edge;"), None, &[RAW, CRITICAL]),
    ("stream-snippet", "# by hand", Main("# by hand"), None, &[RAW, CRITICAL]),
];

/// An NGINX with every module that an annotation needs.
fn every_module() -> Capabilities {
    let text = "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path=/m --with-threads \
        --with-http_v2_module --with-http_realip_module --with-http_auth_request_module \
        --with-http_stub_status_module --with-stream=dynamic --with-stream_realip_module";
    let modules = [
        "ndk_http_module.so",
        "ngx_http_lua_module.so",
        "ngx_http_headers_more_filter_module.so",
        "ngx_http_modsecurity_module.so",
        "otel_ngx_module.so",
        "ngx_stream_module.so",
        "ngx_stream_js_module.so",
    ];
    Capabilities::parse(text, modules)
}

/// What a row leads to.
pub(crate) struct Served {
    pub(crate) outcome: Outcome,
    pub(crate) rendered: Rendered,
}

impl Served {
    /// What Ingresses lead to: `shop/web` with what is set, and whatever else that asks for.
    pub(crate) fn new(set: &[(&str, &str)]) -> Self {
        Self::with(set, &options())
    }

    /// The same under other options.
    pub(crate) fn with(set: &[(&str, &str)], options: &Options) -> Self {
        Self::of(outcome(set, options))
    }

    /// What an outcome leads to.
    pub(crate) fn of(outcome: Outcome) -> Self {
        let mut environment = environment(Path::new("/etc/nginx"));
        environment.lua_dir = "/etc/nginx/lua".into();
        environment.ports.https = 8443;
        environment.modsecurity = ModSecurityRules {
            recommended: Some("/rules/modsecurity.conf".into()),
            core: vec!["/rules/crs/*.conf".into()],
        };
        let mut renderer = Renderer::new(every_module(), environment);
        let rendered = renderer.render(&outcome.model.layout).unwrap();
        Self { outcome, rendered }
    }

    /// The main file without the checksum at its top.
    pub(crate) fn main(&self) -> &str {
        self.rendered.main.split_once('\n').unwrap().1
    }
}

/// What Ingresses lead to, before it is rendered.
pub(crate) fn outcome(set: &[(&str, &str)], options: &Options) -> Outcome {
    let has = |word: (&str, &str)| set.contains(&word);
    let annotations: BTreeMap<String, &str> = set
        .iter()
        .filter(|(name, _)| !name.contains(':'))
        .map(|(name, value)| (format!("nginx.ingress.kubernetes.io/{name}"), *value))
        .collect();
    let keys: BTreeMap<&str, &str> = set
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(KEY)?, *value)))
        .collect();
    let mut snapshot = snapshot(&keys);
    let mut add = |name, ingress| {
        let name = ObjectName::new("shop", name);
        snapshot.ingresses.insert(name, ingress);
    };
    if has(MAIN) {
        let sticky = has(("with:sticky", ""));
        let affinity = ("nginx.ingress.kubernetes.io/affinity".to_owned(), "cookie");
        let annotations = sticky.then_some(affinity).into_iter().collect();
        add("main", ingress("main", "other", &annotations, false));
    }
    add("web", ingress("web", "web", &annotations, has(TLS)));
    merge(&snapshot, options, Timestamp::UNIX_EPOCH)
}

/// Where the ConfigMap is, and the flags that annotations need.
pub(crate) fn options() -> Options {
    Options {
        config_map: Some(ObjectName::new("ingress", "config")),
        ssl_passthrough: true,
        ..Options::default()
    }
}

fn ingress(
    name: &str,
    service: &str,
    annotations: &BTreeMap<String, &str>,
    has_tls: bool,
) -> Ingress {
    let tls = has_tls.then(|| json!([{"hosts": ["shop.test"]}]));
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    let ingress = json!({
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
        "spec": {
            "ingressClassName": "nginx",
            "tls": tls,
            "rules": [{"host": "shop.test", "http": {"paths": [path]}}],
        },
    });
    serde_json::from_value(ingress).unwrap()
}

/// What Ingresses may refer to, and a ConfigMap with these keys.
pub(crate) fn snapshot(keys: &BTreeMap<&str, &str>) -> Snapshot {
    static OBJECTS: LazyLock<Snapshot> =
        LazyLock::new(|| Fixture::from_yaml(&objects()).unwrap().snapshot());
    let mut snapshot = OBJECTS.clone();
    let data = keys.iter();
    let data = data.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let config_map = ConfigMap {
        data: Some(data.collect()),
        ..ConfigMap::default()
    };
    let name = ObjectName::new("ingress", "config");
    snapshot.config_maps.insert(name, config_map);
    snapshot
}

fn objects() -> String {
    let authority = serde_json::to_string(&certificate()).unwrap();
    format!(
        "
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: headers, namespace: shop}}, data: {{X-Team: shop}}}}
---
{{apiVersion: v1, kind: Secret, metadata: {{name: users, namespace: shop}}, stringData: {{auth: 'mira:hash'}}}}
---
{{apiVersion: v1, kind: Secret, metadata: {{name: users, namespace: other}}, stringData: {{auth: 'mira:hash'}}}}
---
{{apiVersion: v1, kind: Secret, metadata: {{name: authority, namespace: shop}}, stringData: {{ca.crt: {authority}}}}}
---
{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop}}, spec: {{clusterIP: 10.96.0.1, ports: [{{port: 80}}]}}}}
---
{{apiVersion: v1, kind: Service, metadata: {{name: other, namespace: shop}}, spec: {{clusterIP: 10.96.0.2, ports: [{{port: 80}}]}}}}
"
    )
}
