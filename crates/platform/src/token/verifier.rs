//! Whether a token is good, and for what.

use fhaim_api::problem::ProblemKind;
use fhaim_api::token::{Claims, Role, Service};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::Signer;
use crate::Failure;
use crate::security::{self, Event};

/// An issuer is asked for its keys at most so often, whatever key ids are shown.
pub(crate) const FETCH_EVERY: Duration = Duration::from_secs(2);

/// An issuer that has not sent its keys by then is out of reach.
const FETCH_WITHIN: Duration = Duration::from_secs(5);

/// Seconds by which another machine's clock may be off, either way. Clocks that nobody sets are
/// found minutes off, and a service must not stop for that; the price is that a stolen token is
/// good for ten minutes longer, which is less than a user's token lives anyway.
pub(crate) const MAX_SKEW: u64 = 600;

/// Seconds that a service's own tokens may be over, for a clock that is set while they live.
const OWN_SKEW: u64 = 5;

/// Where an issuer's keys come from.
enum Source {
    Own(Arc<Signer>),
    Remote(String),
}

struct Issuer {
    source: Source,
    keys: RwLock<BTreeMap<String, DecodingKey>>,
    /// When its keys were asked for last, and whether they came. Locked while they are asked for:
    /// those who need them meanwhile wait for one answer.
    asked: Mutex<Option<(Instant, bool)>>,
}

impl Issuer {
    fn new(source: Source) -> Self {
        Self {
            source,
            keys: RwLock::default(),
            asked: Mutex::default(),
        }
    }

    fn known(&self, kid: &str) -> Option<DecodingKey> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(kid).cloned()
    }

    fn learn(&self, set: &JwkSet) {
        let keys = set.keys.iter().filter_map(|jwk| {
            let id = jwk.common.key_id.clone()?;
            Some((id, DecodingKey::from_jwk(jwk).ok()?))
        });
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys.collect();
    }
}

/// Verifies tokens for one service.
pub struct Verifier {
    audience: Service,
    issuers: BTreeMap<Service, Issuer>,
    http: reqwest::Client,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Verifier({})", self.audience)
    }
}

impl Verifier {
    /// A verifier that trusts the given issuers at their base addresses, and a service's own keys.
    pub fn new(
        signer: Arc<Signer>,
        peers: &BTreeMap<Service, String>,
        http: reqwest::Client,
    ) -> Self {
        let audience = signer.service();
        let mut issuers: BTreeMap<Service, Issuer> = peers
            .iter()
            .map(|(&service, base)| {
                let address = format!("{}/.well-known/jwks.json", base.trim_end_matches('/'));
                (service, Issuer::new(Source::Remote(address)))
            })
            .collect();
        issuers.insert(audience, Issuer::new(Source::Own(signer)));
        Self {
            audience,
            issuers,
            http,
        }
    }

    /// The claims of a token that is signed by whom it says, for this service, and not expired.
    ///
    /// # Errors
    /// [`ProblemKind::Unauthenticated`], with a reason only for a good token at the wrong time;
    /// [`ProblemKind::Unavailable`] where the issuer's keys cannot be had.
    pub async fn verify(&self, token: &str) -> Result<Claims, Failure> {
        self.verify_at(token, jsonwebtoken::get_current_timestamp())
            .await
    }

    /// Whether the generation service says that a dataset is there, and an account's.
    ///
    /// # Errors
    /// As [`Verifier::verify`].
    pub async fn vouches(
        &self,
        voucher: &str,
        account: Uuid,
        dataset: Uuid,
    ) -> Result<bool, Failure> {
        let claims = self.verify(voucher).await?;
        let says = (claims.role, claims.sub, claims.dataset);
        Ok(says == (Role::Voucher, Some(account), Some(dataset)))
    }

    /// [`Verifier::verify`] at a time, in seconds since 1970.
    async fn verify_at(&self, token: &str, now: u64) -> Result<Claims, Failure> {
        let head = jsonwebtoken::decode_header(token);
        let head = head.map_err(|_| self.refused("not a token"))?;
        let kid = head.kid.ok_or_else(|| self.refused("no key id"))?;
        // Who it says it is from, before anything is believed: that one's keys are looked at.
        let said = jsonwebtoken::dangerous::insecure_decode_claims(token);
        let Said { iss } = said.map_err(|_| self.refused("no issuer"))?;
        let issuer = self.issuers.get(&iss);
        let issuer = issuer.ok_or_else(|| self.refused("an issuer that is not trusted"))?;
        let key = self.key(iss, issuer, &kid).await?;
        let key = key.ok_or_else(|| self.refused("a key that its issuer does not have"))?;
        let mut rules = Validation::new(Algorithm::EdDSA);
        rules.validate_exp = false; // below, with words
        rules.set_audience(&[self.audience.as_str()]);
        rules.set_issuer(&[iss.as_str()]);
        rules.set_required_spec_claims(&["exp", "aud", "iss"]);
        let claims = jsonwebtoken::decode::<Claims>(token, &key, &rules);
        let claims = claims.map_err(|error| match error.kind() {
            ErrorKind::InvalidAudience => self.of_another(),
            _ => self.refused("a signature or claims that are not good"),
        });
        let claims = claims?.claims;
        // Only the generation service knows users.
        let users = iss == Service::Generation && claims.sub.is_some();
        let sound = match claims.role {
            Role::User => users && claims.dataset.is_none(),
            Role::Service => claims.sub.is_none() && claims.dataset.is_none(),
            Role::Voucher => users && claims.dataset.is_some(),
        };
        if !sound {
            return Err(self.refused("claims that its issuer cannot make"));
        }
        self.check_times(&claims, now)?;
        Ok(claims)
    }

    /// A refusal whose reason is for the log alone.
    fn refused(&self, reason: &'static str) -> Failure {
        security::log(self.audience, Event::TokenRefused { reason });
        Failure::bare(ProblemKind::Unauthenticated)
    }

    /// The refusal of a good token that is for another service.
    fn of_another(&self) -> Failure {
        let here = self.audience;
        let reason = "it is for another service";
        security::log(here, Event::TokenRefused { reason });
        Failure::new(
            ProblemKind::Unauthenticated,
            format!(
                "the token is for another service: a sign-in gives one token per service; show the \
                 one for the {here} service"
            ),
        )
    }

    /// Refuses a token that is expired, or not issued yet, by more than clocks may differ.
    fn check_times(&self, claims: &Claims, now: u64) -> Result<(), Failure> {
        let (issuer, here) = (claims.iss, self.audience);
        let skew = if issuer == here { OWN_SKEW } else { MAX_SKEW };
        let detail = if claims.iat > now.saturating_add(skew) {
            let ahead = claims.iat - now;
            format!(
                "the token's time is {ahead} s ahead of the {here} service's clock: set the clock \
                 of the {issuer} service's machine or of this one"
            )
        } else if now > claims.exp.saturating_add(skew) {
            let (over, age) = (now - claims.exp, now.saturating_sub(claims.iat));
            format!(
                "the token expired {over} s ago by the {here} service's clock, by which it is \
                 {age} s old: if it is younger, set that clock or the {issuer} service's"
            )
        } else {
            return Ok(());
        };
        tracing::warn!(%issuer, role = ?claims.role, detail, "a token was refused for its time");
        let reason = "its time";
        security::log(here, Event::TokenRefused { reason });
        Err(Failure::new(ProblemKind::Unauthenticated, detail))
    }

    /// An issuer's key; nothing where the issuer says that it has no such key.
    async fn key(
        &self,
        service: Service,
        issuer: &Issuer,
        kid: &str,
    ) -> Result<Option<DecodingKey>, Failure> {
        let known = issuer.known(kid);
        if known.is_some() {
            return Ok(known);
        }
        let address = match &issuer.source {
            Source::Own(signer) => {
                issuer.learn(&signer.jwks());
                return Ok(issuer.known(kid));
            }
            Source::Remote(address) => address,
        };
        let mut asked = issuer.asked.lock().await;
        let recent = asked.filter(|(at, _)| at.elapsed() < FETCH_EVERY);
        let reached = match recent {
            Some((_, reached)) => reached,
            None => {
                let set = self.fetch(address).await;
                *asked = Some((Instant::now(), set.is_ok()));
                match &set {
                    Ok(set) => issuer.learn(set),
                    Err(error) => {
                        tracing::warn!(%error, address, "an issuer's keys cannot be had");
                    }
                }
                set.is_ok()
            }
        };
        match issuer.known(kid) {
            None if !reached => Err(out_of_reach(service)),
            key => Ok(key),
        }
    }

    async fn fetch(&self, address: &str) -> Result<JwkSet, reqwest::Error> {
        let request = self.http.get(address).timeout(FETCH_WITHIN);
        let response = request.send().await?;
        response.error_for_status()?.json().await
    }
}

/// What a token says of its issuer.
#[derive(Deserialize)]
struct Said {
    iss: Service,
}

fn out_of_reach(issuer: Service) -> Failure {
    let mut failure = Failure::unavailable(format!(
        "the token cannot be checked: the {issuer} service's keys cannot be had"
    ));
    failure.problem.retry_after = Some(FETCH_EVERY.as_secs());
    failure
}
