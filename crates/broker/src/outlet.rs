//! The writing half of a connection without TLS: what is in memory is written, what lies in a file goes there
//! without being read.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use highwater_log::Slice;
use rustix::net::Shutdown;
use rustix::net::sockopt::set_tcp_cork;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use crate::counters;
use crate::reply::{Answer, Part};

/// Shared with the thread that sends a part of an answer. One answer goes out at a time, and whoever sends has
/// it: nobody else writes meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Outlet(Arc<OwnedWriteHalf>);

impl Outlet {
    pub(crate) fn new(half: OwnedWriteHalf) -> Self {
        Self(Arc::new(half))
    }

    /// Sends what the connection takes now, and takes it off the answer. Blocks on the disk where the answer has
    /// slices, and never on the connection.
    ///
    /// # Errors
    /// Of a file and of the connection.
    pub(crate) fn send(&self, answer: &mut Answer) -> io::Result<()> {
        let due = answer.len();
        // Headers go in one packet with the records behind them.
        let corked = answer.has_slices();
        if corked {
            set_tcp_cork(self.stream(), true)?;
        }
        let outcome = self.send_parts(&mut answer.parts);
        if corked {
            set_tcp_cork(self.stream(), false)?;
        }
        counters::sent(due - answer.len());
        outcome
    }

    fn send_parts(&self, parts: &mut VecDeque<Part>) -> io::Result<()> {
        while let Some(part) = parts.front_mut() {
            let sent = match part {
                Part::Bytes(bytes) => self.write(bytes),
                Part::Slice(slice) => self.send_slice(slice),
            };
            match sent {
                Ok(()) => drop(parts.pop_front()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&self, bytes: &mut Bytes) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream().try_write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes.advance(written),
            }
        }
        Ok(())
    }

    fn send_slice(&self, slice: &mut Slice) -> io::Result<()> {
        let stream = self.stream();
        while !slice.is_empty() {
            stream.try_io(Interest::WRITABLE, || slice.send(stream.as_fd()))?;
        }
        Ok(())
    }

    /// Waits until the connection takes something.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.0.writable().await
    }

    /// Ends what goes out.
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(self.stream(), Shutdown::Write)?)
    }

    fn stream(&self) -> &TcpStream {
        self.0.as_ref().as_ref()
    }
}
