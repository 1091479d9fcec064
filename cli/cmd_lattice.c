/* cmd_lattice.c - `warpfst lattice`: the list of its parts. */
#include "lattice_common.h"
#include "parts.h"

int cmd_lattice(int argc, char **argv) {
  static const cli_part parts[] = {
      {"lattice convert", "change the format, kind or scale", cmd_lattice_convert},
      {"lattice mbr", "minimum Bayes risk words, confidences, sausages", cmd_lattice_mbr},
      {"lattice spot", "listed words, with times and probabilities", cmd_lattice_spot},
      {"lattice oracle", "lowest word error rate among the paths", cmd_lattice_oracle},
      {"lattice stats", "sizes and densities", cmd_lattice_stats},
      {"lattice draw", "draw a lattice: a page with an SVG, or a file for Graphviz",
       cmd_lattice_draw},
      {"lattice prune", "keep the paths near the best", cmd_lattice_prune},
      {"lattice determinize", "one path for each word sequence", cmd_lattice_determinize},
      {"lattice nbest", "the n best word sequences", cmd_lattice_nbest},
      {"lattice rescore", "replace the language model's costs by those of another",
       cmd_lattice_rescore},
  };
  return cli_run_part(parts, sizeof parts / sizeof *parts, "PART LATTICES... [FLAGS]",
                      "Lattices in Kaldi archives or script files, raw or compact, binary or text, "
                      "gzipped or not; `warpfst decode --lattice` makes them.",
                      argc, argv);
}
