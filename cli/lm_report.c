/* lm_report.c - see lm_report.h. The numbers are those of wf_decoder_get_lm_stats. */
#include "lm_report.h"

typedef unsigned long long ull;

static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

void lm_report_print(FILE *out, const wf_decoder *decoder, double decode_s, bool json) {
  wf_lm_stats lm;
  wf_decoder_get_lm_stats(decoder, &lm);
  const uint64_t requests = lm.cache_hits + lm.host_reads;
  const double hits = ratio((double)lm.cache_hits, (double)requests),
               stalled = ratio(lm.stall_s, decode_s);
  if (json && lm.gpu_bytes + lm.host_bytes > 0)
    fprintf(out,
            ", \"lm\": {\"gpu_bytes\": %llu, \"host_bytes\": %llu, \"cache_hits\": %llu, "
            "\"host_reads\": %llu, \"hit_ratio\": %.6f, \"bus_bytes\": %llu, "
            "\"stall_cycles\": %llu, \"stall_s\": %.6f, \"stall_ratio\": %.6f}",
            (ull)lm.gpu_bytes, (ull)lm.host_bytes, (ull)lm.cache_hits, (ull)lm.host_reads, hits,
            (ull)lm.bus_bytes, (ull)lm.stall_cycles, lm.stall_s, stalled);
  if (!json && requests > 0)
    fprintf(out,
            "language model: %.1f%% of %llu n-grams found in the cache; %.1f MB read over the bus; "
            "warps waited for it %.2f%% of the time\n",
            100 * hits, (ull)requests, (double)lm.bus_bytes / 1e6, 100 * stalled);
}
