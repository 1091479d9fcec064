"""Every code block of README.md, the tutorials and the how-to pages is run, or is listed here with the reason why not and is checked in another way.

Blocks marked `python` and `bash`, and the `text` blocks after them, are run by test_examples.py and test_torch.py.
"""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys

import pages
import pytest
from conftest import ROOT
from pages import all_pages

import warpfst as wf

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Lines that need a GPU or Sphinx's model. They are removed from the blocks that run here; the whole block is also checked like those that do not run.
_LEFT_OUT = re.compile(r"--device=cuda|en-us\.lm\.bin")
# Blocks that run here: (page, start of the block): commands that make the files that the block needs.
_MODELS = """
warpfst mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --lm=lm.arpa.gz -o TLG.wfst --words-out=words.txt
mkdir logp && cp scores/0000300[12]*.npy logp
warpfst lm prune lm.arpa.gz --threshold=1e-4 -o small.arpa
gzip -dc lm.arpa.gz > large.arpa && cp lm.arpa.gz large.arpa.gz
rm -r scores && cp -r logp scores
"""
RUN = {
    ("lattices.md", "warpfst decode TLG.wfst logp/ --words"): _MODELS,
    ("added-words.md", "warpfst mkgraph ctc"): """gzip -dc lm.arpa.gz | sed 's/\\bELEPHANT\\b/<contact>/g' | gzip > class.gz && rm lm.arpa.gz && mv class.gz lm.arpa.gz
printf 'elephant\\t0\\tEH L IH F AH N T\\nsiobhan\\t2.5\\tSH AH V AO N\\n' > contacts.txt
echo 000030012 contacts.txt > table.txt""",
    ("lm.md", "warpfst lm info"): "",
    ("lm.md", "warpfst lm estimate"): "cut -d' ' -f2- text > more-text && gzip < more-text > text.gz",
    ("lm.md", "warpfst lm mix"): """cut -d' ' -f2- text > held-out.txt && cp lm.arpa.gz general.arpa.gz
head -700 held-out.txt | warpfst lm estimate -o domain.arpa""",
    ("lm.md", "warpfst lm prune large.arpa.gz"): _MODELS,
    ("composition.md", "warpfst compose L.fst"): "warpfst lm prune lm.arpa.gz --threshold=1e-3 -o small.arpa && warpfst lm convert small.arpa -o G.fst && cp G.fst L.fst",
    ("rnnlm.md", "warpfst rnnlm info"): f"""{_MODELS}
warpfst lm prune lm.arpa.gz --max-ngrams=9132,0 -o bigram.arpa
cut -d' ' -f2- text > all.txt && rm text && cp all.txt text && head -20 all.txt > valid.txt && tail -n +21 all.txt > train.txt
warpfst rnnlm train train.txt valid.txt -o lm --hidden=10 --seed=1
warpfst decode TLG.wfst logp/ --words=words.txt --lattice=lat.ark --lattice-beam=8 -o hyp.txt
printf '000030012 %s\\n' '1 20.5 30.25 WE CAN' '2 21 31 WE CALL' > nbest.txt
""",
}
GPU, CLUSTER, OWN_FILES, BUILD, SERVER = "needs a GPU", "needs a cluster", "needs the reader's own models", "compiles the project", "needs a server"
# Blocks that do not run here: (page, start of the block): (reason, the test that runs it, or None if it is checked below by its language).
NOT_RUN = {
    ("README.md", "./run demo"): (BUILD, None),
    ("README.md", "apt-get update && apt-get install -y build-essential python3-venv"): (BUILD, "tests/bare/test.sh"),
    ("README.md", "card1 ten of clubs"): ("output of the block above", "tests/bare/test.sh"),
    ("README.md", "apt-get update && apt-get install -y build-essential cmake"): (BUILD, "tests/bare/test.sh"),
    ("README.md", "./run build"): (BUILD, "tests/bare/test.sh"),
    ("alignment.md", "results = wf.align_hmm(scores"): (OWN_FILES, None),
    ("alignment.md", "warpfst align scores.ark --am=exp"): (OWN_FILES, None),
    ("models.md", "import torch, transformers"): (OWN_FILES, None),
    ("generation.md", "from warpfst.generation import Biasing\n\nbiasing = Biasing(processor"): (OWN_FILES, None),
    ("generation.md", 'hypotheses = biasing.begin(batch, device="cuda:0")'): (GPU, "tests/python/test_generation_transformers.py"),
    ("models.md", "# audio: a tensor [utterances, samples]; lengths: the number of samples of each\nfrom nemo"): ("needs NeMo", "tests/python/test_integrations_nemo.py"),
    ("models.md", "# audio: a tensor [utterances, samples]; lengths: the number of samples of each\nfrom espnet2"): ("needs ESPnet", "tests/python/test_integrations_espnet.py"),
    ("models.md", "bundle = torchaudio.pipelines"): ("downloads a model", None),
    ("models.md", "graph = wf.Graph(wf.integrations.k2_fst("): (OWN_FILES, None),
    ("hybrid.md", 'hmm = wf.Hmm.read_kaldi("exp'): (OWN_FILES, None),
    ("hybrid.md", "warpfst decode exp/"): (OWN_FILES, None),
    ("hybrid.md", "warpfst mkgraph hmm --am=exp/tri3b"): (OWN_FILES, None),
    ("hybrid.md", 'graph = wf.build_hmm_graph("exp'): (OWN_FILES, None),
    ("scale-out.md", "sbatch"): (CLUSTER, None),
    ("scale-out.md", "python -m warpfst.transcribe.cluster"): (CLUSTER, None),
    ("scale-out.md", "from warpfst.transcribe.cluster import Settings, transcribe_list"): (CLUSTER, None),
    ("scale-out.md", "# my_model.py"): ("needs torch", "tests/python/test_torch.py"),
    ("scale-out.md", "torchrun"): ("needs torch", "tests/python/test_torch.py"),
    ("scale-out.md", "from warpfst.transcribe.cluster import Settings, transcribe_part"): ("needs torch", None),
    ("scale-out.md", "class Decode"): (CLUSTER, "tests/python/test_cluster.py"),
    ("added-words.md", "new delhi"): ("a list of words, no code", None),
    ("c.md", "/* decode.c"): ("is examples/c/decode.c", "tests/cli/test_install.sh"),
    ("composition.md", "/* compose.c"): ("is examples/c/compose.c", "tests/cli/test_c_programs.sh"),
    ("c.md", "cc decode.c"): (BUILD, None),
    ("c.md", "find_package"): (BUILD, "tests/cli/test_install.sh"),
    ("composition.md", "import warpfst as wf\n\nboth"): (GPU, None),
    ("gpu.md", "warpfst decode TLG.wfst scores/ --device"): (GPU, None),
    ("gpu.md", "import warpfst as wf\n\nif not wf.cuda"): (GPU, None),
    ("gpu.md", "warpfst mkgraph hmm --am=en-us"): (GPU, None),
    ("gpu.md", "personal = wf.build_hmm_graph"): (GPU, None),
    ("gpu.md", "warpfst plan"): (GPU, None),
    ("install.md", "apt-get update"): (BUILD, "tests/bare/test.sh"),
    ("install.md", "cmake -B build/c"): (BUILD, None),
    ("install.md", "./run wheel"): (BUILD, None),
    ("containers.md", "docker build"): ("needs Docker", None),
    ("ocr.md", "lines = open("): (OWN_FILES, None),
    ("ocr.md", 'names = {" ": '): (OWN_FILES, None),
    ("ocr.md", "warpfst mkgraph ctc --tokens=tokens.txt"): (OWN_FILES, None),
    ("ocr.md", "[probabilities] = session.run("): (OWN_FILES, None),
    ("ocr.md", 'with open("text.txt"'): (OWN_FILES, None),
    ("ocr.md", "warpfst lm estimate characters.txt"): (OWN_FILES, None),
    ("open-vocabulary.md", "spm_encode"): (OWN_FILES, None),
    ("own-model.md", "decoder = wf.Decoder(graph, device="): (GPU, "tests/python/test_pipeline.py"),
    ("performance.md", "./run pack-gpu"): (GPU, None),
    ("rescoring.md", "from causal_lm import"): ("needs transformers", None),
    ("rnnlm.md", "from safetensors.torch"): ("needs torch and safetensors", None),
    ("several-gpus.md", 'decoder = wf.Decoder(graph, device="cuda:0,1"'): (GPU, None),
    ("several-gpus.md", "wf.build_ctc_graph"): (GPU, None),
    ("server.md", "curl -F file=@examples/cards/card1.wav localhost"): (SERVER, "tests/python/test_serve.py"),
    ("server.md", '{"text": "ten of clubs", "usage"'): (SERVER, "tests/python/test_serve.py"),
    ("server.md", "from openai import"): (SERVER, "tests/python/test_serve.py"),
    ("server.md", "curl -F file=@examples/cards/card1.wav -F text"): (SERVER, "tests/python/test_serve.py"),
    ("server.md", '{"text":"ten of clubs","words"'): (SERVER, "tests/python/test_serve.py"),
    ("server.md", "from ray import serve"): (CLUSTER, "tests/python/test_serve_ray.py"),
    ("streaming.md", "/* stream.c"): ("is examples/c/stream.c", "tests/cli/test_c_programs.sh"),
    ("transcribe.md", "{"): ("a file, no code", None),
    ("transducers.md", "from warpfst import integrations"): (OWN_FILES, None),
    ("transducers.md", 'graph = wf.build_ctc_graph("tokens.txt", topology'): (OWN_FILES, None),
    ("transducers.md", "warpfst mkgraph ctc"): (OWN_FILES, None),
    ("transducers.md", "warpfst decode words.wfst encoder_outputs/"): (OWN_FILES, None),
    ("transducers.md", 'large = wf.Scorer.from_lm("large.wlm"'): (OWN_FILES, None),
    ("transducers.md", 'graph = wf.build_ctc_graph("tokens.txt", "lexicon.txt"'): (OWN_FILES, None),
    ("triton.md", "cmake --preset release"): ("needs Triton Inference Server", None),
    ("triton.md", "build/release/warpfst mkgraph ctc --topology"): ("needs Triton Inference Server", None),
}


def other_blocks():
    """Yields (page, language, code) of the blocks that test_examples.py does not run."""
    chosen = [page for page in all_pages() if page.name == "README.md" or page.parent.name in ("tutorials", "how-to")]
    for page in chosen:
        text = page.read_text(encoding="utf-8")
        run = {match.start(3) for match in pages._BLOCK.finditer(text) if match[3] is not None}
        for match in _FENCE.finditer(text):
            if match[1] not in ("python", "bash") and match.start(2) not in run:
                yield page, match[1], match[2]


BLOCKS = list(other_blocks())


def is_key_of(key, page, code):
    name, start = key
    return page.name == name and code.startswith(start)


def find(key):
    return [block for block in BLOCKS if is_key_of(key, block[0], block[2])]


def unlisted(blocks):
    return [f"{page}: {code[:60]!r}" for page, _, code in blocks if sum(is_key_of(key, page, code) for key in (*RUN, *NOT_RUN)) != 1]


def test_every_block_is_in_one_list():
    assert len(BLOCKS) >= 30
    assert not unlisted(BLOCKS)
    assert [key for key in (*RUN, *NOT_RUN) if len(find(key)) != 1] == [], "the key matches no block, or several"


def order_of(text, *places):
    """Where the patterns are first found in a text; fails if one is not."""
    found = [re.search(place, text) for place in places]
    assert all(found), [place for place, match in zip(places, found) if match is None]
    return [match.start() for match in found]


def readme_begins_well(text):
    """First what goes in and comes out, then `./run demo` and `./run test` before any other command, then the comparison with other toolkits."""
    commands = [line.partition("#")[0].strip() for language, code in _FENCE.findall(text) if language in ("sh", "bash", "") for line in code.splitlines()]
    starts = order_of(text, "log-probabilities", "words", r"\./run demo", r"\./run test", "torchaudio")
    return commands[:2] == ["./run demo", "./run test"] and starts == sorted(starts)


def test_readme_begins_with_what_it_does_and_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme_begins_well(text)
    assert not readme_begins_well(text.replace("./run demo ", "./run build "))
    table = text[text.index("## How fast") : text.index("## Python")]
    assert not readme_begins_well(table + text.replace(table, ""))


def test_a_new_block_is_noticed():
    assert unlisted([(ROOT / "README.md", "sh", "warpfst version\n")])


def run_shell(code, setup, folder):
    return pages.run_in(folder, ["bash", "-euo", "pipefail", "-c", f"{setup}\n{code}"])


@pytest.mark.parametrize("key", RUN, ids=lambda key: key[0])
def test_block_runs(key, tmp_path):
    ((_, _, code),) = find(key)
    check_shell(code)
    kept = [line for line in code.splitlines() if not _LEFT_OUT.search(line)]
    assert kept
    run = run_shell("\n".join(kept), RUN[key], tmp_path)
    assert run.returncode == 0, f"{code}\n{run.stdout}\n{run.stderr}"


def resolve(root, names):
    for name in names:
        root = getattr(root, name)
    return root


def dotted(node):
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, names[::-1]) if isinstance(node, ast.Name) else (None, [])


def check_python(code):
    """The code compiles, the names that it uses from the package exist, and keyword arguments are parameters or options."""
    tree = ast.parse(code)
    options = {option.name for table in wf.tables() for option in wf.describe(table)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "warpfst":
            for alias in node.names:
                getattr(importlib.import_module(node.module), alias.name)
        if isinstance(node, ast.Attribute) and dotted(node)[0] == "wf":
            resolve(wf, dotted(node)[1])
        if isinstance(node, ast.Call) and dotted(node.func)[0] == "wf":
            known = inspect.signature(resolve(wf, dotted(node.func)[1])).parameters
            loose = any(parameter.kind == parameter.VAR_KEYWORD for parameter in known.values())
            unknown = {keyword.arg for keyword in node.keywords} - set(known) - (options if loose else set())
            assert not unknown, f"{ast.unparse(node)}: {unknown}"


def check_shell(code):
    """bash accepts the syntax, and the files, modules and verbs that it names exist. test_commands_in_the_pages_use_existing_flags checks flags of `warpfst`."""
    run = subprocess.run(["bash", "-n"], input=code, capture_output=True, text=True)
    assert run.returncode == 0 and not run.stderr, run.stderr
    for name in re.findall(r"(?<![\w/.$])(?:bench|examples|triton|tools)/[\w./-]+", code):
        assert (ROOT / name).exists(), name
    for module, rest in re.findall(r"python -m (warpfst[\w.]*)(.*)", code):
        flags = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True).stdout
        assert set(re.findall(r"--[a-z][a-z-]*", rest)) <= set(re.findall(r"--[a-z][a-z-]*", flags))
    verbs = (ROOT / "run").read_text(encoding="utf-8")
    for verb in re.findall(r"^\./run ([a-z-]+)", code, re.MULTILINE):
        assert re.search(rf"^#   \./run {verb}\b", verbs, re.MULTILINE), verb


def runs_it(script, page, code):
    """Does a test script run the block? It may select it by a text (try_block NAME OUTPUT PAGE TEXT), check it as output, or name its page (which the test reads) or function."""
    tries = re.findall(r"try_block \S+ '([^']*)' (\S+) '([^']*)'", script)
    if tries:
        return any(ROOT / name == page and (words in code or re.search(output, code, re.MULTILINE)) for output, name, words in tries)
    return page.name in script if code.startswith(("/*", "class", "#", "torchrun", "curl", "{", "from openai", "from ray")) else code.split("(")[0] in script


def check_list(code):
    """A list of added words: each line has a phrase, and optionally its cost and pronunciations."""
    for line in code.splitlines():
        fields = re.split(r"\s{2,}|\t", line)
        assert len(fields) < 2 or set(" ".join(fields[-1:]).split()) <= PHONES


PHONES = {line.split()[0] for line in (ROOT / "examples" / "ctc" / "tokens_phone.txt").read_text(encoding="utf-8").splitlines()}
CHECKS = {"py": check_python, "sh": check_shell, "": check_shell, "json": json.loads, "text": check_list}


@pytest.mark.parametrize("key", NOT_RUN, ids=lambda key: f"{key[0]}-{key[1][:20]}")
def test_block_is_checked(key):
    ((page, language, code),) = find(key)
    _, runner = NOT_RUN[key]
    if runner is None:
        CHECKS[language](code)
    else:
        assert runs_it((ROOT / runner).read_text(encoding="utf-8"), page, code)


@pytest.mark.parametrize(
    "check,code",
    [
        (check_python, "import warpfst as wf\nwf.Decodr(graph)"),
        (check_python, "wf.Decoder(graph, beem=3)"),
        (check_python, "wf.Decoder(graph"),
        (check_shell, "for x in y; do"),
        (check_shell, "bash bench/no_such.sh"),
        (check_shell, "./run fly-away"),
        (check_list, "siobhan    2.5    SH AH VV"),
    ],
)
def test_a_broken_block_is_noticed(check, code):
    with pytest.raises((AssertionError, AttributeError, SyntaxError)):
        check(code)


def test_a_block_that_no_script_runs_is_noticed():
    script = (ROOT / "tests" / "bare" / "test.sh").read_text(encoding="utf-8")
    assert not runs_it(script, ROOT / "README.md", "warpfst version\n")


def test_a_broken_shell_block_is_noticed(tmp_path):
    assert run_shell("warpfst decode TLG.wfst logp/ --no-such-flag", "", tmp_path).returncode != 0
