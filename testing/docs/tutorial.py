#!/usr/bin/env python3
"""Runs the pages of the tutorial: the shell blocks of each as they are printed, in one shell, against a real
PostgreSQL and a real server, and compares what they print with the blocks of text behind them.

Free ports and the throw-away PostgreSQL come in by the environment variables that the tutorial itself
offers. In the text, `…` stands for anything, a line of it alone for any number of lines.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = os.path.join(REPOSITORY, "docs", "tutorial")
POSTGRES = os.path.join(REPOSITORY, "testing", "postgres", "server.sh")
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.M | re.S)
MARK = "== end of block"
SECONDS = 180


def steps(page):
    """Each shell block with the text that it must print; None where the page shows none."""
    found = []
    for kind, text in BLOCK.findall(page):
        if kind == "sh":
            found.append((text, None))
        else:
            found[-1] = (found[-1][0], text)
    return found


def script(blocks):
    """One program of all blocks, a mark behind each."""
    return "set -eu\n" + "\n".join(f"{block}\necho '{MARK}'" for block in blocks)


def pattern(text):
    """What a block of text stands for."""
    lines = (r"(?:.*\n)*?" if line == "…" else line_pattern(line) for line in text.splitlines())
    return re.compile("".join(lines) + r"\Z")


def line_pattern(line):
    """One line of it."""
    return ".*".join(map(re.escape, line.split("…"))).replace(r"\ .*", r"\s.*") + "\n"


def different(expected, printed):
    """Whether a block printed something else than the page shows."""
    return expected is not None and not pattern(expected).match(printed)


def free_port():
    """A port of the loopback that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def binary_folder():
    """Where the tests' binary is built."""
    if built := os.environ.get("HIGHWATER_BUILT"):
        return built
    subprocess.run(["cargo", "build", "--locked", "-q", "-p", "highwater"], cwd=REPOSITORY, check=True)
    return os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(REPOSITORY, "target")), "debug")


def environment(folder, postgres_port, postgres_folder):
    """What a reader's shell would have."""
    kafka, http = free_port(), free_port()
    config = os.path.join(folder, "ports.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"[kafka]\nlisten = '127.0.0.1:{kafka}'\n[http]\nlisten = '127.0.0.1:{http}'\n")
    return os.environ | {
        "PATH": os.pathsep.join([binary_folder(), postgres_folder, os.environ["PATH"]]),
        "HIGHWATER_CONFIG": config, "HIGHWATER_URL": f"http://127.0.0.1:{http}",
        "KAFKA": f"127.0.0.1:{kafka}", "HTTP": f"127.0.0.1:{http}", "PGHOST": "127.0.0.1", "PGPORT": postgres_port,
    }  # fmt: skip


def run(blocks, folder, environment):
    """What each block printed, and the exit code."""
    child = subprocess.Popen(
        ["bash", "-c", script(blocks)], cwd=folder, env=environment, encoding="utf-8",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        printed, _ = child.communicate()
    finally:
        end_group(child.pid)
    return printed.split(MARK + "\n"), child.returncode


def end_group(group):
    """Ends what a tutorial that broke off has left running."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def compare(steps, printed, code):
    """Prints what is not as on the page; returns how many blocks that are."""
    wrong = 0
    for at, (block, expected) in enumerate(steps):
        if at >= len(printed) - 1 or different(expected, printed[at]):
            wrong += 1
            shown = printed[at] if at < len(printed) else "(was not run)\n"
            print(f"--- block {at + 1}:\n{block}--- printed:\n{shown}--- the page shows:\n{expected}")
            break
    print(f"{len(steps)} blocks, exit code {code}, {'FAILED' if wrong or code else 'as on the page'}")
    return wrong or code


def follow(page, postgres_port, postgres_folder):
    """Runs a page in a folder of its own; whether it is not as it says."""
    print(page, flush=True)
    with open(os.path.join(PAGES, page), encoding="utf-8") as file:
        found = steps(file.read())
    with tempfile.TemporaryDirectory(prefix="hw-tutorial-") as folder:
        shell = environment(folder, postgres_port, postgres_folder)
        printed, code = run([block for block, _ in found], folder, shell)
        failed = compare(found, printed, code)
        if failed and os.path.exists(log := os.path.join(folder, "server.log")):
            with open(log, encoding="utf-8", errors="replace") as file:
                print("--- server.log:\n" + file.read()[-4000:])
    return bool(failed)


def main():
    """Follows all pages."""
    database = subprocess.Popen(
        [POSTGRES, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    try:
        port, _, postgres_folder = database.stdout.readline().split()
        failed = [page for page in sorted(os.listdir(PAGES)) if follow(page, port, postgres_folder)]
    finally:
        database.stdin.close()
        database.wait()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
