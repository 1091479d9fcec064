"""Tables of models that read lines of text: a space is a token, and |, _ and U+2581 are characters like others."""

import numpy as np
import pytest

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


def test_model_tokens_spell_without_a_lone_mark():
    tokens = ModelTokens(TOKENS, 0, "test", separator=" ")
    assert tokens.spell("ab") == ["a", "b"]
    assert tokens.decoder(words=["ab", "ba"]).decode(scores("ab ba"))[0].text == "ab ba"


def test_paddle_lists_name_their_blank():
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
