"""transducer_words.py - lexicon, language models and boosts for transducer_task.py: words of one to four tokens, text as generate_task.py makes it. The same arguments give the same files."""
import generate_task
import numpy as np

WORDS, TEXT = 5000, 300000  # words of the lexicon; of the text on which models are counted
PHRASES, BOOST = 100, 2.0  # of each utterance; nats for a phrase
CLASS = "w00020"  # a frequent word, in place of which added words may stand


def spellings(rng, tokens):
    """Lists of tokens, all different: of one token for the 100 most frequent words, else of one to four."""
    found = {}
    while len(found) < WORDS:
        length = 1 if len(found) < 100 else rng.integers(1, 5)
        found[tuple(tokens[i] for i in rng.integers(len(tokens), size=length))] = None
    return list(found)


def make_words(folder, tokens):
    """Writes lexicon.txt; lm.arpa, of words; tokens.arpa, of the tokens of the same text: 3-gram models. `tokens` without the blank."""
    rng = np.random.default_rng(2027)
    words, spelled = [f"w{rank + 1:05d}" for rank in range(WORDS)], spellings(rng, tokens)
    (folder / "lexicon.txt").write_text("".join(f"{word} {' '.join(spelling)}\n" for word, spelling in zip(words, spelled)))
    text = list(generate_task.sentences(WORDS, TEXT, generate_task.Random(2027)))
    generate_task.Model(words, text).write(folder / "lm.arpa")
    number = {token: i for i, token in enumerate(tokens)}
    generate_task.Model(tokens, ([number[token] for word in sentence for token in spelled[word]] for sentence in text)).write(folder / "tokens.arpa")


def read_lexicon(folder):
    """{word: its tokens}"""
    return {word: tokens for word, *tokens in map(str.split, open(folder / "lexicon.txt", encoding="utf-8"))}


def make_boosts(folder, keys):
    """Lists of PHRASES phrases of one to three words for each utterance, of words and spelled with tokens; and tables of them, word-boosts and token-boosts, for --utterance-boosts."""
    rng, lexicon = np.random.default_rng(2028), read_lexicon(folder)
    words = list(lexicon)
    (folder / "boosts").mkdir(exist_ok=True)
    with open(folder / "word-boosts", "w", encoding="utf-8") as by_word, open(folder / "token-boosts", "w", encoding="utf-8") as by_token:
        for key in keys:
            phrases = [[words[i] for i in rng.integers(len(words), size=rng.integers(1, 4))] for _ in range(PHRASES)]
            spelled = [[token for word in phrase for token in lexicon[word]] for phrase in phrases]
            for name, lists, table in (("words", phrases, by_word), ("tokens", spelled, by_token)):
                path = folder / "boosts" / f"{key}.{name}"
                path.write_text("".join(f"{' '.join(phrase)}\t{BOOST}\n" for phrase in dict.fromkeys(map(tuple, lists))))
                table.write(f"{key} {path}\n")


def make_added_words(folder, keys):
    """Lists of PHRASES words of one to four tokens that the lexicon lacks, for each utterance, and a table of them for --utterance-words."""
    rng, lexicon = np.random.default_rng(2029), read_lexicon(folder)
    tokens = sorted({token for spelling in lexicon.values() for token in spelling})
    (folder / "added").mkdir(exist_ok=True)
    with open(folder / "added-words", "w", encoding="utf-8") as table:
        for key in keys:
            path = folder / "added" / key
            path.write_text("".join(f"n{i:03d}\t0\t{' '.join(tokens[j] for j in rng.integers(len(tokens), size=rng.integers(1, 5)))}\n" for i in range(PHRASES)))
            table.write(f"{key} {path}\n")
