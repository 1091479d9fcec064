"""warpfst.compat.Wav2Vec2ProcessorWithLM beside transformers' class of this name, with pyctcdecode in it where that is installed.

Skipped without transformers. To run all: `pip install transformers torch`, then `pip install --no-deps pyctcdecode==0.5.0 pygtrie hypothesis sortedcontainers attrs kenlm`.
"""

import json

import numpy as np
import pytest
from test_integrations import LM, lm, scores_of, sentences, wav2vec2_vocabulary  # noqa: F401

from warpfst.compat import Wav2Vec2ProcessorWithLM, build_ctcdecoder

transformers = pytest.importorskip("transformers")
LABELS = ["" if label == "<pad>" else " " if label == "|" else label for label in wav2vec2_vocabulary()]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Feature extractor and tokenizer."""
    folder = tmp_path_factory.mktemp("vocabulary")
    (folder / "vocab.json").write_text(json.dumps(wav2vec2_vocabulary()))
    return transformers.Wav2Vec2FeatureExtractor(), transformers.Wav2Vec2CTCTokenizer(str(folder / "vocab.json"))


@pytest.fixture(scope="module")
def processor(parts):
    return Wav2Vec2ProcessorWithLM(*parts, build_ctcdecoder(LABELS, LM))


@pytest.fixture
def logits(processor, sentences, rng):  # noqa: F811
    """Noisy logits of four sentences, padded as a batch."""
    each = [5 * rng.standard_normal(1) ** 2 + scores_of(processor.tokenizer(text).input_ids, len(LABELS), 0, rng) + rng.normal(0, 5, len(LABELS)) for text in sentences[:4]]
    padded = np.full((4, max(map(len, each)), len(LABELS)), -100.0, np.float32)
    for row, one in zip(padded, each):
        row[: len(one)] = one
    return padded


def unpadded(row):
    return row[(row != -100).all(-1)]


def test_decode_is_that_of_the_decoder(processor, logits):
    for row in map(unpadded, logits):
        found = processor.decode(row, output_word_offsets=True)
        text, _state, words, logit_score, lm_score = processor.decoder.decode_beams(row)[0]
        assert (found.text, found["logit_score"], found.lm_score) == (text, logit_score, lm_score)
        assert found.word_offsets == [{"word": word, "start_offset": start, "end_offset": end} for word, (start, end) in words]
        assert processor.decode(row).word_offsets is None


def test_batch_without_its_padding(processor, logits):
    together = processor.batch_decode(logits, output_word_offsets=True)
    alone = [processor.decode(unpadded(row), output_word_offsets=True) for row in logits]
    assert together.text == [one.text for one in alone]
    assert together.word_offsets == [one.word_offsets for one in alone]
    assert together.lm_score == pytest.approx([one.lm_score for one in alone], abs=1e-4)


def test_n_best(processor, logits):
    batch = processor.batch_decode(logits, n_best=3, output_word_offsets=True, beam_prune_logp=-100)
    for i, row in enumerate(logits):
        one = processor.decode(unpadded(row), n_best=3, output_word_offsets=True, beam_prune_logp=-100)
        assert batch.text[i] == one.text and len(one.text) == 3 == len(one.lm_score) == len(one.word_offsets)
        assert one.lm_score == sorted(one.lm_score, reverse=True)


def test_weights_and_hotwords(processor, logits, parts):
    row = unpadded(logits[0])
    own = Wav2Vec2ProcessorWithLM(*parts, build_ctcdecoder(LABELS, LM, alpha=0.9, beta=0.1, unk_score_offset=-3))
    changed = processor.decode(row, alpha=0.9, beta=0.1, unk_score_offset=-3)
    assert (changed.text, changed.lm_score) == (own.decode(row).text, own.decode(row).lm_score)
    assert processor.language_model.alpha == 0.9  # as in transformers, it stays
    processor.decode(row, alpha=0.5, beta=1.5, unk_score_offset=-10)
    assert own.decode(row, hotwords=["ZEBRA"]).text == own.decoder.decode(row, hotwords=["ZEBRA"])


def test_saved_and_read(processor, logits, tmp_path):
    processor.save_pretrained(tmp_path / "saved")
    again = Wav2Vec2ProcessorWithLM.from_pretrained(tmp_path / "saved")
    assert again.tokenizer.get_vocab() == processor.tokenizer.get_vocab()
    assert again.feature_extractor.to_json_string() == processor.feature_extractor.to_json_string()
    assert again.batch_decode(logits).text == processor.batch_decode(logits).text
    changed = Wav2Vec2ProcessorWithLM.from_pretrained(tmp_path / "saved", alpha=20.0, beta=-20.0, unk_score_offset=-20.0, score_boundary=False)
    assert changed.language_model.serializable_attrs == {"alpha": 20.0, "beta": -20.0, "unk_score_offset": -20.0, "score_boundary": False}


def test_audio_text_and_padding(processor, rng):
    audio = rng.normal(size=1600).astype(np.float32)
    assert np.array_equal(processor(audio, sampling_rate=16000).input_values[0], processor.feature_extractor(audio, sampling_rate=16000).input_values[0])
    assert processor(text="HELLO").input_ids == processor.tokenizer("HELLO").input_ids
    both = processor(audio=audio, sampling_rate=16000, text="HELLO")
    assert both["labels"] == processor.tokenizer("HELLO").input_ids
    padded = processor.pad(input_features=[{"input_values": audio}, {"input_values": audio[:100]}], labels=[{"input_ids": [5]}, {"input_ids": [5, 6]}])
    assert np.asarray(padded["input_values"]).shape == (2, 1600) and len(padded["labels"][0]) == 2
    with pytest.raises(ValueError, match="audio"):
        processor()


def test_what_does_not_fit(parts):
    with pytest.raises(ValueError, match="'Z'"):
        Wav2Vec2ProcessorWithLM(*parts, build_ctcdecoder([label for label in LABELS if label != "Z"]))
    with pytest.raises(TypeError, match="found str"):
        Wav2Vec2ProcessorWithLM(*parts, "decoder")
    with pytest.raises(ValueError, match="Wav2Vec2CTCTokenizer"):
        Wav2Vec2ProcessorWithLM(parts[1], parts[1], build_ctcdecoder(LABELS))


def flat(offsets, name):
    """One field of all words, of lists in lists."""
    return [offsets[name]] if isinstance(offsets, dict) else [value for one in offsets for value in flat(one, name)]


def test_transformers_class_has_the_same_results(parts, logits, tmp_path, lm):  # noqa: F811
    """Its folder is read, too."""
    pyctcdecode = pytest.importorskip("pyctcdecode")
    known = sorted(text for text, _ in lm.words if not text.startswith("<"))
    theirs = transformers.Wav2Vec2ProcessorWithLM(*parts, pyctcdecode.build_ctcdecoder(LABELS, str(LM), known))
    theirs.save_pretrained(tmp_path / "theirs")
    ours = Wav2Vec2ProcessorWithLM.from_pretrained(tmp_path / "theirs")
    for options in {}, {"n_best": 2}, {"beam_width": 20, "alpha": 0.8, "beta": 0.5}, {"hotwords": ["SEE"], "hotword_weight": 5.0}:
        mine, other = (one.batch_decode(logits, output_word_offsets=True, **options) for one in (ours, theirs))
        assert mine.text == other.text
        assert flat(mine.word_offsets, "word") == flat(other.word_offsets, "word")
        for name in ("start_offset", "end_offset"):  # of several alignments of a text, either may be told
            assert all(abs(a - b) <= 2 for a, b in zip(flat(mine.word_offsets, name), flat(other.word_offsets, name)))
        assert np.allclose(mine.lm_score, other.lm_score, atol=1e-2) and np.allclose(mine.logit_score, other.logit_score, atol=1e-2)
