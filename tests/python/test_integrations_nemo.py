"""warpfst.integrations with the real NeMo: small random models, as archives that save_to writes and as objects.

Skipped without NeMo, which is large. To run: `pip install "nemo_toolkit[asr]" torch` beside tests/python/requirements.txt.
"""

import numpy as np
import pytest
from test_integrations import CHARACTERS, LM, characters, check, lm, pieces, sentences  # noqa: F401

import warpfst as wf
from warpfst import integrations

nemo = pytest.importorskip("nemo.collections.asr.models", reason="needs nemo_toolkit[asr]", exc_type=ImportError)
import torch
import trained_models
from omegaconf import OmegaConf

MODULES = "nemo.collections.asr.modules"
WIDTH = 16
LETTERS = [" ", *(letter.lower() for letter in CHARACTERS)]


def common():
    """Audio features and a Conformer of one layer."""
    encoder = {"n_layers": 1, "d_model": WIDTH, "n_heads": 2, "ff_expansion_factor": 2, "conv_kernel_size": 3}
    return {
        "sample_rate": 16000,
        "preprocessor": {"_target_": f"{MODULES}.AudioToMelSpectrogramPreprocessor", "sample_rate": 16000, "window_stride": 0.01, "features": 80},
        "encoder": {"_target_": f"{MODULES}.ConformerEncoder", "feat_in": 80, "subsampling": "dw_striding", "subsampling_factor": 8, "subsampling_conv_channels": 8, **encoder},
    }


def ctc_part(vocabulary):
    return {"_target_": f"{MODULES}.ConvASRDecoder", "feat_in": WIDTH, "num_classes": len(vocabulary) or -1, "vocabulary": vocabulary}


def transducer_part(vocabulary):
    prediction, joint = {"pred_hidden": 8, "pred_rnn_layers": 1}, {"joint_hidden": 8, "activation": "relu"}
    sizes = {"model_defaults": {"enc_hidden": WIDTH, "pred_hidden": 8}, "loss": {"loss_name": "default"}, "decoding": {"strategy": "greedy_batch", "greedy": {"max_symbols": 4}, "beam": {"beam_size": 2}}}
    decoder = {"_target_": f"{MODULES}.RNNTDecoder", "prednet": prediction, "vocab_size": len(vocabulary)}
    joint = {"_target_": f"{MODULES}.RNNTJoint", "log_softmax": None, "fuse_loss_wer": False, "jointnet": joint, "num_classes": len(vocabulary), "vocabulary": vocabulary}
    return {"decoder": decoder, "joint": joint, "aux_ctc": {"ctc_loss_weight": 0.3, "use_cer": False, "decoder": ctc_part(vocabulary)}, **sizes}


def tokenizer_folder(folder, model_file, processor):
    """The folder of a tokenizer as NeMo's scripts make it: tokenizer.model and vocab.txt."""
    folder.mkdir()
    (folder / "tokenizer.model").write_bytes(model_file.read_bytes())
    names = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    marked = [name[1:] if name.startswith("\u2581") else f"##{name}" for name in names if name != "<unk>"]
    (folder / "vocab.txt").write_text("".join(f"{name}\n" for name in marked), encoding="utf-8")
    return {"dir": str(folder), "type": "bpe"}


@pytest.fixture(scope="session", params=["pieces", "characters", "hybrid of pieces", "hybrid of characters"])
def model(request, pieces, tmp_path_factory):  # noqa: F811
    """A random model and its archive."""
    folder, config = tmp_path_factory.mktemp("nemo"), common()
    if "pieces" in request.param:
        config["tokenizer"] = tokenizer_folder(folder / "tokenizer", *pieces(model_type="bpe", bos_id=-1, eos_id=-1))
    names = LETTERS if "characters" in request.param else []
    config |= transducer_part(names) if "hybrid" in request.param else {"decoder": ctc_part(names)}
    config |= {"labels": names} if names else {}
    kinds = {"pieces": "EncDecCTCModelBPE", "characters": "EncDecCTCModel", "hybrid of pieces": "EncDecHybridRNNTCTCBPEModel", "hybrid of characters": "EncDecHybridRNNTCTCModel"}
    torch.manual_seed(1)
    made = getattr(nemo, kinds[request.param])(cfg=OmegaConf.create(config)).eval()
    made.save_to(str(folder / "model.nemo"))
    return made, folder / "model.nemo"


def ctc_decoder(model):
    return getattr(model, "ctc_decoder", None) or model.decoder


def spell(model):
    """NeMo's own way from a sentence to columns."""
    tokenizer = getattr(model, "tokenizer", None)
    return tokenizer.text_to_ids if tokenizer is not None else lambda sentence: characters(LETTERS, " ")(sentence.lower())


def test_archive_and_object(model, lm, sentences, rng):  # noqa: F811
    """Both have the columns of the model, and decode scores that spell sentences with NeMo's own tokenizer."""
    model, archive = model
    blank = len(ctc_decoder(model).vocabulary)
    for source in (archive, model):
        tokens = integrations.nemo_tokens(source)
        assert (tokens.blank, len(tokens.names), tokens.frame_shift) == (blank, ctc_decoder(model).num_classes_with_blank, 0.08)
        check(wf.from_nemo(source, lm), spell(model), blank + 1, blank, sentences, rng)


@pytest.fixture(scope="session")
def bilingual(pieces, tmp_path_factory):  # noqa: F811
    """A random model of two languages, of which the second has lower-case words, and its archive."""
    folder, config = tmp_path_factory.mktemp("bilingual"), {**common(), "decoder": ctc_part([])}
    upper, lower = pieces(model_type="bpe", bos_id=-1, eos_id=-1), pieces(model_type="bpe", bos_id=-1, eos_id=-1, vocab_size=90, normalization_rule_name="nmt_nfkc_cf")
    config["tokenizer"] = {"type": "agg", "langs": {"en": tokenizer_folder(folder / "en", *upper), "xx": tokenizer_folder(folder / "xx", *lower)}}
    made = nemo.EncDecCTCModelBPE(cfg=OmegaConf.create(config)).eval()
    made.save_to(str(folder / "model.nemo"))
    return made, folder / "model.nemo"


@pytest.mark.parametrize("language", ["en", "xx"])
def test_aggregate_tokenizer(bilingual, language, lm, sentences, rng):  # noqa: F811
    model, archive = bilingual
    size = len(model.decoder.vocabulary)
    for source in (archive, model):
        decoder = wf.from_nemo(source, lm, target_lang=language)
        check(decoder, lambda sentence: model.tokenizer.text_to_ids(sentence, language), size + 1, size, sentences, rng)
        with pytest.raises(wf.FormatError, match="no language None: give target_lang=, one of en, xx"):
            wf.from_nemo(source, lm)


def test_greedy_text_is_nemos(model, rng):
    """Without words, the text is that of NeMo's own greedy decoding, for scores of noise."""
    model, archive = model
    tokens = integrations.nemo_tokens(archive)
    decoder = tokens.decoder(check_scores="off")
    decoding = getattr(model, "ctc_decoding", None) or model.decoding
    scores = torch.from_numpy(rng.standard_normal((20, 30, len(tokens.names))).astype(np.float32)).mul(4).log_softmax(-1)
    theirs = decoding.ctc_decoder_predictions_tensor(scores, decoder_lengths=torch.full((20,), 30))
    for ours, hypothesis in zip(decoder.decode(scores, [30] * 20), theirs):
        assert tokens.text(word.text for word in ours.words) == " ".join(hypothesis.text.replace(" \u2047 ", "").split())  # how sentencepiece writes <unk>


def test_audio_to_words(model, lm):  # noqa: F811
    """Log-probabilities of the model for a batch of audio, with lengths, in frames of frame_shift."""
    model, archive = model
    audio, lengths = torch.from_numpy(np.random.default_rng(0).normal(0, 0.1, (2, 48000)).astype(np.float32)), torch.tensor([48000, 32000])
    with torch.no_grad():
        encoded, frames = model(input_signal=audio, input_signal_length=lengths)[:2]
        log_probs = encoded if encoded.shape[-1] == len(ctc_decoder(model).vocabulary) + 1 else model.ctc_decoder(encoder_output=encoded)
    decoder = wf.from_nemo(archive, lm, check_scores="off")
    for result, length, samples in zip(decoder.decode(log_probs, frames), frames.tolist(), lengths.tolist()):
        assert result.error is None and result.num_frames == length and abs(length * 0.08 - samples / 16000) < 0.09


def test_page(model, tmp_path):
    """A model that has learnt a sentence says it, by the code of docs/how-to/models.md."""
    made, archive = model
    if hasattr(made, "ctc_decoder"):
        pytest.skip("the page shows a model that is not a hybrid")
    made = nemo.ASRModel.restore_from(str(archive)).eval()
    trained_models.train(made.parameters(), lambda audio, lengths: made(input_signal=audio, input_signal_length=lengths)[:2], spell(made)(trained_models.SENTENCE), len(made.decoder.vocabulary))
    made.save_to(str(tmp_path / "model.nemo"))
    printed, expected = trained_models.run_block("models.md", "from nemo", tmp_path, {"wf": wf})
    assert printed == expected == trained_models.SENTENCE
