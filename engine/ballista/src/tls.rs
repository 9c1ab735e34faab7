//! Mutual TLS between scheduler, executors and the computation service. Both sides of every connection have a
//! certificate of the same authority.
//!
//! Servers refuse clients without such a certificate. Clients refuse servers whose certificate lacks the host name of
//! the connection. Ballista writes some of its addresses as `http://`, and tonic connects to those in the clear, even
//! with certificates. Therefore [`Identity::secured`] rewrites the address of every connection.

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

/// Interval between keep-alive messages on an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// A program's certificate and key, and the authority that certifies the others.
#[derive(Clone)]
pub struct Identity {
    server: ServerTlsConfig,
    client: ClientTlsConfig,
}

/// Does not show the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads the files that a configuration names.
    ///
    /// # Errors
    /// [`Trouble::Unreadable`] for a file that cannot be read. [`Trouble::Tls`] for a file without a certificate, or a
    /// key that does not belong to the certificate.
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
        // Parse both here, so that a program with invalid files does not start.
        identity.server()?;
        let trial = identity.secured(Endpoint::from_static("https://localhost"));
        trial.map_err(|error| Trouble::Tls(error.to_string()))?;
        Ok(identity)
    }

    /// Returns a server that accepts only clients with a certificate of the authority.
    ///
    /// # Errors
    /// [`Trouble::Tls`] for invalid certificates or keys.
    pub fn server(&self) -> Result<Server, Trouble> {
        let server = Server::builder()
            .tcp_nodelay(true)
            .http2_keepalive_interval(Some(KEEP_ALIVE))
            .tls_config(self.server.clone());
        server.map_err(|error| Trouble::Tls(cause(&error)))
    }

    /// Returns the endpoint with TLS, even if its address begins with `http://`.
    ///
    /// # Errors
    /// If the address has no host, or certificates or keys are invalid.
    pub fn secured(&self, endpoint: Endpoint) -> Result<Endpoint, Box<dyn Error + Send + Sync>> {
        let uri = endpoint.uri();
        let endpoint = match (uri.scheme_str(), uri.authority()) {
            (Some("https"), _) => endpoint,
            (_, Some(authority)) => {
                let usual = GrpcClientConfig::default();
                create_grpc_client_endpoint(format!("https://{authority}"), Some(&usual))?
            }
            (_, None) => return Err(format!("the address {uri} has no host").into()),
        };
        let secured = endpoint.tls_config(self.client.clone());
        secured.map_err(|error| cause(&error).into())
    }

    /// Returns [`Identity::secured`] as a function for Ballista.
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

/// Returns the innermost cause of an error, because tonic's own errors only say "transport error".
fn cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
