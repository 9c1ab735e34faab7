//! `fhaim up`: runs all services in one process, with SQLite and a data folder.
//!
//! Each service has its own database, blobs and sealing key, like a separate service, and talks to the others over the
//! loopback address. One machine then has all data. This is meant for trying fhaim, and for holders who run all
//! services themselves. It does not protect the services' data from each other.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use axum::Router;
use clap::Args;
use fhaim_api::account::{Credentials, Secret};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_platform::config::{Blobs, Common, Database, Log, Sealing};
use fhaim_platform::program::{self, Program};
use fhaim_platform::seal::Sealer;
use fhaim_platform::shutdown::{self, Shutdown};
use fhaim_platform::{Failure, connections, telemetry};
use tokio::task::JoinSet;

use super::web;
use crate::{error::Error, output};

/// Flags of `up`.
#[derive(Debug, Args)]
pub struct UpArguments {
    /// Data folder of all services
    #[arg(long, value_name = "DIR", default_value = "fhaim-data")]
    pub data_dir: PathBuf,
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Email address of the first account
    #[arg(long, default_value = "holder@fhaim.local")]
    pub email: String,
    /// Also run a second computation service, for datasets created with --witness. Later starts with the
    /// same data folder run it even without this flag
    #[arg(long)]
    pub witness: bool,
    /// Run N key services, for datasets created with --keys. Later starts with the same data folder run
    /// them even without this flag
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub keys: u8,
    /// Do not allow new accounts to sign up
    #[arg(long)]
    pub closed: bool,
    /// Log filter, such as `debug` or `info,sqlx=warn`
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    pub log: String,
    /// Seconds until the work of a killed process is resumed
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub lease_seconds: u64,
    /// Folder of the web page's files [default: web/dist of the source checkout, if it was built]
    #[arg(long, value_name = "DIR")]
    pub web: Option<PathBuf>,
}

/// All services. Those that only some data folders have are last.
pub const ALL: [Service; 6] = [
    Service::Generation,
    Service::Computation,
    Service::Crypto,
    Service::Witness,
    Service::Keyshare1,
    Service::Keyshare2,
];

/// Whether a service runs: because of a flag, or because the data folder has its data.
fn is_served(arguments: &UpArguments, service: Service) -> bool {
    let asked = match service {
        Service::Generation | Service::Computation | Service::Crypto => return true,
        Service::Witness => arguments.witness,
        Service::Keyshare1 => arguments.keys > 1,
        Service::Keyshare2 => arguments.keys > 2,
    };
    asked || folder(&arguments.data_dir, service).exists()
}

/// Time that running work has to finish after the process is signalled to stop.
const WORK_GRACE: Duration = Duration::from_secs(10);

/// Runs the services until the process is signalled to stop.
pub async fn run(arguments: &UpArguments) -> Result<(), Error> {
    telemetry::log(&Log {
        json: false,
        filter: Some(arguments.log.clone()),
    });
    let page = match arguments.web.clone().or_else(web::default_folder) {
        Some(folder) => web::router(&folder)?,
        None => Router::new(),
    };
    make_folder(&arguments.data_dir)?;
    let _lock = lock(&arguments.data_dir)?;
    let listener = program::listen(&arguments.listen.to_string()).await;
    let listener = listener.map_err(|error| Error::Service(error.to_string()))?;
    let address = listener.local_addr();
    let address = address.map_err(|error| Error::Service(error.to_string()))?;
    let lease_seconds = arguments.lease_seconds;
    let all = ALL.into_iter();
    let all: Vec<Service> = all
        .filter(|&service| is_served(arguments, service))
        .collect();
    let common = |service| common(&arguments.data_dir, service, &all, address, lease_seconds);
    let crypto = fhaim_crypto::Config::from(common(Service::Crypto)?);
    let of = |common| fhaim_computation::Config {
        stored_bytes: 1 << 40, // the operator does not share the disk with other accounts
        ..fhaim_computation::Config::from(common)
    };
    let computation = of(common(Service::Computation)?);
    let generation = fhaim_generation::Config {
        sign_up: !arguments.closed,
        ..fhaim_generation::Config::from(common(Service::Generation)?)
    };
    let crypto = fhaim_crypto::State::open(&crypto).await?;
    let computation = fhaim_computation::State::open(&computation).await?;
    let generation = fhaim_generation::State::open(&generation).await?;
    let witness = match all.contains(&Service::Witness) {
        true => {
            let config = of(common(Service::Witness)?);
            Some(fhaim_computation::Witness::open(&config).await?)
        }
        false => None,
    };
    let second = keyshare::<1>(&all, &common).await?;
    let third = keyshare::<2>(&all, &common).await?;
    let account = first_account(arguments, &generation).await?;
    let (stopper, signal) = shutdown::channel();
    let mut workers = JoinSet::new();
    let routes = start(page, crypto, &mut workers, &signal);
    let routes = start(routes, computation, &mut workers, &signal);
    let routes = start(routes, generation, &mut workers, &signal);
    let routes = start_some(routes, witness, &mut workers, &signal);
    let routes = start_some(routes, second, &mut workers, &signal);
    let routes = start_some(routes, third, &mut workers, &signal);
    say(address, arguments, account)?;
    let stopping = program::stop_when_told(stopper);
    connections::serve(listener, routes, connections::capacity(), signal).await;
    stopping.abort();
    let worked = async { while workers.join_next().await.is_some() {} };
    if tokio::time::timeout(WORK_GRACE, worked).await.is_err() {
        fhaim_files::tell_line(format_args!(
            "note: some work was interrupted: the next `fhaim up` resumes it"
        ));
    }
    Ok(())
}

/// Locks the data folder, so that no other process uses it. The lock lasts as long as the returned file.
fn lock(data: &Path) -> Result<fs::File, Error> {
    let path = data.join("lock");
    let file = fs::File::create(&path).map_err(|source| Error::Write {
        path: path.clone(),
        source,
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Error::Usage(format!(
            "{} is in use by another `fhaim up`: stop that process, or name another folder with \
             --data-dir",
            data.display()
        ))),
        Err(fs::TryLockError::Error(source)) => Err(Error::Write { path, source }),
    }
}

/// Starts a service's worker, and adds its routes under its name.
fn start<P: Program>(
    routes: Router,
    state: P,
    workers: &mut JoinSet<()>,
    signal: &Shutdown,
) -> Router {
    workers.spawn(state.clone().work(signal.clone()));
    routes.nest(&format!("/{}", P::SERVICE), state.router())
}

/// Starts an optional service; see [`start`].
fn start_some<P: Program>(
    routes: Router,
    state: Option<P>,
    workers: &mut JoinSet<()>,
    signal: &Shutdown,
) -> Router {
    match state {
        Some(state) => start(routes, state, workers, signal),
        None => routes,
    }
}

/// Opens a service that shares keys with the crypto service, if it runs.
async fn keyshare<const N: usize>(
    all: &[Service],
    common: &impl Fn(Service) -> Result<Common, Error>,
) -> Result<Option<fhaim_crypto::Keyshare<N>>, Error> {
    let service = fhaim_crypto::Keyshare::<N>::SERVICE;
    if !all.contains(&service) {
        return Ok(None);
    }
    let config = fhaim_crypto::Config::from(common(service)?);
    Ok(Some(fhaim_crypto::Keyshare::open(&config).await?))
}

/// Returns the configuration for a service's data in an existing data folder of `fhaim up`, for work without serving.
pub fn stored(data: &Path, service: Service) -> Result<Common, Error> {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let path = data.join(service.as_str());
    match path.try_exists() {
        Ok(true) => common(data, service, &ALL, nowhere, 1),
        Ok(false) => Err(Error::Usage(format!(
            "{} is not a data folder of `fhaim up`",
            data.display()
        ))),
        Err(source) => Err(Error::Read { path, source }),
    }
}

fn folder(data: &Path, service: Service) -> PathBuf {
    data.join(service.as_str())
}

fn common(
    data: &Path,
    service: Service,
    all: &[Service],
    address: SocketAddr,
    lease_seconds: u64,
) -> Result<Common, Error> {
    let folder = folder(data, service);
    make_folder(&folder)?;
    let folder = folder.canonicalize().map_err(|source| Error::Read {
        path: folder.clone(),
        source,
    })?;
    let key = folder.join("sealing.key");
    if !key.exists() {
        write_secret(&key, Sealer::new_key().map_err(Failure::from)?.as_bytes())?;
    }
    // If the process listens on all addresses, the services use the loopback address for each other.
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip.to_string(),
        _ => "127.0.0.1".to_owned(),
    };
    let base = |service: Service| format!("http://{ip}:{}/{service}", address.port());
    let peers = all.iter().copied().filter(|&peer| peer != service);
    Ok(Common {
        listen: address,
        database: Database {
            url: format!("sqlite://{}", folder.join("store.db").display()),
            connections: 8,
        },
        blobs: Blobs {
            url: format!("file://{}", folder.join("blobs").display()),
            endpoint: None,
            region: None,
        },
        sealing: Sealing {
            file: Some(key),
            variable: None,
        },
        peers: peers
            .map(|peer| (peer, base(peer)))
            .collect::<BTreeMap<_, _>>(),
        log: Log::default(),
        workers: 2,
        lease_seconds,
        orphan_seconds: 3600,
        reserve_bytes: 64 << 20,
        attempt_seconds: 24 * 3600,
    })
}

/// Creates the first account, and stores its password in the data folder.
///
/// Returns the path of the password, or `None` if the account exists and its password is not in the folder.
async fn first_account(
    arguments: &UpArguments,
    generation: &fhaim_generation::State,
) -> Result<Option<PathBuf>, Error> {
    let path = arguments.data_dir.join("first-account");
    if path.exists() {
        return Ok(Some(path));
    }
    let password = match std::env::var("FHAIM_PASSWORD") {
        Ok(password) => password,
        // A sealing key is a text with 256 random bits, so a part of it is a good password.
        Err(_) => Sealer::new_key().map_err(Failure::from)?[..24].to_owned(),
    };
    let credentials = Credentials {
        email: arguments.email.clone(),
        password: Secret(password.clone()),
    };
    match generation.create_account(credentials).await {
        Ok(_) => {}
        Err(failure) if failure.kind() == ProblemKind::Conflict => return Ok(None),
        Err(failure) => return Err(failure.into()),
    }
    let text = format!("{}\n{password}\n", arguments.email);
    write_secret(&path, text.as_bytes())?;
    Ok(Some(path))
}

fn say(
    address: SocketAddr,
    arguments: &UpArguments,
    account: Option<PathBuf>,
) -> Result<(), Error> {
    let mut text = format!(
        "fhaim is up at http://{address}, its data in {}\n",
        arguments.data_dir.display()
    );
    if let Some(path) = account {
        text.push_str(&format!(
            "first account: {} (its password is in {})\n  \
             FHAIM_PASSWORD=$(tail -1 {}) fhaim account login --server http://{address} --email {}\n",
            arguments.email,
            path.display(),
            path.display(),
            arguments.email
        ));
    }
    output::print(&text)
}

/// Creates a folder that only its owner can access, and its parents.
pub fn make_folder(path: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

/// Writes a new file that only its owner can read.
pub fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_folder_in_use_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        let refused = lock(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("another `fhaim up`"), "{refused}");
        drop(held);
        assert!(lock(folder.path()).is_ok());
    }
}
