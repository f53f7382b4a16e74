"""Snapshots of copies of snapshots, forks of forks: each level holds what all before it did."""

from __future__ import annotations

import time

import pytest
from subject import Mirror, Subject, number_from, wait_for

from support import census
from support.rest import Rest
from support.server import CaissonServer

DEPTH = number_from("INTEGRITY_DEPTH", gate=10, full=50)
SMALL = {"memory_kb": 512, "file_kb": 1024}


def delete_snapshot(rest: Rest, snapshot: str) -> None:
    answer = rest.delete("/templates/" + snapshot)
    assert answer.status == 204, answer


def wait_until_nothing_is_kept(server: CaissonServer) -> None:
    """No sandbox, no saved state, no layer, and nobody holds one that was deleted."""
    census.wait_until_empty(server)
    wait_for(
        lambda: not census.saved(server) and not census.layers(server),
        f"the disk is given back: {census.saved(server)} {census.layers(server)}",
    )


@pytest.mark.timeout(400)
def test_a_long_chain_of_snapshots(make_server, figure):
    server: CaissonServer = make_server()
    rest = Rest(server)
    begun = time.monotonic()
    newest = Subject.start(rest, seed=5, **SMALL)
    living, snapshots, seen = [], [], []
    with Mirror(5, **SMALL) as mirror:
        for level in range(1, DEPTH + 1):
            newest.step(level)
            mirror.step(level)
            assert mirror.differences(newest.seen) == [], f"level {level}"
            snapshots.append(newest.snapshot())
            seen.append(newest.seen)
            newest.check()  # it was only stopped for a moment
            copy = newest.copy_of(snapshots[-1])
            copy.check()
            if level % 10 == 0:
                living.append(newest)
            else:
                newest.kill()
            newest = copy
    took = time.monotonic() - begun

    # Without every other snapshot, and some in a row, nobody misses anything.
    doomed = [i for i in range(DEPTH) if i % 2 or DEPTH // 3 < i < DEPTH // 2]
    for index in doomed:
        delete_snapshot(rest, snapshots[index])
    for subject in (*living, newest):
        subject.check()
        subject.step(1000)
        subject.pause()
        subject.connect()
        subject.check()
    kept = [i for i in range(DEPTH) if i not in doomed]
    for index in {kept[0], kept[len(kept) // 2], kept[-1]}:
        copy = Subject(rest, rest.create(templateID=snapshots[index]), seen[index])
        copy.check()
        copy.kill()

    for subject in (*living, newest):
        subject.kill()
    for index in kept:
        delete_snapshot(rest, snapshots[index])
    figure(f"integrity: a chain of {DEPTH} snapshots, 0 losses, {took / DEPTH * 1000:.0f} ms a level")
    wait_until_nothing_is_kept(server)


@pytest.mark.timeout(240)
def test_forks_of_forks(make_server, figure):
    server: CaissonServer = make_server()
    rest = Rest(server)
    generations = number_from("INTEGRITY_GENERATIONS", gate=4, full=8)
    family = [Subject.start(rest, seed=6, **SMALL)]
    source = family[0]
    for generation in range(1, generations + 1):
        source.step(generation)
        forks = source.fork(2)
        source.check()
        for index, fork in enumerate(forks):
            fork.check()
            fork.step(100 * generation + index)
        assert forks[0].seen["tree"] != forks[1].seen["tree"]
        family += forks
        source = forks[0]
    # Whatever one of them did, the others have their own.
    for index, subject in enumerate(family):
        subject.check()
        if index % 3 == 0:
            subject.kill()
    for index, subject in enumerate(family):
        if index % 3:
            subject.pause()
            subject.connect()
            subject.check()
            subject.kill()
    figure(f"integrity: {generations} generations of forks, {len(family)} sandboxes, 0 losses")
    wait_until_nothing_is_kept(server)
