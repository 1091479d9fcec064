"""warpfst.integrations with objects and folders of the real transformers, made here with small vocabularies.

Skipped without transformers, which is large. To run: `pip install --no-deps transformers safetensors regex huggingface_hub` beside tests/python/requirements.txt.
Only the test of a model needs torch.
"""

import json
import re

import numpy as np
import pytest
from conftest import CTC
from test_integrations import CHARACTERS, LM, characters, check, lm, scores_of, sentences, wav2vec2_vocabulary  # noqa: F401

import warpfst as wf
from warpfst import compat, integrations

transformers = pytest.importorskip("transformers")


@pytest.fixture
def processor(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps(wav2vec2_vocabulary()))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(tmp_path / "vocab.json"))
    return transformers.Wav2Vec2Processor(feature_extractor=transformers.Wav2Vec2FeatureExtractor(), tokenizer=tokenizer)


def test_wav2vec2_processor(processor, tmp_path, lm, sentences, rng):  # noqa: F811
    """The processor, its tokenizer, and the folder that it writes give the same tokens; scores that the tokenizer's ids spell decode to the sentences."""
    folder = tmp_path / "saved"
    processor.save_pretrained(folder)
    transformers.Wav2Vec2Config(vocab_size=len(wav2vec2_vocabulary())).save_pretrained(folder)
    for source in (processor, processor.tokenizer, folder):
        tokens = integrations.huggingface_tokens(source)
        assert (tokens.names, tokens.blank, tokens.separator) == (tuple(wav2vec2_vocabulary()), 0, "|")
        check(wf.from_huggingface(source, lm), lambda sentence: processor.tokenizer(sentence).input_ids, len(tokens.names), 0, sentences, rng)
    assert integrations.huggingface_tokens(folder).frame_shift == 0.02


def test_tokenizer_that_writes_lower_case(tmp_path, lm, sentences, rng):  # noqa: F811
    vocabulary = {name.lower() if name in CHARACTERS else name: column for name, column in wav2vec2_vocabulary().items()}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(tmp_path / "vocab.json"), pad_token="<pad>")
    decoder = wf.from_huggingface(tokenizer, lm)
    check(decoder, lambda sentence: characters(list(vocabulary), "|")(sentence.lower()), len(vocabulary), 0, sentences, rng)


def test_languages_of_mms(tmp_path, rng):
    vocabulary = {"eng": {"<pad>": 0, "<unk>": 1, "|": 2, "a": 3, "b": 4}, "deu": {"<pad>": 0, "<unk>": 1, "|": 2, "ä": 3, "b": 4}}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(tmp_path / "vocab.json"), target_lang="eng")
    scores = scores_of([4, 3, 2, 3, 4], len(tokenizer), 0, rng)
    assert wf.from_huggingface(tokenizer, words=["ab", "ba"]).decode(scores)[0].text == "ba ab"
    tokenizer.set_target_lang("deu")
    assert wf.from_huggingface(tokenizer, words=["äb", "bä"]).decode(scores)[0].text == "bä äb"
    tokenizer.save_pretrained(tmp_path / "saved")
    assert wf.from_huggingface(tmp_path / "saved", words=["äb", "bä"]).decode(scores)[0].text == "bä äb"


def test_greedy_text_is_the_tokenizers(processor, rng):
    """Without words, the text is that of transformers' own greedy decoding, also for scores of noise."""
    tokens = integrations.huggingface_tokens(processor)
    decoder = tokens.decoder(check_scores="off")
    for _ in range(20):
        logits = 4 * rng.standard_normal((30, len(tokens.names))).astype(np.float32)
        scores = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        theirs = re.sub("<[^>]+>", "", processor.batch_decode(scores.argmax(axis=1)[None])[0])
        ours = tokens.text(word.text for word in decoder.decode(scores)[0].words)
        assert ours == " ".join(theirs.split())


def test_parakeet_tokenizer(tmp_path, lm, sentences, rng):  # noqa: F811
    """A tokenizer of pieces, as an object and as the folder that it writes; the padding token is the last column."""
    import tokenizers

    backend = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=150, special_tokens=["<unk>"], show_progress=False)
    backend.train_from_iterator((CTC / "text").read_text().split("\n"), trainer)
    kind = getattr(transformers, "ParakeetTokenizer", transformers.PreTrainedTokenizerFast)  # older versions have the base class only
    tokenizer = kind(tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>")
    size = len(tokenizer)
    assert tokenizer.pad_token_id == size - 1
    tokenizer.save_pretrained(tmp_path)
    for source in (tokenizer, tmp_path):
        check(wf.from_huggingface(source, lm), lambda sentence: backend.encode(sentence).ids, size, size - 1, sentences, rng)


def test_logits_of_a_model(processor, tmp_path, rng):
    """From audio to text with a small random model: logits of torch after log_softmax, in frames of frame_shift."""
    torch = pytest.importorskip("torch")
    if not transformers.is_torch_available():
        pytest.skip("this torch is too old for this transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "conv_dim": (8,) * 7, "num_conv_pos_embeddings": 16}
    config = transformers.Wav2Vec2Config(vocab_size=len(wav2vec2_vocabulary()), num_conv_pos_embedding_groups=2, **sizes)
    model = transformers.Wav2Vec2ForCTC(config).eval()
    for part in (processor, model):
        part.save_pretrained(tmp_path / "saved")
    audio = rng.standard_normal(32000).astype(np.float32)
    with torch.no_grad():
        logits = 20 * model(**processor(audio, sampling_rate=16000, return_tensors="pt")).logits
    tokens = integrations.huggingface_tokens(tmp_path / "saved")
    assert tokens.frame_shift == 0.02 and abs(logits.shape[1] * tokens.frame_shift - 2) < 0.05
    result = tokens.decoder(check_scores="off").decode(logits.log_softmax(-1))[0]
    theirs = re.sub("<[^>]+>", "", processor.batch_decode(logits.argmax(-1))[0])
    assert tokens.text(word.text for word in result.words) == " ".join(theirs.split())
    assert wf.from_huggingface(processor, LM, check_scores="off").decode(logits.log_softmax(-1))[0].error is None


def test_decoder_of_a_pipeline(processor):
    """transformers' pipeline takes warpfst.compat's decoder in place of pyctcdecode's."""
    torch = pytest.importorskip("torch")
    labels = list(wav2vec2_vocabulary())
    decoder = compat.build_ctcdecoder(["" if label == "<pad>" else " " if label == "|" else label for label in labels])
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "conv_dim": (16,) * 7}
    torch.manual_seed(0)
    model = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(vocab_size=len(labels), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, **sizes)).eval()
    parts = {"tokenizer": processor.tokenizer, "feature_extractor": processor.feature_extractor}
    processor.feature_extractor._processor_class = "Wav2Vec2ProcessorWithLM"  # as in a checkpoint with a language model; older versions look for it
    recognize = transformers.pipeline("automatic-speech-recognition", model=model, decoder=decoder, **parts)
    audio = np.random.default_rng(0).normal(size=16000).astype(np.float32)
    with torch.no_grad():
        logits = model(processor(audio, sampling_rate=16000, return_tensors="pt").input_values).logits[0].numpy()
    found = recognize(audio, return_timestamps="word")
    assert found["text"] == decoder.decode(logits) != ""
    assert [chunk["text"] for chunk in found["chunks"]] == found["text"].split()
