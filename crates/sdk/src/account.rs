//! The account that is signed in: what it has, its API keys.

use fhaim_api::account::{
    Account, ApiKey, ApiKeyMade, CloseAccount, Credentials, NewApiKey, NewPassword, Secret,
};
use fhaim_api::token::Service;
use fhaim_api::usage::{Usage, Used};
use reqwest::Method;
use uuid::Uuid;

use crate::client::Body;
use crate::{Client, Endpoints, Error};

impl Client {
    /// The account that is signed in.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn account(&self) -> Result<Account, Error> {
        let address = format!("{}/v1/account", self.endpoints().generation);
        self.json(Method::GET, &address, Body::Empty).await
    }

    /// What the account has at each service, and what it may have.
    ///
    /// # Errors
    /// What a service refuses.
    pub async fn usage(&self) -> Result<Vec<(Service, Vec<Used>)>, Error> {
        let Endpoints {
            generation,
            computation,
            crypto,
            ..
        } = self.endpoints();
        let mut all = Vec::new();
        for (service, base) in [
            (Service::Generation, generation),
            (Service::Computation, computation),
            (Service::Crypto, crypto),
        ] {
            let address = format!("{base}/v1/usage");
            let usage: Usage = self.json(Method::GET, &address, Body::Empty).await?;
            all.push((service, usage.limits));
        }
        Ok(all)
    }

    /// Makes an API key under an identifier that is new; its text is in the answer and nowhere
    /// else. The same again, before the key was used, gives another text.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn create_key(&self, id: Uuid, name: &str) -> Result<ApiKeyMade, Error> {
        let address = format!("{}/v1/api-keys/{id}", self.endpoints().generation);
        let body = Body::json(&NewApiKey {
            name: name.to_owned(),
        });
        self.json(Method::PUT, &address, body).await
    }

    /// The account's API keys.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn keys(&self) -> Result<Vec<ApiKey>, Error> {
        let address = format!("{}/v1/api-keys", self.endpoints().generation);
        self.list(&address).await
    }

    /// Ends an API key.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn delete_key(&self, key: Uuid) -> Result<(), Error> {
        let address = format!("{}/v1/api-keys/{key}", self.endpoints().generation);
        self.call(Method::DELETE, &address, Body::Empty).await?;
        Ok(())
    }

    /// Gives the account another password, and ends its sessions but this program's.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn change_password(&self, password: Secret, new: Secret) -> Result<(), Error> {
        let address = format!("{}/v1/account/password", self.endpoints().generation);
        let body = Body::json(&NewPassword {
            password,
            new_password: new,
        });
        let session = self.json(Method::PUT, &address, body).await?;
        self.take_over(session).await;
        Ok(())
    }

    /// Ends all sessions of the account, this program's too. Its API keys stay.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn sign_out_everywhere(&self) -> Result<(), Error> {
        let address = format!("{}/v1/account/sessions", self.endpoints().generation);
        self.call(Method::DELETE, &address, Body::Empty).await?;
        Ok(())
    }

    /// Deletes all of the account's datasets everywhere, withdraws from those that other accounts made,
    /// and then deletes the account.
    ///
    /// # Errors
    /// What a service refuses. Another password than the account's is refused before anything is
    /// deleted; afterwards what was deleted stays deleted, and the call can be made again.
    pub async fn close_account(&self, password: Secret) -> Result<(), Error> {
        self.check_password(password.clone()).await?;
        for dataset in self.datasets().await? {
            match self.delete_dataset(dataset.id).await {
                Err(Error::OtherMaker(_)) => drop(self.withdraw(&dataset).await?),
                deleted => deleted?,
            }
        }
        let address = format!("{}/v1/account", self.endpoints().generation);
        let body = Body::json(&CloseAccount { password });
        self.call(Method::DELETE, &address, body).await?;
        Ok(())
    }

    /// Shows the account's password where that changes nothing: a session of its own, which ends.
    async fn check_password(&self, password: Secret) -> Result<(), Error> {
        let email = self.account().await?.email;
        let session = self
            .session("", &Body::json(&Credentials { email, password }))
            .await?;
        self.end_session(session.refresh_token).await
    }
}
