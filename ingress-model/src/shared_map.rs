//! A sorted map whose versions share what is the same in them.
//!
//! Of the libraries for such maps, those whose comparison skips what is shared are under MPL-2.0, which we do not take.

use std::{borrow::Borrow, fmt, iter::FusedIterator, ops::Index, slice, sync::Arc};

use serde::{Serialize, Serializer};

/// How many entries a chunk has at most.
const FULL: usize = 64;

/// Neighbouring entries, sorted; never none.
type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// An entry of two maps: what the older one has, and what the newer one has.
pub(crate) type Pair<'a, V> = (Option<&'a V>, Option<&'a V>);

/// A map that iterates in the order of its keys.
///
/// Cloning shares all entries. A change after that copies the few entries around it; all others stay shared, so that
/// two versions of a map of many hosts are soon compared.
///
/// ```
/// use ingress_model::SharedMap;
///
/// let old: SharedMap<u32, char> = [(2, 'b'), (1, 'a')].into_iter().collect();
/// let mut new = old.clone();
/// new.insert(3, 'c');
/// assert_eq!(new.keys().collect::<Vec<_>>(), [&1, &2, &3]);
/// assert_eq!(old.len(), 2);
/// ```
pub struct SharedMap<K, V> {
    chunks: Arc<Vec<Chunk<K, V>>>,
    len: usize,
}

impl<K, V> SharedMap<K, V> {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether both are clones of one map without a change since: a fast answer, which may be no for equal maps.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }

    /// Takes all entries away.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The entries, by key.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter {
            chunks: self.chunks.iter(),
            front: [].iter(),
            back: [].iter(),
            left: self.len,
        }
    }

    /// The keys, sorted.
    #[must_use]
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> + DoubleEndedIterator + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// The values, by key.
    #[must_use]
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> + DoubleEndedIterator + Clone {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    /// The value of a key.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let chunk = self.chunks.get(self.chunk_of(key))?;
        let at = place(chunk, key).ok()?;
        chunk.get(at).map(|(_, value)| value)
    }

    /// Whether there is an entry of that key.
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The keys of both maps, each once and in order, with their values. Entries that both maps share are left out.
    pub(crate) fn differences<'a>(
        &'a self,
        newer: &'a Self,
    ) -> impl Iterator<Item = (&'a K, Pair<'a, V>)> {
        let mut olds = Cursor::new(&self.chunks);
        let mut news = Cursor::new(&newer.chunks);
        if self.is_same(newer) {
            (olds, news) = (Cursor::new(&[]), Cursor::new(&[]));
        }
        std::iter::from_fn(move || {
            while let (Some(old), Some(new)) = (olds.whole_chunk(), news.whole_chunk())
                && Arc::ptr_eq(old, new)
            {
                olds.skip_chunk();
                news.skip_chunk();
            }
            let (old, new) = match (olds.peek(), news.peek()) {
                (Some(old), Some(new)) => match old.0.cmp(&new.0) {
                    std::cmp::Ordering::Less => (Some(old), None),
                    std::cmp::Ordering::Equal => (Some(old), Some(new)),
                    std::cmp::Ordering::Greater => (None, Some(new)),
                },
                either => either,
            };
            let (key, _) = old.or(new)?;
            let pair = (
                old.inspect(|_| olds.step()).map(|(_, value)| value),
                new.inspect(|_| news.step()).map(|(_, value)| value),
            );
            Some((key, pair))
        })
    }

    /// The place of the only chunk that may hold the key.
    fn chunk_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let starts_behind = |chunk: &Chunk<K, V>| {
            let first = chunk.first();
            first.is_some_and(|(first, _)| first.borrow() > key)
        };
        let behind = self.chunks.partition_point(|chunk| !starts_behind(chunk));
        behind.saturating_sub(1)
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// Adds or replaces an entry; answers the value that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let at = self.chunk_of(&key);
        let chunks = Arc::make_mut(&mut self.chunks);
        let is_last = at + 1 >= chunks.len();
        let Some(chunk) = chunks.get_mut(at) else {
            chunks.push(Arc::new(vec![(key, value)]));
            self.len = 1;
            return None;
        };
        let entries = Arc::make_mut(chunk);
        let place = match place(entries, &key) {
            Ok(known) => {
                let known = entries.get_mut(known);
                return known.map(|(_, known)| std::mem::replace(known, value));
            }
            Err(place) => place,
        };
        let is_appended = is_last && place == entries.len();
        entries.insert(place, (key, value));
        self.len += 1;
        if entries.len() > FULL {
            // What grows at its end has full chunks.
            let rest = entries.split_off(if is_appended { FULL } else { FULL / 2 });
            chunks.insert(at + 1, Arc::new(rest));
        }
        None
    }

    /// Takes an entry away; answers the value that was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.chunk_of(key);
        let known = place(self.chunks.get(at)?, key).ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let following = chunks.get(at + 1).map_or(FULL, |next| next.len());
        let entries = Arc::make_mut(chunks.get_mut(at)?);
        let (_, value) = entries.remove(known);
        self.len -= 1;
        if entries.is_empty() {
            chunks.remove(at);
        } else if entries.len() + following <= FULL / 2 {
            let next = chunks.remove(at + 1);
            if let Some(chunk) = chunks.get_mut(at) {
                Arc::make_mut(chunk).extend(next.iter().cloned());
            }
        }
        Some(value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.chunk_of(key);
        let known = place(self.chunks.get(at)?, key).ok()?;
        let chunk = Arc::make_mut(&mut self.chunks).get_mut(at)?;
        let entry = Arc::make_mut(chunk).get_mut(known);
        entry.map(|(_, value)| value)
    }

    /// Keeps those entries for which the answer is yes.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&K, &V) -> bool) {
        let kept = self.iter().filter(|(key, value)| is_kept(key, value));
        let kept: Vec<_> = kept
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if kept.len() < self.len {
            *self = Self::of_sorted(kept);
        }
    }

    /// A map of entries whose keys ascend.
    fn of_sorted(entries: Vec<(K, V)>) -> Self {
        let len = entries.len();
        let mut entries = entries.into_iter();
        let mut chunks = Vec::with_capacity(len.div_ceil(FULL));
        while entries.len() > 0 {
            let mut chunk = Vec::with_capacity(entries.len().min(FULL));
            chunk.extend(entries.by_ref().take(FULL));
            chunks.push(Arc::new(chunk));
        }
        Self {
            chunks: Arc::new(chunks),
            len,
        }
    }
}

/// Where a key stands among entries, or where it would.
fn place<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized>(
    entries: &[(K, V)],
    key: &Q,
) -> Result<usize, usize> {
    entries.binary_search_by(|(known, _)| known.borrow().cmp(key))
}

/// A way through chunks that knows where one begins.
struct Cursor<'a, K, V> {
    chunks: &'a [Chunk<K, V>],
    /// The entry of the first chunk that is next.
    next: usize,
}

impl<'a, K, V> Cursor<'a, K, V> {
    fn new(chunks: &'a [Chunk<K, V>]) -> Self {
        Self { chunks, next: 0 }
    }

    fn peek(&self) -> Option<&'a (K, V)> {
        self.chunks.first()?.get(self.next)
    }

    fn step(&mut self) {
        self.next += 1;
        if self
            .chunks
            .first()
            .is_some_and(|chunk| chunk.len() <= self.next)
        {
            self.skip_chunk();
        }
    }

    /// The chunk whose first entry is next.
    fn whole_chunk(&self) -> Option<&'a Chunk<K, V>> {
        self.chunks.first().filter(|_| self.next == 0)
    }

    fn skip_chunk(&mut self) {
        self.chunks = self.chunks.get(1..).unwrap_or_default();
        self.next = 0;
    }
}

/// The entries of a [`SharedMap`], by key.
#[derive(Debug)]
pub struct Iter<'a, K, V> {
    chunks: slice::Iter<'a, Chunk<K, V>>,
    front: slice::Iter<'a, (K, V)>,
    back: slice::Iter<'a, (K, V)>,
    left: usize,
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            chunks: self.chunks.clone(),
            front: self.front.clone(),
            back: self.back.clone(),
            left: self.left,
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        if self.front.len() == 0
            && let Some(chunk) = self.chunks.next()
        {
            self.front = chunk.iter();
        }
        let (key, value) = self.front.next().or_else(|| self.back.next())?;
        self.left -= 1;
        Some((key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.back.len() == 0
            && let Some(chunk) = self.chunks.next_back()
        {
            self.back = chunk.iter();
        }
        let last = self.back.next_back().or_else(|| self.front.next_back());
        let (key, value) = last?;
        self.left -= 1;
        Some((key, value))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

impl<K, V> FusedIterator for Iter<'_, K, V> {}

impl<'a, K, V> IntoIterator for &'a SharedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self {
            chunks: Arc::clone(&self.chunks),
            len: self.len,
        }
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self {
            chunks: Arc::new(Vec::new()),
            len: 0,
        }
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
    /// Of entries with one key the last one counts.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            entries.dedup_by(|later, kept| {
                let is_same = later.0 == kept.0;
                if is_same {
                    std::mem::swap(later, kept);
                }
                is_same
            });
        }
        Self::of_sorted(entries)
    }
}

impl<K: Ord + Clone, V: Clone, const N: usize> From<[(K, V); N]> for SharedMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K: Ord + Clone, V: Clone> Extend<(K, V)> for SharedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        if self.is_empty() {
            *self = entries.into_iter().collect();
            return;
        }
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord + Borrow<Q>, Q: Ord + ?Sized, V> Index<&Q> for SharedMap<K, V> {
    type Output = V;

    /// # Panics
    /// When there is no such key.
    #[expect(
        clippy::expect_used,
        reason = "as for the maps of the standard library"
    )]
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the map has no such key")
    }
}

impl<K: Ord, V: PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len
            && self
                .differences(other)
                .all(|(_, (one, other))| one == other)
    }
}

impl<K: Ord, V: Eq> Eq for SharedMap<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<K: Serialize, V: Serialize> Serialize for SharedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16, u8),
        Remove(u16),
        Change(u16, u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = || 0..400_u16;
        prop_oneof![
            3 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
            2 => key().prop_map(Step::Remove),
            1 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Change(key, value)),
        ]
    }

    fn take(map: &mut SharedMap<u16, u8>, model: &mut BTreeMap<u16, u8>, step: &Step) {
        match step {
            Step::Insert(key, value) => {
                assert_eq!(map.insert(*key, *value), model.insert(*key, *value));
            }
            Step::Remove(key) => assert_eq!(map.remove(key), model.remove(key)),
            Step::Change(key, value) => {
                let known = (map.get_mut(key), model.get_mut(key));
                assert_eq!(known.0.is_some(), known.1.is_some());
                if let (Some(mine), Some(theirs)) = known {
                    (*mine, *theirs) = (*value, *value);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map(
            first in proptest::collection::vec((0..400_u16, any::<u8>()), 0..400),
            steps in proptest::collection::vec(step(), 0..600),
        ) {
            let mut map: SharedMap<_, _> = first.iter().copied().collect();
            let mut model: BTreeMap<_, _> = first.into_iter().collect();
            prop_assert!(map.iter().eq(model.iter()));
            let (old, old_model) = (map.clone(), model.clone());
            for step in &steps {
                take(&mut map, &mut model, step);
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert!(map.iter().eq(model.iter()));
            prop_assert!(map.iter().rev().eq(model.iter().rev()));
            prop_assert!(map.chunks.iter().all(|chunk| (1..=FULL).contains(&chunk.len())));
            prop_assert!((0..400).all(|key| map.get(&key) == model.get(&key)));
            prop_assert!(old.iter().eq(old_model.iter()), "a clone keeps what it had");
            prop_assert_eq!(old == map, old_model == model);
            let rebuilt: SharedMap<_, _> = model.iter().map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(&map, &rebuilt);
            let differing = old.differences(&map).filter(|(_, (old, new))| old != new);
            let differing: Vec<_> = differing.map(|(key, (old, new))| (*key, old.copied(), new.copied())).collect();
            let want = (0..400).map(|key| (key, old_model.get(&key).copied(), model.get(&key).copied()));
            let want: Vec<_> = want.filter(|(_, old, new)| old != new).collect();
            prop_assert_eq!(differing, want);
            map.retain(|key, _| key % 3 == 0);
            model.retain(|key, _| key % 3 == 0);
            prop_assert!(map.iter().eq(model.iter()));
        }
    }

    #[test]
    fn only_what_is_around_a_change_is_copied() {
        let old: SharedMap<u32, u32> = (0..10_000).map(|i| (i, i)).collect();
        let mut new = old.clone();
        assert!(new.is_same(&old));
        new.insert(5_000, 0);
        new.remove(&7_000);
        assert!(old.differences(&new).count() <= 2 * FULL);
        let shared = old.chunks.iter().zip(new.chunks.iter());
        let shared = shared.filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert_eq!(shared, old.chunks.len() - 2);
    }

    #[test]
    fn a_map_that_grows_at_its_end_has_full_chunks() {
        let mut map = SharedMap::default();
        for i in 0..1_000 {
            map.insert(i, ());
        }
        assert_eq!(map.chunks.len(), 1_000_usize.div_ceil(FULL));
        let (front, back) = (map.iter().take(500), map.iter().rev().take(500));
        assert_eq!(front.chain(back).count(), 1_000);
        let mut both = map.keys();
        let met = std::iter::from_fn(|| Some((both.next()?, both.next_back()?)));
        assert!(
            met.eq((0..500)
                .map(|i| (i, 999 - i))
                .collect::<Vec<_>>()
                .iter()
                .map(|(a, b)| (a, b)))
        );
    }
}
