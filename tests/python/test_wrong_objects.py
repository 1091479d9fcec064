"""Objects of a wrong class, as any argument that takes an object of the package: an error that names what is expected, not memory read as another class or an inner name."""

import inspect
import pickle
import re

import numpy as np
import pytest
from conftest import CTC

import warpfst as wf
from warpfst._library import Handle

CLASSES = {one.__name__ for one in vars(wf).values() if inspect.isclass(one) and issubclass(one, Handle)}
INSIDE = {"CompactLattice.__init__", "Lattice.__init__", "Results.__init__", "Stream.__init__", "AsyncStream.set_graph", "Fst.__add__"}  # called by the package only; a coroutine; takes texts


def functions():
    """(name, function) of the package's functions, and of the methods of its classes."""
    for name in wf.__all__:
        one = getattr(wf, name)
        if inspect.isfunction(one):
            yield name, one
        elif inspect.isclass(one):
            methods = ((method, getattr(function, "__func__", function)) for method, function in vars(one).items())
            yield from ((f"{name}.{method}", function) for method, function in methods if inspect.isfunction(function) and (method in ("__init__", "__add__") or method[0] != "_"))


def arguments():
    """(function, argument) for each argument that takes an object of one of the package's classes."""
    for name, function in functions():
        for argument in inspect.signature(function).parameters.values():
            if name not in INSIDE and argument.kind is not argument.VAR_KEYWORD and CLASSES & set(re.findall(r"\w+", str(argument.annotation))):
                yield name, argument.name


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """Right values: objects by class, and other arguments by name."""
    folder = tmp_path_factory.mktemp("objects")
    graph = wf.build_ctc_graph(["<blk>", "a", "b"], {"a": "a", "b": "b"})
    decoder = wf.Decoder(graph, lattice_beam=4)
    (folder / "lm.arpa").write_text("\\data\\\nngram 1=4\n\n\\1-grams:\n-0.5\t</s>\n-99\t<s>\n-0.5\ta\n-0.5\tb\n\n\\end\\\n")
    lattice = decoder.decode(np.zeros((3, 3), np.float32))[0].lattice
    lm, scorer = wf.LM.read(folder / "lm.arpa"), wf.Scorer.boost({1: 1.0})
    made = [graph.fst, graph, decoder, decoder.stream(), lattice, lattice.determinize(), lm, wf.LM.convert(folder / "lm.arpa", folder / "lm.wlm"), scorer, graph.words]
    made += [graph.word_aligner, wf.Lexicon.from_dict({"a": "a"}, ["<blk>", "a"]), wf.fst.Encoder.create(labels=True)]
    made += [wf.fst.FarWriter.create(folder / "a.far"), wf.LatticeWriter(folder / "a.lat")]
    scores = np.zeros((3, 3), np.float32)
    found = {
        **{type(one).__name__: one for one in made},
        "am": CTC,
        "arcs": [(0, 0, 1, 1, 0.0)],
        "backoff_label": 9,
        "boosts": {"a": 1.0},
        "chunks": [scores],
        "finals": {0: 0.0},
        "ilabels": [1],
        "key": "a",
        "log_probs": scores,
        "olabels": [1],
        "path": folder / "new",
        "potentials": [0.0] * graph.fst.num_states,
        "rnnlm": CTC / "none",
        "scores": scores,
        "texts": ["a"],
        "tokens": ["<blk>", "a"],
        "words": ["a"],
    }
    yield found
    for one in found.values():
        if isinstance(one, Handle):
            one.close()


def value(argument, objects):
    annotated = str(argument.annotation)
    known = next((objects[name] for name in re.findall(r"\w+", annotated) if name in CLASSES and name in objects), objects.get(argument.name))
    return [known] if annotated.startswith("Sequence") and isinstance(known, Handle) else known


def given(name, wrong_name, wrong, objects):
    """The call's function, and its arguments: the wrong one, and right values of those that have no default."""
    owner, _, method = name.rpartition(".")
    function = getattr(getattr(wf, owner) if owner else wf, method)
    positional, keywords = [], {}
    for argument in inspect.signature(function).parameters.values():
        if argument.name == "self":
            positional += [objects[owner]] if method != "__init__" else []
        elif argument.name != wrong_name and (argument.default is not argument.empty or argument.kind in (argument.VAR_KEYWORD, argument.VAR_POSITIONAL)):
            continue
        elif argument.default is argument.empty:
            positional.append(wrong if argument.name == wrong_name else value(argument, objects))
        else:
            keywords[argument.name] = wrong
    return getattr(wf, owner) if method == "__init__" else function, positional, keywords


@pytest.mark.parametrize(("name", "wrong_name"), list(arguments()))
def test_an_object_of_a_wrong_class(name, wrong_name, objects):
    for wrong in ("x", 5, object(), objects["Symbols"], objects["Encoder"], ["x"]):
        function, positional, keywords = given(name, wrong_name, wrong, objects)
        if isinstance(wrong, wf.Symbols) and "Symbols" in str(inspect.signature(function).parameters[wrong_name].annotation):
            continue
        with pytest.raises((TypeError, ValueError, OSError, wf.Error)) as raised:  # a text may be the path of a file that does not exist
            function(*positional, **keywords)
        assert "attribute" not in str(raised.value), (wrong, raised.value)


def test_other_arguments_of_a_wrong_class(objects):
    tokens = wf.integrations.ModelTokens(["<blk>", "a"], 0, "here")
    calls = {
        "finals: expected a mapping": lambda: wf.Fst.from_arcs([(0, 0, 1, 1, 0.0)], [0]),
        "pronunciations: expected a mapping": lambda: wf.build_ctc_graph(["<blk>", "a"], wf.Lexicon.from_dict(["a"], ["<blk>", "a"])),
        "lm: expected a language model or its path": lambda: tokens.decoder(5),
        "expected Result, found": lambda: wf.Rescorer(lambda texts: texts)(["text"]),
        "aligner|expected WordAligner": lambda: objects["Fst"].with_word_aligner("x"),
        "config: expected DecoderConfig": lambda: wf.Decoder(objects["Graph"], {"beam": 3}),
    }
    for message, call in calls.items():
        with pytest.raises(TypeError, match=message):
            call()


def test_errors_name_no_temporary_file(objects, tmp_path):
    bad = tmp_path / "bad.arpa"
    bad.write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n-0.5\ta\n-0.5\n\n\\end\\\n")
    with pytest.raises(wf.FormatError, match=f"^{bad}"):  # the user's own file
        wf.Decoder(objects["Graph"], lm=bad)
    with pytest.raises(wf.FormatError) as raised:
        wf.Lexicon.from_dict({"a": "nonesuch"}, ["<blk>", "a"])
    assert "tmp" not in str(raised.value) and str(raised.value).startswith("<mapping>:1: ")


def test_objects_that_cannot_be_pickled_say_which_can(ctc_graph):
    with wf.Decoder(ctc_graph) as decoder, decoder.stream() as stream, wf.Lexicon.read(CTC / "lexicon_phone.txt", wf.Symbols.read(CTC / "tokens_phone.txt")) as lexicon:
        for one in (stream, lexicon):
            with pytest.raises(TypeError, match=f"^{type(one).__name__} cannot be pickled; Fst, Graph"):
                pickle.dumps(one)
