/* arpa_text.c - the lines and numbers of an ARPA file. */
#include "lm/arpa_text.h"

#include <math.h>

void wf__arpa_write_header(wf__output *output, int order, const uint64_t *num_ngrams) {
  wf__write_text(output, "\\data\\\n");
  for (int k = 1; k <= order; k++)
    wf__printf(output, "ngram %d=%llu\n", k, (unsigned long long)num_ngrams[k]);
}

void wf__arpa_write_section(wf__output *output, int k) { wf__printf(output, "\n\\%d-grams:\n", k); }

void wf__arpa_write_end(wf__output *output) { wf__write_text(output, "\n\\end\\\n"); }

/* Own code, because printf is slow for millions of numbers. */
void wf__arpa_write_log10(wf__output *output, float cost) {
  double value = -(double)cost / M_LN10;
  if (value < -99) value = -99; /* counts as probability 0 */
  if (value > 1e6) {
    wf__printf(output, "%.9g", value);
    return;
  }
  uint64_t rounded = (uint64_t)(fabs(value) * 1e7 + 0.5), whole = rounded / 10000000,
           decimals = rounded % 10000000;
  char text[32], *at = text + sizeof text;
  for (int i = 0; i < 7; i++, decimals /= 10) *--at = (char)('0' + decimals % 10);
  *--at = '.';
  do *--at = (char)('0' + whole % 10);
  while ((whole /= 10) > 0);
  if (value < 0 && rounded > 0) *--at = '-';
  wf__write(output, at, (size_t)(text + sizeof text - at));
}
