//! Texts wherever a layout can have one, past the checks of the rules.

use std::{path::Path, sync::Arc};

use ingress_model::{
    Layout, Location, ObjectName, Server,
    config::RenderConfig,
    layout::{
        AuthCache, AuthScheme, Authority, BackendProtocol, BasicAuth, ClientAuth, Cors,
        ExternalAuth, FastCgi, LocationSettings, Mirror, Modifier, Owned, PathType, ProxySettings,
        Redirect, ServicePort, SignIn, UpstreamTls, VerifyClient,
    },
    live::{PortRef, UpstreamName},
    value::{Confidential, Literal, Template},
};
use nginx_render::{Rendered, Renderer};
use proptest::prelude::*;

use crate::{
    grammar::{self, Statement},
    hostile,
    places::names_of,
    support::{self, debian, layout, server},
};

/// The texts of a layout.
#[derive(Clone, Debug)]
struct Texts {
    path: String,
    name: String,
    literal: String,
    template: String,
}

impl Texts {
    /// Texts that nobody could take for configuration, and that ask for the same directives.
    fn harmless(&self) -> Self {
        let groups = ["$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9"];
        let has_group = groups.iter().any(|group| {
            self.template.contains(group) || self.template.contains(&group.replace('$', "${"))
        });
        Self {
            path: "/p".into(),
            name: "name".into(),
            literal: "literal".into(),
            template: if has_group { "/$1" } else { "/template" }.into(),
        }
    }

    #[expect(clippy::too_many_lines, reason = "a line a place")]
    /// A layout that has them wherever a text can stand.
    fn layout(&self) -> Layout {
        let literal = || Literal::parse(&self.literal).unwrap();
        let template = || Template::parse(&self.template).unwrap();
        let object = || ObjectName::new(&self.name, &self.name);
        let settings = LocationSettings {
            upstream_vhost: Some(template()),
            connection_header: Some(literal()),
            proxy: ProxySettings {
                cookie_domain: Some(vec![template(), template()]),
                cookie_path: Some(vec![template(), template()]),
                redirect: Some(vec![template(), template()]),
                next_upstream: Some(vec![literal()]),
                ..ProxySettings::default()
            },
            basic_auth: Some(BasicAuth {
                scheme: AuthScheme::Basic,
                realm: literal(),
                secret: ObjectName::new("a", "b"),
                users: Confidential::new(""),
            }),
            external_auth: Some(Arc::new(ExternalAuth {
                url: template(),
                host: template(),
                authority: template(),
                method: Some(literal()),
                signin: Some(SignIn {
                    url: template(),
                    back: Some(literal()),
                }),
                response_headers: vec![literal()],
                request_redirect: Some(template()),
                request_headers: vec![(literal(), template())],
                cache: Some(AuthCache {
                    key: template(),
                    valid: Vec::new(),
                }),
                always_set_cookie: true,
                keepalive: None,
                snippet: None,
            })),
            cors: Some(Cors {
                origins: None,
                methods: literal(),
                headers: literal(),
                expose: Some(literal()),
                credentials: true,
                max_age: 1,
            }),
            response_headers: vec![(literal(), literal())],
            mirror: Some(Mirror {
                target: template(),
                host: template(),
                request_body: true,
            }),
            upstream_tls: Some(UpstreamTls {
                secret: ObjectName::new("a", "b"),
                authority: None,
                certificate: None,
                ciphers: literal(),
                protocols: vec![literal()],
                name: Some(template()),
                server_name: true,
                verify: true,
                verify_depth: 1,
            }),
            ..LocationSettings::default()
        };
        let rewritten = LocationSettings {
            rewrite_target: Some(Template::parse(&format!("/new{}", self.template)).unwrap()),
            forwarded_prefix: Some(template()),
            ..settings.clone()
        };
        let redirected = LocationSettings {
            app_root: Some(template()),
            redirect: Some(Redirect {
                target: template(),
                code: 301,
            }),
            ..LocationSettings::default()
        };
        let fastcgi = LocationSettings {
            backend_protocol: BackendProtocol::Fcgi,
            fastcgi: FastCgi {
                index: Some(literal()),
                params: vec![(literal(), template())],
            },
            ..LocationSettings::default()
        };
        let location = |modifier, path: String, settings: &LocationSettings| Location {
            modifier,
            path: path.into(),
            ingress_path: self.path.as_str().into(),
            path_type: PathType::Prefix,
            ingress: Some(ObjectName::new("shop", "web")),
            service: Some(Arc::new(ServicePort {
                name: self.name.clone(),
                port: PortRef::Name(self.name.clone()),
            })),
            upstream: UpstreamName::new(&self.name),
            settings: Arc::new(settings.clone()),
        };
        let mut named = location(Modifier::Exact, format!("/5{}", self.path), &redirected);
        named.ingress = Some(object());
        let mut text_server = server(
            "text.test",
            [
                location(Modifier::Prefix, format!("/1{}", self.path), &settings),
                location(Modifier::Exact, format!("/2{}", self.path), &settings),
                location(Modifier::Regex, format!("/3{}", self.path), &rewritten),
                location(Modifier::Exact, format!("/4{}", self.path), &fastcgi),
                named,
            ],
        );
        text_server.ssl_ciphers = Some(literal());
        text_server.client_auth = Some(Box::new(Owned {
            ingress: ObjectName::new("shop", "web"),
            value: ClientAuth {
                denied: None,
                authority: Some(Authority {
                    secret: ObjectName::new("shop", "clients"),
                    pem: self.literal.as_str().into(),
                    crl: None,
                }),
                verify: VerifyClient::On,
                depth: 1,
                error_page: Some(template()),
                match_cn: Some(literal()),
                pass_certificate: true,
            },
        }));
        let config = RenderConfig {
            forwarded_for_header: literal(),
            forwarded_host_header: literal(),
            forwarded_for_proxy_protocol_header: literal(),
            use_forwarded_headers: true,
            use_proxy_protocol: true,
            use_gzip: true,
            gzip_disable: Some(literal()),
            gzip_types: vec![literal()],
            ssl_ciphers: Some(literal()),
            ssl_ecdh_curve: literal(),
            ssl_protocols: vec![literal()],
            default_type: literal(),
            hide_headers: vec![literal()],
            block_user_agents: vec![literal()],
            block_referers: vec![literal()],
            skip_access_log_urls: vec![literal()],
            access_log_path: Some(literal()),
            access_log_params: vec![literal()],
            error_log_path: Some(literal()),
            error_log_level: literal(),
            log_format_upstream: template(),
            log_format_stream: template(),
            limit_conn_zone_variable: template(),
            worker_cpu_affinity: vec![literal()],
            ..RenderConfig::default()
        };
        Layout {
            config: Arc::new(config),
            ..layout([text_server])
        }
    }
}

fn render(layout: &Layout) -> Rendered {
    let mut environment = support::environment(Path::new("/etc/nginx"));
    environment.lua_dir = "/etc/nginx/lua".into();
    Renderer::new(debian(), environment).render(layout).unwrap()
}

fn texts() -> impl Strategy<Value = Texts> {
    let text = hostile::printable;
    (text(), text(), text(), text()).prop_map(|(path, name, literal, template)| Texts {
        path,
        name,
        literal,
        template,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Texts without control characters stand where they belong, and nothing else changes.
    #[test]
    fn texts_do_not_change_the_structure(given in texts()) {
        // Groups with the names of variables close their location; that is tested elsewhere.
        prop_assume!(!given.path.contains("(?") && !given.literal.contains("(?"));
        let rendered = render(&given.layout());
        prop_assert!(rendered.notes.is_empty(), "{:?}", rendered.notes);
        let harmless = render(&given.harmless().layout());
        let statements = grammar::parse(&rendered.main);
        let want = grammar::parse(&harmless.main);
        prop_assert_eq!(grammar::shape(&statements), grammar::shape(&want));
    }

    /// Any text at all, control characters included, gives a configuration with the directives that are ours.
    #[test]
    fn nothing_makes_a_directive(
        given in texts(),
        control in prop::sample::select(vec!['\n', '\r', '\0', '\t', '\u{1}', '\u{2}', '\u{3}', '\u{4}', '\u{7f}', '\u{85}']),
        at in 0..8_usize,
    ) {
        let mut names = given.clone();
        for text in [&mut names.path, &mut names.name] {
            let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
            text.insert(at, control);
        }
        let rendered = render(&names.layout());
        prop_assert!(!rendered.notes.is_empty());
        let found = names_of(&rendered.main);
        let mut known = names_of(&render(&given.harmless().layout()).main);
        known.insert("/http/server/location/return".to_owned());
        prop_assert!(found.is_subset(&known), "{:?}", found.difference(&known).collect::<Vec<_>>());
    }
}

#[test]
fn texts_arrive_as_they_are() {
    let text = "a \"b\" 'c' \\d \\\\ {e}; #f \\n";
    let given = Texts {
        path: text.into(),
        name: text.into(),
        literal: text.into(),
        template: text.into(),
    };
    let statements = grammar::parse(&render(&given.layout()).main);
    let http = statements
        .iter()
        .find(|statement| statement.name() == "http")
        .unwrap();
    let servers = http
        .block
        .as_ref()
        .unwrap()
        .iter()
        .filter(|statement| statement.name() == "server");
    let locations: Vec<_> = servers
        .flat_map(|server| server.block.as_ref().unwrap())
        .filter(|statement| statement.name() == "location")
        .collect();
    let find = |words: &[&str]| {
        locations
            .iter()
            .find(|location| location.words[1..] == *words)
            .unwrap()
            .block
            .as_ref()
            .unwrap()
    };
    find(&[&format!("/1{text}")]);
    let exact = find(&["=", &format!("/2{text}")]);
    let regex = find(&["~*", &format!("^/3{text}")]);
    let value = |block: &[Statement], name: &str, first: &str| {
        let found = block
            .iter()
            .find(|statement| statement.name() == name && statement.words[1] == first);
        found.unwrap_or_else(|| panic!("no {name} {first}")).words[2].clone()
    };
    assert_eq!(value(exact, "set", "$service_name"), text);
    assert_eq!(value(exact, "set", "$location_path"), text);
    assert_eq!(value(exact, "proxy_set_header", "Host"), text);
    assert_eq!(value(exact, "proxy_set_header", "Connection"), text);
    assert_eq!(
        value(regex, "rewrite", &format!("(?i)/3{text}")),
        format!("/new{text}")
    );
}

#[test]
fn a_group_cannot_take_a_variable_from_others() {
    let settings = LocationSettings::default();
    let stolen = support::location(Modifier::Regex, "/(?<best_http_host>.*)", &settings);
    let kept = support::location(Modifier::Regex, "/(?<version>v[0-9])/", &settings);
    let rendered = render(&layout([server("regex.test", [stolen, kept])]));
    assert_eq!(rendered.notes.len(), 1, "{:?}", rendered.notes);
    let note = &rendered.notes[0];
    assert_eq!(note.source.path.as_deref(), Some("/(?<best_http_host>.*)"));
    assert!(
        note.text
            .starts_with("left out since its group \"best_http_host\""),
        "{}",
        note.text
    );
    let block = support::server_block(&rendered.main, "regex.test");
    assert!(
        !block.contains("best_http_host>") && block.contains("(?<version>"),
        "{block}"
    );
}

#[test]
fn a_location_that_cannot_be_written_answers_503_and_no_other_does() {
    let settings = LocationSettings {
        response_headers: vec![(Literal::constant("X-Odd"), Literal::constant("a\nb"))],
        ..LocationSettings::default()
    };
    let odd = support::location(Modifier::Exact, "/odd", &settings);
    let fine = support::location(Modifier::Exact, "/fine", &LocationSettings::default());
    let twice = fine.clone();
    let layout = layout([Server {
        tls: true,
        ..server("closed.test", [odd, fine, twice])
    }]);
    let rendered = render(&layout);
    let notes: Vec<_> = rendered
        .notes
        .iter()
        .map(|note| note.text.as_str())
        .collect();
    assert_eq!(
        notes,
        [
            "answers 503 since a control character (code 10) stands in it",
            "left out since the path is there already"
        ]
    );
    let block = support::server_block(&rendered.main, "closed.test");
    assert_eq!(block.matches("return 503;").count(), 1, "{block}");
    assert_eq!(block.matches("proxy_pass ").count(), 1, "{block}");
    assert_eq!(support::refusal(&layout, |_| {}), None);
}
