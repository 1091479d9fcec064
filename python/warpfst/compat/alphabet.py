"""Labels of a model in pyctcdecode's convention."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Sequence

from ..joining import CONTINUES, WORD_START

_PADDING, _OTHER_BLANKS = re.compile(r"|[<\[]pad[>\]]", re.IGNORECASE), ("<blank>", "<blk>", "_")
_UNKNOWN, _UNKNOWN_TEXT = re.compile(r"[<\[]unk[>\]]", re.IGNORECASE), "\u2047"
_REPEATED = ("", _UNKNOWN_TEXT, f"{WORD_START}{_UNKNOWN_TEXT}{WORD_START}")  # a model may have <pad> and [PAD], <unk> and [UNK]


class Alphabet:
    """Labels after normalization: "" is the blank and " " the space between words, or labels that begin words start with U+2581."""

    def __init__(self, labels: Sequence[str], is_bpe: bool) -> None:
        """Takes the labels as they are: `build_alphabet` normalizes."""
        if "" not in labels:
            raise ValueError('there is no blank, ""')
        _check_different([label for label in labels if label not in _REPEATED])
        self.labels, self.is_bpe = list(labels), is_bpe

    @classmethod
    def build_alphabet(cls, labels: Sequence[str]) -> Alphabet:
        """Normalizes the labels of a model.

        Blank: "", <pad> and [PAD] in upper or lower case, all of them; else `blank` in column 0, as PaddleOCR has it, or <blank>, <blk> or _, the first of these;
        without one, a last column is added.
        Space: " " or |. Beside " " a lone U+2581 or ## is a character like others. <unk> and [UNK], in upper or lower case, become the text U+2047. In the style of WordPiece (##ing), all labels without ## begin words.
        """
        names = list(labels)
        _check_different(names)
        marks = {mark for mark in (WORD_START, CONTINUES) for name in names if name.startswith(mark) and (name != mark or " " not in names)}
        is_bpe, pieces = bool(marks), marks == {CONTINUES}
        blanks = [name for name in names if _PADDING.fullmatch(name)] or names[:1] * (names[:1] == ["blank"])
        blanks = blanks or [name for name in _OTHER_BLANKS if name in names][:1]
        if not blanks:
            names.append("")
        space = None if is_bpe or " " in names else "|"
        return cls([_normalize(name, blanks, space, is_bpe, pieces) for name in names], is_bpe)

    @property
    def blank(self) -> int:
        """The column of the blank, the first if there are several."""
        return self.labels.index("")

    @property
    def other_blanks(self) -> list[int]:
        """Further columns of the blank."""
        return [column for column, label in enumerate(self.labels) if label == ""][1:]

    def tokens(self) -> list[tuple[str, bool, bool]]:
        """For each label: (text, does it begin a word, does it end a word, without text the one before it)."""
        found = []
        for label in self.labels:
            marked = self.is_bpe and label != " "
            text = label.strip(WORD_START) if marked else label if label != " " else ""
            found.append((text, marked and label.startswith(WORD_START), label == " " or (marked and bool(text) and label.endswith(WORD_START))))
        return found

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps({"labels": self.labels, "is_bpe": self.is_bpe})

    @classmethod
    def loads(cls, text: str) -> Alphabet:
        """From JSON."""
        values = json.loads(text)
        return cls(values["labels"], values["is_bpe"])


def _check_different(labels: Sequence[str]) -> None:
    twice = [label for label, count in collections.Counter(labels).items() if count > 1]
    if twice:
        columns = [column for column, label in enumerate(labels) if label == twice[0]]
        raise ValueError(f"the label {twice[0]!r} is given twice, in columns {columns[0]} and {columns[1]}")


def _normalize(name: str, blanks: Sequence[str], space: str | None, is_bpe: bool, pieces: bool) -> str:
    if name == "" or name in blanks:
        return ""
    if name == space:
        return " "
    if _UNKNOWN.fullmatch(name):
        return f"{WORD_START}{_UNKNOWN_TEXT}{WORD_START}" if is_bpe else _UNKNOWN_TEXT
    if pieces:
        return name[len(CONTINUES) :] if name.startswith(CONTINUES) else WORD_START + name
    return name
