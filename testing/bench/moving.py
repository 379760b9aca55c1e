"""How long lines wait when the worker that moves them is killed: two workers of one group, files that grow, kill -9."""

import json
import os
import threading
import time

import processes
import workers

# File sources, each with a sink behind it.
PAIRS = 4
# A line each so many seconds, in each file.
EVERY = 0.02
PATIENCE = 180


class Lines:
    """Files that grow, each by the same numbered lines."""

    def __init__(self, paths):
        self.files = [open(path, "w", encoding="ascii", buffering=1) for path in paths]
        self.next, self.ends = 0, threading.Event()
        self.writer = threading.Thread(target=self.write, daemon=True)
        self.writer.start()

    def write(self):
        """Until it shall end."""
        while not self.ends.wait(EVERY):
            self.next += 1
            for file in self.files:
                file.write(f"{self.next:011d}\n")

    def end(self):
        """Writes no more; the number of lines."""
        self.ends.set()
        self.writer.join()
        for file in self.files:
            file.close()
        return self.next


class Copy:
    """A copy that is read as it grows."""

    def __init__(self, path):
        self.path, self.at, self.seen, self.rest = path, 0, set(), b""

    def look(self):
        """The highest number that came."""
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                file.seek(self.at)
                block = file.read()
            self.at += len(block)
            *whole, self.rest = (self.rest + block).split(b"\n")
            self.seen.update(int(line) for line in whole)
        return max(self.seen, default=0)


def seconds(kind, folder, kafka, number):
    """Seconds from kill -9 of the first of two workers of `kind` until a line that was written after it has come through
    each pair. Raises RuntimeError where a line is missing in the end."""
    path = lambda what, pair: os.path.join(workers.servers.files(folder), f"{what}-{number}-{pair}.txt")
    lines = Lines([path("in", pair) for pair in range(PAIRS)])
    copies = [Copy(path("out", pair)) for pair in range(PAIRS)]
    pair = [kind(folder, kafka.broker, f"{number}-{which}", number) for which in range(2)]
    try:
        names = start(pair, kafka, number, path)
        wait = lambda what, condition: processes.wait_until(f"{kind.name}: {what}", PATIENCE, condition, every=0.01)
        wait("both workers run tasks", lambda: is_spread(pair[0], names))
        wait("all copies grow", lambda: all(copy.look() for copy in copies))
        processes.kill(pair[0].child)
        killed, later = time.monotonic(), lines.next + 1
        wait("all lines move again", lambda: all([copy.look() >= later for copy in copies]))
        took = time.monotonic() - killed
        last = lines.end()
        wait("the last lines came", lambda: all([copy.look() == last for copy in copies]))
        for copy in copies:
            if len(copy.seen) != last:
                raise RuntimeError(f"{kind.name}: {copy.path} misses {last - len(copy.seen)} of {last} lines")
        pair[1].delete(names)
        return took
    finally:
        lines.end()
        for worker in pair:
            worker.stop()


def start(pair, kafka, number, path):
    """Starts both workers and makes the connectors; their names."""
    for worker in pair:
        worker.start(once=False)
    names = []
    for which in range(PAIRS):
        topic = f"moving-{number}-{which}"
        kafka.topic(topic, 1)
        made = workers.connectors(f"{number}-{which}", topic, path("in", which), path("out", which), once=False)
        for name, config in made.items():
            pair[0].create(name, config)
            names.append(name)
    return names


def is_spread(worker, names):
    """Whether all tasks run, some on either worker."""
    tasks = []
    for name in names:
        answer = workers.servers.ask(worker.address, "GET", f"/connectors/{name}/status", None, {})
        tasks += json.loads(answer.body).get("tasks", []) or [{"state": None, "worker_id": None}]
    return all(task["state"] == "RUNNING" for task in tasks) and len({task["worker_id"] for task in tasks}) == 2
