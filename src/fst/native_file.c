/* native_file.c - warpfst's native file format: the arrays of an fst in their memory layout. The
 * file is memory-mapped and usable without conversion.
 *
 *   byte   0  8 bytes  magic 89 'W' 'F' 'S' 'T' 0d 0a 1a   (as in PNG, detects text-mode copies)
 *          8  u32      version: 1; 2 if there is a section 5; 3 if it is the token graph of a CTC
 *                      graph (ctc_states.h), with or without a section 5
 *         12  u32      semiring: 0 tropical, 1 log
 *         16  u64      size of the whole file
 *         24  i64      start state, -1: none
 *         32  u64      number of states
 *         40  u64      number of arcs
 *         48  5 x {u64 offset, u64 size, u32 crc32, u32 0}   the sections. In version 3 the last
 *                      field of the first one is the label of the blank
 *        168  u64 offset, u64 size, u32 crc32   section 5; zeros in version 1
 *        188  u32      crc32 of bytes 0 to 187
 *        192  section 0  arc_off     (states + 1) x u64
 *             section 1  arcs        arcs x {u32 nextstate, f32 weight, i32 ilabel, i32 olabel}
 *             section 2  final_cost  states x f32, +infinity: not final
 *             section 3  isymbols    as OpenFst embeds them (symbols.h); size 0: none
 *             section 4  osymbols
 *             section 5  word boundaries: how words are found in alignments
 *                        (graph/word_aligner_file.c)
 *
 * All numbers are little-endian. The sections follow in this order. Each begins at the next
 * multiple of 64 bytes; the padding is zeros. The file ends with the last section. The header holds
 * the size of the file, which detects truncated files; checksums detect other damage. A file must
 * not be changed in place while it is mapped. The library's writers never do that: they rename a
 * finished file into place. */
#include <string.h>
#include <zlib.h>

#include "fst/fst_formats.h"
#include "fst/symbols.h"

enum {
  SECTION_ARC_OFF,
  SECTION_ARCS,
  SECTION_FINAL,
  SECTION_ISYMBOLS,
  SECTION_OSYMBOLS,
  SECTION_BOUNDARIES,
  NUM_SECTIONS,
  PLAIN_VERSION = 1,
  BOUNDARIES_VERSION = 2,
  CTC_VERSION = 3,
  ALIGNMENT = 64
};

static const char section_names[NUM_SECTIONS][20] = {
    "arc offsets", "arcs", "final costs", "input symbols", "output symbols", "word boundaries"};
static const uint8_t native_magic[8] = {0x89, 'W', 'F', 'S', 'T', '\r', '\n', 0x1a};

struct section {
  uint64_t offset, size;
  uint32_t crc, last; /* last: 0, but for the blank */
};

/* The last section's numbers are stored in 32-bit halves, as 64-bit fields would need padding. */
struct native_header {
  uint8_t magic[8];
  uint32_t version, semiring;
  uint64_t file_size;
  int64_t start;
  uint64_t num_states, num_arcs;
  struct section plain[SECTION_BOUNDARIES];
  uint32_t offset[2], size[2], section_crc; /* word boundaries */
  uint32_t crc;
};
_Static_assert(sizeof(struct native_header) == 192, "the header has no padding");
_Static_assert(sizeof(wf_arc) == 16, "arcs have no padding");

static uint32_t crc_of(const void *data, uint64_t size) {
  return (uint32_t)crc32_z(0, data, (z_size_t)size);
}
static uint64_t aligned(uint64_t offset) {
  return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

bool wf__native_is(const wf__input *input) {
  return input->size >= sizeof native_magic &&
         memcmp(input->data, native_magic, sizeof native_magic) == 0;
}

/* --- reading ----------------------------------------------------------------------------- */

#define REMEDY "; make or copy it again"

static struct section section_of(const struct native_header *h, int i) {
  if (i != SECTION_BOUNDARIES) return h->plain[i];
  return (struct section){h->offset[0] | (uint64_t)h->offset[1] << 32,
                          h->size[0] | (uint64_t)h->size[1] << 32, h->section_crc, 0};
}

/* Number of sections in a file of this version. */
static int num_sections(const struct native_header *h) {
  return h->version == PLAIN_VERSION ? SECTION_BOUNDARIES : NUM_SECTIONS;
}

static wf_status check_header(const wf__input *input, const struct native_header *h,
                              wf_error *err) {
  const char *path = input->path;
  if (h->crc != crc_of(h, offsetof(struct native_header, crc)))
    return wf__fail(err, WF_ERR_FORMAT, "%s: the header is damaged (checksum)" REMEDY, path);
  if (h->version < PLAIN_VERSION || h->version > CTC_VERSION)
    return wf__fail(
        err, WF_ERR_UNSUPPORTED,
        "%s: native file of version %u, this program reads 1 to %d; create it again with "
        "this program, or convert it to vector with the program that wrote it",
        path, h->version, CTC_VERSION);
  if (h->semiring != WF_TROPICAL && h->semiring != WF_LOG)
    return wf__fail(err, WF_ERR_FORMAT, "%s: unknown semiring %u", path, h->semiring);
  if (h->file_size != input->size)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: the file is %s: %llu bytes, expected %llu from the header" REMEDY, path,
                    input->size < h->file_size ? "cut short" : "too long",
                    (unsigned long long)input->size, (unsigned long long)h->file_size);
  if (h->num_states > WF__MAX_STATES || h->num_arcs > input->size / sizeof(wf_arc))
    return wf__fail(err, WF_ERR_FORMAT, "%s: %llu states and %llu arcs do not fit the file", path,
                    (unsigned long long)h->num_states, (unsigned long long)h->num_arcs);
  const uint32_t blank = h->plain[SECTION_ARC_OFF].last;
  if (h->version == CTC_VERSION && (blank < 1 || blank > INT32_MAX))
    return wf__fail(err, WF_ERR_FORMAT, "%s: the label of the blank is %u" REMEDY, path, blank);
  return WF_OK;
}

/* Checks each section's offset, size and checksum, and that the padding is zeros. */
static wf_status check_sections(const wf__input *input, const struct native_header *h,
                                wf_error *err) {
  const uint64_t sizes[3] = {(h->num_states + 1) * sizeof(uint64_t), h->num_arcs * sizeof(wf_arc),
                             h->num_states * sizeof(float)};
  uint64_t at = sizeof *h;
  for (int i = 0; i < num_sections(h); i++) {
    const struct section declared = section_of(h, i), *section = &declared;
    const bool has_blank = i == 0 && h->version == CTC_VERSION;
    for (uint64_t pad = aligned(at); at < pad; at++)
      if (at < input->size && input->data[at] != 0)
        return wf__fail(err, WF_ERR_FORMAT, "%s: byte %llu between sections is not 0" REMEDY,
                        input->path, (unsigned long long)at);
    if (section->offset != at || at > input->size || section->size > input->size - at ||
        (section->last != 0 && !has_blank) || (i < 3 && section->size != sizes[i]))
      return wf__fail(err, WF_ERR_FORMAT, "%s: the %s have an unexpected offset or size" REMEDY,
                      input->path, section_names[i]);
    if (section->crc != crc_of(input->data + at, section->size))
      return wf__fail(err, WF_ERR_FORMAT, "%s: the %s are damaged (checksum)" REMEDY, input->path,
                      section_names[i]);
    at += section->size;
  }
  if (at != input->size)
    return wf__fail(err, WF_ERR_FORMAT, "%s: the sections end at byte %llu of %llu", input->path,
                    (unsigned long long)at, (unsigned long long)input->size);
  return WF_OK;
}

static wf_status read_symbols(const wf__input *input, const struct section *section,
                              wf_symbols **out, wf_error *err) {
  *out = NULL;
  if (section->size == 0) return WF_OK;
  wf__cursor cursor = wf__cursor_of(input);
  cursor.at += section->offset;
  cursor.end = cursor.at + section->size;
  WF__TRY(wf__symbols_read_binary(&cursor, out, err));
  if (cursor.at == cursor.end) return WF_OK;
  wf_symbols_free(*out);
  *out = NULL;
  return wf__cursor_fail(&cursor, err, WF_ERR_FORMAT, "bytes follow the symbol table");
}

static void release_input(void *keeper) {
  wf__input_close(keeper);
  free(keeper);
}

/* Makes an fst over the arrays inside the input. The fst takes ownership of the input, which is
 * empty afterwards. */
static wf_status adopt(wf__input *input, const wf_fst_view *view, const wf_symbols *isymbols,
                       const wf_symbols *osymbols, const struct section *boundaries,
                       int32_t ctc_blank, wf_fst **out, wf_error *err) {
  wf__input *keeper = wf__alloc(1, sizeof *keeper);
  if (keeper == NULL) return wf__fail_memory(err, sizeof *keeper, "an fst");
  *keeper = *input;
  *input = (wf__input){0};
  wf_fst *bare;
  WF__TRY(wf__fst_from_arrays(view, release_input, keeper, &bare, err));
  wf_status status =
      wf__fst_set_boundaries(bare, keeper->data + boundaries->offset, boundaries->size, err);
  wf__fst_set_ctc_blank(bare, ctc_blank);
  if (status == WF_OK) status = wf_fst_with_symbols(bare, isymbols, osymbols, out, err);
  wf_fst_free(bare);
  return status;
}

static wf_status read_native(wf__input *input, wf_fst **out, wf_error *err) {
  struct native_header h;
  if (input->size < sizeof h)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: the file is cut short: %zu bytes, the header alone has %zu" REMEDY,
                    input->path, input->size, sizeof h);
  memcpy(&h, input->data, sizeof h);
  WF__TRY(check_header(input, &h, err));
  WF__TRY(check_sections(input, &h, err));
  wf_fst_view view = {
      .start = h.start,
      .num_states = h.num_states,
      .num_arcs = h.num_arcs,
      .arc_off = (const uint64_t *)(const void *)(input->data + h.plain[SECTION_ARC_OFF].offset),
      .arcs = (const wf_arc *)(const void *)(input->data + h.plain[SECTION_ARCS].offset),
      .final_cost = (const float *)(const void *)(input->data + h.plain[SECTION_FINAL].offset),
      .semiring = (wf_semiring)h.semiring};
  WF__TRY(wf__fst_check(&view, input->path, err));
  wf_symbols *isymbols = NULL, *osymbols = NULL;
  wf_status status = read_symbols(input, &h.plain[SECTION_ISYMBOLS], &isymbols, err);
  if (status == WF_OK) status = read_symbols(input, &h.plain[SECTION_OSYMBOLS], &osymbols, err);
  const struct section boundaries =
      h.version == PLAIN_VERSION ? (struct section){0} : section_of(&h, SECTION_BOUNDARIES);
  const int32_t blank = (int32_t)h.plain[SECTION_ARC_OFF].last;
  if (status == WF_OK)
    status = adopt(input, &view, isymbols, osymbols, &boundaries, blank, out, err);
  wf_symbols_free(isymbols);
  wf_symbols_free(osymbols);
  return status;
}

wf_status wf__native_read(wf__input *input, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_status status = read_native(input, out, err);
  wf__input_close(input);
  return status;
}

/* --- writing ----------------------------------------------------------------------------- */

static void write_sections(const struct native_header *h, const void *const *data,
                           wf__output *output) {
  static const uint8_t zeros[ALIGNMENT] = {0};
  uint64_t at = sizeof *h;
  wf__write(output, h, sizeof *h);
  for (int i = 0; i < num_sections(h); i++) {
    struct section section = section_of(h, i);
    wf__write(output, zeros, (size_t)(section.offset - at));
    wf__write(output, data[i], (size_t)section.size);
    at = section.offset + section.size;
  }
}

/* Fills in the sections' offsets, sizes and checksums, and the header's checksum. */
static void lay_out(struct native_header *h, int32_t blank, const void *const *data,
                    const uint64_t *sizes) {
  uint64_t at = sizeof *h;
  for (int i = 0; i < num_sections(h); i++) {
    struct section section = {.offset = aligned(at),
                              .size = sizes[i],
                              .crc = sizes[i] != 0 ? crc_of(data[i], sizes[i]) : 0};
    at = section.offset + section.size;
    if (i != SECTION_BOUNDARIES) {
      h->plain[i] = section;
      continue;
    }
    for (int half = 0; half < 2; half++) {
      h->offset[half] = (uint32_t)(section.offset >> 32 * half);
      h->size[half] = (uint32_t)(section.size >> 32 * half);
    }
    h->section_crc = section.crc;
  }
  h->plain[SECTION_ARC_OFF].last = (uint32_t)blank;
  h->file_size = at;
  memcpy(h->magic, native_magic, sizeof h->magic);
  h->crc = crc_of(h, offsetof(struct native_header, crc));
}

wf_status wf__native_write(const wf_fst *fst, wf__output *output, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fst);
  const wf_symbols *tables[2] = {wf_fst_isymbols(fst), wf_fst_osymbols(fst)};
  uint8_t *encoded[2] = {NULL, NULL};
  uint64_t encoded_size[2] = {0, 0}, boundaries_size;
  const void *boundaries = wf__fst_boundaries(fst, &boundaries_size);
  wf_status status = WF_OK;
  for (int i = 0; i < 2 && status == WF_OK; i++)
    if (tables[i] != NULL)
      status = wf__symbols_encode(tables[i], &encoded[i], &encoded_size[i], err);
  if (status == WF_OK) {
    const int32_t blank = wf__fst_ctc_blank(fst);
    struct native_header h = {.version = blank != 0           ? CTC_VERSION
                                         : boundaries != NULL ? BOUNDARIES_VERSION
                                                              : PLAIN_VERSION,
                              .semiring = (uint32_t)view.semiring,
                              .start = view.start,
                              .num_states = view.num_states,
                              .num_arcs = view.num_arcs};
    const void *data[NUM_SECTIONS] = {view.arc_off, view.arcs,  view.final_cost,
                                      encoded[0],   encoded[1], boundaries};
    const uint64_t sizes[NUM_SECTIONS] = {(view.num_states + 1) * sizeof(uint64_t),
                                          view.num_arcs * sizeof(wf_arc),
                                          view.num_states * sizeof(float),
                                          encoded_size[0],
                                          encoded_size[1],
                                          boundaries_size};
    lay_out(&h, blank, data, sizes);
    write_sections(&h, data, output);
  }
  free(encoded[0]);
  free(encoded[1]);
  return status;
}
