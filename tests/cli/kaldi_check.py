"""kaldi_check.py REF JSON...: tests that `warpfst decode --format=json` gives the words and costs of Kaldi's decoder (kaldi_oracle.py) for every utterance, and
no path where Kaldi finds none. Words may be in another order if the cost is the same, as with homophones."""

import json
import sys
from pathlib import Path


def check(ref_path, json_path):
    kaldi = {line.split()[0]: line.split()[1:] for line in Path(ref_path).read_text().splitlines() if line}
    ours = [json.loads(line) for line in Path(json_path).read_text().splitlines()]
    assert len(ours) == 5, ours
    for utterance in ours:
        key, flags = utterance["key"], utterance.get("flags", [])
        if key not in kaldi:
            assert "not_final" in flags or "died" in flags, (json_path, utterance)
            continue
        cost, *words = kaldi[key]
        same = sorted(utterance["text"].split()) == sorted(words) and abs(utterance["cost"] - float(cost)) < 2e-3
        assert flags == ["times_estimated"] * bool(words) and same, (json_path, utterance, kaldi[key])


for name in sys.argv[2:]:
    check(sys.argv[1], name)
