#!/usr/bin/env python3
"""peer_cuctc.py [--device=cuda|cpu] [--data=FOLDER] [--size=full|small|tiny] [--flashlight=WHEEL] [--programs=FOLDER]

Compares decoders on CTC without lexicon and language model, the only task that torchaudio's cuda_ctc_decoder supports, on the same scores:

  warpfst                        the `correct` topology as graph (only a state per token), beam 17, max_active 10000: the best path
  torchaudio cuda_ctc_decoder    prefix beam search, beam_size 10 hypotheses, sums over alignments; blank_skip_threshold 1 (no frame skipped) and 0.95 (its default)
  flashlight-text                LexiconFreeDecoder on all processors, beam_size 10, every token, log_add (also sums)

Without a language model the best path and the best sum differ little; token error rates show how little. For the first two, scores are in GPU memory (in host
memory on the CPU) and results on the host. Peers run in separate processes. If one crashes, the last lines of its output are reported. cuda_ctc_decoder
then runs again with cuctc_room.so, which gives its kernels the shared memory that they overrun. Prints a JSON object per measurement.
"""
import argparse
import itertools
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import decode_tasks
import measure

FRAME_SHIFT = 0.04
BATCHES = (1, 8, 64, 400)
BEAM_SIZE = 10
ROUNDS = 5
MOST = 400  # utterances


# --- tasks -------------------------------------------------------------------------------------------------------------------


def token_references(keys, text, lexicon, out):
    """Writes the references as tokens, with the first pronunciation of each word."""
    spelling = {}
    for line in open(lexicon, encoding="utf-8"):
        word, *tokens = line.split()
        spelling.setdefault(word, tokens)
    with open(out, "w", encoding="utf-8") as file:
        for line in open(text, encoding="utf-8"):
            key, *words = line.split()
            if key in keys:
                file.write(" ".join([key, *itertools.chain.from_iterable(spelling.get(word, ["<unk>"]) for word in words)]) + "\n")


def make_task(name, scores, tokens, text, lexicon, programs):
    folder = decode_tasks.work_folder("peer_" + name.replace(" ", "_").replace(",", ""))
    chosen = decode_tasks.work_folder(folder / "scores")
    for old in chosen.iterdir():
        old.unlink()
    for path in sorted(pathlib.Path(scores).glob("*.npy"))[:MOST]:
        (chosen / path.name).symlink_to(path.resolve())
    keys = {path.stem for path in chosen.glob("*.npy")}
    token_references(keys, text, lexicon, folder / "ref")
    programs.run(programs.warpfst, "topology", f"--tokens={tokens}", "--type=correct", "-o", folder / "T.wfst")
    return {"name": f"lexicon-free CTC, {name}", "folder": folder, "scores": chosen, "tokens": str(tokens), "count": len(keys)}


def tasks(arguments, programs):
    for unit in ("char", "bpe"):
        found = sorted(pathlib.Path(arguments.data).glob(f"logp_{unit}*")) if arguments.data else []
        if found:
            yield make_task(f"real {unit}", decode_tasks.unpacked(found[0]), decode_tasks.CTC / f"tokens_{unit}.txt", decode_tasks.CTC / "text", decode_tasks.CTC / f"lexicon_{unit}.txt", programs)
    generated = decode_tasks.generated(programs, arguments.size, None)["peaky"]
    folder = generated.scores.parent
    npy = folder / "peaky_npy"
    if not npy.is_dir() or npy.stat().st_mtime < generated.scores.stat().st_mtime:
        shutil.rmtree(npy, ignore_errors=True)
        programs.run(programs.warpfst, "matrix", "copy", generated.scores, "--format=npy", "-o", f"{npy}/")
    yield make_task("generated peaky", npy, folder / "tokens.txt", folder / "ref", folder / "lexicon.txt", programs)


# --- ours ---------------------------------------------------------------------------------------------------------------------


def ours(task, arguments, programs):
    common, most = "beam=17,max_active=10000,min_active=0", arguments.batches[-1]
    gpu = arguments.device.startswith("cuda")
    runs = [f"device={arguments.device},scores={'device' if gpu else 'host'},{common},batch={batch},utterances={min(task['count'], max(batch, 16))}" for batch in arguments.batches]
    runs += [f"device=cpu,{common},batch={most},utterances={min(task['count'], most)}"] if gpu else []
    command = [programs.decode, task["folder"] / "T.wfst", task["scores"], f"--ref={task['folder'] / 'ref'}", f"--frame-shift={FRAME_SHIFT}", "--check=8", *runs]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=False, env=programs.environment)
    setup = "warpfst, beam 17, max_active 10000, best path"
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if "error" in row:
            yield {"task": task["name"], "decoder": "warpfst", "error": row["error"]}
            continue
        yield {"task": task["name"], "decoder": "warpfst, GPU" if row["gpu"] else "warpfst, CPU", "setup": setup + (", GPU" if row["gpu"] else ", all processors"), "beam_size": "17 nats", "batch": row["batch"], "utterances": row["utterances"],
               "seconds": row["seconds"], "rtfx": row["rtfx"], "token_error_rate": row["wer"]}
    if done.returncode not in (0, 1):
        yield {"task": task["name"], "decoder": "warpfst", "error": f"exit code {done.returncode}"}


# --- peers, in separate processes -----------------------------------------------------------------------------------------


def load_scores(folder):
    import numpy

    keys, matrices = [], []
    for path in sorted(pathlib.Path(folder).glob("*.npy")):
        keys.append(path.stem)
        matrices.append(numpy.ascontiguousarray(numpy.load(path), dtype=numpy.float32))
    return keys, matrices


def token_names(path):
    pairs = [line.split() for line in open(path, encoding="utf-8")]
    return [name for name, _ in sorted(pairs, key=lambda pair: int(pair[1]))]


def measure_batches(keys, matrices, batches, prepare, decode, hypotheses, setup):
    """`prepare` prepares a batch and is not timed; `decode` returns lists of tokens and is timed. Prints a line per batch size; writes the hypotheses of the last."""
    for size in batches:
        count = min(len(keys), max(size, 16))
        prepared = [prepare(matrices[i : min(i + size, count)]) for i in range(0, count, size)]
        decode(prepared[0])
        times = []
        for _ in range(ROUNDS):
            begin = time.monotonic()
            out = [tokens for one in prepared for tokens in decode(one)]
            times.append(time.monotonic() - begin)
        path = f"{hypotheses}.{size}"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(" ".join([key, *tokens]) + "\n" for key, tokens in zip(keys, out))
        seconds = statistics.median(times)
        frames = sum(len(matrix) for matrix in matrices[:count])
        print(json.dumps({"setup": setup, "beam_size": BEAM_SIZE, "batch": size, "utterances": count, "seconds": seconds, "rtfx": frames * FRAME_SHIFT / seconds, "hypotheses": path}), flush=True)


def child_cuctc(arguments):
    import torch
    from torchaudio.models.decoder import cuda_ctc_decoder

    keys, matrices = load_scores(arguments.scores)
    device = torch.device(arguments.device if ":" in arguments.device else arguments.device + ":0")
    torch.cuda.set_device(device)
    decoder = cuda_ctc_decoder(token_names(arguments.tokens), nbest=1, beam_size=BEAM_SIZE, blank_skip_threshold=arguments.blank_skip)

    def prepare(batch):
        lengths = torch.tensor([len(matrix) for matrix in batch], dtype=torch.int32, device=device)
        padded = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(matrix) for matrix in batch], batch_first=True).to(device)
        torch.cuda.synchronize()
        return padded, lengths

    def decode(batch):
        return [hypotheses[0].words for hypotheses in decoder(*batch)]

    measure_batches(keys, matrices, arguments.batches, prepare, decode, arguments.hypotheses, f"cuda_ctc_decoder, beam_size {BEAM_SIZE}, blank_skip_threshold {arguments.blank_skip:g}")


flashlight = {}  # of a worker process


def flashlight_start(num_tokens):
    from flashlight.lib.text.decoder import CriterionType, LexiconFreeDecoder, LexiconFreeDecoderOptions, ZeroLM

    options = LexiconFreeDecoderOptions(beam_size=BEAM_SIZE, beam_size_token=num_tokens, beam_threshold=17, lm_weight=0, sil_score=0, log_add=True, criterion_type=CriterionType.CTC)
    flashlight["decoder"] = LexiconFreeDecoder(options, ZeroLM(), 0, 0, [])


def flashlight_one(matrix):
    path = flashlight["decoder"].decode(matrix.ctypes.data, matrix.shape[0], matrix.shape[1])[0].tokens
    return [token for token, _ in itertools.groupby(path) if token != 0]


def child_flashlight(arguments):
    import multiprocessing

    if arguments.flashlight:
        sys.path.insert(0, str(decode_tasks.unpack_wheel(arguments.flashlight)))
    keys, matrices = load_scores(arguments.scores)
    names = token_names(arguments.tokens)
    processors = len(os.sched_getaffinity(0))
    with multiprocessing.Pool(processors, flashlight_start, (len(names),)) as pool:

        def decode(batch):
            return [[names[token] for token in tokens] for tokens in pool.map(flashlight_one, batch, chunksize=max(1, math.ceil(len(batch) / processors / 4)))]

        measure_batches(keys, matrices, [arguments.batches[-1]], lambda batch: batch, decode, arguments.hypotheses, f"flashlight-text, beam_size {BEAM_SIZE}, {processors} processes")


def error_rate(task, path, programs):
    """Token error rate of the utterances that were decoded."""
    keys = {line.split()[0] for line in open(path, encoding="utf-8")}
    ref = pathlib.Path(path + ".ref")
    ref.write_text("".join(line for line in open(task["folder"] / "ref", encoding="utf-8") if line.split()[0] in keys), encoding="utf-8")
    out = subprocess.run([str(programs.warpfst), "score", str(ref), path, "--json"], stdout=subprocess.PIPE, text=True, check=False, env=programs.environment).stdout
    return json.loads(out)["wer"]


def peer(task, decoder, arguments, programs, preload=None, **settings):
    """Rows of one peer. If it failed, the last row has the error."""
    command = [sys.executable, __file__, f"--child={decoder}", f"--scores={task['scores']}", f"--tokens={task['tokens']}", f"--hypotheses={task['folder'] / decoder}", f"--device={arguments.device}"]
    command += [f"--work={measure.BUILD}"]
    command += [f"--batches={','.join(map(str, arguments.batches))}"] + [f"--{name.replace('_', '-')}={value}" for name, value in settings.items() if value is not None]
    environment = {**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})}
    about = {"task": task["name"], "decoder": {"cuctc": "torchaudio cuda_ctc_decoder", "flashlight": "flashlight-text"}[decoder] + (", with cuctc_room.so" if preload else "")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=100)
        out, last_words, code = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as stopped:
        out, last_words, code = (stopped.stdout or b"").decode(), "not finished after 100 s", -1
    rows = []
    for line in out.splitlines():
        row = json.loads(line)
        rows.append({**about, **row, "setup": row["setup"] + (", with cuctc_room.so" if preload else ""), "token_error_rate": error_rate(task, row.pop("hypotheses"), programs)})
    if code != 0:
        words = [line.strip() for line in last_words.splitlines() if line.strip()]
        telling = [line for line in words if "rror" in line] or words[-1:]
        rows.append({**about, "error": f"exit code {code}: {telling[-1][:300] if telling else 'no message'}"})
    return rows


def cuctc_room():
    library = measure.BUILD / "cuctc_room.so"
    measure.run("cc", "-O2", "-shared", "-fPIC", "-o", library, measure.ROOT / "bench" / "cuctc_room.c", "-ldl")
    return library


def cuctc_rows(task, arguments, programs):
    for blank_skip in (1, 0.95):
        rows = peer(task, "cuctc", arguments, programs, blank_skip=blank_skip)
        yield from rows
        if "error" not in rows[-1]:
            continue
        yield from peer(task, "cuctc", arguments, programs, preload=cuctc_room(), blank_skip=blank_skip)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data")
    parser.add_argument("--size", choices=decode_tasks.SIZES, default="small")
    parser.add_argument("--flashlight")
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release")
    parser.add_argument("--work", default=measure.BUILD)
    parser.add_argument("--batches", default=BATCHES, type=lambda text: tuple(map(int, text.split(","))))
    for name in ("child", "scores", "tokens", "hypotheses"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    parser.add_argument("--blank-skip", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    measure.BUILD = pathlib.Path(arguments.work)
    if arguments.child:
        {"cuctc": child_cuctc, "flashlight": child_flashlight}[arguments.child](arguments)
        return
    programs = decode_tasks.Programs(arguments.programs)
    for task in tasks(arguments, programs):
        print(task["name"], file=sys.stderr)
        gpu_rows = cuctc_rows(task, arguments, programs) if arguments.device.startswith("cuda") else []
        for row in itertools.chain(ours(task, arguments, programs), gpu_rows, peer(task, "flashlight", arguments, programs, flashlight=arguments.flashlight)):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
