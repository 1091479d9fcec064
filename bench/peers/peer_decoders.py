"""peer_decoders.py JOB.json - runs one decoder on a task, for peers.py. Prints a JSON object per setting.

The job: {decoder, device, threads, task, settings, hypotheses}; `task` has the files that peers.py made. A decoder is a function (job, setting) -> (prepare, decode): `prepare` takes
matrices of scores and is not timed; `decode` takes what it returns, and returns a list of words (or tokens) for each matrix. On the CPU one thread's time is processor time, and that of
several threads is wall time; a peer without threads runs in processes. On a GPU, scores are in its memory and results on the host.
"""
import gc
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import sys
import time

import numpy

WORD_START = "\u2581"
GPU_ROUNDS, GPU_SECONDS = 3, 0.5


# --- what several decoders need ---


def tokens_of(task):
    pairs = [line.split() for line in pathlib.Path(task["tokens"]).read_text(encoding="utf-8").splitlines()]
    return [name for name, _ in sorted(pairs, key=lambda pair: int(pair[1]))]


def words_of(task):
    """Names of the output labels of the graph."""
    return {int(label): word for word, label in map(str.split, pathlib.Path(task["words"]).read_text(encoding="utf-8").splitlines())}


def pronunciations(path):
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        word, *spelled = line.split()
        yield word, spelled


def scaled(task):
    """For decoders that take no acoustic scale."""
    return lambda matrices: [numpy.ascontiguousarray(task["acoustic_scale"] * matrix) for matrix in matrices]


current = {}  # of a worker process: the function that decodes one matrix


def call_current(matrix):
    return current["one"](matrix)


def one_by_one(job, one, prepare=list):
    """A decoder from a function of one matrix. Several threads are processes that share what is loaded."""
    if job["threads"] == 1:
        return prepare, lambda matrices: [one(matrix) for matrix in matrices]
    current["one"] = one
    pool = multiprocessing.get_context("fork").Pool(job["threads"])
    return prepare, lambda matrices: pool.map(call_current, matrices, chunksize=max(1, math.ceil(len(matrices) / job["threads"] / 8)))


def padded(matrices, device, scale=1.0, blank_last=False, lengths_there=False):
    """A padded tensor on a device, and the lengths."""
    import torch

    tensors = [torch.from_numpy(numpy.roll(scale * matrix, -1, axis=1) if blank_last else scale * matrix) for matrix in matrices]
    scores = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True).contiguous().to(device)
    lengths = torch.tensor([len(matrix) for matrix in matrices], dtype=torch.int64)
    if device != "cpu":
        torch.cuda.synchronize()
    return scores, lengths.to(device) if lengths_there else lengths


# --- decoders ---


def warpfst(job, setting):
    import warpfst as wf

    task, gpu = job["task"], job["device"] != "cpu"
    lattice = {"lattice_beam": setting["lattice_beam"], "determinize": bool(setting.get("words"))} if "lattice_beam" in setting else {}
    graph, table = wf.Graph.load(task["open_graph" if setting.get("unknown_words") else "graph"]), {"words": wf.Symbols.read(task["words"])}
    if setting.get("unknown_words"):
        known, others = {word for word, _ in pronunciations(task["lexicon"])}, {}
        for word, spelled in pronunciations(task["whole_lexicon"]):
            if word not in known:
                others.setdefault(word, []).append(spelled)
        graph, table = graph.add_words(list(others), pronunciations=others), {}
    weights = {"acoustic_scale": 1 / setting["alpha"], "word_score": setting["beta"] / setting["alpha"]} if "alpha" in setting else {"acoustic_scale": task["acoustic_scale"]}
    search = {name: setting[name] for name in ("beam", "max_active", "max_hypotheses", "max_symbols") if name in setting} | ({"greedy": True} if "greedy" in setting else {})
    model = {"transducer": task["transducer"]} if "transducer" in task else {}
    decoder = wf.Decoder(graph, **table, **weights, **search, **model, num_threads=0 if gpu else job["threads"], device=job["device"], check_scores="off", **lattice)
    if setting.get("nats_a_letter"):
        decoder.set_boost({" ".join(tokens): wf.boost_by_length(word, setting["nats_a_letter"]) for word, tokens in task["boosted"].items()})

    def decode(batch):
        results = decoder.decode(*batch)
        return [[word.text for word in result.words] for result in results] if setting.get("words") else [result.text.split() for result in results]

    return (lambda matrices: padded(matrices, job["device"])) if gpu else (lambda matrices: (matrices,)), decode


def kaldi(job, setting):
    import kaldi_decoder
    import kaldifst

    names, fst = words_of(job["task"]), kaldifst.StdConstFst.read(job["task"]["openfst"])
    if "lattice_beam" in setting:
        decoder = kaldi_decoder.LatticeSimpleDecoder(fst, kaldi_decoder.LatticeSimpleDecoderConfig(beam=setting["beam"], lattice_beam=setting["lattice_beam"]))
    else:
        decoder = kaldi_decoder.FasterDecoder(fst, kaldi_decoder.FasterDecoderOptions(beam=setting["beam"], max_active=setting["max_active"]))

    def one(matrix, _fst=fst):  # the decoder does not keep the graph alive
        decoder.decode(kaldi_decoder.DecodableCtc(matrix))
        found, path = decoder.get_best_path()
        if not found:
            return []
        _, _, words, _ = kaldifst.get_linear_symbol_sequence(path)
        return [names[word] for word in words]

    return one_by_one(job, one, scaled(job["task"]))


def flashlight(job, setting):
    from flashlight.lib.text import decoder as fl
    from flashlight.lib.text.decoder.kenlm import KenLM
    from flashlight.lib.text.dictionary import Dictionary

    task, tokens = job["task"], tokens_of(job["task"])
    number, words = {token: i for i, token in enumerate(tokens)}, Dictionary()
    spellings = list(pronunciations(task["whole_lexicon" if setting.get("unknown_words") else "lexicon"]))
    for word in dict.fromkeys(word for word, _ in spellings):
        words.add_entry(word)
    words.add_entry("<unk>")
    lm, blank = KenLM(task["arpa"], words), 0
    trie, start = fl.Trie(len(tokens), blank), lm.start(False)
    for word, spelled in spellings:
        label = words.get_index(word)
        trie.insert([number[token] for token in spelled], label, lm.score(start, label)[1])
    trie.smear(fl.SmearingMode.MAX)
    # Its model's scores are log10. No token is a silence, so the blank stands for it.
    options = fl.LexiconDecoderOptions(beam_size=setting["beam_size"], beam_size_token=len(tokens), beam_threshold=setting["beam_threshold"], lm_weight=math.log(10) / task["acoustic_scale"],
                                       word_score=0, unk_score=-math.inf, sil_score=0, log_add=False, criterion_type=fl.CriterionType.CTC)
    decoder = fl.LexiconDecoder(options, trie, lm, blank, blank, words.get_index("<unk>"), [], False)

    def one(matrix):
        best = decoder.decode(matrix.ctypes.data, *matrix.shape)
        return [words.get_entry(word) for word in best[0].words if word >= 0] if best else []

    return one_by_one(job, one)


def flashlight_tokens(job, setting):
    from flashlight.lib.text import decoder as fl

    tokens = tokens_of(job["task"])
    options = fl.LexiconFreeDecoderOptions(beam_size=setting["beam_size"], beam_size_token=len(tokens), beam_threshold=17, lm_weight=0, sil_score=0, log_add=True, criterion_type=fl.CriterionType.CTC)
    decoder = fl.LexiconFreeDecoder(options, fl.ZeroLM(), 0, 0, [])

    def one(matrix):
        best = decoder.decode(matrix.ctypes.data, *matrix.shape)[0].tokens
        return [tokens[token] for token, _ in itertools.groupby(best) if token != 0]

    return one_by_one(job, one)


def pyctcdecode(job, setting):
    import pyctcdecode as peer

    return pyctcdecode_by(peer.build_ctcdecoder, job, setting)


def pyctcdecode_by(build, job, setting):
    task, tokens = job["task"], tokens_of(job["task"])
    space = " " if task["unit"] == "char" else WORD_START
    labels = ["", *(space if token == WORD_START else token for token in tokens[1:])]
    words = sorted({word for word, _ in pronunciations(task["lexicon"])})
    decoder = build(labels, task["arpa"], words, alpha=setting.get("alpha", 1 / task["acoustic_scale"]), beta=setting.get("beta", 0.0))
    return one_by_one(job, lambda matrix: decoder.decode(matrix, beam_width=setting["beam_width"]).split())


def ctc_beam_decoder(job, setting):
    """pyctcdecode's search in C++, with its arguments."""
    import ctc_beam_decoder as peer

    return pyctcdecode_by(peer.build_ctcdecoder, job, setting)


def fast_ctc(job, setting):
    """Its alphabet has letters, so each token gets one. It takes probabilities, which are not timed."""
    import fast_ctc_decode

    names = tokens_of(job["task"])
    letters = [chr(0x4E00 + column) for column in range(len(names))]
    name_of = dict(zip(letters, names))

    def one(matrix):
        best, _ = fast_ctc_decode.beam_search(matrix, letters, beam_size=setting["beam_size"], beam_cut_threshold=setting["cut"])
        return [name_of[letter] for letter in best]

    return one_by_one(job, one, lambda matrices: [numpy.exp(matrix) for matrix in matrices])


def sherpa(job, setting):
    import sherpa_models
    import sherpa_onnx

    task, names, folder = job["task"], tokens_of(job["task"]), pathlib.Path(job["task"]["graph"]).parent
    method = {"decoding_method": "greedy_search"} if "greedy" in setting else {"decoding_method": "modified_beam_search", "max_active_paths": setting["max_active_paths"]}
    if setting.get("hotwords_score"):
        # It spells the words with the tokens whose scores are the highest: pairs in the order in which they were made, then letters.
        scores = {name: -column - 1000 * (len(name) == 1) for column, name in enumerate(names) if column}
        (folder / "bpe.vocab").write_text("".join(f"{name}\t{score}\n" for name, score in scores.items()), encoding="utf-8")
        (folder / "hotwords").write_text("".join(f"{word}\n" for word in task["boosted"]), encoding="utf-8")
        method |= {"hotwords_file": str(folder / "hotwords"), "hotwords_score": setting["hotwords_score"], "modeling_unit": "bpe", "bpe_vocab": str(folder / "bpe.vocab")}

    def prepare(matrices):
        sherpa_models.write(task["predictor"], task["joiner"], len(names), task["context_size"], matrices, folder)
        files = [str(folder / f"{name}.onnx") for name in ("encoder", "decoder", "joiner")]
        recognizer = sherpa_onnx.OfflineRecognizer.from_transducer(*files, task["tokens"], num_threads=job["threads"], **method)
        streams = [recognizer.create_stream() for _ in matrices]
        for number, stream in enumerate(streams):
            stream.accept_waveform(16000, sherpa_models.silence(number))
        return recognizer, streams

    def decode(batch):
        recognizer, streams = batch
        for first in range(0, len(streams), setting["streams"]):
            recognizer.decode_streams(streams[first : first + setting["streams"]])
        return [[token.replace(" ", WORD_START) for token in stream.result.tokens] for stream in streams]

    return prepare, decode


def riva(job, setting):
    from riva.asrlib.decoder.python_decoder import BatchedMappedDecoderCuda, BatchedMappedDecoderCudaConfig

    task, config = job["task"], BatchedMappedDecoderCudaConfig()
    names, lanes = words_of(task), min(setting["lanes"], setting["batch"])
    config.n_input_per_chunk = 50
    online = config.online_opts
    online.decoder_opts.default_beam, online.decoder_opts.lattice_beam, online.decoder_opts.max_active = setting["beam"], setting["lattice_beam"], setting["max_active"]
    online.decoder_opts.ntokens_pre_allocated = 10_000_000
    online.determinize_lattice = True
    online.max_batch_size, online.num_channels, online.frame_shift_seconds = lanes, 2 * lanes, task["frame_shift"]
    online.lattice_postprocessor_opts.acoustic_scale = online.lattice_postprocessor_opts.lm_scale = 1.0
    online.lattice_postprocessor_opts.nbest = 1
    online.num_decoder_copy_threads = setting["copy_threads"]
    online.num_post_processing_worker_threads = max(1, len(os.sched_getaffinity(0)) - setting["copy_threads"])
    decoder = BatchedMappedDecoderCuda(config, task["openfst"], task["words"], task["columns"])

    def decode(batch):
        if setting.get("words"):
            return [[word[0] for word in result] for result in decoder.decode_mbr(*batch)]
        return [[names[word] for word in result[0].words] if result else [] for result in decoder.decode_nbest(*batch)]

    return lambda matrices: padded(matrices, job["device"], task["acoustic_scale"]), decode


def nemo(job, setting):
    import nemo_modules
    import torch

    task, folder = job["task"], job["packages"][0]
    names = tokens_of(task)[1:]
    models, alpha = [], setting.get("alpha") or setting.get("boosting_tree_alpha")
    if "alpha" in setting:
        model = nemo_modules.load(folder, nemo_modules.LM).NGramGPULanguageModel
        models = [model.from_file(task["arpa"], vocab_size=len(names)).to(job["device"])]
    elif alpha:
        tree = nemo_modules.load(folder, nemo_modules.TREE).ContextGraph(context_score=1.0, depth_scaling=2.0)
        tree.build(token_ids=[[names.index(token) for token in tokens] for tokens in task["boosted"].values()], phrases=list(task["boosted"]), uniform_weights=False)
        models = [nemo_modules.load(folder, nemo_modules.GPU_TREE).GPUBoostingTreeModel.from_context_graph(tree, vocab_size=len(names)).to(job["device"])]
    computer = nemo_modules.load(folder, nemo_modules.BEAM).BatchedBeamCTCComputer
    decoder = computer(blank_index=len(names), beam_size=setting["beam_size"], beam_beta=0.0, beam_threshold=20.0, allow_cuda_graphs=True, fusion_models=models or None,
                       fusion_models_alpha=[alpha] if models else None)

    def decode(batch):
        with torch.inference_mode():
            return [[names[token] for token in result.y_sequence.tolist()] for result in decoder(*batch).to_hyps_list(score_norm=False)[: len(batch[0])]]  # a graph is kept for the largest batch so far

    return lambda matrices: padded(matrices, job["device"], blank_last=True, lengths_there=True), decode


def cuctc(job, setting):
    import torch
    from torchaudio.models.decoder import cuda_ctc_decoder

    torch.cuda.set_device(torch.device(job["device"]))
    decoder = cuda_ctc_decoder(tokens_of(job["task"]), nbest=1, beam_size=setting["beam_size"], blank_skip_threshold=setting["blank_skip"])

    def prepare(matrices):
        scores, lengths = padded(matrices, job["device"], lengths_there=True)
        return scores, lengths.to(torch.int32)

    return prepare, lambda batch: [hypotheses[0].words for hypotheses in decoder(*batch)]


DECODERS = {
    "warpfst": warpfst, "kaldi-decoder": kaldi, "flashlight-text": flashlight, "pyctcdecode": pyctcdecode, "riva-asrlib-decoder": riva,
    "NeMo": nemo, "cuda_ctc_decoder": cuctc, "flashlight-text (no lexicon)": flashlight_tokens, "ctc-beam-decoder": ctc_beam_decoder,
    "fast-ctc-decode": fast_ctc, "sherpa-onnx": sherpa,
}


# --- measuring ---


def status_mib(field):
    """VmHWM, the peak of resident memory since the program began, or VmRSS. (getrusage's peak has the parent's memory in it.)"""
    for line in open("/proc/self/status", encoding="ascii"):
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return 0.0


def held_mib(gpu):
    """What this process holds of memory; on a GPU, what all processes hold of its memory."""
    if not gpu:
        return status_mib("VmHWM")
    import torch

    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**20


def release():
    """Frees what the decoder of the setting before held on the GPU."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()


def load_scores(folder, limit):
    paths = sorted(pathlib.Path(folder).glob("*.npy"))[:limit]
    return [path.stem for path in paths], [numpy.ascontiguousarray(numpy.load(path), dtype=numpy.float32) for path in paths]


def in_batches(prepare, matrices, chosen, size, kept):
    """The prepared batches. Those of the setting before, if they have the same size."""
    if kept.get("size") != size:
        kept.clear()
        kept.update(size=size, batches=[prepare([matrices[i] for i in chosen[first:first + size]]) for first in range(0, len(chosen), size)])
    return kept["batches"]


def measure(job, setting, keys, matrices, kept):
    gpu = job["device"] != "cpu"
    if gpu:
        release()
    before = held_mib(gpu) if gpu else status_mib("VmRSS")
    prepare, decode = DECODERS[job["decoder"]](job, setting)
    size = setting.get("batch", len(matrices))
    chosen = [i % len(matrices) for i in range(max(size, 16) if gpu else len(matrices))]
    made = held_mib(gpu)
    batches = in_batches(prepare, matrices, chosen, size, kept)
    scores_mib = held_mib(gpu) - made if gpu else 0
    decode(batches[0] if gpu else prepare(matrices[:job["threads"]]))
    clock, times, begin = time.process_time if job["threads"] == 1 and not gpu else time.monotonic, [], time.monotonic()
    while not times or gpu and (len(times) < GPU_ROUNDS or time.monotonic() - begin < GPU_SECONDS):
        start = clock()
        results = [words for batch in batches for words in decode(batch)]
        times.append(clock() - start)
    return {"seconds": statistics.median(times), "audio": sum(len(matrices[i]) for i in chosen) * job["task"]["frame_shift"], "utterances": min(len(chosen), len(keys)),
            "mib": held_mib(gpu) - before - scores_mib, "hypotheses": {keys[i]: words for i, words in zip(chosen, results)}}


def main():
    job = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    if job["threads"] == 1 and job["device"] == "cpu":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    keys, matrices = load_scores(job["task"]["scores"], job["task"]["limit"])
    if job["device"] != "cpu":
        import torch

        torch.zeros(1, device=job["device"])  # so that the driver's own memory is not counted
    kept = {}
    for setting in job["settings"]:
        print(json.dumps(measure(job, setting, keys, matrices, kept)), flush=True)


if __name__ == "__main__":
    main()
