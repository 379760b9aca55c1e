"""The demo's client: what it writes, where it resumes, what it takes for a refusal."""

import base64
import contextlib
import hashlib
import io
import json
import os
import socket
import tempfile
import threading
import unittest

import client
from websocket import GUID, Closed, Refused, WebSocket


def frame(opcode, payload, final=True):
    """A frame as a server sends it."""
    size = len(payload)
    if size < 126:
        length = bytes([size])
    else:
        length = b"\x7e" + size.to_bytes(2, "big") if size < 65536 else b"\x7f" + size.to_bytes(8, "big")
    return bytes([opcode | 0x80 * final]) + length + payload


class Server:
    """Answers one connection a script, each script being bytes to send after the upgrade, or before."""

    def __init__(self, *scripts):
        self.scripts = scripts
        self.requests, self.received = [], b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}/services/v2/stream/s"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        """Plays the scripts."""
        for script in self.scripts:
            connection, _ = self.listener.accept()
            with connection, connection.makefile("rb") as stream:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += stream.readline()
                self.requests.append(head.decode().split(" ")[1])
                if script.startswith(b"HTTP/"):
                    connection.sendall(script)
                else:
                    connection.sendall(self.upgrade(head) + script)
                connection.shutdown(socket.SHUT_WR)
                self.received = stream.read()
        self.listener.close()

    @staticmethod
    def upgrade(head):
        """The answer to the client's key."""
        key = head.split(b"Sec-WebSocket-Key: ")[1].split(b"\r\n")[0].decode()
        accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        return (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n\r\n"
        ).encode()


def refusal(status, body=b"{}"):
    """An answer before the upgrade."""
    return b"HTTP/1.1 %d No\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


class Protocol(unittest.TestCase):
    """RFC 6455, as far as the client needs it."""

    def test_messages_come_whole_and_pings_are_answered(self):
        big = "ä" * 70_000
        script = (
            frame(1, b"one") + frame(9, b"hello") + frame(1, b"t", final=False) + frame(0, b"wo")
            + frame(1, b"x" * 300) + frame(1, big.encode()) + frame(8, b"\x03\xe8bye")
        )  # fmt: skip
        server = Server(script)
        connection, messages = WebSocket(server.url), []
        with self.assertRaisesRegex(Closed, "1000: bye"):
            for message in connection.messages():
                messages.append(message)
        connection.close()
        server.thread.join(5)
        self.assertEqual(messages, ["one", "two", "x" * 300, big])
        pong, masked = server.received[:2], server.received[6:11]
        mask = server.received[2:6]
        self.assertEqual(pong, b"\x8a\x85")
        self.assertEqual(bytes(b ^ mask[i % 4] for i, b in enumerate(masked)), b"hello")

    def test_an_end_without_a_close_frame_is_noticed(self):
        connection = WebSocket(Server(frame(1, b"abc")[:-1]).url)
        with self.assertRaisesRegex(Closed, "without a close frame"):
            list(connection.messages())
        connection.close()

    def test_a_refusal_carries_status_and_body(self):
        with self.assertRaises(Refused) as caught:
            WebSocket(Server(refusal(410, b'{"code":"gone"}')).url)
        self.assertEqual((caught.exception.status, caught.exception.body), (410, '{"code":"gone"}'))


class File(unittest.TestCase):
    """The file and the position in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "client.jsonl")

    def content(self):
        """What stands in the file."""
        with open(self.path, "rb") as file:
            return file.read()

    def test_records_are_split_byte_for_byte(self):
        texts = ['{"a": 1.50,"b":"],["}', "{}", '{"c":[1, 2]}']
        message = " [ " + " , ".join(texts) + " ] "
        self.assertEqual([text for text, _ in client.split_records(message)], texts)
        self.assertEqual(list(client.split_records("[]")), [])
        with self.assertRaises(ValueError):
            list(client.split_records("{}"))

    def test_a_torn_line_is_dropped_and_the_one_before_it_counts(self):
        whole = b'{"pos":"p1","record":{}}\n' + b'{"pos":"p2","record":{"x":"' + b"y" * 200_000 + b'"}}\n'
        for torn in (b"", b"{", b'{"pos":"p3"' + b"z" * 100_000):
            with open(self.path, "wb") as file:
                file.write(whole + torn)
            with open(self.path, "a+b") as file:
                client.drop_torn_line(file)
                self.assertEqual(client.last_position(file), "p2")
            self.assertEqual(self.content(), whole)

    def test_an_empty_file_has_no_position(self):
        for content in (b"", b"torn"):
            file = io.BytesIO(content)
            client.drop_torn_line(file)
            self.assertIsNone(client.last_position(file))

    def test_a_record_without_position_is_an_error_but_descriptions_are_not_written(self):
        self.assertTrue(client.is_description({"op_type": "STREAM_METADATA"}))
        self.assertTrue(client.is_description({"id": "x", "$schema": "y"}))
        with self.assertRaises(ValueError):
            client.line_of("{}", {"op_type": "GAP"})

    def test_it_resumes_behind_its_last_line_and_ends_on_a_refusal(self):
        def message(*positions):
            records = [{"op_type": "STREAM_METADATA"}] + [{"op_type": "INSERT", "pos": p} for p in positions]
            return frame(1, json.dumps(records).encode())

        server = Server(
            message("a", "b+/="), refusal(503), message("c") + frame(8, b""), refusal(409, b"changed")
        )
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(client.run(server.url, self.path), 1)
        self.assertIn("HTTP 409: changed", said.getvalue())
        self.assertEqual(
            [request.split("?")[1] for request in server.requests],
            ["begin=earliest", "begin=b%2B%2F%3D", "begin=b%2B%2F%3D", "begin=c"],
        )
        positions = [json.loads(line)["pos"] for line in self.content().splitlines()]
        self.assertEqual(positions, ["a", "b+/=", "c"])


if __name__ == "__main__":
    unittest.main()
