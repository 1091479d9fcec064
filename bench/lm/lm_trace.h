/* lm_trace.h - the n-grams that lanes request, frame by frame, in a file that bench_lm_traffic
 * writes and bench_lm_fetch reads.
 *
 *   lm_trace_header
 *   for each frame:  uint32_t counts[lanes], uint32_t entries[sum of counts]
 *
 * Entries are in the order of lanes. An entry is: number of the n-gram << 1 | 1 if the cache did
 * not have it. */
#ifndef BENCH_LM_TRACE_H
#define BENCH_LM_TRACE_H

#include <stdint.h>

#define LM_TRACE_MAGIC 0x3165636172746d6cull /* "lmtrace1" */

struct lm_trace_header {
  uint64_t magic;
  uint32_t lanes, frames;
};

#endif
