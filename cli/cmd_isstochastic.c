/* cmd_isstochastic.c - `warpfst isstochastic`: do the probabilities of each state sum to one? */
#include <math.h>

#include "fst_output.h"

int cmd_isstochastic(int argc, char **argv) {
  double delta = 0.01;
  cli_parser parser = {
      .usage = "[FST]",
      .about =
          "Prints the lowest and the highest cost of a state: -ln of the sum of exp(-cost) over "
          "its arcs and its final cost. Exit code 1: one of them is not within --delta of 0, as "
          "of Kaldi's fstisstochastic.",
      .max_args = 1};
  cli_flag_f64(&parser, "delta", 0, &delta, "NATS", "largest distance from 0 (default: 0.01 nats)");
  cli_flag_range(&parser, "delta", 0, 1e9);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_fst *fst = NULL;
  wf_fst_info info;
  wf_error err;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &fst);
  if (code != CLI_OK) return code;
  wf_fst_info_init(&info);
  wf_status status = wf_fst_get_info(fst, &info, &err);
  wf_fst_free(fst);
  if (status != WF_OK) return cli_fail(&err);
  printf("%g %g\n", info.min_sum, info.max_sum);
  return fabs(info.min_sum) <= delta && fabs(info.max_sum) <= delta ? CLI_OK : CLI_NO;
}
