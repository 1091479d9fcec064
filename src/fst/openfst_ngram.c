/* openfst_ngram.c - reads OpenFst's NGramFst files: n-gram models of OpenGrm.
 *
 *   u64 number of states S | u64 number of words F ("futures") | u64 number of final states |
 *   context bits, 2S + 1 | future bits, F + S + 1 | final bits, S (in words of 64 bits each) |
 *   i32 context words, S + 1 | i32 futures, F | padding to the size of a weight |
 *   backoff weights, S + 1 | final weights | weights of futures, F + 1
 *
 * States are the nodes of a trie, breadth first: state 0 has the empty context, the state below it
 * with word w the context w, the one below that with word v the context v w. After two bits for
 * itself, the context bits have a 1 for each child of state 0, a 0, a 1 for each child of state 1,
 * and so on. The future bits are the same for the words that follow a context. A state's first arc
 * is the epsilon arc to its parent. The arc of a word leads to the longest context that ends with
 * it. The start is state 1. */
#include <string.h>

#include "fst/openfst_types.h"

struct ngram {
  uint64_t num_states, num_futures, num_final;
  const uint8_t *context_bits, *future_bits, *final_bits;
  const uint8_t *context_words, *futures;
  const uint8_t *backoff, *final_weights, *future_weights;
  uint64_t *child;  /* [num_states + 1] the children of s are child[s] .. child[s + 1] */
  uint64_t *future; /* [num_states + 1] likewise its futures */
  uint32_t *parent; /* [num_states] */
};

static bool bit(const uint8_t *bits, uint64_t i) { return bits[i / 8] >> (i % 8) & 1; }

static int32_t word_at(const uint8_t *words, uint64_t i) {
  int32_t word;
  memcpy(&word, words + i * sizeof word, sizeof word);
  return word;
}

static wf_status take_bits(wf__cursor *cursor, uint64_t count, const uint8_t **out, wf_error *err) {
  return wf__read_view(cursor, out, (count + 63) / 64 * 8, "bits of an n-gram model", err);
}

static wf_status find_blocks(wf__cursor *cursor, const wf__openfst_header *h, struct ngram *n,
                             wf_error *err) {
  const uint8_t *begin = cursor->at, *padding;
  uint64_t room = wf__cursor_left(cursor) * 8, bytes = h->weight_bytes;
  WF__TRY(wf__read_u64(cursor, &n->num_states, "the number of states", err));
  WF__TRY(wf__read_u64(cursor, &n->num_futures, "the number of words", err));
  WF__TRY(wf__read_u64(cursor, &n->num_final, "the number of final states", err));
  if (n->num_states < 2 || n->num_states > WF__MAX_STATES || n->num_states > room ||
      n->num_futures > room || n->num_final > n->num_states)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%llu states, %llu words, %llu final states",
                           (unsigned long long)n->num_states, (unsigned long long)n->num_futures,
                           (unsigned long long)n->num_final);
  WF__TRY(take_bits(cursor, n->num_states * 2 + 1, &n->context_bits, err));
  WF__TRY(take_bits(cursor, n->num_futures + n->num_states + 1, &n->future_bits, err));
  WF__TRY(take_bits(cursor, n->num_states, &n->final_bits, err));
  WF__TRY(wf__read_view(cursor, &n->context_words, (n->num_states + 1) * 4, "contexts", err));
  WF__TRY(wf__read_view(cursor, &n->futures, n->num_futures * 4, "words", err));
  uint64_t used = (uint64_t)(cursor->at - begin) % bytes;
  WF__TRY(wf__read_view(cursor, &padding, (bytes - used) % bytes, "padding", err));
  WF__TRY(wf__read_view(cursor, &n->backoff, (n->num_states + 1) * bytes, "weights", err));
  WF__TRY(wf__read_view(cursor, &n->final_weights, n->num_final * bytes, "weights", err));
  return wf__read_view(cursor, &n->future_weights, (n->num_futures + 1) * bytes, "weights", err);
}

/* Sets first[s] to the number of 1 bits before the run of state s; runs end with a 0. */
static bool count_runs(const uint8_t *bits, uint64_t from, uint64_t num_bits, uint64_t num_states,
                       uint64_t ones, uint64_t *first) {
  uint64_t state = 0, total = ones;
  first[0] = ones;
  for (uint64_t i = from; i < num_bits; i++) {
    if (bit(bits, i))
      total++;
    else if (state < num_states)
      first[++state] = total;
    else
      return false;
  }
  return state == num_states;
}

static wf_status index_states(const wf__cursor *cursor, struct ngram *n, wf_error *err) {
  uint64_t num_states = n->num_states;
  n->child = wf__alloc(num_states + 1, sizeof *n->child);
  n->future = wf__alloc(num_states + 1, sizeof *n->future);
  n->parent = wf__calloc(num_states, sizeof *n->parent);
  if (n->child == NULL || n->future == NULL || n->parent == NULL)
    return wf__fail_memory(err, num_states * 20, "an n-gram model");
  bool fine =
      bit(n->context_bits, 0) && !bit(n->context_bits, 1) && !bit(n->future_bits, 0) &&
      count_runs(n->context_bits, 2, num_states * 2 + 1, num_states, 1, n->child) &&
      count_runs(n->future_bits, 1, n->num_futures + num_states + 1, num_states, 0, n->future) &&
      n->child[num_states] == num_states && n->future[num_states] == n->num_futures;
  for (uint64_t s = 0; s < num_states && fine; s++) {
    for (uint64_t c = n->child[s]; c < n->child[s + 1] && fine; c++) {
      fine = c > s; /* breadth first: children come later */
      n->parent[c] = (uint32_t)s;
    }
  }
  return fine ? WF_OK
              : wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                                "the tree of contexts of an n-gram model is damaged");
}

/* The child of a state for a word, or 0. Children are sorted by word. */
static uint32_t child_of(const struct ngram *n, uint64_t s, int32_t word) {
  uint64_t low = n->child[s], end = n->child[s + 1], high = end;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (word_at(n->context_words, middle) < word)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && word_at(n->context_words, low) == word ? (uint32_t)low : 0;
}

/* The state after a word: the longest context "... p2 p1 word", where p1, p2 ... are the words of
 * the path from the root to the state, the last word of the context first. */
static uint32_t target_of(const struct ngram *n, const int32_t *path, uint64_t length,
                          int32_t word) {
  uint32_t at = child_of(n, 0, word);
  for (uint64_t k = length; at != 0 && k > 0; k--) {
    uint32_t next = child_of(n, at, path[k - 1]);
    if (next == 0) break;
    at = next;
  }
  return at;
}

typedef WF__VEC(int32_t) words;

static wf_status add_state(const wf__cursor *cursor, const wf__openfst_header *h,
                           const struct ngram *n, uint64_t s, uint64_t *finals, words *path,
                           wf__csr *csr, wf_error *err) {
  const size_t bytes = h->weight_bytes;
  float cost = INFINITY;
  wf_arc back = {.nextstate = n->parent[s]};
  bool fine = true;
  if (bit(n->final_bits, s))
    fine = *finals < n->num_final &&
           wf__load_weight(n->final_weights + bytes * (*finals)++, bytes, &cost);
  WF__TRY(wf__csr_add_state(csr, cost, err));
  if (s != 0) {
    fine = fine && wf__load_weight(n->backoff + s * bytes, bytes, &back.weight);
    WF__TRY(wf__csr_push(csr, back, err));
  }
  path->size = 0; /* from the state up to the root */
  for (uint64_t at = s; at != 0; at = n->parent[at])
    WF__TRY(wf__vec_push(path, word_at(n->context_words, at), "a context", err));
  for (uint64_t i = n->future[s]; i < n->future[s + 1] && fine; i++) {
    wf_arc arc = {.ilabel = word_at(n->futures, i)};
    arc.olabel = arc.ilabel;
    fine = arc.ilabel >= 0 && wf__load_weight(n->future_weights + i * bytes, bytes, &arc.weight);
    arc.nextstate = target_of(n, path->data, path->size, arc.ilabel);
    WF__TRY(wf__csr_push(csr, arc, err));
  }
  return fine ? WF_OK
              : wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                                "state %llu of an n-gram model has a bad weight or a negative word",
                                (unsigned long long)s);
}

static wf_status read_states(wf__cursor *cursor, const wf__openfst_header *h, struct ngram *n,
                             words *path, wf__csr *csr, wf_error *err) {
  uint64_t finals = 0;
  WF__TRY(find_blocks(cursor, h, n, err));
  WF__TRY(index_states(cursor, n, err));
  for (uint64_t s = 0; s < n->num_states; s++)
    WF__TRY(add_state(cursor, h, n, s, &finals, path, csr, err));
  return WF_OK;
}

wf_status wf__openfst_read_ngram(wf__cursor *cursor, const wf__openfst_header *h, wf__csr *csr,
                                 wf_error *err) {
  struct ngram n = {0};
  words path = {0};
  wf_status status = read_states(cursor, h, &n, &path, csr, err);
  free(n.child);
  free(n.future);
  free(n.parent);
  wf__vec_free(&path);
  return status;
}
