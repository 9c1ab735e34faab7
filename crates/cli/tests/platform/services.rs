//! Three services as processes, and the command against them.

use std::{
    fs,
    io::Read,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use super::capture::{Capture, Message};

pub const NAMES: [&str; 3] = ["generation", "computation", "crypto"];

/// The holder, who runs the command.
pub const HOLDER: &str = "holder";

/// A password for tests.
const PASSWORD: &str = "correct horse battery";

/// Where the services keep things.
#[derive(Clone, Debug)]
pub enum Backing {
    /// SQLite and folders.
    Local,
    /// A Postgres server (a database a service is made), and an S3 bucket if there is a server.
    Remote {
        postgres: String,
        s3_endpoint: Option<String>,
    },
}

/// Three services as processes of their own.
pub struct Services {
    pub folder: TempDir,
    ports: [u16; 3],
    children: [Option<Child>; 3],
    capture: Option<Capture>,
}

fn fhaim() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fhaim"))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Services {
    pub fn start(backing: &Backing) -> Self {
        Self::start_between(backing, None)
    }

    /// As [`Services::start`], with a proxy on every link, between services and from the command.
    pub fn start_captured(backing: &Backing) -> Self {
        Self::start_between(backing, Some(Capture::new()))
    }

    fn start_between(backing: &Backing, capture: Option<Capture>) -> Self {
        let mut services = Self {
            folder: TempDir::new().unwrap(),
            ports: [0; 3].map(|_| free_port()),
            children: [None, None, None],
            capture,
        };
        super::write_table(services.folder.path(), 300);
        for service in 0..3 {
            services.configure(service, backing);
        }
        for service in 0..3 {
            services.launch(service);
        }
        services.wait_until_ready();
        services
    }

    /// Folder of a service's configuration, database, blobs and log.
    pub fn home(&self, service: usize) -> PathBuf {
        self.folder.path().join(NAMES[service])
    }

    fn configure(&self, service: usize, backing: &Backing) {
        let home = self.home(service);
        fs::create_dir(&home).unwrap();
        let key: String = (0..64)
            .map(|i| char::from(b'a' + (i + service as u8) % 6))
            .collect();
        fs::write(home.join("sealing.key"), key).unwrap();
        let (database, blobs) = match backing {
            Backing::Local => (
                format!("sqlite://{}/store.db", home.display()),
                format!("url = \"file://{}/blobs\"", home.display()),
            ),
            Backing::Remote {
                postgres,
                s3_endpoint,
            } => (
                fresh_database(postgres),
                match s3_endpoint {
                    Some(endpoint) => format!(
                        "url = \"s3://fhaim/{}\"\nendpoint = \"{endpoint}\"\nregion = \"eu\"",
                        uuid::Uuid::new_v4()
                    ),
                    None => format!("url = \"file://{}/blobs\"", home.display()),
                },
            ),
        };
        let peers: String = (0..3)
            .filter(|&peer| peer != service)
            .map(|peer| {
                let address = self.link(NAMES[service], peer);
                format!("{} = \"{address}\"\n", NAMES[peer])
            })
            .collect();
        let config = format!(
            "[common]\nlisten = \"127.0.0.1:{}\"\nlease_seconds = 1\n\
             [common.database]\nurl = \"{database}\"\n[common.blobs]\n{blobs}\n\
             [common.sealing]\nfile = \"{}/sealing.key\"\n[common.peers]\n{peers}\
             [common.log]\nfilter = \"warn\"\n",
            self.ports[service],
            home.display(),
        );
        fs::write(home.join("config.toml"), config).unwrap();
    }

    fn base(&self, service: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[service])
    }

    /// Where `from` reaches a service.
    fn link(&self, from: &'static str, service: usize) -> String {
        let base = self.base(service);
        match &self.capture {
            Some(capture) => capture.link(from, NAMES[service], &base),
            None => base,
        }
    }

    /// What passed between the parties.
    pub fn messages(&self) -> Vec<Message> {
        self.capture
            .as_ref()
            .map_or_else(Vec::new, Capture::messages)
    }

    /// Starts a service that is not running.
    pub fn launch(&mut self, service: usize) {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.home(service).join("log"))
            .unwrap();
        let child = fhaim()
            .args(["serve", NAMES[service], "--config"])
            .arg(self.home(service).join("config.toml"))
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.children[service] = Some(child);
    }

    /// Kills a service as `kill -9` does.
    pub fn kill(&mut self, service: usize) {
        if let Some(mut child) = self.children[service].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        for (service, name) in NAMES.iter().enumerate() {
            loop {
                let url = format!("127.0.0.1:{}", self.ports[service]);
                if ready(&url) {
                    break;
                }
                assert!(
                    Instant::now() < deadline,
                    "{name} is not ready: {}",
                    fs::read_to_string(self.home(service).join("log")).unwrap()
                );
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// The command, as the user of a folder.
    pub fn command(&self, user: &str, arguments: &[&str]) -> Output {
        fhaim()
            .args(arguments)
            .current_dir(self.folder.path())
            .env("FHAIM_CONFIG_DIR", self.folder.path().join(user))
            .env("FHAIM_PASSWORD", PASSWORD)
            .output()
            .unwrap()
    }

    /// The command, which must succeed; its standard output.
    pub fn run(&self, user: &str, arguments: &[&str]) -> String {
        let output = self.command(user, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// The command with `--json`.
    pub fn json(&self, user: &str, arguments: &[&str]) -> Value {
        let text = self.run(user, &[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap()
    }

    /// Signs a new user up and in.
    pub fn sign_up(&self, user: &str) {
        self.sign_up_at(user, &[0, 1, 2].map(|service| self.link(HOLDER, service)));
    }

    /// Signs a new user up and in, who finds the services at these addresses.
    pub fn sign_up_at(&self, user: &str, bases: &[String; 3]) {
        let email = format!("{user}@example.org");
        let who = ["login", "--email", &email, "--sign-up"];
        let [generation, computation, crypto] = bases;
        let at = [
            "--generation",
            generation,
            "--computation",
            computation,
            "--crypto",
            crypto,
        ];
        self.run(user, &[&who[..], &at[..]].concat());
    }

    /// Creates a dataset; its identifier.
    pub fn create(&self, user: &str, more: &[&str]) -> String {
        let create = [
            "dataset",
            "create",
            "--schema",
            "t.schema.json",
            "--data",
            "t.csv",
        ];
        let created = self.run(user, &[&create[..], &["--epsilon", "1"], more].concat());
        created.trim().to_owned()
    }

    /// Creates and uploads a dataset with a seeded ladder; its identifier.
    pub fn dataset(&self, user: &str, more: &[&str]) -> String {
        let id = self.create(user, more);
        let upload = ["dataset", "upload", &id, "--data", "t.csv", "--seed", "5"];
        self.run(user, &upload);
        id
    }

    /// Base address, for requests that the command does not make.
    pub fn address(&self, service: usize) -> String {
        self.base(service)
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        for service in 0..3 {
            self.kill(service);
        }
        if std::thread::panicking() {
            for (service, name) in NAMES.iter().enumerate() {
                let log = fs::read_to_string(self.home(service).join("log")).unwrap_or_default();
                eprintln!("--- {name}\n{log}");
            }
        }
    }
}

fn ready(address: &str) -> bool {
    use std::io::Write;
    let Ok(mut stream) = std::net::TcpStream::connect(address) else {
        return false;
    };
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

/// A new database on a Postgres server; its address.
fn fresh_database(server: &str) -> String {
    let name = format!("fhaim_{}", uuid::Uuid::new_v4().simple());
    let made = Command::new("psql")
        .args([server, "-q", "-c", &format!("CREATE DATABASE {name}")])
        .status()
        .unwrap();
    assert!(made.success(), "psql could not make a database");
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// Releases of a ledger as `fhaim ledger --json` and `fhaim run --ledger` print them, as far as
/// both have them: number, variance, cells.
pub fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
