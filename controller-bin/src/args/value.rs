//! How the texts of flags are read: as Go's flag packages read them, since existing manifests are written for those.

use std::{path::PathBuf, time::Duration};

use ingress_model::{ConflictPolicy, ObjectName, selector::LabelSelector};

use crate::quarantine::OnInvalid;

/// The value of a flag that counts as absent when it is empty.
pub type Given<T> = Option<T>;

/// A switch as Go's `strconv.ParseBool` reads it.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("must be true or false".into()),
    }
}

/// A text, `None` when empty.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a value parser")]
pub(super) fn text(text: &str) -> Result<Given<String>, String> {
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

/// A path, `None` when empty.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a value parser")]
pub(super) fn path(text: &str) -> Result<Given<PathBuf>, String> {
    Ok(Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty()))
}

/// `namespace/name`, `None` when empty.
pub(super) fn object_name(text: &str) -> Result<Given<ObjectName>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    ObjectName::parse(text)
        .map(Some)
        .ok_or_else(|| "must be namespace/name".into())
}

/// The prefix of annotations, a slash at its end taken away. No annotation has one that is no DNS subdomain (Kubernetes
/// docs: "Annotations", syntax and character set), so that none would be read.
pub(super) fn annotations_prefix(text: &str) -> Result<String, String> {
    let prefix = text.strip_suffix('/').unwrap_or(text);
    let is_alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_label = |label: &str| {
        label.bytes().all(|b| is_alphanumeric(b) || b == b'-')
            && label.bytes().next().is_some_and(is_alphanumeric)
            && label.bytes().last().is_some_and(is_alphanumeric)
    };
    if prefix.len() <= 253 && prefix.split('.').all(is_label) {
        Ok(prefix.to_owned())
    } else {
        Err(
            "must be a DNS subdomain such as my.example.com (lower-case letters, digits, '-' and '.'): no annotation \
             could have this prefix, and so none would be read"
                .into(),
        )
    }
}

/// A label selector, `None` when empty.
pub(super) fn label_selector(text: &str) -> Result<Given<LabelSelector>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    LabelSelector::parse(text)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// Which of several definitions holds.
pub(super) fn conflict_policy(text: &str) -> Result<ConflictPolicy, String> {
    match text {
        "last-definition-wins" => Ok(ConflictPolicy::LastDefinitionWins),
        "oldest-wins" => Ok(ConflictPolicy::OldestWins),
        _ => Err("must be last-definition-wins or oldest-wins".into()),
    }
}

/// What becomes of an Ingress that NGINX refuses.
pub(super) fn on_invalid(text: &str) -> Result<OnInvalid, String> {
    match text {
        "last-good" => Ok(OnInvalid::LastGood),
        "503" => Ok(OnInvalid::Unavailable),
        _ => Err("must be last-good or 503".into()),
    }
}

/// A positive number of syncs a second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().map_err(|error| error.to_string())?;
    sync_queue::Rate::per_second(rate)
        .map(|_| rate)
        .map_err(|error| error.to_string())
}

/// A duration as Go's `time.ParseDuration` reads it (`1m30s`, `300ms`, `0`). Negative ones count as zero.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let refused = || "must be a duration such as 30s, 1m30s or 300ms".to_owned();
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(refused());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number_end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(refused)?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let number: f64 = number.parse().ok().ok_or_else(refused)?;
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(refused()),
        };
        let part = Duration::try_from_secs_f64(number * seconds)
            .ok()
            .ok_or_else(refused)?;
        total = total.checked_add(part).ok_or_else(refused)?;
        rest = next;
    }
    Ok(if negative { Duration::ZERO } else { total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, want) in [
            ("0", Some(0)),
            ("30s", Some(30_000)),
            ("1m30s", Some(90_000)),
            ("1.5h", Some(5_400_000)),
            ("300ms", Some(300)),
            ("-3s", Some(0)),
            ("", None),
            ("30", None),
            ("s", None),
            ("1x", None),
            ("1e999s", None),
        ] {
            let want = want.map(Duration::from_millis);
            assert_eq!(duration(text).ok(), want, "{text:?}");
        }
    }

    #[test]
    fn object_names_need_both_parts() {
        assert_eq!(object_name(""), Ok(None));
        assert_eq!(object_name("a/b"), Ok(Some(ObjectName::new("a", "b"))));
        assert!(object_name("b").is_err());
    }

    #[test]
    fn prefixes_are_those_that_annotations_can_have() {
        let prefix = |text| annotations_prefix(text).ok();
        for text in [
            "my.io",
            "my.io/",
            "nginx.ingress.kubernetes.io",
            "a",
            "a-1.b",
        ] {
            assert_eq!(prefix(text).as_deref(), Some(text.trim_end_matches('/')));
        }
        for text in [
            "", "/", "a b", "my.io//", "my.io/x", "/my.io", "My.io", "-a", "a-", "a..b", ".a",
            "a.", "a_b", "ä",
        ] {
            assert_eq!(prefix(text), None, "{text:?}");
        }
        let longest = "a".repeat(253);
        assert!(annotations_prefix(&longest).is_ok());
        assert!(annotations_prefix(&format!("{longest}a")).is_err());
    }

    #[test]
    fn switches_take_gos_words_only() {
        assert_eq!(switch("T"), Ok(true));
        assert_eq!(switch("0"), Ok(false));
        assert!(switch("yes").is_err());
    }
}
