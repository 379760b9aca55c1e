#!/usr/bin/env python3
"""How each client is had, and the command of its program.

`clients.py NAME PROGRAM ARGUMENTS…` runs another program of this folder with the packages of a client in Python.
"""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
KAFKA = os.path.join(REPOSITORY, "testing", "kafka", "kafka.sh")

PYTHON = {
    "confluent-kafka-python": ("confluent_kafka_client.py", ["confluent-kafka==2.16.1"]),
    "kafka-python": ("kafka_python_client.py", ["kafka-python==3.0.12", "lz4", "python-snappy", "zstandard"]),
    "aiokafka": ("aiokafka_client.py", ["aiokafka==0.14.0", "cramjam"]),
}
NODE = {"kafkajs": ("kafkajs_client.js", ["kafkajs@2.2.4", "kafkajs-snappy@1.1.0"])}


def target():
    """Where everything that is fetched or built goes."""
    return os.environ.get("CARGO_TARGET_DIR") or os.path.join(REPOSITORY, "target")


def prepared(name, make):
    """A folder that is made once, aside, so that a run that was cut off leaves nothing by halves."""
    folder = os.path.join(target(), "clients", name)
    if not os.path.exists(folder):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        fresh = tempfile.mkdtemp(prefix="making-", dir=os.path.dirname(folder))
        try:
            make(fresh)
            os.rename(fresh, folder)
        except OSError:
            if not os.path.exists(folder):  # else another run was sooner
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


def run(*command, **options):
    """A step of the preparation; its output only when it fails."""
    done = subprocess.run(command, capture_output=True, encoding="utf-8", **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def in_python(name, program=None):
    """The command of a client in Python, in a virtual environment of its own."""
    usual, packages = PYTHON[name]

    def make(folder):
        run("python3", "-m", "venv", "--copies", folder)
        run(os.path.join(folder, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)

    version = packages[0].replace("==", "-")
    return [os.path.join(prepared(version, make), "bin", "python"), os.path.join(HERE, program or usual)]


def in_node(name):
    """The command of a client in JavaScript."""
    program, packages = NODE[name]
    make = lambda folder: run("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *packages)
    folder = prepared(packages[0].replace("@", "-"), make)
    return ["env", f"NODE_PATH={folder}/node_modules", "node", os.path.join(HERE, program)]


def in_java(_name):
    """The command of the Java client, compiled as it is run."""
    jars = run(KAFKA, "fetch").strip()
    return ["java", "-Xmx256m", "-cp", f"{jars}/*", os.path.join(HERE, "JavaClient.java")]


def in_rust(_name):
    """The command of rdkafka's program, built unless the tests built it."""
    if built := os.environ.get("HIGHWATER_BUILT"):
        return [os.path.join(built, "examples", "rdkafka_client")]
    run("cargo", "build", "--locked", "-p", "highwater-broker", "--example", "rdkafka_client", cwd=REPOSITORY)
    return [os.path.join(target(), "debug", "examples", "rdkafka_client")]


def plain(name):
    """The command of a client that is installed."""
    return lambda _name: [sys.executable, os.path.join(HERE, name)]


CLIENTS = {
    "kcat": plain("kcat_client.py"),
    "rdkafka": in_rust,
    **{name: in_python for name in PYTHON},
    **{name: in_node for name in NODE},
    "java": in_java,
    "kafka-tools": plain("kafka_tools_client.py"),
}


def main():
    """Becomes the program."""
    command = [*in_python(sys.argv[1], sys.argv[2]), *sys.argv[3:]]
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
