"""A throw-away PostgreSQL server, and psql sessions on it."""

import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile

import processes

DATABASE = "shop"
ADMIN, ADMIN_PASSWORD = "demo_admin", "demo-admin-password"
OWNER = "shop_owner"
CAPTURE, CAPTURE_PASSWORD = "highwater", "capture-password"
LEAST_VERSION = 13

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "max_replication_slots": "10",
    "max_wal_senders": "10",
    "max_connections": "50",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "shared_buffers": "64MB",
}


def binaries():
    """The folder of the newest PostgreSQL here that is new enough; None when there is none."""
    folders = glob.glob("/usr/lib/postgresql/*/bin") + glob.glob("/usr/pgsql-*/bin")
    for program in ("pg_config", "postgres", "initdb"):
        if found := shutil.which(program):
            folders.append(os.path.dirname(os.path.realpath(found)))
    versions = [(major_version(folder), folder) for folder in folders]
    version, folder = max(versions, default=(0, None))
    return folder if version >= LEAST_VERSION else None


def major_version(folder):
    """The major version of the server in a folder, 0 when it has none."""
    if not all(os.access(os.path.join(folder, p), os.X_OK) for p in ("initdb", "postgres", "psql")):
        return 0
    command = [os.path.join(folder, "postgres"), "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    number = re.search(r"\) (\d+)", answer)
    return int(number.group(1)) if number else 0


def unprivileged():
    """How to start a child as a user that PostgreSQL accepts: it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise SystemExit("Neither user postgres nor nobody exists to run PostgreSQL as.")


class Postgres:
    """One server with its own data folder below `folder`, listening on 127.0.0.1:`port`."""

    def __init__(self, folder, port, **settings):
        self.bin = binaries()
        self.settings = SETTINGS | settings
        self.port = port
        self.home = os.path.join(folder, "postgres")
        self.data = os.path.join(self.home, "data")
        self.log = os.path.join(folder, "postgres.log")
        self.identity = unprivileged()
        self.sockets = None
        self.child = None

    def start(self):
        """Makes the cluster, starts it and waits until it answers."""
        os.makedirs(self.home, exist_ok=True)
        # A Unix socket's path may hold 107 bytes, and a temporary folder can be deeper than that.
        self.sockets = tempfile.mkdtemp(prefix="hw-", dir="/tmp")
        for folder in (self.home, self.sockets):
            if self.identity:
                os.chown(folder, self.identity["user"], self.identity["group"])
        self._make_cluster()
        settings = self.settings | {"port": self.port, "unix_socket_directories": self.sockets}
        command = [os.path.join(self.bin, "postgres"), "-D", self.data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        # SIGINT is PostgreSQL's "fast shutdown", so that no shared memory is left behind.
        self.child = processes.start(
            command, self.log, death_signal=signal.SIGINT, cwd=self.home, **self.identity
        )
        processes.wait_until("PostgreSQL answers", 60, self._answers, every=0.2)

    def _make_cluster(self):
        password_file = os.path.join(self.home, "password")
        with open(password_file, "w", encoding="utf-8") as file:
            file.write(ADMIN_PASSWORD + "\n")
        if self.identity:
            os.chown(password_file, self.identity["user"], self.identity["group"])
        command = [os.path.join(self.bin, "initdb"), "-D", self.data, "-U", ADMIN, "-E", "UTF8"]
        command += ["--auth=scram-sha-256", f"--pwfile={password_file}", "--no-locale", "--no-sync"]
        made = subprocess.run(
            command, cwd=self.home, capture_output=True, text=True, check=False, **self.identity
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr}")

    def _answers(self):
        if self.child.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended at once:\n{processes.tail_of(self.log)}")
        command = self.psql_command(database="postgres") + ["-c", "SELECT 1"]
        environment = self.environment()
        return not subprocess.run(command, env=environment, capture_output=True, check=False).returncode

    def psql_command(self, database=DATABASE):
        """psql as the administrator: unaligned, silent, stopping at the first error."""
        return [
            os.path.join(self.bin, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
            "-h", "127.0.0.1", "-p", str(self.port), "-U", ADMIN, "-d", database,
        ]  # fmt: skip

    def environment(self):
        """What psql needs around it."""
        return os.environ | {"PGPASSWORD": ADMIN_PASSWORD, "PGCLIENTENCODING": "UTF8", "PGTZ": "UTC"}

    def run(self, sql, database=DATABASE, out=subprocess.PIPE):
        """Runs statements in a psql of their own and returns (or writes to `out`) the output."""
        done = subprocess.run(
            self.psql_command(database), env=self.environment(), input=sql, encoding="utf-8",
            stdout=out, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"psql: {done.stderr.strip()}")
        return (done.stdout or "").strip()

    def session(self):
        """A psql that stays."""
        return Session(self.psql_command(), self.environment())

    def stop(self):
        """Ends the server and removes its sockets."""
        processes.stop(self.child, ask=signal.SIGINT)
        if self.sockets:
            shutil.rmtree(self.sockets, ignore_errors=True)


class Session:
    """One long-lived psql: statements in, lines out."""

    def __init__(self, command, environment):
        self.child = subprocess.Popen(
            command, env=environment, encoding="utf-8", bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.count = 0

    def run(self, sql):
        """Runs statements and returns the lines they gave."""
        self.count += 1
        mark = f"-- done {self.count}"
        self.child.stdin.write(f"{sql}\nSELECT '{mark}';\n")
        self.child.stdin.flush()
        lines = []
        while (line := self.child.stdout.readline()) != mark + "\n":
            if not line:
                raise RuntimeError(f"psql ended: {self.child.stderr.read().strip()}")
            lines.append(line.rstrip("\n"))
        return lines

    def close(self):
        """Ends the session; an open transaction is rolled back."""
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()
        self.child.stderr.close()
