"""compat_flashlight.py - the tasks of `./run bench compat` with flashlight-text's decoders, one utterance per call.

The lexicon of characters ends words with the space, which is flashlight's silence. Pieces and phones have none after words.
"""
import importlib
import itertools
import math
import statistics
import time

import kenlm
from compat_speech import CTC, WORD_START, Comparison, Speech

PEER = "flashlight-text 0.0.7"
NUM_IN_PYTHON = 100  # utterances with a model in Python
TASKS = {
    "char": {
        "3-gram, beam 50": {},
        "3-gram, beam 500": {"beam_size": 500},
        "3-gram, sums": {"log_add": True},
        "3-gram, unknown words": {"unk_score": -6.0},
        "3-gram in Python": {"kind": "python"},
        "no model": {"kind": "zero", "word_score": -1.0},
        "no lexicon": {"kind": "free", "log_add": True},
    },
    "bpe": {"3-gram, beam 50": {}, "3-gram, beam 200": {"beam_size": 200}, "no lexicon": {"kind": "free", "log_add": True}},
    "phone": {"3-gram, beam 50": {}},
}


class Package:
    """The modules of flashlight-text, or of compat."""

    def __init__(self, name):
        self.decoder, self.dictionary, self.kenlm = (importlib.import_module(f"{name}.{part}") for part in ("decoder", "dictionary", "decoder.kenlm"))

    def model_in_python(self, path, words):
        """An LM whose scores are those of the package kenlm."""
        LM, LMState = self.decoder.LM, self.decoder.LMState

        class Model(LM):
            def __init__(self):
                super().__init__()
                self.model, self.states = kenlm.Model(path), {}

            def start(self, start_with_nothing):
                state, own = LMState(), kenlm.State()
                self.model.BeginSentenceWrite(own)
                self.states = {state: own}
                return state

            def score(self, state, usr_token_idx):
                after, own = state.child(usr_token_idx), kenlm.State()
                score = self.model.BaseScore(self.states[state], words.get_entry(usr_token_idx), own)
                self.states[after] = own
                return after, score

            def finish(self, state):
                return state, self.model.BaseScore(self.states[state], "</s>", kenlm.State())

        self.model = Model()  # kept here, because flashlight-text does not keep it
        return self.model

    def lm(self, kind, path, words):
        if kind == "python":
            return self.model_in_python(path, words)
        return self.kenlm.KenLM(path, words) if kind == "kenlm" else self.decoder.ZeroLM()

    def trie(self, head, lexicon, tokens, words, lm):
        trie, start = self.decoder.Trie(tokens.index_size(), 0), lm.start(False)
        for word, spellings in lexicon.items():
            label = words.get_index(word)
            _, score = lm.score(start, label)
            for spelling in spellings:
                spelled = [*spelling[1:], WORD_START] if head == "char" else spelling
                trie.insert(tokens.map_entries_to_indices(spelled), label, score)
        trie.smear(self.decoder.SmearingMode.MAX)
        return trie

    def make(self, speech, path, kind="kenlm", **changes):
        """A function from scores to a text."""
        tokens = self.dictionary.Dictionary(speech.tokens)
        # In phones there is no silence: the blank is it.
        silence = 0 if speech.head == "phone" else tokens.get_index(WORD_START)
        options = {"beam_size": 50, "beam_size_token": len(speech.tokens), "beam_threshold": 25.0, "lm_weight": 1.5, "sil_score": 0.0, "log_add": False}
        options.update(changes, criterion_type=self.decoder.CriterionType.CTC)
        if kind == "free":
            decoder = self.decoder.LexiconFreeDecoder(self.decoder.LexiconFreeDecoderOptions(**options), self.decoder.ZeroLM(), silence, 0, [])
            return lambda scores: spell(speech.tokens, best(decoder, scores).tokens)
        lexicon = self.dictionary.load_words(str(CTC / f"lexicon_{speech.head}.txt"))
        words = self.dictionary.create_word_dict(lexicon)
        lm = self.lm(kind, path, words)
        lexicon_options = self.decoder.LexiconDecoderOptions(**{"word_score": 0.0, "unk_score": -math.inf, **options})
        decoder = self.decoder.LexiconDecoder(lexicon_options, self.trie(speech.head, lexicon, tokens, words, lm), lm, silence, 0, words.get_index("<unk>"), [], False)
        return lambda scores: " ".join(words.get_entry(word) for word in best(decoder, scores).words if word >= 0)


def best(decoder, scores):
    return decoder.decode(scores.ctypes.data, *scores.shape)[0]


def spell(tokens, path):
    return "".join(tokens[token] for token, _ in itertools.groupby(path[1:-1]) if token != 0).replace(WORD_START, " ")


def run(decode, scores, rounds):
    """Texts, and the median of the processor seconds."""
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        texts = [decode(one) for one in scores]
        seconds.append(time.process_time() - begin)
    return texts, statistics.median(seconds)


def compare(data, model, rounds):
    packages = [Package(name) for name in ("warpfst.compat.flashlight", "flashlight.lib.text")]
    for head, tasks in TASKS.items():
        speech = Speech(data, head)
        for name, arguments in tasks.items():
            scores = speech.scores[:NUM_IN_PYTHON] if arguments.get("kind") == "python" else speech.scores
            mine, theirs = (run(package.make(speech, model, **arguments), scores, rounds) for package in packages)
            yield Comparison(speech, f"lexicon search, {name}", mine, theirs, PEER)
