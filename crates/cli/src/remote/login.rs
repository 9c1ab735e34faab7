//! Signing in, and what is kept of it: a folder readable by its owner alone.

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
};

use fhaim_api::account::{Credentials, Secret};
use fhaim_sdk::{Client, Endpoints, Login};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::args::LoginArguments;
use crate::{error::Error, output};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    endpoints: Endpoints,
    login: Login,
}

/// The folder of the login and of uploads under way.
fn folder() -> Result<PathBuf, Error> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let folder = of("FHAIM_CONFIG_DIR")
        .or_else(|| Some(of("XDG_CONFIG_HOME")?.join("fhaim")))
        .or_else(|| Some(of("HOME")?.join(".config/fhaim")));
    folder.ok_or_else(|| Error::Usage("set FHAIM_CONFIG_DIR: there is no home folder".to_owned()))
}

fn make_folder() -> Result<PathBuf, Error> {
    let path = folder()?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&path).map_err(|source| Error::Write {
        path: path.clone(),
        source,
    })?;
    Ok(path)
}

/// Where the record of an upload under way is.
pub fn journal(dataset: Uuid) -> Result<PathBuf, Error> {
    Ok(make_folder()?.join(format!("{dataset}.upload")))
}

fn keep(path: &Path, kept: &Kept) -> Result<(), Error> {
    let refuse = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    let text = Zeroizing::new(output::to_json(kept)?);
    // A temporary file is its owner's alone; renamed, the old login is gone at once or not at all.
    let parent = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(parent).map_err(refuse)?;
    file.write_all(text.as_bytes()).map_err(refuse)?;
    file.persist(path).map_err(|error| refuse(error.error))?;
    Ok(())
}

/// A client with the login that was kept; whenever it changes it is kept again.
pub fn client() -> Result<Client, Error> {
    let path = folder()?.join("login.json");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => Zeroizing::new(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(fhaim_sdk::Error::SignedOut.into());
        }
        Err(source) => return Err(Error::Read { path, source }),
    };
    let kept: Kept = serde_json::from_str(&text).map_err(|error| Error::Content {
        path: path.clone(),
        problem: error.to_string(),
    })?;
    let client = keeping(Client::new(kept.endpoints)?, path);
    Ok(client.with_login(kept.login))
}

fn keeping(client: Client, path: PathBuf) -> Client {
    let endpoints = client.endpoints().clone();
    client.on_login(move |login| {
        let kept = Kept {
            endpoints: endpoints.clone(),
            login: login.clone(),
        };
        if let Err(error) = keep(&path, &kept) {
            eprintln!("note: the login was not kept: {error}");
        }
    })
}

/// `fhaim login`.
pub async fn login(arguments: &LoginArguments) -> Result<(), Error> {
    let behind = Endpoints::behind(&arguments.server);
    let endpoints = Endpoints {
        generation: arguments.generation.clone().unwrap_or(behind.generation),
        computation: arguments.computation.clone().unwrap_or(behind.computation),
        crypto: arguments.crypto.clone().unwrap_or(behind.crypto),
    };
    let path = make_folder()?.join("login.json");
    let client = keeping(Client::new(endpoints)?, path);
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

/// `fhaim logout`.
pub async fn logout() -> Result<(), Error> {
    client()?.sign_out().await?;
    let path = folder()?.join("login.json");
    std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })
}

fn password() -> Result<Secret, Error> {
    if let Ok(password) = std::env::var("FHAIM_PASSWORD") {
        return Ok(Secret(password));
    }
    if !std::io::stdin().is_terminal() {
        let reason = "there is no terminal to ask for the password: set FHAIM_PASSWORD";
        return Err(Error::Usage(reason.to_owned()));
    }
    let asked = rpassword::prompt_password("Password: ");
    asked.map(Secret).map_err(|source| Error::Read {
        path: PathBuf::from("the terminal"),
        source,
    })
}
