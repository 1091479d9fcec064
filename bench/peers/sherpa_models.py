"""sherpa_models.py: the models of a transducer as sherpa-onnx reads them, with a stand-in for the encoder.

sherpa-onnx decodes audio alone. So the stand-in has the encoder outputs of all utterances in it, and gives those whose number is that of the frames of features, less FIRST: utterance
`i` is as much silence. Predictor and joiner are those of the model; before the first token the peer gives token -1, for which the predictor of icefall, and this one, takes the blank.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

FIRST, HOP, BINS = 20, 160, 80  # frames of features of utterance 0, samples of a frame at 16 kHz, bins of a frame


def silence(number):
    """The audio of an utterance."""
    return np.zeros((FIRST + number) * HOP, np.float32)


def save(model, path, **metadata):
    for key, value in metadata.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, str(value)
    onnx.save(model, path)


def encoder(matrices):
    """Inputs x [N, frames of features, BINS] and x_lens [N]; outputs encoder_out [N, frames, size], with other rows behind the end of short ones, and encoder_out_lens [N]."""
    lengths = np.array([len(matrix) for matrix in matrices], np.int64)
    table = np.concatenate([*matrices, np.zeros((lengths.max(), matrices[0].shape[1]), np.float32)]).astype(np.float32)
    constants = {"table": table, "starts": np.cumsum(lengths) - lengths, "lengths": lengths, "first": np.array([FIRST]), "zero": np.array(0), "one": np.array(1), "last": np.array([1])}
    steps = [
        ("Sub", ["x_lens", "first"], "number"), ("Gather", ["starts", "number"], "start"), ("Gather", ["lengths", "number"], "encoder_out_lens"),
        ("ReduceMax", ["encoder_out_lens"], "longest"), ("Range", ["zero", "longest", "one"], "frames"), ("Unsqueeze", ["start", "last"], "starts of rows"),
        ("Add", ["starts of rows", "frames"], "rows"), ("Gather", ["table", "rows"], "encoder_out"),
    ]  # fmt: skip
    nodes = [helper.make_node(kind, inputs, [output], **({"keepdims": 0} if kind == "ReduceMax" else {})) for kind, inputs, output in steps]
    real, whole, value = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, helper.make_tensor_value_info
    inputs = [value("x", real, ["N", "T", BINS]), value("x_lens", whole, ["N"])]
    outputs = [value("encoder_out", real, ["N", "frames", table.shape[1]]), value("encoder_out_lens", whole, ["N"])]
    graph = helper.make_graph(nodes, "stand-in", inputs, outputs, [numpy_helper.from_array(array, name) for name, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write(predictor, joiner, num_tokens, context_size, matrices, folder):
    """encoder.onnx, decoder.onnx and joiner.onnx in the folder, from the model's files of predictor and joiner and the encoder outputs of all utterances."""
    save(encoder(matrices), folder / "encoder.onnx", model_type="conformer")
    model = onnx.load(predictor)
    tokens = model.graph.input[0].name
    model.graph.initializer.append(numpy_helper.from_array(np.array(0), "blank"))
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            if name == tokens:
                node.input[place] = "known tokens"
    model.graph.node.insert(0, helper.make_node("Max", [tokens, "blank"], ["known tokens"]))
    save(model, folder / "decoder.onnx", vocab_size=num_tokens, context_size=context_size)
    save(onnx.load(joiner), folder / "joiner.onnx", joiner_dim=matrices[0].shape[1])
