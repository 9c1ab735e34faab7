//! The security log: one line for whatever somebody without the right to it tried, under the
//! target `security`, and counted. It names accounts, addresses and identifiers, and never what was
//! shown as a secret.

use std::net::IpAddr;
use uuid::Uuid;

use crate::telemetry;
use fhaim_api::token::Service;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Wrong credentials; the account is told if the address has one.
    SignInFailed {
        /// From where.
        address: IpAddr,
        /// Whose address was given.
        account: Option<Uuid>,
    },
    /// Too many tries at signing in or up.
    SignInLimited {
        /// From where.
        address: IpAddr,
    },
    /// A token that is forged, expired, of an unknown issuer or for another service.
    TokenRefused {
        /// Why.
        reason: &'static str,
    },
    /// A refresh token or an API key that is unknown, void, or used twice.
    KeyRefused {
        /// Whose, where that is known.
        account: Option<Uuid>,
    },
    /// A thing that is someone else's.
    ForeignId {
        /// Who asked.
        account: Uuid,
        /// What it is.
        what: &'static str,
        /// Which one.
        id: Uuid,
    },
}

impl Event {
    /// Its name in the log, and as a label of `security_events_total`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SignInFailed { .. } => "sign-in-failed",
            Self::SignInLimited { .. } => "sign-in-limited",
            Self::TokenRefused { .. } => "token-refused",
            Self::KeyRefused { .. } => "key-refused",
            Self::ForeignId { .. } => "foreign-id",
        }
    }
}

/// Shows the counters of a service's events before there are any.
pub fn announce(service: Service) {
    let at_accounts = ["sign-in-failed", "sign-in-limited", "key-refused"];
    let with_accounts = (service == Service::Generation).then_some(at_accounts);
    let anywhere = ["token-refused", "foreign-id"].into_iter();
    for event in anywhere.chain(with_accounts.into_iter().flatten()) {
        let labels = [("service", service.as_str()), ("event", event)];
        telemetry::announce("security_events_total", &labels);
    }
}

/// Writes an event to the security log of a service.
pub fn log(service: Service, event: Event) {
    let name = event.name();
    let labels = [("service", service.as_str()), ("event", name)];
    metrics::counter!("security_events_total", &labels).increment(1);
    let told = |account: Option<Uuid>| account.map_or("none".to_owned(), |id| id.to_string());
    match event {
        Event::SignInFailed { address, account } => {
            let account = told(account);
            tracing::warn!(target: "security", %service, event = name, %address, account, "security");
        }
        Event::SignInLimited { address } => {
            tracing::warn!(target: "security", %service, event = name, %address, "security");
        }
        Event::TokenRefused { reason } => {
            tracing::warn!(target: "security", %service, event = name, reason, "security");
        }
        Event::KeyRefused { account } => {
            let account = told(account);
            tracing::warn!(target: "security", %service, event = name, account, "security");
        }
        Event::ForeignId { account, what, id } => {
            tracing::warn!(target: "security", %service, event = name, %account, what, %id, "security");
        }
    }
}
