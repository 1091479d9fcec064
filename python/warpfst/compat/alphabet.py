"""Labels of a model in pyctcdecode's convention."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..joining import CONTINUES, WORD_START

_BLANKS = ("", "<pad>", "[PAD]", "<blank>", "<blk>", "_")
_UNKNOWN, _UNKNOWN_TEXT = ("<unk>", "[UNK]"), "\u2047"


class Alphabet:
    """Labels after normalization: "" is the blank and " " the space between words, or labels that begin words start with U+2581."""

    def __init__(self, labels: Sequence[str], is_bpe: bool) -> None:
        """Takes the labels as they are: `build_alphabet` normalizes."""
        if "" not in labels:
            raise ValueError('there is no blank, ""')
        if len(set(labels)) != len(labels):
            raise ValueError("a label is given twice")
        self.labels, self.is_bpe = list(labels), is_bpe

    @classmethod
    def build_alphabet(cls, labels: Sequence[str]) -> Alphabet:
        """Normalizes the labels of a model.

        Blank: "", <pad>, [PAD], <blank>, <blk> or _, the first of these; without one, a last column is added. Space: " " or |. <unk> and [UNK] become the text
        U+2047. In the style of WordPiece (##ing), all labels without ## begin words.
        """
        names = list(labels)
        is_bpe = any(name.startswith((WORD_START, CONTINUES)) for name in names)
        pieces = any(name.startswith(CONTINUES) for name in names) and not any(name.startswith(WORD_START) for name in names)
        blank = next((name for name in _BLANKS if name in names), None)
        if blank is None:
            names.append("")
        space = None if is_bpe or " " in names else "|"
        return cls([_normalize(name, blank, space, is_bpe, pieces) for name in names], is_bpe)

    @property
    def blank(self) -> int:
        """The column of the blank."""
        return self.labels.index("")

    def tokens(self) -> list[tuple[str, bool, bool]]:
        """For each label: (text, does it begin a word, does it end a word, without text the one before it)."""
        found = []
        for label in self.labels:
            text = "" if label == " " else label.strip(WORD_START)
            found.append((text, label.startswith(WORD_START), label == " " or (bool(text) and label.endswith(WORD_START))))
        return found

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps({"labels": self.labels, "is_bpe": self.is_bpe})

    @classmethod
    def loads(cls, text: str) -> Alphabet:
        """From JSON."""
        values = json.loads(text)
        return cls(values["labels"], values["is_bpe"])


def _normalize(name: str, blank: str | None, space: str | None, is_bpe: bool, pieces: bool) -> str:
    if name in ("", blank):
        return ""
    if name == space:
        return " "
    if name in _UNKNOWN:
        return f"{WORD_START}{_UNKNOWN_TEXT}{WORD_START}" if is_bpe else _UNKNOWN_TEXT
    if pieces:
        return name[len(CONTINUES) :] if name.startswith(CONTINUES) else WORD_START + name
    return name
