//! Addresses of the services.

use fhaim_api::token::Service;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

use crate::Error;

/// Base addresses of the services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// Accounts, jobs, results.
    pub generation: String,
    /// Uploads.
    pub computation: String,
    /// Keys and the ledger.
    pub crypto: String,
    /// The second computation service, for datasets whose terms include one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub witness: Option<String>,
}

impl Endpoints {
    /// Returns the addresses of all services behind one origin, as `fhaim up` and the reverse proxy serve them.
    pub fn behind(origin: &str) -> Self {
        let origin = origin.trim_end_matches('/');
        let at = |service: &str| format!("{origin}/{service}");
        Self {
            generation: at("generation"),
            computation: at("computation"),
            crypto: at("crypto"),
            witness: Some(at("witness")),
        }
    }

    /// Checks that no password and no token is sent in plain text to another machine.
    ///
    /// # Errors
    /// [`Error::PlainHttp`] for an `http` address that is not on this machine.
    pub fn check_transport(&self) -> Result<(), Error> {
        let three = [&self.generation, &self.computation, &self.crypto];
        let mut all = three.into_iter().chain(&self.witness);
        match all.find(|address| is_plain(address)) {
            Some(address) => Err(Error::PlainHttp(address.clone())),
            None => Ok(()),
        }
    }

    /// Returns the address of the page if the services are behind one origin, and otherwise the generation service's
    /// address. Links begin with it.
    pub(crate) fn origin(&self) -> &str {
        let generation = self.generation.trim_end_matches('/');
        generation.strip_suffix("/generation").unwrap_or(generation)
    }

    /// Returns the service that an address belongs to. Only this service accepts the token that a call to the address
    /// carries.
    pub(crate) fn at(&self, address: &str) -> Service {
        let is_below = |base: &str| {
            let rest = address.strip_prefix(base.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let three = [
            (Service::Generation, &self.generation),
            (Service::Computation, &self.computation),
            (Service::Crypto, &self.crypto),
        ];
        let second = self.witness.iter();
        let all = three
            .into_iter()
            .chain(second.map(|base| (Service::Witness, base)));
        // If one base address begins with another, the longer one applies.
        let found = all.filter(|(_, base)| is_below(base));
        let found = found.max_by_key(|(_, base)| base.len());
        found.map_or(Service::Generation, |(service, _)| service)
    }
}

/// Returns whether calls to an address cross a network in plain text.
fn is_plain(address: &str) -> bool {
    let Ok(address) = Url::parse(address) else {
        return false; // no call can be sent to it
    };
    let host = address.host_str().unwrap_or_default();
    let is_here = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    address.scheme() == "http" && !is_here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_accepted_only_on_this_machine() {
        for origin in [
            "https://fhaim.example",
            "http://127.0.0.1:8080",
            "http://127.9.9.9",
            "http://[::1]:8080",
            "http://localhost:8080",
            "http://fhaim.localhost",
        ] {
            Endpoints::behind(origin).check_transport().unwrap();
        }
        for origin in [
            "http://fhaim.example",
            "http://10.0.0.7:8080",
            "http://localhost.example",
            "HTTP://fhaim.example",
            "http://[fe80::1]",
        ] {
            let refused = Endpoints::behind(origin).check_transport().unwrap_err();
            let words = refused.to_string();
            assert!(words.contains(origin) && words.contains("https"), "{words}");
        }
        // One of several services.
        let keys = Endpoints {
            crypto: "http://keys.example".to_owned(),
            ..Endpoints::behind("https://fhaim.example")
        };
        let refused = keys.check_transport().unwrap_err();
        assert!(matches!(refused, Error::PlainHttp(at) if at == keys.crypto));
    }

    #[test]
    fn each_address_belongs_to_its_service() {
        let behind = Endpoints::behind("https://fhaim.example");
        let apart = Endpoints {
            generation: "https://fhaim.example/".to_owned(),
            computation: "https://fhaim.example/computation".to_owned(),
            crypto: "https://keys.example".to_owned(),
            witness: Some("https://second.example".to_owned()),
        };
        for endpoints in [behind, apart] {
            for (service, base) in [
                (Service::Generation, &endpoints.generation),
                (Service::Computation, &endpoints.computation),
                (Service::Crypto, &endpoints.crypto),
                (Service::Witness, endpoints.witness.as_ref().unwrap()),
            ] {
                let address = format!("{}/v1/datasets", base.trim_end_matches('/'));
                assert_eq!(endpoints.at(&address), service, "{address}");
            }
        }
    }
}
