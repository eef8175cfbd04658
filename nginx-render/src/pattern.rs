//! Regular expressions of users.
//!
//! A named group defines a variable of that name for the whole configuration. One that is called like a variable that
//! other locations rely on (`(?<best_http_host>…)`, `(?<http_upgrade>…)`) would empty it for all of them, so such
//! expressions are refused.

use crate::value::Unprintable;

/// Variables that the configuration defines, without those that NGINX itself refuses to define anew.
const OWN: &[&str] = &[
    "arrival_port",
    "auth_cookie",
    "balancer_ewma_score",
    "best_http_host",
    "block_ref",
    "block_ua",
    "cache_key",
    "client_scheme",
    "escaped_request_uri",
    "mirror_target",
    "connection_upgrade",
    "first_forwarded_host",
    "forges_address",
    "forwarded_for_or_last_hop",
    "forwarded_for_proxy_protocol",
    "forwarded_prefix",
    "full_x_forwarded_for",
    "hsts",
    "ingress_name",
    "last_hop",
    "literal_dollar",
    "location_path",
    "loggable",
    "namespace",
    "no_certificate",
    "pass_access_scheme",
    "pass_port",
    "pass_server_port",
    "proxy_alternative_upstream_name",
    "proxy_protocol_addr_trusted",
    "proxy_upstream_name",
    "redirect_host",
    "redirect_name",
    "redirect_path",
    "redirect_to_https",
    "redirect_uri",
    "req_id",
    "service_name",
    "service_port",
    "subdomain",
    "target",
    "this_host",
    "tmp_cache_key",
    "upstream_vhost",
];

/// Families of variables: of NGINX's modules, and of ours.
const FAMILIES: &[&str] = &[
    "allowlist_",
    "arg_",
    "auth_",
    "binary_",
    "body_",
    "bytes_",
    "connection",
    "content_",
    "cookie_",
    "cors",
    "date_",
    "document_",
    "geoip",
    "gzip_",
    "host",
    "http_",
    "http2",
    "http3",
    "https",
    "is_args",
    "limit_",
    "msec",
    "nginx_",
    "otel",
    "opentelemetry",
    "pid",
    "pipe",
    "proxy_",
    "query_string",
    "realip_",
    "realpath_",
    "remote_",
    "request",
    "scheme",
    "secure_",
    "sent_",
    "server_",
    "session_",
    "slice_",
    "spdy",
    "ssl_",
    "status",
    "tcpinfo_",
    "time_",
    "trailer_",
    "uid_",
    "upstream_",
    "uri",
];

/// Checks the named groups of a regular expression.
///
/// # Errors
/// When a group is called like a variable that others use.
pub(crate) fn check_groups(pattern: &str) -> Result<(), Unprintable> {
    let reserved = |name: &str| {
        // NGINX compares names of variables in lower case.
        let name = name.to_ascii_lowercase();
        OWN.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family))
    };
    match named_groups(pattern).find(|name| reserved(name)) {
        Some(name) => Err(Unprintable::Group(name.into())),
        None => Ok(()),
    }
}

/// Names behind `(?<`, `(?P<` and `(?'`. Those in a character class or behind `\` are found as well: refusing more than
/// needed is harmless.
pub(crate) fn named_groups(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.split("(?").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('P').unwrap_or(rest);
        let (rest, end) = match rest.strip_prefix('<') {
            Some(rest) => (rest, '>'),
            None => (rest.strip_prefix('\'')?, '\''),
        };
        rest.split_once(end).map(|(name, _)| name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_may_not_take_the_name_of_a_variable() {
        for pattern in [
            "/(?<best_http_host>.*)",
            "/(?P<http_upgrade>x)",
            "/a(?'Proxy_Upstream_Name'b)",
            "(?<uri>.)",
        ] {
            assert!(
                matches!(check_groups(pattern), Err(Unprintable::Group(_))),
                "{pattern}"
            );
        }
        for pattern in [
            "/(.*)",
            "/(?<version>v[0-9]+)/(?<rest>.*)",
            "/(?i)a(?:b)(?=c)(?<!d)",
            "(?<",
            "(?P",
        ] {
            assert!(check_groups(pattern).is_ok(), "{pattern}");
        }
    }
}
