/* summary.c - see summary.h. */
#include "summary.h"

#include <math.h>

void cli_summary_flags(cli_parser *parser, cli_summary *summary) {
  cli_flag_bool(parser, "json", 0, &summary->json, "print the summary as JSON");
  cli_flag_bool(parser, "quiet", 'q', &summary->quiet,
                "do not print the summary or the progress bar");
}

void cli_figures_json(FILE *out, const cli_figure *figures, size_t count) {
  const char *before = "{";
  for (size_t i = 0; i < count; i++) {
    if (figures[i].name == NULL) continue;
    const double value = figures[i].value;
    fprintf(out, "%s\"%s\": ", before, figures[i].name);
    cli_json_number(out, fabs(value) < 1e15 && value == floor(value) ? "%.0f" : "%.10g", value);
    before = ", ";
  }
  fprintf(out, "}\n");
}
