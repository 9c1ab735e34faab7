//! The three services as separate processes, each with its own folder, for measurements.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use fhaim_api::token::Service;
use fhaim_platform::seal::Sealer;
use fhaim_sdk::Endpoints;
use serde::Serialize;

use crate::error::Error;

/// All services, in the order in which they are started.
const SERVICES: [Service; 3] = [Service::Crypto, Service::Computation, Service::Generation];

/// Time limit for the start of all services.
const START: Duration = Duration::from_secs(60);

/// A running service.
struct Member {
    service: Service,
    port: u16,
    child: Child,
}

/// Three running services. They are stopped when dropped.
pub struct Fleet {
    members: Vec<Member>,
}

/// The resource usage of a service.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Usage {
    /// The service.
    pub service: Service,
    /// Peak resident memory; `None` if the system does not report it.
    pub peak_bytes: Option<u64>,
}

impl Fleet {
    /// Starts the services with SQLite and folders below `folder`, without limits on sign-ins.
    pub fn start(folder: &Path) -> Result<Self, Error> {
        Self::start_with(folder, None)
    }

    /// Like [`Fleet::start`], with a limit on the descriptors of each service.
    pub fn start_with(folder: &Path, descriptors: Option<u32>) -> Result<Self, Error> {
        let ports = [free_port()?, free_port()?, free_port()?];
        let mut fleet = Self {
            members: Vec::new(),
        };
        for (service, port) in SERVICES.into_iter().zip(ports) {
            let others = SERVICES.into_iter().zip(ports);
            let peers: String = others
                .filter(|&(peer, _)| peer != service)
                .map(|(peer, at)| format!("{peer} = \"http://127.0.0.1:{at}\"\n"))
                .collect();
            let home = folder.join(service.as_str());
            let config = configure(service, port, &home, &peers).map_err(|error| fault(&error))?;
            let program = std::env::current_exe().map_err(|error| fault(&error))?;
            let child = limited(&program, descriptors)
                .args(["fhaim", "serve", service.as_str(), "--config"])
                .arg(config)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(fs::File::create(home.join("log")).map_err(|error| fault(&error))?)
                .spawn()
                .map_err(|error| fault(&error))?;
            fleet.members.push(Member {
                service,
                port,
                child,
            });
        }
        Ok(fleet)
    }

    /// Waits until every service accepts connections.
    pub async fn ready(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + START;
        for member in &mut self.members {
            let address = ("127.0.0.1", member.port);
            while tokio::net::TcpStream::connect(address).await.is_err() {
                let over = Instant::now() > deadline;
                if over
                    || member
                        .child
                        .try_wait()
                        .map_err(|error| fault(&error))?
                        .is_some()
                {
                    let reason = format!("the {} service did not start", member.service);
                    return Err(Error::Service(reason));
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    /// Returns the addresses of the services.
    pub fn endpoints(&self) -> Endpoints {
        let at = |wanted: Service| {
            let member = self.members.iter().find(|m| m.service == wanted);
            format!("http://127.0.0.1:{}", member.map_or(0, |m| m.port))
        };
        Endpoints {
            generation: at(Service::Generation),
            computation: at(Service::Computation),
            crypto: at(Service::Crypto),
            witness: None,
        }
    }

    /// Returns the resident memory of each service, if the system reports it. Resets the peaks that [`Fleet::usage`]
    /// returns.
    pub fn resident_since_now(&self) -> Vec<Option<u64>> {
        for member in &self.members {
            // proc(5): 5 resets the peak. Without permission to do so, the peak is that of the whole run.
            let _ = fs::write(format!("/proc/{}/clear_refs", member.child.id()), "5");
        }
        self.resident()
    }

    /// Returns the resident memory of each service, if the system reports it.
    pub fn resident(&self) -> Vec<Option<u64>> {
        let members = self.members.iter();
        members
            .map(|member| status_bytes(member.child.id(), "VmRSS:"))
            .collect()
    }

    /// Returns the resource usage of each service so far.
    pub fn usage(&self) -> Vec<Usage> {
        let usage = |member: &Member| Usage {
            service: member.service,
            peak_bytes: status_bytes(member.child.id(), "VmHWM:"),
        };
        self.members.iter().map(usage).collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for member in &mut self.members {
            // An error means that the service has already ended.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

fn fault(error: &std::io::Error) -> Error {
    Error::Service(format!("cannot start the services: {error}"))
}

/// Returns a port that no process is listening on.
fn free_port() -> Result<u16, Error> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| Ok(l.local_addr()?.port()));
    port.map_err(|error| fault(&error))
}

/// Writes a service's configuration and sealing key, and returns the path of the configuration.
fn configure(
    service: Service,
    port: u16,
    home: &Path,
    peers: &str,
) -> std::io::Result<std::path::PathBuf> {
    fs::create_dir_all(home)?;
    let key = Sealer::new_key().map_err(std::io::Error::other)?;
    fs::write(home.join("sealing.key"), key.as_bytes())?;
    let limits = match service {
        Service::Generation => {
            "[limits]\nsign_ins_per_address = 1000000\nsign_ins_per_email = 1000000\n"
        }
        _ => "",
    };
    let home_text = home.display();
    let text = format!(
        "[common]\nlisten = \"127.0.0.1:{port}\"\n\
         [common.database]\nurl = \"sqlite://{home_text}/store.db\"\n\
         [common.blobs]\nurl = \"file://{home_text}/blobs\"\n\
         [common.sealing]\nfile = \"{home_text}/sealing.key\"\n\
         [common.peers]\n{peers}[common.log]\nfilter = \"warn\"\n{limits}"
    );
    let path = home.join("config.toml");
    fs::write(&path, text)?;
    Ok(path)
}

/// Returns a command with this limit on descriptors.
fn limited(program: &Path, descriptors: Option<u32>) -> Command {
    let Some(descriptors) = descriptors else {
        return Command::new(program);
    };
    let mut command = Command::new("sh");
    let limit = format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"");
    command.arg("-c").arg(limit).arg(program);
    command
}

/// Returns a value of a process's memory status from /proc, or `None` if it is not available.
fn status_bytes(process: u32, what: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(what))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}
