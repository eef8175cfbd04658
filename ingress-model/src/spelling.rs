//! "Did you mean …": the nearest name to a misspelt one.

/// How many edits a name may be away to be offered.
const FARTHEST: usize = 3;

/// The candidate that takes the fewest edits, if those are few enough; the first one among equals.
///
/// ```
/// use ingress_model::spelling::nearest;
///
/// assert_eq!(nearest("remote_adr", ["remote_addr", "remote_port"]), Some("remote_addr"));
/// assert_eq!(nearest("no_such", ["remote_addr"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = FARTHEST.min(word.len() / 3);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= limit)
        .map(|candidate| (strsim::levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_offered() {
        let names = ["rewrite-target", "proxy-body-size", "canary"];
        assert_eq!(nearest("rewrite-targt", names), Some("rewrite-target"));
        assert_eq!(nearest("rewrite-traget", names), Some("rewrite-target"));
        assert_eq!(nearest("canari", names), Some("canary"));
        assert_eq!(nearest("no-such-thing", names), None);
        assert_eq!(nearest("x", names), None);
    }
}
