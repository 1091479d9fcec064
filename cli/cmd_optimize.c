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
          "Weighted determinization on the input side, of functional transducers. When the input "
          "is not functional, or the result grows beyond "
          "--max-states, the message shows an input string as evidence. A GPU refuses the log "
          "semiring, --rmepsilon where arcs have epsilon input, and outputs "
          "more than 255 labels behind the input."};
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
          "Weighted minimization of a deterministic fst. As Kaldi's fstminimizeencoded: "
          "--no-push-weights; as fstminimize on a transducer: "
          "--no-encode-labels. With a GPU, too, the CPU does --no-encode-labels, pushed weights of "
          "the log semiring, and two arcs of a state with the same labels."};
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
      .about = "Removes arcs with epsilon on both sides. A GPU refuses cycles of them."};
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
                           "Pushes weights, and with --push-labels output labels, towards the "
                           "start or with --to-final towards the final states."};
  cli_table(&parser, "push", &options);
  return cli_run_unary(&parser, argc, argv, push, &options, NULL);
}
