/* cmd_optimize.c - the subcommands determinize, minimize, rmepsilon and push. */
#include "unary.h"

struct determinize_request {
  wf_determinize_options options;
  const char *device; /* NULL: the CPU */
};
static wf_status determinize_batch(const wf_fst_batch *batch, const void *options,
                                   wf_fst_batch **out, wf_error *err) {
  return wf_fst_batch_determinize(batch, options, out, err);
}
static wf_status determinize(const wf_fst *in, const void *user, wf_fst **out, wf_error *err) {
  const struct determinize_request *request = user;
  return request->device != NULL
             ? cli_on_device(in, request->device, determinize_batch, &request->options, out, err)
             : wf_determinize(in, &request->options, out, err);
}
int cmd_determinize(int argc, char **argv) {
  struct determinize_request request = {.device = NULL};
  cli_parser parser = {
      .about =
          "Determinizes a weighted functional transducer on the input side. If the input "
          "is not functional, or the result has more than "
          "--max-states states, the error message shows an input string that demonstrates it. "
          "GPUs do not support the log semiring, --rmepsilon on cycles of epsilon input, and "
          "outputs delayed by "
          "more than 255 labels."};
  cli_table(&parser, "determinize", &request.options);
  cli_flag_device(&parser, &request.device);
  return cli_run_unary(&parser, argc, argv, determinize, &request, NULL);
}

struct minimize_request {
  wf_minimize_options options;
  const char *device; /* NULL: the CPU */
};
static wf_status minimize_batch(const wf_fst_batch *batch, const void *options, wf_fst_batch **out,
                                wf_error *err) {
  return wf_fst_batch_minimize(batch, options, out, err);
}
static wf_status minimize(const wf_fst *in, const void *user, wf_fst **out, wf_error *err) {
  const struct minimize_request *request = user;
  return request->device != NULL
             ? cli_on_device(in, request->device, minimize_batch, &request->options, out, err)
             : wf_minimize(in, &request->options, out, err);
}
int cmd_minimize(int argc, char **argv) {
  struct minimize_request request = {.device = NULL};
  cli_parser parser = {
      .about =
          "Minimizes a weighted deterministic fst. --no-push-weights gives the result of Kaldi's "
          "fstminimizeencoded. "
          "--no-encode-labels gives that of OpenFst's fstminimize on a transducer. "
          "With --device=cuda, the CPU still does --no-encode-labels, weight pushing in "
          "the log semiring, and states that have two arcs with the same labels."};
  cli_table(&parser, "minimize", &request.options);
  cli_flag_device(&parser, &request.device);
  return cli_run_unary(&parser, argc, argv, minimize, &request, NULL);
}

struct rmepsilon_request {
  wf_rmepsilon_options options;
  const char *device; /* NULL: the CPU */
};
static wf_status rmepsilon_batch(const wf_fst_batch *batch, const void *options, wf_fst_batch **out,
                                 wf_error *err) {
  return wf_fst_batch_rmepsilon(batch, options, out, err);
}
static wf_status rmepsilon(const wf_fst *in, const void *user, wf_fst **out, wf_error *err) {
  const struct rmepsilon_request *request = user;
  return request->device != NULL
             ? cli_on_device(in, request->device, rmepsilon_batch, &request->options, out, err)
             : wf_rmepsilon(in, &request->options, out, err);
}
int cmd_rmepsilon(int argc, char **argv) {
  struct rmepsilon_request request = {.device = NULL};
  cli_parser parser = {
      .about = "Removes arcs with epsilon on both sides. GPUs do not support cycles of such arcs."};
  cli_table(&parser, "rmepsilon", &request.options);
  cli_flag_device(&parser, &request.device);
  return cli_run_unary(&parser, argc, argv, rmepsilon, &request, NULL);
}

static wf_status push(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  return wf_push(in, options, out, err);
}
int cmd_push(int argc, char **argv) {
  wf_push_options options;
  cli_parser parser = {.about =
                           "Pushes weights towards the start, or with --to-final towards the final "
                           "states. With --push-labels, also pushes output labels."};
  cli_table(&parser, "push", &options);
  return cli_run_unary(&parser, argc, argv, push, &options, NULL);
}
