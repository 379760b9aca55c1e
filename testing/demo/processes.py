"""Child processes that never outlive the demo."""

import ctypes
import os
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def start(command, log, death_signal=signal.SIGKILL, **options):
    """Starts a child in a session of its own; the kernel ends it when the demo dies, however."""
    parent = os.getpid()

    def tie_to_parent():
        LIBC.prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:  # it died before the tie was made
            os._exit(1)

    with open(log, "ab") as out:
        return subprocess.Popen(
            command,
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=options.pop("stdout", out),
            stderr=out,
            start_new_session=True,
            preexec_fn=tie_to_parent,
            **options,
        )


def stop(child, ask=signal.SIGTERM, seconds=20):
    """Asks a child to end, and kills it when it does not; returns whether it did."""
    if child is None or child.poll() is not None:
        return True
    child.send_signal(ask)
    try:
        child.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        kill(child)
        return False


def kill(child):
    """kill -9, as a crash would."""
    if child is not None and child.poll() is None:
        child.kill()
        child.wait()


def free_ports(count):
    """Ports of the loopback address that nobody listens on; all held while the others are sought."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def wait_until(what, seconds, condition, every=0.05):
    """Waits until `condition()` is true and returns what it gave; TimeoutError names `what`."""
    deadline = time.monotonic() + seconds
    while True:
        if result := condition():
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s in vain until {what}")
        time.sleep(every)


def tail_of(path, lines=30):
    """The last lines of a log, for a person."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-lines:])
    except OSError as error:
        return f"({error})"
