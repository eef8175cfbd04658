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
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many bytes have to be added, taken away or replaced to turn one text into the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (a, b, want) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("rewrite-traget", "rewrite-target", 2),
        ] {
            assert_eq!(distance(a, b), want, "{a} {b}");
        }
    }

    #[test]
    fn only_near_names_are_offered() {
        let names = ["rewrite-target", "proxy-body-size", "canary"];
        assert_eq!(nearest("rewrite-targt", names), Some("rewrite-target"));
        assert_eq!(nearest("canari", names), Some("canary"));
        assert_eq!(nearest("no-such-thing", names), None);
        assert_eq!(nearest("x", names), None);
    }
}
