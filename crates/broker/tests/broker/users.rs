//! Users for a broker, and their logins.

use std::sync::Arc;

use bytes::Bytes;
use highwater_access::{Access, Hash, Password, User, UsersFile, Verifier};
use highwater_broker::BrokerConfig;
use highwater_protocol::{
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, Secret,
};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client::Client;
use crate::server::Server;

/// A users file in a folder of its own.
pub(crate) struct TestUsers {
    _dir: TempDir,
    pub(crate) file: UsersFile,
}

/// Password of every user.
pub(crate) const PASSWORD: &str = "correct horse";

impl TestUsers {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = UsersFile::new(dir.path().join("users.toml"));
        Self { _dir: dir, file }
    }

    /// The same with a user who has these grants.
    pub(crate) fn with(self, name: &str, grants: &[&str]) -> Self {
        self.put(name, grants);
        self
    }

    pub(crate) fn put(&self, name: &str, grants: &[&str]) {
        let password = Password::new(PASSWORD.as_bytes());
        let user = User {
            name: name.to_owned(),
            role: (name == "admin").then_some(highwater_access::Role::Admin),
            grants: grants.iter().map(|grant| grant.parse().unwrap()).collect(),
            verifiers: Hash::ALL.map(|hash| Verifier::new(hash, &password)).to_vec(),
            tokens: Vec::new(),
        };
        self.file
            .change(|users| {
                users.put(user);
                Ok(())
            })
            .unwrap();
    }

    pub(crate) fn access(&self) -> Arc<Access> {
        Arc::new(Access::of_users(self.file.clone()).unwrap())
    }

    pub(crate) async fn server(&self) -> Server {
        self.server_with(|_| {}).await
    }

    pub(crate) async fn server_with(&self, change: impl FnOnce(&mut BrokerConfig)) -> Server {
        Server::start_with(|config| {
            config.access = self.access();
            change(config);
        })
        .await
    }
}

/// The message of PLAIN.
pub(crate) fn plain(name: &str, password: &str) -> Bytes {
    Bytes::from(format!("\0{name}\0{password}"))
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) async fn handshake(&mut self, mechanism: &str) -> (i16, Vec<String>) {
        let request = SaslHandshakeRequest { mechanism: mechanism.to_owned() };
        let answer = self.call(1, &request).await;
        (answer.error_code.0, answer.mechanisms)
    }

    pub(crate) async fn authenticate(&mut self, message: Bytes) -> SaslAuthenticateResponse {
        self.call(2, &SaslAuthenticateRequest { auth_bytes: Secret(message) }).await
    }

    /// Logs in with PLAIN.
    pub(crate) async fn log_in(&mut self, name: &str) {
        assert_eq!(self.handshake("PLAIN").await.0, 0);
        let answer = self.authenticate(plain(name, PASSWORD)).await;
        assert!(answer.error_code.is_ok(), "{answer:?}");
    }
}

/// A connection of a user.
pub(crate) async fn client_of(server: &Server, name: &str) -> Client {
    let mut client = server.client().await;
    client.log_in(name).await;
    client
}
