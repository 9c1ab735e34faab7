//! The workers of a process, and the queue for them. A worker is a permit to compute.
//!
//! A free worker goes to the dataset that has the fewest workers. Among equals, it goes to the dataset that has waited
//! longest since it last got one. With two or more workers, one is reserved, so that a single owner cannot have all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The dataset that needs a worker, and its owner. The default stands for a search for tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Claimant {
    pub owner: String,
    pub dataset: String,
}

/// The workers of a process.
#[derive(Debug)]
pub(super) struct Workers {
    count: usize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Those that have a worker, one entry for each worker.
    held: Vec<Claimant>,
    /// Those that wait, in the order in which they came.
    waiting: Vec<(Claimant, oneshot::Sender<Worker>)>,
    /// The number of the last grant to each dataset.
    last: HashMap<String, u64>,
    grants: u64,
}

/// A worker. Dropping it gives the worker to another task.
#[derive(Debug)]
pub(super) struct Worker {
    workers: Arc<Workers>,
    claimant: Claimant,
}

impl Workers {
    /// Makes the given number of workers, at least one.
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            count: count.max(1),
            queue: Mutex::default(),
        })
    }

    /// Waits for a worker.
    pub async fn take(self: &Arc<Self>, claimant: Claimant) -> Option<Worker> {
        let (sender, granted) = oneshot::channel();
        self.lock().waiting.push((claimant, sender));
        self.hand_out();
        granted.await.ok()
    }

    /// Returns the owners that may not have another worker now.
    pub fn served(&self) -> Vec<String> {
        let queue = self.lock();
        let mut owners: Vec<String> = queue.held.iter().map(|held| held.owner.clone()).collect();
        owners.sort();
        owners.dedup();
        owners.retain(|owner| !owner.is_empty() && !queue.may_have(owner, self.count));
        owners
    }

    /// Gives free workers to those that wait.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let Some((claimant, sender)) = self.lock().next(self.count) else {
                return;
            };
            let workers = self.clone();
            // If nobody waits for it any more, the worker is dropped, and another one gets it.
            let _ = sender.send(Worker { workers, claimant });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Returns whether an owner may have another of `count` workers. The last one is reserved for other owners.
    fn may_have(&self, owner: &str, count: usize) -> bool {
        let has = self.held.iter().filter(|held| held.owner == owner).count();
        count == 1 || owner.is_empty() || has + 1 < count
    }

    /// Gives a free worker to the next claimant.
    fn next(&mut self, count: usize) -> Option<(Claimant, oneshot::Sender<Worker>)> {
        if self.held.len() >= count {
            return None;
        }
        let rank = |claimant: &Claimant| {
            let of_it = |held: &&Claimant| held.dataset == claimant.dataset;
            let has = self.held.iter().filter(of_it).count();
            let last = self.last.get(&claimant.dataset).copied().unwrap_or(0);
            (has, last)
        };
        let waiting = self.waiting.iter().enumerate();
        let (next, _) = waiting
            .filter(|(_, (claimant, _))| self.may_have(&claimant.owner, count))
            .min_by_key(|(_, (claimant, _))| rank(claimant))?;
        let (claimant, sender) = self.waiting.remove(next);
        self.grant(claimant.clone());
        Some((claimant, sender))
    }

    fn grant(&mut self, claimant: Claimant) {
        self.grants += 1;
        let waiting = &self.waiting;
        let held = &self.held;
        self.last.retain(|dataset, _| {
            let of_it = |claimant: &Claimant| claimant.dataset == *dataset;
            waiting.iter().any(|(waits, _)| of_it(waits)) || held.iter().any(of_it)
        });
        self.last.insert(claimant.dataset.clone(), self.grants);
        self.held.push(claimant);
    }

    fn give_up(&mut self, claimant: &Claimant) {
        if let Some(index) = self.held.iter().position(|held| held == claimant) {
            self.held.swap_remove(index);
        }
    }
}

impl Worker {
    /// Makes the worker that of a task that was found with it.
    pub fn assign(&mut self, claimant: Claimant) {
        let mut queue = self.workers.lock();
        queue.give_up(&self.claimant);
        queue.grant(claimant.clone());
        drop(queue);
        self.claimant = claimant;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.workers.lock().give_up(&self.claimant);
        self.workers.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::error::Elapsed;

    fn claimant(owner: &str, dataset: &str) -> Claimant {
        Claimant {
            owner: owner.to_owned(),
            dataset: dataset.to_owned(),
        }
    }

    /// Returns the datasets in the order in which they get the only worker.
    async fn order(workers: &Arc<Workers>, waiting: &[(&str, &str)]) -> Vec<String> {
        let held = workers.take(claimant("eve", "held")).await.unwrap();
        let order: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut tasks = Vec::new();
        for &(owner, dataset) in waiting {
            let (workers, order) = (workers.clone(), order.clone());
            let claimant = claimant(owner, dataset);
            tasks.push(tokio::spawn(async move {
                let name = claimant.dataset.clone();
                let _worker = workers.take(claimant).await.unwrap();
                order.lock().unwrap().push(name);
            }));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(held);
        for task in tasks {
            task.await.unwrap();
        }
        let order = order.lock().unwrap();
        order.clone()
    }

    #[tokio::test]
    async fn datasets_take_turns_for_a_worker() {
        let waiting = [("ana", "a"), ("ana", "a"), ("ana", "a"), ("eve", "b")];
        let order = order(&Workers::new(1), &waiting).await;
        assert_eq!(order, ["a", "b", "a", "a"]);
    }

    #[tokio::test]
    async fn one_owner_never_has_every_worker() {
        for (count, held, served) in [
            (1, &["ana"][..], &[][..]),
            (2, &["ana"], &["ana"]),
            (3, &["ana"], &[]),
            (4, &["ana", "eve", "ana"], &[]),
            (3, &["ana", "ana"], &["ana"]),
            (2, &[], &[]),
        ] {
            let workers = Workers::new(count);
            let mut all = Vec::new();
            for owner in held {
                all.push(workers.take(claimant(owner, owner)).await.unwrap());
            }
            assert_eq!(workers.served(), served, "{held:?} of {count}");
        }
    }

    #[tokio::test]
    async fn worker_of_a_waiter_that_left_goes_to_the_next() {
        let workers = Workers::new(1);
        let held = workers.take(claimant("ana", "a")).await.unwrap();
        let left = workers.take(claimant("eve", "b"));
        let left = tokio::time::timeout(Duration::from_millis(5), left).await;
        assert!(matches!(left, Err(Elapsed { .. })));
        drop(held);
        workers.take(claimant("joe", "c")).await.unwrap();
    }
}
