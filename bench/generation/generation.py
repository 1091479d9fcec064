"""generation [--vocabularies=32000,128000,256000] [--batches=1,8,64] [--rounds=5] [--peers] [--record]

The time of a step of a generator on one core: rows of logits for a batch, in microseconds of processor time for each hypothesis; `advance` included. Tokens are random texts of letters, as many as V.

  copy      a copy of the row, to compare with
  100, 10k  phrases of three tokens: where no phrase has begun, and (within) after a first token
  3-gram    a model of the tokens, estimated on random texts
  both      1,000 phrases and the model
  grammar   1,000 sentences of four words, in the middle of one
  words     a 2-gram model of words
  xgrammar, llguidance (--peers): the mask of the same sentences as a regular expression, at the same place, and applied to the row
"""
import argparse
import pathlib
import random
import statistics
import sys
import tempfile
import time

import numpy as np

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure

import warpfst as wf
from warpfst.generation import Biasing, Vocabulary

END, SPACES = 0, [1, 1]


def vocabulary_of(size, rng):
    """Tokens of letters, half of which begin words. Each text is cut into the longest tokens."""
    texts = {b"": END}
    for letter in b" (\nabcdefghijklmnopqrstuvwxyz":
        texts[bytes([letter])] = len(texts)
    while len(texts) < size:
        text = bytes(rng.choice(b"aaabcdeeefghiiklmnooprstuvz") for _ in range(rng.randint(2, 6)))
        texts.setdefault(b" " + text if rng.random() < 0.5 else text, len(texts))

    def encode(text):
        rest, found = text.encode(), []
        while rest:
            piece = next(rest[:size] for size in range(8, 0, -1) if rest[:size] in texts)
            found.append(texts[piece])
            rest = rest[len(piece) :]
        return found

    names = ["</s>", *(text.decode().replace(" ", "\u2581").replace("\n", "<0x0A>") for text in list(texts)[1:])]
    return Vocabulary(names, list(texts), frozenset(), frozenset([END]), encode)


def phrases_of(vocabulary, count, rng):
    starts = [token for token, text in enumerate(vocabulary.texts) if text.startswith(b" ") and len(text) > 2]
    rest = [token for token, text in enumerate(vocabulary.texts) if text and not text.startswith(b" ")]
    return {vocabulary.text_of([rng.choice(starts), rng.choice(rest), rng.choice(rest)]).strip(): 3.0 for _ in range(count)}


def token_lm(vocabulary, rng):
    """200,000 tokens, frequent ones more often."""
    names = vocabulary.names[1:]
    lines = (" ".join(names[int(len(names) ** rng.random()) - 1] for _ in range(20)) for _ in range(10000))
    return estimated(lines, order=3)


def estimated(lines, **options):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(lines))
        file.flush()
        return wf.LM.estimate(file.name, **options)


def sentences(rng):
    words = ["".join(rng.choice("abcdefghiklmnoprstuvz") for _ in range(rng.randint(3, 8))) for _ in range(2000)]
    return [" ".join(rng.choice(words) for _ in range(4)) for _ in range(1000)], words


def us_per_hypothesis(step, batch, rounds):
    """The median of several rounds, each of at least 50 ms."""
    begin = time.process_time()
    step()
    count = max(3, int(0.05 / max(1e-6, time.process_time() - begin)))
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(count):
            step()
        times.append((time.process_time() - begin) / count)
    return 1e6 * statistics.median(times) / batch


def ours(biasing, tokens, batch, rounds):
    """One step: advance and scores; the state before is put back."""
    hypotheses = biasing.begin(batch)
    for token in tokens[:-1]:
        hypotheses.advance([token] * batch)
    before, last = hypotheses._states.copy(), np.full(batch, tokens[-1], np.int32)
    logits = np.zeros((batch, len(biasing.vocabulary.names)), np.float32)

    def step():
        hypotheses._states[:] = before
        hypotheses.advance(last)
        hypotheses.scores(logits)

    return us_per_hypothesis(step, batch, rounds)


def xgrammar_step(vocabulary, expression, tokens, batch):
    import torch
    import xgrammar

    info = xgrammar.TokenizerInfo([text or b"</s>" for text in vocabulary.texts], stop_token_ids=[END])
    compiled = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False).compile_regex(expression)
    matchers = [xgrammar.GrammarMatcher(compiled) for _ in range(batch)]
    mask, logits = xgrammar.allocate_token_bitmask(batch, len(vocabulary.names)), torch.zeros(batch, len(vocabulary.names))
    for matcher in matchers:
        assert all(matcher.accept_token(token) for token in tokens)

    def step():
        for i, matcher in enumerate(matchers):
            matcher.rollback(1)
            assert matcher.accept_token(tokens[-1])
            matcher.fill_next_token_bitmask(mask, i)
        xgrammar.apply_token_bitmask_inplace(logits, mask)

    return step


def llguidance_step(vocabulary, expression, tokens, batch):
    import llguidance
    import llguidance.numpy

    class Tokens:
        eos_token_id, bos_token_id = END, None
        tokens = [text or b"</s>" for text in vocabulary.texts]  # noqa: RUF012
        special_token_ids = [END]  # noqa: RUF012

        def __call__(self, text):
            return vocabulary.encode(text if isinstance(text, str) else text.decode())

    wrapped = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))
    matchers = [llguidance.LLMatcher(wrapped, llguidance.LLMatcher.grammar_from_regex(expression)) for _ in range(batch)]
    mask, logits = llguidance.numpy.allocate_token_bitmask(batch, len(vocabulary.names)), np.zeros((batch, len(vocabulary.names)), np.float32)
    for matcher in matchers:
        assert matcher.consume_tokens(tokens), matcher.get_error()

    def step():
        for i, matcher in enumerate(matchers):
            matcher.rollback(1)
            assert matcher.consume_token(tokens[-1])
            llguidance.numpy.fill_next_token_bitmask(matcher, mask, i)
        llguidance.numpy.apply_token_bitmask_inplace(logits, mask)

    return step


def ways_of(vocabulary, rng):
    """Name -> (biasing, tokens so far)."""
    lm, many, (texts, words) = token_lm(vocabulary, rng), phrases_of(vocabulary, 10000, rng), sentences(rng)
    few, some = dict(list(many.items())[:100]), dict(list(many.items())[:1000])
    in_phrase, in_text = vocabulary.encode(" " + next(iter(many)))[:1], vocabulary.encode(" " + texts[0])
    model = Biasing(vocabulary, token_lm=lm)
    likely = [vocabulary.names.index(name) for name in ("\u2581", "a", "b")]
    word_lm = estimated([" ".join(rng.choice(words) for _ in range(10)) for _ in range(3000)], order=2)
    return {
        "100 phrases": (Biasing(vocabulary, few, cases=False), SPACES),
        "100 phrases, within": (Biasing(vocabulary, few, cases=False), in_phrase),
        "10k phrases": (Biasing(vocabulary, many, cases=False), SPACES),
        "10k phrases, within": (Biasing(vocabulary, many, cases=False), in_phrase),
        "3-gram": (model, likely),
        "1k phrases and 3-gram": (Biasing(vocabulary, some, cases=False, token_lm=lm), in_phrase),
        "grammar": (Biasing(vocabulary, grammar=wf.Fst.from_phrases(texts)), in_text[: len(in_text) // 2]),
        "2-gram of words": (Biasing(vocabulary, lm=word_lm), in_text[:2]),
    }, (texts, in_text[: len(in_text) // 2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabularies", default="32000,128000,256000")
    parser.add_argument("--batches", default="1,8,64")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    batches, rows, figures = [int(one) for one in args.batches.split(",")], [], []
    for size in map(int, args.vocabularies.split(",")):
        rng = random.Random(size)
        vocabulary = vocabulary_of(size, rng)
        ways, (texts, tokens) = ways_of(vocabulary, rng)
        timed = {name: [ours(biasing, so_far, batch, args.rounds) for batch in batches] for name, (biasing, so_far) in ways.items()}
        row, to = np.zeros(size, np.float32), np.empty(size, np.float32)
        timed = {"copy": [us_per_hypothesis(lambda row=row, to=to: np.copyto(to, row), 1, args.rounds)] * len(batches), **timed}
        if args.peers:
            expression = " ?(" + "|".join(texts) + ")"
            for name, make in (("xgrammar", xgrammar_step), ("llguidance", llguidance_step)):
                timed[name] = [us_per_hypothesis(make(vocabulary, expression, tokens, batch), batch, args.rounds) for batch in batches]
        rows += [[f"{size:,}", name, *(measure.figure(one) for one in times)] for name, times in timed.items()]
        figures += [(name, f"V = {size}, batch {batch}", measure.figure(one), "us") for name, times in timed.items() for batch, one in zip(batches, times)]
    print(measure.table(["V", "what", *(f"batch {batch}" for batch in batches)], rows))
    if args.record:
        measure.record(figures, "./run bench generation" + " --peers" * args.peers)


if __name__ == "__main__":
    main()
