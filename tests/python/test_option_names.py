"""Every call that takes options.

An unknown option is answered with the nearest one, or with the call that has it; a wrong value with the allowed ones; help lists all options.
"""

import inspect
import re
import types

import numpy as np
import pytest
from conftest import CTC, ROOT

import warpfst as wf
import warpfst.compat
import warpfst.generation
import warpfst.transcribe.cluster
from warpfst import aio, integrations, option_calls, strings

CALLS = option_calls.calls_with_options()
LOADERS = ("from_espnet", "from_huggingface", "from_icefall", "from_nemo", "from_sentencepiece", "from_torchaudio", "from_wenet")
TOKENS = ["<blk>", "a", "|"]


class Pieces:
    """A sentencepiece model."""

    def get_piece_size(self):
        return 2

    def id_to_piece(self, piece):
        return "\u2581ab"[2 * piece :][:2]

    def encode(self, text, out_type=str):
        return [*text]


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    """A function of options for each call, by the call's name. What takes long, such as a file, is never reached."""
    folder = tmp_path_factory.mktemp("options")
    nowhere = folder / "nowhere"
    graph = wf.build_ctc_graph(TOKENS, {"a": "a"}, classes="<x>", grammar=wf.Fst.from_phrases(["a <x>"]))
    fst, lm = graph.fst, wf.LM.read(CTC / "lm3.arpa.gz")
    decoder = wf.Decoder(wf.build_ctc_graph(TOKENS, {"a": "a"}), lattice_beam=4)
    result = decoder.decode(np.log(np.full((3, 3), 1 / 3, np.float32)))[0]
    lattice, compact, batch = result.lattice, result.lattice.determinize(), wf.fst.FstBatch.create([fst])
    aligner = wf.WordAligner.from_lexicon(wf.Lexicon.from_dict({"a": "a"}, TOKENS), decoder.words)
    scores, hmm = np.zeros((3, 3), np.float32), nowhere
    rnn = ROOT / "tests" / "data" / "rnnlm" / "sigmoid"
    files = {"tokens.txt": "<blk> 0\na 1\n| 2\n", "list.txt": "<blk>\na\n|\n", "vocab.json": '{"[PAD]": 0, "a": 1, "|": 2}'}
    for name, text in files.items():
        (folder / name).write_text(text)
    nemo = types.SimpleNamespace(decoder=types.SimpleNamespace(vocabulary=["a", " "]))
    model = integrations.ModelTokens(TOKENS, 0, "here")
    of_one, of_two, of_batch = (
        re.findall(r"\w+", names)
        for names in (
            """arcmap arcsort closure determinize disambiguate epsnormalize factor_weight forward_score forward_score_gradients minimize
               project prune push randgen rmepsilon shortest_distance shortest_path""",
            "compose compose_batch compose_with_origins difference randequivalent",
            "arcsort determinize minimize project rmepsilon shortest_distance forward_score",
        )
    )
    made = {f"fst.{name}": lambda name=name, **o: getattr(wf.fst, name)(fst, **o) for name in of_one}
    made |= {f"fst.{name}": lambda name=name, **o: getattr(wf.fst, name)(fst, fst, **o) for name in of_two}
    made |= {f"fst.FstBatch.{name}": lambda name=name, **o: getattr(batch, name)(**o) for name in of_batch}
    return made | {
        "AsyncStreams.stream": lambda **o: wf.AsyncStreams(decoder).stream(**o),
        "CompactLattice.align": lambda **o: compact.align(aligner, **o),
        "CompactLattice.determinize": lambda **o: compact.determinize(**o),
        "CompactLattice.draw": lambda **o: compact.draw(nowhere, **o),
        "CompactLattice.mbr": lambda **o: compact.mbr(**o),
        "CompactLattice.rescore": lambda **o: compact.rescore(None, lm, **o),
        "CompactLattice.scale": lambda **o: compact.scale(**o),
        "CompactLattice.spot": lambda **o: compact.spot(["a"], **o),
        "Decoder": lambda **o: wf.Decoder(graph, **o),
        "Decoder.stream": lambda **o: decoder.stream(**o),
        "DecoderConfig": lambda **o: wf.DecoderConfig(**o),
        "Fst.compile": lambda **o: wf.Fst.compile(nowhere, **o),
        "Fst.from_text": lambda **o: wf.Fst.from_text("0", **o),
        "Fst.to_text": lambda **o: fst.to_text(**o),
        "Graph.add_words": lambda **o: graph.add_words(["aa"], **o),
        "Graph.plan": lambda **o: graph.plan(1, 1, **o),
        "Graph.plan_streams": lambda **o: graph.plan_streams(1, **o),
        "LM.build": lambda **o: wf.LM.build(nowhere, nowhere, **o),
        "LM.convert": lambda **o: wf.LM.convert(nowhere, nowhere, **o),
        "LM.estimate": lambda **o: wf.LM.estimate(nowhere, **o),
        "LM.mix": lambda **o: wf.LM.mix([lm], **o),
        "LM.mix_weights": lambda **o: wf.LM.mix_weights([lm], nowhere, **o),
        "LM.prune": lambda **o: lm.prune(**o),
        "LM.read": lambda **o: wf.LM.read(nowhere, **o),
        "LM.to_fst": lambda **o: lm.to_fst(**o),
        "Lattice.determinize": lambda **o: lattice.determinize(**o),
        "Lattice.draw": lambda **o: lattice.draw(nowhere, **o),
        "Lattice.scale": lambda **o: lattice.scale(**o),
        "LatticeReader": lambda **o: wf.LatticeReader(nowhere, **o),
        "LatticeWriter": lambda **o: wf.LatticeWriter(nowhere, **o),
        "Lexicon.from_dict": lambda **o: wf.Lexicon.from_dict({"a": "a"}, TOKENS, **o),
        "Lexicon.read": lambda **o: wf.Lexicon.read(nowhere, TOKENS, **o),
        "Lexicon.spell": lambda **o: wf.Lexicon.spell(["a"], TOKENS, **o),
        "Lexicon.to_fst": lambda **o: wf.Lexicon.from_dict({"a": "a"}, TOKENS).to_fst(**o),
        "ModelTokens.decoder": lambda **o: model.decoder(**o),
        "ModelTokens.graph": lambda **o: model.graph(**o),
        "ProcessorWithLM": lambda **o: integrations.ProcessorWithLM(folder / "vocab.json", words=["a"], **o),
        "RnnLM.train": lambda **o: wf.RnnLM.train(nowhere, nowhere, **o),
        "Result.draw": lambda **o: result.draw(nowhere, **o),
        "ScoreReader": lambda **o: wf.ScoreReader(nowhere, **o),
        "ScoreWriter": lambda **o: wf.ScoreWriter(nowhere, **o),
        "Scorer.from_lm": lambda **o: wf.Scorer.from_lm(lm, **o),
        "Scorer.from_rnnlm": lambda **o: wf.Scorer.from_rnnlm(rnn, **o),
        "Transducer.open": lambda **o: wf.Transducer.open(nowhere, **o),
        "Wer": lambda **o: wf.Wer(**o),
        "align": lambda **o: wf.align(scores, [1], **o),
        "align_hmm": lambda **o: wf.align_hmm(scores, ["a"], hmm, nowhere, **o),
        "align_words": lambda **o: wf.align_words([scores], ["a"], model, **o),
        "build_ctc_graph": lambda **o: wf.build_ctc_graph(TOKENS, **o),
        "build_hmm_graph": lambda **o: wf.build_hmm_graph(hmm, nowhere, **o),
        "ctc_topology": lambda **o: wf.ctc_topology(3, **o),
        "determinize_lattices": lambda **o: wf.determinize_lattices([lattice], **o),
        "from_espnet": lambda **o: wf.from_espnet(folder / "list.txt", **o),
        "from_huggingface": lambda **o: wf.from_huggingface(folder / "vocab.json", **o),
        "from_icefall": lambda **o: wf.from_icefall(folder / "tokens.txt", **o),
        "from_nemo": lambda **o: wf.from_nemo(nemo, **o),
        "from_sentencepiece": lambda **o: wf.from_sentencepiece(Pieces(), **o),
        "from_torchaudio": lambda **o: wf.from_torchaudio(TOKENS, **o),
        "from_wenet": lambda **o: wf.from_wenet(folder / "tokens.txt", **o),
        "fst.Composer": lambda **o: wf.fst.Composer([fst], [fst], **o),
        "fst.FstBatch.compose": lambda **o: wf.fst.FstBatch.compose([fst], [fst], **o),
        "fst.replace": lambda **o: wf.fst.replace({100: fst}, **o),
        "fst.reweight": lambda **o: wf.fst.reweight(fst, [0.0] * fst.num_states, **o),
        "wer": lambda **o: wf.wer("a", "b", **o),
    }  # fmt: skip


def functions_of(module):
    """(name, function) of the module's public functions, and of the methods of its classes."""
    for name, thing in vars(module).items():
        if not name.startswith("_") and inspect.isclass(thing) and thing.__module__.startswith("warpfst"):
            for inner, member in vars(thing).items():
                function = getattr(member, "__func__", member)
                if inspect.isfunction(function) and (inner == "__init__" or not inner.startswith("_")):
                    yield thing.__name__ if inner == "__init__" else f"{thing.__name__}.{inner}", function
        elif not name.startswith("_") and inspect.isfunction(thing):
            yield name, thing


def test_every_call_that_takes_keywords_is_known():
    """In all modules: a call with **options is in the table of calls, so that the tests below try it."""
    taking, modules = set(), (wf, wf.fst, aio, integrations, strings, wf.compat, wf.compat.flashlight.decoder, wf.generation, wf.transcribe, wf.transcribe.cluster)
    for module in modules:
        for name, function in functions_of(module):
            if any(one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values()):
                taking.add(name)
    known = {name.removeprefix("fst.") for name in CALLS}
    foreign = {"Wav2Vec2ProcessorWithLM.from_pretrained", "Wav2Vec2ProcessorWithLM.pad"}  # those of transformers
    assert taking - known == {"NamedTuple", "Options", "Options.replace", *foreign} and known >= {*LOADERS, "compose", "AsyncStreams.stream"}
    assert {option_calls.names(table) for table in wf.tables() if not any(table in of_call for of_call in CALLS.values())} <= {
        option_calls.names(table) for table in ("beam", "cdrewrite", "graph", "lattice_results", "result_writer", "tokens_graph")
    }


def test_every_call_is_tried(attempts):
    assert {*attempts} == {*CALLS}


def refusal(function, expected=wf.ArgumentError, /, **options):
    with pytest.raises(expected) as raised:
        function(**options)
    return str(raised.value)


@pytest.mark.filterwarnings("ignore:warpfst.LM.build")
@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_option_is_answered_with_the_nearest(name, attempts):
    for option in (option for table in CALLS[name] for option in wf.describe(table)):
        wrong = option.name[:2] + option.name[1:]
        assert refusal(attempts[name], **{wrong: 1}) == f"{name}: no option named '{wrong}'; did you mean '{option.name}'?"


@pytest.mark.filterwarnings("ignore:warpfst.LM.build")
@pytest.mark.parametrize("name", CALLS)
def test_an_option_of_another_call_is_answered_with_that_call(name, attempts):
    owners = {"frame_shift": "Decoder.stream", "topology": "build_ctc_graph", "max_active": "Decoder", "sort_type": "fst.FstBatch.arcsort"}
    for option, owner in owners.items():
        if not any(option in option_calls.names(table) for table in CALLS[name]):
            message = refusal(attempts[name], **{option: 1})
            assert re.match(rf"{name}: no option named '{option}'; {owner}[, ]", message) and re.search(" (has|have) it$", message), message
            near = option[:2] + option[1:]
            assert f"'{near}'; did you mean '{option}' of {owner}" in refusal(attempts[name], **{near: 1})
    assert refusal(attempts[name], qwertyuiop=1) == f"{name}: no option named 'qwertyuiop'"


@pytest.mark.filterwarnings("ignore:warpfst.LM.build")
@pytest.mark.parametrize("name", CALLS)
def test_a_value_that_is_none_is_answered_with_the_allowed_ones(name, attempts):
    for option in (option for table in CALLS[name] for option in wf.describe(table) if option.choices):
        message = refusal(attempts[name], **{option.name: "no such value"})
        assert message.startswith(f"{option.name}: 'no such value' is none of ") and message.endswith("|".join(option.choices))
        message = refusal(attempts[name], TypeError, **{option.name: 1})
        assert message.startswith(f"{option.name}: expected ") and all(f'"{choice}"' in message for choice in option.choices)


def test_other_arguments_with_a_set_of_values_name_them():
    fst = wf.Fst.from_arcs([(0, 1, 1, 2, 0.5)], {1: 0.0})
    batch = wf.fst.FstBatch.create([fst])
    for function, allowed in (
        (lambda: fst.write("x", "openfst"), ("native", "vector", "const")),
        (lambda: fst.with_semiring("real"), wf.fst.container.SEMIRINGS),
        (lambda: wf.Fst.from_arcs([], {0: 0.0}, semiring="real"), wf.fst.container.SEMIRINGS),
        (lambda: wf.fst.Encoder.create(semiring="real"), wf.fst.container.SEMIRINGS),
        (lambda: batch.gradients(0, of="third"), ("arcs", "first", "second")),
        (lambda: wf.fst.FarWriter.create("x", "zip"), ("sttable", "stlist")),
        (lambda: strings.accep("a", token_type="latin1"), ("byte", "utf8")),
        (lambda: strings.cdrewrite(fst, "", "", fst, direction="left"), ("ltr", "rtl", "sim")),
        (lambda: wf.from_sentencepiece(Pieces(), blank="lst"), ("first", "last")),
        (lambda: wf.Options("decodre"), ("decoder", "stream")),
    ):
        with pytest.raises(ValueError, match="none of|expected one of") as raised:
            function()
        assert all(one in str(raised.value) for one in allowed), raised.value


def test_options_in_a_dict_are_named_by_their_table():
    graph = wf.build_ctc_graph(TOKENS)
    assert refusal(lambda **o: wf.Decoder(graph, determinize=o), beeam=1) == "lattice_determinize: no option named 'beeam'; did you mean 'beam'?"
    assert refusal(lambda **o: wf.Options("decoder", **o), beeam=1) == "decoder: no option named 'beeam'; did you mean 'beam'?"


@pytest.mark.parametrize("name", CALLS)
def test_help_lists_every_option(name):
    """With type, default, unit, allowed values and help."""
    owner = wf
    for part in name.split("."):
        owner = vars(integrations)[part] if owner is wf and part in ("ModelTokens", "ProcessorWithLM") else getattr(owner, part)
    text = inspect.getdoc(owner)
    assert text.splitlines()[0].strip() and max(map(len, text[text.index("Options of the table") :].splitlines())) <= 92
    for table in CALLS[name]:
        assert text.count(f'Options of the table "{table}":') == 1
        section = " ".join(text.split(f'Options of the table "{table}":')[1].split("Options of the table")[0].split())
        for option in wf.describe(table):
            default = f'"{option.default}"' if option.choices else f"{option.default:g}" if option.type == "float" else str(option.default)
            start = section.index(f"{option.name}: {option.type} = {default}")
            entry = section[start : section.index(option.help, start)]
            assert entry.count(": ") == 1 and option.unit in entry and all(f'"{choice}"' in entry for choice in option.choices), entry
            if option.type in ("int", "float") and not option.choices:
                assert all(f"{limit:.12g}" in entry for limit in (option.minimum, option.maximum) if abs(limit) <= 1e6), entry


def test_help_of_a_decoder_fits_a_terminal():
    """Its arguments and options are in the docstring of the class, in lines of at most 100 columns."""
    lines = wf.Decoder.__doc__.splitlines()
    assert max(map(len, lines)) <= 100
    arguments = inspect.signature(wf.Decoder).parameters
    assert all(re.search(rf"^(\w+, )*{name}\b", wf.Decoder.__doc__, re.MULTILINE) for name in arguments if name != "options")


def test_the_call_is_the_users_own():
    """A call within a function that Python code gave to the package is named, not the outer one."""
    decoder = wf.Decoder(wf.build_ctc_graph(TOKENS))
    messages = []

    def progress(stage, fraction):
        messages.append(refusal(wf.Wer, beeam=1))

    decoder.decode(np.zeros((4, 3), np.float32) - 1, progress=progress)
    assert all(message.startswith("Wer: no option named 'beeam'") for message in messages)
