"""measure.py - shared by the benchmark scripts: timed commands on one core, medians, tables, and the figures of bench/figures/."""
import csv
import datetime
import os
import pathlib
import platform
import re
import resource
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1] if HERE.name == "common" else HERE.parent  # a folder of ./run pack-gpu holds this file and the scripts
BUILD = ROOT / "build" / "bench"
WARPFST = ROOT / "build" / "release" / "warpfst"
FIGURES = ROOT / "bench" / "figures"
COLUMNS = ["date", "what", "setup", "figure", "unit", "machine", "commit", "command"]
KEY = ("what", "setup", "unit", "machine")


def run(*command):
    """Runs a command. If it fails, prints its output and exits."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


class Cost:
    """Processor seconds, wall seconds and peak memory of commands that run one after the other."""

    def __init__(self, cpu_s=0.0, wall_s=0.0, peak_mib=0.0, stderr=""):
        self.cpu_s, self.wall_s, self.peak_mib, self.stderr = cpu_s, wall_s, peak_mib, stderr

    def __add__(self, other):
        return Cost(self.cpu_s + other.cpu_s, self.wall_s + other.wall_s, max(self.peak_mib, other.peak_mib))


def pinned(command, core):
    return [str(word) for word in ("taskset", "-c", core, *command)]


def timed(command, core, limit_s=None):
    """Cost of one command, or None if it was stopped after limit_s. It runs under GNU time, because the peak memory of a direct child would include this process's own. The processor time
    is measured here, because GNU time rounds it to hundredths."""
    report = BUILD / "time.txt"
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    limit = [] if limit_s is None else ["timeout", str(limit_s)]
    done = subprocess.run(pinned(["/usr/bin/time", "-q", "-o", report, "-f", "%M", *limit, *command], core), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    if limit_s is not None and done.returncode == 124:
        return None
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    cpu_s = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return Cost(cpu_s, end - begin, int(report.read_text().split()[-1]) / 1024, done.stderr)


class Built:
    """The programs of ./run build, as decode_tasks.Programs has those of any folder."""

    warpfst = WARPFST

    @staticmethod
    def run(*command):
        return run(*command)


def median(costs):
    return Cost(*(statistics.median(getattr(cost, field) for cost in costs) for field in ("cpu_s", "wall_s", "peak_mib")))


def last_core():
    return max(os.sched_getaffinity(0))


def machine():
    model = platform.processor()
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cores = os.cpu_count()
    return f"{platform.machine().replace('_', '-')}, {cores} core{'s' if cores != 1 else ''}, {model}"


def machine_with_gpu():
    return machine() + ", " + run("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()[0]


def load():
    return " ".join(open("/proc/loadavg", encoding="utf-8").read().split()[:3])


def commit():
    """The commit of this tree, or WARPFST_COMMIT for figures that were measured elsewhere."""
    if "WARPFST_COMMIT" in os.environ:
        return os.environ["WARPFST_COMMIT"]
    try:
        done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    except FileNotFoundError:  # a machine without git
        return "unknown"
    return done.stdout.strip() or "unknown"


def table(header, rows):
    """A Markdown table. The first columns, with text, are left-aligned; numbers are right-aligned."""
    cells = [header] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    numeric = [all(row[i][:1] in "0123456789-" for row in cells[1:]) for i in range(len(header))]
    lines = ["| " + " | ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, numeric)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + (":" if number else "-") for width, number in zip(widths, numeric)) + "|")
    return "\n".join(lines)


def distance(a, b):
    """The number of insertions, deletions and substitutions between two lists of words."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def figure(value):
    """Formats a value with three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def key_of(row):
    return tuple(row[name] for name in KEY)


def series(command):
    """The name of the series that a command measures: `decode` of `./run bench decode --device=cuda` and of `bench_decode ...`."""
    found = re.search(r"bench[ /_](\w+)", command)
    return found[1] if found else "other"


def rows(*names):
    """The rows of these series (default: of all), oldest first."""
    found = []
    for path in sorted(FIGURES.glob("*.csv")):
        if not names or path.stem in names:
            with open(path, encoding="utf-8", newline="") as file:
                found += csv.DictReader(file)
    return sorted(found, key=lambda row: row["date"])


def record(figures, command, **about):
    """Writes figures (what, setup, figure, unit) to the file of their series. They replace rows of the same KEY, in any series. `about`: date, machine and commit, if they are not those of today and here."""
    about = {"date": datetime.date.today().isoformat(), "machine": machine(), "commit": commit(), "command": command, **about}
    new = {key_of(row): row for row in (dict(zip(("what", "setup", "figure", "unit"), figure), **about) for figure in figures)}
    FIGURES.mkdir(exist_ok=True)
    own = FIGURES / f"{series(command)}.csv"
    for path in {own, *FIGURES.glob("*.csv")}:
        found = rows(path.stem)
        kept = [row for row in found if key_of(row) not in new]
        if path == own:
            _write(path, [*kept, *new.values()])
        elif not kept:
            path.unlink()
        elif len(kept) < len(found):
            _write(path, kept)


def _write(path, table):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
