//! The signed-in account and its API keys.

use fhaim_api::account::{
    Account, ApiKey, ApiKeyMade, CloseAccount, Credentials, NewApiKey, NewPassword, Secret,
};
use fhaim_api::keys::KeySet;
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_api::usage::{Usage, Used};
use reqwest::Method;
use uuid::Uuid;

use crate::client::Body;
use crate::dataset::unless_unknown;
use crate::{Client, Endpoints, Error, List};

impl Client {
    /// Returns the signed-in account.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn account(&self) -> Result<Account, Error> {
        let address = format!("{}/v1/account", self.endpoints().generation);
        self.json(Method::GET, &address, Body::Empty).await
    }

    /// Returns the account's usage and limits at each service.
    ///
    /// # Errors
    /// The errors of the services.
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

    /// Creates an API key under a new identifier. Only the answer contains the key's text. Repeating the call before
    /// the key is used returns another text.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn create_key(&self, id: Uuid, name: &str) -> Result<ApiKeyMade, Error> {
        let address = format!("{}/v1/api-keys/{id}", self.endpoints().generation);
        let body = Body::json(&NewApiKey {
            name: name.to_owned(),
        });
        self.json(Method::PUT, &address, body).await
    }

    /// Returns the account's API keys.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn keys(&self) -> Result<Vec<ApiKey>, Error> {
        let address = format!("{}/v1/api-keys", self.endpoints().generation);
        Ok(self.list(&address).await?.items)
    }

    /// Deletes an API key.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn delete_key(&self, key: Uuid) -> Result<(), Error> {
        let address = format!("{}/v1/api-keys/{key}", self.endpoints().generation);
        self.call(Method::DELETE, &address, Body::Empty).await?;
        Ok(())
    }

    /// Changes the account's password, and ends its sessions except this program's.
    ///
    /// # Errors
    /// The errors of the service.
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

    /// Ends all sessions of the account, including this program's. Its API keys stay valid.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn sign_out_everywhere(&self) -> Result<(), Error> {
        let address = format!("{}/v1/account/sessions", self.endpoints().generation);
        self.call(Method::DELETE, &address, Body::Empty).await?;
        Ok(())
    }

    /// Deletes all datasets of the account at all services, withdraws from datasets that other accounts made, and then
    /// deletes the account.
    ///
    /// # Errors
    /// The errors of the services. A wrong password is rejected before anything is deleted. After another error,
    /// deleted datasets stay deleted, and the call can be repeated.
    pub async fn close_account(&self, password: Secret) -> Result<(), Error> {
        self.check_password(password.clone()).await?;
        let List { items, damaged } = self.datasets().await?;
        for dataset in items {
            match self.delete_dataset(dataset.id).await {
                Err(Error::OtherMaker(_)) => drop(self.withdraw(&dataset).await?),
                deleted => deleted?,
            }
        }
        for dataset in damaged {
            match self.delete_dataset(dataset).await {
                // Another holder made it.
                Err(error) if error.kind() == Some(ProblemKind::NotFound) => {
                    let withdrawn: Result<KeySet, Error> = self
                        .of_ledger(Method::PUT, dataset, "/withdrawal", Body::Empty)
                        .await;
                    unless_unknown(withdrawn)?;
                }
                deleted => deleted?,
            }
        }
        let address = format!("{}/v1/account", self.endpoints().generation);
        let body = Body::json(&CloseAccount { password });
        self.call(Method::DELETE, &address, body).await?;
        Ok(())
    }

    /// Checks the account's password without changing anything: opens a separate session and ends it.
    async fn check_password(&self, password: Secret) -> Result<(), Error> {
        let email = self.account().await?.email;
        let session = self.session_of(&Credentials { email, password }).await;
        let session = session.map_err(|error| match error {
            Error::WrongCredentials => Error::WrongPassword,
            _ => error,
        })?;
        self.end_session(session.refresh_token).await
    }
}
