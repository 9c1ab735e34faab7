//! Links: a finished job's result for other accounts, and what one of those sees of it.

use fhaim_api::account::Secret;
use fhaim_api::job::Draw;
use fhaim_api::link::{LINK_HEADER, Link, LinkMade, LinkedResult, NewLink};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use std::fmt;
use uuid::Uuid;

use crate::client::Body;
use crate::job::{query, write};
use crate::{Client, Endpoints, Error};

/// Between where the services are and a link's identifier, as the page has it.
const PATH: &str = "/shared/";

/// A link as it is handed over: `SERVER/shared/LINK#SECRET`. What is behind the `#` is sent to no
/// server by those who follow addresses.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkAddress {
    server: String,
    id: Uuid,
    secret: Secret,
}

impl fmt::Debug for LinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkAddress({}{PATH}{})", self.server, self.id)
    }
}

impl LinkAddress {
    /// The address of a link that was just made at these services.
    pub fn new(endpoints: &Endpoints, made: &LinkMade) -> Self {
        Self {
            server: endpoints.origin().to_owned(),
            id: made.link.id,
            secret: made.secret.clone(),
        }
    }

    /// Reads an address.
    ///
    /// # Errors
    /// [`Error::NoLink`] for a text that is none; it is not repeated.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (address, secret) = text.trim().split_once('#').ok_or(Error::NoLink)?;
        let (server, id) = address.rsplit_once(PATH).ok_or(Error::NoLink)?;
        let is_secret = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if secret.is_empty() || !secret.chars().all(is_secret) {
            return Err(Error::NoLink);
        }
        Ok(Self {
            server: server.trim_end_matches('/').to_owned(),
            id: id.parse().map_err(|_| Error::NoLink)?,
            secret: Secret(secret.to_owned()),
        })
    }

    /// The whole address, with its secret.
    pub fn text(&self) -> Secret {
        let Self { server, id, secret } = self;
        Secret(format!("{server}{PATH}{id}#{}", secret.0))
    }

    /// Its identifier.
    pub fn id(&self) -> Uuid {
        self.id
    }
}

impl Client {
    fn links_address(&self, job: Uuid, rest: &str) -> String {
        format!("{}/v1/jobs/{job}/links{rest}", self.endpoints().generation)
    }

    /// Makes a link to a finished job's result under an identifier that is new, good for so many days
    /// or until it is revoked; its secret is in the answer and nowhere else. The same again, before the link was opened, gives another secret.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn create_link(
        &self,
        job: Uuid,
        id: Uuid,
        name: &str,
        days: Option<u16>,
    ) -> Result<LinkMade, Error> {
        let body = Body::json(&NewLink {
            name: name.to_owned(),
            days,
        });
        let address = self.links_address(job, &format!("/{id}"));
        self.json(Method::PUT, &address, body).await
    }

    /// The links to a job's result, newest first.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn links(&self, job: Uuid) -> Result<Vec<Link>, Error> {
        self.list(&self.links_address(job, "")).await
    }

    /// Revokes a link: it opens nothing after.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn revoke_link(&self, job: Uuid, id: Uuid) -> Result<(), Error> {
        let address = self.links_address(job, &format!("/{id}"));
        self.call(Method::DELETE, &address, Body::Empty).await?;
        Ok(())
    }

    /// The data card of what another account's link opens.
    ///
    /// # Errors
    /// [`Error::OtherServer`] before anything is sent; what the service refuses.
    pub async fn open(&self, link: &LinkAddress) -> Result<LinkedResult, Error> {
        let (address, headers) = self.linked(link, "").await?;
        self.read(Method::GET, &address, &Body::Empty, headers)
            .await
    }

    /// Draws a synthetic table of what another account's link opens and writes it as it comes; the
    /// number of bytes.
    ///
    /// # Errors
    /// [`Error::OtherServer`] before anything is sent; what the service refuses; a connection that
    /// breaks off; a writer that fails.
    pub async fn download_linked(
        &self,
        link: &LinkAddress,
        draw: &Draw,
        writer: &mut (dyn tokio::io::AsyncWrite + Send + Unpin),
    ) -> Result<u64, Error> {
        let rest = format!("/synthetic{}", query(draw));
        let (address, headers) = self.linked(link, &rest).await?;
        let response = self.send(Method::GET, &address, &Body::Empty, headers);
        write(&address, response.await?, writer).await
    }

    /// The address and the headers of a call by a link. Its secret is shown to the server that it is
    /// of and to no other.
    async fn linked(&self, link: &LinkAddress, rest: &str) -> Result<(String, HeaderMap), Error> {
        if link.server != self.endpoints().origin() {
            return Err(Error::OtherServer(link.server.clone()));
        }
        let address = format!("{}/v1/links/{}{rest}", self.endpoints().generation, link.id);
        let mut headers = self.authorized(&address).await?;
        let mut value = HeaderValue::from_str(&link.secret.0).map_err(|_| Error::NoLink)?;
        value.set_sensitive(true);
        headers.insert(LINK_HEADER, value);
        Ok((address, headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0198c0de-0000-7000-8000-000000000001";

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for server in ["https://fhaim.example", "http://10.0.0.1:8081/shared/x"] {
            let text = format!("{server}/shared/{ID}#aB-_9");
            let link = LinkAddress::parse(&format!(" {text}\n")).unwrap();
            assert_eq!(
                (link.server.as_str(), link.text().0.as_str()),
                (server, &*text)
            );
            assert!(!format!("{link:?}").contains("aB-_9"));
        }
    }

    #[test]
    fn what_is_no_link_is_refused_without_being_repeated() {
        for wrong in [
            "",
            "https://fhaim.example/shared/x#aB",
            &format!("https://fhaim.example/{ID}#aB"),
            &format!("https://fhaim.example/shared/{ID}"),
            &format!("https://fhaim.example/shared/{ID}#"),
            &format!("https://fhaim.example/shared/{ID}#a b"),
            &format!("https://fhaim.example/shared/{ID}?key=aB#a\nb"),
        ] {
            let error = LinkAddress::parse(wrong).unwrap_err().to_string();
            assert!(
                error.contains("not a link") && !error.contains("aB"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_secret_is_shown_to_no_other_server() {
        let client = Client::new(Endpoints::behind("https://fhaim.example")).unwrap();
        let elsewhere = LinkAddress::parse(&format!("https://evil.example/shared/{ID}#aB"));
        let refused = client.open(&elsewhere.unwrap()).await.unwrap_err();
        assert!(matches!(refused, Error::OtherServer(server) if server == "https://evil.example"));
        let here = LinkAddress::parse(&format!("https://fhaim.example/shared/{ID}#aB"));
        let asked = client.open(&here.unwrap()).await.unwrap_err();
        assert!(matches!(asked, Error::SignedOut), "{asked}");
    }
}
