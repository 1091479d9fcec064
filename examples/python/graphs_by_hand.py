"""Builds a decoding graph step by step, and computes gradients through a composition."""

import warpfst as wf

words = wf.Symbols(["<eps>", "ab", "abc", "#0"])
tokens = ["<blk>", "a", "b", "c"]

# L o G, determinized and minimized.
lexicon = wf.Lexicon.from_dict({"ab": "a b", "abc": "a b c"}, tokens)
grammar = wf.Fst.from_text("0 0 ab 0.7\n0 0 abc 0.7\n0\n", words, words, acceptor=True)
lg = wf.fst.minimize(wf.fst.determinize(wf.fst.compose(lexicon.to_fst(words), grammar)))
print(lg)

# A composition with two paths: the total cost, and the posterior probability of each arc.
a = wf.Fst.from_arcs([(0, 1, 1, 1, 0.5), (0, 1, 2, 1, 1.5), (1, 2, 3, 3, 0.0)], {2: 0.0}, semiring="log")
b = wf.Fst.from_arcs([(0, 1, 1, 1, 0.25), (1, 2, 3, 3, 0.0)], {2: 0.0}, semiring="log")
composed, origins = wf.fst.compose_with_origins(a, b)
cost, gradients = wf.fst.forward_score_gradients(composed)
print(f"total cost {cost:.4f}")
for i, gradient in enumerate(gradients):
    print(f"arc {i}: from arc {origins[2 * i]} of a and {origins[2 * i + 1]} of b, taken with probability {gradient:.4f}")

# prints:
# <Fst: 3 states, 4 arcs, tropical>
# total cost 0.4367
# arc 0: from arc 0 of a and 0 of b, taken with probability 0.7311
# arc 1: from arc 1 of a and 0 of b, taken with probability 0.2689
# arc 2: from arc 2 of a and 1 of b, taken with probability 1.0000
