//! A service's signing keys, and the tokens that it signs with them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::SigningKey;
use fhaim_api::token::{Claims, Role, Service};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rand::TryRngCore;
use serde_json::json;
use sqlx::Row;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::eddsa::{self, PKCS8};
use crate::Failure;
use crate::clock::{self, Millis};
use crate::rows;
use crate::seal::{SealError, Sealer};
use crate::store::{Store, Tx, lock_owner};

/// Time for which a key signs, before a new one takes over.
const SIGNS_FOR: Millis = 30 * 24 * 3600 * 1000;

/// Time for which a key stays published after that, which is longer than any token lives.
const PUBLISHED_AFTER: Millis = 24 * 3600 * 1000;

/// Time for which a key is published before it signs, unless it is the first. Every replica of the service reads the
/// keys again within this time. A caller that asks one replica for a key that another signs with therefore finds it.
const PUBLISHED_BEFORE: Millis = 10 * 60 * 1000;

/// Owner without a user, whose lock makes replicas wait for each other when they start together. One of them makes
/// the first key, and the others read it.
const ROTATION: Uuid = Uuid::nil();

struct Signing {
    id: String,
    key: EncodingKey,
    public: Jwk,
    made: Millis,
}

/// The session of a token.
#[derive(Clone, Copy, Debug)]
pub struct TokenSession {
    /// The account.
    pub account: Uuid,
    /// The number of the account's tokens ([`Claims::epoch`]).
    pub epoch: u64,
    /// Whether an API key began the session.
    pub by_key: bool,
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
    /// Reads a service's keys from the table `signing_keys`, and makes the first key.
    ///
    /// # Errors
    /// [`Failure`] if the store fails, or a key cannot be opened.
    pub async fn open(
        service: Service,
        store: Store,
        sealer: Arc<Sealer>,
    ) -> Result<Self, Failure> {
        eddsa::install();
        let signer = Self {
            service,
            store,
            sealer,
            keys: RwLock::new(Vec::new()),
        };
        signer.rotate().await?;
        Ok(signer)
    }

    /// Makes a new key if the newest has signed for long enough, deletes keys that no valid token can be under, and
    /// reads the others. A damaged key is left out: tokens that it signed are not valid any more. Must be called
    /// regularly.
    ///
    /// # Errors
    /// [`Failure`] if the store fails, or if all keys were sealed under keys that the configuration does not have.
    pub async fn rotate(&self) -> Result<(), Failure> {
        self.rotate_at(clock::now()).await
    }

    /// Does the work of [`Signer::rotate`] at a given time.
    async fn rotate_at(&self, now: Millis) -> Result<(), Failure> {
        let mut tx = self.store.begin().await?;
        lock_owner(&mut tx, ROTATION).await?;
        sqlx::query("DELETE FROM signing_keys WHERE made_at < $1")
            .bind(now - SIGNS_FOR - PUBLISHED_AFTER)
            .execute(&mut *tx)
            .await?;
        let mut keys = self.stored(&mut tx).await?;
        if keys.iter().all(|key| key.made < now - SIGNS_FOR) {
            keys.insert(0, self.make(&mut tx, now).await?);
        }
        tx.commit().await?;
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// Reads the stored keys that can be opened, newest first.
    async fn stored(&self, tx: &mut Tx) -> Result<Vec<Signing>, Failure> {
        let select = "SELECT id, sealed, made_at FROM signing_keys ORDER BY made_at DESC";
        let rows = sqlx::query(select).fetch(&mut **tx);
        let rows = rows::readable("signing_keys", rows).await?.rows;
        let mut keys = Vec::with_capacity(rows.len());
        let (mut unknown, count) = (Vec::new(), rows.len());
        for row in rows {
            let id: String = row.try_get("id")?;
            // A column that cannot be read does not open.
            let sealed: Vec<u8> = row.try_get("sealed").unwrap_or_default();
            match self.sealer.open(&context(&id), &sealed) {
                Ok(seed) => keys.push(signing(id, &seed, row.try_get("made_at")?)?),
                Err(error) => {
                    let service = self.service;
                    tracing::error!(%service, id, %error, "a signing key is left out");
                    if matches!(error, SealError::UnknownKey) {
                        unknown.push(id);
                    }
                }
            }
        }
        // Other secrets of the database would not open either, so new signing keys would not help.
        if count > 0 && unknown.len() == count {
            return Err(Failure::internal(format!(
                "the signing keys {} of the {} service were sealed under a key that the configuration \
                 (`common.sealing`) does not have: add that key to it",
                unknown.join(", "),
                self.service
            )));
        }
        Ok(keys)
    }

    /// Makes and returns a new key.
    async fn make(&self, tx: &mut Tx, now: Millis) -> Result<Signing, Failure> {
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
            .execute(&mut **tx)
            .await?;
        signing(id, seed.as_slice(), now)
    }

    /// Returns the service that has the keys.
    pub(super) fn service(&self) -> Service {
        self.service
    }

    /// Returns the public keys, for `/.well-known/jwks.json`.
    pub fn jwks(&self) -> JwkSet {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        JwkSet {
            keys: keys.iter().map(|key| key.public.clone()).collect(),
        }
    }

    /// Signs a token of a session.
    ///
    /// # Errors
    /// [`Failure::internal`] if there is no key.
    pub fn session_token(
        &self,
        audience: Service,
        session: TokenSession,
        lifetime: Duration,
    ) -> Result<String, Failure> {
        self.sign(&Claims {
            sub: Some(session.account),
            epoch: Some(session.epoch),
            by_key: session.by_key,
            ..self.claims(audience, Role::User, lifetime)
        })
    }

    /// Signs a token for a call to another service, for a user who asked this service for the call.
    ///
    /// # Errors
    /// [`Failure::internal`] if there is no key.
    pub fn token_for_user(
        &self,
        audience: Service,
        account: Uuid,
        lifetime: Duration,
    ) -> Result<String, Failure> {
        self.sign(&Claims {
            sub: Some(account),
            ..self.claims(audience, Role::User, lifetime)
        })
    }

    /// Signs this service's token for another service.
    ///
    /// # Errors
    /// [`Failure::internal`] if there is no key.
    pub fn service_token(&self, audience: Service, lifetime: Duration) -> Result<String, Failure> {
        self.sign(&self.claims(audience, Role::Service, lifetime))
    }

    /// Signs a statement for the crypto service that a dataset exists and belongs to an account.
    ///
    /// # Errors
    /// [`Failure::internal`] if there is no key.
    pub fn voucher(
        &self,
        account: Uuid,
        dataset: Uuid,
        lifetime: Duration,
    ) -> Result<String, Failure> {
        self.sign(&Claims {
            sub: Some(account),
            dataset: Some(dataset),
            ..self.claims(Service::Crypto, Role::Voucher, lifetime)
        })
    }

    /// Returns claims from now on, about no account.
    fn claims(&self, audience: Service, role: Role, lifetime: Duration) -> Claims {
        let iat = jsonwebtoken::get_current_timestamp();
        Claims {
            iss: self.service,
            aud: vec![audience],
            role,
            sub: None,
            dataset: None,
            epoch: None,
            by_key: false,
            iat,
            exp: iat.saturating_add(lifetime.as_secs()),
            jti: Uuid::new_v4(),
        }
    }

    fn sign(&self, claims: &Claims) -> Result<String, Failure> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = signs_at(&keys, clock::now());
        let key = key.ok_or_else(|| Failure::internal("there is no signing key"))?;
        let mut head = Header::new(Algorithm::EdDSA);
        head.kid = Some(key.id.clone());
        jsonwebtoken::encode(&head, claims, &key.key).map_err(Failure::internal)
    }
}

/// Returns the key that signs: the newest one that has been published for long enough, or else the oldest.
fn signs_at(keys: &[Signing], now: Millis) -> Option<&Signing> {
    let published = |key: &&Signing| key.made <= now - PUBLISHED_BEFORE;
    let newest = keys.iter().filter(published).max_by_key(|key| key.made);
    newest.or_else(|| keys.iter().min_by_key(|key| key.made))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Database;

    /// Opens two replicas of a service over one store.
    async fn replicas(folder: &tempfile::TempDir) -> [Signer; 2] {
        let config = Database {
            url: format!("sqlite://{}/store.db", folder.path().display()),
            connections: 2,
        };
        let store = Store::open(&config, &[]).await.unwrap();
        let sealer = Arc::new(Sealer::from_text(&"ab".repeat(32)).unwrap());
        let open = || Signer::open(Service::Crypto, store.clone(), sealer.clone());
        [open().await.unwrap(), open().await.unwrap()]
    }

    /// Returns the key that a replica signs with at a given time.
    fn signs(signer: &Signer, now: Millis) -> String {
        signs_at(&signer.keys.read().unwrap(), now)
            .unwrap()
            .id
            .clone()
    }

    fn publishes(signer: &Signer, id: &str) -> bool {
        let keys = signer.jwks().keys;
        keys.iter()
            .any(|key| key.common.key_id.as_deref() == Some(id))
    }

    async fn open(store: &Store, sealing: &str) -> Result<Signer, Failure> {
        let sealer = Arc::new(Sealer::from_text(sealing).unwrap());
        Signer::open(Service::Crypto, store.clone(), sealer).await
    }

    #[tokio::test]
    async fn damaged_signing_key_is_replaced_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let [signer, _] = replicas(&folder).await;
        let (store, now) = (&signer.store, clock::now());
        let damaged = signs(&signer, now);
        // The first 8 bytes name the sealing key, which is still the right one.
        sqlx::query("UPDATE signing_keys SET sealed = substr(sealed, 1, 60) || x'0102'")
            .execute(store.pool())
            .await
            .unwrap();
        let again = open(store, &"ab".repeat(32)).await.unwrap();
        assert_ne!(signs(&again, now), damaged);
        assert!(!publishes(&again, &damaged));
    }

    #[tokio::test]
    async fn start_with_another_sealing_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [signer, _] = replicas(&folder).await;
        let refused = open(&signer.store, &"cd".repeat(32)).await.unwrap_err();
        assert!(refused.to_string().contains("common.sealing"), "{refused}");
    }

    #[tokio::test]
    async fn keys_that_one_replica_signs_with_are_published_by_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = replicas(&folder).await;
        let start = clock::now();
        let old = signs(&first, start);
        assert_eq!(signs(&second, start), old);
        // The first replica makes the next key, and the second has not read the keys since.
        let due = start + SIGNS_FOR + 1000;
        first.rotate_at(due).await.unwrap();
        assert_eq!(first.jwks().keys.len(), 2);
        assert_eq!(signs(&first, due), old);
        assert!(publishes(&second, &signs(&first, due)));
        // It reads them every minute, and later the new key signs.
        second.rotate_at(due + 60_000).await.unwrap();
        let later = due + PUBLISHED_BEFORE;
        let new = signs(&first, later);
        assert_ne!(new, old);
        assert_eq!(signs(&second, later), new);
        assert!(publishes(&second, &new));
    }
}
