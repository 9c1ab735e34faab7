//! Whether the other services answer, and whether their clocks agree with this one's.
//!
//! Tokens are good for a time, which the service that made one says and the one that it is shown
//! to judges by its own clock. Every answer carries a `Date`, so clocks are compared wherever a
//! service asks whether another is there: when it starts, and every few seconds from then on.

use fhaim_api::token::Service;
use reqwest::header::DATE;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::Failure;
use crate::clock::{self, Millis};
use crate::token::MAX_SKEW;

/// A service does not answer that takes longer than this.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Clocks that differ by more are complained of, long before tokens are refused for it.
const MAX_DRIFT: Millis = 60_000;

/// A `Date` has whole seconds: the time that it stands for may be so much later.
const RESOLUTION: Millis = 999;

/// The other services, as one of them sees them.
#[derive(Debug)]
pub struct Peers {
    here: Service,
    addresses: BTreeMap<Service, String>,
    http: reqwest::Client,
    /// What was said last of each one's clock: whether it agrees.
    told: Mutex<BTreeMap<Service, bool>>,
}

/// What one of them answered: by how much its clock is ahead, where it says what time it is.
type Ahead = Option<Millis>;

impl Peers {
    /// Those at these addresses, as `here` sees them.
    pub fn new(here: Service, addresses: BTreeMap<Service, String>, http: reqwest::Client) -> Self {
        Self {
            here,
            addresses,
            http,
            told: Mutex::default(),
        }
    }

    /// Where one of them is.
    pub fn address(&self, peer: Service) -> Option<&str> {
        self.addresses.get(&peer).map(String::as_str)
    }

    /// Asks all of them, and sets the gauges `peer_up` and `peer_clock_seconds`.
    ///
    /// # Errors
    /// The first that does not answer, or whose clock is another, and what to do.
    pub async fn check(&self) -> Result<(), Failure> {
        let mut wrong = None;
        for (&peer, base) in &self.addresses {
            let answered = ask(&self.http, base).await;
            let up = if answered.is_ok() { 1.0 } else { 0.0 };
            metrics::gauge!("peer_up", "peer" => peer.as_str()).set(up);
            let found = match answered {
                Ok(Some(ahead)) => self.judge(peer, ahead),
                Ok(None) => Ok(()),
                Err(reason) => {
                    let detail = format!("the {peer} service does not answer at {base}");
                    Err(Failure::unavailable(detail).because(reason))
                }
            };
            wrong = wrong.or(found.err());
        }
        wrong.map_or(Ok(()), Err)
    }

    /// Tells of a clock, in the log once for each time that this changes.
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
        "the {peer} service's clock is {seconds} s {side} the {here} service's: set whichever of \
         the two is wrong; from {MAX_SKEW} s on they refuse each other's tokens"
    )
}

/// Whether a service answers that it is well, and what its clock says.
async fn ask(http: &reqwest::Client, base: &str) -> Result<Ahead, String> {
    let address = format!("{}/healthz", base.trim_end_matches('/'));
    let before = clock::now();
    let asked = http.get(address).timeout(ANSWERS_WITHIN).send().await;
    let after = clock::now();
    let answer = asked.and_then(reqwest::Response::error_for_status);
    let answer = answer.map_err(|error| error.without_url().to_string())?;
    let date = answer
        .headers()
        .get(DATE)
        .and_then(|date| date.to_str().ok());
    Ok(date.and_then(|date| ahead(date, before, after)))
}

/// By how much the clock that wrote a `Date` is ahead of this one, which said `before` when it asked
/// and `after` when it was answered. What the two cannot tell apart is no difference.
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
    fn clocks_are_compared_as_far_as_a_date_tells() {
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

    /// A service whose clock is so many seconds ahead; its address.
    async fn service(ahead: i64) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let healthy = move || async move {
            let time = OffsetDateTime::now_utc() + time::Duration::seconds(ahead);
            let date = time.format(&Rfc2822).unwrap();
            ([(DATE, HeaderValue::try_from(date).unwrap())], "ok\n")
        };
        let routes = Router::new().route("/healthz", get(healthy));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }

    #[tokio::test]
    async fn a_clock_that_is_wrong_is_told_of_with_both_services() {
        let http = crate::peer::http_client().unwrap();
        for (off, says) in [
            (0, None),
            (30, None),
            (-30, None),
            (3600, Some("s ahead of the crypto service's")),
            (-120, Some("s behind the crypto service's")),
        ] {
            let addresses = BTreeMap::from([(Service::Generation, service(off).await)]);
            let peers = Peers::new(Service::Crypto, addresses, http.clone());
            // The second look tells the same, though the log has it once.
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
    async fn all_are_asked_where_the_first_is_away() {
        let http = crate::peer::http_client().unwrap();
        let addresses = BTreeMap::from([
            (Service::Generation, "http://127.0.0.1:9".to_owned()),
            (Service::Computation, service(7200).await),
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
