"""How a bench runs, and what it says in the end."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

RELATIONS = {
    "at least": lambda figure, target: figure >= target,
    "at most": lambda figure, target: figure <= target,
    "below": lambda figure, target: figure < target,
}


def say(text):
    """A line of what is going on."""
    print(text, flush=True)


def report(name, figures, targets):
    """Prints the verdict over the targets, {figure: (relation, number)}; returns the exit code."""
    met = {figure: RELATIONS[relation](figures[figure], number) for figure, (relation, number) in targets.items()}
    texts = {figure: f"{relation} {number}" for figure, (relation, number) in targets.items()}
    for figure, good in met.items():
        say(f"{'met' if good else 'MISSED'}: {figure} is {figures[figure]}, to be {texts[figure]}")
    line = {"bench": name, "figures": figures, "targets": texts, "met": all(met.values())}
    say(json.dumps(line, separators=(",", ":")))
    return 0 if line["met"] else 1


def main(bench):
    """Makes a bench in a folder of its own, runs it to its exit code, and always ends what it started."""
    folder = tempfile.mkdtemp(prefix="highwater-bench-")
    os.chmod(folder, 0o755)  # PostgreSQL may run as another user
    running, code = None, 2
    try:
        running = bench(folder)
        code = running.run()
    # What cannot be had, does not answer or answers wrongly; a fault of the bench itself shows its trace.
    except (RuntimeError, OSError, subprocess.SubprocessError) as failure:
        print(f"The bench failed: {failure}", file=sys.stderr, flush=True)
    finally:
        if running:
            running.stop()
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)
