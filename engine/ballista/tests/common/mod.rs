//! Shared support for the tests of the programs: processes, and certificates of a test authority.

#![allow(clippy::unwrap_used, dead_code)] // helpers outside #[test] functions; no test needs all of them

use fhaim_computation::engine::Certificates;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A process that is killed when dropped.
pub struct Process {
    pub child: Child,
    log: PathBuf,
}

impl Process {
    pub fn start(program: &str, folder: &Path, name: &str, config: &str) -> Self {
        let path = folder.join(format!("{name}.toml"));
        fs::write(&path, config).unwrap();
        let log = folder.join(format!("{name}.log"));
        let child = Command::new(program)
            .arg("--config")
            .arg(path)
            .env("RAYON_NUM_THREADS", "1")
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A certificate authority with its files in a folder.
pub struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        fs::write(folder.join("authority.pem"), issuer.as_ref().pem()).unwrap();
        Self {
            folder: folder.to_owned(),
            issuer,
        }
    }

    /// Issues a certificate for a program with the host name `name`, and its key.
    pub fn issue(&self, name: &str) -> Certificates {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let at = |what: &str| self.folder.join(format!("{name}.{what}"));
        fs::write(at("pem"), certificate.pem()).unwrap();
        fs::write(at("key"), key.serialize_pem()).unwrap();
        Certificates {
            authority: self.folder.join("authority.pem"),
            certificate: at("pem"),
            key: at("key"),
        }
    }
}

/// Returns the section `[tls]` of a configuration.
pub fn section(files: &Certificates) -> String {
    format!(
        "[tls]\nauthority = \"{}\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
        files.authority.display(),
        files.certificate.display(),
        files.key.display()
    )
}

/// Returns a scheduler's configuration.
pub fn scheduler(port: u16, files: &Certificates) -> String {
    format!(
        "listen = \"127.0.0.1:{port}\"\nname = \"127.0.0.1\"\nexecutor_timeout_seconds = 6\n{}",
        section(files)
    )
}

/// Returns an executor's configuration, for one task at a time with `memory` bytes.
pub fn executor(
    port: u16,
    scheduler: u16,
    (memory, work, blobs): (usize, &Path, &Path),
    files: &Certificates,
) -> String {
    format!(
        "listen = \"127.0.0.1:{port}\"\nscheduler_host = \"127.0.0.1\"\nscheduler_port = {scheduler}\n\
         work = \"{}\"\ntasks = 1\nmemory_bytes = {memory}\nheartbeat_seconds = 1\n{}\
         [blobs]\nurl = \"file://{}\"\n",
        work.display(),
        section(files),
        blobs.display(),
    )
}
