"""Thousands of connections that send one byte a second, and open again when they are closed."""

import errno
import socket
import threading
import time


class Flood:
    """`count` connections to one port, each sending the bytes of `saying` one by one, over and over."""

    def __init__(self, port, count, saying):
        self.port, self.count, self.saying = port, count, saying
        self.connections = []
        self.closed = 0
        self.ending = threading.Event()
        self.failed = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def open(self):
        """Opens all of them; returns the seconds that took."""
        started = time.monotonic()
        self.connections = [self._connect() for _ in range(self.count)]
        self.thread.start()
        return time.monotonic() - started

    def close(self):
        """Ends all of them."""
        self.ending.set()
        self.thread.join(30)
        for connection in self.connections:
            connection.close()
        if self.failed:
            raise self.failed

    def _connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        connection.setblocking(False)
        return connection

    def _run(self):
        try:
            second = 0
            while not self.ending.wait(1):
                self._send(second)
                second += 1
        except OSError as error:
            self.failed = error

    def _send(self, second):
        byte = self.saying[second % len(self.saying)].to_bytes(1, "big")
        for index, connection in enumerate(self.connections):
            try:
                connection.send(byte)
            except BlockingIOError:
                pass
            except OSError as error:
                if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                    raise
                self.closed += 1
                connection.close()
                self.connections[index] = self._connect()
