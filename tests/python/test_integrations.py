"""warpfst.integrations: token files made by the real sentencepiece and tokenizers, and in the formats of the toolkits, decode to the words that scores spell.

test_integrations_transformers.py does the same with objects of transformers.
"""

import io
import json
import sys
import tarfile
import types

import numpy as np
import pytest
import sentencepiece
import tokenizers
import yaml
from conftest import CTC

import warpfst as wf
from warpfst import integrations

LM = CTC / "lm3.arpa.gz"
CHARACTERS = list("ETAONIHSRDLUMWCFGYPBVK'XJQZ")


@pytest.fixture(scope="session")
def lm():
    return wf.LM.read(LM)


@pytest.fixture(scope="session")
def sentences(lm):
    """Real transcripts whose words are all in the language model."""
    texts = [line.split(maxsplit=1)[1] for line in (CTC / "text").read_text().splitlines()]
    return [text for text in texts if all(word in lm.words for word in text.split())]


@pytest.fixture(scope="session")
def pieces(tmp_path_factory, sentences):
    """make(**options) -> (path, processor) of a sentencepiece model that is trained on the transcripts."""
    made = {}

    def make(**options):
        key = repr(sorted(options.items()))
        if key not in made:
            folder = tmp_path_factory.mktemp("pieces")
            options = {"vocab_size": 120, "hard_vocab_limit": False, "character_coverage": 1.0, "minloglevel": 2, **options}
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_prefix=str(folder / "bpe"), **options)
            made[key] = folder / "bpe.model", sentencepiece.SentencePieceProcessor(model_file=str(folder / "bpe.model"))
        return made[key]

    return make


def scores_of(columns, num_columns, blank, rng):
    """Log-probabilities of noise in which the best path is `columns`, each for one or two frames, with blanks between equal neighbours and at random."""
    frames = [blank]
    for i, column in enumerate(columns):
        if (i and columns[i - 1] == column) or rng.random() < 0.3:
            frames.append(blank)
        frames += [column] * int(rng.integers(1, 3))
    logits = rng.standard_normal((len(frames) + 1, num_columns)).astype(np.float32)
    logits[np.arange(len(frames) + 1), [*frames, blank]] += 15
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def check(decoder, spell, num_columns, blank, sentences, rng):
    """The scores of 20 sentences, spelled with spell(sentence) -> columns, decode to these sentences."""
    chosen = [sentences[int(i)] for i in rng.choice(len(sentences), 20, replace=False)]
    results = decoder.decode([scores_of(spell(sentence), num_columns, blank, rng) for sentence in chosen])
    assert [result.text for result in results] == chosen


def write(folder, files):
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return folder


def arpa_of(words):
    """An ARPA file of unigrams, from word -> log10 P."""
    lines = "".join(f"{log10}\t{word}\n" for word, log10 in {"</s>": -1, **words}.items())
    return f"\\data\\\nngram 1={len(words) + 2}\n\n\\1-grams:\n-99\t<s>\n{lines}\n\\end\\\n"


def characters(names, separator):
    return lambda sentence: [names.index(separator if character == " " else character) for character in sentence]


# --- HuggingFace ---


def wav2vec2_vocabulary():
    return {name: column for column, name in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", *CHARACTERS])}


def test_huggingface_vocabulary(tmp_path, sentences, lm, rng):
    """vocab.json in any order, with the blank in the last column, a frame shift, and added tokens that the model has no columns for."""
    names = ["|", *CHARACTERS, "<unk>", "[PAD]"]
    folder = write(
        tmp_path,
        {
            "vocab.json": {name: names.index(name) for name in sorted(names)},
            "added_tokens.json": {"<s>": len(names), "</s>": len(names) + 1},
            "tokenizer_config.json": {"pad_token": {"content": "[PAD]"}, "word_delimiter_token": "|", "tokenizer_class": "Wav2Vec2CTCTokenizer"},
            "config.json": {"conv_stride": [5, 2, 2, 2, 2, 2, 2], "vocab_size": len(names)},
            "preprocessor_config.json": {"sampling_rate": 16000},
        },
    )
    tokens = integrations.huggingface_tokens(folder)
    assert tokens.blank == len(names) - 1 and tokens.separator == "|" and tokens.frame_shift == 0.02
    assert tokens.names == tuple(names)
    check(wf.from_huggingface(folder, lm), characters(names, "|"), len(names), names.index("[PAD]"), sentences, rng)
    check(wf.from_huggingface(str(folder / "vocab.json"), str(LM)), characters(names, "|"), len(names), names.index("[PAD]"), sentences, rng)


def test_languages_of_mms(tmp_path):
    vocabulary = {"eng": {"<pad>": 0, "|": 1, "a": 2}, "deu": {"<pad>": 0, "|": 1, "ä": 2}}
    folder = write(tmp_path, {"vocab.json": vocabulary})
    assert integrations.huggingface_tokens(folder, target_lang="deu").names == ("<pad>", "|", "ä")
    with pytest.raises(wf.FormatError, match="vocab.json: no language None: give target_lang=, one of deu, eng"):
        integrations.huggingface_tokens(folder)
    write(tmp_path, {"tokenizer_config.json": {"target_lang": "eng"}})
    assert integrations.huggingface_tokens(folder).names == ("<pad>", "|", "a")


def test_config_of_another_language(tmp_path):
    """config.json of MMS tells the number of tokens of one language; another has more, and all of them are columns."""
    listed = {"eng": ["<pad>", "|", "a"], "amh": ["<pad>", "|", *map(chr, range(0x1200, 0x1380))]}
    vocabulary = {language: {name: column for column, name in enumerate(names)} for language, names in listed.items()}
    folder = write(tmp_path, {"vocab.json": vocabulary, "config.json": {"vocab_size": 3, "pad_token_id": 0}, "tokenizer_config.json": {"target_lang": "eng"}})
    for language in (None, "eng", "amh"):
        assert integrations.huggingface_tokens(folder, target_lang=language).names == tuple(listed[language or "eng"])


def test_padding_of_the_config(tmp_path):
    """The model's pad_token_id is its blank, whatever the tokenizer calls padding; but no letter, and no column that there is not."""
    names = ["a", "|", "[PAD]", "<pad>"]
    folder = write(tmp_path, {"vocab.json": {name: column for column, name in enumerate(names)}})
    assert integrations.huggingface_tokens(folder).blank == 3
    for padding, blank in ((2, 2), (3, 3), (0, 3), (4, 3), (None, 3), ("2", 3), (True, 3)):
        write(tmp_path, {"config.json": {"pad_token_id": padding}})
        assert integrations.huggingface_tokens(folder).blank == blank, padding
    write(tmp_path, {"vocab.json": {"a": 0, "-": 1}, "config.json": {"pad_token_id": 1}})
    assert integrations.huggingface_tokens(folder).blank == 1  # nothing else is a blank


@pytest.mark.parametrize("pad_listed", [True, False])
def test_huggingface_subwords(tmp_path, sentences, lm, rng, pad_listed):
    """tokenizer.json as of Parakeet-CTC: byte-pair or unigram pieces of the library tokenizers, the blank in the last column."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=150, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(sentences, trainer)
    blank = tokenizer.get_vocab_size()
    if pad_listed:
        tokenizer.add_special_tokens(["<pad>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    write(
        tmp_path,
        {
            "tokenizer_config.json": {"pad_token": "<pad>"},
            "config.json": {"pad_token_id": blank, "encoder_config": {"subsampling_factor": 8}},
            "preprocessor_config.json": {"sampling_rate": 16000, "hop_length": 160},
        },
    )
    tokens = integrations.huggingface_tokens(tmp_path)
    assert tokens.blank == blank and len(tokens.names) == blank + 1 and tokens.frame_shift == 0.08
    check(tokens.decoder(lm), lambda sentence: tokenizer.encode(sentence).ids, blank + 1, blank, sentences, rng)


def test_huggingface_subwords_of_granite_and_of_transducers(tmp_path, sentences, lm, rng):
    """The blank is the first column, and frames are halved in two layers; a transducer has a token for padding and another for the blank."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=150, special_tokens=["<pad>", "<unk>"], show_progress=False)
    tokenizer.train_from_iterator(sentences, trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    size, sampling = tokenizer.get_vocab_size(), {"sampling_rate": 16000, "hop_length": 160}
    config = {"pad_token_id": 0, "encoder_config": {"subsample_layers": [0, 1]}}
    write(tmp_path, {"tokenizer_config.json": {"pad_token": "<pad>"}, "config.json": config, "preprocessor_config.json": sampling})
    tokens = integrations.huggingface_tokens(tmp_path)
    assert (tokens.blank, len(tokens.names), tokens.frame_shift) == (0, size, 0.08)
    check(tokens.decoder(lm), lambda sentence: tokenizer.encode(sentence).ids, size, 0, sentences, rng)
    for halved in (None, 2, ["0"] * 16):
        write(tmp_path, {"config.json": {**config, "encoder_config": {"subsample_layers": halved}}})
        assert integrations.huggingface_tokens(tmp_path).frame_shift is None
    write(tmp_path, {"config.json": {"pad_token_id": 0, "blank_token_id": size}})
    tokens = integrations.huggingface_tokens(tmp_path)
    assert (tokens.blank, len(tokens.names)) == (size, size + 1)


# --- files of pieces: sentencepiece, NeMo, ESPnet, icefall, WeNet ---


@pytest.mark.parametrize(("model_type", "blank"), [("unigram", "last"), ("bpe", "first")])
def test_sentencepiece(pieces, sentences, lm, rng, model_type, blank):
    path, processor = pieces(model_type=model_type)
    size = processor.get_piece_size()
    column, shift = (0, 1) if blank == "first" else (size, 0)
    for source in (path, processor):
        decoder = wf.from_sentencepiece(source, blank, lm)
        check(decoder, lambda sentence: [shift + piece for piece in processor.encode(sentence)], size + 1, column, sentences, rng)


def test_espnet(tmp_path, pieces, sentences, lm, rng):
    path, processor = pieces(model_type="unigram")
    names = ["<blank>", "<unk>", *(processor.id_to_piece(i) for i in range(3, processor.get_piece_size())), "<sos/eos>"]
    (tmp_path / "bpe.model").write_bytes(path.read_bytes())
    write(tmp_path, {"tokens.txt": "".join(f"{name}\n" for name in names), "config.yaml": yaml.safe_dump({"token_list": names, "bpemodel": "bpe.model"})})

    def spell(sentence):
        return [names.index(piece) for piece in processor.encode(sentence, out_type=str)]

    for file in ("tokens.txt", "config.yaml"):
        check(wf.from_espnet(tmp_path / file, lm=lm), spell, len(names), 0, sentences, rng)


def test_espnet_characters(tmp_path, sentences, lm, rng):
    names = ["<blank>", "<unk>", "<space>", *CHARACTERS, "<sos/eos>"]
    write(tmp_path, {"tokens.txt": "".join(f"{name}\n" for name in names)})
    check(wf.from_espnet(tmp_path / "tokens.txt", lm=lm), characters(names, "<space>"), len(names), 0, sentences, rng)


def test_icefall_pieces(tmp_path, pieces, sentences, lm, rng):
    """lang_bpe_500: the blank is a piece, and tokens.txt ends with disambiguation symbols."""
    path, processor = pieces(model_type="unigram", user_defined_symbols=["<blk>", "<sos/eos>"], unk_id=2, bos_id=-1, eos_id=-1)
    size = processor.get_piece_size()
    assert processor.piece_to_id("<blk>") == 0
    lines = [f"{processor.id_to_piece(i)} {i}\n" for i in range(size)] + [f"#0 {size}\n", f"#1 {size + 1}\n"]
    (tmp_path / "bpe.model").write_bytes(path.read_bytes())
    write(tmp_path, {"tokens.txt": "".join(lines)})
    assert len(integrations.icefall_tokens(tmp_path).names) == size
    check(wf.from_icefall(tmp_path, lm=lm), processor.encode, size, 0, sentences, rng)
    check(wf.from_sentencepiece(path, 0, lm), processor.encode, size, 0, sentences, rng)


def test_icefall_phones_of_real_scores(tmp_path, ctc_graph, ctc_scores):
    """lang_phone: <eps> in column 0 is the blank. Real scores decode as with the graph that is built by hand."""
    table = (CTC / "tokens_phone.txt").read_text().replace("<blk> 0", "<eps> 0")
    write(tmp_path, {"tokens.txt": table + "#0 40\n#1 41\n", "lexicon.txt": (CTC / "lexicon_phone.txt").read_text()})
    ours = wf.from_icefall(tmp_path, lm=LM, acoustic_scale=0.7).decode(list(ctc_scores.values()))
    plain = wf.Decoder(ctc_graph, acoustic_scale=0.7, blank=0).decode(list(ctc_scores.values()))
    assert [result.text for result in ours] == [result.text for result in plain]
    assert sum(len(result.words) for result in ours) > 50


def test_wenet(tmp_path, pieces, sentences, lm, rng):
    path, processor = pieces(model_type="bpe")
    names = ["<blank>", "<unk>", *(processor.id_to_piece(i) for i in range(3, processor.get_piece_size())), "<sos/eos>"]
    (tmp_path / "train_bpe120.model").write_bytes(path.read_bytes())
    write(tmp_path, {"units.txt": "".join(f"{name} {column}\n" for column, name in enumerate(names))})
    decoder = wf.from_wenet(tmp_path, lm=lm)
    check(decoder, lambda sentence: [names.index(piece) for piece in processor.encode(sentence, out_type=str)], len(names), 0, sentences, rng)


def test_wenet_characters(tmp_path, sentences, lm, rng):
    """Models of characters write a space as U+2581 (CharTokenizer of WeNet), which no word begins with."""
    names = ["<blank>", "<unk>", "\u2581", *CHARACTERS, "<sos/eos>"]
    write(tmp_path, {"units.txt": "".join(f"{name} {column}\n" for column, name in enumerate(names))})
    check(wf.from_wenet(tmp_path, lm=lm), characters(names, "\u2581"), len(names), 0, sentences, rng)
    tokens = integrations.wenet_tokens(tmp_path)
    result = tokens.decoder().decode(scores_of(characters(names, "\u2581")("TEA EAT"), len(names), 0, rng))[0]
    assert tokens.text(word.text for word in result.words) == "TEA EAT" and tokens.spell_text("TEA EAT") == [*"TEA", "\u2581", *"EAT"]


def test_languages_without_spaces(tmp_path, rng):
    """WeNet's Chinese characters, with words of several characters."""
    names = ["<blank>", "<unk>", *"今天气很好不", "<sos/eos>"]
    write(tmp_path, {"units.txt": "".join(f"{name} {column}\n" for column, name in enumerate(names))})
    decoder = wf.from_wenet(tmp_path, words=["今天", "天气", "很", "好"])
    scores = scores_of([names.index(character) for character in "今天天气很好"], len(names), 0, rng)
    assert decoder.decode(scores)[0].text == "今天 天气 很 好"


def nemo_archive(path, files, mode="w:gz", prefix="./"):
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("hybrid", [False, True])
def test_nemo_pieces(tmp_path, pieces, sentences, lm, rng, hybrid):
    path, processor = pieces(model_type="bpe")
    size = processor.get_piece_size()
    decoder = {"vocabulary": [processor.id_to_piece(i) for i in range(size)], "num_classes": size}
    config = {
        "preprocessor": {"window_stride": 0.01},
        "encoder": {"subsampling_factor": 8},
        "tokenizer": {"type": "bpe", "model_path": "nemo:0123_tokenizer.model", "vocab_path": "nemo:0123_vocab.txt"},
        **({"decoder": {"prednet": {}}, "aux_ctc": {"decoder": decoder}} if hybrid else {"decoder": decoder}),
    }
    archive = nemo_archive(tmp_path / "m.nemo", {"model_config.yaml": yaml.safe_dump(config).encode(), "0123_tokenizer.model": path.read_bytes(), "w.ckpt": b"x"})
    tokens = integrations.nemo_tokens(archive)
    assert tokens.blank == size and tokens.frame_shift == 0.08
    check(wf.from_nemo(archive, lm), processor.encode, size + 1, size, sentences, rng)
    tokenizer = types.SimpleNamespace(text_to_tokens=lambda text: processor.encode(text, out_type=str))
    part = types.SimpleNamespace(vocabulary=decoder["vocabulary"])
    model = types.SimpleNamespace(tokenizer=tokenizer, **({"ctc_decoder": part, "decoder": object()} if hybrid else {"decoder": part}))
    check(wf.from_nemo(model, lm), processor.encode, size + 1, size, sentences, rng)
    transducer = integrations.nemo_tokens(types.SimpleNamespace(tokenizer=tokenizer, decoder=object(), joint=part))
    assert (transducer.names, transducer.blank) == (tokens.names, tokens.blank)
    with pytest.raises(TypeError, match=r"joint\.vocabulary"):
        integrations.nemo_tokens(types.SimpleNamespace(decoder=object()))


def test_nemo_characters(tmp_path, sentences, lm, rng):
    """Lower-case characters with a space; the words of the model are in upper case."""
    names = [" ", *(character.lower() for character in CHARACTERS)]
    config = yaml.safe_dump({"decoder": {"vocabulary": names}}).encode()
    for archive in (nemo_archive(tmp_path / "a.nemo", {"model_config.yaml": config}), nemo_archive(tmp_path / "b.nemo", {"model_config.yaml": config}, "w", "")):
        spell = characters(names, " ")
        check(wf.from_nemo(archive, lm), lambda sentence: spell(sentence.lower()), len(names) + 1, len(names), sentences, rng)  # noqa: B023


def test_torchaudio(sentences, lm, rng):
    labels = ("-", "|", *CHARACTERS)
    bundle = types.SimpleNamespace(get_labels=lambda: labels)
    for source in (bundle, labels):
        check(wf.from_torchaudio(source, lm), characters(list(labels), "|"), len(labels), 0, sentences, rng)
    assert integrations.torchaudio_tokens([*labels, "*"]).spell("A*") is None


def test_bundles_of_torchaudio(lm, rng):
    """The labels of the real bundles."""
    pipelines = pytest.importorskip("torchaudio.pipelines", reason="needs torchaudio", exc_type=ImportError)
    bundles = {name: bundle for name, bundle in vars(pipelines).items() if hasattr(bundle, "get_labels") and not isinstance(bundle, type)}
    assert len(bundles) > 10
    for name, bundle in bundles.items():
        labels = list(bundle.get_labels())
        case = str.upper if "E" in labels else str.lower
        text = case("TEA|EAT" if "|" in labels else "TEAEAT")
        scores = scores_of([labels.index(letter) for letter in text], len(labels), 0, rng)
        assert wf.from_torchaudio(bundle, words=["TEA", "eat"]).decode(scores)[0].text == "TEA eat", name
        if case is str.upper:
            assert wf.from_torchaudio(bundle, lm).decode(scores_of(characters(labels, "|")("MARK IS GOING"), len(labels), 0, rng))[0].text == "MARK IS GOING", name


# --- words ---


@pytest.fixture
def letters(tmp_path):
    return integrations.huggingface_tokens(write(tmp_path, {"vocab.json": wav2vec2_vocabulary()}))


def scores_for(tokens, sentence, rng):
    return scores_of(characters(list(tokens.names), "|")(sentence), len(tokens.names), tokens.blank, rng)


def test_sources_of_words(letters, tmp_path, rng):
    scores = scores_for(letters, "TEA EAT", rng)
    write(tmp_path, {"lexicon.txt": "tea T E A\neat E A T\n"})
    assert letters.decoder(words=["TEA", "EAT"]).decode(scores)[0].text == "TEA EAT"
    assert letters.decoder(words=["tea", "eat"]).decode(scores)[0].text == "tea eat"  # upper-case tokens
    assert letters.decoder(lexicon=tmp_path / "lexicon.txt").decode(scores)[0].text == "tea eat"
    assert letters.decoder(lexicon={"one": "T E A", "two": ["E", "A", "T"]}).decode(scores)[0].text == "one two"
    with pytest.raises(TypeError, match="not both"):
        letters.decoder(words=["TEA"], lexicon={"one": "T E A"})


def test_words_and_lexicons_beside_a_language_model(letters, lm, rng):
    """Only words of both are found; their costs are the model's. A class takes words that neither has."""
    scores = scores_for(letters, "MARK IS GOING", rng)
    for chosen in ({"words": ["MARK", "IS", "GOING", "ZORBLAX"]}, {"lexicon": {"MARK": "M A R K", "IS": "I S", "GOING": "G O I N G", "ZORBLAX": "Z"}}):
        result = letters.decoder(lm, backoff="failure", **chosen).decode(scores)[0]
        assert result.text == "MARK IS GOING" and result.graph_cost == pytest.approx(sum(lm.costs(result.text)), abs=1e-3)
    decoder = letters.decoder(lm, classes="<unk>")
    mine = decoder.graph.add_words(["ZORBLAX"], word_start="")
    assert decoder.decode(scores_for(letters, "ZORBLAX IS GOING", rng), graphs=mine)[0].text == "ZORBLAX IS GOING"


def steps(names, path, runner_up=None):
    """Scores of a path of tokens, one a frame. `runner_up`: (frame, token, log-probability)."""
    scores = np.full((len(path), len(names)), -9.0, np.float32)
    scores[range(len(path)), [names.index(name) for name in path]] = -0.001
    if runner_up is not None:
        scores[runner_up[0], names.index(runner_up[1])] = runner_up[2]
    return scores


@pytest.mark.parametrize("separator", ["|", "<space>", " ", "_", "\u2581"])
def test_separators_are_evidence(separator, tmp_path):
    """Between words the separator must be heard, at the ends it may, and it may be heard twice. The model of words prefers two words."""
    names = ["<pad>", separator, *"APRT"]
    model = write(tmp_path, {"a.arpa": arpa_of({"A": -0.3, "PART": -0.3, "APART": -3, "RAP": -1})}) / "a.arpa"
    tokens = integrations.ModelTokens(names, 0, "letters", separator=separator)
    for decoder in (tokens.decoder(model), tokens.decoder(words=["A", "PART", "APART", "RAP"]), tokens.decoder(model, backoff="failure", topology="correct")):
        for path, text in (("APART", "APART"), ("A PART", "A PART"), (" A  PART ", "A PART"), (" _A_ _ _PART_ _", "A PART"), ("RAP APART A", "RAP APART A"), (" _ ", "")):
            spelled = [{" ": separator, "_": "<pad>"}.get(letter, letter) for letter in path]
            assert decoder.decode(steps(names, spelled))[0].text == text, path


@pytest.mark.parametrize("separator", ["|", "_"])
def test_lexicons_with_separators(separator):
    """As of flashlight: words end in the separator, so no other is required between them."""
    names = ["<pad>", separator, *"abd"]
    decoder = integrations.ModelTokens(names, 0, "letters", separator=separator).decoder(lexicon={"ba": f"b a {separator}", "d": f"d {separator}"})
    assert decoder.decode(steps(names, ["b", "a", separator, "d", separator]))[0].text == "ba d"


def test_separators_of_graphs(tmp_path):
    """Graphs of token tables alone know usual separators; silence_prob makes them optional, silence="" takes them away."""
    names = ["<pad>", "|", *"abdt"]
    words = ["<eps>", "ba", "d", "bat"]
    scores, cut = steps(names, "bad", (2, "t", -2)), steps(names, "ba|d")
    graph = wf.build_ctc_graph(names, words=words)
    assert [wf.Decoder(graph).decode(one)[0].text for one in (scores, cut)] == ["bat", "ba d"]
    for options in ({"silence": "|", "silence_prob": 0.5}, {"silence": ""}):
        assert wf.Decoder(wf.build_ctc_graph(names, words=words, **options)).decode(scores)[0].text == "ba d"
    times = [(word.text, word.start, word.end) for word in wf.Decoder(graph).decode(steps(names, "||ba||d|"))[0].words]
    assert times == [("ba", 2, 4), ("d", 6, 7)]


def test_without_words(letters, rng):
    result = letters.decoder().decode(scores_for(letters, "TEA EAT", rng))[0]
    assert letters.text(word.text for word in result.words) == "TEA EAT"
    assert letters.text(["<s>", "A", "<unk>", "|", "|", "B", "<pad>"]) == "A B"


def test_large_language_model(letters, tmp_path, sentences, rng):
    """A .wlm gives the words of the graph, and its costs while decoding: the same total cost as with the ARPA file in the graph."""
    large = wf.LM.convert(LM, tmp_path / "lm.wlm")
    exact = letters.decoder(LM, backoff="failure")
    for source in (large, tmp_path / "lm.wlm"):
        decoder = letters.decoder(source)
        for sentence in sentences[:5]:
            scores = scores_for(letters, sentence, rng)
            one, other = decoder.decode(scores)[0], exact.decode(scores)[0]
            assert one.text == other.text == sentence and one.scorer_cost > 0 and abs(one.cost - other.cost) < 1e-2


def test_words_that_cannot_be_spelled(letters):
    with pytest.warns(wf.InputWarning, match=r"vocab.json: 3 of 4 words cannot be spelled with the tokens: 'Ä', 'A B', ''"):
        lexicon = letters.spell_all(["TEA", "Ä", "A B", "", "<unk>"])
    assert [entry.word for entry in lexicon] == ["TEA"]
    with pytest.raises(wf.ArgumentError, match="1 of 1 words cannot be spelled"):
        letters.decoder(words=["Ä"])


def test_logits_without_log_softmax_warn(letters, rng):
    with pytest.warns(wf.InputWarning, match="log"):
        letters.decoder(words=["TEA", "EAT"]).decode(np.abs(scores_for(letters, "TEA EAT", rng)) + 1)


def test_options_are_passed_on(letters):
    decoder = letters.decoder(words=["TEA"], beam=7, topology="correct")
    assert (decoder.config["beam"], decoder.config["blank"]) == (7, 0)
    with pytest.raises(wf.ArgumentError, match="no option named 'nonsense'"):
        letters.decoder(words=["TEA"], nonsense=1)


# --- wrong files ---

WRONG = {
    "vocab.json": [
        (b'{"<pad>": 0,\n "a" 1}', r"vocab.json:2: Expecting ':'"),
        (b'{"<pad>": 0,\n "a": 0}', r"vocab.json:2: token 'a': column 0 is already that of '<pad>'"),
        (b'{"<pad>": 0,\n "a": "1"}', r"vocab.json:2: token 'a': column '1', expected a whole number"),
        (b'{"<pad>": 0,\n "a": 99999999}', r"vocab.json:2: token 'a': column 99999999 of 2 tokens"),
        (b'{"a": 0}', r"vocab.json: no blank: expected <blk>"),
        (b"[1]", r"vocab.json:1: expected an object"),
        (b"{}", r"vocab.json: no tokens"),
        (b"{\n\xff", r"vocab.json:2: not UTF-8"),
        (b"[" * 100000, r"vocab.json:1: "),
    ],
    "tokenizer.json": [(b"{}", r"tokenizer.json: "), (b"{\n", r"tokenizer.json:2: ")],
    "units.txt": [
        (b"<blank> 0\nA\n", r"units.txt:2: 'A', expected `token column`"),
        (b"<blank> 0\nA -1\n", r"units.txt:2: 'A -1', expected"),
        (b"<blank> 0\nA 0\n", r"units.txt:2: column 0 is already that of '<blank>'"),
        (b"<blank> 0\nA 2\n", r"units.txt: no token in column 1"),
        (b"A 0\nB 1\n", r"units.txt: no blank"),
        (b"<blank> 0\nA 1\nA 2\n", r"units.txt: the token 'A' is listed twice"),
        (b"", r"units.txt: no token in column 0"),
        (b"<blank> 0\n\xff 1", r"units.txt:2: not UTF-8"),
    ],
    "tokens.txt": [(b"<blank>\nA 1\n", r"tokens.txt:2: 'A 1', expected one token"), (b"<blank>\n\nA", r"tokens.txt:2: '', expected"), (b"", r"tokens.txt:1: ''")],
    "config.yaml": [(b"a: 1\nb: [\n", r"config.yaml:3: "), (b"a: 1", r"config.yaml: token_list: expected a list"), (b"- 1", r"config.yaml:1: expected keys")],
    "bpe.model": [(b"nonsense", r"bpe.model: not a sentencepiece model"), (b"", r"bpe.model: not a sentencepiece model")],
    "m.nemo": [(b"nonsense", r"m.nemo: not a .nemo archive"), (b"", r"m.nemo: not a .nemo archive")],
}
LOADERS = {
    "units.txt": wf.from_wenet,
    "tokens.txt": wf.from_espnet,
    "config.yaml": wf.from_espnet,
    "bpe.model": wf.from_sentencepiece,
    "m.nemo": wf.from_nemo,
}


@pytest.mark.parametrize(("name", "content", "message"), [(name, *case) for name, cases in WRONG.items() for case in cases])
def test_wrong_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(wf.FormatError, match=message):
        LOADERS.get(name, wf.from_huggingface)(tmp_path / name)


@pytest.mark.parametrize("name", WRONG)
def test_missing_files(tmp_path, name):
    with pytest.raises(wf.FileError, match=name):
        LOADERS.get(name, wf.from_huggingface)(tmp_path / name)


def test_wrong_archives(tmp_path):
    for files, message in (
        ({"other": b""}, "m.nemo: no file model_config.yaml in the archive"),
        ({"model_config.yaml": b"a: ["}, r"m.nemo: model_config.yaml:1: "),
        ({"model_config.yaml": b"a: 1"}, "m.nemo: decoder.vocabulary: expected a list"),
        ({"model_config.yaml": b"tokenizer: {model_path: 'nemo:x.model'}"}, "m.nemo: no file x.model"),
        ({"model_config.yaml": b"tokenizer: {model_path: 'nemo:x.model'}", "x.model": b"y"}, "m.nemo: x.model: not a sentencepiece model"),
    ):
        with pytest.raises(wf.FormatError, match=message):
            wf.from_nemo(nemo_archive(tmp_path / "m.nemo", files))
    content = nemo_archive(tmp_path / "m.nemo", {"model_config.yaml": bytes(np.random.default_rng(1).bytes(5000))}).read_bytes()
    (tmp_path / "m.nemo").write_bytes(content[: len(content) // 2])
    with pytest.raises(wf.FormatError, match="m.nemo: not a .nemo archive"):
        wf.from_nemo(tmp_path / "m.nemo")
    with pytest.raises(wf.UnsupportedError, match="WordPiece"):
        wf.from_nemo(nemo_archive(tmp_path / "m.nemo", {"model_config.yaml": b"decoder: {vocabulary: [a, '##b']}"}))


def test_damaged_files(tmp_path, rng):
    """Whatever bytes a file has, the error is one of wf.Error."""
    archive = nemo_archive(tmp_path / "a.nemo", {"model_config.yaml": yaml.safe_dump({"decoder": {"vocabulary": [" ", *CHARACTERS]}}).encode()})
    intact = {
        "vocab.json": json.dumps(wav2vec2_vocabulary()).encode(),
        "units.txt": "".join(f"{name} {column}\n" for name, column in wav2vec2_vocabulary().items()).encode(),
        "tokens.txt": "\n".join(wav2vec2_vocabulary()).encode(),
        "config.yaml": yaml.safe_dump({"token_list": list(wav2vec2_vocabulary())}).encode(),
        "m.nemo": archive.read_bytes(),
    }
    for name, content in intact.items():
        failed = 0
        for _ in range(100):
            damaged = bytearray(content)
            for at in rng.integers(0, len(content), int(rng.integers(1, 4))):
                damaged[at] = int(rng.integers(256))
            (tmp_path / name).write_bytes(damaged[: int(rng.integers(1, len(content) + 1))] if rng.random() < 0.3 else damaged)
            try:
                LOADERS.get(name, wf.from_huggingface)(tmp_path / name)
            except wf.Error as why:
                assert name in str(why)
                failed += 1
        assert failed > 20


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json", "preprocessor_config.json"])
def test_settings_of_wrong_types(tmp_path, name):
    """Settings that are not what they should be are ignored, or give a wf.Error."""
    keys = ["pad_token", "word_delimiter_token", "target_lang", "vocab_size", "conv_stride", "sampling_rate", "hop_length", "encoder_config", "pad_token_id"]
    write(tmp_path, {"vocab.json": wav2vec2_vocabulary()})
    for value in (None, [], [1], {}, {"content": []}, "x", -1, 1.5, True, 1e300):
        write(tmp_path, {name: dict.fromkeys(keys, value)})
        try:
            integrations.huggingface_tokens(tmp_path)
        except wf.Error as why:
            assert str(tmp_path) in str(why)


def test_packages_that_are_not_installed(tmp_path, monkeypatch):
    write(tmp_path, {"bpe.model": "x", "config.yaml": "x", "tokenizer.json": "{}"})
    for name, package, shown in (("bpe.model", "sentencepiece", "sentencepiece"), ("config.yaml", "yaml", "pyyaml"), ("tokenizer.json", "tokenizers", "tokenizers")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=rf"{name} needs the package {shown}: pip install {shown}"):
            LOADERS.get(name, wf.from_huggingface)(tmp_path / name)


def test_wrong_objects():
    for loader in (wf.from_huggingface, wf.from_nemo):
        with pytest.raises(TypeError, match="int: expected"):
            loader(3)


def test_tokens_with_reserved_names():
    """Tokens that token tables reserve keep their columns."""
    tokens = integrations.ModelTokens(["<eps>", "#0", " ", "A", ""], 4, "x", separator=" ")
    assert tokens.names == ("<column0>", "<column1>", "<0x20>", "A", "<column4>") and tokens.separator == "<0x20>"
    scores = np.full((3, 5), -9, np.float32)
    scores[[0, 1, 2], [3, 2, 3]] = 0
    assert tokens.decoder(words=["A"], check_scores="off").decode(scores)[0].text == "A A"
    for names in (["<pad>", "a", "b", "a"], ["<pad>", " ", "a", " "]):
        with pytest.raises(wf.FormatError, match="listed twice, in columns 1 and 3"):
            integrations.ModelTokens(names, 0, "x")


# --- decoders ---


def test_decoder_with_lists(tmp_path, sentences, lm, rng):
    """Keywords of Decoder for lattices, and a graph that several decoders share."""
    names = ["<pad>", "|", *CHARACTERS]
    tokens = integrations.huggingface_tokens(write(tmp_path, {"vocab.json": {name: column for column, name in enumerate(names)}}))
    scores = scores_of(characters(names, "|")(sentences[0]), len(names), 0, rng)
    graph = tokens.graph(lm)
    results = tokens.decoder(lm, graph=graph, lattice_beam=8, determinize=True, nbest=3, confidences=False).decode(scores)
    assert results[0].nbest(3)[0].text == sentences[0] == tokens.decoder(lm, graph=graph).decode(scores)[0].text
    assert results.confidences is None or all(np.isnan(results.confidences))
    for wrong in ({"words": ["A"]}, {"lexicon": {"A": "A"}}, {"topology": "correct"}):
        with pytest.raises(TypeError, match="the graph is given"):
            tokens.decoder(lm, graph=graph, **wrong)
