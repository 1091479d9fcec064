/* openfst_write.c - writes OpenFst's binary VectorFst (version 2) and ConstFst (version 2,
 * unaligned). Layout: openfst_read.c.
 *
 * The header claims only the properties "expanded" and, for vector, "mutable". OpenFst's tools
 * compute the others when they need them. */
#include <string.h>

#include "fst/ctc_states.h"
#include "fst/fst_formats.h"
#include "fst/symbols.h"

enum {
  FLAG_ISYMBOLS = 1,
  FLAG_OSYMBOLS = 2,
  PROPERTY_EXPANDED = 1,
  PROPERTY_MUTABLE = 2,
  FILE_VERSION = 2,
  CHUNK = 512
};

struct shape {
  bool is_const, wide; /* wide: float64 weights */
};

static void write_string(wf__output *output, const char *text) {
  int32_t size = (int32_t)strlen(text);
  wf__write(output, &size, sizeof size);
  wf__write(output, text, (size_t)size);
}

static wf_status write_symbols(const wf_symbols *symbols, wf__output *output, wf_error *err) {
  uint8_t *bytes;
  uint64_t size;
  if (symbols == NULL) return WF_OK;
  WF__TRY(wf__symbols_encode(symbols, &bytes, &size, err));
  wf__write(output, bytes, (size_t)size);
  free(bytes);
  return WF_OK;
}

static wf_status write_header(const wf_fst *fst, const wf_fst_view *view, struct shape shape,
                              wf__output *output, wf_error *err) {
  const wf_symbols *isymbols = wf_fst_isymbols(fst), *osymbols = wf_fst_osymbols(fst);
  const int32_t magic = WF__OPENFST_MAGIC, version = FILE_VERSION;
  uint32_t flags =
      (isymbols != NULL ? FLAG_ISYMBOLS : 0u) | (osymbols != NULL ? FLAG_OSYMBOLS : 0u);
  uint64_t properties = PROPERTY_EXPANDED | (shape.is_const ? 0u : PROPERTY_MUTABLE);
  int64_t counts[3] = {
      view->start, (int64_t)view->num_states,
      shape.is_const ? (int64_t)view->num_arcs : 0}; /* OpenFst writes 0 for vector */
  wf__write(output, &magic, sizeof magic);
  write_string(output, shape.is_const ? "const" : "vector");
  write_string(output, shape.wide ? "log64" : view->semiring == WF_LOG ? "log" : "standard");
  wf__write(output, &version, sizeof version);
  wf__write(output, &flags, sizeof flags);
  wf__write(output, &properties, sizeof properties);
  wf__write(output, counts, sizeof counts);
  WF__TRY(write_symbols(isymbols, output, err));
  return write_symbols(osymbols, output, err);
}

/* Stores an arc at `to`, and returns its size in bytes. `wide`: the weight of a log64 arc. */
static size_t store_arc(const wf_arc *arc, double wide, struct shape shape, uint8_t *to) {
  memcpy(to, &arc->ilabel, 4);
  memcpy(to + 4, &arc->olabel, 4);
  if (!shape.wide) {
    memcpy(to + 8, &arc->weight, 4);
    memcpy(to + 12, &arc->nextstate, 4);
    return 16;
  }
  memcpy(to + 8, &wide, 8);
  memcpy(to + 16, &arc->nextstate, 4);
  if (!shape.is_const) return 20;
  memset(to + 20, 0, 4);
  return 24;
}

/* `wide`: the weights of log64 arcs; NULL: those of the arcs. */
static void write_arcs(const wf_arc *arcs, const double *wide, uint64_t count, struct shape shape,
                       wf__output *output) {
  uint8_t chunk[CHUNK * 24];
  while (count > 0) {
    uint64_t part = count < CHUNK ? count : CHUNK;
    size_t used = 0;
    for (uint64_t i = 0; i < part; i++)
      used +=
          store_arc(&arcs[i], wide != NULL ? wide[i] : (double)arcs[i].weight, shape, chunk + used);
    wf__write(output, chunk, used);
    arcs += part;
    if (wide != NULL) wide += part;
    count -= part;
  }
}

/* `finals`: the final weights of a log64 fst; NULL: those of the view. */
static void write_final(const wf_fst_view *view, const double *finals, uint64_t state,
                        struct shape shape, wf__output *output) {
  float weight = view->final_cost[state];
  double wide = finals != NULL ? finals[state] : (double)weight;
  if (shape.wide)
    wf__write(output, &wide, sizeof wide);
  else
    wf__write(output, &weight, sizeof weight);
}

static void write_vector(const wf_fst *fst, const wf_fst_view *view, struct shape shape,
                         wf__output *output) {
  const double *wide = wf__fst_wide_arcs(fst), *finals = wf__fst_wide_finals(fst);
  for (uint64_t s = 0; s < view->num_states; s++) {
    int64_t count = (int64_t)(view->arc_off[s + 1] - view->arc_off[s]);
    write_final(view, finals, s, shape, output);
    wf__write(output, &count, sizeof count);
    write_arcs(view->arcs + view->arc_off[s], wide != NULL ? wide + view->arc_off[s] : NULL,
               (uint64_t)count, shape, output);
  }
}

static void write_const(const wf_fst *fst, const wf_fst_view *view, struct shape shape,
                        wf__output *output) {
  const double *finals = wf__fst_wide_finals(fst);
  for (uint64_t s = 0; s < view->num_states; s++) {
    uint64_t first = view->arc_off[s], last = view->arc_off[s + 1];
    /* first arc, number of arcs, input epsilons, output epsilons */
    uint32_t row[4] = {(uint32_t)first, (uint32_t)(last - first), 0, 0};
    for (uint64_t i = first; i < last; i++) {
      row[2] += view->arcs[i].ilabel == 0;
      row[3] += view->arcs[i].olabel == 0;
    }
    write_final(view, finals, s, shape, output);
    wf__write(output, row, sizeof row);
  }
  write_arcs(view->arcs, wf__fst_wide_arcs(fst), view->num_arcs, shape, output);
}

static wf_status write_fst(const wf_fst *fst, wf_fst_format format, wf__output *output,
                           wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fst);
  struct shape shape = {
      .is_const = format == WF_FORMAT_OPENFST_CONST || format == WF_FORMAT_OPENFST_CONST_LOG64,
      .wide = format == WF_FORMAT_OPENFST_VECTOR_LOG64 || format == WF_FORMAT_OPENFST_CONST_LOG64};
  if (shape.wide && view.semiring != WF_LOG)
    return wf__fail(err, WF_ERR_ARGUMENT, "log64 arcs need an fst in the log semiring");
  if (shape.is_const && view.num_arcs > UINT32_MAX)
    return wf__fail(
        err, WF_ERR_LIMIT,
        "%llu arcs, but an OpenFst const file holds at most 2^32-1; write vector or native",
        (unsigned long long)view.num_arcs);
  WF__TRY(write_header(fst, &view, shape, output, err));
  if (shape.is_const)
    write_const(fst, &view, shape, output);
  else
    write_vector(fst, &view, shape, output);
  return WF_OK;
}

wf_status wf__openfst_write(const wf_fst *fst, wf_fst_format format, wf__output *output,
                            wf_error *err) {
  wf_fst *whole;
  WF__TRY(wf__ctc_spell_out(fst, &whole, err));
  const wf_status status = write_fst(whole, format, output, err);
  wf_fst_free(whole);
  return status;
}
