//! Runs the services as processes, and the command against them.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Backing,
    capture::{Capture, Message},
    port::Port,
    storage::{DataCopy, Storage},
    tables, until,
};

/// Names of the three basic services. A service's number is its index here.
pub const NAMES: [&str; 3] = ["generation", "computation", "crypto"];

/// Number of the second computation service, if the [`ServiceOptions`] have one.
pub const WITNESS: usize = NAMES.len();

/// Number of the first service that shares keys with the crypto service, if the [`ServiceOptions`] have any.
pub const KEYSHARE: usize = WITNESS + 1;

/// Names of all services that a test can have.
const ALL: [&str; 6] = [
    NAMES[0],
    NAMES[1],
    NAMES[2],
    "witness",
    "keyshare1",
    "keyshare2",
];

/// Returns the name of a service.
pub fn name_of(service: usize) -> &'static str {
    ALL[service]
}

/// Name of the holder, who runs the command.
pub const HOLDER: &str = "holder";

/// Password of all users.
pub const PASSWORD: &str = "correct horse battery";

/// An intermediary between two parties, such as a proxy.
pub trait Between: Send + Sync {
    /// Returns the address at which the caller `from` reaches the service `to`, whose own address is `base`.
    fn link(&self, from: &'static str, to: &'static str, base: &str) -> String;
}

/// How services are started and reached.
pub struct ServiceOptions {
    /// Path of the `fhaim` program.
    pub program: PathBuf,
    /// Intermediary on every link, between services and from the command.
    pub between: Option<Arc<dyn Between>>,
    /// Data folders of the services, if they are not below [`Services::folder`].
    pub homes: Option<[PathBuf; 3]>,
    /// Environment variables of each service's process.
    pub variables: [Vec<(String, String)>; 3],
    /// Whether there is a second computation service.
    pub witness: bool,
    /// Number of key services. Two or more of them can share keys.
    pub keys: usize,
}

impl ServiceOptions {
    /// Returns options for a program, with three services and direct links between them.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            between: None,
            homes: None,
            variables: Default::default(),
            witness: false,
            keys: 1,
        }
    }
}

/// Between three and six services, each in its own process.
pub struct Services {
    /// Folder in which the command runs. It has a table of 300 records, `t.csv`, and its schema.
    pub folder: TempDir,
    ports: [Port; ALL.len()],
    children: [Mutex<Option<Child>>; ALL.len()],
    storage: [Option<Storage>; ALL.len()],
    setting: ServiceOptions,
    capture: Option<Arc<Capture>>,
}

impl Services {
    /// Starts the three services as processes of a program, and waits until they are ready.
    pub fn start(program: impl Into<PathBuf>, backing: &Backing) -> Self {
        Self::start_in(backing, ServiceOptions::new(program))
    }

    /// Like [`Services::start`], with a recording proxy on every link, between services and from the command.
    pub fn start_captured(program: impl Into<PathBuf>, backing: &Backing) -> Self {
        Self::start_captured_in(backing, ServiceOptions::new(program))
    }

    /// Like [`Services::start_captured`], with options. Replaces their intermediary.
    pub fn start_captured_in(backing: &Backing, setting: ServiceOptions) -> Self {
        let capture = Arc::new(Capture::default());
        let between: Arc<dyn Between> = capture.clone();
        let setting = ServiceOptions {
            between: Some(between),
            ..setting
        };
        let mut services = Self::start_in(backing, setting);
        services.capture = Some(capture);
        services
    }

    /// Like [`Services::start`], with options.
    pub fn start_in(backing: &Backing, setting: ServiceOptions) -> Self {
        let mut services = Self {
            folder: TempDir::new().unwrap(),
            ports: std::array::from_fn(|_| Port::take()),
            children: Default::default(),
            storage: Default::default(),
            setting,
            capture: None,
        };
        tables::write_small(services.folder.path(), 300);
        let numbers: Vec<usize> = services.numbers().collect();
        for service in numbers {
            services.configure(service, backing);
        }
        for service in services.numbers() {
            services.launch(service);
        }
        services.wait_until_ready();
        services
    }

    /// Returns the numbers of the services.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        let witness = Some(WITNESS).filter(|_| self.setting.witness);
        let keyshares = KEYSHARE..KEYSHARE + self.setting.keys - 1;
        (0..NAMES.len()).chain(witness).chain(keyshares)
    }

    /// Returns the folder of a service's configuration, database and blobs.
    pub fn home(&self, service: usize) -> PathBuf {
        self.folder.path().join(name_of(service))
    }

    /// Returns the log of a service.
    pub fn log(&self, service: usize) -> String {
        fs::read_to_string(self.log_path(service)).unwrap_or_default()
    }

    /// Returns the path of a service's log. It is outside the service's folder, so that a test that restores or fills
    /// that folder does not affect the log.
    fn log_path(&self, service: usize) -> PathBuf {
        self.folder.path().join(format!("{}.log", name_of(service)))
    }

    fn configure(&mut self, service: usize, backing: &Backing) {
        let home = self.home(service);
        let disk = self
            .setting
            .homes
            .as_ref()
            .and_then(|homes| homes.get(service));
        match disk {
            Some(disk) => std::os::unix::fs::symlink(disk, &home).unwrap(),
            None => fs::create_dir(&home).unwrap(),
        }
        let key: String = (0..64)
            .map(|i| char::from(b'a' + (i + service as u8) % 6))
            .collect();
        fs::write(home.join("sealing.key"), key).unwrap();
        let storage = Storage::new(backing, &home, disk.map(PathBuf::as_path));
        let (database, blobs) = (storage.database(), storage.blobs());
        self.storage[service] = Some(storage);
        let peers: String = self
            .numbers()
            .filter(|&peer| peer != service)
            .map(|peer| {
                let address = self.link(name_of(service), peer);
                format!("{} = \"{address}\"\n", name_of(peer))
            })
            .collect();
        let config = format!(
            "[common]\nlisten = \"{}\"\nlease_seconds = 1\n\
             [common.database]\nurl = \"{database}\"\n[common.blobs]\n{blobs}\n\
             [common.sealing]\nfile = \"{}/sealing.key\"\n[common.peers]\n{peers}\
             [common.log]\nfilter = \"warn\"\n{}",
            self.ports[service].address(),
            home.display(),
            limits(service),
        );
        fs::write(home.join("config.toml"), config).unwrap();
    }

    fn storage(&self, service: usize) -> &Storage {
        self.storage[service].as_ref().unwrap()
    }

    /// Returns the address of a service's database.
    pub fn database(&self, service: usize) -> String {
        self.storage(service).database()
    }

    /// Copies the data of a service that is not running.
    pub fn copy(&self, service: usize) -> DataCopy {
        self.storage(service).copy()
    }

    /// Replaces the data of a service that is not running with a copy.
    pub fn set_back(&self, service: usize, copy: &DataCopy) {
        self.storage(service).set_back(copy);
    }

    fn base(&self, service: usize) -> String {
        format!("http://{}", self.ports[service].address())
    }

    /// Returns the address at which `from` reaches a service.
    fn link(&self, from: &'static str, service: usize) -> String {
        let base = self.base(service);
        match &self.setting.between {
            Some(between) => between.link(from, name_of(service), &base),
            None => base,
        }
    }

    /// Returns the recorded messages between the parties. The list is empty without recording proxies.
    pub fn messages(&self) -> Vec<Message> {
        self.capture
            .as_ref()
            .map_or_else(Vec::new, |capture| capture.messages())
    }

    /// Starts a service that is not running.
    pub fn launch(&self, service: usize) {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path(service))
            .unwrap();
        let variables = self.setting.variables.get(service).into_iter().flatten();
        let number = service.saturating_sub(WITNESS).to_string();
        let which = match service {
            KEYSHARE.. => vec!["keyshare", "--number", &number],
            _ => vec![name_of(service)],
        };
        let child = Command::new(&self.setting.program)
            .arg("serve")
            .args(which)
            .arg("--config")
            .arg(self.home(service).join("config.toml"))
            .envs(variables.cloned())
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        *self.children[service].lock().unwrap() = Some(child);
    }

    /// Kills a service with SIGKILL.
    pub fn kill(&self, service: usize) {
        if let Some(mut child) = self.children[service].lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends a signal to a running service.
    pub fn signal(&self, service: usize, signal: &str) {
        if let Some(child) = &*self.children[service].lock().unwrap() {
            let id = child.id().to_string();
            let sent = Command::new("kill").args(["-s", signal, &id]).status();
            assert!(sent.unwrap().success(), "{signal}");
        }
    }

    /// Returns the exit status of a service that ended without [`Services::kill`].
    pub fn ended(&self, service: usize) -> Option<ExitStatus> {
        let mut child = self.children[service].lock().unwrap();
        child.as_mut()?.try_wait().unwrap()
    }

    /// Checks whether a service answers that it is ready.
    pub fn is_ready(&self, service: usize) -> bool {
        readiness(&self.ports[service].address()).starts_with("HTTP/1.1 200")
    }

    /// Returns the time of a service's clock in seconds since 1970, if the service answers.
    pub fn clock(&self, service: usize) -> Option<i64> {
        let answer = readiness(&self.ports[service].address());
        let date = answer
            .lines()
            .find_map(|line| line.strip_prefix("date: "))?;
        let read = Command::new("date")
            .args(["+%s", "-d", date])
            .output()
            .ok()?;
        String::from_utf8(read.stdout).ok()?.trim().parse().ok()
    }

    /// Waits until all services are ready.
    pub fn wait_until_ready(&self) {
        for service in self.numbers() {
            let name = name_of(service);
            until(|| {
                // Otherwise another process that answers at this address could be mistaken for the service.
                if let Some(status) = self.ended(service) {
                    panic!("{name} ended, {status}: {}", self.log(service));
                }
                match self.is_ready(service) {
                    true => Ok(()),
                    false => Err(format!("{name} is not ready: {}", self.log(service))),
                }
            });
        }
    }

    /// Runs the command with the configuration of a user.
    pub fn command(&self, user: &str, arguments: &[&str]) -> Output {
        let program = Command::new(&self.setting.program);
        self.prepare(program, user, arguments).output().unwrap()
    }

    /// Returns another program that is given the command line of [`Services::command`] and runs it.
    pub fn command_under(&self, mut other: Command, user: &str, arguments: &[&str]) -> Command {
        other.arg(&self.setting.program);
        self.prepare(other, user, arguments)
    }

    fn prepare(&self, mut program: Command, user: &str, arguments: &[&str]) -> Command {
        program
            .args(arguments)
            .stdin(Stdio::null())
            .current_dir(self.folder.path())
            .env_remove("FHAIM_MEMORY_DIR")
            .env("FHAIM_CONFIG_DIR", self.folder.path().join(user))
            .env("FHAIM_PASSWORD", PASSWORD);
        program
    }

    /// Runs the command, which must succeed, and returns its standard output.
    pub fn run(&self, user: &str, arguments: &[&str]) -> String {
        succeeded(&self.command(user, arguments))
    }

    /// Runs the command with `--json`, and returns its output.
    pub fn json(&self, user: &str, arguments: &[&str]) -> Value {
        let text = self.run(user, &[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap()
    }

    /// Creates an account for a new user and signs in.
    pub fn sign_up(&self, user: &str) {
        self.sign_up_at(user, &[0, 1, 2].map(|service| self.link(HOLDER, service)));
    }

    /// Signs in a user again, such as after a service has lost the session.
    pub fn sign_in(&self, user: &str) {
        succeeded(&self.try_sign_in(user));
    }

    /// Like [`Services::sign_in`], but may fail.
    pub fn try_sign_in(&self, user: &str) -> Output {
        self.login(
            user,
            &[],
            &[0, 1, 2].map(|service| self.link(HOLDER, service)),
        )
    }

    /// Like [`Services::sign_up`], for a user who reaches the services at these addresses.
    pub fn sign_up_at(&self, user: &str, bases: &[String; 3]) {
        succeeded(&self.login(user, &["--sign-up"], bases));
    }

    fn login(&self, user: &str, how: &[&str], bases: &[String; 3]) -> Output {
        let email = format!("{user}@example.org");
        let who = [&["account", "login", "--email", &email], how].concat();
        let [generation, computation, crypto] = bases;
        let at = [
            "--generation",
            generation,
            "--computation",
            computation,
            "--crypto",
            crypto,
        ];
        let second = self.link(HOLDER, WITNESS);
        let second = ["--witness", &second];
        let second = match self.setting.witness {
            true => &second[..],
            false => &[],
        };
        self.command(user, &[&who[..], &at[..], second].concat())
    }

    /// Creates a dataset and returns its identifier.
    pub fn create(&self, user: &str, more: &[&str]) -> String {
        let create = [
            "dataset",
            "create",
            "--schema",
            "t.schema.json",
            "--data",
            "t.csv",
        ];
        // Tests make several datasets over the same records.
        let yes: &[&str] = if more.contains(&"--yes") {
            &[]
        } else {
            &["--yes"]
        };
        let created = self.run(
            user,
            &[&create[..], &["--epsilon", "1"], yes, more].concat(),
        );
        created.trim().to_owned()
    }

    /// Creates a dataset, uploads it with a seeded ladder, and returns its identifier.
    pub fn dataset(&self, user: &str, more: &[&str]) -> String {
        let id = self.create(user, more);
        let upload = [
            "dataset", "upload", &id, "--data", "t.csv", "--seed", "5", "--yes",
        ];
        self.run(user, &upload);
        id
    }

    /// Returns a service's base address, for requests that the command does not make.
    pub fn address(&self, service: usize) -> String {
        self.base(service)
    }
}

/// Raises the limits on sign-ins, because all users of a test have the same address.
fn limits(service: usize) -> &'static str {
    match name_of(service) {
        "generation" => "[limits]\nsign_ins_per_address = 1000000\nsign_ins_per_email = 1000000\n",
        _ => "",
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        for service in self.numbers() {
            self.kill(service);
        }
        if std::thread::panicking() {
            for service in self.numbers() {
                eprintln!("--- {}\n{}", name_of(service), self.log(service));
            }
        }
    }
}

/// Returns the standard output of a command that must have succeeded.
fn succeeded(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns a service's response to a readiness request. It is empty if the service does not answer.
fn readiness(address: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return String::new();
    };
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    // A truncated response counts as not ready, so errors can be ignored.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.read_to_string(&mut answer);
    answer
}
