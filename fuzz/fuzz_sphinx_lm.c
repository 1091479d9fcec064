/* fuzz_sphinx_lm.c - reads arbitrary bytes as a Sphinx trie language model. The quantization tables
 * of a real file are hundreds of kilobytes and do not affect the layout, so an input is a file
 * without the magic number and the tables:
 *     u8 order, u32 counts[order], ..., then everything that follows the tables
 * This program inserts the magic number and the tables. If the reader accepts a model, queries must
 * not give NaN or a state out of range, and pruning must work. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "binary_lm_checks.h"
#include "lm/sphinx_lm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Builds the whole file in *out. Returns its size, or 0 if the input is too short. */
static size_t make_file(const uint8_t *data, size_t size, uint8_t **out) {
  static const char magic[] = "Trie Language Model";
  size_t order = size > 0 ? data[0] : 0, head = 1 + 4 * order;
  if (order > 8 || size < head) return 0;
  size_t tables = order > 1 ? 4 + 4 * 65536 * (2 * order - 3) : 0,
         total = sizeof magic - 1 + size + tables;
  uint8_t *at = *out = malloc(total);
  if (at == NULL) return 0;
  memcpy(at, magic, sizeof magic - 1);
  at += sizeof magic - 1;
  memcpy(at, data, head);
  at += head;
  for (size_t i = 0; i < tables / 4;
       i++) { /* -(i mod 65536) in base 1.0001; NaN or a huge value once in 4099 */
    float value = i % 4099 == 4098 ? (i % 2 == 0 ? NAN : 40000.0f) : -(float)(i % 65536);
    memcpy(at + 4 * i, &value, 4);
  }
  memcpy(at + tables, data + head, size - head);
  return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input input = {.path = "input"};
  uint8_t *bytes = NULL;
  input.size = make_file(data, size, &bytes);
  input.data = bytes;
  if (input.size > 0) {
    check(wf__lm_is_sphinx(&input));
    check_reader(&input, wf__lm_read_sphinx);
  }
  free(bytes);
  return 0;
}
