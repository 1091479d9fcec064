"""warpfst.generation with tokenizers of each kind, trained here: sums of costs from the texts themselves, texts of grammars, batches."""

import itertools
import math
import re
import tempfile

import numpy as np
import pytest

import warpfst as wf
from warpfst.generation import Biasing, read_vocabulary

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

TEXTS = [
    "the quick brown fox jumps over the lazy dog and runs to New York City",
    "Kim met Siobhan McGarry at the station, and Kim (a doctor) went on to York",
    "is Müller's car in Zürich or not? the cars of Kim's friends are",
] * 4
PHRASES = {"New York": 3.0, "New York City": 2.0, "Kim": 1.5, "Siobhan McGarry": 4.0, "Zürich": 2.5, "car": 1.0}
SAID = [
    "New York",
    "Kim went to New York City and to York",
    "Kimball (Kim) met Siobhan McGarry, Siobhan and McGarry",
    "cars in Zürich, a car: car's",
    "KIM kim New new york NEW YORK",
    "Siobhan McGar",
    "Newer Yorker",
]


def byte_pairs():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=380, special_tokens=["<pad>", "<eos>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def unigram():
    """As SentencePiece's: U+2581, and bytes for letters that it lacks."""
    seen = Tokenizer(models.Unigram())
    seen.pre_tokenizer = pre_tokenizers.Metaspace()
    seen.train_from_iterator([text.replace("ü", "u") for text in TEXTS], trainers.UnigramTrainer(vocab_size=120, special_tokens=["<pad>", "<eos>", "<unk>"], unk_token="<unk>", show_progress=False))
    pieces = sorted(seen.get_vocab().items(), key=lambda item: item[1])
    vocabulary = [(name, 0.0 if token < 3 else -float(token)) for name, token in pieces] + [(f"<0x{byte:02X}>", -1000.0) for byte in range(256)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=2, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(["<pad>", "<eos>", "<unk>"])
    return tokenizer


def word_pieces():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizers.NFC(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    tokenizer.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=150, special_tokens=["[PAD]", "[SEP]", "[UNK]"], show_progress=False))
    return tokenizer


KINDS = {"bytes": byte_pairs, "unigram": unigram, "wordpieces": word_pieces}


@pytest.fixture(params=KINDS, scope="module")
def tokenizer(request):
    return KINDS[request.param]()


def encoded(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def cost(biasing, tokens, end=1):
    hypotheses = biasing.begin()
    total = sum(float(hypotheses.advance([token])[0]) for token in [*tokens, end])
    assert hypotheses.ended == [True]
    return total


def counted(text, cases=True):
    """The boosts of the phrases in a text: whole words, in the cases that phrases are spelled in."""
    total = 0.0
    for phrase, boost in PHRASES.items():
        written = {phrase, phrase[:1].upper() + phrase[1:], phrase.lower(), phrase.title(), phrase.upper()} if cases else {phrase}
        total += boost * sum(len(re.findall(rf"(?<!\w){re.escape(one)}(?!\w)", text)) for one in written)
    return total


def test_boosts_of_whole_texts(tokenizer):
    biasing = Biasing(tokenizer, PHRASES, ends=[1])
    exact = Biasing(tokenizer, PHRASES, ends=[1], cases=False)
    for text in SAID:
        known = read_vocabulary(tokenizer).text_of(encoded(tokenizer, text)).strip()
        if "[UNK]" in tokenizer.encode(text).tokens:
            continue
        assert known.replace(" ", "") == text.replace(" ", "")
        assert cost(biasing, encoded(tokenizer, text)) == pytest.approx(-counted(text), abs=1e-4), text
        assert cost(exact, encoded(tokenizer, text)) == pytest.approx(-counted(text, cases=False), abs=1e-4), text


def test_letters_of_bytes():
    """Byte fallback: a letter that no token has is several tokens, and the phrase is found."""
    tokenizer = unigram()
    tokens = encoded(tokenizer, "in Zürich")
    assert any(name.startswith("<0x") for name in tokenizer.encode("in Zürich").tokens)
    assert cost(Biasing(tokenizer, {"Zürich": 2.5}, ends=[1]), tokens) == pytest.approx(-2.5)


def test_scripts_without_spaces():
    tokenizer = byte_pairs()
    assert cost(Biasing(tokenizer, {"東京": 2.0}, ends=[1]), encoded(tokenizer, "私は東京に行く")) == pytest.approx(-2)


def test_rows_are_the_costs_of_tokens(tokenizer, rng):
    """A row has what `advance` says of every token, with all parts and without a grammar bit for bit."""
    biasing = Biasing(tokenizer, PHRASES, ends=[1], token_lm=token_lm(tokenizer), lm_scale=0.7)
    size = len(biasing.vocabulary.names)
    hypotheses = biasing.begin(3)
    for step in range(12):
        logits = rng.normal(size=(3, size + 2)).astype(np.float32)
        rows = hypotheses.scores(logits.copy(), num_threads=1 + step % 2)
        for i in range(3):
            after = biasing.begin(size)
            after._states[:] = hypotheses._states[i]
            assert np.array_equal(rows[i, :size], logits[i, :size] - after.advance(np.arange(size)))
        assert np.array_equal(rows[:, size:], logits[:, size:])
        hypotheses.advance(rng.integers(2, size, 3) if step % 3 else encoded(tokenizer, "New York")[:1] * 3)


def token_lm(tokenizer):
    """A model of the tokens' names, estimated from the texts."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(" ".join(tokenizer.encode(text).tokens) for text in TEXTS))
        file.flush()
        return wf.LM.estimate(file.name, order=3, discount_fallback="0.5,1,1.5")


def test_sums_of_a_token_lm(tokenizer):
    model = token_lm(tokenizer)
    biasing = Biasing(tokenizer, ends=[1], token_lm=model, lm_scale=1)
    for text in TEXTS[:3]:
        assert cost(biasing, encoded(tokenizer, text)) == pytest.approx(sum(model.costs(tokenizer.encode(text).tokens)), abs=1e-3)


def test_sums_of_a_word_lm(tokenizer, tmp_path):
    """Words in the model's case, without punctuation; those that it lacks cost as <unk>."""
    (tmp_path / "text").write_text("\n".join(re.sub(r"[^\w' ]", " ", text.lower()) for text in TEXTS))
    model = wf.LM.estimate(tmp_path / "text", order=2, discount_fallback="0.5,1,1.5")
    biasing = Biasing(tokenizer, ends=[1], lm=model, lm_scale=0.5)
    for text in ["The quick brown fox", "Kim, Siobhan (a doctor)!", "the quack fix", "KIM'S friends"]:
        if "[UNK]" in tokenizer.encode(text).tokens or (tokenizer.token_to_id("[UNK]") is not None and "'" in text):
            continue
        words = re.sub(r"[^\w' ]", " ", text.lower()).split()
        assert cost(biasing, encoded(tokenizer, text)) == pytest.approx(0.5 * sum(model.costs(words)), abs=1e-3), text


def spelled(vocabulary, text, most=2000):
    """Every sequence of tokens with this text, up to so many."""
    pieces = [(token, piece) for token, piece in enumerate(vocabulary.texts) if piece and token not in vocabulary.silent | vocabulary.ends]
    found, waiting = [], [((), text)]
    while waiting and len(found) < most:
        tokens, rest = waiting.pop()
        if not rest:
            found.append(tokens)
        waiting += [((*tokens, token), rest[len(piece) :]) for token, piece in pieces if rest.startswith(piece)]
    return found


GRAMMAR = ["call Kim", "call Siobhan McGarry", "the car runs", "the cars"]


def test_grammar_of_words(tokenizer, rng):
    """Every spelling of every sentence is accepted; what random logits write is a sentence."""
    biasing = Biasing(tokenizer, grammar=wf.Fst.from_phrases(GRAMMAR), ends=[1])
    vocabulary = biasing.vocabulary
    texts = {b" " + sentence.encode() for sentence in GRAMMAR} | {sentence.encode() for sentence in GRAMMAR}
    num_spellings = 0
    for text in texts:
        for tokens in itertools.islice(spelled(vocabulary, text), 200):
            assert cost(biasing, tokens) == 0
            num_spellings += 1
            assert cost(biasing, tokens[:-1]) == math.inf
    assert num_spellings > (100 if tokenizer.token_to_id("[UNK]") is None else 3)
    hypotheses, written = biasing.begin(20), [[] for _ in range(20)]
    while not all(hypotheses.ended):
        rows = hypotheses.scores(rng.normal(size=(20, len(vocabulary.names))).astype(np.float32))
        tokens = rows.argmax(1)
        for i, ended in enumerate(hypotheses.ended):
            written[i] += [] if ended else [int(tokens[i])]
        hypotheses.advance(tokens)
    found = {b"".join(vocabulary.texts[token] for token in tokens[:-1]) for tokens in written}
    assert found <= texts and len(found) > 3 and all(tokens[-1] == 1 for tokens in written)


def test_grammar_with_costs_and_cycles():
    """Costs of the words are those of their tokens."""
    tokenizer = byte_pairs()
    words = wf.Symbols(["<eps>", "the", "car", "fox"])
    grammar = wf.Fst.from_arcs([(0, 1, 1, 1, 0.5), (1, 0, 2, 2, 1.0), (1, 2, 3, 3, 0.25), (0, 2, 0, 0, 3.0)], {2: 0.125}, isymbols=words, osymbols=words)
    biasing = Biasing(tokenizer, grammar=grammar, ends=[1])
    for text, expected in ("the fox", 0.875), ("the car the car the fox", 3.875), (" the car", 4.625), ("", 3.125), ("fox", math.inf), ("the", math.inf):
        assert cost(biasing, encoded(tokenizer, text)) == pytest.approx(expected), text


def test_grammar_of_tokens():
    tokenizer = byte_pairs()
    a, b = encoded(tokenizer, "the")[0], encoded(tokenizer, "car")[0]
    arcs = [(0, 1, a + 1, a + 1, 1.0), (0, 1, 0, 0, 2.0), (1, 1, b + 1, b + 1, 0.5)]
    biasing = Biasing(tokenizer, token_grammar=wf.Fst.from_arcs(arcs, {1: 0.25}), ends=[1])
    assert [cost(biasing, tokens) for tokens in ([a], [b, b], [a, b], [a, a], [])] == [1.25, 3.25, 1.75, math.inf, 2.25]


def test_lists_of_requests(tokenizer, rng):
    """A list for each request, besides the phrases of all; hypotheses keep theirs when they are reordered, and a row has what `advance` says."""
    common = Biasing(tokenizer, {"car": 1.0}, ends=[1])
    lists = [{"New York": 3.0}, None, ["Kim"], {"New York": 3.0}]
    expected = [4.0, 1.0, 1.0 + wf.boost_by_length("Kim", 0.3), 4.0]
    hypotheses, requests, total = common.begin(lists), np.arange(4), np.zeros(4)
    for token in [*encoded(tokenizer, "the car in New York and Kim"), 1]:
        rows = hypotheses.scores(np.zeros((4, len(common.vocabulary.names)), np.float32))
        costs = hypotheses.advance([token] * 4)
        assert np.array_equal(rows[:, token], -costs)
        total -= costs
        order = rng.permutation(4)
        hypotheses.reorder(order)
        requests, total = requests[order], total[order]
    assert total[np.argsort(requests)] == pytest.approx(expected, abs=1e-5)


def test_nothing_keeps_all_bits(tokenizer, rng):
    biasing = Biasing(tokenizer, dict.fromkeys(PHRASES, 0.0), ends=[1])
    hypotheses = biasing.begin(2)
    for token in encoded(tokenizer, "Kim in New York"):
        logits = rng.normal(size=(2, len(biasing.vocabulary.names))).astype(np.float32)
        assert hypotheses.scores(logits.copy()).tobytes() == logits.tobytes()
        hypotheses.advance([token, token])


def test_phrases_serve_decoders():
    biasing = Biasing(byte_pairs(), ["Kim", "New York"], ends=[1])
    assert biasing.phrases == {"Kim": None, "New York": None}
    assert wf.Scorer.boost({"Kim": None}, wf.Symbols(["<eps>", "Kim"])) is not None


def test_errors():
    tokenizer = byte_pairs()
    with pytest.raises(TypeError, match="found str"):
        Biasing("whisper")
    with pytest.raises(wf.ArgumentError, match="token 999"):
        Biasing(tokenizer, ends=[999])
    with pytest.raises(wf.ArgumentError, match="ends="):
        Biasing(tokenizer, grammar=wf.Fst.from_phrases(["a"]))
    with pytest.raises(TypeError, match="not both"):
        Biasing(tokenizer, grammar=wf.Fst.from_phrases(["a"]), token_grammar=wf.Fst.from_phrases(["a"]), ends=[1])
    with pytest.raises(wf.ArgumentError, match="no symbol table"):
        Biasing(tokenizer, grammar=wf.Fst.from_arcs([(0, 1, 1, 1, 0)], {1: 0}), ends=[1])
    with pytest.raises(wf.ArgumentError, match="empty"):
        Biasing(tokenizer, {" ": 1})
    with pytest.raises(wf.ArgumentError, match="lm_scale"):
        Biasing(tokenizer, lm=token_lm(tokenizer), lm_scale=0)
    with pytest.warns(wf.InputWarning, match="1 of 1 cannot be spelled"):
        Biasing(word_pieces(), {"東京": 1})
    hypotheses = Biasing(tokenizer).begin(2)
    with pytest.raises(ValueError, match="expected 2 rows"):
        hypotheses.scores(np.zeros((1, 400), np.float32))
    with pytest.raises(wf.ArgumentError, match="rows of 5 columns"):
        hypotheses.scores(np.zeros((2, 5), np.float32))
    with pytest.raises(ValueError, match="expected \\(2,\\)"):
        hypotheses.advance([1])
    with pytest.raises(ValueError, match="from 0 to 1"):
        hypotheses.reorder([2])


HEARD = [["m"], ["e"], ["t"], ["k"], ["i"], ["n", "m"], ["a"], ["t"], ["y"], ["o"], ["l", "r"], ["k"]]  # the letters of each frame, the likely ones first
WORDS = ["met", "kin", "kim", "at", "yolk", "york"]
SERVED = {(): "met kin at yolk", ("kim",): "met kim at yolk", ("at york",): "met kin at york", ("at york", "kim"): "met kim at york", ("met kin", "yolk"): "met kin at yolk"}


def heard(letters):
    """Logits of a frame for each of `letters`; the first is "", blank. The less likely letter lacks half a nat."""
    frames = np.full((len(HEARD), len(letters)), -30, np.float32)
    frames[:, 0] = 0
    for frame, options in enumerate(HEARD):
        for place, letter in enumerate(options):
            frames[frame, letters.index(letter)] = 5 - 0.5 * place
    return frames


def test_one_list_serves_ctc_models_transducers_and_llms():
    """The same Biasing in one process: its lists give the same words in a CTC decoder, a transducer and a model that writes letters."""
    alphabet = ["", *sorted(set("".join(WORDS)))]
    lexicon, names = {word: list(word) for word in WORDS}, ["<blk>", *alphabet[1:]]
    ctc = wf.Decoder(wf.build_ctc_graph(names, lexicon))
    scores = heard(alphabet) - np.log(np.exp(heard(alphabet)).sum(1, keepdims=True))
    transducer = wf.Transducer.from_functions(
        lambda last: np.asarray(last).astype(np.float32)[:, :1],
        lambda encoder, last: np.asarray(encoder) - 20 * ((np.arange(len(names)) == np.asarray(last)) & (np.arange(len(names)) > 0)).astype(np.float32),
        num_tokens=len(names), encoder_size=len(names), predictor_size=1, context_size=1,
    )  # fmt: skip
    graph = wf.build_ctc_graph(names, lexicon, topology="transducer")
    emitting = wf.Decoder(graph, transducer=transducer)

    letters = Tokenizer(models.BPE())
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.train_from_iterator([], trainers.BpeTrainer(vocab_size=257, special_tokens=["<eos>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    biasing = Biasing(letters, ends=[0])
    token = {text: place for place, text in enumerate(biasing.vocabulary.texts)}
    steps = [frame for start, end in ((0, 3), (3, 6), (6, 8), (8, 12)) for frame in ([" "], *HEARD[start:end])]

    lists = [dict.fromkeys(phrases, 2.0) for phrases in SERVED]
    hypotheses = biasing.begin([None, *lists[1:]])
    texts = [b""] * len(lists)
    for options in steps:
        logits = np.full((len(lists), len(biasing.vocabulary.texts)), -30, np.float32)
        for place, letter in enumerate(options):
            logits[:, token[letter.encode()]] = 5 - 0.5 * place
        chosen = hypotheses.scores(logits).argmax(1)
        hypotheses.advance(chosen)
        texts = [text + biasing.vocabulary.texts[one] for text, one in zip(texts, chosen)]
    wanted = list(SERVED.values())
    assert [text.decode().strip() for text in texts] == wanted
    assert [result.text for result in ctc.decode([scores] * len(lists), boost=lists)] == wanted
    assert [result.text for result in emitting.decode([heard(alphabet)] * len(lists), boost=lists)] == wanted
    for phrases, told in zip(lists[1:], wanted[1:]):  # one that is common to all requests
        common = Biasing(letters, phrases, ends=[0])
        assert ctc.decode(scores, boost=common.phrases)[0].text == told
        assert emitting.decode(heard(alphabet), boost=common.phrases)[0].text == told


def test_a_gpu_that_is_not_there():
    biasing = Biasing(byte_pairs(), PHRASES, ends=[1])
    with pytest.raises(wf.Error, match="cuda"):
        biasing.begin(device="cuda:99")
