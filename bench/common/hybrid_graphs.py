"""hybrid_graphs.py - what the benchmarks of hybrid graphs share: pocketsphinx's model, language models of several sizes, graphs and senone scores."""
import json
import subprocess

import measure
from measure import BUILD, ROOT, WARPFST

MODEL = "/usr/share/pocketsphinx/model/en-us"
LMS = {
    "1k": ["--max-words=1000", "--max-ngrams=5000,2000", "--criterion=difference"],
    "20k": ["--max-words=20000", "--max-ngrams=184000,97000", "--criterion=difference"],
    "medium": ["--threshold=1e-7"],
    "full": None,
}
WORK = BUILD / "hybrid_product"


def score(name, wav):
    """Computes scores as the demo does; returns the folder with sen.scp and ref."""
    work = WORK / name
    if not (work / "sen.scp").exists():
        measure.run("bash", ROOT / "examples" / "demo_hybrid.sh", "--only", "scores", "--work", work, *(["--wav", wav] if wav else []))
    return work


def make_lm(size):
    if LMS[size] is None:
        return f"{MODEL}/en-us.lm.bin"
    path = WORK / f"{size}.arpa"
    measure.run(WARPFST, "lm", "prune", f"{MODEL}/en-us.lm.bin", "-q", "-o", path, *LMS[size])
    return path


def make_graph(lm, path, *options):
    """Builds a graph; returns mkgraph's JSON output."""
    command = [WARPFST, "mkgraph", "hmm", f"--am={MODEL}/en-us", f"--lexicon={MODEL}/cmudict-en-us.dict", f"--lm={lm}", "--json", "-q", "-o", path, *options]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)
