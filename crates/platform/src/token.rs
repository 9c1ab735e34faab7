//! Signing keys, tokens, and who is asking.
//!
//! Every service has Ed25519 signing keys of its own, sealed in its database, rotated, and
//! published at `/.well-known/jwks.json`. Users' tokens are issued by the generation service;
//! services sign their own. A verifier fetches an issuer's keys when it meets a key id it does
//! not know, so a new key works at once and an old one as long as tokens under it live. Where they
//! cannot be had, nobody can say whether the token is good: that is an outage, not a refusal.

use axum::extract::FromRequestParts;
use axum::http::{header, request::Parts};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::SigningKey;
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::{Claims, Role, Service};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use rand::TryRngCore;
use serde::Deserialize;
use serde_json::json;
use sqlx::Row;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::Failure;
use crate::clock::{self, Millis};
use crate::program::Program;
use crate::seal::Sealer;
use crate::shutdown::Shutdown;
use crate::store::Store;

/// A key signs for so long; then a new one takes over.
const SIGNS_FOR: Millis = 30 * 24 * 3600 * 1000;

/// A key is published so long after: longer than any token lives.
const PUBLISHED_AFTER: Millis = 24 * 3600 * 1000;

/// An issuer is asked for its keys at most so often, whatever key ids are shown.
pub(crate) const FETCH_EVERY: Duration = Duration::from_secs(2);

/// An issuer that has not sent its keys by then is out of reach.
const FETCH_WITHIN: Duration = Duration::from_secs(5);

/// Seconds by which another machine's clock may be off, either way. Clocks that nobody sets are
/// found minutes off, and a service must not stop for that; the price is that a stolen token is
/// good for ten minutes longer, which is less than a user's token lives anyway.
const SKEW: u64 = 600;

/// Seconds that a service's own tokens may be over, for a clock that is set while they live.
const OWN_SKEW: u64 = 5;

/// Beginning of an Ed25519 private key in PKCS #8 (RFC 8410, section 7); the seed follows.
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

struct Signing {
    id: String,
    key: EncodingKey,
    public: Jwk,
    made: Millis,
}

/// A service's signing keys.
pub struct Signer {
    service: Service,
    store: Store,
    sealer: Arc<Sealer>,
    /// Newest first.
    keys: RwLock<Vec<Signing>>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer({})", self.service)
    }
}

impl Signer {
    /// Reads a service's keys from the table `signing_keys`, and makes the first.
    ///
    /// # Errors
    /// A failure of the store, or a key that cannot be opened.
    pub async fn open(
        service: Service,
        store: Store,
        sealer: Arc<Sealer>,
    ) -> Result<Self, Failure> {
        let signer = Self {
            service,
            store,
            sealer,
            keys: RwLock::new(Vec::new()),
        };
        signer.rotate().await?;
        Ok(signer)
    }

    /// Rotates once an hour until `shutdown`.
    pub async fn rotate_when_due(&self, shutdown: &Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.raised() => return,
                () = tokio::time::sleep(Duration::from_secs(3600)) => {}
            }
            if let Err(failure) = self.rotate().await {
                tracing::error!(%failure, "the signing keys were not rotated");
            }
        }
    }

    /// Makes a new key if the newest has signed long enough, forgets those that no token can be
    /// under any more, and reads the others. To be called now and then.
    ///
    /// # Errors
    /// A failure of the store, or a key that cannot be opened.
    pub async fn rotate(&self) -> Result<(), Failure> {
        let now = clock::now();
        let mut tx = self.store.begin().await?;
        sqlx::query("DELETE FROM signing_keys WHERE made_at < $1")
            .bind(now - SIGNS_FOR - PUBLISHED_AFTER)
            .execute(&mut *tx)
            .await?;
        let newest = sqlx::query("SELECT id FROM signing_keys WHERE made_at >= $1")
            .bind(now - SIGNS_FOR)
            .fetch_optional(&mut *tx)
            .await?;
        if newest.is_none() {
            let id = Uuid::new_v4().to_string();
            let mut seed = Zeroizing::new([0; 32]);
            rand::rngs::OsRng
                .try_fill_bytes(seed.as_mut_slice())
                .map_err(Failure::internal)?;
            let sealed = self.sealer.seal(&context(&id), seed.as_slice())?;
            sqlx::query("INSERT INTO signing_keys (id, sealed, made_at) VALUES ($1, $2, $3)")
                .bind(&id)
                .bind(&sealed)
                .bind(now)
                .execute(&mut *tx)
                .await?;
        }
        let rows =
            sqlx::query("SELECT id, sealed, made_at FROM signing_keys ORDER BY made_at DESC")
                .fetch_all(&mut *tx)
                .await?;
        tx.commit().await?;
        let mut keys = Vec::with_capacity(rows.len());
        for row in rows {
            let id: String = row.try_get("id")?;
            let sealed: Vec<u8> = row.try_get("sealed")?;
            let seed = self.sealer.open(&context(&id), &sealed)?;
            keys.push(signing(id, &seed, row.try_get("made_at")?)?);
        }
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// The public keys, for `/.well-known/jwks.json`.
    pub fn jwks(&self) -> JwkSet {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        JwkSet {
            keys: keys.iter().map(|key| key.public.clone()).collect(),
        }
    }

    /// A user's token, good for all services.
    ///
    /// # Errors
    /// If there is no key.
    pub fn user_token(&self, account: Uuid, lifetime: Duration) -> Result<String, Failure> {
        let audience = vec![Service::Generation, Service::Computation, Service::Crypto];
        self.sign(audience, Role::User, Some(account), lifetime)
    }

    /// This service's token for another.
    ///
    /// # Errors
    /// If there is no key.
    pub fn service_token(&self, audience: Service, lifetime: Duration) -> Result<String, Failure> {
        self.sign(vec![audience], Role::Service, None, lifetime)
    }

    fn sign(
        &self,
        aud: Vec<Service>,
        role: Role,
        sub: Option<Uuid>,
        lifetime: Duration,
    ) -> Result<String, Failure> {
        let iat = jsonwebtoken::get_current_timestamp();
        let claims = Claims {
            iss: self.service,
            aud,
            role,
            sub,
            iat,
            exp: iat.saturating_add(lifetime.as_secs()),
            jti: Uuid::new_v4(),
        };
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let newest = keys.iter().max_by_key(|key| key.made);
        let newest = newest.ok_or_else(|| Failure::internal("there is no signing key"))?;
        let mut head = Header::new(Algorithm::EdDSA);
        head.kid = Some(newest.id.clone());
        jsonwebtoken::encode(&head, &claims, &newest.key).map_err(Failure::internal)
    }
}

fn context(id: &str) -> String {
    format!("signing key {id}")
}

fn signing(id: String, seed: &[u8], made: Millis) -> Result<Signing, Failure> {
    let seed: &[u8; 32] = seed
        .try_into()
        .map_err(|_| Failure::internal("a signing key is damaged"))?;
    let public = SigningKey::from_bytes(seed).verifying_key();
    let private = Zeroizing::new([PKCS8.as_slice(), seed].concat());
    let jwk = json!({
        "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": id,
        "x": URL_SAFE_NO_PAD.encode(public.as_bytes()),
    });
    Ok(Signing {
        key: EncodingKey::from_ed_der(&private),
        public: serde_json::from_value(jwk)?,
        id,
        made,
    })
}

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
        let audience = signer.service;
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

    /// [`Verifier::verify`] at a time, in seconds since 1970.
    async fn verify_at(&self, token: &str, now: u64) -> Result<Claims, Failure> {
        let refused = || Failure::bare(ProblemKind::Unauthenticated);
        let head = jsonwebtoken::decode_header(token).map_err(|_| refused())?;
        let kid = head.kid.ok_or_else(refused)?;
        // Who it says it is from, before anything is believed: that one's keys are looked at.
        let Said { iss } =
            jsonwebtoken::dangerous::insecure_decode_claims(token).map_err(|_| refused())?;
        let issuer = self.issuers.get(&iss).ok_or_else(refused)?;
        let key = self.key(iss, issuer, &kid).await?.ok_or_else(refused)?;
        let mut rules = Validation::new(Algorithm::EdDSA);
        rules.validate_exp = false; // below, with words
        rules.set_audience(&[self.audience.as_str()]);
        rules.set_issuer(&[iss.as_str()]);
        rules.set_required_spec_claims(&["exp", "aud", "iss"]);
        let claims = jsonwebtoken::decode::<Claims>(token, &key, &rules)
            .map_err(|_| refused())?
            .claims;
        // Only the generation service knows users.
        let users = iss == Service::Generation && claims.sub.is_some();
        let sound = match claims.role {
            Role::User => users,
            Role::Service => claims.sub.is_none(),
        };
        if !sound {
            return Err(refused());
        }
        self.check_times(&claims, now)?;
        Ok(claims)
    }

    /// Refuses a token that is expired, or not issued yet, by more than clocks may differ.
    fn check_times(&self, claims: &Claims, now: u64) -> Result<(), Failure> {
        let (issuer, here) = (claims.iss, self.audience);
        let skew = if issuer == here { OWN_SKEW } else { SKEW };
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

/// The account that is asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User(pub Uuid);

/// The service that is asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub Service);

/// Whoever is asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A user.
    User(Uuid),
    /// A service.
    Service(Service),
}

impl<S: Program> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let refused = || Failure::bare(ProblemKind::Unauthenticated);
        let header = parts
            .headers
            .get(header::AUTHORIZATION)
            .ok_or_else(refused)?;
        let header = header.to_str().map_err(|_| refused())?;
        let token = header.strip_prefix("Bearer ").ok_or_else(refused)?;
        let claims = state.base().verifier.verify(token).await?;
        match (claims.role, claims.sub) {
            (Role::User, Some(account)) => Ok(Caller::User(account)),
            (Role::Service, None) => Ok(Caller::Service(claims.iss)),
            _ => Err(refused()),
        }
    }
}

impl<S: Program> FromRequestParts<S> for User {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match Caller::from_request_parts(parts, state).await? {
            Caller::User(account) => Ok(Self(account)),
            Caller::Service(_) => Err(Failure::bare(ProblemKind::Forbidden)),
        }
    }
}

impl<S: Program> FromRequestParts<S> for Peer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match Caller::from_request_parts(parts, state).await? {
            Caller::Service(service) => Ok(Self(service)),
            Caller::User(_) => Err(Failure::bare(ProblemKind::Forbidden)),
        }
    }
}

impl Peer {
    /// Refuses every service but one.
    ///
    /// # Errors
    /// [`ProblemKind::Forbidden`].
    pub fn must_be(self, service: Service) -> Result<(), Failure> {
        if self.0 == service {
            Ok(())
        } else {
            Err(Failure::bare(ProblemKind::Forbidden))
        }
    }
}
