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
use crate::seal::Sealer;
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
    /// reads the others. Must be called regularly.
    ///
    /// # Errors
    /// [`Failure`] if the store fails, or a key cannot be opened.
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
        let newest = sqlx::query("SELECT id FROM signing_keys WHERE made_at >= $1")
            .bind(now - SIGNS_FOR)
            .fetch_optional(&mut *tx)
            .await?;
        if newest.is_none() {
            self.make(&mut tx, now).await?;
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

    /// Makes a new key.
    async fn make(&self, tx: &mut Tx, now: Millis) -> Result<(), Failure> {
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
        Ok(())
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

    /// Signs a user's token for one service. `epoch` is the account's number of [`Claims::epoch`].
    ///
    /// # Errors
    /// [`Failure::internal`] if there is no key.
    pub fn user_token(
        &self,
        audience: Service,
        account: Uuid,
        epoch: u64,
        lifetime: Duration,
    ) -> Result<String, Failure> {
        self.sign(&Claims {
            sub: Some(account),
            epoch: Some(epoch),
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
