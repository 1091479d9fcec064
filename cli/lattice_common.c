/* lattice_common.c - reads the lattices given on the command line. */
#include "lattice_common.h"

void lattice_flags(cli_parser *parser, lattice_input *input) {
  cli_flag_str(parser, "words", 'w', &input->words_path, "FILE",
               "symbol table of the words in the output (default: words are numbers)");
  cli_flag_str(
      parser, "input-words", 0, &input->input_words_path, "FILE",
      "symbol table of the words in text archives of the input (default: words are numbers)");
  cli_table(parser, "lattice_reader", &input->options);
}

wf_status lattice_open(lattice_input *input, char **sources, int num_sources, wf_error *err) {
  wf_symbols *table = NULL;
  wf_status status =
      input->words_path != NULL ? wf_symbols_read(input->words_path, &input->words, err) : WF_OK;
  if (status == WF_OK && input->input_words_path != NULL)
    status = wf_symbols_read(input->input_words_path, &table, err);
  if (status == WF_OK)
    status = wf_lattice_reader_open((const char *const *)sources, (size_t)num_sources, table,
                                    &input->options, &input->reader, err);
  wf_symbols_free(table);
  input->progress = cli_progress(input->summary.quiet);
  return status;
}

static bool is_empty(const wf_lattice_entry *entry) {
  return entry->raw != NULL ? wf_lattice_get_view(entry->raw).num_states == 0
                            : entry->compact != NULL &&
                                  wf_compact_lattice_get_view(entry->compact).num_states == 0;
}

void lattice_check_made(lattice_input *input, const wf_lattice_entry *from,
                        const wf_lattice_entry *made) {
  if (is_empty(from) || !is_empty(made)) return;
  input->num_failed++;
  cli_note("utterance '%s': no path of the lattice is left: an empty lattice is written",
           from->key);
}

bool lattice_next(lattice_input *input, wf_lattice_entry *entry) {
  for (;;) {
    wf_error err = {0};
    bool done = false;
    if (input->progress.fn != NULL)
      input->progress.fn(input->progress.user, "lattices",
                         wf_lattice_reader_fraction(input->reader));
    if (wf_lattice_reader_next(input->reader, entry, &done, &err) == WF_OK) {
      input->num_lattices += !done;
      if (!done && is_empty(entry)) cli_note("utterance '%s': the lattice is empty", entry->key);
      return !done;
    }
    bool lost = wf_lattice_reader_lost_rest(input->reader);
    input->num_failed++;
    input->no_memory = input->no_memory || err.code == WF_ERR_MEMORY;
    input->lost_rest = input->lost_rest || lost;
    cli_note("%s%s", err.message, lost ? "; the rest of that archive is lost" : "");
    wf_lattice_entry_clear(entry);
  }
}

bool lattice_failed(lattice_input *input, const wf_lattice_entry *entry, wf_error *err) {
  if (err->code == WF_ERR_IO || err->code == WF_ERR_MEMORY) return false;
  if (!is_empty(entry)) cli_note("utterance '%s': %s", entry->key, err->message); /* said before */
  input->num_failed++;
  *err = (wf_error){0};
  return true;
}

wf_status lattice_each(lattice_input *input,
                       wf_status (*one)(void *run, wf_lattice_entry *entry, wf_error *err),
                       void *run, wf_error *err) {
  wf_lattice_entry entry;
  wf_status status = WF_OK;
  while (status == WF_OK && lattice_next(input, &entry)) {
    status = one(run, &entry, err);
    if (status != WF_OK && lattice_failed(input, &entry, err)) status = WF_OK;
    wf_lattice_entry_clear(&entry);
  }
  return status;
}

int lattice_exit_code(const lattice_input *input) {
  return cli_failure_code(input->num_failed, input->lost_rest, input->no_memory);
}

void lattice_close(lattice_input *input) {
  cli_progress_end();
  wf_lattice_reader_free(input->reader);
  wf_symbols_free(input->words);
}

wf_status lattice_make_compact(wf_lattice_entry *entry,
                               const wf_lattice_determinize_options *options, float *complete_beam,
                               wf_error *err) {
  wf_determinized made;
  if (entry->raw == NULL) return WF_OK;
  wf_status status = wf_lattice_determinize(entry->raw, NULL, options, &made, err);
  if (status != WF_OK) return status;
  if (made.narrowed)
    cli_note("utterance '%s': beam narrowed to %g because --max-bytes was reached", entry->key,
             (double)made.beam);
  if (complete_beam != NULL && made.beam < *complete_beam) *complete_beam = made.beam;
  wf_lattice_free(entry->raw);
  entry->raw = NULL;
  entry->compact = made.lattice;
  return WF_OK;
}

/* --- words ------------------------------------------------------------------------------- */

const char *lattice_word_text(const wf_symbols *words, int32_t label, char scratch[12]) {
  const char *text = words != NULL ? wf_symbols_text(words, label) : NULL;
  if (text != NULL) return text;
  snprintf(scratch, 12, "%d", label);
  return scratch;
}

wf_status lattice_no_memory(wf_error *err) {
  err->code = WF_ERR_MEMORY;
  snprintf(err->message, sizeof err->message, "out of memory for the words of a lattice");
  return err->code;
}
