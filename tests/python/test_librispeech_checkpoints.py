"""examples/librispeech with stand-ins for released checkpoints: the files, names, shapes of vocabularies and kinds of tokenizers of the real ones, with few and random weights.

Each goes from the folder as it is published to words, with language model and phrases, through the program itself. Skipped without torch and a transformers that has these models. To run:
`pip install torch torchaudio transformers sentencepiece kaldi-native-fbank` beside tests/python/requirements.txt.
"""

import io
import json
import sys
import tarfile
import types

import numpy as np
import pytest
from conftest import CTC
from librispeech_files import CARDS, EXAMPLE, acoustic, card_texts, checkpoints, put, put_leaderboard, recipe, searches, soundfile, texts_in

import warpfst as wf
from warpfst import integrations

pytest_plugins = ["librispeech_files"]  # its fixtures
SAMPLES = [soundfile.read(CARDS / f"card{card}.wav", dtype="float32")[0] for card in (1, 2)]


def need(*names):
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    missing = [name for name in names if not hasattr(transformers, name)]
    if missing or not transformers.is_torch_available():
        pytest.skip(f"transformers without {', '.join(missing) or 'torch'}")
    torch.manual_seed(1)
    return transformers, torch


def pieces(size, first=(), last=()):
    """A BPE tokenizer of `size` pieces, as SentencePiece's: trained on a text, then filled up with made-up pieces. `first`, `last`: special tokens."""
    import tokenizers

    text = [line.lower() for line in (CTC / "text").read_text().split("\n")] + list(card_texts().values())
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=min(size - len(last), 400), special_tokens=[*first, "<unk>"], show_progress=False)
    made.train_from_iterator(text, trainer)
    state = json.loads(made.to_str())
    vocabulary = state["model"]["vocab"]
    for number in range(len(vocabulary), size - len(last)):
        vocabulary["\u2581zq" + "".join("abcdefghij"[int(digit)] for digit in str(number))] = number
    for name in last:
        vocabulary[name] = len(vocabulary)
    return tokenizers.Tokenizer.from_str(json.dumps(state))


def louder(net, torch, factor=30):
    """Random weights of the outputs that make tokens other than one win."""
    with torch.no_grad():
        net.weight.mul_(factor)
        net.bias.normal_(0, 1) if net.bias is not None else None


def granite(folder):
    """ibm-granite/granite-speech-5.0-470m-turboctc: 16,384 pieces, the blank in column 0; frames of 80 ms."""
    transformers, torch = need("GraniteSpeech5ForCTC")
    pytest.importorskip("torchaudio")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=pieces(16384, first=["<pad>"]), unk_token="<unk>", pad_token="<pad>")
    encoder = transformers.GraniteSpeech5EncoderConfig(hidden_size=32, intermediate_size=32, num_hidden_layers=3, num_attention_heads=2)
    net = transformers.GraniteSpeech5ForCTC(transformers.GraniteSpeech5CTCConfig(encoder_config=encoder.to_dict()))
    louder(net.ctc_head, torch)
    transformers.GraniteSpeech5Processor(transformers.GraniteSpeech5FeatureExtractor(), tokenizer).save_pretrained(folder)
    net.save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["vocab_size"] == len(tokenizer) == 16384
    return {"blank": 0, "columns": 16384, "frame_shift": 0.08}


def parakeet_ctc(folder):
    """nvidia/parakeet-ctc-0.6b in transformers' files: 1,024 pieces, the blank after them; frames of 80 ms."""
    transformers, torch = need("ParakeetForCTC", "ParakeetTokenizer")
    tokenizer = transformers.ParakeetTokenizer(tokenizer_object=pieces(1025, last=["<pad>"]), unk_token="<unk>", pad_token="<pad>")
    encoder = transformers.ParakeetEncoderConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, subsampling_conv_channels=8)
    net = transformers.ParakeetForCTC(transformers.ParakeetCTCConfig(vocab_size=1025, encoder_config=encoder.to_dict(), pad_token_id=1024))
    louder(net.ctc_head, torch)
    for part in (tokenizer, transformers.ParakeetFeatureExtractor(), net):
        part.save_pretrained(folder)
    return {"blank": 1024, "columns": 1025, "frame_shift": 0.08}


def parakeet_tdt(folder):
    """nvidia/parakeet-tdt-0.6b-v3 in transformers' files: 8,192 pieces with a token for padding among them, the blank after them, durations of 0 to 4."""
    transformers, torch = need("ParakeetForTDT", "ParakeetTokenizer")
    tokenizer = transformers.ParakeetTokenizer(tokenizer_object=pieces(8192, first=["<s>", "</s>", "<pad>"]), unk_token="<unk>", pad_token="<pad>")
    encoder = transformers.ParakeetEncoderConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, subsampling_conv_channels=8)
    net = transformers.ParakeetForTDT(transformers.ParakeetTDTConfig(encoder_config=encoder.to_dict(), decoder_hidden_size=16))
    louder(net.joint.head, torch)
    assert net.joint.head.weight.shape == (8193 + 5, 16)
    net.generation_config.decoder_start_token_id = 8192
    for part in (tokenizer, transformers.ParakeetFeatureExtractor(), net):
        part.save_pretrained(folder)
    return {"blank": 8192, "columns": 8193, "frame_shift": 0.08}


WAV2VEC2 = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "conv_dim": (8,) * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2}


def wav2vec2(folder):
    """facebook/wav2vec2-base-960h: 32 letters in upper case, | between words, the blank in column 0; frames of 20 ms."""
    transformers, torch = need("Wav2Vec2ForCTC")
    names = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ"]
    vocabulary = put(folder, "vocab.json", json.dumps({name: column for column, name in enumerate(names)}))
    net = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(vocab_size=32, **WAV2VEC2))
    louder(net.lm_head, torch)
    for part in (transformers.Wav2Vec2Processor(transformers.Wav2Vec2FeatureExtractor(), transformers.Wav2Vec2CTCTokenizer(str(vocabulary))), net):
        part.save_pretrained(folder)
    return {"blank": 0, "columns": 32, "frame_shift": 0.02}


def mms(folder):
    """facebook/mms-1b-all: a vocabulary for each language, and an adapter with its output layer in a file of its own."""
    transformers, torch = need("Wav2Vec2ForCTC")
    from safetensors.torch import save_file

    common = ["<pad>", "<s>", "</s>", "<unk>", "|"]
    letters = {"deu": "enirstahdulcgm\u00e4\u00f6\u00fc\u00df", "eng": "etaonihsrdlumwcfgypbvk'xjqz"}
    vocabulary = put(folder, "vocab.json", json.dumps({language: {name: column for column, name in enumerate([*common, *given])} for language, given in letters.items()}))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(vocabulary), target_lang="deu")
    net = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(vocab_size=len(common) + len(letters["deu"]), adapter_attn_dim=4, feat_extract_norm="layer", do_stable_layer_norm=True, **WAV2VEC2))
    features = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True)
    for part in (net, transformers.Wav2Vec2Processor(features, tokenizer)):
        part.save_pretrained(folder)
    put(folder, "vocab.json", vocabulary.read_bytes() if vocabulary.exists() else b"")
    for language, given in letters.items():
        net.lm_head = torch.nn.Linear(16, len(common) + len(given))
        louder(net.lm_head, torch)
        save_file({name: value.contiguous() for name, value in net._get_adapters().items()}, folder / f"adapter.{language}.safetensors")
    return {"blank": 0, "columns": 32, "frame_shift": 0.02}


def zipformer(folder):
    """Zengwei/icefall-asr-librispeech-zipformer-2023-05-15: exp/jit_script.pt, data/lang_bpe_500 with 500 pieces, the blank in column 0, a stateless decoder of two tokens."""
    torch, sentencepiece = pytest.importorskip("torch"), pytest.importorskip("sentencepiece")
    pytest.importorskip("kaldi_native_fbank")
    torch.manual_seed(1)
    lang = folder / "data/lang_bpe_500"
    lang.mkdir(parents=True)
    text = [line for line in (CTC / "text").read_text().upper().split("\n") if line] + [text.upper() for text in card_texts().values()]
    options = {"vocab_size": 500, "model_type": "unigram", "hard_vocab_limit": False, "unk_id": 2, "bos_id": -1, "eos_id": -1, "user_defined_symbols": ["<blk>", "<sos/eos>"], "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text), model_prefix=str(lang / "bpe"), **options)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(lang / "bpe.model"))
    names = [processor.id_to_piece(piece) for piece in range(processor.get_piece_size())]
    assert names[0] == "<blk>"
    put(lang, "tokens.txt", "".join(f"{name} {column}\n" for column, name in enumerate(names)))

    class Encoder(torch.nn.Module):
        """Four frames of features become one."""

        def __init__(self):
            super().__init__()
            self.proj = torch.nn.Linear(320, 24)

        def forward(self, features: torch.Tensor, feature_lengths: torch.Tensor):
            frames = features.shape[1] // 4
            stacked = features[:, : 4 * frames].reshape(features.shape[0], frames, 320)
            return self.proj(stacked), torch.div(feature_lengths, 4, rounding_mode="floor")

    class Decoder(torch.nn.Module):
        def __init__(self, size: int):
            super().__init__()
            self.embedding = torch.nn.Embedding(size, 16)
            self.conv = torch.nn.Conv1d(16, 16, 2, groups=4, bias=False)

        def forward(self, y: torch.Tensor) -> torch.Tensor:
            embedded = self.embedding(y.clamp(min=0)) * (y >= 0).unsqueeze(-1)
            return torch.relu(self.conv(embedded.permute(0, 2, 1)).permute(0, 2, 1))

    class Joiner(torch.nn.Module):
        def __init__(self, size: int):
            super().__init__()
            self.encoder_proj, self.decoder_proj, self.output_linear = torch.nn.Linear(24, 20), torch.nn.Linear(16, 20), torch.nn.Linear(20, size)

        def forward(self, encoder_out: torch.Tensor, decoder_out: torch.Tensor) -> torch.Tensor:
            return self.output_linear(torch.tanh(self.encoder_proj(encoder_out) + self.decoder_proj(decoder_out)))

    net = torch.nn.Module()
    net.encoder, net.decoder, net.joiner = Encoder(), Decoder(len(names)), Joiner(len(names))
    louder(net.joiner.output_linear, torch, 10)
    (folder / "exp").mkdir()
    torch.jit.script(net).save(str(folder / "exp/jit_script.pt"))
    return {"blank": 0, "columns": len(names), "frame_shift": None}


MODELS = {"granite": granite, "parakeet_ctc": parakeet_ctc, "parakeet_tdt": parakeet_tdt, "wav2vec2": wav2vec2, "mms": mms, "zipformer": zipformer}
LANGUAGE = {"mms": ["--language", "eng"]}


@pytest.mark.parametrize("name", MODELS)
def test_from_the_published_files_to_words(name, run, server, tmp_path):
    """In one command: greedy, words with the language model, and the same with phrases, on both kinds of sets. Phrases that are said are found more often."""
    folder = tmp_path / name
    folder.mkdir()
    about = MODELS[name](folder)
    put_leaderboard(server.folder)
    said = sorted({text.upper() for text in card_texts().values()})[:1]
    phrases = put(tmp_path, "phrases.txt", f"{said[0].lower()}\n\nnobody says zyzzyva\n")
    weights = "acoustic_scale=0.02,word_score=3"  # random scores count little, and words are longed for
    given = ["--sets", "test-clean", "esb/ami", "--normalizer", "plain", "--search", "greedy", "--search", f"warpfst:{weights}", "--search", f"warpfst:{weights},phrases={phrases}", *LANGUAGE.get(name, [])]
    _, report = run(*given, model=folder)
    assert [one["set"] for one in report["sets"]] == ["test-clean", "esb/ami"] and not report["left_out"]
    for one in report["sets"]:
        assert one["utterances"] == 5 and len(one["rows"]) == 3 and all(row["rtfx_search"] > 0 for row in one["rows"])
    files = sorted((tmp_path / "out/test-clean").glob("*.txt"))
    greedy, ours, boosted = (next(file for file in files if test(file.name)) for test in (lambda f: f.startswith("greedy"), lambda f: f.startswith("warpfst") and "phrases" not in f, lambda f: "phrases" in f))
    assert any(texts_in(greedy).values())
    known = set(searches.words_of(tmp_path / "cache/librispeech-lexicon.txt"))
    for file in (ours, boosted):
        words = " ".join(texts_in(file).values()).split()
        assert words and set(words) <= known
    counted = [sum(text.count(said[0]) for text in texts_in(file).values()) for file in (ours, boosted)]
    assert counted[1] > counted[0]
    model = acoustic.open_acoustic(str(folder), "auto", "cpu", False, 1, *[LANGUAGE[name][1]] if name in LANGUAGE else [])
    assert (model.tokens.blank, len(model.tokens.names)) == (about["blank"], about["columns"]) and (model.transducer is not None) == (name in ("parakeet_tdt", "zipformer"))
    together, alone = model.scores(SAMPLES), [model.scores([samples])[0] for samples in SAMPLES]
    assert [one.shape for one in together] == [one.shape for one in alone]
    if name != "wav2vec2":  # has no mask for padding
        assert all(np.abs(a - b).max() < 0.05 for a, b in zip(together, alone))
    if about["frame_shift"]:
        tokens = integrations.huggingface_tokens(folder, target_lang="eng" if name == "mms" else None)
        assert (tokens.blank, len(tokens.names), tokens.frame_shift) == (about["blank"], about["columns"], pytest.approx(about["frame_shift"]))
        assert abs(len(alone[0]) * about["frame_shift"] - len(SAMPLES[0]) / 16000) < 2 * about["frame_shift"]
        assert tokens.spell("seven") == model.tokens.spell("seven") is not None


@pytest.mark.parametrize("name", ["parakeet_ctc", "granite", "wav2vec2"])
def test_greedy_texts_are_the_toolkits(name, tmp_path):
    """Of CTC models: the text of transformers' own decoding of the best token of each frame."""
    MODELS[name](tmp_path)
    transformers, torch = need()
    model = acoustic.open_acoustic(str(tmp_path), "auto", "cpu", False, 1)
    found = searches.Greedy(searches.Vocabulary(model.tokens, None, None, tmp_path)).decode(model.scores(SAMPLES[:1]))
    net, features, tokenizer = (getattr(transformers, kind).from_pretrained(tmp_path) for kind in ("AutoModelForCTC", "AutoFeatureExtractor", "AutoTokenizer"))
    with torch.no_grad():
        best = net.eval()(**features(SAMPLES[:1], sampling_rate=16000, return_tensors="pt")).logits.argmax(-1)[0].tolist()
    once = [column for place, column in enumerate(best) if column != model.tokens.blank and (place == 0 or best[place - 1] != column)]
    names = [tokenizer.convert_ids_to_tokens(column) for column in once]
    text = "".join("" if name.startswith("<") else name for name in names)
    assert found[0] == " ".join(text.replace("\u2581", " ").replace("|", " ").split()) != ""


def test_tokens_of_a_transducer_are_those_of_its_own_decoding(tmp_path):
    """Parakeet TDT: greedy tokens of transformers' generate."""
    parakeet_tdt(tmp_path)
    transformers, torch = need()
    model = acoustic.open_acoustic(str(tmp_path), "auto", "cpu", False, 1)
    decoder = wf.Decoder(model.tokens.graph(topology="transducer"), transducer=model.transducer, greedy=True, max_symbols=10)
    ours = [word.text for word in decoder.decode(model.scores(SAMPLES[:1]))[0].words]
    net, features = transformers.ParakeetForTDT.from_pretrained(tmp_path).eval(), transformers.AutoFeatureExtractor.from_pretrained(tmp_path)
    with torch.no_grad():
        made = net.generate(**features(SAMPLES[:1], sampling_rate=16000, return_tensors="pt"))
    made = getattr(made, "sequences", made)[0].tolist()
    theirs = [model.tokens.names[column] for column in made if column not in (model.tokens.blank, net.config.pad_token_id)]
    assert ours == theirs != []


def test_an_archive_of_nemo(tmp_path, monkeypatch):
    """nvidia/parakeet-tdt-0.6b-v3 as a .nemo archive: SentencePiece, 8,192 pieces, an LSTM of two layers, durations of 0 to 4. NeMo itself is a stand-in with its calls."""
    torch, sentencepiece = pytest.importorskip("torch"), pytest.importorskip("sentencepiece")
    pytest.importorskip("yaml")
    torch.manual_seed(1)
    text = [line for line in (CTC / "text").read_text().split("\n") if line]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text), model_prefix=str(tmp_path / "tokenizer"), vocab_size=300, hard_vocab_limit=False, bos_id=-1, eos_id=-1, unk_id=0, minloglevel=2)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    size, lstm = processor.get_piece_size(), torch.nn.LSTM(16, 16, 2)
    state = {"decoder.prediction.embed.weight": torch.randn(size + 1, 16), **{f"decoder.prediction.dec_rnn.lstm.{name}": value.detach() for name, value in lstm.named_parameters()}}
    for name, rows, columns in (("joint.enc", 16, 24), ("joint.pred", 16, 16), ("joint.joint_net.2", size + 1 + 5, 16)):
        state[f"{name}.weight"], state[f"{name}.bias"] = torch.randn(rows, columns), torch.randn(rows)
    durations = {"tdt_durations": [0, 1, 2, 3, 4]}
    config = {"sample_rate": 16000, "preprocessor": {"window_stride": 0.01}, "encoder": {"subsampling_factor": 8}, "model_defaults": durations,
              "joint": {"jointnet": {"activation": "relu"}}, "tokenizer": {"type": "bpe", "model_path": "nemo:abc_tokenizer.model"}}  # fmt: skip
    weights = io.BytesIO()
    torch.save(state, weights)
    path = tmp_path / "parakeet-tdt-0.6b-v3.nemo"
    with tarfile.open(path, "w") as packed:
        for name, content in (("./model_config.yaml", json.dumps(config).encode()), ("./model_weights.ckpt", weights.getvalue()), ("./abc_tokenizer.model", (tmp_path / "tokenizer.model").read_bytes())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    tokens = integrations.nemo_tokens(path)
    assert (tokens.blank, len(tokens.names), tokens.frame_shift) == (size, size + 1, pytest.approx(0.08))
    integrations.export_nemo_transducer(path, tmp_path / "transducer.safetensors")

    class Net(torch.nn.Module):
        cfg = type("Config", (dict,), {"__getattr__": dict.__getitem__})(config)
        joint = types.SimpleNamespace(vocabulary=list(tokens.names[:-1]))
        decoder, tokenizer = types.SimpleNamespace(), types.SimpleNamespace(text_to_tokens=lambda text: processor.encode(text, out_type=str))

        def state_dict(self):
            return state

        def forward(self, input_signal, input_signal_length):
            frames = input_signal_length // 1280
            return torch.randn(len(frames), 24, int(frames.max()), generator=torch.Generator().manual_seed(2)), frames

    asr = types.ModuleType("nemo.collections.asr")
    asr.models = types.SimpleNamespace(ASRModel=types.SimpleNamespace(restore_from=lambda name, map_location: Net()))
    for name, module in (("nemo", types.ModuleType("nemo")), ("nemo.collections", types.ModuleType("nemo.collections")), ("nemo.collections.asr", asr)):
        monkeypatch.setitem(sys.modules, name, module)
    model = acoustic.open_acoustic(str(path), "auto", "cpu", False, 1)
    assert model.tokens.names == tokens.names and model.transducer.read_bytes() == (tmp_path / "transducer.safetensors").read_bytes()
    outputs = model.scores(SAMPLES)
    assert [len(one) for one in outputs] == [len(samples) // 1280 for samples in SAMPLES] and outputs[0].shape[1] == 24
    vocabulary = searches.Vocabulary(model.tokens, None, None, tmp_path, model.transducer)
    assert searches.Greedy(vocabulary).decode(outputs)[0]
    with pytest.raises(searches.NotApplicable, match="transducer"):
        searches.Pyctcdecode(vocabulary)
    search = searches.Warpfst(vocabulary, beam=12.0)
    for lm_weight, beam in ((0.25, 12.0), (2.0, 24.0)):  # on the scale of the sum of costs 48 and 12: it gets no narrower than 12
        search.set_weights(lm_weight, 0.0)
        assert (search._decoder.config["acoustic_scale"], search._decoder.config["beam"]) == (1 / lm_weight, beam)


def test_a_model_of_icefall_by_its_name(tmp_path, monkeypatch):
    """A name that is no folder is downloaded: only the files that are needed."""
    pytest.importorskip("torch")
    zipformer(tmp_path / "served")
    asked = {}
    hub = types.ModuleType("huggingface_hub")
    hub.snapshot_download = lambda name, allow_patterns: asked.update(name=name, patterns=allow_patterns) or str(tmp_path / "served")
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    model = acoustic.open_acoustic("Zengwei/icefall-asr-librispeech-zipformer-2023-05-15", "icefall", "cpu", False, 1)
    assert asked == {"name": "Zengwei/icefall-asr-librispeech-zipformer-2023-05-15", "patterns": ["exp/jit_script.pt", "data/lang_*/tokens.txt", "data/lang_*/bpe.model"]}
    assert model.tokens.names[0] == "<blk>" and model.scores(SAMPLES[:1])[0].shape[1] == 24
    kaldi, torch = pytest.importorskip("torchaudio.compliance.kaldi"), pytest.importorskip("torch")
    theirs = kaldi.fbank(torch.from_numpy(SAMPLES[0])[None], num_mel_bins=80, high_freq=-400, dither=0, snip_edges=False, sample_frequency=16000).numpy()
    ours = model._features(SAMPLES[0])
    assert ours.shape == theirs.shape and np.abs(ours - theirs).max() < 0.05
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match=r"expected exp/jit_script\.pt"):
        acoustic.open_acoustic(str(tmp_path / "empty"), "icefall", "cpu", False, 1)


def test_the_table_of_checkpoints(tmp_path, monkeypatch):
    """checkpoints.py runs the recipe of each checkpoint, goes on after an interruption, and fills the cells that were measured; README has none yet."""
    readme = (EXAMPLE / "README.md").read_text()
    assert checkpoints.table({}) in readme and "nothing yet" in readme
    runs = []

    def run_recipe(argv):
        args = recipe.arguments(argv)
        runs.append(args)
        if args.model.endswith("mms-1b-all"):
            raise SystemExit("interrupted")
        rows = [{"search": search, "wer": 10 * number + len(runs), "rtfx_search": 1234.5} for number, search in enumerate(args.search)]
        args.json.write_text(json.dumps({"sets": [{"set": one, "rows": rows} for one in args.sets]}))

    monkeypatch.setattr(checkpoints.recipe, "main", run_recipe)
    target = put(tmp_path, "README.md", readme)
    given = ["--cache", str(tmp_path), "--readme", str(target), "--sets", "test-clean", "esb/ami"]
    with pytest.raises(SystemExit, match="interrupted"):
        checkpoints.main([*given, "--phrases", "names.txt", "--device", "cuda"])
    assert [args.model for args in runs] == [words[1] for words in list(checkpoints.CHECKPOINTS.values())[:5]] and runs[4].language == "eng"
    assert all(args.search == ["greedy", "warpfst", "warpfst:phrases=names.txt"] and args.tune == "dev-other" and args.device == "cuda" for args in runs)
    assert target.read_text() == readme
    checkpoints.main([*given, "--only", "Zipformer transducer"])
    assert runs[5].toolkit == "icefall" and runs[5].search == ["greedy", "warpfst"]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in target.read_text().splitlines() if line.startswith("|") and line.count("|") == 14]
    cells = {(name, search): values for name, (_, search, *values) in zip([name for name in checkpoints.CHECKPOINTS for _ in range(3)], lines[2:])}
    assert cells["Granite TurboCTC 470M", "greedy"] == ["1.00", "", "1.00", *[""] * 7, "1,234"] and cells["Granite TurboCTC 470M", "3-gram, phrases"][0] == "21.00"
    assert not any(cells["MMS 1B", "greedy"]) and cells["Zipformer transducer", "3-gram"][2] == "16.00" and not any(cells["Zipformer transducer", "3-gram, phrases"])
    count = len(runs)
    monkeypatch.setattr(checkpoints.recipe, "main", lambda argv: runs.append(recipe.arguments(argv)))
    checkpoints.main(given)
    assert [args.model for args in runs[count:]] == ["facebook/mms-1b-all"]  # the others have results
    checkpoints.main([*given, "--fill"])
    assert len(runs) == count + 1
