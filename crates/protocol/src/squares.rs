//! Squares of marginals that a dataset's batches share.
//!
//! Batches run side by side, and two may ask for the same squares at once. Whoever comes first
//! computes them, with nothing locked meanwhile; the others wait for those alone.

use crate::Error;
use fhaim_domain::Clique;
use fhaim_he::SquaredScore;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A pair of attributes, and a plaintext modulus.
pub(crate) type Key = (Clique, usize);

/// A pair's cells with their square, in parts of a page.
pub(crate) type Parts = Arc<[SquaredScore]>;

/// Squares by pair and plaintext modulus; `None` while someone computes them.
#[derive(Debug, Default)]
pub(crate) struct Squares {
    known: Mutex<HashMap<Key, Option<Parts>>>,
    changed: Condvar,
}

impl Squares {
    /// The squares of `keys`. Those that nobody has computed, or is computing, are `compute`d here:
    /// it gives one for each key, in order.
    ///
    /// # Errors
    /// Whatever `compute` refuses.
    pub(crate) fn get(
        &self,
        keys: &[Key],
        compute: impl Fn(&[Key]) -> Result<Vec<Parts>, Error>,
    ) -> Result<HashMap<Key, Parts>, Error> {
        loop {
            let claim = self.claim(keys);
            if !claim.keys.is_empty() {
                let computed = compute(&claim.keys)?;
                claim.publish(computed);
            }
            if let Some(found) = self.wait(keys) {
                return Ok(found);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Option<Parts>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the keys that are not there yet.
    fn claim(&self, keys: &[Key]) -> Claim<'_> {
        let mut known = self.lock();
        let mut claimed = Vec::new();
        for key in keys {
            known.entry(key.clone()).or_insert_with(|| {
                claimed.push(key.clone());
                None
            });
        }
        Claim {
            squares: self,
            keys: claimed,
        }
    }

    /// Waits until nobody computes any of the keys; nothing if one of them was not computed after
    /// all.
    fn wait(&self, keys: &[Key]) -> Option<HashMap<Key, Parts>> {
        let under_way = |known: &mut HashMap<Key, Option<Parts>>| {
            keys.iter().any(|key| matches!(known.get(key), Some(None)))
        };
        let known = self.changed.wait_while(self.lock(), under_way);
        let known = known.unwrap_or_else(PoisonError::into_inner);
        let found = keys.iter().map(|key| {
            let parts = known.get(key)?.clone()?;
            Some((key.clone(), parts))
        });
        found.collect()
    }
}

/// Keys that a batch computes. Those that it did not come to are free again when this is dropped.
struct Claim<'a> {
    squares: &'a Squares,
    keys: Vec<Key>,
}

impl Claim<'_> {
    fn publish(self, computed: Vec<Parts>) {
        let mut known = self.squares.lock();
        for (key, parts) in self.keys.iter().zip(computed) {
            known.insert(key.clone(), Some(parts));
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut known = self.squares.lock();
        for key in &self.keys {
            if matches!(known.get(key), Some(None)) {
                known.remove(key);
            }
        }
        self.squares.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn key(a: usize, b: usize) -> Key {
        (Clique::new([a, b]), 0)
    }

    fn none(keys: &[Key]) -> Result<Vec<Parts>, Error> {
        Ok(keys.iter().map(|_| Parts::from([])).collect())
    }

    /// Two batches hold each other's squares at the same time: each computes its own, and nothing
    /// twice.
    #[test]
    fn batches_share_what_they_compute() {
        let squares = Squares::default();
        let computed = AtomicUsize::new(0);
        let both = std::sync::Barrier::new(2);
        let batch = |keys: Vec<Key>| {
            let found = squares.get(&keys, |missing| {
                both.wait();
                computed.fetch_add(missing.len(), Ordering::Relaxed);
                none(missing)
            });
            assert_eq!(found.unwrap().len(), keys.len());
        };
        // Each has one that the other does not ask for, so both compute, and one that both want.
        std::thread::scope(|scope| {
            scope.spawn(|| batch(vec![key(0, 1), key(0, 2)]));
            scope.spawn(|| batch(vec![key(0, 3), key(0, 2)]));
        });
        assert_eq!(computed.into_inner(), 3);
        let found = squares.get(&[key(0, 1)], |_| panic!("it is known"));
        assert_eq!(found.unwrap().len(), 1);
    }

    /// What a batch failed to compute, another one does, if it waited for it or comes later.
    #[test]
    fn a_failure_leaves_the_rest_to_others() {
        let squares = Squares::default();
        let claimed = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let failed = squares.get(&[key(0, 1)], |_| {
                    claimed.wait();
                    Err(Error::Request("a failure"))
                });
                assert!(matches!(failed, Err(Error::Request(..))));
            });
            claimed.wait();
            let found = squares.get(&[key(0, 1)], none);
            assert_eq!(found.unwrap().len(), 1);
        });
    }
}
