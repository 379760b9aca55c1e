#!/usr/bin/env python3
"""`make bench-log`: the embedded log beside Apache Kafka, in the same run.

Records of 100 B and 1 KB are written and read over 1 and 64 partitions with acks=all, by librdkafka
(crates/broker/examples/load.rs) and by Kafka's own load tools, to three places in turn: Highwater with
`highwater.flush=os` (Kafka's own policy), Highwater with `highwater.flush=durable` (the default), and
Apache Kafka. Then latency, the greatest timestamp of a short and a long partition, memory, the time of a
clean start and of a recovery. The server is the binary of the tests' profile, with assertions.

The last line: {"bench":"log","figures":{...},"targets":{...},"met":true}. Exit code: 0 when all targets are
met, 1 when one is missed, 2 when there are no figures.

Environment: HW_SCALE=0.1 for a tenth of everything (for trying it out); HW_RUNS=n (default 3); HW_PARTS for some
of it alone, such as "throughput greatest_timestamp"; only their targets are looked at.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(REPOSITORY, "testing", "demo"))

from brokers import KAFKA, PATIENCE, ApacheKafka, Highwater, MaxTimestamp  # noqa: E402
from server import build  # noqa: E402
from verdict import main, report, say  # noqa: E402

SCALE = float(os.environ.get("HW_SCALE", "1"))
RUNS = int(os.environ.get("HW_RUNS", "3"))
SIZES = {100: int(5_000_000 * SCALE), 1000: int(800_000 * SCALE)}
PARTITIONS = (1, 64)
OS, DURABLE = "highwater.flush=os", "highwater.flush=durable"
LONG, SHORT = int(10_000_000 * SCALE), 1000
READS = 3
ROUNDS, QUESTIONS = 50, 40
GB = 1 << 30
RECOVERED = int(5 * GB * SCALE)
SPARSE = int(50 * GB * SCALE)

PARTS = ("throughput", "latency", "under_load", "greatest_timestamp", "starts", "recovery")
CHOSEN = os.environ.get("HW_PARTS", "").split() or PARTS

TARGETS = {
    "throughput_per_cpu_s_of_kafka": ("at least", 1.5),
    "durable_of_os_1_partition": ("at least", 0.7),
    "durable_of_os_64_partitions": ("at least", 0.4),
    "memory_of_kafka": ("at most", 0.1),
    "start_ms_1_gb": ("at most", 200),
    "start_ms_50_gb_sparse": ("at most", 200),
    "max_timestamp_long_of_short": ("at most", 1.25),
    "max_timestamp_of_kafka": ("at most", 1.0),
}


class Place:
    """A broker, and the settings of the topics made on it."""

    def __init__(self, name, broker, *config):
        self.name, self.broker, self.config = name, broker, config


class Moved:
    """What a load gave: records a second, and records a second of the broker's CPU."""

    def __init__(self, records, seconds, cpu_us):
        self.rate = records / seconds
        self.per_cpu_s = records / (cpu_us / 1e6) if cpu_us else float("inf")

    def __str__(self):
        return f"{self.rate / 1000:8.0f} k records/s, {self.per_cpu_s / 1000:8.0f} k a CPU second of the broker"


class Bench:
    """One bench, from the empty folder to the figures."""

    def __init__(self, folder):
        self.folder = folder
        self.ours = Highwater(build(), folder)
        self.kafka = ApacheKafka(folder)
        self.load = self.build_load()
        self.moved = {}
        self.figures = {}
        self.topics = 0

    @staticmethod
    def build_load():
        """The load of librdkafka."""
        command = ["cargo", "build", "--locked", "-p", "highwater-broker", "--example", "load"]
        subprocess.run(command, cwd=REPOSITORY, check=True)
        folder = os.environ.get("CARGO_TARGET_DIR") or os.path.join(REPOSITORY, "target")
        return os.path.join(folder, "debug", "examples", "load")

    def run(self):
        """Everything; returns the exit code."""
        self.ours.start()
        self.kafka.start()
        self.at_rest()
        for part in CHOSEN:
            getattr(self, part)()
        rounded = lambda figure: round(figure, 3) if isinstance(figure, float) else figure
        figures = {name: rounded(figure) for name, figure in self.figures.items()}
        targets = {name: target for name, target in TARGETS.items() if CHOSEN is PARTS or name in figures}
        return report("log", figures | {"scale": SCALE, "runs": RUNS}, targets)

    def stop(self):
        """Ends what still runs."""
        self.ours.kill()
        if self.kafka.made:
            subprocess.run([KAFKA, "stop", self.kafka.folder], check=False)

    def places(self):
        """The three, in the order of one run."""
        return [
            Place("flush=os", self.ours, OS), Place("flush=durable", self.ours, DURABLE), Place("kafka", self.kafka),
        ]  # fmt: skip

    def topic(self, place, partitions):
        """A topic of its own for each load."""
        self.topics += 1
        name = f"bench-{self.topics}"
        place.broker.topic(name, partitions, *place.config)
        return name

    @staticmethod
    def measured(place, command):
        """Runs a load; what it printed, and the CPU that the broker had meanwhile."""
        before = place.broker.cpu_us()
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=PATIENCE)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout, place.broker.cpu_us() - before

    def throughput(self):
        """Writes and reads, all places in turn."""
        for size, records in SIZES.items():
            for partitions in PARTITIONS:
                for run in range(RUNS):
                    places = self.places()
                    for place in places[run % 3 :] + places[: run % 3]:
                        self.librdkafka(place, size, records, partitions)
            for run in range(RUNS):
                places = self.places()
                for place in places[run % 3 :] + places[: run % 3]:
                    self.java(place, size, records)
        of = lambda what, place: {key[1:]: moved for key, moved in self.medians(what).items() if key[0] == place}
        ratios = {}
        for what in ("rate", "per_cpu_s"):
            kafka, os_, durable = (of(what, place) for place in ("kafka", "flush=os", "flush=durable"))
            ratios[what] = {key: os_[key] / kafka[key] for key in kafka}
            ratios[f"durable {what}"] = {key: durable[key] / os_[key] for key in os_ if key[1] == "produce"}
        say_ratios(ratios)
        self.figures["throughput_per_cpu_s_of_kafka"] = min(ratios["per_cpu_s"].values())
        self.figures["rate_of_kafka"] = min(ratios["rate"].values())
        for partitions in PARTITIONS:
            name = f"durable_of_os_{partitions}_partition" + ("s" if partitions > 1 else "")
            here = [ratio for key, ratio in ratios["durable rate"].items() if key[3] == partitions]
            self.figures[name] = min(here)

    def librdkafka(self, place, size, records, partitions):
        """One load by librdkafka, written once and read some times."""
        topic = self.topic(place, partitions)
        for what in ("produce", *["consume"] * READS):
            words = [place.broker.broker, topic, str(partitions), str(records), str(size)]
            seconds, cpu = self.measured(place, [self.load, what, *words])
            self.note((place.name, "librdkafka", what, size, partitions), Moved(records, float(seconds), cpu))
        place.broker.delete(topic)

    def java(self, place, size, records):
        """One load by Kafka's own tools, on one partition."""
        topic = self.topic(place, 1)
        at = ["--bootstrap-server", place.broker.broker, "--topic", topic]
        props = ["acks=all", "linger.ms=5", "batch.size=1000000"]
        command = [KAFKA, "tool", "kafka-producer-perf-test", *at, "--num-records", str(records), "--record-size"]
        command += [str(size), "--throughput", "-1", "--command-property", *props]
        told, cpu = self.measured(place, command)
        rate = float(re.findall(r"([0-9.]+) records/sec", told)[-1])
        self.note((place.name, "java", "produce", size, 1), Moved(records, records / rate, cpu))
        command = [KAFKA, "tool", "kafka-consumer-perf-test", *at, "--num-records", str(records)]
        told, cpu = self.measured(place, command)
        rate = float(told.splitlines()[-1].split(",")[-1])
        self.note((place.name, "java", "consume", size, 1), Moved(records, records / rate, cpu))
        place.broker.delete(topic)

    def note(self, key, moved):
        """Keeps what a load moved."""
        say(f"{key[0]:14} {key[1]:10} {key[2]} {key[3]:5} B x {key[4]:2} partitions: {moved}")
        self.moved.setdefault(key, []).append(moved)

    def medians(self, field):
        """The median of a field, by (place, tool, what, size, partitions)."""
        return {key: statistics.median(getattr(each, field) for each in all_) for key, all_ in self.moved.items()}

    def at_rest(self):
        """Memory before any load."""
        time.sleep(5)
        self.rest = {broker.name: broker.memory()[0] for broker in (self.ours, self.kafka)}

    def under_load(self):
        """Memory at most, the loads behind it."""
        most = {broker.name: broker.memory()[1] for broker in (self.ours, self.kafka)}
        for name, now in self.rest.items():
            self.figures[f"{name}_mb_at_rest"], self.figures[f"{name}_mb_at_most"] = now, most[name]
        ratio = lambda each: each["highwater"] / each["kafka"]
        self.figures["memory_of_kafka"] = max(ratio(self.rest), ratio(most))

    def latency(self):
        """Of 1 KB records at 5,000 a second."""
        for place in self.places():
            at = ["--bootstrap-server", place.broker.broker, "--topic", self.topic(place, 1)]
            rate = ["--num-records", str(int(75_000 * SCALE) + 5_000), "--record-size", "1000", "--throughput", "5000"]
            command = [KAFKA, "tool", "kafka-producer-perf-test", *at, *rate, "--warmup-records", "5000"]
            told, _ = self.measured(place, [*command, "--command-property", "acks=all", "linger.ms=0"])
            found = {f"p{percent}": int(ms) for ms, percent in re.findall(r"(\d+) ms (\d+)th", told)}
            self.figures[f"latency_ms {place.name}"] = {name: found[name] for name in ("p50", "p99")}
            say(f"{place.name:14} latency {found} ms")

    def greatest_timestamp(self):
        """The question of KIP-734, on a short and a long partition."""
        questions = {}
        for place in (Place("highwater", self.ours, OS), Place("kafka", self.kafka)):
            for length in (SHORT, LONG):
                topic = self.topic(place, 1)
                # What the answer costs is one batch, read up to its record: the same in both, of a run of its own.
                for records in (length - SHORT, SHORT):
                    words = [place.broker.broker, topic, "1", str(records), "100", str(SHORT)]
                    self.measured(place, [self.load, "produce", *words])
                questions[place.name, length] = MaxTimestamp(place.broker.broker, topic)
        took = {key: [] for key in questions}
        for number in range(ROUNDS):
            # Whoever is asked first after another finds colder caches: each is, in turn.
            turn = number % len(questions)
            for key in [*questions][turn:] + [*questions][:turn]:
                took[key] += [questions[key].ask() for _ in range(QUESTIONS)]
        median = {key: statistics.median(times) * 1e6 for key, times in took.items()}
        for (name, length), us in median.items():
            self.figures[f"max_timestamp_us {name} {length}"] = us
        self.figures["max_timestamp_long_of_short"] = median["highwater", LONG] / median["highwater", SHORT]
        self.figures["max_timestamp_of_kafka"] = median["highwater", LONG] / median["kafka", LONG]

    def starts(self):
        """Clean starts: a log of 1 GB, and one of 50 GB whose records are holes in their files."""
        for name, size in {"1_gb": int(GB * SCALE), "50_gb_sparse": SPARSE}.items():
            broker = Highwater(self.ours.command[0], os.path.join(self.folder, name))
            os.makedirs(os.path.dirname(broker.data), exist_ok=True)
            broker.start()
            try:
                self.fill(broker, "filled", size)
                broker.stop()
                self.figures[f"start_ms_{name}"] = statistics.median(self.restarts(broker)) * 1000
            finally:
                broker.kill()
            shutil.rmtree(os.path.join(self.folder, name))

    @staticmethod
    def restarts(broker):
        """Seconds of some clean starts."""
        for _ in range(5):
            yield broker.start()
            broker.stop()

    def fill(self, broker, topic, size):
        """Writes so many bytes of zeros, and gives what is written back to the disk as it goes."""
        broker.topic(topic, 1, OS, "segment.bytes=1073741824", "retention.ms=-1")
        step = min(size, 2 * GB)
        for _ in range(size // step):
            words = [broker.broker, topic, "1", str(step // 100_000), "100000"]
            subprocess.run([self.load, "produce", *words], check=True, stdout=subprocess.DEVNULL)
            folder = os.path.join(broker.data, f"{topic}-0")
            for name in sorted(os.listdir(folder)):
                if name.endswith(".log"):
                    subprocess.run(["fallocate", "--dig-holes", os.path.join(folder, name)], check=True)

    def recovery(self):
        """What a start takes after kill -9, with a log that was not closed."""
        for place in (Place("highwater", self.ours, OS), Place("kafka", self.kafka)):
            topic = self.topic(place, 1)
            words = [place.broker.broker, topic, "1", str(RECOVERED // 1000), "1000"]
            self.measured(place, [self.load, "produce", *words])
            place.broker.kill()
            self.figures[f"recovery_s {place.name}"] = place.broker.start()


def say_ratios(ratios):
    """Each load's ratio, for people."""
    for what, each in ratios.items():
        whole = "kafka" if not what.startswith("durable") else "flush=os"
        for key, ratio in each.items():
            say(f"{what} of {whole}: {ratio:6.2f}  {' '.join(map(str, key))}")


if __name__ == "__main__":
    main(Bench)
