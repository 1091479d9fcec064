"""nemo_transducer.py JOB.json - decodes with NeMo's batched transducer decoders, for transducer_peers.py: label looping (greedy) and modified ALSD (beam). Prints figures as JSON, and on standard
error what it does, with seconds since its start; the last line says why it failed.

The decoders are NeMo's, from its wheel (nemo_modules.py); on a GPU with the job's mode of CUDA graphs. Predictor and joiner are modules written here with the methods that these decoders call; torch computes
them (torch.nn.LSTM, products). They read a file as docs/reference/transducers.md describes it. NeMo has the blank last, so columns are permuted where the file has not.
"""
import json
import os
import pathlib
import struct
import sys
import time
import traceback

BEGAN = time.monotonic()

import nemo_modules
import numpy as np
import torch


def progress(text):
    print(f"{time.monotonic() - BEGAN:.1f} s  {text}", file=sys.stderr, flush=True)


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    types = {"F32": np.float32, "F16": np.float16}
    metadata = header.pop("__metadata__", {})
    return {name: np.frombuffer(data[slice(*at["data_offsets"])], types[at["dtype"]]).reshape(at["shape"]).astype(np.float32) for name, at in header.items()}, metadata


class Lstm(torch.nn.Module):
    """Predictor with an LSTM; states are (h, c), each [layers, rows, size]."""

    def __init__(self, tensors):
        super().__init__()
        self.embedding = torch.nn.Parameter(tensors["pred.emb.weight"])
        layers = [name for name in tensors if name.startswith("pred.lstm.weight_ih")]
        self.lstm = torch.nn.LSTM(self.embedding.shape[1], tensors[layers[0]].shape[0] // 4, len(layers))
        for layer in range(len(layers)):
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                name = f"pred.lstm.{kind}_l{layer}"
                getattr(self.lstm, f"{kind}_l{layer}").data = tensors[name if name in tensors else f"pred.lstm.{kind}"]

    def initialize_state(self, y):
        zeros = torch.zeros(self.lstm.num_layers, y.shape[0], self.lstm.hidden_size, dtype=self.embedding.dtype, device=self.embedding.device)
        return zeros, zeros.clone()

    def predict(self, y, state=None, add_sos=False, batch_size=None):
        outputs, state = self.lstm(self.embedding[y.view(1, -1)], state if state is not None else self.initialize_state(y))
        return outputs.transpose(0, 1), state

    @staticmethod
    def axis(tensor, rows):
        """The shape that rows, one value each, need for a state."""
        return rows.view(1, -1, 1)

    def batch_replace_states_mask(self, src_states, dst_states, mask, other_src_states=None):
        other = other_src_states if other_src_states is not None else dst_states
        for source, rest, out in zip(src_states, other, dst_states):
            torch.where(self.axis(out, mask), source, rest, out=out)

    def batch_replace_states_all(self, src_states, dst_states, batch_size=None):
        for source, out in zip(src_states, dst_states):
            out.copy_(source)

    def clone_state(self, state):
        return tuple(part.clone() for part in state)

    def batch_aggregate_states_beam(self, src_states, batch_size, beam_size, indices, dst_states=None):
        found = []
        for i, source in enumerate(src_states):
            shape = (source.shape[0], batch_size, beam_size, source.shape[-1])
            index = indices[None, :, :, None].expand(shape)
            if dst_states is not None:
                torch.gather(source.view(shape), 2, index, out=dst_states[i].view(shape))
            found.append(dst_states[i] if dst_states is not None else torch.gather(source.view(shape), 2, index).view(source.shape))
        return tuple(found)


class Stateless(Lstm):
    """Predictor over the last tokens. Its state has the form of an LSTM's, (h, c): in NeMo 3.0.0, modified ALSD with CUDA graphs takes no other, so its own stateless predictor fails there.
    h is the tokens, [1, rows, context], the newest last, as floats, which count exactly; c is not used, [1, rows, 1]."""

    def __init__(self, tensors, blank):
        torch.nn.Module.__init__(self)
        self.embedding = torch.nn.Parameter(tensors["pred.emb.weight"])
        self.weight = torch.nn.Parameter(tensors["pred.conv.weight"])
        self.bias = torch.nn.Parameter(tensors.get("pred.conv.bias", torch.zeros(len(self.weight))))
        self.context, self.blank = self.weight.shape[1] // self.embedding.shape[1], blank

    def initialize_state(self, y):
        device = self.embedding.device
        return torch.full((1, y.shape[0], self.context), float(self.blank), device=device), torch.zeros(1, y.shape[0], 1, device=device)

    def predict(self, y, state=None, add_sos=False, batch_size=None):
        last, unused = state if state is not None else self.initialize_state(y)
        last = torch.cat([last[..., 1:], y.view(1, -1, 1).to(last.dtype)], dim=-1)
        embedded = self.embedding[last[0].long()].flatten(1)
        return torch.relu(torch.nn.functional.linear(embedded, self.weight, self.bias))[:, None], (last, unused)


class Joiner(torch.nn.Module):
    def __init__(self, tensors, num_durations, relu):
        super().__init__()
        self.encoder, self.predictor, self.output = (self.layer(tensors, f"joiner.{name}") for name in ("enc", "pred", "out"))
        self.num_classes_with_blank, self.num_extra_outputs = len(tensors["joiner.out.weight"]), num_durations
        self.activation = torch.relu if relu else torch.tanh

    @staticmethod
    def layer(tensors, name):
        weight = tensors[f"{name}.weight"]
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=f"{name}.bias" in tensors)
        layer.weight.data = weight
        if f"{name}.bias" in tensors:
            layer.bias.data = tensors[f"{name}.bias"]
        return layer

    def project_encoder(self, outputs):
        return self.encoder(outputs)

    def project_prednet(self, outputs):
        return self.predictor(outputs)

    def joint_after_projection(self, encoder, predictor):
        return self.output(self.activation(encoder.unsqueeze(2) + predictor.unsqueeze(1)))


class Model:
    def __init__(self, path, device, dtype):
        arrays, metadata = read_safetensors(path)
        embeddings, outputs = len(arrays["pred.emb.weight"]), len(arrays["joiner.out.weight"])
        blank = int(metadata.get("blank", 0))
        self.num_tokens, self.num_durations = embeddings, outputs - embeddings
        self.order = [i for i in range(embeddings) if i != blank] + [blank]  # the file's number of each column
        for name in ("joiner.out.weight", "joiner.out.bias"):
            if name in arrays:
                arrays[name] = arrays[name][self.order + list(range(embeddings, outputs))]
        arrays["pred.emb.weight"] = arrays["pred.emb.weight"][self.order]
        tensors = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()}
        self.predictor = Stateless(tensors, embeddings - 1) if "pred.conv.weight" in tensors else Lstm(tensors)
        self.joiner = Joiner(tensors, self.num_durations, metadata.get("activation") == "relu")
        for module in (self.predictor, self.joiner):
            module.to(device=device, dtype=dtype).eval()


def make_decoder(job, model):
    load = nemo_modules.load
    common = {"decoder": model.predictor, "joint": model.joiner, "blank_index": model.num_tokens - 1, "max_symbols_per_step": job["max_symbols"]}
    if model.num_durations > 0:
        common["durations"] = list(range(model.num_durations))
    if job["beam"] == 1:
        module = load(job["nemo"], f"{nemo_modules.LOOPING}.{'tdt' if model.num_durations else 'rnnt'}_label_looping")
        return (module.GreedyBatchedTDTLabelLoopingComputer if model.num_durations else module.GreedyBatchedRNNTLabelLoopingComputer)(**common)
    module = load(job["nemo"], nemo_modules.TDT_BEAM if model.num_durations else nemo_modules.RNNT_BEAM)
    return (module.ModifiedALSDBatchedTDTComputer if model.num_durations else module.ModifiedALSDBatchedRNNTComputer)(beam_size=job["beam"], **common)


def best_tokens(hypotheses, beam, blank, count):
    """Tokens of the best hypothesis of each utterance, on the host."""
    if beam == 1:
        lengths, tokens = hypotheses.get_data_without_blank()[:2]
        lengths, tokens = lengths.tolist(), tokens.cpu().numpy()
        return [tokens[i, : lengths[i]] for i in range(count)]
    hypotheses.flatten_sort_(score_norm=False)
    tokens = hypotheses.transcript_wb[:, 0].cpu().numpy()
    return [row[(row >= 0) & (row != blank)] for row in tokens[:count]]


def batches(job):
    """(keys, outputs [utterances, frames, size], lengths) in host memory."""
    paths = sorted(pathlib.Path(job["scores"]).glob("*.npy"))
    for at in range(0, len(paths), job["batch"]):
        arrays = [np.load(path).astype(np.float32) for path in paths[at : at + job["batch"]]]
        outputs = np.zeros((len(arrays), max(map(len, arrays)), arrays[0].shape[1]), np.float32)
        for row, array in zip(outputs, arrays):
            row[: len(array)] = array
        yield [path.stem for path in paths[at : at + job["batch"]]], torch.from_numpy(outputs), torch.tensor([len(array) for array in arrays])


def decode(job, model, decoder, inputs, synchronize):
    """{utterance: tokens}, and the seconds of each round: as many rounds as the limit leaves time for, at least one."""
    found, rounds = {}, []
    while len(rounds) < job["rounds"] and (not rounds or time.monotonic() - BEGAN + 1.5 * max(rounds) < job["limit"]):
        synchronize()
        began = time.perf_counter()
        for i, (keys, outputs, lengths) in enumerate(inputs):
            hypotheses, *_ = decoder(outputs, lengths)
            steps = "" if job["beam"] == 1 else f", {int(hypotheses.current_lengths_wb.max())} steps"
            searched = time.perf_counter()
            for key, tokens in zip(keys, best_tokens(hypotheses, job["beam"], model.num_tokens - 1, len(keys))):
                found[key] = [model.order[token] for token in tokens]
            ended = time.perf_counter()
            progress(f"round {len(rounds) + 1}, batch {i + 1}: {len(keys)} utterances, {outputs.shape[1]} frames{steps}; {ended - began:.3f} s of the round, {ended - searched:.3f} s to read tokens")
        synchronize()
        rounds.append(time.perf_counter() - began)
    return found, rounds


def main():
    job = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    device, dtype = torch.device(job["device"]), getattr(torch, job["dtype"])
    synchronize = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    torch.set_num_threads(job["threads"] or len(os.sched_getaffinity(0)))  # torch's default counts processors that a container may not use
    progress(f"torch {torch.__version__} loaded")
    model = Model(job["model"], device, dtype)
    progress("model loaded")
    decoder = make_decoder(job, model)
    progress("NeMo's decoder loaded")
    inputs = list(batches(job))
    if device.type == "cuda":
        decoder.force_cuda_graphs_mode(job["mode"])
    with torch.inference_mode():
        inputs = [(keys, outputs.to(device=device, dtype=dtype), lengths.to(device)) for keys, outputs, lengths in inputs]
        synchronize()
        progress(f"{len(inputs)} batches loaded")
        if device.type == "cuda":
            _, outputs, lengths = max(inputs, key=lambda batch: batch[1].shape[1])
            decoder(outputs, torch.ones_like(lengths))  # one frame of each utterance; makes the CUDA graphs for all
            synchronize()
            progress(f"first call with mode {job['mode']} done")
        found, rounds = decode(job, model, decoder, inputs, synchronize)
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    json.dump({"seconds": rounds, "tokens": found, "peak_bytes": peak}, sys.stdout)


def report(kind, error, trace):
    """Shows an error; its last line is for the row of transducer_peers.py's table."""
    traceback.print_exception(kind, error, trace)
    progress(f"{kind.__name__}: {' '.join(str(error).split())[:200]}")


if __name__ == "__main__":
    sys.excepthook = report
    main()
