//! What a layout is like without the paths of an Ingress that NGINX refuses.

use std::sync::Arc;

use ingress_model::{
    Layout, ObjectName, Server,
    layout::{LocationSettings, Modifier},
};

use nginx_render::syntax::is_expression;

use super::{Level, Levels};

/// The layout in which the paths of [denied](Level::Denied) Ingresses answer 503.
#[must_use]
pub fn deny(layout: &Layout, levels: &Levels) -> Layout {
    let mut layout = layout.clone();
    let denied = levels.iter().filter(|(_, level)| **level == Level::Denied);
    for (name, _) in denied {
        layout
            .stream_snippets
            .retain(|snippet| snippet.ingress != *name);
        let touched = layout
            .servers
            .iter()
            .filter(|(_, server)| is_touched(server, name));
        let hosts: Vec<_> = touched.map(|(host, _)| host.clone()).collect();
        for host in hosts {
            if let Some(server) = layout.servers.get_mut(&host) {
                take_out(Arc::make_mut(server), name);
            }
        }
    }
    layout
}

fn is_touched(server: &Server, name: &ObjectName) -> bool {
    server
        .locations
        .iter()
        .any(|location| location.ingress.as_ref() == Some(name))
        || server
            .snippet
            .as_ref()
            .is_some_and(|snippet| snippet.ingress == *name)
        || server
            .client_auth
            .as_ref()
            .is_some_and(|auth| auth.ingress == *name)
}

fn take_out(server: &mut Server, name: &ObjectName) {
    const WHY: &str = "nginx refuses the configuration of this Ingress";

    if server
        .snippet
        .as_ref()
        .is_some_and(|snippet| snippet.ingress == *name)
    {
        server.snippet = None;
    }
    if let Some(auth) = server
        .client_auth
        .as_mut()
        .filter(|auth| auth.ingress == *name)
    {
        // The host stays closed: who asked for client certificates would not want it open.
        auth.value.denied = Some(WHY.to_owned());
        auth.value.authority = None;
    }
    let denied = Arc::new(LocationSettings {
        denied: Some(WHY.to_owned()),
        ..LocationSettings::default()
    });
    for location in &mut server.locations {
        if location.ingress.as_ref() == Some(name) {
            location.settings = Arc::clone(&denied);
            if location.modifier == Modifier::Regex {
                location.path = harmless(&location.path).into();
            }
        }
    }
}

/// An expression that NGINX takes and that matches all that `expression` does: it may be what is wrong.
fn harmless(expression: &str) -> String {
    let nameless = without_names(expression);
    if is_expression(&format!("^{nameless}")) {
        return nameless;
    }
    let is_literal = |c: char| c.is_ascii_alphanumeric() || "/_-~%".contains(c);
    let end = expression
        .find(|c| !is_literal(c))
        .unwrap_or(expression.len());
    let (head, rest) = expression.split_at(end);
    let mut head = head.to_owned();
    if rest.starts_with(['*', '?', '{']) {
        head.pop();
    }
    if rest.contains('|') {
        // It may begin otherwise.
        head.clear();
    }
    head
}

/// The same groups without names: a name is a variable, which may not be for everybody to define.
fn without_names(expression: &str) -> String {
    let mut rest = expression;
    let mut nameless = String::new();
    while let Some(at) = rest.find("(?") {
        let (before, group) = rest.split_at(at);
        nameless.push_str(before);
        let name = ["(?<", "(?P<", "(?'"]
            .into_iter()
            .find_map(|opening| group.strip_prefix(opening))
            .filter(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'));
        let after = name.and_then(|name| name.split_once(['>', '\'']));
        if let Some((_, after)) = after {
            nameless.push('(');
            rest = after;
        } else {
            nameless.push_str("(?");
            rest = group.strip_prefix("(?").unwrap_or_default();
        }
    }
    nameless + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_becomes_a_harmless_one_that_matches_no_less() {
        for (expression, becomes) in [
            ("/admin/(.*)", "/admin/(.*)"),
            (
                "/a/(?<proxy_host>[^/]+)/(?P<x>b)(?:c)(?<!d)",
                "/a/([^/]+)/(b)(?:c)(?<!d)",
            ),
            ("/a(", "/a"),
            ("/ab*(", "/a"),
            ("/a|/b(", ""),
            ("(", ""),
        ] {
            let harmless = harmless(expression);
            assert_eq!(harmless, becomes);
            assert!(is_expression(&format!("^{harmless}")));
        }
    }
}
