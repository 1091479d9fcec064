/* cmd_optimize.c - the subcommands that make an fst smaller or faster to walk: determinize, minimize, rmepsilon, push. */
#include "unary.h"

static wf_status determinize(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) { return wf_determinize(in, options, out, err); }
int cmd_determinize(int argc, char **argv) {
  wf_determinize_options options;
  cli_parser parser = {.about = "Weighted determinization on the input side, of functional transducers. When the input is not functional, or the result grows beyond "
                       "--max-states, the message shows an input string that tells why."};
  cli_table(&parser, "determinize", &options);
  return cli_run_unary(&parser, argc, argv, determinize, &options, NULL);
}

static wf_status minimize(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) { return wf_minimize(in, options, out, err); }
int cmd_minimize(int argc, char **argv) {
  wf_minimize_options options;
  cli_parser parser = {.about = "Weighted minimization of a deterministic fst. As Kaldi's fstminimizeencoded: --no-push-weights; as fstminimize on a transducer: "
                       "--no-encode-labels."};
  cli_table(&parser, "minimize", &options);
  return cli_run_unary(&parser, argc, argv, minimize, &options, NULL);
}

static wf_status rmepsilon(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) { return wf_rmepsilon(in, options, out, err); }
int cmd_rmepsilon(int argc, char **argv) {
  wf_rmepsilon_options options;
  cli_parser parser = {.about = "Removes arcs with epsilon on both sides."};
  cli_table(&parser, "rmepsilon", &options);
  return cli_run_unary(&parser, argc, argv, rmepsilon, &options, NULL);
}

static wf_status push(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) { return wf_push(in, options, out, err); }
int cmd_push(int argc, char **argv) {
  wf_push_options options;
  cli_parser parser = {.about = "Pushes weights, and with --push-labels output labels, towards the start or with --to-final towards the final states."};
  cli_table(&parser, "push", &options);
  return cli_run_unary(&parser, argc, argv, push, &options, NULL);
}
