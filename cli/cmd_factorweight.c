/* cmd_factorweight.c - the subcommand factorweight. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fst_output.h"
#include "text_input.h"

/* The strings of arcs, then those of states, as the lines of the file give them. */
struct strings {
  wf_fst_view view;
  uint64_t *first, *count; /* [arcs + states]; UINT64_MAX: no line */
  int32_t *labels;
  uint64_t num_labels, capacity;
};

static const char *read_number(const char *text, unsigned long long *out) {
  char *stop;
  text += strspn(text, " \t");
  errno = 0;
  *out = strtoull(text, &stop, 10);
  return stop == text || errno != 0 || *text == '-' || *text == '+' ? NULL : stop;
}

static int add_label(struct strings *strings, int32_t label) {
  if (strings->num_labels == strings->capacity) {
    uint64_t more = 2 * strings->capacity + 64;
    int32_t *grown = realloc(strings->labels, more * sizeof *grown);
    if (grown == NULL) return cli_out_of_memory();
    strings->labels = grown;
    strings->capacity = more;
  }
  strings->labels[strings->num_labels++] = label;
  return CLI_OK;
}

/* Finds whose string a line "state arc label ..." gives; NULL: no such arc or state. Returns the
 * text after the owner. */
static const char *find_owner(const struct strings *strings, const char *line, uint64_t *owner) {
  const wf_fst_view *view = &strings->view;
  unsigned long long state, arc;
  const char *text = read_number(line, &state);
  if (text == NULL || state >= view->num_states) return NULL;
  text += strspn(text, " \t");
  if (strncmp(text, "final", 5) == 0) {
    *owner = view->num_arcs + state;
    return text + 5;
  }
  text = read_number(text, &arc);
  if (text == NULL || arc >= view->arc_off[state + 1] - view->arc_off[state]) return NULL;
  *owner = view->arc_off[state] + arc;
  return text;
}

static int read_string(void *user, const char *path, size_t number, char *line) {
  struct strings *strings = user;
  unsigned long long label;
  uint64_t owner;
  if (line[strspn(line, " \t\r\n")] == '\0') return CLI_OK;
  const char *text = find_owner(strings, line, &owner);
  if (text == NULL || strings->first[owner] != UINT64_MAX) {
    cli_note(
        "%s:%zu: expected a state of the fst, 'final' or the number of one of its arcs (from "
        "0), each once, and labels",
        path, number);
    return CLI_INPUT;
  }
  strings->first[owner] = strings->num_labels;
  while (text[strspn(text, " \t\r\n")] != '\0') {
    text = read_number(text, &label);
    if (text == NULL || label == 0 || label > INT32_MAX) {
      cli_note("%s:%zu: expected labels from 1 to 2147483647", path, number);
      return CLI_INPUT;
    }
    int code = add_label(strings, (int32_t)label);
    if (code != CLI_OK) return code;
  }
  strings->count[owner] = strings->num_labels - strings->first[owner];
  return CLI_OK;
}

/* Puts the strings of arcs and states in order. */
static void order_strings(const struct strings *from, uint64_t *offsets, int32_t *labels) {
  const uint64_t owners = from->view.num_arcs + from->view.num_states;
  offsets[0] = 0;
  for (uint64_t k = 0; k < owners; k++) {
    const uint64_t count = from->count[k];
    if (count > 0)
      memcpy(labels + offsets[k], from->labels + from->first[k], count * sizeof *labels);
    offsets[k + 1] = offsets[k] + count;
  }
}

static int factor(const wf_fst *in, const char *path, const wf_factor_weight_options *options,
                  wf_fst **out) {
  struct strings strings = {.view = wf_fst_get_view(in)};
  const uint64_t owners = strings.view.num_arcs + strings.view.num_states;
  wf_error err = {0};
  strings.first = malloc((owners + 1) * sizeof(uint64_t));
  strings.count = calloc(owners + 1, sizeof(uint64_t));
  uint64_t *offsets = malloc((owners + 1) * sizeof(uint64_t));
  int32_t *labels = NULL;
  int code = strings.first == NULL || strings.count == NULL || offsets == NULL ? cli_out_of_memory()
                                                                               : CLI_OK;
  for (uint64_t k = 0; k < owners && code == CLI_OK; k++) strings.first[k] = UINT64_MAX;
  if (code == CLI_OK) code = cli_read_lines(path, read_string, &strings);
  if (code == CLI_OK) {
    labels = malloc((strings.num_labels + 1) * sizeof *labels);
    if (labels == NULL) code = cli_out_of_memory();
  }
  if (code == CLI_OK) {
    order_strings(&strings, offsets, labels);
    const wf_label_strings arcs = {offsets, labels},
                           finals = {offsets + strings.view.num_arcs, labels};
    if (wf_factor_weight(in, &arcs, &finals, options, out, &err) != WF_OK) code = cli_fail(&err);
  }
  free(strings.first);
  free(strings.count);
  free(strings.labels);
  free(offsets);
  free(labels);
  return code;
}

int cmd_factorweight(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  wf_factor_weight_options options;
  cli_parser parser = {
      .usage = "IN STRINGS [OUT]",
      .about =
          "Makes arcs with one output label each of arcs and final weights that write several. "
          "STRINGS has lines 'state arc label ...': what an arc of the state (numbered from 0) "
          "writes after its own output label; 'final' in place of the number: what the final "
          "weight writes.",
      .min_args = 2,
      .max_args = 3};
  cli_flag_output(&parser, &output, &format);
  cli_table(&parser, "factor_weight", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 3) output = parser.args[2];
  wf_fst *in = NULL, *out = NULL;
  code = cli_read_fst(parser.args[0], &in);
  if (code == CLI_OK) code = factor(in, parser.args[1], &options, &out);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  wf_fst_free(in);
  wf_fst_free(out);
  return code;
}
