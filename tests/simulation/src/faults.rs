//! Faults of a schedule, and their times.

use crate::computation;
use crate::crypto::Call;
use crate::pages::Forgery;
use crate::world::{Envelope, Node, Task, W, Weather};
use crate::{generation, holder};
use fhaim_protocol::request::JobId;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::rc::Rc;

/// The faults of a schedule: probabilities at each step until faults stop, and rollbacks at fixed times.
pub(crate) struct Faults {
    pub weather: Weather,
    until: u64,
    crash: f64,
    lease: f64,
    forge: f64,
    blob: f64,
    restores: Vec<Restore>,
    /// Whether a rollback of the crypto service is planned.
    crypto_restored: bool,
    down: Vec<(u64, Node)>,
}

/// A rollback of some stores.
struct Restore {
    at: u64,
    nodes: Vec<Node>,
    /// Whether all stores are rolled back to the same time.
    together: bool,
    /// Whether the time can be any, instead of at most 150 ticks ago.
    far: bool,
}

impl Faults {
    pub(crate) fn new(rng: &mut ChaCha8Rng, all: &[Node]) -> Self {
        let until = rng.random_range(100..2500);
        let often = |rng: &mut ChaCha8Rng, of: &[f64]| of[rng.random_range(0..of.len())];
        let weather = Weather {
            drop: often(rng, &[0.0, 0.02, 0.1, 0.3]),
            repeat: often(rng, &[0.0, 0.05, 0.3]),
            delay: [0, 20, 400][rng.random_range(0..3)],
        };
        let restores = match rng.random_range(0..3) {
            0 => 0,
            _ => rng.random_range(1..=3),
        };
        let restores: Vec<_> = (0..restores)
            .map(|_| Restore::new(rng, until, all))
            .collect();
        Self {
            weather,
            until,
            crypto_restored: restores.iter().any(|r| r.nodes.contains(&Node::Crypto)),
            restores,
            crash: often(rng, &[0.0, 0.002, 0.01]),
            lease: often(rng, &[0.0, 0.0, 0.01]),
            forge: often(rng, &[0.0, 0.0, 0.005]),
            blob: often(rng, &[0.0, 0.0, 0.003]),
            down: Vec::new(),
        }
    }

    /// Injects the faults that happen before the next step.
    pub(crate) fn step(&mut self, w: &W, tasks: &mut Vec<Task>) {
        let now = w.now.get();
        self.down.retain(|&(at, node)| {
            if at <= now || !w.faulty.get() {
                w.trace(|| format!("{node:?} starts"));
                w.start(node);
                return false;
            }
            true
        });
        if !w.faulty.get() {
            return;
        }
        if now >= self.until {
            w.trace(|| "no more faults".to_owned());
            w.weather.set(Weather::default());
            w.faulty.set(false);
            holder::thaw(w);
            return;
        }
        if w.chance(self.crash) {
            let nodes = Node::all(w.has_witness(), w.has_keyshare());
            let node = nodes[w.below(nodes.len() as u64) as usize];
            w.count(|c| c.killed[node as usize] += 1);
            self.end(w, tasks, node);
        }
        while let Some(index) = self.restores.iter().position(|restore| restore.at <= now) {
            let restore = self.restores.swap_remove(index);
            self.restore(w, tasks, &restore);
        }
        if w.chance(self.lease) {
            w.count(|c| c.leases += 1);
            end_leases(w);
        }
        if w.chance(self.forge) {
            forge(w, self.crypto_restored);
        }
        if w.chance(self.blob) {
            lose_blob(w);
        }
    }

    /// Kills a process. It starts again after a pause.
    pub(crate) fn end(&mut self, w: &W, tasks: &mut Vec<Task>, node: Node) {
        tasks.extend(w.spawned());
        tasks.retain(|task| task.node != node);
        if w.up[node as usize].replace(false) {
            w.trace(|| format!("{node:?} is killed"));
            self.down.push((w.now.get() + w.below(60), node));
        }
    }

    fn restore(&mut self, w: &W, tasks: &mut Vec<Task>, restore: &Restore) {
        let now = w.now.get();
        let range = if restore.far { now } else { now.min(150) };
        let common = now - w.below(range + 1);
        let names: Vec<&str> = restore.nodes.iter().map(|&node| name(node)).collect();
        w.count(|c| *c.restored.entry(names.join("+")).or_default() += 1);
        for &node in &restore.nodes {
            self.end(w, tasks, node);
            let time = match restore.together {
                true => common,
                false => now - w.below(range + 1),
            };
            w.trace(|| format!("{node:?} is rolled back to {time}"));
            w.restore(node, time);
            w.ghost.borrow_mut().set_back(node);
        }
    }
}

fn name(node: Node) -> &'static str {
    match node {
        Node::Holder => "holder",
        Node::Computation => "CE",
        Node::Crypto => "CSE",
        Node::Generation => "GE",
        Node::Witness => "CE2",
        Node::Keyshare => "CSE2",
        Node::Uploader => "second program",
    }
}

impl Restore {
    fn new(rng: &mut ChaCha8Rng, until: u64, all: &[Node]) -> Self {
        // Any non-empty set of stores.
        let set = rng.random_range(1..1 << all.len());
        let nodes = all.iter().enumerate();
        let nodes = nodes.filter(|(bit, _)| set >> bit & 1 == 1);
        let nodes = nodes.map(|(_, &node)| node);
        Self {
            at: rng.random_range(50..until + 50),
            nodes: nodes.collect(),
            together: rng.random(),
            far: rng.random(),
        }
    }
}

/// Ends all leases without notice to the workers that hold them.
fn end_leases(w: &W) {
    let now = w.now.get();
    w.computation.alter(now, computation::Db::end_leases);
    w.witness.alter(now, computation::Db::end_leases);
    w.generation.alter(now, generation::Db::end_leases);
}

/// Sends a forged copy of an earlier sealed request to the crypto service.
fn forge(w: &W, crypto_restored: bool) {
    let blobs = w.computation.get().sealed();
    if blobs.is_empty() {
        return;
    }
    let blob = blobs[w.below(blobs.len() as u64) as usize];
    let Some(body) = w.blobs.borrow().get(&blob).cloned() else {
        return;
    };
    let engine = &w.setting.engine;
    let Ok(look) = engine.look(&body) else { return };
    let other = JobId([w.below(w.wanted as u64) as u8 + 1; 16]);
    let forgery = match w.below(7) {
        // Before a batch is released, a changed variance cannot be told from the requested one.
        0 if crypto_restored || !w.computation.get().is_released(blob) => return,
        0 => Forgery::Variance,
        1 => Forgery::Numbers(look.releases.len() as u32),
        2 => Forgery::Numbers(w.below(9) as u32 + 1),
        3 => Forgery::Job(other),
        4 => Forgery::Fewer,
        5 => Forgery::Moved,
        _ => Forgery::Spoilt,
    };
    let Some(forged) = engine.forge(&body, forgery) else {
        return;
    };
    w.count(|c| c.forged += 1);
    w.trace(|| format!("a forged request: {forgery:?}"));
    w.ghost.borrow_mut().spoilt |= forgery == Forgery::Spoilt;
    let job = match forgery {
        Forgery::Job(job) => job,
        _ => look.job,
    };
    let call = Call::Decrypt {
        job,
        receipts: Vec::new(),
    };
    let mut envelope = Envelope::new(&call, 0);
    envelope.body = Some(Rc::clone(&forged));
    w.post(Node::Computation, Node::Crypto, w.fresh(), envelope);
}

/// Removes a sealed request from the blobs, as if they were rolled back further than the database.
fn lose_blob(w: &W) {
    let sealed = w.computation.get().sealed();
    if let Some(&blob) = sealed.last()
        && w.blobs.borrow_mut().remove(&blob).is_some()
    {
        w.count(|c| c.blobs += 1);
    }
}
