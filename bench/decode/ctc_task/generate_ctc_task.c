/* generate_ctc_task.c - generates a CTC decoding task of any size, up to LibriSpeech's and beyond,
 * in less than a minute.
 *
 *     generate_ctc_task FOLDER [--words=200000] [--tokens=128] [--text-words=80000000]
 *     [--min-bigram=1] [--min-trigram=2] [--utterances=400] [--train-words=0] [--seed=20111]
 *
 *     FOLDER/tokens.txt, lexicon.txt, lm.arpa   for `warpfst mkgraph ctc`
 *     FOLDER/ref                                `key word word ...`, sentences that are not in the
 *                                               LM's text, 2 to 35 seconds each
 *     FOLDER/peaky.ark, flat.ark                their scores, [frames, tokens] at 25 frames a
 *                                               second
 *     FOLDER/train.txt, valid.txt, text         with --train-words, for a recurrent model.
 *                                               train.txt: all words, 50 per line, then the
 *                                               beginning of the LM's text; valid.txt and text:
 *                                               2,000 and 400,000 words of other sentences
 *
 * A random process (task_words.c) makes the text from which the LM is counted (task_lm.c). The
 * references come from the same process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctc_task.h"

struct arguments {
  const char *folder;
  uint64_t words, tokens, text_words, min_bigram, min_trigram, utterances, train_words, seed;
};

static bool parse(int argc, char **argv, struct arguments *out) {
  *out = (struct arguments){.words = 200000,
                            .tokens = 128,
                            .text_words = 80000000,
                            .min_bigram = 1,
                            .min_trigram = 2,
                            .utterances = 400,
                            .seed = 20111};
  struct {
    const char *name;
    uint64_t *value, least, most;
  } known[] = {{"--words=", &out->words, 50, 2000000},
               {"--tokens=", &out->tokens, 32, 60000},
               {"--text-words=", &out->text_words, 1000, 2000000000},
               {"--min-bigram=", &out->min_bigram, 1, 1000},
               {"--min-trigram=", &out->min_trigram, 1, 1000},
               {"--utterances=", &out->utterances, 1, 999999},
               {"--train-words=", &out->train_words, 0, 2000000000},
               {"--seed=", &out->seed, 0, UINT64_MAX}};
  for (int i = 1; i < argc; i++) {
    size_t k = 0, num_known = sizeof known / sizeof *known;
    while (k < num_known && strncmp(argv[i], known[k].name, strlen(known[k].name)) != 0) k++;
    if (k == num_known && argv[i][0] != '-' && out->folder == NULL) {
      out->folder = argv[i];
      continue;
    }
    char *stop = argv[i];
    if (k < num_known) *known[k].value = strtoull(argv[i] + strlen(known[k].name), &stop, 10);
    if (stop == argv[i] || *stop != '\0' || *known[k].value < known[k].least ||
        *known[k].value > known[k].most) {
      fprintf(stderr, "generate_ctc_task: %s: unknown, or out of range\n", argv[i]);
      return false;
    }
  }
  return out->folder != NULL;
}

/* Writes the first sentences of a text, up to `num_words` words. If `num_all` > 0, writes all words
 * of the vocabulary, of which there are `num_all`, before them. */
static bool write_sentences(const struct text *text, size_t num_words, uint32_t num_all,
                            const char *folder, const char *name) {
  void *opened;
  if (!file_open(folder, name, &opened)) return false;
  FILE *file = opened;
  for (uint32_t w = 0; w < num_all; w++)
    fprintf(file, "w%u%c", w, w % 50 == 49 || w + 1 == num_all ? '\n' : ' ');
  bool begin = true;
  for (size_t i = 0; i < text->size && (i < num_words || !begin); i++) {
    const bool ends = text->ids[i] == SENTENCE_END;
    if (ends)
      fputc('\n', file);
    else
      fprintf(file, begin ? "w%u" : " w%u", text->ids[i] - FIRST_WORD);
    begin = ends;
  }
  return file_close(file, name);
}

static bool write_references(const struct text *text, const char *folder) {
  void *opened;
  if (!file_open(folder, "ref", &opened)) return false;
  FILE *file = opened;
  char key[16];
  uint32_t index = 0;
  bool begin = true;
  for (size_t i = 0; i < text->size; i++) {
    if (begin) {
      reference_key(index++, key);
      fputs(key, file);
    }
    begin = text->ids[i] == SENTENCE_END;
    if (begin)
      fputc('\n', file);
    else
      fprintf(file, " w%u", text->ids[i] - FIRST_WORD);
  }
  return file_close(file, "ref");
}

static bool add_text(const struct text_process *process, uint64_t random, size_t num_words,
                     size_t num_sentences, struct text *text) {
  for (size_t i = 0; text->size < num_words || i < num_sentences; i++)
    if (!text_add_sentence(process, &random, text)) return false;
  return true;
}

static bool write_texts(const struct text_process *process, const struct text *training,
                        const struct arguments *a) {
  static const struct {
    const char *name;
    size_t num_words;
  } others[] = {{"valid.txt", 2000}, {"text", 400000}};
  bool good = write_sentences(training, a->train_words, (uint32_t)a->words, a->folder, "train.txt");
  for (int i = 0; i < 2 && good; i++) {
    struct text other = {0};
    good =
        add_text(process, random_seed(a->seed, 12 + (uint64_t)i), others[i].num_words, 0, &other) &&
        write_sentences(&other, other.size, 0, a->folder, others[i].name);
    free(other.ids);
  }
  return good;
}

int main(int argc, char **argv) {
  struct arguments a;
  char path[4096];
  if (!parse(argc, argv, &a)) {
    fprintf(stderr,
            "usage: generate_ctc_task FOLDER [--words=N] [--tokens=N] [--text-words=N] "
            "[--min-bigram=N] [--min-trigram=N] [--utterances=N] "
            "[--train-words=N] [--seed=N]\n");
    return 2;
  }
  mkdir(a.folder, 0777);
  struct lexicon lexicon = {0};
  struct text_process process = {0};
  struct text training = {0}, references = {0};
  snprintf(path, sizeof path, "%s/lm.arpa", a.folder);
  bool good = lexicon_make((uint32_t)a.words, (uint32_t)a.tokens, a.seed, &lexicon) &&
              lexicon_write(&lexicon, a.folder);
  good = good && text_process_make((uint32_t)a.words, a.seed, &process) &&
         add_text(&process, random_seed(a.seed, 10), a.text_words, 0, &training) &&
         add_text(&process, random_seed(a.seed, 11), 0, a.utterances, &references);
  good = good &&
         lm_write(&training, (uint32_t)a.words, (uint32_t)a.min_bigram, (uint32_t)a.min_trigram,
                  path) &&
         write_references(&references, a.folder);
  if (good && a.train_words > 0) good = write_texts(&process, &training, &a);
  for (int i = 0; i < 2 && good; i++)
    good = scores_write(&score_models[i], &lexicon, &references, random_seed(a.seed, 20), a.folder);
  if (!good) fprintf(stderr, "generate_ctc_task: %s: failed (disk or memory full?)\n", a.folder);
  text_process_free(&process);
  lexicon_free(&lexicon);
  free(training.ids);
  free(references.ids);
  return good ? 0 : 1;
}
