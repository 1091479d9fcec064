/* commands.h - the list of subcommands, X(function suffix, "name", "group", "summary"), and their
 * prototypes int cmd_SUFFIX(int, char **). */
#ifndef WARPFST_CLI_COMMANDS_H
#define WARPFST_CLI_COMMANDS_H

#define CLI_COMMANDS(X)                                                                           \
  X(decode, "decode", "Decoding", "decode acoustic scores to words")                              \
  X(score, "score", "Decoding", "word error rate of hypotheses against references")               \
  X(align, "align", "Decoding", "times of the words of known transcripts in CTC scores")          \
  X(plan, "plan", "Decoding", "GPU memory that a batch or streams need")                          \
  X(lattice, "lattice", "Decoding",                                                               \
    "lattices: convert, prune, determinize, nbest, rescore, mbr, spot, oracle, stats, draw")      \
  X(matrix, "matrix", "Decoding", "list or convert files of acoustic scores")                     \
  X(lexicon, "lexicon", "Graphs", "make a lexicon transducer L")                                  \
  X(topology, "topology", "Graphs", "make a CTC topology T")                                      \
  X(mkgraph, "mkgraph", "Graphs", "build a decoding graph from lexicon and language model")       \
  X(am, "am", "Graphs", "hybrid acoustic models: info, score columns of labels")                  \
  X(info, "info", "Files", "describe an fst file")                                                \
  X(print, "print", "Files", "print an fst as text")                                              \
  X(draw, "draw", "Files", "draw an fst, as a picture or for Graphviz")                           \
  X(compile, "compile", "Files", "compile text to an fst")                                        \
  X(convert, "convert", "Files", "change the file format, arc type or symbol tables")             \
  X(far, "far", "Files", "archives of fsts: create, extract, info, strings, equal, isomorphic")   \
  X(compose, "compose", "Operations", "compose two or more fsts")                                 \
  X(arcsort, "arcsort", "Operations", "sort the arcs of each state by label")                     \
  X(connect, "connect", "Operations", "remove states that are on no successful path")             \
  X(topsort, "topsort", "Operations", "number the states in topological order")                   \
  X(closure, "closure", "Operations", "accept any number of repetitions")                         \
  X(union, "union", "Operations", "union of two or more fsts")                                    \
  X(concat, "concat", "Operations", "concatenate two or more fsts")                               \
  X(project, "project", "Operations", "keep the labels of one side")                              \
  X(invert, "invert", "Operations", "exchange input and output labels")                           \
  X(reverse, "reverse", "Operations", "accept the reversed strings")                              \
  X(relabel, "relabel", "Operations", "replace labels by pairs or by symbol tables")              \
  X(addselfloops, "addselfloops", "Operations", "add self-loops for disambiguation symbols")      \
  X(rmsymbols, "rmsymbols", "Operations", "replace listed input labels by epsilon")               \
  X(determinize, "determinize", "Operations", "make an fst deterministic on the input side")      \
  X(minimize, "minimize", "Operations", "reduce a deterministic fst to the fewest states")        \
  X(rmepsilon, "rmepsilon", "Operations", "remove arcs with epsilon on both sides")               \
  X(push, "push", "Operations", "push weights or output labels towards the start or the end")     \
  X(shortestdistance, "shortestdistance", "Operations", "sum of all paths to or from each state") \
  X(shortestpath, "shortestpath", "Operations", "the best path, or the n best paths")             \
  X(prune, "prune", "Operations", "remove paths that are far from the best")                      \
  X(map, "map", "Operations", "change each arc, as fstmap does")                                  \
  X(difference, "difference", "Operations", "paths of one fst that another does not accept")      \
  X(replace, "replace", "Operations", "replace arcs by fsts, recursively")                        \
  X(encode, "encode", "Operations", "encode labels or weights as single labels")                  \
  X(epsnormalize, "epsnormalize", "Operations", "put epsilons of one side at the end of paths")   \
  X(synchronize, "synchronize", "Operations", "make arcs read and write one label each")          \
  X(disambiguate, "disambiguate", "Operations", "leave one path for each input string")           \
  X(condense, "condense", "Operations", "one state per strongly connected component")             \
  X(reweight, "reweight", "Operations", "move costs along paths by potentials")                   \
  X(factorweight, "factorweight", "Operations", "make arcs of several output labels")             \
  X(randgen, "randgen", "Operations", "draw random paths")                                        \
  X(equal, "equal", "Comparison", "are two fsts the same, arc by arc?")                           \
  X(equivalent, "equivalent", "Comparison",                                                       \
    "do two deterministic acceptors have the same strings and costs?")                            \
  X(isomorphic, "isomorphic", "Comparison", "are two fsts the same up to state numbers?")         \
  X(randequivalent, "randequivalent", "Comparison",                                               \
    "do random paths have the same costs in two fsts?")                                           \
  X(isstochastic, "isstochastic", "Comparison", "do the probabilities of each state sum to one?") \
  X(lm, "lm", "Language models", "n-gram models: info, query, perplexity, convert, build, prune") \
  X(rnnlm, "rnnlm", "Language models",                                                            \
    "recurrent models: info, score, perplexity, train, rescore, lattice")                         \
  X(options, "options", "Help", "list all options with default, range and meaning")               \
  X(completion, "completion", "Help",                                                             \
    "print a script for bash, zsh or fish that completes commands and flags")                     \
  /* end of the list */

#define CLI_DECLARE(function, name, group, summary) int cmd_##function(int argc, char **argv);
CLI_COMMANDS(CLI_DECLARE)

#endif
