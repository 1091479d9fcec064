/* decode_summary.c - prints the summary of `warpfst decode` as text or JSON. */
#include <math.h>
#include <string.h>

#include "decode_run.h"
#include "lm_report.h"
#include "output_file.h"

struct summary {
  double audio_s, frames, seconds; /* seconds: of decoding, at least 1e-9 */
  double tokens, arcs;             /* per frame */
  double density;                  /* arcs of the lattices that cross a frame */
  wf_wer_counts totals;
};

/* Prints the device, the number of GPUs, and the memory of the largest batch: on each GPU, and
 * page-locked on the host. */
static void print_device(FILE *out, const struct decode_run *run) {
  wf_plan plan;
  wf_decoder_get_plan(run->decoder, &plan);
  const char *device = run->decoder_options.device;
  fprintf(out, ", \"device\": \"%s\", \"gpus\": %d",
          device != NULL && device[0] != '\0' ? device : "cpu", plan.num_gpus);
  if (plan.num_gpus == 0) return;
  fprintf(out,
          ", \"gpu_bytes\": {\"graph\": %llu, \"lanes\": %llu, \"trace\": %llu, \"scores\": %llu, "
          "\"results\": %llu, \"total\": %llu, \"pinned\": %llu}",
          (unsigned long long)plan.graph_bytes, (unsigned long long)plan.lane_bytes,
          (unsigned long long)plan.trace_bytes, (unsigned long long)plan.score_bytes,
          (unsigned long long)plan.result_bytes, (unsigned long long)plan.total_bytes,
          (unsigned long long)plan.pinned_bytes);
  lm_report_print(out, run->decoder, run->decode_s, true);
}

/* Where a transducer on a GPU spent the time. */
static void print_transducer(FILE *out, const struct decode_run *run, bool json) {
  wf_transducer_stats stats;
  wf_decoder_get_transducer_stats(run->decoder, &stats);
  if (stats.num_rounds == 0) return;
  fprintf(out,
          json ? ", \"transducer\": {\"rounds\": %llu, \"rows\": %llu, \"contexts\": %llu, "
                 "\"search_seconds\": %.6f, \"submit_seconds\": %.6f, \"wait_seconds\": %.6f}"
               : "transducer: %llu rounds, %llu rows of the joiner, %llu of the predictor; %.3f s "
                 "searching, %.3f s sending requests, %.3f s waiting for the GPU\n",
          (unsigned long long)stats.num_rounds, (unsigned long long)stats.num_rows,
          (unsigned long long)stats.num_contexts, stats.search_s, stats.submit_s, stats.wait_s);
}

static void print_json(FILE *out, const struct decode_run *run, const struct summary *sum) {
  fprintf(out,
          "{\"utterances\": %llu, \"failed\": %llu, \"not_final\": %llu, \"narrowed\": %llu, "
          "\"overflow\": %llu, \"died\": %llu, \"hours\": %.6f, "
          "\"decode_seconds\": %.6f, \"rtfx\": %.2f, \"frames_per_second\": %.1f, "
          "\"tokens_per_frame\": %.2f, \"arcs_per_frame\": %.2f",
          (unsigned long long)run->num_utterances, (unsigned long long)run->num_failed,
          (unsigned long long)run->num_not_final, (unsigned long long)run->num_narrowed,
          (unsigned long long)run->num_overflowed, (unsigned long long)run->num_died,
          sum->audio_s / 3600, run->decode_s, sum->audio_s / sum->seconds,
          sum->frames / sum->seconds, sum->tokens, sum->arcs);
  print_device(out, run);
  print_transducer(out, run, true);
  if (run->decoder_options.lattice_beam > 0)
    fprintf(out, ", \"lattice_states\": %llu, \"lattice_arcs\": %llu, \"lattice_density\": %.4f",
            (unsigned long long)run->lattice_states, (unsigned long long)run->lattice_arcs,
            sum->density);
  rnnlm_scorer_print(out, &run->rnnlm, true);
  if (run->lattices.determinizes)
    fprintf(out, ", \"determinize_seconds\": %.6f, \"determinize_narrowed\": %llu",
            run->lattices.seconds, (unsigned long long)run->lattices.num_narrowed);
  if (run->wer != NULL) {
    fprintf(out, ", \"wer\": ");
    cli_json_number(out, "%.4f", wf_wer_percent(&sum->totals));
    fprintf(out, ", \"words\": %llu", (unsigned long long)sum->totals.num_words);
  }
  fprintf(out, "}\n");
}

static void print_line(const struct decode_run *run, const struct summary *sum) {
  fprintf(stderr, "%llu utterance%s (", (unsigned long long)run->num_utterances,
          cli_s(run->num_utterances));
  if (run->num_failed > 0)
    fprintf(stderr, "%llu more failed, ", (unsigned long long)run->num_failed);
  if (run->num_not_final > 0)
    fprintf(stderr, "%llu not final, ", (unsigned long long)run->num_not_final);
  fprintf(stderr,
          "%llu narrowed), %.3f h in %.2f s: RTFx %.1f, %.0f frames/s, %.0f tokens a frame\n",
          (unsigned long long)run->num_narrowed, sum->audio_s / 3600, run->decode_s,
          sum->audio_s / sum->seconds, sum->frames / sum->seconds, sum->tokens);
  if (run->num_narrowed > 0)
    fprintf(stderr,
            "narrowed: --max-active (%d) or --max-tokens (%d) cut the beam; higher may find better "
            "words\n",
            run->decoder_options.max_active, run->decoder_options.max_tokens);
  if (run->decoder_options.lattice_beam > 0)
    fprintf(stderr, "lattices: %llu states, %llu arcs, density %.1f\n",
            (unsigned long long)run->lattice_states, (unsigned long long)run->lattice_arcs,
            sum->density);
  lm_report_print(stderr, run->decoder, run->decode_s, false);
  print_transducer(stderr, run, false);
  rnnlm_scorer_print(stderr, &run->rnnlm, false);
  if (run->lattices.determinizes) {
    if (run->chunk_s > 0)
      fprintf(stderr, "determinized in %.2f s", run->lattices.seconds);
    else
      fprintf(stderr, "determinized while decoding");
    fprintf(stderr, ", %llu with a narrower beam (max_bytes reached)\n",
            (unsigned long long)run->lattices.num_narrowed);
  }
  if (run->wer == NULL) return;
  uint64_t wrong =
      sum->totals.num_substitutions + sum->totals.num_deletions + sum->totals.num_insertions;
  fprintf(stderr, "WER %.2f%% (%llu of %llu word%s", wf_wer_percent(&sum->totals),
          (unsigned long long)wrong, (unsigned long long)sum->totals.num_words,
          cli_s(sum->totals.num_words));
  if (run->num_missing > 0)
    fprintf(stderr, "; %llu utterance%s without a reference", (unsigned long long)run->num_missing,
            cli_s(run->num_missing));
  fprintf(stderr, ")\n");
}

wf_status decode_report_summary(const struct decode_run *run, wf_error *err) {
  struct summary sum = {
      .audio_s = (double)run->num_frames * (double)run->writer_options.frame_shift,
      .frames = (double)run->num_frames,
      .seconds = run->decode_s > 0 ? run->decode_s : 1e-9};
  sum.tokens = run->num_frames > 0 ? (double)run->num_tokens / sum.frames : 0;
  sum.arcs = run->num_frames > 0 ? (double)run->num_arcs / sum.frames : 0;
  sum.density = run->num_frames > 0 ? (double)run->lattice_emitting / sum.frames : 0;
  if (run->wer != NULL) sum.totals = wf_wer_totals(run->wer);
  cli_progress_end();
  if (run->json)
    print_json(stderr, run, &sum);
  else if (!run->quiet)
    print_line(run, &sum);
  if (run->summary_path == NULL) return WF_OK;
  cli_output out;
  wf_status status = cli_output_open(&out, run->summary_path, err);
  if (status != WF_OK) return status;
  print_json(out.file, run, &sum);
  return cli_output_close(&out, WF_OK, err);
}
