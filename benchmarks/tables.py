"""What all tables are made of."""

import os
import time


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def p50_p99(values):
    return f"{percentile(values, 0.5):8.2f} {percentile(values, 0.99):8.2f}"


def title(text):
    print(f"\n## {text}\n", flush=True)


def available_kb():
    with open("/proc/meminfo") as file:
        return int(next(line for line in file if line.startswith("MemAvailable")).split()[1])


def settled_kb():
    """Memory available to programs, once the kernel has finished what it frees lazily."""
    deadline, last = time.monotonic() + 90, 0
    while True:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("3")
        time.sleep(3)
        now = available_kb()
        if now - last < 8 << 10 or time.monotonic() > deadline:
            return now
        last = now
