"""Ctrl-C at random moments of every kind of work. It gives exactly one KeyboardInterrupt, prints nothing, leaves no partial files, and objects still work."""

import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

import warpfst as wf

WORK = pathlib.Path(__file__).with_name("interrupted_work.py")
KINDS = ["Batch", "Progress", "Long", "Lattice", "Stream", "LongChunk", "Determinize", "Train", "TrainProgress", "Compose", "Optimize", "Graph", "Models"]
WRITTEN = {"Train": {"train", "valid"}, "TrainProgress": {"train", "valid"}, "Optimize": {"optimized.wfst"}, "Models": {"lm.arpa", "pruned.arpa", "lm.wfst", "lm.wlm"}}
PATIENCE = 60  # seconds, after which a Ctrl-C counts as lost


def interrupt(kind, times, folder, most_delay, device="cpu"):
    """Interrupts the work several times. Returns the seconds that each Ctrl-C took."""
    rng, waits = random.Random(kind), []
    process = subprocess.Popen([sys.executable, str(WORK), kind, str(times), device], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    late = threading.Timer(PATIENCE * (times + 1), process.kill)
    late.start()
    try:
        for _ in range(times):
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            time.sleep(rng.random() * most_delay)
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            assert process.stdout.readline() == "interrupted\n", process.stderr.read()
            waits.append(time.monotonic() - begin)
        output, errors = process.stdout.read(), process.stderr.read()
        process.wait()
    finally:
        late.cancel()
        process.kill()
    assert (output, errors, process.returncode) == ("sound\n", "", 0)
    return waits


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_interrupts_every_kind_of_work(kind, tmp_path):
    waits = interrupt(kind, 4, tmp_path, 0.4)
    assert max(waits) < PATIENCE
    assert {path.name for path in tmp_path.iterdir()} <= WRITTEN.get(kind, set())


SCRIPT = """
import os, signal, sys, threading, time
sys.path.insert(0, {folder!r})
sys.argv = ["", "Long", "1"]
import interrupted_work
import warpfst as wf
interrupted_work.Long.frames = 20000  # a second or more
work = interrupted_work.Long()
"""


def run(body):
    script = SCRIPT.format(folder=str(WORK.parent)) + body
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)


def test_signal_handlers_of_the_program_run():
    """Handlers run at once, not after the call. If one returns, the call continues; if one raises an exception, the call ends with it."""
    done = run(
        """
times = []
signal.signal(signal.SIGINT, lambda *_: times.append(time.monotonic()))
sent = []
threading.Timer(0.1, lambda: (sent.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT))).start()
work.once()
end = time.monotonic()
print(len(times), times[0] < end - 0.1)
class Late(Exception): pass
def alarm(*_): raise Late
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    work.once()
except Late:
    print("late")
work.check()
"""
    )
    assert (done.stdout, done.stderr) == ("1 True\nlate\n", "")


def test_calls_in_other_threads_continue():
    """Signals go to the main thread, so a call in another thread is not interrupted."""
    done = run(
        """
results = []
thread = threading.Thread(target=lambda: (work.once(), results.append("whole")))
thread.start()
time.sleep(0.1)
try:
    os.kill(os.getpid(), signal.SIGINT)
    thread.join()
except KeyboardInterrupt:
    print("interrupted")
thread.join()
print(*results)
"""
    )
    assert (done.stdout, done.stderr) == ("interrupted\nwhole\n", "")


def test_ctrl_c_in_a_child_forked_by_another_thread():
    """After a fork, the thread that forked is the main one."""
    done = run(
        """
def child():
    pid = os.fork()
    if pid == 0:
        own = wf.Decoder(work.decoder.graph, num_threads=1)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            own.decode(work.scores)
        except KeyboardInterrupt:
            os._exit(7)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
thread = threading.Thread(target=child)
thread.start()
thread.join()
"""
    )
    assert (done.stdout, done.stderr) == ("7\n", "")


@pytest.mark.parametrize("where", ["progress", "epoch"])
def test_exceptions_of_callbacks(where, tmp_path):
    """The caller gets the callback's exception unchanged, in every thread."""
    (tmp_path / "text").write_text("a b c d\n" * 50, encoding="utf-8")

    def fail(*_):
        raise ZeroDivisionError(where)

    options = {"progress": fail} if where == "progress" else {"on_epoch": fail}
    raised = []

    def train():
        try:
            wf.RnnLM.train(tmp_path / "text", tmp_path / "text", hidden=4, max_epochs=3, **options)
        except ZeroDivisionError as exception:
            raised.append(str(exception))

    train()
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert raised == [where, where]
