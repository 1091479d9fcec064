/* fst_print.c - writes an fst as AT&T text, byte for byte as OpenFst's fstprint (format:
 * fst_compile.c).
 *
 * The start state comes first, then the other states in order. Of each state, the arcs come first,
 * then the final cost. A state with neither arcs nor a final cost gets a line with the final cost
 * Infinity, so that compiling the text recreates it. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/option_tables.h"
#include "fst/ctc_states.h"
#include "fst/fst_formats.h"
#include "fst/symbols.h"

struct printer {
  wf__output *output;
  wf_fst_view view;
  const wf_symbols *isymbols, *osymbols;
  wf_text_options options;
};

/* Writes the decimal digits of `value` to `to` and returns the end. */
static char *put_number(char *to, uint32_t value) {
  char digits[10];
  int count = 0;
  do digits[count++] = (char)('0' + value % 10);
  while ((value /= 10) != 0);
  while (count > 0) *to++ = digits[--count];
  return to;
}

/* Writes nine significant digits, as a C++ stream of precision 9 does. Needs at most 32 characters.
 * Returns the end. */
static char *put_weight(char *to, float weight) {
  if (weight == INFINITY) return (char *)memcpy(to, "Infinity", 8) + 8;
  if (weight > 0 && weight < 1e9f && weight == (float)(uint32_t)weight)
    return put_number(to, (uint32_t)weight);
  int size = snprintf(to, 32, "%.9g", (double)weight);
  const char *point = localeconv()->decimal_point;
  if (point[0] != '.' && point[1] == '\0') {
    char *comma = memchr(to, point[0], (size_t)size);
    if (comma != NULL) *comma = '.';
  }
  return to + size;
}

/* Appends a label to the line. `line` holds the text that was not written yet. A symbol is written
 * to the output directly, after which the line is empty again. */
static wf_status print_label(struct printer *p, const wf_symbols *symbols, int32_t label,
                             const char *side, char *line, char **end, wf_error *err) {
  *(*end)++ = '\t';
  if (symbols == NULL) {
    *end = put_number(*end, (uint32_t)label);
    return WF_OK;
  }
  const char *text = wf_symbols_text(symbols, label);
  if (text == NULL) text = p->options.missing_symbol;
  if (text == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s label %d is not in the symbol table %s", side, label,
                    wf__symbols_shown(symbols));
  const char *fault = wf__symbols_field_fault(symbols, (wf__span){text, strlen(text)});
  if (fault != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the symbol '%s' of %s label %d %s; text cannot hold it: print numbers", text,
                    side, label, fault);
  wf__write(p->output, line, (size_t)(*end - line));
  wf__write_text(p->output, text);
  *end = line;
  return WF_OK;
}

static bool shows(const struct printer *p, float weight) {
  return weight != 0 || p->options.show_weight_one;
}

static wf_status print_state(struct printer *p, uint32_t state, wf_error *err) {
  char line[160], head[16];
  size_t head_size = (size_t)(put_number(head, state) - head);
  uint64_t first = p->view.arc_off[state], last = p->view.arc_off[state + 1];
  for (uint64_t i = first; i < last; i++) {
    const wf_arc *arc = &p->view.arcs[i];
    memcpy(line, head, head_size);
    char *end = line + head_size;
    *end++ = '\t';
    end = put_number(end, arc->nextstate);
    WF__TRY(print_label(p, p->isymbols, arc->ilabel, "input", line, &end, err));
    if (!p->options.acceptor)
      WF__TRY(print_label(p, p->osymbols, arc->olabel, "output", line, &end, err));
    if (shows(p, arc->weight)) {
      *end++ = '\t';
      end = put_weight(end, arc->weight);
    }
    *end++ = '\n';
    wf__write(p->output, line, (size_t)(end - line));
  }
  float final_cost = p->view.final_cost[state];
  if (final_cost == INFINITY && first != last) return WF_OK;
  memcpy(line, head, head_size);
  char *end = line + head_size;
  if (shows(p, final_cost)) {
    *end++ = '\t';
    end = put_weight(end, final_cost);
  }
  *end++ = '\n';
  wf__write(p->output, line, (size_t)(end - line));
  return WF_OK;
}

static wf_status print_fst(const wf_fst *fst, const wf_symbols *isymbols,
                           const wf_symbols *osymbols, const wf_text_options *options,
                           wf__output *output, wf_error *err) {
  struct printer p = {.output = output, .view = wf_fst_get_view(fst)};
  WF__TRY(wf__options_take(wf__text_table(), options, &p.options, err));
  if (!p.options.numeric) {
    p.isymbols = isymbols != NULL ? isymbols : wf_fst_isymbols(fst);
    p.osymbols = osymbols != NULL ? osymbols : wf_fst_osymbols(fst);
  }
  if (p.view.start < 0) return WF_OK;
  WF__TRY(print_state(&p, (uint32_t)p.view.start, err));
  for (uint64_t s = 0; s < p.view.num_states; s++)
    if (s != (uint64_t)p.view.start) WF__TRY(print_state(&p, (uint32_t)s, err));
  return WF_OK;
}

wf_status wf__fst_print_to(const wf_fst *fst, const wf_symbols *isymbols,
                           const wf_symbols *osymbols, const wf_text_options *options,
                           wf__output *output, wf_error *err) {
  wf_fst *whole;
  WF__TRY(wf__ctc_spell_out(fst, &whole, err));
  const wf_status status = print_fst(whole, isymbols, osymbols, options, output, err);
  wf_fst_free(whole);
  return status;
}

wf_status wf_fst_print(const wf_fst *fst, const char *path, const wf_symbols *isymbols,
                       const wf_symbols *osymbols, const wf_text_options *options, wf_error *err) {
  wf__output *output;
  WF__TRY(wf__output_open(path, &output, err));
  wf_status status = wf__fst_print_to(fst, isymbols, osymbols, options, output, err);
  if (status == WF_OK) return wf__output_close(output, err);
  wf__output_abort(output);
  return status;
}

wf_status wf_fst_print_memory(const wf_fst *fst, const wf_symbols *isymbols,
                              const wf_symbols *osymbols, const wf_text_options *options,
                              char **out, size_t *size, wf_error *err) {
  wf__output *output;
  void *data = NULL;
  *out = NULL;
  *size = 0;
  WF__TRY(wf__output_open_memory(&output, err));
  wf_status status = wf__fst_print_to(fst, isymbols, osymbols, options, output, err);
  if (status == WF_OK) {
    status = wf__output_take(output, &data, size, err);
    *out = data;
    return status;
  }
  wf__output_abort(output);
  return status;
}
