/* decode_command.c - parses the command line of bench_decode: decode_command.h. */
#include "decode_command.h"

#include <stdio.h>
#include <stdlib.h>

#include "common.h"

static void copy_setting(char *to, size_t size, const char *value, const char *choices) {
  char wanted[32];
  snprintf(wanted, sizeof wanted, " %.20s ", value);
  if (choices != NULL && strstr(choices, wanted) == NULL) fail("RUN: a value is not allowed");
  snprintf(to, size, "%s", value);
}

void parse_run(const struct decode_command *command, const char *text, struct run *out) {
  wf_error err = {0};
  char copy[512];
  snprintf(copy, sizeof copy, "%s", text);
  *out = (struct run){
      .device = "cpu", .scores = "host", .dtype = "f32", .batch = 400, .seconds = 1, .lm = "off"};
  wf_decoder_options_init(&out->options);
  wf_lattice_results_options_init(&out->lattice_results);
  out->options.beam = 17;
  out->options.acoustic_scale = command->acoustic_scale;
  for (char *rest, *item = strtok_r(copy, ",", &rest); item != NULL;
       item = strtok_r(NULL, ",", &rest)) {
    char *value = strchr(item, '=');
    if (value == NULL) fail("RUN: expected comma-separated settings name=value");
    *value++ = '\0';
    if (strcmp(item, "device") == 0)
      copy_setting(out->device, sizeof out->device, value, NULL);
    else if (strcmp(item, "scores") == 0)
      copy_setting(out->scores, sizeof out->scores, value, " host pinned device ");
    else if (strcmp(item, "dtype") == 0)
      copy_setting(out->dtype, sizeof out->dtype, value, " f32 f16 bf16 ");
    else if (strcmp(item, "lm") == 0)
      copy_setting(out->lm, sizeof out->lm, value, " off device hybrid host table ");
    else if (strcmp(item, "lm_cache") == 0)
      out->lm_cache = strtod(value, NULL);
    else if (strcmp(item, "boost") == 0)
      out->boost = strtoul(value, NULL, 10);
    else if (strcmp(item, "boost_each") == 0)
      out->boost_each = strtoul(value, NULL, 10);
    else if (strcmp(item, "batch") == 0)
      out->batch = strtoul(value, NULL, 10);
    else if (strcmp(item, "utterances") == 0)
      out->utterances = strtoul(value, NULL, 10);
    else if (strcmp(item, "frames") == 0)
      out->frames = strtoll(value, NULL, 10);
    else if (strcmp(item, "determinize") == 0)
      out->determinize = strcmp(value, "0") != 0;
    else if (strcmp(item, "seconds") == 0)
      out->seconds = strtod(value, NULL);
    else if (strcmp(item, "keep_raw") == 0 || strcmp(item, "confidences") == 0 ||
             strcmp(item, "mbr") == 0 || strcmp(item, "nbest") == 0)
      check(wf_options_set(wf_option_table_find("lattice_results"), &out->lattice_results, item,
                           value, &err),
            &err);
    else
      check(wf_options_set(wf_option_table_find("decoder"), &out->options,
                           strcmp(item, "threads") == 0 ? "num_threads" : item, value, &err),
            &err);
  }
  if (out->batch == 0) fail("RUN: batch must be at least 1");
  if (has_lm(out) && command->lm_path == NULL) fail("RUN: lm needs --lm");
  if (out->utterances == 0) out->utterances = out->batch > 16 ? out->batch : 16;
  if (out->utterances < command->check) out->utterances = command->check;
  if (out->frames > 0) out->batch = out->utterances = 1;
  out->options.device = out->device;
  if (out->options.max_tokens < out->options.max_active)
    out->options.max_tokens = out->options.max_active;
}

static bool parse_flag(struct decode_command *command, const char *argument) {
  struct {
    const char *name, **to;
  } texts[] = {{"--ref=", &command->ref_path},
               {"--words=", &command->words_path},
               {"--lm=", &command->lm_path}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    if (strncmp(argument, texts[i].name, strlen(texts[i].name)) != 0) continue;
    *texts[i].to = argument + strlen(texts[i].name);
    return true;
  }
  return sscanf(argument, "--acoustic-scale=%f", &command->acoustic_scale) == 1 ||
         sscanf(argument, "--frame-shift=%lf", &command->frame_shift_s) == 1 ||
         sscanf(argument, "--check=%zu", &command->check) == 1 ||
         sscanf(argument, "--lm-scale=%f", &command->lm_scale) == 1;
}

int parse_decode_command(int argc, char **argv, struct decode_command *out) {
  int first_run = 3;
  *out = (struct decode_command){
      .acoustic_scale = 1, .frame_shift_s = 0.04, .check = 8, .lm_scale = 1};
  if (argc > 3) {
    out->graph_path = argv[1];
    out->scores_path = argv[2];
    while (first_run < argc && parse_flag(out, argv[first_run])) first_run++;
  }
  if (first_run >= argc || argv[first_run][0] == '-') {
    fprintf(stderr,
            "usage: bench_decode GRAPH SCORES [--ref=FILE] [--words=FILE] [--acoustic-scale=X] "
            "[--frame-shift=SECONDS] [--check=N] [--lm=FILE] [--lm-scale=X] RUN...\n"
            "a RUN: "
            "device=cuda,scores=device,dtype=f32,batch=400,utterances=400,beam=17,max_active=10000,"
            "threads=0,seconds=1\n");
    return 0;
  }
  return first_run;
}
