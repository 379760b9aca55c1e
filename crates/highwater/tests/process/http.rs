//! HTTP, as plainly as can be.

#![expect(unreachable_pub, reason = "shared by tests, each of which is a program")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// The whole answer to a GET.
pub fn get(url: &str, path: &str) -> String {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap_or(url))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    asked().unwrap_or_else(|error| error.to_string())
}
