//! What a file said before, kept while a part of it cannot be read.

use std::{collections::BTreeMap, sync::Arc};

use ingress_model::manifests::Object;

/// What a file says now, and between that what only its earlier content said, in the order that it had there: a document
/// that cannot be read may be any of those that are missing now.
pub(super) fn with_earlier(
    earlier: &[Arc<Object>],
    now: Vec<Arc<Object>>,
) -> (Vec<Arc<Object>>, usize) {
    let places = now.iter().enumerate();
    let places: BTreeMap<_, _> = places
        .map(|(place, object)| (object.reference(), place))
        .collect();
    let mut behind = 0;
    let mut kept = Vec::new();
    for object in earlier {
        match places.get(&object.reference()) {
            Some(place) => behind = place + 1,
            None => kept.push((behind, Arc::clone(object))),
        }
    }
    let count = kept.len();
    kept.sort_by_key(|(place, _)| *place);
    let mut kept = kept.into_iter().peekable();
    let mut all = Vec::with_capacity(now.len() + count);
    for (place, object) in now.into_iter().enumerate() {
        while let Some((_, earlier)) = kept.next_if(|(before, _)| *before <= place) {
            all.push(earlier);
        }
        all.push(object);
    }
    all.extend(kept.map(|(_, object)| object));
    (all, count)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ingress_model::manifests::parse;

    use super::*;

    fn objects(names: &str) -> Vec<Arc<Object>> {
        let texts = names.chars().map(|name| {
            format!("---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n")
        });
        let text: String = texts.collect();
        let content = parse(Path::new("x.yaml"), &text).unwrap();
        content.objects.into_iter().map(Arc::new).collect()
    }

    #[test]
    fn what_was_there_stays_where_it_was() {
        for (earlier, now, want) in [
            ("", "ab", "ab"),
            ("ab", "", "ab"),
            ("abc", "ac", "abc"),
            ("abc", "bc", "abc"),
            ("abc", "ab", "abc"),
            ("abcd", "dxa", "dxabc"),
            ("abc", "xcy", "abxcy"),
            ("ab", "ba", "ba"),
        ] {
            let (all, kept) = with_earlier(&objects(earlier), objects(now));
            let names = all.iter().filter_map(|object| object.meta().name.clone());
            assert_eq!(names.collect::<String>(), want, "{earlier} {now}");
            assert_eq!(kept, want.len() - now.len());
        }
    }
}
