"""warpfst.generation with `generate` of transformers: small random models, decoder-only and encoder-decoder, greedy, beams, sampling and batches.

Skipped without torch and transformers, which are large.
"""

import re

import numpy as np
import pytest
from test_generation import GRAMMAR, KINDS, PHRASES, encoded, token_lm

import warpfst as wf
from warpfst.generation import Biasing

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
if not transformers.is_torch_available():
    pytest.skip("this torch is too old for this transformers", allow_module_level=True)

PADDED = 8  # columns of logits that the tokenizer lacks, as many models have


@pytest.fixture(params=KINDS, scope="module")
def fast(request):
    """A tokenizer as transformers has it, with </s> and padding."""
    made = KINDS[request.param]()
    names = ("[PAD]", "[SEP]") if request.param == "wordpieces" else ("<pad>", "<eos>")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token=names[0], eos_token=names[1])


def decoder_only(size):
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=size + PADDED, n_positions=128, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1, pad_token_id=0)
    return transformers.GPT2LMHeadModel(config).eval()


def encoder_decoder(size):
    torch.manual_seed(2)
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    tokens = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 0, "forced_eos_token_id": None}
    return transformers.BartForConditionalGeneration(transformers.BartConfig(vocab_size=size + PADDED, max_position_embeddings=128, **sizes, **tokens)).eval()


@pytest.fixture(params=[decoder_only, encoder_decoder])
def model(request, fast):
    return request.param(max(fast.get_vocab().values()) + 1)


def prompt_of(fast, rows=2):
    return torch.tensor([encoded(fast._tokenizer, "the car and")[:3]] * rows)


def generate(model, inputs, processor, **options):
    """The tokens after the prompt, and the whole result."""
    with torch.no_grad():
        found = model.generate(
            inputs, attention_mask=torch.ones_like(inputs), logits_processor=[] if processor is None else [processor], return_dict_in_generate=True, output_scores=True, **options
        )
    first = 1 if model.config.is_encoder_decoder else inputs.shape[1]
    return found.sequences[:, first:], found


def steps(tokens, end=1):
    """Tokens up to the end, which is among them."""
    tokens = list(map(int, tokens))
    return tokens[: tokens.index(end) + 1] if end in tokens else tokens


WAYS = {
    "greedy": {"do_sample": False},
    "beams": {"num_beams": 4, "do_sample": False, "num_return_sequences": 3, "length_penalty": 0.0},
    "sampling": {"do_sample": True, "num_return_sequences": 3, "top_k": 0},
    "sampled beams": {"num_beams": 3, "do_sample": True, "top_k": 0},
}


@pytest.mark.parametrize("way", WAYS)
def test_texts_are_in_the_grammar(way, model, fast):
    biasing = Biasing(fast, {"Siobhan McGarry": 3}, grammar=wf.Fst.from_phrases(GRAMMAR))
    tokens, _ = generate(model, prompt_of(fast), biasing.processor(), max_new_tokens=40, **WAYS[way])
    assert len(tokens) >= 2
    for row in tokens:
        written = steps(row)
        assert written[-1] == 1  # the model stopped because the grammar ended
        assert biasing.vocabulary.text_of(written[:-1]).removeprefix(" ") in GRAMMAR


def log_probs(model, inputs, row, tokens):
    """The model's own log-probabilities of these tokens after the prompt."""
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            logits = model(input_ids=inputs[row : row + 1], decoder_input_ids=torch.tensor([[0, *tokens[:-1]]])).logits[0]
        else:
            logits = model(input_ids=torch.tensor([[*inputs[row].tolist(), *tokens[:-1]]])).logits[0, inputs.shape[1] - 1 :]
    return logits.log_softmax(-1)[range(len(tokens)), tokens].double().sum().item()


def test_scores_of_beams(model, fast):
    """The score of each beam is the model's and that of the bias, computed anew from its tokens: states have followed the beams."""
    biasing = Biasing(fast, {**PHRASES, "the": 2.0, "a": 1.0}, token_lm=token_lm(fast._tokenizer), lm_scale=0.2)
    inputs = prompt_of(fast)
    tokens, found = generate(model, inputs, biasing.processor(), max_new_tokens=14, num_beams=5, do_sample=False, num_return_sequences=5, length_penalty=0.0)
    for place, (row, score) in enumerate(zip(tokens, found.sequences_scores)):
        written = steps(row)
        hypotheses = biasing.begin()
        cost = sum(float(hypotheses.advance([token])[0]) for token in written)
        assert float(score) == pytest.approx(log_probs(model, inputs, place // 5, written) - cost, abs=2e-3)
    assert len({tuple(steps(row)) for row in tokens}) > 3


def test_greedy_takes_the_best_sum(model, fast):
    biasing = Biasing(fast, {"New York": 4, "Kim": 4})
    inputs = prompt_of(fast, 1)
    (tokens,), _ = generate(model, inputs, biasing.processor(), max_new_tokens=10, do_sample=False)
    hypotheses, written = biasing.begin(), []
    for token in steps(tokens):
        with torch.no_grad():
            ids = torch.tensor([[0, *written]] if model.config.is_encoder_decoder else [[*inputs[0].tolist(), *written]])
            logits = (model(input_ids=inputs, decoder_input_ids=ids) if model.config.is_encoder_decoder else model(input_ids=ids)).logits[:, -1]
        assert int(hypotheses.scores(logits).argmax()) == token
        hypotheses.advance([token])
        written.append(token)


@pytest.mark.parametrize("way", WAYS)
def test_no_boost_changes_no_bit(way, model, fast):
    results = []
    for processor in (None, Biasing(fast, dict.fromkeys(PHRASES, 0.0)).processor(), Biasing(fast).processor()):
        torch.manual_seed(3)
        results.append(generate(model, prompt_of(fast), processor, max_new_tokens=12, **WAYS[way]))
    for tokens, found in results[1:]:
        assert torch.equal(tokens, results[0][0])
        assert all(torch.equal(a, b) for a, b in zip(found.scores, results[0][1].scores))


@pytest.mark.parametrize("beams", [1, 3])
def test_lists_of_requests(beams, model, fast):
    """Each request of a batch is generated as it is alone."""
    biasing = Biasing(fast, {"car": 1.0})
    lists = [{"New York": 9.0}, None, {"Kim": 9.0}]
    options = {"max_new_tokens": 10, "num_beams": beams, "do_sample": False}
    together, _ = generate(model, prompt_of(fast, 3), biasing.processor(lists), **options)
    texts = [biasing.vocabulary.text_of(steps(row)) for row in together]
    for row, one in zip(together, lists):
        (alone,), _ = generate(model, prompt_of(fast, 1), biasing.processor([one]), **options)
        assert steps(row) == steps(alone)
    assert len(set(texts)) == 3


def test_a_processor_is_used_again(model, fast):
    """A call whose tokens do not go on from the last one begins new texts."""
    processor = Biasing(fast, grammar=wf.Fst.from_phrases(GRAMMAR)).processor()
    first, second = (generate(model, prompt_of(fast, rows), processor, max_new_tokens=40, do_sample=False)[0] for rows in (1, 2))
    assert steps(first[0]) == steps(second[0]) == steps(second[1])


def test_a_tokenizer_of_transformers(fast):
    """Special tokens and the end are known."""
    vocabulary = Biasing(fast).vocabulary
    assert vocabulary.ends == {1} and 0 in vocabulary.silent
    assert re.sub(r"\s", "", vocabulary.text_of(fast("the car", add_special_tokens=False).input_ids)) == "thecar"


def test_logits_of_other_types(fast):
    hypotheses = Biasing(fast, {"Kim": 2.0}).begin(1)
    logits = torch.tensor(np.random.default_rng(0).normal(size=(1, len(fast) + 3)), dtype=torch.float32)
    expected = hypotheses.scores(logits.clone())
    assert not torch.equal(expected, logits)
    for kind in (torch.bfloat16, torch.float16, torch.float64):
        rows = hypotheses.scores(logits.to(kind))
        assert rows.dtype == kind and torch.allclose(rows.float(), hypotheses.scores(logits.to(kind).float()), atol=0.05)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("way", ["greedy", "beams"])
def test_on_a_gpu(way, model, fast):
    """The same tokens as on the CPU, where the states are on the GPU; the second call begins anew."""
    lists = [{"New York": 3.0}, None]
    for parts in ({}, {"token_lm": token_lm(fast._tokenizer), "lm_scale": 0.2}, {"grammar": wf.Fst.from_phrases(GRAMMAR)}):
        biasing = Biasing(fast, {**PHRASES, "the": 2.0}, **parts)
        hypotheses, plain = biasing.begin(lists, device="cuda:0"), biasing.begin(lists)
        logits = torch.rand(2, len(biasing.vocabulary.names) + PADDED)
        for tokens in (encoded(fast._tokenizer, "New")[:2] * 2)[:2], [3, 4]:
            hypotheses.advance(torch.tensor(tokens, device="cuda"))
            plain.advance(tokens)
            assert torch.equal(hypotheses.scores(logits.cuda()).cpu(), plain.scores(logits.clone()))
        processor = biasing.processor(lists)
        on_gpu, inputs = model.to("cuda"), prompt_of(fast).cuda()
        first, again = (generate(on_gpu, inputs, processor, max_new_tokens=12, **WAYS[way])[0] for _ in range(2))
        assert torch.equal(first, again) and processor._on_gpu is not None
