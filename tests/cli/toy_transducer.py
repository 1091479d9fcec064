"""toy_transducer.py FILE TOKENS [COLUMNS]: a transducer whose encoder outputs have a column for each token, and further columns that it ignores.

The higher a column, the more probable the token. The predictor forbids the last token again, so that a frame emits it once. Token 0 is the blank.
"""
import json
import struct
import sys


def diagonal(rows, columns, value):
    return [[value * (i == j) for j in range(columns)] for i in range(rows)]


def main():
    path, size = sys.argv[1], int(sys.argv[2])
    columns = int(sys.argv[3]) if len(sys.argv) > 3 else size
    last = diagonal(size, size, -5.0)
    last[0][0] = 0.0
    tensors = {"pred.emb.weight": diagonal(size, size, 1.0), "pred.conv.weight": diagonal(size, size, 1.0), "joiner.enc.weight": diagonal(size, columns, 1.0),
               "joiner.pred.weight": last, "joiner.out.weight": diagonal(size, size, 8.0)}
    header, data = {}, b""
    for name, rows in tensors.items():
        values = [value for row in rows for value in row]
        header[name] = {"dtype": "F32", "shape": [len(rows), len(rows[0])], "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
