/* print_strings.c - see print_strings.h. */
#include "print_strings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "output_file.h"

int cli_token_type_of(const char *name, cli_token_type *out) {
  static const char *const names[] = {"symbol", "byte", "utf8"};
  for (int k = 0; k < 3; k++) {
    if (strcmp(name, names[k]) != 0) continue;
    *out = (cli_token_type)k;
    return CLI_OK;
  }
  return cli_usage("--token-type: '%s' is not symbol, byte or utf8", name);
}

struct printer {
  wf_fst_view view;
  const wf_symbols *const *tables;
  cli_token_type type;
  bool acceptor;
  const char *key; /* NULL: none is printed */
  FILE *file;
  uint64_t *next;  /* [longest path] the next arc of each state on the path */
  uint32_t *path;  /* [longest path] its states */
  uint64_t length; /* of the path, in arcs */
};

static void print_utf8(FILE *file, uint32_t c) {
  char bytes[4];
  size_t size = wf__utf8_encode(c, bytes);
  fwrite(bytes, 1, size, file);
}

static void print_label(const struct printer *p, int32_t label, int side, bool first) {
  const char *text = p->tables[side] != NULL ? wf_symbols_text(p->tables[side], label) : NULL;
  if (p->type == CLI_BYTES && label < 256)
    fputc(label, p->file);
  else if (p->type == CLI_UTF8 && label < 0x110000)
    print_utf8(p->file, (uint32_t)label);
  else if (p->type == CLI_SYMBOLS && text != NULL)
    fprintf(p->file, "%s%s", first ? "" : " ", text);
  else if (p->type == CLI_SYMBOLS)
    fprintf(p->file, "%s%d", first ? "" : " ", label);
  else
    fprintf(p->file, "<%d>", label); /* not a byte, or not of Unicode */
}

static void print_side(const struct printer *p, int side) {
  bool first = true;
  for (uint64_t k = 0; k < p->length; k++) {
    const wf_arc *arc = &p->view.arcs[p->next[k] - 1];
    int32_t label = side == 0 ? arc->ilabel : arc->olabel;
    if (label == 0) continue;
    print_label(p, label, side, first);
    first = false;
  }
}

static void print_path(const struct printer *p) {
  double cost = (double)p->view.final_cost[p->path[p->length]];
  for (uint64_t k = 0; k < p->length; k++) cost += (double)p->view.arcs[p->next[k] - 1].weight;
  if (p->key != NULL) fprintf(p->file, "%s\t", p->key);
  print_side(p, 0);
  if (!p->acceptor) {
    fputc('\t', p->file);
    print_side(p, 1);
  }
  fprintf(p->file, "\t%g\n", cost);
}

/* Follows the paths of an acyclic fst, depth first. */
static int print_paths(struct printer *p, int64_t limit) {
  int64_t count = 0;
  p->path[0] = (uint32_t)p->view.start;
  p->next[0] = p->view.arc_off[p->view.start];
  for (bool arrived = true;;) {
    uint32_t s = p->path[p->length];
    if (arrived && p->view.final_cost[s] < INFINITY) {
      if (count++ == limit) {
        cli_note("more than %lld strings (--max-strings)", (long long)limit);
        return CLI_LIMIT;
      }
      print_path(p);
    }
    arrived = p->next[p->length] < p->view.arc_off[s + 1];
    if (arrived) {
      uint32_t to = p->view.arcs[p->next[p->length]++].nextstate;
      p->path[++p->length] = to;
      p->next[p->length] = p->view.arc_off[to];
    } else if (p->length-- == 0) {
      return CLI_OK;
    }
  }
}

static int print_trimmed(const wf_fst *fst, struct printer *p, int64_t limit) {
  wf_error err;
  uint32_t properties;
  if (wf_fst_get_properties(fst, &properties, &err) != WF_OK) return cli_fail(&err);
  p->view = wf_fst_get_view(fst);
  p->acceptor = (properties & WF_PROP_ACCEPTOR) != 0;
  if (p->view.start < 0) return CLI_OK;
  if (!(properties & WF_PROP_ACYCLIC)) {
    cli_note("the fst has a cycle, so it has endlessly many strings");
    return CLI_LIMIT;
  }
  p->next = calloc(p->view.num_states + 1, sizeof *p->next);
  p->path = calloc(p->view.num_states + 1, sizeof *p->path);
  int code = CLI_LIMIT;
  if (p->next == NULL || p->path == NULL)
    cli_note("out of memory");
  else
    code = print_paths(p, limit);
  free(p->next);
  free(p->path);
  return code;
}

int cli_print_strings(const wf_fst *fst, const wf_symbols *const tables[2], cli_token_type type,
                      int64_t limit, const char *key, const char *output) {
  wf_error err = {0};
  wf_fst *trimmed;
  cli_output out;
  struct printer p = {.tables = tables, .type = type, .key = key};
  if (wf_connect(fst, &trimmed, &err) != WF_OK) return cli_fail(&err);
  int code = CLI_OK;
  if (cli_output_open(&out, output, &err) != WF_OK) {
    code = cli_fail(&err);
  } else {
    p.file = out.file;
    code = print_trimmed(trimmed, &p, limit);
    /* the strings before the limit stay */
    if (cli_output_close(&out, WF_OK, &err) != WF_OK) code = cli_fail(&err);
  }
  wf_fst_free(trimmed);
  return code;
}
