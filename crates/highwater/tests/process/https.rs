//! Certificates, and HTTP over TLS as plainly as can be.

#![expect(unreachable_pub, reason = "shared by tests, each of which is a program")]
#![allow(dead_code, reason = "and uses a part of it")]

use std::path::Path;

use highwater_kafka::{Tls, encrypt};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// An authority that signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new(folder: &Path, file: &str) -> Self {
        let mut params = CertificateParams::default();
        // Two of one name would be taken for one.
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, file);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.join(file), issuer.pem()).unwrap();
        Self(issuer)
    }

    /// Writes `NAME.pem` and `NAME.key` of a host that has these names.
    pub fn host(&self, folder: &Path, name: &str, hosts: &[&str]) {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        self.sign(folder, name, CertificateParams::new(hosts).unwrap());
    }

    /// Writes `NAME.pem` and `NAME.key` of somebody whose subject is `CN=NAME,O=shop`.
    pub fn user(&self, folder: &Path, name: &str) {
        let mut params = CertificateParams::default();
        let mut subject = DistinguishedName::new();
        subject.push(DnType::OrganizationName, "shop");
        subject.push(DnType::CommonName, name);
        params.distinguished_name = subject;
        self.sign(folder, name, params);
    }

    fn sign(&self, folder: &Path, name: &str, params: CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.0).unwrap();
        std::fs::write(folder.join(format!("{name}.pem")), signed.pem()).unwrap();
        std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

/// Sends a request with these headers, and what is not looked at for a body; the status and the whole
/// answer.
pub async fn ask(
    port: u16,
    tls: &Tls,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let tcp = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let mut stream = encrypt(tls, "localhost", tcp).await.unwrap();
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        let length = body.len();
        request
            .push_str(&format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"));
    }
    request.push_str(&format!("\r\n{body}"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The server may end the connection without a word of TLS.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("{answer:?}"));
    (status.parse().unwrap(), answer)
}
