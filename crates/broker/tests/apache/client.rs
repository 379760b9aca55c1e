//! A connection that speaks the protocol and hides nothing of it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::BytesMut;
use highwater_protocol::{Message, Request, ResponseHeader, frame};

/// Longer than any answer may take.
const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    stream: TcpStream,
    received: BytesMut,
    correlation_id: i32,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = opened(address);
        Self { address, stream, received: BytesMut::new(), correlation_id: 0 }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.try_call(version, request).expect("an answer, not the end of the connection")
    }

    /// As [`Self::call`]; nothing where the connection ended instead, and then a new one is there.
    pub(crate) fn try_call<R: Request>(
        &mut self,
        version: i16,
        request: &R,
    ) -> Option<R::Response> {
        self.send(version, request);
        self.try_answer::<R>(version)
    }

    /// The answer to what was sent last.
    pub(crate) fn try_answer<R: Request>(&mut self, version: i16) -> Option<R::Response> {
        let answer = self.receive::<R>(version);
        if answer.is_none() {
            self.stream = opened(self.address);
            self.received.clear();
        }
        answer
    }

    /// Sends a request that nobody answers.
    pub(crate) fn send<R: Request>(&mut self, version: i16, request: &R) {
        self.correlation_id += 1;
        let mut out = BytesMut::new();
        frame::encode_request(&mut out, version, self.correlation_id, Some("judge"), request);
        // Where the other end is gone, reading tells.
        let _ = self.stream.write_all(&out);
    }

    fn receive<R: Request>(&mut self, version: i16) -> Option<R::Response> {
        let mut body = loop {
            if let Some(frame) = frame::split(&mut self.received, frame::DEFAULT_MAX).unwrap() {
                break frame;
            }
            let mut chunk = [0; 1 << 16];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer came"),
                Err(_) => return None,
            }
        };
        let header = ResponseHeader::decode(&mut body, R::KEY, version).unwrap();
        assert_eq!(header.correlation_id, self.correlation_id);
        Some(R::Response::decode_body(body, version).unwrap())
    }
}

fn opened(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}
