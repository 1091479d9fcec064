#!/usr/bin/env python3
"""transducer_task [--shape=NAME]... [--with=WAY,...] [--device=cuda] [--batch=400] [--batches=3] [--seconds=15] [--threads=0] [--rounds=1] [--programs=FOLDER] [--greedy] [--max-hypotheses=8] [--beam=6] [--lm-beam=9] [--max-symbols=3] [--lattice-beam=0]

Speed of transducers of real sizes with random weights, and where the time goes. Needs the built program and numpy. Encoder outputs are random, too; the blank's bias is, for each way of decoding,
such that about one of 5 (80 ms) or 8 (40 ms) frames emits a token, as in speech.

  parakeet       RNN-T, LSTM predictor of 640, joiner of 640, encoder of 1024, 1,024 tokens, 80 ms frames
  parakeet-tdt   the same with durations 0 to 4
  parakeet-8k    TDT, 8,192 tokens
  zipformer      RNN-T, stateless predictor (2 tokens) of 512, joiner of 512, encoder of 512, 500 tokens, 40 ms frames

Ways of decoding, --with (default: tokens; `all`: all of them):

  tokens         over tokens alone
  token-boosts   tokens, and a list of 100 phrases for each utterance
  token-lm       tokens, and a 3-gram model of tokens while decoding
  graph          words: lexicon of 5,000 words, of one to four tokens, and 3-gram model in the graph
  graph-boosts   graph, and a list of 100 phrases for each utterance
  graph-words    graph with a class, and 100 words for each utterance that are added to it
  lm             words: lexicon and unigrams in the graph, the 3-gram model while decoding
  lm-boosts      lm, and a list of 100 phrases for each utterance
  lm-subtract    lm, less 0.2 times the cost by a 2-gram model

With --lattice-beam the decoder makes lattices, too. With language models the beam is --lm-beam: with it about as many hypotheses survive in a frame (tokens/frame) as over tokens alone with --beam.

RTFx is seconds of audio per second of decoding, with outputs in host memory; files are read before. The median of --rounds runs. "cost" is the time as a multiple of that over tokens alone.
Compare the log-probabilities of two devices with --device=cpu --batch=4.
"""
import argparse
import json
import pathlib
import shutil
import struct
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
import numpy as np
import transducer_words

SHAPES = {
    "parakeet": {"tokens": 1024, "embed": 640, "predictor": 640, "joiner": 640, "encoder": 1024, "frame_s": 0.08, "rate": 1 / 5},
    "parakeet-tdt": {"tokens": 1024, "durations": 5, "embed": 640, "predictor": 640, "joiner": 640, "encoder": 1024, "frame_s": 0.08, "rate": 1 / 5},
    "parakeet-8k": {"tokens": 8192, "durations": 5, "embed": 640, "predictor": 640, "joiner": 640, "encoder": 1024, "frame_s": 0.08, "rate": 1 / 5},
    "zipformer": {"tokens": 500, "context": 2, "embed": 512, "predictor": 512, "joiner": 512, "encoder": 512, "frame_s": 0.04, "rate": 1 / 8},
}
SPREAD = 4.0  # of the logits, in nats
SEARCH = {"max_hypotheses": 8, "beam": 6.0, "lm_beam": 9.0, "max_symbols": 3}
WAYS = {  # graph, and files of options
    "tokens": ("tokens", {}),
    "token-boosts": ("tokens", {"utterance-boosts": "token-boosts"}),
    "token-lm": ("tokens", {"lm": "tokens.wlm"}),
    "graph": ("words", {}),
    "graph-boosts": ("words", {"utterance-boosts": "word-boosts"}),
    "graph-words": ("classes", {"utterance-words": "added-words"}),
    "lm": ("unigrams", {"lm": "difference.wlm"}),
    "lm-boosts": ("unigrams", {"lm": "difference.wlm", "utterance-boosts": "word-boosts"}),
    "lm-subtract": ("unigrams", {"lm": "difference.wlm", "lm-subtract": "bigrams.wlm"}),
}


def random_model(rng, shape):
    """Tensors, as docs/reference/transducers.md names them. The blank is the last token."""
    def matrix(rows, columns, scale):
        return (rng.standard_normal((rows, columns)) * scale / np.sqrt(columns)).astype(np.float32)

    size, joiner, outputs = shape["predictor"], shape["joiner"], shape["tokens"] + shape.get("durations", 0)
    tensors = {"pred.emb.weight": matrix(shape["tokens"], shape["embed"], np.sqrt(shape["embed"]))}
    if "context" in shape:
        tensors["pred.conv.weight"] = matrix(size, shape["context"] * shape["embed"], 1)
    else:
        for name, columns in (("ih", shape["embed"]), ("hh", size)):
            tensors[f"pred.lstm.weight_{name}"] = matrix(4 * size, columns, 1)
            tensors[f"pred.lstm.bias_{name}"] = np.zeros(4 * size, np.float32)
    tensors["joiner.enc.weight"] = matrix(joiner, shape["encoder"], 1)
    tensors["joiner.pred.weight"] = matrix(joiner, size, 0.3)  # else contexts, not frames, decide when tokens come
    tensors["joiner.out.weight"] = matrix(outputs, joiner, 1)
    tensors["joiner.out.bias"] = np.zeros(outputs, np.float32)
    scale_logits(rng, shape, tensors)
    return tensors


def scale_logits(rng, shape, tensors):
    """Scales the logits to SPREAD."""
    count, size = 2000, shape["predictor"]
    outputs = rng.standard_normal((count, shape["encoder"])).astype(np.float32)
    predictor = rng.uniform(-0.5, 0.5, (count, size)) if "context" not in shape else np.maximum(rng.standard_normal((count, size)), 0)
    hidden = np.tanh(outputs @ tensors["joiner.enc.weight"].T + predictor.astype(np.float32) @ tensors["joiner.pred.weight"].T)
    tensors["joiner.out.weight"] *= SPREAD / (hidden @ tensors["joiner.out.weight"].T).std()
    if "durations" in shape:  # a token mostly takes a few frames, a blank one to four
        tensors["joiner.out.bias"][shape["tokens"] :] = SPREAD * np.array([-1, 0.5, 0.5, 0, 0])


def write_safetensors(path, tensors, metadata):
    header, at = {"__metadata__": metadata}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def way_flags(folder, way):
    """Arguments of `warpfst decode` but the scores."""
    graph, files = WAYS[way]
    scale = ["--lm-subtract-scale=0.2"] if "lm-subtract" in files else []
    return [folder / f"{graph}.wfst", f"--transducer={folder / way}.safetensors", *(f"--{option}={folder / name}" for option, name in files.items()), *scale]


def search_flags(way, search):
    beam = search["beam" if way in ("tokens", "token-boosts") else "lm_beam"]
    return [f"--max-hypotheses={search['max_hypotheses']}", f"--beam={beam}", f"--max-symbols={search['max_symbols']}"]


def count_tokens(folder, way, path):
    """The number of tokens that the words of a file of results are spelled with."""
    spelled = {} if WAYS[way][0] == "tokens" else transducer_words.read_lexicon(folder)
    with open(path, encoding="utf-8") as file:
        return sum(len(spelled.get(word, (word,))) for line in file for word in line.split()[1:])


def find_blank(folder, shape, way, search, program):
    """Writes the model with the blank's bias such that the best paths of some utterances emit about `rate` tokens a frame."""
    tensors, frames, low, high = random_model(np.random.default_rng(27), shape), sum(len(np.load(path)) for path in (folder / "few").iterdir()), -10 * SPREAD, 10 * SPREAD
    for _ in range(9):
        tensors["joiner.out.bias"][shape["tokens"] - 1] = middle = (low + high) / 2
        write_safetensors(folder / f"{way}.safetensors", tensors, {"blank": str(shape["tokens"] - 1)})
        measure.run(program, "decode", *way_flags(folder, way), folder / "few", *search_flags(way, search), "-o", folder / "few.txt")
        low, high = (middle, high) if count_tokens(folder, way, folder / "few.txt") > shape["rate"] * frames else (low, middle)


def write_outputs(folder, rng, shape, count, seconds):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for i in range(count):
        frames = int(seconds * rng.uniform(0.5, 1.5) / shape["frame_s"])
        np.save(folder / f"u{i:05}.npy", rng.standard_normal((frames, shape["encoder"])).astype(np.float32))


def make_graphs(folder, shape, ways, count, program):
    """Graphs and models, those of words only if a way needs them."""
    names = [f"t{i}" for i in range(shape["tokens"] - 1)]
    graph = [program, "mkgraph", "ctc", "--topology=transducer", f"--tokens={folder / 'tokens.txt'}", "--blank=<blk>", "-q", "-o"]
    if not (folder / "tokens.wfst").exists():
        (folder / "tokens.txt").write_text("".join(f"{token} {i}\n" for i, token in enumerate([*names, "<blk>"])))
        measure.run(*graph, folder / "tokens.wfst")
    if set(ways) == {"tokens"} or (folder / "words.wfst").exists():
        return
    transducer_words.make_words(folder, names)
    for make in (transducer_words.make_boosts, transducer_words.make_added_words):
        make(folder, [f"u{i:05}" for i in range(count)])
    lm, lexicon = folder / "lm.arpa", f"--lexicon={folder / 'lexicon.txt'}"
    measure.run(program, "lm", "prune", lm, "--max-total=1", "-q", "-o", folder / "unigrams.arpa")
    measure.run(program, "lm", "prune", lm, "--max-ngrams=1000000,0", "-q", "-o", folder / "bigrams.arpa")
    measure.run(program, "lm", "convert", lm, f"--subtract={folder / 'unigrams.arpa'}", "-q", "-o", folder / "difference.wlm")
    for name in ("bigrams", "tokens"):
        measure.run(program, "lm", "convert", folder / f"{name}.arpa", "-q", "-o", folder / f"{name}.wlm")
    measure.run(*graph, folder / "unigrams.wfst", lexicon, f"--lm={folder / 'unigrams.arpa'}")
    measure.run(*graph, folder / "classes.wfst", lexicon, f"--lm={lm}", f"--classes={transducer_words.CLASS}")
    measure.run(*graph, folder / "words.wfst", lexicon, f"--lm={lm}")


def make_task(folder, name, count, seconds, search, program, ways=("tokens",)):
    """Models, graphs and encoder outputs in a folder, unless they are there. `search`: options, as SEARCH."""
    shape, done, wanted = SHAPES[name], folder / "made", f"{count} {seconds} {search}"
    if not done.exists() or done.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        write_outputs(folder / "few", np.random.default_rng(28), shape, 8, 5)
        write_outputs(folder / "enc", np.random.default_rng(29), shape, count, seconds)
        done.write_text(wanted)
    make_graphs(folder, shape, ways, max(count, 8), program)
    for way in ways:
        if not (folder / f"{way}.safetensors").exists():
            find_blank(folder, shape, way, search, program)


def decode(folder, way, arguments, search, frame_s):
    """The summary of the run of median speed."""
    summary, out, found = folder / "summary.json", folder / f"{way}-{arguments.device.replace(':', '')}.txt", []
    command = [pathlib.Path(arguments.programs) / "warpfst", "decode", *way_flags(folder, way), folder / "enc", f"--frame-shift={frame_s}", f"--num-threads={arguments.threads}"]
    command += [f"--batch={arguments.batch}", f"--device={arguments.device}", f"--summary={summary}"]
    command += ["--greedy", f"--max-symbols={arguments.max_symbols}"] if arguments.greedy else search_flags(way, search)
    command += [f"--lattice-beam={arguments.lattice_beam}"]
    for _ in range(arguments.rounds):
        measure.run(*command, "-o", out)
        found.append(json.loads(summary.read_text()))
    return {**sorted(found, key=lambda run: run["decode_seconds"])[len(found) // 2], "emitted": count_tokens(folder, way, out)}


def row_of(name, way, found, alone):
    """`alone`: seconds over tokens alone, or None."""
    where = found.get("transducer", {"rounds": 0, "rows": 0, "contexts": 0, "search_seconds": 0, "submit_seconds": 0, "wait_seconds": 0})
    frames, rounds = found["hours"] * 3600 / SHAPES[name]["frame_s"], max(where["rounds"], 1)
    times = [f"{where[key]:.3f}" for key in ("search_seconds", "submit_seconds", "wait_seconds")]
    cost = "" if alone is None else f"{found['decode_seconds'] / alone:.2f}"
    return [name, way, measure.figure(found["rtfx"]), cost, f"{found['decode_seconds']:.3f}", *times, where["rounds"], f"{where['rows'] / rounds:.0f}", f"{where['contexts'] / rounds:.0f}",
            f"{found['emitted'] / frames:.3f}", f"{found['tokens_per_frame']:.1f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder")
    parser.add_argument("--greedy", action="store_true")
    for name, value in SEARCH.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--lattice-beam", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--with", dest="ways", default="tokens", metavar="WAY,...")
    arguments = parser.parse_args()
    ways, rows = list(WAYS) if arguments.ways == "all" else arguments.ways.split(","), []
    search = {name: getattr(arguments, name) for name in SEARCH}
    if unknown := set(ways) - set(WAYS):
        parser.error(f"--with: no way {', '.join(sorted(unknown))}")
    for name in arguments.shape or SHAPES:
        folder, alone = measure.BUILD / "transducer_task" / name, None
        make_task(folder, name, arguments.batch * arguments.batches, arguments.seconds, search, pathlib.Path(arguments.programs) / "warpfst", ways)
        for way in ways:
            found = decode(folder, way, arguments, search, SHAPES[name]["frame_s"])
            alone = found["decode_seconds"] if way == "tokens" else alone
            rows.append(row_of(name, way, found, alone))
            print(*rows[-1], file=sys.stderr, flush=True)
    print(f"{measure.machine()}; load {measure.load()}; device {arguments.device}, batches of {arguments.batch}, {arguments.threads or 'all'} threads")
    print(measure.table(["shape", "with", "RTFx", "cost", "decoding s", "search s", "send s", "wait s", "rounds", "rows/round", "contexts/round", "emitted/frame", "tokens/frame"], rows))


if __name__ == "__main__":
    sys.exit(main())
