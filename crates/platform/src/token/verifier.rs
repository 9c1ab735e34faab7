//! Verification of tokens.

use fhaim_api::Digest;
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::{AccountTokens, Claims, EndedTokens, Role, Service};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::Signer;
use crate::Failure;
use crate::security::{self, Event};

/// Shortest time between two requests for an issuer's keys, independent of the key ids that callers show.
pub(crate) const FETCH_EVERY: Duration = Duration::from_secs(2);

/// Time within which an issuer must send its keys.
const FETCH_WITHIN: Duration = Duration::from_secs(5);

/// Path of the generation service's list of ended tokens.
const ENDED_PATH: &str = "/.well-known/ended-tokens.json";

/// Shortest time between two requests for the ended tokens.
const ENDED_EVERY: Duration = Duration::from_secs(2);

/// Time within which the generation service must send the ended tokens.
const ENDED_WITHIN: Duration = Duration::from_secs(1);

/// Seconds by which another machine's clock may differ. Unattended clocks are often minutes off, and a service must
/// not stop for that. Services make tokens for each other that live this long, and a token may seem to be issued this
/// far in the future.
pub(crate) const MAX_SKEW: u64 = 600;

/// Seconds after its expiry for which a token is accepted, for the time that a request takes. A service's own clock may
/// also be corrected by this much while its tokens live.
const LEEWAY: u64 = 5;

/// The source of an issuer's keys.
enum Source {
    Own(Arc<Signer>),
    Remote(String),
}

struct Issuer {
    source: Source,
    keys: RwLock<BTreeMap<String, DecodingKey>>,
    /// The time of the last request for the keys, and whether it succeeded. It is locked during the request, so that
    /// several callers wait for one answer.
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

/// The tokens that ended before their expiry, as the generation service published them last.
#[derive(Default)]
struct Ended {
    /// Address of the list; `None` at the generation service.
    address: Option<String>,
    /// The smallest number of a valid token, by the digest of its account.
    known: RwLock<HashMap<Digest, u64>>,
    /// The time of the last request for the list, and whether it succeeded. It is locked during the request, so that
    /// several callers wait for one answer.
    asked: Mutex<Option<(Instant, bool)>>,
}

impl Ended {
    /// Fetches the list, unless the last request was a moment ago. If there is no answer, the last list stays: tokens
    /// expire soon, and an outage of the generation service must not stop uploads.
    async fn refresh(&self, http: &reqwest::Client) {
        let Some(address) = &self.address else {
            return;
        };
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|(at, _)| at.elapsed() < ENDED_EVERY) {
            return;
        }
        let list = fetch::<EndedTokens>(http, address, ENDED_WITHIN).await;
        let before = asked.replace((Instant::now(), list.is_ok()));
        match list {
            Ok(list) => {
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                let accounts = list.accounts.into_iter();
                *known = accounts.map(|of| (of.account, of.epoch)).collect();
            }
            Err(error) if before.is_none_or(|(_, reached)| reached) => {
                tracing::warn!(%error, address, "cannot fetch the ended tokens: they are accepted until they expire");
            }
            Err(_) => {}
        }
    }

    fn contains(&self, account: Uuid, epoch: u64) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let least = known.get(&AccountTokens::digest(account));
        least.is_some_and(|&least| epoch < least)
    }
}

/// Verifies tokens for one service.
pub struct Verifier {
    audience: Service,
    issuers: BTreeMap<Service, Issuer>,
    ended: Ended,
    http: reqwest::Client,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Verifier({})", self.audience)
    }
}

impl Verifier {
    /// Makes a verifier that trusts the service's own keys, and the given issuers at their base addresses.
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
        let generation = peers.get(&Service::Generation);
        let ended = Ended {
            address: generation.map(|base| format!("{}{ENDED_PATH}", base.trim_end_matches('/'))),
            ..Ended::default()
        };
        Self {
            audience,
            issuers,
            ended,
            http,
        }
    }

    /// Verifies a token, and returns its claims. It must be signed by the issuer that it names, be for this service,
    /// and not be expired.
    ///
    /// # Errors
    /// [`ProblemKind::Unauthenticated`]; it has a reason only for a valid token at the wrong time or for another
    /// service. [`ProblemKind::Unavailable`] if the issuer's keys cannot be fetched.
    pub async fn verify(&self, token: &str) -> Result<Claims, Failure> {
        self.verify_at(token, jsonwebtoken::get_current_timestamp())
            .await
    }

    /// Checks that a user's token, given by its account and number, has not been ended before its expiry. An ended token
    /// is refused within seconds, while the generation service answers.
    ///
    /// # Errors
    /// [`ProblemKind::Unauthenticated`].
    pub async fn check_ended(&self, account: Uuid, epoch: Option<u64>) -> Result<(), Failure> {
        let Some(epoch) = epoch else {
            return Ok(());
        };
        self.ended.refresh(&self.http).await;
        if !self.ended.contains(account, epoch) {
            return Ok(());
        }
        let reason = "its account has ended it";
        security::log(self.audience, Event::TokenRefused { reason });
        Err(Failure::new(
            ProblemKind::Unauthenticated,
            "the token is not accepted any more: sign in again",
        ))
    }

    /// Verifies whether the generation service says that a dataset exists and belongs to an account.
    ///
    /// # Errors
    /// The same as for [`Verifier::verify`].
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

    /// Does the work of [`Verifier::verify`] at a given time, in seconds since 1970.
    async fn verify_at(&self, token: &str, now: u64) -> Result<Claims, Failure> {
        let head = jsonwebtoken::decode_header(token);
        let head = head.map_err(|_| self.refused("not a token"))?;
        let kid = head.kid.ok_or_else(|| self.refused("no key id"))?;
        // The unverified issuer only selects the keys to verify the token with.
        let said = jsonwebtoken::dangerous::insecure_decode_claims(token);
        let Said { iss } = said.map_err(|_| self.refused("no issuer"))?;
        let issuer = self.issuers.get(&iss);
        let issuer = issuer.ok_or_else(|| self.refused("an issuer that is not trusted"))?;
        let key = self.key(iss, issuer, &kid).await?;
        let key = key.ok_or_else(|| self.refused("a key that its issuer does not have"))?;
        let mut rules = Validation::new(Algorithm::EdDSA);
        rules.validate_exp = false; // `check_times` does this, with a detailed message
        rules.set_audience(&[self.audience.as_str()]);
        rules.set_issuer(&[iss.as_str()]);
        rules.set_required_spec_claims(&["exp", "aud", "iss"]);
        let claims = jsonwebtoken::decode::<Claims>(token, &key, &rules);
        let claims = claims.map_err(|error| match error.kind() {
            ErrorKind::InvalidAudience => self.of_another(),
            _ => self.refused("an invalid signature or invalid claims"),
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

    /// Makes a refusal whose reason is only for the log.
    fn refused(&self, reason: &'static str) -> Failure {
        security::log(self.audience, Event::TokenRefused { reason });
        Failure::bare(ProblemKind::Unauthenticated)
    }

    /// Makes the refusal of a valid token for another service.
    fn of_another(&self) -> Failure {
        let here = self.audience;
        let reason = "it is for another service";
        security::log(here, Event::TokenRefused { reason });
        Failure::new(
            ProblemKind::Unauthenticated,
            format!(
                "the token is for another service: a sign-in gives one token per service; use the \
                 one for the {here} service"
            ),
        )
    }

    /// Rejects a token that is expired or not yet issued, by more than clocks may differ.
    fn check_times(&self, claims: &Claims, now: u64) -> Result<(), Failure> {
        let (issuer, here) = (claims.iss, self.audience);
        let ahead = if issuer == here { LEEWAY } else { MAX_SKEW };
        let detail = if claims.iat > now.saturating_add(ahead) {
            let ahead = claims.iat - now;
            format!(
                "the token's time is {ahead} s ahead of the {here} service's clock: correct the clock \
                 of the {issuer} service's machine or of this one"
            )
        } else if now > claims.exp.saturating_add(LEEWAY) {
            let (over, age) = (now - claims.exp, now.saturating_sub(claims.iat));
            format!(
                "the token expired {over} s ago by the {here} service's clock, by which it is \
                 {age} s old: if it is younger, correct that clock or the {issuer} service's"
            )
        } else {
            return Ok(());
        };
        tracing::warn!(%issuer, role = ?claims.role, detail, "a token was refused for its time");
        let reason = "its time";
        security::log(here, Event::TokenRefused { reason });
        Err(Failure::new(ProblemKind::Unauthenticated, detail))
    }

    /// Returns an issuer's key, or `None` if the issuer has no such key.
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
                let set = fetch::<JwkSet>(&self.http, address, FETCH_WITHIN).await;
                *asked = Some((Instant::now(), set.is_ok()));
                match &set {
                    Ok(set) => issuer.learn(set),
                    Err(error) => {
                        tracing::warn!(%error, address, "cannot fetch an issuer's keys");
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
}

/// Returns the JSON at an address.
async fn fetch<T: DeserializeOwned>(
    http: &reqwest::Client,
    address: &str,
    within: Duration,
) -> Result<T, reqwest::Error> {
    let response = http.get(address).timeout(within).send().await?;
    response.error_for_status()?.json().await
}

/// The claims of a token that name its issuer.
#[derive(Deserialize)]
struct Said {
    iss: Service,
}

fn out_of_reach(issuer: Service) -> Failure {
    let mut failure = Failure::unavailable(format!(
        "the token cannot be checked: the {issuer} service's keys cannot be fetched"
    ));
    failure.problem.retry_after = Some(FETCH_EVERY.as_secs());
    failure
}
