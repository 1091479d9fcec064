/* cmd_lattice_determinize.c - `warpfst lattice determinize`: makes lattices with one path for each
 * word sequence. Reads batches of 256 lattices and determinizes each batch on all threads. */
#include <stdlib.h>
#include <string.h>

#include "am_model.h"
#include "lattice_common.h"

enum { BATCH = 256 };

struct determinize_run {
  lattice_input input;
  wf_lattice_writer *writer;
  wf_lattice_determinize_options options;
  wf_lattice_phones phones;
  bool has_phones;
  wf_lattice_entry entries[BATCH];
  const wf_lattice *lattices[BATCH];
  wf_determinized results[BATCH];
  uint64_t num_narrowed, num_done;
};

static wf_status put_one(struct determinize_run *run, size_t i, wf_error *err) {
  wf_determinized *result = &run->results[i];
  wf_lattice_entry out = {.key = run->entries[i].key, .compact = result->lattice};
  wf_status status = result->status;
  err->code = status;
  if (status != WF_OK) snprintf(err->message, sizeof err->message, "%s", result->message);
  if (status == WF_OK && result->narrowed) {
    run->num_narrowed++;
    cli_note("utterance '%s': beam narrowed to %g because --max-bytes was reached", out.key,
             (double)result->beam);
  }
  if (status == WF_OK) lattice_check_made(&run->input, &run->entries[i], &out);
  if (status == WF_OK) status = wf_lattice_writer_put(run->writer, &out, err);
  run->num_done += status == WF_OK;
  return status != WF_OK && lattice_failed(&run->input, &run->entries[i], err) ? WF_OK : status;
}

static wf_status determinize_all(struct determinize_run *run, wf_error *err) {
  wf_status status = WF_OK;
  for (bool more = true; more && status == WF_OK;) {
    size_t count = 0;
    while (count < BATCH && (more = lattice_next(&run->input, &run->entries[count]))) {
      run->lattices[count] = run->entries[count].raw;
      count++;
    }
    status = wf_lattices_determinize(run->lattices, count, run->has_phones ? &run->phones : NULL,
                                     &run->options, run->results, err);
    for (size_t i = 0; i < count; i++) {
      if (status == WF_OK) status = put_one(run, i, err);
      wf_compact_lattice_free(run->results[i].lattice);
      wf_lattice_entry_clear(&run->entries[i]);
    }
  }
  return status;
}

static wf_status read_phones(struct determinize_run *run, const char *path, int32_t **table,
                             wf_error *err) {
  if (path == NULL) return WF_OK;
  am_source source = {.path = path};
  wf_hmm *hmm;
  wf_status status = am_read(&source, false, &hmm, err);
  if (status != WF_OK) return status;
  status = wf_hmm_phone_starts(hmm, table, &run->phones.count, err);
  wf_hmm_free(hmm);
  run->phones.phone_of = *table;
  run->has_phones = status == WF_OK;
  return status;
}

int cmd_lattice_determinize(int argc, char **argv) {
  static struct determinize_run run;
  const char *output = NULL, *am = NULL;
  int32_t *table = NULL;
  wf_lattice_writer_options writer_options;
  cli_parser parser = {
      .usage = "LATTICES... -o OUT",
      .about =
          "Writes compact lattices with one path for each word sequence: the best one, with its "
          "alignment (Povey et al. 2012). If --max-bytes is reached, the beam of that lattice\n"
          "is narrowed, and the narrower beam is reported. Kaldi's archives hold unscaled acoustic "
          "costs: give the acoustic scale of the search as --acoustic-scale,\n"
          "and as --acoustic-divisor so that the output is unscaled, too. Example:\n"
          "  warpfst lattice determinize raw.ark -o lat.ark --beam=8 "
          "--acoustic-scale=0.1 --acoustic-divisor=0.1",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &output, "OUT", "archive to write ('-': standard output)");
  cli_flag_str(&parser, "am", 0, &am, "MODEL",
               "Kaldi's final.mdl: determinize over phones first, then over words; same result");
  lattice_flags(&parser, &run.input);
  cli_table(&parser, "lattice_determinize", &run.options);
  cli_table(&parser, "lattice_writer", &writer_options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL) return cli_usage("no output given: -o OUT");
  run.input.options.kind = WF_LATTICE_RAW;
  wf_error err = {0};
  wf_status status = read_phones(&run, am, &table, &err);
  if (status == WF_OK) status = lattice_open(&run.input, parser.args, parser.num_args, &err);
  if (status == WF_OK)
    status = wf_lattice_writer_open(output, run.input.words, &writer_options, &run.writer, &err);
  if (status == WF_OK) status = determinize_all(&run, &err);
  if (status == WF_OK)
    status = wf_lattice_writer_close(run.writer, &err);
  else
    wf_lattice_writer_abort(run.writer);
  lattice_close(&run.input);
  wf_free(table);
  if (status == WF_OK && run.num_narrowed > 0)
    cli_note("lattices whose beam was narrowed: %llu of %llu (--max-bytes)",
             (unsigned long long)run.num_narrowed, (unsigned long long)run.num_done);
  return status == WF_OK ? lattice_exit_code(&run.input) : cli_fail(&err);
}
