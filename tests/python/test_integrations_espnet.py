"""warpfst.integrations with the real ESPnet: small random models in a recipe's folders, whose config.yaml ESPnet writes.

Skipped without ESPnet, which is large. To run: `pip install espnet torch` beside tests/python/requirements.txt.
"""

import itertools

import numpy as np
import pytest
from test_integrations import CHARACTERS, check, lm, pieces, sentences  # noqa: F401

import warpfst as wf
from warpfst import integrations

asr = pytest.importorskip("espnet2.tasks.asr", reason="needs espnet", exc_type=ImportError)
import torch
import trained_models
from espnet2.text.build_tokenizer import build_tokenizer
from espnet2.text.token_id_converter import TokenIDConverter

ENCODER = {"output_size": 16, "attention_heads": 2, "linear_units": 16, "num_blocks": 1}


class Recipe:
    """A folder with data/ and exp/, and a random model in it. `spell`: ESPnet's own way from a sentence to columns."""

    def __init__(self, folder, unit, names, monkeypatch, bpe_model=None):
        self.folder, self.names = folder, names
        (folder / "data" / unit).mkdir(parents=True)
        (folder / "data" / unit / "tokens.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        flags = ["--token_type", unit, "--token_list", f"data/{unit}/tokens.txt"]
        if bpe_model is not None:
            (folder / "data" / unit / "bpe.model").write_bytes(bpe_model.read_bytes())
            flags += ["--bpemodel", f"data/{unit}/bpe.model"]
        sizes = [word for name, value in ENCODER.items() for word in ("--encoder_conf", f"{name}={value}")]
        model = ["--encoder", "transformer", *sizes, "--model_conf", "ctc_weight=1.0", "--frontend_conf", "hop_length=160", "--normalize", "utterance_mvn"]
        monkeypatch.chdir(folder)  # names are relative to the recipe, as when its scripts run
        asr.ASRTask.main(cmd=["--dry_run", "true", "--output_dir", "exp/asr_tiny", "--ngpu", "0", *flags, *model])
        self.config = folder / "exp" / "asr_tiny" / "config.yaml"
        torch.manual_seed(1)
        self.model, _ = asr.ASRTask.build_model_from_file(self.config)
        self.model.eval()
        self.tokenizer = build_tokenizer(unit, bpemodel=bpe_model and str(bpe_model))
        self.converter = TokenIDConverter(names)

    def spell(self, sentence):
        return self.converter.tokens2ids(self.tokenizer.text2tokens(sentence))

    def greedy_text(self, columns):
        """Of the best column of each frame, without special tokens."""
        names = self.converter.ids2tokens([column for column, _ in itertools.groupby(columns) if column != 0])
        return " ".join(self.tokenizer.tokens2text(name for name in names if name not in ("<unk>", "<sos/eos>")).split())


@pytest.fixture(params=["bpe", "char"])
def recipe(request, pieces, tmp_path, monkeypatch):  # noqa: F811
    if request.param == "char":
        return Recipe(tmp_path, "char", ["<blank>", "<unk>", "<space>", *CHARACTERS, "<sos/eos>"], monkeypatch)
    path, processor = pieces(model_type="unigram")
    return Recipe(tmp_path, "bpe", ["<blank>", "<unk>", *(processor.id_to_piece(i) for i in range(3, processor.get_piece_size())), "<sos/eos>"], monkeypatch, path)


def test_files_of_a_recipe(recipe, lm, sentences, rng, monkeypatch):  # noqa: F811
    """config.yaml, from within the recipe and from elsewhere, and tokens.txt decode scores that spell sentences with ESPnet's own tokenizer."""
    for folder, source in ((recipe.folder, "exp/asr_tiny/config.yaml"), ("/", recipe.config), ("/", *recipe.folder.glob("data/*/tokens.txt"))):
        monkeypatch.chdir(folder)
        tokens = integrations.espnet_tokens(source)
        assert (tokens.blank, tokens.names) == (0, tuple(recipe.names))
        check(wf.from_espnet(source, lm=lm), recipe.spell, len(recipe.names), 0, sentences, rng)


def test_greedy_text_is_espnets(recipe, rng):
    tokens = integrations.espnet_tokens(recipe.config)
    decoder = tokens.decoder(check_scores="off")
    scores = torch.from_numpy(rng.standard_normal((20, 30, len(tokens.names))).astype(np.float32)).mul(4).log_softmax(-1)
    for ours, columns in zip(decoder.decode(scores, [30] * 20), scores.argmax(-1).tolist()):
        assert tokens.text(word.text for word in ours.words) == recipe.greedy_text(columns)


def test_audio_to_words(recipe, lm):  # noqa: F811
    """Log-probabilities of the model's CTC part for a batch of audio, with lengths, in frames of frame_shift."""
    audio, lengths = torch.from_numpy(np.random.default_rng(0).normal(0, 0.1, (2, 48000)).astype(np.float32)), torch.tensor([48000, 32000])
    with torch.no_grad():
        encoded, frames = recipe.model.encode(audio, lengths)
        log_probs = recipe.model.ctc.log_softmax(encoded)
    tokens = integrations.espnet_tokens(recipe.config)
    decoder = tokens.decoder(lm, check_scores="off")
    assert tokens.frame_shift == 0.04
    for result, length, samples in zip(decoder.decode(log_probs, frames), frames.tolist(), lengths.tolist()):
        assert result.error is None and result.num_frames == length and abs(length * tokens.frame_shift - samples / 16000) < 0.09


def test_page(recipe):
    """A model that has learnt a sentence says it, by the code of docs/how-to/models.md."""

    def log_probs_of(audio, lengths):
        encoded, frames = recipe.model.encode(audio, lengths)
        return recipe.model.ctc.log_softmax(encoded), frames

    trained_models.train(recipe.model.parameters(), log_probs_of, recipe.spell(trained_models.SENTENCE), 0)
    (recipe.folder / "exp" / "asr").symlink_to("asr_tiny")
    torch.save(recipe.model.state_dict(), recipe.folder / "exp" / "asr" / "valid.acc.best.pth")
    printed, expected = trained_models.run_block("models.md", "from espnet2", recipe.folder, {"wf": wf})
    assert printed == expected == trained_models.SENTENCE
