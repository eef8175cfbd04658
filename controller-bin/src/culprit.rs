//! Finding what NGINX refuses where its error names no line (`unknown "x" variable`).

use std::{collections::BTreeMap, convert::Infallible};

use futures::FutureExt;
use ingress_model::ObjectName;

/// What may be at fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Suspect {
    /// An Ingress.
    Ingress(ObjectName),
    /// A key of the ConfigMap.
    Key(String),
}

/// Finds one among the suspects without which NGINX takes the configuration, by halving them. `None` when it does not
/// take it even without all of them.
///
/// `accepts` asks NGINX whether it takes the configuration without the given ones; it is asked `2 + log2(n)` times at
/// most.
pub(crate) async fn find<T: Clone, E>(
    mut suspects: Vec<T>,
    mut accepts: impl AsyncFnMut(&[T]) -> Result<bool, E>,
) -> Result<Option<T>, E> {
    if suspects.is_empty() || !accepts(&suspects).await? {
        return Ok(None);
    }
    // Refused without those that are out, accepted without the suspects as well.
    let mut out = Vec::new();
    while suspects.len() > 1 {
        let rest = suspects.split_off(suspects.len() / 2);
        let without_half = [out.as_slice(), &suspects].concat();
        if !accepts(&without_half).await? {
            out = without_half;
            suspects = rest;
        }
    }
    Ok(suspects.pop())
}

/// Finds one among the suspects that NGINX refuses even by itself, by halving them: each question is about half as many
/// as the one before. `None` when there is none, such as where several are at fault together.
///
/// `refuses` asks NGINX whether it refuses what only the given ones ask for; it is asked `1 + log2(n)` times at most.
pub(crate) async fn find_alone<T, E>(
    mut suspects: Vec<T>,
    mut refuses: impl AsyncFnMut(&[T]) -> Result<bool, E>,
) -> Result<Option<T>, E> {
    while suspects.len() > 1 {
        let rest = suspects.split_off(suspects.len() / 2);
        if !refuses(&suspects).await? {
            suspects = rest;
        }
    }
    let is_refused = !suspects.is_empty() && refuses(&suspects).await?;
    Ok(suspects.pop().filter(|_| is_refused))
}

/// [`find`], for a question that is answered at once.
pub(crate) fn find_now<T: Clone>(
    suspects: Vec<T>,
    mut accepts: impl FnMut(&[T]) -> bool,
) -> Option<T> {
    let accepts = async |out: &[T]| Ok::<_, Infallible>(accepts(out));
    let Ok(found) = find(suspects, accepts).now_or_never()?;
    found
}

/// The keys of a ConfigMap whose values are not what they were.
pub(crate) fn changed_keys(
    now: &BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> impl Iterator<Item = Suspect> {
    let changed = now
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value));
    changed.map(|(key, _)| Suspect::Key(key.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is found among so many, if these are guilty and something else is or is not; and how often NGINX was asked.
    async fn search(count: usize, guilty: &[usize], other_fault: bool) -> (Option<usize>, usize) {
        let mut asked = 0;
        let found = find((0..count).collect(), async |out: &[usize]| {
            asked += 1;
            Ok::<_, Infallible>(!other_fault && guilty.iter().all(|guilty| out.contains(guilty)))
        })
        .await;
        let Ok(found) = found;
        (found, asked)
    }

    #[tokio::test]
    async fn the_guilty_one_is_found_with_few_questions() {
        for (count, most) in [(1, 1), (2, 2), (3, 3), (100, 8), (1_000, 11)] {
            for guilty in [0, count / 2, count - 1] {
                let (found, asked) = search(count, &[guilty], false).await;
                assert_eq!(found, Some(guilty), "{guilty} of {count}");
                assert!(asked <= most, "{asked} questions");
            }
        }
    }

    #[tokio::test]
    async fn who_is_refused_alone_is_found_with_small_questions() {
        for guilty in [&[0][..], &[999], &[500], &[3, 400]] {
            let mut sizes = Vec::new();
            let found = find_alone((0..1_000).collect(), async |few: &[usize]| {
                sizes.push(few.len());
                Ok::<_, Infallible>(guilty.iter().any(|guilty| few.contains(guilty)))
            });
            let Ok(found) = found.await;
            assert!(
                found.is_some_and(|found| guilty.contains(&found)),
                "{found:?}"
            );
            assert!(sizes.len() <= 11 && sizes.iter().sum::<usize>() <= 1_010);
        }
        // Two that are at fault together, and nobody.
        for together in [&[3, 700][..], &[1_000]] {
            let found = find_alone((0..1_000).collect(), async |few: &[usize]| {
                Ok::<_, Infallible>(together.iter().all(|one| few.contains(one)))
            });
            assert_eq!(found.await, Ok(None));
        }
    }

    #[tokio::test]
    async fn one_of_several_guilty_ones_is_found() {
        let (found, _) = search(50, &[3, 40], false).await;
        assert!([Some(3), Some(40)].contains(&found), "{found:?}");
    }

    #[tokio::test]
    async fn nobody_is_blamed_for_the_fault_of_something_else() {
        assert_eq!(search(50, &[3], true).await, (None, 1));
        assert_eq!(search(0, &[], true).await, (None, 0));
    }

    #[test]
    fn a_question_that_is_answered_at_once_needs_no_waiting() {
        let accepts = |out: &[u32]| out.contains(&7);
        assert_eq!(find_now((0..20).collect(), accepts), Some(7));
        assert_eq!(find_now((8..20).collect(), accepts), None);
    }

    #[test]
    fn keys_that_are_new_or_other_are_suspects() {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let now = map(&[("new", "1"), ("other", "2"), ("same", "3")]);
        let before = map(&[("gone", "1"), ("other", "1"), ("same", "3")]);
        let changed: Vec<_> = changed_keys(&now, &before).collect();
        let key = |key: &str| Suspect::Key(key.into());
        assert_eq!(changed, [key("new"), key("other")]);
    }
}
