/* float_text.c - shortest text of a float32. */
#include "io/float_text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int wf__float_text(float value, char text[WF__FLOAT_TEXT_BYTES]) {
  if (isnan(value)) return snprintf(text, WF__FLOAT_TEXT_BYTES, "nan");
  if (isinf(value))
    return snprintf(text, WF__FLOAT_TEXT_BYTES, value > 0 ? "Infinity" : "-Infinity");
  int size = 0;
  for (int digits = 6; digits <= 9; digits++) {
    size = snprintf(text, WF__FLOAT_TEXT_BYTES, "%.*g", digits, (double)value);
    if (strtof(text, NULL) == value) break;
  }
  const char *point = localeconv()->decimal_point; /* assumed to be one byte */
  char *at = point[0] != '.' ? strchr(text, point[0]) : NULL;
  if (at != NULL) *at = '.';
  return size;
}
