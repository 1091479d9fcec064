"""austen.py - makes text of the domain of pocketsphinx-testdata's speech (LibriVox: Sense and Sensibility, chapter 1), without that novel.

The text is Jane Austen's other five finished novels (1813 to 1817, in the public domain; Project Gutenberg's texts) from Debian's package r-cran-janeaustenr (MIT). Sense and Sensibility is also in that
package, but is never read. Text is normalised as in the dictionary: lower case, no punctuation, abbreviations as they are spoken, one sentence per line. Words
that a graph lacks are <unk>.

  train     all chapters except the last two of each novel, sentences shuffled
  valid     the second to last chapter of each novel; decides when the training of a model ends
  held-out  the last chapter of each novel; used to choose models and weights
"""
import random
import re
import subprocess

NOVELS = ("emma", "mansfieldpark", "northangerabbey", "persuasion", "prideprejudice")
SPOKEN = {"mr": "mister", "mrs": "missus", "dr": "doctor", "st": "saint", "esq": "esquire", "rev": "reverend", "col": "colonel", "capt": "captain", "etc": "et cetera", "&c": "et cetera"}
CHAPTER = re.compile(r"^ *(?:chapter [ivxlc\d]+|volume [ivxlc\d]+|finis|the end) *$", re.IGNORECASE | re.MULTILINE)


def write_novels(folder):
    """Writes FOLDER/NOVEL.txt from the package; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{novel}.txt" for novel in NOVELS]
    if not all(path.exists() for path in paths):
        each = "; ".join(f'writeLines(janeaustenr::{path.stem}, "{path}", useBytes = TRUE)' for path in paths)
        subprocess.run(["Rscript", "-e", each], check=True)
    return paths


def sentences(text, known):
    """Yields lists of words. `known(word)` tells whether a word is in the vocabulary."""
    text = text.replace("\u2019", "'").replace("&c", "etc").lower()
    text = re.sub(r"\b(mrs?|dr|st|esq|rev|col|capt|etc)\.", lambda found: SPOKEN[found[1]], text)
    for paragraph in re.split(r"\n\s*\n", text):
        for sentence in re.split(r"[.?!]+(?=[\s\"')\]_-]|$)", paragraph):
            words = [word.strip("'") for word in re.findall(r"[a-z0-9\u00c0-\u017f']+", sentence)]
            words = [word if known(word) else "<unk>" for word in words if word]
            if any(word != "<unk>" for word in words):
                yield words


def split(folder, known):
    """Writes FOLDER/train, valid and held-out; returns the sentences of each by name."""
    parts = {"train": [], "valid": [], "held-out": []}
    for path in write_novels(folder):
        chapters = [chapter for chapter in CHAPTER.split(path.read_text(encoding="utf-8"))[1:] if len(chapter) > 1000]
        for chapter in chapters[:-2]:
            parts["train"] += sentences(chapter, known)
        parts["valid"] += sentences(chapters[-2], known)
        parts["held-out"] += sentences(chapters[-1], known)
    random.Random(1).shuffle(parts["train"])
    for name, part in parts.items():
        (folder / name).write_text("".join(" ".join(words) + "\n" for words in part), encoding="utf-8")
    return parts
