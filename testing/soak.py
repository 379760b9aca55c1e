#!/usr/bin/env python3
"""The proofs of the log in full length (rule T2): a night for what `make test` does in minutes.

Histories on the model file system, kills and power losses of the real binary, steps beside Apache Kafka. Each
run draws from another seed, which is printed; SEED=n repeats one. PARTS=name,name runs some parts only, and
SHARE=n the n-th part of the length.
"""

import os
import subprocess
import sys
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Name: HW_CASES in full, whether HW_SEED draws a run (and does not pick one case), the test.
PARTS = {
    "histories": (1_000_000, False, ["-p", "highwater-log", "--test", "model", "history"]),
    "log": (20_000, False, ["-p", "highwater-log"]),
    "groups": (500, False, ["-p", "highwater-coordinator"]),
    "crash": (500, True, ["-p", "highwater", "--test", "crash"]),
    "disk": (500, False, ["-p", "highwater", "--test", "disk"]),
    "differential": (100_000, True, ["-p", "highwater-broker", "--test", "apache", "answered_as_apache"]),
}


def soak(name, seed, share):
    """Runs one part; whether it passed, and how long it took."""
    cases, seeded, test = PARTS[name]
    cases = max(cases // share, 1)
    environment = os.environ | {"HW_CASES": str(cases)} | ({"HW_SEED": str(seed)} if seeded else {})
    print(f"\n== {name}: {cases} cases{f', seed {seed}' if seeded else ''}", flush=True)
    started = time.monotonic()
    # Output of tests that pass says how much was done.
    command = ["cargo", "test", "--locked", *test, "--", "--nocapture"]
    code = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
    return code == 0, time.monotonic() - started


def main():
    """Runs the parts, all of them even when one fails."""
    chosen = os.environ.get("PARTS", ",".join(PARTS)).split(",")
    seed = int(os.environ.get("SEED", time.time_ns() // 1_000 % 1_000_000))
    share = int(os.environ.get("SHARE", "1"))
    results = {name: soak(name, seed, share) for name in chosen}
    print()
    for name, (passed, seconds) in results.items():
        print(f"{'ok    ' if passed else 'FAILED'} {seconds:10.1f} s  {name}")
    sys.exit(0 if all(passed for passed, _ in results.values()) else 1)


if __name__ == "__main__":
    main()
