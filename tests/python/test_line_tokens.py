"""Tables of models that read lines of text: a space is a token, and |, _ and U+2581 are characters like others."""

import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

import warpfst as wf
from warpfst.compat import build_ctcdecoder
from warpfst.integrations import ModelTokens

TOKENS = ["<blk>", "\u3000", "a", "b", "|", "\u2581", "_", " "]


def scores(text, names=TOKENS):
    rows = np.full((2 * len(text) + 1, len(names)), 1e-4)
    rows[range(1, 2 * len(text), 2), [names.index(letter) for letter in text]] = 1
    rows[::2, 0] = 1
    return np.log(rows / rows.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("space", [" ", "<space>"])
def test_a_space_comes_before_a_bar(space):
    tokens = [*TOKENS[:-1], space]
    assert wf.Decoder(wf.build_ctc_graph(tokens), join=True).decode(scores("a| b_"))[0].text == "a| b_"
    graph = wf.build_ctc_graph(tokens, words=["<eps>", "ab", "ba", "b"])
    assert wf.Decoder(graph).decode(scores("ab ba b"))[0].text == "ab ba b"


@pytest.mark.parametrize("space", [" ", "<space>"])
@pytest.mark.parametrize("text", ["a\u2581a a", "\u2581a \u2581 a\u2581", "\u2581\u2581b|\u2581_ \u2581"])
def test_a_lone_mark_beside_a_space_is_a_character(text, space):
    tokens = [*TOKENS[:-1], space]
    rows = scores(text)
    assert wf.Decoder(wf.build_ctc_graph(tokens), join=True).decode(rows)[0].text == text
    graph = wf.build_ctc_graph(tokens, words=["<eps>", *dict.fromkeys(text.split())])
    assert wf.Decoder(graph).decode(rows)[0].text == text


def test_a_bar_beside_a_lone_mark_is_a_character():
    tokens = ["<blk>", "a", "b", "|", "\u2581"]
    rows = scores("\u2581a|b\u2581a", tokens)
    assert wf.Decoder(wf.build_ctc_graph(tokens), join=True).decode(rows)[0].text == "a|b a"
    assert wf.Decoder(wf.build_ctc_graph(tokens), join="|").decode(rows)[0].text == "\u2581a b\u2581a"
    graph = wf.build_ctc_graph(tokens, words=["<eps>", "a", "a|b", "b"])
    assert wf.Decoder(graph).decode(rows)[0].text == "a|b a"


def test_a_lone_mark_beside_a_space_begins_no_spelled_word(tmp_path):
    (tmp_path / "lm.arpa").write_text("\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-1 </s>\n-1 a\n-1 <unk>\n\n\\end\\\n")
    (tmp_path / "letters.arpa").write_text("\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-1 </s>\n-1 a\n-1 b\n\n\\end\\\n")
    graph = wf.build_ctc_graph(TOKENS, {"a": "a"}, tmp_path / "lm.arpa", classes="<unk>")
    spelled = graph.add_spelling(tmp_path / "letters.arpa")
    assert wf.Decoder(spelled, join=True).decode(scores("a bab a"))[0].text == "a bab a"


def test_a_lone_mark_beside_a_space_tells_no_word_times():
    with pytest.raises(wf.ArgumentError, match="no token has a mark of a word's start"):
        wf.WordAligner.from_tokens(TOKENS)


@pytest.mark.parametrize("other", ["\t", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u00a0", "\u2028", "\u3000"])
def test_the_token_file_of_the_page(tmp_path, monkeypatch, other):
    """The file that the page's code writes has the same columns as the list, whatever white space is among the characters."""
    page = (ROOT / "docs" / "how-to" / "ocr.md").read_text(encoding="utf-8")
    code = next(block for block in re.findall(r"```py\n(.*?)```", page, re.DOTALL) if "tokens.txt" in block)
    characters = ["<blk>", "a", other, "b", " "]
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-c", f"characters = {characters!r}\n{code}"], check=True)
    table = wf.Symbols.read("tokens.txt")
    assert [table.text(column) for column in range(5)] == ["<blk>", "a", "<0x09>" if other == "\t" else other, "b", "<space>"]
    rows = scores(f"a{other}b a", characters)
    texts = [wf.Decoder(wf.build_ctc_graph(tokens), join=True).decode(rows)[0].text for tokens in ("tokens.txt", characters)]
    assert texts == ["a b a" if other == "\t" else f"a{other}b a", f"a{other}b a"]


def test_model_tokens_spell_without_a_lone_mark():
    tokens = ModelTokens(TOKENS, 0, "test", separator=" ")
    assert tokens.spell("ab") == ["a", "b"]
    assert tokens.decoder(words=["ab", "ba"]).decode(scores("ab ba"))[0].text == "ab ba"


def test_paddle_lists_name_their_blank():
    for text in ("a\u2581a a", "\u2581a \u2581 b|\u2581"):
        assert build_ctcdecoder(["blank", *TOKENS[1:]]).decode(scores(text)) == text
    assert build_ctcdecoder(["blank", *TOKENS[1:]]).decode(scores("ab b_")) == "ab b_"


def test_files_that_are_no_tables(tmp_path):
    path = tmp_path / "keys.txt"
    path.write_text("blank\na\n", encoding="utf-8")
    with pytest.raises(wf.FormatError, match=r"keys.txt:1: expected 'symbol id', found only 'blank': number the lines"):
        wf.build_ctc_graph(path)
    path.write_text("<blk> 0\na 1\n  2\n", encoding="utf-8")
    with pytest.raises(wf.FormatError, match=r"keys.txt:3: expected 'symbol id', found only '2': a space is written <space>"):
        wf.build_ctc_graph(path)
    with pytest.raises(wf.ArgumentError, match="empty symbol; a blank may be called <blk>"):
        wf.build_ctc_graph(["", "a"])
    with pytest.raises(TypeError, match="found a path or a text"):
        wf.from_torchaudio("keys.txt")
