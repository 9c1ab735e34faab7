//! Links: a finished job's result for other accounts, and their view of it.

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

/// Separates the address of the services from a link's identifier, as on the page.
const PATH: &str = "/shared/";

/// The address of a link: `SERVER/shared/LINK#SECRET`. Programs that follow an address do not send the part after the
/// `#` to a server.
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
    /// Returns the address of a link that was just made at these services.
    pub fn new(endpoints: &Endpoints, made: &LinkMade) -> Self {
        Self {
            server: endpoints.origin().to_owned(),
            id: made.link.id,
            secret: made.secret.clone(),
        }
    }

    /// Parses an address.
    ///
    /// # Errors
    /// [`Error::NoLink`] for any other text. The error does not quote the text.
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

    /// Returns the whole address, including its secret.
    pub fn text(&self) -> Secret {
        let Self { server, id, secret } = self;
        Secret(format!("{server}{PATH}{id}#{}", secret.0))
    }

    /// The link's identifier.
    pub fn id(&self) -> Uuid {
        self.id
    }
}

impl Client {
    fn links_address(&self, job: Uuid, rest: &str) -> String {
        format!("{}/v1/jobs/{job}/links{rest}", self.endpoints().generation)
    }

    /// Creates a link to a finished job's result under a new identifier. It is valid for `days` days, or without `days`
    /// until it is revoked. Only the answer contains its secret. Repeating the call before the link is opened returns
    /// another secret.
    ///
    /// # Errors
    /// The errors of the service.
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

    /// Returns the links to a job's result, newest first.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn links(&self, job: Uuid) -> Result<Vec<Link>, Error> {
        Ok(self.list(&self.links_address(job, "")).await?.items)
    }

    /// Revokes a link, which then no longer opens.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn revoke_link(&self, job: Uuid, id: Uuid) -> Result<(), Error> {
        let address = self.links_address(job, &format!("/{id}"));
        self.call(Method::DELETE, &address, Body::Empty).await?;
        Ok(())
    }

    /// Returns the data card of the result that another account's link opens.
    ///
    /// # Errors
    /// [`Error::OtherServer`], before anything is sent. Also the errors of the service.
    pub async fn open(&self, link: &LinkAddress) -> Result<LinkedResult, Error> {
        let (address, headers) = self.linked(link, "")?;
        self.json_with(Method::GET, &address, Body::Empty, &headers)
            .await
    }

    /// Draws a synthetic table from the result that another account's link opens, and writes it as it arrives. Returns
    /// the number of bytes.
    ///
    /// # Errors
    /// [`Error::OtherServer`], before anything is sent. Also the errors of the service, a broken connection, or a
    /// failed write.
    pub async fn download_linked(
        &self,
        link: &LinkAddress,
        draw: &Draw,
        writer: &mut (dyn tokio::io::AsyncWrite + Send + Unpin),
    ) -> Result<u64, Error> {
        let rest = format!("/synthetic{}", query(draw));
        let (address, headers) = self.linked(link, &rest)?;
        let response = self.call_with(Method::GET, &address, Body::Empty, &headers);
        write(&address, response.await?, writer).await
    }

    /// Returns the address and the headers of a call with a link. The link's secret is sent only to its own server.
    fn linked(&self, link: &LinkAddress, rest: &str) -> Result<(String, HeaderMap), Error> {
        if link.server != self.endpoints().origin() {
            return Err(Error::OtherServer(link.server.clone()));
        }
        let address = format!("{}/v1/links/{}{rest}", self.endpoints().generation, link.id);
        let mut headers = HeaderMap::new();
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
    fn link_address_round_trips_through_text() {
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
    fn invalid_link_is_rejected_without_quoting_it() {
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
    async fn link_secret_is_not_sent_to_another_server() {
        let client = Client::new(Endpoints::behind("https://fhaim.example")).unwrap();
        let elsewhere = LinkAddress::parse(&format!("https://evil.example/shared/{ID}#aB"));
        let refused = client.open(&elsewhere.unwrap()).await.unwrap_err();
        assert!(matches!(refused, Error::OtherServer(server) if server == "https://evil.example"));
        let here = LinkAddress::parse(&format!("https://fhaim.example/shared/{ID}#aB"));
        let asked = client.open(&here.unwrap()).await.unwrap_err();
        assert!(matches!(asked, Error::SignedOut), "{asked}");
    }
}
