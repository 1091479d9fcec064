"""Operations on several fsts compare their symbol tables: of random tables, exactly those with other keys or symbols are refused."""

import itertools

import pytest

import warpfst as wf

A = {"<eps>": 0, "k": 1, "t": 2}
SWAPPED = {"<eps>": 0, "t": 1, "k": 2}  # the first difference: key 1
LONGER = {**A, "p": 3}
SAME = (A, dict(reversed(A.items())), None)  # the order of entries and the name do not matter
OPERATIONS = {
    "union": lambda a, b, **o: wf.fst.union(a, b, **o),
    "concat": lambda a, b, **o: wf.fst.concat(a, b, **o),
    "difference": lambda a, b, **o: wf.fst.difference(a, b, **o),
    "replace": lambda a, b, **o: wf.fst.replace({9: a, 8: b}, **o),
    "equivalent": lambda a, b, **o: wf.fst.equivalent(a, b, **o),
    "randequivalent": lambda a, b, **o: wf.fst.randequivalent(a, b, **o),
    "compose": lambda a, b, **o: wf.fst.compose(a, b, **o),
    "compose_n": lambda a, b, **o: wf.fst.compose(a.with_symbols(), a, b, **o),
    "compose_batch": lambda a, b, **o: wf.fst.compose_batch([a.with_symbols(), a], [b, b], **o),
    "Composer": lambda a, b, **o: wf.fst.Composer(a, b, device="cpu", **o),
}
COMPOSITIONS = {"difference", "compose", "compose_n", "compose_batch", "Composer"}  # the output symbols of one meet the input symbols of the next


def acceptor(isymbols, osymbols, name="t"):
    tables = [None if pairs is None else wf.Symbols(pairs, name) for pairs in (isymbols, osymbols)]
    return wf.Fst.from_arcs([(0, 1, 1, 1, 0.0)], {1: 0.0}, isymbols=tables[0], osymbols=tables[1])


@pytest.mark.parametrize("name", OPERATIONS)
def test_tables_that_agree(name):
    for mine, other in itertools.product(SAME, SAME):
        OPERATIONS[name](acceptor(mine, mine), acceptor(other, other, "another name"))
    if name in COMPOSITIONS:  # the outer tables are not compared
        OPERATIONS[name](acceptor(SWAPPED, A), acceptor(A, LONGER))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(("mine", "other", "words"), [(A, SWAPPED, "key 1 is 'k' .*'t'"), (A, LONGER, "no key 3, which is 'p'"), (LONGER, A, "no key 3, which is 'p'")])
def test_tables_that_differ(name, mine, other, words):
    for sides in ((0, 1), (0,), (1,)):
        if name in COMPOSITIONS and sides != (0, 1):
            continue
        a, b = (acceptor(*(pairs if side in sides else A for side in (0, 1))) for pairs in (mine, other))
        with pytest.raises(wf.ArgumentError, match=f"{words}.*fst .*check_symbols"):
            OPERATIONS[name](a, b)
        made = OPERATIONS[name](a, b, check_symbols=False)
        if isinstance(made, wf.Fst):
            bare = OPERATIONS[name](a.with_symbols(), b.with_symbols())
            assert wf.fst.equal(made, bare) and made.num_states == bare.num_states


def test_comparisons_report_the_difference():
    for compare in (wf.fst.equal, wf.fst.isomorphic):
        result = compare(acceptor(A, A), acceptor(A, SWAPPED))
        assert not result and "key 1 is 'k' in the output symbols of fst 1" in result.difference
        assert compare(acceptor(A, A), acceptor(A, SWAPPED), check_symbols=False)


def test_all_fsts_are_compared():
    """The first one has no table; of the others two differ."""
    fsts = [acceptor(None, None), acceptor(A, A), acceptor(None, None), acceptor(A, SWAPPED)]
    for join in (wf.fst.union, wf.fst.concat):
        with pytest.raises(wf.ArgumentError, match="output symbols of fst 2 and 't' in the output symbols of fst 4"):
            join(*fsts)
        assert join(*fsts, check_symbols=False).num_arcs >= 4
    with pytest.raises(wf.ArgumentError, match="pair 1: key 1"):
        wf.fst.compose_batch([fsts[0], fsts[1]], acceptor(SWAPPED, A))


def test_large_tables(rng):
    """One entry of 5,000, wherever it is, is found."""
    texts = ["<eps>", *(f"w{k}" for k in range(5000))]
    one = wf.Symbols(texts)
    for place in (1, 17, 4999, 5000):
        other = [*texts]
        other[place] = "another"
        with pytest.raises(wf.ArgumentError, match=f"key {place} is 'w{place - 1}'.*'another'"):
            wf.fst.union(acceptor(None, None).with_symbols(one), acceptor(None, None).with_symbols(wf.Symbols(other)))
    shuffled = [(text, key) for key, text in enumerate(texts)]
    rng.shuffle(shuffled)
    wf.fst.union(acceptor(None, None).with_symbols(one), acceptor(None, None).with_symbols(wf.Symbols({str(text): int(key) for text, key in shuffled})))


def test_a_graph_keeps_to_one_word_table(tmp_path):
    """A grammar may have fewer words than the table of the graph, but not other ones."""
    grammar = wf.Fst.from_text("0 1 ab ab\n1\n", isymbols=["<eps>", "ab"], osymbols=["<eps>", "ab"])
    tokens = ["<blk>", "a", "b"]
    lexicon = wf.Lexicon.from_dict({"ab": "a b", "ba": "b a"}, tokens)
    assert wf.build_ctc_graph(tokens, lexicon, grammar=grammar, words=["<eps>", "ab", "ba"]) is not None
    with pytest.raises(wf.ArgumentError, match="label 1 is 'ab' in the symbol table of the grammar and 'ba'"):
        wf.build_ctc_graph(tokens, lexicon, grammar=grammar, words=["<eps>", "ba", "ab"])
