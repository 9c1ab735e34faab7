//! Ports on which the services under test listen.

use std::{
    fs::{self, File},
    net::TcpListener,
    ops::Range,
};

/// Range of the ports. It is below the range for outgoing connections (from 32,768 on Linux, from 49,152 elsewhere).
/// Otherwise a connection could take a port between its choice and the service's start, or while the service is down.
const PORTS: Range<u16> = 20_000..32_000;

/// A port of this machine that no other test takes while this value lives, even when no service listens on it.
pub struct Port {
    number: u16,
    /// A locked file. The system releases the lock when the process ends, even after a crash.
    _lock: File,
}

impl Port {
    /// Takes a port that no other test holds and no process listens on.
    pub fn take() -> Self {
        let count = u128::from(PORTS.end - PORTS.start);
        loop {
            // Smaller than the range, so it fits.
            let offset = (uuid::Uuid::new_v4().as_u128() % count) as u16;
            if let Some(port) = Self::held(PORTS.start + offset) {
                return port;
            }
        }
    }

    /// Takes the port of this number. Returns `None` if another test holds it or a process listens on it.
    fn held(number: u16) -> Option<Self> {
        let folder = std::env::temp_dir().join("fhaim-ports");
        fs::create_dir_all(&folder).unwrap();
        let lock = File::create(folder.join(number.to_string())).unwrap();
        lock.try_lock().ok()?;
        TcpListener::bind(("127.0.0.1", number)).ok()?;
        Some(Self {
            number,
            _lock: lock,
        })
    }

    /// Returns the port's number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns the address `127.0.0.1:PORT`, without a scheme.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn ports_are_unique_and_below_the_range_of_outgoing_connections() {
        let threads: Vec<_> = (0..8)
            .map(|_| thread::spawn(|| (0..50).map(|_| Port::take()).collect::<Vec<_>>()))
            .collect();
        let held: Vec<Port> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        let numbers: HashSet<u16> = held.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), held.len());
        assert!(numbers.iter().all(|number| *number < 32_768));
    }

    #[test]
    fn held_or_listening_port_is_not_given_again() {
        let port = Port::take();
        let number = port.number();
        assert!(Port::held(number).is_none(), "held");
        let listener = TcpListener::bind(port.address()).unwrap();
        drop(port);
        assert!(Port::held(number).is_none(), "a listener uses it");
        drop(listener);
        assert!(Port::held(number).is_some());
    }
}
