"""Suites side by side, each under a small process of its own: it inherits what its suite leaves behind, so that
nobody reaps or kills the children of another suite."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from runner.outcome import WHOLE, Outcome
from runner.program import OutOfTime
from runner.suites import Suite

FORK = multiprocessing.get_context("fork")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

Work = Callable[[Suite, str], Outcome]


@dataclass
class Ended:
    suite: Suite
    outcome: Outcome
    seconds: float = 0
    processor_seconds: float = 0  # of all processes of the suite, those in its sandboxes, too
    out_of_time: bool = False  # the whole run is: the suite was stopped in the middle


def inherit_orphans() -> None:
    """Processes below this one whose parents die become its children."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _serve(suite: Suite, case: str, work: Work, answer: Connection) -> None:
    """The process of a lane."""
    os.setpgid(0, 0)  # Ctrl-C on the terminal is for the runner, which tells us
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    inherit_orphans()
    begun = time.monotonic()
    ended = Ended(suite, Outcome())
    try:
        ended.outcome = work(suite, case)
    except (KeyboardInterrupt, OutOfTime) as error:
        ended.outcome.failed.append((WHOLE, "was running when the whole run was stopped"))
        ended.out_of_time = isinstance(error, OutOfTime)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended.seconds, ended.processor_seconds = time.monotonic() - begun, used.ru_utime + used.ru_stime
    answer.send(ended)


class _Lane:
    def __init__(self, suite: Suite, case: str, work: Work) -> None:
        self.suite = suite
        self.answer, theirs = FORK.Pipe(duplex=False)
        self._process = FORK.Process(target=_serve, args=(suite, case, work, theirs))
        self._process.start()
        theirs.close()

    def interrupt(self) -> None:
        if self._process.pid and self._process.is_alive():
            os.kill(self._process.pid, signal.SIGINT)

    def finish(self) -> Ended:
        """Waits for its end."""
        try:
            ended = self.answer.recv()
        except EOFError:
            ended = Ended(self.suite, Outcome(failed=[(WHOLE, "the process that ran this suite died")]))
        self._process.join()
        return ended


def _fits(suite: Suite, lanes: list[_Lane], most: int) -> bool:
    alone = suite.whole_host or any(lane.suite.whole_host for lane in lanes)
    return not lanes if alone else len(lanes) < most


def run_side_by_side(chosen: list[tuple[Suite, str]], most: int, work: Work) -> Iterator[Ended]:
    """Does `work` for each, at most so many at once, and what counts on the whole host alone at the end; each as it
    ends. When the caller has enough, those that are under way are stopped."""
    waiting = sorted(chosen, key=lambda one: one[0].whole_host)
    lanes: list[_Lane] = []
    try:
        while waiting or lanes:
            while waiting and _fits(waiting[0][0], lanes, most):
                lanes.append(_Lane(*waiting.pop(0), work))
            ready = wait([lane.answer for lane in lanes])
            for lane in [lane for lane in lanes if lane.answer in ready]:
                lanes.remove(lane)
                yield lane.finish()
    finally:
        for lane in lanes:
            lane.interrupt()
        for lane in lanes:
            lane.finish()
