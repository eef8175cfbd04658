//! Finding the Ingress that NGINX refuses where its error names no line (`unknown "x" variable`).

use std::collections::BTreeSet;

use ingress_model::{Layout, ObjectName, Server};

use crate::quarantine::{Level, Levels};

/// Finds one among the suspects without which NGINX takes the configuration, by halving them. `None` when it does not
/// take it even without all of them.
///
/// `out` is what is out already, and `accepts` asks NGINX whether it takes the configuration without the given ones.
pub(crate) async fn find<E>(
    suspects: BTreeSet<ObjectName>,
    out: &Levels,
    mut accepts: impl AsyncFnMut(&Levels) -> Result<bool, E>,
) -> Result<Option<ObjectName>, E> {
    let without = |out: &Levels, more: &[ObjectName]| -> Levels {
        let more = more.iter().map(|name| (name.clone(), Level::Removed));
        out.clone().into_iter().chain(more).collect()
    };
    let mut suspects: Vec<_> = suspects
        .into_iter()
        .filter(|name| out.get(name) != Some(&Level::Removed))
        .collect();
    if suspects.is_empty() || !accepts(&without(out, &suspects)).await? {
        return Ok(None);
    }
    // Refused without those that are out, accepted without the suspects as well.
    let mut out = out.clone();
    while suspects.len() > 1 {
        let rest = suspects.split_off(suspects.len() / 2);
        let without_half = without(&out, &suspects);
        if !accepts(&without_half).await? {
            out = without_half;
            suspects = rest;
        }
    }
    Ok(suspects.pop())
}

/// The Ingresses whose part of the layout is not as NGINX runs with it.
pub(crate) fn changed(layout: &Layout, running: Option<&Layout>) -> BTreeSet<ObjectName> {
    let servers = layout.servers.iter().filter(|(host, server)| {
        running.is_none_or(|running| running.servers.get(*host) != Some(server))
    });
    let mut changed: BTreeSet<_> = servers.flat_map(|(_, server)| owners(server)).collect();
    if running.is_none_or(|running| running.stream_snippets != layout.stream_snippets) {
        changed.extend(
            layout
                .stream_snippets
                .iter()
                .map(|snippet| snippet.ingress.clone()),
        );
    }
    changed
}

fn owners(server: &Server) -> impl Iterator<Item = ObjectName> {
    let locations = server
        .locations
        .iter()
        .filter_map(|location| location.ingress.clone());
    let snippet = server.snippet.iter().map(|snippet| snippet.ingress.clone());
    let auth = server.client_auth.iter().map(|auth| auth.ingress.clone());
    locations.chain(snippet).chain(auth)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn name(number: usize) -> ObjectName {
        ObjectName::new("shop", &format!("{number:03}"))
    }

    /// Who is found among so many, if these are guilty and something else is or is not; and how often NGINX was asked.
    async fn search(
        count: usize,
        guilty: &[usize],
        other_fault: bool,
    ) -> (Option<ObjectName>, usize) {
        let guilty: Vec<_> = guilty.iter().copied().map(name).collect();
        let mut asked = 0;
        let found = find(
            (0..count).map(name).collect(),
            &Levels::new(),
            async |out: &Levels| {
                asked += 1;
                Ok::<_, Infallible>(
                    !other_fault && guilty.iter().all(|guilty| out.contains_key(guilty)),
                )
            },
        )
        .await;
        let Ok(found) = found;
        (found, asked)
    }

    #[tokio::test]
    async fn the_guilty_one_is_found_with_few_questions() {
        for count in [1, 2, 3, 100] {
            for guilty in [0, count / 2, count - 1] {
                let (found, asked) = search(count, &[guilty], false).await;
                assert_eq!(found, Some(name(guilty)), "{guilty} of {count}");
                assert!(asked <= 8, "{asked} questions");
            }
        }
    }

    #[tokio::test]
    async fn one_of_several_guilty_ones_is_found() {
        let (found, _) = search(50, &[3, 40], false).await;
        assert!(
            [Some(name(3)), Some(name(40))].contains(&found),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn nobody_is_blamed_for_the_fault_of_something_else() {
        assert_eq!(search(50, &[3], true).await, (None, 1));
        assert_eq!(search(0, &[], true).await, (None, 0));
    }
}
