/* decode_command.h - the command line of bench_decode:
 *
 *     bench_decode GRAPH SCORES [--ref=FILE] [--words=FILE] [--acoustic-scale=1]
 *     [--frame-shift=0.04] [--check=8] [--lm=FILE] [--lm-scale=1] RUN...
 *
 * RUN is a comma-separated list of settings. Each may be left out:
 *     device=cpu|cuda[:N]      where to search
 *     scores=host|pinned|device
 *                              where the scores are initially. For host and pinned the transfer is
 *                              part of the measured time
 *     dtype=f32|f16|bf16       type of the scores
 *     batch=400                utterances in one call of wf_decode
 *     utterances=N             utterances in one round, in successive calls: the first N of SCORES,
 *                              starting over at the end (default: the batch, but at least 16
 *                              and --check)
 *     beam=17 max_active=10000 max_tokens=28000 threads=0
 *     lattice_beam=0           above 0: makes lattices. They are also determinized once, by all
 *                              threads, which is not part of the measured time
 *     determinize=0            1: lattices are determinized while others are searched, which is
 *                              part of the measured time
 *     keep_raw=1 confidences=0 mbr=0 nbest=0
 *                              what is made of determinized lattices (wf_lattice_results_options)
 *     frames=0                 N: one utterance of N frames, made by concatenating SCORES. There is
 *                              one round, and memory of host and GPU is reported
 *     lm=off|device|hybrid|host|table
 *                              scores every word with the model of --lm at this placement. table:
 *                              as device, but with a look-up table on the CPU, also in later runs
 *     boost=0                  phrases in a random list for all utterances
 *     boost_each=0             phrases in a random list of each utterance's own
 *     lm_cache=0               hybrid: percentage of the n-grams that the cache holds, in addition
 *                              to the index
 *     seconds=1                minimum time of all rounds (on a GPU there are at least 3 rounds,
 *                              unless they take more than 20 seconds; on the CPU at least one) */
#ifndef BENCH_DECODE_COMMAND_H
#define BENCH_DECODE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "warpfst_all.h"

/* What all runs share. */
struct decode_command {
  const char *graph_path, *scores_path, *ref_path, *words_path, *lm_path; /* NULL: not given */
  float acoustic_scale, lm_scale;
  double frame_shift_s;
  size_t check;
};

struct run {
  char device[16], scores[8], dtype[8];
  size_t batch, utterances;
  wf_decoder_options options;
  double seconds;
  int64_t frames;
  bool determinize;
  wf_lattice_results_options lattice_results;
  char lm[8];
  double lm_cache;
  size_t boost, boost_each;
};

static inline bool has_lm(const struct run *run) { return strcmp(run->lm, "off") != 0; }

/* Returns the index of the first RUN in argv; 0 after printing the usage. */
int parse_decode_command(int argc, char **argv, struct decode_command *out);

/* Parses a RUN. Ends the program if it is wrong. out->options.device points into *out. */
void parse_run(const struct decode_command *command, const char *text, struct run *out);

#endif
