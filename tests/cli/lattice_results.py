"""Checks the files that test_lattice.sh has written to the current folder.

lattice_results.py results         CTM, JSON lines, n-best, minimum Bayes risk, oracle and statistics agree with each other and with the lattices
lattice_results.py pictures KEY    SLF files have the lattices' paths; HTML pages are well-formed, load nothing, show every word; Graphviz files have every arc
"""
import html.parser
import json
import math
import re
import sys
import xml.etree.ElementTree

from lattice_kaldi import read_archive


def lines_of(path):
    return [line.split() for line in open(path, encoding="utf-8")]


def close(a, b, delta):
    assert abs(a - b) <= delta, (a, b)


def best_cost(lattice, acoustic_scale):
    best = {lattice.start: 0.0}
    end = math.inf
    for s, arcs in enumerate(lattice.arcs):
        if s not in best:
            continue
        if lattice.final[s]:
            end = min(end, best[s] + lattice.final[s][0] + acoustic_scale * lattice.final[s][1])
        for target, _, _, graph, acoustic, _ in arcs:
            best[target] = min(best.get(target, math.inf), best[s] + graph + acoustic_scale * acoustic)
    return end


def results():
    lattices = {key: value[0] for key, value in read_archive("det.ark").items()}
    words = {text: int(label) for text, label in lines_of("words.txt")}
    hyps = {f[0]: f[1:] for f in lines_of("hyp.txt")}
    out = {r["key"]: r for r in map(json.loads, open("out.jsonl"))}
    best = {r["key"]: r for r in map(json.loads, open("best.jsonl"))}
    raw = {r["key"]: r for r in map(json.loads, open("raw.jsonl"))}
    assert set(hyps) == set(out) == set(best) == set(lattices) and len(hyps) > 5
    unsure = 0
    for key, r in out.items():
        said = [w["word"] for w in r["words"]]
        assert r["text"].split() == said == hyps[key]
        assert all(0 <= w["confidence"] <= 1 and 0 <= w["start"] <= w["end"] for w in r["words"])
        unsure += sum(w["confidence"] < 0.9 for w in r["words"])
        nbest = r["nbest"]
        assert 1 <= len(nbest) <= 5 and nbest[0]["text"] == r["text"] and len({n["text"] for n in nbest}) == len(nbest)
        close(nbest[0]["cost"], r["cost"], 1e-3)
        assert all(a["cost"] <= b["cost"] + 1e-6 for a, b in zip(nbest, nbest[1:]))
        close(best_cost(lattices[key], 0.5), r["cost"], 1e-2)
        # the same from the archive, read with the scale of the search
        assert best[key]["text"] == r["text"]
        for a, b, c in zip(r["words"], best[key]["words"], raw[key]["words"]):
            close(a["confidence"], b["confidence"], 1e-3)
            close(a["confidence"], c["confidence"], 1e-3)
    assert unsure > 3
    ctm = {}
    for key, channel, start, duration, word, confidence in lines_of("out.ctm"):
        ctm.setdefault(key, []).append((word, float(start), float(confidence)))
    for key, r in out.items():
        assert [(w["word"], w["start"], w["confidence"]) for w in r["words"]] == ctm.get(key, [])

    mbr = {}
    for key, channel, start, duration, word, confidence in lines_of("mbr.ctm"):
        mbr.setdefault(key, []).append((word, float(confidence)))
    for r in map(json.loads, open("sausages.jsonl")):
        bins = r["bins"]
        assert all(abs(sum(w["posterior"] for w in b) - 1) < 1e-3 for b in bins)
        assert [b[0]["word"] for b in bins[1::2]] == [w for w, _ in mbr.get(r["key"], [])]
        close(sum(1 - w["posterior"] for b in bins[1::2] for w in b[:1]) <= r["risk"] + 1e-3, True, 0)
    ends = {}
    for key, channel, start, duration, word, confidence in lines_of("timed.ctm"):
        assert float(start) >= ends.get(key, 0) - 1e-9 and float(duration) >= 0
        ends[key] = float(start) + float(duration)
    assert ends

    # the words of the oracle are in the lattice
    for f in lines_of("oracle.txt"):
        states = {lattices[f[0]].start}
        for word in f[1:]:
            states = {arc[0] for s in states for arc in lattices[f[0]].arcs[s] if arc[2] == words[word]}
        assert any(lattices[f[0]].final[s] for s in states), f
    assert re.match(r"oracle WER [0-9.]+% \(", open("oracle.out").read())

    *each, total = map(json.loads, open("stats.jsonl"))
    assert len(each) == len(lattices) == total["lattices"]
    for r in each:
        lattice = lattices[r["key"]]
        assert r["states"] == len(lattice.arcs) and r["arcs"] == sum(map(len, lattice.arcs))
        assert r["word_arcs"] == sum(arc[2] != 0 for arcs in lattice.arcs for arc in arcs)
        close(r["best_cost"], best_cost(lattice, 1), 1e-2)
        frames = out[r["key"]]["frames"]
        assert r["frames"] == frames
    assert total["arcs"] == sum(r["arcs"] for r in each)
    print("results of", len(out), "utterances fit,", unsure, "words are unsure")


class Page(html.parser.HTMLParser):
    """Collects the text of <text> elements, and tags that would load something."""

    def __init__(self):
        super().__init__()
        self.texts, self.loads, self.tag, self.paths = [], [], None, 0

    def handle_starttag(self, tag, attributes):
        self.tag = tag
        self.paths += tag == "path"
        if tag in ("script", "link", "img", "iframe", "image", "use", "b") or any(name in ("src", "href", "xlink:href") or name.startswith("on") for name, _ in attributes):
            self.loads.append(tag)
        if tag == "text":
            self.texts.append("")

    def handle_data(self, data):
        if self.tag == "text":
            self.texts[-1] += data

    def handle_endtag(self, tag):
        self.tag = None


def check_page(path, num_arcs, words):
    text = open(path, encoding="utf-8").read()
    page = Page()
    page.feed(text)
    assert not page.loads, page.loads
    assert re.findall(r"https?:", text) == ["http:"] and "url(" not in text and "@import" not in text  # only the XML namespace
    assert page.paths == num_arcs, (page.paths, num_arcs)
    shown = sorted(t for t in page.texts if not re.fullmatch(r"[0-9.e+]+ s", t))
    assert shown == sorted(words), (shown, words)
    svg = text[text.index("<svg") : text.index("</svg>") + 6]
    root = xml.etree.ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    best = 0
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert 0 <= float(circle.get("cx")) <= width and 0 <= float(circle.get("cy")) <= height
    places = [(c.get("cx"), c.get("cy")) for c in root.iter("{http://www.w3.org/2000/svg}circle")]
    for g in root.iter("{http://www.w3.org/2000/svg}g"):
        best += g.get("class") == "arc best"
    assert best > 0 and len(set(places)) == len(places)
    return text


def read_slf(path):
    nodes, links = {}, []
    for line in open(path, encoding="utf-8"):
        fields = dict(f.split("=", 1) for f in line.split())
        if "I" in fields:
            nodes[int(fields["I"])] = float(fields["t"]) if "t" in fields else None
        elif "J" in fields:
            links.append((int(fields["S"]), int(fields["E"]), fields["W"], float(fields["a"]), float(fields["l"])))
        elif "N" in fields:
            counts = int(fields["N"]), int(fields["L"])
    assert counts == (len(nodes), len(links))
    return nodes, links


def pictures(key):
    names = {int(label): text for text, label in lines_of("words.txt")}
    for k, (lattice, _, _) in read_archive("det.ark").items():
        nodes, links = read_slf("slf/%s.slf" % k)
        best = {0: 0.0}
        for source, target, word, acoustic, graph in links:  # sources are in topological order
            best[target] = max(best.get(target, -math.inf), best[source] + acoustic + graph)
            if nodes[source] is not None and nodes[target] is not None:
                assert nodes[source] <= nodes[target]
        close(-best[len(nodes) - 1], best_cost(lattice, 1), 1e-2)
        want = sorted([(s, arc[0], names[arc[2]] if arc[2] else "!NULL") for s, arcs in enumerate(lattice.arcs) for arc in arcs] + [(s, len(lattice.arcs), "!NULL") for s, f in enumerate(lattice.final) if f])
        assert sorted(link[:3] for link in links) == want
    lattice = read_archive("det.ark")[key][0]
    words = [names[arc[2]] for arcs in lattice.arcs for arc in arcs if arc[2]]
    check_page("picture.html", sum(map(len, lattice.arcs)), words)
    nasty = check_page("nasty.html", 3, ["<b>&\"'bad", '\\"q'])
    assert "<b>" not in nasty and "Lattice of u&lt;&amp;&gt;" in nasty
    dot = open("picture.dot").read()
    assert len(re.findall(r" -> ", dot)) == sum(map(len, lattice.arcs)) and dot.count("{") == dot.count("}") == 1
    assert r'"<b>&\"' in open("nasty.dot").read() and r"\\\"q" in open("nasty.dot").read()
    print("pictures hold their lattices")


{"results": results, "pictures": pictures}[sys.argv[1]](*sys.argv[2:])
