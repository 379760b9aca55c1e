//! Tells the service manager that started the server how far it is (systemd's sd_notify protocol: one
//! datagram to the socket that `NOTIFY_SOCKET` names).

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The server is up.
pub(crate) const READY: &str = "READY=1";

/// The server was asked to stop.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Says it, if somebody wants to hear it.
pub(crate) fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, "the service manager could not be told: {state}");
    }
}

fn send(socket: &OsString, state: &str) -> io::Result<()> {
    // A name that begins with @ is in the abstract namespace (sd_notify(3)).
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_datagram_says_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        send(&path.into_os_string(), READY).unwrap();
        let mut heard = [0; 16];
        let length = manager.recv(&mut heard).unwrap();
        assert_eq!(&heard[..length], READY.as_bytes());
    }
}
