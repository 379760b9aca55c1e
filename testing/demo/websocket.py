"""A WebSocket client (RFC 6455) on the standard library alone: it listens, answers pings, no more."""

import base64
import hashlib
import os
import socket
from urllib.parse import urlsplit

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MAX_MESSAGE = 256 * 1024 * 1024
IDLE_SECONDS = 120


class Refused(Exception):
    """The server answered the upgrade with another status than 101."""

    def __init__(self, status, body):
        super().__init__(f"HTTP {status}: {body}")
        self.status = status
        self.body = body


class Closed(Exception):
    """The connection ended: by a close frame, or without one."""


class WebSocket:
    """One open connection."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port or 80), timeout=10)
        self.stream = self.socket.makefile("rb")
        try:
            self._upgrade(parts)
        except BaseException:
            self.close()
            raise
        self.socket.settimeout(IDLE_SECONDS)

    def _upgrade(self, parts):
        key = base64.b64encode(os.urandom(16)).decode()
        target = parts.path + ("?" + parts.query if parts.query else "")
        self.socket.sendall(
            f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            f"Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        status, headers = self._response_head()
        if status != 101:
            length = int(headers.get("content-length", 0))
            raise Refused(status, self.stream.read(min(length, 65536)).decode(errors="replace"))
        expected = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        if headers.get("sec-websocket-accept") != expected:
            raise Closed("the server's Sec-WebSocket-Accept does not answer our key")

    def _response_head(self):
        words = self._line().split(" ", 2)
        if len(words) < 2 or not words[1].isdigit():
            raise Closed("the answer is not HTTP")
        headers = {}
        while line := self._line():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(words[1]), headers

    def _line(self):
        line = self.stream.readline(65536)
        if not line.endswith(b"\n"):
            raise Closed("the connection ended inside the answer's head")
        return line.strip().decode("latin-1")

    def messages(self):
        """Yields whole text messages; raises Closed at the end, never returns."""
        parts, size = [], 0
        while True:
            final, opcode, payload = self._frame()
            if opcode == PING:
                self._send(PONG, payload)
            elif opcode == CLOSE:
                raise Closed(close_reason(payload))
            elif opcode != PONG:
                size += len(payload)
                if size > MAX_MESSAGE:
                    raise Closed("a message beyond 256 MiB")
                parts.append(payload)
                if final:
                    yield b"".join(parts).decode()
                    parts, size = [], 0

    def _frame(self):
        first, second = self._exactly(2)
        length = second & 0x7F
        if length == 126:
            length = int.from_bytes(self._exactly(2), "big")
        elif length == 127:
            length = int.from_bytes(self._exactly(8), "big")
        if second & 0x80 or length > MAX_MESSAGE:
            raise Closed("a masked or oversized frame from the server")
        return bool(first & 0x80), first & 0x0F, self._exactly(length)

    def _exactly(self, count):
        data = self.stream.read(count)
        if len(data) < count:
            raise Closed("the connection ended without a close frame")
        return data

    def _send(self, opcode, payload):
        # A client masks what it sends (RFC 6455, 5.3); a control frame holds up to 125 bytes.
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.socket.sendall(bytes([0x80 | opcode, 0x80 | len(payload)]) + mask + masked)

    def close(self):
        """Drops the connection."""
        self.stream.close()
        self.socket.close()


def close_reason(payload):
    """The text of a close frame."""
    if len(payload) < 2:
        return "closed without a code"
    return f"closed with {int.from_bytes(payload[:2], 'big')}: {payload[2:].decode(errors='replace')}"
