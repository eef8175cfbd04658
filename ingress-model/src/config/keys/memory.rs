//! Keys of tables and shared memory.

use super::{
    KEY, KeyInfo,
    read::{boolean, hash_size, number, shared_dict},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "server-name-hash-max-size",
        value: "whole number",
        default: "1024",
        example: "4096",
        bad: Some("many"),
        doc: "Largest table of host names; raised where there are more.",
        action: render!(server_name_hash_max_size, hash_size),
        ..KEY
    },
    KeyInfo {
        name: "server-name-hash-bucket-size",
        value: "whole number",
        default: "0",
        example: "128",
        bad: Some("many"),
        doc: "Bucket of that table; 0: as the names need.",
        action: render!(server_name_hash_bucket_size, |text| number(
            text, 0, 1_048_576
        )),
        ..KEY
    },
    KeyInfo {
        name: "map-hash-bucket-size",
        value: "whole number",
        default: "64",
        example: "128",
        bad: Some("many"),
        doc: "Bucket of the tables of `map`.",
        action: render!(map_hash_bucket_size, hash_size),
        ..KEY
    },
    KeyInfo {
        name: "proxy-headers-hash-max-size",
        value: "whole number",
        default: "512",
        example: "1024",
        bad: Some("many"),
        doc: "Largest table of headers for endpoints.",
        action: render!(proxy_headers_hash_max_size, hash_size),
        ..KEY
    },
    KeyInfo {
        name: "proxy-headers-hash-bucket-size",
        value: "whole number",
        default: "64",
        example: "128",
        bad: Some("many"),
        doc: "Bucket of that table.",
        action: render!(proxy_headers_hash_bucket_size, hash_size),
        ..KEY
    },
    KeyInfo {
        name: "variables-hash-max-size",
        value: "whole number",
        default: "2048",
        example: "4096",
        bad: Some("many"),
        doc: "Largest table of variables.",
        action: render!(variables_hash_max_size, hash_size),
        ..KEY
    },
    KeyInfo {
        name: "variables-hash-bucket-size",
        value: "whole number",
        default: "256",
        example: "512",
        bad: Some("many"),
        doc: "Bucket of that table.",
        action: render!(variables_hash_bucket_size, hash_size),
        ..KEY
    },
    KeyInfo {
        name: "lua-shared-dicts",
        value: "list of `name: size`",
        default: "as large as the content needs, at least as in ingress-nginx",
        example: "configuration_data: 30",
        bad: Some("configuration_data"),
        doc: "Memory shared by the workers; a number alone is in megabytes. A dictionary that is named here does not grow with its content.",
        action: render_list!(lua_shared_dicts, shared_dict),
        ..KEY
    },
    KeyInfo {
        name: "enable-aio-write",
        value: "boolean",
        default: "true",
        example: "false",
        bad: Some("sure"),
        doc: "Whether threads write temporary files.",
        action: render!(enable_aio_write, boolean),
        ..KEY
    },
];
