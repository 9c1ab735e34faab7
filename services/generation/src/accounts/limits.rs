//! Rate limits on sign-in attempts.

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use fhaim_api::token::Service;
use fhaim_platform::security::{self, Event};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::convert::Infallible;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::problem::Refusal;
use crate::{Limits, State};

/// The address from which a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client(pub IpAddr);

impl FromRequestParts<State> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Infallible> {
        let header = state.config.limits.address_header.as_deref();
        let forwarded = header.and_then(|name| last_address(parts, name));
        let connected = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let address = forwarded.or_else(|| connected.map(|info| info.0.ip()));
        // Callers without an address share one allowance.
        Ok(Self(address.unwrap_or(Ipv4Addr::UNSPECIFIED.into())))
    }
}

/// Returns the last address of a list in a header, which the nearest proxy added.
fn last_address(parts: &Parts, name: &str) -> Option<IpAddr> {
    let list = parts.headers.get_all(name).iter().next_back()?;
    list.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
}

/// Returns the network that shares an allowance: an IPv4 address, or a whole /64, because one caller
/// can use many addresses of it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

/// Allowances per address and per account.
pub struct SignInLimits {
    by_address: DefaultKeyedRateLimiter<IpAddr>,
    by_account: DefaultKeyedRateLimiter<(String, IpAddr)>,
}

impl SignInLimits {
    /// Returns limits with full allowances.
    pub fn new(limits: &Limits) -> Self {
        Self {
            by_address: RateLimiter::keyed(Quota::per_minute(limits.sign_ins_per_address)),
            by_account: RateLimiter::keyed(Quota::per_minute(limits.sign_ins_per_email)),
        }
    }

    /// Takes one attempt from the allowance of an address.
    ///
    /// # Errors
    /// [`Refusal::TooManyTries`], with the seconds to wait.
    pub fn try_address(&self, Client(address): Client) -> Result<(), Refusal> {
        check(&self.by_address, &network(address)).inspect_err(|_| limited(address))
    }

    /// Takes one attempt from the allowance of an address for an account, which need not exist.
    /// Others who know the account's name cannot use this allowance up.
    ///
    /// # Errors
    /// [`Refusal::TooManyTries`], with the seconds to wait.
    pub fn try_account(&self, email: &str, Client(address): Client) -> Result<(), Refusal> {
        let key = (email.to_owned(), network(address));
        check(&self.by_account, &key).inspect_err(|_| limited(address))
    }

    /// Removes callers whose allowance is full again.
    pub fn forget(&self) {
        self.by_address.retain_recent();
        self.by_account.retain_recent();
        self.by_address.shrink_to_fit();
        self.by_account.shrink_to_fit();
    }
}

fn limited(address: IpAddr) {
    security::log(Service::Generation, Event::SignInLimited { address });
}

fn check<K: Hash + Eq + Clone>(
    limiter: &DefaultKeyedRateLimiter<K>,
    key: &K,
) -> Result<(), Refusal> {
    limiter.check_key(key).map_err(|not_until| {
        let wait = not_until.wait_time_from(DefaultClock::default().now());
        Refusal::TooManyTries(wait.as_secs() + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    #[test]
    fn last_entry_of_the_last_header_is_the_client_address() {
        let parts = |values: &[&str]| {
            let request = values
                .iter()
                .fold(Request::builder(), |r, v| r.header("x-from", *v));
            request.body(()).unwrap().into_parts().0
        };
        let found = |values: &[&str]| last_address(&parts(values), "x-from");
        assert_eq!(found(&["6.6.6.6, 10.0.0.1"]), Some([10, 0, 0, 1].into()));
        assert_eq!(found(&["6.6.6.6", "10.0.0.2"]), Some([10, 0, 0, 2].into()));
        assert_eq!(found(&["nobody"]), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn addresses_in_one_network_share_an_allowance() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let same = |a, b| network(address(a)) == network(address(b));
        assert!(same("2001:db8::1", "2001:db8::ffff:2"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(!same("10.0.0.1", "10.0.0.2"));
        assert!(same("10.0.0.1", "::ffff:10.0.0.1"));
    }
}
