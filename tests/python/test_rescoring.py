"""Rescoring of n-best lists against rankings made here, errors of the function that scores, and texts, scores and offsets in the form of transformers."""

import dataclasses
import json
import math
import sys

import numpy as np
import pytest
from conftest import CTC, ROOT

import warpfst as wf
from warpfst import integrations

LM = CTC / "lm3.arpa.gz"


@pytest.fixture(scope="module")
def first(ctc_graph, ctc_scores):
    """Results of real scores with lattices."""
    return wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=8).decode(list(ctc_scores.values()))


def length(texts):
    """A score that prefers texts of few letters."""
    return [-float(len(text)) for text in texts]


def test_costs_of_the_list_are_those_of_the_search(first):
    for result in first:
        for one in result.nbest(5):
            assert one.cost == one.graph_cost + one.acoustic_cost
        best = result.nbest(1)[0]
        assert abs(best.graph_cost - result.graph_cost) < 1e-4 and abs(best.acoustic_cost - result.acoustic_cost) < 1e-4


@pytest.mark.parametrize("weights", [{}, {"weight": 0.3}, {"weight": 2.0, "graph_weight": 0.25, "word_score": -1.5}, {"weight": 0.0}])
def test_ranking(first, weights):
    """Every list is the n-best list, sorted by the total as the documentation defines it."""
    rescored = wf.Rescorer(length, nbest=10, **weights)(first)
    weight, graph_weight, word_score = weights.get("weight", 0.5), weights.get("graph_weight", 1.0), weights.get("word_score", 0.0)
    changed = 0
    for result, listed in zip(first, rescored):
        totals = {one.text: -one.acoustic_cost - graph_weight * one.graph_cost - weight * len(one.text) + word_score * len(one.text.split()) for one in result.nbest(10)}
        assert [one.text for one in listed] == sorted(totals, key=lambda text: -totals[text])
        assert all(abs(one.total - totals[one.text]) < 1e-9 and one.score == -len(one.text) and one.hypothesis.text == one.text for one in listed)
        changed += listed[0].text != result.text
    assert (changed > 0) == (weight > 0)


def test_rescoring_with_the_model_of_the_graph_equals_a_larger_weight_of_it(ctc_scores):
    """First pass with a flat model, then the 3-gram: the ranking is that of the first pass with the 3-gram, where its text is in the list."""
    lm = wf.LM.read(LM)
    flat = wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", topology="correct")
    large = wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", LM, topology="correct")
    scores = list(ctc_scores.values())[:6]
    options = {"acoustic_scale": 0.7, "beam": 20, "max_active": 100000}
    wanted = wf.Decoder(large, **options).decode(scores)
    lists = wf.Decoder(flat, lattice_beam=12, **options).decode(scores)
    rescored = wf.Rescorer(lambda texts: [-sum(lm.costs(text)) for text in texts], nbest=3000, weight=1.0)(lists)
    there = [(result, listed) for result, listed in zip(wanted, rescored) if result.text in {one.text for one in listed}]
    assert len(there) >= 2
    for result, listed in there:
        assert listed[0].text == result.text and abs(listed[0].total + result.cost) < 0.01 * result.cost


def test_batches(first):
    """Each text is given once, sorted by length, in batches of the size asked for; batches do not change results."""
    calls = []

    def scorer(texts):
        calls.append(texts)
        return np.array(length(texts), np.float32)

    rescored = wf.Rescorer(scorer, nbest=10, batch_size=7)([*first, first[0]])
    given = [text for texts in calls for text in texts]
    assert all(type(texts) is list and len(texts) == 7 for texts in calls[:-1]) and 1 <= len(calls[-1]) <= 7
    assert sorted(given, key=len) == given and len(set(given)) == len(given) and set(given) == {one.text for result in first for one in result.nbest(10)}
    assert rescored[:-1] == wf.Rescorer(length, nbest=10)(first) and rescored[-1] == rescored[0]
    assert wf.Rescorer(length)([]) == []


def test_weights_can_be_tried_without_scoring_again(first):
    rescorer = wf.Rescorer(length, weight=0.1)
    lists = rescorer(first)
    other = dataclasses.replace(rescorer, score=lambda texts: pytest.fail("called"), weight=1.0)
    assert other.rank(lists) == wf.Rescorer(length, weight=1.0)(first) != lists


def test_a_text_may_be_impossible(first):
    best = first[0].text
    listed = wf.Rescorer(lambda texts: [-math.inf if text == best else 0.0 for text in texts])(first[:1])[0]
    assert listed[0].text != best and listed[-1] == (best, -math.inf, -math.inf, listed[-1].hypothesis)
    assert wf.Rescorer(lambda texts: [-math.inf] * len(texts), weight=0)(first[:1])[0][0].text == best


def test_errors_of_the_function(first):
    def fails(texts):
        raise KeyError("lost")

    with pytest.raises(wf.Error, match=r"rescoring of \d+ texts, such as '[A-Z ]+': KeyError: 'lost'") as caught:
        wf.Rescorer(fails)(first)
    assert isinstance(caught.value.__cause__, KeyError)
    for returned, message in (([1.0], "1 scores were returned"), ([], "0 scores"), (None, "TypeError: 'NoneType' object is not iterable"), (["x"] * 64, "a score is no number"), ([math.nan] * 64, "is nan"), ([math.inf] * 64, "is inf")):
        with pytest.raises(wf.Error, match=message):
            wf.Rescorer(lambda texts, returned=returned: returned if returned is None or len(returned) < 2 else returned[: len(texts)])(first)

    def interrupted(texts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wf.Rescorer(interrupted)(first)


def test_wrong_arguments(first, ctc_graph, ctc_scores):
    with pytest.raises(TypeError, match="expected a function"):
        wf.Rescorer("gpt2")
    for options in ({"nbest": 0}, {"batch_size": 0}, {"weight": math.nan}, {"word_score": math.inf}):
        with pytest.raises(wf.ArgumentError, match=next(iter(options))):
            wf.Rescorer(length, **options)
    scores = next(iter(ctc_scores.values()))
    with pytest.raises(wf.ArgumentError, match="nbest needs a lattice: set lattice_beam"):
        wf.Rescorer(length)(wf.Decoder(ctc_graph).decode(scores))
    with pytest.raises(wf.ArgumentError, match="NaN|nan"):
        wf.Rescorer(length)(wf.Decoder(ctc_graph, lattice_beam=4).decode([np.full_like(scores, np.nan), scores]))


# --- the processor ---


@pytest.fixture
def folder(tmp_path):
    """A wav2vec2 vocabulary of letters."""
    names = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ"]
    (tmp_path / "vocab.json").write_text(json.dumps({name: column for column, name in enumerate(names)}))
    return tmp_path


def logits_of(names, texts, rng, margin=5.0):
    """Noisy logits of texts, which the best path does not always spell; padded with -100, as by transformers."""
    rows = []
    for text in texts:
        frames = [column for letter in text for column in (0, names.index("|" if letter == " " else letter))]
        one = rng.standard_normal((len(frames) + 1, len(names))).astype(np.float32) * 1.5
        one[range(len(frames) + 1), [*frames, 0]] += margin
        rows.append(one)
    made = np.full((len(rows), max(map(len, rows)), len(names)), -100, np.float32)
    for padded, one in zip(made, rows):
        padded[: len(one)] = one
    return made, [len(one) for one in rows]


def test_processor(folder, rng):
    """Texts and offsets are those of a decoder of log-probabilities; scores are on the model's scale; padding is left out."""
    tokens = integrations.huggingface_tokens(folder)
    logits, lengths = logits_of(tokens.names, ["MARK IS GOING", "I LIKE IT", "NO"], rng)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = wf.from_huggingface(folder, LM, acoustic_scale=0.7).decode(log_probs, lengths)
    output = integrations.ProcessorWithLM(folder, LM, acoustic_scale=0.7).batch_decode(logits, output_word_offsets=True)
    assert output.text == wanted.texts == output["text"]
    for result, logit_score, lm_score, offsets in zip(wanted, output.logit_score, output.lm_score, output.word_offsets):
        assert offsets == [{"word": word.text, "start_offset": word.start, "end_offset": word.end} for word in result.words]
        assert abs(0.7 * logit_score + result.acoustic_cost) < 1e-3 and abs(0.7 * lm_score + result.cost) < 1e-3
    assert integrations.ProcessorWithLM(folder, LM, acoustic_scale=0.7).batch_decode(logits, lengths=lengths).word_offsets is None
    one = integrations.ProcessorWithLM(folder, LM, acoustic_scale=0.7).decode(logits[1][: lengths[1]], output_word_offsets=True)
    assert (one.text, one.word_offsets) == (output.text[1], output.word_offsets[1]) and abs(one.lm_score - output.lm_score[1]) < 1e-6
    with pytest.raises(KeyError):
        output["texts"]


def test_processor_with_several_texts(folder, rng):
    tokens = integrations.huggingface_tokens(folder)
    logits, lengths = logits_of(tokens.names, ["MARK IS GOING", "NO"], rng, 3.0)
    processor = integrations.ProcessorWithLM(folder, LM, nbest=4)
    output = processor.batch_decode(logits, n_best=3, output_word_offsets=True)
    results = processor.decoder.decode(logits - np.log(np.exp(logits).sum(-1, keepdims=True)), lengths)
    for i, result in enumerate(results):
        listed = result.nbest(3)
        assert output.text[i] == [one.text for one in listed] and np.allclose(output.lm_score[i], [-one.cost for one in listed], atol=1e-3)
        assert [[offset["word"] for offset in offsets] for offsets in output.word_offsets[i]] == [text.split() for text in output.text[i]]
    assert processor.decode(logits[0][: lengths[0]], n_best=2).text == output.text[0][:2]
    assert processor.batch_decode(logits).text == [texts[0] for texts in output.text]
    with pytest.raises(wf.ArgumentError, match=r"n_best is 5, expected 1 to 4"):
        processor.batch_decode(logits, n_best=5)


def test_processor_that_rescores(folder, rng):
    """rescore= takes a function or a Rescorer; texts and scores are those of the rescored lists."""
    tokens = integrations.huggingface_tokens(folder)
    logits, lengths = logits_of(tokens.names, ["MARK IS GOING", "I LIKE THE RED ONE"], rng, 2.5)
    rescorer = wf.Rescorer(length, nbest=8, weight=1.5)
    processor = integrations.ProcessorWithLM(folder, LM, rescore=rescorer, acoustic_scale=0.5)
    output = processor.batch_decode(logits, n_best=8)
    lists = rescorer(processor.decoder.decode(logits - np.log(np.exp(logits).sum(-1, keepdims=True)), lengths))
    assert output.text == [[one.text for one in listed] for listed in lists]
    assert np.allclose(output.lm_score[0], [one.total / 0.5 for one in lists[0]], atol=1e-3)
    plain = integrations.ProcessorWithLM(folder, LM, rescore=length, acoustic_scale=0.5).batch_decode(logits)
    assert plain.text == [listed[0].text for listed in wf.Rescorer(length)(processor.decoder.decode(logits - np.log(np.exp(logits).sum(-1, keepdims=True)), lengths))]


def test_wrong_arguments_of_the_processor(folder):
    with pytest.raises(wf.ArgumentError, match="needs words"):
        integrations.ProcessorWithLM(folder)
    with pytest.raises(wf.ArgumentError, match="nbest is 0"):
        integrations.ProcessorWithLM(folder, LM, nbest=0)
    with pytest.raises(TypeError, match="made of a folder"):
        integrations.ProcessorWithLM(folder, LM)(np.zeros(100))


def test_processor_of_transformers(folder, rng):
    """Logits of a small random model as a tensor, and the fields of transformers' own output."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    if not transformers.is_torch_available():
        pytest.skip("this torch is too old for this transformers")
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(folder / "vocab.json"))
    made = transformers.Wav2Vec2Processor(feature_extractor=transformers.Wav2Vec2FeatureExtractor(), tokenizer=tokenizer)
    processor = integrations.ProcessorWithLM(made, LM, nbest=2)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "conv_dim": (8,) * 7, "num_conv_pos_embeddings": 16}
    net = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(vocab_size=len(tokenizer), num_conv_pos_embedding_groups=2, **sizes)).eval()
    with torch.no_grad():
        logits = 20 * net(**processor(rng.standard_normal(16000).astype(np.float32), sampling_rate=16000, return_tensors="pt")).logits
    tensor, array = processor.batch_decode(logits, output_word_offsets=True), processor.batch_decode(logits.numpy(), output_word_offsets=True)
    assert tensor.text == array.text and tensor.word_offsets == array.word_offsets
    from transformers.models.wav2vec2_with_lm.processing_wav2vec2_with_lm import Wav2Vec2DecoderWithLMOutput

    assert {field.name for field in dataclasses.fields(Wav2Vec2DecoderWithLMOutput)} == {field.name for field in dataclasses.fields(tensor)}


# --- examples/rescoring ---


def test_causal_language_model(tmp_path, first, capsys, monkeypatch):
    """A small random GPT-2: scores of a batch are those of each text alone, summed here token by token. The program prints error rates."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    if not transformers.is_torch_available():
        pytest.skip("this torch is too old for this transformers")
    import tokenizers

    sys.path.insert(0, str(ROOT / "examples" / "rescoring"))
    import causal_lm

    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator((CTC / "text").read_text().lower().split("\n"), vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False)
    bpe.save(str(tmp_path / "bpe.json"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "bpe.json"), bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    torch.manual_seed(1)
    net = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=128)).eval()
    for part in (tokenizer, net):
        part.save_pretrained(tmp_path / "gpt2")
    lm = causal_lm.CausalLM(str(tmp_path / "gpt2"))
    texts = ["", "MARK", "MARK IS GOING TO SEE ELEPHANT"]
    for text, score in zip(texts, lm(texts)):
        ids = [tokenizer.bos_token_id, *bpe.encode(text.lower()).ids, tokenizer.eos_token_id]
        with torch.no_grad():
            alone = net(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        assert abs(score - sum(float(alone[i, token]) for i, token in enumerate(ids[1:]))) < 1e-3
    best = wf.Rescorer(lm, nbest=5, weight=0.2)(first[:3])
    assert all(len(listed) >= 1 for listed in best)
    monkeypatch.setattr(sys, "argv", ["causal_lm.py", str(tmp_path / "gpt2"), "--limit", "5", "--weights", "0", "0.3"])
    causal_lm.main()
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 and all("WER" in line for line in printed) and printed[0].startswith("weight 0")
