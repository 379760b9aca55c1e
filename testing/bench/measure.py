"""What a process costs, by what the kernel says of it, and how fast something moved."""

import ctypes
import time

LIBC = ctypes.CDLL(None)


def cpu_us(pid):
    """Microseconds of CPU that a process has had, in user and system mode; None when it is gone. By its clock, which
    counts nanoseconds: /proc counts ticks of 10 ms, twenty of which are a whole load."""
    clock = ctypes.c_int()
    if LIBC.clock_getcpuclockid(pid, ctypes.byref(clock)):
        return None
    try:
        return time.clock_gettime(clock.value) * 1e6
    except OSError:
        return None


def now_mb(pid):
    """The memory that a process holds, in MB; None when it is gone."""
    return peak_mb(pid, "VmRSS:")


def peak_mb(pid, field="VmHWM:"):
    """The most memory that a process has held, in MB (VmHWM); None when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            line = next(line for line in file if line.startswith(field))
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return None
    return int(line.split()[1]) * 1024 / 1e6


def written(pid):
    """Bytes that a process has written by write(); None when it is gone."""
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("wchar:")).split()[1])
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return None


class Pace:
    """When a growing number was first and last seen to have grown: what came before the first sight,
    the start of a contender among it, counts in neither rows nor time."""

    def __init__(self):
        self.first = self.last = None

    def see(self, number):
        """Notes what the number is now."""
        if number and (self.last is None or number > self.last[1]):
            self.last = (time.monotonic(), number)
            self.first = self.first or self.last

    def rate(self, rows, total):
        """Rows a second, where the number stands at `total` when all rows are through."""
        (begin, at_begin), (end, at_end) = self.first, self.last
        return rows * (at_end - at_begin) / total / (end - begin)
