//! Injects faults, and restarts services that have ended.

use std::{
    net::TcpStream,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fhaim_kit::{DataCopy, KEYSHARE, NAMES, name_of};

use super::{
    CRYPTO, SetBack, Stage, chains,
    plan::{Fault, Kind},
    proxy::Trouble,
};

/// Number of services that a schedule can have.
const MOST: usize = KEYSHARE + 2;

/// Time within which a started service must accept connections.
const START: Duration = Duration::from_secs(60);

/// Time after a start within which a service can end because its disk is full. It accepts connections before it opens its
/// store.
const START_ERRORS: Duration = Duration::from_secs(10);

/// Pause before a service that has ended is started again.
const RESTART: Duration = Duration::from_millis(300);

/// Injects faults, each in its own thread.
pub struct Injector<'a> {
    stage: &'a Stage,
    /// Locks for killing, stopping and starting a service.
    hands: [Mutex<()>; MOST],
    /// Locks for filling a service's disk, or using its space.
    disks: [Mutex<()>; 3],
    full: [AtomicBool; 3],
    /// Time of the last start of each service.
    launches: [Mutex<Option<Instant>>; MOST],
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
            launches: Default::default(),
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
                    if self.meet(fault) {
                        let mut counts = self.stage.counts.lock().unwrap();
                        *counts.entry(fault.kind).or_default() += 1;
                    }
                });
            }
        });
    }

    /// Restarts services that have ended by themselves, until the guard of [`Injector::supervised`] is dropped.
    pub fn supervise(&self) {
        while !self.over.load(Ordering::Relaxed) {
            for service in self.stage.setup.services() {
                let Ok(_hand) = self.hands[service].try_lock() else {
                    continue;
                };
                if self.stage.services.ended(service).is_some() {
                    self.ended(service, "while it ran");
                    self.stage.proxies.away(name_of(service));
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

    /// Injects a fault. Returns whether it was possible.
    fn meet(&self, fault: Fault) -> bool {
        match fault.kind {
            Kind::Killed => self.kill(fault),
            Kind::Stopped => with(&self.hands[..NAMES.len()], fault.place, |service| {
                self.hold(service, fault);
            }),
            Kind::PeerAway => self.peer_away(fault),
            Kind::LostAnswers => self.trouble(fault, Trouble::LostAnswers),
            Kind::LostRequests => self.trouble(fault, Trouble::LostRequests),
            Kind::Delays => self.trouble(fault, Trouble::Delays(fault.delay)),
            Kind::FullDisk => with(&self.disks, fault.place, |service| {
                self.fill(service, fault);
            }),
            Kind::ClockJump => with(&self.clocks, fault.place, |service| {
                self.set_clock(service, fault);
            }),
            Kind::Restored => self.set_back(fault),
        }
    }

    /// Returns the services of a fault that affects several: at least one.
    fn subset(&self, Fault { place, subset, .. }: Fault) -> Vec<usize> {
        let all: Vec<usize> = self.stage.setup.services().collect();
        let chosen = |(bit, service): (usize, &usize)| {
            (subset >> bit & 1 == 1 || bit == place % all.len()).then_some(*service)
        };
        all.iter().enumerate().filter_map(chosen).collect()
    }

    /// Kills the services of a fault that no other fault kills or stops.
    fn kill(&self, fault: Fault) -> bool {
        let subset = self.subset(fault).into_iter();
        let held =
            subset.filter_map(|service| Some((service, self.hands[service].try_lock().ok()?)));
        let held: Vec<(usize, MutexGuard<'_, ()>)> = held.collect();
        let services: Vec<usize> = held.iter().map(|(service, _)| *service).collect();
        let (names, length) = (names(&services), fault.length);
        self.stage.log(&format!("killed for {length:.1?}: {names}"));
        services.iter().for_each(|&service| self.take_down(service));
        thread::sleep(length);
        self.bring_all_up(&services);
        !services.is_empty()
    }

    fn hold(&self, service: usize, Fault { length, .. }: Fault) {
        let name = name_of(service);
        self.stage
            .log(&format!("{name} is stopped for {length:.1?}"));
        self.stage.services.signal(service, "STOP");
        thread::sleep(length);
        self.stage.services.signal(service, "CONT");
    }

    fn peer_away(&self, fault: Fault) -> bool {
        let all: Vec<usize> = self.stage.setup.services().collect();
        let (one, other) = (
            all[fault.place % all.len()],
            all[(fault.place + 1) % all.len()],
        );
        let (Ok(_one), Ok(_other)) = (self.hands[one].try_lock(), self.hands[other].try_lock())
        else {
            return false;
        };
        let length = fault.length;
        let (away, killed) = (name_of(one), name_of(other));
        let text = format!("{away} is down for {length:.1?}, {killed} is killed");
        self.stage.log(&text);
        self.take_down(one);
        self.take_down(other);
        self.bring_up(other);
        thread::sleep(length);
        self.bring_up(one);
        true
    }

    fn trouble(&self, fault: Fault, trouble: Trouble) -> bool {
        let links = self.stage.proxies.used();
        let Some(link) = links.get(fault.place % links.len().max(1)) else {
            return false;
        };
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
        !struck.is_empty()
    }

    fn fill(&self, service: usize, Fault { length, .. }: Fault) {
        let (disks, name) = (&self.stage.disks, name_of(service));
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
        let (clocks, name) = (&self.stage.clocks, name_of(service));
        self.stage.log(&format!(
            "{name}'s clock jumps by {jump} s for {length:.1?}"
        ));
        clocks.set(service, jump).unwrap();
        thread::sleep(length);
        clocks.set(service, 0).unwrap();
    }

    /// Kills some services, copies their data and starts them again. After the fault's length, kills them and replaces
    /// their data with the copies. Returns whether this was possible.
    fn set_back(&self, fault: Fault) -> bool {
        let Ok(_one) = self.restores.try_lock() else {
            return false;
        };
        let subset = self.subset(fault);
        // No disk is full while data is copied.
        let disks = subset.iter().filter_map(|&service| self.disks.get(service));
        let disks: Result<Vec<_>, _> = disks.map(Mutex::try_lock).collect();
        let Ok(_disks) = disks else {
            return false;
        };
        let each = subset.iter().map(|&service| (service, self.copy(service)));
        let copies: Vec<(usize, (Instant, DataCopy))> = each.collect();
        thread::sleep(fault.length);
        let _hands: Vec<_> = (subset.iter())
            .map(|&service| self.hands[service].lock().unwrap())
            .collect();
        subset.iter().for_each(|&service| self.take_down(service));
        for (service, (copied, copy)) in &copies {
            self.replace(*service, *copied, copy);
        }
        let (names, length) = (names(&subset), fault.length);
        self.stage
            .log(&format!("set back by {length:.1?}: {names}"));
        self.bring_all_up(&subset);
        true
    }

    /// Kills a service, copies its data, and starts it again. Returns a time at which the copy had all data.
    fn copy(&self, service: usize) -> (Instant, DataCopy) {
        let _hand = self.hands[service].lock().unwrap();
        let copied = Instant::now();
        self.take_down(service);
        let copy = self.stage.services.copy(service);
        self.bring_up(service);
        (copied, copy)
    }

    /// Replaces the data of a killed service, and stores which datasets lost acts or keys at a key service.
    fn replace(&self, service: usize, copied: Instant, copy: &DataCopy) {
        let services = &self.stage.services;
        let has_ledger = service == CRYPTO || service >= KEYSHARE;
        let read = || {
            let all = || {
                (
                    chains::read(services, service),
                    chains::shares(services, service),
                )
            };
            has_ledger.then(all).unwrap_or_default()
        };
        let (before, keys) = read();
        services.set_back(service, copy);
        let (after, kept) = read();
        let mut lost = chains::lost_between(&before, &after);
        lost.extend(keys.difference(&kept).map(|(dataset, _)| dataset.clone()));
        let set_back = SetBack {
            service,
            copied,
            at: Instant::now(),
            before,
            lost,
        };
        self.stage.set_backs.lock().unwrap().push(set_back);
    }

    fn take_down(&self, service: usize) {
        self.stage.services.kill(service);
        self.stage.proxies.away(name_of(service));
    }

    /// Starts services at the same time.
    fn bring_all_up(&self, services: &[usize]) {
        thread::scope(|scope| {
            for &service in services {
                scope.spawn(move || self.bring_up(service));
            }
        });
    }

    /// Starts a service, and restarts it as long as it ends, as a supervisor would.
    fn bring_up(&self, service: usize) {
        let services = &self.stage.services;
        let address = services.address(service);
        let deadline = Instant::now() + START;
        *self.launches[service].lock().unwrap() = Some(Instant::now());
        services.launch(service);
        while TcpStream::connect(address.trim_start_matches("http://")).is_err() {
            if services.ended(service).is_some() {
                self.ended(service, "at its start");
                thread::sleep(RESTART);
                services.launch(service);
            }
            if Instant::now() > deadline {
                let text = format!("{} does not start", name_of(service));
                return self.stage.finding(text);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the time of a service's last start.
    fn launched(&self, service: usize) -> Instant {
        let launched = *self.launches[service].lock().unwrap();
        launched.unwrap_or(self.stage.started)
    }

    /// Logs that a service has ended. It is a finding unless the service ended at its start with a full disk.
    fn ended(&self, service: usize, when: &str) {
        let services = &self.stage.services;
        let status = services.ended(service);
        services.kill(service);
        let log = services.log(service);
        let last = log.lines().last().unwrap_or_default();
        let full = self.full.get(service);
        let full = full.is_some_and(|full| full.load(Ordering::Relaxed));
        let text = format!(
            "{} ended {when} ({status:?}, disk full: {full}): {last}",
            name_of(service)
        );
        self.stage.log(&text);
        let is_start = when == "at its start" || self.launched(service).elapsed() < START_ERRORS;
        if !full || !is_start {
            self.stage.finding(text);
        }
    }
}

/// Returns the names of services, for a log.
fn names(services: &[usize]) -> String {
    let names: Vec<&str> = services.iter().map(|&service| name_of(service)).collect();
    names.join(", ")
}

/// Calls `act` with the first service from `place` on that is not locked. Returns whether there was one.
fn with(locks: &[Mutex<()>], place: usize, act: impl FnOnce(usize)) -> bool {
    for number in 0..locks.len() {
        let service = (place + number) % locks.len();
        if let Ok(_lock) = locks[service].try_lock() {
            act(service);
            return true;
        }
    }
    false
}
