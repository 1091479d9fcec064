"""The package passes mypy --strict, and mypy finds wrong option names and values in users' programs."""

import pathlib
import shutil
import subprocess
import sys

import warpfst

USER = """
import warpfst as wf

graph = wf.build_ctc_graph("tokens.txt", lm="lm.arpa", topology="compact", oov="skip")
decoder = wf.Decoder(graph, beam=12.5, max_active=7000, device="cuda")
text: str = decoder.decode([], [1, 2])[0].text
wf.Decoder(graph, baem=3)  # WRONG
wf.Decoder(graph, beam="wide")  # WRONG
wf.build_ctc_graph("tokens.txt", topology="compatc")  # WRONG
wf.fst.determinize(graph)  # WRONG
number: int = decoder.decode([])[0].text  # WRONG
confidence: float = decoder.decode([])[0].words[0].confidence  # WRONG
batch = wf.fst.FstBatch.compose([graph.fst], graph.fst, order="canonical")
costs: list[float] = list(batch.forward_score(gradients=True))
batch.gradients(0, of="third")  # WRONG
wf.Decoder(graph, lm=3)  # WRONG
added = graph.add_words({"anna lee": 0.5}, pronunciations={"anna": "AE N AH"}, word_start="_")
decoder.decode([], graphs=[added, None])[0].text
decoder.decode([], graphs="added")  # WRONG
wf.Scorer.from_lm("lm.wlm", placement="hybrid", lm_gpu_bytes=1 << 30)
wf.Scorer.from_lm("lm.wlm", placement="gpu")  # WRONG
part: wf.Lattice = decoder.stream().commit_lattice()  # WRONG
wf.fst.Composer([graph.fst], graph.fst, with_origins=True, device="cuda:1").view(0).weights.nothing  # WRONG
with wf.Decoder(graph) as kept, wf.LatticeWriter("lat.ark") as out:
    out.put("u", kept.decode([])[0].compact_lattice)  # WRONG
    kept.decdoe([])  # WRONG
config = wf.DecoderConfig(beam=12.5, device="cuda").replace(max_active=7000)
wf.DecoderConfig(baem=3)  # WRONG
config.replace(beam="wide")  # WRONG
wf.from_huggingface("folder", "lm.arpa", topology="compact", beam=9.0, determinize=True, words=["a"], target_lang="deu")
wf.from_huggingface("folder", baem=9.0)  # WRONG
wf.from_nemo("model.nemo", topology="compatc")  # WRONG
wf.from_espnet("config.yaml", beam="wide")  # WRONG
wf.from_sentencepiece("bpe.model", blank="first", beam=9.0)
wf.from_torchaudio(["-", "a"], token_lm=3)  # WRONG
wf.integrations.ModelTokens(["a"], 0, "here").graph(silence_prob=0.5)
wf.integrations.ModelTokens(["a"], 0, "here").graph(beam=0.5)  # WRONG
wf.integrations.ProcessorWithLM("folder", "lm.arpa", baem=3)  # WRONG
print(wf.wer(["a b"], decoder.decode([]).texts), wf.wer("a b", "a c"), wf.wer({"u": "a"}, {"u": ["a"]}))
wf.wer(["a b"], 3)  # WRONG
available: bool = wf.cuda_available()
weights: list[float] = [arc.weight for arc in graph.fst.arcs] + [arc.graph_cost for arc in decoder.decode([])[0].lattice.arcs]  # WRONG
labels: list[int] = [arc.ilabel for arc in graph.fst.arcs[1:]]
graph.fst.arcs[0].wieght  # WRONG
compact = decoder.stream().partial_lattice().determinize()
words: tuple[list[str], int] = compact.oracle("a b")
numbers: tuple[list[int], int] = compact.oracle([1, 2])
compact.oracle(5)  # WRONG
captions: str = decoder.decode([])[0].to_srt(0.04)
both: wf.Fst = wf.fst.compose(graph.fst, graph.fst, connect=False)
wf.fst.compose(graph.fst, graph.fst, conect=False)  # WRONG
wf.compose(graph.fst, graph.fst)  # WRONG
wf.Decodr(graph)  # WRONG
"""


def test_mypy_accepts_the_package_and_finds_a_users_errors(tmp_path):
    # Copied, so that mypy checks the package as source and not only as a dependency.
    shutil.copytree(pathlib.Path(warpfst.__file__).parent, tmp_path / "warpfst", ignore=shutil.ignore_patterns("*.so", "bin"))
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", ".cache", "warpfst", "user.py"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    errors = [line for line in run.stdout.splitlines() if "error:" in line]
    assert not [line for line in errors if not line.startswith("user.py:")], run.stdout
    assert {int(line.split(":")[1]) for line in errors} == {number for number, line in enumerate(USER.splitlines(), 1) if "WRONG" in line}, run.stdout
