"""torture.py - runs each command of commands.py again and again, each time with another allocation, or another call that
writes, made to fail by the library of preload.c.

A command whose allocation failed must say that memory is short and exit with 4, or do its work as if nothing had failed. One
whose output cannot be written must name the file and the cause and exit with 3. Files that were there before are unchanged
unless the new ones are complete; nothing else is left behind, nor memory: a failed run frees as much as a good one.

--runs=all: every allocation of every command fails, alone and with all after it. --runs=places: the first allocation of each
place in the code, which many commands share. --runs=sample: of a quarter of these places.
"""
import argparse
import collections
import concurrent.futures
import errno
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import commands

OLD = b"what was there before"
EACH = "decode|align|lattice|matrix copy|rnnlm lattice"  # an utterance that fails costs only itself
WHOLE = "info$|print strings|decode with RNN"  # had errors that only one allocation shows: all places, also in a sample
WHERE = r"(\bout\b|standard output)"  # the file or folder that cannot be written
TIMED = "rnnlm train|lm info"  # print seconds
SECONDS = 60  # a run that takes longer is taken to hang
# Sanitizers expect to come first. An allocation of theirs may return NULL.
SANITIZERS = {"ASAN_OPTIONS": "verify_asan_link_order=0:allocator_may_return_null=1:exitcode=99",
              "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99:print_stacktrace=1"}

Run = collections.namedtuple("Run", "code stdout stderr files stray")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", help="warpfst")
    parser.add_argument("library", help="the library of preload.c")
    parser.add_argument("--runs", choices=("sample", "places", "all"), default="sample", help="how many")
    parser.add_argument("--only", default="", help="commands whose names match this regular expression")
    parser.add_argument("--kind", choices=("alloc", "write"), help="only allocations, or only calls that write")
    parser.add_argument("--plan", help="one run of --only, with this value of TORTURE_FAIL, and what it says")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


class Torture:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.program, self.library = (str(pathlib.Path(path).resolve()) for path in (options.program, options.library))
        # The leak sanitizer looks for leaks itself, and what its strdup() allocates is not counted.
        self.counts_blocks = b"__asan_init" not in pathlib.Path(self.program).read_bytes()
        self.local, self.number, self.lock = threading.local(), 0, threading.Lock()

    def workplace(self):
        """The folder of this thread: `in` is shared; `out` and `tmp` are its own."""
        if not hasattr(self.local, "folder"):
            with self.lock:
                self.number += 1
                self.local.folder = self.folder / str(self.number)
            self.local.folder.mkdir()
            (self.local.folder / "in").symlink_to(self.folder / "in")
        return self.local.folder

    def run(self, args, outputs, plan=None, report=False, places=False, limit=None, to=None):
        """Runs a command on files that exist already; `outputs` are their names. Returns what it left."""
        base = self.workplace()
        for name in ("out", "tmp"):
            shutil.rmtree(base / name, ignore_errors=True)
            (base / name).mkdir()
        for name in outputs:
            if name.startswith("out/"):
                (base / name).parent.mkdir(parents=True, exist_ok=True)
                (base / name).write_bytes(OLD)
        env = dict(os.environ, **SANITIZERS, LD_PRELOAD=self.library, TMPDIR=str(base / "tmp"))
        if plan:
            env["TORTURE_FAIL"] = plan
        if report:
            env["TORTURE_REPORT"] = str(base / "report")
            env["TORTURE_PLACES"] = "1" if places else ""
        with open(to or base / "stdout", "wb") as out:
            try:
                done = subprocess.run([self.program, *args], cwd=base, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                                      timeout=SECONDS, preexec_fn=limit)
                code, said = done.returncode, done.stderr.decode(errors="replace")
            except subprocess.TimeoutExpired:
                code, said = f"none after {SECONDS} s", ""
        files = {str(path.relative_to(base)): path.read_bytes() for path in sorted((base / "out").rglob("*")) if path.is_file()}
        stray = [str(path) for path in (base / "tmp").iterdir()]
        stdout = b"" if to else (base / "stdout").read_bytes()
        return Run(code, stdout, said, files, stray)

    def report(self):
        """Of the last run of this thread: allocations, blocks that live, calls that write, [(number, place)]."""
        path = self.workplace() / "report"
        if not path.exists():
            return None
        first, *places = path.read_text().splitlines()
        path.unlink()
        return [int(figure) for figure in first.split()] + [[(int(n), place) for n, place in map(str.split, places)]]


class Command:
    """A command and its good run."""

    def __init__(self, torture, name, args):
        self.torture, self.name, self.args = torture, name, args
        self.outputs = list(torture.run(args, (), report=True, places=True).files)
        figures = torture.report()
        self.places = figures[3] if figures else []
        self.good = torture.run(args, self.outputs, report=True)
        figures = torture.report()
        assert self.good.code == 0 and figures, f"{name}: exit {self.good.code}: {self.good.stderr}"
        self.allocs, self.live, self.writes = figures[:3]
        assert self.allocs > 5, f"{name}: the library does not count"

    def same(self, run):
        return run.code == 0 and (re.search(TIMED, self.name) or run.stdout == self.good.stdout) and run.files == self.good.files

    def left_behind(self, run):
        """Files that are neither as before nor complete, or that should not be there."""
        some = run.code == 4 and re.match(EACH, self.name)
        wrong = [name for name, data in run.files.items()
                 if name not in self.good.files or not some and data not in (OLD, self.good.files[name])]
        return wrong + [name for name in self.outputs if name not in run.files] + run.stray

    def problem(self, run, code, says):
        """What is wrong with a run in which something failed. A right one exits with `code` and says `says`."""
        if not isinstance(run.code, int) or run.code < 0:
            return f"exit {run.code}" + (f" ({signal.Signals(-run.code).name})" if isinstance(run.code, int) else "")
        if run.code == 99 or "ERROR: AddressSanitizer" in run.stderr or "LeakSanitizer" in run.stderr:
            return "sanitizer"
        if self.left_behind(run):
            return "left behind: " + ", ".join(self.left_behind(run))
        if self.same(run):
            return None
        if run.code == 0:
            return "exit 0, but another result"
        if run.code != code:
            return f"exit {run.code}, not {code}"
        return None if re.search(says, run.stderr, re.IGNORECASE) else f"does not say '{says}'"


def fail_alloc(command, plan):
    run = command.torture.run(command.args, command.outputs, plan, report=True)
    figures = command.torture.report()
    problem = command.problem(run, 4, "memory")
    if not problem and figures and command.torture.counts_blocks and figures[1] > command.live:
        problem = f"{figures[1] - command.live} blocks are not freed"
    return problem, run


def fail_write(command, plan):
    kind, _, rest = plan.partition(":")
    code = int(rest.split(":")[1]) if ":" in rest else 0
    run = command.torture.run(command.args, command.outputs, plan)
    if kind == "short" or code == errno.EINTR:
        return (None if command.same(run) else command.problem(run, 0, "") or "another result"), run
    return command.problem(run, 3, f"{WHERE}.*{os.strerror(code)}"), run


def limit_size(size):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    return limit


def fail_size(command, plan):
    """No file can be larger than so many bytes."""
    run = command.torture.run(command.args, command.outputs, limit=limit_size(int(plan.partition(":")[2])))
    return command.problem(run._replace(stdout=command.good.stdout) if run.code else run, 3, f"{WHERE}.*File too large|cannot write to standard output"), run


def fail_full(command, plan):
    """Standard output is a full device."""
    del plan
    run = command.torture.run(command.args, command.outputs, to="/dev/full")
    if not command.good.stdout and run.code == 0:
        return None, run
    return command.problem(run, 3, "standard output.*No space left|cannot write to standard output"), run


def plans(command, options, known):
    """The runs of a command: (what to run, value of TORTURE_FAIL)."""
    if options.kind != "write":
        if options.runs == "all":
            for number in range(1, command.allocs + 1):
                yield fail_alloc, f"alloc:{number}"
                yield fail_alloc, f"alloc+:{number}"
        else:
            for number, place in command.places:
                if place not in known and (options.runs == "places" or int(place, 16) % 4 == 0 or re.match(WHOLE, command.name)):
                    known.add(place)
                    yield fail_alloc, f"alloc{'+' if len(known) % 4 == 0 else ''}:{number}"
    if options.kind != "alloc":
        everything = options.runs == "all"
        numbers = {1, command.writes} - {0} if options.runs == "sample" else range(1, command.writes + 1)
        for number in sorted(numbers):
            for code in (errno.ENOSPC, errno.EIO, errno.EINTR) if everything else (errno.ENOSPC,):
                yield fail_write, f"write:{number}:{code}"
                if everything and code != errno.EINTR:
                    yield fail_write, f"write+:{number}:{code}"
        for size in (1, 7, 4096) if everything else (7,):
            yield fail_write, f"short:{size}"
        largest = max([len(data) for data in command.good.files.values()] + [len(command.good.stdout)])
        for size in sorted({0, 1, 10, 100, 1000, largest // 2, largest - 1} if everything else {largest // 2}):
            if 0 <= size < largest:
                yield fail_size, f"size:{size}"
        if command.good.stdout:
            yield fail_full, "full"


def show(command, plan, problem, run):
    print(f"{command.name}: {plan}: {problem}\n  warpfst {' '.join(command.args)}")
    print("\n".join(f"    {line}" for line in run.stderr.strip().splitlines()[-30:]), flush=True)


def torture_all(torture, options):
    rows = [(name, args) for name, args in commands.rows(commands.COMMANDS) if re.search(options.only, name)]
    known, total, bad = set(), collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        all_commands = list(pool.map(lambda row: Command(torture, *row), rows))
        work = [(command, function, plan) for command in all_commands for function, plan in plans(command, options, known)]
        for (command, function, plan), (problem, run) in zip(work, pool.map(lambda item: item[1](item[0], item[2]), work)):
            kind = "allocations" if function is fail_alloc else "writes"
            total[command.name, kind] += 1
            if problem:
                bad[command.name, kind] += 1
                show(command, plan, problem, run)
    print(f"\n{'command':30} {'allocations':>11} {'runs':>7} {'failures':>8} {'writes':>7} {'runs':>7} {'failures':>8}")
    for command in all_commands:
        of = [(total[command.name, kind], bad[command.name, kind]) for kind in ("allocations", "writes")]
        print(f"{command.name:30} {command.allocs:11} {of[0][0]:7} {of[0][1]:8} {command.writes:7} {of[1][0]:7} {of[1][1]:8}")
    print(f"{len(all_commands)} commands, {sum(total.values())} runs, {sum(bad.values())} failures")
    return 1 if bad else 0


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="warpfst_torture.") as folder:
        torture = Torture(options, pathlib.Path(folder))
        commands.make_inputs(torture.program, torture.folder)
        if not options.plan:
            return torture_all(torture, options)
        function = {"a": fail_alloc, "w": fail_write, "s": fail_write, "f": fail_full}[options.plan[0]]
        function = fail_size if options.plan.startswith("size") else function
        for name, args in commands.rows(commands.COMMANDS):
            if re.search(options.only, name):
                command = Command(torture, name, args)
                show(command, options.plan, *function(command, options.plan))
        return 0


if __name__ == "__main__":
    sys.exit(main())
