//! The values of all flags, given or not, so that two command lines can be compared.

use std::collections::BTreeMap;

use clap::{ArgMatches, CommandFactory};

use super::{Args, idle, value::switch};

/// Flags that say where objects come from, who we are and how we log: nothing that NGINX runs with depends on them.
const ELSEWHERE: [&str; 11] = [
    "manifests",
    "kubeconfig",
    "apiserver_host",
    "certificate_authority",
    "pod_name",
    "pod_namespace",
    "node_name",
    "log_format",
    "verbosity",
    "version",
    // Nobody is told.
    "maxmind_license_key",
];

/// The value of each flag of the controller on which it may depend what NGINX runs with, as text.
pub(super) fn values(matches: &ArgMatches) -> BTreeMap<String, String> {
    let command = Args::command();
    let arguments = command.get_arguments().filter(|argument| {
        let id = argument.get_id().as_str();
        !ELSEWHERE.contains(&id) && idle::reason(id).is_none()
    });
    let values = arguments.filter_map(|argument| {
        let long = argument.get_long()?;
        let given = matches.try_get_raw(argument.get_id().as_str()).ok()??;
        let given: Vec<_> = given.map(|value| value.to_string_lossy()).collect();
        let is_switch = match argument.get_default_values() {
            [default] => default == "true" || default == "false",
            _ => false,
        };
        let text = given.join(",");
        let text = match switch(&text) {
            Ok(is_on) if is_switch => is_on.to_string(),
            Ok(_) | Err(_) => text,
        };
        Some((format!("--{long}"), text))
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(words: &[&str]) -> BTreeMap<String, String> {
        let words = ["test"].iter().chain(words);
        Args::try_parse_from(words).unwrap().values
    }

    #[test]
    fn flags_have_values_whether_they_are_given_or_not() {
        let defaults = values(&[]);
        assert_eq!(defaults["--http-port"], "80");
        assert_eq!(defaults["--deep-inspect"], "true");
        assert_eq!(defaults, values(&["--http-port", "80", "--deep-inspect=T"]));
        let given = values(&["--http-port=8080", "--deep-inspect=0", "--configmap=a/b"]);
        let mut different = given
            .iter()
            .filter(|(flag, value)| defaults[*flag] != **value);
        assert!(different.clone().all(|(_, value)| !value.is_empty()));
        assert_eq!(different.next().unwrap().1, "a/b");
        assert_eq!(different.count(), 2);
    }

    #[test]
    fn neither_secrets_nor_what_does_not_matter_is_told() {
        let defaults = values(&[]);
        for flag in [
            "--maxmind-license-key=secret",
            "--manifests=/x",
            "--v=3",
            "--pod-name=x",
        ] {
            assert_eq!(values(&[flag]), defaults, "{flag}");
        }
    }
}
