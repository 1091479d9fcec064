"""Models of NeMo and transformers in examples/librispeech. Skipped without torch and transformers; NeMo is a stand-in with its calls."""

import json
import re
import sys
import types

import numpy as np
import pytest
from conftest import CTC, ROOT
from librispeech_files import CARDS, acoustic, put, searches, soundfile, speech_sets, texts_in

pytest_plugins = ["librispeech_files"]  # its fixtures


def test_a_model_of_nemo(monkeypatch):
    """A stand-in for NeMo, with its calls: a hybrid model, whose forward returns the encoder's output, and one with CTC alone. The frames of each piece are cut to its length."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        cfg = type("Config", (dict,), {"__getattr__": dict.__getitem__})(sample_rate=16000)

        def forward(self, input_signal, input_signal_length):
            frames = input_signal_length // 1000
            output = torch.stack([torch.eye(3)[torch.arange(int(frames.max())) % 3].clamp_min(1e-3).log() for _ in frames])
            return (output, frames) if self.hybrid else (output, frames, None)

    head = types.SimpleNamespace(vocabulary=["a", "b"])
    models = {"ctc.nemo": Net(), "nvidia/hybrid": Net()}
    models["ctc.nemo"].hybrid, models["ctc.nemo"].decoder = False, head
    models["nvidia/hybrid"].hybrid = True
    models["nvidia/hybrid"].ctc_decoder = type("Head", (), {"vocabulary": ["a", "b"], "__call__": lambda self, encoder_output: encoder_output.flip(-1)})()
    loader = types.SimpleNamespace(restore_from=lambda name, map_location: models[name], from_pretrained=lambda name, map_location: models[name])
    asr = types.ModuleType("nemo.collections.asr")
    asr.models = types.SimpleNamespace(ASRModel=loader)
    for name, module in (("nemo", types.ModuleType("nemo")), ("nemo.collections", types.ModuleType("nemo.collections")), ("nemo.collections.asr", asr)):
        monkeypatch.setitem(sys.modules, name, module)
    for name, toolkit, order in (("ctc.nemo", "auto", "ab"), ("nvidia/hybrid", "nemo", " ba")):
        model = acoustic.open_acoustic(name, toolkit, "cpu", False, 1)
        assert model.tokens.names == ("a", "b", "<blank>") and model.sample_rate == 16000
        long, short = model.scores([np.zeros(3000, np.float32), np.zeros(2000, np.float32)])
        assert (long.shape, short.shape) == ((3, 3), (2, 3)) and long.dtype == np.float32
        greedy = searches.Greedy(searches.Vocabulary(model.tokens, None, None, ROOT))
        assert greedy.decode([long]) == [order.strip()]


def need_transformers():
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    if not transformers.is_torch_available():
        pytest.skip("this torch is too old for this transformers")
    torch.manual_seed(1)
    return transformers, torch


def small_wav2vec2(transformers, folder, **options):
    """A random model and its processor, saved in the folder."""
    names = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ"]
    vocabulary = put(folder, "vocab.json", json.dumps({name: column for column, name in enumerate(names)}))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "conv_dim": (8,) * 7, "num_conv_pos_embeddings": 16}
    net = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(vocab_size=len(names), num_conv_pos_embedding_groups=2, **sizes, **options)).eval()
    net.lm_head.weight.data *= 50
    features = transformers.Wav2Vec2FeatureExtractor(return_attention_mask="feat_extract_norm" in options)
    processor = transformers.Wav2Vec2Processor(feature_extractor=features, tokenizer=transformers.Wav2Vec2CTCTokenizer(str(vocabulary)))
    for part in (net, processor):
        part.save_pretrained(folder)
    return net, processor


def small_parakeet(transformers, folder):
    if not hasattr(transformers, "ParakeetForCTC"):
        pytest.skip("this transformers has no Parakeet")
    import tokenizers

    backend = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    backend.train_from_iterator((CTC / "text").read_text().lower().split("\n"), tokenizers.trainers.BpeTrainer(vocab_size=100, special_tokens=["<unk>"], show_progress=False))
    tokenizer = transformers.ParakeetTokenizer(tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>")
    encoder = transformers.ParakeetEncoderConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, subsampling_conv_channels=8)
    config = transformers.ParakeetCTCConfig(vocab_size=len(tokenizer), encoder_config=encoder.to_dict(), pad_token_id=len(tokenizer) - 1)
    for part in (tokenizer, transformers.ParakeetFeatureExtractor(), transformers.ParakeetForCTC(config)):
        part.save_pretrained(folder)


@pytest.mark.parametrize("kind", ["wav2vec2", "parakeet"])
def test_batches_of_a_model_of_transformers(kind, tmp_path, rng):
    """Models that mask padding give each utterance the scores that it has alone, and as many frames."""
    transformers, _ = need_transformers()
    if kind == "wav2vec2":
        small_wav2vec2(transformers, tmp_path, feat_extract_norm="layer", do_stable_layer_norm=True)
    else:
        small_parakeet(transformers, tmp_path)
    model = acoustic.open_acoustic(str(tmp_path), "auto", "cpu", False, 1)
    pieces = [(0.1 * rng.standard_normal(count)).astype(np.float32) for count in (32000, 24000, 7777)]
    for piece, together in zip(pieces, model.scores(pieces)):
        (alone,) = model.scores([piece])
        assert together.shape == alone.shape == (len(alone), len(model.tokens.names)) and np.abs(together - alone).max() < 1e-3
    assert model.tokens.spell("MARK") is not None


def test_a_model_of_transformers(run, tmp_path):
    """A random wav2vec2 in a folder: greedy texts are those of its processor."""
    transformers, torch = need_transformers()
    folder = tmp_path / "wav2vec2"
    net, processor = small_wav2vec2(transformers, folder)
    run("--sets", "test-clean", "--search", "greedy", "--search", "warpfst", "--batch", "1", model=folder)
    found = texts_in(tmp_path / "out/test-clean/greedy.txt")
    samples = soundfile.read(CARDS / "card1.wav", dtype="float32")[0]
    with torch.no_grad():
        best = net(**processor(samples, sampling_rate=16000, return_tensors="pt")).logits.argmax(-1)
    assert found["61-70968-0000"] == speech_sets.plain_text(re.sub("<[^>]+>", "", processor.batch_decode(best)[0])) != ""
