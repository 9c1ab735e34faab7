//! Who is who between scheduler, executors and the computation service: TLS, with a certificate on both sides of every
//! connection, all of one authority.
//!
//! Whoever listens refuses a client without such a certificate; whoever connects refuses a server whose certificate
//! lacks the name that it was reached by. Ballista writes some of its addresses as `http://`, and tonic speaks in the
//! clear to those whatever certificates it was given: [`Identity::secured`] writes them anew, for every connection.

use crate::config::Trouble;
use ballista_core::extension::EndpointOverrideFn;
use ballista_core::utils::{GrpcClientConfig, create_grpc_client_endpoint};
use fhaim_computation::engine::Certificates;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Server, ServerTlsConfig};

/// Seconds between two signs of life on a connection that is idle.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// A program's certificate and key, and the authority that it knows others by.
#[derive(Clone)]
pub struct Identity {
    server: ServerTlsConfig,
    client: ClientTlsConfig,
}

/// Without the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads what a configuration names.
    ///
    /// # Errors
    /// [`Trouble::Unreadable`]; [`Trouble::Tls`] for files that hold no certificate, or a key that is not the
    /// certificate's.
    pub fn read(files: &Certificates) -> Result<Self, Trouble> {
        let authority = Certificate::from_pem(pem(&files.authority)?);
        let (certificate, key) = (pem(&files.certificate)?, pem(&files.key)?);
        let own = tonic::transport::Identity::from_pem(certificate, key);
        let identity = Self {
            server: ServerTlsConfig::new()
                .identity(own.clone())
                .client_ca_root(authority.clone()),
            client: ClientTlsConfig::new()
                .identity(own)
                .ca_certificate(authority),
        };
        // Both are parsed here, so that a program with other files does not start.
        identity.server()?;
        let trial = identity.secured(Endpoint::from_static("https://localhost"));
        trial.map_err(|error| Trouble::Tls(error.to_string()))?;
        Ok(identity)
    }

    /// A server that takes whoever has a certificate of the authority, and nobody else.
    ///
    /// # Errors
    /// [`Trouble::Tls`] for certificates or keys that are none.
    pub fn server(&self) -> Result<Server, Trouble> {
        let server = Server::builder()
            .tcp_nodelay(true)
            .http2_keepalive_interval(Some(KEEP_ALIVE))
            .tls_config(self.server.clone());
        server.map_err(|error| Trouble::Tls(cause(&error)))
    }

    /// The endpoint with TLS, whatever its address begins with.
    ///
    /// # Errors
    /// An address without a host; certificates or keys that are none.
    pub fn secured(&self, endpoint: Endpoint) -> Result<Endpoint, Box<dyn Error + Send + Sync>> {
        let uri = endpoint.uri();
        let endpoint = match (uri.scheme_str(), uri.authority()) {
            (Some("https"), _) => endpoint,
            (_, Some(authority)) => {
                let usual = GrpcClientConfig::default();
                create_grpc_client_endpoint(format!("https://{authority}"), Some(&usual))?
            }
            (_, None) => return Err(format!("{uri} names no host").into()),
        };
        let secured = endpoint.tls_config(self.client.clone());
        secured.map_err(|error| cause(&error).into())
    }

    /// [`Identity::secured`], as Ballista asks for it.
    pub fn everywhere(&self) -> EndpointOverrideFn {
        let identity = self.clone();
        Arc::new(move |endpoint| identity.secured(endpoint))
    }
}

fn pem(path: &Path) -> Result<Vec<u8>, Trouble> {
    std::fs::read(path).map_err(|source| Trouble::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// What is behind an error: tonic's own say "transport error".
fn cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
