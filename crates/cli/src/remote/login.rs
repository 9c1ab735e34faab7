//! Signs in and out, and stores the login, the ledgers' receipts and the keys of an account.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::Arc,
};

use fhaim_api::{
    Digest,
    account::{Credentials, Secret},
    keys::Receipt,
};
use fhaim_files::{home, note, note_once};
use fhaim_protocol::roster::HolderSigningKey;
use fhaim_sdk::{Client, Endpoints, Keeper, Login, ReceiptStore};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::args::{LoginArguments, LogoutArguments};
use crate::{error::Error, output, randomness::system};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    endpoints: Endpoints,
    login: Login,
}

/// Returns the folder of the login, of unfinished uploads, and of keys.
pub fn folder() -> Result<PathBuf, Error> {
    Ok(home::made(home::folder()?)?)
}

/// Returns the path of an unfinished upload's journal.
pub fn journal(folder: &Path, dataset: Uuid) -> PathBuf {
    folder.join(format!("{dataset}.upload"))
}

/// Returns the path of the key of a dataset's noise.
pub fn ladder(folder: &Path, dataset: Uuid) -> PathBuf {
    folder.join(format!("{dataset}.ladder"))
}

/// Reads a holder's signing key from the folder, and creates it if it does not exist.
pub fn signing_key(folder: &Path) -> Result<HolderSigningKey, Error> {
    let path = folder.join("holder.key");
    let _lock = home::lock(&path.with_extension("lock"))?;
    if let Some(kept) = home::read(&path)?.map(Zeroizing::new) {
        let bytes = <[u8; 32]>::try_from(kept.as_slice()).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| Error::Content {
            path,
            problem: "not a holder's key of 32 bytes: restore the file from a backup, or move it away to \
                      create a new key. Earlier datasets cannot be signed with a new key"
                .to_owned(),
        })?;
        return Ok(HolderSigningKey::from_bytes(&bytes));
    }
    let key = HolderSigningKey::random(&mut system()?);
    home::replace(&path, &*key.to_bytes())?;
    Ok(key)
}

fn keep(path: &Path, kept: &Kept) -> Result<(), Error> {
    let text = Zeroizing::new(output::to_json(kept)?);
    Ok(home::replace(path, text.as_bytes())?)
}

/// Returns a client with the stored login. The client stores the login again whenever it changes.
pub fn client() -> Result<Client, Error> {
    let path = home::folder()?.join("login.json");
    let kept = read(&path)?.ok_or(fhaim_sdk::Error::SignedOut)?;
    let client = keeping(kept.endpoints, path)?;
    Ok(client.with_login(kept.login))
}

fn read(path: &Path) -> Result<Option<Kept>, Error> {
    let Some(text) = home::read(path)?.map(Zeroizing::new) else {
        return Ok(None);
    };
    let kept = serde_json::from_slice(&text).map_err(|error| Error::Content {
        path: path.to_owned(),
        problem: error.to_string(),
    })?;
    Ok(Some(kept))
}

/// The file of the login, shared by commands that run at the same time.
struct LoginFile {
    path: PathBuf,
    endpoints: Endpoints,
}

impl Keeper for LoginFile {
    fn exclusive(&self) -> Box<dyn std::any::Any + Send> {
        // Without locks, commands that run at the same time may sign each other out.
        Box::new(home::lock(&self.path.with_extension("lock")))
    }

    fn load(&self) -> Option<Login> {
        Some(read(&self.path).ok()??.login)
    }

    fn keep(&self, login: &Login) {
        let kept = Kept {
            endpoints: self.endpoints.clone(),
            login: login.clone(),
        };
        if let Err(error) = keep(&self.path, &kept) {
            note(format_args!("cannot store the login: {error}"));
        }
    }
}

/// Stores the receipts of ledgers: one file per dataset, in a folder for each crypto service.
struct ReceiptFiles {
    folder: PathBuf,
}

impl ReceiptFiles {
    fn of(crypto: &str) -> Result<Self, Error> {
        // The digest is a valid name for any address, which may be long and contain any characters.
        let service = Digest::of(crypto.as_bytes()).to_string();
        let folder = home::memory()?.join("receipts").join(service);
        let folder = home::made(folder)?;
        Ok(Self { folder })
    }

    fn path(&self, dataset: Uuid) -> PathBuf {
        self.folder.join(format!("{dataset}.json"))
    }
}

impl ReceiptStore for ReceiptFiles {
    fn load(&self, dataset: Uuid) -> Option<Receipt> {
        let path = self.path(dataset);
        let text = home::read(&path).ok()??;
        serde_json::from_slice(&text)
            .inspect_err(|error| note(format_args!("{}: not a receipt: {error}", path.display())))
            .ok()
    }

    fn keep(&self, receipt: &Receipt) {
        let path = self.path(receipt.dataset);
        let keep = || -> Result<(), Error> {
            let _lock = home::lock(&path.with_extension("lock"))?;
            let known = self.load(receipt.dataset);
            if known.is_some_and(|known| known.height >= receipt.height) {
                return Ok(());
            }
            Ok(home::replace(&path, output::to_json(receipt)?.as_bytes())?)
        };
        if let Err(error) = keep() {
            note(format_args!("cannot store the ledger's receipt: {error}"));
        }
    }
}

fn keeping(endpoints: Endpoints, path: PathBuf) -> Result<Client, Error> {
    let receipts = ReceiptFiles::of(&endpoints.crypto)?;
    let client = Client::new(endpoints.clone())?
        .with_receipts(Arc::new(receipts))
        .with_waiting(Arc::new(|error| {
            // A service that is busy answers, and an upload is often repeated.
            if matches!(error, fhaim_sdk::Error::Unreachable { .. }) {
                note_once("a service does not answer: trying again for up to a minute");
            }
        }));
    Ok(client.with_keeper(Arc::new(LoginFile { path, endpoints })))
}

/// Returns a client that is signed in with an API key and stores only receipts.
pub async fn with_api_key(endpoints: Endpoints, api_key: Secret) -> Result<Client, Error> {
    let receipts = ReceiptFiles::of(&endpoints.crypto)?;
    let client = Client::new(endpoints)?.with_receipts(Arc::new(receipts));
    client.sign_in_with_key(api_key).await?;
    Ok(client)
}

/// Runs `fhaim account login`.
pub async fn login(arguments: &LoginArguments) -> Result<(), Error> {
    let behind = Endpoints::behind(&arguments.server);
    let endpoints = Endpoints {
        generation: arguments.generation.clone().unwrap_or(behind.generation),
        computation: arguments.computation.clone().unwrap_or(behind.computation),
        crypto: arguments.crypto.clone().unwrap_or(behind.crypto),
        witness: arguments.witness.clone().or(behind.witness),
    };
    let path = home::made(home::folder()?)?.join("login.json");
    let client = keeping(endpoints, path)?;
    if let Some(file) = &arguments.api_key_file {
        let text = std::fs::read_to_string(file).map_err(|source| Error::Read {
            path: file.clone(),
            source,
        })?;
        client
            .sign_in_with_key(Secret(text.trim().to_owned()))
            .await?;
    } else {
        let credentials = Credentials {
            email: arguments.email.clone().unwrap_or_default(),
            password: password()?,
        };
        if arguments.sign_up {
            client.sign_up(&credentials).await?;
        }
        client.sign_in(&credentials).await?;
    }
    let account = client.account().await?;
    output::print(&format!(
        "signed in at {} as {}\n",
        client.endpoints().generation,
        account.email
    ))
}

/// Runs `fhaim account logout`.
pub async fn logout(arguments: &LogoutArguments) -> Result<(), Error> {
    let client = client()?;
    if arguments.everywhere {
        client.sign_out_everywhere().await?;
    }
    client.sign_out().await?;
    forget()
}

/// Deletes the stored login.
pub fn forget() -> Result<(), Error> {
    let path = home::folder()?.join("login.json");
    std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })
}

/// Reads the account's password.
pub fn password() -> Result<Secret, Error> {
    secret("FHAIM_PASSWORD", "Password: ")
}

/// Returns the value of an environment variable, or else asks at the terminal without echo.
pub fn secret(variable: &str, prompt: &str) -> Result<Secret, Error> {
    if let Ok(secret) = std::env::var(variable) {
        return Ok(Secret(secret));
    }
    if !std::io::stdin().is_terminal() {
        let reason = format!("cannot ask for the password without a terminal: set {variable}");
        return Err(Error::Usage(reason));
    }
    let asked = rpassword::prompt_password(prompt);
    asked.map(Secret).map_err(|source| Error::Read {
        path: PathBuf::from("the terminal"),
        source,
    })
}
