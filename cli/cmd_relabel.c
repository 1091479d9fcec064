/* cmd_relabel.c - the subcommands that change labels listed in files: relabel (by pairs, or from
 * one symbol table to another); addselfloops and rmsymbols (disambiguation symbols, like Kaldi's
 * fstaddselfloops and fstrmsymbols). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fst_output.h"
#include "text_input.h"

/* --- lists of labels in files ------------------------------------------------------------ */

struct labels {
  int32_t *items;
  size_t size, cap;
};

static bool append(struct labels *labels, int32_t label) {
  if (labels->size == labels->cap) {
    size_t cap = labels->cap != 0 ? labels->cap * 2 : 64;
    int32_t *items = realloc(labels->items, cap * sizeof *items);
    if (items == NULL) return false;
    labels->items = items;
    labels->cap = cap;
  }
  labels->items[labels->size++] = label;
  return true;
}

struct label_file {
  size_t per_line;
  struct labels *out;
};

/* Appends the labels of one line, which must be empty or have `per_line` labels. */
static int read_line(void *user, const char *path, size_t number, char *line) {
  const struct label_file *file = user;
  size_t found = 0;
  for (char *at = line, *stop; *(at += strspn(at, " \t\r\n")) != '\0'; at = stop, found++) {
    errno = 0;
    long value = strtol(at, &stop, 10);
    if (stop == at || strchr(" \t\r\n", *stop) == NULL || errno != 0 || value < 0 ||
        value > INT32_MAX) {
      cli_note("%s:%zu: '%.*s' is not a label, expected a number from 0 to 2147483647", path,
               number, (int)strcspn(at, " \t\r\n"), at);
      return CLI_INPUT;
    }
    if (!append(file->out, (int32_t)value)) return cli_out_of_memory();
  }
  if (found == 0 || found == file->per_line) return CLI_OK;
  cli_note("%s:%zu: found %zu labels, expected %zu", path, number, found, file->per_line);
  return CLI_INPUT;
}

static int read_labels(const char *path, size_t per_line, struct labels *out) {
  struct label_file file = {per_line, out};
  return cli_read_lines(path, read_line, &file);
}

/* --- relabel ----------------------------------------------------------------------------- */

/* The changes to one side: by pairs, or from the old to the new symbol table. */
struct side {
  const char *pairs_path, *old_path,
      *new_path; /* --relabel_ipairs, --isymbols, --relabel_isymbols */
  struct labels pairs;
  wf_symbols *old_symbols, *new_symbols;
};

/* Finds the label in the new table of the symbol that `label` has in the old one. */
static int translate(const struct side *side, int32_t label, int32_t *out) {
  const char *text = wf_symbols_text(side->old_symbols, label);
  int64_t key = text != NULL ? wf_symbols_find(side->new_symbols, text) : label == 0 ? 0 : -1;
  if (key >= 0 && key <= INT32_MAX) {
    *out = (int32_t)key;
    return CLI_OK;
  }
  if (text == NULL)
    cli_note("label %d is not in the old symbol table", label);
  else
    cli_note("symbol '%s' (label %d) is not in %s", text, label, side->new_path);
  return CLI_INPUT;
}

/* Makes pairs for all labels that occur on one side of the fst. */
static int pairs_of_symbols(struct side *side, const wf_fst *fst, bool input) {
  wf_fst_view view = wf_fst_get_view(fst);
  const wf_symbols *own = input ? wf_fst_isymbols(fst) : wf_fst_osymbols(fst);
  wf_error err;
  if (wf_symbols_read(side->new_path, &side->new_symbols, &err) != WF_OK) return cli_fail(&err);
  if (side->old_path != NULL && wf_symbols_read(side->old_path, &side->old_symbols, &err) != WF_OK)
    return cli_fail(&err);
  if (side->old_symbols == NULL && own == NULL)
    return cli_usage("the fst has no %s symbol table; give it with --%csymbols",
                     input ? "input" : "output", input ? 'i' : 'o');
  if (side->old_symbols == NULL) side->old_symbols = wf_symbols_ref(own);
  int32_t largest = 0;
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    int32_t label = input ? view.arcs[i].ilabel : view.arcs[i].olabel;
    if (label > largest) largest = label;
  }
  bool *seen = calloc((size_t)largest + 1, sizeof *seen);
  if (seen == NULL) return cli_out_of_memory();
  int code = CLI_OK;
  for (uint64_t i = 0; i < view.num_arcs && code == CLI_OK; i++) {
    int32_t label = input ? view.arcs[i].ilabel : view.arcs[i].olabel, replacement = 0;
    if (seen[label]) continue;
    seen[label] = true;
    code = translate(side, label, &replacement);
    if (code == CLI_OK && (!append(&side->pairs, label) || !append(&side->pairs, replacement)))
      code = cli_out_of_memory();
  }
  free(seen);
  return code;
}

static int prepare_side(struct side *side, const wf_fst *fst, bool input) {
  if (side->pairs_path != NULL) return read_labels(side->pairs_path, 2, &side->pairs);
  return side->new_path != NULL ? pairs_of_symbols(side, fst, input) : CLI_OK;
}

static int relabel(const wf_fst *fst, struct side sides[2], wf_fst **out) {
  wf_error err;
  wf_fst *relabeled = NULL;
  int code = prepare_side(&sides[0], fst, true);
  if (code == CLI_OK) code = prepare_side(&sides[1], fst, false);
  if (code != CLI_OK) return code;
  const int32_t(*pairs[2])[2] = {(const int32_t(*)[2])sides[0].pairs.items,
                                 (const int32_t(*)[2])sides[1].pairs.items};
  if (wf_relabel(fst, pairs[0], sides[0].pairs.size / 2, pairs[1], sides[1].pairs.size / 2,
                 &relabeled, &err) != WF_OK)
    return cli_fail(&err);
  const wf_symbols *isymbols =
      sides[0].new_symbols != NULL ? sides[0].new_symbols : wf_fst_isymbols(relabeled);
  const wf_symbols *osymbols =
      sides[1].new_symbols != NULL ? sides[1].new_symbols : wf_fst_osymbols(relabeled);
  if (wf_fst_with_symbols(relabeled, isymbols, osymbols, out, &err) != WF_OK) code = cli_fail(&err);
  wf_fst_free(relabeled);
  return code;
}

static const cli_rule rules[] = {
    {"relabel_ipairs", CLI_EXCLUDES, "relabel_isymbols"},
    {"relabel_opairs", CLI_EXCLUDES, "relabel_osymbols"},
    {"isymbols", CLI_USELESS_WITHOUT, "relabel_isymbols"},
    {"osymbols", CLI_USELESS_WITHOUT, "relabel_osymbols"},
    {NULL, 0, NULL},
};

int cmd_relabel(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  struct side sides[2] = {{0}, {0}};
  cli_parser parser = {.usage = "[IN [OUT]]",
                       .about =
                           "Replaces labels, either by pairs (lines 'old new') or by moving from "
                           "one symbol table to another: "
                           "each symbol keeps its text and gets its label in the new table.",
                       .max_args = 2};
  cli_flag_output(&parser, &output, &format);
  cli_flag_str(&parser, "relabel_ipairs", 0, &sides[0].pairs_path, "FILE",
               "pairs of input labels, lines 'old new'");
  cli_flag_str(&parser, "relabel_opairs", 0, &sides[1].pairs_path, "FILE",
               "pairs of output labels, lines 'old new'");
  cli_flag_str(&parser, "relabel_isymbols", 0, &sides[0].new_path, "FILE",
               "new symbol table of the input labels");
  cli_flag_str(&parser, "relabel_osymbols", 0, &sides[1].new_path, "FILE",
               "new symbol table of the output labels");
  cli_flag_str(&parser, "isymbols", 0, &sides[0].old_path, "FILE",
               "old symbol table of the input labels (default: the fst's own)");
  cli_flag_str(&parser, "osymbols", 0, &sides[1].old_path, "FILE",
               "old symbol table of the output labels (default: the fst's own)");
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 2) output = parser.args[1];
  wf_fst *in = NULL, *out = NULL;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &in);
  if (code == CLI_OK) code = relabel(in, sides, &out);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  for (int i = 0; i < 2; i++) {
    free(sides[i].pairs.items);
    wf_symbols_free(sides[i].old_symbols);
    wf_symbols_free(sides[i].new_symbols);
  }
  wf_fst_free(in);
  wf_fst_free(out);
  return code;
}

/* --- disambiguation symbols -------------------------------------------------------------- */

int cmd_addselfloops(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  cli_parser parser = {
      .usage = "ILABELS OLABELS [IN [OUT]]",
      .about =
          "Adds self-loops, one for each pair of labels in the two files (one label per line), to "
          "every state that is final or has an arc with an output.\n"
          "With them, the disambiguation symbols of a grammar pass through a lexicon.",
      .min_args = 2,
      .max_args = 4};
  cli_flag_output(&parser, &output, &format);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 4) output = parser.args[3];
  struct labels ilabels = {0}, olabels = {0};
  wf_error err = {0};
  wf_fst *in = NULL, *out = NULL;
  code = read_labels(parser.args[0], 1, &ilabels);
  if (code == CLI_OK) code = read_labels(parser.args[1], 1, &olabels);
  if (code == CLI_OK && ilabels.size != olabels.size)
    code = cli_usage("found %zu input labels and %zu output labels, expected the same number",
                     ilabels.size, olabels.size);
  if (code == CLI_OK) code = cli_read_fst(parser.num_args > 2 ? parser.args[2] : "-", &in);
  if (code == CLI_OK &&
      wf_add_self_loops(in, ilabels.items, olabels.items, ilabels.size, &out, &err) != WF_OK)
    code = cli_fail(&err);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  free(ilabels.items);
  free(olabels.items);
  wf_fst_free(in);
  wf_fst_free(out);
  return code;
}

int cmd_rmsymbols(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  cli_parser parser = {.usage = "LABELS [IN [OUT]]",
                       .about =
                           "Replaces the input labels listed in a file (one per line) by epsilon, "
                           "for example to remove "
                           "disambiguation symbols.",
                       .min_args = 1,
                       .max_args = 3};
  cli_flag_output(&parser, &output, &format);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 3) output = parser.args[2];
  struct labels labels = {0};
  wf_error err = {0};
  wf_fst *in = NULL, *out = NULL;
  code = read_labels(parser.args[0], 1, &labels);
  if (code == CLI_OK) code = cli_read_fst(parser.num_args > 1 ? parser.args[1] : "-", &in);
  if (code == CLI_OK && wf_remove_disambig(in, labels.items, labels.size, &out, &err) != WF_OK)
    code = cli_fail(&err);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  free(labels.items);
  wf_fst_free(in);
  wf_fst_free(out);
  return code;
}
