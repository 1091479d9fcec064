/* cmd_lattice.c - `warpfst lattice`: the list of its parts. */
#include "lattice_common.h"
#include "parts.h"

int cmd_lattice(int argc, char **argv) {
  static const cli_part parts[] = {
      {"lattice convert", "another format, kind or scale", cmd_lattice_convert},
      {"lattice prune", "what is on paths near the best", cmd_lattice_prune},
      {"lattice determinize", "one path for each word sequence", cmd_lattice_determinize},
      {"lattice nbest", "the n best word sequences", cmd_lattice_nbest},
      {"lattice rescore", "another language model in place of the first", cmd_lattice_rescore},
  };
  return cli_run_part(parts, sizeof parts / sizeof *parts, "PART LATTICES... [FLAGS]",
                      "Lattices in Kaldi archives or script files, raw or compact, binary or text, gzipped or not; `warpfst decode --lattice` makes them.", argc, argv);
}
