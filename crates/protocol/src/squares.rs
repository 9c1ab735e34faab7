//! A cache of squared marginals that a dataset's batches share.
//!
//! Batches run in parallel, and two may need the same squares at the same time. The first one
//! computes them without holding a lock. The other one waits only for the squares that it needs.

use crate::Error;
use fhaim_domain::Clique;
use fhaim_he::SquaredScore;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A pair of attributes, and a plaintext modulus.
pub(crate) type Key = (Clique, usize);

/// A pair's cells with their square, in parts of a page.
pub(crate) type Parts = Arc<[SquaredScore]>;

/// Squares by pair and plaintext modulus; `None` while a batch computes them.
#[derive(Debug, Default)]
pub(crate) struct Squares {
    known: Mutex<HashMap<Key, Option<Parts>>>,
    changed: Condvar,
}

impl Squares {
    /// Returns the squares of `keys`. Squares that are neither known nor being computed are
    /// computed here: `compute` returns one for each key, in order.
    ///
    /// # Errors
    /// Errors of `compute`.
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

    /// Claims the keys that nobody has computed or claimed.
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

    /// Waits until no batch computes any of the keys. Returns `None` if one of them was not
    /// computed in the end.
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

/// Keys that a batch computes. Dropping the claim frees the keys that were not computed.
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

    /// Two batches wait for each other's squares at the same time. Each computes its own, and none
    /// is computed twice.
    #[test]
    fn batches_share_computed_squares() {
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
        // Each batch has one key of its own, so that both compute, and one key that both need.
        std::thread::scope(|scope| {
            scope.spawn(|| batch(vec![key(0, 1), key(0, 2)]));
            scope.spawn(|| batch(vec![key(0, 3), key(0, 2)]));
        });
        assert_eq!(computed.into_inner(), 3);
        let found = squares.get(&[key(0, 1)], |_| panic!("it is known"));
        assert_eq!(found.unwrap().len(), 1);
    }

    /// If a batch fails to compute a square, another batch that waits or comes later computes it.
    #[test]
    fn failed_squares_are_computed_by_another_batch() {
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
