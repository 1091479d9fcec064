/* fuzz_symbols.c - reads arbitrary bytes as a symbol table, as text and as binary. An accepted
 * table must be the same after it was written in binary form and read again, and its texts must be
 * found. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fst/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static wf_status read_binary(const uint8_t *data, size_t size, wf_symbols **out) {
  wf__input input;
  *out = NULL;
  wf_status status = wf__input_from_memory(data, size, "input", &input, NULL);
  if (status != WF_OK) return status;
  wf__cursor cursor = wf__cursor_of(&input);
  status = wf__symbols_read_binary(&cursor, out, NULL);
  wf__input_close(&input);
  return status;
}

static void check(wf_symbols *symbols) {
  uint8_t *bytes, *bytes_again;
  uint64_t size, size_again;
  wf_symbols *again;
  if (wf__symbols_encode(symbols, &bytes, &size, NULL) != WF_OK) return;
  if (read_binary(bytes, (size_t)size, &again) != WF_OK) abort();
  if (wf__symbols_encode(again, &bytes_again, &size_again, NULL) != WF_OK) abort();
  if (size != size_again || memcmp(bytes, bytes_again, size) != 0) abort();
  if (wf_symbols_count(again) != wf_symbols_count(symbols)) abort();
  for (size_t i = 0; i < wf_symbols_count(symbols); i++) {
    int64_t key;
    const char *text = wf_symbols_at(symbols, i, &key);
    if (wf_symbols_find(again, text) != key || wf_symbols_text(again, key) == NULL) abort();
  }
  wf_symbols_free(again);
  wf_symbols_free(symbols);
  free(bytes);
  free(bytes_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input input;
  wf_symbols *symbols;
  if (read_binary(data, size, &symbols) == WF_OK) check(symbols);
  if (wf__input_from_memory(data, size, "input", &input, NULL) != WF_OK) return 0;
  if (wf__symbols_read_input(&input, &symbols, NULL) == WF_OK) check(symbols);
  wf__input_close(&input);
  return 0;
}
