//! Which variables there are: NGINX's own, families of them, and those that a configuration defines.
//!
//! A directive is judged only if it is known to look up variables in its arguments. Any other directive may define what it
//! names, so that modules that nothing is known of are no reason to refuse anything.

use std::collections::BTreeSet;

use super::words::{Block, Statement};
use crate::pattern::named_groups;

/// Variables of NGINX's modules (NGINX docs, "Alphabetical index of variables") and of modules that are often seen beside
/// them.
pub(super) const DOCUMENTED: &[&str] = &[
    "ancient_browser",
    "args",
    "binary_remote_addr",
    "body_bytes_sent",
    "brotli_ratio",
    "bytes_received",
    "bytes_sent",
    "connection",
    "connection_requests",
    "connection_time",
    "connections_active",
    "connections_reading",
    "connections_waiting",
    "connections_writing",
    "content_length",
    "content_type",
    "date_gmt",
    "date_local",
    "document_root",
    "document_uri",
    "fastcgi_path_info",
    "fastcgi_script_name",
    "gzip_ratio",
    "host",
    "hostname",
    "http2",
    "http3",
    "https",
    "invalid_referer",
    "is_args",
    "is_request_port",
    "limit_conn_status",
    "limit_rate",
    "limit_req_status",
    "memcached_key",
    "modern_browser",
    "msec",
    "msie",
    "nginx_version",
    "pid",
    "pipe",
    "protocol",
    "proxy_add_x_forwarded_for",
    "proxy_host",
    "proxy_port",
    "proxy_protocol_addr",
    "proxy_protocol_port",
    "proxy_protocol_server_addr",
    "proxy_protocol_server_port",
    "query_string",
    "realip_remote_addr",
    "realip_remote_port",
    "realpath_root",
    "remote_addr",
    "remote_port",
    "remote_user",
    "request",
    "request_body",
    "request_body_file",
    "request_completion",
    "request_filename",
    "request_id",
    "request_length",
    "request_method",
    "request_port",
    "request_time",
    "request_uri",
    "scheme",
    "secure_link",
    "secure_link_expires",
    "server_addr",
    "server_name",
    "server_port",
    "server_protocol",
    "session_log_binary_id",
    "session_log_id",
    "session_time",
    "slice_range",
    "ssl_alpn_protocol",
    "ssl_cipher",
    "ssl_ciphers",
    "ssl_client_cert",
    "ssl_client_escaped_cert",
    "ssl_client_fingerprint",
    "ssl_client_i_dn",
    "ssl_client_i_dn_legacy",
    "ssl_client_raw_cert",
    "ssl_client_s_dn",
    "ssl_client_s_dn_legacy",
    "ssl_client_serial",
    "ssl_client_sigalg",
    "ssl_client_v_end",
    "ssl_client_v_remain",
    "ssl_client_v_start",
    "ssl_client_verify",
    "ssl_curve",
    "ssl_curves",
    "ssl_early_data",
    "ssl_ech_outer_server_name",
    "ssl_ech_status",
    "ssl_preread_alpn_protocols",
    "ssl_preread_protocol",
    "ssl_preread_server_name",
    "ssl_protocol",
    "ssl_server_cert_type",
    "ssl_server_name",
    "ssl_session_id",
    "ssl_session_reused",
    "ssl_sigalg",
    "status",
    "time_iso8601",
    "time_local",
    "uid_got",
    "uid_reset",
    "uid_set",
    "upstream_addr",
    "upstream_bytes_received",
    "upstream_bytes_sent",
    "upstream_cache_age",
    "upstream_cache_key",
    "upstream_cache_last_modified",
    "upstream_cache_status",
    "upstream_connect_time",
    "upstream_first_byte_time",
    "upstream_header_time",
    "upstream_last_server_name",
    "upstream_queue_time",
    "upstream_response_length",
    "upstream_response_time",
    "upstream_session_time",
    "upstream_status",
    "uri",
    "zstd_ratio",
];

/// What the names of variables begin with that stand for a header, an argument and the like (the same index).
const FAMILIES: &[&str] = &[
    "arg_",
    "cookie_",
    "http_",
    "jwt_claim_",
    "jwt_header_",
    "opentelemetry_context_",
    "opentracing_context_",
    "proxy_protocol_tlv_",
    "sent_http_",
    "sent_trailer_",
    "upstream_cookie_",
    "upstream_http_",
    "upstream_trailer_",
];

/// What further names of variables begin with that modules may have.
const GROUPS: &[&str] = &[
    "acme_",
    "echo_",
    "geoip_",
    "opentelemetry_",
    "otel_",
    "tcpinfo_",
];

/// Directives that look up variables in their arguments, and the first argument where they do (NGINX docs: "the value can
/// contain variables").
const CONSUMERS: &[(&str, usize)] = &[
    ("access_log", 1),
    ("add_header", 2),
    ("add_trailer", 2),
    ("alias", 1),
    ("auth_basic", 1),
    ("auth_basic_user_file", 1),
    ("auth_request_set", 2),
    ("expires", 1),
    ("fastcgi_bind", 1),
    ("fastcgi_cache", 1),
    ("fastcgi_cache_bypass", 1),
    ("fastcgi_cache_key", 1),
    ("fastcgi_no_cache", 1),
    ("fastcgi_param", 2),
    ("fastcgi_pass", 1),
    ("grpc_bind", 1),
    ("grpc_pass", 1),
    ("grpc_set_header", 2),
    ("grpc_ssl_name", 1),
    ("hash", 1),
    ("index", 1),
    ("limit_conn_zone", 1),
    ("limit_rate", 1),
    ("limit_rate_after", 1),
    ("limit_req_zone", 1),
    ("log_format", 2),
    ("memcached_pass", 1),
    ("more_set_headers", 1),
    ("more_set_input_headers", 1),
    ("proxy_bind", 1),
    ("proxy_cache", 1),
    ("proxy_cache_bypass", 1),
    ("proxy_cache_key", 1),
    ("proxy_cookie_domain", 1),
    ("proxy_cookie_path", 1),
    ("proxy_method", 1),
    ("proxy_no_cache", 1),
    ("proxy_pass", 1),
    ("proxy_redirect", 1),
    ("proxy_set_body", 1),
    ("proxy_set_header", 2),
    ("proxy_ssl_name", 1),
    ("proxy_store", 1),
    ("return", 1),
    ("root", 1),
    ("scgi_param", 2),
    ("scgi_pass", 1),
    ("secure_link", 1),
    ("secure_link_md5", 1),
    ("set", 2),
    ("sub_filter", 1),
    ("try_files", 1),
    ("uwsgi_param", 2),
    ("uwsgi_pass", 1),
];

/// Whether the name is one of a family.
pub(super) fn is_of_family(name: &str) -> bool {
    FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Whether documentation tells of such a variable.
pub(super) fn is_documented(name: &str) -> bool {
    DOCUMENTED.contains(&name) || GROUPS.iter().any(|group| name.starts_with(group))
}

/// The variables that directives look up, in lower case.
pub(super) fn used(statement: &Statement) -> impl Iterator<Item = String> {
    consumed(statement)
        .iter()
        // A pattern, whose dollars are ends.
        .filter(|word| !word.starts_with('~'))
        .flat_map(|word| named(word))
        .map(str::to_ascii_lowercase)
}

/// The variables that directives define, or may define, in lower case.
pub(super) fn defined(statements: &[Statement]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for statement in statements {
        for word in &statement.words {
            names.extend(named_groups(word).map(str::to_ascii_lowercase));
        }
        let own = definitions(statement).iter();
        let bare = own.filter_map(|word| word.strip_prefix('$'));
        names.extend(
            bare.filter(|name| !name.is_empty() && name.bytes().all(is_name_byte))
                .map(str::to_ascii_lowercase),
        );
    }
    names
}

/// The names behind `$` and in `${…}` of a text. Groups of expressions (`$1`) have none.
pub(super) fn named(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|rest| {
        let name = if let Some(inner) = rest.strip_prefix('{') {
            inner.split_once('}')?.0
        } else {
            let end = rest.bytes().position(|byte| !is_name_byte(byte));
            rest.get(..end.unwrap_or(rest.len()))?
        };
        let is_group = name.starts_with(|c: char| c.is_ascii_digit());
        (!name.is_empty() && !is_group && name.bytes().all(is_name_byte)).then_some(name)
    })
}

/// The words of a directive in which it looks up variables.
fn consumed(statement: &Statement) -> &[String] {
    let words = &statement.words;
    if statement.block == Block::Map {
        return words.get(1..2).unwrap_or_default();
    }
    if statement.block == Block::Free {
        return &[];
    }
    match statement.name() {
        "if" => {
            let is_match = |word: &String| matches!(word.as_str(), "~" | "~*" | "!~" | "!~*");
            let end = words.iter().position(is_match).unwrap_or(words.len());
            words.get(1..end).unwrap_or_default()
        }
        "rewrite" => words.get(2..3).unwrap_or_default(),
        "map" | "split_clients" => words.get(1..2).unwrap_or_default(),
        "geo" if words.len() > 2 => words.get(1..2).unwrap_or_default(),
        name => CONSUMERS
            .iter()
            .find(|(consumer, _)| *consumer == name)
            .and_then(|(_, first)| words.get(*first..))
            .unwrap_or_default(),
    }
}

/// The words of a directive that may be names of variables that it defines.
fn definitions(statement: &Statement) -> &[String] {
    let words = &statement.words;
    if statement.block == Block::Map {
        return &[];
    }
    match statement.name() {
        "set" | "auth_request_set" => words.get(1..2).unwrap_or_default(),
        "map" | "split_clients" | "geo" => words.last().map_or(&[], std::slice::from_ref),
        "if" | "rewrite" => &[],
        name if CONSUMERS.iter().any(|(consumer, _)| *consumer == name) => &[],
        _ => words,
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::words;

    fn all_used(text: &str) -> Vec<String> {
        words::read(text, Block::Main)
            .unwrap()
            .iter()
            .flat_map(used)
            .collect()
    }

    fn all_defined(text: &str) -> Vec<String> {
        defined(&words::read(text, Block::Main).unwrap())
            .into_iter()
            .collect()
    }

    #[test]
    fn variables_are_found_where_they_are_looked_up() {
        for (text, want) in [
            (r#"return 200 "$a ${B}c $1 $2x $ ${ ${-} $ü";"#, "a b"),
            ("proxy_set_header $name $value;", "value"),
            ("set $a $b;", "b"),
            (r#"if ($a = "x$b") { }"#, "a b"),
            (r#"if ( $a ~* "^(x|y)$end" ) { }"#, "a"),
            ("if (-f $request_filename) { }", "request_filename"),
            ("rewrite ^/(.*)$a /$b break;", "b"),
            ("proxy_redirect ~^http://(.*)$ /$a;", "a"),
            (
                "map $a$b $c { $key $value; ~^x$ 1; default $d; }",
                "a b value d",
            ),
            ("geo $a $b { 10.0.0.0/8 $c; } geo $d { }", "a"),
            ("split_clients $a $b { 50% $c; }", "a"),
            ("location ~ ^/x$ { } server_name ~^a$; no_such $x;", ""),
            (r"log_format name '$a' '$b';", "a b"),
        ] {
            assert_eq!(all_used(text).join(" "), want, "{text}");
        }
    }

    #[test]
    fn what_may_define_a_variable_does() {
        for (text, want) in [
            ("set $A b; auth_request_set $c $d;", "a c"),
            ("map $a $b { $x $y; }", "b"),
            ("geo $a $b { } geo $c { } split_clients $d $e { }", "b c e"),
            (
                "geoip2 x.mmdb { $city source=$addr city names en; }",
                "city",
            ),
            (
                "js_set $a main.b; perl_set $c x; set_md5 $d $e; future $f;",
                "a c d e f",
            ),
            (
                r#"server_name "~^(?<sub>.+)\.a$"; location ~ (?P<Rest>.*) { } rewrite "(?'q'x)" /$q;"#,
                "q rest sub",
            ),
            (r#"map $a $b { "~(?<group>x)" $group; }"#, "b group"),
            ("return 200 $a; proxy_set_header X $b;", ""),
        ] {
            assert_eq!(all_defined(text).join(" "), want, "{text}");
        }
    }

    #[test]
    fn lists_are_in_order() {
        assert!(DOCUMENTED.is_sorted());
        assert!(CONSUMERS.is_sorted());
        assert!(FAMILIES.is_sorted() && GROUPS.is_sorted());
    }
}
