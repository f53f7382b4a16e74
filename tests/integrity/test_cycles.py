"""A thousand pauses, and after each of them everything is as it was."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from subject import Mirror, Subject, number_from, wait_for

from support.envd import Envd
from support.rest import Rest

CYCLES = number_from("INTEGRITY_CYCLES", gate=100, full=1000)
SANDBOXES = 4
LARGE_KB = 20480  # enough for what does not go CRIU's way, see engine/large_areas.h
AUTOMATIC = {"autoPause": True, "autoResume": {"enabled": True}}


@dataclass
class Tally:
    cycles: int = 0
    paused_by_timeout: int = 0
    resumed_by_traffic: int = 0
    pause_ms: list[float] = field(default_factory=list)
    resume_ms: list[float] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)


def put_away(subject: Subject, number: int, tally: Tally) -> None:
    """By request, or every 20th time because its time is over."""
    if number % 20 != 13:
        begun = time.monotonic()
        subject.pause()
        tally.pause_ms.append((time.monotonic() - begun) * 1000)
        return
    assert subject.post("timeout", {"timeout": 1}).status == 204
    wait_for(lambda: subject.state() == "paused", "paused when its time was over")
    tally.paused_by_timeout += 1


def bring_back(subject: Subject, number: int, tally: Tally) -> None:
    """By request, or every 5th time because somebody asks the server inside."""
    begun = time.monotonic()
    if number % 5 == 3:
        answer = subject.ask("/count")
        assert answer.status == 200, answer
        tally.resumed_by_traffic += 1
    else:
        subject.connect()
        tally.resume_ms.append((time.monotonic() - begun) * 1000)


def run_cycles(rest: Rest, seed: int, cycles: int, stop: threading.Event) -> Tally:
    tally = Tally()
    memory = {"memory_kb": LARGE_KB} if seed == 0 else {}
    subject = Subject.start(rest, seed, **memory, **AUTOMATIC)
    with Mirror(seed, **memory) as mirror:
        for number in range(1, cycles + 1):
            if stop.is_set():
                break
            subject.step(number)
            mirror.step(number)
            put_away(subject, number, tally)
            bring_back(subject, number, tally)
            lost = subject.losses()
            if number % 10 == 0 or number == cycles:
                lost += mirror.differences(subject.seen)
            tally.losses += [f"{subject.id}, cycle {number}: {one}" for one in lost]
            tally.cycles += 1
            if lost:
                stop.set()  # what follows would only repeat it
    subject.kill()
    return tally


@pytest.mark.timeout(800)
def test_nothing_is_lost(make_server, figure):
    rest = Rest(make_server())
    begun = time.monotonic()
    stop = threading.Event()

    def one(index: int) -> Tally:
        try:
            return run_cycles(rest, index, CYCLES // SANDBOXES, stop)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(SANDBOXES) as pool:
        tallies = list(pool.map(one, range(SANDBOXES)))
    took = time.monotonic() - begun
    losses = [one for tally in tallies for one in tally.losses]
    cycles = sum(tally.cycles for tally in tallies)
    pause_ms = statistics.median(ms for tally in tallies for ms in tally.pause_ms)
    resume_ms = statistics.median(ms for tally in tallies for ms in tally.resume_ms)
    figure(
        f"integrity: {cycles} cycles, {len(losses)} losses, {SANDBOXES} sandboxes at once, "
        f"{sum(t.paused_by_timeout for t in tallies)} paused by timeout, "
        f"{sum(t.resumed_by_traffic for t in tallies)} resumed by traffic, "
        f"{took:.0f} s (median pause {pause_ms:.0f} ms, resume {resume_ms:.0f} ms)"
    )
    assert not losses, "\n".join(losses)
    assert cycles == CYCLES // SANDBOXES * SANDBOXES


@pytest.mark.timeout(240)
def test_files_alone_are_not_lost(rest: Rest, figure):
    """Paused or resumed without memory: every time a cold boot, and the files of before."""
    cycles = number_from("INTEGRITY_FILE_CYCLES", gate=10, full=40)
    losses = []
    tree = "tar cf - --sort=name --mtime=@0 tree | sha256sum"
    with rest.sandbox(timeout=900) as made:
        subject = Subject(rest, made)
        envd = Envd(rest.server, made)
        boots = set()
        for number in range(1, cycles + 1):
            boots.add(envd.run("cat /proc/sys/kernel/random/boot_id")[0])
            directory = f"tree/d{number % 9}"
            before, errors, _ = envd.run(
                f"set -e; [ {number % 10} != 0 ] || rm -r {directory}; mkdir -p {directory}; "
                f"head -c {number * 999} /dev/urandom > {directory}/f{number}; "
                f"ln -s f{number} {directory}/l{number}; "
                f"truncate -s {number * 500} {directory}/f{number}; {tree}"
            )
            assert len(before) > 64, (before, errors)
            if number % 2:
                subject.pause(memory=False)
                subject.connect()
            else:
                subject.pause()
                subject.connect(memory=False)
            after = envd.run(tree)[0]
            if after != before:
                losses.append(f"cycle {number}: {before} became {after}")
        assert len(boots) == cycles
    figure(f"integrity: {cycles} cycles without memory, {len(losses)} losses")
    assert losses == []
