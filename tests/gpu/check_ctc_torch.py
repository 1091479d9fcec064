#!/usr/bin/env python3
"""check_ctc_torch [LIBRARY] [--device=cuda] [--count=16] [--frames=150] [--columns=40]

The CTC loss by composition (emissions o alignments, forward score, gradients taken back to the emissions) against torch's ctc_loss: values, and gradients by
the logits, within 1e-5. LIBRARY is libwarpfst.so.0.3; torch works on the same device, in double. Prints the largest differences and times; exit code 1 if they are too large.
"""
import argparse
import ctypes
import random
import sys
import time

import torch

LIMIT = 1e-5


class Arc(ctypes.Structure):
    _fields_ = [("nextstate", ctypes.c_uint32), ("weight", ctypes.c_float), ("ilabel", ctypes.c_int32), ("olabel", ctypes.c_int32)]


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1020)]


class Table(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("struct_size", ctypes.c_size_t), ("rows", ctypes.c_void_p), ("num_rows", ctypes.c_size_t)]


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.wf_option_table_find.restype = ctypes.POINTER(Table)
        self.c.wf_builder_add_arc.argtypes = [ctypes.c_void_p, ctypes.c_uint32, Arc, ctypes.c_void_p]
        self.c.wf_builder_set_final.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_float, ctypes.c_void_p]
        self.c.wf_builder_add_states.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
        self.c.wf_builder_set_start.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
        self.c.wf_free.argtypes = self.c.wf_fst_free.argtypes = self.c.wf_builder_free.argtypes = self.c.wf_fst_batch_free.argtypes = self.c.wf_composer_free.argtypes = [ctypes.c_void_p]

    def call(self, name, *arguments):
        error = Error()
        if getattr(self.c, name)(*arguments, ctypes.byref(error)) != 0:
            sys.exit(f"{name}: {error.message.decode()}")

    def options(self, table, **values):
        found = self.c.wf_option_table_find(table.encode())
        options = ctypes.create_string_buffer(found.contents.struct_size)
        self.c.wf_options_init(found, options)
        self.kept = [text.encode() for text in values.values()]  # string options are borrowed
        for name, text in zip(values, self.kept):
            self.call("wf_options_set", found, options, name.encode(), text)
        return options

    def fst(self, num_states, start, finals, arcs):
        """An fst of the log semiring; arcs (state, next, label, weight)."""
        builder, fst = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("wf_builder_create", 1, ctypes.byref(builder))
        self.call("wf_builder_add_states", builder, num_states, None)
        self.call("wf_builder_set_start", builder, start)
        for state in finals:
            self.call("wf_builder_set_final", builder, state, 0.0)
        error = Error()
        for state, following, label, weight in arcs:
            if self.c.wf_builder_add_arc(builder, state, Arc(following, weight, label, label), ctypes.byref(error)) != 0:
                sys.exit(error.message.decode())
        self.call("wf_builder_finish", builder, None, None, ctypes.byref(fst))
        self.c.wf_builder_free(builder)
        return fst


def emissions(library, costs):
    frames, columns = len(costs), len(costs[0])
    return library.fst(frames + 1, 0, [frames], ((t, t + 1, v + 1, costs[t][v]) for t in range(frames) for v in range(columns)))


def alignments(library, labels):
    """Blank is column 0. State s: symbol s of blank, label, blank, ... was last; the last state: nothing yet."""
    symbols = [0] + [symbol for label in labels for symbol in (label, 0)]
    n = len(symbols)
    arcs = [(n, s, symbols[s] + 1, 0.0) for s in range(min(2, n))]
    for s in range(n):
        skip = s + 2 < n and symbols[s + 2] not in (0, symbols[s])
        arcs += [(s, to, symbols[to] + 1, 0.0) for to in range(s, min(n, s + (3 if skip else 2)))]
    return library.fst(n + 1, n, range(max(0, n - 2), n), arcs)


def ours(library, log_probs, lengths, targets, device):
    """(losses, occupancy of each frame's columns), and the seconds of composing and scoring."""
    count = len(targets)
    costs = (-log_probs).tolist()
    a = (ctypes.c_void_p * count)(*(emissions(library, costs[i][: lengths[i]]) for i in range(count)))
    b = (ctypes.c_void_p * count)(*(alignments(library, target) for target in targets))
    options = library.options("compose", order="canonical", device=device)
    batch, composer, losses, occupancy, seconds = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_double * count)(), [], []
    for _ in range(3):  # the first makes the GPU ready
        library.c.wf_fst_batch_free(batch)
        begin = time.perf_counter()
        size = ctypes.c_size_t(count)
        library.call("wf_composer_create", a, size, b, size, size, options, ctypes.c_bool(True), ctypes.byref(composer))
        library.call("wf_composer_run", composer)
        library.call("wf_composer_to_batch", composer, ctypes.byref(batch))
        library.c.wf_composer_free(composer)
        library.call("wf_fst_batch_forward_score", batch, None, ctypes.c_bool(True), losses)
        seconds.append(time.perf_counter() - begin)
    for i in range(count):
        values, size = ctypes.POINTER(ctypes.c_double)(), ctypes.c_uint64()
        library.call("wf_fst_batch_gradients", batch, ctypes.c_size_t(i), 1, ctypes.byref(values), ctypes.byref(size))
        occupancy.append(torch.tensor(values[: size.value], dtype=torch.float64).reshape(lengths[i], -1))
        library.c.wf_free(values)
    library.c.wf_fst_batch_free(batch)
    for fst in [*a, *b]:
        library.c.wf_fst_free(fst)
    return list(losses), occupancy, min(seconds)


def theirs(logits, lengths, targets, device):
    logits = logits.to(device).requires_grad_()
    flat = torch.tensor([label for target in targets for label in target], dtype=torch.long, device=device)
    sizes = torch.tensor([len(target) for target in targets])
    losses = torch.nn.functional.ctc_loss(logits.log_softmax(2).transpose(0, 1), flat, torch.tensor(lengths), sizes, blank=0, reduction="none")
    losses.sum().backward()
    return losses.detach().cpu(), logits.grad.cpu()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?", default="build/release/libwarpfst.so.0.3")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--frames", type=int, default=150)
    parser.add_argument("--columns", type=int, default=40)
    arguments = parser.parse_args()
    library = Library(arguments.library)
    random.seed(1)
    torch.manual_seed(1)
    lengths = [random.randint(arguments.frames // 2, arguments.frames) for _ in range(arguments.count)]
    lengths[0] = arguments.frames
    # Few labels, so that neighbours are often equal.
    targets = [[random.randint(1, 4) for _ in range(random.randint(0, length // 3))] for length in lengths]
    logits = 3 * torch.randn(arguments.count, arguments.frames, arguments.columns, dtype=torch.float64)
    log_probs = logits.log_softmax(2)
    losses, occupancy, seconds = ours(library, log_probs, lengths, targets, arguments.device)
    wanted, gradients = theirs(logits, lengths, targets, arguments.device)
    worst_loss = max(abs(loss - want.item()) / max(1, want.item()) for loss, want in zip(losses, wanted))
    worst_gradient = 0.0
    for i, length in enumerate(lengths):
        mine = log_probs[i, :length].exp() * occupancy[i].sum(1, keepdim=True) - occupancy[i]
        worst_gradient = max(worst_gradient, (mine - gradients[i, :length]).abs().max().item())
    print(f"{arguments.count} utterances: losses differ by {worst_loss:.2e} at most (relative), gradients by {worst_gradient:.2e}; composed and scored in {seconds * 1e3:.2f} ms, uploads included")
    if not (worst_loss < LIMIT and worst_gradient < LIMIT):
        sys.exit(f"more than {LIMIT}")


if __name__ == "__main__":
    main()
