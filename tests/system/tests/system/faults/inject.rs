//! Injects faults, and restarts services that have ended.

use std::{
    fs,
    net::TcpStream,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fhaim_kit::{NAMES, files};
use tempfile::TempDir;

use super::{
    Stage,
    plan::{Fault, Kind},
    proxy::Trouble,
};

/// Time within which a started service must accept connections.
const START: Duration = Duration::from_secs(60);

/// Longest time to wait for users that are making new data, before a rollback is skipped.
const PATIENCE: Duration = Duration::from_secs(20);

/// Pause before a service that has ended is started again.
const RESTART: Duration = Duration::from_millis(300);

/// Injects faults, each in its own thread.
pub struct Injector<'a> {
    stage: &'a Stage,
    /// Locks for killing, stopping and starting a service.
    hands: [Mutex<()>; 3],
    /// Locks for filling a service's disk, or using its space.
    disks: [Mutex<()>; 3],
    full: [AtomicBool; 3],
    clocks: [Mutex<()>; 3],
    restores: Mutex<()>,
    over: AtomicBool,
}

/// Guard that keeps [`Injector::supervise`] running.
pub struct Supervised<'a>(&'a AtomicBool);

impl Drop for Supervised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<'a> Injector<'a> {
    pub fn new(stage: &'a Stage) -> Self {
        Self {
            stage,
            hands: Default::default(),
            disks: Default::default(),
            full: Default::default(),
            clocks: Default::default(),
            restores: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    /// Injects one fault per second. Returns when the last fault is over.
    pub fn run(&self, faults: impl Iterator<Item = Fault>) {
        let started = Instant::now();
        thread::scope(|scope| {
            for (second, fault) in faults.enumerate() {
                let at = Duration::from_secs(second as u64);
                thread::sleep(at.saturating_sub(started.elapsed()));
                scope.spawn(move || {
                    let met = self.meet(fault);
                    self.stage.count(fault.kind, met);
                });
            }
        });
    }

    /// Restarts services that have ended by themselves, until the guard of [`Injector::supervised`] is dropped.
    pub fn supervise(&self) {
        while !self.over.load(Ordering::Relaxed) {
            for (service, hand) in self.hands.iter().enumerate() {
                let Ok(_hand) = hand.try_lock() else {
                    continue;
                };
                if self.stage.services.ended(service).is_some() {
                    self.ended(service, "while it ran");
                    self.stage.proxies.away(NAMES[service]);
                    self.bring_up(service);
                }
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns a guard that makes [`Injector::supervise`] return when it is dropped.
    pub fn supervised(&self) -> Supervised<'_> {
        Supervised(&self.over)
    }

    /// Injects a fault. Returns `None` if it cannot happen now, otherwise the number of affected calls (for faults on
    /// links) or 1.
    fn meet(&self, fault: Fault) -> Option<usize> {
        let met = match fault.kind {
            Kind::Killed => with(&self.hands, fault.place, |service| {
                self.kill(service, fault);
            }),
            Kind::Stopped => with(&self.hands, fault.place, |service| {
                self.hold(service, fault);
            }),
            Kind::PeerAway => self.peer_away(fault),
            Kind::LostAnswers => return self.trouble(fault, Trouble::LostAnswers),
            Kind::LostRequests => return self.trouble(fault, Trouble::LostRequests),
            Kind::Delays => return self.trouble(fault, Trouble::Delays(fault.delay)),
            Kind::FullDisk => with(&self.disks, fault.place, |service| {
                self.fill(service, fault);
            }),
            Kind::ClockJump => with(&self.clocks, fault.place, |service| {
                self.set_clock(service, fault);
            }),
            Kind::Restored => self.restore(fault.place % 2, fault.length),
        };
        met.then_some(1)
    }

    fn kill(&self, service: usize, Fault { length, .. }: Fault) {
        let name = NAMES[service];
        self.stage
            .log(&format!("{name} is killed for {length:.1?}"));
        self.take_down(service);
        thread::sleep(length);
        self.bring_up(service);
    }

    fn hold(&self, service: usize, Fault { length, .. }: Fault) {
        let name = NAMES[service];
        self.stage
            .log(&format!("{name} is stopped for {length:.1?}"));
        self.stage.services.signal(service, "STOP");
        thread::sleep(length);
        self.stage.services.signal(service, "CONT");
    }

    fn peer_away(&self, fault: Fault) -> bool {
        let (one, other) = (fault.place % 3, (fault.place + 1) % 3);
        let (Ok(_one), Ok(_other)) = (self.hands[one].try_lock(), self.hands[other].try_lock())
        else {
            return false;
        };
        let length = fault.length;
        let text = format!(
            "{} is down for {length:.1?}, {} is killed",
            NAMES[one], NAMES[other]
        );
        self.stage.log(&text);
        self.take_down(one);
        self.take_down(other);
        self.bring_up(other);
        thread::sleep(length);
        self.bring_up(one);
        true
    }

    fn trouble(&self, fault: Fault, trouble: Trouble) -> Option<usize> {
        let links = self.stage.proxies.used();
        let link = &links.get(fault.place % links.len().max(1))?;
        let length = fault.length;
        let (from, to) = (link.from, link.to);
        let kind = fault.kind.name();
        self.stage.log(&format!(
            "{kind} from {from} to {to} for {length:.1?}: {trouble:?}"
        ));
        link.trouble(trouble, length);
        thread::sleep(length);
        let struck = link.struck();
        for (at, call) in &struck {
            let text = format!("{kind} from {from} to {to}: {call}");
            self.stage.log_at(*at, &text);
        }
        Some(struck.len())
    }

    fn fill(&self, service: usize, Fault { length, .. }: Fault) {
        let (disks, name) = (&self.stage.disks, NAMES[service]);
        self.full[service].store(true, Ordering::Relaxed);
        let filled = disks.fill(service);
        self.stage.log(&format!(
            "{name}'s disk is full for {length:.1?}: {filled:?}"
        ));
        thread::sleep(length);
        disks.free(service).unwrap();
        self.full[service].store(false, Ordering::Relaxed);
    }

    fn set_clock(&self, service: usize, Fault { length, jump, .. }: Fault) {
        let (clocks, name) = (&self.stage.clocks, NAMES[service]);
        self.stage.log(&format!(
            "{name}'s clock jumps by {jump} s for {length:.1?}"
        ));
        clocks.set(service, jump).unwrap();
        thread::sleep(length);
        clocks.set(service, 0).unwrap();
    }

    /// Copies a service's data, and rolls the service back to the copy after `age`. In between, users make nothing new,
    /// but running jobs continue. Returns whether this was possible.
    pub fn restore(&self, service: usize, age: Duration) -> bool {
        let Ok(_one) = self.restores.try_lock() else {
            return false;
        };
        let Ok(_disk) = self.disks[service].try_lock() else {
            return false;
        };
        let Some(_closed) = self.stage.gates[service].close(PATIENCE) else {
            return false;
        };
        let copy = self.copy(service);
        thread::sleep(age);
        self.set_back(service, copy.path());
        self.stage
            .log(&format!("{} rolled back by {age:.1?}", NAMES[service]));
        true
    }

    /// Copies a service's data while the service is stopped.
    pub fn copy(&self, service: usize) -> TempDir {
        let _hand = self.hands[service].lock().unwrap();
        let copy = TempDir::new().unwrap();
        self.stage.services.signal(service, "STOP");
        files::copy(&self.stage.services.home(service), copy.path());
        self.stage.services.signal(service, "CONT");
        copy
    }

    /// Replaces a service's data with a copy.
    pub fn set_back(&self, service: usize, copy: &Path) {
        let _hand = self.hands[service].lock().unwrap();
        self.take_down(service);
        let home = self.stage.services.home(service);
        for entry in fs::read_dir(&home).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
        files::copy(copy, &home);
        self.bring_up(service);
    }

    fn take_down(&self, service: usize) {
        self.stage.services.kill(service);
        self.stage.proxies.away(NAMES[service]);
    }

    /// Starts a service, and restarts it as long as it ends, as a supervisor would.
    fn bring_up(&self, service: usize) {
        let services = &self.stage.services;
        let address = services.address(service);
        let deadline = Instant::now() + START;
        services.launch(service);
        while TcpStream::connect(address.trim_start_matches("http://")).is_err() {
            if services.ended(service).is_some() {
                self.ended(service, "at its start");
                thread::sleep(RESTART);
                services.launch(service);
            }
            if Instant::now() > deadline {
                let text = format!("{} does not start", NAMES[service]);
                return self.stage.finding(text);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Logs that a service has ended. It is a finding unless the service ended at its start with a full disk.
    fn ended(&self, service: usize, when: &str) {
        let services = &self.stage.services;
        let status = services.ended(service);
        services.kill(service);
        let log = services.log(service);
        let last = log.lines().last().unwrap_or_default();
        let full = self.full[service].load(Ordering::Relaxed);
        let text = format!(
            "{} ended {when} ({status:?}, disk full: {full}): {last}",
            NAMES[service]
        );
        self.stage.log(&text);
        if !full || when != "at its start" {
            self.stage.finding(text);
        }
    }
}

/// Calls `act` with the first service from `place` on that is not locked. Returns whether there was one.
fn with(locks: &[Mutex<()>; 3], place: usize, act: impl FnOnce(usize)) -> bool {
    for number in 0..3 {
        let service = (place + number) % 3;
        if let Ok(_lock) = locks[service].try_lock() {
            act(service);
            return true;
        }
    }
    false
}
