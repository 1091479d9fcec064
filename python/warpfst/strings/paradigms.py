"""Inflection: features of words, and paradigms that make the forms of stems and analyse forms.

    number, case = Feature("number", "sg", "pl"), Feature("case", "nom", "acc")
    noun = Category(number, case)
    stem = byte.ALPHA.plus
    slots = [(suffix("+a", stem), noun.vector(number="sg", case="nom")), (suffix("+am", stem), noun.vector(number="sg", case="acc")), ...]
    paradigm = Paradigm(noun, slots, noun.vector(number="sg", case="nom"), ["aqu", "femin"])
    paradigm.inflect("aqua", noun.vector(number="sg", case="acc"))  # ["aquam"]
    paradigm.analyze("aquam")  # [Analysis("aqu+am", {"number": "sg", "case": "acc"})]

A form carries its features as symbols in brackets behind its letters, `aquam[case=acc number=sg]`, in the order of their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..errors import ArgumentError
from ..fst.container import Fst
from ..fst.operations import compose, difference, invert, project, union
from ..labels import escape
from . import StringOrFst, accep, any_of, byte, cdrewrite, delete, insert, optimize, string_map


class Feature:
    """A name and the values that it can have."""

    def __init__(self, name: str, *values: str) -> None:
        """ValueError: no values, or a blank or a bracket in a text."""
        if not values or any(re.search(r"[][\\\\= ]", text) for text in (name, *values)):
            raise ValueError(f"feature {name!r} with the values {values}, expected texts without blanks, brackets and =")
        self.name, self.values = name, values

    def acceptor(self, value: str | None = None) -> Fst:
        """The symbol of a value; None: of any value."""
        return union(*(accep(f"[{self.name}={one}]") for one in (self.values if value is None else (value,))))

    def __repr__(self) -> str:
        return f"Feature({', '.join(map(repr, (self.name, *self.values)))})"


FeatureVector = Mapping[str, str]


class Category:
    """A kind of words: the features that its forms have."""

    def __init__(self, *features: Feature) -> None:
        self.features = tuple(sorted(features, key=lambda feature: feature.name))

    def vector(self, **values: str) -> FeatureVector:
        """Values of features. Those that are not named may have any value. ArgumentError: an unknown feature or value."""
        known = {feature.name: feature.values for feature in self.features}
        for name, value in values.items():
            if value not in known.get(name, ()):
                raise ArgumentError(f"{name}={value}: the category has {', '.join(map(repr, self.features))}")
        return dict(sorted(values.items()))

    def acceptor(self, vector: FeatureVector | None = None) -> Fst:
        """The symbols of a vector; None: of any."""
        fst = accep("")
        for feature in self.features:
            fst = fst + feature.acceptor((vector or {}).get(feature.name))
        return optimize(fst)


class Analysis(NamedTuple):
    """A form, with the boundaries of its parts where it has them, and its features."""

    form: str
    features: dict[str, str]


_FEATURE = re.compile(r"\[([^][=]+)=([^][]+)\]")


def _analysis(text: str) -> Analysis:
    return Analysis(_FEATURE.sub("", text), dict(_FEATURE.findall(text)))


def letters_without(boundary: str = "+") -> Fst:
    """Accepts any bytes but the boundary: stems of any form."""
    return difference(byte.BYTE, any_of(boundary)).star


def prefix(affix: StringOrFst, stem: Fst) -> Fst:
    """Puts the affix, with its boundary, before the strings of `stem`."""
    return insert(affix) + stem


def suffix(affix: StringOrFst, stem: Fst) -> Fst:
    """Puts the affix, with its boundary, behind the strings of `stem`."""
    return stem + insert(affix)


Slot = tuple[Fst, FeatureVector]


class Paradigm:
    """The forms of the stems of a category, in all its slots.

    slots     how a slot makes a form of a stem, and the features of that form
    lemma     the features of the form that stands for the word
    stems     texts, or an fst
    rules     applied to the forms in this order, before boundaries are removed: rewrite rules over bytes
    boundary  the character between the parts of a form
    """

    def __init__(
        self, category: Category, slots: Iterable[Slot], lemma: FeatureVector, stems: Iterable[str] | Fst, rules: Sequence[Fst] = (), boundary: str = "+"
    ) -> None:
        self.category = category
        given = stems if isinstance(stems, Fst) else string_map(map(escape, stems))
        any_vector = category.acceptor()
        forms = optimize(compose(given, union(*(fst + insert(category.acceptor(vector)) for fst, vector in slots))))  # stem : stem+affix[features]
        whole = project(forms, project_type="output")
        remove = cdrewrite(delete(any_of(boundary)), "", "", byte.BYTE.star)
        tagged = whole
        for rule in (*rules, remove):
            tagged = compose(tagged, rule + any_vector)
        self._analyzer = optimize(invert(compose(tagged, byte.BYTE.star + delete(any_vector))))  # word : stem+affix[features]
        self._tagged = optimize(project(tagged, project_type="output"))  # word[features]
        stem_to_word = optimize(compose(forms, tagged))  # stem : word[features]
        stem_to_lemma = compose(stem_to_word, byte.BYTE.star + delete(category.acceptor(lemma)))
        self._inflector = optimize(compose(invert(stem_to_lemma), stem_to_word))  # lemma : word[features]

    @staticmethod
    def _outputs(text: str, fst: Fst) -> list[str]:
        return sorted({path.output for path in compose(accep(escape(text)), fst).paths()})

    def analyze(self, word: str) -> list[Analysis]:
        """The forms that are written so, with the boundaries of their parts, and their features."""
        return [_analysis(text) for text in self._outputs(word, self._analyzer)]

    def tag(self, word: str) -> list[Analysis]:
        """The word with the features that it can have."""
        known = compose(accep(escape(word)) + self.category.acceptor(), self._tagged)
        return [_analysis(text) for text in sorted({path.output for path in known.paths()})]

    def lemmatize(self, word: str) -> list[Analysis]:
        """The lemmas of which the word is a form, with its features."""
        known = compose(accep(escape(word)) + self.category.acceptor(), invert(self._inflector))
        return [Analysis(path.output, _analysis(path.input).features) for path in sorted(set(known.paths()))]

    def inflect(self, lemma: str, vector: FeatureVector) -> list[str]:
        """The forms of a lemma that have the features."""
        wanted = self._inflector @ (byte.BYTE.star + delete(self.category.acceptor(vector)))
        return self._outputs(lemma, wanted)

    def forms(self, lemma: str) -> list[Analysis]:
        """All forms of a lemma."""
        return [_analysis(text) for text in self._outputs(lemma, self._inflector)]
