/* commands.h - the list of subcommands, X(function suffix, "name", group, "summary"), and their
 * prototypes: int cmd_SUFFIX(int, char **). */
#ifndef WARPFST_CLI_COMMANDS_H
#define WARPFST_CLI_COMMANDS_H

#define CLI_COMMANDS(X)                                                                           \
  X(decode, "decode", "Decoding", "acoustic scores to words")                                     \
  X(score, "score", "Decoding", "word error rate of hypotheses against references")               \
  X(plan, "plan", "Decoding", "memory that a batch or streams take on a GPU")                     \
  X(lattice, "lattice", "Decoding",                                                               \
    "lattices: convert, prune, determinize, nbest, rescore, mbr, oracle, stats, draw")            \
  X(matrix, "matrix", "Decoding", "list or convert files of acoustic scores")                     \
  X(lexicon, "lexicon", "Graphs", "a lexicon as a transducer L")                                  \
  X(topology, "topology", "Graphs", "a CTC topology T")                                           \
  X(mkgraph, "mkgraph", "Graphs", "decoding graphs from lexicon, language model and topology")    \
  X(am, "am", "Graphs", "hybrid acoustic models: info, columns of labels")                        \
  X(info, "info", "Files", "what is in an fst file")                                              \
  X(print, "print", "Files", "an fst as text")                                                    \
  X(compile, "compile", "Files", "text to an fst")                                                \
  X(convert, "convert", "Files", "another file format, arc type or symbol tables")                \
  X(compose, "compose", "Operations", "composition of two or more fsts")                          \
  X(arcsort, "arcsort", "Operations", "arcs of each state sorted by label")                       \
  X(connect, "connect", "Operations", "states on no successful path dropped")                     \
  X(topsort, "topsort", "Operations", "states numbered along the arcs")                           \
  X(closure, "closure", "Operations", "any number of repetitions")                                \
  X(union, "union", "Operations", "the paths of any of several fsts")                             \
  X(concat, "concat", "Operations", "one fst after the other")                                    \
  X(project, "project", "Operations", "the acceptor of one side")                                 \
  X(invert, "invert", "Operations", "input and output exchanged")                                 \
  X(reverse, "reverse", "Operations", "the reversed strings")                                     \
  X(relabel, "relabel", "Operations", "labels replaced by pairs or by symbol tables")             \
  X(addselfloops, "addselfloops", "Operations", "self-loops for disambiguation symbols")          \
  X(rmsymbols, "rmsymbols", "Operations", "listed input labels replaced by epsilon")              \
  X(determinize, "determinize", "Operations", "one arc per state and input label")                \
  X(minimize, "minimize", "Operations", "fewest states")                                          \
  X(rmepsilon, "rmepsilon", "Operations", "no arcs with epsilon on both sides")                   \
  X(push, "push", "Operations", "weights and output labels towards the start or the end")         \
  X(shortestdistance, "shortestdistance", "Operations",                                           \
    "sums over all paths to or from each state")                                                  \
  X(shortestpath, "shortestpath", "Operations", "the best path, or the n best")                   \
  X(prune, "prune", "Operations", "drop what is far from the best path")                          \
  X(randgen, "randgen", "Operations", "random paths")                                             \
  X(equal, "equal", "Comparison", "the same fst, arc by arc?")                                    \
  X(equivalent, "equivalent", "Comparison", "deterministic acceptors: same strings, same costs?") \
  X(randequivalent, "randequivalent", "Comparison", "random paths: same costs in both?")          \
  X(lm, "lm", "Language models", "n-gram models: info, query, perplexity, convert, build, prune") \
  X(rnnlm, "rnnlm", "Language models",                                                            \
    "recurrent models: info, score, perplexity, train, rescore, lattice")                         \
  X(options, "options", "Help", "every option with its default, range and meaning")               \
  X(completion, "completion", "Help", "a script that completes commands and flags in bash")       \
  /* end of the list */

#define CLI_DECLARE(function, name, group, summary) int cmd_##function(int argc, char **argv);
CLI_COMMANDS(CLI_DECLARE)

#endif
