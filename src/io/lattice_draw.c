/* lattice_draw.c - draws a lattice: computes the layout and writes it in the requested format. */
#include "base/option_tables.h"
#include "io/lattice_picture.h"
#include "io/svg.h"

enum format { HTML, DOT, SVG, AUTO }; /* as in WF_LATTICE_DRAW_OPTIONS */

static int32_t format_of_name(const char *path) {
  if (path == NULL) return HTML; /* opening it fails */
  if (wf__draws_dot(path)) return DOT;
  return wf__name_ends(path, ".svg") ? SVG : HTML;
}

wf_status wf_compact_lattice_draw(const wf_compact_lattice *lattice, const char *key,
                                  const wf_symbols *words, const wf_lattice_draw_options *options,
                                  const char *path, wf_error *err) {
  wf_lattice_draw_options taken;
  WF__TRY(wf__options_take(wf__lattice_draw_table(), options, &taken, err));
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  if (view.num_arcs > (uint64_t)taken.max_arcs)
    return wf__fail(err, WF_ERR_LIMIT,
                    "the lattice has %llu arcs, more than max_arcs (%lld); prune it",
                    (unsigned long long)view.num_arcs, (long long)taken.max_arcs);
  wf__picture picture;
  wf__output *output;
  WF__TRY(wf__picture_make(lattice, &picture, err));
  picture.key = key != NULL ? key : "";
  picture.words = words;
  picture.frame_shift = (double)taken.frame_shift;
  wf_status status = wf__output_open(path, &output, err);
  if (status == WF_OK) {
    int32_t format = taken.format == AUTO ? format_of_name(path) : taken.format;
    if (format == DOT)
      wf__picture_write_dot(&picture, output);
    else if (format == SVG)
      wf__picture_write_svg(&picture, output);
    else
      wf__picture_write_html(&picture, output);
    status = wf__output_close(output, err);
  }
  wf__picture_free(&picture);
  return status;
}
