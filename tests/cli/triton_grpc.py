"""Requests over gRPC with tritonclient: an utterance that dies has flags, boosts change results as in `warpfst decode`.

triton_grpc.py SERVER FOLDER BOOSTED SCORES

FOLDER has models/, backends/ and expected.json, the texts without boosts. BOOSTED: JSON lines of `warpfst decode` with the boost "IT 8".
"""
import json
import pathlib
import sys

import numpy
import triton_client
import tritonclient.grpc as triton


def infer(client, scores, boosts=None, **sequence):
    """`boosts`: a list of bytes for the tensor, or a text for the parameter."""
    inputs = [triton.InferInput("SCORES", (1, *scores.shape), "FP32")]
    inputs[0].set_data_from_numpy(scores[None])
    if isinstance(boosts, list):
        inputs.append(triton.InferInput("BOOSTS", (1, len(boosts)), "BYTES"))
        inputs[1].set_data_from_numpy(numpy.array([boosts], object))
    elif boosts:
        sequence["parameters"] = {"boosts": boosts}
    result = client.infer("warpfst", inputs, outputs=[triton.InferRequestedOutput("TEXT")], **sequence)
    flags = result.get_response().parameters["flags"].string_param if "flags" in result.get_response().parameters else ""
    return result.as_numpy("TEXT").flat[0].decode(), flags


def main():
    server_path, folder, boosted, scores = (pathlib.Path(name) for name in sys.argv[1:])
    plain = json.loads((folder / "expected.json").read_text())
    boosted = {row["key"]: row["text"] for row in map(json.loads, boosted.read_text().splitlines())}
    differ = [key for key in plain if plain[key] != boosted[key]]
    assert len(differ) >= 3
    with open("server.log", "wb") as log:
        server = triton_client.Server(server_path, folder / "models", folder / "backends", log)
        try:
            client = triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
            for number, key in enumerate(differ[:10], 1):
                matrix = numpy.load(scores / f"{key}.npy").astype(numpy.float32)
                for boosts, wanted in ((None, plain[key]), ([b"IT 8"], boosted[key]), ("NEVERHEARD 3\nIT 8", boosted[key])):
                    half = len(matrix) // 2
                    infer(client, matrix[:half], boosts, sequence_id=number, sequence_start=True)
                    assert infer(client, matrix[half:], sequence_id=number, sequence_end=True)[0] == wanted, key
            died = numpy.full((3, matrix.shape[1]), -numpy.inf, numpy.float32)
            text, flags = infer(client, died, sequence_id=99, sequence_start=True, sequence_end=True)
            assert text == "" and "died" in flags.split(","), (text, flags)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
