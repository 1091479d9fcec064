# `warpfst options` prints the same about every option as text, Markdown and JSON, and the same as the subcommands' help.
# shellcheck shell=bash
fail() { echo "$1" >&2; exit 1; }
"$WARPFST" options > all.txt
"$WARPFST" options --json > all.json
"$WARPFST" options --markdown > all.md
"$WARPFST" options prune > prune.txt
"$WARPFST" options no_such_table > out.txt 2> err.txt && fail "no error for an unknown table"
grep -q "no_such_table" err.txt
"$WARPFST" options --json --markdown > out.txt 2>&1 && fail "two formats at once"
diff prune.txt - <<'END'
prune
  weight                   float32  beam around the best path
                                    default: 1e+30 nats; range: 0 .. 1e+30
  nstate                   int64    maximum number of states, best first; 0: no limit
                                    default: 0 states; range: 0 .. 2147483647
END
COLUMNS=1000 "$WARPFST" prune --help > help.txt
python3 - <<'PY'
import json, re, struct
tables = json.load(open("all.json"))
names = [t["table"] for t in tables]
assert len(names) > 12 and len(set(names)) == len(names), names
markdown, text = open("all.md").read(), open("all.txt").read()
rows = {}
for section in markdown.split("### ")[1:]:
    head, *lines = section.strip().split("\n")
    rows[head] = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines[3:]]
assert sorted(rows) == sorted(names)
plain = lambda s: s.strip().replace("\\|", "|").replace("&lt;", "<").replace("&gt;", ">").strip("`")
count = 0
for table in tables:
    assert len(rows[table["table"]]) == len(table["options"])
    assert len({o["name"] for o in table["options"]}) == len(table["options"])
    for option, cells in zip(table["options"], rows[table["table"]]):
        cells = [plain(c) for c in cells]
        assert len(cells) == 6 and cells[0] == option["name"] and cells[1] == option["type"], (option, cells)
        assert cells[5] == option["help"] and option["help"], (option, cells)
        assert f"{option['name']:<24} {option['type']:<8} {option['help']}" in text, option
        default = option["default"]
        if option["type"] == "enum":
            assert default in option["choices"] and cells[3].split("|") == option["choices"], option
        elif option["type"] in ("int32", "int64", "float32"):
            assert option["min"] <= default <= option["max"] and float(cells[2]) == default, option
        elif option["type"] == "bool":
            assert isinstance(default, bool), option
        count += 1
assert count > 30, count
# two known values
find = lambda t, o: next(x for y in tables if y["table"] == t for x in y["options"] if x["name"] == o)
assert find("compose", "filter")["choices"][:2] == ["auto", "sequence"]
assert find("determinize", "delta")["default"] == 1 / 1024
for option in next(t for t in tables if t["table"] == "prune")["options"]:
    assert option["help"] in open("help.txt").read()
PY
