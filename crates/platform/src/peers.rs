//! Checks that the other services answer, and that their clocks agree with this service's.
//!
//! The service that makes a token sets its times, and the service that verifies it judges them by its own clock.
//! Every answer carries a `Date`, so a service compares clocks whenever it asks whether another one is there: at
//! startup, and then every few seconds.

use fhaim_api::token::Service;
use reqwest::header::{DATE, HeaderName};
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::Failure;
use crate::clock::{self, Millis};
use crate::token::MAX_SKEW;

/// Time within which a service must answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Largest difference of clocks that is not reported. Tokens are only refused at a much larger one.
const MAX_DRIFT: Millis = 60_000;

/// A `Date` has whole seconds. The true time may be later by up to this value.
const RESOLUTION: Millis = 999;

/// The other services, as seen by one service.
#[derive(Debug)]
pub struct Peers {
    here: Service,
    addresses: BTreeMap<Service, String>,
    http: reqwest::Client,
    /// For each service, whether its clock agreed when that was last logged.
    told: Mutex<BTreeMap<Service, bool>>,
}

/// Header of `/healthz` with the name of the service.
pub(crate) const SERVICE: HeaderName = HeaderName::from_static("fhaim-service");

/// By how much a service's clock is ahead, if its answer shows the time.
type Ahead = Option<Millis>;

/// The answer of a healthy service.
struct Answer {
    /// Its name; `None` if it is not a service of fhaim.
    service: Option<Service>,
    ahead: Ahead,
}

/// Says that another service answers at a peer's address.
fn other(peer: Service, base: &str, found: Option<Service>) -> String {
    let found = found.map_or("another program".to_owned(), |service| {
        format!("the {service} service")
    });
    format!(
        "the address of the {peer} service, {base}, is that of {found}: correct it in `peers` of the configuration"
    )
}

impl Peers {
    /// Makes the set of the services at these addresses, as seen by `here`.
    pub fn new(here: Service, addresses: BTreeMap<Service, String>, http: reqwest::Client) -> Self {
        Self {
            here,
            addresses,
            http,
            told: Mutex::default(),
        }
    }

    /// Returns the address of a service.
    pub fn address(&self, peer: Service) -> Option<&str> {
        self.addresses.get(&peer).map(String::as_str)
    }

    /// Asks all of them, and sets the gauges `peer_up` and `peer_clock_seconds`.
    ///
    /// # Errors
    /// [`Failure::unavailable`] for the first service that does not answer or whose clock differs. It says what to
    /// do.
    pub async fn check(&self) -> Result<(), Failure> {
        let mut wrong = None;
        for (&peer, base) in &self.addresses {
            let answered = ask(&self.http, base).await;
            let is_up = matches!(&answered, Ok(answer) if answer.service == Some(peer));
            let up = if is_up { 1.0 } else { 0.0 };
            metrics::gauge!("peer_up", "peer" => peer.as_str()).set(up);
            let found = match answered {
                Ok(answer) if !is_up => {
                    Err(Failure::unavailable(other(peer, base, answer.service)))
                }
                Ok(Answer {
                    ahead: Some(ahead), ..
                }) => self.judge(peer, ahead),
                Ok(_) => Ok(()),
                Err(reason) => {
                    let detail = format!("the {peer} service does not answer at {base}");
                    Err(Failure::unavailable(detail).because(reason))
                }
            };
            wrong = wrong.or(found.err());
        }
        wrong.map_or(Ok(()), Err)
    }

    /// Judges a clock. Writes to the log only when the result changes.
    fn judge(&self, peer: Service, ahead: Millis) -> Result<(), Failure> {
        metrics::gauge!("peer_clock_seconds", "peer" => peer.as_str()).set(ahead as f64 / 1e3);
        let agrees = ahead.saturating_abs() <= MAX_DRIFT;
        let before = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.insert(peer, agrees)
        };
        let here = self.here;
        if agrees {
            if before != Some(true) {
                tracing::info!(service = %here, %peer, "the clocks agree");
            }
            return Ok(());
        }
        let detail = differs(here, peer, ahead);
        if before != Some(false) {
            tracing::error!(service = %here, %peer, detail, "the clocks differ");
        }
        Err(Failure::unavailable(detail))
    }
}

fn differs(here: Service, peer: Service, ahead: Millis) -> String {
    let seconds = ahead.saturating_abs() / 1000;
    let side = if ahead > 0 { "ahead of" } else { "behind" };
    format!(
        "the {peer} service's clock is {seconds} s {side} the {here} service's: correct the wrong \
         clock; at a difference of {MAX_SKEW} s the services refuse each other's tokens"
    )
}

/// Asks a service whether it is healthy.
async fn ask(http: &reqwest::Client, base: &str) -> Result<Answer, String> {
    let address = format!("{}/healthz", base.trim_end_matches('/'));
    let before = clock::now();
    let asked = http.get(address).timeout(ANSWERS_WITHIN).send().await;
    let after = clock::now();
    let answer = asked.and_then(reqwest::Response::error_for_status);
    let answer = answer.map_err(|error| error.without_url().to_string())?;
    let header = |name| {
        answer
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let named = |name: &str| Service::deserialize(StrDeserializer::<ValueError>::new(name)).ok();
    Ok(Answer {
        service: header(SERVICE).and_then(named),
        ahead: header(DATE).and_then(|date| ahead(date, before, after)),
    })
}

/// Returns by how much the clock that wrote a `Date` is ahead of this one, which showed `before` at the question and
/// `after` at the answer. A difference below this precision counts as zero.
fn ahead(date: &str, before: Millis, after: Millis) -> Ahead {
    let date = OffsetDateTime::parse(date, &Rfc2822).ok()?;
    let earliest = date.unix_timestamp().checked_mul(1000)?;
    let latest = earliest.saturating_add(RESOLUTION);
    Some(if earliest > after {
        earliest - after
    } else if latest < before {
        latest - before
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::http::HeaderValue;
    use axum::routing::get;
    use tokio::net::TcpListener;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const THEN: Millis = 784_111_777_000;

    #[test]
    fn clock_differences_below_the_precision_of_a_date_count_as_zero() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (before, after, found) in [
            (THEN, THEN, 0),
            (THEN + 400, THEN + 900, 0),
            (THEN - 300, THEN - 200, 200),
            (THEN - 90_000, THEN - 89_000, 89_000),
            (THEN + 5000, THEN + 9000, -4001),
            (THEN - 5000, THEN + 5000, 0),
        ] {
            assert_eq!(ahead(date, before, after), Some(found), "{before} {after}");
        }
        for none in ["", "yesterday", "784111777"] {
            assert_eq!(ahead(none, THEN, THEN), None, "{none}");
        }
    }

    /// Starts a service whose clock is ahead by the given number of seconds. Returns its address.
    async fn service(name: Service, ahead: i64) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let healthy = move || async move {
            let time = OffsetDateTime::now_utc() + time::Duration::seconds(ahead);
            let date = time.format(&Rfc2822).unwrap();
            let date = HeaderValue::try_from(date).unwrap();
            let name = HeaderValue::from_static(name.as_str());
            ([(DATE, date), (SERVICE, name)], "ok\n")
        };
        let routes = Router::new().route("/healthz", get(healthy));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }

    #[tokio::test]
    async fn wrong_clock_is_reported_with_both_services() {
        let http = crate::peer::http_client().unwrap();
        for (off, says) in [
            (0, None),
            (30, None),
            (-30, None),
            (3600, Some("s ahead of the crypto service's")),
            (-120, Some("s behind the crypto service's")),
        ] {
            let addresses =
                BTreeMap::from([(Service::Generation, service(Service::Generation, off).await)]);
            let peers = Peers::new(Service::Crypto, addresses, http.clone());
            // The second check has the same result, but the log has it only once.
            for _ in 0..2 {
                match (peers.check().await, says) {
                    (Ok(()), None) => {}
                    (Err(failure), Some(says)) => {
                        let text = failure.problem.detail.clone().unwrap_or_default();
                        assert!(text.contains("the generation service's clock"), "{text}");
                        assert!(text.contains(says) && text.contains("600 s"), "{text}");
                    }
                    (found, _) => panic!("{off}: {found:?}"),
                }
            }
        }
    }

    #[tokio::test]
    async fn address_of_another_service_is_reported() {
        let http = crate::peer::http_client().unwrap();
        let address = service(Service::Computation, 0).await;
        let addresses = BTreeMap::from([(Service::Generation, address.clone())]);
        let swapped = Peers::new(Service::Crypto, addresses, http).check().await;
        let text = swapped.unwrap_err().problem.detail.unwrap_or_default();
        let told = format!(
            "the address of the generation service, {address}, is that of the computation service"
        );
        assert!(text.starts_with(&told), "{text}");
    }

    #[tokio::test]
    async fn all_peers_are_checked_when_the_first_does_not_answer() {
        let http = crate::peer::http_client().unwrap();
        let addresses = BTreeMap::from([
            (Service::Generation, "http://127.0.0.1:9".to_owned()),
            (
                Service::Computation,
                service(Service::Computation, 7200).await,
            ),
        ]);
        let peers = Peers::new(Service::Crypto, addresses, http);
        let away = peers.check().await.unwrap_err();
        let text = away.problem.detail.unwrap_or_default();
        assert!(
            text.contains("generation service does not answer"),
            "{text}"
        );
        let told = peers.told.lock().unwrap();
        assert_eq!(told.get(&Service::Computation), Some(&false));
    }
}
