"""Options: defaults, checks, pickling. All names come from the C library's tables."""

import copy
import pickle
import re

import numpy as np
import pytest

import warpfst as wf
from warpfst.options import from_text


def test_defaults_are_those_of_the_table():
    config = wf.DecoderConfig()
    for option in wf.describe("decoder"):
        assert config[option.name] == option.default, option
    assert config["beam"] == 15 and config["max_active"] == 10000


def test_every_numeric_option_refuses_what_is_out_of_range():
    checked = 0
    for table in wf.tables():
        for option in wf.describe(table):
            if option.type in ("int", "float") and option.minimum > -1e300:
                with pytest.raises(ValueError, match=option.name):
                    wf.Options(table, **{option.name: option.minimum - 1 if option.minimum > -1e5 else option.minimum * 2})
                checked += 1
            if option.choices:
                assert wf.Options(table, **{option.name: option.choices[-1]})[option.name] == option.choices[-1]
                with pytest.raises(ValueError, match="none of"):
                    wf.Options(table, **{option.name: "no such choice"})
                checked += 1
    assert checked > 50


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"beam": "wide"}, TypeError),
        ({"beam": "13"}, TypeError),
        ({"beam": b"13"}, TypeError),
        ({"max_active": "7000"}, TypeError),
        ({"beam": float("nan")}, ValueError),
        ({"beam": True}, TypeError),
        ({"recombine": 1}, TypeError),
        ({"beam": None}, TypeError),
        ({"beam": [1]}, TypeError),
        ({"max_active": 1.5}, ValueError),
        ({"max_active": 2**70}, ValueError),
        ({"device": 3}, TypeError),
        ({"device": "cpu\0"}, ValueError),
        ({"baem": 3}, ValueError),
    ],
)
def test_bad_values(given, kind):
    with pytest.raises(kind, match=f"{next(iter(given))}|NUL"):
        wf.DecoderConfig(**given)


def test_values_from_text_of_a_command_line():
    texts = {"beam": "13", "max_active": "7000", "recombine": "state", "device": "cuda:1", "blank": "-1", "lm": "words.arpa"}
    assert {name: from_text("decoder", name, text) for name, text in texts.items()} == {**texts, "beam": 13.0, "max_active": 7000, "blank": -1}
    for name, text in (("beam", "wide"), ("max_active", "1.5"), ("recombine", "all")):
        with pytest.raises(ValueError, match=name):
            from_text("decoder", name, text)


def test_bools_take_bools():
    for table, option in ((name, option) for name in wf.tables() for option in wf.describe(name) if option.type == "bool"):
        assert wf.Options(table, **{option.name: np.bool_(True)})[option.name] is True
        for wrong in ("true", 1, None):
            with pytest.raises(TypeError, match=f"{option.name}: expected True or False"):
                wf.Options(table, **{option.name: wrong})


def test_numpy_numbers_are_numbers():
    assert wf.DecoderConfig(beam=np.float32(7.5), max_active=np.int64(70)) == wf.DecoderConfig(beam=7.5, max_active=70)


def test_config_is_immutable_hashable_picklable():
    config = wf.DecoderConfig(beam=7, device="cpu")
    for again in (pickle.loads(pickle.dumps(config)), copy.deepcopy(config), config.replace()):
        assert again == config and hash(again) == hash(config) and type(again) is wf.DecoderConfig
    assert config.replace(beam=8)["beam"] == 8 and config["beam"] == 7
    assert config != wf.DecoderConfig()
    assert eval(repr(config), {"DecoderConfig": wf.DecoderConfig}) == config
    with pytest.raises(TypeError):
        config["beam"] = 3


def test_a_table_prints_an_entry_for_each_option():
    table = wf.describe("decoder")
    lines = str(table).splitlines()
    assert isinstance(table, list) and lines[0] == 'Options of the table "decoder":' and max(map(len, lines)) <= 92
    assert [line.split(":")[0].strip() for line in lines[1:] if not line.startswith("    ")] == [option.name for option in table]
    assert lines[1:3] == ["  beam: float = 15 nats (0 or more)", "      keep tokens within this cost of the frame's best token"]
    assert '  recombine: str = "pair" ("pair" or "state")' in lines and "  greedy: bool = False" in lines and "  silence: str = None (COLUMNS)" in str(wf.describe("stream"))
    for option in table:
        assert " ".join(option.help.split()) in " ".join(str(option).split())


@pytest.mark.parametrize(("name", "wanted"), [("beem", "'beam'"), ("max_actve", "'max_active'"), ("beam_width", "beam"), ("hotwords", "boost="), ("lm_weight", "lm_scale"), ("gpu", "device="), ("num_workers", "num_threads"), ("determinise", "'determinize'")])
def test_a_name_that_is_none_gets_a_hint(name, wanted):
    graph = wf.build_ctc_graph(["<blk>", "a"])
    for attempt in (lambda: wf.Decoder(graph, **{name: 1}), lambda: wf.DecoderConfig(**{name: 1})):
        with pytest.raises(wf.ArgumentError, match=re.escape(f"no option named '{name}'; did you mean ") + f".*{wanted}"):
            attempt()
    with pytest.raises(wf.ArgumentError, match="no option named 'qwertyuiop'$"):
        wf.Decoder(graph, qwertyuiop=1)


def test_unknown_table():
    with pytest.raises(ValueError, match="decoder"):
        wf.describe("decodre")
