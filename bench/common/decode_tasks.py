"""decode_tasks.py - the tasks of `./run bench decode`: programs, graphs, scores, and the runs of each."""
import dataclasses
import gzip
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

import measure

CTC = measure.ROOT / "examples" / "ctc"
SIZES = {  # words of the vocabulary, words of the LM's text, utterances
    "full": (200000, 80000000, 400),
    "small": (20000, 1500000, 400),
    "tiny": (500, 400000, 12),
}
CHECK = 8  # number of utterances whose results must be equal in all runs, bit for bit


class Programs:
    """The programs of a build folder, or of a folder made by ./run pack-gpu."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.warpfst, self.decode, self.generate = (self.find(name) for name in ("warpfst", "bench_decode", "generate_ctc_task"))
        path = [str(self.folder), os.environ.get("LD_LIBRARY_PATH", "")]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, path))}

    def find(self, name):
        for path in (self.folder / name, self.folder / "bench" / name):
            if path.exists():
                return path
        sys.exit(f"{self.folder}: no {name} (./run build, or ./run pack-gpu {self.folder})")

    def run(self, *command):
        start = time.monotonic()
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=self.environment)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
        print(f"{pathlib.Path(command[0]).name} {command[1]}: {time.monotonic() - start:.1f} s", file=sys.stderr)
        return done.stdout


@dataclasses.dataclass
class Task:
    part: str
    name: str
    graph: pathlib.Path
    scores: pathlib.Path
    ref: pathlib.Path
    words: pathlib.Path = None
    acoustic_scale: float = 1
    frame_shift: float = 0.04
    base: tuple = (17, 10000)  # beam, max_active
    beams: tuple = (8, 11, 14, 17)
    max_actives: tuple = (1000, 3000, 10000)
    batches: tuple = (1, 8, 64, 400)
    cpu_utterances: int = 32
    check: int = CHECK
    seconds: float = 1  # approximate time of a run on the CPU; half of it on a GPU, after three rounds
    max_tokens: int = None  # None: the decoder's default

    def command(self, programs, runs):
        command = [programs.decode, self.graph, self.scores, f"--ref={self.ref}", f"--acoustic-scale={self.acoustic_scale}", f"--frame-shift={self.frame_shift}", f"--check={self.check}"]
        if self.words:
            command.append(f"--words={self.words}")
        return [str(word) for word in command + runs]

    def run(self, beam, max_active, **settings):
        settings = {"beam": beam, "max_active": max_active, "max_tokens": self.max_tokens, **settings}
        return ",".join(f"{name}={value}" for name, value in settings.items() if value is not None)

    def cpu_runs(self, alone):
        """The CPU backend on all processors and on one thread, and then every other setting. With `alone` these measure speed, else they only check the GPU's results."""
        quick = {"device": "cpu", "utterances": self.check, "seconds": 0.2 * self.seconds}
        full = {"device": "cpu", "utterances": self.cpu_utterances, "seconds": self.seconds}
        runs = [self.run(*self.base, **full), self.run(*self.base, threads=1, **(full if alone else quick))]
        runs += [self.run(*setting, **(full if alone else quick)) for setting in self.settings()[1:]]
        return runs + [self.run(*self.base, dtype="f16", **quick)]

    def gpu_runs(self, device):
        """Every batch x beam x max_active with scores in device memory; at the base setting also with scores in host memory, and in half precision."""
        runs = []
        for beam, max_active in self.settings():
            for batch in self.batches:
                runs.append(self.run(beam, max_active, device=device, scores="device", batch=batch, utterances=max(batch, min(2 * batch, 64), self.check), seconds=0.5 * self.seconds))
        for batch in self.batches:
            runs.append(self.run(*self.base, device=device, scores="host", batch=batch, utterances=max(batch, self.check), seconds=0.5 * self.seconds))
        most = self.batches[-1]
        for form in ({"scores": "pinned"}, {"scores": "device", "dtype": "f16"}, {"scores": "pinned", "dtype": "f16"}):
            runs.append(self.run(*self.base, device=device, batch=most, utterances=max(most, self.check), seconds=0.5 * self.seconds, **form))
        return runs

    def settings(self):
        """The base setting comes first, so that the most important figures exist if the machine is lost early."""
        others = [(beam, max_active) for beam in self.beams for max_active in self.max_actives]
        return [self.base] + [setting for setting in others if setting != self.base]


def work_folder(name):
    """A folder in build/bench, or in the folder of --work."""
    folder = measure.BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def mkgraph(programs, folder, lm, *arguments):
    graph = folder / "TLG.wfst"
    programs.run(programs.warpfst, "mkgraph", "ctc", f"--lm={lm}", "--topology=compact", "-q", "-o", graph, *arguments)
    return graph


def generated(programs, size, batches):
    """The generated task. It is generated unless its files exist, have this size, and are not older than the generator."""
    words, text_words, utterances = SIZES[size]
    folder = work_folder(f"ctc_task_{size}")
    graph = folder / "TLG.wfst"
    if not graph.exists() or graph.stat().st_mtime < programs.generate.stat().st_mtime:
        programs.run(programs.generate, folder, f"--words={words}", f"--text-words={text_words}", f"--utterances={utterances}")
        mkgraph(programs, folder, folder / "lm.arpa", f"--tokens={folder / 'tokens.txt'}", f"--lexicon={folder / 'lexicon.txt'}")
    kinds = {}
    for kind in ("peaky", "flat"):
        kinds[kind] = Task(kind, f"generated CTC, {kind}, {words} words", graph, folder / f"{kind}.ark", folder / "ref", batches=batches or (1, 8, 64, 400))
    if size == "tiny":
        for task in kinds.values():
            task.beams, task.max_actives, task.cpu_utterances = (8, 17), (1000, 10000), utterances
    return kinds


def references(keys, path, source):
    path.write_text("".join(line for line in source.open(encoding="utf-8") if line.split()[0] in keys), encoding="utf-8")
    return path


UNITS = {"phone": "phones", "char": "characters", "bpe": "byte pairs"}


def real_ctc(programs, scores, batches, unit="phone"):
    folder, scores = work_folder("ctc_real" if unit == "phone" else f"ctc_{unit}"), unpacked(scores)
    keys = {path.stem for path in scores.glob("*.npy")}
    if not keys:
        sys.exit(f"{scores}: no .npy files")
    graph = mkgraph(programs, folder, CTC / "lm3.arpa.gz", f"--tokens={CTC / f'tokens_{unit}.txt'}", f"--lexicon={CTC / f'lexicon_{unit}.txt'}", f"--words-out={folder / 'words.txt'}")
    return Task("real", f"CTC {UNITS[unit]}", graph, scores, references(keys, folder / "ref", CTC / "text"), acoustic_scale=0.7, base=(15, 7000), beams=(15,), max_actives=(7000,),
                batches=batches or (1, 8, 64, 400, len(keys)), cpu_utterances=len(keys))


def plain_model():
    """The language model without compression, for peers that cannot read it compressed."""
    path = work_folder("ctc_real") / "lm3.arpa"
    if not path.exists():
        with gzip.open(CTC / "lm3.arpa.gz") as packed, open(path, "wb") as out:
            shutil.copyfileobj(packed, out)
    return path


def hybrid(arguments, batches, gpu):
    """HCLG of senones, 10 ms frames. With a GPU: acoustic_scale 0.1, beam 13, max_active 7000, as other GPU decoders were measured. On the CPU alone: 0.1538, beam 16 and practically no
    other limit, which gives the fewest errors."""
    folder = work_folder("hybrid")
    graph = pathlib.Path(arguments.hybrid_graph)
    if graph.suffix == ".xz":
        unpacked = folder / graph.stem
        if not unpacked.exists():
            with lzma.open(graph) as packed, open(unpacked, "wb") as out:
                shutil.copyfileobj(packed, out)
        graph = unpacked
    ref = folder / "ref"
    lines = [line.split() for line in open(arguments.hybrid_ref, encoding="utf-8")] if arguments.hybrid_ref else []
    ref.write_text("".join(" ".join([words[-1].strip("()")] + words[:-1]) + "\n" if words[-1].startswith("(") else " ".join(words) + "\n" for words in lines if words), encoding="utf-8")
    task = Task("hybrid", "hybrid HCLG", graph, pathlib.Path(arguments.hybrid_scores), ref, words=arguments.hybrid_words, frame_shift=0.01, batches=batches or (1, 50, 200, 400))
    task.acoustic_scale, task.base, task.max_tokens, task.cpu_utterances = (0.1, (13, 7000), None, 16) if gpu else (0.1538, (16, 100000), 200000, 5)
    task.check = min(CHECK, task.cpu_utterances)
    task.beams, task.max_actives = task.base[:1], task.base[1:]
    return task


def unpacked(path):
    """The folder `path`, or the unpacked folder of the tar archive `path`."""
    path = pathlib.Path(path)
    if path.is_dir() or not tarfile.is_tarfile(path):
        return path
    folder = work_folder("data") / path.name.split(".")[0]
    if not folder.exists():
        with tarfile.open(path) as archive:
            archive.extractall(folder.parent, filter="data")
    return folder


def unpack_wheel(wheel):
    """Unpacks the wheel; returns a folder to import from."""
    folder = work_folder("wheel_" + pathlib.Path(wheel).stem)
    if not any(folder.iterdir()):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder
