/* align_kernel.c - a scalar kernel, and on x86-64 kernels of 8 and 16 places at a time. */
#include "decode/align_kernel.h"

#include <stdbool.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

INLINE void advance_scalar(const wf__align_frame *f, size_t begin, size_t end, bool traced) {
  const float *token = f->now.token, *blank = f->now.blank, *scores = f->scores;
  float before = f->before, blank_score = scores[f->blank];
  for (size_t i = begin; i < end; i++) {
    float stay = token[i], wait = blank[i], jump = before + f->skip[i],
          best = wait > stay ? wait : stay, longest = jump > best ? jump : best;
    f->next.token[i] = longest + scores[f->column[i]];
    f->next.blank[i] = (before > wait ? before : wait) + blank_score;
    if (traced)
      f->back[i - begin] = (uint8_t)((jump > best   ? WF__TOKEN_FROM_TOKEN
                                      : wait > stay ? WF__TOKEN_FROM_BLANK
                                                    : WF__TOKEN_STAYS) |
                                     (before > wait ? WF__BLANK_FROM_TOKEN : 0));
    before = stay;
  }
}

static void scalar(const wf__align_frame *f, size_t begin, size_t end) {
  if (f->back != NULL)
    advance_scalar(f, begin, end, true);
  else
    advance_scalar(f, begin, end, false);
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

AVX2 INLINE void advance_avx2(const wf__align_frame *frame, size_t begin, size_t end, bool traced) {
  const wf__align_frame copy = *frame, *f = &copy; /* in registers: nothing else points to it */
  const __m256 blank_score = _mm256_set1_ps(f->scores[f->blank]);
  const __m256i one_up = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
  __m256 carried = _mm256_set1_ps(f->before); /* the last place of the vector before, in lane 0 */
  for (size_t i = begin; i < end; i += 8) {
    const float *token = f->now.token + i;
    __m256 stay = _mm256_load_ps(token), moved = _mm256_permutevar8x32_ps(stay, one_up),
           before = _mm256_blend_ps(moved, carried, 1), wait = _mm256_load_ps(f->now.blank + i),
           jump = _mm256_add_ps(before, _mm256_loadu_ps(f->skip + i)),
           score = _mm256_i32gather_ps(
               f->scores, _mm256_loadu_si256((const __m256i *)(const void *)(f->column + i)), 4),
           best = _mm256_max_ps(wait, stay);
    _mm256_store_ps(f->next.token + i, _mm256_add_ps(_mm256_max_ps(jump, best), score));
    _mm256_store_ps(f->next.blank + i, _mm256_add_ps(_mm256_max_ps(before, wait), blank_score));
    carried = moved;
    if (!traced) continue;
    __m256i jumps = _mm256_castps_si256(_mm256_cmp_ps(jump, best, _CMP_GT_OQ)),
            waits = _mm256_castps_si256(_mm256_cmp_ps(wait, stay, _CMP_GT_OQ)),
            comes = _mm256_castps_si256(_mm256_cmp_ps(before, wait, _CMP_GT_OQ));
    __m256i back =
        _mm256_blendv_epi8(_mm256_and_si256(waits, _mm256_set1_epi32(WF__TOKEN_FROM_BLANK)),
                           _mm256_set1_epi32(WF__TOKEN_FROM_TOKEN), jumps);
    back = _mm256_or_si256(back, _mm256_and_si256(comes, _mm256_set1_epi32(WF__BLANK_FROM_TOKEN)));
    __m128i shorts =
        _mm_packs_epi32(_mm256_castsi256_si128(back), _mm256_extracti128_si256(back, 1));
    _mm_storel_epi64((__m128i *)(void *)(f->back + (i - begin)), _mm_packus_epi16(shorts, shorts));
  }
}

AVX2 static void avx2(const wf__align_frame *f, size_t begin, size_t end) {
  if (f->back != NULL)
    advance_avx2(f, begin, end, true);
  else
    advance_avx2(f, begin, end, false);
}

/* Scores of up to 64 columns, in registers. */
typedef struct table64 {
  __m512 part[4];
} table64;

AVX512 INLINE void load_table(const float *scores, int32_t size, table64 *out) {
  uint64_t mask = size < 64 ? ((uint64_t)1 << size) - 1 : UINT64_MAX;
  for (int k = 0; k < 4; k++)
    out->part[k] = _mm512_maskz_loadu_ps((__mmask16)(mask >> (16 * k)), scores + 16 * k);
}

AVX512 INLINE __m512 look_up(const table64 *table, __m512i column) {
  __m512 low = _mm512_permutex2var_ps(table->part[0], column, table->part[1]),
         high = _mm512_permutex2var_ps(table->part[2], column, table->part[3]);
  return _mm512_mask_blend_ps(_mm512_test_epi32_mask(column, _mm512_set1_epi32(32)), low, high);
}

AVX512 INLINE void advance_avx512(const wf__align_frame *frame, size_t begin, size_t end,
                                  bool traced, bool small) {
  const wf__align_frame copy = *frame, *f = &copy;
  const __m512 blank_score = _mm512_set1_ps(f->scores[f->blank]);
  __m512 last = _mm512_set1_ps(f->before);
  table64 table;
  if (small) load_table(f->scores, f->num_columns, &table);
  for (size_t i = begin; i < end; i += 16) {
    const float *token = f->now.token + i;
    __m512i column = _mm512_loadu_si512(f->column + i);
    __m512 stay = _mm512_load_ps(token),
           before = _mm512_castsi512_ps(
               _mm512_alignr_epi32(_mm512_castps_si512(stay), _mm512_castps_si512(last), 15)),
           wait = _mm512_load_ps(f->now.blank + i),
           jump = _mm512_add_ps(before, _mm512_loadu_ps(f->skip + i)),
           score = small ? look_up(&table, column) : _mm512_i32gather_ps(column, f->scores, 4),
           best = _mm512_max_ps(wait, stay);
    _mm512_store_ps(f->next.token + i, _mm512_add_ps(_mm512_max_ps(jump, best), score));
    _mm512_store_ps(f->next.blank + i, _mm512_add_ps(_mm512_max_ps(before, wait), blank_score));
    last = stay;
    if (!traced) continue;
    __m128i back =
        _mm_maskz_set1_epi8(_mm512_cmp_ps_mask(wait, stay, _CMP_GT_OQ), WF__TOKEN_FROM_BLANK);
    back =
        _mm_mask_set1_epi8(back, _mm512_cmp_ps_mask(jump, best, _CMP_GT_OQ), WF__TOKEN_FROM_TOKEN);
    back = _mm_or_si128(back, _mm_maskz_set1_epi8(_mm512_cmp_ps_mask(before, wait, _CMP_GT_OQ),
                                                  WF__BLANK_FROM_TOKEN));
    _mm_storeu_si128((__m128i *)(void *)(f->back + (i - begin)), back);
  }
}

AVX512 static void avx512(const wf__align_frame *f, size_t begin, size_t end) {
  bool small = f->num_columns <= 64;
  if (f->back != NULL && small)
    advance_avx512(f, begin, end, true, true);
  else if (f->back != NULL)
    advance_avx512(f, begin, end, true, false);
  else if (small)
    advance_avx512(f, begin, end, false, true);
  else
    advance_avx512(f, begin, end, false, false);
}

wf__align_fn wf__align_kernel(int level) {
  bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl");
  if (level == 1) return __builtin_cpu_supports("avx2") ? avx2 : NULL;
  if (level == 2) return has_avx512 ? avx512 : NULL;
  return scalar;
}

#else

wf__align_fn wf__align_kernel(int level) { return level == 0 ? scalar : NULL; }

#endif

wf__align_fn wf__align_best_kernel(void) {
  int level = 2;
  while (wf__align_kernel(level) == NULL) level--;
  return wf__align_kernel(level);
}
