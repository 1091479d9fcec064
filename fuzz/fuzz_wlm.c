/* fuzz_wlm.c - reads arbitrary bytes as a mapped language model (.wlm). If a file opens, queries
 * must stay within its arrays; if it also passes wf_lm_verify, queries must not give NaN.
 *
 * The sections of a model are aligned to 4096 bytes and mostly zeros. So this program builds four
 * models once, and an input says how to change one of them. First byte:
 *
 *   0..3    number of the model (packed: none, exact, codebook; 3: a difference), plus 4 if the
 *           checksums are to be recomputed. Edits of 4 bytes follow: section (8: the header),
 *           offset (2 bytes), new byte.
 *   'A'     the rest is an ARPA file to build a model from
 *   0x89    the whole input is the file */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lm/lm.h"
#include "lm/ngram_collector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MODELS = 4, FIT = 4, WORDS = 24 };
static uint8_t *g_models[MODELS];
static size_t g_sizes[MODELS];
static char g_arpa[64], g_small[64], g_out[64];

static void check(bool holds) {
  if (!holds) abort();
}

static void put_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  check(file != NULL && (size == 0 || fwrite(data, 1, size, file) == size));
  check(fclose(file) == 0);
}

/* Writes an ARPA model. The number of bigrams of a history goes from 0 to WORDS - 1, so that there
 * are small and large states. There are also a few trigrams. */
static size_t spell_model(char *text, size_t room, bool small) {
  size_t at = (size_t)snprintf(
      text, room,
      "\\data\\\nngram 1=%d\nngram 2=%d\nngram 3=%d\n\\1-grams:\n-99 <s> -0.5\n-1 </s>\n-2 <unk>\n",
      WORDS + 3, small ? WORDS : WORDS * (WORDS - 1) / 2, small ? 0 : WORDS - 2);
  for (int w = 0; w < WORDS; w++)
    at += (size_t)snprintf(text + at, room - at, "-1.%d w%d -0.25\n", w, w);
  at += (size_t)snprintf(text + at, room - at, "\\2-grams:\n");
  for (int w = 0; w < WORDS; w++)
    for (int i = 0; small ? i < 1 : i < w; i++)
      at += (size_t)snprintf(text + at, room - at, "-0.%d w%d w%d\n", 1 + w + i, w, i);
  at += (size_t)snprintf(text + at, room - at, "\\3-grams:\n");
  for (int w = 2; w < WORDS && !small; w++)
    at += (size_t)snprintf(text + at, room - at, "-0.1 w%d w1 w0\n", w);
  return at + (size_t)snprintf(text + at, room - at, "\\end\\\n");
}

static wf_status build(wf_lm_convert_options *options, wf_error *err) {
  options->memory = 1 << 20;
  return wf_lm_convert(g_arpa, g_out, NULL, options, NULL, NULL, NULL, err);
}

static void make_models(void) {
  static char text[1 << 16];
  wf_error err;
  snprintf(g_arpa, sizeof g_arpa, "/tmp/fuzz_wlm.%ld.arpa", (long)getpid());
  snprintf(g_small, sizeof g_small, "/tmp/fuzz_wlm.%ld.small", (long)getpid());
  snprintf(g_out, sizeof g_out, "/tmp/fuzz_wlm.%ld.wlm", (long)getpid());
  put_file(g_arpa, text, spell_model(text, sizeof text, false));
  put_file(g_small, text, spell_model(text, sizeof text, true));
  for (int m = 0; m < MODELS; m++) {
    wf_lm_convert_options options;
    wf_lm_convert_options_init(&options);
    options.pack = m % 3;
    if (m == 3) options.subtract = g_small;
    wf__input input;
    check(build(&options, &err) == WF_OK && wf__input_open(g_out, &input, &err) == WF_OK);
    g_sizes[m] = input.size;
    g_models[m] = malloc(input.size);
    check(g_models[m] != NULL);
    memcpy(g_models[m], input.data, input.size);
    wf__input_close(&input);
  }
  remove(g_arpa);
  remove(g_small);
  remove(g_out);
}

/* Queries every word in the first 100 states. Returns a hash of the answers. */
static uint64_t query(const wf__wlm *lm, bool sound) {
  uint64_t sum = 0;
  for (uint32_t s = 0; s < lm->view.num_states && s < 100; s++) {
    for (int32_t w = -1; w < WORDS + 6; w++) {
      uint32_t next;
      int32_t order;
      float cost = wf__wlm_query(lm, s, w, &next, &order);
      check(next < lm->view.num_states && order >= 0 && order <= WF_LM_MAX_ORDER &&
            !(sound && isnan(cost)));
      uint32_t bits;
      memcpy(&bits, &cost, sizeof bits);
      sum = sum * 31 + bits + next;
    }
    float cost = wf__wlm_final(lm, s, NULL);
    check(!(sound && isnan(cost)));
  }
  return sum;
}

static void use(wf__wlm *lm, bool must_be_sound) {
  wf_error err;
  bool sound = wf__wlm_verify(lm, NULL, &err) == WF_OK;
  check(sound || !must_be_sound);
  uint64_t sum = query(lm, sound);
  bool table = wf__wlm_make_table(lm, NULL, &err) ==
               WF_OK; /* a valid model can have a table, which must give the same answers */
  check(table || !sound);
  check(query(lm, sound) == sum || !sound);
  wf_lm_info info;
  wf_lm_info_init(&info);
  wf__wlm_info(lm, &info);
  wf__automaton *automaton; /* may be refused, if the file is damaged */
  check(wf__automaton_of_wlm(lm, lm->words, WF__OOV_SKIP, &automaton, NULL, NULL, &err) == WF_OK ||
        !must_be_sound);
  wf__automaton_free(automaton);
}

static void open_bytes(const uint8_t *data, size_t size, bool must_be_sound) {
  wf__input input;
  wf_error err;
  wf__wlm *lm;
  if (wf__input_from_memory(data, size, "model", &input, &err) != WF_OK) return;
  wf_status status = wf__wlm_open_input(&input, &lm, &err);
  check((status == WF_OK) == (lm != NULL) && (status == WF_OK || !must_be_sound));
  if (lm != NULL) use(lm, must_be_sound);
  wf__wlm_free(lm);
}

static void open_built(const uint8_t *text, size_t size) {
  wf_lm_convert_options options;
  wf_lm_convert_options_init(&options);
  wf_error err;
  put_file(g_arpa, text, size);
  if (build(&options, &err) == WF_OK) {
    wf_lm *lm;
    check(wf_lm_open_mapped(g_out, &lm, &err) == WF_OK);
    use(lm->mapped, true);
    wf_lm_free(lm);
    remove(g_out);
  }
  remove(g_arpa);
}

static void open_edited(uint8_t which, const uint8_t *edits, size_t size) {
  int m = which % MODELS;
  uint8_t *bytes = malloc(g_sizes[m]);
  check(bytes != NULL);
  memcpy(bytes, g_models[m], g_sizes[m]);
  wf__wlm_header *h = (wf__wlm_header *)(void *)bytes;
  wf__wlm_section sections[WF__WLM_SECTIONS];
  memcpy(sections, h->sections, sizeof sections);
  for (; size >= 4; edits += 4, size -= 4) {
    uint64_t begin = edits[0] % 9 == 8 ? 0 : sections[edits[0] % 9].offset;
    uint64_t length = edits[0] % 9 == 8 ? sizeof *h : sections[edits[0] % 9].size;
    if (length > 0) bytes[begin + (edits[1] | (uint64_t)edits[2] << 8) % length] = edits[3];
  }
  for (int i = 0; i < WF__WLM_SECTIONS && (which & FIT); i++)
    if (h->sections[i].offset <= g_sizes[m] &&
        h->sections[i].size <= g_sizes[m] - h->sections[i].offset)
      h->sections[i].crc = wf__wlm_crc(0, bytes + h->sections[i].offset, h->sections[i].size);
  if (which & FIT) h->crc = wf__wlm_crc(0, h, offsetof(wf__wlm_header, crc));
  open_bytes(bytes, g_sizes[m], memcmp(bytes, g_models[m], g_sizes[m]) == 0);
  free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (g_models[0] == NULL) make_models();
  if (size == 0) return 0;
  if (data[0] == 'A')
    open_built(data + 1, size - 1);
  else if (data[0] == 0x89)
    open_bytes(data, size, false);
  else
    open_edited(data[0], data + 1, size - 1);
  return 0;
}
