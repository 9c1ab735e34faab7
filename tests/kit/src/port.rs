//! Ports that services listen at.

use std::{
    fs::{self, File},
    net::TcpListener,
    ops::Range,
};

/// Below what systems give to outgoing connections (from 32,768 on Linux, from 49,152 elsewhere): one of those could take a
/// port between its choice and the service's start, or while the service is down.
const PORTS: Range<u16> = 20_000..32_000;

/// A port of this machine that no other test takes while this value lives, whether or not a service listens at it.
pub struct Port {
    number: u16,
    /// Locked; the system unlocks it however the test ends.
    _lock: File,
}

impl Port {
    /// One that nobody holds or listens at.
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

    /// The port of a number, unless somebody holds it or listens at it.
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

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Its address, without a scheme.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn a_port_is_held_once_and_given_to_no_outgoing_connection() {
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
    fn a_port_that_is_held_or_listened_at_is_not_given() {
        let port = Port::take();
        let number = port.number();
        assert!(Port::held(number).is_none(), "held");
        let listener = TcpListener::bind(port.address()).unwrap();
        drop(port);
        assert!(Port::held(number).is_none(), "listened at");
        drop(listener);
        assert!(Port::held(number).is_some());
    }
}
