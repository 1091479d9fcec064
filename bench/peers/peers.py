#!/usr/bin/env python3
"""peers [--device=cpu|cuda[:N]] [--part=phone,char,bpe,hybrid,tokens,transducer] [--data=FOLDER] [--wheels=FOLDER] [--programs=FOLDER] [--save=FILE | --load=FILE] [--record]

Measures other decoders beside warpfst, from Python, on the same scores, with the same graph, or the same lexicon and language model: word error rate, speed and memory at several beams.

  phone, char, bpe  CTC scores of real speech with the 3-gram model of examples/ctc. --data has logp_phone, logp_char, logp_bpe: folders of .npy, or .tar.xz of them (default: the phones of
                    examples/ctc). CPU: kaldi-decoder, flashlight-text with lexicon and KenLM, pyctcdecode, ctc-beam-decoder. GPU: riva-asrlib-decoder
  hybrid            a real HCLG and senone scores: --hybrid-graph (OpenFst's format), --hybrid-scores, --hybrid-ref, --hybrid-words. CPU: kaldi-decoder. GPU: riva-asrlib-decoder
  tokens            CTC without a lexicon, on characters and byte pairs of --data and on generated scores (--size): NeMo, which needs torch; flashlight-text; on one core also fast-ctc-decode. GPU: also
                    cuda_ctc_decoder. Of --data also with a list of boosted words: NeMo's boosting tree; and if it has train_text, with a 3-gram model of its tokens: NeMo. Not measured on
                    the CPU unless asked for
  transducer        an RNN-T model over tokens, and a list of boosted words, on the CPU: --transducer=FOLDER as for ./run bench transducer. sherpa-onnx

Every decoder runs in a process of its own (bench/peers/peer_decoders.py), and the decoders take turns --rounds times; figures are medians. On the CPU: processor time of one core at every setting,
wall time on all cores at some. Memory: what the process holds beyond the scores, at most; on a GPU what it takes there. Packages are those of this Python, or, with --wheels, the wheels of a
folder, which are unpacked, so that nothing is installed. --fetch=FOLDER downloads these wheels for Python 3.12 and the GPU peers (15 MB), and does nothing else.
"""
import argparse
import collections
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tarfile

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure
import text_models
from decode_tasks import CTC, work_folder

PACKAGES = {  # what each decoder imports, by name of the wheel
    "kaldi-decoder": {"kaldi_decoder": "0.3.2", "kaldifst": "1.8.3"},
    "flashlight-text": {"flashlight_text": "0.0.7"},
    "flashlight-text (no lexicon)": {"flashlight_text": "0.0.7"},
    "pyctcdecode": {},
    "ctc-beam-decoder": {},
    "fast-ctc-decode": {},
    "sherpa-onnx": {},
    "riva-asrlib-decoder": {"riva_asrlib_decoder": "0.4.4"},
    "NeMo": {"nemo_toolkit": "3.0.0"},
    "cuda_ctc_decoder": {"torchaudio": "2.11.0"},
    "warpfst": {},
}
ROOM = ", with cuctc_room.so"
BEAMS = (6, 8, 10, 12, 15, 18)
TOKEN_ALPHA = 0.3  # weight of the model of tokens, of which 0.25 to 0.5 have the fewest errors
NUM_BOOSTED = 20  # words in the list; they are said, each in 1 to 5 utterances
LIMIT_S = 580  # of one process on a GPU
SLOW_S = 20  # what takes longer on the CPU is measured once


@dataclasses.dataclass
class Task:
    name: str
    files: dict
    references: dict
    settings: dict  # decoder -> [setting]
    everywhere: dict = dataclasses.field(default_factory=dict)  # decoder -> [setting] that are also measured on all cores
    joins: bool = False  # tokens of results are joined to words before they are compared with the references

    @property
    def error(self):
        return "TER" if self.files["unit"] == "tokens" and not self.joins else "WER"


# --- settings. Each list has the peer's own default or recommendation (docs/engineering/peers.md says where it is from). ---


def each(name, values, **more):
    return [{name: value, **more} for value in values]


def cpu_settings(unit):
    graph = {"max_active": 7000}
    settings = {
        "warpfst": each("beam", BEAMS, **graph),
        "kaldi-decoder": each("beam", BEAMS, **graph),
        "flashlight-text": each("beam_size", {"char": (50, 500, 1500), "phone": (50, 500), "bpe": (50,)}[unit], beam_threshold=50) + each("beam_size", (5, 20, 50, 200), beam_threshold=25)
        + each("beam_size", (50, 200, 500), beam_threshold=15),
    }
    settings["warpfst"] += each("beam", (12, 15), **graph, unknown_words=1)
    settings["flashlight-text"] += each("beam_size", (50, 500), beam_threshold=15, unknown_words=1)
    everywhere = {name: [{"beam": 15, **graph}] for name in ("warpfst", "kaldi-decoder")} | {"flashlight-text": [{"beam_size": 50, "beam_threshold": 50}, {"beam_size": 500, "beam_threshold": 15}]}
    if unit != "phone":  # it spells words with its tokens, so they must be letters
        settings["pyctcdecode"] = each("beam_width", (10, 30, 100, 300)) + [{"beam_width": 100, "alpha": 0.5, "beta": 1.5}]
        settings["ctc-beam-decoder"] = list(settings["pyctcdecode"])
        settings["warpfst"] += [{"beam": 30, **graph, "alpha": 0.5, "beta": 1.5}]  # scores count more than twice as much, so the beam is wider
        everywhere["pyctcdecode"] = each("beam_width", (100,))
    return settings, everywhere


def hybrid_cpu_settings():
    settings = {name: each("beam", (10, 12, 14, 16), max_active=100000) for name in ("warpfst", "kaldi-decoder")}
    return {name: some + [{"beam": 14, "max_active": 100000, "lattice_beam": 8}] for name, some in settings.items()}, {}


def gpu_settings(beams, base, batches):
    """Beams at the largest batch, batches at the base beam, word confidences; and riva's numbers of lanes and threads."""
    most, threads = max(batches), 2 if len(os.sched_getaffinity(0)) <= 16 else 8
    search = [{**base, "beam": beam, "batch": most} for beam in beams] + [{**base, "batch": batch} for batch in batches if batch != most]
    words = {**base, "lattice_beam": 8, "words": 1, "batch": most}
    riva = [{**setting, "lattice_beam": 0.1, "lanes": 200, "copy_threads": threads} for setting in search] + [{**words, "lanes": 200, "copy_threads": threads}]
    others = [{**base, "lattice_beam": 0.1, "lanes": lanes, "copy_threads": copies, "batch": most} for lanes in (200, 400) for copies in (2, 4, 8)]
    return {"warpfst": [*search, words], "riva-asrlib-decoder": riva + [setting for setting in others if setting not in riva]}


def token_settings(batches, gpu, alpha=None):
    most, graph = max(batches), {"max_active": 10000}
    if alpha is not None:
        return {"warpfst": each("beam", (8, 11, 14, 17), **graph, batch=most), "NeMo": each("beam_size", (4, 8, 16, 32), alpha=alpha, batch=most)}
    settings = {
        "warpfst": each("batch", batches, beam=17, **graph) + each("beam", (8, 11, 14), **graph, batch=most),
        "NeMo": each("batch", batches, beam_size=10) + each("beam_size", (4, 16), batch=most),
        "cuda_ctc_decoder": each("batch", batches, beam_size=10, blank_skip=0.95) + each("beam_size", (4, 20), blank_skip=0.95, batch=most) + [{"beam_size": 10, "blank_skip": 1.0, "batch": most}],
    }
    if gpu:
        return settings
    return {"warpfst": each("beam", (8, 11, 14, 17), **graph), "NeMo": settings["NeMo"], "flashlight-text (no lexicon)": each("beam_size", (10, 50)), "fast-ctc-decode": each("beam_size", (5, 20), cut=0) + [{"beam_size": 20, "cut": 0.001}]}


def boosted_settings(batches):
    """Strengths around the defaults of both: 0.6 nats a letter, and a weight of 1 of a tree with context_score 1 and depth_scaling 2. 0: without the list."""
    most = max(batches)
    return {
        "warpfst": each("nats_a_letter", (0, 0.4, 0.6, 1, 1.5), beam=17, max_active=10000, batch=most),
        "NeMo": each("boosting_tree_alpha", (0, 0.25, 0.5, 1), beam_size=10, batch=most),
    }


def transducer_settings(boosted):
    """Best paths with at most a symbol a frame, which is all that sherpa-onnx searches; its default is 4 paths. Streams: in one call."""
    search, paths = {"max_symbols": 1, "beam": 15}, {"max_active_paths": 4, "streams": 16}
    if boosted:
        return {"warpfst": each("nats_a_letter", (0, 0.4, 0.6, 1), max_hypotheses=8, **search), "sherpa-onnx": [paths] + each("hotwords_score", (1, 1.5, 2.5), **paths)}
    return {
        "warpfst": [{"greedy": 1, "max_symbols": 1}] + each("max_hypotheses", (4, 8, 16), **search),
        "sherpa-onnx": each("streams", (1, 16), greedy=1) + each("max_active_paths", (4, 8), streams=16) + [{"max_active_paths": 4, "streams": 1}],
    }


# What the peers' documentation uses or has as default. riva-asrlib-decoder's depends on the machine.
RECOMMENDED = {
    "kaldi-decoder": ("beam 15, max_active 7000", "beam 14, max_active 100000", "beam 14, max_active 100000, lattice_beam 8"),
    "flashlight-text": ("beam_size 50, beam_threshold 50", "beam_size 1500, beam_threshold 50"),
    "pyctcdecode": ("beam_width 100", "beam_width 100, alpha 0.5, beta 1.5"),
    "ctc-beam-decoder": ("beam_width 100", "beam_width 100, alpha 0.5, beta 1.5"),
    "fast-ctc-decode": ("beam_size 5, cut 0",),
    "sherpa-onnx": ("streams 16, greedy 1", "max_active_paths 4, streams 16"),
    "NeMo": ("beam_size 10", "beam_size 8, alpha 0.3"),
    "cuda_ctc_decoder": ("beam_size 10, blank_skip 0.95",),
    "cuda_ctc_decoder, with cuctc_room.so": ("beam_size 10, blank_skip 0.95",),
}


# --- tasks ---


def openfst(programs, graph):
    """The graph in OpenFst's format `const`, with which kaldi-decoder is a tenth faster than with `vector`."""
    graph = pathlib.Path(graph)
    if graph.suffix != ".wfst":
        return graph
    path = graph.with_suffix(".fst")
    programs.run(programs.warpfst, "convert", graph, path, "--format=const")
    return path


def matrices(programs, scores):
    """The scores as a folder of .npy."""
    scores = pathlib.Path(scores)
    if scores.is_dir():
        return scores
    folder = scores.parent / f"{scores.stem}_npy" if measure.BUILD in scores.parents else work_folder(f"{scores.stem}_npy")
    if not any(folder.glob("*.npy")) or folder.stat().st_mtime < scores.stat().st_mtime:
        shutil.rmtree(folder, ignore_errors=True)
        programs.run(programs.warpfst, "matrix", "copy", scores, "--format=npy", "-o", f"{folder}/")
    return folder


def columns(scores):
    return int(re.search(rb"'shape': \(\d+, (\d+)\)", next(iter(scores.glob("*.npy"))).read_bytes()[:128])[1])


def transcripts(path):
    return {fields[0]: fields[1:] for fields in map(str.split, pathlib.Path(path).read_text(encoding="utf-8").splitlines()) if fields}


def files_of(programs, task, unit, arguments, **more):
    scores = matrices(programs, task.scores)
    return {"unit": unit, "scores": scores, "graph": task.graph, "openfst": openfst(programs, task.graph), "acoustic_scale": task.acoustic_scale, "frame_shift": task.frame_shift,
            "columns": columns(scores), "limit": arguments.utterances, **more}


def data(arguments, unit):
    """The scores of a kind of token, or None."""
    found = sorted(pathlib.Path(arguments.data or CTC).glob(f"logp_{unit}*"))
    return found[0] if found else None


def known_words(lexicon, arpa, folder):
    """The lexicon without the words that the model lacks, as graphs have it. (With them, flashlight-text would find words at the model's cost of <unk>.)"""
    known = set()
    for line in open(arpa, encoding="utf-8"):
        if line.startswith("\\2-grams"):
            break
        known.update(line.split("\t")[1:2])
    path = folder / "known_words.txt"
    path.write_text("".join(line for line in open(lexicon, encoding="utf-8") if line.split()[0] in known), encoding="utf-8")
    return path


def word_task(arguments, programs, unit, gpu):
    task = decode_tasks.real_ctc(programs, data(arguments, unit), None, unit)
    tokens, lexicon, arpa, open_graph = CTC / f"tokens_{unit}.txt", CTC / f"lexicon_{unit}.txt", decode_tasks.plain_model(), task.graph.with_name("TLG_unk.wfst")
    programs.run(programs.warpfst, "mkgraph", "ctc", f"--tokens={tokens}", f"--lexicon={lexicon}", f"--lm={arpa}", "--topology=compact", "--classes=<unk>", "-q", "-o", open_graph)
    more = {"lexicon": known_words(lexicon, arpa, task.graph.parent), "whole_lexicon": lexicon, "arpa": arpa, "open_graph": open_graph}
    files = files_of(programs, task, unit, arguments, words=task.graph.with_name("words.txt"), tokens=tokens, **more)
    settings, everywhere = (gpu_settings((8, 10, 12, 15, 17), {"beam": 15, "max_active": 7000}, arguments.batches or (1, 50, 400, 1260)), {}) if gpu else cpu_settings(unit)
    return Task(task.name, files, transcripts(task.ref), settings, everywhere)


def hybrid_task(arguments, programs, gpu):
    task = decode_tasks.hybrid(arguments, None, gpu)
    files = files_of(programs, task, "word", arguments, words=arguments.hybrid_words)
    settings, everywhere = (gpu_settings((10, 11, 12, 13, 14), {"beam": 13, "max_active": 7000}, arguments.batches or (1, 50, 400)), {}) if gpu else hybrid_cpu_settings()
    return Task(task.name, files, transcripts(task.ref), settings, everywhere)


def spelled(sentences, lexicon):
    """Sentences as tokens, with the first pronunciation of each word."""
    spelling = {}
    for line in pathlib.Path(lexicon).read_text(encoding="utf-8").splitlines():
        word, *tokens = line.split()
        spelling.setdefault(word, tokens)
    return {key: [token for word in words for token in spelling.get(word, ["<unk>"])] for key, words in sentences.items()}


def token_model(programs, folder, sentences, tokens):
    """A 3-gram model of tokens as an ARPA file; and once more with NeMo's names, a letter for each token. Returns both paths."""
    path, renamed = (folder / name for name in ("tokens.arpa", "tokens.nemo.arpa"))
    text_models.text_ngrams(sentences, set(tokens), path, programs, unseen=1e-6)
    letters = {token: chr(100 + i) for i, token in enumerate(tokens)}
    with open(renamed, "w", encoding="utf-8") as out:
        for line in open(path, encoding="utf-8"):
            fields = line.rstrip("\n").split("\t")
            if len(fields) > 1:
                fields[1] = " ".join(letters.get(token, token) for token in fields[1].split())
            out.write("\t".join(fields) + "\n")
    return path, renamed


def boosted_words(scores, sentences, lexicon, limit):
    """{word: its tokens}: a list of words that are said in the first utterances, each in 1 to 5 of them."""
    keys = [path.stem for path in sorted(scores.glob("*.npy"))[:limit]]
    times = collections.Counter(word for key in keys for word in set(sentences.get(key, ())))
    spelling = dict(line.split(maxsplit=1) for line in reversed(pathlib.Path(lexicon).read_text(encoding="utf-8").splitlines()))
    rare = [word for word in sorted(times) if times[word] <= 5 and word in spelling]
    return {word: spelling[word].split() for word in sorted(random.Random(1).sample(rare, min(NUM_BOOSTED, len(rare))))}


def token_task(arguments, programs, name, scores, tokens, lexicon, sentences, text=None, boosts=False):
    folder = work_folder("peers_" + name.replace(" ", "_"))
    names = [line.split()[0] for line in pathlib.Path(tokens).read_text(encoding="utf-8").splitlines()]
    base = decode_tasks.Task("tokens", f"lexicon-free CTC, {name}", folder / "T.wfst", scores, None)
    gpu = arguments.device != "cpu"
    batches = arguments.batches or ((1, 8, 64, 400) if gpu else (8,))
    (folder / "words.txt").write_text("<eps> 0\n" + "".join(f"{token} {column + 1}\n" for column, token in enumerate(names)), encoding="utf-8")
    programs.run(programs.warpfst, "topology", f"--tokens={tokens}", "--type=correct", "-o", base.graph)
    more = {"tokens": tokens, "words": folder / "words.txt"}
    references = spelled(sentences, lexicon)
    yield Task(base.name, files_of(programs, base, "tokens", arguments, **more), references, token_settings(batches, gpu),
               {"warpfst": [{"beam": 17, "max_active": 10000}], "flashlight-text (no lexicon)": [{"beam_size": 10}]})
    if boosts:
        files = files_of(programs, base, "tokens", arguments, **more)
        files["boosted"] = boosted_words(files["scores"], sentences, lexicon, min(max(batches), arguments.utterances or sys.maxsize))
        yield Task(f"{base.name}, {len(files['boosted'])} boosted words", files, sentences, boosted_settings(batches), joins=True)
    if text is None:
        return
    path, renamed = token_model(programs, folder, spelled(text, lexicon).values(), names[1:])
    (folder / "lexicon.txt").write_text("".join(f"{token} {token}\n" for token in names[1:]), encoding="utf-8")
    base.graph = folder / "TG.wfst"
    inputs = [f"--tokens={tokens}", f"--lexicon={folder / 'lexicon.txt'}", f"--lm={path}"]
    programs.run(programs.warpfst, "mkgraph", "ctc", *inputs, "--topology=correct", "-q", f"--words-out={folder / 'words_lm.txt'}", "-o", base.graph)
    base.acoustic_scale = 1 / TOKEN_ALPHA
    files = files_of(programs, base, "tokens", arguments, tokens=tokens, words=folder / "words_lm.txt", arpa=renamed)
    yield Task(f"{base.name}, 3-gram of tokens", files, references, token_settings(batches, gpu, TOKEN_ALPHA))


def token_tasks(arguments, programs):
    text = pathlib.Path(arguments.data, "train_text") if arguments.data else None
    text = {i: line.split()[1:] for i, line in enumerate(text.read_text(encoding="utf-8").splitlines())} if text and text.exists() else None
    for unit in ("char", "bpe"):
        if data(arguments, unit):
            yield from token_task(arguments, programs, f"real {unit}", decode_tasks.unpacked(data(arguments, unit)), CTC / f"tokens_{unit}.txt", CTC / f"lexicon_{unit}.txt", transcripts(CTC / "text"), text, boosts=True)
    generated = decode_tasks.generated(programs, arguments.size, None)["peaky"]
    folder = generated.scores.parent
    yield from token_task(arguments, programs, "generated peaky", generated.scores, folder / "tokens.txt", folder / "lexicon.txt", transcripts(generated.ref))


def transducer_tasks(arguments, programs):
    """An RNN-T model with a stateless predictor, over tokens alone; and with a list of boosted words."""
    folder, source = work_folder("peers_transducer"), pathlib.Path(arguments.transducer)
    if not (folder / "enc").exists():
        with tarfile.open(source / "enc.tar.xz") as archive:
            archive.extractall(folder, filter="data")
    base, tokens, sentences = decode_tasks.Task("transducer", "RNN-T, stateless", folder / "T.wfst", folder / "enc", None), source / "tokens.txt", transcripts(source / "text")
    programs.run(programs.warpfst, "mkgraph", "ctc", "--topology=transducer", f"--tokens={tokens}", "-q", f"--words-out={folder / 'words.txt'}", "-o", base.graph)
    parts = {"transducer": source / "rnnt.safetensors", "predictor": source / "rnnt_predictor.onnx", "joiner": source / "rnnt_joiner.onnx", "context_size": 2}
    files = files_of(programs, base, "tokens", arguments, tokens=tokens, words=folder / "words.txt", **parts)
    yield Task(base.name, files, sentences, transducer_settings(False), joins=True)
    boosted = boosted_words(files["scores"], sentences, CTC / "lexicon_bpe.txt", arguments.utterances or sys.maxsize)
    yield Task(f"{base.name}, {len(boosted)} boosted words", {**files, "boosted": boosted}, sentences, transducer_settings(True), joins=True)


def tasks_of(arguments, programs):
    gpu = arguments.device != "cpu"
    for part in arguments.part:
        if part in decode_tasks.UNITS:
            yield word_task(arguments, programs, part, gpu)
        elif part == "hybrid":
            yield hybrid_task(arguments, programs, gpu)
        elif part == "transducer":
            yield from transducer_tasks(arguments, programs)
        else:
            yield from token_tasks(arguments, programs)


# --- running ---


FLAGS = {"words": "word confidences", "unknown_words": "with unknown words"}


def label(setting):
    return ", ".join([f"{name} {value:g}" for name, value in setting.items() if name not in ("batch", *FLAGS)] + [text for name, text in FLAGS.items() if setting.get(name)])


def packages(decoder, wheels):
    """Folders of the decoder's unpacked wheels. None: a wheel is not there."""
    if wheels is None:
        return []
    found = [sorted(pathlib.Path(wheels).glob(f"{name}-*.whl")) for name in PACKAGES[decoder.removesuffix(ROOM)]]
    return [str(decode_tasks.unpack_wheel(paths[-1])) for paths in found] if all(found) else None


def recall(references, hypotheses, listed):
    """The percentage of the listed words in the references that the hypotheses have."""
    said, found = 0, 0
    for key, words in hypotheses.items():
        wanted, got = (collections.Counter(word for word in some if word in listed) for some in (references.get(key, ()), words))
        said, found = said + wanted.total(), found + (wanted & got).total()
    return 100 * found / said


class Runner:
    """Runs decoders on one task and keeps what they measured."""

    def __init__(self, arguments, task):
        self.arguments, self.task, self.gpu = arguments, task, arguments.device != "cpu"
        self.rows = {}  # (decoder, label, place) -> row
        self.broken = {}  # (decoder, first setting, place) -> the error

    def key(self, decoder, settings, threads):
        return decoder, label(settings[0]), self.place(settings[0], threads)

    def place(self, setting, threads):
        return f"batch {setting['batch']}" if self.gpu and "batch" in setting else f"{threads} core{'s' if threads > 1 else ''}"

    def run(self, decoder, settings, threads):
        """Runs a process, and takes in a line for each setting."""
        folders = packages(decoder, self.arguments.wheels)
        if folders is None:
            self.broken[self.key(decoder, settings, threads)] = "no wheel"
            return
        device = self.arguments.device if "batch" in settings[0] else "cpu"
        device = "cuda:0" if device == "cuda" else device
        files = {name: str(value) if isinstance(value, pathlib.Path) else value for name, value in self.task.files.items()}
        job = {"decoder": decoder.removesuffix(ROOM), "device": device, "threads": threads, "packages": folders, "settings": settings, "task": files}
        path = work_folder("peers") / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, [*folders, os.environ.get("PYTHONPATH")])), "OMP_NUM_THREADS": str(threads)}
        if decoder.endswith(ROOM):
            environment["LD_PRELOAD"] = str(cuctc_room())
        limit = LIMIT_S if self.gpu else 3 * LIMIT_S
        try:
            done = subprocess.run([sys.executable, measure.ROOT / "bench" / "peers" / "peer_decoders.py", path], capture_output=True, text=True, env=environment, timeout=limit, check=False)
            out, last_words, code = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired as stopped:
            out, last_words, code = (stopped.stdout or b"").decode(), f"not finished after {limit} s", -1
        lines = [line for line in out.splitlines() if line.startswith("{")]
        for setting, line in zip(settings, lines):
            self.take(decoder, setting, threads, json.loads(line))
        if code != 0 or len(lines) < len(settings):
            words = [line.strip() for line in last_words.splitlines() if line.strip()]
            telling = [line for line in words if "rror" in line] or words[-1:]
            error = self.broken[self.key(decoder, settings, threads)] = f"exit code {code}: {telling[-1][:300] if telling else 'no message'}"
            print(f"  {decoder}: {error}", file=sys.stderr, flush=True)

    def take(self, decoder, setting, threads, found):
        key = self.key(decoder, [setting], threads)
        row = self.rows.setdefault(key, {"task": self.task.name, "error": self.task.error, "decoder": key[0], "setting": key[1], "place": key[2], "seconds": [], "mib": []})
        row["seconds"].append(found["seconds"])
        row["mib"].append(found["mib"])
        references = self.task.references
        if self.task.joins:
            found["hypotheses"] = {key: "".join(tokens).replace("\u2581", " ").split() for key, tokens in found["hypotheses"].items()}
            if "boosted" in self.task.files:
                row["recall"] = recall(references, found["hypotheses"], self.task.files["boosted"])
        errors = sum(measure.distance(references[key], words) for key, words in found["hypotheses"].items() if key in references)
        row |= {"utterances": len(found["hypotheses"]), "audio": found["audio"], "rate": 100 * errors / sum(len(references[key]) for key in found["hypotheses"] if key in references)}
        print(f"  {', '.join(key)}: RTFx {found['audio'] / found['seconds']:.1f}, {row['error']} {row['rate']:.2f}%, {found['mib']:.0f} MiB", file=sys.stderr, flush=True)

    def turns(self):
        """(decoder, settings, threads) of one round. On a GPU a process has all settings of its decoder, since it takes seconds to start; on the CPU each has one, so that peaks are its own."""
        cores = len(os.sched_getaffinity(0))
        if self.gpu:
            yield from ((decoder, settings, cores) for decoder, settings in self.task.settings.items())
        elif self.arguments.cores != "all":
            most = max(map(len, self.task.settings.values()))
            for i in range(most):
                yield from ((decoder, [settings[i]], 1) for decoder, settings in self.task.settings.items() if i < len(settings))
        if self.arguments.cores != "1" and cores > 1:
            yield from ((decoder, [setting], cores) for decoder, settings in self.task.everywhere.items() for setting in settings)

    def is_done(self, decoder, settings, threads):
        """It failed before, or takes so long that one round must do."""
        key = self.key(decoder, settings, threads)
        return key in self.broken or not self.gpu and key in self.rows and self.rows[key]["seconds"][0] > SLOW_S

    def measure(self):
        for _ in range(self.arguments.rounds):
            for decoder, settings, threads in self.turns():
                if not self.is_done(decoder, settings, threads):
                    self.run(decoder, settings, threads)
                if decoder == "cuda_ctc_decoder" and self.key(decoder, settings, threads) in self.broken and not self.is_done(decoder + ROOM, settings, threads):
                    self.run(decoder + ROOM, settings, threads)
        for row in self.rows.values():
            seconds = statistics.median(row.pop("seconds"))
            yield {**row, "rtfx": row["audio"] / seconds, "mib": statistics.median(row["mib"])}
        for (decoder, *where), error in self.broken.items():
            yield {"task": self.task.name, "decoder": f"{decoder} ({', '.join(where)})", "failed": error}


def cuctc_room():
    library = measure.BUILD / "cuctc_room.so"
    if not library.exists():
        measure.run("cc", "-O2", "-shared", "-fPIC", "-o", library, measure.ROOT / "bench" / "peers" / "cuctc_room.c", "-ldl")
    return library


# --- results ---


def print_tables(rows):
    by_task = collections.defaultdict(list)
    for row in rows:
        by_task[row["task"]].append(row)
    for task, group in by_task.items():
        print(f"\n{task}\n")
        measured = [row for row in group if "rtfx" in row]
        lists = any("recall" in row for row in measured)
        print(measure.table(["decoder", "setting", "on", "error rate, %", *["listed words found, %"] * lists, "RTFx", "MiB"],
                            [[row["decoder"], row["setting"], row["place"], f"{row['rate']:.2f}", *([f"{row['recall']:.1f}"] if lists else []), measure.figure(row["rtfx"]), f"{row['mib']:.0f}"] for row in measured]))
        for row in group:
            if "failed" in row:
                print(f"\n{row['decoder']}: {row['failed']}")


def figures(rows):
    for row in rows:
        if "rtfx" in row:
            what, setup = f"peers, {row['task']}", f"{row['utterances']} utterances, {row['decoder']}, {row['setting']}, {row['place']}"
            yield from ((what, setup, measure.figure(row["rtfx"]), "RTFx"), (what, f"{setup}, {row['error']}", f"{row['rate']:.2f}", "%"), (what, f"{setup}, memory", f"{row['mib']:.0f}", "MiB"))
            if "recall" in row:
                yield what, f"{setup}, listed words found", f"{row['recall']:.1f}", "%"


ORDER = ("warpfst", "kaldi-decoder", "flashlight-text (no lexicon)", "flashlight-text", "pyctcdecode", "ctc-beam-decoder", "fast-ctc-decode", "sherpa-onnx", "riva-asrlib-decoder", "NeMo", f"cuda_ctc_decoder{ROOM}", "cuda_ctc_decoder")
SETUP = re.compile(rf"(?P<utterances>\d+) utterances, (?P<decoder>{'|'.join(map(re.escape, ORDER))}), (?P<setting>.*), (?P<place>\d+ cores?|batch \d+)")


def recorded(table, task):
    """What figures() wrote, from rows of measure.rows(): of each peer those of the machine on which it was recorded last, and ours of these machines: {place: [{decoder, setting, place, utterances, rtfx, rate, mib, recall if measured, machine, commit}]}."""
    values = {(row["machine"], row["setup"]): row for row in table if row["what"] == f"peers, {task}"}
    places = {}
    for (machine, setup), row in values.items():
        if row["unit"] == "RTFx":
            rate = values.get((machine, f"{setup}, WER")) or values[machine, f"{setup}, TER"]
            found = {**SETUP.fullmatch(setup).groupdict(), "rtfx": float(row["figure"]), "rate": float(rate["figure"]), "mib": float(values[machine, f"{setup}, memory"]["figure"])}
            listed = values.get((machine, f"{setup}, listed words found"))
            if listed:
                found["recall"] = float(listed["figure"])
            places.setdefault(found["place"], {}).setdefault(machine, []).append({**found, "machine": machine, "commit": row["commit"]})
    for place, by_machine in places.items():
        last = {row["decoder"]: machine for machine, rows in by_machine.items() for row in rows if row["decoder"] != "warpfst"} or {"warpfst": list(by_machine)[-1]}
        places[place] = [row for machine, rows in by_machine.items() for row in rows if machine == last.get(row["decoder"]) or row["decoder"] == "warpfst" and machine in last.values()]
    return places


def fetch(folder):
    """Downloads the wheels of the GPU peers, and of the CPU peers that a GPU machine can use without other packages."""
    wanted = sorted({f"{name}=={version}" for names in PACKAGES.values() for name, version in names.items()})
    platforms = [f"--platform={name}" for name in ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")]
    measure.run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--python-version=3.12", "--implementation=cp", "--abi=cp312", *platforms, "--only-binary=:all:", "-d", folder, *wanted)
    sizes = {path.name: path.stat().st_size / 1e6 for path in sorted(pathlib.Path(folder).glob("*.whl"))}
    print("\n".join(f"{size:6.2f} MB  {name}" for name, size in sizes.items()) + f"\n{sum(sizes.values()):6.2f} MB")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--part", default="", help="comma-separated; default: all for which there are files")
    parser.add_argument("--only", default="", help="measure the tasks whose names this regular expression finds, such as boosted")
    parser.add_argument("--data")
    parser.add_argument("--utterances", type=int, help="take the first N of each task")
    parser.add_argument("--rounds", type=int, help="default: 3, on a GPU 2")
    parser.add_argument("--cores", choices=("1", "all"), help="1: leave out what is measured on all cores; all: only that")
    parser.add_argument("--decoders", help="comma-separated; default: all")
    parser.add_argument("--batches", type=lambda text: tuple(map(int, text.split(","))), help="on a GPU, instead of each task's batches")
    parser.add_argument("--size", choices=decode_tasks.SIZES, help="of the generated task of `tokens`; default: full on a GPU, else small")
    for name in ("graph", "scores", "ref", "words"):
        parser.add_argument(f"--hybrid-{name}")
    parser.add_argument("--transducer")
    parser.add_argument("--wheels")
    parser.add_argument("--fetch")
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder, or one made by ./run pack-gpu")
    parser.add_argument("--work", help="folder for graphs and scores, which are kept (default: build/bench)")
    parser.add_argument("--save", help="also save the measurements to this file, after every task")
    parser.add_argument("--load", help="do not measure; print tables of a saved file, or record it")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    gpu = arguments.device != "cpu"
    there = {**{unit: data(arguments, unit) for unit in decode_tasks.UNITS}, "hybrid": arguments.hybrid_graph and arguments.hybrid_scores, "tokens": True, "transducer": arguments.transducer and not gpu}
    arguments.part = arguments.part.split(",") if arguments.part else [part for part in there if there[part] and (part != "tokens" or gpu)]
    missing = [part for part in arguments.part if not there.get(part)]
    if missing:
        parser.error(f"--part: no files for {', '.join(missing)}, or unknown")
    arguments.size = arguments.size or ("full" if gpu else "small")
    arguments.rounds = arguments.rounds or (2 if gpu else 3)
    measure.BUILD = pathlib.Path(arguments.work or measure.BUILD).resolve()
    return arguments


def measured(arguments):
    programs, about = decode_tasks.Programs(arguments.programs), {"machine": measure.machine(), "commit": measure.commit(), "gpu": None}
    if arguments.device != "cpu":
        about["gpu"] = measure.machine_with_gpu().rsplit(", ", 1)[1]
    print(f"{about['machine']}; load before {measure.load()}", file=sys.stderr)
    rows = []
    for task in tasks_of(arguments, programs):
        if not re.search(arguments.only, task.name):
            continue
        print(task.name, file=sys.stderr, flush=True)
        if arguments.decoders:
            chosen = arguments.decoders.split(",")
            task.settings, task.everywhere = ({name: some for name, some in each.items() if name in chosen} for each in (task.settings, task.everywhere))
        rows += Runner(arguments, task).measure()
        if arguments.save:
            pathlib.Path(arguments.save).write_text(json.dumps({"about": about, "rows": rows}, indent=1), encoding="utf-8")
    return about, rows


def main():
    arguments = parse()
    if arguments.fetch:
        fetch(arguments.fetch)
        return
    about, rows = (json.loads(pathlib.Path(arguments.load).read_text(encoding="utf-8"))[part] for part in ("about", "rows")) if arguments.load else measured(arguments)
    print_tables(rows)
    if arguments.record:
        machine = f"one {about['gpu']}; host {about['machine']}" if about["gpu"] else about["machine"]
        measure.record(list(figures(rows)), "./run bench peers" + (" --device=cuda" if about["gpu"] else ""), machine=machine, commit=os.environ.get("WARPFST_COMMIT", about["commit"]))
    sys.exit(0 if any("rtfx" in row for row in rows) else 1)


if __name__ == "__main__":
    main()
