"""Texts of tokens and spellings of words where tokens are bytes, white space, or letters in another Unicode form."""

import unicodedata

import pytest
import tokenizers
from test_integrations import scores_of, steps, write

import warpfst as wf
from warpfst import integrations


def test_white_space_tokens():
    """They stay white space, in the texts of tokens and where a decoder joins them."""
    names = ["<blank>", "a", "\n", "b", "\t", "\u3000", "c"]
    tokens = integrations.ModelTokens(names, 0, "x")
    scores = steps(names, ["a", "\n", "b", "\t", "<blank>", "c", "\u3000", "a"])
    assert tokens.text(word.text for word in tokens.decoder().decode(scores)[0].words) == "a b c a"
    assert wf.Decoder(tokens.graph(), join=True).decode(scores)[0].text == "a b c a"


def test_separators_of_pieces():
    """Among pieces that mark words, | and <space> are texts like others; white space within a piece is no end of a word."""
    names = ["<blank>", "\u2581the", "|", "<space>", "\u2581a\u2581b", "c", "\u2581"]
    assert integrations.tokens.default_separator(names, "|", "<space>") is None
    tokens = integrations.ModelTokens(names, 0, "x")
    scores = steps(names, ["\u2581the", "|", "c", "\u2581a\u2581b", "c"])
    assert tokens.text(word.text for word in tokens.decoder().decode(scores)[0].words) == "the|c a bc"
    assert wf.Decoder(tokens.graph(), join=True).decode(scores)[0].text == "the|c a bc"
    assert wf.Decoder(wf.build_ctc_graph(names, words=["<eps>", "the", "c"])).decode(steps(names, ["\u2581the", "\u2581", "c"]))[0].text == "the c"


def test_byte_tokens():
    """Of SentencePiece's byte fallback: joined to characters, and words are spelled with them where a character has no token."""
    names = ["<unk>", "\u2581", "<0xE7>", "<0x88>", "<0xBF>", "\u2581the", "<0x0A>", "<blank>"]
    tokens = integrations.ModelTokens(names, 7, "sp")
    for path, text in (
        (["\u2581the", "\u2581", "<0xE7>", "<0x88>", "<0xBF>"], "the \u723f"),
        (["\u2581the", "<0xE7>", "<0x88>", "\u2581the"], "the\ufffd\ufffd the"),
        (["<0x88>", "<0x0A>", "<0xE7>", "<0x88>", "<0xBF>", "<blank>", "<0xBF>"], "\ufffd \u723f\ufffd"),
    ):
        scores = steps(names, path)
        assert tokens.text(word.text for word in tokens.decoder().decode(scores)[0].words) == text
        assert wf.Decoder(tokens.graph(), join=True).decode(scores)[0].text == text
    assert tokens.spell("\u723f") == ["\u2581", "<0xE7>", "<0x88>", "<0xBF>"] and tokens.spell("\u7240") is None
    lexicon = wf.Lexicon.spell(["<eps>", "\u723f", "the"], names, spelling="longest")
    assert {one.word: [names[label - 1] for label in one.labels] for one in lexicon} == {"\u723f": tokens.spell("\u723f"), "the": ["\u2581the"]}
    for spelling in ("chars", "all"):
        assert [len(one.labels) for one in wf.Lexicon.spell(["<eps>", "\u723f"], names, spelling=spelling)] == [4]


def icefall_bytes(text):
    """Text in the alphabet of icefall's bbpe."""
    others = [code for code in range(0x100, 0x1A7) if code not in (0x132, 0x133, 0x13F, 0x140, 0x149, 0x17F)]
    bytes_of_others = [byte for byte in range(256) if not 0x20 <= byte <= 0x7E]
    table = {byte: chr(byte) for byte in range(256)} | {byte: chr(code) for byte, code in zip(bytes_of_others, others)}
    return "".join(table[byte] for byte in text.encode())


def gpt2_bytes(text):
    """Text in the alphabet of GPT-2."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    return "".join(chr(byte) if byte in kept else chr(0x100 + others.index(byte)) for byte in text.encode())


@pytest.mark.parametrize("encode", [icefall_bytes, gpt2_bytes])
def test_strings_of_bytes(encode):
    """Tokens that are strings of bytes: texts are joined, words are spelled, bytes that are no text become U+FFFD."""
    space = "\u0120" if encode is gpt2_bytes else "\u2581"
    halves = [encode("\u723f")[:2], encode("\u723f")[2:]]
    names = ["<blk>", space + "the", space + "caf", encode("\u00e9"), space, *halves, "s", "|"]
    tokens = integrations.ModelTokens(names, 0, "bytes")
    paths = {"the caf\u00e9 \u723fs": [1, 2, 3, 4, 5, 6, 7], "the\ufffd caf\ufffds|": [1, 5, 2, 6, 7, 8]}
    for text, columns in paths.items():
        scores = steps(names, [names[column] for column in columns])
        assert tokens.text(word.text for word in tokens.decoder().decode(scores)[0].words) == text
        assert wf.Decoder(tokens.graph(), join=True).decode(scores)[0].text == text
    assert tokens.spell("caf\u00e9") == [space + "caf", encode("\u00e9")] and tokens.spell_text("the \u723f")[1:] == [space, *halves]
    assert tokens.decoder(words=["the", "caf\u00e9", "\u723fs"]).decode(steps(names, [names[column] for column in next(iter(paths.values()))]))[0].text == "the caf\u00e9 \u723fs"
    lexicon = wf.Lexicon.spell(["<eps>", "caf\u00e9", "\u723fs"], names)
    assert [[names[label - 1] for label in one.labels] for one in lexicon] == [[space + "caf", encode("\u00e9")], [space, *halves, "s"]]


def test_letters_are_no_bytes():
    """Letters beyond ASCII, as of Latvian, Maltese or French, are texts, although alphabets of bytes have the same characters."""
    for names in (["\u2581m\u0101", "\u2581\u0101", "ja", "\u0161\u0101"], ["\u0120\u0126", "\u0126a"], ["\u00e9t\u00e9", "##\u00e9"], ["\u00c3", "\u00a9", "\u0120"]):
        tokens = integrations.ModelTokens(["<blk>", *names], 0, "letters")
        for name in names:
            assert tokens.text([name]) == name.strip("\u2581").replace("##", "")


@pytest.mark.parametrize("spaces", [True, False])
def test_byte_level_tokenizer(tmp_path, spaces, rng):
    """A tokenizer.json of byte-level BPE, as of GPT-2 and Whisper, trained here."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=spaces)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    sentences = ["the caf\u00e9 is na\u00efve", "\u723f is the r\u00e9sum\u00e9", "\u00fcber the caf\u00e9"]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, special_tokens=["<pad>"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(sentences * 3, trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    folder = write(tmp_path, {"tokenizer_config.json": {"pad_token": "<pad>"}, "vocab.json": tokenizer.get_vocab(), "merges.txt": "#version: 0.2\n"})
    tokens = integrations.huggingface_tokens(folder)
    assert tokens.blank == 0 and tokens.separator is None
    decoder = tokens.decoder(words=sorted({word for sentence in sentences for word in sentence.split()}))
    for sentence in sentences:
        scores = scores_of(tokenizer.encode(" " + sentence).ids, len(tokens.names), 0, rng)
        assert decoder.decode(scores)[0].text == sentence
        assert tokens.text(word.text for word in tokens.decoder().decode(scores)[0].words) == sentence


def test_unicode_forms():
    """Words in NFD are spelled with tokens in NFC, and back, also in the other case."""
    for form, other in (("NFC", "NFD"), ("NFD", "NFC")):
        letters = dict.fromkeys(unicodedata.normalize(form, "cafe\u00e9\u00fc"))
        tokens = integrations.ModelTokens(["<pad>", *letters], 0, "letters")
        for word in ("caf\u00e9", "\u00fc", "CAF\u00c9"):
            given = unicodedata.normalize(other, word)
            scores = steps(tokens.names, list(unicodedata.normalize(form, word.lower())))
            assert tokens.decoder(words=[given]).decode(scores)[0].text == given
