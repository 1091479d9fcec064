#!/usr/bin/env python3
"""transducer_task [--shape=NAME]... [--device=cuda] [--batch=400] [--batches=3] [--seconds=15] [--threads=0] [--programs=FOLDER] [--greedy] [--max-hypotheses=8] [--beam=6]

Speed of transducers of real sizes with random weights, and where the time goes. Needs the built program and numpy. Encoder outputs are random, too; the blank's bias is
such that about one of 5 (80 ms) or 8 (40 ms) frames emits a token, as in speech.

  parakeet       RNN-T, LSTM predictor of 640, joiner of 640, encoder of 1024, 1,024 tokens, 80 ms frames
  parakeet-tdt   the same with durations 0 to 4
  parakeet-8k    TDT, 8,192 tokens
  zipformer      RNN-T, stateless predictor (2 tokens) of 512, joiner of 512, encoder of 512, 500 tokens, 40 ms frames

RTFx is seconds of audio per second of decoding, with outputs in host memory; files are read before. Compare the log-probabilities of two devices with --device=cpu --batch=4.
"""
import argparse
import json
import pathlib
import struct
import sys

import measure
import numpy as np

SHAPES = {
    "parakeet": {"tokens": 1024, "embed": 640, "predictor": 640, "joiner": 640, "encoder": 1024, "frame_s": 0.08, "rate": 1 / 5},
    "parakeet-tdt": {"tokens": 1024, "durations": 5, "embed": 640, "predictor": 640, "joiner": 640, "encoder": 1024, "frame_s": 0.08, "rate": 1 / 5},
    "parakeet-8k": {"tokens": 8192, "durations": 5, "embed": 640, "predictor": 640, "joiner": 640, "encoder": 1024, "frame_s": 0.08, "rate": 1 / 5},
    "zipformer": {"tokens": 500, "context": 2, "embed": 512, "predictor": 512, "joiner": 512, "encoder": 512, "frame_s": 0.04, "rate": 1 / 8},
}
SPREAD = 4.0  # of the logits, in nats
BEAM = ["--max-hypotheses=8", "--beam=6"]


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


def count_words(path):
    with open(path, encoding="utf-8") as file:
        return sum(max(len(line.split()) - 1, 0) for line in file)


def find_blank(folder, shape, tensors, max_symbols, program):
    """Sets the blank's bias so that the best paths of some utterances emit about `rate` tokens a frame."""
    low, high = 0.0, 10 * SPREAD
    for _ in range(8):
        tensors["joiner.out.bias"][shape["tokens"] - 1] = (low + high) / 2
        write_model(folder, shape, tensors)
        measure.run(program, "decode", folder / "tokens.wfst", folder / "few", f"--transducer={folder / 'model.safetensors'}", f"--max-symbols={max_symbols}", *BEAM, "-o",
                    folder / "few.txt")
        emitted, frames = count_words(folder / "few.txt"), sum(len(np.load(path)) for path in (folder / "few").iterdir())
        low, high = ((low + high) / 2, high) if emitted > shape["rate"] * frames else (low, (low + high) / 2)


def write_model(folder, shape, tensors):
    write_safetensors(folder / "model.safetensors", tensors, {"blank": str(shape["tokens"] - 1)})


def write_outputs(folder, rng, shape, count, seconds):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for i in range(count):
        frames = int(seconds * rng.uniform(0.5, 1.5) / shape["frame_s"])
        np.save(folder / f"u{i:05}.npy", rng.standard_normal((frames, shape["encoder"])).astype(np.float32))


def make_task(folder, name, count, seconds, max_symbols, program):
    """Model, graph and encoder outputs in a folder, unless they are there."""
    shape, rng = SHAPES[name], np.random.default_rng(27)
    done, wanted = folder / "made", f"{count} {seconds} {max_symbols}"
    if done.exists() and done.read_text() == wanted:
        return
    write_outputs(folder / "few", rng, shape, 8, 5)
    names = [f"t{i}" for i in range(shape["tokens"] - 1)] + ["<blk>"]
    (folder / "tokens.txt").write_text("".join(f"{token} {i}\n" for i, token in enumerate(names)))
    measure.run(program, "mkgraph", "ctc", "--topology=transducer", f"--tokens={folder / 'tokens.txt'}", "--blank=<blk>", "-q", "-o", folder / "tokens.wfst")
    find_blank(folder, shape, random_model(rng, shape), max_symbols, program)
    write_outputs(folder / "enc", rng, shape, count, seconds)
    done.write_text(wanted)


def decode(folder, arguments, frame_s):
    summary = folder / "summary.json"
    command = [pathlib.Path(arguments.programs) / "warpfst", "decode", folder / "tokens.wfst", folder / "enc", f"--transducer={folder / 'model.safetensors'}"]
    command += [f"--frame-shift={frame_s}", f"--num-threads={arguments.threads}", f"--batch={arguments.batch}", f"--device={arguments.device}", f"--summary={summary}"]
    command += ["--greedy"] if arguments.greedy else [f"--max-hypotheses={arguments.max_hypotheses}", f"--beam={arguments.beam}"]
    out = folder / f"out-{arguments.device.replace(':', '')}"
    measure.run(*command, "-o", out)
    found = json.loads(summary.read_text())
    found["words"] = count_words(out)
    return found


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
    parser.add_argument("--max-hypotheses", type=int, default=8)
    parser.add_argument("--beam", type=float, default=6)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.shape or SHAPES:
        folder = measure.BUILD / "transducer_task" / name
        make_task(folder, name, arguments.batch * arguments.batches, arguments.seconds, pathlib.Path(arguments.programs) / "warpfst")
        found = decode(folder, arguments, SHAPES[name]["frame_s"])
        where = found.get("transducer", {"rounds": 0, "rows": 0, "contexts": 0, "search_seconds": 0, "submit_seconds": 0, "wait_seconds": 0})
        frames = found["hours"] * 3600 / SHAPES[name]["frame_s"]
        rounds = max(where["rounds"], 1)
        times = [f"{where[key]:.3f}" for key in ("search_seconds", "submit_seconds", "wait_seconds")]
        rows.append([name, measure.figure(found["rtfx"]), f"{found['decode_seconds']:.3f}", *times, where["rounds"], f"{where['rows'] / rounds:.0f}", f"{where['contexts'] / rounds:.0f}",
                     f"{found['words'] / frames:.3f}", f"{found['tokens_per_frame']:.1f}"])
    print(f"{measure.machine()}; load {measure.load()}; device {arguments.device}, batches of {arguments.batch}, {arguments.threads or 'all'} threads")
    print(measure.table(["shape", "RTFx", "decoding s", "search s", "send s", "wait s", "rounds", "rows/round", "contexts/round", "emitted/frame", "tokens/frame"], rows))


if __name__ == "__main__":
    sys.exit(main())
