/* commands.h - the list of subcommands, X(function suffix, "name", group, "summary"), and their prototypes: int cmd_SUFFIX(int, char **). */
#ifndef WARPFST_CLI_COMMANDS_H
#define WARPFST_CLI_COMMANDS_H

#define CLI_COMMANDS(X) \
  X(info, "info", "Files", "what is in an fst file") \
  X(print, "print", "Files", "an fst as text") \
  X(compile, "compile", "Files", "text to an fst") \
  X(convert, "convert", "Files", "another file format, arc type or symbol tables") \
  X(lm, "lm", "Language models", "n-gram models: info, query, perplexity, convert") \
  X(determinize, "determinize", "Operations", "one arc per state and input label") \
  X(minimize, "minimize", "Operations", "fewest states") \
  X(rmepsilon, "rmepsilon", "Operations", "no arcs with epsilon on both sides") \
  X(push, "push", "Operations", "weights and output labels towards the start or the end") \
  X(shortestdistance, "shortestdistance", "Operations", "sums over all paths to or from each state") \
  X(lexicon, "lexicon", "Graphs", "a lexicon as a transducer L") \
  X(topology, "topology", "Graphs", "a CTC topology T") \
  X(mkgraph, "mkgraph", "Graphs", "decoding graphs from lexicon, language model and topology") \
  /* end of the list */

#define CLI_DECLARE(function, name, group, summary) int cmd_##function(int argc, char **argv);
CLI_COMMANDS(CLI_DECLARE)

#endif
