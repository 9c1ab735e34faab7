//! The security log. It has one line for each unauthorised attempt, under the target `security`, and counts them. It
//! names accounts, addresses and identifiers, and never the secrets that were shown.

use std::net::IpAddr;
use uuid::Uuid;

use crate::telemetry;
use fhaim_api::token::Service;

/// The kinds of unauthorised attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Wrong credentials. The account is logged if the address has one.
    SignInFailed {
        /// The caller's address.
        address: IpAddr,
        /// The account of the given e-mail address.
        account: Option<Uuid>,
    },
    /// Too many attempts to sign in or up.
    SignInLimited {
        /// The caller's address.
        address: IpAddr,
    },
    /// A token that is forged, expired, of an unknown issuer, or for another service.
    TokenRefused {
        /// The reason of the refusal.
        /// Why.
        reason: &'static str,
    },
    /// A refresh token or an API key that is unknown, void, or used twice.
    KeyRefused {
        /// The account, if it is known.
        account: Option<Uuid>,
    },
    /// An object that belongs to someone else.
    ForeignId {
        /// The account that asked.
        account: Uuid,
        /// The kind of object.
        what: &'static str,
        /// The object's identifier.
        id: Uuid,
    },
}

impl Event {
    /// Returns the event's name in the log, which is also a label of `security_events_total`.
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

/// Shows the counters of a service's events before any event occurs.
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
