//! Keys of what is allowed.

use crate::config::Risk;

use super::{
    Action, Context, Instead, KEY, KeyInfo,
    read::{boolean, entry, network, risk, text},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "allow-snippet-annotations",
        value: "boolean",
        default: "false",
        context: Context::Controller,
        example: "true",
        bad: Some("sure"),
        doc: "Whether annotations may hold raw configuration; they need `annotations-risk-level: Critical`, too.",
        action: policy!(allow_snippet_annotations, boolean),
        ..KEY
    },
    KeyInfo {
        name: "annotations-risk-level",
        value: "`Low`, `Medium`, `High` or `Critical`, in any case",
        default: "High",
        context: Context::Controller,
        example: "Medium",
        bad: Some("highest"),
        doc: "Ingresses with a riskier annotation are not served. Any other word is reported and counts as `Low`, as in ingress-nginx.",
        action: Some(Action {
            set: |draft, text| {
                draft.policy.annotations_risk_level = Risk::Low;
                draft.policy.annotations_risk_level = risk(text)?;
                Ok(())
            },
            differs: |_, _| false,
        }),
        instead: Instead::Lowest,
        ..KEY
    },
    KeyInfo {
        name: "annotation-value-word-blocklist",
        value: "list of words",
        default: "none",
        context: Context::Controller,
        example: "load_module,lua_package",
        doc: "Ingresses with an annotation that holds one of them are not served.",
        action: policy_list!(word_blocklist, text),
        ..KEY
    },
    KeyInfo {
        name: "allow-cross-namespace-resources",
        value: "boolean",
        default: "false",
        context: Context::Controller,
        example: "true",
        bad: Some("sure"),
        doc: "Whether annotations may name Secrets and ConfigMaps of other namespaces.",
        action: policy!(allow_cross_namespace_resources, boolean),
        ..KEY
    },
    KeyInfo {
        name: "strict-validate-path-type",
        value: "boolean",
        default: "true",
        context: Context::Controller,
        example: "false",
        bad: Some("sure"),
        doc: "Whether the webhook refuses Exact and Prefix paths with other characters than letters, digits and `._-/`.",
        action: policy!(strict_validate_path_type, boolean),
        ..KEY
    },
    KeyInfo {
        name: "block-cidrs",
        value: "list of addresses and networks",
        default: "none",
        example: "198.51.100.0/24",
        bad: Some("everybody"),
        doc: "Clients that get 403.",
        action: render_list!(block_cidrs, network),
        ..KEY
    },
    KeyInfo {
        name: "block-user-agents",
        value: "list of names or `~` patterns",
        default: "none",
        context: Context::Server,
        example: "~*bot",
        doc: "`User-Agent` headers that get 403.",
        action: render_list!(block_user_agents, entry),
        ..KEY
    },
    KeyInfo {
        name: "block-referers",
        value: "list of names or `~` patterns",
        default: "none",
        context: Context::Server,
        example: "~*spam",
        doc: "`Referer` headers that get 403.",
        action: render_list!(block_referers, entry),
        ..KEY
    },
    KeyInfo {
        name: "whitelist-source-range",
        value: "list of addresses and networks",
        default: "none",
        context: Context::Location,
        example: "10.0.0.0/8",
        bad: Some("everybody"),
        doc: "Fall-back of the annotation. Items that cannot be used are left out; if none can, locations without a list of their own answer 503.",
        action: policy_list!(allowlist_source_range, network),
        instead: Instead::Closed,
        ..KEY
    },
    KeyInfo {
        name: "denylist-source-range",
        value: "list of addresses and networks",
        default: "none",
        context: Context::Location,
        example: "198.51.100.0/24",
        bad: Some("everybody"),
        doc: "Fall-back of the annotation.",
        action: policy_list!(denylist_source_range, network),
        ..KEY
    },
    KeyInfo {
        name: "nginx-status-ipv4-whitelist",
        value: "list of addresses and networks",
        default: "127.0.0.1",
        context: Context::Location,
        example: "10.0.0.0/8",
        bad: Some("everybody"),
        doc: "Who may see `/nginx_status` of the catch-all server.",
        action: render_list!(nginx_status_ipv4_whitelist, network),
        ..KEY
    },
    KeyInfo {
        name: "nginx-status-ipv6-whitelist",
        value: "list of addresses and networks",
        default: "::1",
        context: Context::Location,
        example: "2001:db8::/32",
        bad: Some("everybody"),
        doc: "The same over IPv6.",
        action: render_list!(nginx_status_ipv6_whitelist, network),
        ..KEY
    },
];
