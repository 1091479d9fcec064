#!/usr/bin/env python3
"""build_docs.py OUTPUT_FOLDER - builds the documentation site. Needs the installed package and docs/requirements.txt (`./run docs`).

    docs/                          -+
    the package's option tables     |
    help of every command           +->  OUTPUT/pages/*.md  -> mkdocs --strict, which checks every link and anchor -> OUTPUT/site
    include/*.h, docstrings         |
    bench/figures     -> plots     -+

Pages link to other files of the repository (headers, figures). These files are copied into the site and the links are changed, so the site is self-contained.
"""

import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import py_mini_racer

import warpfst as wf
import warpfst.compat
import warpfst.integrations
import warpfst.serve
import warpfst.transcribe.cluster

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TEXT_FILES = (".h", ".csv", ".c", ".py", ".sh", ".sbatch", ".cmake", "")  # copied as text files, which mkdocs does not process


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def options_page():
    """The page of all option tables, made from the library."""
    lines = ["# Options", "", "Every option of the library: fields of C structures, command-line flags (`--like-this`) and Python keywords (`like_this`). Generated from the library's tables.", ""]
    for table in sorted(wf.tables()):
        lines += [f"## {table}", "", f"`wf_{table}_options`, `wf.describe(\"{table}\")`", "", "| option | type | default | range | unit | |", "|---|---|---|---|---|---|"]
        for option in wf.describe(table):
            kind = "one of " + ", ".join(f"`{choice}`" for choice in option.choices) if option.choices else option.type
            numeric = option.type in ("int", "float") and not option.choices
            reach = f"{option.minimum:g} to {option.maximum:g}" if numeric else ""
            default = "" if option.default is None else f"`{option.default:g}`" if isinstance(option.default, float) else f"`{option.default}`"
            lines.append(f"| `{option.name}` | {cell(kind)} | {default} | {reach} | {cell(option.unit)} | {cell(option.help)} |")
        lines.append("")
    return "\n".join(lines)


IN_PYTHON = ["transcribe", "serve"]  # commands


def program(*arguments):
    binary = pathlib.Path(wf.__file__).parent / "bin" / "warpfst"
    command = [sys.executable, "-m", "warpfst"] if arguments[0] in IN_PYTHON else [binary]
    run = subprocess.run([*command, *arguments], capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"})
    return run.stdout or run.stderr


def file_of(title):
    return re.sub(r"[^a-z]+", "-", title.lower()).strip("-")


def command_parts(name):
    """The help of a command and of its subcommands: pairs of title and text."""
    text = program(name, "--help")
    parts = re.findall(rf"^  {name} ([a-z]+)  +\S", text, re.MULTILINE) or (["ctc", "hmm"] if name == "mkgraph" else [])
    return [(name, text), *((f"{name} {part}", program(name, part, "--help")) for part in parts)]


def commands_pages():
    """The pages with the help of every command: an overview, and one for each group of the program's own overview."""
    overview = program("help")
    groups = re.findall(r"^([A-Z][^\n]*)\n((?:  +\S[^\n]*\n)+)", overview, re.MULTILINE)
    commands = {title: re.findall(r"^  ([a-z]+)  +\S", body, re.MULTILINE) for title, body in groups}
    commands["Decoding"] += IN_PYTHON  # which have a group of their own there
    index = ["# Command line", "", "```text", overview.rstrip(), "```", ""]
    pages = {}
    for title, names in commands.items():
        if set(names) <= set(IN_PYTHON):
            continue
        name = f"commands-{file_of(title)}"
        lines = [f"# Commands: {title.lower()}", "", "Generated from the program's help. [All commands](commands.md).", ""]
        links = []
        for command in names:
            for heading, shown in command_parts(command):
                lines += [f"## {heading}", "", "```text", shown.rstrip(), "```", ""]
                links.append(f"[{heading}]({name}.md#{heading.replace(' ', '-')})")
        index += [f"**[{title}]({name}.md)**: {', '.join(links)}", ""]
        pages[name] = "\n".join(lines)
    return {"commands": "\n".join(index), **pages}


def prose(comment):
    """A C comment as Markdown paragraphs. Indented lines (drawings, formulas) become code."""
    body = re.sub(r"^/\*+ ?|\s*\*+/$", "", comment)
    lines = [re.sub(r"^ \* ?", "", line) for line in body.splitlines()]
    out = []
    for line in lines:
        code = line.startswith("    ")
        if code and (not out or not out[-1].startswith("    ")):
            out.append("")
        out.append(line if code else line.strip().replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_"))
    return "\n".join(out)


def c_page():
    """The page of the public headers: a chapter for each, with its sections. Comments become text, declarations become code."""
    lines = ["# C API", "", "Generated from the headers in `include/`. `warpfst.h` has what decoding needs; the other headers include it.", ""]
    for name in C_HEADERS:
        lines += c_header(name)
    return "\n".join(lines)


C_HEADERS = ("warpfst.h", "warpfst_io.h", "warpfst_lm.h", "warpfst_lattice.h", "warpfst_fst.h", "warpfst_ops.h", "warpfst_graph.h", "warpfst_compat.h", "warpfst_transducer.h", "warpfst_generation.h")


def c_header(name):
    text = (ROOT / "include" / name).read_text(encoding="utf-8")
    about, guard, rest = text.partition("#ifndef WARPFST_")
    header = (guard + rest)[: (guard + rest).rindex("#ifdef __cplusplus")]
    header = header[header.index('extern "C" {\n#endif\n') + len('extern "C" {\n#endif\n') :]
    lines = [f"## {name}", "", prose(about.strip()), "", f"[The whole header](../../include/{name}).", ""]
    code = []

    def flush():
        text = "\n".join(code).strip("\n")
        if text:
            lines.extend(["```c", text, "```", ""])
        code.clear()

    for piece in re.split(r"^(/\*(?:.|\n)*?\*/)\n", header, flags=re.MULTILINE):
        if piece.startswith("/* ====="):
            flush()
            title, _, rest = re.sub(r"^[ *]*=+[ */]*$", "", prose(piece.replace("=" * 20, "=")), flags=re.MULTILINE).replace("=", "").strip().partition("\n")
            lines += [f"### {' '.join(title.split())}", "", rest, ""]
        elif piece.startswith("/*"):
            flush()
            lines += [prose(piece), ""]
        else:
            code.extend(piece.splitlines())
    flush()
    return lines


def docstring(thing):
    text = inspect.getdoc(thing) or ""
    tables = re.findall(r'^Options of the table "(\w+)":$', text, re.MULTILINE)  # they have a page of their own
    first, _, rest = text.partition('\n\nOptions of the table "')[0].partition("\n\n")
    links = [f"Options: {', '.join(f'[{table}](options.md#{table})' for table in tables)}.", ""] if tables else []
    return [first, "", *(["```text", rest.rstrip(), "```", ""] if rest else []), *links]


def signature(name, thing):
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        text = "(...)"
    return re.sub(r"'([^']*)'", r"\1", f"{name}{text}").replace("~", "")


def members(cls):
    """The public members that a class defines itself, in order."""
    for name, thing in vars(cls).items():
        if name.startswith("_") or name in ("address", "close") or not (isinstance(thing, (property, classmethod, staticmethod)) or inspect.isfunction(thing)):
            continue
        yield name, thing


def class_entry(name, cls):
    lines = [f"### {name}", "", "```python", f"class {signature(name, cls) if not issubclass(cls, (Exception, tuple)) else name}", "```", "", *docstring(cls)]
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        lines += ["Fields: " + ", ".join(f"`{field}`" for field in cls._fields), ""]
    for member, thing in members(cls):
        inner = thing.fget if isinstance(thing, property) else thing.__func__ if isinstance(thing, (classmethod, staticmethod)) else thing
        shown = f"{name}.{member}" if isinstance(thing, property) else signature(f"{name}.{member}", inner)
        lines += ["```python", shown, "```", "", *docstring(inner)]
    return lines


def torch_entries():
    """The functions of the torch module, read from its source, because torch may not be installed."""
    import ast

    tree = ast.parse((pathlib.Path(wf.__file__).parent / "torch.py").read_text(encoding="utf-8"))
    lines = ["## warpfst.torch", "", ast.get_docstring(tree).partition("\n\n")[0], ""]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            first, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
            lines += [f"### {node.name}", "", "```python", f"{node.name}({ast.unparse(node.args)})", "```", "", first, "", *(["```text", rest, "```", ""] if rest else [])]
    return lines


def entry(name, thing):
    return class_entry(name, thing) if inspect.isclass(thing) else [f"### {name}", "", "```python", signature(name, thing), "```", "", *docstring(thing)]


# The pages of the package's names: title, and the modules that define them.
PYTHON_SUBJECTS = {
    "Decoding": ("decoder", "results", "streams", "aio", "scores", "transducer", "align", "error_rate", "option_tables", "options", "_library"),
    "Graphs": ("graphs", "lexicon", "symbols", "integrations"),
    "Lattices": ("lattice", "rescoring"),
    "Language models": ("lm", "rnnlm", "scorers"),
    "Transducers": ("fst",),
    "Exceptions": ("errors",),
}


def public_names():
    """The classes and functions of the package and of warpfst.fst, by name."""
    found = {name: getattr(wf, name) for name in wf.__all__}
    found |= {f"fst.{name}": getattr(wf.fst, name) for name in wf.fst.__all__ if name not in wf.__all__}
    return {name: found[name] for name in sorted(found, key=str.lower) if inspect.isclass(found[name]) or inspect.isfunction(found[name])}


def subject_lines(modules):
    """The classes, then the functions of these modules, and their names."""
    chosen = {name: thing for name, thing in public_names().items() if thing.__module__.split(".")[1] in modules}
    kinds = {"Classes": inspect.isclass, "Functions": inspect.isfunction}
    lines, order = [], []
    for kind, is_kind in kinds.items():
        found = [name for name, thing in chosen.items() if is_kind(thing)]
        lines += [f"## {kind}", ""] if found else []
        for name in found:
            lines += entry(name, chosen[name])
        order += found
    return lines, order


def other_modules():
    """The modules that are imported by their own names."""
    lines = torch_entries()
    for title, module, names in (
        ("warpfst.compat", warpfst.compat, ("build_ctcdecoder", "BeamSearchDecoderCTC", "LanguageModel", "LMState", "Alphabet", "ctc_decoder", "CTCDecoder", "CTCHypothesis", "cuda_ctc_decoder", "CUCTCDecoder")),
        ("warpfst.compat.flashlight.decoder", warpfst.compat.flashlight.decoder, warpfst.compat.flashlight.decoder.__all__),
        ("warpfst.compat.flashlight.dictionary", warpfst.compat.flashlight.dictionary, ("Dictionary", "load_words", "create_word_dict", "pack_replabels", "unpack_replabels")),
        ("warpfst.integrations", warpfst.integrations, [name for name in warpfst.integrations.__all__ if not name.startswith("from_")]),
        ("warpfst.transcribe", warpfst.transcribe, warpfst.transcribe.__all__),
        ("warpfst.serve", warpfst.serve, warpfst.serve.__all__),
        ("warpfst.transcribe.cluster", warpfst.transcribe.cluster, ("transcribe_list", "transcribe_part", "Settings", "Summary")),
    ):
        lines += [f"## {title}", "", *docstring(module)]
        for name in names:
            lines += entry(name, getattr(module, name))
    return lines


def python_pages():
    """The pages of the package's docstrings: an overview, one for each subject, and one for the other modules."""
    index = ["# Python API", "", "Generated from the package's docstrings. [Python](python.md) is an introduction.", ""]
    pages, told = {}, set()
    for title, modules in PYTHON_SUBJECTS.items():
        name = f"python-api-{file_of(title)}"
        lines, order = subject_lines(modules)
        told |= set(order)
        pages[name] = "\n".join([f"# Python API: {title.lower()}", "", "[All names](python-api.md).", "", *lines])
        links = [f"[`{one}`]({name}.md#{one.lower().replace('.', '')})" for one in order]
        index += [f"**[{title}]({name}.md)**: {', '.join(links)}", ""]
    left = {*public_names()} - told
    assert not left, f"PYTHON_SUBJECTS has no place for {sorted(left)}"
    name = "python-api-modules"
    pages[name] = "\n".join(["# Python API: other modules", "", "[All names](python-api.md).", "", *other_modules()])
    links = [f"[`{title}`]({name}.md#{title.replace('.', '')})" for title in re.findall(r"^## (.*)$", pages[name], re.MULTILINE)]
    index += [f"**[Other modules]({name}.md)**: {', '.join(links)}", ""]
    return {"python-api": "\n".join(index), **pages}


def bring_links(page, source, pages):
    """Copies files outside docs/ that a page links to into files/, and changes the links."""

    def changed(match):
        target, anchor = match[2], match[3] or ""
        if re.match(r"[a-z]+:", target) or not target:
            return match[0]
        path = (source.parent / target).resolve()
        if DOCS in path.parents or not path.exists():
            return match[0]  # mkdocs checks these
        copy = pages / "files" / path.relative_to(ROOT)
        copy = copy.with_name(copy.name + ".txt") if path.suffix in TEXT_FILES or path.suffix == ".md" else copy
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            return match[1]
        shutil.copy(path, copy)
        return f"[{match[1][1:-1]}]({os.path.relpath(copy, page.parent)}{anchor})"

    text = page.read_text(encoding="utf-8")
    page.write_text(re.sub(r"(\[[^\]\n]*\])\(([^)#\s]*)(#[^)\s]*)?\)", changed, text), encoding="utf-8")


# Terms that people search for, and the page that must be among the first RANK results of each.
RANK = 3
SEARCHES = {
    "hotwords": "how-to/hotwords.html",
    "biasing": "how-to/hotwords.html",
    "contextual biasing": "how-to/hotwords.html",
    "keyword spotting": "how-to/spotting.html",
    "word timestamps": "how-to/word-times.html",
    "timestamps": "how-to/word-times.html",
    "forced alignment": "how-to/alignment.html",
    "confidence": "how-to/word-times.html",
    "n-best": "how-to/lattices.html",
    "shallow fusion": "concepts/scorer.html",
    "KenLM": "how-to/lm.html",
    "streaming": "how-to/streaming.html",
    "endpointing": "how-to/streaming.html",
    "punctuation": "how-to/transcribe.html",
    "huggingface": "how-to/own-model.html",
    "out-of-vocabulary": "how-to/added-words.html",
    "multi-gpu": "how-to/several-gpus.html",
    "slurm": "tutorials/scale-out.html",
    "ray": "tutorials/scale-out.html",
    "confusion network": "concepts/lattice.html",
    "diarization": "what-it-does-not-do.html",
    "whisper": "what-it-does-not-do.html",
    "docker": "what-it-does-not-do.html",
    "voice activity": "what-it-does-not-do.html",
    "punctuation restoration": "what-it-does-not-do.html",
    "subtitles": "how-to/transcribe.html",
}
ALSO_CALLED = re.compile(r"^Also called: (.*?)\.(?=\s|$)", re.MULTILINE | re.DOTALL)


def tag_page(page):
    """Makes the other names of a page's subject ("Also called: ...") its tags, which the search ranks above titles and text."""
    text = page.read_text(encoding="utf-8")
    names = ALSO_CALLED.search(text)
    if names:
        assert not text.startswith("---"), f"{page}: already has front matter"
        tags = [" ".join(re.sub(r"[()]", "", name).split()) for name in names[1].split(",")]
        page.write_text(f"---\ntags: {json.dumps(tags)}\n---\n\n{text}", encoding="utf-8")


class Search:
    """Runs the site's own search in a JavaScript engine: the script of its worker, with its index."""

    HARNESS = """
        var self = this, console = {warn() {}}, listener, answer;
        function addEventListener(name, called) { listener = called; }
        function postMessage(message) { answer = message; }
        function send(type, data) { answer = null; listener({data: {type, data}}); }
    """

    def __init__(self, site, index):
        (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.min.js")
        self.engine = py_mini_racer.MiniRacer()
        self.engine.eval(self.HARNESS)
        self.engine.eval(worker.read_text(encoding="utf-8"))
        self.engine.eval(f"send(0, {json.dumps({**index, 'options': {}})})")
        assert json.loads(self.engine.eval("JSON.stringify(answer)"))["type"] == 1, "the site's search does not start"

    def pages(self, words):
        """The pages found, best first."""
        self.engine.eval(f"send(2, {json.dumps(words)})")
        found = json.loads(self.engine.eval("JSON.stringify(answer)"))
        return [sections[0]["location"].partition("#")[0] for sections in found["data"]["items"]]


def misses(search):
    """The searches whose page is not among the first RANK results, with their results."""
    found = {words: search.pages(words)[:RANK] for words in SEARCHES}
    return {words: found[words] for words, page in SEARCHES.items() if page not in found[words]}


def without_synonyms(index):
    docs = [{**entry, "text": re.sub(r"Also called:.*?</p>", "</p>", entry["text"], flags=re.DOTALL)} for entry in index["docs"]]
    return {**index, "docs": [{field: entry[field] for field in entry if field != "tags"} for entry in docs]}


def check_search(site):
    """Checks that the search works in pages opened as files, and that the terms of SEARCHES find their pages."""
    text = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") :])
    missed = misses(Search(site, index))
    assert not missed, f"search: pages that are not among the first {RANK} results: {missed}"
    assert misses(Search(site, without_synonyms(index))), "search: the check also passes without synonyms, so it tests nothing"
    for page in set(site.rglob("*.html")) - {site / "404.html"}:  # only servers use this page
        scripts = re.findall(r'<script[^>]* src="([^"]*)"', page.read_text(encoding="utf-8"))
        assert not [script for script in scripts if not (page.parent / script).exists()], f"{page}: a script is not in the site: {scripts}"
        assert any(script.endswith("iframe-worker.js") for script in scripts), f"{page}: no search in a page opened as a file"


def main():
    subprocess.run([sys.executable, ROOT / "tools" / "pictures.py", "--check"], check=True)
    output = pathlib.Path(sys.argv[1]).resolve()
    pages = output / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages)
    reference = pages / "reference"  # generated pages go beside those written by hand
    reference.mkdir(exist_ok=True)
    for name, text in {"options": options_page(), "c-api": c_page(), **commands_pages(), **python_pages()}.items():
        (reference / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "tools" / "plots.py", pages / "plots"], check=True)
    for page in pages.rglob("*.md"):
        relative = page.relative_to(pages)
        bring_links(page, DOCS / relative, pages)
        tag_page(page)
    (output / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", output / "mkdocs.yml", "--site-dir", output / "site"], check=True)
    check_search(output / "site")
    count = sum(1 for _ in (output / "site").rglob("*.html"))
    print(f"{count} pages in {output / 'site'}")


if __name__ == "__main__":
    main()
